//! Waits for what comes from a process or a peer.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Which of these sources have something, or have ended. Waits for that, at most so long. A source that is `None` has nothing.
pub(super) fn readable<const N: usize>(
    sources: [Option<BorrowedFd<'_>>; N],
    wait: Duration,
) -> [bool; N] {
    let wait = Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    };
    let all = sources.iter().flatten();
    let mut fds: Vec<PollFd<'_>> = all
        .map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN))
        .collect();
    // An error, such as a signal, means that the next turn looks again.
    let any = matches!(poll(&mut fds, Some(&wait)), Ok(ready) if ready > 0);
    let mut found = fds.iter().map(|fd| any && !fd.revents().is_empty());
    sources.map(|source| source.is_some() && found.next().unwrap_or(false))
}

/// The same of one source.
pub(super) fn is_readable(source: BorrowedFd<'_>, wait: Duration) -> bool {
    readable([Some(source)], wait) == [true]
}

/// Returns the time in nanoseconds; 292 years for one that does not fit.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}
