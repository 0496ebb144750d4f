//! Calls of operations whose timing is annotated in IDL, counted against their annotations.
//!
//! The compiler makes an [`OperationTiming`] of each such operation; nothing here is in the way of the others' calls. `docs/real-time.md`
//! says what counts as what.

mod counts;
mod operation;
mod watch;

pub use counts::OperationCounts;
pub use operation::{Criticality, OperationTiming};
pub(crate) use watch::{Arrivals, Hook, Serving, Watch, call};
pub use watch::{ExecutionClock, TimingLimit, TimingSide, TimingViolation};
