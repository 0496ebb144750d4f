//! `orb/payload`: how long a call takes from a digital input to a digital output as the data that it carries grow.

use std::collections::BTreeMap;

use crate::contestants::square_wave::recorded::Recorded;
use crate::contestants::square_wave::system::{self, Role, System};
use crate::contestants::square_wave::{Path, Run};
use crate::contestants::{Orb, Transport};
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::results::{
    LostRound, ObtainedScheduling, Plot, PlotKind, Series, StatisticName, labels,
};

mod conclusions;

/// The experiment.
#[derive(Debug)]
pub struct OrbPayload;

impl Experiment for OrbPayload {
    fn name(&self) -> &'static str {
        "orb/payload"
    }

    fn title(&self) -> &'static str {
        "How long a call takes from a digital input to a digital output, against the size of the process data image that it carries"
    }

    fn reproduces(&self) -> &'static str {
        "P4 Figure 10"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        let paced_ns = (plan.rounds * PAYLOADS.len() * plan.edges) as u64 * PERIOD_NS;
        let sizes = PAYLOADS.map(|octets| octets.to_string()).join(" ");
        labels([
            ("effort", effort.name().into()),
            ("rounds", plan.rounds.into()),
            ("edges_per_round", plan.edges.into()),
            ("edges_hz", (1_000_000_000 / PERIOD_NS).into()),
            ("payload_bytes", sizes.into()),
            ("preset", PRESET.into()),
            ("transport", TRANSPORT.label().into()),
            ("priority", u32::from(Role::High.priority()).into()),
            ("paced_seconds", (paced_ns / 1_000_000_000).into()),
            ("awake", effort.seeds().is_none().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        let mut measured = Measured::default();
        let complete = is_complete(measured.take(context, plan, progress))?;
        let notes = system::notes(context);
        let pulse = system::pulse_of(context, Role::High);
        let real_time = context.launcher.placement.fifo.is_some();
        Ok(Outcome {
            complete,
            highlights: conclusions::highlights(&measured),
            series: measured.series(pulse.name(), real_time),
            scheduling: std::mem::take(&mut measured.scheduling),
            columns: vec!["transport".to_owned()],
            tables: Vec::new(),
            plots: plots(),
            derived: conclusions::derived(&measured),
            claims: Vec::new(),
            lost: std::mem::take(&mut measured.lost),
            conclusions: conclusions::words(&measured),
            published: conclusions::published(&measured),
            notes,
        })
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    /// Of each size in each round.
    edges: usize,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Glance | Effort::Emulated { .. } => Self {
                rounds: 1,
                edges: 20,
            },
            Effort::Quick => Self {
                rounds: 2,
                edges: 350,
            },
            Effort::Full => Self {
                rounds: 10,
                edges: 1_000,
            },
        }
    }

    fn run(&self, system: &System, payload_bytes: usize) -> Run {
        Run {
            duration_ns: self.edges as u64 * PERIOD_NS,
            payload_bytes,
            path: Path::Call,
            waves: vec![system.wave(Role::High, PERIOD_NS, 0)],
        }
    }
}

/// Everything that was measured, by the octets of data.
#[derive(Debug, Default)]
struct Measured {
    sizes: BTreeMap<usize, Recorded>,
    scheduling: Vec<ObtainedScheduling>,
    lost: Vec<LostRound>,
}

impl Measured {
    fn take(
        &mut self,
        context: &Context,
        plan: Plan,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let mut system = System::start(context, TRANSPORT, &[Role::High])?;
        let few = Plan {
            rounds: 1,
            edges: 10,
        };
        self.scheduling = system.roll_call(&few.run(&system, 0))?;
        progress.begin(plan.rounds * PAYLOADS.len());
        for round in 0..plan.rounds {
            for turn in 0..PAYLOADS.len() {
                if context.interrupted() {
                    return Err(LabError::Interrupted);
                }
                // What comes first in a round differs from round to round.
                let payload_bytes = PAYLOADS[(turn + round) % PAYLOADS.len()];
                match system.run(&plan.run(&system, payload_bytes)) {
                    Ok(waves) => {
                        let recorded = self.sizes.entry(payload_bytes).or_default();
                        waves
                            .iter()
                            .for_each(|latencies| recorded.add(round, latencies));
                    }
                    Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                    Err(error) => self.lost.push(LostRound {
                        round,
                        what: format!("{payload_bytes} octets"),
                        why: error.to_string(),
                    }),
                }
                progress.step(&format!(
                    "round {} of {}: {payload_bytes} octets",
                    round + 1,
                    plan.rounds
                ));
            }
        }
        Ok(())
    }

    fn series(&self, pulse: &str, real_time: bool) -> Vec<Series> {
        let series = self.sizes.iter().flat_map(|(payload_bytes, recorded)| {
            let labels = labels([
                ("orb", Orb::Rtorb.label().into()),
                ("preset", PRESET.into()),
                ("transport", TRANSPORT.label().into()),
                ("payload_bytes", (*payload_bytes).into()),
                ("pulse", pulse.into()),
                ("real_time", real_time.into()),
            ]);
            recorded.series(&labels).collect::<Vec<_>>()
        });
        series.collect()
    }
}

fn plots() -> Vec<Plot> {
    let of = labels([("part", "call".into())]);
    vec![
        Plot {
            id: "latency-against-payload".to_owned(),
            title: "From best to worst against the size of the process data image (P4 Figure 10)"
                .to_owned(),
            caption: "From the edge on the input until the output is set.".to_owned(),
            // No size and 64 KiB are on no scale of numbers together.
            kind: PlotKind::Bars,
            of: of.clone(),
            x: "payload_bytes".to_owned(),
            x_title: "octets of data in a call".to_owned(),
            values: vec![
                StatisticName::Min,
                StatisticName::P50,
                StatisticName::P99,
                StatisticName::Max,
            ],
            log_y: true,
            ..Plot::default()
        },
        Plot {
            id: "payload-percentiles".to_owned(),
            title: "The tail, for each size".to_owned(),
            caption: "From the edge on the input until the output is set.".to_owned(),
            kind: PlotKind::Percentiles,
            of,
            lines: vec!["payload_bytes".to_owned()],
            log_y: true,
            ..Plot::default()
        },
    ]
}

/// P4's example is an image of 1 KiB.
const PAYLOADS: [usize; 7] = [0, 64, 256, 1_024, 4_096, 16_384, 65_536];
const TRANSPORT: Transport = Transport::Tcp;
const PRESET: &str = "tao";
/// 1,000 edges a second, a square wave of 500 Hz.
const PERIOD_NS: u64 = 1_000_000;
