//! Measures the calls of annotated operations, and calls the application's hook for violations.

use super::arrivals::{CallAdmission, ServantTiming};
use super::budget::{Allowance, Budget, BudgetOutcome};
use super::connection_arrivals::ConnectionArrivals;
use super::counts::{CounterTable, Counters, MissRatios, OperationCounters, OperationCounts};
use super::enforcement::{Enforcement, Overrun};
use super::enforcer::{Enforcer, replace_current};
use crate::clock::monotonic_ns;
use crate::deadline::{self, DeadlineScope};
use crate::exception::{SystemException, local};
use crate::realtime::{Priority, RtCore, caller_priority};
use crate::recorder::{self, CallSide};
use crate::thread_state;
use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rtorb_core::timing::OperationTiming;
use rtorb_os::clock::thread_cpu_ns;
use rtorb_os::sched::apply_policy;
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
    /// `@statistical`: too many of the last calls ended later than the deadline.
    MissRatio,
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
    /// The annotated value; for [`MissRatio`](TimingLimit::MissRatio) the deadline.
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
    /// True if the deadline of an operation is that of its calls, and requests that have expired are refused.
    pub(crate) enforces_deadlines: bool,
    /// The enforcement of adapters that do not choose their own.
    pub(crate) enforcement: Enforcement,
    pub(crate) hook: Option<Hook>,
}

/// Measures the calls of an ORB's annotated operations, and enforces their times.
pub(crate) struct TimingCounters {
    counts: CounterTable,
    pub(crate) settings: TimingSettings,
    pub(super) enforcer: Enforcer,
    /// True once a servant with annotated operations is activated.
    serves: AtomicBool,
    /// The number of requests whose deadline had passed before their servants were called.
    expired: AtomicU64,
    /// True once a servant is activated whose operations bound the requests that wait.
    bounds_queues: AtomicBool,
}

/// A call of an annotated operation that a servant executes.
#[derive(Debug)]
pub(crate) struct TimedUpcall {
    operation: &'static OperationTiming,
    /// [`NONE_NS`](deadline::NONE_NS) once the reply is deferred.
    arrived_ns: u64,
    began_ns: u64,
    /// The thread's CPU time at the beginning, if CPU time is measured.
    cpu_began_ns: Option<u64>,
    /// The servant's execution time, once it has returned, if there is a worst case.
    executed_ns: Option<u64>,
    /// Time since the previous call, if there is a period.
    gap_ns: Option<u64>,
    admission: CallAdmission,
    /// True while the budget of this call is that of the thread.
    has_budget: bool,
    enforced: Enforced,
}

/// A call of an annotated operation whose reply is deferred: it ends with that, and not when its servant returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeferredCall {
    operation: &'static OperationTiming,
    arrived_ns: u64,
}

/// When and where a call came to its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallArrival<'c> {
    /// The time of arrival; 0 for a request that did not wait in a queue, which arrives now.
    pub(crate) at_ns: u64,
    /// The connection of the call; `None` for a collocated call.
    pub(crate) connection: Option<&'c ConnectionArrivals>,
}

/// What was done about the overrun of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enforced {
    Nothing,
    Demotion,
    /// A demotion from which the host does not let the thread return.
    LastingDemotion,
    Stop,
}

thread_local! {
    /// True while the hook runs: calls that it makes are counted, but do not call it again.
    static IN_HOOK: Cell<bool> = const { Cell::new(false) };
}

impl TimingCounters {
    pub(crate) fn new(settings: TimingSettings, enforcer: Enforcer) -> Self {
        Self {
            counts: CounterTable::default(),
            settings,
            enforcer,
            serves: AtomicBool::new(false),
            expired: AtomicU64::new(0),
            bounds_queues: AtomicBool::new(false),
        }
    }

    /// Allocates the counters of operations before they are called.
    pub(crate) fn prepare(&self, operations: &'static [OperationTiming]) {
        for operation in operations {
            self.counts.entry(operation);
        }
    }

    /// Allocates the counters of operations before they are served, and starts the enforcing thread if one of them has a budget.
    ///
    /// # Errors
    /// As [`Enforcer::start`].
    pub(crate) fn prepare_serving(
        &self,
        operations: &'static [OperationTiming],
        overrun: Overrun,
    ) -> Result<(), SystemException> {
        let has_worst_case = |operation: &OperationTiming| operation.worst_ns.is_some();
        if overrun != Overrun::Count && operations.iter().any(has_worst_case) {
            self.enforcer.start(overrun)?;
        }
        for operation in operations {
            self.counts.entry(operation).note_served();
            self.serves.store(true, Ordering::Relaxed);
            if operation.queue_max().is_some() {
                self.bounds_queues.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Returns true if a served operation may bound the requests that wait (`@queue`).
    #[inline]
    pub(crate) fn bounds_queues(&self) -> bool {
        self.bounds_queues.load(Ordering::Relaxed)
    }

    /// Returns the counters of an operation.
    pub(super) fn of(&self, operation: &'static OperationTiming) -> &OperationCounters {
        self.counts.entry(operation)
    }

    /// Returns the current time if queued requests need their time of arrival, and 0 otherwise.
    #[inline]
    pub(crate) fn arrival_ns(&self) -> u64 {
        if self.serves.load(Ordering::Relaxed) || recorder::is_running() {
            monotonic_ns()
        } else {
            0
        }
    }

    /// Counts an expired request. Returns TIMEOUT if the ORB refuses expired requests.
    #[cold]
    pub(crate) fn refuse_expired(&self) -> Result<(), SystemException> {
        self.expired.fetch_add(1, Ordering::Relaxed);
        if let Some(part) = thread_state::recorder() {
            part.note_expired();
        }
        if self.settings.enforces_deadlines {
            return Err(local::EXPIRED);
        }
        Ok(())
    }

    /// Returns the number of requests that expired before their servants were called.
    pub(crate) fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    /// Returns the time by which the call of this thread must begin; [`NONE_NS`](deadline::NONE_NS) if its deadline is only counted.
    fn latest_ns(&self) -> u64 {
        if self.settings.enforces_deadlines {
            deadline::inherited_ns()
        } else {
            deadline::NONE_NS
        }
    }

    /// Replaces how many calls of operations may be late.
    pub(crate) fn set_miss_ratios(&self, ratios: MissRatios) {
        self.counts.set_miss_ratios(ratios);
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
        let deadline_ns = operation
            .deadline_ns
            .filter(|_| self.settings.enforces_deadlines);
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
        observer.judge_response(client, response_ns);
    }

    /// Judges the response of a call that was deferred and ends now.
    #[cold]
    pub(crate) fn end_deferred(&self, call: DeferredCall, rt: &RtCore) {
        let response_ns = monotonic_ns().saturating_sub(call.arrived_ns);
        let OperationCounters { server, .. } = self.counts.entry(call.operation);
        server.note_response(response_ns);
        let observer = Observer {
            watch: self,
            rt,
            operation: call.operation,
            side: TimingSide::Server,
        };
        observer.judge_response(server, response_ns);
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

impl TimedUpcall {
    /// Begins a call of the operation at `place` of `timings`, unless it is refused. The call is to be [ended](Self::end) in any case.
    ///
    /// # Errors
    /// TRANSIENT for a call before its time; TIMEOUT if its deadline passes before its time; NO_RESOURCES or NO_PERMISSION if the host refuses what its budget needs.
    #[inline(never)]
    pub(crate) fn begin(
        watch: &TimingCounters,
        timings: &'static [OperationTiming],
        place: usize,
        servant: &ServantTiming,
        arrival: CallArrival<'_>,
    ) -> (Self, Result<(), SystemException>) {
        let operation = &timings[place];
        let began_ns = monotonic_ns();
        let mut call = Self {
            operation,
            arrived_ns: if arrival.at_ns == 0 {
                began_ns
            } else {
                arrival.at_ns
            },
            began_ns,
            cpu_began_ns: None,
            executed_ns: None,
            gap_ns: None,
            admission: CallAdmission::Served,
            has_budget: false,
            enforced: Enforced::Nothing,
        };
        let admitted = call.admit(watch, place, servant, arrival.connection);
        if admitted.is_err() {
            call.admission = CallAdmission::Refused;
        }
        (call, admitted)
    }

    /// Waits for the time of the call, and begins to measure its execution.
    #[inline]
    fn admit(
        &mut self,
        watch: &TimingCounters,
        place: usize,
        servant: &ServantTiming,
        connection: Option<&ConnectionArrivals>,
    ) -> Result<(), SystemException> {
        if let Some(period_ns) = self.operation.period_ns {
            let latest_ns = || watch.latest_ns();
            let arrival = servant.admit(place, self.arrived_ns, period_ns, connection, latest_ns);
            (self.gap_ns, self.admission) = (arrival.gap_ns, arrival.admission);
            match arrival.admission {
                CallAdmission::Served => {}
                CallAdmission::Delayed => self.end_delay(watch)?,
                CallAdmission::Refused => return Err(local::CALLED_TOO_SOON),
                CallAdmission::Untracked => return Err(local::TOO_MANY_PERIODS),
                CallAdmission::Expired => watch.refuse_expired()?,
            }
        }
        let Some(worst_ns) = self.operation.worst_ns else {
            return Ok(());
        };
        let overrun = servant.enforcement.overrun;
        let budget = match overrun {
            Overrun::Count => None,
            _ => watch.enforcer.budget_here()?,
        };
        if watch.settings.clock == ExecutionClock::Cpu {
            // Read after the other clock, so that elapsed time is never less than execution time.
            self.cpu_began_ns = Some(thread_cpu_ns());
        }
        if let Some(budget) = budget {
            self.begin_budget(budget, worst_ns, overrun);
        }
        Ok(())
    }

    /// Begins a call that was delayed, unless its deadline has passed meanwhile.
    #[cold]
    fn end_delay(&mut self, watch: &TimingCounters) -> Result<(), SystemException> {
        let deadline_ns = deadline::inherited_ns();
        let had_expired = deadline_ns <= self.began_ns;
        self.began_ns = monotonic_ns();
        // One that had expired before, and is served all the same, is counted already.
        if deadline_ns <= self.began_ns && (watch.settings.enforces_deadlines || !had_expired) {
            watch.refuse_expired()?;
        }
        Ok(())
    }

    fn begin_budget(&mut self, budget: Arc<Budget>, worst_ns: u64, overrun: Overrun) {
        budget.begin(&Allowance {
            worst_ns,
            began_ns: self.began_ns,
            cpu_began_ns: self.cpu_began_ns,
            overrun,
        });
        replace_current(Some(budget));
        self.has_budget = true;
    }

    /// Returns the code point that the operation states for its packets.
    pub(crate) fn dscp(&self) -> Option<u8> {
        self.operation.dscp()
    }

    /// Returns the first time at which the call is later than the deadline of its operation; [`NONE_NS`](deadline::NONE_NS) if that has none.
    #[cold]
    pub(crate) fn late_from_ns(&self) -> u64 {
        let late_from_ns = |deadline_ns| self.arrived_ns.saturating_add(deadline_ns + 1);
        self.operation
            .deadline_ns
            .map_or(deadline::NONE_NS, late_from_ns)
    }

    /// Returns what judges the call if its reply is [deferred](Self::note_deferred).
    #[cold]
    pub(crate) fn deferred(&self) -> DeferredCall {
        DeferredCall {
            operation: self.operation,
            arrived_ns: self.arrived_ns,
        }
    }

    /// Notes that the reply is deferred: the return of the servant is no response, and so is never late.
    #[cold]
    pub(crate) fn note_deferred(&mut self) {
        self.arrived_ns = deadline::NONE_NS;
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
        if self.has_budget {
            self.end_budget();
        }
    }

    /// Ends the budget, and returns the thread from a demotion: results are sent at the priority of the call.
    #[inline(never)]
    fn end_budget(&mut self) {
        self.has_budget = false;
        let outcome = replace_current(None).map(|budget| budget.end());
        self.enforced = match outcome {
            None | Some(BudgetOutcome::Kept) => Enforced::Nothing,
            Some(BudgetOutcome::Stopped) => Enforced::Stop,
            Some(BudgetOutcome::Demoted(before)) if apply_policy(before).is_ok() => {
                Enforced::Demotion
            }
            Some(BudgetOutcome::Demoted(_)) => Enforced::LastingDemotion,
        };
    }

    /// Counts the call: its reply is sent, or the servant of a oneway has returned. Returns false if the thread has kept the lower
    /// priority of a demotion.
    #[inline(never)]
    pub(crate) fn end(mut self, watch: &TimingCounters, rt: &RtCore) -> bool {
        if self.has_budget {
            // The servant has panicked.
            self.end_budget();
        }
        let operation = self.operation;
        let server = &watch.counts.entry(operation).server;
        let observer = Observer {
            watch,
            rt,
            operation,
            side: TimingSide::Server,
        };
        server.add_admission(self.admission);
        if let (Some(limit_ns), Some(observed_ns)) = (operation.period_ns, self.gap_ns)
            && observed_ns < limit_ns
        {
            let limit = TimingLimit::Period;
            observer.report(limit, &server.early_arrivals, limit_ns, observed_ns);
        }
        if self.admission == CallAdmission::Refused {
            return true;
        }
        let response_ns = monotonic_ns().saturating_sub(self.arrived_ns);
        server.add(response_ns, self.executed_ns);
        match self.enforced {
            Enforced::Nothing => {}
            Enforced::Demotion | Enforced::LastingDemotion => {
                server.demotions.fetch_add(1, Ordering::Relaxed);
                record_demotion(operation);
            }
            Enforced::Stop => {
                server.stops.fetch_add(1, Ordering::Relaxed);
            }
        }
        if let (Some(limit_ns), Some(observed_ns)) = (operation.worst_ns, self.executed_ns)
            && observed_ns > limit_ns
        {
            let limit = TimingLimit::WorstCaseTime;
            observer.report(limit, &server.overruns, limit_ns, observed_ns);
        }
        observer.judge_response(server, response_ns);
        self.enforced != Enforced::LastingDemotion
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
    fn judge_response(&self, counters: &Counters, response_ns: u64) {
        if let Some(deadline_ns) = self.operation.deadline_ns
            && response_ns > deadline_ns
        {
            self.judge_late(counters, deadline_ns, response_ns);
        }
    }

    /// Counts a late call. Reports it, unless it may be late (`@statistical`).
    #[cold]
    fn judge_late(&self, counters: &Counters, deadline_ns: u64, response_ns: u64) {
        if let Some(part) = thread_state::recorder() {
            let side = match self.side {
                TimingSide::Client => CallSide::Client,
                TimingSide::Server => CallSide::Server,
            };
            part.note_deadline_miss(side, wire_name(self.operation));
        }
        let misses = &counters.deadline_misses;
        let Some(ratio) = counters.miss_ratio() else {
            return self.report(TimingLimit::Deadline, misses, deadline_ns, response_ns);
        };
        if counters.add_late(ratio) {
            let violations = &counters.ratio_violations;
            self.report(TimingLimit::MissRatio, violations, deadline_ns, response_ns);
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

/// Counts the demotion of the calling thread in the recorder.
#[cold]
fn record_demotion(operation: &OperationTiming) {
    if let Some(part) = thread_state::recorder() {
        part.note_demotion(wire_name(operation));
    }
}

/// Returns the name of an operation in its requests, as the recorder knows it.
fn wire_name(operation: &OperationTiming) -> &'static [u8] {
    let name = operation.name();
    name.rsplit("::").next().unwrap_or(name).as_bytes()
}

impl fmt::Debug for TimingCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimingCounters")
            .field("clock", &self.settings.clock)
            .finish_non_exhaustive()
    }
}
