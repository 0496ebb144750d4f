//! When the kernel's tick comes: at the same distance again and again, on a grid that begins with the host.

/// The moments at which ticks come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    /// From one to the next, in nanoseconds.
    pub(super) period_ns: u64,
    /// From a multiple of the period until the first of a period's ticks was seen to begin, in nanoseconds.
    offset_ns: u64,
}

impl Ticks {
    /// Of gaps that begin at these times, found in so many nanoseconds of looking. `period_ns` is that of the kernel's configuration;
    /// without one, the shortest of those that a kernel may have by which most ticks are there. `None` where too few are.
    pub(super) fn of(begins_ns: &[u64], looked_ns: u64, period_ns: Option<u64>) -> Option<Self> {
        let may_be = match period_ns {
            Some(period_ns) => vec![period_ns],
            None => HZ.map(|hz| NS_A_SECOND / hz).to_vec(),
        };
        may_be
            .into_iter()
            .find_map(|period_ns| Self::on_grid(begins_ns, looked_ns, period_ns))
    }

    fn on_grid(begins_ns: &[u64], looked_ns: u64, period_ns: u64) -> Option<Self> {
        let mut phases_ns: Vec<u64> = begins_ns.iter().map(|ns| ns % period_ns).collect();
        phases_ns.sort_unstable();
        let count_from = |offset_ns: u64| {
            let wrapped = (offset_ns + WINDOW_NS).checked_sub(period_ns);
            let below = |end_ns| phases_ns.partition_point(|phase_ns| *phase_ns < end_ns);
            below(offset_ns + WINDOW_NS) - below(offset_ns) + wrapped.map_or(0, below)
        };
        let ranked = phases_ns
            .iter()
            .map(|phase_ns| (count_from(*phase_ns), *phase_ns));
        // Of equal ones, the earliest.
        let (count, offset_ns) =
            ranked.max_by_key(|(count, phase_ns)| (*count, u64::MAX - phase_ns))?;
        let expected = looked_ns as f64 / period_ns as f64;
        let are_there = expected >= 1.0 && count as f64 >= MOST * expected;
        are_there.then_some(Self {
            period_ns,
            offset_ns,
        })
    }

    /// Whether a gap that begins then is a tick.
    pub(super) fn has(&self, begin_ns: u64) -> bool {
        let phase_ns = begin_ns % self.period_ns;
        (phase_ns + self.period_ns - self.offset_ns) % self.period_ns < WINDOW_NS
    }
}

/// All that Linux offers in its configurations of common machines, the most frequent ticks first.
const HZ: [u64; 7] = [1_000, 512, 500, 300, 250, 128, 100];
const NS_A_SECOND: u64 = 1_000_000_000;
/// By how much the interrupt of a tick may be late, on a CPU that computes; in a virtual machine it takes some microseconds.
const WINDOW_NS: u64 = 50_000;
/// Of the ticks that a period asks for: more than half, so that half as many do not pass for all.
const MOST: f64 = 0.6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::split_mix::SplitMix64;

    /// Ticks of so many a second over a second, up to 20 us late, without every `missing`-th, and 500 other gaps.
    fn begins_ns(hz: u64, missing: u64) -> Vec<u64> {
        let mut drawn = SplitMix64::seeded(hz);
        let period_ns = NS_A_SECOND / hz;
        let start_ns = 77 * NS_A_SECOND + period_ns - 10_000;
        let ticks = (0..hz).filter(|tick| tick % missing != 0);
        let mut begins_ns: Vec<u64> = ticks
            .map(|tick| start_ns + tick * period_ns + drawn.draw_below(20_000))
            .collect();
        begins_ns.extend((0..500).map(|_| start_ns + drawn.draw_below(NS_A_SECOND)));
        begins_ns
    }

    #[test]
    fn the_period_is_found_among_other_interrupts() {
        for hz in [100, 250, 300, 1_000] {
            let found = Ticks::of(&begins_ns(hz, 5), NS_A_SECOND, None).unwrap();
            assert_eq!(found.period_ns, NS_A_SECOND / hz);
        }
    }

    #[test]
    fn a_period_that_is_known_is_taken_and_a_wrong_one_is_not() {
        let begins_ns = begins_ns(250, 1_000);
        let of = |period_ns| Ticks::of(&begins_ns, NS_A_SECOND, Some(period_ns));
        let ticks = of(4_000_000).unwrap();
        assert_eq!(of(1_000_000), None);
        let found = begins_ns.iter().filter(|begin_ns| ticks.has(**begin_ns));
        let found = found.count();
        assert!((249..=265).contains(&found), "{found}");
        // The window reaches over the end of the period.
        assert!(ticks.has(4_000_000 - 5_000));
        assert!(ticks.has(8_000_000 + 5_000) && !ticks.has(2_000_000));
    }

    #[test]
    fn without_ticks_there_is_no_grid() {
        assert_eq!(Ticks::of(&[], NS_A_SECOND, Some(4_000_000)), None);
        assert_eq!(Ticks::of(&[5, 9], 1_000, Some(4_000_000)), None);
        let mut drawn = SplitMix64::seeded(3);
        let random: Vec<u64> = (0..500).map(|_| drawn.draw_below(NS_A_SECOND)).collect();
        assert_eq!(Ticks::of(&random, NS_A_SECOND, None), None);
    }
}
