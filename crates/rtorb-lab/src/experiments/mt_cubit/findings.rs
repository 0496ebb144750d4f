//! What follows from the measured times: how much of the load the high-priority client feels, and whether the claims hold.

use indexmap::IndexMap;
use rtorb_results::by_round::ByRound;
use rtorb_results::cells::Cells;
use rtorb_results::statistics::Statistics;
use rtorb_results::{Claim, Derived, Highlight, LabelValue, Labels, labels_with, labels_without};

use super::line_up::{BOTH_SIDES, CALL, MISSED};
use super::{HIGH, LOAD, LOW_CLIENTS, PRESET, SATURATING, SATURATING_SHARE, WORK};
use crate::contestants::{OMNIORB, Transport};
use crate::experiments::transports::{TRANSPORT, id_of, over};
use crate::study::{Conditions, Findings};

pub(in crate::experiments) fn findings(cells: &Cells, conditions: &Conditions) -> Findings {
    let calls = Calls(cells);
    let shares = shares(conditions);
    Findings {
        highlights: calls.highlights(),
        derived: calls
            .derived()
            .into_iter()
            .chain(cpu_shares(&shares))
            .collect(),
        claims: calls.claims(),
        conclusions: calls.conclusions(),
        notes: calls.notes(conditions, &shares),
        ..Findings::default()
    }
}

/// What was measured, by the labels of calls.
#[derive(Clone, Copy)]
pub(in crate::experiments) struct Calls<'a>(pub(in crate::experiments) &'a Cells);

/// A statistic of a round.
pub(in crate::experiments) type Of = fn(&Statistics) -> f64;
pub(in crate::experiments) const P50: Of = |round| round.p50;
pub(in crate::experiments) const P99: Of = |round| round.p99;
pub(super) const MEAN: Of = |round| round.mean;
pub(in crate::experiments) const JITTER: Of = |round| round.stddev;

impl<'a> Calls<'a> {
    /// The labels of all calls of a role.
    pub(in crate::experiments) fn of(self, role: &str) -> impl Iterator<Item = &'a Labels> {
        let wanted = [("role", role.into()), ("part", CALL.into())];
        let found: Vec<&Labels> = self.0.with(&wanted).map(|(labels, _)| labels).collect();
        found.into_iter()
    }

    pub(in crate::experiments) fn rounds(self, labels: &Labels, of: Of) -> ByRound {
        let found = self.0.get(labels);
        found.map_or_else(ByRound::default, |samples| samples.rounds(of))
    }

    pub(in crate::experiments) fn median(self, labels: &Labels, of: Of) -> Option<f64> {
        self.rounds(labels, of).median()
    }

    fn to_alone(self, labels: &Labels, of: Of) -> ByRound {
        let alone = labels_with(labels, [(LOW_CLIENTS, 0usize.into())]);
        self.rounds(labels, of).divided_by(&self.rounds(&alone, of))
    }

    fn to_low(self, labels: &Labels, of: Of) -> ByRound {
        let low = labels_with(labels, [("role", "low".into())]);
        self.rounds(labels, of).divided_by(&self.rounds(&low, of))
    }

    fn to_unix(self, labels: &Labels, of: Of) -> ByRound {
        let unix = labels_with(labels, [(TRANSPORT, Transport::Unix.label().into())]);
        self.rounds(labels, of).divided_by(&self.rounds(&unix, of))
    }

    fn to_raw(self, labels: &Labels) -> ByRound {
        let mut raw = self
            .0
            .with(&[])
            .filter(|(found, _)| found["orb"] == "raw".into());
        let raw = raw.next().map(|(_, samples)| samples.rounds(P50));
        self.rounds(labels, P50)
            .divided_by(&raw.unwrap_or_default())
    }

    /// Every number that needs more than one series.
    fn derived(self) -> Vec<Derived> {
        let of_call = |labels: &Labels| {
            let mut ratios = vec![("loaded_to_raw_p50", self.to_raw(labels))];
            if is_loaded(labels) {
                ratios.extend([
                    ("loaded_to_unloaded_p50", self.to_alone(labels, P50)),
                    ("loaded_to_unloaded_p99", self.to_alone(labels, P99)),
                    ("high_to_low_mean", self.to_low(labels, MEAN)),
                ]);
            }
            let labels = labels_without(labels, &["part"]);
            let ratio = |(name, rounds): (&str, ByRound)| {
                Derived::of_rounds(name, labels.clone(), "ratio", &rounds)
            };
            ratios.into_iter().filter_map(ratio).collect::<Vec<_>>()
        };
        self.of("high").flat_map(of_call).collect()
    }

    /// The calls of the high-priority client under the load that takes most of a priority, a contestant each.
    fn hardest(self) -> Vec<&'a Labels> {
        let takes = |labels: &Labels| {
            let saturates = labels[LOAD] == SATURATING.into();
            (
                saturates,
                labels[WORK].number(),
                labels[LOW_CLIENTS].number(),
            )
        };
        let most = self.of("high").map(takes).max();
        self.of("high")
            .filter(|labels| Some(takes(labels)) == most)
            .collect()
    }

    fn highlights(self) -> Vec<Highlight> {
        let highlight = |labels: &Labels| {
            let us = |labels: &Labels, of| self.median(labels, of).map(|ns| ns / 1e3);
            let alone = us(&labels_with(labels, [(LOW_CLIENTS, 0usize.into())]), P50);
            let alone = alone.map(|alone| format!("{alone:.1} us without them, "));
            Some(Highlight {
                what: format!(
                    "{}: high-priority median beside {} low-priority clients, {}",
                    who(labels),
                    labels[LOW_CLIENTS],
                    labels[LOAD]
                ),
                value: us(labels, P50)?,
                unit: "us".to_owned(),
                beside: format!(
                    "{}p99 {:.1} us",
                    alone.unwrap_or_default(),
                    us(labels, P99)?
                ),
            })
        };
        self.hardest().into_iter().filter_map(highlight).collect()
    }

    /// The claims about the high-priority client of the preset in which nothing is shared between priorities.
    fn claims(self) -> Vec<Claim> {
        let judged = self.of("high");
        let judged = judged.filter(|labels| labels[PRESET] == PROMISED.into() && is_loaded(labels));
        judged.flat_map(|labels| self.claims_of(labels)).collect()
    }

    fn claims_of(self, labels: &Labels) -> Vec<Claim> {
        let mut claims = vec![
            (
                "to-alone-p50",
                "high-priority median, to that without them",
                self.to_alone(labels, P50),
                MEDIAN_FELT,
            ),
            (
                "to-alone-p99",
                "high-priority p99, to that without them",
                self.to_alone(labels, P99),
                TAIL_FELT,
            ),
        ];
        match over(labels).as_str() {
            "" => claims.push((
                "to-raw",
                "high-priority median, to the raw TCP round trip (a goal)",
                self.to_raw(labels),
                3.0,
            )),
            " over shm" => claims.extend([
                (
                    "to-unix-p50",
                    "high-priority median, to that over the UNIX socket",
                    self.to_unix(labels, P50),
                    MEDIAN_FELT,
                ),
                (
                    "to-unix-p99",
                    "high-priority p99, to that over the UNIX socket",
                    self.to_unix(labels, P99),
                    TAIL_FELT,
                ),
            ]),
            _ => {}
        }
        // Without work, a call of either takes as long: nothing is served while another one waits.
        if labels[WORK].number() > Some(0) {
            claims.extend([
                (
                    "to-low-mean",
                    "high-priority mean, to the low-priority one",
                    self.to_low(labels, MEAN),
                    1.0,
                ),
                (
                    "to-low-p99",
                    "high-priority p99, to the low-priority one",
                    self.to_low(labels, P99),
                    1.0,
                ),
            ]);
        }
        let (load, work_us, low_clients) = (&labels[LOAD], &labels[WORK], &labels[LOW_CLIENTS]);
        let claim = |(id, text, rounds, limit): (&str, &str, ByRound, f64)| {
            let id = format!("{id}.{load}.{work_us}us.{low_clients}{}", id_of(labels));
            let statement = format!("{}, {}: {text}", who(labels), in_words(labels));
            Claim::at_most(id, statement, &rounds, limit, "ratio")
        };
        claims.into_iter().filter_map(claim).collect()
    }

    /// A sentence or two a contestant, and how they are in order.
    fn conclusions(self) -> Vec<String> {
        let hardest = self.hardest();
        let each = hardest.iter().filter_map(|labels| self.conclusion(labels));
        let order = (hardest.len() > 1).then(|| self.order(&hardest));
        each.chain(order).collect()
    }

    /// What was measured, and what the construction lets happen: which of it did, no sample says.
    fn conclusion(self, labels: &Labels) -> Option<String> {
        let p50 = self.to_alone(labels, P50).median()?;
        let p99 = self.to_alone(labels, P99).median()?;
        let us = |of| self.median(labels, of).map(|ns| ns / 1e3);
        let (loaded, tail) = (us(P50)?, us(P99)?);
        let verdict = if p50 > MEDIAN_FELT || p99 > TAIL_FELT {
            "feels the load"
        } else {
            "does not feel the load"
        };
        let preset = labels[PRESET].to_string();
        let mut constructions = CONSTRUCTIONS.iter();
        let (_, construction) = constructions.find(|(known, _)| *known == preset)?;
        Some(format!(
            "{}: the high-priority client {verdict}. Beside {} low-priority clients ({}, {} us of work) its median is \
             {loaded:.1} us, {p50:.2} times that without them, and its p99 {tail:.1} us, {p99:.2} times. {construction}",
            who(labels),
            labels[LOW_CLIENTS],
            labels[LOAD],
            labels[WORK],
        ))
    }

    /// From the one that keeps its priorities best.
    fn order(self, hardest: &[&Labels]) -> String {
        let of = |labels: &&Labels| Some((self.median(labels, P99)?, who(labels)));
        let mut found: Vec<(f64, String)> = hardest.iter().filter_map(of).collect();
        found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let names = found
            .iter()
            .map(|(ns, preset)| format!("{preset} {:.0} us", ns / 1e3));
        format!(
            "In the order of the high-priority p99 under that load: {}. P1 has TAO first, then miniCOOL (3 times its low-priority \
             latency at 50 clients), MT-Orbix (7 times) and CORBAplus (25 times), with requests that do no work and ORBs that \
             took hundreds of locks a request (`orb/whitebox` counts those of ours). What is asked here is how long a request \
             can wait for the work of others.",
            names.collect::<Vec<_>>().join(", ")
        )
    }

    /// What a reader must know.
    fn notes(self, conditions: &Conditions, shares: &IndexMap<Labels, ByRound>) -> Vec<String> {
        let mut notes = Vec::new();
        if conditions.real_time {
            notes.push(format!(
                "The high-priority client and its object have SCHED_FIFO {HIGH}, low-priority clients and theirs less (parameters \
                 `low_servants` and `priority_low`), and the processes themselves 50, with the threads of pools without lanes \
                 and of omniORB: {KIND_CASE}"
            ));
        }
        if self
            .of("high")
            .any(|labels| labels[PRESET] == OMNIORB.into())
        {
            notes.push(OMNIORB_WAITS.to_owned());
        }
        let saturated = shares.iter().filter(|(labels, _)| {
            is_loaded(labels) && labels[LOAD] == SATURATING.into() && !labels.contains_key("side")
        });
        notes.extend(saturated.filter_map(|(labels, shares)| {
            let share = shares.median()?;
            let is_off = (share - SATURATING_SHARE).abs() > SHARE_TOLERANCE;
            let what = in_words(labels);
            is_off.then(|| {
                let percent = share * 100.0;
                format!("{}: {what}: the CPU was {percent:.0} % busy", who(labels))
            })
        }));
        let missed = conditions.numbers.get(MISSED).copied().unwrap_or(0.0);
        if missed > 0.0 {
            notes.push(format!(
                "{missed} releases of low-priority clients were left out, since the one before was not done yet."
            ));
        }
        notes
    }
}

/// The shares of the CPU that both sides took together; where they have a CPU each, of each side. Each with its labels.
fn shares(conditions: &Conditions) -> IndexMap<Labels, ByRound> {
    let mut all: IndexMap<Labels, ByRound> = IndexMap::new();
    for kept in &conditions.answers {
        for (side, share) in &kept.answer.numbers {
            let mut labels = kept.labels.clone();
            if side != BOTH_SIDES {
                labels.insert("side".to_owned(), side.as_str().into());
            }
            all.entry(labels).or_default().set(kept.round, *share);
        }
    }
    all
}

fn cpu_shares(shares: &IndexMap<Labels, ByRound>) -> impl Iterator<Item = Derived> {
    shares.iter().filter_map(|(labels, rounds)| {
        Derived::of_rounds("cpu_share", labels.clone(), "ratio", rounds)
    })
}

fn is_loaded(labels: &Labels) -> bool {
    labels[LOW_CLIENTS].number() > Some(0)
}

/// The preset, and the transport if that is not TCP.
fn who(labels: &Labels) -> String {
    format!("{}{}", labels[PRESET], over(labels))
}

/// The load, such as `50 low-priority clients, saturating, 500 us of work`.
fn in_words(labels: &Labels) -> String {
    let clients = match labels[LOW_CLIENTS] {
        LabelValue::Number(1) => "client",
        _ => "clients",
    };
    let (low_clients, load, work_us) = (&labels[LOW_CLIENTS], &labels[LOAD], &labels[WORK]);
    format!("{low_clients} low-priority {clients}, {load}, {work_us} us of work")
}

/// Whose claims they are.
const PROMISED: &str = "tao";

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
         client one thread, with the priority of the process, sends the requests of all in the order of their arrival, \
         and reads the replies of all.",
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
const OMNIORB_WAITS: &str = "omniORB runs with its own defaults at both ends; its acceptor thread polls every 50 ms and may then hold \
                       up a request by up to a millisecond (`-ORBconnectionWatchPeriod` changes that).";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::{Verdict, labels};

    /// The median and the p99 of each round.
    type Rounds = [[u64; 2]; 6];

    fn call(preset: &str, low_clients: usize, role: &str) -> Labels {
        labels([
            ("orb", "rtorb".into()),
            (PRESET, preset.into()),
            ("role", role.into()),
            (LOAD, SATURATING.into()),
            (WORK, 500usize.into()),
            (LOW_CLIENTS, low_clients.into()),
            ("part", CALL.into()),
        ])
    }

    fn found(all: &[(Labels, Rounds)]) -> Findings {
        let mut cells = Cells::default();
        let raw = labels([("orb", "raw".into()), ("part", CALL.into())]);
        for round in 0..6 {
            cells.add(&raw, round, &[6_000], 0);
            for (labels, rounds) in all {
                let [p50, p99] = rounds[round];
                cells.add(labels, round, &[p50, p50, p50, p50, p99], 0);
            }
        }
        findings(&cells, &Conditions::default())
    }

    /// The verdict on each claim when the high-priority client of `tao` has these times beside 50 others.
    fn verdicts(loaded: Rounds) -> Vec<(String, Verdict)> {
        let found = found(&[
            (call("tao", 0, "high"), [[10_000, 20_000]; 6]),
            (call("tao", 50, "high"), loaded),
            (call("tao", 50, "low"), [[50_000, 90_000]; 6]),
        ]);
        let claims = found.claims.into_iter();
        claims.map(|claim| (claim.id, claim.verdict)).collect()
    }

    #[test]
    fn each_claim_can_be_held_missed_and_not_judged() {
        let ids = [
            "to-alone-p50",
            "to-alone-p99",
            "to-raw",
            "to-low-mean",
            "to-low-p99",
        ];
        let all = |verdict| {
            ids.map(|id| (format!("{id}.saturating.500us.50"), verdict))
                .to_vec()
        };
        let (good, bad) = ([11_000, 21_000], [200_000, 300_000]);
        assert_eq!(verdicts([good; 6]), all(Verdict::Held));
        assert_eq!(verdicts([bad; 6]), all(Verdict::Missed));
        assert_eq!(
            verdicts([good, bad, good, bad, good, bad]),
            all(Verdict::NotJudged)
        );
    }

    #[test]
    fn shared_memory_is_judged_beside_the_unix_socket() {
        let over = |transport: &str, low_clients| {
            let high = call("tao", low_clients, "high");
            labels_with(&high, [(TRANSPORT, transport.into())])
        };
        let verdicts = |loaded: [u64; 2]| {
            let found = found(&[
                (over("unix", 0), [[10_000, 12_000]; 6]),
                (over("unix", 50), [[10_000, 12_000]; 6]),
                (over("shm", 0), [loaded; 6]),
                (over("shm", 50), [loaded; 6]),
            ]);
            let claims = found.claims.into_iter();
            let claims = claims.filter(|claim| claim.id.starts_with("to-unix"));
            claims
                .map(|claim| (claim.id, claim.verdict))
                .collect::<Vec<_>>()
        };
        let both = |p50, p99| {
            let id = |id: &str| format!("{id}.saturating.500us.50.shm");
            [(id("to-unix-p50"), p50), (id("to-unix-p99"), p99)]
        };
        let (held, missed) = (Verdict::Held, Verdict::Missed);
        assert_eq!(verdicts([8_000, 11_000]), both(held, held));
        assert_eq!(verdicts([8_000, 19_000]), both(held, missed));
        assert_eq!(verdicts([14_000, 14_000]), both(missed, held));
    }

    #[test]
    fn only_the_promised_preset_is_judged() {
        let times = [[10_000, 20_000]; 6];
        let found = found(&[
            (call("corbaplus", 0, "high"), times),
            (call("corbaplus", 9, "high"), times),
            (call("tao", 0, "high"), times),
        ]);
        assert!(found.claims.is_empty());
        let of = |name: &str| {
            found
                .derived
                .iter()
                .filter(|found| found.name == name)
                .count()
        };
        assert_eq!(
            (of("loaded_to_raw_p50"), of("loaded_to_unloaded_p50")),
            (3, 1)
        );
    }

    #[test]
    fn who_feels_the_load_is_told_with_the_reason() {
        let found = found(&[
            (call("tao", 0, "high"), [[10_000, 12_000]; 6]),
            (call("tao", 50, "high"), [[11_000, 13_000]; 6]),
            (call("corbaplus", 0, "high"), [[15_000, 20_000]; 6]),
            (call("corbaplus", 50, "high"), [[400_000, 900_000]; 6]),
        ]);
        let [tao, corbaplus, order] = &found.conclusions[..] else {
            panic!("two contestants and their order: {:?}", found.conclusions)
        };
        assert!(tao.starts_with("tao") && tao.contains("does not feel"));
        assert!(corbaplus.starts_with("corbaplus") && corbaplus.contains("one queue"));
        assert!(order.contains("tao 13 us, corbaplus 900 us"), "{order}");
    }

    #[test]
    fn what_the_cpu_did_is_told_where_it_is_not_what_was_wanted() {
        let cell = labels_without(&call("tao", 50, "high"), &["orb", "role", "part"]);
        let answer = |round, share| crate::study::Answered {
            labels: cell.clone(),
            round,
            answer: crate::processes::probe::Answer {
                numbers: [(BOTH_SIDES.to_owned(), share)].into(),
                ..Default::default()
            },
        };
        let conditions = Conditions {
            answers: vec![answer(0, 0.5), answer(1, 0.6), answer(2, 0.55)],
            ..Conditions::default()
        };
        let found = findings(&Cells::default(), &conditions);
        assert_eq!(found.derived[0].rounds, [0.5, 0.6, 0.55]);
        assert!(
            found.notes[0].ends_with("the CPU was 55 % busy"),
            "{:?}",
            found.notes
        );
    }
}
