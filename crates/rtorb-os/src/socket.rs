//! What sockets can and rustix does not offer: receiving into memory that nobody had to zero first, and two options.

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::os::fd::{AsFd, AsRawFd};

/// Receives behind what `into` holds without waiting, at most `octets_max` octets and no more than it has room for.
///
/// Answers how many came; 0 when the peer has ended.
///
/// # Errors
/// What recv(2) answers; `AGAIN` when nothing is there.
pub fn receive_behind_now(
    socket: impl AsFd,
    into: &mut Vec<u8>,
    octets_max: usize,
) -> Result<usize, Errno> {
    let spare = into.spare_capacity_mut();
    let room = spare.len().min(octets_max);
    let ((filled, _), _) = recv(socket, &mut spare[..room], RecvFlags::DONTWAIT)?;
    let received = filled.len();
    let length = into.len() + received;
    // SAFETY: `recv` initialised the first `received` octets behind the old length.
    unsafe { into.set_len(length) };
    Ok(received)
}

/// The class of the socket's packets in this host's own queues (SO_PRIORITY, socket(7)): 0 to 6 for everybody.
///
/// # Errors
/// `PERM` for 7 and more without CAP_NET_ADMIN.
pub fn set_priority(socket: impl AsFd, class: u32) -> Result<(), Errno> {
    set_option(socket, libc::SO_PRIORITY, class.cast_signed())
}

/// Sends to directly connected hosts only (SO_DONTROUTE, socket(7)).
///
/// # Errors
/// What setsockopt(2) answers.
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
    let done = unsafe { libc::ioctl(descriptor, libc::TIOCOUTQ, &raw mut bytes) };
    match done {
        0 => Ok(usize::try_from(bytes).unwrap_or(0)),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

fn set_option(socket: impl AsFd, option: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
    let descriptor = socket.as_fd().as_raw_fd();
    let size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is borrowed for the call, and `value` is as long as `size` says.
    let done = unsafe {
        libc::setsockopt(
            descriptor,
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}
