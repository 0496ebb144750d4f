//! Locks, timers and rings make no heap call in use: counted on the thread that uses them.

use rtorb_instruments::heap::{CountingAllocator, heap_calls};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::ring::Ring;
use rtorb_os::sched::current_policy;
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
