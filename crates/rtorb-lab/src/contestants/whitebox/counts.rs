//! What a process has counted of itself, and the kernel of it.

use std::time::Duration;

use super::threads::ThreadSums;
use crate::error::LabError;
use crate::processes::Process;
pub use crate::processes::counts::Counts;
use crate::processes::questions;

/// What a process has counted of itself, and what the kernel has counted for its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// By the process.
    pub counts: Counts,
    /// By the kernel.
    pub threads: ThreadSums,
}

impl Reading {
    /// Asks a process that answers questions in JSON.
    ///
    /// # Errors
    /// That the process ended or was silent.
    pub fn ask(process: &mut Process) -> Result<Self, LabError> {
        let counts = process.ask(&questions::COUNTS, Duration::ZERO)?;
        Self::with(counts, process)
    }

    /// Adds what the kernel has to what the process itself has counted.
    ///
    /// # Errors
    /// That the process ended.
    pub fn with(counts: Counts, process: &Process) -> Result<Self, LabError> {
        let threads = ThreadSums::of(process.id());
        let failed = || LabError::process(process.name(), "its threads cannot be read");
        Ok(Self {
            counts,
            threads: threads.ok_or_else(failed)?,
        })
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            counts: self.counts.since(earlier.counts),
            threads: self.threads.since(earlier.threads),
        }
    }
}
