//! Heap calls of warm calls, counted: none on either side, beyond the results that the caller owns.

use rtorb::interceptors::{
    ClientRequest, ClientRequestInterceptor, Intervention, ServerRequest, ServerRequestInterceptor,
};
use rtorb::{Deferring, DispatchStrategy, Limits, ObjectRef, Orb, Responder, SystemException};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls, thread_heap_calls};
use rtorb_tests::asleep::until_others_sleep;
use rtorb_tests::crane::{Machine, MachineDeferredServant};
use rtorb_tests::ours::Ours;
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::{Cubit, Many, Oneof};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

/// Calls before counting begins: connections, buffers and tables are made in them.
const WARM_UP: usize = 100;
const CALLS: usize = 1000;

fn main() {
    rtorb_tests::alone::run(
        "warm_calls_make_no_heap_call_beyond_the_owned_result",
        warm_calls_make_no_heap_call_beyond_the_owned_result,
    );
}

/// One test, since the counter of the process counts whatever runs beside it.
fn warm_calls_make_no_heap_call_beyond_the_owned_result() {
    let scratch = Scratch::new();
    let endpoints = [
        "iiop://127.0.0.1:0".to_owned(),
        format!("uiop://{}", scratch.join("socket").display()),
        format!("shmiop://{}", scratch.join("memory").display()),
    ];
    // One client for all servers: another one's watchdog might end, and free its memory, while the next is counted.
    let orb = Orb::builder().build().expect("the ORB can be built");
    let intercepted = Orb::builder().client_interceptor(Labeller).build();
    let intercepted = intercepted.expect("the ORB can be built");
    for endpoint in endpoints {
        for (name, dispatch) in DispatchStrategy::ALL {
            if dispatch == DispatchStrategy::ThreadPerRequest {
                // Starting a thread calls the heap: it is for comparisons.
                continue;
            }
            let server = || {
                let server = Orb::builder().dispatch(dispatch).pool_threads(2);
                server.listen(&endpoint)
            };
            {
                let ours = Ours::serve_as(server().server_interceptor(Labeller));
                let object = intercepted.string_to_object(&ours.text(ours.cubit.as_object()));
                let cubit = Cubit::unchecked_narrow(object.expect("a reference"));
                let endpoint = format!("{name}, {endpoint}, intercepted");
                fixed_sizes(&endpoint, &cubit);
                deferred(&endpoint, &ours, &intercepted);
            }
            let ours = Ours::serve_as(server());
            let object: ObjectRef = orb
                .string_to_object(&ours.text(ours.cubit.as_object()))
                .expect("a reference");
            let cubit = Cubit::narrow(&object).expect("it is a Cubit");
            fixed_sizes(&format!("{name}, {endpoint}"), &cubit);
            deferred(&format!("{name}, {endpoint}"), &ours, &orb);
            // Strategies that take requests out of their connections give the memory of large ones back.
            if dispatch == DispatchStrategy::ThreadPerConnection {
                sequences(&cubit);
            }
        }
    }
    after_silence(&orb);
    recorded();
}

/// The first call after a connection has given its buffer back takes one from the pool.
fn after_silence(orb: &Orb) {
    for (name, dispatch) in DispatchStrategy::ALL {
        if dispatch == DispatchStrategy::ThreadPerRequest {
            continue;
        }
        let serve = |spare_buffers_max: usize| {
            let limits = Limits::with(|limits| {
                limits.idle_buffer_time = IDLE;
                limits.spare_buffers_max = spare_buffers_max;
            });
            let ours = Ours::serve_as(
                Orb::builder()
                    .dispatch(dispatch)
                    .pool_threads(2)
                    .limits(limits),
            );
            let object = orb.string_to_object(&ours.text(ours.cubit.as_object()));
            let cubit = Cubit::unchecked_narrow(object.expect("a reference"));
            assert_eq!(count(WARM_UP, || cubit.cube_void()).here, 0);
            (ours, cubit)
        };
        let first_call = |cubit: &Cubit| {
            thread::sleep(3 * IDLE);
            until_others_sleep();
            let before = process_heap_calls();
            assert_eq!(cubit.cube_long(3), Ok(27));
            process_heap_calls() - before
        };
        {
            // Without a pool the call makes a buffer, which shows that the connection was silent for long enough.
            let (_ours, cubit) = serve(0);
            until("the buffer is freed", || {
                (first_call(&cubit) > 0).then_some(())
            });
        }
        let (_ours, cubit) = serve(1);
        // A look at the connections has memory of its own, and may fall into some of the calls.
        let makes_none = (0..30).any(|_| first_call(&cubit) == 0);
        assert!(makes_none, "{name}: a first call makes no heap call");
    }
}

/// How long a connection keeps its buffer in silence, about.
const IDLE: Duration = Duration::from_millis(10);

/// The recorder is that of the process, so these calls are the last.
fn recorded() {
    let orb = Orb::builder().recorder().build();
    let orb = orb.expect("the ORB can be built");
    for (name, dispatch) in DispatchStrategy::ALL {
        if dispatch == DispatchStrategy::ThreadPerRequest {
            continue;
        }
        let server = Orb::builder().dispatch(dispatch).pool_threads(2);
        let ours = Ours::serve_as(server.recorder());
        let object = orb.string_to_object(&ours.text(ours.cubit.as_object()));
        let cubit = Cubit::unchecked_narrow(object.expect("a reference"));
        fixed_sizes(&format!("{name}, recorded"), &cubit);
    }
}

/// An interceptor that adds a context to each message.
struct Labeller;

const LABEL: u32 = 0x6c61_6265;

impl ClientRequestInterceptor for Labeller {
    fn send_request(&self, request: &mut ClientRequest<'_>) -> Result<(), Intervention> {
        Ok(request.add_context(LABEL, b"a label of a request")?)
    }
}

impl ServerRequestInterceptor for Labeller {
    fn send_reply(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        assert!(request.context(LABEL).is_some());
        request.add_reply_context(LABEL, b"a label of a reply")
    }
}

fn fixed_sizes(endpoint: &str, cubit: &Cubit) {
    let many = Many { o: 4, l: 5, s: 6 };
    let none = Counted {
        here: 0,
        elsewhere: 0,
    };
    assert_eq!(
        count(CALLS, || cubit.cube_void()),
        none,
        "cube_void, {endpoint}"
    );
    assert_eq!(
        count(CALLS, || cubit.cube_octet(3)),
        none,
        "cube_octet, {endpoint}"
    );
    assert_eq!(
        count(CALLS, || cubit.cube_short(3)),
        none,
        "cube_short, {endpoint}"
    );
    assert_eq!(
        count(CALLS, || cubit.cube_long(3)),
        none,
        "cube_long, {endpoint}"
    );
    assert_eq!(
        count(CALLS, || cubit.cube_struct(&many)),
        none,
        "cube_struct, {endpoint}"
    );
    assert_eq!(
        count(CALLS, || cubit.cube_union(&Oneof::L(3))),
        none,
        "cube_union of a long, {endpoint}"
    );
    assert_eq!(
        count(CALLS, || cubit.cube_union(&Oneof::Cm(many))),
        none,
        "cube_union of a struct, {endpoint}"
    );
    assert_eq!(
        count(CALLS, || cubit.cube_oneway()),
        none,
        "cube_oneway, {endpoint}"
    );
}

/// A servant whose replies another thread sends. `None` in its place ends that thread.
struct Relay(Arc<Handover>);

struct Handover {
    owed: Mutex<Vec<Option<Responder<i32>>>>,
    changed: Condvar,
}

impl Handover {
    fn put(&self, responder: Option<Responder<i32>>) {
        self.owed.lock().expect("no panic").push(responder);
        self.changed.notify_one();
    }

    fn take(&self) -> Option<Responder<i32>> {
        let mut owed = self.owed.lock().expect("no panic");
        loop {
            match owed.pop() {
                Some(responder) => return responder,
                None => owed = self.changed.wait(owed).expect("no panic"),
            }
        }
    }
}

impl MachineDeferredServant for Relay {
    fn hours(&self, responder: Responder<i32>) {
        self.0.put(Some(responder));
    }

    fn start_(&self, _: Responder<()>) {}
}

/// Longer than all calls take.
const DEADLINE: Duration = Duration::from_secs(600);

/// Calls that another thread answers: a responder is no heap object, its place in the table keeps its memory, and the watchdog needs none for
/// its deadline.
fn deferred(endpoint: &str, ours: &Ours, orb: &Orb) {
    let handover = Arc::new(Handover {
        owed: Mutex::new(Vec::with_capacity(2)),
        changed: Condvar::new(),
    });
    let servant = Deferring(Relay(Arc::clone(&handover)));
    let machine: Machine = ours.poa.activate(servant).expect("room");
    let object = orb.string_to_object(&ours.text(machine.as_object()));
    let machine = Machine::unchecked_narrow(object.expect("a reference"));
    thread::scope(|scope| {
        scope.spawn(|| {
            // Two at a time once: a call may come before the place of the last reply is free again.
            let (one, other) = (handover.take(), handover.take());
            [one, other]
                .into_iter()
                .flatten()
                .for_each(|it| it.reply(41));
            while let Some(responder) = handover.take() {
                responder.reply(41);
            }
        });
        // The other caller stays until the counting is over: a server frees the memory of a thread some time after its client has gone.
        let (counting, counted) = channel::<()>();
        let other = machine.clone();
        let beside = scope.spawn(move || {
            let hours = other.hours();
            let _ = counted.recv();
            hours
        });
        assert_eq!(machine.hours(), Ok(41));
        let counted = count(CALLS, || machine.hours());
        // The first one starts the watchdogs of both ends.
        let dated = machine.with_deadline(DEADLINE);
        assert_eq!(dated.hours(), Ok(41));
        let counted_dated = count(CALLS, || dated.hours());
        drop(counting);
        assert_eq!(beside.join().expect("no panic"), Ok(41));
        handover.put(None);
        let none = Counted {
            here: 0,
            elsewhere: 0,
        };
        assert_eq!(counted, none, "hours, {endpoint}");
        assert_eq!(counted_dated, none, "hours by a deadline, {endpoint}");
    });
}

fn sequences(cubit: &Cubit) {
    for (length, calls) in [(4, CALLS), (4096, CALLS / 10), (65_536, CALLS / 100)] {
        // The caller gets its own sequence (one allocation), the servant makes its result and frees it (two heap calls).
        let owned = Counted {
            here: calls,
            elsewhere: 2 * calls,
        };
        let (longs, octets) = (vec![3; length], vec![3; length]);
        let manys = vec![Many { o: 4, l: 5, s: 6 }; length];
        assert_near(
            count(calls, || cubit.cube_long_sequence(&longs)),
            owned,
            "longs",
            length,
        );
        assert_near(
            count(calls, || cubit.cube_octet_sequence(&octets)),
            owned,
            "octets",
            length,
        );
        assert_near(
            count(calls, || cubit.cube_many_sequence(&manys)),
            owned,
            "structs",
            length,
        );
    }
}

/// The servant's result is freed after the reply was sent: at the ends of the counting once too early or too late.
fn assert_near(seen: Counted, expected: Counted, what: &str, length: usize) {
    let near = seen.elsewhere.abs_diff(expected.elsewhere) <= 1;
    assert!(
        seen.here == expected.here && near,
        "{length} {what}: {seen:?}, expected {expected:?}"
    );
}

/// Heap calls of many calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    /// In the calling thread.
    here: usize,
    /// In every other thread, which is to say the server's.
    elsewhere: usize,
}

fn count<T, E: std::fmt::Debug>(calls: usize, call: impl Fn() -> Result<T, E>) -> Counted {
    let mut counted = count_once(calls, &call);
    // A thread of the server that serves its first request takes memory, once: on a busy host the first calls do not reach all threads.
    for _ in 0..SERVERS_MAX {
        if counted.elsewhere == 0 {
            break;
        }
        counted = count_once(calls, &call);
    }
    counted
}

/// The most threads of a server that take memory one after the other.
const SERVERS_MAX: usize = 4;

fn count_once<T, E: std::fmt::Debug>(calls: usize, call: impl Fn() -> Result<T, E>) -> Counted {
    let mut results = Vec::with_capacity(WARM_UP + calls);
    results.extend((0..WARM_UP.min(calls)).map(|_| call().expect("the call is right")));
    until_others_sleep();
    let (thread, process) = (thread_heap_calls(), process_heap_calls());
    results.extend((0..calls).map(|_| call().expect("the call is right")));
    let (thread, process) = (thread_heap_calls() - thread, process_heap_calls() - process);
    let here = usize::try_from(thread).expect("few");
    Counted {
        here,
        elsewhere: usize::try_from(process).expect("few") - here,
    }
}
