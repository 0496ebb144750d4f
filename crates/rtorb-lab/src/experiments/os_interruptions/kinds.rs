//! Which gap is what: a tick, another interrupt, the interrupt of a release, or time that a hypervisor took.

use rtorb_results::statistics::median;

use super::probe::Seen;
use super::ticks::Ticks;
use crate::processes::gaps::Gap;

/// What took the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The kernel's tick, and what it does on that occasion.
    Tick,
    /// Anything else of its order: interrupts of devices and of other CPUs, the firmware.
    Other,
    /// In a virtual machine, what is far longer than interrupts are: the hypervisor had something else to do.
    Theft,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Tick, Self::Other, Self::Theft];

    /// The value of the label `what`.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Other => "other",
            Self::Theft => "theft",
        }
    }
}

/// What tells them apart, found in the gaps of a whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kinds {
    pub(super) ticks: Option<Ticks>,
    /// From this length on a gap is a theft; `None` where nobody steals.
    pub(super) theft_ns_min: Option<u64>,
}

impl Kinds {
    /// Of rounds without releases.
    pub(super) fn of<'a>(
        rounds: impl Iterator<Item = &'a Seen> + Clone,
        virtual_machine: bool,
        tick_period_ns: Option<u64>,
    ) -> Self {
        let looked_ns = rounds.clone().map(|seen| seen.looked_ns).sum();
        let gaps: Vec<&Gap> = rounds.flat_map(interruptions).collect();
        let begins_ns: Vec<u64> = gaps.iter().map(|gap| gap.begin_ns).collect();
        let ticks = Ticks::of(&begins_ns, looked_ns, tick_period_ns);
        let is_ordinary = |gap: &&&Gap| ticks.is_none_or(|ticks| ticks.has(gap.begin_ns));
        let ordinary_ns: Vec<f64> = gaps
            .iter()
            .filter(is_ordinary)
            .map(|gap| gap.length_ns as f64)
            .collect();
        let longest = median(&ordinary_ns).filter(|_| virtual_machine);
        Self {
            ticks,
            theft_ns_min: longest.map(|ns| ((ns * THEFT) as u64).max(THEFT_NS_MIN)),
        }
    }

    pub(super) fn kind(&self, gap: &Gap) -> Kind {
        let is_theft = self.theft_ns_min.is_some_and(|min| gap.length_ns >= min);
        let is_tick = || self.ticks.is_some_and(|ticks| ticks.has(gap.begin_ns));
        match is_theft {
            true => Kind::Theft,
            false if is_tick() => Kind::Tick,
            false => Kind::Other,
        }
    }

    /// For each release of the round that interrupted, the gap that holds its interrupt; not where it met a theft.
    pub(super) fn releases<'a>(&self, seen: &'a Seen) -> Vec<&'a Gap> {
        let of = |release_ns: &u64| {
            let next = seen.gaps.partition_point(|gap| gap.end_ns() <= *release_ns);
            let gap = seen.gaps.get(next)?;
            let is_its = gap.begin_ns < release_ns + LATE_NS_MAX && !gap.switched;
            (is_its && self.kind(gap) != Kind::Theft).then_some(gap)
        };
        seen.releases_ns.iter().filter_map(of).collect()
    }
}

/// The gaps in which no other thread ran.
pub(super) fn interruptions(seen: &Seen) -> impl Iterator<Item = &Gap> + Clone {
    seen.gaps.iter().filter(|gap| !gap.switched)
}

/// How many times as long as an ordinary tick something is that is no interrupt any more.
const THEFT: f64 = 10.0;
/// No hypervisor gives a CPU to somebody else for less.
const THEFT_NS_MIN: u64 = 50_000;
/// By how much the interrupt of a release may be late.
const LATE_NS_MAX: u64 = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(begin_ns: u64, length_ns: u64) -> Gap {
        Gap {
            begin_ns,
            length_ns,
            switched: false,
        }
    }

    /// A tick of 6 us each 4 ms for 100 ms, one of them held up, an interrupt between, and a switch.
    fn round() -> Seen {
        let tick = |number: u64| gap(1_000 + number * 4_000_000, 6_000);
        let mut gaps: Vec<Gap> = (0..25).map(tick).collect();
        gaps[3].length_ns = 900_000;
        gaps.insert(2, gap(6_000_000, 3_000));
        gaps.insert(
            5,
            Gap {
                switched: true,
                ..gap(13_500_000, 70_000_000)
            },
        );
        Seen {
            gaps,
            looked_ns: 100_000_000,
            ..Seen::default()
        }
    }

    fn counts(virtual_machine: bool) -> [usize; 3] {
        let round = round();
        let kinds = Kinds::of([&round].into_iter(), virtual_machine, Some(4_000_000));
        Kind::ALL.map(|kind| {
            let found = interruptions(&round);
            found.filter(|gap| kinds.kind(gap) == kind).count()
        })
    }

    #[test]
    fn ticks_are_told_from_others_and_thefts_in_a_virtual_machine() {
        assert_eq!(counts(true), [24, 1, 1]);
        assert_eq!(counts(false), [25, 1, 0]);
    }

    #[test]
    fn a_theft_is_ten_times_an_ordinary_gap_and_never_a_short_one() {
        let of = |rounds: &[Seen], period_ns| Kinds::of(rounds.iter(), true, period_ns);
        assert_eq!(of(&[round()], Some(4_000_000)).theft_ns_min, Some(60_000));
        let mut quick = round();
        quick.gaps.iter_mut().for_each(|gap| gap.length_ns = 2_000);
        assert_eq!(of(&[quick], None).theft_ns_min, Some(THEFT_NS_MIN));
        assert_eq!(of(&[], None).theft_ns_min, None);
    }

    #[test]
    fn a_release_is_the_gap_that_begins_at_its_moment_or_soon_after() {
        let mut seen = round();
        let kinds = Kinds::of([&seen].into_iter(), true, Some(4_000_000));
        // At the interrupt; just before it; long before it; at a theft; within a switch; after all.
        seen.releases_ns = vec![
            6_000_500,
            5_990_000,
            5_000_000,
            12_000_900,
            14_000_000,
            200_000_000,
        ];
        let found: Vec<u64> = kinds
            .releases(&seen)
            .iter()
            .map(|gap| gap.begin_ns)
            .collect();
        assert_eq!(found, [6_000_000, 6_000_000]);
    }
}
