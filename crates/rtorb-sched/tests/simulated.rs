//! What is proven of random task sets, against what a simulation of them reaches, against brute force, and against another
//! implementation.
//!
//! A short run by default; `RTORB_SCHED_SETS=10000 cargo test -p rtorb-sched --release --test simulated` for a long one.

mod simulator;
#[path = "simulator/tried.rs"]
mod tried;

use proptest::prelude::*;
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::{edf as their_edf, fixed_priority, wcet};
use rtorb_sched::holistic::{self, Step, holistic};
use rtorb_sched::{Limits, Response, Task, Utilisation, audsley, edf, levels, response_times};
use simulator::{Arrivals, Policy, longest_responses};
use tried::check;

/// Task sets that use little to too much of the processor, with deadlines before and after the periods, and jitter.
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

/// Arrivals: the first jobs together and as late as can be, as bounds assume, or anyhow.
fn arrivals(tasks: &[Task], seeds: &[u64], blocked_ns: u64) -> [Arrivals; 2] {
    let worst = |task: &Task| {
        let on_time = usize::try_from(task.jitter_ns / task.period_ns + 8).expect("few");
        let mut delays = vec![task.jitter_ns];
        // Jobs after the first are released with it as long as they arrive before it is.
        delays.extend(
            (1..on_time as u64).map(|job| task.jitter_ns.saturating_sub(job * task.period_ns)),
        );
        delays
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
/// Beyond this, the other implementation ends its search.
const THEIR_LIMIT_NS: u64 = 20_000;

#[test]
fn no_job_is_later_than_its_bound_under_fixed_priorities() {
    check(&with_seeds(1..7), |(mut tasks, seeds, blocked)| {
        tasks.iter_mut().for_each(|task| task.blocking_ns = blocked);
        for levels in [
            levels::rate_monotonic(&tasks),
            levels::deadline_monotonic(&tasks),
            vec![0; tasks.len()],
        ] {
            let bounds = response_times(&tasks, &levels, Limits::default());
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
fn the_bound_is_reached_where_levels_differ_and_releases_are_on_time() {
    check(&with_seeds(1..6), |(mut tasks, seeds, _)| {
        tasks.iter_mut().for_each(|task| task.jitter_ns = 0);
        if Utilisation::of(&tasks).millionths() > 950_000 {
            return Ok(());
        }
        let levels: Vec<u32> = (0..).take(tasks.len()).collect();
        let bounds = response_times(&tasks, &levels, Limits::default());
        let [together, _] = arrivals(&tasks, &seeds, 0);
        let reached = longest_responses(&tasks, Policy::Fixed(&levels), &together, 10_000);
        for (index, bound) in bounds.iter().enumerate() {
            if let Response::Bounded { ns } = *bound {
                prop_assert_eq!(reached[index], ns, "task {}: a tight bound", index);
            }
        }
        Ok(())
    });
}

#[test]
fn a_demand_test_that_holds_is_never_refuted_by_a_simulation() {
    check(&with_seeds(1..6), |(mut tasks, seeds, blocked)| {
        tasks.iter_mut().for_each(|task| task.blocking_ns = blocked);
        if edf::demand(&tasks, Limits::default()) != edf::Demand::Meets {
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
fn a_demand_test_that_fails_is_a_deadline_that_is_missed() {
    check(&task_sets(1..6), |tasks| {
        let edf::Demand::Misses { task, interval_ns } = edf::demand(&tasks, Limits::default())
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
fn no_job_is_later_than_its_bound_by_deadlines() {
    check(&with_seeds(1..6), |(mut tasks, seeds, blocked)| {
        tasks.iter_mut().for_each(|task| task.blocking_ns = blocked);
        let bounds = edf::response_times(&tasks, Limits::default());
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
fn responses_by_deadlines_and_the_demand_test_agree() {
    check(&with_seeds(1..6), |(mut tasks, seeds, _)| {
        for (task, seed) in tasks.iter_mut().zip(&seeds) {
            task.blocking_ns = seed % 5;
        }
        let responses = edf::response_times(&tasks, Limits::default());
        let mut each = responses.iter().zip(&tasks);
        let holds = each.all(|(response, task)| response.meets(task.deadline_ns) == Some(true));
        let demand = edf::demand(&tasks, Limits::default());
        prop_assert_eq!(
            holds,
            demand == edf::Demand::Meets,
            "{:?} {:?}",
            responses,
            demand
        );
        Ok(())
    });
}

#[test]
fn steps_that_stand_alone_have_the_responses_of_tasks() {
    check(&task_sets(1..7), |tasks| {
        let levels = levels::rate_monotonic(&tasks);
        let step = |(index, task): (usize, &Task)| Step {
            task: *task,
            processor: 0,
            level: levels[index],
            after: None,
            delay_ns: 0,
            transaction: index,
        };
        let steps: Vec<Step> = tasks.iter().enumerate().map(step).collect();
        let found = holistic(
            &steps,
            &[holistic::Policy::FixedPriority],
            Limits::default(),
        );
        let tasks = response_times(&tasks, &levels, Limits::default());
        for (found, task) in found.iter().zip(tasks) {
            // Each of the two searches ends where its own limit is.
            let undecided = |response| matches!(response, Response::Undecided { .. });
            if !undecided(found.response) && !undecided(task) {
                prop_assert_eq!(found.response, task);
            }
        }
        Ok(())
    });
}

#[test]
fn an_order_is_found_whenever_there_is_one() {
    check(&task_sets(1..6), |tasks| {
        let meets = |levels: &[u32]| {
            let responses = response_times(&tasks, levels, Limits::default());
            responses
                .iter()
                .zip(&tasks)
                .all(|(response, task)| response.meets(task.deadline_ns) == Some(true))
        };
        let found = audsley(&tasks, Limits::default());
        let any = orders(tasks.len()).iter().any(|levels| meets(levels));
        prop_assert_eq!(found.is_some(), any);
        if let Some(levels) = found {
            prop_assert!(meets(&levels), "{:?}", levels);
        }
        Ok(())
    });
}

/// All ways to give different levels to so many tasks.
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

/// The demand of a task for the other implementation.
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
        let ours = response_times(&tasks, &levels, Limits::default());
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
            // A busy period that is longer than the limit is looked at again, where ours ends.
            let longer = || ours.bound_ns().and_then(|_| bound(50 * THEIR_LIMIT_NS));
            let theirs = bound(THEIR_LIMIT_NS).or_else(longer);
            let jitter = tasks[index].jitter_ns;
            if jitter == 0 {
                prop_assert_eq!(ours.bound_ns(), theirs, "task {} of {:?}", index, tasks);
            } else {
                // Theirs counts from the release, and does not say that jobs that came late together arrived apart.
                let from_arrival = theirs.map(|bound| bound + jitter);
                prop_assert_eq!(ours.bound_ns().is_some(), theirs.is_some());
                prop_assert!(ours.bound_ns() <= from_arrival, "task {index} of {tasks:?}");
            }
        }
        Ok(())
    });
}

/// Theirs has no jitter, deadlines or windows beyond what fits; where it answers, the answers are the same.
#[test]
fn another_implementation_has_the_same_responses_for_earliest_deadline_first() {
    check(&task_sets(1..6), |mut tasks| {
        tasks.iter_mut().for_each(|task| task.jitter_ns = 0);
        if Utilisation::of(&tasks).exceeds_one() {
            return Ok(());
        }
        let ours = edf::response_times(&tasks, Limits::default());
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

/// What the other implementation says of a task among others, `None` if the search ended.
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
        let ours = edf::demand(&tasks, Limits::default());
        if ours == edf::Demand::Overload || tasks.iter().any(|task| task.jitter_ns > 0) {
            return Ok(());
        }
        let demands: Vec<_> = tasks.iter().map(demand).collect();
        let theirs = (0..tasks.len()).all(|index| {
            let theirs = their_response_by_deadline(&tasks, &demands, index);
            theirs.is_some_and(|bound| bound <= tasks[index].deadline_ns)
        });
        prop_assert_eq!(ours == edf::Demand::Meets, theirs);
        Ok(())
    });
}
