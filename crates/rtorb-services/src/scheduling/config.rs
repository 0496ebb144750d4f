//! The configuration of a scheduling service.

use rtorb::{ObjectKeyError, PoaError, SystemException};
use rtorb_sched::Strategy;

use super::change::{DescribedSystem, NotAdmitted};
use super::schedule::ComputeError;

/// The configuration of a scheduling service.
#[derive(Clone, Debug)]
pub struct SchedulingConfig {
    /// The strategy; by default that of the system, if there is one.
    pub strategy: Option<Strategy>,
    /// The initial system. The service schedules it before it answers.
    pub system: Option<DescribedSystem>,
    /// What happens to a system whose deadlines are not all proven to hold, at the start; it is refused.
    pub admission: Admission,
    /// The greatest number of operations: NO_RESOURCES. 1 to 100,000; 10,000. Analysing 100,000 takes seconds.
    pub infos_max: usize,
    /// The greatest number of dependencies, and of flows of events that all channels together may have: NO_RESOURCES. 1 to 1,000,000;
    /// 40,000.
    pub dependencies_max: usize,
}

impl Default for SchedulingConfig {
    fn default() -> Self {
        Self {
            strategy: None,
            system: None,
            admission: Admission::RefuseUnproven,
            infos_max: 10_000,
            dependencies_max: 40_000,
        }
    }
}

/// What happens to a system, or to a change, that is not proven to keep every deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// It is refused.
    #[default]
    RefuseUnproven,
    /// It is admitted.
    AdmitAnyway,
}

/// Why a scheduling service cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulingError {
    /// A bound is out of its range.
    #[error("{bound} is {value}: choose {range}")]
    Bound {
        /// The field of [`SchedulingConfig`].
        bound: &'static str,
        /// Its value.
        value: usize,
        /// Its range.
        range: &'static str,
    },
    /// The system has more operations or dependencies than allowed.
    #[error(
        "the system has more operations or dependencies than infos_max and dependencies_max allow"
    )]
    TooMany,
    /// The system cannot be scheduled.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// A deadline is not proven to hold.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    /// An error of the object adapter.
    #[error(transparent)]
    Poa(#[from] PoaError),
    /// Another object has the key `ScheduleService`.
    #[error(transparent)]
    Key(#[from] ObjectKeyError),
    /// An error of the ORB.
    #[error(transparent)]
    System(#[from] SystemException),
}
