//! Tools for networks: a namespace of a thread's own, an interface whose packets a program carries, and the time of a datagram.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::net::{AddressFamily, SocketType, socket};
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

/// Has /sys show the network namespace of the calling thread, to this thread alone and to those that it starts from now on: their mounts
/// are their own (mount_namespaces(7)).
///
/// # Errors
/// The kernel's reason: EPERM without CAP_SYS_ADMIN, EINVAL if nothing is mounted at /sys.
pub fn show_own_network() -> Result<(), Errno> {
    // SAFETY: only `UnshareFlags::FILES` may take file descriptors from a thread that uses them.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    // What is mounted on a private mount is seen in this namespace alone. `/` need not be a mount: it may be the root of a chroot(2).
    mount_change("/sys", MountPropagationFlags::PRIVATE)?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)
}

/// Has the network device of this name collect received packets, or not (generic receive offload, ETHTOOL_SGRO). A veth(4) device gets
/// queues of its own by that (NAPI).
///
/// # Errors
/// The kernel's reason: ENODEV without the device, EPERM without CAP_NET_ADMIN, EINVAL for a name of more than 15 bytes.
pub fn set_receive_offload(name: &str, is_on: bool) -> Result<(), Errno> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // struct ethtool_value of linux/ethtool.h.
    let mut value = [ETHTOOL_SGRO, u32::from(is_on)];
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: the descriptor is open for the call, which reads one request, and the two numbers that it points to.
    check(unsafe { libc::ioctl(any.as_raw_fd(), SIOCETHTOOL, &raw mut request) })
}

/// linux/sockios.h, linux/ethtool.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_SGRO: u32 = 0x2c;

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

/// Makes a network interface of this name, whose packets the file reads and writes, one in each call (tun(4)). It belongs to the
/// network namespace of the calling thread, is down, and is gone when the file is closed.
///
/// # Errors
/// The kernel's reason: ENOENT without the driver, EPERM without CAP_NET_ADMIN, EINVAL for a name of more than 15 bytes.
pub fn open_tunnel(name: &str) -> Result<File, Errno> {
    let file = File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
        .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_flags =
        i16::try_from(libc::IFF_TUN | libc::IFF_NO_PI).expect("both flags fit in 16 bits");
    // SAFETY: the descriptor is open for the call, which reads and writes one request.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(file)
}

/// A request about the interface of this name.
fn interface_request(name: &str) -> Result<libc::ifreq, Errno> {
    // SAFETY: all bytes zero are a request: a name of no bytes, and numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(Errno::INVAL);
    }
    for (to, &from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = from.cast_signed();
    }
    Ok(request)
}
