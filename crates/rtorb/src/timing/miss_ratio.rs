//! Finds operations of which more calls are late than their annotations allow (`@statistical`).

use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_core::timing::MissRatio;
use rtorb_os::set_once::SetOnce;

/// The numbers of the last late calls of an operation: as many as may be late.
///
/// One more late call is too many if the oldest of these is among the calls that are counted together with it.
#[derive(Debug, Default)]
pub(super) struct LateCalls {
    numbers: SetOnce<Box<[AtomicU64]>>,
}

impl LateCalls {
    /// Allocates the memory for late calls.
    pub(super) fn prepare(&self, ratio: MissRatio) {
        let make = || (0..ratio.misses).map(|_| AtomicU64::new(0)).collect();
        self.numbers.get_or_make(make);
    }

    /// Notes that the call with this number, from 1, is late, after `before` other late calls. Returns true if too many are late.
    pub(super) fn note(&self, ratio: MissRatio, call: u64, before: u64) -> bool {
        let numbers = self.numbers.get().map_or(&[][..], |numbers| numbers);
        if numbers.is_empty() {
            return true;
        }
        let place = (before % numbers.len() as u64) as usize;
        let oldest = numbers[place].swap(call, Ordering::Relaxed);
        oldest > 0 && call.saturating_sub(oldest) < u64::from(ratio.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The late calls that were one too many.
    fn exceeding(misses: u32, calls: u32, late: &[u64]) -> Vec<u64> {
        let ratio = MissRatio { misses, calls };
        let known = LateCalls::default();
        known.prepare(ratio);
        let numbered = (0..).zip(late.iter().copied());
        let exceeding = numbered.filter(|(before, call)| known.note(ratio, *call, *before));
        exceeding.map(|(_, call)| call).collect()
    }

    #[test]
    fn a_late_call_exceeds_the_ratio_of_any_calls_in_succession() {
        assert_eq!(exceeding(1, 10, &[1, 10, 20, 29, 30]), [10, 29, 30]);
        assert_eq!(exceeding(1, 10, &[1, 11, 21]), [0_u64; 0]);
        assert_eq!(exceeding(2, 10, &[3, 4, 12, 13, 14]), [12, 13, 14]);
        assert_eq!(exceeding(2, 10, &[3, 4, 13, 14]), [0_u64; 0]);
    }

    #[test]
    fn each_late_call_is_too_many_where_none_may_be_late() {
        assert_eq!(exceeding(0, 10, &[5, 500]), [5, 500]);
    }

    #[test]
    fn the_same_as_a_count_over_each_window() {
        // Late calls by a fixed pattern that has bursts and gaps.
        let late: Vec<u64> = (1..2000).filter(|n| n * n % 23 < 3).collect();
        for (misses, calls) in [(1, 7), (2, 12), (3, 20), (5, 41)] {
            let in_window = |call: u64| {
                let from = call.saturating_sub(u64::from(calls) - 1);
                late.iter().filter(|it| (from..=call).contains(*it)).count() as u32
            };
            let expected: Vec<u64> = (late.iter().copied())
                .filter(|call| in_window(*call) > misses)
                .collect();
            assert_eq!(
                exceeding(misses, calls, &late),
                expected,
                "{misses}/{calls}"
            );
        }
    }
}
