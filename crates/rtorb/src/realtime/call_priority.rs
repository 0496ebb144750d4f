//! The priority of calls to an object, by the priority model of its adapter.

use super::priority::{NativePriority, Priority};

/// The source of a call's priority; computed when the object is activated, so that calls look nothing up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPriority {
    /// Its adapter has no priority model: the serving thread stays as it is.
    AsItIs,
    /// SERVER_DECLARED: the object's priority.
    Declared {
        priority: Priority,
        native: NativePriority,
    },
    /// CLIENT_PROPAGATED: the request's priority, or this one if the request has none.
    Propagated { otherwise: Priority },
}
