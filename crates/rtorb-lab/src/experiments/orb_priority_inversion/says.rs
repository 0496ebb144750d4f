//! What is said of the clients: whether a more urgent one is slower than a less urgent one.

use crate::experiments::prelude::*;

const FIRST: &str = "priority=60, -rate_hz, -role";
const SECOND: &str = "priority=45, -rate_hz, -role";
const THIRD: &str = "priority=30, -rate_hz, -role";
const LAST: &str = "priority=15, -rate_hz, -role";

/// The slowest of the more urgent clients beside the second, the third and the last.
const TO_SECOND: Metric = Metric::of(P50).at(FIRST).with(&[Over(P50, "")]);
const TO_THIRD: Metric = Metric::of(P50)
    .at(FIRST)
    .with(&[Or(P50, SECOND), Over(P50, "")]);
const TO_LAST: Metric =
    Metric::of(P50)
        .at(FIRST)
        .with(&[Or(P50, SECOND), Or(P50, THIRD), Over(P50, "")]);

pub(super) const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "{preset}: the slowest of the more urgent clients, to the least urgent one, {servant_work_us} us of work",
        of: "transport=tcp, servant_work_us=500, part=call, priority=15",
        metric: TO_LAST.in_unit("×"),
        beside: Words::with(
            "the most urgent one {0}, the least urgent one {1}",
            &[US.at(FIRST), US],
        ),
    }],
    // Of medians: in a quick run the client that calls least has four calls in a round, and clients of different rates never have the
    // same number, which a tail needs.
    claims: &[
        step("preset=tao, part=call, priority=45", TO_SECOND),
        step("preset=tao, part=call, priority=30", TO_THIRD),
        step("preset=tao, part=call, priority=15", TO_LAST),
    ],
    published: &[
        figure(
            "P2 Figure 3 (TAO)",
            "latency, Linux",
            "inverted: 289 us at 10 Hz, 269 us at 5 Hz",
            LATENCY,
        ),
        figure(
            "P2 Figure 3 (TAO)",
            "latency, LynxOS",
            "no measurable inversion",
            LATENCY,
        ),
        figure(
            "P2 Figure 4 (TAO)",
            "jitter to the mean, Linux",
            "28.8 % to 193 %",
            JITTER,
        ),
        figure(
            "P2 Figure 4 (TAO)",
            "jitter to the mean, LynxOS",
            "6.42 % at 20 Hz, up to 18.8 % at 1 Hz",
            JITTER,
        ),
        figure(
            "P2 Figure 4 (TAO)",
            "jitter to the mean, Solaris; Windows NT",
            "32.6 % to 41.2 %; 31.3 % to 57.3 %",
            JITTER,
        ),
    ],
    ..Statements::NONE
};

/// From 1.1 on, a step is an inversion: beside it, caches and timers of the clients differ by some percent.
const fn step(of: &'static str, metric: Metric) -> Declaration {
    Declaration::at_most(
        "staircase-p50.{servant_work_us}us.{transport}.{priority}",
        metric,
        1.1,
    )
    .of(
        of,
        "{preset} over {transport}, {servant_work_us} us of work: the slowest median of the more urgent clients, to that of the client \
         with priority {priority}",
    )
}

const fn figure(
    source: &'static str,
    what: &'static str,
    published: &'static str,
    ours: Words,
) -> PublishedOf {
    PublishedOf {
        source,
        what,
        published,
        of: "preset=tao, transport=tcp, servant_work_us=0, part=call, priority=60",
        ours,
    }
}

const LATENCY: Words = Words::with(
    "{0}, {1}, {2} and {3}, from the most urgent client to the least",
    &[US, US.at(SECOND), US.at(THIRD), US.at(LAST)],
);
const JITTER: Words = Words::with(
    "{0}, {1}, {2} and {3}, from the most urgent client to the least",
    &[
        SHARE,
        Metric::of(Deviation)
            .at(SECOND)
            .with(&[Over(Mean, SECOND), Times(100.0)])
            .in_unit("%"),
        Metric::of(Deviation)
            .at(THIRD)
            .with(&[Over(Mean, THIRD), Times(100.0)])
            .in_unit("%"),
        Metric::of(Deviation)
            .at(LAST)
            .with(&[Over(Mean, LAST), Times(100.0)])
            .in_unit("%"),
    ],
);
const SHARE: Metric = Metric::of(Deviation)
    .with(&[Over(Mean, ""), Times(100.0)])
    .in_unit("%");

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::cells::Cells;
    use rtorb_results::claim::Grounds;
    use rtorb_results::{Verdict, labels};

    #[test]
    fn an_inversion_over_more_than_one_step_is_found() {
        let mut cells = Cells::default();
        for (rate_hz, priority, ns) in [(20u32, 60u32, 11_900), (10, 45, 10_900), (5, 30, 10_000)] {
            let of = labels([
                ("preset", "tao".into()),
                ("transport", "tcp".into()),
                ("servant_work_us", 500usize.into()),
                ("part", "call".into()),
                ("role", if priority == 60 { "high" } else { "low" }.into()),
                ("rate_hz", rate_hz.into()),
                ("priority", priority.into()),
            ]);
            for round in 0..6 {
                cells.add(&of, round, &[ns, ns, ns], 0);
            }
        }
        let said = SAYS.evaluate(&Grounds::of(&cells, 6));
        let found: Vec<_> = said
            .claims
            .iter()
            .map(|claim| (claim.id.as_str(), claim.value, claim.verdict))
            .collect();
        let [second, third] =
            ["45", "30"].map(|priority| format!("staircase-p50.500us.tcp.{priority}"));
        let expected = [
            (second.as_str(), Some(11_900.0 / 10_900.0), Verdict::Held),
            (third.as_str(), Some(1.19), Verdict::Missed),
        ];
        assert_eq!(found, expected);
    }
}
