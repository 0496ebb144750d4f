//! What follows from the measured times: what an ORB adds to the octets, whether the promises hold, and how the
//! published figures compare.

use rtorb_results::by_round::ByRound;
use rtorb_results::{Claim, Derived, Highlight, Labels, Published, labels};

use super::cells::Cell;
use super::measured::{Key, Measured};
use crate::contestants::burst::Verb;
use crate::contestants::operations::Operation;
use crate::contestants::{Architecture, Orb, Transport};

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
        let rounds = measured.rounds(&Key::call(&Cell::LONG, orb, transport));
        rounds.median().map(|ns| ns / 1e3)
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

/// The claims about an ORB's share of a call. Those about an absent contestant are left out.
pub(super) fn claims(measured: &Measured) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (transport, name) in [
        (Transport::Tcp, "IIOP"),
        (Transport::Unix, "the UNIX socket"),
    ] {
        let share = omniorb_shares(measured, &Key::call(&Cell::LONG, Orb::Rtorb, transport));
        claims.extend(Claim::at_most(
            format!("share-of-omniorb.{}", transport.label()),
            format!("cube_long over {name}: time above raw, as a share of omniORB's"),
            &share,
            0.5,
            "ratio",
        ));
    }
    claims.extend(LANES.iter().filter_map(|lane| {
        let (id, model) = match lane {
            Architecture::LanePropagated => ("propagated", " with the client's priority"),
            _ => ("declared", ""),
        };
        Claim::at_most(
            format!("lane-to-plain.{id}"),
            format!("cube_long over IIOP: a lane{model}, to the plain call"),
            &lane_ratios(measured, *lane),
            LANE_TO_PLAIN_MAX,
            "ratio",
        )
    }));
    claims.extend(struct_claims(measured));
    for key in measured
        .calls(Orb::Rtorb)
        .filter(|key| key.cell().operation == Operation::OctetSequence)
    {
        let (len, transport) = (key.len, key.transport.label());
        claims.extend(Claim::at_most(
            format!("octets-to-raw.{len}.{transport}"),
            format!("{len} octets over {transport}: time apart from the servant's work, to the raw exchange"),
            &apart_ratios(measured, key),
            1.1,
            "ratio",
        ));
    }
    claims
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

fn struct_claims(measured: &Measured) -> Vec<Claim> {
    let cell = Cell {
        operation: Operation::ManySequence,
        len: 4096,
    };
    let marshalling = |orb| measured.rounds(&Key::part(&cell, orb, Verb::Marshal));
    let alone = Claim::at_most(
        "structs-to-omniorb.alone",
        "4,096 structs: writing and reading them, without a call, to omniORB's",
        &marshalling(Orb::Rtorb).divided_by(&marshalling(Orb::OmniOrb)),
        1.0,
        "ratio",
    );
    let in_call = |transport: Transport| {
        let of = |orb| marshalling_ns(measured, &Key::call(&cell, orb, transport));
        let name = transport.label();
        // Both are differences of medians; below zero is noise around none at all.
        let ours = of(Orb::Rtorb).map(|ns| ns.max(0.0));
        Claim::at_most(
            format!("structs-to-omniorb.{name}"),
            format!(
                "4,096 structs over {name}: the call less raw exchange and servant's work, to omniORB's"
            ),
            &ours.divided_by(&of(Orb::OmniOrb)),
            1.0,
            "ratio",
        )
    };
    let in_calls = [Transport::Tcp, Transport::Unix].into_iter();
    alone
        .into_iter()
        .chain(in_calls.filter_map(in_call))
        .collect()
}

fn raw(measured: &Measured, key: &Key) -> ByRound {
    measured.rounds(&Key::call(&key.cell(), Orb::Raw, key.transport))
}

fn above_raw_ns(measured: &Measured, key: &Key) -> ByRound {
    let raw = raw(measured, key);
    measured.rounds(key).paired(&raw, |call, raw| call - raw)
}

/// The call less the raw exchange of the same octets.
fn time_above_raw(measured: &Measured, key: &Key) -> Option<Derived> {
    let rounds = above_raw_ns(measured, key);
    Derived::of_rounds("time_above_raw", labels_of(key, true), "ns", &rounds)
}

fn omniorb_shares(measured: &Measured, key: &Key) -> ByRound {
    let theirs = Key::call(&key.cell(), Orb::OmniOrb, key.transport);
    let theirs = above_raw_ns(measured, &theirs);
    above_raw_ns(measured, key).paired(&theirs, |ours, theirs| ours / theirs)
}

/// Our time above raw as a share of omniORB's.
fn share_of_omniorb(measured: &Measured, key: &Key) -> Option<Derived> {
    let theirs = Key::call(&key.cell(), Orb::OmniOrb, key.transport);
    let theirs = above_raw_ns(measured, &theirs).median()?;
    let rounds = omniorb_shares(measured, key);
    let share = Derived::of_rounds("share_of_omniorb", labels_of(key, false), "ratio", &rounds)?;
    // A oneway may take less than raw; a share of that says nothing.
    (theirs > 0.0).then_some(())?;
    // Of the medians: in a single round the difference to raw may be next to nothing, and the quotient anything.
    Some(Derived {
        value: above_raw_ns(measured, key).median()? / theirs,
        ..share
    })
}

fn lane_ratios(measured: &Measured, lane: Architecture) -> ByRound {
    let plain = Key::call(&Cell::LONG, Orb::Rtorb, Transport::Tcp);
    let lane = measured.rounds(&plain.of(lane));
    lane.divided_by(&measured.rounds(&plain))
}

/// The plain call of a server with lanes as a multiple of that of a server with a thread for each connection.
fn to_plain(measured: &Measured, lane: Architecture) -> Option<Derived> {
    let plain = Key::call(&Cell::LONG, Orb::Rtorb, Transport::Tcp);
    let mut labels = labels_of(&plain, true);
    labels.insert("preset".to_owned(), lane.label()?.into());
    let of = |key| measured.rounds(&key).median();
    Some(Derived {
        value: of(plain.of(lane))? / of(plain)?,
        ..Derived::of_rounds(
            "lane_to_plain",
            labels,
            "ratio",
            &lane_ratios(measured, lane),
        )?
    })
}

fn apart_ns(measured: &Measured, key: &Key) -> ByRound {
    let work = work(measured, key);
    measured.rounds(key).paired(&work, |call, work| call - work)
}

/// The call less what the servant does with a sequence.
fn apart_from_work(measured: &Measured, key: &Key) -> Option<Derived> {
    let rounds = apart_ns(measured, key);
    Derived::of_rounds("apart_from_work", labels_of(key, true), "ns", &rounds)
}

fn apart_ratios(measured: &Measured, key: &Key) -> ByRound {
    apart_ns(measured, key).divided_by(&raw(measured, key))
}

/// The same as a multiple of the raw exchange of the same octets.
fn apart_from_work_to_raw(measured: &Measured, key: &Key) -> Option<Derived> {
    let rounds = apart_ratios(measured, key);
    Derived::of_rounds(
        "apart_from_work_to_raw",
        labels_of(key, true),
        "ratio",
        &rounds,
    )
}

fn marshalling_ns(measured: &Measured, key: &Key) -> ByRound {
    let work = work(measured, key);
    above_raw_ns(measured, key).paired(&work, |above, work| above - work)
}

/// The call less the raw exchange and the servant's work: marshalling, and finding the servant.
fn marshalling_in_call(measured: &Measured, key: &Key) -> Option<Derived> {
    let rounds = marshalling_ns(measured, key);
    Derived::of_rounds("marshalling_in_call", labels_of(key, true), "ns", &rounds)
}

fn work(measured: &Measured, key: &Key) -> ByRound {
    measured.rounds(&Key::part(&key.cell(), key.orb, Verb::Work))
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
    use rtorb_results::Verdict;

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
        let claims = claims(&measured);
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0].verdict, Verdict::Held);
    }

    #[test]
    fn the_servants_work_is_not_the_orbs() {
        let measured = Measured::with_rounds(&[
            (Key::call(&OCTETS, Orb::Raw, Transport::Tcp), &[18_000.0; 3]),
            (
                Key::call(&OCTETS, Orb::Rtorb, Transport::Tcp),
                &[25_000.0; 3],
            ),
            (Key::part(&OCTETS, Orb::Rtorb, Verb::Work), &[4_000.0; 3]),
        ]);
        let claims = claims(&measured);
        assert_eq!(claims.len(), 1);
        assert!((claims[0].value - 21.0 / 18.0).abs() < 1e-9);
        assert!(claims[0].is_missed());
    }

    #[test]
    fn without_a_peer_nothing_is_said_about_it() {
        let measured = Measured::with_rounds(&[
            (Key::call(&LONG, Orb::Raw, Transport::Tcp), &[6_800.0]),
            (Key::call(&LONG, Orb::Rtorb, Transport::Tcp), &[7_300.0]),
        ]);
        assert!(claims(&measured).is_empty());
        assert_eq!(derived(&measured).len(), 1);
    }

    #[test]
    fn a_lane_is_compared_with_the_plain_call_and_with_nothing_else() {
        let plain = Key::call(&LONG, Orb::Rtorb, Transport::Tcp);
        let measured = Measured::with_rounds(&[
            (Key::call(&LONG, Orb::Raw, Transport::Tcp), &[5_000.0; 3]),
            (plain, &[6_000.0, 7_000.0, 6_000.0]),
            (plain.of(Architecture::Lane), &[6_300.0, 7_350.0, 6_300.0]),
            (
                plain.of(Architecture::LanePropagated),
                &[6_900.0, 8_050.0, 6_900.0],
            ),
        ]);
        let judged: Vec<(f64, Verdict)> = claims(&measured)
            .iter()
            .map(|claim| (claim.value, claim.verdict))
            .collect();
        assert_eq!(judged, [(1.05, Verdict::Held), (1.15, Verdict::Missed)]);
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
