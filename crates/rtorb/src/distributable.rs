//! Distributable threads: threads with an identity and scheduling parameters, which calls carry from process to process.
//!
//! A `visit` is the part of a distributable thread that runs on one thread of this process: from the beginning of its outermost
//! segment, or for one upcall. `current` is the visit of the calling thread, with its segments. A `thread_call` is a call that a
//! distributable thread makes, from the request's context to the reply; an `active_call` is what ends such a call early.

mod active_call;
mod current;
mod parameter;
mod thread_call;
mod thread_id;
mod visit;

pub(crate) use active_call::ActiveCall;
pub(crate) use current::{
    BegunThread, Segment, adopt, begin_segment, check, current, end_segment, end_segments_beyond,
    is_within, update_segment,
};
pub use parameter::{
    EarliestDeadlineFirst, FixedPriority, SchedulingDiscipline, SchedulingParameter, SegmentEffect,
};
pub(crate) use thread_call::ThreadCall;
pub use thread_id::ThreadId;
pub(crate) use visit::{
    Origin, cancel, cancel_all_of, cancel_request, is_cancelled, is_known, visits_of,
};
