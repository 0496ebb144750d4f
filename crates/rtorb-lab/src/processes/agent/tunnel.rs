//! TLS between laboratory and agent: two threads seal and open the bytes of a connection, and those who use it have the near end of a pair of
//! sockets, with plain text.

use std::fmt;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rtorb::security::{
    HandshakeError, HandshakeFault, SecureLink, SecureTransport, SecurityReport,
};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::{ThreadConfig, spawn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, shutdown, socketpair};

use super::protocol;
use crate::processes::readable::{is_readable, nanoseconds};

/// The TLS of a laboratory or of an agent: both show a certificate.
#[derive(Clone)]
pub struct AgentSecurity {
    /// Makes the connections.
    pub transport: Arc<dyn SecureTransport>,
    /// Reports refused peers, and files that cannot be used.
    pub report: SecurityReport,
}

impl fmt::Debug for AgentSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSecurity")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl AgentSecurity {
    /// Makes the handshake of a laboratory with the agent `host`, and returns the near end of the connection.
    pub(super) fn connect(&self, stream: TcpStream, host: &str) -> io::Result<OwnedFd> {
        let until_ns = monotonic_ns().saturating_add(nanoseconds(HANDSHAKE_TIMEOUT));
        let link = (self.transport)
            .connect(stream.as_fd(), host, until_ns, &self.report)
            .map_err(|error| match error {
                HandshakeError {
                    fault: HandshakeFault::Connection(errno),
                    ..
                } => io::Error::from(errno),
                error => io::Error::other(error),
            })?;
        start(stream, link)
    }
}

/// Starts the threads of a connection whose handshake is over. Returns its near end. The threads end with the connection.
pub(super) fn start(stream: TcpStream, link: Arc<dyn SecureLink>) -> io::Result<OwnedFd> {
    let (near, far) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let sealing = Arc::new(Tunnel { stream, link, far });
    let opening = Arc::clone(&sealing);
    // What a laboratory measures never waits for them.
    let config = ThreadConfig {
        policy: Some(SchedPolicy::Other),
        ..ThreadConfig::default()
    };
    let started = |name, work: Box<dyn FnOnce() + Send>| {
        spawn(name, &config, work).map_err(|refused| io::Error::from(refused.errno))
    };
    started("agent-seal", Box::new(move || sealing.run(Tunnel::seal)))?;
    // Without it, the first thread ends, because the near end is closed.
    started("agent-open", Box::new(move || opening.run(Tunnel::open)))?;
    Ok(near)
}

struct Tunnel {
    stream: TcpStream,
    link: Arc<dyn SecureLink>,
    /// Plain text.
    far: OwnedFd,
}

impl Tunnel {
    /// Carries one direction to its end. If it breaks, the other one ends too.
    fn run(&self, carry: fn(&Self) -> Result<(), Errno>) {
        if let Err(errno) = carry(self) {
            // An error means that the end is closed already.
            if errno == Errno::KEYREJECTED {
                let refusal = protocol::greeting(REFUSED) + "\n";
                let _ = protocol::send_all(&self.far, refusal.as_bytes());
            }
            let _ = self.stream.shutdown(Shutdown::Both);
            let _ = shutdown(&self.far, rustix::net::Shutdown::Both);
        }
    }

    /// Sends what the near end writes.
    fn seal(&self) -> Result<(), Errno> {
        let mut room = [0; ROOM_BYTES];
        loop {
            let count = match recv(&self.far, &mut room[..], RecvFlags::empty()) {
                Ok((count, _)) => count,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            if count == 0 {
                self.link.end_sending(self.stream.as_fd());
                // An error means that the peer is gone, which the other direction finds.
                let _ = self.stream.shutdown(Shutdown::Write);
                return Ok(());
            }
            self.send_all(&room[..count])?;
        }
    }

    fn send_all(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            let parts = [io::IoSlice::new(bytes)];
            let sent = self.link.send_now(self.stream.as_fd(), &parts)?;
            bytes = &bytes[sent..];
            if !bytes.is_empty() {
                self.await_room()?;
            }
        }
        Ok(())
    }

    /// Gives the near end what comes.
    fn open(&self) -> Result<(), Errno> {
        let mut room = [0; ROOM_BYTES];
        loop {
            match self.link.receive_now(self.stream.as_fd(), &mut room) {
                Ok(0) => return shutdown(&self.far, rustix::net::Shutdown::Write),
                Ok(count) => {
                    // An error means that nobody has the near end.
                    if protocol::send_all(&self.far, &room[..count]).is_err() {
                        return self.drain();
                    }
                }
                Err(Errno::AGAIN) => {
                    if self.is_abandoned()? {
                        return self.drain();
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Discards what comes, until the peer has ended: a stream that is closed with unread bytes is reset, and then the peer may lose what was
    /// sent last.
    fn drain(&self) -> Result<(), Errno> {
        let until_ns = monotonic_ns().saturating_add(nanoseconds(protocol::SILENCE_MAX));
        let mut room = [0; ROOM_BYTES];
        loop {
            let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
            if left.is_zero() {
                return Ok(());
            }
            match self.link.receive_now(self.stream.as_fd(), &mut room) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    is_readable(self.stream.as_fd(), left);
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Waits until something comes. Returns true if nobody has the near end any more; what was written there may still be on its way.
    fn is_abandoned(&self) -> Result<bool, Errno> {
        let mut ends = [
            PollFd::new(&self.stream, PollFlags::IN),
            PollFd::new(&self.far, PollFlags::empty()),
        ];
        match poll(&mut ends, None) {
            Ok(_) => Ok(ends[1].revents().contains(PollFlags::HUP)),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    fn await_room(&self) -> Result<(), Errno> {
        match poll(&mut [PollFd::new(&self.stream, PollFlags::OUT)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

/// The answer for a laboratory that an agent refuses after the handshake of TLS 1.3.
const REFUSED: &str = "error it does not accept this laboratory's certificate, or wants one: give --tls-certificate and --tls-key of an \
                       authority that it trusts. Its output says why";
const ROOM_BYTES: usize = 16 << 10;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::agent::protocol::{Lines, Reading};
    use rtorb::security::PeerIdentity;
    use rustix::net::{SendFlags, send};
    use std::io::{IoSlice, Read as _, Write as _};
    use std::net::TcpListener;
    use std::os::fd::BorrowedFd;

    /// A link that seals nothing.
    #[derive(Debug)]
    struct PlainLink {
        refuses: bool,
    }

    impl SecureLink for PlainLink {
        fn send_now(&self, socket: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> Result<usize, Errno> {
            // Half of it, so that the rest is sent later.
            let some = &parts[0][..parts[0].len().div_ceil(2)];
            match send(socket, some, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Err(Errno::AGAIN) => Ok(0),
                sent => sent,
            }
        }

        fn receive_now(&self, socket: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Errno> {
            if self.refuses {
                return Err(Errno::KEYREJECTED);
            }
            recv(socket, into, RecvFlags::DONTWAIT).map(|(count, _)| count)
        }

        fn holds_bytes(&self) -> bool {
            false
        }

        fn end_sending(&self, _: BorrowedFd<'_>) {}

        fn peer(&self) -> Option<&Arc<PeerIdentity>> {
            None
        }
    }

    /// The near end of a connection, and its peer.
    fn connection(refuses: bool) -> (OwnedFd, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let near = start(stream, Arc::new(PlainLink { refuses })).unwrap();
        (near, listener.accept().unwrap().0)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_connection_carries_lines_both_ways_and_each_end_for_itself() {
        let (near, mut peer) = connection(false);
        let mut lines = Lines::new(near);
        lines.write("a question").unwrap();
        let mut question = [0; 11];
        peer.read_exact(&mut question).unwrap();
        assert_eq!(&question, b"a question\n");
        // The input of a server ends, and its last output comes after that.
        shutdown(lines.socket(), rustix::net::Shutdown::Write).unwrap();
        assert_eq!(peer.read(&mut question).unwrap(), 0);
        peer.write_all(b"an answer\n").unwrap();
        let answer = Reading::Line("an answer".to_owned());
        assert_eq!(lines.read_within(LONG), answer);
        drop(peer);
        assert!(matches!(lines.read_within(LONG), Reading::Ended(_)));
    }

    #[test]
    fn what_was_written_last_arrives_although_the_near_end_is_closed() {
        let (near, mut peer) = connection(false);
        let bytes = vec![7; 1 << 20];
        protocol::send_all(&near, &bytes).unwrap();
        drop(near);
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        assert_eq!(received, bytes);
    }

    #[test]
    fn what_was_written_last_arrives_although_nobody_reads_what_the_peer_sends() {
        let (near, mut peer) = connection(false);
        let mut writer = peer.try_clone().unwrap();
        // More than the tunnel holds: it waits for the near end when that is closed.
        let unread = std::thread::spawn(move || writer.write_all(&vec![1; 16 << 20]));
        let bytes = vec![7; 1 << 20];
        protocol::send_all(&near, &bytes).unwrap();
        drop(near);
        let mut received = Vec::new();
        peer.read_to_end(&mut received).unwrap();
        assert_eq!(received, bytes);
        unread.join().unwrap().unwrap();
    }

    #[test]
    fn a_refused_laboratory_learns_it() {
        let (near, _peer) = connection(true);
        let Reading::Line(line) = Lines::new(near).read_within(LONG) else {
            panic!("no line");
        };
        let why = protocol::welcome(&line).unwrap_err();
        assert!(why.contains("--tls-certificate"), "{why}");
    }
}
