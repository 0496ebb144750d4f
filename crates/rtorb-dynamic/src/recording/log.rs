//! A file of records, one JSON object a line.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

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

/// A recorded session in several files: when one is full, it gets a number behind its name, and a new one takes its place.
#[derive(Debug)]
pub struct RotatingLog {
    path: PathBuf,
    log: Log,
    bytes_max: u64,
    /// The full files that stay; `None` if the session ends with the first.
    kept: Option<u32>,
}

impl RotatingLog {
    /// Creates the file, or truncates it. Each file has at most `bytes_max` bytes. The last `kept` full ones stay: `PATH.1` is the newest.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, bytes_max: u64, kept: u32) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            log: Log::create(path, bytes_max)?,
            bytes_max,
            kept: Some(kept),
        })
    }

    /// Creates the file, or truncates it. The session ends when it has `bytes_max` bytes.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn ending(path: &Path, bytes_max: u64) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            log: Log::create(path, bytes_max)?,
            bytes_max,
            kept: None,
        })
    }

    /// Writes a record.
    ///
    /// # Errors
    /// [`LogError`]: if a file cannot be written or renamed, or the record alone is larger than a file may be.
    pub fn write(&mut self, record: &Record) -> Result<(), LogError> {
        match self.log.write(record) {
            Err(error @ LogError::Full { .. }) => {
                let Some(kept) = self.kept else {
                    return Err(error);
                };
                self.rotate(kept)?;
                self.log.write(record)
            }
            written => written,
        }
    }

    fn rotate(&mut self, kept: u32) -> io::Result<()> {
        for number in (1..kept).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                renamed => renamed?,
            }
        }
        if kept > 0 {
            fs::rename(&self.path, self.numbered(1))?;
        }
        self.log = Log::create(&self.path, self.bytes_max)?;
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_get_numbers_and_the_last_ones_stay() {
        let folder = rtorb_tests::scratch::Scratch::new();
        let path = folder.join("session.jsonl");
        let record = |number: u64| Record {
            duration_ns: number,
            ..Record::default()
        };
        let line_bytes = serde_json::to_vec(&record(1)).expect("a line").len() as u64 + 1;
        let mut log = RotatingLog::create(&path, 2 * line_bytes, 2).expect("a file");
        for number in 1..=8 {
            log.write(&record(number)).expect("it is written");
        }
        let numbers = |name: &str| -> Vec<u64> {
            let text = fs::read_to_string(folder.join(name)).expect("a file");
            let records = text.lines().map(serde_json::from_str::<Record>);
            records
                .map(|it| it.expect("a record").duration_ns)
                .collect()
        };
        assert_eq!(numbers("session.jsonl"), [7, 8]);
        assert_eq!(numbers("session.jsonl.1"), [5, 6]);
        assert_eq!(numbers("session.jsonl.2"), [3, 4]);
        assert!(!folder.join("session.jsonl.3").exists());
        let mut log = RotatingLog::create(&path, 5, 2).expect("a file");
        assert!(matches!(log.write(&record(1)), Err(LogError::Full { .. })));
    }
}
