//! Queues filled with requests of a simulated client, on virtual time. The test is the I/O thread and the thread of each level.

use super::*;
use crate::clock::monotonic_ns;
use crate::exception::local;
use crate::realtime::ThreadpoolId;
use crate::server::{Admission, Next, ServedConnection, ServerCore, ThreadPriority};
use crate::tests::servant::{Job, Log, Worker};
use crate::tests::world::World;
use crate::transport::Stream;
use crate::transport::resolver::Resolver;
use crate::transport::tcp;
use crate::{Deadlines, Orb, OrbBuilder};
use rtorb_tests::raw::{self, REQUEST};
use rtorb_wire::giop::contexts::REMAINING_TIME;
use rtorb_wire::giop::remaining_time;
use std::time::Duration;

/// A server with one object, a client of it, and the thread that reads the requests.
struct Exchange {
    world: World,
    orb: Orb,
    log: Log,
    key: Vec<u8>,
    client: Stream,
    connection: ServedConnection,
    workspace: Workspace,
    request: TakenRequest,
    /// How long the servant needs for each call.
    work: Duration,
    /// Bytes that each request has behind its arguments.
    filler: usize,
    replies: Vec<u8>,
}

const LIMITS: fn(&mut Limits) = |limits| limits.queued_requests_max = 2_000;

impl Exchange {
    fn new() -> Self {
        Self::with(Orb::builder())
    }

    fn with(builder: OrbBuilder) -> Self {
        let world = World::perfect();
        let orb = builder.limits(Limits::with(LIMITS)).build();
        let orb = orb.expect("an ORB");
        let log = Log::default();
        let poa = orb.root_poa().expect("it listens");
        let worker: Worker = poa.activate(log.clone()).expect("there is room");
        let reference = worker.0.to_string();
        let ior: rtorb_wire::ior::Ior = reference.parse().expect("a reference");
        let profile = ior.iiop_profiles().next().expect("an IIOP profile");
        let client = tcp::connect(&Resolver::default(), &profile.host, profile.port, u64::MAX);
        let core: &Arc<ServerCore> = &orb.core.adapters.server;
        let server = core.server().expect("it is open");
        let accepted = server.accept(core, &server.listeners[0]);
        let Admission::Accepted(mut connection) = accepted else {
            panic!("a client waits");
        };
        assert!(connection.reading.get_buffer(&connection.session));
        Self {
            world,
            log,
            key: profile.object_key,
            client: client.expect("it listens"),
            connection,
            workspace: Workspace::new(ThreadPriority::keeping()),
            request: TakenRequest::with_room(),
            work: Duration::ZERO,
            filler: 0,
            replies: Vec::new(),
            orb,
        }
    }

    fn queue(order: RequestOrder, levels: u32) -> DeadlineQueue {
        DeadlineQueue::new(order, Buffering::default(), levels, &Limits::with(LIMITS))
    }

    /// The client calls `operation`, and the I/O thread puts the request into the queue.
    fn call(
        &mut self,
        queue: &DeadlineQueue,
        operation: &str,
        number: u32,
        deadline: Option<Duration>,
    ) {
        let message = self.message(operation, number, deadline);
        let sent = self.client.send_message_now(&message, &[]);
        assert_eq!(sent.expect("there is room"), message.len());
        let ServedConnection { session, reading } = &mut self.connection;
        reading.receive_now(session).expect("a request");
        let next = reading.take_next::<false>(session, &mut self.workspace, &mut self.request);
        assert_eq!(next, Next::Done);
        queue.put(session, &mut self.request, &mut self.workspace);
    }

    fn message(&self, operation: &str, number: u32, deadline: Option<Duration>) -> Vec<u8> {
        let mut stream = raw::Stream::new(REQUEST, 2, false);
        stream.ulong(number).raw(&[3, 0, 0, 0]);
        stream.ushort(0).octets(&self.key).string(operation);
        match deadline {
            None => stream.ulong(0),
            Some(time) => {
                let data = remaining_time(time.as_nanos() as u64);
                stream.ulong(1).ulong(REMAINING_TIME).octets(&data)
            }
        };
        let job = Job::small(number);
        let work_ns = self.work.as_nanos() as u64;
        stream.align(8).ulong(number).align(8);
        stream.raw(&work_ns.to_le_bytes());
        stream.octets(&vec![job.filler(); job.bytes]);
        stream.raw(&vec![0; self.filler]);
        stream.message()
    }

    /// The thread of a level serves all that it has and gets.
    fn serve_all(&mut self, queue: &DeadlineQueue, level: usize) {
        let mut next = queue.next(level).ok();
        while let Some(queued) = next {
            next = queue.serve(level, queued, &mut self.workspace);
            self.receive();
        }
    }

    /// The client takes the replies.
    fn receive(&mut self) {
        let mut received = [0; 4096];
        if let Ok(bytes) = self.client.receive_now(&mut received) {
            self.replies.extend_from_slice(&received[..bytes]);
        }
    }

    /// How often the words are in the replies.
    fn count(&self, words: &[u8]) -> usize {
        let places = self.replies.windows(words.len());
        places.filter(|place| *place == words).count()
    }
}

#[test]
fn of_a_thousand_requests_the_hundred_that_are_in_time_are_served_in_the_order_of_their_deadlines()
{
    let mut exchange = Exchange::new();
    let queue = Exchange::queue(RequestOrder::EarliestDeadline, 1);
    exchange.call(&queue, "work", 9_999, None);
    // In no order: 7 and 1,000 have no common divisor.
    for number in (0..1_000).map(|place| place * 7 % 1_000) {
        let ms = if number < 100 { 100_000 } else { 10 } + u64::from(number);
        exchange.call(&queue, "work", number, Some(Duration::from_millis(ms)));
    }
    exchange.world.pass(Duration::from_secs(2));
    exchange.serve_all(&queue, 0);

    let served: Vec<_> = [9_999].into_iter().chain(0..100).collect();
    assert_eq!(exchange.log.numbers(), served, "no servant ran for others");
    assert_eq!(exchange.count(b"CORBA/TIMEOUT"), 900);
    assert_eq!(exchange.count(b"GIOP"), 1_001, "each client has a reply");
    assert_eq!(exchange.orb.requests_expired(), 900);
    assert_eq!(queue.room.accepted(), 0);
}

#[test]
fn a_request_that_has_expired_and_is_served_all_the_same_is_counted_once() {
    let mut exchange = Exchange::with(Orb::builder().deadlines(Deadlines::Count));
    let queue = Exchange::queue(RequestOrder::EarliestDeadline, 1);
    // 1 has expired when it is read, and 2 while it waits.
    for (number, deadline) in [(1, Duration::ZERO), (2, Duration::from_millis(10))] {
        exchange.call(&queue, "work", number, Some(deadline));
    }
    exchange.world.pass(Duration::from_secs(1));
    exchange.serve_all(&queue, 0);
    assert_eq!(exchange.log.numbers(), [1, 2]);
    assert_eq!(exchange.orb.requests_expired(), 2);
}

#[test]
fn a_more_urgent_request_begins_on_the_next_level() {
    let mut exchange = Exchange::new();
    let queue = Exchange::queue(RequestOrder::EarliestDeadline, 2);
    for (number, seconds) in [(1, 30), (2, 20), (3, 10), (4, 40)] {
        exchange.call(&queue, "work", number, Some(Duration::from_secs(seconds)));
    }
    // The thread of level 1 runs first, because it is more urgent; 3 finds no level, and waits for 2.
    exchange.serve_all(&queue, 1);
    assert_eq!(exchange.log.numbers(), [2, 3]);
    exchange.serve_all(&queue, 0);
    assert_eq!(exchange.log.numbers(), [2, 3, 1, 4]);
}

/// `work` has a deadline in IDL, `note` a later one, with a worst case and a criticality.
#[test]
fn a_request_without_a_deadline_has_that_of_its_operation() {
    for (order, served) in [
        (RequestOrder::EarliestDeadline, [0, 4, 2, 3, 1]),
        (RequestOrder::LeastLaxity, [0, 4, 3, 2, 1]),
        (RequestOrder::MaximumUrgency, [0, 3, 4, 2, 1]),
    ] {
        let mut exchange = Exchange::new();
        let queue = Exchange::queue(order, 1);
        exchange.call(&queue, "work", 0, None);
        exchange.call(&queue, "unknown", 1, None);
        exchange.call(&queue, "work", 2, None);
        exchange.call(&queue, "vital", 3, None);
        exchange.call(&queue, "work", 4, Some(Duration::from_millis(50)));
        exchange.serve_all(&queue, 0);
        let without_unknown: Vec<_> = served.into_iter().filter(|it| *it != 1).collect();
        assert_eq!(exchange.log.numbers(), without_unknown, "{order}");
    }
}

#[test]
fn beyond_its_room_a_request_is_refused_and_a_closed_queue_serves_what_waits() {
    let mut exchange = Exchange::new();
    let bounds = Buffering {
        requests_max: 3,
        ..Buffering::default()
    };
    let order = RequestOrder::EarliestDeadline;
    let queue = DeadlineQueue::new(order, bounds, 1, &Limits::default());
    for number in 0..6 {
        exchange.call(&queue, "work", number, Some(Duration::from_secs(100)));
    }
    assert_eq!(
        exchange.orb.requests_refused(),
        2,
        "one begins, and three wait"
    );
    queue.close();
    exchange.call(&queue, "work", 7, Some(Duration::from_secs(1)));
    exchange.serve_all(&queue, 0);
    assert_eq!(exchange.log.numbers(), [0, 1, 2, 3]);
    assert_eq!(exchange.count(b"CORBA/TRANSIENT"), 3);
    assert_eq!(queue.next(0).err(), Some(PopError::Closed));
    assert_eq!(exchange.connection.session.pool, ThreadpoolId::OWN);
}

/// A bound on waiting requests.
fn bounded(requests_max: u32, bytes_max: u32) -> DeadlineQueue {
    let bounds = Buffering {
        requests_max,
        bytes_max,
        ..Buffering::default()
    };
    DeadlineQueue::new(
        RequestOrder::EarliestDeadline,
        bounds,
        1,
        &Limits::default(),
    )
}

/// `vital` is very critical; `work` does not say, and so is of the middle.
#[test]
fn a_full_queue_sheds_the_least_critical_request_that_is_due_last_and_tells_its_caller() {
    let mut exchange = Exchange::new();
    let queue = bounded(3, 0);
    for (number, operation, seconds) in [
        (0, "work", 100),
        (1, "work", 30),
        (2, "work", 20),
        (3, "vital", 50),
        (4, "work", 10),
        (5, "vital", 40),
        (6, "vital", 90),
        (7, "vital", 1),
    ] {
        exchange.call(
            &queue,
            operation,
            number,
            Some(Duration::from_secs(seconds)),
        );
        exchange.receive();
    }
    let orb = &exchange.orb;
    // 4 is no more critical than what waits, and 7 is not either when 1 and 2 are shed.
    assert_eq!((orb.requests_shed(), orb.requests_refused()), (2, 2));
    let minors = [local::NO_ROOM, local::SHED].map(|it| exchange.count(&it.minor.to_ne_bytes()));
    assert_eq!(minors, [2, 2], "told at once");
    assert_eq!(queue.room.accepted(), 4);
    exchange.serve_all(&queue, 0);
    assert_eq!(exchange.log.numbers(), [0, 5, 3, 6]);
    assert_eq!(exchange.count(b"GIOP"), 8, "each client has a reply");
    assert_eq!(queue.room.accepted(), 0);
}

#[test]
fn a_queue_in_the_order_of_arrival_sheds_the_least_critical_request_that_came_last() {
    let mut exchange = Exchange::new();
    let bounds = Buffering {
        requests_max: 3,
        ..Buffering::default()
    };
    let order = RequestOrder::FifoShedding;
    let queue = DeadlineQueue::new(order, bounds, 1, &Limits::default());
    for (number, operation) in [
        (0, "work"),
        (1, "work"),
        (2, "work"),
        (3, "work"),
        (4, "work"),
        (5, "vital"),
        (6, "vital"),
    ] {
        exchange.call(&queue, operation, number, None);
        exchange.receive();
    }
    let orb = &exchange.orb;
    // 4 is as critical as those that wait, so it is refused as in every full queue; 3 and 2 give way.
    assert_eq!((orb.requests_shed(), orb.requests_refused()), (2, 1));
    let minors = [local::NO_ROOM, local::SHED].map(|it| exchange.count(&it.minor.to_ne_bytes()));
    assert_eq!(minors, [1, 2], "told at once");
    exchange.serve_all(&queue, 0);
    assert_eq!(exchange.log.numbers(), [0, 1, 5, 6]);
    assert_eq!(queue.room.accepted(), 0);
}

#[test]
fn a_request_for_which_shedding_makes_too_little_room_is_refused_and_none_is_shed() {
    let mut exchange = Exchange::new();
    let size = exchange.message("vital", 0, Some(Duration::ZERO)).len() as u32;
    let queue = bounded(10, 3 * size);
    for (number, operation) in [(0, "work"), (1, "work"), (2, "vital")] {
        exchange.call(&queue, operation, number, Some(Duration::from_secs(10)));
    }
    exchange.filler = 2 * size as usize;
    exchange.call(&queue, "vital", 3, Some(Duration::from_secs(1)));
    let shed = (
        exchange.orb.requests_shed(),
        exchange.orb.requests_refused(),
    );
    assert_eq!(shed, (0, 1));
    exchange.filler = 0;
    exchange.call(&queue, "vital", 4, Some(Duration::from_secs(20)));
    exchange.call(&queue, "vital", 5, Some(Duration::from_secs(30)));
    let shed = (
        exchange.orb.requests_shed(),
        exchange.orb.requests_refused(),
    );
    assert_eq!(shed, (1, 2), "0 has begun");
    exchange.serve_all(&queue, 0);
    assert_eq!(exchange.log.numbers(), [0, 2, 4]);
}

#[test]
fn a_full_queue_gives_the_places_of_expired_requests_away_before_it_sheds_or_refuses_any() {
    let calls = |deadlines| {
        let mut exchange = Exchange::with(Orb::builder().deadlines(deadlines));
        let queue = bounded(3, 0);
        let (short, long) = (Duration::from_millis(10), Duration::from_secs(100));
        for (number, deadline) in [(0, long), (1, short), (2, long), (3, short)] {
            exchange.call(&queue, "work", number, Some(deadline));
        }
        exchange.world.pass(Duration::from_secs(1));
        for (number, operation) in [(4, "vital"), (5, "work"), (6, "work")] {
            exchange.call(&queue, operation, number, Some(long));
            exchange.receive();
        }
        let orb = &exchange.orb;
        let counts = [
            orb.requests_expired(),
            orb.requests_shed(),
            orb.requests_refused(),
        ];
        assert_eq!(queue.room.accepted(), 4);
        exchange.serve_all(&queue, 0);
        assert_eq!(exchange.count(b"GIOP"), 7, "each client has a reply");
        assert_eq!(queue.room.accepted(), 0);
        (exchange.log.numbers(), counts)
    };
    assert_eq!(calls(Deadlines::Enforce), (vec![0, 2, 4, 5], [2, 0, 1]));
    // A request that is served all the same keeps its place.
    assert_eq!(calls(Deadlines::Count), (vec![0, 1, 3, 4], [0, 1, 2]));
}

/// The calls of one kind in an overload.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    calls: u32,
    in_time: u32,
    late: u32,
}

/// Calls at 130 % of what the servant can do, every fourth of them very critical. Returns the outcomes of the very critical calls and of the
/// others. A very critical call has the later deadline, so that the order alone does not help it.
fn overload(exchange: &mut Exchange, queue: &DeadlineQueue) -> [Outcome; 2] {
    const CALLS: u32 = 1_300;
    const WORK: Duration = Duration::from_millis(10);
    exchange.work = WORK;
    let begun_ns = monotonic_ns();
    let release_ns = |number| begun_ns + u64::from(number) * WORK.as_nanos() as u64 * 10 / 13;
    let is_vital = |number| number % 4 == 0;
    let due_ns = |number| {
        let ms = if is_vital(number) { 250 } else { 200 };
        release_ns(number) + ms * 1_000_000
    };
    let mut outcomes = [Outcome::default(), Outcome::default()];
    let mut arriving = (0..CALLS).peekable();
    let mut next = None;
    loop {
        while let Some(number) = arriving.next_if(|it| release_ns(*it) <= monotonic_ns()) {
            let left = Duration::from_nanos(due_ns(number) - monotonic_ns());
            let operation = if is_vital(number) { "vital" } else { "work" };
            outcomes[usize::from(!is_vital(number))].calls += 1;
            exchange.call(queue, operation, number, Some(left));
            exchange.receive();
        }
        next = next.or_else(|| queue.begun[0].pop());
        match (next.take(), arriving.peek()) {
            (Some(queued), _) => {
                let served = exchange.log.len();
                next = queue.serve(0, queued, &mut exchange.workspace);
                exchange.receive();
                if let Some(number) = exchange.log.numbers().get(served) {
                    let outcome = &mut outcomes[usize::from(!is_vital(*number))];
                    let is_late = monotonic_ns() > due_ns(*number);
                    *if is_late {
                        &mut outcome.late
                    } else {
                        &mut outcome.in_time
                    } += 1;
                }
            }
            (None, Some(number)) => {
                let wait_ns = release_ns(*number) - monotonic_ns();
                exchange.world.pass(Duration::from_nanos(wait_ns));
            }
            (None, None) => return outcomes,
        }
    }
}

#[test]
fn in_an_overload_the_very_critical_calls_are_in_time_and_every_other_caller_is_told() {
    let mut exchange = Exchange::new();
    let [vital, others] = overload(&mut exchange, &bounded(8, 0));
    println!("shedding: very critical {vital:?}, others {others:?}");
    assert_eq!((vital.in_time, vital.late), (vital.calls, 0));
    assert_eq!(others.late, 0);
    let orb = &exchange.orb;
    let told = orb.requests_shed() + orb.requests_refused() + orb.requests_expired();
    assert_eq!(u64::from(others.calls - others.in_time), told);
    assert!(orb.requests_shed() > 50, "{}", orb.requests_shed());
    let shed = exchange.count(&local::SHED.minor.to_ne_bytes());
    assert_eq!(shed as u64, orb.requests_shed());
    assert_eq!(exchange.count(b"GIOP") as u32, vital.calls + others.calls);

    let mut exchange = Exchange::with(Orb::builder().deadlines(Deadlines::Count));
    let queue = Exchange::queue(RequestOrder::EarliestDeadline, 1);
    let [vital, others] = overload(&mut exchange, &queue);
    println!("counting only: very critical {vital:?}, others {others:?}");
    assert!(vital.late > vital.calls / 2, "{vital:?}");
}
