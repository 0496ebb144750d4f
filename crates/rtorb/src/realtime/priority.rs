//! CORBA priorities and the operating system's.

use crate::exception::{SystemException, local};
use core::fmt;

/// A CORBA priority (RTCORBA::Priority): 0, the least urgent, to 32767.
///
/// It has the same meaning on all hosts of a system. A [`PriorityMapping`](super::PriorityMapping) maps it to a native priority of
/// one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub(super) i16);

/// A priority of the operating system: 0 for time sharing (SCHED_OTHER), 1 to 99 for SCHED_FIFO and SCHED_RR.
//= RT-CORBA 1.2 §Native Thread Priorities
//# A native priority is a priority of the operating system. Applications use CORBA priorities.
pub type NativePriority = u8;

impl Priority {
    /// The least urgent (RTCORBA::minPriority).
    pub const MIN: Self = Self(0);
    /// The most urgent (RTCORBA::maxPriority).
    pub const MAX: Self = Self(i16::MAX);

    /// Makes a priority of a number.
    ///
    /// # Errors
    /// BAD_PARAM for a negative number.
    //= RT-CORBA 1.2 §CORBA Priority
    //# A CORBA priority is a number from 0, the least urgent, to 32767.
    pub const fn new(number: i16) -> Result<Self, SystemException> {
        if number < 0 {
            return Err(local::PRIORITY_OUT_OF_RANGE);
        }
        Ok(Self(number))
    }

    /// Returns the number.
    #[inline]
    pub const fn get(self) -> i16 {
        self.0
    }
}

impl TryFrom<i16> for Priority {
    type Error = SystemException;

    fn try_from(number: i16) -> Result<Self, SystemException> {
        Self::new(number)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
