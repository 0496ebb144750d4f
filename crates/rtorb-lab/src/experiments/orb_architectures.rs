//! `orb/architectures`: the same client and load under each of the four architectures of P1, under ours, and under omniORB.
//!
//! One study has the kind case: server threads preempt the low-priority clients, so that few requests meet. The other one
//! ([`p1`]) has the conditions of P1, in which they meet.

use super::mt_cubit::{
    self, LOADS, LineUp, NUMBERS, PRESET, Servants, WORKS, is_hardest, kernels, run_ms,
};
use crate::contestants::OMNIORB;
use crate::experiments::prelude::*;
use crate::suite::{Member, Suite};

mod p1;

/// The experiment.
pub static SUITE: Suite = Suite {
    name: KIND.name,
    title: KIND.title,
    reproduces: KIND.reproduces,
    studies: |_| {
        const ALL: &[&dyn Member] = &[&p1::STUDY, &KIND];
        ALL
    },
    notes: |_| Vec::new(),
};

/// The kind case.
const KIND: Study<LineUp> = Study {
    name: "orb/architectures",
    title: "Which ORB architectures keep a high-priority client apart from low-priority ones",
    reproduces: "P1 Figures 7 and 8",
    // P1's 4,000 calls over the rounds of a full run, at 100 Hz: at its 20 Hz six contestants would take most of a day.
    amounts: Amounts {
        glance: 50,
        emulated: 100,
        quick: [6, 175],
        full: [8, 5_000],
        samples: "run_ms",
    },
    factors: &[
        LOADS,
        WORKS,
        NUMBERS,
        Factor::texts(
            PRESET,
            &[
                "default",
                "tao",
                "mt_orbix",
                "minicool",
                "corbaplus",
                OMNIORB,
            ],
        )
        .or_absent(),
    ],
    parameters: &mt_cubit::parameters(HIGH_HZ, RUN_OF_OTHERS_MS, Servants::One),
    run_ms: |cell, effort| run_ms(cell, effort, (&KIND.amounts, RUN_OF_OTHERS_MS)),
    leaves_out,
    obstacle: |context| {
        let is_p1 = context.effort.seeds().is_some() && context.other_cpu().is_some();
        is_p1.then_some(NOT_KIND)
    },
    notes: |context| {
        let has_peer = context.effort.seeds().is_none();
        let peer = has_peer.then(|| OMNIORB_WAITS.to_owned());
        mt_cubit::notes(context, QUICK)
            .into_iter()
            .chain(peer)
            .collect()
    },
    emulated: Some(Emulated::unloaded(7.0)),
    kernels: Some(kernels::architectures),
    ..mt_cubit::study(|context, cells| {
        LineUp::start(context, cells, Servants::One, HIGH_HZ.of(context.effort))
    })
};

fn leaves_out(cell: &Cell<'_>, effort: Effort) -> bool {
    // Under the conditions of P1 a quick run has these.
    let is_left_to_p1 = |preset: &&str| effort == Effort::Quick && cell.is(PRESET, preset);
    mt_cubit::leaves_out(cell, effort, &[0, 50])
        || (cell.has(PRESET) && !effort.is_full() && !is_hardest(cell))
        || (effort.seeds().is_some() && cell.is(PRESET, "default"))
        || P1S.iter().any(is_left_to_p1)
}

const OMNIORB_WAITS: &str = "omniORB runs with its own defaults at both ends; its acceptor thread polls every 50 ms and may then hold \
                             up a request by up to a millisecond (`-ORBconnectionWatchPeriod` changes that).";
const NOT_KIND: &str = "This machine is for P1's conditions alone.";
/// The architectures of P1's other ORBs.
const P1S: [&str; 3] = ["mt_orbix", "minicool", "corbaplus"];
/// How often the high-priority client calls: more than 1,000 times in all rounds, so that there is a 99th percentile.
const HIGH_HZ: ByEffort = ByEffort {
    glance: 500,
    emulated: 1_000,
    quick: 1_000,
    full: 100,
};
/// How long each run takes under a load that is not the papers'. A quarter of the calls where the paper has none.
const RUN_OF_OTHERS_MS: ByEffort = ByEffort {
    glance: 50,
    emulated: 100,
    quick: 175,
    full: 1_300,
};
const QUICK: &str = "A quick look: without P1's conditions, the hardest load alone, and that without P1's architectures. `--full` adds the papers' own (10 Hz, requests without work) with \
                     their sample counts, both loads with and without work, and more numbers of low-priority clients; \
                     `orb/latency-jitter` has the 10 Hz load for the preset tao.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::experiments::mt_cubit::LOW_CLIENTS;

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_and_little_time() {
        let parameters = KIND.parameters(Effort::Emulated {
            seeds: 4,
            full: false,
        });
        assert_eq!(parameters["rounds"], 4usize.into());
        assert!(parameters["paced_seconds"].number().unwrap() <= 4);
        assert_eq!(parameters[LOW_CLIENTS], "0 10".into());
    }
}
