//! The priority of the calling thread (RTCORBA::Current).

use super::Orb;
use crate::exception::{SystemException, local};
use crate::realtime::{Priority, set_thread_priority, thread_priority};

/// The priority of the calling thread (RTCORBA::Current), by the mapping of one ORB.
///
/// Set it on every thread that calls with a priority. A servant's thread has the priority of the request. This type does not
/// notice a priority that is set by other means.
///
/// ```
/// use rtorb::rt::Priority;
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let orb = rtorb::Orb::builder().build()?;
/// let current = orb.rt_current();
/// // CORBA priority 0 is time sharing by the native mapping, so the host permits it to everyone.
/// current.set_the_priority(Priority::new(0)?)?;
/// assert_eq!(current.the_priority()?.get(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RtCurrent {
    orb: Orb,
}

impl RtCurrent {
    pub(crate) fn new(orb: Orb) -> Self {
        Self { orb }
    }

    /// The CORBA priority that was set, or that the request being served has.
    ///
    /// # Errors
    /// INITIALIZE if none was set.
    pub fn the_priority(&self) -> Result<Priority, SystemException> {
        thread_priority().ok_or(local::CURRENT_UNSET)
    }

    /// Gives the calling thread a CORBA priority, and the native one that the ORB's mapping has for it.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 if the mapping has no native priority for it; NO_PERMISSION with the kernel's error if the host
    /// refuses, unless the ORB was built for best effort.
    pub fn set_the_priority(&self, priority: Priority) -> Result<(), SystemException> {
        set_thread_priority(&self.orb.core.client.rt, priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::{NativePriority, PriorityMapping, caller_priority};

    #[derive(Debug)]
    struct AllSevens;

    impl PriorityMapping for AllSevens {
        fn to_native(&self, _: Priority) -> Option<NativePriority> {
            Some(0)
        }

        fn to_corba(&self, _: NativePriority) -> Option<Priority> {
            Priority::new(7).ok()
        }
    }

    //= RT-CORBA 1.2 §Real-Time Current
    //% test
    #[test]
    fn a_thread_without_a_priority_has_one_by_the_mapping_of_each_orb() {
        let plain = Orb::builder().build().expect("an ORB");
        let sevens = Orb::builder().priority_mapping(AllSevens).build();
        let sevens = sevens.expect("an ORB");
        for _ in 0..2 {
            assert_eq!(caller_priority(&plain.core.client.rt), Ok(Priority::MIN));
            assert_eq!(
                caller_priority(&sevens.core.client.rt).map(Priority::get),
                Ok(7)
            );
        }
    }
}
