//! A mutex that one thread gives back and a more urgent one, which sleeps on it, gets.
//!
//! Timed from just before it is given back until the other has it. The more urgent thread is invited each time by a futex,
//! outside of what is timed, so that it does not take a free mutex again and again (P0 section 3.1).

use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, PoisonError};
use std::thread::yield_now;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;

use super::{BUDGET_NS, HIGH, LOW, OVER, Question, Samples, WARM_UP, rounds, run};
use crate::contestants::ping_pong::futex::sleep_while;
use crate::processes::probe::Answer;

/// A mutex of either kind.
pub(super) trait Lock: Default + Send + Sync + 'static {
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

pub(super) fn time<L: Lock>(question: &Question) -> Result<Answer, String> {
    let low = Arc::new(Shared::<L>::default());
    let high = Arc::clone(&low);
    let samples = Samples::with_room_for(question.samples);
    let rounds = rounds(question);
    let deadline_ns = monotonic_ns() + BUDGET_NS;
    run(
        question,
        [LOW, HIGH],
        move || low.hand_over(rounds, deadline_ns, samples),
        move || high.acquire(deadline_ns),
    )
}

#[derive(Debug, Default)]
struct Shared<L> {
    mutex: L,
    invitation: AtomicU32,
    wanted: AtomicU32,
    done: AtomicU32,
    acquired_ns: AtomicU64,
}

impl<L: Lock> Shared<L> {
    fn hand_over(&self, rounds: u32, deadline_ns: u64, mut samples: Samples) -> Samples {
        for round in 1..=rounds {
            let begin_ns = monotonic_ns();
            self.mutex.held(|| {});
            let uncontended_ns = monotonic_ns() - begin_ns;
            let (mut is_wanted, mut release_ns) = (false, 0);
            self.mutex.held(|| {
                self.invitation.store(round, Release);
                futex::wake(&self.invitation, 1);
                is_wanted = self.is_wanted(round, deadline_ns);
                release_ns = monotonic_ns();
            });
            if sleep_while(&self.done, round - 1, Some(deadline_ns)).is_none() {
                break;
            }
            match (round > WARM_UP, is_wanted) {
                (true, true) => {
                    let hand_over_ns = self.acquired_ns.load(Acquire) - release_ns;
                    samples.push(hand_over_ns, uncontended_ns);
                }
                (true, false) => samples.dropped += 1,
                (false, _) => {}
            }
        }
        self.invitation.store(OVER, Release);
        futex::wake(&self.invitation, 1);
        samples
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

    fn acquire(&self, deadline_ns: u64) {
        let mut seen = 0;
        while let Some(invitation) = sleep_while(&self.invitation, seen, Some(deadline_ns))
            && invitation != OVER
        {
            seen = invitation;
            self.wanted.store(seen, Release);
            self.mutex
                .held(|| self.acquired_ns.store(monotonic_ns(), Release));
            self.done.store(seen, Release);
            futex::wake(&self.done, 1);
        }
    }
}
