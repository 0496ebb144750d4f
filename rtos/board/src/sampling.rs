//! How samples are taken: the clock is coarser than an instruction, so each sample is the sum over 40 executions that begin at
//! different places between two of its counts.

use crate::timer::{self, INSTRUCTIONS};
use core::sync::atomic::{AtomicU32, Ordering};

/// Samples of an operation in a round.
pub const SAMPLES: usize = 10;
/// Wake-ups in a round. They are single ones: the latest counts.
pub const WAKEUPS: usize = 100;

/// A moment that one task notes, and the time until another one has what the first gave: the end of a hand-over.
#[derive(Debug, Default)]
pub struct HandOver {
    begin: AtomicU32,
    counts: AtomicU32,
}

impl HandOver {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            begin: AtomicU32::new(0),
            counts: AtomicU32::new(0),
        }
    }

    /// Notes the beginning.
    #[inline(always)]
    pub fn begin(&self) {
        self.begin.store(timer::now(), Ordering::Relaxed);
    }

    /// Notes the end.
    #[inline(always)]
    pub fn end(&self) {
        let counts = timer::since(self.begin.load(Ordering::Relaxed));
        self.counts.store(counts, Ordering::Relaxed);
    }

    /// Counts from the beginning to the end.
    pub fn counts(&self) -> u32 {
        self.counts.load(Ordering::Relaxed)
    }
}

/// Instructions of an operation, [`SAMPLES`] times. `once` executes it and returns the counts that it took.
///
/// What it takes to read the clock is not in them.
pub fn of(mut once: impl FnMut() -> u32) -> [u32; SAMPLES] {
    let reading = summed(&mut || timed(|| {}));
    // Partners come to the place where they wait.
    once();
    core::array::from_fn(|_| summed(&mut once).saturating_sub(reading))
}

/// The same of an operation that waits, in a task that is a future.
pub async fn of_async(mut once: impl AsyncFnMut() -> u32) -> [u32; SAMPLES] {
    let reading = summed(&mut || timed(|| {}));
    once().await;
    let mut samples = [0; SAMPLES];
    for sample in &mut samples {
        for place in 0..INSTRUCTIONS {
            cortex_m::asm::delay(place);
            *sample += once().await;
        }
        *sample = sample.saturating_sub(reading);
    }
    samples
}

/// Counts of one execution in the calling task.
#[inline(always)]
pub fn timed(operation: impl FnOnce()) -> u32 {
    let begin = timer::now();
    operation();
    timer::since(begin)
}

/// Takes what the same calls take without a switch from each sample.
pub fn less<const N: usize>(samples: [u32; N], uncontended: [u32; SAMPLES]) -> [u32; N] {
    let usual = uncontended.into_iter().min().unwrap_or_default();
    samples.map(|sample| sample.saturating_sub(usual))
}

/// The mean in instructions: as many executions as a count has instructions.
fn summed(once: &mut dyn FnMut() -> u32) -> u32 {
    let mut counts = 0;
    for place in 0..INSTRUCTIONS {
        cortex_m::asm::delay(place);
        counts += once();
    }
    counts
}
