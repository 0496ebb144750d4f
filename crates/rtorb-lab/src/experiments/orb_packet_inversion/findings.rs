//! What urgent calls wait for, in numbers and in words.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::{Claim, Derived, Highlight, Published, labels};

use super::{BESIDE, BULK_DATA, DISCIPLINE, NETWORK_PRIORITY, NONE, OFF, ON};
use crate::contestants::packets::link::{Discipline, PACKET_NS, RATE_MBIT};
use crate::experiments::percentile::{P50, P99, Percentile};
use crate::study::{Conditions, Findings};

pub(super) fn findings(cells: &Cells, conditions: &Conditions) -> Findings {
    let mut all = Findings::default();
    for discipline in Discipline::ALL {
        let [off, on] = [OFF, ON].map(|marks| Level::of(cells, discipline, marks));
        let levels = [&off, &on];
        all.highlights
            .extend(levels.into_iter().filter_map(Level::highlight));
        all.derived.extend(derived(&off, &on, conditions));
        all.claims.extend(claims(&off, &on));
        let words = words(&off, &on);
        all.published
            .extend(words.iter().map(|words| published(words)));
        all.conclusions.extend(words);
    }
    all
}

/// The urgent calls with or without marks.
struct Level<'a> {
    discipline: Discipline,
    marks: &'static str,
    alone: Option<&'a Samples>,
    beside: Option<&'a Samples>,
}

impl<'a> Level<'a> {
    fn of(cells: &'a Cells, discipline: Discipline, marks: &'static str) -> Self {
        let samples = |bulk: &str| {
            let wanted = [
                (DISCIPLINE, discipline.name().into()),
                (NETWORK_PRIORITY, marks.into()),
                (BULK_DATA, bulk.into()),
            ];
            cells.with(&wanted).next().map(|(_, samples)| samples)
        };
        Self {
            discipline,
            marks,
            alone: samples(NONE),
            beside: samples(BESIDE),
        }
    }

    /// How many times as long a call takes beside bulk data.
    fn beside_to_alone(&self, of: &Percentile) -> ByRound {
        of.rounds(self.beside).divided_by(&of.rounds(self.alone))
    }

    fn highlight(&self) -> Option<Highlight> {
        let (beside, alone) = (self.beside?.statistics(), self.alone?.statistics());
        // As the claims and the sentence have it.
        let of_rounds = |samples| P99.rounds(samples).median();
        Some(Highlight {
            what: format!(
                "an urgent call beside bulk data, {}, network priority {}, 99 %",
                self.discipline.name(),
                self.marks
            ),
            value: of_rounds(self.beside)? / 1e3,
            unit: "us".to_owned(),
            beside: format!(
                "median {:.1} us; alone {:.1} us, 99 % {:.1} us",
                beside.p50 / 1e3,
                alone.p50 / 1e3,
                of_rounds(self.alone)? / 1e3
            ),
        })
    }
}

fn claims(off: &Level<'_>, on: &Level<'_>) -> Vec<Claim> {
    let [beside, alone] = [on.beside, on.alone].map(|samples| P99.rounds(samples));
    let packets = beside.less(&alone).map(|ns| ns / PACKET_NS as f64);
    let name = on.discipline.name();
    let wait = Claim::at_most(
        format!("packets-ahead-{name}-p99"),
        format!(
            "{name}, with marks: what bulk data adds to the 99th percentile of an urgent call, in times of a full packet on the link"
        ),
        &packets,
        PACKETS_AHEAD_MAX,
        "packets",
    );
    let inversion = Claim::at_most(
        format!("marked-to-unmarked-{name}-p99"),
        format!(
            "{name}, beside bulk data: the 99th percentile of an urgent call with marks, to that without"
        ),
        &beside.divided_by(&P99.rounds(off.beside)),
        MARKED_TO_UNMARKED_MAX,
        "ratio",
    );
    [wait, inversion].into_iter().flatten().collect()
}

fn derived(off: &Level<'_>, on: &Level<'_>, conditions: &Conditions) -> Vec<Derived> {
    let discipline = on.discipline;
    let with = |label: &str, value: &str| {
        labels([
            (DISCIPLINE, discipline.name().into()),
            (label, value.into()),
        ])
    };
    let of_level = |level: &Level<'_>| with(NETWORK_PRIORITY, level.marks);
    let mut all = Vec::new();
    for of in [&P50, &P99] {
        for level in [off, on] {
            let name = format!("beside_to_alone_{}", of.name);
            let ratios = level.beside_to_alone(of);
            all.extend(Derived::of_rounds(&name, of_level(level), "ratio", &ratios));
        }
        let name = format!("marked_to_unmarked_{}", of.name);
        let ratios = of.rounds(on.beside).divided_by(&of.rounds(off.beside));
        let labels = with(BULK_DATA, BESIDE);
        all.extend(Derived::of_rounds(&name, labels, "ratio", &ratios));
    }
    all.extend([off, on].into_iter().filter_map(|level| {
        let number = |name: String| conditions.numbers.get(&name).copied();
        let (bytes, elapsed_ns) = (
            number(bulk_bytes(discipline, level.marks))?,
            number(bulk_ns(discipline, level.marks))?,
        );
        Some(Derived {
            name: "bulk_share_of_link".to_owned(),
            labels: of_level(level),
            unit: "ratio".to_owned(),
            value: bytes * 8e3 / f64::from(RATE_MBIT) / elapsed_ns.max(1.0),
            rounds: Vec::new(),
        })
    }));
    all
}

/// The name of the number of bytes that bulk clients have transferred in each direction.
pub(super) fn bulk_bytes(discipline: Discipline, marks: &str) -> String {
    format!("bulk_bytes_{}_{marks}", discipline.name())
}

/// The name of the time that they took.
pub(super) fn bulk_ns(discipline: Discipline, marks: &str) -> String {
    format!("bulk_ns_{}_{marks}", discipline.name())
}

fn words(off: &Level<'_>, on: &Level<'_>) -> Option<String> {
    let of = |level: &Level<'_>| {
        let beside_ms = P99.rounds(level.beside).median()? / 1e6;
        let times = level.beside_to_alone(&P99).median()?;
        Some(format!(
            "{beside_ms:.2} ms, {times:.1} times as long as alone"
        ))
    };
    Some(format!(
        "Beside bulk data an urgent call takes (99 %, {}) {} without marks; with marks {}.",
        on.discipline.name(),
        of(off)?,
        of(on)?
    ))
}

fn published(words: &str) -> Published {
    Published {
        source: "P2 section 3.1.3".to_owned(),
        what: "packet-based priority inversion".to_owned(),
        published: "FIFO queueing of packets: higher priority threads must block until their packet is at the front of the queue"
            .to_owned(),
        ours: words.to_owned(),
    }
}

/// A packet that the link has begun to carry is not interrupted: there may be one ahead of the request and one ahead of the
/// reply. The third is for timers and threads that are late.
const PACKETS_AHEAD_MAX: f64 = 3.0;
/// Without marks, a call waits for the packets of all bulk clients in each direction: at least twice as many.
const MARKED_TO_UNMARKED_MAX: f64 = 0.5;

#[cfg(test)]
mod tests {
    use rtorb_results::Verdict::{self, Held, Missed, NotJudged};

    use super::*;

    /// The findings with these times of each round in us: alone, beside bulk data without marks, and with marks.
    fn found(alone_us: &[u64], off_us: &[u64], on_us: &[u64]) -> Findings {
        let mut cells = Cells::default();
        for (level, bulk, rounds_us) in [
            (OFF, NONE, alone_us),
            (OFF, BESIDE, off_us),
            (ON, NONE, alone_us),
            (ON, BESIDE, on_us),
        ] {
            let labels = labels([
                (DISCIPLINE, "prio".into()),
                (NETWORK_PRIORITY, level.into()),
                (BULK_DATA, bulk.into()),
            ]);
            for (round, us) in rounds_us.iter().enumerate() {
                cells.add(&labels, round, &[us * 1_000], 0);
            }
        }
        findings(&cells, &Conditions::default())
    }

    fn verdicts(found: &Findings) -> [Verdict; 2] {
        let ids: Vec<&str> = found.claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(
            ids,
            ["packets-ahead-prio-p99", "marked-to-unmarked-prio-p99"]
        );
        [found.claims[0].verdict, found.claims[1].verdict]
    }

    #[test]
    fn a_packet_ahead_in_each_direction_is_no_inversion() {
        let found = found(&[200; 3], &[20_000; 3], &[2_400; 3]);
        assert_eq!(verdicts(&found), [Held, Held]);
        let expected = "20.00 ms, 100.0 times as long as alone without marks; with marks 2.40 ms, 12.0 times as long as alone";
        let words = &found.conclusions[0];
        assert!(words.contains(expected), "{words}");
        assert_eq!(&found.published[0].ours, words);
        assert!(found.highlights[0].beside.contains("alone 200"));
        assert_eq!((found.highlights.len(), found.derived.len()), (2, 6));
    }

    #[test]
    fn marks_that_nobody_heeds_are_missed() {
        let found = found(&[200; 3], &[20_000; 3], &[19_000, 20_000, 21_000]);
        assert_eq!(verdicts(&found), [Missed, Missed]);
    }

    #[test]
    fn rounds_that_disagree_decide_nothing() {
        let found = found(&[200; 5], &[6_000; 5], &[1_000, 5_500, 900, 5_800, 3_500]);
        assert_eq!(verdicts(&found), [NotJudged, NotJudged]);
    }

    #[test]
    fn a_host_without_a_link_claims_nothing() {
        let found = found(&[], &[], &[]);
        assert!(found.claims.is_empty() && found.derived.is_empty());
        assert!(found.conclusions.is_empty() && found.published.is_empty());
    }

    #[test]
    fn the_share_of_bulk_data_is_that_of_one_direction() {
        let numbers = [
            (bulk_bytes(Discipline::Htb, ON), 625_000.0),
            (bulk_ns(Discipline::Htb, ON), 1e9),
        ];
        let conditions = Conditions {
            numbers: numbers.into_iter().collect(),
            ..Conditions::default()
        };
        let found = findings(&Cells::default(), &conditions);
        let [share] = &found.derived[..] else {
            panic!("{:?}", found.derived)
        };
        assert!((share.value - 0.5).abs() < 1e-9, "{}", share.value);
    }
}
