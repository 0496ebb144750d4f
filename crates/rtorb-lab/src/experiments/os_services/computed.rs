//! The costs of the services, in switches of threads.

use rtorb_results::cells::{Cells, Samples};

use super::probe::Service;
use crate::experiments::prelude::*;
use crate::study::{Computed, Conditions};

/// Computes one of the two switches of a yield's round trip, without the reading of the clock.
pub(super) fn compute(cells: &Cells, _: &Conditions) -> Computed {
    let rounds = |service: Service| {
        let samples = cells.get(&labels([("service", service.label().into())]));
        let rounds = samples.map(|samples: &Samples| samples.rounds(|round| round.p50));
        rounds.unwrap_or_default()
    };
    let mut computed = Cells::default();
    let two = rounds(Service::Yield).less(&rounds(Service::ClockRead));
    for (round, ns) in two.each() {
        computed.add_computed(
            &labels([("service", "one_switch".into())]),
            round,
            &[ns / 2.0],
        );
    }
    computed.into()
}

const IN_SWITCHES: Metric = Metric::of(P50).with(&[
    Less(P50, "service=clock_read"),
    Over(P50, "service=one_switch"),
]);

pub(super) const SAYS: Statements = Statements {
    highlights: &[
        highlight("service=one_switch", "switch of threads"),
        highlight("service=futex, !peer", "wake-up by futex"),
        HighlightOf {
            beside: Words::with("kept awake {0}", &[US.at("peer=awake")]),
            ..highlight("peer=idle", "{service}, the other CPU idle")
        },
    ],
    derived: &[
        DerivedOf {
            name: "without_clock_read",
            of: "service!=clock_read, service!=one_switch, !peer",
            without: &[],
            metric: Metric::of(P50).with(&[Less(P50, "service=clock_read")]),
        },
        DerivedOf {
            name: "in_switches",
            of: "service!=clock_read, service!=system_call, service!=set_timer, service!=yield, service!=one_switch, !peer",
            without: &[],
            metric: IN_SWITCHES,
        },
    ],
    published: &[PublishedOf {
        source: "P0 Table 1",
        what: "half of a yield's round trip, mean in us, Pentium III 866 MHz",
        published: "QNX 0.470, Linux/RT 0.645, Linux 0.548, VxWorks 0.649, Windows NT 1.056, Windows 2K 1.075",
        of: "service=one_switch",
        ours: Words::with("median {0}", &[US]),
    }],
    conclusions: &[Sentence {
        of: "service=futex, !peer",
        says: Words::with(
            "A more urgent thread is woken at the cost of {0} switches by a futex and of {1} by an eventfd. A mutex with inheritance that \
             a less urgent thread holds costs {2} switches beyond its critical section.",
            &[
                IN_SWITCHES.in_unit(""),
                IN_SWITCHES.at("service=eventfd").in_unit(""),
                IN_SWITCHES.at("service=pi_lock").in_unit(""),
            ],
        ),
    }],
    ..Statements::NONE
};

const fn highlight(of: &'static str, what: &'static str) -> HighlightOf {
    HighlightOf {
        what,
        of,
        metric: US,
        beside: Words::text(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_half_of_a_yield_without_the_clock() {
        let mut cells = Cells::default();
        for (service, ns) in [(Service::ClockRead, 100), (Service::Yield, 4_100)] {
            let of = labels([("service", service.label().into())]);
            cells.add(&of, 0, &[ns, ns, ns, ns + 90_000], 0);
            // A round without a reading of the clock has no switch.
            if service == Service::Yield {
                cells.add(&of, 1, &[ns], 0);
            }
        }
        let computed = compute(&cells, &Conditions::default()).cells;
        let switch = computed.get(&labels([("service", "one_switch".into())]));
        let rounds = switch.map(|switch| switch.rounds(|round| round.p50).values());
        assert_eq!(rounds, Some(vec![2_000.0]));
        let none = compute(&Cells::default(), &Conditions::default());
        assert_eq!(none.cells.all().count(), 0);
    }
}
