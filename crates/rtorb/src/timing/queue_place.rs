//! The places of waiting requests whose operations bound them (`@queue`).

use super::watch::TimingCounters;
use core::fmt;
use rtorb_core::timing::OperationTiming;
use std::sync::Arc;

/// The place of a waiting request. Dropping it frees the place.
pub(crate) struct QueuePlace {
    counters: Arc<TimingCounters>,
    operation: &'static OperationTiming,
}

impl QueuePlace {
    /// Takes a place for a request of the operation. Returns `None`, and counts it, if as many wait as its `@queue` allows.
    pub(crate) fn take(
        counters: &Arc<TimingCounters>,
        operation: &'static OperationTiming,
    ) -> Option<Self> {
        let waiting_max = operation.queue_max().unwrap_or(u32::MAX);
        counters.of(operation).wait(waiting_max).then(|| Self {
            counters: Arc::clone(counters),
            operation,
        })
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.counters.of(self.operation).end_wait();
    }
}

impl fmt::Debug for QueuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueuePlace")
            .field(&self.operation.name())
            .finish()
    }
}
