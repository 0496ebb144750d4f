//! Queues filled with requests of a simulated client, on virtual time. The test is the I/O thread and the thread of each level.

use super::*;
use crate::Orb;
use crate::realtime::ThreadpoolId;
use crate::server::{Admission, Next, ServedConnection, ServerCore, ThreadPriority};
use crate::tests::servant::{Job, Log, Worker};
use crate::tests::world::World;
use crate::transport::Stream;
use crate::transport::resolver::Resolver;
use crate::transport::tcp;
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
    replies: Vec<u8>,
}

const LIMITS: fn(&mut Limits) = |limits| limits.queued_requests_max = 2_000;

impl Exchange {
    fn new() -> Self {
        let world = World::perfect();
        let orb = Orb::builder().limits(Limits::with(LIMITS)).build();
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
        let next = reading.take_next(session, &mut self.workspace, &mut self.request);
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
        stream.align(8).ulong(number).align(8).raw(&[0; 8]);
        stream.octets(&vec![job.filler(); job.bytes]);
        stream.message()
    }

    /// The thread of a level serves all that it has and gets.
    fn serve_all(&mut self, queue: &DeadlineQueue, level: usize) {
        let mut next = queue.next(level).ok();
        while let Some(queued) = next {
            next = queue.serve(level, queued, &mut self.workspace);
            let mut received = [0; 4096];
            if let Ok(bytes) = self.client.receive_now(&mut received) {
                self.replies.extend_from_slice(&received[..bytes]);
            }
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
