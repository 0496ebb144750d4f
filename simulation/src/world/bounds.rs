//! The budget of strangers that a system sets, and conditions that hold at every step. The seed fails at the first step that breaks one.

use super::files::{FileId, Files};
use super::{Core, with};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// The turns that strangers may have in an event loop within a time: a client is accepted, or a stranger's connection is reported. Without a
/// system that sets it, there is no bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnBound {
    pub(crate) turns_max: usize,
    pub(crate) period_ns: u64,
}

impl Default for TurnBound {
    fn default() -> Self {
        Self {
            turns_max: usize::MAX,
            period_ns: 0,
        }
    }
}

/// What counts against the bounds.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    bound: TurnBound,
    /// All connections that servers have accepted.
    pub(crate) accepts: u64,
    /// The times of the turns of strangers within the last period, by event loop; 0 stands for a thread without one.
    turns: BTreeMap<FileId, VecDeque<u64>>,
    invariants: Vec<Condition>,
    last: u64,
}

/// A condition, and the number of its [`Invariant`].
struct Condition {
    number: u64,
    what: &'static str,
    holds: Box<dyn Fn(usize) -> bool + Send>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

/// A condition that holds at every step until this is dropped.
#[derive(Debug)]
pub(crate) struct Invariant(u64);

/// Bounds the turns of strangers from now on.
pub(crate) fn bound_turns(bound: TurnBound) {
    with(|world| world.core.counted.bound = bound);
}

/// Checks `holds` at every step from now on. Its argument is the number of connections that servers have accepted and not closed. It must make
/// no call that this program replaces, so it may only read memory.
pub(crate) fn always(
    what: &'static str,
    holds: impl Fn(usize) -> bool + Send + 'static,
) -> Invariant {
    with(|world| {
        let counted = &mut world.core.counted;
        counted.last += 1;
        counted.invariants.push(Condition {
            number: counted.last,
            what,
            holds: Box::new(holds),
        });
        Invariant(counted.last)
    })
}

impl Drop for Invariant {
    fn drop(&mut self) {
        // Dropped outside of the world: what the condition has may close descriptors.
        let condition = with(|world| {
            let invariants = &mut world.core.counted.invariants;
            let place = invariants.iter().position(|it| it.number == self.0);
            place.map(|place| invariants.swap_remove(place))
        });
        drop(condition);
    }
}

impl Core {
    /// Fails if a condition does not hold.
    pub(super) fn check_invariants(&self, accepted: usize) {
        let mut invariants = self.counted.invariants.iter();
        if let Some(broken) = invariants.find(|it| !(it.holds)(accepted)) {
            self.fail(broken.what);
        }
    }

    /// Counts turns of strangers of an event loop that begin now.
    pub(super) fn count_turns(&mut self, event_loop: FileId, turns: usize) {
        let (now_ns, bound) = (self.now_ns, self.counted.bound);
        let begun = self.counted.turns.entry(event_loop).or_default();
        begun.extend(std::iter::repeat_n(now_ns, turns));
        let is_over = |at_ns: &u64| at_ns + bound.period_ns <= now_ns;
        while begun.front().is_some_and(is_over) {
            begun.pop_front();
        }
        if begun.len() > bound.turns_max {
            self.fail("more turns of strangers begin in a period than their budget allows");
        }
    }
}

impl Files {
    /// Counts a connection that a listener has accepted, which is a turn of a stranger.
    pub(super) fn count_accept(&mut self, core: &mut Core, listener: FileId) {
        core.counted.accepts += 1;
        self.accepted += 1;
        let watchers = self.open.get(&listener).map(|it| it.watchers.first());
        core.count_turns(watchers.flatten().copied().unwrap_or_default(), 1);
    }
}
