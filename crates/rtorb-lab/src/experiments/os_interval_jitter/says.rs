//! What is said of the jitter, beside what P3 says.

use crate::experiments::prelude::*;

const TO_HIGHEST: Metric = Metric::of(P50).with(&[Over(P50, "priority=highest")]);
const MEAN_TO_HIGHEST: Metric = Metric::of(Mean).with(&[Over(Mean, "priority=highest")]);
const TO_TWO_TIMERS: Metric = Metric::of(P50).with(&[Over(P50, "timers=2")]);
const TO_HARMONIC: Metric = Metric::of(P50).with(&[Over(P50, "pattern=harmonic")]);
const MEAN_TO_HARMONIC: Metric = Metric::of(Mean).with(&[Over(Mean, "pattern=harmonic")]);

pub(super) const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "median jitter of the {priority} of 20 tasks, non-harmonic intervals, resolution 1 ms",
        of: "what=jitter, timers=20, pattern=non_harmonic, resolution_us=1000",
        metric: US,
        beside: Words::with("mean {0}", &[MEAN_US]),
    }],
    derived: &[
        quotient("lowest_to_highest_p50", LOWEST, TO_HIGHEST),
        quotient("lowest_to_highest_mean", LOWEST, MEAN_TO_HIGHEST),
        quotient("non_harmonic_to_harmonic_p50", NON_HARMONIC, TO_HARMONIC),
        quotient(
            "non_harmonic_to_harmonic_mean",
            NON_HARMONIC,
            MEAN_TO_HARMONIC,
        ),
    ],
    published: &[
        PublishedOf {
            what: "jitter and priority, all measured cases; here the lowest of {timers} tasks beside the highest, {pattern}, {resolution_us} us",
            published: "a higher-priority task experienced a smaller jitter, a lower-priority task a larger one",
            of: "what=jitter, priority=lowest, timers=10 | what=jitter, priority=lowest, timers=20",
            ours: Words::with("median {0}, mean {1}", &[TO_HIGHEST, MEAN_TO_HIGHEST]),
            ..P3
        },
        PublishedOf {
            what: "jitter and the number of timers, all measured cases; here the lowest of 20 tasks beside that of 2, {pattern}, {resolution_us} us",
            published: "increases with the number of timers in the system",
            of: "what=jitter, priority=lowest, timers=20",
            ours: Words::with("median {0}", &[TO_TWO_TIMERS]),
            ..P3
        },
        PublishedOf {
            what: "non-harmonic intervals beside harmonic ones, the lowest of {timers} tasks, {resolution_us} us",
            published: "almost the same up to 5 timers; beyond, larger with non-harmonic ones on QNX, smaller on RTLinux and OSEKWorks",
            of: "what=jitter, priority=lowest, pattern=non_harmonic",
            ours: Words::with("median {0}", &[TO_HARMONIC]),
            ..P3
        },
        PublishedOf {
            what: "a bound, QNX; here the lowest of 20 tasks, {pattern}, {resolution_us} us",
            published: "always bounded by twice the clock resolution",
            of: "what=jitter, priority=lowest, timers=20",
            ours: Words::with("at most {0}", &[MAX_US]),
            ..P3
        },
        PublishedOf {
            what: "jitter and the length of the interval, one task alone",
            published: "independent of the interval length",
            of: "what=jitter_alone, resolution_us=500, interval_us=8000",
            ours: Words::with(
                "median {0} at 0.5 ms and {1} at 8 ms",
                &[US.at("interval_us=500"), US],
            ),
            ..P3
        },
        PublishedOf {
            what: "jitter and the clock resolution, the highest of 20 tasks, {pattern}",
            published: "QNX: increased as the resolution became coarser; RTLinux: almost no change",
            of: "what=jitter, priority=highest, timers=20, resolution_us=1000",
            ours: Words::with(
                "median at 1 ms {0} that at 0.5 ms",
                &[Metric::of(P50).with(&[Over(P50, "resolution_us=500")])],
            ),
            ..P3
        },
    ],
    ..Statements::NONE
};

const LOWEST: &str = "what=jitter, priority=lowest";
const NON_HARMONIC: &str = "what=jitter, pattern=non_harmonic";
const P3: PublishedOf = PublishedOf {
    source: "P3 section 5.2",
    what: "",
    published: "",
    of: "",
    ours: Words::text(""),
};

const fn quotient(name: &'static str, of: &'static str, metric: Metric) -> DerivedOf {
    DerivedOf {
        name,
        of,
        without: &[],
        metric,
    }
}
