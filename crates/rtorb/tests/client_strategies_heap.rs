//! Heap calls of warm calls under every legal pair of a connection and a wait strategy, many threads at once: none, anywhere.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use rtorb::codegen::{EndedCall, ReplyPoller};
use rtorb::{
    ConnectionStrategy, DispatchStrategy, Orb, ReplyDriver, SystemException, WaitStrategy,
};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls};
use rtorb_tests::asleep::until_others_sleep;
use rtorb_tests::ours::Ours;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

/// Calls of each thread before counting begins: connections, buffers and tables are made in them.
const WARM_UP: i32 = 300;
const CALLS: i32 = 1000;
const ROUNDS: usize = 8;
const THREADS: usize = 4;

fn main() {
    rtorb_tests::alone::run(
        "warm_calls_make_no_heap_call_whoever_reads_their_replies",
        warm_calls_make_no_heap_call_whoever_reads_their_replies,
    );
}

/// One test, since the counter of the process counts whatever runs beside it.
fn warm_calls_make_no_heap_call_whoever_reads_their_replies() {
    let scratch = Scratch::new();
    let unix = format!("uiop://{}", scratch.join("socket").display());
    let memory = format!("shmiop://{}", scratch.join("memory").display());
    for endpoint in ["iiop://127.0.0.1:0", &unix, &memory] {
        let ours = Ours::serve_as(Orb::builder().listen(endpoint));
        for (_, connection) in ConnectionStrategy::ALL {
            for (_, wait) in WaitStrategy::ALL {
                let Some(connection) = connection.with_wait(wait) else {
                    continue;
                };
                let orb = Orb::builder().connection(connection).build();
                let orb = orb.expect("legal");
                let object = orb.string_to_object(&ours.text(ours.cubit.as_object()));
                let cubit = Cubit::narrow(&object.expect("a reference")).expect("it is a Cubit");
                let calls = heap_calls_of_many(&cubit, call);
                assert_eq!(calls, 0, "{connection} and {wait}, {endpoint}");
                if wait == WaitStrategy::Read || connection == ConnectionStrategy::Exclusive {
                    continue;
                }
                start_together(&cubit);
                let calls = heap_calls_of_many(&cubit, start);
                assert_eq!(calls, 0, "started, {connection} and {wait}, {endpoint}");
                let replies = cubit.as_object().orb().reply_driver();
                let replies = replies.expect("it has started calls");
                let told = Arc::default();
                send(&cubit, &replies, &told, WARM_UP);
                let calls = fewest_heap_calls(|| send(&cubit, &replies, &told, CALLS));
                assert_eq!(calls, 0, "sent, {connection} and {wait}, {endpoint}");
            }
        }
    }
    warm_calls_of_both_ends_make_no_heap_call();
}

/// Both ends call over the connection that one of them has opened.
fn warm_calls_of_both_ends_make_no_heap_call() {
    let serve = |endpoint| {
        let builder = Orb::builder().dispatch(DispatchStrategy::WorkerPool);
        Ours::serve_as(builder.bidirectional().listen(endpoint))
    };
    let server = serve("iiop://127.0.0.1:0");
    // Nobody listens at its address.
    let client = serve("iiop://127.0.0.1:0/publish=127.0.0.9:9");
    for (caller, called) in [(&client, &server), (&server, &client)] {
        let text = called.text(called.cubit.as_object());
        let object = caller.orb.string_to_object(&text).expect("a reference");
        let cubit = Cubit::narrow(&object).expect("it is a Cubit");
        assert_eq!(heap_calls_of_many(&cubit, call), 0);
    }
}

/// Heap calls of the whole process while many threads call.
fn heap_calls_of_many(cubit: &Cubit, call: fn(&Cubit, i32)) -> u64 {
    let (begin, end) = (gate(), gate());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                call(cubit, WARM_UP);
                end.wait();
                loop {
                    begin.wait();
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    call(cubit, CALLS);
                    end.wait();
                }
            });
        }
        end.wait();
        let calls = fewest_heap_calls(|| {
            begin.wait();
            end.wait();
        });
        is_over.store(true, Ordering::Relaxed);
        begin.wait();
        calls
    })
}

/// The fewest heap calls of the whole process in a round. On a busy host more replies wait at once than ever before, or a thread reads
/// the reply of another one for the first time: that takes memory, once.
fn fewest_heap_calls(round: impl Fn()) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..ROUNDS {
        until_others_sleep();
        let before = process_heap_calls();
        round();
        fewest = fewest.min(process_heap_calls() - before);
        if fewest == 0 {
            break;
        }
    }
    fewest
}

/// Passed by all the threads and the one that counts.
fn gate() -> Barrier {
    Barrier::new(THREADS + 1)
}

fn call(cubit: &Cubit, calls: i32) {
    for long in 0..calls {
        assert_eq!(cubit.cube_long(long), Ok(long.wrapping_pow(3)));
        cubit.cube_oneway().expect("a oneway is sent");
    }
}

/// Calls in flight of each thread.
const IN_FLIGHT: i32 = 4;

/// Has as many calls in flight as all threads together.
fn start_together(cubit: &Cubit) {
    let object = cubit.as_object();
    let all = 0..IN_FLIGHT * THREADS as i32;
    let started: Vec<_> = all
        .map(|long| object.start("cube_long", |w| w.primitive(long), |r| r.primitive::<i32>()))
        .collect();
    for call in started {
        call.wait().expect("it is served");
    }
}

/// Starts several calls at a time, and waits for their results.
fn start(cubit: &Cubit, calls: i32) {
    let object = cubit.as_object();
    for first in (0..calls).step_by(IN_FLIGHT as usize) {
        let started: [_; IN_FLIGHT as usize] = std::array::from_fn(|place| {
            let long = first + place as i32;
            object.start("cube_long", |w| w.primitive(long), |r| r.primitive())
        });
        for (call, long) in started.into_iter().zip(first..) {
            assert_eq!(call.wait(), Ok(long.wrapping_pow(3)));
        }
    }
}

/// Has a handler told the results of several calls at a time: it counts them.
fn send(cubit: &Cubit, replies: &ReplyDriver, told: &Arc<AtomicI32>, calls: i32) {
    let object = cubit.as_object();
    told.store(0, Ordering::Relaxed);
    for long in 0..calls {
        let started = object.start("cube_long", |w| w.primitive(long), |r| r.primitive::<i32>());
        let poller = ReplyPoller::new(object, "cube_long", started);
        poller.hand_to(told, tell).expect("it is sent");
        while long + 1 - told.load(Ordering::Relaxed) >= IN_FLIGHT {
            replies.run_once(None);
        }
    }
    while told.load(Ordering::Relaxed) < calls {
        replies.run_once(None);
    }
}

/// As generated code tells a handler.
fn tell(ended: EndedCall<'_>) -> bool {
    ended.tell(
        |call, until| call.wait_until(until, |r| r.primitive::<i32>(), |_, _| Ok(None)),
        |told: &AtomicI32, _: Result<i32, SystemException>| {
            told.fetch_add(1, Ordering::Relaxed);
        },
    )
}
