//! What is said about the times: what an ORB adds to the bytes, what is promised of it, and how published figures compare.

use rtorb_results::cells::{Cells, Samples};
use rtorb_results::labels_with;

use crate::experiments::prelude::*;
use crate::study::{Computed, Conditions};

const ABOVE_RAW: Metric = Metric::of(P50).with(&[Less(P50, "orb=raw")]);
const WORK: &str = "part=servant_work, transport=none";
/// A sequence call less what the servant does with it, beside the raw exchange of the same bytes.
const BYTES_TO_RAW: Metric = Metric::of(P50).with(&[Less(P50, WORK), Over(P50, "orb=raw")]);
/// Beside a server with a thread for each connection.
const TO_PLAIN: Metric = Metric::of(P50).with(&[Over(P50, "-preset")]);
/// The call with omniORB's servant in the place of ours, beside omniORB's call.
const STRUCTS: Metric = Metric::of(P50).with(&[
    Less(P50, WORK),
    Plus(P50, "orb=omniorb, part=servant_work, transport=none"),
    Over(P50, "orb=omniorb"),
]);

const PLAIN: &str = "orb=rtorb, operation=long, part=call, !preset, transport=tcp \
     | orb=rtorb, operation=long, part=call, !preset, transport=unix";

pub(super) const SAYS: Statements = Statements {
    highlights: &[
        HighlightOf {
            what: "cube_long over {transport}, median",
            of: PLAIN,
            metric: US,
            beside: Words::with("raw exchange {0}", &[US.at("orb=raw")]),
        },
        HighlightOf {
            what: "a mebibyte both ways over {transport}, apart from the servant's work, to copying it",
            of: "orb=rtorb, operation=octetseq, len=1048576, transport=shm, part=call",
            metric: Metric::of(P50).with(&[Less(P50, WORK), Over(P50, COPY)]).in_unit("×"),
            beside: Words::with("memcpy {0}", &[US.at(COPY)]),
        },
    ],
    // The plots show it.
    derived: &[DerivedOf {
        name: "time_above_raw",
        of: "orb!=raw, part=call, !preset",
        without: &["part"],
        metric: ABOVE_RAW,
    }],
    claims: &[
        ratio(
            "share-of-omniorb.{transport}",
            Metric::of(P50)
                .at("part=above_raw")
                .with(&[Over(P50, "part=above_raw, orb=omniorb")]),
            0.5,
        )
        .of(
            PLAIN,
            "cube_long over {transport}: time above raw, as a share of omniORB's",
        ),
        // Its thread makes one more system call, because it waits in epoll before it reads.
        ratio("lane-to-plain.declared", TO_PLAIN, 1.15).of(
            "preset=tao, orb=rtorb, operation=long, transport=tcp, part=call",
            "cube_long over IIOP: a lane, to the plain call",
        ),
        ratio("lane-to-plain.propagated", TO_PLAIN, 1.15).of(
            "preset=tao_propagated, orb=rtorb, operation=long, transport=tcp, part=call",
            "cube_long over IIOP: a lane with the client's priority, to the plain call",
        ),
        ratio(
            "memory-to-futex.sleep",
            Metric::of(P50).with(&[Over(P50, "orb=raw, transport=futex")]),
            1.15,
        )
        .of(
            "orb=rtorb, operation=long, part=call, transport=shm",
            "cube_long through shared memory, asleep on a futex, to the raw exchange by futex",
        ),
        ratio(
            "memory-to-futex.yield",
            Metric::of(P50).with(&[Over(P50, "orb=raw, transport=futex")]),
            0.65,
        )
        .of(
            "orb=rtorb, operation=long, part=call, transport=shm_yield",
            "cube_long through shared memory, yielding the CPU, to the raw exchange by futex",
        ),
        // Two CPUs that share a cache exchange a word in 0.12 us; the instructions of a call take twice as long as that.
        ratio(
            "memory-to-spin.two-cpus",
            Metric::of(P50).with(&[Over(P50, "orb=raw, transport=spin")]),
            5.0,
        )
        .of(
            "orb=rtorb, operation=long, part=call, transport=shm_spin",
            "cube_long through shared memory, spinning on two CPUs, to the raw exchange by spin",
        ),
        ratio(
            "octets-to-unix.65536.shm",
            Metric::of(P50).with(&[Less(P50, WORK), Over(P50, "orb=raw, transport=unix")]),
            0.75,
        )
        .of(
            "orb=rtorb, operation=octetseq, len=65536, part=call, transport=shm",
            "65536 bytes through shared memory: time apart from the servant's work, to the raw exchange over a UNIX socket",
        ),
        ratio(
            "memory-to-iceoryx2.{transport}",
            Metric::of(P50).with(&[Over(P50, "orb=iceoryx2")]),
            1.0,
        )
        .of(
            "orb=rtorb, operation=long, part=call, transport=shm \
             | orb=rtorb, operation=long, part=call, transport=shm_spin",
            "cube_long through {transport}, to iceoryx2's request-response",
        ),
        ratio(
            "structs-to-omniorb.alone",
            Metric::of(P50).with(&[Over(P50, "orb=omniorb")]),
            1.0,
        )
        .of(
            "orb=rtorb, operation=manyseq, len=4096, part=marshalling",
            "4,096 structs: writing and reading them, without a call, to omniORB's",
        ),
        ratio("structs-to-omniorb.{transport}", STRUCTS, 1.0).of(
            "orb=rtorb, operation=manyseq, len=4096, part=call, transport=tcp \
             | orb=rtorb, operation=manyseq, len=4096, part=call, transport=unix",
            "4,096 structs over {transport}: the call with omniORB's servant's work in the place of ours, to omniORB's call",
        ),
        // An ORB copies them three times between the application and its messages. That weighs more beside a UNIX socket, which takes
        // two thirds of the time of TCP.
        ratio("octets-to-raw.{len}.{transport}", BYTES_TO_RAW, 1.1).of(
            "orb=rtorb, operation=octetseq, part=call, transport=tcp",
            BYTES,
        ),
        ratio("octets-to-raw.{len}.{transport}", BYTES_TO_RAW, 1.2).of(
            "orb=rtorb, operation=octetseq, part=call, transport=unix",
            BYTES,
        ),
    ],
    published: &[
        figure_2(
            "two-way, simple types, Linux and Linux/RT",
            "about 10,000 calls/s, so 100 us a call",
            "orb=rtorb, operation=long, transport=tcp, part=call, !preset",
        ),
        figure_2(
            "two-way, void, short and long, QNX",
            "about 6,000 calls/s, so 167 us a call",
            "orb=rtorb, operation=void, transport=tcp, part=call",
        ),
        figure_2(
            "two-way, void, short and long, VxWorks",
            "a little below QNX: 5,500 calls/s, so 182 us a call",
            "orb=rtorb, operation=short, transport=tcp, part=call",
        ),
        figure_2(
            "one-way, Linux",
            "nearly double the calls/s of the other systems",
            "orb=rtorb, operation=oneway, transport=tcp, part=call",
        ),
    ],
    ..Statements::NONE
};

const fn ratio(id: &'static str, metric: Metric, at_most: f64) -> Declaration {
    Declaration::at_most(id, metric, at_most)
}

const fn figure_2(what: &'static str, published: &'static str, of: &'static str) -> PublishedOf {
    PublishedOf {
        source: "P0 Figure 2 (TAO 1.2, loopback)",
        what,
        published,
        of,
        ours: Words::with("{0} a call in the mean ({operation} over TCP)", &[MEAN_US]),
    }
}

/// What each ORB adds to the raw exchange of the plain call: a difference, which claims divide by.
pub(super) fn compute(cells: &Cells, _: &Conditions) -> Computed {
    let mut computed = Cells::default();
    let wanted = [("operation", "long".into()), ("part", "call".into())];
    for (call, samples) in cells.with(&wanted) {
        let raw = labels_with(call, [("orb", "raw".into())]);
        let Some(raw) = cells.get(&raw).filter(|_| call["orb"] != "raw".into()) else {
            continue;
        };
        let p50 = |samples: &Samples| samples.rounds(|round| round.p50);
        let of = labels_with(call, [("part", "above_raw".into())]);
        for (round, ns) in p50(samples).less(&p50(raw)).each() {
            computed.add_computed(&of, round, &[ns]);
        }
        computed.add_wrong(&of, samples.wrong() + raw.wrong());
    }
    computed.into()
}

const COPY: &str = "orb=raw, transport=memcpy";
const BYTES: &str =
    "{len} bytes over {transport}: time apart from the servant's work, to the raw exchange";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::labels;

    #[test]
    fn what_an_orb_adds_is_a_difference_of_each_round() {
        let call = |orb: &str| {
            labels([
                ("operation", "long".into()),
                ("orb", orb.into()),
                ("transport", "tcp".into()),
                ("part", "call".into()),
            ])
        };
        let mut cells = Cells::default();
        for (round, [raw, ours]) in [[6_800, 7_300], [8_000, 7_900]].into_iter().enumerate() {
            cells.add(&call("raw"), round, &[raw], 1);
            cells.add(&call("rtorb"), round, &[ours], 0);
        }
        let found = compute(&cells, &Conditions::default()).cells;
        let found: Vec<_> = found.all().collect();
        let [(of, above)] = found[..] else {
            panic!("of the ORB alone: {found:?}")
        };
        assert_eq!(
            *of,
            labels_with(&call("rtorb"), [("part", "above_raw".into())])
        );
        assert_eq!(above.rounds(|round| round.p50).values(), [500.0, -100.0]);
        assert_eq!(above.wrong(), 2);
    }
}
