//! Why a list of dependencies is refused, and which entry is wrong.

use super::types;

/// Why a `ConsumerQOS` is refused. `connect_push_consumer` raises `TypeError`, which cannot carry the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// The list subscribes to nothing.
    #[error(
        "the list of dependencies has no events: name an event, or a designator with its children"
    )]
    Empty,
    /// More entries than [`FilterLimits::entries_max`](super::FilterLimits::entries_max).
    #[error(
        "{entries} dependencies, and {max} are allowed: subscribe by type or source only, or use several consumers"
    )]
    TooManyEntries {
        /// The number of entries.
        entries: usize,
        /// The limit.
        max: usize,
    },
    /// One entry is wrong.
    #[error("dependency {entry} (type {event_type}, {}): {problem}", types::name(*.event_type))]
    Entry {
        /// Its index in the list.
        entry: usize,
        /// The type in its header.
        event_type: i32,
        /// The problem.
        problem: Problem,
    },
}

/// The problem of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A designator without children.
    #[error("it has no children; {}", if *.prefix { "header.source says how many, 1 at least" } else { "its events follow it, until the next group begins" })]
    NoChildren {
        /// True if the channel counts children by `header.source`.
        prefix: bool,
    },
    /// A count of children that is larger than the list.
    #[error("header.source says {said} children, and {left} entries follow")]
    ChildrenMissing {
        /// The count in the header, as unsigned.
        said: u32,
        /// Entries after it.
        left: usize,
    },
    /// The list ends before the entry is complete.
    #[error("the list ends where it needs {needed}")]
    Ends {
        /// The missing part.
        needed: Needed,
    },
    /// A group inside a construct that cannot contain one in the form `basic`.
    #[error("a group cannot be inside a group here: use a channel with the filter `prefix`")]
    Nested,
    /// A global designator inside a group.
    #[error("it ends all groups, so it cannot be inside one")]
    GlobalInside,
    /// A construct that needs more than one event, where one event is checked.
    #[error("it cannot be below a logical AND, a negation or a bitmask, which check one event")]
    OneEvent,
    /// Deeper than [`FilterLimits::depth_max`](super::FilterLimits::depth_max).
    #[error("designators inside each other more than {max} deep")]
    TooDeep {
        /// How deep they may be.
        max: usize,
    },
    /// A type that has no meaning.
    #[error("the type is reserved, and nothing is known of it; types of applications begin at 16")]
    Reserved,
    /// More timeouts than [`FilterLimits::timeouts_max`](super::FilterLimits::timeouts_max).
    #[error("more than {max} timeouts in one subscription")]
    TooManyTimeouts {
        /// The limit.
        max: usize,
    },
    /// A period of no use.
    #[error(
        "a period of {units} units of 100 ns (header.creation_time); it must be from {min} to {max}"
    )]
    Period {
        /// What the header says.
        units: u64,
        /// The shortest, in the same units.
        min: u64,
        /// The longest, in the same units.
        max: u64,
    },
}

/// What an entry needs after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Needed {
    /// A bitmask or a masked type.
    #[error("an entry with its masks")]
    Masks,
    /// A masked type.
    #[error("an entry with the values of source and type")]
    Values,
    /// A negation or a bitmask.
    #[error("the child that it is about")]
    Child,
}
