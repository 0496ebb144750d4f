//! Another host that runs the servers: `rtorb lab agent` there, `--agent` here.
//!
//! This is the laboratory's side; [`server`] is the agent's, [`protocol`] what both say. A server on the agent is a
//! [`crate::processes::Process`] whose standard input and output are a connection of their own: once it runs, the agent
//! has no part in what it says.

use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rtorb_host::Host;
use rtorb_host::placement::Placement;
use rtorb_os::sync::Mutex;
use rtorb_results::ObtainedScheduling;

use crate::error::LabError;
use protocol::{AgentQuestion, Lines, Reading, Welcome};
use rustix::net::{Shutdown, shutdown};

pub mod protocol;
pub mod server;
mod tunnel;

pub use tunnel::AgentSecurity;

/// A connection to an agent, which serves this laboratory alone while there is one. All clones are the same connection.
#[derive(Clone, Debug)]
pub struct Agent {
    address: String,
    /// `None` for connections in plain text.
    security: Option<AgentSecurity>,
    welcome: Arc<Welcome>,
    control: Arc<Mutex<Control>>,
}

#[derive(Debug)]
struct Control {
    lines: Lines,
    /// Names the next server; no two have the same.
    next_key: u32,
    /// Why there is no agent any more.
    lost: Option<String>,
}

impl Agent {
    /// Connects to the agent at `ADDR:PORT`.
    ///
    /// # Errors
    /// That nobody listens there, that no agent or one of another version does, that the agent or this laboratory refuses the other's certificate,
    /// or that the agent serves another laboratory.
    pub fn connect(address: &str, security: Option<&AgentSecurity>) -> Result<Self, LabError> {
        let refused = |what: String| LabError::agent(address, what);
        let stream = connect(address).map_err(|error| refused(unreachable(&error)))?;
        protocol::prepare(&stream).map_err(|error| refused(error.to_string()))?;
        let socket = secured(stream, address, security);
        let mut lines = Lines::new(socket.map_err(|error| refused(insecure(&error)))?);
        let written = lines.write(&protocol::greeting("hello"));
        // An agent that refuses this laboratory may have ended the connection before: it has said why then.
        let answer = read(&mut lines)
            .map_err(|ended| written.err().map_or(ended, |error| error.to_string()))
            .map_err(|what| refused(format!("did not answer: {what}. {NOT_AN_AGENT}")))?;
        let welcome = protocol::welcome(&answer).map_err(refused)?;
        Ok(Self {
            address: address.to_owned(),
            security: security.cloned(),
            welcome: Arc::new(welcome),
            control: Arc::new(Mutex::new(Control {
                lines,
                next_key: 1,
                lost: None,
            })),
        })
    }

    /// Where it is, as it was asked for.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The address that servers there listen on: the one by which the agent was reached.
    #[must_use]
    pub fn server_address(&self) -> IpAddr {
        self.welcome.address
    }

    /// Whether CLOCK_MONOTONIC of its host is that of this one: both are the same machine.
    #[must_use]
    pub fn has_our_clock(&self) -> bool {
        let there = self.welcome.clock.as_ref();
        there.is_some() && there == rtorb_host::clock_identity().as_ref()
    }

    /// Its host, as it was when we connected.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.welcome.host
    }

    /// Where its servers run, and with what priority.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.welcome.placement
    }

    /// Why there is no agent any more; `None` while there is.
    #[must_use]
    pub fn lost(&self) -> Option<String> {
        let mut control = self.control.lock();
        if control.lost.is_none() {
            control.lost = control.lines.broken();
        }
        control.lost.clone()
    }

    /// Has it start a server: the connection that is the server's standard input and output, and the server's key.
    pub(crate) fn start(&self, role: &[impl AsRef<str>]) -> Result<(u32, OwnedFd), LabError> {
        let key = {
            let mut control = self.control.lock();
            control.next_key += 1;
            control.next_key
        };
        let session = self.welcome.session;
        let words: Vec<&str> = role.iter().map(AsRef::as_ref).collect();
        let line = protocol::greeting(&format!("server {session} {key} {}", words.join(" ")));
        let refused = |what: String| LabError::agent(&self.address, what);
        let unreached = |error: std::io::Error| refused(unreachable(&error));
        let stream = connect(&self.address).map_err(unreached)?;
        stream.set_nodelay(true).map_err(unreached)?;
        let socket = secured(stream, &self.address, self.security.as_ref());
        let mut lines = Lines::new(socket.map_err(|error| refused(insecure(&error)))?);
        lines.write(&line).map_err(unreached)?;
        Ok((key, lines.into_socket()))
    }

    /// Waits until a server has ended by itself, ends it when that takes too long, and answers how it ended.
    pub(crate) fn end(&self, key: u32) -> Result<String, LabError> {
        self.ask(&AgentQuestion::End(key))
    }

    /// As [`rtorb_host::placement::obtained`].
    pub(crate) fn obtained(&self, key: u32, process: &str) -> Option<ObtainedScheduling> {
        self.scheduling(&AgentQuestion::Obtained(key, process.to_owned()))
            .pop()
    }

    /// As [`rtorb_host::placement::obtained_by_priority`].
    pub(crate) fn obtained_by_priority(&self, key: u32, process: &str) -> Vec<ObtainedScheduling> {
        self.scheduling(&AgentQuestion::ObtainedByPriority(key, process.to_owned()))
    }

    /// None when the agent is gone: nothing is known then.
    fn scheduling(&self, question: &AgentQuestion) -> Vec<ObtainedScheduling> {
        let answer = self.ask(question).ok();
        answer
            .and_then(|line| serde_json::from_str(&line).ok())
            .unwrap_or_default()
    }

    fn ask(&self, question: &AgentQuestion) -> Result<String, LabError> {
        let mut control = self.control.lock();
        if let Some(why) = &control.lost {
            return Err(LabError::agent(&self.address, why.clone()));
        }
        let lines = &mut control.lines;
        let answer = serde_json::to_string(question)
            .map_err(std::io::Error::from)
            .and_then(|line| lines.write(&line))
            .map_err(|error| error.to_string())
            .and_then(|()| read(lines));
        match answer {
            Ok(line) => match line.strip_prefix("error ") {
                Some(what) => Err(LabError::agent(&self.address, what)),
                None => Ok(line),
            },
            Err(why) => {
                control.lost = Some(why.clone());
                Err(LabError::agent(&self.address, why))
            }
        }
    }
}

/// Ends a server's standard input and leaves its output open.
pub(crate) fn end_input(socket: &OwnedFd) {
    // An error means that the connection is gone, which is what we want.
    let _ = shutdown(socket, Shutdown::Write);
}

/// The next line, waited for.
fn read(lines: &mut Lines) -> Result<String, String> {
    match lines.read_within(ANSWER_TIMEOUT) {
        Reading::Line(line) => Ok(line),
        Reading::Nothing => Err(format!("was silent for {} s", ANSWER_TIMEOUT.as_secs())),
        Reading::Ended(why) => Err(why),
    }
}

/// Makes the handshake with the agent, if there is TLS. What is sent and received then is plain text.
fn secured(
    stream: TcpStream,
    address: &str,
    security: Option<&AgentSecurity>,
) -> std::io::Result<OwnedFd> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    match security {
        None => Ok(stream.into()),
        Some(security) => security.connect(stream, host),
    }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let mut refused = std::io::Error::new(
        std::io::ErrorKind::InvalidInput,
        "the name has no address; an agent is given as ADDR:PORT, such as 192.0.2.7:7480",
    );
    for known in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&known, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn unreachable(error: &std::io::Error) -> String {
    format!(
        "cannot be reached: {error}. Start it there with `rtorb lab agent --listen ADDR:PORT`, where ADDR is an address of that host that this \
         one reaches, and with --tls-certificate, --tls-key and --tls-ca, or with --insecure on a network that you trust"
    )
}

fn insecure(error: &std::io::Error) -> String {
    format!(
        "no TLS connection was made: {error}. The agent needs --tls-certificate, --tls-key and --tls-ca too, and a certificate for the \
         address by which it is reached"
    )
}

const NOT_AN_AGENT: &str = "Is it `rtorb lab agent` that listens there? One with TLS serves those that give --tls-ca, --tls-certificate and --tls-key";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The agent answers at once, but for `end`, which takes it a second.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
