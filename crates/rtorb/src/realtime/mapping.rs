//! Mappings between CORBA priorities and this host's native priorities.

use super::priority::{NativePriority, Priority};
use core::fmt;

/// Maps CORBA priorities to native ones and back (RTCORBA::PriorityMapping); `None` if there is no counterpart.
//= RT-CORBA 1.2 §CORBA Priority Mappings
//# A mapping converts CORBA priorities to native ones and back. The application may replace the mapping of the ORB.
pub trait PriorityMapping: fmt::Debug + Send + Sync {
    /// The native priority of threads with this CORBA priority.
    fn to_native(&self, priority: Priority) -> Option<NativePriority>;
    /// The CORBA priority of threads with this native priority.
    fn to_corba(&self, native: NativePriority) -> Option<Priority>;
}

/// Maps each CORBA priority from 0 to 99 to the same native priority.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeMapping;

/// Spreads all CORBA priorities evenly over the native priorities 1 to 99.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinearMapping;

/// Maps the CORBA priorities 0 to 98 to the native priorities 1 to 99.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContinuousMapping;

/// The least urgent real-time priority of the kernel; the most urgent one follows.
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

    /// The least urgent CORBA priority that maps to this native one.
    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        let span = u32::from(NATIVE_MAX - NATIVE_MIN);
        let number = (u32::from(above_min(native)?) * MAX).div_ceil(span);
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
        Priority::new(above_min(native)?.into()).ok()
    }
}

/// The distance of a real-time priority from the lowest one; `None` for a number that is none.
fn above_min(native: NativePriority) -> Option<u8> {
    let above = native.checked_sub(NATIVE_MIN);
    above.filter(|_| native <= NATIVE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RT-CORBA 1.2 §CORBA Priority Mappings
    //% test
    #[test]
    fn mapping_a_native_priority_to_corba_and_back_returns_it() {
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
    fn each_mapping_handles_its_least_and_most_urgent_priorities() {
        assert_eq!(NativeMapping.to_native(Priority::MIN), Some(0));
        assert_eq!(NativeMapping.to_native(Priority::MAX), None);
        assert_eq!(LinearMapping.to_native(Priority::MIN), Some(1));
        assert_eq!(LinearMapping.to_native(Priority::MAX), Some(99));
        assert_eq!(ContinuousMapping.to_native(Priority::MIN), Some(1));
        assert_eq!(ContinuousMapping.to_native(Priority::MAX), None);
        assert_eq!(LinearMapping.to_corba(0), None);
    }
}
