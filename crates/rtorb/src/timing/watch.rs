//! Measures the calls of annotated operations, and calls the application's hook for violations.

use super::counts::{CounterTable, OperationCounters, OperationCounts};
use crate::clock::monotonic_ns;
use crate::deadline::DeadlineScope;
use crate::realtime::{Priority, RtCore, caller_priority};
use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rtorb_core::timing::OperationTiming;
use rtorb_os::clock::thread_cpu_ns;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The side of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimingSide {
    /// The calling side.
    Client,
    /// The serving side.
    Server,
}

/// A limit that an operation's annotations set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TimingLimit {
    /// `@worst_case_time`: a servant executed longer (an overrun).
    WorstCaseTime,
    /// `@deadline`: a call ended later.
    Deadline,
    /// `@period`: a call arrived sooner after the previous one.
    Period,
}

/// The clock that measures how long a servant executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecutionClock {
    /// The CPU time of the serving thread: time in which a servant is preempted or waits does not count. It costs one system
    /// call for each call of an operation with a worst case, and a second one when the elapsed time exceeds the worst case.
    #[default]
    Cpu,
    /// The elapsed time, without a system call. Time in which a servant is preempted or waits counts too, so it is right only if
    /// that does not happen.
    Elapsed,
}

/// A call beyond a limit of its operation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TimingViolation {
    /// The operation with its annotations.
    pub operation: &'static OperationTiming,
    /// The side on which it was observed.
    pub side: TimingSide,
    /// The limit that was exceeded.
    pub kind: TimingLimit,
    /// The annotated value.
    pub limit: Duration,
    /// The observed value: execution time, response time, or for a period the time since the previous call.
    pub observed: Duration,
    /// The CORBA priority of the call, which the calling thread still has; `None` if the mapping has none.
    pub priority: Option<Priority>,
}

/// The application's hook for violations.
pub(crate) type Hook = Arc<dyn Fn(&TimingViolation) + Send + Sync>;

/// How an ORB measures the calls of annotated operations.
#[derive(Default)]
pub(crate) struct TimingSettings {
    pub(crate) clock: ExecutionClock,
    /// True if the deadline of an operation is that of its calls.
    pub(crate) bounds_calls: bool,
    pub(crate) hook: Option<Hook>,
}

/// Measures the calls of an ORB's annotated operations.
#[derive(Default)]
pub(crate) struct TimingCounters {
    counts: CounterTable,
    settings: TimingSettings,
    /// True once a servant with annotated operations is activated.
    serves: AtomicBool,
}

/// The arrival time of the last call of a servant, for each annotated operation of its interface.
#[derive(Debug)]
pub(crate) struct Arrivals(Box<[AtomicU64]>);

/// A call of an annotated operation that a servant executes.
#[derive(Debug)]
pub(crate) struct TimedUpcall {
    operation: &'static OperationTiming,
    arrived_ns: u64,
    began_ns: u64,
    /// The thread's CPU time at the beginning, if CPU time is measured.
    cpu_began_ns: Option<u64>,
    /// The servant's execution time, once it has returned, if there is a worst case.
    executed_ns: Option<u64>,
    /// Time since the previous call, if there is a period.
    gap_ns: Option<u64>,
}

thread_local! {
    /// True while the hook runs: calls that it makes are counted, but do not call it again.
    static IN_HOOK: Cell<bool> = const { Cell::new(false) };
}

impl TimingCounters {
    pub(crate) fn new(settings: TimingSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Allocates the counters of operations before they are called.
    pub(crate) fn prepare(&self, operations: &'static [OperationTiming]) {
        for operation in operations {
            self.counts.entry(operation);
        }
    }

    /// Allocates the counters of operations before they are served.
    pub(crate) fn prepare_serving(&self, operations: &'static [OperationTiming]) {
        for operation in operations {
            self.counts.entry(operation).note_served();
            self.serves.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the current time if queued requests need their time of arrival, and 0 otherwise.
    #[inline]
    pub(crate) fn arrival_ns(&self) -> u64 {
        if self.serves.load(Ordering::Relaxed) {
            monotonic_ns()
        } else {
            0
        }
    }

    pub(crate) fn snapshot(&self) -> Vec<OperationCounts> {
        self.counts.snapshot()
    }

    /// Runs a client's call, which has the deadline of the operation, and counts it.
    #[inline]
    pub(crate) fn call<T>(
        &self,
        operation: &'static OperationTiming,
        rt: &RtCore,
        call: impl FnOnce() -> T,
    ) -> T {
        let began_ns = monotonic_ns();
        let deadline_ns = operation.deadline_ns.filter(|_| self.settings.bounds_calls);
        let deadline = deadline_ns.map(|ns| DeadlineScope::enter(began_ns.saturating_add(ns)));
        let result = call();
        drop(deadline);
        self.count_call(operation, rt, began_ns);
        result
    }

    #[inline(never)]
    fn count_call(&self, operation: &'static OperationTiming, rt: &RtCore, began_ns: u64) {
        let response_ns = monotonic_ns().saturating_sub(began_ns);
        let OperationCounters { client, .. } = self.counts.entry(operation);
        client.add(response_ns, None);
        let observer = Observer {
            watch: self,
            rt,
            operation,
            side: TimingSide::Client,
        };
        observer.judge_response(&client.deadline_misses, response_ns);
    }

    fn call_hook(&self, violation: &TimingViolation) {
        let Some(hook) = &self.settings.hook else {
            return;
        };
        if IN_HOOK.replace(true) {
            return;
        }
        // A panic in the application's hook must not end the serving or calling thread.
        let _ = catch_unwind(AssertUnwindSafe(|| hook(violation)));
        IN_HOOK.set(false);
    }
}

impl Arrivals {
    /// Makes the arrival times of `operations` operations, none of which has been called.
    pub(crate) fn new(operations: usize) -> Self {
        Self((0..operations).map(|_| AtomicU64::new(0)).collect())
    }

    /// Records a call of the operation at `place`; returns the time since the previous one.
    fn note(&self, place: usize, arrived_ns: u64) -> Option<u64> {
        // Several threads may serve calls at once: the latest arrival stays.
        let before_ns = self.0.get(place)?.fetch_max(arrived_ns, Ordering::Relaxed);
        (before_ns > 0).then(|| arrived_ns.abs_diff(before_ns))
    }
}

impl TimedUpcall {
    /// Begins a call of the operation at `place` of `timings`; `arrived_ns` is 0 for a request that did not wait in a queue.
    #[inline(never)]
    pub(crate) fn begin(
        watch: &TimingCounters,
        timings: &'static [OperationTiming],
        place: usize,
        arrivals: &Arrivals,
        arrived_ns: u64,
    ) -> Self {
        let operation = &timings[place];
        let began_ns = monotonic_ns();
        let arrived_ns = match arrived_ns {
            0 => began_ns,
            arrived_ns => arrived_ns,
        };
        let gap_ns = operation
            .period_ns
            .and_then(|_| arrivals.note(place, arrived_ns));
        let asks_cpu = watch.settings.clock == ExecutionClock::Cpu && operation.worst_ns.is_some();
        Self {
            operation,
            arrived_ns,
            began_ns,
            // Read after the other clock, so that elapsed time is never less than execution time.
            cpu_began_ns: asks_cpu.then(thread_cpu_ns),
            executed_ns: None,
            gap_ns,
        }
    }

    /// Records that the servant has returned.
    #[inline]
    pub(crate) fn executed(&mut self) {
        let Some(worst_ns) = self.operation.worst_ns else {
            return;
        };
        let elapsed_ns = monotonic_ns().saturating_sub(self.began_ns);
        self.executed_ns = Some(match self.cpu_began_ns {
            // It may have executed for less time: it was preempted, or waited.
            Some(began_ns) if elapsed_ns > worst_ns => thread_cpu_ns().saturating_sub(began_ns),
            _ => elapsed_ns,
        });
    }

    /// Counts the call: its reply is sent, or the servant of a oneway has returned.
    #[inline(never)]
    pub(crate) fn end(self, watch: &TimingCounters, rt: &RtCore) {
        let response_ns = monotonic_ns().saturating_sub(self.arrived_ns);
        let operation = self.operation;
        let server = &watch.counts.entry(operation).server;
        server.add(response_ns, self.executed_ns);
        let observer = Observer {
            watch,
            rt,
            operation,
            side: TimingSide::Server,
        };
        if let (Some(limit_ns), Some(observed_ns)) = (operation.period_ns, self.gap_ns)
            && observed_ns < limit_ns
        {
            let limit = TimingLimit::Period;
            observer.report(limit, &server.early_arrivals, limit_ns, observed_ns);
        }
        if let (Some(limit_ns), Some(observed_ns)) = (operation.worst_ns, self.executed_ns)
            && observed_ns > limit_ns
        {
            let limit = TimingLimit::WorstCaseTime;
            observer.report(limit, &server.overruns, limit_ns, observed_ns);
        }
        observer.judge_response(&server.deadline_misses, response_ns);
    }
}

/// Counts and reports the violations of an operation on one side.
struct Observer<'o> {
    watch: &'o TimingCounters,
    rt: &'o RtCore,
    operation: &'static OperationTiming,
    side: TimingSide,
}

impl Observer<'_> {
    #[inline]
    fn judge_response(&self, misses: &AtomicU64, response_ns: u64) {
        if let Some(deadline_ns) = self.operation.deadline_ns
            && response_ns > deadline_ns
        {
            self.report(TimingLimit::Deadline, misses, deadline_ns, response_ns);
        }
    }

    #[cold]
    fn report(&self, kind: TimingLimit, count: &AtomicU64, limit_ns: u64, observed_ns: u64) {
        count.fetch_add(1, Ordering::Relaxed);
        self.watch.call_hook(&TimingViolation {
            operation: self.operation,
            side: self.side,
            kind,
            limit: Duration::from_nanos(limit_ns),
            observed: Duration::from_nanos(observed_ns),
            priority: caller_priority(self.rt).ok(),
        });
    }
}

impl fmt::Debug for TimingCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimingCounters")
            .field("clock", &self.settings.clock)
            .finish_non_exhaustive()
    }
}
