//! What the counts say: promises, published figures, and the numbers to read first.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use rtorb_results::by_round::ByRound;
use rtorb_results::cells::Cells;
use rtorb_results::labels_with;

use super::PRESET;
use crate::contestants::OMNIORB;
use crate::contestants::whitebox::contestant::{CPU_TIME_OF, REQUESTS, SIDES, WRONG};
use crate::experiments::prelude::*;
use crate::study::{Computed, Conditions};

pub(super) fn compute(_: &Cells, conditions: &Conditions) -> Computed {
    Computed {
        cells: counts(conditions),
        notes: EXPLANATIONS.map(str::to_owned).into(),
    }
}

/// All counts of a request, by the names that [`Numbers`](crate::contestants::whitebox::contestant::Numbers) have.
fn counts(conditions: &Conditions) -> Cells {
    let mut cells = Cells::default();
    let times = cpu_times(conditions);
    for kept in &conditions.answers {
        let numbers = &kept.answer.numbers;
        let requests = numbers[REQUESTS];
        let counts = numbers.iter().filter(|(name, _)| name.contains(' '));
        for (name, count) in counts {
            let [side, what, which] = words(name);
            let labels = labels_of(&kept.labels, [side, what, which]);
            let unit = if what.starts_with(CPU_TIME) {
                "ns"
            } else {
                "per_request"
            };
            let value = if what == CPU_TIME_OF {
                share_of_time(&times, (&kept.labels, side), (numbers, *count))
            } else {
                count / requests
            };
            cells.add_count(&labels, kept.round, value, (unit, requests as u64));
            if what == USER_LOCKS {
                cells.add_wrong(&labels, numbers[WRONG] as u64);
            }
        }
    }
    cells
}

fn labels_of(cell: &Labels, [side, what, which]: [&str; 3]) -> Labels {
    let is_peer = cell[PRESET] == OMNIORB.into();
    let orb = if is_peer { OMNIORB } else { "rtorb" };
    let mut labels = labels_with(
        cell,
        [
            ("orb", orb.into()),
            ("side", side.into()),
            ("what", what.into()),
        ],
    );
    let of_which = if what == CPU_TIME_OF {
        "phase"
    } else {
        "system_call"
    };
    if !which.is_empty() {
        labels.insert(of_which.to_owned(), which.into());
    }
    labels
}

/// The processor time of a request of each cell and side, of all rounds.
fn cpu_times(conditions: &Conditions) -> IndexMap<(&Labels, &'static str), ByRound> {
    let mut all: IndexMap<(&Labels, &'static str), ByRound> = IndexMap::new();
    for kept in &conditions.answers {
        for side in SIDES {
            let numbers = &kept.answer.numbers;
            let time_ns = numbers.get(&format!("{side} {CPU_TIME}"));
            let time_ns = time_ns.map(|time| time / numbers[REQUESTS]);
            if let Some(time_ns) = time_ns {
                let rounds = all.entry((&kept.labels, side)).or_default();
                rounds.set(kept.round, time_ns);
            }
        }
    }
    all
}

/// The time of a phase, of which samples were counted: the processor time of the rounds is shared out.
fn share_of_time(
    times: &IndexMap<(&Labels, &'static str), ByRound>,
    (cell, side): (&Labels, &str),
    (numbers, samples): (&BTreeMap<String, f64>, f64),
) -> f64 {
    let time = times.iter();
    let mut time = time.filter(|((of, on), _)| *of == cell && *on == side);
    let time_ns = time.next().and_then(|(_, rounds)| rounds.median());
    let all = numbers.iter();
    let all = all.filter(|(name, _)| words(name)[..2] == [side, CPU_TIME_OF]);
    let all: f64 = all.map(|(_, samples)| samples).sum();
    time_ns.unwrap_or(0.0) * samples / all
}

/// The side, what is counted, and of which phase or system call.
fn words(name: &str) -> [&str; 3] {
    let mut words = name.split(' ');
    [(); 3].map(|()| words.next().unwrap_or_default())
}

/// Client and server together.
const BOTH: Metric = Metric::of(P50).with(&[Plus(P50, "side=server")]);
/// The side with more.
const WORSE: Metric = Metric::of(P50)
    .with(&[Or(P50, "side=server")])
    .in_unit("per_request");
const CLIENT: Metric = Metric::of(P50).in_unit("");
const SERVER: Metric = Metric::of(P50).at("side=server").in_unit("");
/// Time in locks, in user space and in the kernel, as a percentage of all.
const LOCKED: Metric = Metric::of(P50)
    .at("what=cpu_time_of, phase=user_locks")
    .with(&[
        Plus(P50, "what=cpu_time_of, phase=kernel_locks"),
        Over(P50, ""),
        Times(100.0),
    ])
    .in_unit("%");
const LOCKED_SERVER: Metric = Metric::of(P50)
    .at("side=server, what=cpu_time_of, phase=user_locks")
    .with(&[
        Plus(P50, "side=server, what=cpu_time_of, phase=kernel_locks"),
        Over(P50, "side=server"),
        Times(100.0),
    ])
    .in_unit("%");

const fn promised(id: &'static str, of: &'static str, says: &'static str) -> Declaration {
    // What a timer of the ORB's may do now and then is no part of a call.
    Declaration::count(id, BOTH.in_unit("per_request"), 0.001).of(of, says)
}

const fn of_memory(id: &'static str, at_most: f64, of: &'static str) -> Declaration {
    Declaration::count(id, WORSE, at_most).of(
        of,
        "one client through shared memory, asleep on a futex: {what} a request, the side with more, in every round",
    )
}

const fn locks(what: &'static str, published: &'static str, of: &'static str) -> PublishedOf {
    PublishedOf {
        source: "P1 Figure 13",
        what,
        published,
        of,
        ours: Words::with("{calls}: {0} + {1}", &[CLIENT, SERVER]),
    }
}

/// The sums of the preset in which nothing is shared between priorities.
const fn highlight(what: &'static str, of: &'static str) -> HighlightOf {
    HighlightOf {
        what,
        of,
        metric: BOTH.in_unit(""),
        beside: Words::with("omniORB {0}", &[OF_PEER]),
    }
}

const OF_PEER: Metric = Metric::of(P50)
    .at("preset=omniorb, orb=omniorb")
    .with(&[Plus(P50, "preset=omniorb, orb=omniorb, side=server")])
    .in_unit("");

pub(super) const SAYS: Statements = Statements {
    highlights: &[
        highlight(
            "lock operations a request, preset tao, both sides",
            "preset=tao, clients=10, calls=back_to_back, !transport, side=client, what=user_locks",
        ),
        highlight(
            "system calls a request, preset tao, both sides",
            "preset=tao, clients=10, calls=back_to_back, !transport, side=client, what=system_calls, !system_call",
        ),
        highlight(
            "heap calls a request, preset tao, both sides",
            "preset=tao, clients=10, calls=back_to_back, !transport, side=client, what=heap_calls",
        ),
    ],
    claims: &[
        promised(
            "user-locks",
            "preset=tao, clients=10, calls=back_to_back, !transport, side=client, what=user_locks",
            "preset tao: user-level lock operations a request, both sides: at most one in 1,000 requests of every round",
        ),
        promised(
            "kernel-locks",
            "preset=tao, clients=10, calls=back_to_back, !transport, side=client, what=kernel_locks",
            "preset tao: kernel-level lock calls (futex) a request, both sides: at most one in 1,000 requests",
        )
        .in_rounds(1),
        promised(
            "heap-calls",
            "preset=tao, clients=10, calls=back_to_back, !transport, side=client, what=heap_calls",
            "preset tao: heap calls a request, both sides: at most one in 1,000 requests of every round",
        ),
        of_memory(
            "user-locks.shm",
            0.001,
            "preset=default, clients=1, transport=shm, side=client, what=user_locks",
        ),
        of_memory(
            "heap-calls.shm",
            0.001,
            "preset=default, clients=1, transport=shm, side=client, what=heap_calls",
        ),
        // One to wake the peer, one to sleep: Linux has no call for both. The first requests of a thread make some more. They are
        // counted in the first round, because strace takes long.
        of_memory(
            "system-calls.shm",
            2.02,
            "preset=default, clients=1, transport=shm, side=client, what=system_calls, !system_call",
        )
        .in_rounds(1),
    ],
    published: &[
        locks(
            "CORBAplus: user-level lock operations a request, client + server",
            "199 + 216",
            "preset=corbaplus, clients=10, !transport, side=client, what=user_locks",
        ),
        locks(
            "miniCOOL: user-level lock operations a request, client + server",
            "94 + 231",
            "preset=minicool, clients=10, !transport, side=client, what=user_locks",
        ),
        locks(
            "MT-Orbix: user-level lock operations a request, client + server",
            "175 + 599",
            "preset=mt_orbix, clients=10, !transport, side=client, what=user_locks",
        ),
        locks(
            "TAO: user-level lock operations a request, client + server",
            "41 + 100",
            "preset=tao, clients=10, !transport, side=client, what=user_locks",
        ),
        PublishedOf {
            source: "P1 Figure 14",
            ..locks(
                "TAO: kernel-level lock calls a request, client + server",
                "none in the ORB core",
                "preset=tao, clients=10, !transport, side=client, what=kernel_locks",
            )
        },
        PublishedOf {
            source: "P1 Figure 9",
            what: "CORBAplus: share of the time that goes into locks, client + server",
            published: "52 % + 45 %",
            of: "preset=corbaplus, clients=10, !transport, side=client, what=cpu_time",
            ours: Words::with("{calls}: {0} + {1}", &[LOCKED, LOCKED_SERVER]),
        },
        PublishedOf {
            source: "P1 Figure 10",
            what: "miniCOOL: share of the time that goes into locks, client + server",
            published: "about 50 % + more than 40 %",
            of: "preset=minicool, clients=10, !transport, side=client, what=cpu_time",
            ours: Words::with("{calls}: {0} + {1}", &[LOCKED, LOCKED_SERVER]),
        },
    ],
    ..Statements::NONE
};

/// Values of the label `what`.
const USER_LOCKS: &str = "user_locks";
const CPU_TIME: &str = "cpu_time";

const EXPLANATIONS: [&str; 4] = [
    "A user-level lock operation is one call that takes or gives back a mutex, as in P1: a critical section is two. Of rtorb, \
     the mutexes of the ORB are counted (it has no others); of omniORB, the calls of pthread_mutex functions. Single atomic \
     operations, and queues made of them, are no locks. P1's figures hold the locks of the allocator too.",
    "Kernel-level locks are calls of futex(2).",
    "With ten clients that call back to back, the high-priority one pauses for 100 us between calls: this is one voluntary \
     switch in ten requests on the client side. Clients at rates all pause, as in P1: one voluntary switch in each request. The \
     calls of clock_nanosleep are left out.",
    "At rates, the high-priority client calls twice as often as each of the others. A full run has P1's rates, 20 Hz and 10 Hz; \
     a quick run has higher ones and fewer requests (`times_the_rates_of_p1`). All clients begin at once, so that their calls come \
     in bursts, and between the bursts threads sleep and caches lose what they had.",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::probe::Answer;
    use crate::study::Answered;
    use rtorb_results::labels;

    #[test]
    fn the_time_of_all_rounds_is_shared_out_by_the_samples_of_one() {
        let cell = labels([(PRESET, "minicool".into())]);
        let first = [
            ("client cpu_time", 1_000.0),
            ("client cpu_time_of io", 1.0),
            ("client cpu_time_of user_locks", 3.0),
        ];
        let second = [("client cpu_time", 3_000.0), ("client user_locks", 20.0)];
        let answered = |(round, numbers): (usize, &[(&str, f64)])| {
            let beside = [(REQUESTS, 10.0), (WRONG, 1.0)];
            let numbers = numbers.iter().chain(&beside);
            let numbers = numbers.map(|(name, number)| ((*name).to_owned(), *number));
            Answered {
                labels: cell.clone(),
                round,
                answer: Answer {
                    numbers: numbers.collect(),
                    ..Answer::default()
                },
            }
        };
        let answers = [&first[..], &second[..]].into_iter().enumerate();
        let counted = counts(&Conditions {
            answers: answers.map(answered).collect(),
            ..Conditions::default()
        });
        let all = counted.series(&Labels::new());
        let all = all.iter().map(|series| {
            let phase = series.labels.get("phase").map(ToString::to_string);
            let (unit, p50) = (series.unit.as_str(), series.statistics.p50);
            (phase.unwrap_or_default(), unit, p50, series.wrong)
        });
        let all: Vec<_> = all.collect();
        let expected = [
            ("", "ns", 200.0, 0),
            ("io", "ns", 50.0, 0),
            ("user_locks", "ns", 150.0, 0),
            ("", "per_request", 2.0, 1),
        ];
        let expected =
            expected.map(|(phase, unit, p50, wrong)| (phase.to_owned(), unit, p50, wrong));
        assert_eq!(all, expected);
    }
}
