//! The machine's heap, whose calls are counted: once the server runs, calls of fixed size must make none.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};
use embedded_alloc::LlffHeap;

/// The heap with a counter of calls.
pub struct CountedHeap {
    heap: LlffHeap,
    calls: AtomicU32,
}

#[global_allocator]
pub static HEAP: CountedHeap = CountedHeap {
    heap: LlffHeap::empty(),
    calls: AtomicU32::new(0),
};

const HEAP_BYTES: usize = 512 << 10;

static mut MEMORY: [MaybeUninit<u8>; HEAP_BYTES] = [MaybeUninit::uninit(); HEAP_BYTES];

impl CountedHeap {
    /// Gives the heap its memory.
    ///
    /// # Safety
    /// It is called once, before anything is allocated.
    pub unsafe fn begin(&self) {
        // SAFETY: the caller says that this is the first use, and nothing else names `MEMORY`.
        unsafe {
            self.heap
                .init(core::ptr::addr_of_mut!(MEMORY) as usize, HEAP_BYTES)
        }
    }

    /// Allocations and releases so far.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Octets in use.
    pub fn used(&self) -> usize {
        self.heap.used()
    }
}

// SAFETY: every call goes to the heap inside, unchanged.
unsafe impl GlobalAlloc for CountedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.calls.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this same function.
        unsafe { self.heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this same function.
        unsafe { self.heap.dealloc(pointer, layout) }
    }
}
