//! Two threads that wake each other by a futex and sleep on one themselves.
//!
//! Of equal priority: who wakes the other goes on until it sleeps itself. So a round trip is two switches, two calls that
//! wake and two that sleep, and half of it is one of each.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Release;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;

use super::{BUDGET_NS, LOW, OVER, Question, Samples, WARM_UP, rounds, run};
use crate::contestants::ping_pong::futex::sleep_while;
use crate::processes::probe::Answer;

pub(super) fn time(question: &Question) -> Result<Answer, String> {
    let caller = Arc::new(Words::default());
    let answerer = Arc::clone(&caller);
    let samples = Samples::with_room_for(question.samples);
    let rounds = rounds(question);
    let deadline_ns = monotonic_ns() + BUDGET_NS;
    run(
        question,
        [LOW, LOW],
        move || caller.call(rounds, deadline_ns, samples),
        move || answerer.answer(deadline_ns),
    )
}

#[derive(Debug, Default)]
struct Words {
    request: AtomicU32,
    reply: AtomicU32,
    /// Nobody ever sleeps on it.
    deserted: AtomicU32,
}

impl Words {
    fn call(&self, rounds: u32, deadline_ns: u64, mut samples: Samples) -> Samples {
        for round in 1..=rounds {
            let begin_ns = monotonic_ns();
            self.wake_nobody_and_sleep_not(round);
            let request_ns = monotonic_ns();
            self.request.store(round, Release);
            futex::wake(&self.request, 1);
            let reply = sleep_while(&self.reply, round - 1, Some(deadline_ns));
            let reply_ns = monotonic_ns();
            if reply.is_none() {
                break;
            }
            if round > WARM_UP {
                let half_ns = (reply_ns - request_ns).div_ceil(2);
                samples.push(half_ns, request_ns - begin_ns);
            }
        }
        self.request.store(OVER, Release);
        futex::wake(&self.request, 1);
        samples
    }

    fn answer(&self, deadline_ns: u64) {
        let mut seen = 0;
        while let Some(request) = sleep_while(&self.request, seen, Some(deadline_ns))
            && request != OVER
        {
            seen = request;
            self.reply.store(seen, Release);
            futex::wake(&self.reply, 1);
        }
    }

    /// The same two calls, which find nobody to wake and no reason to sleep.
    fn wake_nobody_and_sleep_not(&self, round: u32) {
        self.deserted.store(round, Release);
        futex::wake(&self.deserted, 1);
        futex::wait(&self.deserted, round - 1, None);
    }
}
