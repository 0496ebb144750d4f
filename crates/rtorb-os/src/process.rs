//! A child process that only ends, to load a host with the cost of fork(2).

use crate::refused::{Refused, Resource};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitOptions, waitpid};

/// Forks a child that ends at once, and waits until it has ended.
///
/// The kernel copies the page tables of all memory that this process has touched, and frees the copy again. The child runs
/// no code of the program, so it does not depend on what other threads were doing. It stays in the process group, and lives
/// for less than a millisecond when the CPU is free.
///
/// # Errors
/// [`Refused`] when the limit on processes is reached, or memory for the page tables is short.
pub fn fork_and_wait() -> Result<(), Refused> {
    // SAFETY: the child calls `_exit` only, which is safe after a fork with threads (signal-safety(7)).
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it ends the child without running exit handlers of this process.
        unsafe { libc::_exit(0) };
    }
    Resource::Process.check(i64::from(child).min(0))?;
    let waited = retry_on_intr(|| waitpid(Pid::from_raw(child), WaitOptions::empty()));
    waited
        .map(|_| ())
        .map_err(|errno| Resource::Process.refused(errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_child_is_forked_and_reaped() {
        for _ in 0..3 {
            fork_and_wait().expect("forked");
        }
        // Of this thread alone: another test of the process may have a child.
        let of_thread = WaitOptions::from_bits_retain(libc::__WNOTHREAD.cast_unsigned());
        let none = waitpid(None, WaitOptions::NOHANG | of_thread).unwrap_err();
        assert_eq!(none, Errno::CHILD, "a child is left");
    }
}
