//! `os/mutex`: how long a high-priority thread waits for a mutex that a low-priority one holds, while a medium-priority one
//! only computes: the unbounded priority inversion of P1 2.3, with and without a cure.
//!
//! All threads are on one CPU. Low takes the mutex and lets high go, which wants it, then medium, which computes; then low works
//! through its critical section. With inheritance, high waits for the rest of that section; without, for medium too.

use std::time::Duration;

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::Cells;
use rtorb_results::profile::ServiceRow;
use rtorb_results::{Claim, Derived, Highlight, Plot, PlotKind, Published, labels};

use crate::error::LabError;
use crate::study::{
    Amounts, Cell, Conditions, Factor, Findings, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};
use three_threads::{Kind, SECTION_NS, SPIN_NS, Wait};

mod three_threads;

/// The experiment.
pub const STUDY: Study<ThreeThreads> = Study {
    name: "os/mutex",
    title: "How long a high-priority thread waits for a mutex that a low-priority one holds while a medium one computes",
    reproduces: "P1 section 2.3 (unbounded priority inversion by shared locks)",
    amounts: Amounts {
        glance: 1,
        emulated: 1,
        quick: [51, 1],
        full: [1_001, 1],
        samples: "samples_per_round",
    },
    factors: &[Factor {
        label: "mutex",
        levels: &[
            Text("inheritance"),
            Text("rtcorba"),
            Text("ceiling"),
            Text("plain"),
        ],
    }],
    fixed: &[("orb", Text("rtorb_os"))],
    parameters: &[
        ("critical_section_us", Number((SECTION_NS / 1_000) as i64)),
        ("medium_us_max", Number((SPIN_NS / 1_000) as i64)),
    ],
    labels_of_run: |_| labels([]),
    obstacle: |context| {
        let placement = &context.launcher.placement;
        placement
            .fifo
            .and(placement.cpu)
            .is_none()
            .then_some(NEEDS_FIFO)
    },
    findings,
    plots,
    services: &[ServiceRow::new("mutex", "hand_over")
        .of_derived("wait_beyond_section")
        .configured_by(&["mutex"])],
    ..Study::with(|context, _| {
        Ok(ThreeThreads {
            cpu: context.launcher.placement.cpu.unwrap_or_default(),
        })
    })
};

fn plots() -> Vec<Plot> {
    vec![Plot {
        caption: "Medians. With a cure, the wait is as long as the critical section; without one, it is as long as medium computes."
            .to_owned(),
        kind: PlotKind::Bars,
        x: "mutex".to_owned(),
        lines: vec!["what".to_owned()],
        ..Plot::named("waits", "How long the high-priority thread waits")
    }]
}

/// Threads of this process on one CPU.
#[derive(Debug)]
pub struct ThreeThreads {
    cpu: usize,
}

impl Subject for ThreeThreads {
    fn measure(&mut self, cell: &Cell<'_>, _: &Turn<'_>) -> Result<Sampled, LabError> {
        let mut kinds = Kind::ALL.into_iter();
        let kind = kinds.find(|kind| cell.is("mutex", kind.label()));
        let seen = three_threads::run(kind.expect("every level is a kind"), self.cpu);
        std::thread::sleep(PAUSE);
        let seen = seen.map_err(|error| LabError::process("os/mutex", error))?;
        let Wait {
            waited_ns,
            section_ns,
            switch_ns,
        } = seen.wait;
        let parts = [
            (WAIT, waited_ns),
            (SECTION, section_ns),
            (SWITCH, switch_ns),
        ];
        let part = |(what, ns): (&str, u64)| (labels([("what", what.into())]), vec![ns]);
        Ok(Sampled {
            parts: parts.map(part).into(),
            scheduling: seen.scheduling,
            ..Sampled::default()
        })
    }
}

fn findings(cells: &Cells, _: &Conditions) -> Findings {
    let rounds = |kind: Kind, what: &str| -> ByRound {
        let wanted = [("mutex", kind.label().into()), ("what", what.into())];
        let found = cells.with(&wanted).next();
        found.map_or_else(ByRound::default, |(_, samples)| {
            samples.rounds(|round| round.p50)
        })
    };
    let wait_us = |kind| Some(rounds(kind, WAIT).median()? / 1e3);
    let beyond_ns = |kind| rounds(kind, WAIT).less(&rounds(kind, SECTION));
    let mut found = Findings::default();
    for kind in Kind::ALL {
        let labels = labels([
            ("orb", "rtorb_os".into()),
            ("mutex", kind.label().into()),
            ("what", WAIT.into()),
            ("real_time", true.into()),
        ]);
        found.derived.extend(Derived::of_rounds(
            "wait_beyond_section",
            labels,
            "ns",
            &beyond_ns(kind),
        ));
        found
            .highlights
            .extend(wait_us(kind).map(|value| Highlight {
                what: format!("the high-priority thread's wait, {}", kind.name()),
                value,
                unit: "us".to_owned(),
                beside: format!("critical section {} us", SECTION_NS / 1_000),
            }));
        if kind != Kind::Plain {
            found.claims.extend(Claim::at_most(
                format!("wait-beyond-section.{}", kind.label()),
                format!(
                    "{}: the high-priority thread waits no longer than the critical section and {SWITCHES} switches (switches beyond \
                     the section)",
                    kind.name()
                ),
                &beyond_ns(kind).divided_by(&rounds(kind, SWITCH)),
                f64::from(SWITCHES),
                "switches",
            ));
        }
    }
    let both = wait_us(Kind::Plain).zip(wait_us(Kind::Inheritance));
    found.published.extend(both.map(|(plain, inherited)| Published {
        source: "P1 section 2.3".to_owned(),
        what: "a medium-priority thread preempts a low-priority one that holds a lock which a high-priority one requires"
            .to_owned(),
        published: "can lead to unbounded priority inversion".to_owned(),
        ours: format!(
            "high waits {plain:.0} us with a plain mutex (medium computes for {} us and then stops), {inherited:.0} us with inheritance",
            SPIN_NS / 1_000
        ),
    }));
    found
}

/// The parts of a round.
const WAIT: &str = "wait";
const SECTION: &str = "critical_section";
const SWITCH: &str = "switch";
/// Leaves the CPU to others between rounds, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(5);

/// To high, which finds the mutex taken; back to the holder; from it to high; and one more that the host may put in between.
const SWITCHES: u32 = 4;

const NEEDS_FIFO: &str = "Nothing was measured: without SCHED_FIFO there are no priorities to invert. `rtorb check` says how \
                          to get it.";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Verdict;

    /// The verdict on the mutex with inheritance, whose critical section takes 500 us and a switch 2 us.
    fn judged(waits_ns: &[u64]) -> Verdict {
        let mut cells = Cells::default();
        for (round, wait_ns) in waits_ns.iter().enumerate() {
            for (what, ns) in [(WAIT, *wait_ns), (SECTION, 500_000), (SWITCH, 2_000)] {
                let labels = labels([("mutex", "inheritance".into()), ("what", what.into())]);
                cells.add(&labels, round, &[ns], 0);
            }
        }
        findings(&cells, &Conditions::default()).claims[0].verdict
    }

    #[test]
    fn the_wait_is_judged_by_the_critical_section_and_a_few_switches() {
        assert_eq!(judged(&[506_000, 507_000, 506_000]), Verdict::Held);
        assert_eq!(judged(&[900_000, 901_000, 900_000]), Verdict::Missed);
        assert_eq!(judged(&[506_000, 900_000, 506_000]), Verdict::NotJudged);
    }
}
