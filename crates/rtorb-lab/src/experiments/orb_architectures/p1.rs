//! The conditions of P1: all clients are released at once, servers are less urgent than their clients or have a CPU of their
//! own, and a request takes a millisecond, as long as P1's ORBs took themselves.

use super::super::mt_cubit::{
    self, ABOVE, BELOW, BETWEEN, LOW_CLIENTS, LineUp, ONE_CPU, PLACEMENT, PRESET, RELEASE,
    SERVER_CPU, SPREAD, Servants, TOGETHER, TWO_HOSTS, URGENCY, WORK, is_on, kernels,
    requests_meet,
};
use crate::experiments::prelude::*;

mod says;

/// The architectures under P1's conditions.
pub(super) const STUDY: Study<LineUp> = Study {
    name: super::KIND.name,
    title: "Under the conditions of P1",
    reproduces: super::KIND.reproduces,
    // In a full run P1's 4,000 calls at its 20 Hz over the rounds: six hours on one host, with the other conditions.
    amounts: Amounts {
        glance: 110,
        emulated: 1_000,
        quick: [6, 170],
        full: [8, 25_000],
        samples: "run_of_p1_ms",
    },
    factors: &[
        Factor::texts(PLACEMENT, &[ONE_CPU, SERVER_CPU, TWO_HOSTS]),
        Factor::texts(URGENCY, &[ABOVE, BETWEEN, BELOW]),
        Factor::texts(RELEASE, &[TOGETHER, SPREAD]),
        Factor::numbers(WORK, &[0, REQUEST_US]),
        // P1's steps.
        Factor::numbers(
            LOW_CLIENTS,
            &[FEWEST, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50],
        ),
        Factor::texts(
            PRESET,
            &[
                "tao",
                "mt_orbix",
                "minicool",
                "corbaplus",
                "minicool_rt",
                "corbaplus_rt",
                PER_REQUEST,
            ],
        ),
    ],
    fixed: "transport=tcp, operation=octet, load=10hz",
    parameters: &mt_cubit::parameters(HIGH_HZ, RUN_OF_OTHERS_MS, Servants::One),
    run_ms: |cell, effort| {
        if requests_meet(cell) && is_of_p1(cell) {
            STUDY.amounts.of(effort).1
        } else {
            RUN_OF_OTHERS_MS.of(effort)
        }
    },
    leaves_out,
    obstacle: |context| {
        let is_one_cpu = context.effort.seeds().is_some() && context.other_cpu().is_none();
        let is_agents = context.launcher.agent().is_some() && context.effort != Effort::Full;
        let obstacles = [(is_one_cpu, ONE_CPU_HERE), (is_agents, ON_AN_AGENT)];
        let obstacle = obstacles.into_iter().find(|(is_so, _)| *is_so);
        obstacle.map(|(_, why)| why)
    },
    plots,
    says: says::SAYS,
    notes: |context| {
        let quick = context.if_quick(QUICK);
        [FAITHFUL.to_owned()].into_iter().chain(quick).collect()
    },
    kernels: Some(kernels::architectures),
    ..mt_cubit::study(|context, cells| {
        LineUp::start(context, cells, Servants::One, HIGH_HZ.of(context.effort))
    })
};

/// A full run has all conditions, and those in which requests meet in all of P1's steps. Others have these alone: an emulated
/// machine in all steps, a host with the fewest clients and the most.
fn leaves_out(cell: &Cell<'_>, effort: Effort) -> bool {
    let low_clients = cell.number(LOW_CLIENTS);
    let is_extreme = [FEWEST as usize, 50].contains(&low_clients);
    let is_measured = match effort {
        Effort::Full => return !(requests_meet(cell) || is_extreme),
        Effort::Glance => is_on(cell, ONE_CPU, BELOW) && low_clients == 5,
        Effort::Quick => is_on(cell, ONE_CPU, BELOW) && is_extreme,
        // The machine has two CPUs, as each of P1's hosts.
        Effort::Emulated { .. } => is_on(cell, SERVER_CPU, BETWEEN),
    };
    let is_short = matches!(effort, Effort::Glance | Effort::Quick);
    let is_compared = is_of_p1(cell) || (is_short && cell.is(PRESET, PER_REQUEST));
    !(requests_meet(cell) && is_compared && is_measured)
}

fn is_of_p1(cell: &Cell<'_>) -> bool {
    let preset = cell.level(PRESET);
    !preset.is_some_and(|preset| is_improved(&preset) || *preset == *PER_REQUEST)
}

/// True for the strategies of P1 with RT-CORBA's priorities, which P1 did not measure.
fn is_improved(preset: &str) -> bool {
    preset.ends_with("_rt")
}

fn plots() -> Vec<Plot> {
    let plot = |(id, title, value): (&str, &str, StatisticName)| {
        Plot::line_chart(id, title)
            .of(labels([("part", "call".into()), ("role", "high".into())]))
            .choose([PLACEMENT, URGENCY, RELEASE, WORK])
            .lines([PRESET])
            .x(LOW_CLIENTS)
            .x_title("low-priority clients")
            .values([value])
            .log_y()
    };
    [
        (
            "p1-latency",
            "The high-priority client's latency under P1's conditions (P1 Figure 7)",
            StatisticName::Mean,
        ),
        (
            "p1-tail",
            "Its 90th percentile under P1's conditions",
            StatisticName::P90,
        ),
        (
            "p1-jitter",
            "Its jitter under P1's conditions (P1 Figure 8)",
            StatisticName::Stddev,
        ),
    ]
    .map(plot)
    .into()
}

/// miniCOOL with its other choice, a thread for each request (P1 2.1), which P1 did not measure.
const PER_REQUEST: &str = "minicool_per_request";
/// What a request took in P1's ORBs.
const REQUEST_US: i64 = 1_000;
const FEWEST: i64 = 1;
/// P1's 20 Hz. A quick run has more calls, which fall on all parts of a burst.
const HIGH_HZ: ByEffort = ByEffort {
    glance: 50,
    emulated: 20,
    quick: 200,
    full: 20,
};
/// How long each run takes under conditions that are not P1's: a tenth of the calls.
const RUN_OF_OTHERS_MS: ByEffort = ByEffort {
    glance: 110,
    emulated: 1_000,
    quick: 170,
    full: 2_500,
};
const FAITHFUL: &str = "CORBAplus and miniCOOL were no real-time ORBs: their pools have threads of one priority, which serve requests in \
     the order of their arrival. `corbaplus_rt` and `minicool_rt` (in a full run) have the same strategies with RT-CORBA's \
     priorities, which is better than what P1 measured. `minicool_per_request` starts a thread for each request, which takes the priority \
     of its object.";
const ONE_CPU_HERE: &str =
    "P1's conditions need a machine with two CPUs: `rtorb lab kernel run --machine p1`.";
const ON_AN_AGENT: &str = "P1's conditions on two hosts are measured by `--full`.";
const QUICK: &str = "P1's conditions in a quick run: one CPU, a server below its clients, the fewest and the most clients, 200 Hz. \
     `--full` has all placements, priorities of the server and releases, with P1's steps and rates.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn a_full_run_has_every_condition_and_a_quick_one_little_time() {
        let conditions = 3 * 3 * 2 * 2;
        let full = STUDY.cells(Effort::Full);
        assert_eq!(full.len(), (3 * 11 + (conditions - 3) * 2) * 7);
        let quick = STUDY.parameters(Effort::Quick);
        assert_eq!(quick["paced_seconds"], 10usize.into());
        assert_eq!(quick[LOW_CLIENTS], "1 50".into());
    }
}
