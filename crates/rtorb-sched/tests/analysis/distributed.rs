//! Compares the bounds of random transactions over several processors with simulations.
//!
//! A short run by default; `RTORB_SCHED_SETS=10000 cargo test -p rtorb-sched --release --test analysis distributed::` for a long one.

use core::cell::Cell;

use crate::simulator::distributed::{Chances, Course, longest_responses};
use crate::simulator::random::{
    BOTH, EARLIEST, FIXED, LIMITS, Transactions, transactions, with_bursts_and_offsets,
};
use crate::simulator::sets::check;
use proptest::prelude::*;
use rtorb_sched::holistic::{Begins, SchedulingPolicy, Step, StepResponse, holistic, interference};
use rtorb_sched::{Burst, Phase, Response, SearchLimits, Task};

/// Possible runs: worst-case runs from various beginnings, and arbitrary ones.
fn courses(set: &Transactions, found: &[StepResponse]) -> Vec<Course> {
    let mut chances = Chances(set.seed);
    // The latest release of a step coincides with other releases.
    let together = |root: &Step, chances: &mut Chances| {
        let same = set.steps.iter().zip(found);
        let same: Vec<u64> = same
            .filter(|(step, _)| step.transaction == root.transaction)
            .map(|(_, found)| found.jitter_ns)
            .collect();
        LATEST_NS.saturating_sub(same[chances.below(same.len())])
    };
    let mut course = |number: u64| {
        let offset = |step: &Step, chances: &mut Chances| match number {
            0 => 0,
            1..6 => together(step, chances),
            _ => chances.next() % step.task.period_ns,
        };
        // Steps with static offsets keep their distance, from a moment that their clock chooses.
        let begun_ns = [chances.next() % 100, chances.next() % 100];
        let offsets = set.steps.iter().map(|step| match step.task.phase {
            Some(phase) => begun_ns[phase.clock] + phase.offset_ns,
            None => offset(step, &mut chances),
        });
        Course {
            offsets_ns: offsets.collect(),
            at_worst: number < 8,
            horizon_ns: 1_000,
            chances: Chances(chances.next()),
        }
    };
    (0..12).map(&mut course).collect()
}

const LATEST_NS: u64 = 200;

fn never_below_simulation(set: &Transactions) -> Result<(), TestCaseError> {
    let found = holistic(&set.steps, &set.processors, LIMITS);
    for course in courses(set, &found) {
        let reached = longest_responses(&set.steps, &set.processors, course.clone());
        for (index, found) in found.iter().enumerate() {
            if let Some(bound_ns) = found.response.bound_ns() {
                prop_assert!(
                    reached[index] <= bound_ns,
                    "step {index}: {} > {bound_ns}, {course:?}",
                    reached[index]
                );
            }
        }
    }
    Ok(())
}

#[test]
fn no_step_exceeds_its_bound_under_fixed_priorities() {
    check(&transactions(FIXED, 250), |set| {
        never_below_simulation(&set)
    });
}

#[test]
fn no_step_exceeds_its_bound_under_earliest_deadline_first() {
    check(&transactions(EARLIEST, 250), |set| {
        never_below_simulation(&set)
    });
}

#[test]
fn no_step_exceeds_its_bound_with_mixed_policies() {
    check(&transactions(BOTH, 250), |set| never_below_simulation(&set));
}

#[test]
fn no_step_exceeds_its_bound_with_bursts_and_offsets() {
    for policies in [FIXED, EARLIEST, BOTH] {
        check(&transactions(policies, 250), |set| {
            never_below_simulation(&with_bursts_and_offsets(set))
        });
    }
}

#[test]
fn offsets_never_lengthen_a_bound() {
    let shorter = Cell::new(0);
    check(&transactions(BOTH, 250), |set| {
        let set = with_bursts_and_offsets(set);
        let mut unrelated = set.steps.clone();
        unrelated.iter_mut().for_each(|step| step.task.phase = None);
        let with = holistic(&set.steps, &set.processors, LIMITS);
        let without = holistic(&unrelated, &set.processors, LIMITS);
        for (index, (with, without)) in with.iter().zip(&without).enumerate() {
            let bounds = (with.response.bound_ns(), without.response.bound_ns());
            if let (Some(with), Some(without)) = bounds {
                prop_assert!(with <= without, "step {index}: {with} > {without}");
                shorter.set(shorter.get() + u32::from(with < without));
            }
        }
        Ok(())
    });
    assert!(shorter.get() > 0, "offsets shortened {shorter:?} bounds");
}

/// The second job of a burst arrives when the first one ends, and goes first: a step without execution needs the processor for a moment too.
#[test]
fn a_step_without_execution_waits_for_what_arrives_when_the_processor_becomes_free() {
    let step = |transaction: usize, task: Task| Step {
        task: task.with_blocking(1),
        processor: 0,
        level: u32::try_from(transaction).expect("few"),
        after: None,
        delay_ns: 0,
        transaction,
        begins: Begins::AtEnd,
        thread_until: None,
        may_be_overtaken: false,
    };
    let burst = Burst { jobs: 2, gap_ns: 2 };
    let steps = [
        step(0, Task::periodic(10, 1).with_deadline(5).with_burst(burst)),
        step(1, Task::periodic(20, 0)),
    ];
    for policy in [FIXED, EARLIEST] {
        let found = holistic(&steps, policy, LIMITS);
        let bounds = found.iter().map(|found| found.response.bound_ns());
        assert_eq!(bounds.collect::<Vec<_>>(), [Some(2), Some(3)]);
        assert_eq!(interference(&steps, policy, &found, 1), [(0, 2)]);
        let course = Course {
            chances: Chances(0),
            offsets_ns: vec![0, 0],
            at_worst: true,
            horizon_ns: 10,
        };
        assert_eq!(longest_responses(&steps, policy, course), [2, 3]);
    }
}

/// Three jobs of 30 in 100, a third of the period apart: none meets another, although unrelated ones would be busy for 90.
#[test]
fn jobs_by_deadline_that_offsets_keep_apart_have_bounds_without_waiting() {
    let step = |transaction: usize, offset_ns: u64| Step {
        task: Task::periodic(100, 30).with_phase(Phase {
            offset_ns,
            clock: 0,
        }),
        processor: 0,
        level: 0,
        after: None,
        delay_ns: 0,
        transaction,
        begins: Begins::AtEnd,
        thread_until: None,
        may_be_overtaken: false,
    };
    let steps = [step(0, 0), step(1, 33), step(2, 66)];
    let limits = SearchLimits {
        steps_max: 200,
        ..SearchLimits::default()
    };
    let found = holistic(&steps, &[SchedulingPolicy::EarliestDeadline], limits);
    for each in found {
        assert_eq!(each.response, Response::Bounded { ns: 30 });
    }
}

#[test]
fn the_terms_of_a_bound_sum_up_to_it() {
    check(&transactions(BOTH, 200), |set| {
        terms_sum_up(&set)?;
        terms_sum_up(&with_bursts_and_offsets(set))
    });
}

fn terms_sum_up(set: &Transactions) -> Result<(), TestCaseError> {
    let found = holistic(&set.steps, &set.processors, LIMITS);
    for (index, each) in found.iter().enumerate() {
        let Some(bound_ns) = each.response.bound_ns() else {
            continue;
        };
        let task = &set.steps[index].task;
        let earlier = each.job * task.period_ns + each.later_ns;
        prop_assert_eq!(bound_ns + earlier, each.jitter_ns + each.window_ns);
        let listed = interference(&set.steps, &set.processors, &found, index);
        let others: u64 = listed
            .iter()
            .map(|&(step, jobs)| jobs * set.steps[step].task.worst_ns)
            .sum();
        prop_assert_eq!(
            each.window_ns,
            each.blocking_ns + each.own_jobs * task.worst_ns + others
        );
    }
    Ok(())
}
