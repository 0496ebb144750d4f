//! Transitions worked out by hand, and random ones against a simulation that changes at every time.

use super::*;
use crate::levels::Strategy;
use crate::{CallKind, Verdict};
use proptest::prelude::*;

struct Owned {
    graph: CallGraph,
    schedule: Schedule,
    urgencies: Vec<i32>,
}

impl Owned {
    fn new(operations: Vec<Operation>, strategy: Strategy) -> Self {
        Self::calling(operations, vec![], strategy)
    }

    fn calling(operations: Vec<Operation>, calls: Vec<OperationCall>, strategy: Strategy) -> Self {
        let graph = CallGraph { operations, calls };
        let schedule =
            Schedule::compute(&graph, strategy, SearchLimits::default()).expect("a schedule");
        let levels = i32::try_from(schedule.levels.len()).expect("few");
        Self {
            graph,
            schedule,
            urgencies: (0..levels).map(|level| 50 - level).collect(),
        }
    }

    fn mode(&self) -> Mode<'_> {
        Mode {
            graph: &self.graph,
            schedule: &self.schedule,
            urgencies: &self.urgencies,
        }
    }
}

fn operation(name: &str, period_ns: u64, worst_ns: u64) -> Operation {
    Operation {
        period_ns: Some(period_ns),
        worst_ns,
        typical_ns: worst_ns,
        ..Operation::named(name)
    }
}

fn between(old: &Owned, new: &Owned) -> Transition {
    Transition::between(old.mode(), new.mode(), SearchLimits::default()).expect("a transition")
}

#[test]
fn a_change_to_the_same_system_has_its_bounds() {
    let same = Owned::new(
        vec![operation("fast", 10, 3), operation("slow", 40, 8)],
        Strategy::RateMonotonic,
    );
    let transition = between(&same, &same);
    assert_eq!(transition.refusal(), None);
    // 8 of its own and twice 3.
    assert_eq!(transition.longest_ns(), Some(14));
}

fn one_way(caller: usize, callee: usize) -> OperationCall {
    OperationCall {
        caller,
        callee,
        count: 1,
        kind: CallKind::OneWay,
    }
}

/// Of the old mode, `fuse` waits for `slow`; of the new one, for `fast`. Meanwhile it runs for each of both: `x` of the old mode, which is
/// the least urgent now, meets three jobs of `fast` and of `fuse`, and ends after 24.
#[test]
fn a_conjunction_with_other_callers_runs_for_each_of_them() {
    let fuse = Operation {
        kind: OperationKind::Conjunction,
        deadline_ns: Some(100),
        worst_ns: 2,
        ..Operation::named("fuse")
    };
    let old = Owned::calling(
        vec![
            operation("x", 20, 15),
            operation("slow", 100, 1),
            fuse.clone(),
        ],
        vec![one_way(1, 2)],
        Strategy::RateMonotonic,
    );
    let mut fast = operation("fast", 10, 1);
    fast.deadline_ns = Some(20);
    let new = Owned::calling(
        vec![operation("x", 100, 15), fast, fuse],
        vec![one_way(1, 2)],
        Strategy::RateMonotonic,
    );
    for mode in [&old, &new] {
        assert_eq!(mode.schedule.holds(), Some(true), "{:?}", mode.schedule);
        assert_eq!(between(mode, mode).refusal(), None);
    }
    assert!(between(&old, &new).refusal().is_some());
    assert!(between(&new, &old).refusal().is_some());
}

#[test]
fn exchanged_priorities_are_one_level_in_any_order() {
    let old = Owned::new(
        vec![operation("a", 10, 3), operation("b", 40, 8)],
        Strategy::RateMonotonic,
    );
    let mut b = operation("b", 40, 8);
    b.deadline_ns = Some(9);
    let new = Owned::new(vec![operation("a", 20, 3), b], Strategy::DeadlineMonotonic);
    assert_eq!(new.schedule.holds(), Some(true));
    let refusal = between(&old, &new)
        .refusal()
        .expect("11 ns and more are beyond 9 ns");
    assert_eq!(refusal.operation, "b");
    // With 14 ns for both, any order holds: 3 and 8, and 3 again.
    let mut b = operation("b", 40, 8);
    b.deadline_ns = Some(14);
    let mut a = operation("a", 20, 3);
    a.deadline_ns = Some(16);
    let old = Owned::new(vec![a.clone(), b.clone()], Strategy::DeadlineMonotonic);
    a.deadline_ns = Some(13);
    let new = Owned::new(vec![a, b], Strategy::DeadlineMonotonic);
    assert_eq!(between(&old, &new).refusal(), None);
}

#[test]
fn both_modes_hold_and_their_change_does_not() {
    let old = Owned::new(
        vec![operation("a", 10, 6), operation("b", 40, 8)],
        Strategy::RateMonotonic,
    );
    let new = Owned::new(
        vec![operation("a", 10, 2), operation("b", 40, 25)],
        Strategy::RateMonotonic,
    );
    assert_eq!(old.schedule.holds(), Some(true));
    assert_eq!(new.schedule.holds(), Some(true));
    let refusal = between(&old, &new).refusal().expect("6 of 10 and 25 of 40");
    assert_eq!(refusal.operation, "b");
}

#[test]
fn a_removed_operation_still_counts_and_a_new_one_already_does() {
    let old = Owned::new(vec![operation("gone", 10, 6)], Strategy::RateMonotonic);
    let new = Owned::new(vec![operation("come", 20, 6)], Strategy::RateMonotonic);
    let transition = between(&old, &new);
    // Both have urgency 50: 6 and 6, for a deadline of 10.
    assert_eq!(transition.refusal().expect("12 ns").operation, "gone");
}

#[test]
fn a_circle_of_both_modes_is_an_error() {
    let pair = |caller, callee| {
        let mut owned = Owned::new(
            vec![operation("a", 10, 1), operation("b", 10, 1)],
            Strategy::RateMonotonic,
        );
        owned.graph.calls = vec![OperationCall {
            caller,
            callee,
            count: 1,
            kind: CallKind::TwoWay,
        }];
        owned
    };
    let (old, new) = (pair(0, 1), pair(1, 0));
    let found = Transition::between(old.mode(), new.mode(), SearchLimits::default());
    assert!(matches!(found, Err(GraphError::Cycle { .. })), "{found:?}");
}

#[test]
fn deadlines_stay_the_order_where_both_modes_have_them() {
    // 98 % that no fixed order schedules.
    let old = Owned::new(
        vec![operation("a", 20, 10), operation("b", 30, 14)],
        Strategy::EarliestDeadlineFirst,
    );
    let new = Owned::new(
        vec![operation("a", 20, 9), operation("b", 30, 14)],
        Strategy::EarliestDeadlineFirst,
    );
    let transition = between(&old, &new);
    assert_eq!(transition.refusal(), None);
    let verdicts = transition.schedule.operations.iter();
    assert!(
        verdicts
            .clone()
            .any(|it| it.verdict == Verdict::MeetsIfPreempted)
    );
}

#[test]
fn another_deadline_makes_any_order_possible_during_the_change() {
    let by_deadline = |a_deadline| {
        let mut a = operation("a", 20, 10);
        a.deadline_ns = Some(a_deadline);
        Owned::new(
            vec![a, operation("b", 30, 14)],
            Strategy::EarliestDeadlineFirst,
        )
    };
    let (old, new) = (by_deadline(20), by_deadline(19));
    assert_eq!(between(&old, &old).refusal(), None);
    let refused = between(&old, &new).refusal();
    assert!(
        refused.is_some(),
        "a lane of two levels has jobs of three deadlines"
    );
}

/// A job in the simulation.
struct Job {
    task: usize,
    arrived: u64,
    left: u64,
}

/// Runs both modes, one after the other, with a change at `at`: each task changes its priority at its own time after it. Returns
/// the longest response of each task.
fn simulated(modes: [&Owned; 2], at: u64, delays: &[u64], end: u64) -> Vec<u64> {
    let tasks = modes[0].graph.operations.len();
    let mut longest = vec![0; tasks];
    let mut next = vec![0_u64; tasks];
    let mut jobs: Vec<Job> = Vec::new();
    for now in 0..end {
        let mode = modes[usize::from(now >= at)];
        for (task, next) in next.iter_mut().enumerate() {
            let operation = &mode.graph.operations[task];
            if now >= *next {
                jobs.push(Job {
                    task,
                    arrived: now,
                    left: operation.worst_ns,
                });
                *next = now + operation.period_ns.expect("a period");
            }
        }
        let urgency = |task: usize| {
            let mode = modes[usize::from(now >= at + delays[task])];
            let level = mode.schedule.operations[task].level.expect("it runs");
            mode.urgencies[level as usize]
        };
        let order = |job: &Job| (core::cmp::Reverse(urgency(job.task)), job.arrived, job.task);
        if let Some(running) = jobs.iter_mut().min_by_key(|job| order(job)) {
            running.left -= 1;
        }
        jobs.retain(|job| {
            if job.left == 0 {
                longest[job.task] = longest[job.task].max(now + 1 - job.arrived);
            }
            job.left > 0
        });
    }
    longest
}

fn numbers() -> impl proptest::strategy::Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((5_u64..40, 1_u64..6), 3)
}

proptest! {
    #[test]
    fn no_response_during_a_change_exceeds_its_bound(
        old in numbers(),
        new in numbers(),
        at in 0_u64..200,
        delays in prop::collection::vec(0_u64..15, 3),
    ) {
        let owned = |numbers: &[(u64, u64)]| {
            let each = numbers.iter().zip(["a", "b", "c"]);
            let operations = each.map(|(&(period, worst), name)| operation(name, period, worst));
            Owned::new(operations.collect(), Strategy::RateMonotonic)
        };
        let (old, new) = (owned(&old), owned(&new));
        let transition = between(&old, &new);
        let longest = simulated([&old, &new], at, &delays, 500);
        for (scheduled, longest) in transition.schedule.operations.iter().zip(longest) {
            if let Some(Response::Bounded { ns }) = scheduled.response {
                prop_assert!(longest <= ns, "{longest} is beyond {ns}");
            }
        }
    }
}
