//! What a process has counted of itself.

use rtorb_instruments::heap::process_heap_calls;
use rtorb_os::sync::process_lock_calls;
use serde::{Deserialize, Serialize};

/// Counters of one process. They only grow: what happened meanwhile is the difference of two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Calls that take or give back a mutex, as P1 counts them: one critical section is two.
    pub lock_operations: u64,
    /// Locks that somebody else held when they were wanted.
    pub contended: u64,
    /// Allocations, growths and frees.
    pub heap_calls: u64,
    /// Operations on condition variables and semaphores beside those on their mutexes; `None` where they are not counted.
    pub condition_operations: Option<u64>,
}

impl Counts {
    /// Of the calling process, if it is one of ours.
    #[must_use]
    pub fn own() -> Self {
        let locks = process_lock_calls();
        Self {
            // Each lock that was taken is given back once.
            lock_operations: 2 * locks.all,
            contended: locks.contended,
            heap_calls: process_heap_calls(),
            condition_operations: None,
        }
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            lock_operations: self.lock_operations.saturating_sub(earlier.lock_operations),
            contended: self.contended.saturating_sub(earlier.contended),
            heap_calls: self.heap_calls.saturating_sub(earlier.heap_calls),
            condition_operations: self
                .condition_operations
                .zip(earlier.condition_operations)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_back_and_subtracted() {
        let counts = Counts {
            lock_operations: 20,
            contended: 3,
            heap_calls: 7,
            condition_operations: None,
        };
        let written = serde_json::to_string(&counts).unwrap();
        assert_eq!(serde_json::from_str::<Counts>(&written).unwrap(), counts);
        assert_eq!(counts.since(counts), Counts::default());
    }
}
