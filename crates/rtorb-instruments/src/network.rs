//! Tools for measurements over a network: a namespace of a thread's own, and the time of a datagram.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::check;

/// Moves the calling thread, and the threads that it starts from now on, into a new network namespace (network_namespaces(7)). Its only
/// interface is a loopback device, and it ends with its last thread.
///
/// # Errors
/// The kernel's reason: EPERM without CAP_SYS_ADMIN.
pub fn enter_new_network() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` may take file descriptors from a thread that uses them.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
}

/// The time at which the kernel received the datagram that this process read last, in nanoseconds of CLOCK_REALTIME (SIOCGSTAMPNS,
/// socket(7)).
///
/// The first call makes the kernel stamp the datagrams of this socket from then on.
///
/// # Errors
/// `NOENT` if no stamped datagram was read yet, or the error of ioctl(2).
pub fn received_at_ns(socket: impl AsFd) -> Result<u64, Errno> {
    let descriptor = socket.as_fd().as_raw_fd();
    let mut stamp = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the descriptor is borrowed for the call, which writes one timespec to `stamp`.
    check(unsafe { libc::ioctl(descriptor, SIOCGSTAMPNS, &raw mut stamp) })?;
    Ok(stamp.tv_sec.cast_unsigned() * 1_000_000_000 + stamp.tv_nsec.cast_unsigned())
}

/// The number of a kernel whose `long` has 64 bits (asm-generic/sockios.h). libc does not name it.
const SIOCGSTAMPNS: libc::Ioctl = 0x8907;
