//! The thread that makes the handshakes of servers.
//!
//! It accepts no more clients than the settings allow: so many at a time, so many a second. The others wait in the queue of the listening
//! socket, which is bounded. If one waits there, and all places are taken, the oldest client gives its place up once its handshake has lasted
//! longer than [`GRACE_NS`]: clients that say nothing do not keep others out.

use crate::budget::Budget;
use crate::client::{FIRST_BYTES, foreign};
use crate::counts::{HandshakeCounters, HandshakeCounts, count};
use crate::current::CurrentFiles;
use crate::fault;
use crate::link::{Socket, TlsLink, errno};
use crate::port::{ListeningPort, Port, Wakeup};
use crate::settings::HandshakeSettings;
use crate::verifier::take_refused;
use core::sync::atomic::AtomicU64;
use rtorb::security::SecurityReport;
use rtorb::thread::Errno;
use rtorb_os::clock::{monotonic_ns, timespec};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::spawn;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, getpeername, recv, send, shutdown,
};
use rustls::ServerConnection;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The thread of one [`Tls`](crate::Tls), which runs while there are ports.
#[derive(Debug)]
pub(crate) struct HandshakeThread {
    settings: HandshakeSettings,
    ports: Arc<Mutex<Ports>>,
    counters: Arc<HandshakeCounters>,
}

#[derive(Debug, Default)]
struct Ports {
    open: Vec<Arc<Port>>,
    /// That of the running thread; `None` if none runs.
    wakeup: Option<Wakeup>,
}

impl HandshakeThread {
    pub(crate) fn new(settings: HandshakeSettings) -> Self {
        Self {
            settings,
            ports: Arc::default(),
            counters: Arc::default(),
        }
    }

    /// Returns the numbers of handshakes so far.
    pub(crate) fn counts(&self) -> HandshakeCounts {
        self.counters.read()
    }

    /// Serves a listening socket, and starts the thread for the first one.
    pub(crate) fn serve(
        &self,
        files: Arc<CurrentFiles>,
        socket: OwnedFd,
        report: SecurityReport,
    ) -> Result<ListeningPort, Errno> {
        let port = Arc::new(Port::new(socket, report, Arc::clone(&self.counters))?);
        let mut ports = self.ports.lock();
        let wakeup = match &ports.wakeup {
            Some(wakeup) => wakeup.clone(),
            None => {
                let wakeup = Wakeup::new()?;
                let run = Handshakes {
                    files,
                    settings: self.settings.clone(),
                    wakeup: wakeup.clone(),
                    budget: Budget::new(self.settings.per_second),
                    pause_until_ns: 0,
                    silent_until_ns: 0,
                    clients: Vec::with_capacity(self.settings.at_once_max),
                };
                let ports = Arc::clone(&self.ports);
                spawn("rtorb-tls", &self.settings.thread, move || run.run(&ports))
                    .map_err(|refused| refused.errno)?;
                wakeup
            }
        };
        // The thread looks at it under the lock.
        ports.wakeup = Some(wakeup.clone());
        ports.open.push(Arc::clone(&port));
        drop(ports);
        wakeup.wake();
        Ok(ListeningPort { port, wakeup })
    }
}

/// The handshakes in progress.
struct Handshakes {
    files: Arc<CurrentFiles>,
    settings: HandshakeSettings,
    wakeup: Wakeup,
    budget: Budget,
    /// No client is accepted before: the process has no file descriptor.
    pause_until_ns: u64,
    /// The lack of a file descriptor is not reported again before.
    silent_until_ns: u64,
    /// In the order in which they were accepted.
    clients: Vec<Client>,
}

/// A client in its handshake.
struct Client {
    port: Arc<Port>,
    socket: OwnedFd,
    accepted_ns: u64,
    deadline_ns: u64,
    phase: Phase,
}

enum Phase {
    /// Nothing has come yet.
    ExpectFirst(Box<ServerConnection>),
    ExpectMore(Box<ServerConnection>),
    /// The client is refused. It gets the reason before the socket is closed.
    Leaving,
}

/// How a step of a handshake ends.
enum Step {
    Wait(Client),
    Over,
}

/// How long a client keeps its place although another one waits for it, in nanoseconds: enough for the one round trip of TLS 1.3 between
/// continents.
const GRACE_NS: u64 = 250_000_000;

/// How long a refused client has to read the reason, in nanoseconds.
const LEAVING_NS: u64 = 500_000_000;

/// How long no client is accepted when the process has no file descriptor left, in nanoseconds.
const PAUSE_NS: u64 = 100_000_000;

/// How often the lack of a file descriptor is reported, in nanoseconds.
const SILENT_NS: u64 = 1_000_000_000;

/// The most reads of one client in its turn.
const READS_MAX: usize = 8;

/// Two alerts, fatal unexpected_message and close_notify: what a client without TLS gets. They are as long as a GIOP header.
const NO_GIOP: [u8; 14] = [21, 3, 3, 0, 2, 2, 10, 21, 3, 3, 0, 2, 1, 0];

impl Handshakes {
    fn run(mut self, ports: &Mutex<Ports>) {
        loop {
            let open = {
                let mut ports = ports.lock();
                ports.open.retain(|port| !port.has_ended());
                if ports.open.is_empty() {
                    // Under the lock: a port that is added later starts another thread.
                    ports.wakeup = None;
                    return;
                }
                ports.open.clone()
            };
            self.clients.retain(|client| !client.port.has_ended());
            self.turn(&open);
        }
    }

    /// Waits once, and does what is due.
    fn turn(&mut self, ports: &[Arc<Port>]) {
        let now_ns = monotonic_ns();
        let may_accept =
            self.has_place(now_ns) && self.budget.allows(now_ns) && now_ns >= self.pause_until_ns;
        let accepting = ports.iter().filter(|port| may_accept && port.has_room());
        let accepting: Vec<_> = accepting.collect();
        let mut interests = Vec::with_capacity(1 + accepting.len() + self.clients.len());
        interests.push(PollFd::new(&self.wakeup, PollFlags::IN));
        let listening = accepting.iter();
        interests.extend(listening.map(|port| PollFd::new(&port.socket, PollFlags::IN)));
        let clients = self.clients.iter();
        interests.extend(clients.map(|client| PollFd::new(&client.socket, client.events())));
        let timeout = self.next_ns(now_ns).map(|at_ns| timespec(at_ns - now_ns));
        // An error leaves all as it is, and the next turn tries again.
        let waited = poll(&mut interests, timeout.as_ref());
        let is_ready: Vec<_> = interests
            .iter()
            .map(|interest| waited.is_ok() && !interest.revents().is_empty())
            .collect();
        drop(interests);
        if is_ready[0] {
            self.wakeup.clear();
        }
        let (ports_ready, clients_ready) = is_ready[1..].split_at(accepting.len());
        self.step(clients_ready);
        for (port, is_ready) in accepting.iter().zip(ports_ready) {
            if *is_ready && self.has_place(monotonic_ns()) {
                self.accept(port);
            }
        }
    }

    /// Returns true if a client may be accepted: there is a place, or the oldest client gives its own up.
    fn has_place(&self, now_ns: u64) -> bool {
        self.gives_way_ns().is_none_or(|at_ns| at_ns <= now_ns)
    }

    /// Returns when the oldest client gives its place to one that waits; `None` while there are free places.
    fn gives_way_ns(&self) -> Option<u64> {
        let oldest = self.clients.first()?;
        let is_full = self.clients.len() >= self.settings.at_once_max;
        is_full.then(|| oldest.accepted_ns.saturating_add(GRACE_NS))
    }

    /// Returns the time of the next turn if nothing happens; `None` if there is nothing to wait for.
    fn next_ns(&self, now_ns: u64) -> Option<u64> {
        let deadlines = self.clients.iter().map(|client| client.deadline_ns);
        let resumes = [self.budget.allowed_ns(), self.pause_until_ns];
        let resumes = resumes.into_iter().chain(self.gives_way_ns());
        let resumes = resumes.filter(|at_ns| *at_ns > now_ns);
        deadlines
            .chain(resumes)
            .min()
            .map(|at_ns| at_ns.max(now_ns))
    }

    /// Goes on with the clients that are ready, and ends those whose time is over.
    fn step(&mut self, is_ready: &[bool]) {
        let now_ns = monotonic_ns();
        let clients = core::mem::take(&mut self.clients);
        for (client, is_ready) in clients.into_iter().zip(is_ready) {
            let timeout = self.settings.timeout;
            self.clients.extend(client.turn(*is_ready, now_ns, timeout));
        }
    }

    /// Accepts a client. If there is no free place, the oldest client gives its own up.
    ///
    /// A port may end while the thread waits: then its clients stay in the queue of the socket, which may be a service manager's. One that is
    /// accepted in the same moment is lost.
    fn accept(&mut self, port: &Arc<Port>) {
        if port.has_ended() {
            return;
        }
        let socket = match accept_with(&port.socket, SocketFlags::CLOEXEC) {
            Ok(socket) => socket,
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                self.pause(port, errno);
                return;
            }
            // The client is gone, or the port has ended.
            Err(_) => return,
        };
        let now_ns = monotonic_ns();
        self.budget.take(now_ns);
        self.files.reload_if_changed(&|text| port.report_rare(text));
        let connection = self.files.server().map(ServerConnection::new);
        let Some(Ok(connection)) = connection else {
            return;
        };
        if self.clients.len() >= self.settings.at_once_max {
            let oldest = self.clients.remove(0);
            let ms = now_ns.saturating_sub(oldest.accepted_ns) / 1_000_000;
            let gave_way = &oldest.port.counters.gave_way;
            oldest.end_slow(
                gave_way,
                Duration::from_millis(ms),
                ", and another client waits",
            );
        }
        let timeout_ns = u64::try_from(self.settings.timeout.as_nanos()).unwrap_or(u64::MAX);
        self.clients.push(Client {
            port: Arc::clone(port),
            socket,
            accepted_ns: now_ns,
            deadline_ns: now_ns.saturating_add(timeout_ns),
            phase: Phase::ExpectFirst(Box::new(connection)),
        });
    }

    /// Accepts nobody for a while, and reports why.
    fn pause(&mut self, port: &Port, errno: Errno) {
        let now_ns = monotonic_ns();
        self.pause_until_ns = now_ns + PAUSE_NS;
        if now_ns >= self.silent_until_ns {
            self.silent_until_ns = now_ns + SILENT_NS;
            port.report_rare(format!(
                "TLS: clients wait, because none can be accepted: {errno}. Raise the limit of open files (`ulimit -n`) or lower \
                 `connections_max`."
            ));
        }
    }
}

impl Client {
    /// Returns the events that the client waits for.
    fn events(&self) -> PollFlags {
        match &self.phase {
            Phase::ExpectMore(connection) if connection.wants_write() => PollFlags::OUT,
            _ => PollFlags::IN,
        }
    }

    /// Goes on with the client if it is ready, and ends it if its time is over, also one that always has more to read. Returns a client
    /// that keeps its place.
    fn turn(self, is_ready: bool, now_ns: u64, timeout: Duration) -> Option<Self> {
        let client = if is_ready {
            match self.step() {
                Step::Wait(client) => client,
                Step::Over => return None,
            }
        } else {
            self
        };
        if client.deadline_ns > now_ns {
            return Some(client);
        }
        client.end_slow(&client.port.counters.late, timeout, "");
        None
    }

    /// Goes on with the handshake, as far as the socket allows.
    fn step(mut self) -> Step {
        let mut connection = match core::mem::replace(&mut self.phase, Phase::Leaving) {
            Phase::Leaving => return self.drain(),
            Phase::ExpectMore(connection) => connection,
            Phase::ExpectFirst(connection) => {
                let mut first = [0; FIRST_BYTES];
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                let count = recv(&self.socket, &mut first[..], flags).map_or(0, |(count, _)| count);
                if let Some(found) = foreign(&first[..count]) {
                    self.refuse(&format!("{found}: the port is one of TLS"));
                    let now = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                    let _ = send(&self.socket, &NO_GIOP, now);
                    return self.leave();
                }
                connection
            }
        };
        let mut stream = Socket::new(self.socket.as_fd());
        for _ in 0..READS_MAX {
            while connection.wants_write() {
                match connection
                    .write_tls(&mut stream)
                    .map_err(|error| errno(&error))
                {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return self.wait(connection),
                    Err(_) => return Step::Over,
                }
            }
            if !connection.is_handshaking() {
                let link = TlsLink::new((*connection).into());
                self.port.add(self.socket, Arc::new(link));
                return Step::Over;
            }
            match connection
                .read_tls(&mut stream)
                .map_err(|error| errno(&error))
            {
                // A client that goes without a word may only look whether the port is open.
                Ok(0) => return Step::Over,
                Ok(_) => {}
                Err(Errno::AGAIN | Errno::INTR) => return self.wait(connection),
                Err(_) => return Step::Over,
            }
            take_refused();
            if let Err(error) = connection.process_new_packets() {
                let _ = connection.write_tls(&mut stream);
                let cause = fault::of_error(&error, take_refused().as_ref());
                self.refuse(&cause.detail);
                return self.leave();
            }
        }
        self.wait(connection)
    }

    fn wait(mut self, connection: Box<ServerConnection>) -> Step {
        self.phase = Phase::ExpectMore(connection);
        Step::Wait(self)
    }

    /// Ends sending. The client reads the reason, because the socket is not closed with unread bytes, which would reset the connection.
    fn leave(mut self) -> Step {
        let _ = shutdown(&self.socket, Shutdown::Write);
        self.phase = Phase::Leaving;
        self.deadline_ns = monotonic_ns() + LEAVING_NS;
        Step::Wait(self)
    }

    /// Discards what a refused client sends, until it ends.
    fn drain(self) -> Step {
        let mut discarded = [0; 4096];
        for _ in 0..READS_MAX {
            match recv(&self.socket, &mut discarded[..], RecvFlags::DONTWAIT) {
                Ok((_, 1..)) => {}
                Err(Errno::AGAIN | Errno::INTR) => return Step::Wait(self),
                Ok(_) | Err(_) => return Step::Over,
            }
        }
        Step::Wait(self)
    }

    /// Counts and reports a client that is refused.
    fn refuse(&self, reason: &str) {
        count(&self.port.counters.refused);
        self.report(reason);
    }

    /// Counts and reports that the handshake has lasted too long. A client that is refused was counted already.
    fn end_slow(&self, counter: &AtomicU64, time: Duration, why: &str) {
        if !matches!(self.phase, Phase::Leaving) {
            count(counter);
            self.report(&format!("its handshake is not over after {time:?}{why}"));
        }
    }

    fn report(&self, reason: &str) {
        let address = getpeername(&self.socket).ok().flatten();
        let address = address.and_then(|address| SocketAddr::try_from(address).ok());
        let from = address.map_or("a client".to_owned(), |address| {
            format!(
                "the client at {}:{}",
                address.ip().to_canonical(),
                address.port()
            )
        });
        self.port
            .report(&format!("TLS: {from} is refused: {reason}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_refused_client_that_goes_on_sending_has_no_more_time_than_one_that_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let counters: Arc<HandshakeCounters> = Arc::default();
        let port = Port::new(listener.into(), Arc::new(|_| {}), Arc::clone(&counters));
        let (mut peer, socket) = UnixStream::pair().expect("a pair");
        peer.write_all(&[0; 2 * READS_MAX * 4096])
            .expect("it has room");
        let client = Client {
            port: Arc::new(port.expect("a port")),
            socket: socket.into(),
            accepted_ns: 1,
            deadline_ns: 10,
            phase: Phase::Leaving,
        };
        let client = client.turn(true, 9, Duration::ZERO);
        let client = client.expect("it has a nanosecond");
        assert!(client.turn(true, 10, Duration::ZERO).is_none());
        assert_eq!(counters.read().late, 0, "it was counted as refused");
    }
}
