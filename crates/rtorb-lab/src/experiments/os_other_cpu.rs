//! `os/other-cpu`: what it takes to wake a thread of another CPU, and to have octets from it: what a call to a component that is
//! not on the caller's CPU takes of the operating system.
//!
//! With both CPUs kept awake, and with both allowed to sleep between samples, which in a virtual machine means to be given away.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::experiments::os_services::BELOW_PROBE;
use crate::experiments::os_services::probe::{
    BUDGET_NS, LAST, MESSAGE_BYTES, OtherCpu, Question, Service, WARM_UP,
};
use crate::host::cpu_list;
use crate::processes::probe::{Answer, Probe, Question as ProbeQuestion};
use crate::results::rounds::Rounds;
use crate::results::{
    Highlight, ObtainedScheduling, Plot, PlotKind, Series, StatisticName, all_real_time, labels,
};

/// The experiment.
#[derive(Debug)]
pub struct OsOtherCpu;

impl Experiment for OsOtherCpu {
    fn name(&self) -> &'static str {
        "os/other-cpu"
    }

    fn title(&self) -> &'static str {
        "What it takes to wake a thread of another CPU, and to have octets from it"
    }

    fn reproduces(&self) -> &'static str {
        "P3 section 3 (the cost of each service of a platform)"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        labels([
            ("rounds", plan.rounds.into()),
            ("samples_per_round", plan.samples.into()),
            ("warm_up", WARM_UP.into()),
            ("last_samples_left_out", LAST.into()),
            ("pause_us_max", (PAUSE_NS_MAX / 1_000).into()),
            ("message_bytes", MESSAGE_BYTES.into()),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let Some(cpu) = other_cpu(context) else {
            return Ok(Outcome {
                complete: true,
                notes: vec![ONE_CPU.to_owned()],
                ..Outcome::default()
            });
        };
        let plan = Plan::of(context.effort);
        progress.begin(plan.rounds * SERVICES.len());
        let mut measured = Measured::default();
        let done = measure((context, plan, cpu), &mut measured, progress);
        Ok(Outcome {
            complete: is_complete(done)?,
            ..measured.outcome()
        })
    }
}

/// One that this process may use, and that is not the measured one.
fn other_cpu(context: &Context) -> Option<usize> {
    let measured = context.launcher.placement.cpu?;
    let allowed = context.host.cpus_allowed.as_deref().unwrap_or_default();
    cpu_list(allowed).into_iter().find(|cpu| *cpu != measured)
}

fn measure(
    (context, plan, cpu): (&Context, Plan, usize),
    measured: &mut Measured,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let fifo = context.launcher.placement.fifo;
    let mut probe = Probe::start(&context.launcher, "os/other-cpu")?;
    for round in 0..plan.rounds {
        context.begin_round(round);
        for service in SERVICES {
            for awake in [true, false] {
                if context.interrupted() {
                    return Err(LabError::Interrupted);
                }
                let question = Question {
                    service,
                    samples: plan.samples,
                    low_priority: fifo.map(|probe| probe.saturating_sub(BELOW_PROBE).max(1)),
                    pause_ns_max: PAUSE_NS_MAX,
                    seed: context.seed(round).unwrap_or(round as u64 + 1),
                    other: Some(OtherCpu { cpu, awake }),
                };
                let answer = probe.ask(&ProbeQuestion::Services(question), WITHIN)?;
                context.add_marks(answer.marks);
                measured.add((service, awake), &answer);
            }
            progress.step(&format!(
                "{}, round {} of {}",
                service.name(),
                round + 1,
                plan.rounds
            ));
        }
    }
    Ok(())
}

/// What was measured so far: each service, with the CPUs awake or not.
#[derive(Debug, Default)]
struct Measured {
    services: BTreeMap<(Service, bool), Rounds>,
    scheduling: Vec<ObtainedScheduling>,
}

impl Measured {
    fn add(&mut self, of: (Service, bool), answer: &Answer) {
        if let [samples_ns] = &answer.samples[..]
            && !samples_ns.is_empty()
        {
            self.services.entry(of).or_default().add(samples_ns);
        }
        for found in &answer.scheduling {
            if !self.scheduling.contains(found) {
                self.scheduling.push(found.clone());
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let real_time = all_real_time(&self.scheduling);
        Outcome {
            scheduling: self.scheduling.clone(),
            highlights: self.highlights(),
            series: self.series(real_time),
            columns: vec!["peer".to_owned(), "load".to_owned()],
            plots: plots(),
            notes: match real_time {
                true => Vec::new(),
                false => vec![NO_FIFO.to_owned()],
            },
            ..Outcome::default()
        }
    }

    fn series(&self, real_time: bool) -> Vec<Series> {
        let all = self.services.iter();
        let series = |((service, awake), rounds): (&(Service, bool), &Rounds)| {
            rounds.series(labels([
                ("service", service.label().into()),
                ("peer", peer(*awake).into()),
                ("real_time", real_time.into()),
            ]))
        };
        all.map(series).collect()
    }

    fn highlights(&self) -> Vec<Highlight> {
        let all = self.services.iter();
        let highlight = |((service, awake), rounds): (&(Service, bool), &Rounds)| {
            let max_us = rounds.recorder.statistics().max / 1e3;
            Some(Highlight {
                what: format!("{}, the other CPU {}", service.name(), peer(*awake)),
                value: rounds.p50.median()? / 1e3,
                unit: "us".to_owned(),
                beside: format!("at most {max_us:.1} us"),
            })
        };
        all.filter_map(highlight).collect()
    }
}

/// The value of the label `peer`.
fn peer(awake: bool) -> &'static str {
    match awake {
        true => "awake",
        false => "idle",
    }
}

fn plots() -> Vec<Plot> {
    vec![
        Plot {
            id: "other-cpu".to_owned(),
            title: "What a thread of another CPU costs".to_owned(),
            caption: "From just before it is asked until it runs, or its octets are there, with one reading of the clock.".to_owned(),
            kind: PlotKind::Bars,
            lines: vec!["peer".to_owned()],
            x: "service".to_owned(),
            x_title: "service".to_owned(),
            values: vec![StatisticName::P50, StatisticName::P99],
            log_y: true,
            ..Plot::default()
        },
        Plot {
            id: "other-cpu-percentiles".to_owned(),
            title: "The tail of each".to_owned(),
            caption: "How much longer it takes than usual, and how rarely.".to_owned(),
            kind: PlotKind::Percentiles,
            choose: vec!["peer".to_owned()],
            lines: vec!["service".to_owned()],
            log_y: true,
            ..Plot::default()
        },
    ]
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    /// Of each service in a round.
    samples: u32,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        let (rounds, samples) = match effort {
            Effort::Glance => (1, 50),
            Effort::Emulated { seeds } => (usize::from(seeds), 100),
            Effort::Quick => (3, 400),
            Effort::Full => (20, 500),
        };
        Self { rounds, samples }
    }
}

const SERVICES: [Service; 3] = [Service::Futex, Service::Unix, Service::Tcp];
/// Long enough for a CPU to fall asleep that may.
const PAUSE_NS_MAX: u64 = 400_000;
const WITHIN: Duration = Duration::from_nanos(BUDGET_NS);
const ONE_CPU: &str = "Nothing was measured: the process may use one CPU only.";
const NO_FIFO: &str =
    "Without SCHED_FIFO on one CPU each, what others do meanwhile is in the samples.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_is_told_with_the_other_cpu_awake_and_idle() {
        let mut measured = Measured::default();
        for round in 0..3 {
            for service in SERVICES {
                for awake in [true, false] {
                    let ns = if awake { 10_000 } else { 90_000 };
                    let answer = Answer {
                        samples: vec![vec![ns + round; 5]],
                        ..Answer::default()
                    };
                    measured.add((service, awake), &answer);
                }
            }
        }
        let outcome = measured.outcome();
        assert_eq!((outcome.series.len(), outcome.highlights.len()), (6, 6));
        for series in &outcome.series {
            let is_awake = series.labels["peer"] == "awake".into();
            let expected = if is_awake { 10_001.0 } else { 90_001.0 };
            assert_eq!((series.count, series.median_of_rounds()), (15, expected));
        }
        measured.add((Service::Tcp, true), &Answer::default());
        assert_eq!(measured.outcome().series[0].count, 15);
    }
}
