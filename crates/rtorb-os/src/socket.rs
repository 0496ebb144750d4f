//! Receiving into memory that nobody had to zero first.

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::os::fd::AsFd;

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
