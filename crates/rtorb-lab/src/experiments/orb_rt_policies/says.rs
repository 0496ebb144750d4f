//! What is said of each policy: what it does for urgent calls, and for a burst.

use crate::experiments::prelude::*;

const ON_TO_OFF: Metric = Metric::of(P50).with(&[Over(P50, "setting=off")]);
const BESIDE_TO_ALONE: Metric = Metric::of(P50).with(&[Over(P50, "other_calls=none")]);
/// Urgent calls with the policy, while the others' calls are in progress.
const ON: &str = "setting=on, other_calls=in_progress, call=urgent";
/// Lanes share nothing: a burst in another lane delays an urgent call neither with buffering nor without.
const ON_WITH_EFFECT: &str = "setting=on, other_calls=in_progress, call=urgent, policy!=buffering";
const OTHERS: &[&str] = &["orb", "transport", "call"];

/// Urgent calls with and without the policy, beside others and alone.
const FOUR: &[Metric] = &[
    US.at("setting=off"),
    US,
    US.at("setting=off, other_calls=none"),
    US.at("other_calls=none"),
];

pub(super) const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "an urgent call beside others, {policy} on",
        of: ON,
        metric: US,
        beside: Words::with(
            "off {0}; alone {1}",
            &[US.at("setting=off"), US.at("other_calls=none")],
        ),
    }],
    derived: &[
        DerivedOf {
            name: "on_to_off_p50",
            of: "setting=on, call=urgent",
            without: OTHERS,
            metric: ON_TO_OFF,
        },
        DerivedOf {
            name: "beside_to_alone_p50",
            of: "other_calls=in_progress, call=urgent",
            without: OTHERS,
            metric: BESIDE_TO_ALONE,
        },
    ],
    claims: &[
        // What a call waits for without the policy is several times a call; half leaves room for a slow host.
        Declaration::at_most("{policy}.on-to-off-p50", ON_TO_OFF, 0.5).of(
            ON_WITH_EFFECT,
            "an urgent call beside others: the median with {policy}, to that without it",
        ),
        // A policy costs a switch to a thread that helps or reads, and never the wait for another call.
        Declaration::at_most("{policy}.beside-to-alone-p50", BESIDE_TO_ALONE, 2.0).of(
            ON,
            "with {policy}: the median of an urgent call beside others, to that alone",
        ),
        Declaration::count("buffering.refused-without", Metric::of(P50).in_unit("requests"), 0.0).of(
            "policy=buffering, other_calls=in_progress, counted=refused_a_burst, setting=off",
            "without buffering: the refused requests of a burst of 8, in every round",
        ),
        // If a host delays some clients, the thread has finished a request before theirs come: half a request more than the one in
        // service and the two for which there is room.
        Declaration::count("buffering.served-a-burst", Metric::of(P50).in_unit("requests"), 3.5).of(
            "policy=buffering, other_calls=in_progress, counted=served_a_burst, setting=on",
            "with buffering: the served requests of a burst of 8, where there is room for 3, in every round",
        ),
        // All clients send at once and wait for the same CPU, so both times have the queue of clients in them. A served request waits for
        // the thread too, which serves one after the other; a refusal does not.
        Declaration::at_most(
            "buffering.refusal-to-service-p50",
            Metric::of(P50).with(&[Over(P50, "call=served")]),
            0.5,
        )
        .of(
            "policy=buffering, setting=on, other_calls=in_progress, call=refused",
            "with buffering: the median of a refused call, to that of a served one of the same round, both from the release of the clients",
        ),
    ],
    published: &[PublishedOf {
        source: "P0 section 4, future work",
        what: "{policy}: an urgent call beside others without it and with it, and alone",
        published: "to be evaluated",
        of: ON,
        ours: Words::with("{0} and {1}; alone {2} and {3}", FOUR),
    }],
    conclusions: &[Sentence {
        of: "policy=buffering, setting=on, other_calls=in_progress, counted=served_a_burst",
        says: Words::with(
            "Of a burst of 8 requests to a lane of one thread, {0} are served without buffering, the last within {1}; with buffering \
             of 2, {2} are served within {3}, and {4} are refused.",
            &[
                Metric::of(P50).at("setting=off").in_unit(""),
                LAST_US.at("setting=off, call=served, -counted"),
                Metric::of(P50).in_unit(""),
                LAST_US.at("call=served, -counted"),
                Metric::of(P50).at("counted=refused_a_burst").in_unit(""),
            ],
        ),
    }],
};

const LAST_US: Metric = Metric::of(Max).with(&[Times(1e-3)]).in_unit("us");

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Verdict;
    use rtorb_results::cells::Cells;
    use rtorb_results::claim::Grounds;

    #[test]
    fn a_refusal_is_compared_with_service_that_is_timed_alike() {
        let verdict = |refused_ns: u64, served_ns: u64| {
            let mut cells = Cells::default();
            for round in 0..6 {
                for (call, ns) in [("refused", refused_ns), ("served", served_ns)] {
                    let of = labels([
                        ("policy", "buffering".into()),
                        ("setting", "on".into()),
                        ("other_calls", "in_progress".into()),
                        ("call", call.into()),
                    ]);
                    cells.add(&of, round, &[ns], 0);
                }
            }
            let claims = SAYS.evaluate(&Grounds::of(&cells, 6)).claims;
            let id = "buffering.refusal-to-service-p50";
            let claim = claims.into_iter().find(|claim| claim.id == id);
            claim.expect("it is declared").verdict
        };
        // Eight clients take 300 us to send: a refusal is known after them, and so is every reply.
        assert_eq!(verdict(300_000, 1_300_000), Verdict::Held);
        // A refusal that takes most of the time of service is no refusal at once, however short both are.
        assert_eq!(verdict(200_000, 300_000), Verdict::Missed);
    }
}
