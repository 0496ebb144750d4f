//! What is said of how late the two loops wake under each condition.

use crate::experiments::prelude::*;

const IDLE: &str = "load=none, cpu=idle";

pub(super) const SAYS: Statements = Statements {
    // What a CPU does that is kept awake is not what a user meets.
    highlights: &[HighlightOf {
        what: "max, load {load}, the CPU {cpu}",
        of: "tool=rtorb, cpu!=awake",
        metric: MAX_US,
        beside: Words::with("cyclictest {0}", &[MAX_US.at("tool=cyclictest")]),
    }],
    derived: &[DerivedOf {
        name: "to_cyclictest",
        of: "tool=rtorb",
        without: &["tool"],
        metric: Metric::of(P50).with(&[Over(P50, "tool=cyclictest")]),
    }],
    // Both differ by at most 15 % of cyclictest's.
    claims: &[
        Declaration::at_most(
            "as-cyclictest.{cpu}",
            Metric::of(P50).at("tool=rtorb").with(&[Over(P50, "")]),
            1.15,
        )
        .of(
            "tool=cyclictest",
            "load {load}, the CPU {cpu}: our median, to that of cyclictest",
        ),
        Declaration::at_most(
            "cyclictest-as-ours.{cpu}",
            Metric::of(P50).with(&[Over(P50, "tool=rtorb")]),
            1.0 / 0.85,
        )
        .of(
            "tool=cyclictest",
            "load {load}, the CPU {cpu}: the median of cyclictest, to ours",
        ),
    ],
    published: &[PublishedOf {
        source: "P4 section 3",
        what: "maximum latency that cyclictest shows on one system",
        published: "26 us with a RT_PREEMPT enabled kernel, 39.6 ms with a vanilla kernel",
        of: "tool=rtorb",
        ours: Words::with("at most {0}, load {load}, the CPU {cpu}", &[MAX_US]),
    }],
    conclusions: &[
        Sentence {
            of: "tool=rtorb, cpu=loaded",
            says: Words::with(
                "With load {load} the thread wakes {0} late (median) instead of {1}, at most {2} instead of {3}.",
                &[US, US.at(IDLE), MAX_US, MAX_US.at(IDLE)],
            ),
        },
        Sentence {
            of: "tool=rtorb, cpu=awake",
            says: Words::with(
                "Without load the thread wakes {0} late while the CPU may sleep, {1} late when the CPU is kept awake (medians).",
                &[US.at(IDLE), US],
            ),
        },
    ],
};

pub(super) fn plots() -> Vec<Plot> {
    let plot = |id: &str, title: &str, caption: &str| {
        Plot::line_chart(id, title)
            .caption(caption)
            .lines(["cpu", "load", "tool"])
            .x_title("from the set moment until the thread runs, us")
            .log_x()
            .log_y()
    };
    vec![
        plot(
            "wakeup-histogram",
            "How late the thread wakes",
            "As the histograms of cyclictest. What counts for a deadline is how far to the right the last sample lies.",
        )
        .kind(PlotKind::Histogram)
        .choose(["cpu", "load"])
        .lines(["tool"]),
        plot(
            "wakeup-percentiles",
            "The tail of the wake-up latency",
            "What a mean hides: how long the slowest wake-ups take.",
        )
        .kind(PlotKind::Percentiles),
    ]
}
