//! Compares the growth of steps with complete analyses.

use crate::simulator::random::{BOTH, FIXED, LIMITS, Transactions, transactions};
use crate::simulator::sets::check;
use proptest::prelude::*;
use rtorb_sched::holistic::{Begins, SchedulingPolicy, Step, holistic};
use rtorb_sched::sensitivity::{Growth, GrowthAnalysis, may_grow};
use rtorb_sched::{SearchLimits, Task, Utilisation};

/// Returns whether a processor's utilisation is so high that a search may end undecided, depending on its start.
fn is_crowded(steps: &[Step], processors: &[SchedulingPolicy]) -> bool {
    (0..processors.len()).any(|processor| {
        let here = steps.iter().filter(|step| step.processor == processor);
        Utilisation::of(here.map(|step| &step.task)).millionths() > 930_000
    })
}

/// Returns whether all deadlines hold; `None` if the search ended undecided.
fn holds(steps: &[Step], processors: &[SchedulingPolicy]) -> Option<bool> {
    let found = holistic(steps, processors, LIMITS);
    let each = steps.iter().zip(&found);
    let meets: Vec<_> = each
        .map(|(step, found)| found.response.meets(step.task.deadline_ns))
        .collect();
    if meets.contains(&Some(false)) {
        return Some(false);
    }
    (!meets.contains(&None)).then_some(true)
}

fn changed(steps: &[Step], growing: &[usize], by_ns: i64) -> Vec<Step> {
    let mut changed = steps.to_vec();
    for &index in growing {
        let worst = &mut changed[index].task.worst_ns;
        *worst = worst.saturating_add_signed(by_ns);
    }
    changed
}

/// Checks that complete analyses hold with the growth found and with less, and not with more.
fn is_the_most(set: &Transactions) -> Result<(), TestCaseError> {
    let sensitivity = GrowthAnalysis::new(&set.steps, &set.processors, LIMITS);
    let mut groups: Vec<Vec<usize>> = (0..set.steps.len()).map(|index| vec![index]).collect();
    groups.push((0..set.steps.len()).step_by(2).collect());
    for growing in &groups {
        let found = sensitivity.may_grow(growing);
        let with = |by_ns: i64| changed(&set.steps, growing, by_ns);
        let holds_with = |by_ns: i64| holds(&with(by_ns), &set.processors);
        let Some(by_ns) = found.by_ns else {
            prop_assert_ne!(holds_with(i64::MIN), Some(true), "{:?} would help", growing);
            continue;
        };
        prop_assert_ne!(holds_with(by_ns), Some(false), "{:?} by {}", growing, by_ns);
        if is_crowded(&with(by_ns + 1), &set.processors) {
            continue;
        }
        prop_assert_ne!(
            holds_with(by_ns + 1),
            Some(true),
            "{:?} by more than {}",
            growing,
            by_ns
        );
        prop_assert!(by_ns < 0 || holds_with(by_ns / 2) != Some(false));
        let breaks = found.breaks_first.expect("something breaks");
        let beyond = holistic(&with(by_ns + 1), &set.processors, LIMITS);
        let meets = beyond[breaks]
            .response
            .meets(set.steps[breaks].task.deadline_ns);
        prop_assert!(
            by_ns < 0 || meets != Some(true),
            "{breaks} breaks with {growing:?}"
        );
    }
    Ok(())
}

/// Sets with deadlines that can be met. Times are so short that a thousandth is less than 1 ns.
fn generous(mut set: Transactions) -> Transactions {
    for step in &mut set.steps {
        step.task.deadline_ns = (step.task.deadline_ns * 2).max(step.task.period_ns / 2);
    }
    set
}

#[test]
fn growth_of_chains_is_the_largest_that_holds() {
    check(&transactions(BOTH, 150), |set| is_the_most(&generous(set)));
}

#[test]
fn growth_of_local_steps_is_the_largest_that_holds() {
    check(&transactions(FIXED, 150), |mut set| {
        for (index, step) in set.steps.iter_mut().enumerate() {
            (step.after, step.transaction) = (None, index);
            step.task.deadline_ns = step.task.deadline_ns.clamp(1, step.task.period_ns);
        }
        is_the_most(&set)
    });
}

#[test]
fn no_growth_is_reported_if_no_change_helps() {
    let alone = |task: Task, level: u32| Step {
        task,
        processor: 0,
        level,
        after: None,
        delay_ns: 0,
        transaction: usize::try_from(level).expect("few"),
        begins: Begins::AtEnd,
        thread_until: None,
        may_be_overtaken: false,
    };
    let steps = [
        alone(Task::periodic(10, 11), 0),
        alone(Task::periodic(100, 1), 1),
    ];
    let processors = [SchedulingPolicy::FixedPriority];
    let asked = |growing: &[usize]| may_grow(&steps, &processors, growing, SearchLimits::default());
    let none = Growth {
        by_ns: None,
        breaks_first: Some(0),
    };
    assert_eq!(asked(&[1]), none);
    assert_eq!(asked(&[]), none);
    assert_eq!(
        asked(&[0]).by_ns,
        Some(-2),
        "the other one needs 1 in 10 of what is left"
    );
}
