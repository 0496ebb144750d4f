//! A file of records, one JSON object a line.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use rtorb_os::sync::Mutex;

use super::Record;

/// A recorded session in a file. It is complete up to the last call that has ended.
#[derive(Debug)]
pub struct Log {
    state: Mutex<State>,
    bytes_max: u64,
}

#[derive(Debug)]
struct State {
    file: File,
    bytes: u64,
    is_broken: bool,
}

/// The reason why a record, and all later ones, are not in the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file cannot be written.
    #[error("the recording ends here: {0}")]
    File(#[from] io::Error),
    /// The record would make the file larger than its bound.
    #[error("the recording ends here: it would exceed {bytes_max} bytes")]
    Full {
        /// The bound.
        bytes_max: u64,
    },
}

impl Log {
    /// Creates the file, or truncates it. It never becomes larger than `bytes_max` bytes.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, bytes_max: u64) -> io::Result<Self> {
        let state = State {
            file: File::create(path)?,
            bytes: 0,
            is_broken: false,
        };
        Ok(Self {
            state: Mutex::new(state),
            bytes_max,
        })
    }

    /// Writes a record. After an error it writes nothing more, so that no session has a gap.
    ///
    /// # Errors
    /// [`LogError`], once.
    pub fn write(&self, record: &Record) -> Result<(), LogError> {
        let mut line = serde_json::to_vec(record).map_err(io::Error::from)?;
        line.push(b'\n');
        let mut state = self.state.lock();
        if state.is_broken {
            return Ok(());
        }
        state.bytes += line.len() as u64;
        let written = if state.bytes > self.bytes_max {
            let bytes_max = self.bytes_max;
            Err(LogError::Full { bytes_max })
        } else {
            state.file.write_all(&line).map_err(LogError::from)
        };
        state.is_broken = written.is_err();
        written
    }

    /// True if all records are in the file.
    pub fn is_complete(&self) -> bool {
        !self.state.lock().is_broken
    }
}
