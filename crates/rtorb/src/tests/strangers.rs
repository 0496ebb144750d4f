//! Clients of which no message has been served yet: how many of their turns begin in a period, and that none of them is forgotten.

use super::clock::advance_to;
use super::world::World;
use crate::clock::monotonic_ns;
use crate::endpoint::Endpoint;
use crate::server::{Admission, Event, EventLoop, ServedConnection, Server, Token};
use crate::transport::resolver::Resolver;
use crate::transport::{Stream, tcp};
use crate::{Limits, Orb};
use core::mem::MaybeUninit;
use core::time::Duration;
use rtorb_os::slab::Key;
use std::sync::Arc;

const TURNS: usize = 25;
const PERIOD: Duration = Duration::from_millis(10);

/// A server and its connected clients, each of which is ready to be read. The host reports a simulated connection at once when it is
/// watched.
struct Crowd {
    orb: Orb,
    events: Arc<EventLoop>,
    connections: Vec<(ServedConnection, Stream)>,
}

impl Crowd {
    fn of(clients: u32) -> Self {
        let limits = Limits::with(|limits| {
            limits.stranger_turns_max = TURNS;
            limits.stranger_period = PERIOD;
        });
        let orb = Orb::builder().limits(limits).build().expect("an ORB");
        orb.root_poa().expect("it listens");
        let core = &orb.core.adapters.server;
        let server = core.server().expect("it is open");
        let events = server.event_loop(&core.limits).expect("epoll");
        let mut crowd = Self {
            orb: orb.clone(),
            events,
            connections: Vec::new(),
        };
        (0..clients).for_each(|_| crowd.connect());
        crowd
    }

    fn server(&self) -> &Server {
        self.orb.core.adapters.server.server().expect("it is open")
    }

    /// Connects one more client, whose number is the next.
    fn connect(&mut self) {
        let server = self.server();
        let Endpoint::Tcp { host, port } = server.listeners[0].bound.clone() else {
            panic!("the default endpoint is TCP");
        };
        let client = tcp::connect(&Resolver::default(), &host, port, u64::MAX);
        let core = &self.orb.core.adapters.server;
        let Admission::Accepted(accepted) = server.accept(core, &server.listeners[0]) else {
            panic!("a client waits");
        };
        let token = token(self.connections.len() as u32);
        let attached = accepted.session.attach(&self.events, token);
        attached.expect("it can be watched");
        let client = client.expect("it listens");
        self.connections.push((accepted, client));
    }

    /// A message of a client is served.
    fn serve(&self, client: u32) {
        self.connections[client as usize].0.session.note_answered();
    }

    /// A client is ready again.
    fn send(&self, client: u32) {
        let stream = &self.connections[client as usize].0.session.stream;
        self.events.request(token(client), stream);
    }

    /// The client that is reported next; `None` if strangers are held back or none is reported.
    fn next(&self) -> Option<u32> {
        // The timer of the host expires at once, as virtual time begins long before that of the host.
        for _ in 0..4 {
            let mut room = [MaybeUninit::uninit()];
            let reported = self.events.poller.wait(&mut room, Some(0));
            let listeners = &self.server().listeners;
            match self.events.event(reported.first()?, listeners) {
                Some(Event::Connection(token, _)) => return Some(token.key().index),
                Some(Event::HeldBack) => return None,
                _ => {}
            }
        }
        None
    }

    /// The clients that are reported in this period.
    fn reported(&self) -> Vec<u32> {
        core::iter::from_fn(|| self.next()).collect()
    }
}

fn token(client: u32) -> Token {
    Token::of(Key {
        index: client,
        generation: 1,
    })
}

fn pass_period() {
    advance_to(monotonic_ns() + PERIOD.as_nanos() as u64);
}

#[test]
fn strangers_wait_for_the_next_period_in_their_order_and_none_is_forgotten() {
    let _world = World::perfect();
    let crowd = Crowd::of(90);
    let mut all = Vec::new();
    for expected in [TURNS, TURNS, TURNS, 90 - 3 * TURNS] {
        let reported = crowd.reported();
        assert_eq!(reported.len(), expected);
        assert_eq!(crowd.next(), None, "not before the next period");
        all.extend(reported);
        pass_period();
    }
    assert!(all.iter().copied().eq(0..90), "{all:?}");
    // It is not used up by those who were there once.
    crowd.send(7);
    assert_eq!(crowd.reported(), [7]);
}

#[test]
fn a_known_client_waits_for_no_period() {
    let _world = World::perfect();
    let crowd = Crowd::of(60);
    assert_eq!(crowd.reported().len(), TURNS);
    // One that has been read, and one that waits among the strangers.
    for known in [3, 59] {
        assert_eq!(crowd.next(), None);
        crowd.serve(known);
        assert_eq!(crowd.next(), Some(known), "it may have sent more");
        for _ in 0..3 * TURNS {
            crowd.send(known);
            assert_eq!(crowd.next(), Some(known));
            // It is known already.
            crowd.serve(known);
        }
    }
    pass_period();
    let strangers = 25..25 + TURNS as u32;
    assert!(crowd.reported().into_iter().eq(strangers));
    pass_period();
    assert!(crowd.reported().into_iter().eq(50..59), "it has gone");
}

#[test]
fn a_new_client_waits_for_at_most_one_turn_of_each_other_stranger() {
    const HOSTILE: u32 = 200;
    let _world = World::perfect();
    let mut crowd = Crowd::of(HOSTILE);
    let mut turns = 0;
    let mut seen = false;
    for period in 0..30 {
        if period == 5 {
            crowd.connect();
        }
        while let Some(client) = crowd.next() {
            seen |= client == HOSTILE;
            turns += u32::from(period >= 5 && !seen);
            // Its next bytes are there at once.
            crowd.send(client);
        }
        pass_period();
    }
    assert!(seen && turns <= HOSTILE, "{turns}");
}
