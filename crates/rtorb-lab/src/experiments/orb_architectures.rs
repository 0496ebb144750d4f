//! `orb/architectures`: the same client and load under each of the four architectures of P1, under ours, and under omniORB.

use std::time::Duration;

use super::mt_cubit::{self, CONDITIONS, EMULATED, EMULATED_HZ, HARDEST, Paper, Plan, ROUNDS};
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress};

/// The experiment.
#[derive(Debug)]
pub struct OrbArchitectures;

impl Experiment for OrbArchitectures {
    fn name(&self) -> &'static str {
        "orb/architectures"
    }

    fn title(&self) -> &'static str {
        "Which ORB architectures keep a high-priority client apart from low-priority ones"
    }

    fn reproduces(&self) -> &'static str {
        "P1 Figures 7 and 8"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        plan(effort).parameters()
    }

    fn uses_agent(&self) -> bool {
        true
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        mt_cubit::run(context, &plan(context.effort), Paper::P1, progress)
    }
}

fn plan(effort: Effort) -> Plan {
    match effort {
        Effort::Glance => Plan {
            run_of_others: GLANCE,
            low_clients: &[0, 2],
            effort,
            ..plan(Effort::Quick)
        },
        Effort::Emulated { seeds } => Plan {
            effort,
            rounds: usize::from(seeds),
            presets: &PRESETS[1..],
            with_peer: false,
            high_hz: EMULATED_HZ,
            run: EMULATED,
            run_of_others: EMULATED,
            conditions: &HARDEST,
            low_clients: &[0, 10],
            leaves_out: None,
        },
        Effort::Quick => Plan {
            effort,
            rounds: ROUNDS,
            presets: &PRESETS,
            with_peer: true,
            high_hz: 500,
            run: Duration::from_millis(200),
            run_of_others: Duration::from_millis(200),
            conditions: &HARDEST,
            low_clients: &[0, 50],
            leaves_out: Some(
                "A quick look: the hardest condition alone. `--full` adds the papers' own (10 Hz, requests without work) with \
                 their sample counts, both loads with and without work, and more numbers of low-priority clients; \
                 `orb/latency-jitter` has the 10 Hz load for the preset tao.",
            ),
        },
        // P1's 4,000 calls over the rounds, at 100 Hz: at its 20 Hz six contestants would take most of a day. A quarter of
        // them where the paper has none.
        Effort::Full => Plan {
            effort,
            rounds: ROUNDS,
            presets: &PRESETS,
            with_peer: true,
            high_hz: 100,
            run: Duration::from_secs(8),
            run_of_others: Duration::from_secs(2),
            conditions: &CONDITIONS,
            low_clients: &[0, 1, 5, 10, 20, 30, 40, 50],
            leaves_out: None,
        },
    }
}

const GLANCE: Duration = Duration::from_millis(50);
/// Ours first, then those of P1 in its order.
const PRESETS: [&str; 5] = ["default", "tao", "mt_orbix", "minicool", "corbaplus"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_and_little_time() {
        let parameters = plan(Effort::Emulated { seeds: 4 }).parameters();
        assert_eq!(parameters["rounds"], 4usize.into());
        assert!(parameters["paced_seconds"].number().unwrap() <= 4);
        let low_clients = parameters["low_clients"].to_string();
        assert_eq!(low_clients, "0 10");
    }
}
