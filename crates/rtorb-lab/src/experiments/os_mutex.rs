//! `os/mutex`: how long a high-priority thread waits for a mutex that a low-priority one holds, while a medium-priority one
//! wants nothing but the CPU: the unbounded priority inversion of P1 2.3, with and without a cure.
//!
//! All on one CPU. Low takes the mutex and lets high go, which wants it, then medium, which computes; then low works through
//! its critical section. With inheritance, high waits for the rest of that section; without, for medium too.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress};
use crate::results::by_round::ByRound;
use crate::results::statistics::{Recorder, median};
use crate::results::{
    Claim, Derived, Highlight, Labels, ObtainedScheduling, Published, Series, labels,
};
use three_threads::{Kind, SECTION_NS, SPIN_NS, Wait};

mod three_threads;

/// The experiment.
#[derive(Debug)]
pub struct OsMutex;

impl Experiment for OsMutex {
    fn name(&self) -> &'static str {
        "os/mutex"
    }

    fn title(&self) -> &'static str {
        "How long a high-priority thread waits for a mutex that a low-priority one holds while a medium one computes"
    }

    fn reproduces(&self) -> &'static str {
        "P1 section 2.3 (unbounded priority inversion by shared locks)"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        labels([
            ("rounds", rounds(effort).into()),
            ("critical_section_us", (SECTION_NS / 1_000).into()),
            ("medium_us_max", (SPIN_NS / 1_000).into()),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let (Some(_), Some(cpu)) = (
            context.launcher.placement.fifo,
            context.launcher.placement.cpu,
        ) else {
            return Ok(Outcome {
                complete: true,
                notes: vec![NEEDS_FIFO.to_owned()],
                ..Outcome::default()
            });
        };
        let mut measured = Measured::default();
        let rounds = rounds(context.effort);
        progress.begin(rounds);
        for round in 0..rounds {
            if context.interrupted() {
                break;
            }
            for kind in Kind::ALL {
                let wait = three_threads::run(kind, cpu)
                    .map_err(|error| LabError::process("os/mutex", error))?;
                measured.add(kind, wait);
            }
            std::thread::sleep(PAUSE);
            progress.step(&format!("round {} of {rounds}", round + 1));
        }
        let complete = measured.rounds == rounds * Kind::ALL.len();
        Ok(measured.outcome(cpu, complete))
    }
}

#[derive(Debug, Default)]
struct Measured {
    waits: BTreeMap<Kind, Vec<Wait>>,
    rounds: usize,
}

impl Measured {
    fn add(&mut self, kind: Kind, wait: Wait) {
        self.waits.entry(kind).or_default().push(wait);
        self.rounds += 1;
    }

    fn outcome(&self, cpu: usize, complete: bool) -> Outcome {
        let series = self.waits.keys().flat_map(|kind| self.series(*kind));
        Outcome {
            complete,
            scheduling: vec![ObtainedScheduling {
                process: "the three threads".to_owned(),
                threads: 3,
                policy: "SCHED_FIFO".to_owned(),
                priority: u32::from(three_threads::LOW),
                cpus: cpu.to_string(),
                real_time: true,
            }],
            highlights: self.highlights(),
            series: series.collect(),
            derived: self
                .waits
                .keys()
                .filter_map(|kind| self.beyond(*kind))
                .collect(),
            claims: self.claims(),
            published: self.published(),
            ..Outcome::default()
        }
    }

    fn series(&self, kind: Kind) -> [Series; 2] {
        [
            ("wait", waited as fn(&Wait) -> u64),
            ("critical_section", |wait| wait.section_ns),
        ]
        .map(|(what, value)| {
            let mut recorder = Recorder::new();
            let values = self.values(kind, value);
            values.iter().for_each(|ns| recorder.record(*ns as u64));
            Series {
                rounds_p50: values,
                ..Series::from_recorder(with_labels(kind, what), &recorder)
            }
        })
    }

    fn values(&self, kind: Kind, value: impl Fn(&Wait) -> u64) -> Vec<f64> {
        let waits = self.waits.get(&kind).into_iter().flatten();
        waits.map(|wait| value(wait) as f64).collect()
    }

    /// What high waited beyond the critical section of the same round.
    fn beyond(&self, kind: Kind) -> Option<Derived> {
        let rounds = self.beyond_ns(kind);
        Some(Derived {
            name: "wait_beyond_section".to_owned(),
            labels: with_labels(kind, "wait"),
            unit: "ns".to_owned(),
            value: median(&rounds)?,
            rounds,
        })
    }

    fn beyond_ns(&self, kind: Kind) -> Vec<f64> {
        let waits = self.waits.get(&kind).into_iter().flatten();
        waits
            .map(|wait| wait.waited_ns as f64 - wait.section_ns as f64)
            .collect()
    }

    fn wait_ns(&self, kind: Kind) -> Option<f64> {
        median(&self.values(kind, waited))
    }

    /// The wait may exceed the critical section by some switches, each as dear as one was here.
    fn claims(&self) -> Vec<Claim> {
        let claim = |kind: Kind| {
            let switch_ns = median(&self.values(kind, |wait| wait.switch_ns))?;
            let what = format!(
                "{}: the high-priority thread waits no longer than the critical section and {SWITCHES} switches of {:.1} us \
                 (us beyond the section)",
                kind.name(),
                switch_ns / 1e3
            );
            let beyond_us = ByRound::from(&self.beyond_ns(kind)[..]).map(|ns| ns / 1e3);
            let limit_us = f64::from(SWITCHES) * switch_ns / 1e3;
            let id = format!("wait-beyond-section.{}", kind.label());
            Claim::at_most(id, what, &beyond_us, limit_us, "us")
        };
        let cured = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Plain);
        cured.filter_map(claim).collect()
    }

    fn highlights(&self) -> Vec<Highlight> {
        let section_us = SECTION_NS as f64 / 1e3;
        let highlight = |kind: Kind| {
            Some(Highlight {
                what: format!("the high-priority thread's wait, {}", kind.name()),
                value: self.wait_ns(kind)? / 1e3,
                unit: "us".to_owned(),
                beside: format!("critical section {section_us:.0} us"),
            })
        };
        Kind::ALL.into_iter().filter_map(highlight).collect()
    }

    fn published(&self) -> Vec<Published> {
        let shown = |kind| self.wait_ns(kind).map(|ns| format!("{:.0} us", ns / 1e3));
        let (Some(plain), Some(inherited)) = (shown(Kind::Plain), shown(Kind::Inheritance)) else {
            return Vec::new();
        };
        vec![Published {
            source: "P1 section 2.3".to_owned(),
            what: "a medium-priority thread preempts a low-priority one that holds a lock which a high-priority one requires"
                .to_owned(),
            published: "can lead to unbounded priority inversion".to_owned(),
            ours: format!(
                "high waits {plain} with a plain mutex (medium computes for {} us and then stops), {inherited} with inheritance",
                SPIN_NS / 1_000
            ),
        }]
    }
}

fn waited(wait: &Wait) -> u64 {
    wait.waited_ns
}

fn with_labels(kind: Kind, what: &str) -> Labels {
    labels([
        ("orb", "rtorb_os".into()),
        ("mutex", kind.label().into()),
        ("what", what.into()),
        ("real_time", true.into()),
    ])
}

fn rounds(effort: Effort) -> usize {
    match effort {
        Effort::Glance | Effort::Emulated { .. } => 3,
        Effort::Quick => 51,
        Effort::Full => 1_001,
    }
}

/// Leaves the CPU to others between rounds, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(5);

/// To high, which finds the mutex taken; back to the holder; from it to high; and one more that the host may put in between.
const SWITCHES: u32 = 4;

const NEEDS_FIFO: &str = "Nothing was measured: without SCHED_FIFO there are no priorities to invert. `rtorb check` says how \
                          to get it.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Verdict;

    fn wait(waited_ns: u64) -> Wait {
        Wait {
            waited_ns,
            section_ns: 500_000,
            switch_ns: 2_000,
        }
    }

    #[test]
    fn the_promise_is_the_critical_section_and_a_few_switches() {
        let judged = |waits: &[u64]| {
            let mut measured = Measured::default();
            waits
                .iter()
                .for_each(|ns| measured.add(Kind::Inheritance, wait(*ns)));
            measured.add(Kind::Plain, wait(20_500_000));
            measured.outcome(0, true).claims[0].verdict
        };
        assert_eq!(judged(&[506_000, 507_000, 506_000]), Verdict::Held);
        assert_eq!(judged(&[900_000, 901_000, 900_000]), Verdict::Missed);
        assert_eq!(judged(&[506_000, 900_000, 506_000]), Verdict::NotJudged);
    }
}
