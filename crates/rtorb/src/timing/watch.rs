//! Timing calls: what is read from which clock when, and who is told of what went beyond a limit.

use super::counts::{Entry, OperationCounts, Table};
use super::operation::OperationTiming;
use crate::orb::OrbCore;
use crate::rt::{Priority, caller_priority};
use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rtorb_os::clock::{monotonic_ns, thread_cpu_ns};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// On which side of a call something was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimingSide {
    /// Where it is called.
    Client,
    /// Where it is served.
    Server,
}

/// A limit that an operation's annotations set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimingLimit {
    /// `@worst_case_time`: a servant executed longer (an overrun).
    WorstCaseTime,
    /// `@deadline`: a call was done later.
    Deadline,
    /// `@period`: a call arrived sooner after the one before.
    Period,
}

/// What tells whether a servant executed longer than its worst case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutionClock {
    /// The CPU time of the serving thread: a servant that was preempted or that waited has not executed meanwhile. One system
    /// call a call of an operation with a worst case; a second one only where the elapsed time alone does not show that all is well.
    #[default]
    Cpu,
    /// The elapsed time, without a system call: right where nothing preempts servants and they wait for nothing, since all that would
    /// count as their execution.
    Elapsed,
}

/// A call beyond a limit of its operation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TimingViolation {
    /// Which operation, and what is annotated of it.
    pub operation: &'static OperationTiming,
    /// Where it was seen.
    pub side: TimingSide,
    /// Which limit.
    pub kind: TimingLimit,
    /// What is annotated.
    pub limit: Duration,
    /// What was: execution, response, or for a period the time since the call before.
    pub observed: Duration,
    /// The CORBA priority of the call, which the calling thread still has; `None` where the mapping knows none for it.
    pub priority: Option<Priority>,
}

/// Who is told.
pub(crate) type Hook = Arc<dyn Fn(&TimingViolation) + Send + Sync>;

/// An ORB's watch over the calls of annotated operations.
#[derive(Default)]
pub(crate) struct Watch {
    counts: Table,
    clock: ExecutionClock,
    hook: Option<Hook>,
    /// True once a servant with annotated operations was activated.
    serves: AtomicBool,
}

/// When calls last came to a servant, for each annotated operation of its interface.
#[derive(Debug)]
pub(crate) struct Arrivals(Box<[AtomicU64]>);

/// A call of an annotated operation that is being served.
#[derive(Debug)]
pub(crate) struct Serving {
    operation: &'static OperationTiming,
    arrived_ns: u64,
    began_ns: u64,
    /// The thread's CPU time before, where it may be asked for.
    cpu_began_ns: Option<u64>,
    /// How long the servant executed, once it has answered, where there is a worst case.
    executed_ns: Option<u64>,
    /// Since the call before, where there is a period.
    gap_ns: Option<u64>,
}

thread_local! {
    /// True while the hook runs: what it does itself is counted, and it is not told of that.
    static IN_HOOK: Cell<bool> = const { Cell::new(false) };
}

impl Watch {
    pub(crate) fn new(clock: ExecutionClock, hook: Option<Hook>) -> Self {
        Self {
            clock,
            hook,
            ..Self::default()
        }
    }

    /// Makes the counters of operations that are about to be called.
    pub(crate) fn prepare(&self, operations: &'static [OperationTiming]) {
        for operation in operations {
            self.counts.entry(operation);
        }
    }

    /// Makes the counters of operations that are about to be served.
    pub(crate) fn prepare_serving(&self, operations: &'static [OperationTiming]) {
        for operation in operations {
            self.counts.entry(operation).serve();
            self.serves.store(true, Ordering::Relaxed);
        }
    }

    /// The moment, if requests that have to wait need to know when they came; else 0.
    #[inline]
    pub(crate) fn arrival_ns(&self) -> u64 {
        match self.serves.load(Ordering::Relaxed) {
            true => monotonic_ns(),
            false => 0,
        }
    }

    pub(crate) fn snapshot(&self) -> Vec<OperationCounts> {
        self.counts.snapshot()
    }

    fn tell(&self, violation: &TimingViolation) {
        let Some(hook) = &self.hook else { return };
        if IN_HOOK.replace(true) {
            return;
        }
        // It is the application's, and must not take the serving or calling thread with it.
        let _ = catch_unwind(AssertUnwindSafe(|| hook(violation)));
        IN_HOOK.set(false);
    }
}

impl Arrivals {
    /// None yet, of any of so many operations.
    pub(crate) fn new(operations: usize) -> Self {
        Self((0..operations).map(|_| AtomicU64::new(0)).collect())
    }

    /// Notes a call of the operation at `place`; how long after the one before it came.
    fn note(&self, place: usize, arrived_ns: u64) -> Option<u64> {
        // Several threads may be in turns: the latest stays, whoever comes here first.
        let before_ns = self.0.get(place)?.fetch_max(arrived_ns, Ordering::Relaxed);
        (before_ns > 0).then(|| arrived_ns.abs_diff(before_ns))
    }
}

impl Serving {
    /// Of the operation at `place` among the annotated ones of an interface, now; `arrived_ns` is 0 for one that did not wait.
    #[inline(never)]
    pub(crate) fn begin(
        watch: &Watch,
        (operation, place): (&'static OperationTiming, usize),
        arrivals: &Arrivals,
        arrived_ns: u64,
    ) -> Self {
        let began_ns = monotonic_ns();
        let arrived_ns = match arrived_ns {
            0 => began_ns,
            arrived_ns => arrived_ns,
        };
        let gap_ns = operation
            .period_ns
            .and_then(|_| arrivals.note(place, arrived_ns));
        let asks_cpu = watch.clock == ExecutionClock::Cpu && operation.worst_ns.is_some();
        Self {
            operation,
            arrived_ns,
            began_ns,
            // Behind the other clock: what elapses is never less than what is executed.
            cpu_began_ns: asks_cpu.then(thread_cpu_ns),
            executed_ns: None,
            gap_ns,
        }
    }

    /// The servant has answered.
    #[inline]
    pub(crate) fn executed(&mut self) {
        let Some(worst_ns) = self.operation.worst_ns else {
            return;
        };
        let elapsed_ns = monotonic_ns().saturating_sub(self.began_ns);
        self.executed_ns = Some(match self.cpu_began_ns {
            // It was there longer, and may have executed less: preempted, or waiting.
            Some(began_ns) if elapsed_ns > worst_ns => thread_cpu_ns().saturating_sub(began_ns),
            _ => elapsed_ns,
        });
    }

    /// The call is done: the reply is on its way, or the servant of a oneway has returned.
    #[inline(never)]
    pub(crate) fn end(self, orb: &OrbCore) {
        let response_ns = monotonic_ns().saturating_sub(self.arrived_ns);
        let operation = self.operation;
        let server = &orb.timing.counts.entry(operation).server;
        server.add(response_ns, self.executed_ns);
        let seen = Seen {
            orb,
            operation,
            side: TimingSide::Server,
        };
        let too_early = operation
            .period_ns
            .zip(self.gap_ns)
            .filter(|(period_ns, gap_ns)| gap_ns < period_ns);
        let overrun = operation
            .worst_ns
            .zip(self.executed_ns)
            .filter(|(worst_ns, executed_ns)| executed_ns > worst_ns);
        if let Some(beyond) = too_early {
            seen.beyond(TimingLimit::Period, &server.early_arrivals, beyond);
        }
        if let Some(beyond) = overrun {
            seen.beyond(TimingLimit::WorstCaseTime, &server.overruns, beyond);
        }
        seen.judge_response(&server.deadline_misses, response_ns);
    }
}

/// Does a call as its client, and counts it.
#[inline]
pub(crate) fn call<T>(
    orb: &OrbCore,
    operation: &'static OperationTiming,
    call: impl FnOnce() -> T,
) -> T {
    let began_ns = monotonic_ns();
    let result = call();
    returned(orb, operation, began_ns);
    result
}

#[inline(never)]
fn returned(orb: &OrbCore, operation: &'static OperationTiming, began_ns: u64) {
    let response_ns = monotonic_ns().saturating_sub(began_ns);
    let Entry { client, .. } = orb.timing.counts.entry(operation);
    client.add(response_ns, None);
    let seen = Seen {
        orb,
        operation,
        side: TimingSide::Client,
    };
    seen.judge_response(&client.deadline_misses, response_ns);
}

/// Whose limits, and where.
struct Seen<'o> {
    orb: &'o OrbCore,
    operation: &'static OperationTiming,
    side: TimingSide,
}

impl Seen<'_> {
    #[inline]
    fn judge_response(&self, misses: &AtomicU64, response_ns: u64) {
        if let Some(deadline_ns) = self.operation.deadline_ns
            && response_ns > deadline_ns
        {
            self.beyond(TimingLimit::Deadline, misses, (deadline_ns, response_ns));
        }
    }

    #[cold]
    fn beyond(&self, kind: TimingLimit, count: &AtomicU64, (limit_ns, observed_ns): (u64, u64)) {
        count.fetch_add(1, Ordering::Relaxed);
        self.orb.timing.tell(&TimingViolation {
            operation: self.operation,
            side: self.side,
            kind,
            limit: Duration::from_nanos(limit_ns),
            observed: Duration::from_nanos(observed_ns),
            priority: caller_priority(&self.orb.rt).ok(),
        });
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
