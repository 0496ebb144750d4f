//! What is proven of random transactions over several processors, against what a simulation of them reaches.
//!
//! A short run by default; `RTORB_SCHED_SETS=10000 cargo test -p rtorb-sched --release --test distributed` for a long one.

#[path = "simulator/distributed.rs"]
mod simulator;
#[path = "simulator/tried.rs"]
mod tried;

use proptest::prelude::*;
use rtorb_sched::holistic::{Found, Policy, Step, holistic, interference};
use rtorb_sched::{Limits, Task};
use simulator::{Chances, Course, longest_responses};
use tried::check;

/// A transaction before its steps have places: period, root's jitter in percent, and of each step how far back the one before it
/// is, processor, level, share of the processor in thousandths, delay, deadline in percent.
type Sketch = (u64, u64, Vec<(usize, usize, u32, u64, u64, u64)>);

#[derive(Clone, Debug)]
struct Transactions {
    steps: Vec<Step>,
    processors: Vec<Policy>,
    seed: u64,
}

fn transactions(
    policies: &'static [Policy],
    share: u64,
) -> impl proptest::strategy::Strategy<Value = Transactions> {
    let step = (
        0_usize..4,
        0_usize..3,
        0_u32..5,
        1..share,
        0_u64..8,
        20_u64..250,
    );
    let transaction = (8_u64..80, 0_u64..80, prop::collection::vec(step, 1..6));
    let processors = prop::collection::vec(prop::sample::select(policies), 1..4);
    let all = (
        prop::collection::vec(transaction, 1..5),
        processors,
        0_u64..6,
        any::<u64>(),
    );
    all.prop_map(|(sketches, processors, blocking, seed)| {
        let mut steps = Vec::new();
        for (transaction, sketch) in sketches.iter().enumerate() {
            place(transaction, sketch, processors.len(), blocking, &mut steps);
        }
        Transactions {
            steps,
            processors,
            seed,
        }
    })
}

fn place(
    transaction: usize,
    sketch: &Sketch,
    processors: usize,
    blocking: u64,
    steps: &mut Vec<Step>,
) {
    let (period, jitter, sketched) = sketch;
    let root = steps.len();
    for &(back, processor, level, share, delay, deadline) in sketched {
        let here = steps.len();
        // Mostly the step right before, so that chains are long.
        let after = (here > root).then(|| here - 1 - back.saturating_sub(1).min(here - 1 - root));
        let mut task = Task::periodic(*period, (period * share / 1000).max(1));
        task = task
            .with_deadline((period * deadline / 100).max(1))
            .with_blocking(blocking);
        if after.is_none() && *jitter > 40 {
            task.jitter_ns = period * jitter / 100;
        }
        let delay_ns = if after.is_some() && delay > 3 {
            delay
        } else {
            0
        };
        steps.push(Step {
            task,
            processor: processor % processors,
            level,
            after,
            delay_ns,
            transaction,
        });
    }
}

const FIXED: &[Policy] = &[Policy::FixedPriority];
const EARLIEST: &[Policy] = &[Policy::EarliestDeadline];
const BOTH: &[Policy] = &[Policy::FixedPriority, Policy::EarliestDeadline];

/// Runs that may happen: all at worst from various beginnings, and anyhow.
fn courses(set: &Transactions, found: &[Found]) -> Vec<Course> {
    let mut chances = Chances(set.seed);
    // What is released at last in some step is released there together with others.
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
        let offsets = set.steps.iter().map(|step| offset(step, &mut chances));
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

const LIMITS: Limits = Limits {
    steps_max: 2_000,
    rounds_max: 60,
};

#[test]
fn no_step_is_later_than_its_bound_under_fixed_priorities() {
    check(&transactions(FIXED, 250), |set| {
        never_below_simulation(&set)
    });
}

#[test]
fn no_step_is_later_than_its_bound_by_deadlines() {
    check(&transactions(EARLIEST, 250), |set| {
        never_below_simulation(&set)
    });
}

#[test]
fn no_step_is_later_than_its_bound_where_processors_differ() {
    check(&transactions(BOTH, 250), |set| never_below_simulation(&set));
}

#[test]
fn a_bound_is_exactly_what_it_is_made_of() {
    check(&transactions(BOTH, 200), |set| {
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
    });
}
