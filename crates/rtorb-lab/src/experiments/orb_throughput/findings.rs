//! What follows from the measured times: what an ORB adds to the octets, whether the promises hold, and how the
//! published figures compare.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::summary::words::grouped;
use rtorb_results::{
    Claim, Derived, Highlight, LabelValue, Labels, Published, labels, labels_with, labels_without,
};

use crate::contestants::operations::Operation;
use crate::contestants::{Architecture, Orb, Transport};
use crate::study::{Conditions, Findings};

use super::{BY_ICEORYX2, MEBIBYTE};

pub(super) fn findings(cells: &Cells, _: &Conditions) -> Findings {
    let calls = Calls(cells);
    Findings {
        highlights: calls.highlights(),
        derived: calls.derived(),
        claims: calls.claims(),
        published: calls.published(),
        ..Findings::default()
    }
}

/// The labels of a call, without a lane if it is ours.
fn call(orb: Orb, transport: Transport, operation: Operation, len: usize) -> Labels {
    labels([
        ("operation", operation.name().into()),
        ("orb", orb.label().into()),
        ("transport", transport.label().into()),
        ("len", len.into()),
        ("payload_bytes", operation.payload_bytes(len).into()),
        ("part", "call".into()),
    ])
}

fn plain_call(orb: Orb, transport: Transport) -> Labels {
    call(orb, transport, Operation::Long, 0)
}

fn octets(orb: Orb, transport: Transport, len: usize) -> Labels {
    call(orb, transport, Operation::OctetSequence, len)
}

/// The same octets sent otherwise.
fn bytes_of(call: &Labels, orb: Orb, transport: Transport) -> Labels {
    let others = [
        ("orb", orb.label().into()),
        ("transport", transport.label().into()),
    ];
    labels_with(call, others)
}

fn lane_call(lane: Architecture) -> Labels {
    let preset = lane.label().unwrap_or_default();
    labels_with(
        &plain_call(Orb::Rtorb, Transport::Tcp),
        [("preset", preset.into())],
    )
}

/// A part of an ORB's call, which is measured without a call.
fn part(call: &Labels, part: &str) -> Labels {
    labels_with(call, [("part", part.into()), ("transport", "none".into())])
}

/// What was measured, by the labels of calls. Without one, it has no rounds.
struct Calls<'a>(&'a Cells);

impl Calls<'_> {
    /// The medians of the rounds.
    fn rounds(&self, labels: &Labels) -> ByRound {
        let found = self.0.get(labels);
        found.map_or_else(ByRound::default, |samples| {
            samples.rounds(|round| round.p50)
        })
    }

    /// Every call of an ORB, those of lanes aside.
    fn of(&self, orb: Orb) -> impl Iterator<Item = &Labels> {
        let all = self.0.all().map(|(labels, _)| labels);
        all.filter(move |labels| {
            let is = |name: &str, value: &str| labels.get(name) == Some(&value.into());
            is("orb", orb.label()) && is("part", "call") && !labels.contains_key("preset")
        })
    }

    fn raw(&self, call: &Labels) -> ByRound {
        self.rounds(&labels_with(call, [("orb", Orb::Raw.label().into())]))
    }

    /// The call less the raw exchange of the same octets.
    fn above_raw(&self, call: &Labels) -> ByRound {
        self.rounds(call).less(&self.raw(call))
    }

    fn work(&self, call: &Labels) -> ByRound {
        self.rounds(&part(call, "servant_work"))
    }

    /// The call less what the servant does with a sequence.
    fn apart_from_work(&self, call: &Labels) -> ByRound {
        self.rounds(call).less(&self.work(call))
    }

    /// The same as a multiple of the raw exchange of the same octets.
    fn apart_from_work_to_raw(&self, call: &Labels) -> ByRound {
        self.apart_from_work(call).divided_by(&self.raw(call))
    }

    /// The call less the raw exchange and the servant's work: marshalling, and finding the servant.
    fn marshalling_in_call(&self, call: &Labels) -> ByRound {
        self.above_raw(call).less(&self.work(call))
    }

    /// Our time above raw, and omniORB's.
    fn both_above_raw(&self, ours: &Labels) -> [ByRound; 2] {
        let theirs = labels_with(ours, [("orb", Orb::OmniOrb.label().into())]);
        [self.above_raw(ours), self.above_raw(&theirs)]
    }

    fn share_of_omniorb(&self, call: &Labels) -> Option<Derived> {
        let [ours, theirs] = self.both_above_raw(call);
        // A oneway may take less than raw; a share of that says nothing.
        theirs.median().filter(|median| *median > 0.0)?;
        let labels = labels_without(call, &["orb", "part"]);
        // Of the medians: in a single round the difference to raw may be next to nothing, and the quotient anything.
        Derived::quotient("share_of_omniorb", labels, &ours, &theirs)
    }

    /// The call of a server with lanes, and that of a server with a thread for each connection.
    fn lane_and_plain(&self, lane: Architecture) -> [ByRound; 2] {
        [lane_call(lane), plain_call(Orb::Rtorb, Transport::Tcp)].map(|call| self.rounds(&call))
    }

    /// Every number that needs more than one series.
    fn derived(&self) -> Vec<Derived> {
        let calls = [Orb::Rtorb, Orb::OmniOrb];
        let calls = calls.into_iter().flat_map(|orb| self.of(orb));
        let times = calls.flat_map(|call| {
            let of_call = [
                ("time_above_raw", "ns", self.above_raw(call)),
                ("apart_from_work", "ns", self.apart_from_work(call)),
                (
                    "apart_from_work_to_raw",
                    "ratio",
                    self.apart_from_work_to_raw(call),
                ),
                ("marshalling_in_call", "ns", self.marshalling_in_call(call)),
            ];
            let labels = labels_without(call, &["part"]);
            of_call.into_iter().filter_map(move |(name, unit, rounds)| {
                Derived::of_rounds(name, labels.clone(), unit, &rounds)
            })
        });
        let shares = self.of(Orb::Rtorb);
        let shares = shares.filter_map(|call| self.share_of_omniorb(call));
        let lanes = LANES.into_iter().filter_map(|(lane, ..)| {
            let labels = labels_without(&lane_call(lane), &["part"]);
            let [lane, plain] = self.lane_and_plain(lane);
            Derived::quotient("lane_to_plain", labels, &lane, &plain)
        });
        times.chain(shares).chain(lanes).collect()
    }

    /// What a reader wants to know first: `cube_long` on each transport, beside the raw exchange and the peer.
    fn highlights(&self) -> Vec<Highlight> {
        let of_transport = |(transport, name): (Transport, &str)| {
            let us = |orb| Some(self.rounds(&plain_call(orb, transport)).median()? / 1e3);
            let beside = [("raw octets", Orb::Raw), ("omniORB", Orb::OmniOrb)];
            let beside = beside
                .iter()
                .filter_map(|(other, orb)| Some(format!("{other} {:.1} us", us(*orb)?)));
            let median = us(Orb::Rtorb).map(|value| Highlight {
                what: format!("cube_long over {name}, median"),
                value,
                unit: "us".to_owned(),
                beside: beside.collect::<Vec<_>>().join(", "),
            });
            let ours = plain_call(Orb::Rtorb, transport);
            let [ours, theirs] = self.both_above_raw(&ours).map(|rounds| rounds.median());
            let theirs = theirs.map(|ns| format!("omniORB's call less that: {:.2} us", ns / 1e3));
            // It is a difference: of a raw exchange that was disturbed, less than nothing is left.
            let added = ours.map(|above_ns| Highlight {
                what: format!("the call less the raw exchange over {name}"),
                value: above_ns / 1e3,
                unit: "us".to_owned(),
                beside: theirs.unwrap_or_default(),
            });
            median.into_iter().chain(added)
        };
        let large = [Transport::Unix, Transport::Shm, Transport::ShmSpin];
        let large = large
            .into_iter()
            .filter_map(|transport| self.large(transport));
        let plain = TRANSPORTS.into_iter().flat_map(of_transport);
        plain.chain(large).collect()
    }

    /// The claims about an ORB's share of a call. Those about an absent contestant are left out.
    fn claims(&self) -> Vec<Claim> {
        let claim = |id: String, statement: String, rounds: &ByRound, limit| {
            Claim::at_most(id, statement, rounds, limit, "ratio")
        };
        let shares = TRANSPORTS.into_iter().filter_map(|(transport, name)| {
            let [ours, theirs] = self.both_above_raw(&plain_call(Orb::Rtorb, transport));
            let shares = claim(
                format!("share-of-omniorb.{}", transport.label()),
                format!("cube_long over {name}: time above raw, as a share of omniORB's"),
                &ours.divided_by(&theirs),
                0.5,
            );
            // Nothing is a share of a negative time.
            let is_above = theirs.median().is_some_and(|ns| ns > 0.0);
            shares.map(|claim| {
                if is_above {
                    claim
                } else {
                    claim.not_judged("omniORB's call was not slower than the raw exchange")
                }
            })
        });
        let lanes = LANES.into_iter().filter_map(|(lane, id, words)| {
            let [lane, plain] = self.lane_and_plain(lane);
            claim(
                format!("lane-to-plain.{id}"),
                format!("cube_long over IIOP: {words}, to the plain call"),
                &lane.divided_by(&plain),
                LANE_TO_PLAIN_MAX,
            )
        });
        let structs = |orb, transport| call(orb, transport, Operation::ManySequence, STRUCTS);
        let alone = |orb| self.rounds(&part(&structs(orb, Transport::Tcp), "marshalling"));
        let alone = claim(
            "structs-to-omniorb.alone".to_owned(),
            "4,096 structs: writing and reading them, without a call, to omniORB's".to_owned(),
            &alone(Orb::Rtorb).divided_by(&alone(Orb::OmniOrb)),
            1.0,
        );
        let in_calls = TRANSPORTS.into_iter().filter_map(|(transport, _)| {
            let of = |orb| self.marshalling_in_call(&structs(orb, transport));
            let name = transport.label();
            // Both are differences of medians; below zero is noise around none at all.
            let ours = of(Orb::Rtorb).map(|ns| ns.max(0.0));
            claim(
                format!("structs-to-omniorb.{name}"),
                format!(
                    "4,096 structs over {name}: the call less raw exchange and servant's work, to omniORB's"
                ),
                &ours.divided_by(&of(Orb::OmniOrb)),
                1.0,
            )
        });
        let octets = self.of(Orb::Rtorb);
        let octets = octets.filter(|call| call["operation"] == "octetseq".into());
        let octets = octets.filter_map(|call| {
            let (len, transport) = (&call["len"], &call["transport"]);
            claim(
                format!("octets-to-raw.{len}.{transport}"),
                format!(
                    "{len} octets over {transport}: time apart from the servant's work, to the raw exchange"
                ),
                &self.apart_from_work_to_raw(call),
                bytes_limit(transport),
            )
        });
        let structs = alone.into_iter().chain(in_calls);
        let others = lanes.chain(self.memory_claims()).chain(structs);
        shares.chain(others).chain(octets).collect()
    }

    /// The claims about calls through shared memory.
    fn memory_claims(&self) -> Vec<Claim> {
        let plain = MEMORY.into_iter().filter_map(|memory| {
            let raw = self.rounds(&plain_call(Orb::Raw, memory.raw));
            let ours = self.rounds(&plain_call(Orb::Rtorb, memory.transport));
            let (raw_name, id, words) = (memory.raw.label(), memory.id, memory.words);
            Claim::at_most(
                format!("memory-to-{raw_name}.{id}"),
                format!(
                    "cube_long through shared memory, {words}, to the raw exchange by {raw_name}"
                ),
                &ours.divided_by(&raw),
                memory.limit,
                "ratio",
            )
        });
        let octets = octets(Orb::Rtorb, Transport::Shm, KIBIBYTES_64);
        let raw = self.rounds(&bytes_of(&octets, Orb::Raw, Transport::Unix));
        let octets = Claim::at_most(
            "octets-to-unix.65536.shm",
            "65536 octets through shared memory: time apart from the servant's work, to the raw exchange over a UNIX socket",
            &self.apart_from_work(&octets).divided_by(&raw),
            0.75,
            "ratio",
        );
        let iceoryx2 = BY_ICEORYX2.into_iter().filter_map(|transport| {
            let [ours, theirs] =
                [Orb::Rtorb, Orb::Iceoryx2].map(|orb| self.rounds(&plain_call(orb, transport)));
            let name = transport.label();
            Claim::at_most(
                format!("memory-to-iceoryx2.{name}"),
                format!("cube_long through {name}, to iceoryx2's request-response"),
                &ours.divided_by(&theirs),
                1.0,
                "ratio",
            )
        });
        plain.chain(octets).chain(iceoryx2).collect()
    }

    /// Large sequences beside copies of as many octets.
    fn large(&self, transport: Transport) -> Option<Highlight> {
        let ours = octets(Orb::Rtorb, transport, MEBIBYTE);
        let copied = bytes_of(&ours, Orb::Raw, Transport::Memcpy);
        let gigabytes_a_second = |ns: f64| 2.0 * MEBIBYTE as f64 / ns;
        let copied = self.rounds(&copied).median().map(gigabytes_a_second)?;
        let name = transport.label();
        Some(Highlight {
            what: format!(
                "a mebibyte of octets both ways over {name}, apart from the servant's work"
            ),
            value: gigabytes_a_second(self.apart_from_work(&ours).median()?),
            unit: "GB/s".to_owned(),
            beside: format!("memcpy {copied:.1} GB/s"),
        })
    }

    /// The text of the paper beside what was measured here.
    fn published(&self) -> Vec<Published> {
        let row = |(what, published, operation): (&str, &str, Operation)| {
            let ours = self.0.get(&call(Orb::Rtorb, Transport::Tcp, operation, 0));
            let calls = ours.and_then(Samples::a_second)?;
            Some(Published {
                source: "P0 Figure 2 (TAO 1.2, loopback)".to_owned(),
                what: format!("{what} (ours: {operation} over TCP)"),
                published: published.to_owned(),
                ours: format!("{} calls/s", grouped(calls.round() as u64)),
            })
        };
        PUBLISHED.into_iter().filter_map(row).collect()
    }
}

/// Each with its name in words.
const TRANSPORTS: [(Transport, &str); 2] = [
    (Transport::Tcp, "IIOP"),
    (Transport::Unix, "the UNIX socket"),
];
/// Each with the id and the words of its claim.
const LANES: [(Architecture, &str, &str); 2] = [
    (Architecture::Lane, "declared", "a lane"),
    (
        Architecture::LanePropagated,
        "propagated",
        "a lane with the client's priority",
    ),
];
/// A way of waiting through shared memory, and what it is compared with.
struct Memory {
    transport: Transport,
    raw: Transport,
    id: &'static str,
    words: &'static str,
    limit: f64,
}

const MEMORY: [Memory; 3] = [
    Memory {
        transport: Transport::Shm,
        raw: Transport::Futex,
        id: "sleep",
        words: "asleep on a futex",
        limit: 1.15,
    },
    Memory {
        transport: Transport::ShmYield,
        raw: Transport::Futex,
        id: "yield",
        words: "yielding the CPU",
        limit: 0.65,
    },
    Memory {
        transport: Transport::ShmSpin,
        raw: Transport::Spin,
        id: "two-cpus",
        words: "spinning on two CPUs",
        // Two CPUs that share a cache exchange a word in 0.12 us; the instructions of a call take twice as long as that.
        limit: 5.0,
    },
];
const KIBIBYTES_64: usize = 65_536;
/// What a lane may cost: its thread makes one more system call, because it waits in epoll before it reads.
const LANE_TO_PLAIN_MAX: f64 = 1.15;
const STRUCTS: usize = 4_096;
/// What the paper has, and which operation of ours stands beside it.
const PUBLISHED: [(&str, &str, Operation); 4] = [
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

/// How much an exchange of octets may cost, to the raw exchange. An ORB copies them three times between the application and its messages.
/// That weighs more beside a UNIX socket, which takes two thirds of the time of TCP.
fn bytes_limit(transport: &LabelValue) -> f64 {
    if *transport == Transport::Unix.label().into() {
        1.2
    } else {
        1.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Verdict;

    /// The medians of the rounds under some labels.
    type Rounds<'a> = (Labels, &'a [u64]);

    fn found(all: &[Rounds<'_>]) -> Findings {
        let mut cells = Cells::default();
        for (labels, rounds_ns) in all {
            for (round, ns) in rounds_ns.iter().enumerate() {
                cells.add(labels, round, &[*ns], 0);
            }
        }
        findings(&cells, &Conditions::default())
    }

    /// Checks that a claim is held with one time of ours and missed with another one, beside these.
    fn check(id: &str, beside: &[(Labels, u64)], ours: &Labels, [held, missed]: [u64; 2]) {
        let verdict = |rounds_ns: [u64; 6]| {
            let steady: Vec<[u64; 6]> = beside.iter().map(|(_, ns)| [*ns; 6]).collect();
            let beside = beside.iter().zip(&steady);
            let mut all: Vec<Rounds<'_>> = beside
                .map(|((labels, _), rounds_ns)| (labels.clone(), &rounds_ns[..]))
                .collect();
            all.push((ours.clone(), &rounds_ns));
            let claims = found(&all).claims;
            let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
            assert_eq!(ids, [id], "nothing is claimed of what was not measured");
            claims[0].verdict
        };
        assert_eq!(verdict([held; 6]), Verdict::Held, "{id}");
        assert_eq!(verdict([missed; 6]), Verdict::Missed, "{id}");
        let unclear = [held, missed, held, missed, held, missed];
        assert_eq!(verdict(unclear), Verdict::NotJudged, "{id}");
    }

    #[test]
    fn an_orb_may_add_half_of_what_omniorb_adds() {
        for (transport, _) in TRANSPORTS {
            let of = |orb| plain_call(orb, transport);
            let beside = [(of(Orb::Raw), 7_000), (of(Orb::OmniOrb), 9_000)];
            let id = format!("share-of-omniorb.{}", transport.label());
            check(&id, &beside, &of(Orb::Rtorb), [7_500, 8_500]);
        }
    }

    #[test]
    fn a_lane_may_cost_one_more_system_call() {
        for (lane, id, _) in LANES {
            let plain = [(plain_call(Orb::Rtorb, Transport::Tcp), 6_000)];
            let id = format!("lane-to-plain.{id}");
            check(&id, &plain, &lane_call(lane), [6_600, 7_200]);
        }
    }

    #[test]
    fn structs_may_cost_what_they_cost_omniorb() {
        let of = |orb, transport| call(orb, transport, Operation::ManySequence, STRUCTS);
        let alone = |orb| part(&of(orb, Transport::Tcp), "marshalling");
        let beside = [(alone(Orb::OmniOrb), 1_000)];
        check(
            "structs-to-omniorb.alone",
            &beside,
            &alone(Orb::Rtorb),
            [900, 1_100],
        );
        for (transport, _) in TRANSPORTS {
            let work = |orb| part(&of(orb, transport), "servant_work");
            let beside = [
                (of(Orb::Raw, transport), 10_000),
                (of(Orb::OmniOrb, transport), 15_000),
                (work(Orb::OmniOrb), 1_000),
                (work(Orb::Rtorb), 1_000),
            ];
            let id = format!("structs-to-omniorb.{}", transport.label());
            check(&id, &beside, &of(Orb::Rtorb, transport), [14_000, 16_000]);
        }
    }

    #[test]
    fn octets_over_unix_may_cost_a_fifth_without_the_servants_work() {
        let of = |orb| call(orb, Transport::Unix, Operation::OctetSequence, 65_536);
        let work = part(&of(Orb::Rtorb), "servant_work");
        let beside = [(of(Orb::Raw), 18_000), (work, 4_000)];
        check(
            "octets-to-raw.65536.unix",
            &beside,
            &of(Orb::Rtorb),
            [25_000, 26_000],
        );
        assert_eq!(bytes_limit(&Transport::Tcp.label().into()), 1.1);
    }

    #[test]
    fn what_an_orb_adds_is_compared_round_by_round() {
        let of = |orb| plain_call(orb, Transport::Tcp);
        let found = found(&[
            (of(Orb::Raw), &[6_800, 8_000, 7_000]),
            (of(Orb::Rtorb), &[7_300, 8_600, 7_500]),
            (of(Orb::OmniOrb), &[8_800, 10_000, 9_000]),
        ]);
        let mut derived = found.derived.iter();
        let share = derived.find(|derived| derived.name == "share_of_omniorb");
        let share = share.expect("there are both");
        assert_eq!(share.rounds, [0.25, 0.3, 0.25]);
        assert!(
            (share.value - 500.0 / 2_000.0).abs() < 1e-9,
            "500 above raw in the median, to 2,000"
        );
        let highlights: Vec<&str> = found
            .highlights
            .iter()
            .map(|highlight| highlight.beside.as_str())
            .collect();
        assert_eq!(
            highlights,
            [
                "raw octets 7.0 us, omniORB 9.0 us",
                "omniORB's call less that: 2.00 us"
            ]
        );
    }

    #[test]
    fn a_call_that_was_faster_than_the_raw_exchange_is_said_to_be_so() {
        let of = |orb| plain_call(orb, Transport::Tcp);
        let rounds = |ns: u64| [ns, ns + 100, ns, ns, ns, ns + 100];
        let found = found(&[
            (of(Orb::Raw), &rounds(7_000)),
            (of(Orb::Rtorb), &rounds(6_480)),
            (of(Orb::OmniOrb), &rounds(6_900)),
        ]);
        let added = &found.highlights[1];
        assert_eq!(added.what, "the call less the raw exchange over IIOP");
        assert_eq!(added.shown(), "-0.52");
        assert_eq!(added.beside, "omniORB's call less that: -0.10 us");
        assert!(
            found
                .derived
                .iter()
                .all(|one| one.name != "share_of_omniorb")
        );
        // Of a negative time there is no share.
        assert_eq!(found.claims[0].verdict, Verdict::NotJudged);
        assert!(found.claims[0].reason.contains("not slower"));
    }

    #[test]
    fn a_call_through_shared_memory_is_compared_with_the_raw_exchange() {
        for memory in MEMORY {
            let raw = [(plain_call(Orb::Raw, memory.raw), 2_000)];
            let ours = plain_call(Orb::Rtorb, memory.transport);
            let limit_ns = (memory.limit * 2_000.0) as u64;
            let id = format!("memory-to-{}.{}", memory.raw.label(), memory.id);
            check(&id, &raw, &ours, [limit_ns - 100, limit_ns + 100]);
        }
    }

    #[test]
    fn a_call_through_shared_memory_may_cost_what_iceoryx2_costs() {
        for transport in BY_ICEORYX2 {
            let theirs = [(plain_call(Orb::Iceoryx2, transport), 2_000)];
            let ours = plain_call(Orb::Rtorb, transport);
            let id = format!("memory-to-iceoryx2.{}", transport.label());
            check(&id, &theirs, &ours, [1_900, 2_100]);
        }
    }

    #[test]
    fn octets_through_shared_memory_may_cost_three_quarters_of_the_unix_socket() {
        let raw = octets(Orb::Raw, Transport::Unix, KIBIBYTES_64);
        let ours = octets(Orb::Rtorb, Transport::Shm, KIBIBYTES_64);
        let beside = [(raw, 20_000), (part(&ours, "servant_work"), 5_000)];
        let id = "octets-to-unix.65536.shm";
        check(id, &beside, &ours, [19_000, 21_000]);
    }

    #[test]
    fn a_mebibyte_is_shown_beside_copies() {
        let ours = octets(Orb::Rtorb, Transport::Shm, MEBIBYTE);
        let copies = octets(Orb::Raw, Transport::Memcpy, MEBIBYTE);
        let work = part(&ours, "servant_work");
        let ns = 2 * MEBIBYTE as u64;
        let found = found(&[(ours, &[2 * ns]), (work, &[ns]), (copies, &[ns / 10])]);
        let found = found.highlights.last().expect("it is shown");
        assert_eq!(
            (found.value, found.beside.as_str()),
            (1.0, "memcpy 10.0 GB/s")
        );
    }

    #[test]
    fn without_a_peer_nothing_is_said_about_it() {
        let found = found(&[
            (plain_call(Orb::Raw, Transport::Tcp), &[6_800]),
            (plain_call(Orb::Rtorb, Transport::Tcp), &[7_300]),
        ]);
        assert!(found.claims.is_empty());
        assert_eq!(found.derived.len(), 1);
    }

    #[test]
    fn a_lane_is_compared_with_the_plain_call_and_with_nothing_else() {
        let plain = plain_call(Orb::Rtorb, Transport::Tcp);
        let found = found(&[
            (plain_call(Orb::Raw, Transport::Tcp), &[5_000; 3]),
            (plain, &[6_000, 7_000, 6_000]),
            (lane_call(Architecture::Lane), &[6_300, 7_350, 6_300]),
            (
                lane_call(Architecture::LanePropagated),
                &[6_900, 8_050, 6_900],
            ),
        ]);
        let values: Vec<f64> = found
            .claims
            .iter()
            .filter_map(|claim| claim.value)
            .collect();
        assert_eq!(values, [1.05, 1.15]);
        let names: Vec<&str> = found
            .derived
            .iter()
            .map(|found| found.name.as_str())
            .collect();
        assert_eq!(names, ["time_above_raw", "lane_to_plain", "lane_to_plain"]);
    }
}
