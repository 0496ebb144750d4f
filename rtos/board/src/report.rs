//! What a guest found, as lines of text on the first serial line. The kernel laboratory reads them
//! (`crates/rtorb-kernels/src/board/answer.rs`).
//!
//! ```text
//! rtorb-guest/1
//! release FreeRTOS (freertos-in-rust 0.3.0), Cortex-M3
//! preempt priority
//! samples 0 yield 120 120 120
//! without tick it has none
//! end
//! ```

use crate::uart::UARTS;
use alloc::string::ToString;
use rtorb_embedded_cubit::calls::CALLS;
use rtorb_embedded_cubit::cubit::Cubit;

use crate::sampling::{self, timed};

/// The report being written.
#[derive(Debug)]
pub struct Report(());

impl Report {
    /// Begins, with what the kernel calls itself, and how it chooses the task that runs.
    pub fn begin(release: &str, preempt: &str) -> Self {
        UARTS[0].begin(false);
        let mut report = Self(());
        report.line(&["rtorb-guest/1"]);
        report.line(&["release", release]);
        report.line(&["preempt", preempt]);
        report
    }

    /// The samples of an operation in a round, in instructions.
    pub fn samples(&mut self, round: u32, operation: &str, instructions: &[u32]) {
        self.words(&["samples", &round.to_string(), operation]);
        for sample in instructions {
            self.words(&["", &sample.to_string()]);
        }
        UARTS[0].send(b"\n");
    }

    /// That the kernel has no such operation, and why.
    pub fn without(&mut self, operation: &str, why: &str) {
        self.line(&["without", operation, why]);
    }

    /// The samples of each call of the Cubit at the other end of a link.
    ///
    /// # Panics
    /// When an answer is wrong.
    pub fn calls(&mut self, round: u32, cubit: &Cubit) {
        for call in &CALLS {
            let once = || timed(|| assert_eq!(call.check(cubit), Ok(true), "{}", call.operation));
            self.samples(round, call.operation, &sampling::of(once));
        }
    }

    /// Ends.
    pub fn end(mut self) {
        self.line(&["end"]);
    }

    fn line(&mut self, words: &[&str]) {
        self.words(words);
        UARTS[0].send(b"\n");
    }

    fn words(&mut self, words: &[&str]) {
        for (place, word) in words.iter().enumerate() {
            if place > 0 {
                UARTS[0].send(b" ");
            }
            UARTS[0].send(word.as_bytes());
        }
    }
}
