//! `orb/latency-jitter`: what a high-priority client feels of more and more low-priority ones, with lanes.

use std::time::Duration;

use super::mt_cubit::{self, CONDITIONS, EMULATED, EMULATED_HZ, EXTREMES, Paper, Plan, ROUNDS};
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress};

/// The experiment.
#[derive(Debug)]
pub struct OrbLatencyJitter;

impl Experiment for OrbLatencyJitter {
    fn name(&self) -> &'static str {
        "orb/latency-jitter"
    }

    fn title(&self) -> &'static str {
        "What a high-priority client feels of more and more low-priority ones"
    }

    fn reproduces(&self) -> &'static str {
        "P0 Figures 4 to 6 (MT_Cubit)"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        plan(effort).parameters()
    }

    fn uses_agent(&self) -> bool {
        true
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        mt_cubit::run(context, &plan(context.effort), Paper::P0, progress)
    }
}

fn plan(effort: Effort) -> Plan {
    match effort {
        Effort::Glance => Plan {
            effort,
            run: GLANCE,
            run_of_others: GLANCE,
            low_clients: &[0, 2],
            ..plan(Effort::Quick)
        },
        // Two presets, since what a kernel does to a call depends on how threads share a connection.
        Effort::Emulated { seeds } => Plan {
            effort,
            rounds: usize::from(seeds),
            presets: &["tao", "default"],
            with_peer: false,
            high_hz: EMULATED_HZ,
            run: EMULATED,
            run_of_others: EMULATED,
            conditions: &EXTREMES,
            low_clients: &[0, 10],
            leaves_out: None,
        },
        Effort::Quick => Plan {
            effort,
            rounds: ROUNDS,
            presets: &["tao"],
            with_peer: false,
            // More often than in the papers: 100 calls in each run, so that there is a 99th percentile.
            high_hz: 250,
            run: Duration::from_millis(400),
            run_of_others: Duration::from_millis(400),
            conditions: &EXTREMES,
            low_clients: &[0, 1, 10, 50],
            leaves_out: Some(
                "A quick look: the high-priority client calls 250 times a second instead of 20, under the papers' load and under the \
                 hardest one. `--full` has the papers' rate and sample counts, the loads between, and more numbers of \
                 low-priority clients.",
            ),
        },
        // The papers' rate, and their 4,000 calls over the rounds; a fifth of them where the papers have none.
        Effort::Full => Plan {
            effort,
            rounds: ROUNDS,
            presets: &["tao"],
            with_peer: false,
            high_hz: 20,
            run: Duration::from_secs(40),
            run_of_others: Duration::from_secs(8),
            conditions: &CONDITIONS,
            low_clients: &[0, 1, 5, 10, 20, 30, 40, 50],
            leaves_out: None,
        },
    }
}

const GLANCE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_and_little_time() {
        let parameters = plan(Effort::Emulated { seeds: 4 }).parameters();
        assert_eq!(parameters["rounds"], 4usize.into());
        assert!(parameters["paced_seconds"].number().unwrap() <= 5);
        let low_clients = parameters["low_clients"].to_string();
        assert_eq!(low_clients, "0 10");
    }
}
