//! Whether it is a staircase, in numbers and in words.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::statistics::Statistics;
use rtorb_results::summary::words::part_of;
use rtorb_results::{Claim, Derived, Highlight, LabelValue, Labels, Published, Verdict};

use super::line_up::{RELEASE, SENDING};
use super::{PROMISED, WORK};
use crate::experiments::transports::{TRANSPORT, id_of, over};
use crate::study::{Conditions, Findings};

pub(super) fn findings(cells: &Cells, _: &Conditions) -> Findings {
    let all = Staircase::all(cells);
    let promised = all
        .iter()
        .filter(|staircase| staircase.preset() == PROMISED);
    Findings {
        highlights: highlights(&all),
        derived: all.iter().filter_map(Staircase::derived).collect(),
        // With the preset `tao` it is a staircase, in the median and in the tail.
        claims: promised
            .flat_map(|staircase| [&P50, &P99].map(|of| staircase.claim(of)))
            .flatten()
            .collect(),
        conclusions: all.iter().filter_map(|one| words(one, &all)).collect(),
        published: published(&all),
        ..Findings::default()
    }
}

/// The clients of a preset, with so much work for the servants, from sending or from the release.
struct Staircase<'a> {
    /// The labels that all clients have: preset, work and part.
    labels: Labels,
    /// The most urgent first.
    clients: Vec<Client<'a>>,
}

#[derive(Clone, Copy)]
struct Client<'a> {
    priority: i64,
    rate_hz: i64,
    samples: &'a Samples,
}

impl<'a> Staircase<'a> {
    fn all(cells: &'a Cells) -> Vec<Self> {
        let shared = ["part", "preset", TRANSPORT, WORK].map(str::to_owned);
        let mut all: Vec<Self> = Vec::new();
        for (of, samples) in cells.all() {
            let labels = part_of(of, &shared);
            let number = |label: &str| of.get(label).and_then(LabelValue::number);
            let client = Client {
                priority: number("priority").unwrap_or(0),
                rate_hz: number("rate_hz").unwrap_or(0),
                samples,
            };
            match all.iter_mut().find(|known| known.labels == labels) {
                Some(known) => known.clients.push(client),
                None => all.push(Self {
                    labels,
                    clients: vec![client],
                }),
            }
        }
        for staircase in &mut all {
            let clients = &mut staircase.clients;
            clients.sort_by_key(|client| std::cmp::Reverse(client.priority));
        }
        all
    }

    /// The same from another moment on.
    fn since<'s>(&self, part: &str, all: &'s [Self]) -> Option<&'s Self> {
        let others = ["preset", TRANSPORT, WORK].map(str::to_owned);
        let same = |other: &&Self| {
            other.is_since(part)
                && part_of(&other.labels, &others) == part_of(&self.labels, &others)
        };
        all.iter().find(same)
    }

    fn is_since(&self, part: &str) -> bool {
        self.labels["part"] == part.into()
    }

    fn preset(&self) -> String {
        self.labels["preset"].to_string()
    }

    /// The preset, and the transport if that is not TCP.
    fn who(&self) -> String {
        self.preset() + &over(&self.labels)
    }

    fn work_us(&self) -> i64 {
        self.labels[WORK].number().unwrap_or(0)
    }

    /// The step on which the more urgent client is slowest, of all pairs: noise on two steps must not hide a slope.
    fn worst_step(&self, of: &Percentile) -> Option<Step> {
        let pairs = self.clients.iter().enumerate();
        let pairs = pairs.flat_map(|(place, upper)| {
            let lower = self.clients[place + 1..].iter();
            lower.map(move |lower| (upper, lower))
        });
        let steps = pairs.filter_map(|(upper, lower)| {
            let [ours, theirs] = [upper, lower].map(|client| client.samples.rounds(of.of));
            let ratios = ours.divided_by(&theirs);
            Some(Step {
                upper_hz: upper.rate_hz,
                lower_hz: lower.rate_hz,
                times: ratios.median()?,
                ratios,
            })
        });
        steps.max_by(|a, b| a.times.total_cmp(&b.times))
    }

    fn derived(&self) -> Option<Derived> {
        let step = self.worst_step(&P50)?;
        Derived::of_rounds("worst_step", self.labels.clone(), "ratio", &step.ratios)
    }

    fn claim(&self, of: &Percentile) -> Option<Claim> {
        let step = self.worst_step(of)?;
        let since = if self.is_since(SENDING) {
            "sending"
        } else {
            "the release"
        };
        let (preset, work_us) = (self.who(), self.work_us());
        let mut claim = Claim::at_most(
            format!(
                "staircase-{}.{work_us}us.{}{}",
                of.id,
                self.labels["part"],
                id_of(&self.labels)
            ),
            format!(
                "{preset}, {work_us} us of work: the {} Hz client's {} from {since}, to that of the {} Hz client (worst step)",
                step.upper_hz, of.name, step.lower_hz
            ),
            &step.ratios,
            STEP_MAX,
            "ratio",
        )?;
        if let Some(calls) = self.too_few_calls(of) {
            claim.take_back(format!(
                "a client has {calls} calls in a round, whose {} is the largest of them: clients of other rates cannot be compared with it",
                of.name
            ));
        }
        Some(claim)
    }

    /// The calls that the slowest client has in a round, if these are too few for a percentile.
    fn too_few_calls(&self, of: &Percentile) -> Option<u64> {
        let clients = self.clients.iter();
        let counts = clients.map(|client| {
            let rounds = client.samples.rounds(of.of).len() as u64;
            client.samples.count() / rounds.max(1)
        });
        counts.min().filter(|calls| *calls < of.calls_min)
    }
}

/// Two clients of a staircase.
#[derive(Debug)]
struct Step {
    upper_hz: i64,
    lower_hz: i64,
    /// How many times as long the more urgent one takes, in each round.
    ratios: ByRound,
    /// The median of these.
    times: f64,
}

/// Which percentile of a round.
struct Percentile {
    id: &'static str,
    name: &'static str,
    of: fn(&Statistics) -> f64,
    /// With fewer calls in a round it depends on their number.
    calls_min: u64,
}

const P50: Percentile = Percentile {
    id: "p50",
    name: "median",
    of: |round| round.p50,
    calls_min: 0,
};
const P99: Percentile = Percentile {
    id: "p99",
    name: "99th percentile",
    of: |round| round.p99,
    calls_min: 100,
};

/// Each client of the promised preset, with most work.
fn highlights(all: &[Staircase<'_>]) -> Vec<Highlight> {
    let promised = all.iter().filter(|one| one.who() == PROMISED);
    let sent = promised.filter(|one| one.is_since(SENDING));
    let sent = sent.max_by_key(|one| one.work_us());
    let Some((sent, released)) = sent.and_then(|sent| Some((sent, sent.since(RELEASE, all)?)))
    else {
        return Vec::new();
    };
    let both = sent.clients.iter().zip(&released.clients);
    let line = |(sent_client, released): (&Client<'_>, &Client<'_>)| {
        Some(Highlight {
            what: format!(
                "{PROMISED}: {} Hz, priority {}, {} us of work, median from the release",
                released.rate_hz,
                released.priority,
                sent.work_us()
            ),
            value: released.samples.median_ns()? / 1e3,
            unit: "us".to_owned(),
            beside: format!(
                "{:.1} us from sending",
                sent_client.samples.median_ns()? / 1e3
            ),
        })
    };
    both.filter_map(line).collect()
}

/// A sentence for the staircase from sending and that from the release.
fn words(sent: &Staircase<'_>, all: &[Staircase<'_>]) -> Option<String> {
    if !sent.is_since(SENDING) {
        return None;
    }
    let both = [sent, sent.since(RELEASE, all)?];
    let judged = both.map(|one| Some((one.claim(&P50)?, one.worst_step(&P50)?)));
    let judged: Vec<(Claim, Step)> = judged.into_iter().collect::<Option<_>>()?;
    let (preset, work_us) = (sent.preset(), sent.work_us());
    let inverted = judged.iter().find(|(claim, _)| claim.is_missed());
    let verdict = match inverted {
        Some((claim, worst)) => format!(
            "inverted: the {} Hz client takes {:.2} times as long as the {} Hz client. {}",
            worst.upper_hz,
            claim.value.unwrap_or(0.0),
            worst.lower_hz,
            reason(&preset)
        ),
        None if judged
            .iter()
            .all(|(claim, _)| claim.verdict == Verdict::Held) =>
        {
            "a staircase: no client is slower than one that calls less often, beyond noise."
                .to_owned()
        }
        None => "not judged: the rounds differ more than the clients.".to_owned(),
    };
    Some(format!("{}, {work_us} us of work: {verdict}", sent.who()))
}

fn reason(preset: &str) -> &'static str {
    match preset {
        "omniorb" => {
            "All its threads have one priority, so a request waits until the one that is being served is done."
        }
        "default" => {
            "A connection's thread takes the object's priority only once it has read the request."
        }
        _ => {
            "No connection, thread or queue is shared between two priorities: the cause is not known."
        }
    }
}

/// The text of the paper beside what was measured here.
fn published(all: &[Staircase<'_>]) -> Vec<Published> {
    let is_like_the_papers =
        |one: &&Staircase<'_>| one.who() == PROMISED && one.work_us() == 0 && one.is_since(SENDING);
    let Some(staircase) = all.iter().find(is_like_the_papers) else {
        return Vec::new();
    };
    let each = |shown: &dyn Fn(&Samples) -> Option<String>| {
        let words = staircase.clients.iter().filter_map(|client| {
            Some(format!(
                "{} at {} Hz",
                shown(client.samples)?,
                client.rate_hz
            ))
        });
        words.collect::<Vec<_>>().join(", ")
    };
    let latency = each(&|samples| Some(format!("{:.1} us", samples.median_ns()? / 1e3)));
    let jitter = each(&|samples| {
        let found = samples.statistics();
        let share = found.stddev / found.mean.max(1.0);
        Some(format!("{:.0} %", share * 100.0))
    });
    let row = |source: &str, [what, published]: [&str; 2], ours: &str| Published {
        source: source.to_owned(),
        what: what.to_owned(),
        published: published.to_owned(),
        ours: ours.to_owned(),
    };
    let latencies = LATENCIES.map(|cells| row("P2 Figure 3 (TAO)", cells, &latency));
    let jitters = JITTERS.map(|cells| row("P2 Figure 4 (TAO)", cells, &jitter));
    latencies.into_iter().chain(jitters).collect()
}

/// What the paper shows, and its figures.
const LATENCIES: [[&str; 2]; 2] = [
    [
        "latency, Linux",
        "inverted: 289 us at 10 Hz, 269 us at 5 Hz",
    ],
    ["latency, LynxOS", "no measurable inversion"],
];
const JITTERS: [[&str; 2]; 3] = [
    ["jitter to the mean, Linux", "28.8 % to 193 %"],
    [
        "jitter to the mean, LynxOS",
        "6.42 % at 20 Hz, up to 18.8 % at 1 Hz",
    ],
    [
        "jitter to the mean, Solaris; Windows NT",
        "32.6 % to 41.2 %; 31.3 % to 57.3 %",
    ],
];
/// From this ratio on, a step is an inversion: beside it, caches and timers of the clients differ by some percent.
const STEP_MAX: f64 = 1.1;

#[cfg(test)]
mod tests {
    use rtorb_results::{Verdicts, labels, labels_with};

    use super::*;

    /// The cells of clients of `tao` that have the same times from sending and from the release: one time in each round.
    fn cells(clients: &[(u64, &[u64])], calls: usize) -> Cells {
        let mut cells = Cells::default();
        for part in [SENDING, RELEASE] {
            for (rate_hz, rounds_ns) in clients {
                let labels = labels([
                    ("preset", PROMISED.into()),
                    (WORK, 500u64.into()),
                    ("part", part.into()),
                    ("rate_hz", (*rate_hz).into()),
                    ("priority", (rate_hz + 10).into()),
                ]);
                for (round, round_ns) in rounds_ns.iter().enumerate() {
                    cells.add(&labels, round, &vec![*round_ns; calls], 0);
                }
            }
        }
        cells
    }

    #[test]
    fn another_transport_is_a_staircase_of_its_own() {
        let mut cells = cells(&[(20, &[10_000; 3]), (10, &[10_000; 3])], 100);
        let over_tcp: Vec<(Labels, u64)> =
            cells.all().map(|(of, _)| (of.clone(), 10_000)).collect();
        for (labels, ns) in over_tcp {
            let labels = labels_with(&labels, [(TRANSPORT, "shm".into())]);
            let ns = if labels["rate_hz"] == 20u64.into() {
                2 * ns
            } else {
                ns
            };
            for round in 0..3 {
                cells.add(&labels, round, &vec![ns; 100], 0);
            }
        }
        let found = findings(&cells, &Conditions::default());
        let verdict = |id: &str| {
            let claim = found.claims.iter().find(|claim| claim.id == id);
            claim.expect("it is claimed").verdict
        };
        assert_eq!(verdict("staircase-p50.500us.call"), Verdict::Held);
        assert_eq!(verdict("staircase-p50.500us.call.shm"), Verdict::Missed);
        assert!(found.conclusions[1].starts_with("tao over shm, 500 us of work: inverted"));
        assert_eq!(found.highlights.len(), 2, "of TCP alone");
    }

    fn found(clients: &[(u64, &[u64])]) -> Findings {
        findings(&cells(clients, 100), &Conditions::default())
    }

    #[test]
    fn a_staircase_holds_within_noise() {
        let found = found(&[
            (1, &[20_000; 3]),
            (20, &[10_500; 3]),
            (10, &[10_000; 3]),
            (5, &[14_000; 3]),
        ]);
        assert_eq!(Verdicts::of(&found.claims).held, 4);
        let ids: Vec<&str> = found.claims.iter().map(|claim| claim.id.as_str()).collect();
        let expected = [
            "staircase-p50.500us.from_sending",
            "staircase-p99.500us.from_sending",
            "staircase-p50.500us.call",
            "staircase-p99.500us.call",
        ];
        assert_eq!(ids, expected);
        assert!((found.claims[0].value.unwrap() - 1.05).abs() < 1e-2);
        assert!(found.conclusions[0].contains("a staircase"));
        assert_eq!((found.conclusions.len(), found.derived.len()), (1, 2));
        let first = &found.highlights[0];
        assert!(first.what.contains("20 Hz, priority 30"), "{}", first.what);
    }

    #[test]
    fn an_inversion_over_more_than_one_step_is_found() {
        let clients: [(u64, &[u64]); 3] =
            [(20, &[11_900; 3]), (10, &[10_900; 3]), (5, &[10_000; 3])];
        let cells = cells(&clients, 100);
        let step = Staircase::all(&cells)[0].worst_step(&P50).unwrap();
        assert_eq!((step.upper_hz, step.lower_hz), (20, 5));
        let found = findings(&cells, &Conditions::default());
        assert_eq!(Verdicts::of(&found.claims).missed, 4);
        assert!(found.conclusions[0].contains("inverted"));
        assert!(self::found(&[]).claims.is_empty());
    }

    #[test]
    fn the_largest_of_a_few_calls_is_no_percentile() {
        let clients: [(u64, &[u64]); 2] = [(20, &[30_000; 3]), (10, &[10_000; 3])];
        let found = findings(&cells(&clients, 99), &Conditions::default());
        let verdicts: Vec<Verdict> = found.claims.iter().map(|claim| claim.verdict).collect();
        let [missed, open] = [Verdict::Missed, Verdict::NotJudged];
        assert_eq!(verdicts, [missed, open, missed, open]);
    }

    #[test]
    fn rounds_that_disagree_decide_nothing() {
        let judged = |upper: &[u64]| found(&[(20, upper), (10, &[10_000; 5])]).claims[0].verdict;
        assert_eq!(
            judged(&[10_500, 10_400, 10_500, 10_600, 10_400]),
            Verdict::Held
        );
        assert_eq!(
            judged(&[12_000, 12_100, 13_000, 11_900, 12_000]),
            Verdict::Missed
        );
        assert_eq!(
            judged(&[12_000, 8_000, 13_000, 9_000, 14_000]),
            Verdict::NotJudged
        );
        // However they differ, all say the same.
        assert_eq!(
            judged(&[20_000, 25_000, 35_000, 15_000, 30_000]),
            Verdict::Missed
        );
        assert_eq!(judged(&[2_000, 5_000, 8_000, 3_000, 9_000]), Verdict::Held);
    }

    #[test]
    fn the_published_figures_stand_beside_ours_without_work() {
        assert!(found(&[(20, &[10_000; 3])]).published.is_empty());
        let mut cells = Cells::default();
        let labels = labels([
            ("preset", PROMISED.into()),
            (WORK, 0u64.into()),
            ("part", SENDING.into()),
            ("rate_hz", 20u64.into()),
        ]);
        cells.add(&labels, 0, &[10_000, 12_000], 0);
        let published = findings(&cells, &Conditions::default()).published;
        assert_eq!(published.len(), 5);
        assert_eq!(published[0].ours, "11.0 us at 20 Hz");
        assert_eq!(published[2].ours, "13 % at 20 Hz");
    }
}
