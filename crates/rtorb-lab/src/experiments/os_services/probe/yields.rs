//! Two threads of equal priority that call sched_yield(2) again and again: a yield of the one ends when the other has yielded.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::yield_now;

use rtorb_os::clock::monotonic_ns;

use super::{Pauses, Question, Samples, Urgency, deadline_ns, run};
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
    over: AtomicBool,
}

impl Turns {
    fn time(&self, mut samples: Samples, mut pauses: Pauses) -> Samples {
        loop {
            pauses.pause();
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

    fn take(&self) {
        let deadline_ns = deadline_ns();
        let mut turn = 0;
        // The clock is read rarely, since that is a part of what is timed.
        while !self.over.load(Relaxed) && (turn % 1_024 != 0 || monotonic_ns() < deadline_ns) {
            turn += 1;
            self.count.store(turn, Relaxed);
            yield_now();
        }
    }
}
