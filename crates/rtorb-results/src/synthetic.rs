//! Results whose numbers are made up, for the tests of what reads results.

use std::sync::OnceLock;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rtorb_host::Host;

use crate::campaign::{Kernel, System};
use crate::runs::Run;
use crate::statistics::Recorder;
use crate::systems::OfSystem;
use crate::{Labels, Results, Series, labels};

/// Results of this experiment with these series, measured in real time with the effort `quick`.
pub fn results(experiment: &str, series: Vec<Series>) -> Results {
    let host = HOST.get_or_init(Host::describe).clone();
    Results {
        reproduces: "nothing".to_owned(),
        run: "2026-11-21T00:00:00Z-1".to_owned(),
        started: "2026-11-21T00:00:00Z".to_owned(),
        duration_s: 1.0,
        complete: true,
        parameters: labels([("effort", "quick".into()), ("rounds", 5u64.into())]),
        scheduling: vec![crate::ObtainedScheduling {
            process: "made up".to_owned(),
            threads: 1,
            policy: "SCHED_FIFO".to_owned(),
            priority: 50,
            cpus: "0".to_owned(),
            real_time: true,
        }],
        series,
        ..Results::of(experiment.to_owned(), "made up".to_owned(), host)
    }
}

/// A system in a campaign, with these results. It has PREEMPT_RT if its preemption model is `full`.
pub fn of_system(preempt: &str, mut results: Results) -> OfSystem {
    results.host.preempt_rt = preempt == "full";
    OfSystem {
        system: system(preempt),
        results: vec![results],
    }
}

/// A system of a campaign.
pub fn system(preempt: &str) -> System {
    System {
        kernel: Kernel {
            name: "6.12".to_owned(),
            release: String::new(),
            image: "vmlinuz".into(),
            sha256: String::new(),
            package: None,
            board: None,
        },
        preempt: preempt.to_owned(),
    }
}

/// A series of these samples, in nanoseconds.
pub fn series(labels: Labels, samples_ns: impl IntoIterator<Item = u64>) -> Series {
    let mut recorder = Recorder::new();
    samples_ns
        .into_iter()
        .for_each(|sample_ns| recorder.record(sample_ns));
    Series::from_recorder(labels, &recorder)
}

/// A run with an id of its own.
pub fn run(id: &str, mut all: Vec<Results>) -> Run {
    for results in &mut all {
        id.clone_into(&mut results.run);
    }
    Run {
        name: id.to_owned(),
        folder: id.into(),
        results: all,
    }
}

/// Numbers as from a normal distribution, the same for the same seed.
pub struct Normal {
    sequence: SplitMix64,
}

impl Normal {
    /// The sequence of this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            sequence: SplitMix64::seed_from_u64(seed),
        }
    }

    /// The next number, of mean 0 and variance 1, by Box and Muller.
    pub fn draw(&mut self) -> f64 {
        let (first, second) = (self.uniform(), self.uniform());
        (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
    }

    /// Above 0, up to 1.
    fn uniform(&mut self) -> f64 {
        ((self.sequence.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

/// Described once: it takes long beside what the tests do with it.
static HOST: OnceLock<Host> = OnceLock::new();
