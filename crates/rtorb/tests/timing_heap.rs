//! Heap calls and locks of warm calls of annotated operations: none on either side, within the limits and beyond them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtorb::timing::{ExecutionClock, Overrun};
use rtorb::{DispatchStrategy, Orb, OrbBuilder};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls};
use rtorb_os::sync::process_lock_calls;
use rtorb_tests::asleep::until_others_sleep;
use rtorb_tests::clockwork::Works;
use rtorb_tests::relay::Served;
use rtorb_tests::stubs::timing::Clockwork;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

/// Calls before counting begins: connections, buffers and tables are made in them.
const WARM_UP: usize = 100;
const CALLS: usize = 1000;

fn counting(builder: OrbBuilder, told: &Arc<AtomicU64>) -> OrbBuilder {
    let told = Arc::clone(told);
    builder.on_timing_violation(move |_| {
        told.fetch_add(1, Ordering::Relaxed);
    })
}

fn main() {
    rtorb_tests::alone::run(
        "warm_calls_of_annotated_operations_make_no_heap_call_and_take_no_lock",
        warm_calls_of_annotated_operations_make_no_heap_call_and_take_no_lock,
    );
}

/// One test, since the counters of the process count whatever runs beside it.
fn warm_calls_of_annotated_operations_make_no_heap_call_and_take_no_lock() {
    let told = Arc::new(AtomicU64::new(0));
    let orb = counting(Orb::builder(), &told);
    // One client for all servers: another one's watchdog might end, and free its memory, while the next is counted.
    let orb = orb.build().expect("an ORB");
    for (name, dispatch) in DispatchStrategy::ALL {
        if dispatch == DispatchStrategy::ThreadPerRequest {
            // Starting a thread calls the heap: it is for comparisons.
            continue;
        }
        for (clock, overrun) in [
            (ExecutionClock::Cpu, Overrun::Count),
            (ExecutionClock::Elapsed, Overrun::Count),
            (ExecutionClock::Cpu, Overrun::Demote(0)),
            (ExecutionClock::Elapsed, Overrun::Stop),
        ] {
            let builder = Orb::builder().dispatch(dispatch).pool_threads(2);
            let builder = builder.execution_clock(clock).overrun(overrun);
            let served = Served::by(counting(builder, &told));
            let object: Clockwork = served
                .root
                .activate(Works::default())
                .expect("there is room");
            let text = object.as_object().to_string();
            let object = orb.string_to_object(&text).expect("a reference");
            let object = Clockwork::unchecked_narrow(object);
            let before = told.load(Ordering::Relaxed);
            let within = count(|| assert_eq!(object.cube(3), Ok(27)));
            assert_eq!(told.load(Ordering::Relaxed), before, "{name}");
            let beyond = count(|| object.again().expect("it is served"));
            assert!(
                told.load(Ordering::Relaxed) >= before + CALLS as u64,
                "{name}"
            );
            for (which, counted) in [("within", within), ("beyond", beyond)] {
                assert_eq!(
                    counted.heap_calls, 0,
                    "{name}, {clock:?}, {overrun:?}, {which}"
                );
                // A thread that owns its connection shares nothing; the others have locks of their own kind.
                if dispatch == DispatchStrategy::ThreadPerConnection {
                    assert_eq!(counted.locks, 0, "{name}, {clock:?}, {overrun:?}, {which}");
                }
            }
        }
    }
}

#[derive(Debug)]
struct Counted {
    heap_calls: u64,
    locks: u64,
}

/// The most threads of a server that take memory one after the other.
const SERVERS_MAX: usize = 4;

/// Counts what many calls cost the process. A thread of the server that serves its first request takes memory, once: on a busy host the first
/// calls do not reach all threads.
fn count(call: impl Fn()) -> Counted {
    let mut counted = count_once(&call);
    for _ in 0..SERVERS_MAX {
        if counted.heap_calls == 0 {
            break;
        }
        counted = count_once(&call);
    }
    counted
}

fn count_once(call: impl Fn()) -> Counted {
    (0..WARM_UP).for_each(|_| call());
    // Threads of an ORB before this one may have something left to free.
    until_others_sleep();
    let (heap_calls, locks) = (process_heap_calls(), process_lock_calls().all);
    (0..CALLS).for_each(|_| call());
    Counted {
        heap_calls: process_heap_calls() - heap_calls,
        locks: process_lock_calls().all - locks,
    }
}
