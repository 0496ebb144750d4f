//! MT_Cubit, which `orb/latency-jitter` and `orb/architectures` share: one high-priority client that calls at a rate, and
//! more and more low-priority ones whose requests hold their servant.
//!
//! `orb/latency-jitter` has P0's configuration, in which each low-priority client has a servant and a priority of its own;
//! `orb/architectures` has P1's, in which they share both. All on one CPU. Each round also has runs without low-priority
//! clients. What is said of the others is said beside those.

use super::transports::TRANSPORT;
use crate::contestants::OMNIORB;
use crate::contestants::rates::priority_of_pair;
use crate::contestants::rates::server::POOL_THREADS;
use crate::experiments::prelude::*;
use line_up::CALL;
pub(super) use line_up::{LineUp, Servants};

pub(super) mod kernels;
mod line_up;
pub(super) mod says;

/// What all studies of MT_Cubit have. Each adds its presets and amounts, and the rate of the high-priority client, which
/// `start` hands on.
pub(super) const fn study(
    start: fn(&Context, &[Cell<'_>]) -> Result<LineUp, LabError>,
) -> Study<LineUp> {
    Study {
        fixed: "transport=tcp, operation=octet",
        agents_max: 1,
        plots,
        says: says::SAYS,
        ..Study::with(start)
    }
}

/// What the low-priority clients do.
pub(super) const LOADS: Factor = Factor::texts(LOAD, &[TEN_HERTZ, SATURATING]).or_absent();

/// Processor time that a request of a low-priority client takes of its servant.
pub(super) const WORKS: Factor = Factor::numbers(WORK, &[0, 500]).or_absent();

/// How many low-priority clients there are.
pub(super) const NUMBERS: Factor =
    Factor::numbers(LOW_CLIENTS, &[0, 1, 5, 10, 20, 30, 40, 50]).or_absent();

/// What is the same in all runs.
pub(super) const fn parameters(
    high_hz: ByEffort,
    run_of_others_ms: ByEffort,
    servants: Servants,
) -> [(&'static str, Value); 8] {
    let low_servants = match servants {
        Servants::One => "one for all, with one priority",
        Servants::Each => "one for each client, with a priority of its own: 59 and down",
    };
    [
        ("low_servants", Text(low_servants)),
        ("high_hz", Value::ByEffort(high_hz)),
        ("run_of_others_ms", Value::ByEffort(run_of_others_ms)),
        ("low_hz", Number(LOW_HZ as i64)),
        (
            "saturating_cpu_percent",
            Number((SATURATING_SHARE * 100.0) as i64),
        ),
        ("priority_high", Number(HIGH as i64)),
        ("priority_low", Number(LOW as i64)),
        ("pool_threads", Number(POOL_THREADS as i64)),
    ]
}

/// True for what a study does not measure: cells of the raw exchange with levels of others, of others without, and with other
/// numbers of low-priority clients than the effort has. The peer is not in emulated machines.
pub(super) fn leaves_out(cell: &Cell<'_>, effort: Effort, quick: &[usize]) -> bool {
    let levels = [LOAD, WORK, LOW_CLIENTS].map(|label| cell.has(label));
    if !cell.has(PRESET) {
        return levels.contains(&true);
    }
    let has_number = |numbers: &[usize]| numbers.contains(&cell.number(LOW_CLIENTS));
    levels.contains(&false)
        || (effort.seeds().is_some() && cell.is(PRESET, OMNIORB))
        || match effort {
            Effort::Full | Effort::Emulated { full: true, .. } => false,
            Effort::Glance => !has_number(&[0, 1]),
            Effort::Emulated { .. } => !has_number(&[0, 10]),
            Effort::Quick => !has_number(quick),
        }
}

/// What a reader must know of every run.
pub(super) fn notes(context: &Context, quick: &'static str) -> Vec<String> {
    let kind = context.launcher.is_real_time().then(|| {
        format!(
            "The high-priority client and its object have SCHED_FIFO {HIGH}, low-priority clients and theirs less (parameters \
             `low_servants` and `priority_low`), and the processes themselves 50, with the threads of pools without lanes \
             and of omniORB: these preempt low-priority clients, so that few requests are on their way at once. That is the kind \
             case: with a server less urgent than its clients queues can form."
        )
    });
    kind.into_iter().chain(context.if_quick(quick)).collect()
}

/// How long a run takes: the samples of the effort are milliseconds of the papers' load. The raw exchange takes as long as the other
/// loads.
pub(super) fn run_ms(
    cell: &Cell<'_>,
    effort: Effort,
    (amounts, of_others_ms): (&Amounts, ByEffort),
) -> usize {
    if cell.has(PRESET) && is_papers(cell) {
        amounts.of(effort).1
    } else {
        of_others_ms.of(effort)
    }
}

/// True for the load of the papers: a low-priority client calls as often as theirs do, and its servant does nothing.
pub(super) fn is_papers(cell: &Cell<'_>) -> bool {
    cell.is(LOAD, TEN_HERTZ) && cell.number(WORK) == 0
}

/// True for the load that takes most of a priority.
pub(super) fn is_hardest(cell: &Cell<'_>) -> bool {
    cell.is(LOAD, SATURATING) && cell.number(WORK) > 0
}

/// True for the conditions that are nearest to P1's.
pub(super) fn requests_meet(cell: &Cell<'_>) -> bool {
    let is_p1 = cell.is(RELEASE, TOGETHER) && cell.number(WORK) > 0;
    let places = [
        (ONE_CPU, BELOW),
        (SERVER_CPU, BETWEEN),
        (TWO_HOSTS, BETWEEN),
    ];
    let is_there = |(placement, urgency)| is_on(cell, placement, urgency);
    is_p1 && places.into_iter().any(is_there)
}

pub(super) fn is_on(cell: &Cell<'_>, placement: &str, urgency: &str) -> bool {
    cell.is(PLACEMENT, placement) && cell.is(URGENCY, urgency)
}

/// The median, the tail and the jitter of both roles over the number of low-priority clients.
pub(super) fn plots() -> Vec<Plot> {
    let plot = |(id, title, value): (&str, &str, StatisticName)| {
        Plot::line_chart(id, title)
            .caption(
                "From the planned release to having the reply. A flat line of the role high is an ORB that keeps its priorities; one that rises with \
                 the role low inverts them.",
            )
            .of(labels([("part", CALL.into())]))
            .choose([LOAD, WORK])
            .lines([PRESET, TRANSPORT, "role"])
            .x(LOW_CLIENTS)
            .x_title("low-priority clients")
            .values([value])
            .log_y()
    };
    [
        ("latency", "Median latency of a call", StatisticName::P50),
        ("tail", "99th percentile of a call", StatisticName::P99),
        (
            "jitter",
            "Jitter: the standard deviation of a call",
            StatisticName::Stddev,
        ),
    ]
    .map(plot)
    .into()
}

/// The label of what is compared: a preset of strategies, or the peer.
pub(super) const PRESET: &str = "preset";
pub(super) const LOAD: &str = "load";
pub(super) const WORK: &str = "servant_work_us";
pub(super) const LOW_CLIENTS: &str = "low_clients";
pub(super) const TEN_HERTZ: &str = "10hz";
pub(super) const SATURATING: &str = "saturating";
/// The label of where the server runs: on the clients' CPU, on one of its own, or on a host of its own, the agent's.
pub(super) const PLACEMENT: &str = "placement";
pub(super) const ONE_CPU: &str = "one_cpu";
pub(super) const SERVER_CPU: &str = "server_cpu";
pub(super) const TWO_HOSTS: &str = "two_hosts";
/// The label of the priority of a server's threads that serve all requests with one priority: that of the most urgent client, one
/// between those of the clients, or that of the least urgent ones. Threads that take the priority of a request or of their lane
/// have that instead.
pub(super) const URGENCY: &str = "server_urgency";
pub(super) const ABOVE: &str = "above";
pub(super) const BETWEEN: &str = "between";
pub(super) const BELOW: &str = "below";
/// The label of when clients are first released.
pub(super) const RELEASE: &str = "first_release";
pub(super) const TOGETHER: &str = "together";
pub(super) const SPREAD: &str = "spread";
/// SCHED_FIFO of the high-priority client and its object. The servers' other threads have 50.
const HIGH: u8 = priority_of_pair(0);
/// The same of the low-priority ones; the lowest, where each has its own.
const LOW: u8 = 10;
/// How busy saturating clients keep the CPU.
const SATURATING_SHARE: f64 = 0.9;
/// As in the papers.
const LOW_HZ: u64 = 10;
