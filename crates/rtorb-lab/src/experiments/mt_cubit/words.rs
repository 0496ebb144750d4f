//! What was found, in words: which architectures invert priorities here, and where.

use super::conclusions::{hardest, to_unloaded};
use super::measured::{Key, Measured, Of, Role};
use super::plan::{Cell, HIGH, LOW, Load, Plan, SATURATING_SHARE};

/// A sentence or two a contestant, and how they are in order.
pub(super) fn conclusions(measured: &Measured, plan: &Plan) -> Vec<String> {
    let Some(cell) = hardest(plan) else {
        return Vec::new();
    };
    let keys: Vec<&Key> = measured
        .keys(Role::High)
        .filter(|key| key.cell == cell)
        .collect();
    let mut conclusions: Vec<String> = keys
        .iter()
        .filter_map(|key| conclusion(measured, key))
        .collect();
    if keys.len() > 1 {
        conclusions.push(order(measured, &keys));
    }
    conclusions
}

/// What a reader must know.
pub(super) fn notes(measured: &Measured, real_time: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if real_time {
        notes.push(format!(
            "The high-priority client and its object have SCHED_FIFO {HIGH}, low-priority clients and theirs {LOW}, and the \
             processes themselves 50, with the threads of pools without lanes and of omniORB: {KIND_CASE}"
        ));
    }
    if measured.keys(Role::High).any(|key| key.preset == "omniorb") {
        notes.push(OMNIORB.to_owned());
    }
    let busy = measured.busy().into_iter();
    notes.extend(busy.filter_map(|((preset, cell), share)| {
        let is_off = (share - SATURATING_SHARE).abs() > SHARE_TOLERANCE;
        let wanted = cell.condition.load == Load::Saturating && cell.low_clients > 0;
        (wanted && is_off)
            .then(|| format!("{preset}: {cell}: the CPU was {:.0} % busy", share * 100.0))
    }));
    let missed: u64 = measured.missed().map(|(_, missed)| missed).sum();
    if missed > 0 {
        notes.push(format!(
            "{missed} releases of low-priority clients were left out, since the one before was not done yet."
        ));
    }
    notes
}

/// What was measured, and what the construction lets happen: which of it did, no sample says.
fn conclusion(measured: &Measured, key: &Key) -> Option<String> {
    let p50 = to_unloaded(measured, key, Of::P50)?.value;
    let p99 = to_unloaded(measured, key, Of::P99)?.value;
    let us = |of| measured.median(key, of).map(|ns| ns / 1e3);
    let Cell {
        low_clients,
        condition,
    } = key.cell;
    let (loaded, tail) = (us(Of::P50)?, us(Of::P99)?);
    let verdict = if p50 > MEDIAN_FELT || p99 > TAIL_FELT {
        "feels the load"
    } else {
        "does not feel the load"
    };
    let (_, construction) = CONSTRUCTIONS
        .iter()
        .find(|(preset, _)| *preset == key.preset)?;
    Some(format!(
        "{}: the high-priority client {verdict}. Beside {low_clients} low-priority clients ({}, {} us of work) its median is \
         {loaded:.1} us, {p50:.2} times that without them, and its p99 {tail:.1} us, {p99:.2} times. {construction}",
        key.preset,
        condition.load.label(),
        condition.servant_work_us,
    ))
}

/// From the one that keeps its priorities best.
fn order(measured: &Measured, keys: &[&Key]) -> String {
    let mut found: Vec<(f64, &str)> = keys
        .iter()
        .filter_map(|key| Some((measured.median(key, Of::P99)?, key.preset.as_str())))
        .collect();
    found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let names: Vec<String> = found
        .iter()
        .map(|(ns, preset)| format!("{preset} {:.0} us", ns / 1e3))
        .collect();
    format!(
        "In the order of the high-priority p99 under that load: {}. P1 has TAO first, then miniCOOL (3 times its low-priority \
         latency at 50 clients), MT-Orbix (7 times) and CORBAplus (25 times), with requests that do no work and ORBs that \
         took hundreds of locks a request (`orb/whitebox` counts those of ours). What is asked here is how long a request \
         can wait for the work of others.",
        names.join(", ")
    )
}

/// What two priorities share in each architecture, and what can happen there: known before anything is measured.
const CONSTRUCTIONS: [(&str, &str); 6] = [
    (
        "tao",
        "No connection, thread or queue is shared between two priorities; the machine's caches and the kernel's locks are.",
    ),
    (
        "default",
        "Each connection has its own thread, which keeps an object's priority until a request to an object of another \
         priority comes: with one priority a connection, as here, no connection, thread or queue is shared.",
    ),
    (
        "corbaplus",
        "Requests of all priorities come over one connection into one queue, and a worker takes a request's priority only \
         when it has taken the request: one of high priority can wait behind those before it, and for a worker. In the \
         client one thread, with the priority of the process, reads the replies of all.",
    ),
    (
        "minicool",
        "Requests of all priorities come over one connection to one pool, where one of high priority can wait until a thread \
         becomes the leader. In the client one of the waiting threads reads the replies of all: when it has a low priority, \
         the high-priority client can wait until that thread has the CPU. Under SCHED_FIFO a thread of the pool \
         preempts a low-priority client that sends, and stands before it when it takes on the request's priority \
         (sched(7)): that client begins to read only when its servant is done.",
    ),
    (
        "mt_orbix",
        "In the server each priority has its own thread and queue, behind one connection and one chain of filters, whose \
         thread is as urgent as the most urgent of them. In the client one of the waiting threads reads the replies of all: \
         when it has a low priority, the high-priority client can wait until that thread has the CPU, which a servant of \
         the same low priority can hold for the length of a request. Under SCHED_FIFO the servant's thread stands \
         behind the low-priority client that has just sent: that client can begin to read before its servant works.",
    ),
    (
        "omniorb",
        "It knows no priorities: all its threads have the process's, so a low-priority request that is being served can keep \
         the CPU until it is done.",
    ),
];

/// What is promised of lanes is taken as what counts as not felt.
const MEDIAN_FELT: f64 = 1.3;
const TAIL_FELT: f64 = 1.5;
const SHARE_TOLERANCE: f64 = 0.05;
const KIND_CASE: &str = "these preempt low-priority clients, so that few requests are on their way at once. That is the \
     kind case: with a server less urgent than its clients queues can form.";
const OMNIORB: &str = "omniORB runs with its own defaults at both ends; its acceptor thread polls every 50 ms and may then hold \
                       up a request by up to a millisecond (`-ORBconnectionWatchPeriod` changes that).";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;
    use crate::experiments::mt_cubit::HARDEST;
    use rtorb_results::statistics::Statistics;
    use std::time::Duration;

    #[test]
    fn who_feels_the_load_is_told_with_the_reason() {
        let plan = Plan {
            rounds: 5,
            effort: Effort::Quick,
            presets: &["tao", "corbaplus"],
            with_peer: false,
            high_hz: 20,
            run: Duration::from_millis(1),
            run_of_others: Duration::from_millis(1),
            conditions: &HARDEST,
            low_clients: &[0, 50],
            leaves_out: None,
        };
        let key = |preset: &str, low_clients| Key {
            place: 0,
            preset: preset.to_owned(),
            cell: Cell {
                condition: HARDEST[0],
                low_clients,
            },
            role: Role::High,
        };
        let round = |p50, p99| {
            [Statistics {
                p50,
                p99,
                ..Statistics::default()
            }]
        };
        let measured = Measured::with(
            &[
                (key("tao", 0), &round(10e3, 12e3)),
                (key("tao", 50), &round(11e3, 13e3)),
                (key("corbaplus", 0), &round(15e3, 20e3)),
                (key("corbaplus", 50), &round(400e3, 900e3)),
            ],
            &[],
        );
        let found = conclusions(&measured, &plan);
        assert_eq!(found.len(), 3);
        assert!(
            found
                .iter()
                .any(|text| text.starts_with("corbaplus") && text.contains("one queue"))
        );
        assert!(
            found
                .iter()
                .any(|text| text.starts_with("tao") && text.contains("does not feel"))
        );
        assert!(
            found[2].contains("tao 13 us, corbaplus 900 us"),
            "{}",
            found[2]
        );
    }
}
