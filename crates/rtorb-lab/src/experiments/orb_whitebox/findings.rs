//! What the counts say: promises, published figures, and the numbers to read first.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use rtorb_results::statistics::median;
use rtorb_results::{Claim, Highlight, Labels, Published, Series, labels_with};

use super::{AT_RATES, BACK_TO_BACK, CALLS, CLIENTS, PRESET, TEN};
use crate::contestants::whitebox::contestant::{CPU_TIME_OF, REQUESTS, SIDES, WRONG};
use crate::contestants::{OMNIORB, Transport};
use crate::experiments::transports::TRANSPORT;
use crate::study::{Conditions, Findings};

pub(super) fn findings(conditions: &Conditions) -> Findings {
    let counts = Counts::counted(conditions);
    Findings {
        series: counts.series(),
        highlights: highlights(&counts),
        claims: claims(&counts),
        published: published(&counts),
        notes: EXPLANATIONS.map(str::to_owned).into(),
        ..Findings::default()
    }
}

/// All counts of a request: those of each preset and number of clients, in the order of the run, by the names that
/// [`Numbers`](crate::contestants::whitebox::contestant::Numbers) have.
struct Counts<'a>(IndexMap<&'a Labels, BTreeMap<&'a str, Counted>>);

/// A count of a request.
#[derive(Default)]
struct Counted {
    rounds: Vec<f64>,
    requests: f64,
    wrong: f64,
}

impl<'a> Counts<'a> {
    fn counted(conditions: &'a Conditions) -> Self {
        let mut all = Self(IndexMap::new());
        for kept in &conditions.answers {
            let numbers = &kept.answer.numbers;
            let (requests, wrong) = (numbers[REQUESTS], numbers[WRONG]);
            let counts = numbers.iter().filter(|(name, _)| name.contains(' '));
            for (name, count) in counts {
                let counted = all
                    .0
                    .entry(&kept.labels)
                    .or_default()
                    .entry(name)
                    .or_default();
                counted.rounds.push(count / requests);
                counted.requests += requests;
                if words(name)[1] == USER_LOCKS {
                    counted.wrong += wrong;
                }
            }
        }
        all.0.iter_mut().for_each(|(_, cell)| share_out(cell));
        all
    }

    fn series(&self) -> Vec<Series> {
        let cells = self.0.iter();
        let counts = cells.flat_map(|(cell, counts)| counts.iter().map(move |count| (cell, count)));
        let series = |(cell, (name, counted)): (&&Labels, (&&str, &Counted))| {
            let [side, what, which] = words(name);
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
            let is_time = what.starts_with(CPU_TIME);
            let unit = if is_time { "ns" } else { "per_request" };
            let requests = counted.requests as u64;
            Series {
                wrong: counted.wrong as u64,
                ..Series::of_counts(labels, unit, requests, &counted.rounds)
            }
        };
        counts.map(series).collect()
    }

    /// With ten clients that call in this way, the medians over rounds of the client and of the server; `None` when it was not
    /// counted.
    fn both(&self, (preset, calls): (&str, &str), what: &str) -> Option<[f64; 2]> {
        self.of(
            |cell| is_of_ten(cell, calls) && cell[PRESET] == preset.into(),
            what,
        )
    }

    /// The same of the first cell that is wanted.
    fn of(&self, wanted: impl Fn(&Labels) -> bool, what: &str) -> Option<[f64; 2]> {
        let (_, counts) = self.0.iter().find(|(cell, _)| wanted(cell))?;
        let [client, server] = SIDES.map(|side| {
            let counted = counts.get(format!("{side} {what}").as_str())?;
            median(&counted.rounds)
        });
        Some([client?, server?])
    }

    /// Of both sides, back to back.
    fn sum(&self, preset: &str, what: &str) -> Option<f64> {
        Some(self.both((preset, BACK_TO_BACK), what)?.iter().sum())
    }

    /// Time in locks, in user space and in the kernel, as a percentage of all.
    fn lock_percent(&self, who: (&str, &str)) -> Option<[f64; 2]> {
        let of = |phase: &str| self.both(who, &format!("{CPU_TIME_OF} {phase}"));
        let [all, user, kernel] = [
            self.both(who, CPU_TIME)?,
            of(USER_LOCKS)?,
            of(KERNEL_LOCKS)?,
        ];
        Some([0, 1].map(|side| (user[side] + kernel[side]) / all[side] * 100.0))
    }
}

fn is_of_ten(cell: &Labels, calls: &str) -> bool {
    cell[CLIENTS] == TEN.into() && cell[CALLS] == calls.into() && !cell.contains_key(TRANSPORT)
}

/// Makes times of the samples of each phase: the processor time of the rounds is shared out.
fn share_out(counts: &mut BTreeMap<&str, Counted>) {
    for side in SIDES {
        let time = counts.get(format!("{side} {CPU_TIME}").as_str());
        let time_ns = time.and_then(|time| median(&time.rounds)).unwrap_or(0.0);
        let is_phase = |name: &str| words(name)[..2] == [side, CPU_TIME_OF];
        let phases = counts.iter_mut().filter(|(name, _)| is_phase(name));
        let mut samples: Vec<&mut f64> = phases.flat_map(|(_, phase)| &mut phase.rounds).collect();
        let all: f64 = samples.iter().map(|samples| **samples).sum();
        samples
            .iter_mut()
            .for_each(|samples| **samples *= time_ns / all);
    }
}

/// The side, what is counted, and of which phase or system call.
fn words(name: &str) -> [&str; 3] {
    let mut words = name.split(' ');
    [(); 3].map(|()| words.next().unwrap_or_default())
}

fn highlights(counts: &Counts<'_>) -> Vec<Highlight> {
    let sum = |preset: &str, what: &str| counts.sum(preset, what);
    let with_ten = counts.0.iter().map(|(cell, _)| cell);
    let with_ten = with_ten.filter(|cell| is_of_ten(cell, BACK_TO_BACK));
    let presets = with_ten.map(|cell| cell[PRESET].to_string());
    let others = presets.filter(|preset| preset != TAO).filter_map(|preset| {
        let locks = sum(&preset, USER_LOCKS)?;
        Some(format!("{preset} {locks:.1}"))
    });
    let others: Vec<String> = others.collect();
    let peer =
        |what| sum(OMNIORB, what).map_or_else(String::new, |peer| format!("omniORB {peer:.2}"));
    let shown = [
        (USER_LOCKS, "lock operations", others.join(", ")),
        (SYSTEM_CALLS, "system calls", peer(SYSTEM_CALLS)),
        (HEAP_CALLS, "heap calls", peer(HEAP_CALLS)),
    ];
    let highlight = |(what, name, beside): (&str, &str, String)| {
        Some(Highlight {
            what: format!("{name} a request, preset tao, both sides"),
            value: sum(TAO, what)?,
            unit: String::new(),
            beside,
        })
    };
    shown.into_iter().filter_map(highlight).collect()
}

/// What is promised of the preset in which nothing is shared between priorities.
fn claims(counts: &Counts<'_>) -> Vec<Claim> {
    let promised = [
        (USER_LOCKS, "user-locks", "user-level lock operations"),
        (
            KERNEL_LOCKS,
            "kernel-locks",
            "kernel-level lock calls (futex)",
        ),
        (HEAP_CALLS, "heap-calls", "heap calls"),
    ];
    let claim = |(what, id, name): (&str, &str, &str)| {
        let value = counts.sum(TAO, what)?;
        let text = format!("preset tao: {name} a request, both sides: none in 1,000 requests");
        Some(Claim::counted(id, text, value, NONE, "per_request"))
    };
    let others = promised.into_iter().filter_map(claim);
    others.chain(memory_claims(counts)).collect()
}

/// What is promised of one client that shares memory with the thread that serves it.
fn memory_claims(counts: &Counts<'_>) -> impl Iterator<Item = Claim> {
    let is_it = |cell: &Labels| {
        cell.get(TRANSPORT) == Some(&Transport::Shm.label().into())
            && cell[PRESET] == "default".into()
            && cell[CLIENTS] == 1usize.into()
    };
    let promised = [
        (USER_LOCKS, "user-locks", "user-level lock operations", NONE),
        (HEAP_CALLS, "heap-calls", "heap calls", NONE),
        // One to wake the peer, one to sleep: Linux has no call for both. The first requests of a thread make some more.
        (SYSTEM_CALLS, "system-calls", "system calls", 2.02),
    ];
    promised
        .into_iter()
        .filter_map(move |(what, id, name, limit)| {
            let [client, server] = counts.of(is_it, what)?;
            let text = format!("one client through shared memory, asleep on a futex: {name} a request, the side with more");
            let id = format!("{id}.shm");
            Some(Claim::counted(id, text, client.max(server), limit, "per_request"))
        })
}

/// Figures 9, 10, 13 and 14, as far as the text gives numbers.
fn published(counts: &Counts<'_>) -> Vec<Published> {
    let row = |figure: &str, what: String, published: &str, ours: Option<String>| {
        ours.map(|ours| Published {
            source: format!("P1 Figure {figure}"),
            what,
            published: published.to_owned(),
            ours,
        })
    };
    let each = |preset: &str, what: &str| {
        both_ways(|calls| {
            let [client, server] = counts.both((preset, calls), what)?;
            Some(format!("{client:.1} + {server:.1}"))
        })
    };
    let locks = [
        ("corbaplus", "CORBAplus", "199 + 216"),
        ("minicool", "miniCOOL", "94 + 231"),
        ("mt_orbix", "MT-Orbix", "175 + 599"),
        (TAO, "TAO", "41 + 100"),
    ];
    let locks = locks.into_iter().filter_map(|(preset, name, figures)| {
        let what = format!("{name}: user-level lock operations a request, client + server");
        row("13", what, figures, each(preset, USER_LOCKS))
    });
    let what = "TAO: kernel-level lock calls a request, client + server".to_owned();
    let kernel = row("14", what, "none in the ORB core", each(TAO, KERNEL_LOCKS));
    let shares = [
        ("corbaplus", "CORBAplus", "9", "52 % + 45 %"),
        ("minicool", "miniCOOL", "10", "about 50 % + more than 40 %"),
    ];
    let shares = shares
        .into_iter()
        .filter_map(|(preset, name, figure, figures)| {
            let what = format!("{name}: share of the time that goes into locks, client + server");
            let ours = both_ways(|calls| {
                let [client, server] = counts.lock_percent((preset, calls))?;
                Some(format!("{client:.0} % + {server:.0} %"))
            });
            row(figure, what, figures, ours)
        });
    locks.chain(kernel).chain(shares).collect()
}

/// Words about calls at rates, as P1 made them, and back to back; those of which something is known.
fn both_ways(words: impl Fn(&str) -> Option<String>) -> Option<String> {
    let ways = [(AT_RATES, "at rates"), (BACK_TO_BACK, "back to back")];
    let known = ways
        .into_iter()
        .filter_map(|(calls, name)| Some(format!("{name} {}", words(calls)?)));
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| known.join("; "))
}

const TAO: &str = "tao";
/// Values of the label `what`.
const USER_LOCKS: &str = "user_locks";
const KERNEL_LOCKS: &str = "kernel_locks";
const HEAP_CALLS: &str = "heap_calls";
const SYSTEM_CALLS: &str = "system_calls";
const CPU_TIME: &str = "cpu_time";
/// Less than one in a thousand requests: what a timer of the ORB's may do now and then is no part of a call.
const NONE: f64 = 0.001;

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
    use rtorb_results::{Verdict, Verdicts, labels};

    /// What was counted in ten requests of a preset back to back, in each round.
    fn found(preset: &str, rounds: &[&[(&str, f64)]]) -> Findings {
        found_of(preset, BACK_TO_BACK, rounds)
    }

    fn found_of(preset: &str, calls: &str, rounds: &[&[(&str, f64)]]) -> Findings {
        let cell = labels([
            (PRESET, preset.into()),
            (CLIENTS, TEN.into()),
            (CALLS, calls.into()),
        ]);
        found_in(&cell, rounds)
    }

    fn found_in(cell: &Labels, rounds: &[&[(&str, f64)]]) -> Findings {
        let answered = |(round, numbers): (usize, &&[(&str, f64)])| {
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
        findings(&Conditions {
            answers: rounds.iter().enumerate().map(answered).collect(),
            ..Conditions::default()
        })
    }

    #[test]
    fn the_preset_tao_is_promised_to_take_no_lock() {
        let verdicts = |preset, count| {
            let counts = [USER_LOCKS, KERNEL_LOCKS, HEAP_CALLS].map(|what| {
                [("client", count), ("server", 0.0)]
                    .map(|(side, count)| (format!("{side} {what}"), count))
            });
            let counts = counts.as_flattened().iter();
            let counts: Vec<_> = counts
                .map(|(name, count)| (name.as_str(), *count))
                .collect();
            Verdicts::of(&found(preset, &[&counts]).claims)
        };
        assert_eq!(verdicts(TAO, 0.0).held, 3);
        assert_eq!(verdicts(TAO, 1.0).missed, 3);
        let of_other = verdicts("minicool", 1.0);
        assert_eq!((of_other.held, of_other.missed), (0, 0));
        let of_one_side = found(TAO, &[&[("client user_locks", 0.0)]]);
        assert_eq!(of_one_side.claims, [], "the server was not counted");
    }

    #[test]
    fn one_client_through_shared_memory_is_promised_two_system_calls_a_side() {
        let cell = |clients: usize| {
            labels([
                (PRESET, "default".into()),
                (CLIENTS, clients.into()),
                (CALLS, BACK_TO_BACK.into()),
                (TRANSPORT, Transport::Shm.label().into()),
            ])
        };
        let claims = |clients, of_server| {
            let calls = [
                ("client system_calls", 10.0),
                ("server system_calls", of_server),
            ];
            found_in(&cell(clients), &[&calls]).claims
        };
        let verdicts = [20.0, 30.0].map(|calls| claims(1, calls)[0].verdict);
        assert_eq!(verdicts, [Verdict::Held, Verdict::Missed]);
        assert_eq!(claims(1, 10.0)[0].id, "system-calls.shm");
        assert_eq!(claims(TEN, 10.0), []);
        let of_plain = found("default", &[&[("client system_calls", 10.0)]]);
        assert_eq!(of_plain.claims, []);
    }

    #[test]
    fn published_figures_stand_beside_those_of_the_preset_of_the_same_architecture() {
        // Ten requests: 20 and 40 operations are 2 and 4 a request.
        let locks = [("client user_locks", 20.0), ("server user_locks", 40.0)];
        let found = found("minicool", &[&locks]);
        assert_eq!(found.highlights, [], "those of the preset tao");
        let row = found.published.first().expect("miniCOOL's");
        assert_eq!(
            (row.published.as_str(), row.ours.as_str()),
            ("94 + 231", "back to back 2.0 + 4.0")
        );
        let at_rates = found_of("minicool", AT_RATES, &[&locks]);
        assert_eq!(at_rates.published[0].ours, "at rates 2.0 + 4.0");
        let series = &found.series[0];
        assert_eq!(series.labels[PRESET], "minicool".into());
        assert_eq!(
            (series.count, series.statistics.p50, series.wrong),
            (10, 2.0, 1)
        );
    }

    #[test]
    fn the_time_of_all_rounds_is_shared_out_by_the_samples_of_one() {
        let first = [
            ("client cpu_time", 1_000.0),
            ("client cpu_time_of io", 1.0),
            ("client cpu_time_of user_locks", 3.0),
        ];
        let found = found("minicool", &[&first, &[("client cpu_time", 3_000.0)]]);
        let all = found.series.iter().map(|series| {
            let phase = series.labels.get("phase").map(ToString::to_string);
            (
                phase,
                series.unit.as_str(),
                series.statistics.p50,
                series.wrong,
            )
        });
        let expected = [
            (None, "ns", 200.0, 0),
            (Some("io".to_owned()), "ns", 50.0, 0),
            (Some("user_locks".to_owned()), "ns", 150.0, 0),
        ];
        assert!(all.eq(expected));
    }
}
