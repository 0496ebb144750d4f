//! A run: a client that calls, a server, one connection after the other, and the faults between them.

use core::time::Duration;

use rtorb_wire::cdr::ByteOrder;
use rtorb_wire::connection::{Deadline, ReplyError};
use rtorb_wire::giop::Version;

use crate::calls::{Call, Calls, Outcome};
use crate::client::{Client, Format, Run};
use crate::link::Link;
use crate::random::Random;
use crate::server::Server;

/// How the calls of all runs ended.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    done: u64,
    exceptions: u64,
    not_sent: u64,
    timed_out: u64,
    other_failures: u64,
    retried: u64,
    connections: u64,
}

/// One run.
pub(crate) struct World {
    random: Random,
    now_ns: u64,
    calls: Calls,
    calls_max: usize,
    /// Calls that wait for a connection that takes a request.
    queued: Vec<usize>,
    connections: Vec<Connection>,
    /// Client's and server's.
    formats: [Format; 2],
    /// One step in so many is a fault; none if 0.
    fault_in: usize,
}

struct Connection {
    link: Link,
    client: Client,
    server: Server,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let version = [Version::V1_0, Version::V1_1, Version::V1_2][random.below(3)];
        let mut format = || Format {
            version,
            order: [ByteOrder::Big, ByteOrder::Little][random.below(2)],
            fragment_bytes: random.one_in(2).then(|| 24 + random.below(2000)),
        };
        let formats = [format(), format()];
        Self {
            now_ns: 0,
            calls: Calls {
                calls: Vec::new(),
                hash: seed,
            },
            calls_max: 1 + random.below(24),
            queued: Vec::new(),
            connections: Vec::new(),
            formats,
            fault_in: [0, 300, 1500][random.below(3)],
            random,
        }
    }

    /// Runs until every call has an outcome; returns a hash of the run.
    pub(crate) fn run(mut self, tally: &mut Tally) -> u64 {
        for step in 0.. {
            assert!(step < STEPS_MAX, "the run does not end");
            self.step();
            if self.calls.calls.len() == self.calls_max && self.calls.are_done() {
                break;
            }
        }
        // What servers read before is carried out now: it must not contradict the outcomes.
        self.fault_in = 0;
        for _ in 0..200 {
            self.step();
        }
        self.calls.check();
        self.count(tally);
        self.calls.hash
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0..3 => self.call(),
            3..10 => self.send_queued(),
            10 => self.advance(),
            _ => self.drive(),
        }
        if self.fault_in > 0 && self.random.one_in(self.fault_in) {
            self.fault();
        }
    }

    fn call(&mut self) {
        if self.calls.calls.len() == self.calls_max {
            return;
        }
        let timeout = match self.random.below(4) {
            0 | 1 => None,
            2 => Some(self.random.below(1_000_000)),
            _ => Some(self.random.below(20_000_000)),
        };
        let timeout = timeout.map(|ns| Duration::from_nanos(1 + ns as u64));
        let body_bytes = match self.random.below(4) {
            0 => 0,
            1 | 2 => self.random.below(200),
            _ => self.random.below(30_000),
        };
        self.queued.push(self.calls.calls.len());
        self.calls.calls.push(Call {
            body_bytes,
            is_oneway: self.random.one_in(6),
            deadline: Deadline::new(self.now_ns, timeout),
            is_retried: false,
            outcome: None,
            executed: 0,
        });
    }

    /// Begins the oldest queued call on the newest connection; opens one if that takes no more requests.
    fn send_queued(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        let newest = self.connections.last();
        if newest.is_none_or(|it| !it.client.takes_requests()) {
            let [of_client, of_server] = self.formats;
            self.connections.push(Connection {
                link: Link::new(&mut self.random),
                client: Client::new(of_client),
                server: Server::new(of_server),
            });
        }
        let newest = self.connections.last_mut().expect("one was opened");
        if newest.client.is_ready() {
            newest.client.begin(self.queued.remove(0), &self.calls);
        }
    }

    /// Lets one end of one connection do one thing.
    fn drive(&mut self) {
        let what = self.random.below(6);
        self.with_connection(|connection, run| match what {
            0 => connection.client.send(run),
            1 => connection.client.receive(run),
            2 => connection.server.receive(run),
            3 => connection.server.begin(run),
            4 => connection.server.reply(run),
            _ => connection.server.send(run),
        });
    }

    fn fault(&mut self) {
        let what = self.random.below(4);
        self.with_connection(|connection, run| match what {
            0 => run.link.reset(),
            1 => connection.server.half_close(run),
            2 => connection.client.half_close(run),
            _ => connection.server.close(),
        });
    }

    /// Moves the time to the next event, and gives up what is due then.
    fn advance(&mut self) {
        let links = self.connections.iter().flat_map(|it| {
            let link = &it.link;
            [
                link.to_server.next_arrival(),
                link.to_client.next_arrival(),
                it.server.next_end(),
            ]
        });
        let calls = self
            .calls
            .calls
            .iter()
            .filter(|call| call.outcome.is_none());
        let deadlines = calls.map(|call| call.deadline.at_ns());
        let times = links.chain(deadlines).flatten();
        let Some(next) = times.filter(|&at| at > self.now_ns).min() else {
            return;
        };
        self.now_ns = next;
        for at in 0..self.connections.len() {
            self.with(at, |connection, run| connection.client.give_up(run));
        }
        for number in core::mem::take(&mut self.queued) {
            if self.calls.calls[number].deadline.at_ns() == Some(self.now_ns) {
                self.calls
                    .end(number, Outcome::Failed(ReplyError::NotSent), self.now_ns);
            } else {
                self.queued.push(number);
            }
        }
    }

    fn with_connection(&mut self, act: impl FnOnce(&mut Ends<'_>, &mut Run<'_>)) {
        if !self.connections.is_empty() {
            // Mostly the newest: older ones have little to do.
            let newest = self.connections.len() - 1;
            let at = if self.random.one_in(3) {
                self.random.below(newest + 1)
            } else {
                newest
            };
            self.with(at, act);
        }
    }

    fn with(&mut self, at: usize, act: impl FnOnce(&mut Ends<'_>, &mut Run<'_>)) {
        let Connection {
            link,
            client,
            server,
        } = &mut self.connections[at];
        let mut run = Run {
            calls: &mut self.calls,
            random: &mut self.random,
            link,
            again: &mut self.queued,
            now_ns: self.now_ns,
        };
        act(&mut Ends { client, server }, &mut run);
    }

    fn count(&self, tally: &mut Tally) {
        tally.connections += self.connections.len() as u64;
        for call in &self.calls.calls {
            tally.retried += u64::from(call.is_retried);
            let kind = match call.outcome.expect("the run has ended") {
                Outcome::Done => &mut tally.done,
                Outcome::Exception(_) => &mut tally.exceptions,
                Outcome::Failed(ReplyError::NotSent) => &mut tally.not_sent,
                Outcome::Failed(ReplyError::TimedOut) => &mut tally.timed_out,
                Outcome::Failed(_) => &mut tally.other_failures,
            };
            *kind += 1;
        }
    }
}

/// Both ends of a connection.
struct Ends<'a> {
    client: &'a mut Client,
    server: &'a mut Server,
}

/// A run that takes more steps hangs.
const STEPS_MAX: u32 = 5_000_000;
