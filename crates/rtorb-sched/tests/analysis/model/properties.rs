//! Properties of the report of every system.

use rtorb_sched::SearchLimits;
use rtorb_sched::model::{
    CheckOptions, CheckReport, Composition, Share, Standing, System, check_composed,
};

use super::random::{Draw, Shape, composed, random_system};

/// The number of random systems for each property: `RTORB_SCHED_SETS` sets it, as in `simulator/sets.rs`.
fn systems() -> u64 {
    let chosen = std::env::var("RTORB_SCHED_SETS").ok();
    chosen.map_or(150, |text| {
        text.parse().expect("RTORB_SCHED_SETS is a number")
    })
}

fn shape(draw: &mut Draw) -> Shape {
    Shape {
        nodes: 1 + draw.below(3),
        cpus: 1 + draw.below(2),
        roots: 1 + draw.below(10),
        called: draw.below(8),
        load: 100 + draw.below(900),
        edf: draw.below(2) == 0,
    }
}

fn answer(system: &System, composed: &Composition) -> CheckReport {
    let options = CheckOptions {
        sensitivity: false,
        // A full processor whose periods have no common measure would take all steps.
        limits: SearchLimits {
            steps_max: 2_000,
            rounds_max: 100,
        },
        strategy: None,
    };
    check_composed(system, composed, &options).expect("there are priorities enough")
}

/// Returns the random system of a seed; `None` if its given priorities leave no room for the others.
fn drawn(seed: u64) -> (System, Composition, Draw) {
    let mut draw = Draw(seed);
    let shape = shape(&mut draw);
    let system = random_system(&mut draw, shape);
    let composed = composed(&mut draw, &system);
    (system, composed, draw)
}

#[test]
fn the_sum_of_the_shares_is_the_bound() {
    let sum = |shares: &[Share]| shares.iter().map(|share| share.ns).sum::<i64>();
    let (mut bounds, mut later) = (0, 0);
    for seed in 0..systems() {
        let (system, composed, _) = drawn(seed);
        let answer = answer(&system, &composed);
        let behaviours = answer
            .behaviours
            .iter()
            .map(|each| (&each.behaviour, each.bound_ns, &each.shares));
        let chains = answer
            .chains
            .iter()
            .map(|each| (&each.chain, each.bound_ns, &each.shares));
        for (name, bound_ns, shares) in behaviours.chain(chains) {
            let Some(bound_ns) = bound_ns else {
                assert!(shares.is_empty());
                continue;
            };
            bounds += 1;
            assert_eq!(
                u64::try_from(sum(shares)),
                Ok(bound_ns),
                "seed {seed}: {name}: {shares:#?}"
            );
            let negative = shares.iter().filter(|share| share.ns < 0);
            negative.for_each(|share| assert_eq!(share.what, "arrived later"));
            later += shares
                .iter()
                .filter(|share| share.what == "arrived later")
                .count();
            assert!(
                shares.iter().all(|share| share.ns != 0 && share.times > 0),
                "{shares:#?}"
            );
        }
    }
    assert!(
        bounds > systems() && later > 0,
        "{bounds} bounds, {later} of later jobs: too tame"
    );
}

#[test]
fn more_execution_never_lowers_a_bound() {
    let mut raised = 0;
    for seed in 0..systems() {
        let (system, composed, mut draw) = drawn(seed);
        let before = answer(&system, &composed);
        let mut longer = composed.clone();
        let grown = usize::try_from(draw.below(longer.segments.len() as u64)).unwrap();
        longer.segments[grown].execution[0].ns += 1 + draw.below(2_000_000);
        let after = answer(&system, &longer);
        for (before, after) in before.behaviours.iter().zip(&after.behaviours) {
            assert_eq!(before.priority, after.priority);
            let before_ns = before.bound_ns.unwrap_or(u64::MAX);
            let after_ns = after.bound_ns.unwrap_or(u64::MAX);
            assert!(before_ns <= after_ns, "seed {seed}: {}", before.behaviour);
            raised += u64::from(before_ns < after_ns);
        }
    }
    assert!(raised > systems(), "{raised}: too tame");
}

#[test]
fn deadlines_still_hold_with_shorter_executions() {
    let mut held = 0;
    for seed in 0..systems() {
        let (system, mut composed, mut draw) = drawn(seed);
        if answer(&system, &composed).standing != Standing::Holds {
            continue;
        }
        held += 1;
        for segment in &mut composed.segments {
            for part in &mut segment.execution {
                part.ns -= draw.below(part.ns + 1);
            }
        }
        assert_eq!(
            answer(&system, &composed).standing,
            Standing::Holds,
            "seed {seed}"
        );
    }
    assert!(held > systems() / 10, "{held} systems held: too few");
}
