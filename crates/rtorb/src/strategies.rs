//! The choices that make an ORB's architecture, side by side.

use core::fmt;
use core::str::FromStr;

/// One way for each axis; what is not named keeps its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Strategies {
    /// How invocations share connections.
    pub connection: ConnectionStrategy,
    /// What a client thread does until its reply is there.
    pub wait: WaitStrategy,
    /// Which thread of a server reads requests and calls servants.
    pub dispatch: DispatchStrategy,
}

impl Strategies {
    /// CORBAplus 2.1.1 (P1 2.2.2): one connection and one thread that reads it for all client threads; in the server one
    /// I/O thread, a queue, and a pool of workers.
    pub const CORBAPLUS: Self = Self {
        connection: ConnectionStrategy::Multiplexed,
        wait: WaitStrategy::Reactor,
        dispatch: DispatchStrategy::WorkerPool,
    };
    /// miniCOOL 4.3 (P1 2.2.2): leader and followers share one connection, and in the server one pool.
    pub const MINICOOL: Self = Self {
        connection: ConnectionStrategy::Multiplexed,
        wait: WaitStrategy::LeaderFollowers,
        dispatch: DispatchStrategy::LeaderFollowers,
    };
    /// MT-Orbix 2.2 (P1 2.2.2): as miniCOOL in the client; in the server one chain of filters before a queue and a thread
    /// for each priority.
    pub const MT_ORBIX: Self = Self {
        connection: ConnectionStrategy::Multiplexed,
        wait: WaitStrategy::LeaderFollowers,
        dispatch: DispatchStrategy::FilterChain,
    };
    /// TAO 1.0 (P1 2.2.2): no connection is shared, and each priority has a thread of its own that does everything.
    pub const TAO: Self = Self {
        connection: ConnectionStrategy::Exclusive,
        wait: WaitStrategy::Read,
        dispatch: DispatchStrategy::Lanes,
    };

    /// Every preset, with the name that options use.
    pub const PRESETS: [(&'static str, Self); 5] = [
        (
            "default",
            Self {
                connection: ConnectionStrategy::Exclusive,
                wait: WaitStrategy::Read,
                dispatch: DispatchStrategy::ThreadPerConnection,
            },
        ),
        ("corbaplus", Self::CORBAPLUS),
        ("minicool", Self::MINICOOL),
        ("mt_orbix", Self::MT_ORBIX),
        ("tao", Self::TAO),
    ];

    /// The preset of that name.
    ///
    /// # Errors
    /// [`UnknownStrategy`] with the names that there are.
    pub fn preset(name: &str) -> Result<Self, UnknownStrategy> {
        find("preset", &Self::PRESETS, name)
    }
}

impl FromStr for Strategies {
    type Err = UnknownStrategy;

    /// As [`preset`](Self::preset).
    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        Self::preset(text)
    }
}

/// Makes an axis: its ways, and their names as options use them.
macro_rules! axis {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($(#[$way_doc:meta])* $way:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$way_doc])* $way,)*
        }

        impl $name {
            /// Every strategy, with the name that options use.
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
    /// How invocations share connections.
    ConnectionStrategy, "connection strategy", {
        /// A private connection for each client thread and endpoint: no lock, no other thread's request in between.
        #[default]
        Exclusive "exclusive",
        /// One connection for all client threads and each endpoint: fewest connections, and whoever sends or awaits a
        /// reply may wait for another, of whatever priority.
        Multiplexed "multiplexed",
        /// One connection for all client threads of a priority band and each endpoint; without bands, each priority is one.
        Banded "banded",
    }
}

axis! {
    /// What a client thread does until its reply is there.
    WaitStrategy, "wait strategy", {
        /// It reads from the connection itself: one system call. On a shared connection, one thread at a time does.
        #[default]
        Read "read",
        /// A thread of the ORB reads from all shared connections and wakes whom a reply is for.
        Reactor "reactor",
        /// One of the waiting threads reads for all of them, and makes another the leader when it has its own reply.
        LeaderFollowers "leader_followers",
    }
}

axis! {
    /// Which thread of a server reads requests and calls servants.
    DispatchStrategy, "dispatch strategy", {
        /// A thread for each connection, which reads, calls and replies: one read and one write a request.
        #[default]
        ThreadPerConnection "thread_per_connection",
        /// One thread for all connections, the one that runs the ORB: requests are served one after the other.
        Reactive "reactive",
        /// One I/O thread reads all requests into one queue, from which a pool of threads takes them.
        WorkerPool "worker_pool",
        /// A pool of threads, of which one waits for all connections; it makes another the leader before it calls.
        LeaderFollowers "leader_followers",
        /// One I/O thread passes each request through a chain of filters to the queue of the thread that serves its priority.
        FilterChain "filter_chain",
        /// Threads, listening endpoints and connections of their own for each priority: nothing is shared between two.
        Lanes "lanes",
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

/// A name that no strategy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStrategy {
    what: &'static str,
    text: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, text, known } = self;
        write!(f, "`{text}` is no {what}; there are {}", known.join(", "))
    }
}

impl std::error::Error for UnknownStrategy {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_found_by_the_name_that_it_shows() {
        for (name, way) in DispatchStrategy::ALL {
            assert_eq!((name.parse(), way.to_string()), (Ok(way), name.to_owned()));
        }
        let error = WaitStrategy::from_str("sleep").expect_err("no such way");
        assert_eq!(
            error.to_string(),
            "`sleep` is no wait strategy; there are read, reactor, leader_followers"
        );
    }

    #[test]
    fn the_preset_default_is_the_default() {
        assert_eq!(Strategies::preset("default"), Ok(Strategies::default()));
        assert!(Strategies::preset("visibroker").is_err());
    }
}
