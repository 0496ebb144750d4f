//! The exceptions of a Scheduler, which each operation converts to its own error.

use crate::stubs::rtec_scheduler::rtec_scheduler::{
    DuplicateName, InsufficientThreadPriorityLevels, NotScheduled, SchedulerAddDependencyError,
    SchedulerComputeSchedulingError, SchedulerCreateError, SchedulerDispatchConfigurationError,
    SchedulerEntryPointPriorityError, SchedulerGetConfigInfoSetError, SchedulerGetConfigInfosError,
    SchedulerGetDependencySetError, SchedulerGetError, SchedulerGetRtInfoSetError,
    SchedulerLastScheduledPriorityError, SchedulerLookupError, SchedulerPriorityError,
    SchedulerRecomputeSchedulingError, SchedulerRemoveDependencyError, SchedulerReplaceSeqError,
    SchedulerResetError, SchedulerResetSeqError, SchedulerSetDependencyEnableStateError,
    SchedulerSetDependencyEnableStateSeqError, SchedulerSetError,
    SchedulerSetRtInfoEnableStateError, SchedulerSetRtInfoEnableStateSeqError,
    SchedulerSetSeqError, UnknownPriorityLevel, UnknownTask,
};
use rtorb::SystemException;
use rtorb::exception::local;

/// The exceptions that this service raises.
///
/// CYCLIC_DEPENDENCIES, UTILIZATION_BOUND_EXCEEDED and the like are anomalies with a text. TASK_COUNT_MISMATCH,
/// SYNCHRONIZATION_FAILURE and INTERNAL cannot occur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SchedulerException {
    DuplicateName,
    UnknownTask,
    NotScheduled,
    UnknownPriorityLevel,
    InsufficientThreadPriorityLevels,
    System(SystemException),
}

macro_rules! errors {
    ($($error:ident { $($exception:ident),* })*) => {$(
        impl From<SchedulerException> for $error {
            fn from(raised: SchedulerException) -> Self {
                match raised {
                    $(SchedulerException::$exception => Self::$exception($exception),)*
                    SchedulerException::System(exception) => Self::System(exception),
                    // No operation raises an exception that it does not declare.
                    _ => Self::System(local::CONTRADICTION),
                }
            }
        }
    )*};
}

errors! {
    SchedulerCreateError { DuplicateName }
    SchedulerLookupError { UnknownTask }
    SchedulerGetError { UnknownTask }
    SchedulerSetError { UnknownTask }
    SchedulerResetError { UnknownTask }
    SchedulerSetSeqError { UnknownTask }
    SchedulerResetSeqError { UnknownTask }
    SchedulerReplaceSeqError { UnknownTask }
    SchedulerAddDependencyError { UnknownTask }
    SchedulerRemoveDependencyError { UnknownTask }
    SchedulerSetDependencyEnableStateError { UnknownTask }
    SchedulerSetDependencyEnableStateSeqError { UnknownTask }
    SchedulerSetRtInfoEnableStateError { UnknownTask }
    SchedulerSetRtInfoEnableStateSeqError { UnknownTask }
    SchedulerPriorityError { UnknownTask, NotScheduled }
    SchedulerEntryPointPriorityError { UnknownTask, NotScheduled }
    SchedulerComputeSchedulingError { InsufficientThreadPriorityLevels }
    SchedulerRecomputeSchedulingError { InsufficientThreadPriorityLevels }
    SchedulerGetRtInfoSetError { }
    SchedulerGetDependencySetError { }
    SchedulerGetConfigInfoSetError { }
    SchedulerDispatchConfigurationError { UnknownPriorityLevel, NotScheduled }
    SchedulerLastScheduledPriorityError { NotScheduled }
    SchedulerGetConfigInfosError { NotScheduled }
}
