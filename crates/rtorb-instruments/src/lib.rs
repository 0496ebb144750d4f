//! The instruments of tests and of the laboratory: they count what a path costs, and disturb a host on purpose. No ORB needs them.
//!
//! Beside `rtorb-os`, this is the only crate of the workspace with `unsafe`.
//!
//! | for | use |
//! |---|---|
//! | counting the heap calls of a path | [`heap::heap_calls`] |
//! | counting context switches and page faults | [`usage`] |
//! | a periodic signal, to measure what interrupts cost | [`signal_timer`] |
//! | a marker that an instruction trace can count | [`replay`] |
//! | a child process that only ends, to load a host with forks | [`process`] |
//! | a network of a thread's own, and the time at which a datagram arrived | [`network`] |
//!
//! The locks of `rtorb-os` count themselves, with its feature `count-locks`.

pub mod heap;
pub mod network;
pub mod process;
pub mod replay;
pub mod signal_timer;
pub mod usage;

use rustix::io::Errno;

/// The host refused an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host refused {instrument} ({errno}): {remedy}")]
pub struct InstrumentError {
    instrument: &'static str,
    /// The reason that the kernel gave.
    pub errno: Errno,
    remedy: &'static str,
}

/// The result of a call of libc that returns 0 when it succeeds and otherwise sets the thread's error number.
fn check(returned: libc::c_int) -> Result<(), Errno> {
    match returned {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)),
    }
}
