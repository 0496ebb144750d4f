use std::collections::BTreeMap;

use rtorb_results::Verdict::{self, Held, Missed, NotJudged};

use super::*;
use crate::contestants::rt_policies::BURST;
use crate::experiments::orb_rt_policies::{REFUSED, SERVED};
use crate::processes::probe::Answer;
use crate::study::Answered;

/// The claims of a policy's urgent calls.
const URGENT_CLAIMS: [&str; 7] = [
    "borrowing.on-to-off-p50",
    "borrowing.beside-to-alone-p50",
    "buffering.beside-to-alone-p50",
    "bands.on-to-off-p50",
    "bands.beside-to-alone-p50",
    "nested_priority.on-to-off-p50",
    "nested_priority.beside-to-alone-p50",
];
/// Those of a burst.
const BURST_CLAIMS: [&str; 3] = [
    "buffering.refused-without",
    "buffering.served-beyond-bound",
    "buffering.refusal-to-service-p50",
];

/// The times of the rounds in microseconds, one call each.
type Rounds<'a> = &'a [u64];

/// Cells of every policy: urgent calls alone, beside others without the policy, and beside others with it.
fn urgent(alone_us: Rounds<'_>, off_us: Rounds<'_>, on_us: Rounds<'_>) -> Cells {
    let mut cells = Cells::default();
    for policy in RtPolicy::ALL {
        for (setting, beside, rounds_us) in [
            (OFF, NONE, alone_us),
            (OFF, IN_PROGRESS, off_us),
            (ON, NONE, alone_us),
            (ON, IN_PROGRESS, on_us),
        ] {
            add(&mut cells, policy, [setting, beside, URGENT], rounds_us);
        }
    }
    cells
}

fn add(
    cells: &mut Cells,
    policy: RtPolicy,
    [setting, beside, call]: [&str; 3],
    rounds_us: Rounds<'_>,
) {
    let labels = labels([
        (POLICY, policy.word().into()),
        (SETTING, setting.into()),
        (OTHER_CALLS, beside.into()),
        (CALL, call.into()),
    ]);
    for (round, us) in rounds_us.iter().enumerate() {
        cells.add(&labels, round, &[us * 1_000], 0);
    }
}

/// Ten bursts a round, of which so many requests were served in each, without buffering and with it.
fn bursts(off: [usize; 3], on: [usize; 3]) -> Conditions {
    let answered = |(setting, round, served): (&str, usize, usize)| Answered {
        labels: labels([
            (POLICY, RtPolicy::Buffering.word().into()),
            (SETTING, setting.into()),
        ]),
        round,
        answer: Answer {
            numbers: BTreeMap::from([
                (SERVED.to_owned(), (10 * served) as f64),
                (REFUSED.to_owned(), (10 * (BURST - served)) as f64),
            ]),
            ..Answer::default()
        },
    };
    let rounds = |setting| move |(round, served)| (setting, round, served);
    let off = off.into_iter().enumerate().map(rounds(OFF));
    let on = on.into_iter().enumerate().map(rounds(ON));
    Conditions {
        answers: off.chain(on).map(answered).collect(),
        ..Conditions::default()
    }
}

fn verdicts<const N: usize>(found: &Findings, ids: [&str; N]) -> [Verdict; N] {
    ids.map(|id| {
        let claim = found.claims.iter().find(|claim| claim.id == id);
        claim.unwrap_or_else(|| panic!("no claim {id}")).verdict
    })
}

#[test]
fn urgent_calls_that_wait_without_a_policy_and_not_with_it_are_held() {
    let cells = urgent(&[20; 3], &[700; 3], &[30; 3]);
    let found = findings(&cells, &Conditions::default());
    assert_eq!(verdicts(&found, URGENT_CLAIMS), [Held; 7]);
    assert_eq!(found.claims.len(), 7, "no burst, no claim of one");
    let expected = "An urgent call while its lane's only thread is busy takes 700.0 us without borrowing and 30.0 us with borrowing \
                    (medians); alone it takes 20.0 and 20.0 us.";
    assert_eq!(found.conclusions[0], expected);
    assert_eq!((found.conclusions.len(), found.highlights.len()), (4, 4));
    assert_eq!(found.published[0].ours, expected);
    // Two percentiles of two ratios, each in two ways.
    assert_eq!(found.derived.len(), 4 * 8);
}

#[test]
fn policies_without_an_effect_are_missed() {
    let cells = urgent(&[20; 3], &[700; 3], &[690, 700, 710]);
    let found = findings(&cells, &Conditions::default());
    assert_eq!(verdicts(&found, URGENT_CLAIMS), [Missed; 7]);
}

#[test]
fn rounds_that_disagree_decide_nothing() {
    let cells = urgent(&[20; 3], &[100; 3], &[10, 100, 60]);
    let found = findings(&cells, &Conditions::default());
    assert_eq!(verdicts(&found, URGENT_CLAIMS), [NotJudged; 7]);
}

#[test]
fn a_host_without_priorities_claims_nothing() {
    let found = findings(&Cells::default(), &Conditions::default());
    assert!(found.claims.is_empty() && found.derived.is_empty());
    assert!(found.conclusions.is_empty() && found.published.is_empty());
    assert!(found.highlights.is_empty());
}

/// Cells of bursts whose requests take so long: served without buffering, served with it, and refused.
fn served_and_refused(off_us: u64, on_us: u64, refused_us: Rounds<'_>) -> Cells {
    let mut cells = Cells::default();
    let policy = RtPolicy::Buffering;
    add(&mut cells, policy, [OFF, IN_PROGRESS, SERVED], &[off_us; 3]);
    add(&mut cells, policy, [ON, IN_PROGRESS, SERVED], &[on_us; 3]);
    add(&mut cells, policy, [ON, IN_PROGRESS, REFUSED], refused_us);
    cells
}

#[test]
fn a_burst_within_the_bound_is_served_and_the_rest_refused_at_once() {
    let cells = served_and_refused(4_000, 1_500, &[60; 3]);
    let found = findings(&cells, &bursts([8; 3], [3; 3]));
    assert_eq!(verdicts(&found, BURST_CLAIMS), [Held; 3]);
    let words = &found.conclusions[0];
    assert!(
        words.contains("8.0 are served without buffering"),
        "{words}"
    );
    assert!(words.contains("5.0 are refused after 60 us"), "{words}");
    let values = |name: &str| -> Vec<f64> {
        let named = found.derived.iter().filter(|one| one.name == name);
        named.map(|one| one.value).collect()
    };
    assert_eq!(values("served_a_burst"), [8.0, 3.0]);
    assert_eq!(values("refused_a_burst"), [0.0, 5.0]);
}

#[test]
fn a_bound_that_is_not_kept_and_refusals_that_wait_are_missed() {
    let cells = served_and_refused(4_000, 1_500, &[600; 3]);
    let found = findings(&cells, &bursts([7; 3], [5; 3]));
    assert_eq!(verdicts(&found, BURST_CLAIMS), [Missed; 3]);
}

#[test]
fn bursts_that_differ_from_round_to_round_decide_nothing() {
    let cells = served_and_refused(4_000, 1_500, &[60, 600, 200]);
    let found = findings(&cells, &bursts([8, 7, 8], [3, 5, 3]));
    assert_eq!(verdicts(&found, BURST_CLAIMS), [NotJudged; 3]);
}
