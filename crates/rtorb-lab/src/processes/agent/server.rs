//! The agent: starts servers for one laboratory at a time, and ends them when it goes.
//!
//! One thread does all, and sleeps in `poll` while servers are measured; over TLS, two more carry the bytes of each connection. A laboratory
//! can start the servers that [`crate::roles`] allow on an agent, and nothing else. Over TLS, it needs a certificate of a trusted authority. In
//! plain text, it only needs to reach the port.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rtorb::security::{PeerIdentity, SecureListener};
use rtorb_host::Host;
use rtorb_host::placement::{Placement, obtained, obtained_by_priority};
use rtorb_os::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::protocol::{self, AgentQuestion, Greeting, Lines, Reading, Welcome};
use super::tunnel::{self, AgentSecurity};
use crate::error::LabError;
use crate::processes::awake::{AWAKE_AT_MOST, Awake};
use crate::processes::interrupt::Interrupt;
use crate::processes::{child_command, end_politely};

/// An agent that listens.
#[derive(Debug)]
pub struct Server {
    port: AgentPort,
    address: SocketAddr,
    /// The program that plays the servers' roles: this one.
    executable: PathBuf,
    /// Whether an agent starts this role; why not.
    allow: fn(&[String]) -> Result<(), String>,
    interrupt: Interrupt,
    /// Connections that have not said yet what they are for.
    strangers: Vec<Stranger>,
    session: Option<Session>,
}

/// Where laboratories come.
#[derive(Debug)]
enum AgentPort {
    Plain(TcpListener),
    Secure {
        listener: Box<dyn SecureListener>,
        /// Readable while a peer can be accepted.
        readiness: OwnedFd,
    },
}

#[derive(Debug)]
struct Stranger {
    lines: Lines,
    peer: SocketAddr,
    /// The names in its certificate.
    identity: Option<Arc<PeerIdentity>>,
    /// The address of the agent by which it came.
    own: IpAddr,
    deadline_ns: u64,
}

impl AgentPort {
    fn secure(listener: TcpListener, security: &AgentSecurity) -> Result<Self, String> {
        if !security.transport.wants_client_certificate() {
            return Err(
                "an agent with TLS wants certificates of laboratories: give --tls-ca".to_owned(),
            );
        }
        let listening = security
            .transport
            .listen(listener.into(), Arc::clone(&security.report));
        let listener = listening.map_err(|errno| {
            format!("cannot listen with TLS: {errno}. It needs --tls-certificate and --tls-key")
        })?;
        let readiness = listener.readiness().map_err(|errno| errno.to_string())?;
        Ok(Self::Secure {
            listener,
            readiness,
        })
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(listener) => listener.as_fd(),
            Self::Secure { readiness, .. } => readiness.as_fd(),
        }
    }

    /// Accepts a client that waits for its connection.
    fn accept(&self) -> io::Result<Stranger> {
        let (stream, link) = match self {
            Self::Plain(listener) => (listener.accept()?.0, None),
            Self::Secure { listener, .. } => {
                let (socket, link) = listener.accept()?;
                (TcpStream::from(socket), Some(link))
            }
        };
        protocol::prepare(&stream)?;
        let (peer, own) = (stream.peer_addr()?, stream.local_addr()?.ip());
        let identity = link.as_ref().and_then(|link| link.peer().cloned());
        let socket = match link {
            None => stream.into(),
            Some(link) => tunnel::start(stream, link)?,
        };
        Ok(Stranger {
            lines: Lines::new(socket),
            peer,
            identity,
            own,
            deadline_ns: monotonic_ns() + STRANGER_NS_MAX,
        })
    }
}

/// The laboratory that is served. Dropping it ends its servers.
#[derive(Debug)]
struct Session {
    control: Lines,
    peer: SocketAddr,
    identity: Option<Arc<PeerIdentity>>,
    number: u64,
    placement: Placement,
    servers: BTreeMap<u32, Child>,
    /// There while servers are: a CPU that slept would be measured with them.
    awake: Option<Awake>,
}

impl Server {
    /// Listens on `ADDR:PORT`; port 0 takes a free one. With `security`, a laboratory shows a certificate of a trusted authority.
    ///
    /// # Errors
    /// What the system said, or that the agent has no certificate.
    pub fn bind(
        address: &str,
        security: Option<&AgentSecurity>,
        executable: PathBuf,
        allow: fn(&[String]) -> Result<(), String>,
        interrupt: Interrupt,
    ) -> Result<Self, LabError> {
        let refused = |error: std::io::Error| {
            LabError::agent(
                address,
                format!(
                    "cannot listen there: {error}. `--listen` takes an address of this host and a port, such as 127.0.0.1:{}",
                    protocol::PORT
                ),
            )
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let port = match security {
            None => AgentPort::Plain(listener),
            Some(security) => AgentPort::secure(listener, security)
                .map_err(|what| LabError::agent(&address.to_string(), what))?,
        };
        Ok(Self {
            port,
            address,
            executable,
            allow,
            interrupt,
            strangers: Vec::new(),
            session: None,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves one laboratory after another until the interrupt; `tell` hears who comes and goes.
    ///
    /// Call it on the main thread: the servers end with the thread that started them.
    pub fn run(&mut self, tell: &mut dyn FnMut(&str)) {
        while !self.interrupt.requested() {
            self.wait();
            self.accept();
            self.answer_session(tell);
            self.answer_strangers(tell);
        }
        if let Some(mut session) = self.session.take() {
            // It may be gone too; then it needs no farewell.
            let _ = session.control.write("error the agent was ended");
        }
    }

    /// Sleeps until something comes, or until it is time to look around.
    fn wait(&self) {
        let connections = self
            .strangers
            .iter()
            .map(|stranger| stranger.lines.socket())
            .chain(self.session.iter().map(|session| session.control.socket()))
            .chain([self.port.readiness()]);
        let mut fds: Vec<PollFd<'_>> = connections
            .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN))
            .collect();
        // An error is a signal, which the caller looks for.
        let _ = poll(&mut fds, Some(&LOOK_AROUND));
    }

    fn accept(&mut self) {
        // An error is a client that has gone again.
        if let Ok(stranger) = self.port.accept() {
            if self.strangers.len() >= STRANGERS_MAX {
                self.strangers.remove(0);
            }
            self.strangers.push(stranger);
        }
    }

    fn answer_session(&mut self, tell: &mut dyn FnMut(&str)) {
        let Some(session) = &mut self.session else {
            return;
        };
        let why = loop {
            match session.control.read_within(Duration::ZERO) {
                Reading::Nothing => return,
                Reading::Ended(why) => break why,
                Reading::Line(line) => {
                    let question = AgentQuestion::read(&line);
                    let answer = question.and_then(|question| session.answer(&question));
                    let line = answer.unwrap_or_else(|what| format!("error {what}"));
                    if let Err(error) = session.control.write(&line) {
                        break format!("takes no answers: {error}");
                    }
                }
            }
        };
        tell(&format!(
            "laboratory {}: {why}; {} servers ended",
            session.peer,
            session.servers.len()
        ));
        self.session = None;
    }

    fn answer_strangers(&mut self, tell: &mut dyn FnMut(&str)) {
        for mut stranger in std::mem::take(&mut self.strangers) {
            match stranger.lines.read_within(Duration::ZERO) {
                Reading::Nothing if monotonic_ns() < stranger.deadline_ns => {
                    self.strangers.push(stranger);
                }
                Reading::Nothing | Reading::Ended(_) => {}
                Reading::Line(line) => self.answer_greeting(stranger, &line, tell),
            }
        }
    }

    fn answer_greeting(&mut self, mut stranger: Stranger, line: &str, tell: &mut dyn FnMut(&str)) {
        let refusal = match line.parse() {
            Ok(Greeting::Hello) => match &self.session {
                Some(session) => format!(
                    "it serves the laboratory {} now: wait until that has ended",
                    session.peer
                ),
                None => return self.begin_session(stranger, tell),
            },
            Ok(Greeting::Server { session, key, role }) => {
                match self.start(&stranger, session, key, &role) {
                    Ok(()) => return,
                    // Said as the server itself would say it.
                    Err(what) => {
                        let _ = stranger.lines.write(&format!("error {what}"));
                        return;
                    }
                }
            }
            Err(what) => what,
        };
        tell(&format!("{} was refused: {refusal}", stranger.peer));
        // Who has gone needs no answer.
        let _ = stranger
            .lines
            .write(&protocol::greeting(&format!("error {refusal}")));
    }

    fn begin_session(&mut self, stranger: Stranger, tell: &mut dyn FnMut(&str)) {
        let Stranger {
            mut lines,
            peer,
            identity,
            own,
            ..
        } = stranger;
        let host = Host::describe();
        let placement = Placement::best(&host);
        let welcome = Welcome {
            session: monotonic_ns(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            host,
            placement,
            address: own,
            clock: rtorb_host::clock_identity(),
        };
        let number = welcome.session;
        let Ok(json) = serde_json::to_string(&welcome) else {
            return;
        };
        if lines
            .write(&protocol::greeting(&format!("welcome {json}")))
            .is_err()
        {
            return;
        }
        tell(&format!("laboratory {peer}: served"));
        self.session = Some(Session {
            control: lines,
            peer,
            identity,
            number,
            placement,
            servers: BTreeMap::new(),
            awake: None,
        });
    }

    /// Starts a server whose standard input and output are this connection.
    fn start(
        &mut self,
        stranger: &Stranger,
        number: u64,
        key: u32,
        role: &[String],
    ) -> Result<(), String> {
        let session = self
            .session
            .as_mut()
            .filter(|session| session.number == number && session.has(stranger))
            .ok_or("the agent does not serve this laboratory")?;
        (self.allow)(role)?;
        session.reap();
        if session.servers.len() >= SERVERS_MAX {
            return Err(format!("{SERVERS_MAX} servers run, and more may not"));
        }
        if session.servers.contains_key(&key) || stranger.lines.has_more() {
            return Err("the laboratory does not keep to the protocol".to_owned());
        }
        let end = || socket_end(stranger.lines.socket());
        let input = end().map_err(|error| error.to_string())?;
        let output = end().map_err(|error| error.to_string())?;
        let child = child_command(&self.executable, session.placement)
            .args(role)
            .stdin(input)
            .stdout(output)
            .spawn()
            .map_err(|error| format!("the agent cannot start it: {error}"))?;
        session.servers.insert(key, child);
        session.stay_awake();
        Ok(())
    }
}

impl Session {
    /// Whether this is the laboratory of the session: its host, and over TLS its certificate's names.
    fn has(&self, stranger: &Stranger) -> bool {
        self.peer.ip() == stranger.peer.ip() && self.identity == stranger.identity
    }

    fn answer(&mut self, question: &AgentQuestion) -> Result<String, String> {
        let found = match question {
            AgentQuestion::End(key) => {
                let Some(mut server) = self.servers.remove(key) else {
                    return Ok("ended before".to_owned());
                };
                let ended = match end_politely(&mut server) {
                    Some(status) => format!("ended ({status})"),
                    None => "ended by force".to_owned(),
                };
                self.stay_awake();
                return Ok(ended);
            }
            AgentQuestion::Obtained(key, name) => {
                obtained(name, self.id(*key)?).into_iter().collect()
            }
            AgentQuestion::ObtainedByPriority(key, name) => {
                obtained_by_priority(name, self.id(*key)?)
            }
        };
        serde_json::to_string(&found).map_err(|error| error.to_string())
    }

    fn id(&self, key: u32) -> Result<u32, String> {
        let server = self.servers.get(&key);
        server
            .map(Child::id)
            .ok_or_else(|| format!("there is no server {key}"))
    }

    /// Keeps the servers' CPU from sleeping while there are any.
    fn stay_awake(&mut self) {
        if self.servers.is_empty() {
            self.awake = None;
        } else if self.awake.is_none() {
            self.awake = Some(Awake::keep(self.placement.cpu, AWAKE_AT_MOST));
        }
    }

    /// Lets go of servers that have ended by themselves.
    fn reap(&mut self) {
        self.servers
            .retain(|_, server| matches!(server.try_wait(), Ok(None)));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // All at once, so that it takes no longer with many.
        for server in self.servers.values_mut() {
            let _ = server.kill();
        }
        for server in self.servers.values_mut() {
            let _ = server.wait();
        }
    }
}

fn socket_end(socket: BorrowedFd<'_>) -> io::Result<Stdio> {
    Ok(Stdio::from(socket.try_clone_to_owned()?))
}

/// More than any experiment has at a time.
const SERVERS_MAX: usize = 64;
const STRANGERS_MAX: usize = 16;
const STRANGER_NS_MAX: u64 = 20_000_000_000;
/// How late an agent notices a signal that came between two sleeps, and a stranger that says nothing.
const LOOK_AROUND: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
