//! UIOP's transport: UNIX stream sockets, for peers on one host.

use super::{QUEUE_MAX, Stream, identity};
use crate::recorder;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect as connect_socket,
};
use rustix::net::{listen as listen_socket, socket_with};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Connects to a socket file. Waits until `until_ns` of the monotonic clock at the latest for a place in the server's queue.
pub(crate) fn connect(path: &Path, until_ns: u64) -> Result<Stream, Errno> {
    connect_socket_to(path, until_ns).map(Stream::new)
}

/// Returns a socket that is connected to a socket file, as [`connect`] does.
pub(super) fn connect_socket_to(path: &Path, until_ns: u64) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = stream_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    if recorder::is_running() {
        identity::name(&socket)?;
    }
    let mut now_ns = monotonic_ns();
    // The system's own timeout is in ticks of up to 10 ms: a call would end later than its deadline.
    while now_ns < until_ns {
        match connect_socket(&socket, &address) {
            Err(Errno::AGAIN) => sleep_until(until_ns.min(now_ns + QUEUE_IS_FULL_NS)),
            Err(Errno::INTR) => {}
            connected => {
                connected?;
                ioctl_fionbio(&socket, false)?;
                return Ok(socket);
            }
        }
        now_ns = monotonic_ns();
    }
    Err(Errno::TIMEDOUT)
}

/// How soon a client tries again when the server's queue is full, in nanoseconds.
const QUEUE_IS_FULL_NS: u64 = 1_000_000;

/// The file of a listening socket, with its identity.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn at(path: &Path) -> Result<Self, Errno> {
        let stat = rustix::fs::lstat(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }

    /// Removes the file, unless another server has replaced it.
    ///
    /// Call it while the socket listens: a server replaces a file only if no socket listens behind it, so none replaces it between
    /// the comparison and the removal.
    pub(crate) fn remove(&self) {
        let is_own = Self::at(&self.path)
            .is_ok_and(|file| (file.device, file.inode) == (self.device, self.inode));
        if is_own {
            // It fails if someone has removed the file.
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

/// Returns a non-blocking listening socket, and its file.
///
/// Replaces a socket file behind which no socket listens. Fails with `ADDRINUSE` if one listens.
pub(crate) fn listen(path: &Path) -> Result<(OwnedFd, SocketFile), Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = stream_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    match bind(&socket, &address) {
        Err(Errno::ADDRINUSE) if is_deserted(&address) => {
            rustix::fs::unlink(path)?;
            bind(&socket, &address)?;
        }
        bound => bound?,
    }
    listen_socket(&socket, QUEUE_MAX)?;
    Ok((socket, SocketFile::at(path)?))
}

/// Returns true if no socket listens at the address. Asks twice, because a server listens a moment after it has bound its socket.
fn is_deserted(address: &SocketAddrUnix) -> bool {
    #[cfg(simulation)]
    if rtorb_os::simulation::is_planted("socket-file-kept") {
        return false;
    }
    let is_refused = || {
        let probe = stream_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        probe.is_ok_and(|probe| connect_socket(&probe, address) == Err(Errno::CONNREFUSED))
    };
    is_refused() && {
        sleep_until(monotonic_ns() + BIND_TO_LISTEN_NS);
        is_refused()
    }
}

/// An upper bound of the time between a server's calls of bind and listen, in nanoseconds.
const BIND_TO_LISTEN_NS: u64 = 10_000_000;

fn stream_socket(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{OFlags, fcntl_getfl};
    use rustix::net::{accept, sockopt};

    #[test]
    fn sending_may_take_longer_than_connecting() {
        let folder = tempfile::tempdir().expect("the host has a folder");
        let path = folder.path().join("socket");
        let (_listener, _file) = listen(&path).expect("the folder can be written");
        let stream = connect(&path, monotonic_ns() + 60_000_000_000).expect("it listens");
        let timeout = sockopt::socket_timeout(&stream, sockopt::Timeout::Send);
        assert_eq!(timeout, Ok(None));
        let flags = fcntl_getfl(&stream).expect("it is open");
        assert!(!flags.contains(OFlags::NONBLOCK));
    }

    #[test]
    fn a_client_gets_a_place_in_a_queue_that_was_full() {
        let folder = tempfile::tempdir().expect("the host has a folder");
        let path = folder.path().join("socket");
        let socket = stream_socket(SocketFlags::CLOEXEC).expect("the host has sockets");
        bind(&socket, &SocketAddrUnix::new(&path).expect("short")).expect("it is free");
        listen_socket(&socket, 0).expect("it is bound");
        let _first = connect(&path, u64::MAX).expect("there is one place");
        let soon_ns = monotonic_ns() + 5 * QUEUE_IS_FULL_NS;
        assert_eq!(connect(&path, soon_ns).err(), Some(Errno::TIMEDOUT));
        assert!(monotonic_ns() >= soon_ns);
        let path = &path;
        std::thread::scope(|scope| {
            let second = scope.spawn(move || connect(path, u64::MAX));
            accept(&socket).expect("the first client");
            second
                .join()
                .expect("no panic")
                .expect("there is a place again");
        });
    }
}
