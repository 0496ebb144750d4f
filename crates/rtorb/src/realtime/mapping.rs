//! What a CORBA priority is on this host.

use super::priority::{NativePriority, Priority};
use core::fmt;

/// From CORBA priorities to the host's and back (RTCORBA::PriorityMapping); `None` where there is none.
//= RT-CORBA 1.2 §CORBA Priority Mappings
//# A mapping converts CORBA priorities to native ones and back. The application may replace the mapping of the ORB.
pub trait PriorityMapping: fmt::Debug + Send + Sync {
    /// What threads of that CORBA priority have here.
    fn to_native(&self, priority: Priority) -> Option<NativePriority>;
    /// What a thread with that native priority has in CORBA.
    fn to_corba(&self, native: NativePriority) -> Option<Priority>;
}

/// A CORBA priority is the native one, 0 to 99.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeMapping;

/// All CORBA priorities, spread evenly over 1 to 99.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinearMapping;

/// CORBA priority 0 is native priority 1, and so on up to 98.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContinuousMapping;

/// The real-time priorities of the kernel.
const NATIVE_MIN: u8 = 1;
pub(super) const NATIVE_MAX: u8 = 99;

impl PriorityMapping for NativeMapping {
    fn to_native(&self, priority: Priority) -> Option<NativePriority> {
        u8::try_from(priority.get())
            .ok()
            .filter(|native| *native <= NATIVE_MAX)
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        (native <= NATIVE_MAX).then(|| Priority::new(native.into()).ok())?
    }
}

impl PriorityMapping for LinearMapping {
    fn to_native(&self, priority: Priority) -> Option<NativePriority> {
        let span = u32::from(NATIVE_MAX - NATIVE_MIN);
        let above = span * u32::from(priority.get().unsigned_abs()) / MAX;
        u8::try_from(above).ok().map(|above| NATIVE_MIN + above)
    }

    /// The least CORBA priority that has this native one.
    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        let span = u32::from(NATIVE_MAX - NATIVE_MIN);
        let above = native
            .checked_sub(NATIVE_MIN)
            .filter(|_| native <= NATIVE_MAX)?;
        let number = (u32::from(above) * MAX).div_ceil(span);
        i16::try_from(number)
            .ok()
            .and_then(|number| Priority::new(number).ok())
    }
}

const MAX: u32 = i16::MAX as u32;

impl PriorityMapping for ContinuousMapping {
    fn to_native(&self, priority: Priority) -> Option<NativePriority> {
        u8::try_from(priority.get())
            .ok()
            .filter(|above| *above <= NATIVE_MAX - NATIVE_MIN)
            .map(|above| NATIVE_MIN + above)
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        let above = native
            .checked_sub(NATIVE_MIN)
            .filter(|_| native <= NATIVE_MAX)?;
        Priority::new(above.into()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RT-CORBA 1.2 §CORBA Priority Mappings
    //% test
    #[test]
    fn native_to_corba_and_back_is_where_it_began() {
        let mappings: [&dyn PriorityMapping; 3] =
            [&NativeMapping, &LinearMapping, &ContinuousMapping];
        for mapping in mappings {
            for native in NATIVE_MIN..=NATIVE_MAX {
                let corba = mapping.to_corba(native).expect("in range");
                assert_eq!(
                    mapping.to_native(corba),
                    Some(native),
                    "{mapping:?} {native} {corba}"
                );
            }
            assert_eq!(mapping.to_corba(NATIVE_MAX + 1), None);
        }
    }

    #[test]
    fn the_ends_of_each_mapping() {
        assert_eq!(NativeMapping.to_native(Priority::MIN), Some(0));
        assert_eq!(NativeMapping.to_native(Priority::MAX), None);
        assert_eq!(LinearMapping.to_native(Priority::MIN), Some(1));
        assert_eq!(LinearMapping.to_native(Priority::MAX), Some(99));
        assert_eq!(ContinuousMapping.to_native(Priority::MIN), Some(1));
        assert_eq!(ContinuousMapping.to_native(Priority::MAX), None);
        assert_eq!(LinearMapping.to_corba(0), None);
    }
}
