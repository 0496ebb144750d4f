//! A copy of this process that only ends: what fork(2) costs, for loading a host with it.

use crate::refused::{Refused, What};
use crate::sched::last_error;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

/// Makes a copy of the calling process that ends at once, and waits until it has.
///
/// The kernel copies the page tables of all memory that this process has touched, and takes them down again. The copy runs no
/// code of the program, so that it does not matter what other threads were doing; it stays in the process group, and lives for
/// less than a millisecond when the CPU is free.
///
/// # Errors
/// [`Refused`] when there may be no more processes, or no memory for the page tables.
pub fn fork_and_wait() -> Result<(), Refused> {
    // SAFETY: the copy makes one call, which may be made in a copy of a process with threads, signal-safety(7).
    let copy = match unsafe { libc::fork() } {
        // SAFETY: it ends the copy, and runs nothing that was registered for the end of this process.
        0 => unsafe { libc::_exit(0) },
        copy => copy,
    };
    let Some(copy) = (copy > 0).then(|| Pid::from_raw(copy)).flatten() else {
        return Err(refused(last_error()));
    };
    loop {
        match waitpid(Some(copy), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(refused(errno)),
            Ok(_) => return Ok(()),
        }
    }
}

fn refused(errno: Errno) -> Refused {
    Refused {
        what: What::Process,
        errno,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_comes_and_goes() {
        for _ in 0..3 {
            fork_and_wait().expect("forked");
        }
        let none = waitpid(None, WaitOptions::NOHANG).unwrap_err();
        assert_eq!(none, Errno::CHILD, "a copy stayed");
    }
}
