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

/// How invocations share connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionStrategy {
    /// A private connection for each client thread and endpoint: no lock, no other thread's request in between.
    #[default]
    Exclusive,
}

/// What a client thread does until its reply is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// It reads from its own connection: one system call.
    #[default]
    Read,
}

/// Which thread of a server reads requests and calls servants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DispatchStrategy {
    /// A thread for each connection, which reads, calls and replies: one read and one write a request.
    #[default]
    ThreadPerConnection,
    /// One thread for all connections, the one that runs the ORB: requests are served one after the other.
    Reactive,
}

impl DispatchStrategy {
    /// Every strategy, with the name that options use.
    pub const ALL: [(&'static str, Self); 2] = [
        ("thread_per_connection", Self::ThreadPerConnection),
        ("reactive", Self::Reactive),
    ];
}

impl fmt::Display for DispatchStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            Self::ALL
                .iter()
                .find(|(_, strategy)| strategy == self)
                .map_or("?", |(name, _)| name),
        )
    }
}

impl FromStr for DispatchStrategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, strategy)| *strategy)
            .ok_or_else(|| UnknownStrategy {
                text: text.to_owned(),
            })
    }
}

/// A name that no strategy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStrategy {
    text: String,
}

impl fmt::Display for UnknownStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = DispatchStrategy::ALL.map(|(name, _)| name).join(", ");
        write!(
            f,
            "`{}` is no dispatch strategy; there are {names}",
            self.text
        )
    }
}

impl std::error::Error for UnknownStrategy {}
