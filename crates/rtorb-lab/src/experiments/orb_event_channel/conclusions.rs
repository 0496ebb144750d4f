//! What an event costs beside a call, and whether the urgent consumer feels the others, in numbers and in words.

use rtorb_results::by_round::ByRound;
use rtorb_results::statistics::Statistics;
use rtorb_results::{Claim, Derived, Highlight, Published};

use super::Measured;
use super::edges::Cell;
use super::fan_out::{Priorities, Receipt};
use super::isolation::{Key, Others};
use super::sequence::Policy;
use crate::contestants::Transport;
use crate::contestants::square_wave::recorded::{Recorded, RecordedTimes};
use crate::contestants::square_wave::{Part, Path};

/// The quotients of events and calls, of the urgent consumer beside others and alone, and what became of the sequences.
pub(super) fn derived(measured: &Measured) -> Vec<Derived> {
    let mut derived = Vec::new();
    for pair in pairs(measured) {
        for (name, part, which) in RATIOS {
            derived.extend(pair.quotient(measured, (name, part), which));
        }
    }
    for key in measured.isolation.recorded.keys() {
        for (name, which) in [
            ("beside_to_alone_p50", p50 as fn(&Statistics) -> f64),
            (BESIDE_TO_ALONE, p99),
        ] {
            derived.extend(beside_to_alone(measured, *key, name, which));
        }
        derived.extend(discarded(measured, *key));
    }
    derived.extend(measured.sequences.derived());
    derived
}

/// The claims of the event channel.
pub(super) fn claims(measured: &Measured) -> Vec<Claim> {
    let mut claims = Vec::new();
    for pair in pairs(measured) {
        let (transport, load) = pair.conditions(measured);
        let is_loaded = if pair.cell.loaded { "loaded" } else { "idle" };
        claims.extend(Claim::at_most(
            format!("event-to-call.{transport}.{is_loaded}"),
            format!(
                "{transport}, load {load}: an event from the edge until the output is set, by the call's, medians (P4: about 2)"
            ),
            &pair.ratios(Part::Call, p50),
            TO_CALL_MAX,
            "ratio",
        ));
    }
    for key in measured.isolation.recorded.keys() {
        let (transport, others) = (key.0.label(), key.1.name());
        let Some(ratios) = beside_to_alone_ratios(measured, *key, p99) else {
            continue;
        };
        let claim = Claim::at_most(
            format!("beside-to-alone.{transport}.{others}"),
            format!(
                "{transport}: the urgent consumer's 99th percentile beside {} others that are {others}, by that alone",
                measured.isolation.low_consumers,
            ),
            &ratios,
            BESIDE_MAX,
            "ratio",
        );
        claims.extend(claim.map(|claim| claim.of_each("isolated_rounds")));
    }
    for sequence in &measured.sequences.all {
        let policy = sequence.policy.name();
        claims.push(Claim::counted(
            format!("unaccounted.{policy}"),
            format!(
                "{policy} policy: of {} events, those that were lost or came twice and the policy does not say",
                sequence.sent
            ),
            sequence.unaccounted() as f64,
            0.0,
            "events",
        ));
    }
    if let Some(value) = measured.counted.get("heap_calls", 1) {
        let statement = "heap calls an event in the channel's process: none in 1,000 events";
        claims.push(Claim::counted(
            "heap-calls",
            statement,
            value,
            NONE,
            "per_event",
        ));
    }
    claims
}

/// Over TCP: the event, and how it stands to the call.
pub(super) fn highlights(measured: &Measured) -> Vec<Highlight> {
    let over_tcp = pairs(measured).into_iter();
    let over_tcp = over_tcp.filter(|pair| pair.cell.transport == Transport::Tcp);
    let of_edges = over_tcp.map(|pair| {
        let us = |recorded: &Recorded| recorded.statistics(Part::Call).p50 / 1e3;
        let ratio = pair.ratio(Part::Call, p50).unwrap_or(0.0);
        Highlight {
            what: format!(
                "edge to output by an event, load {}, median",
                measured.edges.load(&pair.cell)
            ),
            value: us(pair.event),
            unit: "us".to_owned(),
            beside: format!("by a call: {:.1} us, {ratio:.2} times", us(pair.call)),
        }
    });
    let mut highlights: Vec<Highlight> = of_edges.collect();
    let worst = measured
        .isolation
        .recorded
        .keys()
        .filter_map(|key| {
            let found = beside_to_alone(measured, *key, BESIDE_TO_ALONE, p99)?;
            Some((key.1.name(), found.value))
        })
        .max_by(|one, other| one.1.total_cmp(&other.1));
    highlights.extend(worst.map(|(others, value)| {
        Highlight {
            what: "the urgent consumer's 99th percentile beside others, by that alone: the largest"
                .to_owned(),
            value,
            unit: "ratio".to_owned(),
            beside: format!("others {others}"),
        }
    }));
    highlights
}

pub(super) fn words(measured: &Measured) -> Vec<String> {
    let mut words: Vec<String> = pairs(measured)
        .iter()
        .filter_map(|pair| edge_words(measured, pair))
        .collect();
    words.extend(fan_out_words(measured));
    let isolated = measured.isolation.recorded.iter();
    words.extend(isolated.filter_map(|(key, recorded)| beside_words(measured, *key, recorded)));
    words.extend(sequence_words(measured));
    words.extend(count_words(measured));
    words
}

pub(super) fn published(measured: &Measured) -> Vec<Published> {
    let published = |pair: &Pair<'_>| {
        Some(Published {
            source: "P4 section 2.2, Figure 12".to_owned(),
            what: format!(
                "an event through the channel by a call, from the edge, {}, load {}",
                pair.cell.transport.label(),
                measured.edges.load(&pair.cell)
            ),
            published: "approximately two times".to_owned(),
            ours: format!("{:.2} times", pair.ratio(Part::Call, p50)?),
        })
    };
    // P4 measures it over a network.
    pairs(measured)
        .iter()
        .filter(|pair| pair.cell.transport == Transport::Tcp)
        .filter_map(published)
        .collect()
}

fn edge_words(measured: &Measured, pair: &Pair<'_>) -> Option<String> {
    let us = |recorded: &Recorded, which: fn(&Statistics) -> f64| {
        which(&recorded.statistics(Part::Call)) / 1e3
    };
    let (transport, load) = pair.conditions(measured);
    Some(format!(
        "{transport}, load {load}: an event takes {:.2} times a call from the edge ({:.1} us instead of {:.1}), and {:.2} times from \
         sending; its 99th percentile is {:.1} us, that of the call {:.1}.",
        pair.ratio(Part::Call, p50)?,
        us(pair.event, p50),
        us(pair.call, p50),
        pair.ratio(Part::Request, p50)?,
        us(pair.event, p99),
        us(pair.call, p99),
    ))
}

fn beside_words(measured: &Measured, key: Key, recorded: &RecordedTimes) -> Option<String> {
    let found = beside_to_alone(measured, key, BESIDE_TO_ALONE, p99)?;
    let judged = if found.value <= BESIDE_MAX {
        "feels next to nothing"
    } else {
        "feels it"
    };
    let (transport, others) = key;
    let discarded = measured.isolation.discarded.get(&key)?;
    Some(format!(
        "{}, beside {} others that are {}: the urgent consumer {judged}; its 99th percentile is {:.2} times that alone in the median \
         round ({:.1} us); {} events for others were discarded meanwhile.",
        transport.label(),
        measured.isolation.low_consumers,
        others.name(),
        found.value,
        recorded.rounds(p99).median()? / 1e3,
        discarded.iter().sum::<f64>(),
    ))
}

fn fan_out_words(measured: &Measured) -> Option<String> {
    let fan_out = &measured.fan_out;
    let (priorities, consumers) = *fan_out
        .sustained
        .keys()
        .rfind(|(priorities, _)| *priorities == Priorities::Mixed)?;
    let key = (priorities, consumers);
    let us = |receipt: Receipt| {
        let recorded = fan_out.receipts.get(&(key, receipt));
        recorded.map_or(0.0, |recorded| recorded.statistics().p50 / 1e3)
    };
    Some(format!(
        "Of {consumers} consumers the urgent one has an event after {:.1} us, the median one after {:.1} us and the last one after {:.1} \
         us (medians); sent without a pause, {:.0} events a second reach all of them.",
        us(Receipt::High),
        us(Receipt::Median),
        us(Receipt::Last),
        fan_out.sustained.get(&key)?.a_second(),
    ))
}

fn sequence_words(measured: &Measured) -> impl Iterator<Item = String> {
    measured.sequences.all.iter().map(|sequence| {
        let kept = match (sequence.unaccounted(), sequence.policy) {
            (0, Policy::Lossless) => "all arrived once and in their order".to_owned(),
            (0, Policy::Discarding) => format!(
                "{} arrived, once and in their order, and the others are the {} that the channel counts as discarded",
                sequence.received, sequence.discarded
            ),
            (wrong, _) => format!(
                "{wrong} are unaccounted for: {} arrived, {} were discarded, {} came twice or too late",
                sequence.received, sequence.discarded, sequence.repeated
            ),
        };
        format!(
            "Of {} events under the {} policy, {kept}.",
            sequence.sent,
            sequence.policy.name()
        )
    })
}

fn count_words(measured: &Measured) -> Option<String> {
    let get = |what: &str| measured.counted.get(what, 1);
    let calls = match get("system_calls") {
        Some(calls) => format!("{calls:.2} system calls"),
        None => "system calls that nobody could count, for want of strace".to_owned(),
    };
    Some(format!(
        "An event to one consumer costs the channel's process {:.3} heap calls, {:.2} lock operations, {:.2} context switches and {calls}.",
        get("heap_calls")?,
        get("user_locks")?,
        get("voluntary_switches")? + get("involuntary_switches")?,
    ))
}

/// A call and an event under the same conditions.
struct Pair<'a> {
    /// Of the event.
    cell: Cell,
    event: &'a Recorded,
    call: &'a Recorded,
}

impl Pair<'_> {
    /// Of the medians over rounds.
    fn ratio(&self, part: Part, which: fn(&Statistics) -> f64) -> Option<f64> {
        let event = self.event.rounds(part, which).median()?;
        Some(event / self.call.rounds(part, which).median()?.max(1.0))
    }

    fn ratios(&self, part: Part, which: fn(&Statistics) -> f64) -> ByRound {
        let call = self.call.rounds(part, which);
        self.event.rounds(part, which).divided_by(&call)
    }

    fn quotient(
        &self,
        measured: &Measured,
        (name, part): (&str, Part),
        which: fn(&Statistics) -> f64,
    ) -> Option<Derived> {
        let mut labels = measured.edges.labels(&self.cell);
        labels.remove("path");
        Some(Derived {
            value: self.ratio(part, which)?,
            ..Derived::of_rounds(name, labels, "ratio", &self.ratios(part, which))?
        })
    }

    fn conditions<'a>(&self, measured: &'a Measured) -> (&'static str, &'a str) {
        (self.cell.transport.label(), measured.edges.load(&self.cell))
    }
}

fn pairs(measured: &Measured) -> Vec<Pair<'_>> {
    let events = measured.edges.cells();
    let events = events.filter(|(cell, _)| cell.path == Path::Event);
    let pairs = events.filter_map(|(cell, event)| {
        let call = measured.edges.get(Cell {
            path: Path::Call,
            ..cell
        })?;
        Some(Pair { cell, event, call })
    });
    pairs.collect()
}

/// The quotient of each round, since what the machine does beside differs from round to round; nothing for the urgent consumer
/// alone.
fn beside_to_alone_ratios(
    measured: &Measured,
    (transport, others): Key,
    which: fn(&Statistics) -> f64,
) -> Option<ByRound> {
    if others == Others::Absent {
        return None;
    }
    let recorded = &measured.isolation.recorded;
    let rounds = |others| Some(recorded.get(&(transport, others))?.rounds(which));
    Some(rounds(others)?.divided_by(&rounds(Others::Absent)?))
}

fn beside_to_alone(
    measured: &Measured,
    key: Key,
    name: &str,
    which: fn(&Statistics) -> f64,
) -> Option<Derived> {
    let ratios = beside_to_alone_ratios(measured, key, which)?;
    Derived::of_rounds(name, measured.isolation.labels(key), "ratio", &ratios)
}

/// Over all rounds.
fn discarded(measured: &Measured, key: Key) -> Option<Derived> {
    let rounds = measured.isolation.discarded.get(&key)?;
    Some(Derived {
        name: DISCARDED.to_owned(),
        labels: measured.isolation.labels(key),
        unit: "events".to_owned(),
        value: rounds.iter().sum(),
        rounds: rounds.clone(),
    })
}

fn p50(statistics: &Statistics) -> f64 {
    statistics.p50
}

fn p99(statistics: &Statistics) -> f64 {
    statistics.p99
}

/// Names of derived numbers that are shown in tables.
pub(super) const BESIDE_TO_ALONE: &str = "beside_to_alone_p99";
pub(super) const DISCARDED: &str = "discarded_for_others";
type Ratio = (&'static str, Part, fn(&Statistics) -> f64);
const RATIOS: [Ratio; 3] = [
    ("event_to_call_p50", Part::Call, p50),
    ("event_to_call_p99", Part::Call, p99),
    ("event_to_call_from_sending_p50", Part::Request, p50),
];
/// The paper found about 2.
const TO_CALL_MAX: f64 = 1.8;
/// A fifth more than alone.
const BESIDE_MAX: f64 = 1.2;
/// None in 1,000 events.
const NONE: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::super::sequence::Sequence;
    use super::*;
    use crate::contestants::square_wave::Latencies;
    use rtorb_results::{Verdict, Verdicts};

    /// The latency of an event where that of a call is 20 us, and of the urgent consumer beside others where it is 10 us alone.
    fn measured(event_ns: u64, beside_ns: u64) -> Measured {
        let mut measured = Measured::default();
        for (path, ns) in [(Path::Call, 20_000), (Path::Event, event_ns)] {
            let latencies = Latencies {
                parts_ns: [vec![ns], vec![1_000], vec![ns - 1_000], vec![ns]],
                ..Latencies::default()
            };
            let cell = Cell {
                transport: Transport::Tcp,
                loaded: false,
                path,
            };
            measured.edges.add(0, cell, &latencies);
            measured.edges.add(1, cell, &latencies);
        }
        for (others, ns) in [(Others::Absent, 10_000), (Others::Slow, beside_ns)] {
            let key = (Transport::Unix, others);
            let recorded = measured.isolation.recorded.entry(key).or_default();
            recorded.add(0, [ns; 100], 0);
            recorded.add(1, [ns; 100], 0);
            measured.isolation.discarded.insert(key, vec![5.0]);
        }
        measured
    }

    #[test]
    fn an_event_is_judged_by_the_call_and_the_urgent_consumer_by_itself_alone() {
        let good = measured(30_000, 11_000);
        let found = claims(&good);
        assert_eq!(found.len(), 2);
        assert_eq!(Verdicts::of(&found).held, 2, "{found:?}");
        assert_eq!(published(&good)[0].ours, "1.50 times");
        let bad = measured(60_000, 30_000);
        assert_eq!(Verdicts::of(&claims(&bad)).missed, 2);
        let said = words(&bad).join("\n");
        assert!(
            said.contains("3.00 times a call from the edge (60.0 us instead of 20.0)"),
            "{said}"
        );
        assert!(
            said.contains("are slow: the urgent consumer feels it"),
            "{said}"
        );
        let shown = highlights(&bad);
        assert_eq!((shown.len(), shown[1].beside.as_str()), (2, "others slow"));
    }

    #[test]
    fn quotients_are_round_by_round() {
        let found = derived(&measured(30_000, 20_000));
        let value = |name: &str| {
            let one = found.iter().find(|derived| derived.name == name).unwrap();
            assert_eq!(one.rounds, [one.value; 2]);
            one.value
        };
        assert!((value("event_to_call_p50") - 1.5).abs() < 0.01);
        assert!((value("beside_to_alone_p99") - 2.0).abs() < 0.01);
    }

    #[test]
    fn an_event_that_nobody_can_account_for_breaks_the_promise() {
        let mut measured = Measured::default();
        let sequence = Sequence {
            policy: Policy::Lossless,
            sent: 10,
            received: 10,
            discarded: 0,
            lost: 0,
            repeated: 0,
        };
        measured.sequences.all = vec![
            sequence,
            Sequence {
                received: 9,
                lost: 1,
                ..sequence
            },
        ];
        let verdicts: Vec<Verdict> = claims(&measured)
            .iter()
            .map(|claim| claim.verdict)
            .collect();
        assert_eq!(verdicts, [Verdict::Held, Verdict::Missed]);
        let said = words(&measured);
        assert!(said[0].contains("all arrived once"), "{said:?}");
        assert!(said[1].contains("2 are unaccounted for"), "{said:?}");
    }

    #[test]
    fn nothing_measured_says_nothing() {
        let nothing = Measured::default();
        assert!(claims(&nothing).is_empty() && words(&nothing).is_empty());
        assert!(derived(&nothing).is_empty() && highlights(&nothing).is_empty());
    }
}
