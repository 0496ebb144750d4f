//! The priority of calls to an object, by the priority model of its adapter.

use super::priority::{NativePriority, Priority};

/// The source of a call's priority. It is computed when the object is activated, so that calls do no lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPriority {
    /// The adapter has no priority model: the serving thread keeps its priority.
    AsItIs,
    /// SERVER_DECLARED: the object's priority.
    Declared {
        priority: Priority,
        native: NativePriority,
    },
    /// CLIENT_PROPAGATED: the request's priority, or this one if the request has none.
    Propagated { otherwise: Priority },
}
