//! Two threads of equal priority that call sched_yield(2) again and again: a yield of the one ends when the other has yielded.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::thread::yield_now;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;

use super::{Pauses, Question, Samples, Urgency, deadline_ns, run};
use crate::contestants::ping_pong::futex::sleep_while;
use crate::processes::probe::Answer;

pub(super) fn time(question: &Question) -> Result<Answer, String> {
    let timed = Arc::new(Turns::default());
    let other = Arc::clone(&timed);
    let (samples, pauses) = (Samples::of(question), Pauses::of(question));
    run(
        question,
        Box::new(move || Ok(Some(timed.time(samples, pauses)))),
        Some((
            Urgency::Same,
            Box::new(move || {
                other.take();
                Ok(None)
            }),
        )),
    )
}

/// What the two threads tell each other.
#[derive(Debug, Default)]
struct Turns {
    /// How often the other thread ran.
    count: AtomicU64,
    /// While it is set, the other thread sleeps on it.
    resting: AtomicU32,
    over: AtomicBool,
}

impl Turns {
    fn time(&self, mut samples: Samples, mut pauses: Pauses) -> Samples {
        loop {
            self.pause(&mut pauses);
            let before = self.count.load(Relaxed);
            let begin_ns = monotonic_ns();
            yield_now();
            let goes_on = samples.end(begin_ns);
            if self.count.load(Relaxed) != before + 1 {
                samples.not_in_turn += 1;
            }
            if !goes_on {
                break;
            }
        }
        self.over.store(true, Relaxed);
        samples
    }

    /// The other thread sleeps meanwhile: as it yields again and again, it would leave the load nothing.
    fn pause(&self, pauses: &mut Pauses) {
        if pauses.ns_max == 0 {
            return;
        }
        self.resting.store(RESTING, Release);
        yield_now();
        pauses.pause();
        self.resting.store(AWAKE, Release);
        futex::wake(&self.resting, 1);
        // It wakes up and yields, as it does in the round trip that is timed.
        yield_now();
    }

    fn take(&self) {
        let deadline_ns = deadline_ns();
        let mut turn = 0;
        // The clock is read rarely, since that is a part of what is timed.
        while !self.over.load(Relaxed) && (turn % 1_024 != 0 || monotonic_ns() < deadline_ns) {
            sleep_while(&self.resting, RESTING, Some(deadline_ns));
            turn += 1;
            self.count.store(turn, Relaxed);
            yield_now();
        }
    }
}

const AWAKE: u32 = 0;
const RESTING: u32 = 1;
