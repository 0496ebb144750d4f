//! The system calls of streams and listeners. Unit tests can replace them by a simulated network.

pub(crate) use rtorb_os::socket::{receive_behind_now, unacknowledged_bytes};
pub(crate) use rustix::net::{accept_with, recv, send, sendmsg, shutdown};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::os::fd::AsFd;

/// Waits for an event of a socket. Returns no event if `timeout` passes first.
pub(crate) fn poll(
    socket: impl AsFd,
    events: PollFlags,
    timeout: Option<&Timespec>,
) -> Result<PollFlags, Errno> {
    let mut interest = [PollFd::new(&socket, events)];
    rustix::event::poll(&mut interest, timeout)?;
    Ok(interest[0].revents())
}
