//! The periods of operations: a server with a clock refuses calls that come too soon.

use alloc::vec;
use alloc::vec::Vec;
use rtorb_core::exception::{SystemException, local};
use rtorb_core::timing::OperationTiming;

/// A clock of the application that never goes back.
pub trait Clock: Sync {
    /// Returns the time in nanoseconds, from any beginning.
    fn now_ns(&self) -> u64;
}

/// An annotation that a server without an operating system cannot enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotEnforced {
    /// The operation with `@worst_case_time`, `@network_priority` or `@statistical`: nothing here can interrupt a servant, mark a packet or
    /// judge a call.
    pub operation: &'static str,
}

/// The times of the last calls that were served, for each object and each annotated operation of its interface.
pub(crate) struct Periods<'o> {
    clock: &'o dyn Clock,
    served_ns: Vec<Vec<Option<u64>>>,
}

impl<'o> Periods<'o> {
    /// The periods of objects that have not been called, from the annotated operations of each.
    pub(crate) fn new(
        objects: impl Iterator<Item = &'static [OperationTiming]> + Clone,
        clock: &'o dyn Clock,
    ) -> Result<Self, NotEnforced> {
        let mut all = objects.clone().flatten();
        let is_beyond = |timing: &&OperationTiming| {
            timing.worst_case_time().is_some()
                || timing.dscp().is_some()
                || timing.miss_ratio().is_some()
        };
        if let Some(timing) = all.find(is_beyond) {
            return Err(NotEnforced {
                operation: timing.name(),
            });
        }
        Ok(Self {
            clock,
            served_ns: objects
                .map(|operations| vec![None; operations.len()])
                .collect(),
        })
    }

    /// Admits a call of the annotated operation with that number, of the object at `place`.
    ///
    /// # Errors
    /// TRANSIENT if the period since the last call that was served is not over.
    pub(crate) fn admit(
        &mut self,
        place: usize,
        number: usize,
        operation: &OperationTiming,
    ) -> Result<(), SystemException> {
        let served_ns = self
            .served_ns
            .get_mut(place)
            .and_then(|of_object| of_object.get_mut(number));
        let (Some(period_ns), Some(served_ns)) = (operation.period_ns, served_ns) else {
            return Ok(());
        };
        let now_ns = self.clock.now_ns();
        if served_ns.is_some_and(|served_ns| now_ns.saturating_sub(served_ns) < period_ns) {
            return Err(local::CALLED_TOO_SOON);
        }
        *served_ns = Some(now_ns);
        Ok(())
    }
}

impl core::fmt::Debug for Periods<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Periods")
            .field("served_ns", &self.served_ns)
            .finish_non_exhaustive()
    }
}
