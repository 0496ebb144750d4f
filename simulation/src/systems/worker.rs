//! An object that notes which calls it carried out.

use super::call_end::{check_end, fail};
use crate::world;
use rtorb::{CurrentCall, Orb, SystemException};
use rtorb_os::sched::current_policy;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

rtorb::include_idl!("worker");

pub(crate) use simulated::{Worker, WorkerServant};

/// What all servers of a run know of each call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<u32, CallRecord>>>);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallRecord {
    /// How often it was carried out.
    pub(super) times: u32,
    /// The servant was told that the client has given it up.
    pub(super) is_cancelled: bool,
    /// The number of calls that were carried out before it for the first time.
    pub(super) place: usize,
}

impl Ledger {
    pub(super) fn note(&self, call: u32) {
        let mut served = self.0.lock().expect("no panic");
        let place = served.len();
        let first = CallRecord {
            place,
            ..CallRecord::default()
        };
        served.entry(call).or_insert(first).times += 1;
    }

    fn note_cancelled(&self, call: u32) {
        let mut served = self.0.lock().expect("no panic");
        served.entry(call).or_default().is_cancelled = true;
    }

    pub(super) fn of(&self, call: u32) -> CallRecord {
        let served = self.0.lock().expect("no panic");
        served.get(&call).copied().unwrap_or_default()
    }
}

/// Takes the time that a call asks for, and notes the call.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) ledger: Ledger,
    /// For nested calls.
    pub(crate) orb: Orb,
    /// The priorities above that of a call that its thread may have.
    pub(crate) levels: u8,
}

impl Work {
    /// The thread has the priority of the call that it serves.
    fn check_priority(&self, call: u32, priority: i16) {
        let own = current_policy().priority();
        let Ok(least) = u8::try_from(priority) else {
            return;
        };
        if !(least..=least + self.levels).contains(&own) {
            fail(&format!(
                "call {call} of priority {least} is served with priority {own}"
            ));
        }
    }
}

impl WorkerServant for Work {
    fn work(
        &self,
        call: u32,
        priority: i16,
        asleep_us: u32,
        busy_us: u32,
        body: &[u8],
    ) -> Result<Vec<u8>, SystemException> {
        self.ledger.note(call);
        self.check_priority(call, priority);
        world::burn(u64::from(busy_us) * 1000);
        if asleep_us > 0 {
            std::thread::sleep(Duration::from_micros(asleep_us.into()));
            if CurrentCall::get().is_some_and(|current| current.is_cancelled()) {
                self.ledger.note_cancelled(call);
            }
        }
        Ok(reply_to(call, body))
    }

    fn note(&self, call: u32, _: &[u8]) -> Result<(), SystemException> {
        self.ledger.note(call);
        Ok(())
    }

    fn relay(
        &self,
        call: u32,
        next: &str,
        until_ns: u64,
        body: &[u8],
    ) -> Result<Vec<u8>, SystemException> {
        let next: Worker = self.orb.string_to_reference(next)?;
        let remaining = CurrentCall::get().and_then(|current| current.remaining());
        let begun_ns = world::now_ns();
        check_inherited(call, until_ns, remaining);
        let outcome = next.work(call, -1, 0, 0, body);
        if let Some(remaining) = remaining {
            check_end("a nested call", begun_ns, remaining, &outcome);
        }
        outcome
    }
}

/// The servant knows the deadline of its client, as exactly as both read the clock.
fn check_inherited(call: u32, until_ns: u64, remaining: Option<Duration>) {
    const INACCURACY_NS: u64 = 1_000_000;
    let now_ns = world::now_ns();
    let known_ns = remaining.map(|remaining| now_ns + remaining.as_nanos() as u64);
    let is_true = match (known_ns, until_ns) {
        (None, 0) => true,
        // It is over.
        (Some(known_ns), 1..) if known_ns <= now_ns => until_ns <= now_ns + INACCURACY_NS,
        (Some(known_ns), 1..) => known_ns.abs_diff(until_ns) <= INACCURACY_NS,
        _ => false,
    };
    if !is_true {
        fail(&format!(
            "the servant of call {call} has the deadline {known_ns:?}, and its client {until_ns}"
        ));
    }
}

/// What the reply to a call contains.
pub(crate) fn reply_to(call: u32, body: &[u8]) -> Vec<u8> {
    let mark = call.to_be_bytes();
    mark.into_iter().chain(body.iter().rev().copied()).collect()
}
