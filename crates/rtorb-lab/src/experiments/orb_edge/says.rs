//! What is said of the low receiver, of the data, of events and of the load: what each does to the high receiver.

use crate::experiments::prelude::*;

const WORST_US: Metric = Metric::of(Max).with(&[Times(1e-3)]).in_unit("us");
/// A call to one receiver without data.
const ALONE: &str = "transport=tcp, path=call, receivers=1, payload_bytes=0, part=call";
/// The high receiver where its edge meets a low call in progress.
const MET: &str = "receivers=2, role=high, part=meeting, low_call=in_progress";
/// Its latency there, less that where it meets none, by what a low call takes. To wait for the rest of a low call, which is met
/// anywhere, would make half of a call in the median, and nine tenths in the 90th percentile.
const WAIT: Metric = Metric::of(P50).with(&[
    Less(P50, "low_call=none"),
    Over(P50, "role=low, part=round_trip, -low_call"),
]);
const WAIT_P90: Metric = Metric::of(P90).with(&[
    Less(P90, "low_call=none"),
    Over(P50, "role=low, part=round_trip, -low_call"),
]);
const EVENTS: &str = "path=event, part=call";
const EVENTS_OVER_TCP: &str = "path=event, part=call, transport=tcp";
/// From the edge, an event by the call.
const TO_CALL: Metric = Metric::of(P50).with(&[Over(P50, "path=call")]);
/// From the best latency to the worst.
const SPREAD: Metric = Metric::of(Max).with(&[Less(Min, "")]);
const SPREAD_US: Metric = Metric::of(Max)
    .with(&[Less(Min, ""), Times(1e-3)])
    .in_unit("us");
const OF_SIZES: &str = "transport=tcp, path=call, receivers=1, part=call";
const OTHERS: &[&str] = &["orb", "part", "low_call"];

const fn wait(id: &'static str, metric: Metric, at_most: f64, says: &'static str) -> Declaration {
    Declaration::at_most(id, metric, at_most).of(MET, says)
}

const fn derived(name: &'static str, of: &'static str, metric: Metric) -> DerivedOf {
    DerivedOf {
        name,
        of,
        without: OTHERS,
        metric,
    }
}

pub(super) const SAYS: Statements = Statements {
    highlights: &[
        HighlightOf {
            what: "edge to output, load {load}, median",
            of: ALONE,
            metric: US,
            beside: Words::with(
                "99 %: {0}, worst in the median round: {1}",
                &[P99_US, WORST_US],
            ),
        },
        HighlightOf {
            what: "edge to output, load {load}, {payload_bytes} bytes of data, median",
            of: "part=call, payload_bytes=65536",
            metric: US,
            beside: Words::with("from best to worst {0}", &[SPREAD_US]),
        },
        HighlightOf {
            what: "edge to output by an event, load {load}, median",
            of: EVENTS_OVER_TCP,
            metric: US,
            beside: Words::with(
                "by a call: {0}, {1}",
                &[US.at("path=call"), TO_CALL],
            ),
        },
    ],
    derived: &[
        derived(
            "with_load_to_without_p50",
            "load!=none, part=call",
            Metric::of(P50).with(&[Over(P50, "load=none")]),
        ),
        derived(
            "with_low_to_alone_p50",
            "receivers=2, role=high, part=call",
            Metric::of(P50).with(&[Over(P50, "receivers=1")]),
        ),
        derived(
                "wait_for_low_call",
                MET,
                Metric::of(P50).with(&[Less(P50, "low_call=none")]),
            ),
        derived("worst_less_best", OF_SIZES, SPREAD),
        derived(
                "p99_less_best",
                OF_SIZES,
                Metric::of(P99).with(&[Less(Min, "")]),
            ),
        derived("event_to_call_p50", EVENTS, TO_CALL),
    ],
    claims: &[
        wait(
            "no-inversion-p50.{transport}.{load}",
            WAIT,
            0.25,
            "{transport}, load {load}: the high receiver's median where its edge meets a low call in progress, less that where it meets \
             none, by the time of a low call (to wait for the rest of it makes 0.5)",
        ),
        wait(
            "no-inversion-p90.{transport}.{load}",
            WAIT_P90,
            0.45,
            "{transport}, load {load}: the same of the 90th percentile (to wait for the rest of a low call makes 0.9)",
        ),
        // P4 found about 2. On one CPU, the edge's own time is a large part of both; where each process has a host of its own, there
        // are two ways over the network instead of one.
        Declaration {
            at_most_on_hosts: Some(2.2),
            ..Declaration::at_most("event-to-call.{transport}.{load}", TO_CALL, 1.8).of(
                EVENTS,
                "{transport}, load {load}: an event from the edge until the output is set, by the call's, medians (P4: about 2)",
            )
        },
    ],
    published: &[
        // P4 measures it under load, and over a network.
        PublishedOf {
            source: "P4 section 2.1, Figure 9",
            what: "two receivers of different priority, {transport}, load {load}: the high receiver's wait for a low call, by the time of one",
            published: "no priority inversion occurs",
            of: "receivers=2, role=high, part=meeting, low_call=in_progress, load!=none, transport=tcp",
            ours: Words::with(
                "{0} in the median, {1} in the 90th percentile",
                &[WAIT, WAIT_P90],
            ),
        },
        PublishedOf {
            source: "P4 section 2.1, Figure 10",
            what: "the difference between immediate and worst case latency, load {load}",
            published: "the larger the process data image is the larger is the difference",
            of: "part=call, payload_bytes=65536",
            ours: Words::with(
                "{0} with no data, {1} with 1 KiB, {2} with 64 KiB (medians over rounds)",
                &[SPREAD_US.at("payload_bytes=0"), SPREAD_US.at("payload_bytes=1024"), SPREAD_US],
            ),
        },
        PublishedOf {
            source: "P4 section 2.2, Figure 12",
            what: "an event through the channel by a call, from the edge, {transport}, load {load}",
            published: "approximately two times",
            of: EVENTS_OVER_TCP,
            ours: Words::with("{0}", &[TO_CALL]),
        },
    ],
    conclusions: &[
        Sentence {
            of: "path=call, receivers=1, payload_bytes=0, part=call, load!=none",
            says: Words::with(
                "{transport}, one receiver: under the load {load} the median is {0} instead of {1}, and the 99th percentile {2} instead \
                 of {3}.",
                &[US, US.at("load=none"), P99_US, P99_US.at("load=none")],
            ),
        },
        Sentence {
            of: EVENTS,
            says: Words::with(
                "{transport}, load {load}: an event takes {0} a call from the edge ({1} instead of {2}), and {3} from sending.",
                &[
                    TO_CALL,
                    US,
                    US.at("path=call"),
                    Metric::of(P50).at("part=request").with(&[Over(P50, "path=call, part=request")]),
                ],
            ),
        },
    ],
};
