//! The finest clock with which a system makes progress (P3 section 5.1): below it, ticks take the whole CPU.
//!
//! P3's systems hung. Here the ticks stop by themselves, and only emulated machines are brought there.

use std::collections::BTreeMap;
use std::time::Duration;

use rtorb_results::cells::Cells;

use super::PROGRAM_NS;
use super::probe::{Executions, Question};
use crate::experiments::prelude::*;
use crate::processes::computation::Computation;
use crate::processes::probe::Probe;
use crate::study::{Computed, Conditions};

/// The program beside ticks that come more and more often.
pub(super) const STUDY: Study<TickingProgram> = Study {
    name: super::STUDY.name,
    title: "The finest clock with which a system makes progress",
    reproduces: "P3 section 5.1",
    amounts: Amounts {
        glance: 1,
        emulated: 1,
        quick: [1, 1],
        full: [4, 1],
        samples: "executions_finest_per_round",
    },
    factors: &[Factor::numbers(
        RESOLUTION,
        &[1, 2, 3, 5, 7, 10, 15, 20, 50],
    )],
    fixed: "tick=thread, what=execution_beside_ticks_that_end",
    parameters: &[("ticks_end_after_us", Number((END_NS / 1_000) as i64))],
    leaves_out: |_, effort| effort.seeds().is_none(),
    says: SAYS,
    computed: compute,
    ..Study::with(|context, _| {
        let mut probe = Probe::start(&context.launcher, "finest-clock")?;
        Ok(TickingProgram {
            program: probe.calibrate(Duration::from_nanos(PROGRAM_NS))?,
            probe,
        })
    })
};

/// P, in a probe.
#[derive(Debug)]
pub(super) struct TickingProgram {
    probe: Probe<Question>,
    program: Computation,
}

impl Subject for TickingProgram {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let placement = &turn.context.launcher.placement;
        let resolution_ns = 1_000 * cell.number(RESOLUTION) as u64;
        let answer = self.probe.ask(
            &Question {
                program: self.program,
                cpu: placement.cpu,
                real_time: placement.fifo.is_some(),
                executions: vec![Executions::until(END_NS, resolution_ns, turn.samples)],
            },
            WITHIN,
        )?;
        Ok(Sampled::of(answer).of_threads(&["program", "tick"]))
    }
}

/// Computes the finest clock of each round with which P ended before the ticks did.
fn compute(cells: &Cells, _: &Conditions) -> Computed {
    let mut finest: BTreeMap<usize, i64> = BTreeMap::new();
    for (labels, samples) in cells.all() {
        let resolution_us = labels[RESOLUTION].number().unwrap_or(i64::MAX);
        for (round, ns) in samples.rounds(|round| round.p50).each() {
            if ns < END_NS as f64 {
                let finest = finest.entry(round).or_insert(resolution_us);
                *finest = resolution_us.min(*finest);
            }
        }
    }
    let mut computed = Cells::default();
    for (round, us) in finest {
        let of = labels([("part", FINEST.into())]);
        computed.add_count(&of, round, us as f64, ("us", 1));
    }
    computed.into()
}

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "the finest clock with which a program makes progress",
        of: "part=finest_clock",
        metric: Metric::of(P50).in_unit("us"),
        beside: Words::text("P3: 50 us (QNX), 70 us (RTLinux), 80 us (OSEKWorks)"),
    }],
    conclusions: &[Sentence {
        of: "part=finest_clock",
        says: Words::with(
            "The finest clock with which the program makes progress has a tick every {0}.",
            &[Metric::of(P50).in_unit("us")],
        ),
    }],
    published: &[PublishedOf {
        source: "P3 section 5.1",
        what: "the resolution below which the system hangs",
        published: "50 us (QNX), 70 us (RTLinux), 80 us (OSEKWorks)",
        of: "part=finest_clock",
        ours: Words::with("{0}", &[Metric::of(P50).in_unit("us")]),
    }],
    ..Statements::NONE
};

/// The labels of these executions.
pub(super) fn of_limited() -> Labels {
    labels([("tick", "thread".into()), ("what", LIMITED.into())])
}

const RESOLUTION: &str = "resolution_us";
/// The value of the label `part`.
const FINEST: &str = "finest_clock";
const LIMITED: &str = "execution_beside_ticks_that_end";
/// When ticks end: then P has had no time for ten times as long as it takes.
pub(super) const END_NS: u64 = 10 * PROGRAM_NS;
const WITHIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;

    #[test]
    fn the_finest_is_the_one_at_which_the_program_ends_before_the_ticks() {
        let mut cells = Cells::default();
        for (us, ns) in [
            (2u64, END_NS + 9_000_000),
            (5, END_NS),
            (7, 42_000_000),
            (50, 12_000_000),
        ] {
            let mut labels = of_limited();
            labels.insert(RESOLUTION.to_owned(), us.into());
            cells.add(&labels, 0, &[ns], 0);
        }
        let computed = compute(&cells, &Conditions::default()).cells;
        let finest = computed.get(&labels([("part", FINEST.into())]));
        assert_eq!(finest.and_then(|finest| finest.median_ns()), Some(7.0));
    }

    #[test]
    fn no_host_is_brought_there() {
        for effort in [Effort::Glance, Effort::Quick, Effort::Full] {
            assert_eq!(STUDY.cells(effort).len(), 0);
        }
    }
}
