//! Whether the switch grows with the ready queue, and with the resolution of the clock.

use rtorb_results::metric::{Statistic, Step};

use crate::experiments::prelude::*;

pub(super) const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "context switch with 20 tasks, resolution {resolution_us} us",
        of: LONGEST,
        metric: US,
        beside: Words::with("{0} that with 2", &[QUEUE[1]]),
    }],
    derived: &[
        quotient("longest_to_shortest_queue", LONGEST, QUEUE[1]),
        quotient("fine_to_coarse_clock", "resolution_us=500, !part", CLOCK[1]),
    ],
    claims: &[
        // A round of a quick run has 60 samples: three of them.
        Declaration::count("whole-queues.{resolution_us}", Metric::of(P50).in_unit("%"), 5.0).of(
            "ready_tasks=20, part=dropped",
            "resolution {resolution_us} us: samples that do not count, because one of 18 other tasks had left the ready queue before task \
             2 began, in every round",
        ),
        // Where P3's switches grow with the queue, they take twice as long.
        Declaration::at_most("longest-to-shortest.{resolution_us}", QUEUE[1], 1.5).of(
            LONGEST,
            "resolution {resolution_us} us: the median switch with 20 tasks, to that with 2",
        ),
    ],
    published: &[
        of_queue(
            "QNX: mean and minimum not sensitive; the maximum grows under the finer clock, by as much as 300 %",
        ),
        of_queue(
            "RTLinux: mean and maximum grow under any clock, to twice as much; the minimum remains the same",
        ),
        of_queue("OSEKWorks: little difference"),
        PublishedOf {
            source: "P3 section 5.3",
            what: "the switch under the finer clock beside that under the coarser one, 20 tasks",
            published: "QNX: mean, maximum and minimum higher under the finer clock; RTLinux and OSEKWorks: the opposite",
            of: FINER,
            ours: Words::with(QUOTIENTS, &CLOCK),
        },
    ],
    ..Statements::NONE
};

const fn quotient(name: &'static str, of: &'static str, metric: Metric) -> DerivedOf {
    DerivedOf {
        name,
        of,
        without: &[],
        metric,
    }
}

const fn of_queue(published: &'static str) -> PublishedOf {
    PublishedOf {
        source: "P3 section 5.3",
        what: "the switch with 20 tasks ready beside that with 2, resolution {resolution_us} us",
        published,
        of: LONGEST,
        ours: Words::with(QUOTIENTS, &QUEUE),
    }
}

const LONGEST: &str = "ready_tasks=20, !part";
const FINER: &str = "ready_tasks=20, resolution_us=500, !part";
const SHORTEST: &str = "ready_tasks=2";
const COARSER: &str = "resolution_us=1000";
/// Minimum, median, mean and maximum of a round.
const QUEUE: [Metric; 4] = [
    over(Min, &[Over(Min, SHORTEST)]),
    over(P50, &[Over(P50, SHORTEST)]),
    over(Mean, &[Over(Mean, SHORTEST)]),
    over(Max, &[Over(Max, SHORTEST)]),
];
const CLOCK: [Metric; 4] = [
    over(Min, &[Over(Min, COARSER)]),
    over(P50, &[Over(P50, COARSER)]),
    over(Mean, &[Over(Mean, COARSER)]),
    over(Max, &[Over(Max, COARSER)]),
];
const QUOTIENTS: &str = "minimum {0}, median {1}, mean {2}, maximum {3}";

const fn over(statistic: Statistic, steps: &'static [Step]) -> Metric {
    Metric::of(statistic).with(steps)
}
