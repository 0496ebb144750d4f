//! Counters of heap calls and their bytes, so that a test can show that a path makes none, or how large they are.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::alloc::System;

/// The system allocator with counters: heap calls of each thread and of the process, and the bytes that each thread asks for.
///
/// ```
/// #[global_allocator]
/// static HEAP: rtorb_instruments::heap::CountingAllocator = rtorb_instruments::heap::CountingAllocator;
/// ```
#[derive(Debug)]
pub struct CountingAllocator;

thread_local! {
    static THREAD_CALLS: Cell<u64> = const { Cell::new(0) };
    static THREAD_BYTES: Cell<u64> = const { Cell::new(0) };
}

static PROCESS_CALLS: AtomicU64 = AtomicU64::new(0);

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Runs `work` and counts the heap calls (allocate, grow, free) that this thread makes in it.
///
/// It counts only in a program whose global allocator is [`CountingAllocator`].
pub fn heap_calls<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = thread_heap_calls();
    let value = work();
    (value, thread_heap_calls() - before)
}

/// Runs `work` and counts the bytes that this thread asks the heap for in it: each new size of what grows, and nothing less for what it
/// gives back.
///
/// It counts only in a program whose global allocator is [`CountingAllocator`].
pub fn heap_bytes<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let bytes = || THREAD_BYTES.try_with(Cell::get).unwrap_or(0);
    let before = bytes();
    let value = work();
    (value, bytes() - before)
}

/// The heap calls that this thread has made.
pub fn thread_heap_calls() -> u64 {
    THREAD_CALLS.try_with(Cell::get).unwrap_or(0)
}

/// The heap calls that all threads have made.
pub fn process_heap_calls() -> u64 {
    PROCESS_CALLS.load(Ordering::Relaxed)
}

/// Stops counting. While stopped, a heap call costs one relaxed load more.
pub fn stop_counting() {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Starts counting again. A program counts from its start.
pub fn start_counting() {
    STOPPED.store(false, Ordering::Relaxed);
}

#[inline]
fn count(bytes: usize) {
    if STOPPED.load(Ordering::Relaxed) {
        return;
    }
    // A thread that ends has no counter any more.
    let _ = THREAD_CALLS.try_with(|calls| calls.set(calls.get() + 1));
    let _ = THREAD_BYTES.try_with(|asked| asked.set(asked.get() + bytes as u64));
    PROCESS_CALLS.fetch_add(1, Ordering::Relaxed);
}

// SAFETY: every call goes to the system allocator unchanged, and counting makes no heap call.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.dealloc(memory, layout) }
    }
}
