//! Waits for what comes from a process or a peer.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether a source has something, or has ended. Waits for that, at most so long.
pub(super) fn is_readable(source: BorrowedFd<'_>, wait: Duration) -> bool {
    let wait = Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    };
    let mut fds = [PollFd::from_borrowed_fd(source, PollFlags::IN)];
    // An error, such as a signal, means that the next turn looks again.
    matches!(poll(&mut fds, Some(&wait)), Ok(ready) if ready > 0)
}

/// Returns the time in nanoseconds; 292 years for one that does not fit.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}
