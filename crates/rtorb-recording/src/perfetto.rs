//! The file of a recording: a trace of Perfetto (protos/perfetto/trace/trace.proto of its sources), which ui.perfetto.dev draws.
//!
//! * Each host has a track `host NAME`, described by `boot ID`, with one instant, whose annotations say what the kernel's record has. Packets of all hosts but the
//!   first have a machine id. Times are on the clock of the first host.
//! * Each process and each thread has its track. A client's call is a slice from its begin to the reply, with a slice `reply awaited` in it.
//!   A servant's call is a slice of its execution, and one in the thread's track `queue of NAME` while its request waited. Calls that overlap
//!   on one thread without one being in the other are on further tracks. Annotations have the rest of [`CallRecord`](crate::CallRecord).
//! * Arrows lead from a client's `reply awaited` to the servant's queue and execution.
//! * Calls that were lost are counted by an instant `calls lost` on the thread, threads that were not recorded by one on the process.
//! * The kernel's events are ftrace bundles, so that CPUs and thread states are drawn: `sched_switch`, `sched_waking`,
//!   `irq_handler_entry` and `irq_handler_exit` (of all interrupts), and a generic event for a page fault.

mod ftrace;
mod messages;
mod read;
mod rows;
mod write;

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

use prost::Message as _;

use crate::joins::Joins;
use crate::records::Recording;

/// Why a recording was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is larger than a recording may be.
    #[error("{} has more than {} bytes, and a recording has not: record a shorter time", path.display(), Recording::BYTES_MAX)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is no recording.
    #[error("{} is no recording of rtorb: {what}. `rtorb trace` writes one", path.display())]
    NoRecording {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl Recording {
    /// The largest file that is read, in bytes. [`gathering`](crate::gathering) makes no larger one.
    pub const BYTES_MAX: u64 = 1536 * 1024 * 1024;

    /// Writes a file with this content. Returns the calls that are not in it, because their times are in no order.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, path: &Path) -> Result<u64, RecordingError> {
        let (bytes, left_out) = self.to_bytes();
        fs::write(path, bytes).map_err(|source| RecordingError::File {
            path: path.to_owned(),
            source,
        })?;
        Ok(left_out)
    }

    /// Reads a file that [`Self::write`] has written, or several such files one after another.
    ///
    /// # Errors
    /// That the file cannot be read, is too large, or is no recording, with the reason.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let failed = |source| RecordingError::File {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        // The file may be a device or a pipe, which do not say their size.
        let mut bounded = BufReader::new(file.take(Self::BYTES_MAX + 1));
        let read = read::recording(&mut bounded);
        let path = path.to_owned();
        if bounded.get_ref().limit() == 0 {
            return Err(RecordingError::TooLarge { path });
        }
        read.map_err(|what| RecordingError::NoRecording { path, what })
    }

    /// Returns the bytes of a file, and how many calls are not in it.
    pub fn to_bytes(&self) -> (Vec<u8>, u64) {
        let joins = Joins::of(self);
        let (trace, left_out) = write::trace(self, &joins);
        (trace.encode_to_vec(), left_out)
    }

    /// Returns the recording of a file with these bytes.
    ///
    /// # Errors
    /// Why they are none.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        read::recording(bytes)
    }
}

#[cfg(test)]
mod tests;
