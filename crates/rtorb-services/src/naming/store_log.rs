//! A store that fails: the reason, the exception of the clients, and the log.

use super::failure::StoreFailure;
use core::fmt;
use rtorb::exception::{RTORB, local};
use rtorb::{CompletionStatus, ExceptionKind, Orb, SystemException, Warning};
use std::io::{self, ErrorKind};
use std::path::Path;

impl StoreFailure {
    pub(super) fn of(error: &redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => Self::of_io(error),
            redb::Error::PreviousIo => Self::Disk,
            _ => Self::Damaged,
        }
    }

    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull => Self::DiskFull,
            ErrorKind::QuotaExceeded => Self::QuotaExceeded,
            ErrorKind::FileTooLarge => Self::FileTooLarge,
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Disk,
        }
    }

    /// The exception that the client of a change gets.
    pub(super) fn exception(self, completed: CompletionStatus) -> SystemException {
        if self == Self::Unavailable {
            return local::STORE_UNAVAILABLE.with_completion(completed);
        }
        SystemException::new(ExceptionKind::PersistStore, RTORB | self.code(), completed)
    }
}

/// The log of a naming service.
pub trait StoreLog: fmt::Debug + Send + Sync {
    /// Reports that commits begin to fail for this reason. `detail` is the text of the operating system or of the store.
    ///
    /// The thread that made the commit calls it, so it should not wait.
    fn failed(&self, file: &Path, failure: StoreFailure, detail: &str);

    /// Reports that a shared store, which failed before, works again.
    fn recovered(&self, _store: &Path) {}
}

/// Makes each failure a warning of the ORB.
#[derive(Clone, Debug)]
pub(super) struct OrbWarnings(pub(super) Orb);

impl StoreLog for OrbWarnings {
    fn failed(&self, file: &Path, failure: StoreFailure, detail: &str) {
        self.0
            .warn(&Warning::Service(log_line(file, failure, detail)));
    }

    fn recovered(&self, store: &Path) {
        let line = format!(
            "the naming service stores changes in {} again",
            store.display()
        );
        self.0.warn(&Warning::Service(line));
    }
}

/// Reports nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoLog;

impl StoreLog for NoLog {
    fn failed(&self, _: &Path, _: StoreFailure, _: &str) {}
}

fn log_line(file: &Path, failure: StoreFailure, detail: &str) -> String {
    let exception = match failure {
        StoreFailure::Unavailable => "TRANSIENT",
        _ => "PERSIST_STORE",
    };
    format!(
        "the naming service cannot store changes in {}: {failure} ({detail}); clients get {exception}, names are still resolved; {}",
        file.display(),
        failure.advice()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_what_failed_where_and_what_to_do() {
        let full = io::Error::from_raw_os_error(28);
        let failure = StoreFailure::of_io(&full);
        let line = log_line(Path::new("/var/names"), failure, &full.to_string());
        for part in [
            "/var/names",
            "disk of its store is full",
            "os error 28",
            "free space",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
}
