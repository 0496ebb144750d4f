//! Two threads of equal priority that call sched_yield(2) again and again: each goes behind the other.
//!
//! A sample is the mean of a batch of yields, which is short, so that what else the host does falls into few of them.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::thread::yield_now;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;

use super::YIELDS;
use crate::contestants::ping_pong::futex::sleep_while;
use crate::experiments::os_services::probe::{Question, Samples, Urgency, deadline_ns, run};
use crate::processes::probe::Answer;

pub(super) fn time(question: &Question) -> Result<Answer, String> {
    let timed = Arc::new(Yields::default());
    let other = Arc::clone(&timed);
    let samples = Samples::in_pairs(question);
    let alone_ns = Vec::with_capacity(samples.room() as usize);
    let deadline_ns = deadline_ns();
    run(
        question,
        Box::new(move || Ok(Some(timed.time(deadline_ns, alone_ns, samples)))),
        Some((
            Urgency::Same,
            Box::new(move || {
                other.take_turns(deadline_ns);
                Ok(None)
            }),
        )),
    )
}

#[derive(Debug, Default)]
struct Yields {
    begun: AtomicU32,
    /// How often the other thread ran.
    turns: AtomicU64,
    over: AtomicBool,
}

impl Yields {
    fn time(&self, deadline_ns: u64, mut alone_ns: Vec<u64>, mut samples: Samples) -> Samples {
        for _ in 0..samples.room() {
            let begin_ns = monotonic_ns();
            (0..YIELDS).for_each(|_| yield_now());
            let end_ns = monotonic_ns();
            alone_ns.push((end_ns - begin_ns) / u64::from(YIELDS));
            if end_ns > deadline_ns {
                break;
            }
        }
        self.begun.store(1, Release);
        futex::wake(&self.begun, 1);
        for (round, alone_ns) in (1..).zip(alone_ns) {
            let begin_ns = monotonic_ns();
            let in_turns = self.yield_in_turns();
            let end_ns = monotonic_ns();
            if !in_turns {
                samples.miss(round);
            } else if !samples.keep_pair(
                (end_ns - begin_ns) / u64::from(2 * YIELDS),
                alone_ns,
                end_ns,
            ) {
                break;
            }
            if end_ns > deadline_ns {
                break;
            }
        }
        self.over.store(true, Relaxed);
        samples
    }

    /// Whether the other thread ran once in every yield of the batch, as it does under SCHED_FIFO on one CPU.
    fn yield_in_turns(&self) -> bool {
        let mut in_turns = true;
        for _ in 0..YIELDS {
            let turns = self.turns.load(Relaxed);
            yield_now();
            in_turns &= self.turns.load(Relaxed) == turns + 1;
        }
        in_turns
    }

    fn take_turns(&self, deadline_ns: u64) {
        sleep_while(&self.begun, 0, Some(deadline_ns));
        let mut turn = 0;
        // The clock is read rarely, since that is a part of what is timed.
        while !self.over.load(Relaxed) && (turn % 1_024 != 0 || monotonic_ns() < deadline_ns) {
            turn += 1;
            self.turns.store(turn, Relaxed);
            yield_now();
        }
    }
}
