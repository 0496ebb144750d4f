//! Locks, timers, queues and rings make no heap call in use, and a table grows by small ones: counted on the thread that uses them.

use rtorb_instruments::heap::{CountingAllocator, heap_bytes, heap_calls};
use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::ring::Ring;
use rtorb_os::sched::current_policy;
use rtorb_os::slab::Slab;
#[cfg(feature = "count-locks")]
use rtorb_os::sync::lock_calls;
use rtorb_os::sync::{CeilingMutex, Condvar, Mutex};
use rtorb_os::timer::PeriodicTimer;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

#[test]
fn locks_rings_and_timers_make_no_heap_call_in_use() {
    let (mutex, changed, ceiling) = (Mutex::new(0), Condvar::new(), CeilingMutex::new(20, 0));
    let ring = Ring::new(8);
    let mut timer = PeriodicTimer::every(100_000);
    let mut work = || {
        *mutex.lock() += 1;
        let mut held = mutex.lock_until(0).expect("free");
        changed.wait_until(&mut held, monotonic_ns() + 1_000);
        changed.notify_all(&mutex);
        drop(held);
        let _ = ceiling.lock();
        for n in 0..20 {
            let _ = ring.push(n);
        }
        while ring.pop_until(Some(0)).is_ok() {}
        timer.wait();
        current_policy();
    };
    assert_eq!(heap_calls(&mut work).1, 0, "not even the first time");
    assert_eq!(heap_calls(&mut work).1, 0);
}

#[test]
fn an_insert_asks_for_a_segment_and_a_directory_at_most_however_large_the_table_is() {
    const INSERTS: u64 = 1 << 20;
    const DIRECTORY: u64 = 8 << 10;
    /// 64 slots, each with 24 bytes and the entry of 8.
    const SEGMENT: u64 = 64 * 32;
    let slab = Slab::new(INSERTS as usize);
    let asked = |number| {
        let ((key, calls), bytes) = heap_bytes(|| heap_calls(|| slab.insert(number)));
        assert!(key.is_some() && calls <= 2, "entry {number}: {calls} calls");
        bytes
    };
    let most = (0..INSERTS).map(asked).max();
    assert_eq!(most, Some(DIRECTORY + SEGMENT));
}

#[test]
fn a_bounded_queue_with_memory_makes_no_heap_call_in_use() {
    let mut queue = BoundedQueue::new(8, usize::MAX).with_memory();
    let ((), calls) = heap_calls(|| {
        for number in 0..100 {
            while queue.push(number, 1).is_ok() {}
            assert!(queue.push_over(number, 1, drop));
            assert_eq!(queue.drain(3).count(), 3);
            while queue.pop().is_some() {}
        }
    });
    assert_eq!(calls, 0);
}

#[cfg(feature = "count-locks")]
#[test]
fn a_push_and_a_pop_take_no_lock() {
    let ring = Ring::new(2);
    let (popped, calls) = lock_calls(|| {
        ring.push(1).expect("room");
        ring.pop()
    });
    assert_eq!((popped, calls.all), (Some(1), 0));
}
