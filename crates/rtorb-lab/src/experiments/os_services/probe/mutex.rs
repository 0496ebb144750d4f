//! A mutex with priority inheritance that a less urgent thread holds when a more urgent one wants it.
//!
//! The more urgent thread is invited by a futex, outside of what is timed: it asks for the mutex, sleeps, lends its priority to the
//! holder, which gives the mutex back at once, and has it.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, PoisonError};
use std::thread::yield_now;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;

use super::{Pauses, Question, Samples, Urgency, deadline_ns, run};
use crate::contestants::ping_pong::futex::sleep_while;
use crate::processes::probe::Answer;

/// Where a sample begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::experiments) enum From {
    /// When the more urgent thread asks for the mutex.
    Lock,
    /// When the holder gives it back.
    Release,
    /// The same; before each, the holder takes and gives back the free mutex, which is the time without.
    ReleaseBesideFree,
}

/// A mutex of either kind.
pub(in crate::experiments) trait Lock:
    Default + Send + Sync + 'static
{
    /// Takes it, does this, and gives it back.
    fn held(&self, within: impl FnOnce());
}

impl Lock for rtorb_os::sync::Mutex<()> {
    fn held(&self, within: impl FnOnce()) {
        let held = self.lock();
        within();
        drop(held);
    }
}

impl Lock for std::sync::Mutex<()> {
    fn held(&self, within: impl FnOnce()) {
        let held = self.lock().unwrap_or_else(PoisonError::into_inner);
        within();
        drop(held);
    }
}

pub(in crate::experiments) fn time<L: Lock>(
    question: &Question,
    from: From,
) -> Result<Answer, String> {
    let low = Arc::new(Shared {
        from,
        mutex: L::default(),
        invitation: AtomicU32::new(0),
        wanted: AtomicU32::new(0),
        begin_ns: AtomicU64::new(0),
        free_ns: AtomicU64::new(0),
        done: AtomicU32::new(0),
        over: AtomicBool::new(false),
    });
    let high = Arc::clone(&low);
    let samples = match from {
        From::Lock | From::Release => Samples::of(question),
        From::ReleaseBesideFree => Samples::in_pairs(question),
    };
    let pauses = Pauses::of(question);
    run(
        question,
        Box::new(move || {
            low.hold(pauses);
            Ok(None)
        }),
        Some((
            Urgency::Second,
            Box::new(move || Ok(Some(high.acquire(samples)))),
        )),
    )
}

struct Shared<L> {
    from: From,
    mutex: L,
    /// The round to which the more urgent thread is invited.
    invitation: AtomicU32,
    /// The round in which it asks for the mutex.
    wanted: AtomicU32,
    begin_ns: AtomicU64,
    /// How long taking and giving back the free mutex took.
    free_ns: AtomicU64,
    /// The round in which it had it.
    done: AtomicU32,
    /// Written by the more urgent thread when it has its samples, by the other when it waited in vain.
    over: AtomicBool,
}

impl<L: Lock> Shared<L> {
    fn hold(&self, mut pauses: Pauses) {
        let deadline_ns = deadline_ns();
        let mut round = 0;
        while !self.over.load(Acquire) {
            pauses.pause();
            round += 1;
            if self.from == From::ReleaseBesideFree {
                let begin_ns = monotonic_ns();
                self.mutex.held(|| {});
                self.free_ns.store(monotonic_ns() - begin_ns, Release);
            }
            let mut is_wanted = false;
            self.mutex.held(|| {
                self.invite(round);
                is_wanted = self.is_wanted(round, deadline_ns);
                if self.from != From::Lock {
                    self.begin_ns.store(monotonic_ns(), Release);
                }
            });
            let is_done = || sleep_while(&self.done, round - 1, Some(deadline_ns)).is_some();
            if !is_wanted || !is_done() {
                break;
            }
        }
        self.over.store(true, Release);
        self.invite(round + 1);
    }

    fn invite(&self, round: u32) {
        self.invitation.store(round, Release);
        futex::wake(&self.invitation, 1);
    }

    /// Under SCHED_FIFO the more urgent thread has come as soon as it was invited; otherwise it is given the CPU until then.
    fn is_wanted(&self, round: u32, deadline_ns: u64) -> bool {
        while self.wanted.load(Acquire) != round {
            if monotonic_ns() > deadline_ns {
                return false;
            }
            yield_now();
        }
        true
    }

    fn acquire(&self, mut samples: Samples) -> Samples {
        let mut seen = 0;
        while let Some(invitation) = sleep_while(&self.invitation, seen, None)
            && !self.over.load(Acquire)
        {
            seen = invitation;
            if self.from == From::Lock {
                self.begin_ns.store(monotonic_ns(), Release);
            }
            self.wanted.store(seen, Release);
            let mut goes_on = false;
            self.mutex.held(|| {
                goes_on = samples.end(self.begin_ns.load(Acquire));
            });
            samples.set_without(self.free_ns.load(Acquire));
            if !goes_on {
                self.over.store(true, Release);
            }
            self.done.store(seen, Release);
            futex::wake(&self.done, 1);
            if !goes_on {
                break;
            }
        }
        samples
    }
}
