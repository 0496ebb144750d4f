//! Random transactions over several processors.

use proptest::prelude::*;
use rtorb_sched::holistic::{Begins, SchedulingPolicy, Step};
use rtorb_sched::{Burst, Phase, SearchLimits, Task};

/// A transaction before its steps have indices: period, the root's jitter in percent, and for each step the distance to its
/// predecessor, processor, level, share of the processor in thousandths, delay, deadline in percent, whether it may begin early.
type Sketch = (u64, u64, Vec<(usize, usize, u32, u64, u64, u64, u8)>);

#[derive(Clone, Debug)]
pub(crate) struct Transactions {
    pub(crate) steps: Vec<Step>,
    pub(crate) processors: Vec<SchedulingPolicy>,
    /// The numbers that decide a run.
    pub(crate) seed: u64,
}

pub(crate) fn transactions(
    policies: &'static [SchedulingPolicy],
    share: u64,
) -> impl proptest::strategy::Strategy<Value = Transactions> {
    let step = (
        0_usize..4,
        0_usize..3,
        0_u32..5,
        1..share,
        0_u64..8,
        20_u64..250,
        0_u8..3,
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
    for &(back, processor, level, share, delay, deadline, early) in sketched {
        let here = steps.len();
        // Mostly the previous step, so that chains are long.
        let after = (here > root).then(|| here - 1 - back.saturating_sub(1).min(here - 1 - root));
        // What only sends or waits takes no time.
        let mut task = Task::periodic(*period, period * share / 1000);
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
            begins: if early == 0 {
                Begins::Meanwhile
            } else {
                Begins::AtEnd
            },
            thread_until: None,
            may_be_overtaken: false,
        });
    }
    // Some roots have a thread that also waits for what follows.
    let last = steps.len() - 1;
    if period % 3 == 0 && last > root {
        steps[root].thread_until = Some(last);
    }
}

pub(crate) const FIXED: &[SchedulingPolicy] = &[SchedulingPolicy::FixedPriority];
pub(crate) const EARLIEST: &[SchedulingPolicy] = &[SchedulingPolicy::EarliestDeadline];
pub(crate) const BOTH: &[SchedulingPolicy] = &[
    SchedulingPolicy::FixedPriority,
    SchedulingPolicy::EarliestDeadline,
];

/// Gives some transactions bursts and others static offsets, which are drawn from the seed. Periods become harmonic, so that offsets
/// say something.
pub(crate) fn with_bursts_and_offsets(mut set: Transactions) -> Transactions {
    let transactions = set.steps.iter().map(|step| step.transaction).max();
    for transaction in 0..=transactions.unwrap_or(0) {
        let seed = set
            .seed
            .rotate_left(7 * u32::try_from(transaction).expect("few"));
        let (kind, drawn) = (seed % 4, seed / 4);
        for step in set
            .steps
            .iter_mut()
            .filter(|step| step.transaction == transaction)
        {
            let task = &mut step.task;
            if kind < 2 {
                let harmonic = [10, 20, 40, 80];
                task.period_ns = *harmonic
                    .iter()
                    .find(|period| task.period_ns <= **period)
                    .expect("80 at most");
                task.phase = Some(Phase {
                    offset_ns: drawn % task.period_ns,
                    clock: usize::from(kind == 0 && drawn % 5 == 0),
                });
            } else if kind == 2 {
                let jobs = u32::try_from(drawn % 3).expect("small") + 1;
                let most_ns = task.period_ns / u64::from(jobs);
                let gap_ns = drawn / 3 % (most_ns + 1);
                task.worst_ns = (task.worst_ns / u64::from(jobs)).max(1);
                task.burst = Burst { jobs, gap_ns };
            }
        }
    }
    set
}

/// Small sets are decided within these limits or not at all.
pub(crate) const LIMITS: SearchLimits = SearchLimits {
    steps_max: 2_000,
    rounds_max: 60,
};
