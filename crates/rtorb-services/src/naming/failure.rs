//! Why the store keeps no more changes, as clients learn it from an exception.

use core::fmt;
use rtorb::exception::{RTORB, local};
use rtorb::{ExceptionKind, SystemException};

/// Why the store of a naming service did not keep a change.
///
/// The minor code of PERSIST_STORE says it, or of TRANSIENT.
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
    /// The program of the store has a fault: a commit panicked.
    Panicked,
    /// The store is shared with other naming services, and does not answer. The exception is TRANSIENT.
    Unavailable,
    /// The store is shared with other naming services, and refuses the change.
    Refused,
}

impl StoreFailure {
    /// The reason in an exception of a naming service, if it has one.
    pub fn of_exception(exception: &SystemException) -> Option<Self> {
        let unavailable = local::STORE_UNAVAILABLE;
        if (exception.kind, exception.minor) == (unavailable.kind, unavailable.minor) {
            return Some(Self::Unavailable);
        }
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
            Self::Panicked => "start the naming service again, and report the message of the panic",
            Self::Unavailable => {
                "see that the store runs and is reached from there; the naming service then goes on by itself"
            }
            Self::Refused => {
                "read the reason in the warnings of the naming service; an etcd at its quota is compacted and defragmented, and its alarm disarmed"
            }
        }
    }

    pub(super) const fn code(self) -> u32 {
        match self {
            Self::DiskFull => 1,
            Self::QuotaExceeded => 2,
            Self::FileTooLarge => 3,
            Self::ReadOnly => 4,
            Self::Disk => 5,
            Self::Damaged => 6,
            Self::Panicked => 7,
            Self::Unavailable => 8,
            Self::Refused => 9,
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
            Self::Panicked => "its store has panicked",
            Self::Unavailable => "its shared store does not answer",
            Self::Refused => "its shared store refuses the change",
        })
    }
}

const ALL: [StoreFailure; 9] = [
    StoreFailure::DiskFull,
    StoreFailure::QuotaExceeded,
    StoreFailure::FileTooLarge,
    StoreFailure::ReadOnly,
    StoreFailure::Disk,
    StoreFailure::Damaged,
    StoreFailure::Panicked,
    StoreFailure::Unavailable,
    StoreFailure::Refused,
];

#[cfg(all(test, feature = "naming-service"))]
mod tests {
    use super::*;
    use rtorb::CompletionStatus;

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
}
