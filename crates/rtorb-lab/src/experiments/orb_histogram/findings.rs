//! What is said of the low receiver and of the load: what they do to the high receiver.

use rtorb_results::claim::Declaration;
use rtorb_results::metric::{
    Metric,
    Statistic::{Max, P50, P90, P99},
    Step::{Less, Over, Times},
};
use rtorb_results::statements::{DerivedOf, HighlightOf, PublishedOf, Sentence, Statements, Words};

const US: Metric = Metric::of(P50).with(&[Times(1e-3)]);
const P99_US: Metric = Metric::of(P99).with(&[Times(1e-3)]);
const WORST_US: Metric = Metric::of(Max).with(&[Times(1e-3)]);
const ALONE: &str = "transport=tcp, receivers=1, role=high, part=call";
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
const WITH_LOAD: Metric = Metric::of(P50).with(&[Over(P50, "load=none")]);
const OTHERS: &[&str] = &["orb", "payload_bytes", "part", "low_call"];

const fn wait(id: &'static str, metric: Metric, at_most: f64, says: &'static str) -> Declaration {
    Declaration::at_most(id, metric, at_most, "ratio").of(MET, says)
}

pub(super) const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "edge to output, load {load}, median",
        of: ALONE,
        metric: US,
        unit: "us",
        beside: Words::with(
            "99 %: {0}, worst in the median round: {1}",
            &[(P99_US, "us"), (WORST_US, "us")],
        ),
    }],
    derived: &[
        DerivedOf {
            name: "with_load_to_without_p50",
            of: "load!=none, part=call",
            without: OTHERS,
            metric: WITH_LOAD,
            unit: "ratio",
        },
        DerivedOf {
            name: "with_low_to_alone_p50",
            of: "receivers=2, role=high, part=call",
            without: OTHERS,
            metric: Metric::of(P50).with(&[Over(P50, "receivers=1")]),
            unit: "ratio",
        },
        DerivedOf {
            name: "wait_for_low_call",
            of: MET,
            without: OTHERS,
            metric: Metric::of(P50).with(&[Less(P50, "low_call=none")]),
            unit: "ns",
        },
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
    ],
    // P4 measures it under load, and over a network.
    published: &[PublishedOf {
        source: "P4 section 2.1, Figure 9",
        what: "two receivers of different priority, {transport}, load {load}: the high receiver's wait for a low call, by the time of one",
        published: "no priority inversion occurs",
        of: "receivers=2, role=high, part=meeting, low_call=in_progress, load!=none, transport=tcp",
        ours: Words::with(
            "{0} in the median, {1} in the 90th percentile",
            &[(WAIT, "ratio"), (WAIT_P90, "ratio")],
        ),
    }],
    conclusions: &[Sentence {
        of: "receivers=1, part=call, load!=none",
        says: Words::with(
            "{transport}, one receiver: under the load {load} the median is {0} instead of {1}, and the 99th percentile {2} instead \
             of {3}.",
            &[
                (US, "us"),
                (US.at("load=none"), "us"),
                (P99_US, "us"),
                (P99_US.at("load=none"), "us"),
            ],
        ),
    }],
};
