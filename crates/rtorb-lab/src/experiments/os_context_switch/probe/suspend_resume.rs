//! A thread that resumes a more urgent one, which only suspends itself again: by a futex.
//!
//! The more urgent thread runs as soon as it is woken, and the other one when it sleeps again. So the call that wakes lasts for
//! two switches, a wake-up and a sleep. As in P0 section 3.1 and P2 section 3.1.2, a wake-up and a sleep without a switch are
//! subtracted, and the rest is halved: a sample is half of each.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::yield_now;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;

use super::OVER;
use crate::contestants::ping_pong::futex::sleep_while;
use crate::experiments::os_services::probe::{Question, Samples, Urgency, deadline_ns, run};
use crate::processes::probe::Answer;

pub(super) fn time(question: &Question) -> Result<Answer, String> {
    let low = Arc::new(Words::default());
    let high = Arc::clone(&low);
    let samples = Samples::in_pairs(question);
    let deadline_ns = deadline_ns();
    run(
        question,
        Box::new(move || Ok(Some(low.resume(deadline_ns, samples)))),
        Some((
            Urgency::Second,
            Box::new(move || {
                high.suspend_again(deadline_ns);
                Ok(None)
            }),
        )),
    )
}

#[derive(Debug, Default)]
struct Words {
    resumed: AtomicU32,
    ran: AtomicU32,
    /// Nobody ever sleeps on it.
    deserted: AtomicU32,
}

impl Words {
    fn resume(&self, deadline_ns: u64, mut samples: Samples) -> Samples {
        for round in 1..=samples.room() {
            let begin_ns = monotonic_ns();
            self.wake_nobody_and_sleep_not(round);
            let resume_ns = monotonic_ns();
            self.resumed.store(round, Release);
            futex::wake(&self.resumed, 1);
            let back_ns = monotonic_ns();
            let has_run = self.ran.load(Acquire) == round;
            if !has_run && !self.runs(round, deadline_ns) {
                break;
            }
            if !has_run {
                samples.miss(round);
            } else if !samples.keep_pair(
                (back_ns - resume_ns).div_ceil(2),
                (resume_ns - begin_ns).div_ceil(2),
                back_ns,
            ) {
                break;
            }
        }
        self.resumed.store(OVER, Release);
        futex::wake(&self.resumed, 1);
        samples
    }

    /// Without SCHED_FIFO the other thread need not run at once: it is given the CPU until then.
    fn runs(&self, round: u32, deadline_ns: u64) -> bool {
        while self.ran.load(Acquire) != round {
            if monotonic_ns() > deadline_ns {
                return false;
            }
            yield_now();
        }
        true
    }

    fn suspend_again(&self, deadline_ns: u64) {
        let mut seen = 0;
        while let Some(round) = sleep_while(&self.resumed, seen, Some(deadline_ns))
            && round != OVER
        {
            seen = round;
            self.ran.store(seen, Release);
        }
    }

    /// A wake-up and a sleep, which find nobody to wake and no reason to sleep.
    fn wake_nobody_and_sleep_not(&self, round: u32) {
        self.deserted.store(round, Release);
        futex::wake(&self.deserted, 1);
        futex::wait(&self.deserted, round - 1, None);
    }
}
