//! The configuration of a scheduling service.

use rtorb::{ObjectKeyError, PoaError, SystemException};
use rtorb_sched::Strategy;

use super::description::Description;
use super::schedule::ComputeError;

/// What a scheduling service is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulingConfig {
    /// How levels are made; that of the description, where there is one, unless this is given.
    pub strategy: Option<Strategy>,
    /// What is known from the beginning; it is scheduled before the service answers.
    pub description: Option<Description>,
    /// Operations: NO_RESOURCES. 1 to 100,000; 10,000. The analysis of so many takes seconds.
    pub infos_max: usize,
    /// Dependencies: NO_RESOURCES. 1 to 1,000,000; 40,000.
    pub dependencies_max: usize,
}

impl Default for SchedulingConfig {
    fn default() -> Self {
        Self {
            strategy: None,
            description: None,
            infos_max: 10_000,
            dependencies_max: 40_000,
        }
    }
}

/// Why there is no scheduling service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulingError {
    /// A bound is out of its range.
    #[error("{bound} is {value}: choose {range}")]
    Bound {
        /// The field of [`SchedulingConfig`].
        bound: &'static str,
        /// What was given.
        value: usize,
        /// What may be.
        range: &'static str,
    },
    /// More operations or dependencies are described than may be.
    #[error(
        "the description has more operations or dependencies than infos_max and dependencies_max allow"
    )]
    TooMany,
    /// No schedule follows from the description.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// The ORB cannot serve it.
    #[error(transparent)]
    Poa(#[from] PoaError),
    /// The key `ScheduleService` is another object's already.
    #[error(transparent)]
    Key(#[from] ObjectKeyError),
    /// The ORB has ended.
    #[error(transparent)]
    System(#[from] SystemException),
}
