//! A servant that executes as long as its caller wishes, and checks what happens beyond its worst case.

use super::{DEMOTED, SERVING, fail_at};
use crate::systems::call_end::fail;
use crate::systems::worker::Ledger;
use crate::world;
use rtorb::exception::local;
use rtorb::timing::{OperationCounts, Overrun, TimingSide};
use rtorb::{CurrentCall, Orb, SystemException};
use rtorb_os::clock::thread_cpu_ns;
use rtorb_os::sched::current_policy;
use std::sync::{Arc, Mutex};
use std::time::Duration;

rtorb::include_idl!("timed");

pub(super) use simulated::{Timed, TimedServant};

/// The worst case of `execute`.
pub(super) const WORST: Duration = Duration::from_millis(1);
const WORST_NS: u64 = WORST.as_nanos() as u64;

/// A call has had at most so much CPU time before its servant is called.
const BEFORE_NS: u64 = 200_000;

/// On one processor, a call has at most so much CPU time beyond its budget before something is done about it: the rest of the enforcing
/// thread, and the inaccuracy of timers.
const LATE_NS: u64 = 1_000_000;

#[derive(Debug)]
pub(super) struct Executes {
    ledger: Ledger,
    overrun: Overrun,
    executed: Executed,
}

/// What the servants of all calls have seen.
#[derive(Clone, Debug)]
pub(super) struct Executed {
    overrun: Overrun,
    totals: Arc<Mutex<Totals>>,
}

/// The numbers of calls.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    calls: u64,
    /// Calls that executed longer than the worst case.
    overruns_min: u64,
    /// Those, and calls that may have done so.
    overruns_max: u64,
    /// Calls that were demoted or asked to stop.
    enforced: u64,
}

impl Executes {
    pub(super) fn new(ledger: Ledger, overrun: Overrun) -> Self {
        let executed = Executed {
            overrun,
            totals: Arc::default(),
        };
        Self {
            ledger,
            overrun,
            executed,
        }
    }

    pub(super) fn executed(&self) -> Executed {
        self.executed.clone()
    }

    /// Returns true if this thread is demoted, or its servant was asked to stop when it last asked.
    fn is_enforced(&self, asked: &Result<(), SystemException>) -> bool {
        match self.overrun {
            Overrun::Demote(_) => current_policy().priority() == DEMOTED,
            // A client may have given the call up, too.
            Overrun::Stop => asked
                .as_ref()
                .is_err_and(|why| why.minor == local::STOPPED_BY_BUDGET.minor),
            _ => false,
        }
    }

    /// Nothing is done about a call before it has used its budget.
    fn check_enforced(call: u32, executed_ns: u64) {
        if executed_ns + BEFORE_NS < WORST_NS {
            fail_at(
                "a call within its budget is demoted or stopped",
                call,
                executed_ns,
            );
        }
    }

    /// A call that goes on has not used its budget, but for what the enforcing thread needs.
    fn check_kept(&self, call: u32, executed_ns: u64) {
        let is_late = executed_ns > WORST_NS + LATE_NS;
        if self.overrun != Overrun::Count && is_late && has_one_cpu() {
            fail_at(
                "a call beyond its budget is not demoted or stopped",
                call,
                executed_ns,
            );
        }
    }
}

fn has_one_cpu() -> bool {
    world::with(|world| world.core.tasks.has_one_cpu())
}

impl TimedServant for Executes {
    fn execute(&self, call: u32, busy_us: u32) -> Result<(), SystemException> {
        const PART_NS: u64 = 20_000;
        self.ledger.note(call);
        let own = current_policy().priority();
        if own != SERVING {
            fail(&format!("call {call} begins with priority {own}"));
        }
        let began_ns = thread_cpu_ns();
        let busy_ns = u64::from(busy_us) * 1000;
        let mut outcome = Ok(());
        let mut is_enforced = false;
        let mut executed_ns = 0;
        while executed_ns < busy_ns && outcome.is_ok() {
            world::burn(PART_NS.min(busy_ns - executed_ns));
            outcome = CurrentCall::get().map_or(Ok(()), |current| current.check());
            is_enforced = self.is_enforced(&outcome);
            executed_ns = thread_cpu_ns() - began_ns;
            if is_enforced {
                Self::check_enforced(call, executed_ns);
            } else if outcome.is_ok() {
                self.check_kept(call, executed_ns);
            }
        }
        self.executed.add(executed_ns, is_enforced);
        outcome
    }
}

impl Executed {
    fn add(&self, executed_ns: u64, is_enforced: bool) {
        let mut totals = self.totals.lock().expect("no panic");
        totals.calls += 1;
        totals.overruns_min += u64::from(executed_ns > WORST_NS);
        totals.overruns_max += u64::from(executed_ns + BEFORE_NS > WORST_NS);
        totals.enforced += u64::from(is_enforced);
    }

    /// The ORB has counted what the servants have seen.
    pub(super) fn check(&self, orb: &Orb) {
        let totals = *self.totals.lock().expect("no panic");
        let mut all = orb.timing().into_iter();
        let counts = all.find(|counts| counts.side == TimingSide::Server);
        let counts = counts.unwrap_or_else(|| fail("the operation is not counted"));
        let OperationCounts {
            calls, overruns, ..
        } = counts;
        let enforced = match self.overrun {
            Overrun::Demote(_) => counts.demotions,
            Overrun::Stop => counts.stops,
            _ => 0,
        };
        let is_true = calls == totals.calls
            && (totals.overruns_min..=totals.overruns_max).contains(&overruns)
            && (totals.enforced..=overruns).contains(&enforced);
        if !is_true {
            fail(&format!("{totals:?} are counted as {counts:?}"));
        }
    }
}
