//! Socket calls that rustix lacks: receiving into uninitialised memory, two options, and the bytes on their way.

use crate::refused::check;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::os::fd::{AsFd, AsRawFd};

/// Appends received bytes to `into` without waiting: at most `bytes_max`, and no more than it has room for.
///
/// Returns the number of bytes; 0 when the peer has closed its side.
///
/// # Errors
/// The error of recv(2); `AGAIN` when no bytes have arrived.
pub fn receive_behind_now(
    socket: impl AsFd,
    into: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<usize, Errno> {
    let spare = into.spare_capacity_mut();
    let room = spare.len().min(bytes_max);
    let ((filled, _), _) = recv(socket, &mut spare[..room], RecvFlags::DONTWAIT)?;
    let received = filled.len();
    let length = into.len() + received;
    // SAFETY: `recv` initialised the first `received` bytes behind the old length.
    unsafe { into.set_len(length) };
    Ok(received)
}

/// Sets the class of the socket's packets in this host's queues (SO_PRIORITY, socket(7)). Every user may set 0 to 6.
///
/// # Errors
/// `PERM` for 7 and more without CAP_NET_ADMIN.
pub fn set_priority(socket: impl AsFd, class: u32) -> Result<(), Errno> {
    set_option(socket, libc::SO_PRIORITY, class.cast_signed())
}

/// Sends to directly connected hosts only (SO_DONTROUTE, socket(7)).
///
/// # Errors
/// The error of setsockopt(2).
pub fn set_dont_route(socket: impl AsFd) -> Result<(), Errno> {
    set_option(socket, libc::SO_DONTROUTE, 1)
}

/// How many sent bytes the peer's host has not acknowledged yet, those that were not transmitted included (SIOCOUTQ,
/// tcp(7)).
///
/// # Errors
/// What ioctl(2) returns.
pub fn unacknowledged_bytes(socket: impl AsFd) -> Result<usize, Errno> {
    let descriptor = socket.as_fd().as_raw_fd();
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is borrowed for the call, which writes one int to `bytes`.
    check(unsafe { libc::ioctl(descriptor, libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

fn set_option(socket: impl AsFd, option: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
    let descriptor = socket.as_fd().as_raw_fd();
    let size = size_of_val(&value) as libc::socklen_t;
    let (level, value) = (libc::SOL_SOCKET, (&raw const value).cast());
    // SAFETY: the descriptor is borrowed for the call, and `value` points to `size` bytes.
    check(unsafe { libc::setsockopt(descriptor, level, option, value, size) })
}
