//! The ends of calls, and what must hold for each.

use super::worker::{CallRecord, Ledger};
use crate::world;
use rtorb::{CompletionStatus, SystemException};
use std::fmt::Debug;
use std::time::Duration;

/// The end of a call, as its client saw it.
#[derive(Debug)]
pub(crate) struct CallEnd {
    pub(crate) call: u32,
    is_oneway: bool,
    /// Its timeout is longer than all calls together take.
    has_time: bool,
    elapsed: Duration,
    outcome: Result<(), SystemException>,
}

impl CallEnd {
    /// The call ended at last by its time.
    pub(crate) fn new(
        call: u32,
        is_oneway: bool,
        begun_ns: u64,
        timeout: Duration,
        outcome: Result<(), SystemException>,
    ) -> Self {
        let elapsed = check_end(&format!("call {call}"), begun_ns, timeout, &outcome);
        Self {
            call,
            is_oneway,
            has_time: timeout >= ENOUGH,
            elapsed,
            outcome,
        }
    }

    /// A call whose end nobody waited for.
    pub(crate) fn unknown(call: u32) -> Self {
        Self {
            call,
            is_oneway: true,
            has_time: false,
            elapsed: Duration::ZERO,
            outcome: Ok(()),
        }
    }

    /// The outcome is true: what the servant noted does not contradict it.
    pub(crate) fn check(&self, ledger: &Ledger) {
        let CallRecord {
            times: ran,
            is_cancelled,
            ..
        } = ledger.of(self.call);
        if is_cancelled && self.is_done() && !self.is_oneway {
            fail(&format!(
                "call {} succeeded, and its servant was told that it was given up",
                self.call
            ));
        }
        let completed = match &self.outcome {
            Ok(()) if self.is_oneway => CompletionStatus::Maybe,
            Ok(()) => CompletionStatus::Yes,
            Err(failed) => failed.completed,
        };
        let is_true = match completed {
            CompletionStatus::Yes => ran == 1,
            CompletionStatus::No => ran == 0,
            _ => ran <= 1,
        };
        if !is_true {
            fail(&format!(
                "call {} ran {ran} times: {:?}",
                self.call, self.outcome
            ));
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.outcome.is_ok()
    }

    /// A call that nothing disturbs and that has enough time succeeds, long before its timeout.
    pub(crate) fn check_success(&self) {
        if self.has_time && (self.outcome.is_err() || self.elapsed > ENOUGH / 2) {
            fail(&format!(
                "call {} took {:?}, and nothing disturbed it: {:?}",
                self.call, self.elapsed, self.outcome
            ));
        }
    }
}

/// What took so long ended at last by its time. Returns how long it took.
pub(crate) fn check_end(
    what: &str,
    begun_ns: u64,
    timeout: Duration,
    outcome: &impl Debug,
) -> Duration {
    let elapsed = Duration::from_nanos(world::now_ns() - begun_ns);
    if elapsed > timeout + SLACK {
        fail(&format!(
            "{what} took {elapsed:?} of {timeout:?}: {outcome:?}"
        ));
    }
    elapsed
}

/// A call with this timeout succeeds if nothing breaks.
pub(crate) const ENOUGH: Duration = Duration::from_secs(20);

/// How much later than its deadline a call may end: the steps of all threads, and the rest of the watchdog.
const SLACK: Duration = Duration::from_millis(30);

/// Ends the seed.
pub(crate) fn fail(why: &str) -> ! {
    world::with(|world| world.core.fail(why))
}
