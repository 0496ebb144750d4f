//! The strategies that make an ORB's architecture.

use crate::suggest;
use core::fmt;
use core::str::FromStr;

/// The strategies of an ORB: how its clients use connections, and which threads of its server call servants.
///
/// ```
/// use rtorb::{ConnectionStrategy, DispatchStrategy, Strategies, WaitStrategy};
/// # fn main() -> Result<(), rtorb::OrbError> {
/// // A preset, with one strategy of its own.
/// let mut strategies = Strategies::MINICOOL;
/// strategies.dispatch = DispatchStrategy::Reactive;
/// let orb = rtorb::Orb::builder().strategies(strategies).build()?;
///
/// // A wait strategy belongs to a connection strategy whose connections are shared.
/// let wait = WaitStrategy::LeaderFollowers;
/// assert_eq!(orb.strategies().connection, ConnectionStrategy::Multiplexed { wait });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Strategies {
    /// How invocations share connections, and how a client thread waits for its reply.
    pub connection: ConnectionStrategy,
    /// Which thread of a server reads requests and calls servants.
    pub dispatch: DispatchStrategy,
}

impl Strategies {
    /// CORBAplus 2.1.1 (P1 2.2.2): one connection for all client threads and one thread that sends and reads for all; in the
    /// server one I/O thread, a queue, and a pool of workers.
    pub const CORBAPLUS: Self = Self::new(
        ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::ConnectionThread,
        },
        DispatchStrategy::WorkerPool,
    );
    /// miniCOOL 4.3 (P1 2.2.2): a leader and its followers share one connection; the server has one pool of the same kind.
    pub const MINICOOL: Self = Self::new(
        ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::LeaderFollowers,
        },
        DispatchStrategy::LeaderFollowers,
    );
    /// MT-Orbix 2.2 (P1 2.2.2): the client is miniCOOL's; the server has one chain of filters, then a queue and a thread for
    /// each priority.
    pub const MT_ORBIX: Self = Self::new(Self::MINICOOL.connection, DispatchStrategy::FilterChain);
    /// TAO 1.0 (P1 2.2.2): connections are not shared, and each priority has a thread of its own that does everything.
    pub const TAO: Self = Self::new(ConnectionStrategy::Exclusive, DispatchStrategy::Lanes);

    /// Every preset with its name in options.
    pub const PRESETS: [(&'static str, Self); 5] = [
        (
            "default",
            Self::new(
                ConnectionStrategy::Exclusive,
                DispatchStrategy::ThreadPerConnection,
            ),
        ),
        ("corbaplus", Self::CORBAPLUS),
        ("minicool", Self::MINICOOL),
        ("mt_orbix", Self::MT_ORBIX),
        ("tao", Self::TAO),
    ];

    /// Makes a pair of strategies.
    pub const fn new(connection: ConnectionStrategy, dispatch: DispatchStrategy) -> Self {
        Self {
            connection,
            dispatch,
        }
    }

    /// Returns the preset with this name.
    ///
    /// # Errors
    /// [`UnknownStrategy`] with the names of all presets.
    pub fn preset(name: &str) -> Result<Self, UnknownStrategy> {
        find("preset", &Self::PRESETS, name)
    }
}

impl FromStr for Strategies {
    type Err = UnknownStrategy;

    /// Returns the preset with this name, as [`preset`](Self::preset) does.
    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        Self::preset(text)
    }
}

/// How invocations share connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionStrategy {
    /// Each client thread has its own connection to each endpoint and reads its replies from it: no lock, and no request of another
    /// thread in between.
    #[default]
    Exclusive,
    /// All client threads share one connection to each endpoint. There are fewest connections, but a thread that sends or awaits a
    /// reply may wait for another thread of any priority.
    Multiplexed {
        /// What a client thread does until its reply has arrived.
        wait: WaitStrategy,
    },
    /// All client threads of a priority band share one connection to each endpoint. Without bands, each priority is a band.
    Banded {
        /// What a client thread does until its reply has arrived.
        wait: WaitStrategy,
    },
}

impl ConnectionStrategy {
    /// Every connection strategy with its name in options; shared connections have the default wait strategy.
    pub const ALL: [(&'static str, Self); 3] = [
        ("exclusive", Self::Exclusive),
        (
            "multiplexed",
            Self::Multiplexed {
                wait: WaitStrategy::Read,
            },
        ),
        (
            "banded",
            Self::Banded {
                wait: WaitStrategy::Read,
            },
        ),
    ];

    /// Returns what a client thread does until its reply has arrived.
    #[inline]
    pub const fn wait(self) -> WaitStrategy {
        match self {
            Self::Exclusive => WaitStrategy::Read,
            Self::Multiplexed { wait } | Self::Banded { wait } => wait,
        }
    }

    /// Returns the same sharing with another wait strategy; `None` if the two do not work together.
    ///
    /// Only one thread waits on an exclusive connection, so that thread reads from it.
    pub const fn with_wait(self, wait: WaitStrategy) -> Option<Self> {
        Some(match self {
            Self::Exclusive if matches!(wait, WaitStrategy::Read) => Self::Exclusive,
            Self::Exclusive => return None,
            Self::Multiplexed { .. } => Self::Multiplexed { wait },
            Self::Banded { .. } => Self::Banded { wait },
        })
    }
}

impl fmt::Display for ConnectionStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Multiplexed { .. } => "multiplexed",
            Self::Banded { .. } => "banded",
        })
    }
}

impl FromStr for ConnectionStrategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        find("connection strategy", &Self::ALL, text)
    }
}

/// Makes an enum of strategies with their names in options.
macro_rules! axis {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($(#[$way_doc:meta])* $way:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$way_doc])* $way,)*
        }

        impl $name {
            /// Every strategy with its name in options.
            pub const ALL: [(&'static str, Self); [$($text),*].len()] = [$(($text, Self::$way),)*];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$way => $text,)* })
            }
        }

        impl FromStr for $name {
            type Err = UnknownStrategy;

            fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
                find($what, &Self::ALL, text)
            }
        }
    };
}

axis! {
    /// What a thread does before it sleeps when it waits for its peer through shared memory. Each is bounded, then it sleeps.
    SharedMemoryWait, "wait strategy of shared memory", {
        /// It sleeps at once, and its peer wakes it.
        #[default]
        Futex "futex",
        /// It yields up to 50 times: for a peer of the same priority on the same CPU, which runs meanwhile.
        Yield "yield",
        /// It checks up to 1000 times, some 50 us: for a peer on another CPU. No other thread runs on its CPU meanwhile.
        Spin "spin",
        /// It spins if the peer last ran on another CPU, and yields otherwise. After four waits in vain, it sleeps at once in the next
        /// 60.
        Adaptive "adaptive",
    }
}

axis! {
    /// How an ORB calls objects that it serves itself.
    Collocation, "collocation", {
        /// On the calling thread, without a socket and another thread. It applies to calls that have a reply and no timeout set by the
        /// application, if the dispatch strategy is [`ThreadPerConnection`](DispatchStrategy::ThreadPerConnection) and the
        /// object is in no thread pool. All other calls go by a transport.
        #[default]
        Direct "direct",
        /// By a transport, as an object of another process.
        Transport "transport",
    }
}

axis! {
    /// What an ORB does about deadlines, as a client and as a server.
    Deadlines, "way of deadlines", {
        /// The deadline of an operation (`@deadline`) is the deadline of its calls: it bounds them and travels with them. A request
        /// that has expired before a servant is called is refused with TIMEOUT. A call whose servant has deferred its reply
        /// ([`Responder`](crate::Responder)) is answered with TIMEOUT if nobody has answered by its deadline.
        #[default]
        Enforce "enforce",
        /// The deadline of an operation is only counted, and requests that have expired are counted and served. Deadlines that the
        /// application gives to calls bound them and travel all the same.
        Count "count",
    }
}

axis! {
    /// The calls that a `@period` separates.
    PeriodScope, "scope of periods", {
        /// All calls of an operation of a servant, from all clients together.
        #[default]
        Servant "servant",
        /// The calls of an operation of a servant that come through one connection. So a client delays no other client, and the servant
        /// gets at most one call in a period from each connection. All collocated calls count as those of one connection.
        Connection "connection",
    }
}

axis! {
    /// How a client tells a server the deadline of a call.
    DeadlineForm, "form of deadlines", {
        /// As an end time to servers of the same host, whose clock is the same; as remaining time to others.
        #[default]
        Auto "auto",
        /// As an end time (RequestEndTime and ReplyEndTime of CORBA Messaging), for hosts whose clocks are disciplined. What the
        /// clocks differ by is an error of the deadline.
        EndTime "end_time",
        /// As the time that remains when the request is sent. How long the request travels is an error of the deadline.
        RemainingTime "remaining_time",
    }
}

axis! {
    /// What starting a call does while as many started calls exist as may ([`Limits::started_calls_max`](crate::Limits::started_calls_max)).
    FullCallTable, "way of a full call table", {
        /// The call ends at once with NO_RESOURCES.
        #[default]
        Refuse "refuse",
        /// The calling thread waits until another call has ended and its result is taken, at most until the deadline of its own call, which
        /// then ends with TIMEOUT, and without a deadline for ever. Of several waiting threads, the most urgent one goes on first. A call that a
        /// waker or a reply handler ([`ReplyDriver`](crate::ReplyDriver)) starts is refused: other calls end on its thread. Not for tasks: one
        /// that waits blocks the thread of its executor.
        Wait "wait",
    }
}

axis! {
    /// The order in which a lane serves requests.
    ///
    /// With an order by deadlines, each static thread of the lane is a *level*. Level 0 has the native priority of the
    /// lane, and each further level has one priority more. An I/O thread, one priority above all levels, reads the requests. A request
    /// that is more urgent than the one being served preempts it, on the next level; all others wait in the lane, the most urgent one first,
    /// and among equals the one that arrived first. The urgency of a request is fixed when it arrives.
    ///
    /// The deadline is that of the request, or else the `@deadline` of its operation, counted from its arrival. Requests without a
    /// deadline come last.
    RequestOrder, "request order", {
        /// In the order of their arrival, by any thread of the lane.
        #[default]
        Fifo "fifo",
        /// In the order of their arrival, by any static thread of the lane. If its queue is full, a more critical request (`@criticality`)
        /// takes the place of a less critical one that waits. An I/O thread, one priority above the lane, reads the requests.
        FifoShedding "fifo_shedding",
        /// The earliest deadline first (EDF).
        EarliestDeadline "earliest_deadline",
        /// The least laxity first: the deadline less the `@worst_case_time` of the operation.
        LeastLaxity "least_laxity",
        /// The most critical operation (`@criticality`) first, then the least laxity: maximum urgency first (D. B. Stewart,
        /// P. K. Khosla, *Real-Time Scheduling of Dynamically Reconfigurable Systems*, 1991).
        MaximumUrgency "maximum_urgency",
    }
}

impl RequestOrder {
    /// Returns true if each static thread of the lane is a level.
    pub(crate) fn has_levels(self) -> bool {
        !matches!(self, Self::Fifo | Self::FifoShedding)
    }

    /// Returns the number of native priorities above its own that a lane with `static_threads` static threads uses: one for each level but the
    /// lowest, and one for the I/O thread.
    pub(crate) fn priorities_above(self, static_threads: u32) -> u32 {
        match self {
            Self::Fifo => 0,
            Self::FifoShedding => 1,
            _ => static_threads,
        }
    }
}

axis! {
    /// What a client thread does until its reply has arrived.
    WaitStrategy, "wait strategy", {
        /// It reads from the connection itself: one system call. One thread at a time uses the connection.
        #[default]
        Read "read",
        /// One thread of the ORB reads from all shared connections and wakes the thread that a reply is for.
        Reactor "reactor",
        /// One of the waiting threads leads: it reads for all of them, and makes another thread the leader once it has its own
        /// reply.
        LeaderFollowers "leader_followers",
        /// A thread of each connection sends the requests of all, in the order of their arrival, and reads their replies. Every
        /// call waits for that thread, whatever its priority: use this strategy to compare architectures.
        ConnectionThread "connection_thread",
    }
}

axis! {
    /// Which thread of a server reads requests and calls servants.
    DispatchStrategy, "dispatch strategy", {
        /// A thread for each connection, which reads, calls and replies: one read and one write a request.
        #[default]
        ThreadPerConnection "thread_per_connection",
        /// The thread that runs the ORB serves all connections, one request after the other.
        Reactive "reactive",
        /// One I/O thread reads all requests into one queue; the threads of a pool serve them.
        WorkerPool "worker_pool",
        /// One thread of a pool waits for all connections; it makes another thread the leader before it calls the servant.
        LeaderFollowers "leader_followers",
        /// One I/O thread passes each request through a chain of filters to the queue of the threads of its priority.
        FilterChain "filter_chain",
        /// Each priority has its own threads, listening endpoints and connections: priorities share nothing.
        Lanes "lanes",
        /// One I/O thread reads all requests, and starts a thread for each, up to [`queued_requests_max`](crate::Limits::queued_requests_max):
        /// use this strategy to compare architectures.
        ThreadPerRequest "thread_per_request",
    }
}

fn find<T: Copy>(
    what: &'static str,
    all: &[(&'static str, T)],
    text: &str,
) -> Result<T, UnknownStrategy> {
    let found = all.iter().find(|(name, _)| *name == text);
    found
        .map(|(_, strategy)| *strategy)
        .ok_or_else(|| UnknownStrategy {
            what,
            text: text.to_owned(),
            known: all.iter().map(|(name, _)| *name).collect(),
        })
}

/// The error for a name that belongs to no strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", suggest::unknown(text, what, known))]
pub struct UnknownStrategy {
    what: &'static str,
    text: String,
    known: Vec<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_parses_from_what_it_displays() {
        for (name, way) in ConnectionStrategy::ALL {
            assert_eq!((name.parse(), way.to_string()), (Ok(way), name.to_owned()));
        }
        for (name, way) in DispatchStrategy::ALL {
            assert_eq!((name.parse(), way.to_string()), (Ok(way), name.to_owned()));
        }
        let error = WaitStrategy::from_str("sleep").expect_err("no such way");
        assert_eq!(
            error.to_string(),
            "`sleep` is not a wait strategy; there are read, reactor, leader_followers, connection_thread"
        );
    }

    #[test]
    fn only_shared_connections_have_a_choice_of_wait_strategies() {
        for (_, wait) in WaitStrategy::ALL {
            let banded = ConnectionStrategy::Banded { wait };
            assert_eq!(ConnectionStrategy::ALL[2].1.with_wait(wait), Some(banded));
            assert_eq!(banded.wait(), wait);
            let exclusive = ConnectionStrategy::Exclusive.with_wait(wait);
            assert_eq!(exclusive.is_some(), wait == WaitStrategy::Read);
        }
    }

    #[test]
    fn the_preset_default_is_the_default() {
        assert_eq!(Strategies::preset("default"), Ok(Strategies::default()));
        assert!(Strategies::preset("visibroker").is_err());
    }
}
