//! Data age and reaction time of cause-effect chains: how long data takes through tasks that read each other's registers.
//!
//! A stage of a chain is a task, or tasks that release each other. A job of a stage reads the register of the stage before, and writes
//! its own; a register holds the last value. Nothing releases a stage when its input is written, so a value waits until it is read.
//!
//! * The **data age** is the time from the moment at which a job of the first stage reads its input to the moment at which a job of the
//!   last stage writes an output that follows from it. [`data_age`] bounds the longest.
//! * The **reaction time** is the time from a change of the input to the first output that follows from it or from a later one.
//!   [`reaction_time`] bounds the longest, "button to action".
//!
//! (Feiertag, Richter, Nordlander and Jonsson 2008 name them "last to last" and "first to first"; the definitions are those of Dürr, von
//! der Brüggen, Chen and Chen 2019.) With `T` for the longest time between two arrivals, `R` for the longest time from an arrival
//! to the write, and `V` for the longest time from an arrival until every job of the next stage that arrives then reads what this job
//! wrote or later data:
//!
//! ```text
//! (10)  data age       <=         V_1 + T_1 + V_2 + T_2 + ... + V_(n-1) + T_(n-1) + R_n
//! (11)  reaction time  <=  T_1 + V_1 + T_2 + V_2 + T_3 + ... + V_(n-1) + T_n      + R_n
//! ```
//!
//! With `V = R`, (11) is the bound of Davare, Zhu, Di Natale, Pinello, Kanajan and Sangiovanni-Vincentelli 2007. It holds for jobs that
//! read when they start and write when they end (implicit communication), because a job that starts before a write arrives before it, and
//! the next job arrives at most `T` later. If jobs of stage `i` precede those of stage `i + 1` on one processor, none of these
//! starts between the release of a job of `i` and its end. So a job of `i + 1` that arrives after that release reads its value, and `V` is
//! the release jitter alone (Dürr and others 2019, Theorems 5.4 and 5.10). With logical execution time, a job reads when it arrives and
//! writes at the end of its period: `V = R = T`.
//!
//! If the phases of two stages are known, a value does not wait for up to `T` but for the time between a known write and
//! a known read. All jobs of a hyperperiod are followed (near Kloda, Bertout and Sorel 2018). With logical execution time the
//! result is then exact, because reads and writes happen at known times (Martinez, Sañudo and Bertogna 2018).
//!
//! (11) exceeds (10) by `T_n`, and with known phases too. For an output stays until the next one is written, and its age then is the
//! longest reaction time (Günzel, Teper, Chen, von der Brüggen and Chen 2023, "On the Equivalence of Maximum Reaction Time and
//! Maximum Data Age for Cause-Effect Chains").

use crate::utilisation::greatest_common_divisor;
use core::ops::Range;

use crate::arrivals::Phase;

/// A stage of a cause-effect chain: what its jobs may take. Its jobs write in the order in which they arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The longest time between two arrivals, `T`, in ns, at least 1: the period of a periodic task. `None` if there is none.
    pub gap_max_ns: Option<u64>,
    /// The phase, if jobs arrive exactly every `gap_max_ns` from a known moment on.
    pub phase: Option<Phase>,
    /// The longest time from an arrival until each job of the next stage that arrives then reads the value, `V`, in ns. Unused in the
    /// last stage.
    pub visible_ns: u64,
    /// The longest time from an arrival to the write, `R`, in ns.
    pub response_ns: u64,
}

/// A part of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyPart {
    /// The place of the stage.
    pub stage: usize,
    /// Where the time passes.
    pub passes: Passes,
    /// The time, in ns.
    pub ns: u64,
}

/// Where a part of a latency passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// A change of the input waits until a job of the stage reads it.
    InInput,
    /// A job of the stage has arrived, and has not written; or its value cannot be read yet.
    InJob,
    /// The value is in the register of the stage.
    InRegister,
}

/// Returns the parts of the longest data age, from the input to the output; their sum is the bound (10). `None` if a stage before the
/// last may pause for any time: its register keeps the old value for as long.
#[must_use]
pub fn data_age(stages: &[Stage]) -> Option<Vec<LatencyPart>> {
    let waits = waits(stages, Direction::Backward)?;
    Some(parts(stages, None, &waits))
}

/// Returns the parts of the longest reaction time, from the input to the output; their sum is the bound (11). `None` if a stage may
/// pause for any time, in which it reads nothing. If the cause itself releases the first stage, it waits for no read.
#[must_use]
pub fn reaction_time(stages: &[Stage], cause_releases_first: bool) -> Option<Vec<LatencyPart>> {
    let waits = waits(stages, Direction::Forward)?;
    let input = match stages.first()? {
        _ if cause_releases_first => None,
        first => Some(first.gap_max_ns?),
    };
    Some(parts(stages, input, &waits))
}

/// Returns true if the phases of all stages are known, and their hyperperiod is short enough to follow each job: then the bounds are
/// exact if reads and writes happen at known times.
#[must_use]
pub fn has_known_phases(stages: &[Stage]) -> bool {
    runs(stages).len() == 1
}

fn parts(stages: &[Stage], input: Option<u64>, waits: &[u64]) -> Vec<LatencyPart> {
    let part = |stage, passes, ns| LatencyPart { stage, passes, ns };
    let mut parts: Vec<LatencyPart> = Vec::new();
    parts.extend(input.map(|ns| part(0, Passes::InInput, ns)));
    for (stage, (each, &wait)) in stages.iter().zip(waits).enumerate() {
        parts.push(part(stage, Passes::InJob, each.visible_ns));
        parts.push(part(stage, Passes::InRegister, wait));
    }
    let last = stages.iter().enumerate().next_back();
    parts.extend(last.map(|(stage, last)| part(stage, Passes::InJob, last.response_ns)));
    parts.retain(|part| part.ns > 0);
    parts
}

/// In which direction data is followed.
#[derive(Clone, Copy)]
enum Direction {
    /// From each job of the first stage to the earliest job of each next one that surely reads its value.
    Forward,
    /// From each job of the last stage to the latest job of each previous one whose value it surely reads.
    Backward,
}

/// Returns how long the register of each stage but the last keeps a value until it is read, in the worst case.
fn waits(stages: &[Stage], direction: Direction) -> Option<Vec<u64>> {
    let mut waits = Vec::new();
    for run in runs(stages) {
        if let Some(before) = run.start.checked_sub(1) {
            // Without known phases: until the next stage reads again, or until a newer value is there.
            let reader_or_writer = match direction {
                Direction::Forward => run.start,
                Direction::Backward => before,
            };
            waits.push(stages[reader_or_writer].gap_max_ns?);
        }
        waits.extend(longest_waits(&stages[run], direction));
    }
    Some(waits)
}

/// Returns the waits of the job whose data takes longest through stages with known phases.
fn longest_waits(run: &[Stage], direction: Direction) -> Vec<u64> {
    let known: Vec<KnownStage> = run.iter().filter_map(KnownStage::of).collect();
    let (Some(hyperperiod_ns), [first, .., last]) = (hyperperiod_ns(&known), &known[..]) else {
        return Vec::new();
    };
    let anchor = match direction {
        Direction::Forward => first,
        Direction::Backward => last,
    };
    let jobs = 0..hyperperiod_ns / anchor.period_ns;
    let followed = jobs.map(|job| follow(&known, anchor.arrival_ns(job), direction));
    let longest = followed.max_by_key(|waits| waits.iter().sum::<u64>());
    longest.unwrap_or_default()
}

/// Follows the data of a job that arrives then; returns how long each register but the last keeps a value until it is read.
fn follow(known: &[KnownStage], arrival_ns: i128, direction: Direction) -> Vec<u64> {
    let mut at = arrival_ns;
    let pairs = known.windows(2);
    let wait_ns = |pair: &[KnownStage]| {
        let (before, after) = (&pair[0], &pair[1]);
        let wait_ns = match direction {
            Direction::Forward => {
                let visible = at + i128::from(before.visible_ns);
                let wait =
                    (i128::from(after.offset_ns) - visible).rem_euclid(after.period_ns.into());
                at = visible + wait;
                wait
            }
            Direction::Backward => {
                let visible = at - i128::from(before.visible_ns);
                let wait =
                    (visible - i128::from(before.offset_ns)).rem_euclid(before.period_ns.into());
                at = visible - wait;
                wait
            }
        };
        u64::try_from(wait_ns).unwrap_or(u64::MAX)
    };
    match direction {
        Direction::Forward => pairs.map(wait_ns).collect(),
        Direction::Backward => {
            let mut waits: Vec<u64> = pairs.rev().map(wait_ns).collect();
            waits.reverse();
            waits
        }
    }
}

/// A stage whose phase is known.
#[derive(Clone, Copy)]
struct KnownStage {
    period_ns: u64,
    offset_ns: u64,
    visible_ns: u64,
}

impl KnownStage {
    fn of(stage: &Stage) -> Option<Self> {
        Some(Self {
            period_ns: stage.gap_max_ns?,
            offset_ns: stage.phase?.offset_ns,
            visible_ns: stage.visible_ns,
        })
    }

    fn arrival_ns(&self, job: u64) -> i128 {
        i128::from(self.offset_ns) + i128::from(job) * i128::from(self.period_ns)
    }
}

/// Returns the hyperperiod of stages; `None` if a stage has too many jobs in it.
fn hyperperiod_ns(known: &[KnownStage]) -> Option<u64> {
    let all = known.iter().try_fold(1_u64, |all, stage| {
        all.checked_mul(stage.period_ns / greatest_common_divisor(all, stage.period_ns))
    })?;
    let shortest = known.iter().map(|stage| stage.period_ns).min()?;
    (all / shortest <= JOBS_MAX).then_some(all)
}

/// Returns the stages in runs, within which phases are known.
fn runs(stages: &[Stage]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut known: Vec<KnownStage> = Vec::new();
    for (place, stage) in stages.iter().enumerate() {
        known.extend(KnownStage::of(stage));
        let clock = |stage: &Stage| stage.phase.map(|phase| phase.clock);
        match runs.last_mut() {
            Some(run)
                if clock(stage).is_some()
                    && clock(stage) == clock(&stages[run.start])
                    && hyperperiod_ns(&known).is_some() =>
            {
                run.end = place + 1;
            }
            _ => {
                known = KnownStage::of(stage).into_iter().collect();
                runs.push(place..place + 1);
            }
        }
    }
    runs
}

/// The maximum number of jobs of a stage that are followed through a chain.
const JOBS_MAX: u64 = 10_000;
