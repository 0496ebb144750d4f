//! Counters of operations whose timing is annotated in IDL, and what happens to calls beyond their times.
//!
//! The compiler makes an [`OperationTiming`] for each such operation. Other operations are not counted. `docs/how-to/times-in-idl.md` defines
//! what each counter counts.

mod arrivals;
mod budget;
mod connection_arrivals;
mod counts;
mod enforcement;
mod enforcer;
mod miss_ratio;
mod queue_place;
mod watch;

#[doc(inline)]
pub use crate::strategies::PeriodScope;
pub(crate) use arrivals::ServantTiming;
pub(crate) use connection_arrivals::ConnectionArrivals;
pub use counts::{MissRatios, OperationCounts};
pub(crate) use enforcement::Enforcement;
pub use enforcement::{EarlyCalls, Overrun};
pub(crate) use enforcer::{Enforcer, is_asked_to_stop};
pub(crate) use queue_place::QueuePlace;
#[doc(inline)]
pub use rtorb_core::timing::{Criticality, MissRatio, OperationTiming};
pub(crate) use watch::{
    CallArrival, DeferredCall, Hook, TimedUpcall, TimingCounters, TimingSettings,
};
pub use watch::{ExecutionClock, TimingLimit, TimingSide, TimingViolation};
