//! Why the store keeps no more changes: for the log, and for the exception that clients get.

use core::fmt;
use rtorb::exception::RTORB;
use rtorb::{CompletionStatus, ExceptionKind, Orb, SystemException, Warning};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Why the store of a naming service did not keep a change.
///
/// It travels as the minor code of PERSIST_STORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreFailure {
    /// No space is left on the disk (ENOSPC).
    DiskFull,
    /// The disk quota of the service's user is used up (EDQUOT).
    QuotaExceeded,
    /// The file is as large as the process or its file system allows (EFBIG).
    FileTooLarge,
    /// The file system is mounted read-only (EROFS).
    ReadOnly,
    /// The disk reported another error.
    Disk,
    /// The store contradicts itself.
    Damaged,
}

impl StoreFailure {
    /// The reason in an exception of a naming service, if it has one.
    pub fn of_exception(exception: &SystemException) -> Option<Self> {
        let code = exception.minor.checked_sub(RTORB)?;
        let known = ALL.iter().find(|failure| failure.code() == code);
        known
            .copied()
            .filter(|_| exception.kind == ExceptionKind::PersistStore)
    }

    /// What the operator of the service does about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::DiskFull => "free space on that disk, then start the naming service again",
            Self::QuotaExceeded => {
                "free space or raise the quota of its user, then start the naming service again"
            }
            Self::FileTooLarge => {
                "raise RLIMIT_FSIZE or move the store to another file system, then start the naming service again"
            }
            Self::ReadOnly => {
                "mount the file system for writing, then start the naming service again"
            }
            Self::Disk => {
                "check the disk and the kernel's log, then start the naming service again"
            }
            Self::Damaged => "restore the store from a copy, then start the naming service again",
        }
    }

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
        SystemException::new(ExceptionKind::PersistStore, RTORB | self.code(), completed)
    }

    const fn code(self) -> u32 {
        match self {
            Self::DiskFull => 1,
            Self::QuotaExceeded => 2,
            Self::FileTooLarge => 3,
            Self::ReadOnly => 4,
            Self::Disk => 5,
            Self::Damaged => 6,
        }
    }
}

impl fmt::Display for StoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DiskFull => "the disk of its store is full",
            Self::QuotaExceeded => "the disk quota of its user is used up",
            Self::FileTooLarge => "the file of its store cannot grow further",
            Self::ReadOnly => "the file system of its store is read-only",
            Self::Disk => "the disk of its store reports an error",
            Self::Damaged => "its store is damaged",
        })
    }
}

const ALL: [StoreFailure; 6] = [
    StoreFailure::DiskFull,
    StoreFailure::QuotaExceeded,
    StoreFailure::FileTooLarge,
    StoreFailure::ReadOnly,
    StoreFailure::Disk,
    StoreFailure::Damaged,
];

/// The log of a naming service.
pub trait StoreLog: fmt::Debug + Send + Sync {
    /// Reports that commits begin to fail for this reason. `detail` is the text of the operating system or of the store.
    ///
    /// The thread that made the commit calls it, so it should not wait.
    fn failed(&self, file: &Path, failure: StoreFailure, detail: &str);
}

/// Makes each failure a warning of the ORB.
#[derive(Clone, Debug)]
pub(super) struct OrbWarnings(pub(super) Orb);

impl StoreLog for OrbWarnings {
    fn failed(&self, file: &Path, failure: StoreFailure, detail: &str) {
        self.0
            .warn(&Warning::Service(log_line(file, failure, detail)));
    }
}

/// Reports nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoLog;

impl StoreLog for NoLog {
    fn failed(&self, _: &Path, _: StoreFailure, _: &str) {}
}

fn log_line(file: &Path, failure: StoreFailure, detail: &str) -> String {
    format!(
        "the naming service cannot store changes in {}: {failure} ({detail}); clients get PERSIST_STORE, names are still resolved; {}",
        file.display(),
        failure.advice()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_carries_the_reason() {
        for failure in ALL {
            let exception = failure.exception(CompletionStatus::No);
            assert_eq!(StoreFailure::of_exception(&exception), Some(failure));
        }
        let others = [
            SystemException::from(ExceptionKind::PersistStore),
            SystemException::new(ExceptionKind::Transient, RTORB | 1, CompletionStatus::No),
            SystemException::new(
                ExceptionKind::PersistStore,
                RTORB | 99,
                CompletionStatus::No,
            ),
        ];
        for other in others {
            assert_eq!(StoreFailure::of_exception(&other), None);
        }
    }

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
