//! Processes of the host: each seed runs in a copy of this one, which begins with the same memory.
#![expect(unsafe_code, reason = "foreign functions")]

use rtorb_os::sched::apply_affinity;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A child process, and what it has written.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) number: i32,
    output: File,
}

/// A seed that takes longer hangs.
const SECONDS_MAX: u32 = 60;

impl Child {
    /// Runs `work` in a copy of this process, on one processor.
    pub(crate) fn fork(cpu: usize, work: impl FnOnce()) -> Self {
        let output = memfd_create("output", MemfdFlags::CLOEXEC);
        let output = File::from(output.expect("the host has a descriptor"));
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                for standard in [1, 2] {
                    // SAFETY: both descriptors are open.
                    unsafe { libc::dup2(output.as_raw_fd(), standard) };
                }
                // SAFETY: it takes one number.
                unsafe { libc::alarm(SECONDS_MAX) };
                // One processor for all threads: they take turns, and a turn costs least if nothing moves. Elsewhere it is only slower.
                let _ = apply_affinity(&[cpu]);
                work();
                crate::calls::threads::exit_at_once(0)
            }
            number => {
                assert!(number > 0, "the host has a process");
                Self { number, output }
            }
        }
    }

    /// Everything that it has written.
    pub(crate) fn output(mut self) -> String {
        let mut bytes = Vec::new();
        let read = self
            .output
            .rewind()
            .and_then(|()| self.output.read_to_end(&mut bytes));
        read.map_or_else(
            |error| error.to_string(),
            |_| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }
}

/// Waits for the end of a child; returns its number, and true if it succeeded.
pub(crate) fn wait() -> (i32, bool) {
    let mut status = 0;
    // SAFETY: `status` is writable.
    let number = unsafe { libc::waitpid(-1, &raw mut status, 0) };
    assert!(number > 0, "a child runs");
    (number, status == 0)
}

/// Starts this program again if its addresses are random: a hash of an address would differ from run to run.
pub(crate) fn keep_addresses() {
    const CURRENT: libc::c_ulong = 0xffff_ffff;
    // SAFETY: it takes one number.
    let now = unsafe { libc::personality(CURRENT) };
    if now < 0 || now & libc::ADDR_NO_RANDOMIZE != 0 {
        return;
    }
    // SAFETY: as above.
    let set = unsafe { libc::personality((now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong) };
    if set >= 0
        && let Ok(program) = std::env::current_exe()
    {
        let error = Command::new(program)
            .args(std::env::args_os().skip(1))
            .exec();
        eprintln!("the program cannot start again: {error}");
    }
}
