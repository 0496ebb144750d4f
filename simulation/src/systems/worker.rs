//! An object that notes which calls it carried out.

use crate::world;
use rtorb::{CompletionStatus, Orb, OrbBuilder, SystemException};
use rtorb_os::sched::current_policy;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

rtorb::include_idl!("worker");

pub(crate) use simulated::{Worker, WorkerServant};

/// How often each call was carried out, in all servers of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<u32, u32>>>);

impl Ledger {
    fn note(&self, call: u32) {
        *self.0.lock().expect("no panic").entry(call).or_default() += 1;
    }

    pub(crate) fn count(&self, call: u32) -> u32 {
        self.0
            .lock()
            .expect("no panic")
            .get(&call)
            .copied()
            .unwrap_or(0)
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
        }
        Ok(reply_to(call, body))
    }

    fn note(&self, call: u32, _: &[u8]) -> Result<(), SystemException> {
        self.ledger.note(call);
        Ok(())
    }

    fn relay(&self, call: u32, next: &str, body: &[u8]) -> Result<Vec<u8>, SystemException> {
        let next: Worker = self.orb.string_to_reference(next)?;
        next.work(call, -1, 0, 0, body)
    }
}

/// What the reply to a call contains.
pub(crate) fn reply_to(call: u32, body: &[u8]) -> Vec<u8> {
    let mark = call.to_be_bytes();
    mark.into_iter().chain(body.iter().rev().copied()).collect()
}

/// A server that runs until it is shut down.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) orb: Orb,
    pub(crate) reference: String,
    thread: JoinHandle<()>,
}

impl Server {
    pub(crate) fn start(builder: OrbBuilder, ledger: &Ledger) -> Self {
        let orb = builder.build().expect("the ORB can be built");
        let poa = orb.root_poa().expect("the ORB can listen");
        let servant = Work {
            ledger: ledger.clone(),
            orb: orb.clone(),
            levels: 0,
        };
        let worker: Worker = poa.activate(servant).expect("there is room");
        let runs = orb.clone();
        Self {
            reference: worker.to_string(),
            orb,
            thread: std::thread::spawn(move || drop(runs.run())),
        }
    }

    /// Shuts the server down, and waits for its end.
    pub(crate) fn end(self) {
        self.orb.shutdown();
        self.thread.join().expect("the server does not panic");
        let _ = self.orb.destroy();
    }
}

/// The end of a call, as its client saw it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) call: u32,
    is_oneway: bool,
    /// Its timeout is longer than all calls together take.
    has_time: bool,
    elapsed: Duration,
    outcome: Result<(), SystemException>,
}

impl Ended {
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

    /// The outcome is true: what the servant noted does not contradict it.
    pub(crate) fn check(&self, ledger: &Ledger) {
        let ran = ledger.count(self.call);
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
