//! Compares the bounds of random task sets with simulations, with brute force, and with another implementation.
//!
//! A short run by default; `RTORB_SCHED_SETS=10000 cargo test -p rtorb-sched --release --test analysis simulated::` for a long one.

use crate::simulator::sets::check;
use crate::simulator::{Arrivals, Policy, longest_responses};
use proptest::prelude::*;
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::{edf as their_edf, fixed_priority, wcet};
use rtorb_sched::holistic::{self, Step, holistic};
use rtorb_sched::{
    Burst, Response, SearchLimits, Task, Utilisation, audsley, edf, levels, response_times,
};

/// Task sets of low to excessive utilisation, with deadlines before and after the periods, and jitter.
fn task_sets(count: core::ops::Range<usize>) -> impl Strategy<Value = Vec<Task>> {
    let task = (2_u64..60, 1_u64..40, 1_u64..150, 0_u64..30);
    let task = task.prop_map(|(period, share, deadline, jitter)| {
        let worst = (period * share / 100).max(1);
        Task::periodic(period, worst)
            .with_deadline((period * deadline / 100).max(1))
            .with_jitter(if jitter < 15 { 0 } else { jitter })
    });
    prop::collection::vec(task, count)
}

/// Gives some tasks bursts, which are drawn from the seeds.
fn with_bursts(tasks: &mut [Task], seeds: &[u64]) {
    for (task, seed) in tasks.iter_mut().zip(seeds.iter().cycle()) {
        let jobs = u32::try_from(seed % 4).expect("small") + 1;
        let most_ns = task.period_ns / u64::from(jobs);
        let gap_ns = seed / 4 % (most_ns + 1);
        task.worst_ns = (task.worst_ns / u64::from(jobs)).max(1);
        task.burst = Burst { jobs, gap_ns };
    }
}

/// Arrivals: the first jobs together and as late as possible, as bounds assume, or arbitrary.
fn arrivals(tasks: &[Task], seeds: &[u64], blocked_ns: u64) -> [Arrivals; 2] {
    let worst = |task: &Task| -> Vec<u64> {
        let jobs = u64::from(task.burst.jobs);
        let on_time = (task.jitter_ns / task.period_ns + 8) * jobs;
        // Jobs after the first are released with it if they arrive before its release.
        let since_ns = |job: u64| job / jobs * task.period_ns + job % jobs * task.burst.gap_ns;
        let delays = (0..on_time).map(|job| task.jitter_ns.saturating_sub(since_ns(job)));
        delays.collect()
    };
    let latest = tasks.iter().map(|task| task.jitter_ns).max().unwrap_or(0);
    let together = Arrivals {
        offsets_ns: tasks.iter().map(|task| latest - task.jitter_ns).collect(),
        delays_ns: tasks.iter().map(worst).collect(),
        blocked_ns: latest + blocked_ns,
    };
    let pick = |index: usize, below: u64| {
        let seed = seeds[index % seeds.len()] ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if below == 0 { 0 } else { seed % below }
    };
    let delays = |(index, task): (usize, &Task)| -> Vec<u64> {
        (0..seeds.len())
            .map(|job| pick(index * 7 + job, task.jitter_ns + 1))
            .collect()
    };
    let anyhow = Arrivals {
        offsets_ns: (0..tasks.len())
            .map(|index| pick(index, tasks[index].period_ns))
            .collect(),
        delays_ns: tasks.iter().enumerate().map(delays).collect(),
        blocked_ns: 0,
    };
    [together, anyhow]
}

fn with_seeds(count: core::ops::Range<usize>) -> impl Strategy<Value = (Vec<Task>, Vec<u64>, u64)> {
    let seeds = prop::collection::vec(any::<u64>(), 5..12);
    (task_sets(count), seeds, 0_u64..10)
}

const HORIZON_NS: u64 = 3_000;
/// The limit at which the other implementation ends its search.
const THEIR_LIMIT_NS: u64 = 20_000;

#[test]
fn no_job_exceeds_its_bound_under_fixed_priorities() {
    check(&with_seeds(1..7), |(mut tasks, seeds, blocked)| {
        tasks.iter_mut().for_each(|task| task.blocking_ns = blocked);
        for levels in [
            levels::rate_monotonic(&tasks),
            levels::deadline_monotonic(&tasks),
            vec![0; tasks.len()],
        ] {
            let bounds = response_times(&tasks, &levels, SearchLimits::default());
            for arrivals in arrivals(&tasks, &seeds, blocked) {
                let reached =
                    longest_responses(&tasks, Policy::Fixed(&levels), &arrivals, HORIZON_NS);
                for (index, bound) in bounds.iter().enumerate() {
                    if let Response::Bounded { ns } = *bound {
                        prop_assert!(reached[index] <= ns, "task {index}: {reached:?} {bounds:?}");
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn bounds_are_reached_with_distinct_levels_and_no_jitter() {
    check_tight(|_, _| {});
}

#[test]
fn bursts_reach_their_bounds_with_distinct_levels_and_no_jitter() {
    check_tight(with_bursts);
}

/// Checks that the bounds of tasks without jitter, which `change` may change, are reached.
fn check_tight(change: impl Fn(&mut [Task], &[u64])) {
    check(&with_seeds(1..6), |(mut tasks, seeds, _)| {
        tasks.iter_mut().for_each(|task| task.jitter_ns = 0);
        change(&mut tasks, &seeds);
        if Utilisation::of(&tasks).millionths() > 950_000 {
            return Ok(());
        }
        let levels: Vec<u32> = (0..).take(tasks.len()).collect();
        let bounds = response_times(&tasks, &levels, SearchLimits::default());
        let [together, _] = arrivals(&tasks, &seeds, 0);
        let reached = longest_responses(&tasks, Policy::Fixed(&levels), &together, 10_000);
        for (index, bound) in bounds.iter().enumerate() {
            if let Response::Bounded { ns } = *bound {
                prop_assert_eq!(reached[index], ns, "task {} of {:?}", index, tasks);
            }
        }
        Ok(())
    });
}

#[test]
fn no_job_of_a_burst_exceeds_its_bound() {
    check(&with_seeds(1..6), |(mut tasks, seeds, blocked)| {
        tasks.iter_mut().for_each(|task| task.blocking_ns = blocked);
        with_bursts(&mut tasks, &seeds);
        if Utilisation::of(&tasks).exceeds_one() {
            return Ok(());
        }
        let levels = levels::deadline_monotonic(&tasks);
        let limits = SearchLimits {
            steps_max: 2_000,
            ..SearchLimits::default()
        };
        let by_level = response_times(&tasks, &levels, limits);
        let by_deadline = edf::response_times(&tasks, limits);
        let demand = edf::demand(&tasks, limits);
        agree(&tasks, &by_deadline, demand)?;
        for (policy, bounds) in [
            (Policy::Fixed(&levels), by_level),
            (Policy::EarliestDeadline, by_deadline),
        ] {
            for arrivals in arrivals(&tasks, &seeds, blocked) {
                let reached = longest_responses(&tasks, policy, &arrivals, HORIZON_NS);
                for (index, bound) in bounds.iter().enumerate() {
                    if let Response::Bounded { ns } = *bound {
                        prop_assert!(reached[index] <= ns, "task {index}: {reached:?} {bounds:?}");
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn no_simulation_misses_a_deadline_that_the_demand_test_proves() {
    check(&with_seeds(1..6), |(mut tasks, seeds, blocked)| {
        tasks.iter_mut().for_each(|task| task.blocking_ns = blocked);
        if edf::demand(&tasks, SearchLimits::default()) != edf::DemandResult::Meets {
            return Ok(());
        }
        for arrivals in arrivals(&tasks, &seeds, blocked) {
            let reached =
                longest_responses(&tasks, Policy::EarliestDeadline, &arrivals, HORIZON_NS);
            for (task, reached) in tasks.iter().zip(&reached) {
                prop_assert!(*reached <= task.deadline_ns, "{task:?}: {reached}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_failed_demand_test_means_a_missed_deadline() {
    check(&task_sets(1..6), |tasks| {
        let edf::DemandResult::Misses { task, interval_ns } =
            edf::demand(&tasks, SearchLimits::default())
        else {
            return Ok(());
        };
        let [together, _] = arrivals(&tasks, &[1], 0);
        let reached = longest_responses(
            &tasks,
            Policy::EarliestDeadline,
            &together,
            interval_ns + 1_000,
        );
        let missed = tasks
            .iter()
            .zip(&reached)
            .any(|(task, reached)| *reached > task.deadline_ns);
        prop_assert!(missed, "task {task} at {interval_ns}: {reached:?}");
        Ok(())
    });
}

#[test]
fn no_job_exceeds_its_bound_under_earliest_deadline_first() {
    check(&with_seeds(1..6), |(mut tasks, seeds, blocked)| {
        tasks.iter_mut().for_each(|task| task.blocking_ns = blocked);
        let bounds = edf::response_times(&tasks, SearchLimits::default());
        for arrivals in arrivals(&tasks, &seeds, blocked) {
            let reached =
                longest_responses(&tasks, Policy::EarliestDeadline, &arrivals, HORIZON_NS);
            for (index, bound) in bounds.iter().enumerate() {
                if let Response::Bounded { ns } = *bound {
                    prop_assert!(reached[index] <= ns, "task {index}: {reached:?} {bounds:?}");
                }
            }
        }
        Ok(())
    });
}

#[test]
fn earliest_deadline_responses_agree_with_the_demand_test() {
    check(&with_seeds(1..6), |(mut tasks, seeds, _)| {
        for (task, seed) in tasks.iter_mut().zip(&seeds) {
            task.blocking_ns = seed % 5;
        }
        let responses = edf::response_times(&tasks, SearchLimits::default());
        let demand = edf::demand(&tasks, SearchLimits::default());
        agree(&tasks, &responses, demand)
    });
}

/// Checks that two analyses by deadline do not contradict each other. Each may reach its limit where the processor is almost full:
/// its busy period may then be as long as the hyperperiod.
fn agree(
    tasks: &[Task],
    responses: &[Response],
    demand: edf::DemandResult,
) -> Result<(), TestCaseError> {
    let each = responses.iter().zip(tasks);
    let each: Vec<Option<bool>> = each
        .map(|(response, task)| response.meets(task.deadline_ns))
        .collect();
    let holds = if each.contains(&Some(false)) {
        Some(false)
    } else if each.contains(&None) {
        None
    } else {
        Some(true)
    };
    let meets = match demand {
        edf::DemandResult::Undecided => None,
        other => Some(other == edf::DemandResult::Meets),
    };
    if let (Some(holds), Some(meets)) = (holds, meets) {
        prop_assert_eq!(holds, meets, "{:?} {:?}", responses, demand);
    }
    Ok(())
}

#[test]
fn single_steps_have_the_responses_of_tasks() {
    check(&task_sets(1..7), |tasks| {
        let levels = levels::rate_monotonic(&tasks);
        let step = |(index, task): (usize, &Task)| Step {
            task: *task,
            processor: 0,
            level: levels[index],
            after: None,
            delay_ns: 0,
            transaction: index,
            begins: holistic::Begins::AtEnd,
            thread_until: None,
            may_be_overtaken: false,
        };
        let steps: Vec<Step> = tasks.iter().enumerate().map(step).collect();
        let found = holistic(
            &steps,
            &[holistic::SchedulingPolicy::FixedPriority],
            SearchLimits::default(),
        );
        let tasks = response_times(&tasks, &levels, SearchLimits::default());
        for (found, task) in found.iter().zip(tasks) {
            // Each of the two searches ends at its own limit.
            let undecided = |response| matches!(response, Response::Undecided { .. });
            if !undecided(found.response) && !undecided(task) {
                prop_assert_eq!(found.response, task);
            }
        }
        Ok(())
    });
}

/// A task without execution needs the processor for a moment: it waits for what is there, and for what arrives until it is free.
#[test]
fn a_task_without_execution_waits_like_others() {
    let burst = Burst { jobs: 2, gap_ns: 2 };
    for (above, blocking_ns, bound_ns) in [
        (Task::periodic(10, 0), 0, 0),
        (Task::periodic(10, 0), 1, 1),
        (Task::periodic(10, 1), 0, 1),
        (Task::periodic(10, 1), 9, 11),
        (Task::periodic(10, 1).with_burst(burst), 1, 3),
    ] {
        let tasks = [above, Task::periodic(100, 0).with_blocking(blocking_ns)];
        let bounds = response_times(&tasks, &[0, 1], SearchLimits::default());
        assert_eq!(bounds[1], Response::Bounded { ns: bound_ns }, "{above:?}");
    }
}

#[test]
fn audsley_finds_an_order_whenever_there_is_one() {
    check(&task_sets(1..6), |tasks| {
        let meets = |levels: &[u32]| {
            let responses = response_times(&tasks, levels, SearchLimits::default());
            responses
                .iter()
                .zip(&tasks)
                .all(|(response, task)| response.meets(task.deadline_ns) == Some(true))
        };
        let found = audsley(&tasks, SearchLimits::default());
        let any = orders(tasks.len()).iter().any(|levels| meets(levels));
        prop_assert_eq!(found.is_some(), any);
        if let Some(levels) = found {
            prop_assert!(meets(&levels), "{:?}", levels);
        }
        Ok(())
    });
}

/// Returns all assignments of distinct levels to this number of tasks.
fn orders(count: usize) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for level in (0..).take(count) {
        let with = |order: &Vec<u32>| -> Vec<Vec<u32>> {
            let insert = |place| {
                let mut longer = order.clone();
                longer.insert(place, level);
                longer
            };
            (0..=order.len()).map(insert).collect()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

/// Returns the demand of a task for the other implementation.
fn demand(task: &Task) -> RBF<Sporadic, wcet::Scalar> {
    let arrivals = Sporadic::new(
        Duration::from(task.period_ns),
        Duration::from(task.jitter_ns),
    );
    RBF::new(arrivals, wcet::Scalar::new(Service::from(task.worst_ns)))
}

#[test]
fn another_implementation_has_the_same_bounds_for_fixed_priorities() {
    check(&task_sets(1..7), |tasks| {
        let levels: Vec<u32> = (0..).take(tasks.len()).collect();
        let ours = response_times(&tasks, &levels, SearchLimits::default());
        for (index, ours) in ours.iter().enumerate() {
            let above: Vec<_> = tasks[..index].iter().map(demand).collect();
            let bound = |limit_ns| {
                let found = fixed_priority::fully_preemptive::dedicated_uniproc_rta(
                    &demand(&tasks[index]),
                    &above,
                    Duration::from(limit_ns),
                );
                found.ok().map(u64::from)
            };
            // For a busy period beyond their limit, a second search goes further if ours has a bound.
            let longer = || ours.bound_ns().and_then(|_| bound(50 * THEIR_LIMIT_NS));
            let theirs = bound(THEIR_LIMIT_NS).or_else(longer);
            let jitter = tasks[index].jitter_ns;
            if jitter == 0 {
                prop_assert_eq!(ours.bound_ns(), theirs, "task {} of {:?}", index, tasks);
            } else {
                // The other implementation counts from the release, and does not use that late jobs arrived at different times.
                let from_arrival = theirs.map(|bound| bound + jitter);
                prop_assert_eq!(ours.bound_ns().is_some(), theirs.is_some());
                prop_assert!(ours.bound_ns() <= from_arrival, "task {index} of {tasks:?}");
            }
        }
        Ok(())
    });
}

/// The other implementation has no jitter and no deadlines or windows beyond its range; where it has a result, the results are
/// equal.
#[test]
fn another_implementation_has_the_same_responses_for_earliest_deadline_first() {
    check(&task_sets(1..6), |mut tasks| {
        tasks.iter_mut().for_each(|task| task.jitter_ns = 0);
        if Utilisation::of(&tasks).exceeds_one() {
            return Ok(());
        }
        let ours = edf::response_times(&tasks, SearchLimits::default());
        let demands: Vec<_> = tasks.iter().map(demand).collect();
        for (index, ours) in ours.iter().enumerate() {
            let theirs = their_response_by_deadline(&tasks, &demands, index);
            if let (Response::Bounded { ns }, Some(theirs)) = (*ours, theirs) {
                prop_assert_eq!(ns, theirs, "task {} of {:?}", index, tasks);
            }
        }
        Ok(())
    });
}

/// Returns the other implementation's result for a task among others; `None` if its search ended.
fn their_response_by_deadline(
    tasks: &[Task],
    demands: &[RBF<Sporadic, wcet::Scalar>],
    index: usize,
) -> Option<u64> {
    let task = |index: usize| their_edf::fully_preemptive::Task {
        rbf: &demands[index],
        deadline: Duration::from(tasks[index].deadline_ns),
    };
    let others: Vec<_> = (0..tasks.len())
        .filter(|other| *other != index)
        .map(task)
        .collect();
    let bound = their_edf::fully_preemptive::dedicated_uniproc_rta(
        &task(index),
        &others,
        Duration::from(THEIR_LIMIT_NS),
    );
    bound.ok().map(u64::from)
}

#[test]
fn another_implementation_has_the_same_verdict_for_earliest_deadline_first() {
    check(&task_sets(1..6), |tasks| {
        let ours = edf::demand(&tasks, SearchLimits::default());
        if ours == edf::DemandResult::Overload || tasks.iter().any(|task| task.jitter_ns > 0) {
            return Ok(());
        }
        let demands: Vec<_> = tasks.iter().map(demand).collect();
        let theirs = (0..tasks.len()).all(|index| {
            let theirs = their_response_by_deadline(&tasks, &demands, index);
            theirs.is_some_and(|bound| bound <= tasks[index].deadline_ns)
        });
        prop_assert_eq!(ours == edf::DemandResult::Meets, theirs);
        Ok(())
    });
}
