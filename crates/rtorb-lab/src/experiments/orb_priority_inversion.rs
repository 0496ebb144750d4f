//! `orb/priority-inversion`: four clients, the more often one calls the higher its priority: is their latency a staircase?
//!
//! All on one CPU. Contestants take turns within each round.

use crate::contestants::{OMNIORB, Transport};
use crate::experiments::prelude::*;
use crate::experiments::transports::{TRANSPORT, TRANSPORTS};
use line_up::LineUp;

mod kernels;
mod line_up;
mod says;

/// The experiment.
pub const STUDY: Study<LineUp> = Study {
    name: "orb/priority-inversion",
    title: "Whether a client that calls more often, with a higher priority, is never slower than one that calls less often",
    reproduces: "P2 Figures 3 and 4",
    // Over the rounds of a full run, the paper's 1,000 calls of the client that calls once a second.
    amounts: Amounts {
        glance: 110,
        emulated: 200,
        quick: [6, 340],
        full: [8, 125_000],
        samples: "run_ms",
    },
    factors: &[
        Factor::texts("preset", &[PROMISED, "default", OMNIORB]),
        // Processor time of a request, of whichever client.
        Factor::numbers(WORK, &[0, 500]),
        TRANSPORTS,
    ],
    fixed: "operation=octet",
    parameters: &[("run_with_work_ms", Value::ByEffort(RUN_WITH_WORK_MS))],
    run_ms: |cell, effort| match cell.number(WORK) {
        0 => STUDY.amounts.of(effort).1,
        _ => RUN_WITH_WORK_MS.of(effort),
    },
    agents_max: 1,
    leaves_out: |cell, effort| {
        let is_other = Transport::of(cell) != Transport::Tcp;
        match effort {
            Effort::Emulated { .. } => is_other || cell.is("preset", OMNIORB),
            // Nothing is claimed of it.
            Effort::Quick if cell.is("preset", "default") => true,
            // Other transports are measured where the staircase shows most.
            Effort::Quick | Effort::Glance | Effort::Full => {
                is_other && (cell.number(WORK) == 0 || !cell.is("preset", PROMISED))
            }
        }
    },
    plots,
    says: says::SAYS,
    notes: |context| {
        let cold = context.effort.seeds().is_none().then(|| COLD.to_owned());
        cold.into_iter().chain(context.if_quick(QUICK)).collect()
    },
    emulated: Some(Emulated::unloaded(5.0)),
    kernels: Some(kernels::view),
    ..Study::with(LineUp::start)
};

fn plots() -> Vec<Plot> {
    vec![Plot::bars("staircase", "Latency by rate")
        .caption(
            "Medians. The client that calls most often has the highest priority and stands right. If priorities are kept, the bars \
             of a colour fall from left to right, or are even. With work it shows most.",
        )
        .x("rate_hz")
        .x_title("calls a second")
        .choose([WORK, "part"])
        .lines(["preset", TRANSPORT])]
}

/// The preset of which a staircase is claimed.
const PROMISED: &str = "tao";
const WORK: &str = "servant_work_us";
const CLIENTS: usize = 4;
/// As in P2.
const RATES_HZ: [usize; CLIENTS] = [20, 10, 5, 1];
/// The paper's rates are multiplied by this.
const FASTER: ByEffort = ByEffort {
    glance: 10,
    emulated: 20,
    quick: 10,
    full: 1,
};
/// SCHED_FIFO by rate: what the processes themselves have, 50, lies between the first and the others.
const PRIORITIES: [u8; CLIENTS] = [60, 45, 30, 15];
/// How long each run takes in which a request holds its servant. In the others it is as short as the paper's.
const RUN_WITH_WORK_MS: ByEffort = ByEffort {
    glance: 110,
    emulated: 200,
    quick: 340,
    full: 12_500,
};
const COLD: &str = "Without work, the rates alone make differences: a client that seldom calls finds colder caches than one that \
                    often does. This is in favour of the staircase; with work it is little beside the work.";
const QUICK: &str =
    "A quick look: all rates are ten times the paper's. `--full` has its rates and sample counts.";
