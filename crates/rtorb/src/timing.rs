//! Counters of operations whose timing is annotated in IDL.
//!
//! The compiler makes an [`OperationTiming`] for each such operation. Other operations are not counted. `docs/how-to/times-in-idl.md` defines
//! what each counter counts.

mod counts;
mod watch;

pub use counts::OperationCounts;
#[doc(inline)]
pub use rtorb_core::timing::{Criticality, OperationTiming};
pub(crate) use watch::{Arrivals, Hook, TimedUpcall, TimingCounters, TimingSettings};
pub use watch::{ExecutionClock, TimingLimit, TimingSide, TimingViolation};
