//! A child process that only ends, to load a host with the cost of fork(2).

use crate::{InstrumentError, check};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, WaitOptions, waitpid};

/// Forks a child that ends at once, and waits until it has ended.
///
/// The kernel copies the page tables of all memory that this process has touched, and frees the copy again. The child runs
/// no code of the program, so it does not depend on what other threads were doing. It stays in the process group, and lives
/// for less than a millisecond when the CPU is free.
///
/// # Errors
/// The limit on processes is reached, or memory for the page tables is short.
pub fn fork_and_wait() -> Result<(), InstrumentError> {
    // SAFETY: the child calls `_exit` only, which is safe after a fork with threads (signal-safety(7)).
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it ends the child without running exit handlers of this process.
        unsafe { libc::_exit(0) };
    }
    check(child.min(0)).map_err(refused)?;
    let waited = retry_on_intr(|| waitpid(Pid::from_raw(child), WaitOptions::empty()));
    waited.map(|_| ()).map_err(refused)
}

fn refused(errno: Errno) -> InstrumentError {
    InstrumentError {
        instrument: "a new process",
        errno,
        remedy: "lower the number of processes or their memory, or raise `ulimit -u` or the memory limit of the control group",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_refusal_says_what_to_do() {
        let text = refused(Errno::AGAIN).to_string();
        assert!(
            text.contains("a new process") && text.contains("ulimit -u"),
            "{text}"
        );
    }
}
