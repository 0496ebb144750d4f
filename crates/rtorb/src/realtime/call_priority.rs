//! Which priority a call of an object has, by the priority model of its adapter.

use super::priority::{NativePriority, Priority};

/// Settled when an object is activated, so that a call has nothing to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPriority {
    /// Its adapter has no priority model: the serving thread stays as it is.
    AsItIs,
    /// SERVER_DECLARED: the object's own.
    Declared {
        priority: Priority,
        native: NativePriority,
    },
    /// CLIENT_PROPAGATED: that of the request, or this one for a request that brings none.
    Propagated { otherwise: Priority },
}
