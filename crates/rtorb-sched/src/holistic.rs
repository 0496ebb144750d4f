//! End-to-end response times of transactions over several processors ("holistic" analysis).
//!
//! A transaction is a tree of steps. The root arrives by itself; every other step is released when its predecessor has ended and
//! a delay has passed, at the latest. So the release of a step varies by its *jitter*: its own, plus the worst response of its
//! predecessor and the delay. Jitter makes responses longer, and longer responses make more jitter. The analysis starts with the least values and
//! repeats until neither changes (Tindell and Clark 1994, for fixed priorities; Spuri 1996, for earliest deadline first).
//!
//! The equations, with `A_j` the arrival curve of a step (equation 1, in `arrivals.rs`), `J_j` its jitter, `C_j` its execution
//! and `B` the blocking:
//!
//! ```text
//! (4)  J_i    = J_i(own) + R_before + delay                                    Tindell & Clark 1994
//!               less C_j of those that follow, from i on, and may run before the end of the predecessor
//! (5)  w_i(a) = B_i + sum over j: n_j(a, w_i(a)) C_j                           Joseph & Pandya 1986; Tindell & Clark 1994
//! (6)  n_j    = A_j(w + J_j)                     for a stranger                Tindell, Burns & Wellings 1994
//!             = A_j+(a + J_j)                    for the step itself, and a predecessor as far as it arrived until a
//!             = A_j+(a - g_j + J_j)              for a successor               point 3 below; g_j the least gap
//!             = A_j+(a + J_j), at least 1        for one that may run meanwhile
//!             and A_j+(w - a) - 1 more           for a predecessor; for all of these if the next job may overtake i; point 4 below
//!             = A_j(w + J_j - phi_j(a))          for a stranger with an offset
//!      phi_j  = (a + O_j - O_i + J_j) mod gcd(T_i, T_j)                        near Tindell 1994; Palencia & Gonzalez Harbour 1998
//!      under earliest deadline first at most A_j+(a + D_i - D_j + J_j)         Spuri 1996
//! (7)  R_i    = max over a: w_i(a) - a                                         Lehoczky 1990; Spuri 1996
//! ```
//!
//! where `A+(s)` counts both ends of the span, and is 0 for a negative one. Equation (6) for offsets: in terms of the window, `i`
//! arrives at `a`, so `j` can arrive only at `a + O_j - O_i` plus multiples of `gcd(T_i, T_j)`; the first such moment from `-J_j` on
//! is `-J_j + phi_j(a)`. Between two values of `a` at which `phi_j` returns to 0 it only grows, and the count does not.
//!
//! Both papers treat the steps of one transaction as independent of each other. This analysis uses their order where it excludes
//! interference, as Palencia and Gonzalez Harbour (1998, 1999) do, who also use the times between the steps' releases. The
//! argument, for a step `i` that arrives (with its root) at `a` and ends at `f`:
//!
//! 1. Let 0 be the last moment before the release of `i` at which no step that precedes `i` in priority was waiting on its
//!    processor. From 0 to `f` the processor executes only jobs that were released from 0 on, and at most one blocking. So `f` is
//!    at most the least `w` that holds all of it. A job that arrived at `x` was released from 0 on only if `x + J >= 0`. If `i` has no
//!    execution, it ends at the first moment at which no other waits: then the counts of (6) are those of a window of `w + 1`.
//! 2. Steps of other transactions have at most `ceil((w + J) / T)` jobs each. So have steps on parallel branches of the same
//!    transaction.
//! 3. Earlier jobs of the transaction arrived at `a - T`, `a - 2 T` or before. So `floor((a + J) / T) + 1` jobs of `i` itself
//!    run. Of a predecessor run as many, with that step's own jitter. Of a successor runs one less: in the same job it waits for
//!    the end of `i`. That is not so if a message in the middle of `i` begins the way to the successor, and `i` does not keep the
//!    processor from it ([`Begins`]): then as many run, and at least one.
//! 4. Later jobs arrive at `a + T`, `a + 2 T` or after. Their successors of `i` wait for `i`. Of a predecessor at most `ceil((w -
//!    a) / T) - 1` jobs begin before `w`: none, if `i` ends within the period. If `i` waits in its middle, its next job may run
//!    meanwhile, because it has a thread of its own. Then the same number of later jobs counts for `i` itself and for its successors.
//!
//! The bound is the largest `w - a`. Between two values of `a` at which a count of 3 grows, `w` does not grow. So only those
//! values are analysed, from `-J` of `i` (released at 0, as late as possible) to the end of the longest busy period. The analysis
//! makes no assumption that must be verified afterwards, and no count exceeds `ceil((w + J) / T)`. Leaving out the predecessors
//! altogether would be wrong: while one runs, other steps with priorities between its own and that of `i` accumulate and delay
//! `i`. That the current jitters hold for all of this follows by induction over time: the first job to exceed a bound would have
//! been analysed with bounds that held until then.
//!
//! A job that waits for another processor with its thread keeps the next job of its root from beginning. If it ends before that one
//! arrives, that makes no difference, and so for all jobs (induction over time again). If that is not proven, nothing here
//! bounds the release of the root, and what depends on it has no bound.
//!
//! Under earliest deadline first, "precedes in priority" means "has a deadline not after `a + D`", where deadlines count from the
//! arrival of the root: of every step only the jobs with `x + D_j <= a + D` count.

mod counts;
mod earliest;
mod fixed;
pub(crate) mod relatives;
pub(crate) mod rounds;
mod search;

use std::sync::Arc;

use crate::limits::SearchLimits;
use crate::response::Response;
use crate::task::Task;

pub use counts::interference;

/// A part of a transaction that one processor executes without suspending itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The period of the transaction, and the step's worst-case execution time, own release jitter and blocking. The deadline
    /// counts from the arrival of the root; under earliest deadline first it also orders the jobs.
    pub task: Task,
    /// The processor: an index into the list of processors.
    pub processor: usize,
    /// The level; 0 is the most urgent on the processor. Steps of one level interfere with each other in full. Unused under
    /// earliest deadline first.
    pub level: u32,
    /// The predecessor, whose end releases the step; `None` for a root.
    pub after: Option<usize>,
    /// The longest delay from that end to the release, in ns.
    pub delay_ns: u64,
    /// The transaction: any number that its steps share.
    pub transaction: usize,
    /// How early the step may begin. Unused for a root.
    pub begins: Begins,
    /// Of a root whose jobs have one thread: the step with whose end the thread becomes free for the next job. `None` for a root
    /// whose next job needs no more than the processor.
    pub thread_until: Option<usize>,
    /// Whether a job of the step, or of a predecessor, waits in its middle, for what it calls on its processor or for a mutex, while its next
    /// jobs have threads of their own: they may run before it ends. Unused under earliest deadline first.
    pub may_be_overtaken: bool,
}

/// How early a step may begin.
///
/// Its latest release is the end of its predecessor, plus the delay. If the step, or one that follows it, may run before that end,
/// the predecessor's response has at least one job of it. The message is sent without that job, so the release is earlier by its
/// execution: without one job, the window that holds all others is shorter at least by as much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begins {
    /// Once its predecessor has ended.
    #[default]
    AtEnd,
    /// While its predecessor executes: a message releases it that is sent before the end. The predecessor keeps the processor
    /// from it, and from what it releases, unless they are more urgent.
    Meanwhile,
    /// As [`Meanwhile`](Self::Meanwhile); but the predecessor waits in its middle, and so lets what is as urgent go first.
    MeanwhileIfAsUrgent,
}

/// The deadline of a step that precedes all jobs under earliest deadline first, also those that are late. It only orders: that it is
/// missed means nothing.
pub(crate) const FIRST_NS: u64 = 0;

/// The scheduling policy of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulingPolicy {
    /// The most urgent level runs first, preemptively (SCHED_FIFO).
    #[default]
    FixedPriority,
    /// The earliest deadline runs first, preemptively.
    EarliestDeadline,
}

/// The worst-case response time of a step, and its terms.
///
/// If there is a bound, it is exactly `jitter_ns + window_ns - job * period - later_ns`, and `window_ns` is exactly
/// `blocking_ns`, `own_jobs` executions of the step, and the executions that [`interference`] lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepResponse {
    /// The response time, from the arrival of the root.
    pub response: Response,
    /// How long the processor executes this step and those of higher priority until the step ends, in ns.
    pub window_ns: u64,
    /// The step at whose latest release the window begins: this one, or a predecessor on the same processor, whose execution is
    /// then part of the window.
    pub begins_with: usize,
    /// The jitter of that step: its own, plus the response of its predecessor and the delay; in ns from the arrival.
    pub jitter_ns: u64,
    /// The jitter of the step itself: how late after the arrival it may be released, in ns.
    pub release_ns: u64,
    /// How many periods the first job of the window arrived before the latest job.
    pub job: u64,
    /// How much more than these periods, in ns. Above 0 only if the worst case is at another step's deadline (earliest deadline
    /// first), or at an earlier job of a successor.
    pub later_ns: u64,
    /// The number of jobs of the step in the window, including the latest one.
    pub own_jobs: u64,
    /// The blocking in the window, in ns. Under fixed priorities it is the step's own. Under earliest deadline first it is the
    /// longest of the steps whose first deadline can be at or before its own, as in the demand test.
    pub blocking_ns: u64,
}

/// Returns the worst-case response time of each step, from the arrival of its root.
///
/// A step has at most one predecessor, and there are no cycles. A step has no bound if its predecessor has none, or if a more
/// urgent step on its processor has a release without a bound. So has a root whose thread is not proven to be free when the next
/// job arrives ([`Step::thread_until`]): its jobs may be released late, without end.
///
/// # Panics
/// If a step names a missing processor or step, has no period, or precedes itself.
#[must_use]
pub fn holistic(
    steps: &[Step],
    processors: &[SchedulingPolicy],
    limits: SearchLimits,
) -> Vec<StepResponse> {
    let layout = Arc::new(rounds::Layout::new(steps, processors));
    let mut rounds = rounds::Rounds::new(steps, &layout, limits);
    rounds.run();
    rounds.found()
}
