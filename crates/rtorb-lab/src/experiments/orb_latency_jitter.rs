//! `orb/latency-jitter`: what a high-priority client feels of more and more low-priority ones, with lanes.

use super::mt_cubit::{
    self, LOADS, LOW_CLIENTS, LineUp, NUMBERS, PRESET, Servants, WORKS, is_hardest, is_papers,
    kernels, run_ms, says,
};
use super::transports::TRANSPORTS;
use crate::contestants::Transport;
use crate::experiments::prelude::*;

/// The experiment.
pub const STUDY: Study<LineUp> = Study {
    name: "orb/latency-jitter",
    title: "What a high-priority client feels of more and more low-priority ones",
    reproduces: "P0 Figures 4 to 6 (MT_Cubit)",
    // P0's 4,000 calls of each low-priority client over the rounds of a full run.
    amounts: Amounts {
        glance: 50,
        emulated: 100,
        quick: [6, 350],
        full: [8, 50_000],
        samples: "run_ms",
    },
    factors: &[
        LOADS,
        WORKS,
        NUMBERS,
        // In emulated machines two presets: what a kernel does to a call depends on how threads share a connection.
        Factor::texts(PRESET, &["tao", "default"]).or_absent(),
        TRANSPORTS,
    ],
    fixed: "operation=octet",
    parameters: &mt_cubit::parameters(HIGH_HZ, RUN_OF_OTHERS_MS, Servants::Each),
    run_ms: |cell, effort| run_ms(cell, effort, (&STUDY.amounts, RUN_OF_OTHERS_MS)),
    leaves_out,
    says: says::LATENCY_JITTER,
    notes: |context| mt_cubit::notes(context, QUICK),
    emulated: Some(Emulated {
        loads: EmulatedLoads::NoneAndMix,
        ..Emulated::unloaded(7.0)
    }),
    kernels: Some(kernels::latency_jitter),
    ..mt_cubit::study(|context, cells| {
        LineUp::start(context, cells, Servants::Each, HIGH_HZ.of(context.effort))
    })
};

fn leaves_out(cell: &Cell<'_>, effort: Effort) -> bool {
    let is_between = || !is_papers(cell) && !is_hardest(cell);
    // Other transports are compared beside none and beside most, and where nothing is shared between priorities.
    let is_other = Transport::of(cell) != Transport::Tcp;
    let is_compared = || {
        let is_tao = cell.is(PRESET, "tao") && effort.seeds().is_none();
        is_tao && is_hardest(cell) && [0, 50].contains(&cell.number(LOW_CLIENTS))
    };
    mt_cubit::leaves_out(cell, effort, &[0, 10, 50])
        || (is_other && !is_compared())
        || (cell.has(PRESET) && !effort.is_full() && is_between())
        || (effort.seeds().is_none() && cell.is(PRESET, "default"))
}

/// How often the high-priority client calls. The papers' rate is that of a full run; a quick one has 175 calls in each run, and
/// more than 1,000 in all, so that there is a 99th percentile.
const HIGH_HZ: ByEffort = ByEffort {
    glance: 250,
    emulated: 1_000,
    quick: 500,
    full: 20,
};
/// How long each run takes under a load that is not the papers'. Where they have none, 1,000 calls in all rounds.
const RUN_OF_OTHERS_MS: ByEffort = ByEffort {
    glance: 50,
    emulated: 100,
    quick: 350,
    full: 6_500,
};
const QUICK: &str = "A quick look: the high-priority client calls 500 times a second instead of 20, under the papers' load and under \
                     the hardest one. `--full` has the papers' rate and sample counts, the loads between, and more numbers of \
                     low-priority clients.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use rtorb_results::LabelValue;

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_and_little_time() {
        let parameters = STUDY.parameters(Effort::Emulated {
            seeds: 4,
            full: false,
        });
        assert_eq!(parameters["rounds"], 4usize.into());
        assert!(parameters["paced_seconds"].number().unwrap() <= 5);
        assert_eq!(parameters[LOW_CLIENTS], "0 10".into());
    }

    #[test]
    fn every_load_is_measured_without_low_priority_clients_too() {
        let count = |effort, low_clients: usize| {
            let cells = STUDY.cells(effort);
            let of =
                |cell: &&rtorb_results::Labels| cell.get(LOW_CLIENTS) == Some(&low_clients.into());
            cells.iter().filter(of).count()
        };
        assert_eq!((count(Effort::Quick, 0), count(Effort::Quick, 50)), (4, 4));
        assert_eq!((count(Effort::Full, 0), count(Effort::Full, 50)), (6, 6));
        let full = STUDY.parameters(Effort::Full);
        // Over two more transports, beside none and beside 50; and the raw exchange.
        let seconds = 8 * (8 * 50_000 + (3 * 8 + 2 * 2 + 1) * 6_500) / 1_000;
        assert_eq!(full["paced_seconds"], LabelValue::Number(seconds));
    }
}
