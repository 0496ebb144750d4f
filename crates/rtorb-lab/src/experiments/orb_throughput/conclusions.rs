//! What follows from the measured times: what an ORB adds to the octets, whether the promises hold, and how the
//! published figures compare.

use super::cells::Cell;
use super::measured::{Key, Measured};
use crate::contestants::burst::Verb;
use crate::contestants::operations::Operation;
use crate::contestants::{Architecture, Orb, Transport};
use crate::results::statistics::median;
use crate::results::{Derived, Highlight, Labels, Published, Target, labels};

/// Every number that needs more than one series.
pub(super) fn derived(measured: &Measured) -> Vec<Derived> {
    let mut derived = Vec::new();
    for orb in [Orb::Rtorb, Orb::OmniOrb] {
        for key in measured.calls(orb) {
            derived.extend(time_above_raw(measured, key));
            derived.extend(apart_from_work(measured, key));
            derived.extend(apart_from_work_to_raw(measured, key));
            derived.extend(marshalling_in_call(measured, key));
        }
    }
    derived.extend(
        measured
            .calls(Orb::Rtorb)
            .filter_map(|key| share_of_omniorb(measured, key)),
    );
    derived.extend(LANES.iter().filter_map(|lane| to_plain(measured, *lane)));
    derived
}

/// What a reader wants to know first: `cube_long` on each transport, beside the raw exchange and the peer.
pub(super) fn highlights(measured: &Measured) -> Vec<Highlight> {
    let at = |orb, transport| {
        median(measured.rounds(&Key::call(&Cell::LONG, orb, transport))).map(|ns| ns / 1e3)
    };
    let mut highlights = Vec::new();
    for (transport, name) in [
        (Transport::Tcp, "IIOP"),
        (Transport::Unix, "the UNIX socket"),
    ] {
        let others = [("raw octets", Orb::Raw), ("omniORB", Orb::OmniOrb)];
        let beside = others
            .iter()
            .filter_map(|(other, orb)| Some(format!("{other} {:.1} us", at(*orb, transport)?)));
        if let Some(value) = at(Orb::Rtorb, transport) {
            highlights.push(Highlight {
                what: format!("cube_long over {name}, median"),
                value,
                unit: "us".to_owned(),
                beside: beside.collect::<Vec<_>>().join(", "),
            });
        }
        let ours = Key::call(&Cell::LONG, Orb::Rtorb, transport);
        if let Some(above) = time_above_raw(measured, &ours) {
            let share = share_of_omniorb(measured, &ours)
                .map(|share| format!("{:.0} % of omniORB's", share.value * 100.0));
            highlights.push(Highlight {
                what: format!("what the ORB adds over {name}"),
                value: above.value / 1e3,
                unit: "us".to_owned(),
                beside: share.unwrap_or_default(),
            });
        }
    }
    highlights
}

/// The promises of the project that this experiment can decide; those that need an absent contestant are left out.
pub(super) fn targets(measured: &Measured) -> Vec<Target> {
    let mut targets = Vec::new();
    for (transport, name) in [
        (Transport::Tcp, "IIOP"),
        (Transport::Unix, "the UNIX socket"),
    ] {
        let share = share_of_omniorb(measured, &Key::call(&Cell::LONG, Orb::Rtorb, transport));
        targets.extend(share.map(|share| {
            let what = format!("cube_long over {name}: time above raw, as a share of omniORB's");
            Target::at_most(what, share.value, 0.5, "ratio")
        }));
    }
    targets.extend(LANES.iter().filter_map(|lane| {
        let ratio = to_plain(measured, *lane)?.value;
        let model = match lane {
            Architecture::LanePropagated => " with the client's priority",
            _ => "",
        };
        let what = format!("cube_long over IIOP: a lane{model}, to the plain call");
        Some(Target::at_most(what, ratio, LANE_TO_PLAIN_MAX, "ratio"))
    }));
    targets.extend(struct_targets(measured));
    for key in measured
        .calls(Orb::Rtorb)
        .filter(|key| key.cell().operation == Operation::OctetSequence)
    {
        targets.extend(apart_from_work_to_raw(measured, key).map(|ratio| {
            let (len, transport) = (key.len, key.transport.label());
            let what = format!("{len} octets over {transport}: time apart from the servant's work, to the raw exchange");
            Target::at_most(what, ratio.value, 1.1, "ratio")
        }));
    }
    targets
}

/// The text of the paper beside what was measured here.
pub(super) fn published(measured: &Measured) -> Vec<Published> {
    let source = "P0 Figure 2 (TAO 1.2, loopback)";
    let ours = |operation| {
        let key = Key::call(&Cell { operation, len: 0 }, Orb::Rtorb, Transport::Tcp);
        measured
            .calls_per_second(&key)
            .map(|calls| format!("{} calls/s", grouped(calls)))
    };
    let rows = [
        (
            "two-way, simple types, Linux and Linux/RT",
            "about 10,000 calls/s",
            Operation::Long,
        ),
        (
            "two-way, void, short and long, QNX",
            "about 6,000 calls/s",
            Operation::Void,
        ),
        (
            "two-way, void, short and long, VxWorks",
            "a little below QNX: 5,500 calls/s",
            Operation::Short,
        ),
        (
            "one-way, Linux",
            "nearly double that of the other systems",
            Operation::Oneway,
        ),
    ];
    rows.into_iter()
        .filter_map(|(what, published, operation)| {
            Some(Published {
                source: source.to_owned(),
                what: format!("{what} (ours: {operation} over TCP)"),
                published: published.to_owned(),
                ours: ours(operation)?,
            })
        })
        .collect()
}

fn struct_targets(measured: &Measured) -> Vec<Target> {
    let cell = Cell {
        operation: Operation::ManySequence,
        len: 4096,
    };
    let mut targets = Vec::new();
    let alone = |orb| median(measured.rounds(&Key::part(&cell, orb, Verb::Marshal)));
    if let (Some(ours), Some(theirs)) = (alone(Orb::Rtorb), alone(Orb::OmniOrb)) {
        let what = "4,096 structs: writing and reading them, without a call, to omniORB's";
        targets.push(Target::at_most(what, ours / theirs, 1.0, "ratio"));
    }
    for transport in [Transport::Tcp, Transport::Unix] {
        let of = |orb| marshalling_in_call(measured, &Key::call(&cell, orb, transport));
        if let (Some(ours), Some(theirs)) = (of(Orb::Rtorb), of(Orb::OmniOrb)) {
            let name = transport.label();
            let what = format!(
                "4,096 structs over {name}: the call less raw exchange and servant's work, to omniORB's"
            );
            // Both are differences of medians; below zero is noise around none at all.
            targets.push(Target::at_most(
                what,
                ours.value.max(0.0) / theirs.value.max(1.0),
                1.0,
                "ratio",
            ));
        }
    }
    targets
}

/// The call less the raw exchange of the same octets.
fn time_above_raw(measured: &Measured, key: &Key) -> Option<Derived> {
    let raw = measured.rounds(&Key::call(&key.cell(), Orb::Raw, key.transport));
    let rounds = paired(measured.rounds(key), raw, |call, raw| call - raw);
    named("time_above_raw", labels_of(key, true), "ns", rounds)
}

/// Our time above raw as a share of omniORB's.
fn share_of_omniorb(measured: &Measured, key: &Key) -> Option<Derived> {
    let ours = time_above_raw(measured, key)?;
    let theirs = time_above_raw(
        measured,
        &Key::call(&key.cell(), Orb::OmniOrb, key.transport),
    )?;
    // A oneway may take less than raw; a share of that says nothing.
    if theirs.value <= 0.0 {
        return None;
    }
    let rounds = paired(&ours.rounds, &theirs.rounds, |ours, theirs| ours / theirs);
    let share = named("share_of_omniorb", labels_of(key, false), "ratio", rounds)?;
    // Of the medians: in a single round the difference to raw may be next to nothing, and the quotient anything.
    Some(Derived {
        value: ours.value / theirs.value,
        ..share
    })
}

/// The plain call of a server with lanes as a multiple of that of a server with a thread for each connection.
fn to_plain(measured: &Measured, lane: Architecture) -> Option<Derived> {
    let plain = Key::call(&Cell::LONG, Orb::Rtorb, Transport::Tcp);
    let of_lane = plain.of(lane);
    let both = [of_lane, plain].map(|key| measured.rounds(&key));
    let rounds = paired(both[0], both[1], |lane, plain| lane / plain);
    let mut labels = labels_of(&plain, true);
    labels.insert("preset".to_owned(), lane.label()?.into());
    Some(Derived {
        value: median(both[0])? / median(both[1])?,
        ..named("lane_to_plain", labels, "ratio", rounds)?
    })
}

/// The call less what the servant does with a sequence.
fn apart_from_work(measured: &Measured, key: &Key) -> Option<Derived> {
    let rounds = paired(measured.rounds(key), work(measured, key), |call, work| {
        call - work
    });
    named("apart_from_work", labels_of(key, true), "ns", rounds)
}

/// The same as a multiple of the raw exchange of the same octets.
fn apart_from_work_to_raw(measured: &Measured, key: &Key) -> Option<Derived> {
    let apart = apart_from_work(measured, key)?;
    let raw = measured.rounds(&Key::call(&key.cell(), Orb::Raw, key.transport));
    let rounds = paired(&apart.rounds, raw, |apart, raw| apart / raw);
    named(
        "apart_from_work_to_raw",
        labels_of(key, true),
        "ratio",
        rounds,
    )
}

/// The call less the raw exchange and the servant's work: marshalling, and finding the servant.
fn marshalling_in_call(measured: &Measured, key: &Key) -> Option<Derived> {
    let above = time_above_raw(measured, key)?;
    let rounds = paired(&above.rounds, work(measured, key), |above, work| {
        above - work
    });
    named("marshalling_in_call", labels_of(key, true), "ns", rounds)
}

fn work<'a>(measured: &'a Measured, key: &Key) -> &'a [f64] {
    measured.rounds(&Key::part(&key.cell(), key.orb, Verb::Work))
}

/// Round by round, so that a drift of the machine cancels.
fn paired(ours: &[f64], theirs: &[f64], combine: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    ours.iter()
        .zip(theirs)
        .map(|(ours, theirs)| combine(*ours, *theirs))
        .collect()
}

fn named(name: &str, labels: Labels, unit: &str, rounds: Vec<f64>) -> Option<Derived> {
    let value = median(&rounds)?;
    Some(Derived {
        name: name.to_owned(),
        labels,
        unit: unit.to_owned(),
        value,
        rounds,
    })
}

fn labels_of(key: &Key, with_orb: bool) -> Labels {
    let cell = key.cell();
    let mut labels = labels([
        ("operation", cell.operation.name().into()),
        ("transport", key.transport.label().into()),
        ("len", cell.len.into()),
        (
            "payload_bytes",
            cell.operation.payload_bytes(cell.len).into(),
        ),
    ]);
    if with_orb {
        labels.insert("orb".to_owned(), key.orb.label().into());
    }
    labels
}

/// A whole number with a comma every three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const LANES: [Architecture; 2] = [Architecture::Lane, Architecture::LanePropagated];
/// What a lane may cost.
const LANE_TO_PLAIN_MAX: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Cell = Cell::LONG;
    const OCTETS: Cell = Cell {
        operation: Operation::OctetSequence,
        len: 65_536,
    };

    #[test]
    fn what_an_orb_adds_is_compared_round_by_round() {
        let measured = Measured::with_rounds(&[
            (
                Key::call(&LONG, Orb::Raw, Transport::Tcp),
                &[6_800.0, 8_000.0, 7_000.0],
            ),
            (
                Key::call(&LONG, Orb::Rtorb, Transport::Tcp),
                &[7_300.0, 8_600.0, 7_500.0],
            ),
            (
                Key::call(&LONG, Orb::OmniOrb, Transport::Tcp),
                &[8_800.0, 10_000.0, 9_000.0],
            ),
        ]);
        let share =
            share_of_omniorb(&measured, &Key::call(&LONG, Orb::Rtorb, Transport::Tcp)).unwrap();
        assert_eq!(share.rounds, [0.25, 0.3, 0.25]);
        assert!(
            (share.value - 500.0 / 2_000.0).abs() < 1e-9,
            "500 above raw in the median, to 2,000"
        );
        let targets = targets(&measured);
        assert_eq!(targets.len(), 1);
        assert!(targets[0].holds);
    }

    #[test]
    fn the_servants_work_is_not_the_orbs() {
        let measured = Measured::with_rounds(&[
            (Key::call(&OCTETS, Orb::Raw, Transport::Tcp), &[18_000.0]),
            (Key::call(&OCTETS, Orb::Rtorb, Transport::Tcp), &[25_000.0]),
            (Key::part(&OCTETS, Orb::Rtorb, Verb::Work), &[4_000.0]),
        ]);
        let targets = targets(&measured);
        assert_eq!(targets.len(), 1);
        assert!((targets[0].value - 21.0 / 18.0).abs() < 1e-9);
        assert!(!targets[0].holds);
    }

    #[test]
    fn without_a_peer_nothing_is_said_about_it() {
        let measured = Measured::with_rounds(&[
            (Key::call(&LONG, Orb::Raw, Transport::Tcp), &[6_800.0]),
            (Key::call(&LONG, Orb::Rtorb, Transport::Tcp), &[7_300.0]),
        ]);
        assert!(targets(&measured).is_empty());
        assert_eq!(derived(&measured).len(), 1);
    }

    #[test]
    fn a_lane_is_compared_with_the_plain_call_and_with_nothing_else() {
        let plain = Key::call(&LONG, Orb::Rtorb, Transport::Tcp);
        let measured = Measured::with_rounds(&[
            (Key::call(&LONG, Orb::Raw, Transport::Tcp), &[5_000.0; 3]),
            (plain, &[6_000.0, 7_000.0, 6_000.0]),
            (plain.of(Architecture::Lane), &[6_300.0, 6_300.0, 9_000.0]),
            (plain.of(Architecture::LanePropagated), &[6_900.0; 3]),
        ]);
        let judged: Vec<(f64, bool)> = targets(&measured)
            .iter()
            .map(|target| (target.value, target.holds))
            .collect();
        assert_eq!(judged, [(1.05, true), (1.15, false)]);
        let names: Vec<String> = derived(&measured)
            .into_iter()
            .map(|found| found.name)
            .collect();
        assert_eq!(names, ["time_above_raw", "lane_to_plain", "lane_to_plain"]);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(999.4), "999");
        assert_eq!(grouped(1_234_567.0), "1,234,567");
    }
}
