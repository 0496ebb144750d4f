//! Memory that is there when it is needed.

use crate::refused::{Refused, What};
use rustix::mm::{MlockAllFlags, mlockall, munlockall};

/// Keeps all pages of the process in memory, those mapped now and later.
///
/// # Errors
/// [`Refused`] when the limit on locked memory is too low.
pub fn lock_all() -> Result<(), Refused> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|errno| Refused {
        what: What::MemoryLock,
        errno,
    })
}

/// Lets pages be moved out again.
pub fn unlock_all() {
    // It has no way to fail for a process that exists.
    let _ = munlockall();
}
