//! End-to-end response times of transactions over several processors ("holistic" analysis).
//!
//! A transaction is a tree of steps: the root arrives by itself, every other step is released when the one before it has
//! ended and a delay has passed. So a step's release varies by its *jitter*: its own, and of every step but a root the worst
//! response of the one before with the delay. Jitter makes responses longer, and longer responses make more jitter: both grow
//! from the least there can be until neither changes (Tindell and Clark 1994, for fixed priorities; Spuri 1996, for
//! processors where the earliest deadline goes first).
//!
//! Both papers let the steps of one transaction interfere with each other as if they were strangers. Here they do not, as
//! far as their order forbids it; Palencia and Gonzalez Harbour (1998, 1999) do so too, with the times between the steps'
//! releases. The argument, for a step `i` that arrives (with its root) at `a` and ends at `f`:
//!
//! 1. Let 0 be the last moment before its release when nothing that goes before `i` was waiting on its processor, neither of
//!    strangers nor of its own transaction. From 0 to `f` the processor executes only what was released from 0 on (and at most
//!    one blocking), so `f` is at most the least `w` that holds all of it. A job that arrived at `x` was released from 0 on only
//!    if `x + J >= 0`.
//! 2. Strangers: at most `ceil((w + J) / T)` jobs each. Steps on parallel branches of the same transaction count as strangers.
//! 3. Earlier jobs of the transaction arrived at `a - T`, `a - 2 T` or before. So of `i` itself run `floor((a + J) / T) + 1`
//!    jobs; of a step before it in its chain as many with that step's own jitter; of a step after it one less, for what comes
//!    after `i` in the same job waits for the end of `i`.
//! 4. Later jobs arrive at `a + T`, `a + 2 T` or after. What comes after `i` in them waits for `i`; of a step before it at most
//!    `ceil((w - a) / T) - 1` jobs begin before `w`: none, where `i` ends within the period.
//!
//! The bound is the largest `w - a`. Between two values of `a` at which a count of 3 grows, `w` does not grow: only those
//! values are looked at, from `-J` of `i` (its release at 0, as late as can be) to the end of the longest busy period. Nothing is
//! assumed that must be verified afterwards, and no count is above the strangers' `ceil((w + J) / T)`. It would be wrong to leave
//! the earlier steps of the chain out altogether: while one of them runs, strangers between its priority and that of `i` pile
//! up, and `i` meets them all. That the jitters at hand hold for all of this follows by induction over time: the first
//! job to break a bound would have been analysed with bounds that held until then.
//!
//! Under earliest deadline first the same holds with "goes before" for "has a deadline not after `a + D`", where
//! deadlines count from the arrival of the root: of every step only the jobs with `x + D_j <= a + D` count.

mod counts;
mod earliest;
mod fixed;
pub(crate) mod relatives;
pub(crate) mod rounds;

use std::sync::Arc;

use crate::limits::Limits;
use crate::response::Response;
use crate::task::Task;

pub use counts::interference;

/// Something that one processor executes without suspending itself, as a part of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Period of the transaction, worst execution, own release jitter, blocking; the deadline counts from the arrival of the
    /// root, and where the earliest deadline goes first it is what the processor goes by.
    pub task: Task,
    /// Where it runs: a place in the list of processors.
    pub processor: usize,
    /// 0 is the most urgent on its processor; steps of one level count against each other in whole. Of no meaning where the
    /// earliest deadline goes first.
    pub level: u32,
    /// The step whose end releases it; `None` of a root.
    pub after: Option<usize>,
    /// From that end to its release at most, in ns.
    pub delay_ns: u64,
    /// Which transaction it belongs to: any number that its steps share.
    pub transaction: usize,
}

/// Who runs first on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The most urgent level; preemptive.
    FixedPriority,
    /// The earliest deadline; preemptive.
    EarliestDeadline,
}

/// The worst response of a step, and what it is made of.
///
/// Where there is a bound, it is exactly `jitter_ns + window_ns - job * period - later_ns`, and `window_ns` is exactly
/// `blocking_ns`, `own_jobs` executions of the step, and the executions that [`interference`] lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// From the arrival of the root.
    pub response: Response,
    /// How long the processor is busy before the step ends, with the jobs that go before it; in ns.
    pub window_ns: u64,
    /// The step at whose latest release the window begins: this one, or one before it in its chain on the same processor, whose
    /// execution is then part of the window.
    pub begins_with: usize,
    /// The jitter of that step: its own, and the response of the one before it with the delay; in ns from the arrival.
    pub jitter_ns: u64,
    /// How many periods before the job that is latest that release's job arrived.
    pub job: u64,
    /// How much more than those periods, in ns. More than 0 only where the worst case is some other step's deadline (earliest
    /// deadline first), or an earlier job of a later step.
    pub later_ns: u64,
    /// How many jobs of the step itself run in the window, with the one that is latest.
    pub own_jobs: u64,
    /// The blocking in the window, in ns: under fixed priorities the step's own; under earliest deadline first the longest of
    /// those whose first deadlines can be at or before its own, as in the demand test.
    pub blocking_ns: u64,
}

/// The worst response of each step, from the arrival of its root.
///
/// A step follows at most one other, in no circle. A step that goes after one without a bound, or shares its processor with a
/// more urgent one whose release has no bound, has none either.
///
/// # Panics
/// If a step names a processor or step that is not there, has no period, or follows itself in a circle.
#[must_use]
pub fn holistic(steps: &[Step], processors: &[Policy], limits: Limits) -> Vec<Found> {
    let layout = Arc::new(rounds::Layout::new(steps, processors));
    let mut rounds = rounds::Rounds::new(steps, &layout, limits);
    rounds.run();
    rounds.found()
}
