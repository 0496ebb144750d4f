//! `orb/event-channel`: what an event through the real-time event channel takes, beside a call; with one consumer and with many;
//! and what the urgent consumer feels of others that are slow, flooded, killed or hung.

use rtorb_results::{
    CellValue, Labels, ObtainedScheduling, Plot, PlotKind, Series, StatisticName, TableView, labels,
};

use crate::contestants::square_wave::system::{self, Role};
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::experiments::beside::Beside;
use crate::processes::load::Load;
use counted::CountedEvents;
use edges::Edges;
pub(super) use edges::served;
use fan_out::FanOut;
pub(super) use fan_out::{Receipt, receipts_ns};
use isolation::Isolation;
use plan::Plan;
use sequence::Sequences;

mod conclusions;
mod counted;
mod edges;
mod fan_out;
mod isolation;
mod plan;
mod sequence;

/// The experiment.
#[derive(Debug)]
pub struct OrbEventChannel;

impl Experiment for OrbEventChannel {
    fn name(&self) -> &'static str {
        "orb/event-channel"
    }

    fn title(&self) -> &'static str {
        "How long an event takes through the event channel, beside a call; to many consumers; and beside consumers that misbehave"
    }

    fn reproduces(&self) -> &'static str {
        "P4 Figure 12"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        let numbers = plan.fan_out.iter().map(ToString::to_string);
        labels([
            ("effort", effort.name().into()),
            ("rounds", plan.rounds.into()),
            ("isolated_rounds", plan.isolated_rounds.into()),
            ("edges_per_round", plan.edges.into()),
            ("edges_hz", (1_000_000_000 / plan::PERIOD_NS).into()),
            ("payload_bytes", 0usize.into()),
            ("consumers", numbers.collect::<Vec<_>>().join(" ").into()),
            ("low_consumers", plan.low_consumers.into()),
            ("events_in_sequence", plan.in_sequence.into()),
            ("priority_high", u32::from(Role::High.priority()).into()),
            ("priority_low", u32::from(Role::Low.priority()).into()),
            ("paced_seconds", (plan.paced_ns() / 1_000_000_000).into()),
            ("awake", effort.seeds().is_none().into()),
        ])
    }

    fn varies_load(&self) -> bool {
        true
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        let is_emulated = context.effort.seeds().is_some();
        let load = Beside::load(context);
        let mut measured = Measured {
            edges: Edges::of(load.to_string()),
            ..Measured::default()
        };
        progress.begin(plan.steps());
        let complete = is_complete(measured.take((context, &plan, &load), progress))?;
        let mut notes = system::notes(context);
        notes.push(ONE_WAY.to_owned());
        notes.push(if is_emulated {
            EDGES_ALONE.to_owned()
        } else {
            MANY.to_owned()
        });
        let real_time = context.launcher.placement.fifo.is_some();
        if !real_time {
            notes.push(NOT_REAL_TIME.to_owned());
        }
        notes.append(&mut measured.notes);
        Ok(Outcome {
            complete,
            scheduling: std::mem::take(&mut measured.scheduling),
            highlights: conclusions::highlights(&measured),
            series: measured.series(context, real_time),
            columns: Vec::new(),
            tables: tables(),
            plots: plots(),
            derived: conclusions::derived(&measured),
            claims: conclusions::claims(&measured),
            conclusions: conclusions::words(&measured),
            published: conclusions::published(&measured),
            lost: std::mem::take(&mut measured.edges.lost),
            notes,
        })
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
struct Measured {
    edges: Edges,
    fan_out: FanOut,
    isolation: Isolation,
    sequences: Sequences,
    counted: CountedEvents,
    scheduling: Vec<ObtainedScheduling>,
    notes: Vec<String>,
}

impl Measured {
    /// One part after another; one that fails leaves the others alone.
    fn take(
        &mut self,
        (context, plan, load): (&Context, &Plan, &Load),
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let edges = self
            .edges
            .measure((context, plan, load), &mut self.notes, progress);
        // Also of a run that was interrupted.
        self.scheduling.append(&mut self.edges.scheduling);
        edges?;
        if plan.loads == [Beside::LoadOfMachine] {
            return Ok(());
        }
        let fan_out = self.fan_out.measure((context, plan), progress);
        self.note("the fan-out", fan_out)?;
        let isolation = self.isolation.measure((context, plan), progress);
        self.scheduling.append(&mut self.isolation.scheduling);
        self.note("beside other consumers", isolation)?;
        let sequences = self.sequences.measure((context, plan), progress);
        self.note("the sequences", sequences)?;
        let counted = self.counted.measure((context, plan), progress);
        self.note("the counts", counted)
    }

    fn note(&mut self, what: &str, done: Result<(), LabError>) -> Result<(), LabError> {
        match done {
            Ok(()) => Ok(()),
            Err(LabError::Interrupted) => Err(LabError::Interrupted),
            Err(error) => {
                self.notes.push(format!("{what}: not measured: {error}"));
                Ok(())
            }
        }
    }

    fn series(&self, context: &Context, real_time: bool) -> Vec<Series> {
        let pulse = system::pulse_of(context, Role::High);
        let mut series = self.edges.series(pulse.name());
        series.extend(self.fan_out.series());
        series.extend(self.isolation.series());
        series.extend(self.counted.series());
        for one in &mut series {
            one.labels.insert("orb".to_owned(), "rtorb".into());
            one.labels.insert("real_time".to_owned(), real_time.into());
        }
        series
    }
}

fn tables() -> Vec<TableView> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let part = |part: &str| labels([("part", part.into())]);
    let table = |id: &str, title: &str, of: Labels| TableView {
        id: id.to_owned(),
        title: title.to_owned(),
        of,
        values: vec![CellValue::Median, CellValue::P99],
        ..TableView::default()
    };
    vec![
        TableView {
            caption: "From the edge on the input until the output is set.".to_owned(),
            rows: words(&["transport", "load"]),
            columns: words(&["path"]),
            ..table("edge-to-output", "A call, and an event through the channel", part("call"))
        },
        TableView {
            caption: "From sending an event until consumers have it: the first of them, the urgent one (high), the median one, the last one. \
                      Mixed: the others are less urgent; equal: all are urgent.".to_owned(),
            rows: words(&["priorities", "consumers"]),
            columns: words(&["receipt"]),
            ..table("fan-out", "One event to many consumers", part(fan_out::PART))
        },
        TableView {
            caption: "One event after another, as fast as they can be sent, until the last consumer has the last one.".to_owned(),
            rows: words(&["consumers"]),
            columns: words(&["priorities"]),
            values: vec![CellValue::CallsPerSecond],
            ..table("sustained", "Events a second", part(fan_out::SUSTAINED))
        },
        TableView {
            caption: format!("From sending an event until the urgent consumer has it. {OTHERS}"),
            rows: words(&["flood"]),
            columns: words(&["transport"]),
            ..table("isolation", "The urgent consumer beside others", part(isolation::PART))
        },
        TableView {
            caption: "The 99th percentile beside others, by that alone in the same round: the median over rounds.".to_owned(),
            derived: conclusions::BESIDE_TO_ALONE.to_owned(),
            rows: words(&["flood"]),
            columns: words(&["transport"]),
            ..table("isolation-ratio", "What the urgent consumer feels of others", Labels::new())
        },
        TableView {
            caption: "Where there are any, queues were full while the urgent consumer was measured; over all rounds.".to_owned(),
            derived: conclusions::DISCARDED.to_owned(),
            rows: words(&["flood"]),
            columns: words(&["transport"]),
            ..table("isolation-discards", "Events for others that were discarded", Labels::new())
        },
        TableView {
            caption: "In the process of the channel.".to_owned(),
            rows: words(&["counted"]),
            columns: words(&["consumers"]),
            values: vec![CellValue::Median],
            ..table("counts", "What an event costs besides time", part(counted::PART))
        },
    ]
}

fn plots() -> Vec<Plot> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let plot = |id: &str, title: &str, kind| Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        kind,
        ..Plot::default()
    };
    vec![
        Plot {
            caption: "P4's figure is of the event alone; beside it the same edge by a call, in the same run.".to_owned(),
            of: labels([("part", "call".into())]),
            choose: words(&["transport", "load"]),
            lines: words(&["path"]),
            x_title: "from the edge on the input until the output is set, us".to_owned(),
            log_x: true,
            log_y: true,
            ..plot("event-and-call", "An event through the channel (P4 Figure 12), and a call", PlotKind::Histogram)
        },
        Plot {
            caption: "The first consumer that has it, the urgent one (high), the median one and the last one.".to_owned(),
            of: labels([("part", fan_out::PART.into())]),
            choose: words(&["priorities"]),
            lines: words(&["receipt"]),
            x: "consumers".to_owned(),
            x_title: "consumers".to_owned(),
            values: vec![StatisticName::P50],
            log_x: true,
            log_y: true,
            ..plot("fan-out", "When consumers have an event, against their number", PlotKind::Lines)
        },
        Plot {
            caption: "Sent as fast as the channel takes them; none is lost.".to_owned(),
            of: labels([("part", fan_out::SUSTAINED.into())]),
            lines: words(&["priorities"]),
            x: "consumers".to_owned(),
            x_title: "consumers".to_owned(),
            values: vec![StatisticName::CallsPerSecond],
            log_x: true,
            log_y: true,
            ..plot("sustained", "Events a second, against the number of consumers", PlotKind::Lines)
        },
        Plot {
            caption: format!("Where nothing is felt of the others, the lines are one. {OTHERS}"),
            of: labels([("part", isolation::PART.into())]),
            choose: words(&["transport"]),
            lines: words(&["flood"]),
            log_y: true,
            ..plot("isolation", "The urgent consumer beside others that misbehave", PlotKind::Percentiles)
        },
    ]
}

const ONE_WAY: &str = "Nobody answers an event: its series have no `round_trip`. The channel sends an event on as it comes, in the thread \
                       that received it, where consumer and supplier are equally urgent. On this one CPU it does so once the \
                       supplier, which waits for no answer, sleeps until its next edge: `request` counts that, and a call has none of it.";
const MANY: &str = "Consumers share processes: those that a step of the sweep adds are in one, those beside the urgent one in another; \
                    each has a connection of its own. All processes are on one CPU.";
const OTHERS: &str = "The others: absent (there are none), idle (nothing is sent to them), served (they are sent events, and take them), slow (they \
                      sleep over each), flooded (they are sent more at a time than their queues hold), killed, hung (one of them is stopped).";
const EDGES_ALONE: &str = "In an emulated machine edges are measured alone: many consumers and those that misbehave would take its emulator \
                           too long.";
const NOT_REAL_TIME: &str =
    "Without SCHED_FIFO no event has a priority: `role` says what was asked for.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_is_short_and_an_emulated_one_has_edges_alone() {
        let paced = |effort| OrbEventChannel.parameters(effort)["paced_seconds"].number();
        assert!((5..=20).contains(&paced(Effort::Quick).unwrap()));
        assert!(paced(Effort::Emulated { seeds: 4 }).unwrap() <= 4);
        let names: Vec<String> = plots().into_iter().map(|plot| plot.id).collect();
        assert_eq!(names.len(), 4);
    }
}
