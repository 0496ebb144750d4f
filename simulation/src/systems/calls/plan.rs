//! What a run draws: the strategies and limits of its ORBs, and what happens to the first server.

use crate::random::Random;
use crate::systems;
use crate::systems::call_end::ENOUGH;
use crate::systems::server::Server;
use crate::systems::worker::Ledger;
use crate::world::faults::Faults;
use crate::world::processes::Kill;
use rtorb::{ConnectionStrategy, Limits, Orb, OrbBuilder, WaitStrategy};
use std::time::Duration;

/// Every connection strategy with every wait strategy.
pub(in crate::systems) const CONNECTIONS: [ConnectionStrategy; 9] = {
    use ConnectionStrategy::{Banded, Exclusive, Multiplexed};
    use WaitStrategy::{ConnectionThread, LeaderFollowers, Reactor, Read};
    [
        Exclusive,
        Multiplexed { wait: Read },
        Multiplexed { wait: Reactor },
        Multiplexed {
            wait: LeaderFollowers,
        },
        Multiplexed {
            wait: ConnectionThread,
        },
        Banded { wait: Read },
        Banded { wait: Reactor },
        Banded {
            wait: LeaderFollowers,
        },
        Banded {
            wait: ConnectionThread,
        },
    ]
};

/// What may happen in a run.
#[derive(Clone, Copy, Debug)]
pub(in crate::systems) struct Plan {
    /// Nothing prevents calls from success: no connection breaks, no limit is low, the server stays, and no object waits for its own
    /// server's threads.
    pub(in crate::systems) is_sound: bool,
    /// Some calls of a sound run have too little time. They disturb no other: none gives up in the middle of a message, which would end a
    /// connection that others share.
    pub(in crate::systems) gives_up: bool,
    /// The object calls itself through its own server, which may have no thread for that.
    pub(in crate::systems) relays: bool,
    /// Another server carries calls out for the first one.
    pub(in crate::systems) has_second: bool,
    pub(in crate::systems) threads: u64,
    /// What happens to the first server meanwhile.
    pub(in crate::systems) disturbance: Disturbance,
    pub(in crate::systems) endpoint: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::systems) enum Disturbance {
    None,
    Shutdown,
    /// It starts again, at the same endpoint: without a kill after it has ended.
    Restart(Option<Kill>),
}

const TCP: &str = "iiop://127.0.0.1:7000";
/// A socket in the folder of the simulated disk.
const UNIX: &str = "uiop:///simulated/worker";

impl Plan {
    /// Starts the first server, which listens at the endpoint of the plan.
    pub(in crate::systems) fn start_first(self, random: &mut Random, ledger: &Ledger) -> Server {
        Server::start(server(random, self).listen(self.endpoint), ledger)
    }

    pub(in crate::systems) fn draw(random: &mut Random, faults: Faults) -> Self {
        let is_whole = faults.split_one_in == 0 && faults.pipe_bytes >= Faults::NONE.pipe_bytes;
        let is_sound = !faults.breaks() && random.one_in(2);
        let endpoint = random.choose(&[TCP, UNIX]);
        let kill = match random.below(3) {
            0 => None,
            // A host loses its power with all its programs.
            1 if endpoint == TCP => Some(Kill::Power),
            _ => Some(Kill::Signal),
        };
        Self {
            is_sound,
            gives_up: is_whole,
            relays: !is_sound && random.one_in(2),
            has_second: random.one_in(2),
            threads: 1 + random.below(6),
            disturbance: match random.below(6) {
                _ if is_sound => Disturbance::None,
                0 | 1 => Disturbance::Shutdown,
                2 => Disturbance::Restart(kill),
                _ => Disturbance::None,
            },
            endpoint,
        }
    }
}

/// The longest time that a client has to read.
pub(in crate::systems) const SEND_TIMEOUT_MAX: Duration = Duration::from_secs(1);

/// A nested call takes at most so long, also that of a call that was forgotten, if its own server has no thread for it. The time is short,
/// because watchdogs meanwhile look five thousand times a second for the shortest timeouts of clients.
pub(in crate::systems) const OWN_TIMEOUT: Duration = Duration::from_secs(3);

pub(in crate::systems) fn server(random: &mut Random, plan: Plan) -> OrbBuilder {
    let dispatch = systems::dispatch(random);
    let stranger_turns_max = random.choose(&[1, 3, 25]);
    let mut limit = |low: &[u64], enough| {
        if plan.is_sound {
            enough
        } else {
            random.choose(low)
        }
    };
    let limits = Limits::with(|limits| {
        let longest = SEND_TIMEOUT_MAX.as_millis() as u64;
        limits.send_timeout =
            Duration::from_millis(limit(&[1, 10, longest], ENOUGH.as_millis() as u64));
        limits.queued_requests_max = limit(&[1, 3, 100], 100) as usize;
        limits.connections_max = limit(&[2, 100], 100) as usize;
        limits.idle_buffer_time = Duration::from_millis(limit(&[10, 1000], 10));
        limits.stranger_turns_max = stranger_turns_max;
    });
    let builder = Orb::builder().limits(limits);
    let builder = builder.round_trip_timeout(Some(OWN_TIMEOUT));
    let builder = builder.pool_threads(1 + random.below(3) as usize);
    systems::dispatched(builder, dispatch, random)
}

pub(in crate::systems) fn client(random: &mut Random) -> Orb {
    client_with(random, &CONNECTIONS, |_| {})
}

/// A client with one of these connection strategies, whose limits `change` completes.
pub(in crate::systems) fn client_with(
    random: &mut Random,
    connections: &[ConnectionStrategy],
    change: impl FnOnce(&mut Limits),
) -> Orb {
    let limits = Limits::with(|limits| {
        limits.queued_requests_max = random.choose(&[1, 2, 100]);
        change(limits);
    });
    let builder = Orb::builder()
        .connection(random.choose(connections))
        .limits(limits);
    let builder = if random.one_in(3) {
        builder.fragment_bytes(64 + random.below(500) as usize)
    } else {
        builder
    };
    builder.build().expect("the ORB can be built")
}
