//! A network of a thread's own: a namespace that has no interface but a loopback device (network_namespaces(7)).

use rustix::io::Errno;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves the calling thread, and the threads that it starts from now on, into a new network namespace. It ends with its last
/// thread.
///
/// # Errors
/// What the kernel said: EPERM without CAP_SYS_ADMIN.
pub fn enter_new_network() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` may take file descriptors from a thread that uses them.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
}
