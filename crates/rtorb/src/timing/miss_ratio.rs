//! Finds operations of which more calls are late than their annotations allow (`@statistical`).

use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_core::timing::MissRatio;
use rtorb_os::set_once::SetOnce;

/// How many calls of an operation may be late, and the numbers of the last late calls: as many as may be late.
///
/// One more late call is too many if the oldest of these is among the calls that are counted together with it.
#[derive(Debug, Default)]
pub(super) struct LateCalls {
    /// The late calls, and the calls among which they are counted, in 32 bits each; 0 without a ratio.
    ratio: AtomicU64,
    numbers: SetOnce<Box<[AtomicU64]>>,
}

impl LateCalls {
    /// Sets how many calls may be late, and forgets the late calls if this changes it. A call that ends meanwhile may be judged by either.
    pub(super) fn set(&self, ratio: Option<MissRatio>) {
        if self.ratio() == ratio {
            return;
        }
        if ratio.is_some() {
            let make = || (0..MissRatio::MISSES_MAX).map(|_| AtomicU64::new(0));
            self.numbers.get_or_make(|| make().collect());
        }
        for number in self.numbers.get().into_iter().flatten() {
            number.store(0, Ordering::Relaxed);
        }
        let both = ratio.map_or(0, |ratio| {
            (u64::from(ratio.misses) << 32) | u64::from(ratio.calls)
        });
        self.ratio.store(both, Ordering::Relaxed);
    }

    /// Returns how many calls may be late; `None` if each late call is a miss.
    pub(super) fn ratio(&self) -> Option<MissRatio> {
        let both = self.ratio.load(Ordering::Relaxed);
        (both > 0).then_some(MissRatio {
            misses: (both >> 32) as u32,
            calls: both as u32,
        })
    }

    /// Notes that the call with this number, from 1, is late, after `before` other late calls. Returns true if too many are late.
    pub(super) fn note(&self, ratio: MissRatio, call: u64, before: u64) -> bool {
        let numbers = self.numbers.get().map_or(&[][..], |numbers| numbers);
        let numbers = &numbers[..numbers.len().min(ratio.misses as usize)];
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
        known.set(Some(ratio));
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
    fn a_new_ratio_begins_a_count_of_its_own() {
        let of = |misses, calls| MissRatio { misses, calls };
        let known = LateCalls::default();
        assert_eq!(known.ratio(), None);
        known.set(Some(of(1, 10)));
        assert!(!known.note(of(1, 10), 1, 0));
        known.set(Some(of(1, 10)));
        assert!(known.note(of(1, 10), 3, 1), "the same ratio goes on");
        known.set(Some(of(2, 10)));
        assert_eq!(known.ratio(), Some(of(2, 10)));
        let late =
            [(4, 2), (5, 3), (6, 4)].map(|(call, before)| known.note(of(2, 10), call, before));
        assert_eq!(late, [false, false, true]);
        known.set(None);
        assert_eq!(known.ratio(), None);
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
