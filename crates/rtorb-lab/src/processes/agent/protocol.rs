//! What laboratory and agent say to each other: lines of text, each with a bound.
//!
//! ```text
//! laboratory, first connection        agent
//! rtorb-agent 3 hello                 rtorb-agent 3 welcome {"session":..,"host":{..},"placement":{..},..}
//! {"Obtained":[KEY,NAME]}             [{"process":..,..}]        what the server's threads have
//! {"ObtainedByPriority":[KEY,NAME]}   [..]
//! {"End":KEY}                         ended TEXT
//!
//! one connection for each server
//! rtorb-agent 3 server SESSION KEY ROLE ARGUMENT...
//!                                     from here on it is the server's standard input and output
//! ```
//!
//! What cannot be done is answered by `error TEXT`; a greeting that is refused, by `rtorb-agent 3 error TEXT`. The end of
//! the first connection ends the session and all of its servers.

use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::time::Duration;

use crate::processes::child::number;
use crate::processes::readable::{is_readable, nanoseconds};

use rtorb_host::Host;
use rtorb_host::placement::Placement;
use rtorb_os::clock::monotonic_ns;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use serde::{Deserialize, Serialize};

/// What the agent says of itself when a laboratory comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Told again with each server, so that none is started for a laboratory that has gone.
    pub session: u64,
    /// The version of the program.
    pub program: String,
    /// The agent's host.
    pub host: Host,
    /// Where servers run there.
    pub placement: Placement,
    /// The agent's address on this connection: servers listen on it.
    pub address: IpAddr,
    /// Which clock its host's CLOCK_MONOTONIC is ([`rtorb_host::clock_identity`]).
    pub clock: Option<String>,
}

/// What a connection begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// A laboratory that wants to be served.
    Hello,
    /// A server for the laboratory that is served.
    Server {
        /// As the welcome said.
        session: u64,
        /// What the laboratory calls this server.
        key: u32,
        /// The role and its arguments.
        role: Vec<String>,
    },
}

/// What a laboratory asks while it is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentQuestion {
    /// End the server of this key.
    End(u32),
    /// How all threads of the server run, under this name.
    Obtained(u32, String),
    /// The same for each priority.
    ObtainedByPriority(u32, String),
}

impl AgentQuestion {
    /// The question of this line.
    pub(super) fn read(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| format!("not understood: {error}: {line:?}"))
    }
}

/// A line with the protocol's name and version before it.
#[must_use]
pub fn greeting(text: &str) -> String {
    format!("{NAME} {VERSION} {text}")
}

/// The answer to `hello`.
///
/// # Errors
/// Why there is no welcome, in words for people.
pub fn welcome(answer: &str) -> Result<Welcome, String> {
    let text = of_our_version(answer)?;
    if let Some(what) = text.strip_prefix("error ") {
        return Err(what.to_owned());
    }
    let json = text
        .strip_prefix("welcome ")
        .ok_or_else(|| format!("said {text:?} instead of a welcome"))?;
    serde_json::from_str(json).map_err(|error| format!("welcomed us in a way not known: {error}"))
}

/// What follows the name and version.
fn of_our_version(line: &str) -> Result<&str, String> {
    let first = line.as_bytes().first();
    if first.is_some_and(|first| TLS_RECORDS.contains(first)) {
        return Err(
            "speaks TLS, and this side does not: give --tls-ca, --tls-certificate and --tls-key on both sides, or on none"
                .to_owned(),
        );
    }
    let rest = line
        .strip_prefix(NAME)
        .and_then(|rest| rest.strip_prefix(' '));
    let Some((version, text)) = rest.and_then(|rest| rest.split_once(' ')) else {
        let begin: String = line.chars().take(60).collect();
        return Err(format!("does not speak as an agent does: {begin:?}"));
    };
    if version == VERSION {
        Ok(text)
    } else {
        Err(format!(
            "speaks version {version} of the protocol, and this program version {VERSION}: use the same rtorb on both hosts"
        ))
    }
}

impl FromStr for Greeting {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = of_our_version(line)?.split(' ').collect();
        match words[..] {
            ["hello"] => Ok(Self::Hello),
            ["server", session, key, ref role @ ..] if !role.is_empty() => Ok(Self::Server {
                session: number(session)?,
                key: number(key)?,
                role: role.iter().map(|word| (*word).to_owned()).collect(),
            }),
            _ => Err(format!("not understood: {words:?}")),
        }
    }
}

/// Lines on a connection.
#[derive(Debug)]
pub struct Lines {
    socket: OwnedFd,
    /// What was read and is no whole line yet, or was not asked for.
    buffer: Vec<u8>,
}

/// What came of reading a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// One, without its end.
    Line(String),
    /// None so far.
    Nothing,
    /// None any more, and why.
    Ended(String),
}

impl Lines {
    /// Of a connection from which nothing was read yet.
    #[must_use]
    pub fn new(socket: impl Into<OwnedFd>) -> Self {
        Self {
            socket: socket.into(),
            buffer: Vec::new(),
        }
    }

    /// Sends a line.
    ///
    /// # Errors
    /// What the system said.
    pub fn write(&mut self, line: &str) -> std::io::Result<()> {
        Ok(send_all(&self.socket, format!("{line}\n").as_bytes())?)
    }

    /// The next line, waited for as long as `timeout`. A record of TLS, which may have no line's end, counts as one.
    pub fn read_within(&mut self, timeout: Duration) -> Reading {
        let deadline_ns = monotonic_ns().saturating_add(nanoseconds(timeout));
        loop {
            let first = self.buffer.first();
            if first.is_some_and(|first| TLS_RECORDS.contains(first)) {
                let record = std::mem::take(&mut self.buffer);
                return Reading::Line(String::from_utf8_lossy(&record).into_owned());
            }
            if let Some(end) = self.buffer.iter().position(|&octet| octet == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Reading::Line(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Reading::Ended("wrote a line without an end".to_owned());
            }
            let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
            if !is_readable(self.socket.as_fd(), left) {
                return Reading::Nothing;
            }
            let mut chunk = [0; 4096];
            match recv(&self.socket, &mut chunk[..], RecvFlags::empty()) {
                Ok((0, _)) => return Reading::Ended("closed the connection".to_owned()),
                Ok((count, _)) => self.buffer.extend_from_slice(&chunk[..count]),
                Err(Errno::INTR) => {}
                Err(error) => return Reading::Ended(format!("the connection broke: {error}")),
            }
        }
    }

    /// Why nothing will come any more, if that is so. What comes unasked is a farewell.
    pub fn broken(&mut self) -> Option<String> {
        match self.read_within(Duration::ZERO) {
            Reading::Nothing => None,
            Reading::Line(line) => Some(line.strip_prefix("error ").unwrap_or(&line).to_owned()),
            Reading::Ended(why) => Some(why),
        }
    }

    /// Whether more was read than was asked for.
    #[must_use]
    pub fn has_more(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The connection.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The connection, for other use.
    #[must_use]
    pub fn into_socket(self) -> OwnedFd {
        self.socket
    }
}

/// Sends all bytes, and waits until the socket takes them.
pub(super) fn send_all(socket: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Sets the first connection up: lines leave at once, and a peer that fell silent, host and all, is noticed by the kernel
/// within [`SILENCE_MAX`], so that nothing has to be sent by us while something is measured.
///
/// # Errors
/// What the system said.
pub fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    let silence_ms = u32::try_from(SILENCE_MAX.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, silence_ms)?;
    Ok(())
}

/// The port of agents when none is said.
pub const PORT: u16 = 7480;
/// How long a peer may be silent in the face of the kernel's questions before it counts as gone.
pub const SILENCE_MAX: Duration = Duration::from_secs(8);
/// The first bytes of an alert and of a handshake.
const TLS_RECORDS: [u8; 2] = [0x15, 0x16];
const NAME: &str = "rtorb-agent";
const VERSION: &str = "3";
const PROBE_AFTER: Duration = Duration::from_secs(3);
const PROBE_EVERY: Duration = Duration::from_secs(1);
const PROBES: u32 = 5;
/// A welcome takes two thousand.
const LINE_BYTES_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;

    #[test]
    fn greetings_are_read_back() {
        assert_eq!(greeting("hello").parse(), Ok(Greeting::Hello));
        assert_eq!(
            greeting("server 7 2 raw-server tcp 10.0.0.1:0").parse(),
            Ok(Greeting::Server {
                session: 7,
                key: 2,
                role: ["raw-server", "tcp", "10.0.0.1:0"]
                    .map(str::to_owned)
                    .to_vec(),
            })
        );
    }

    #[test]
    fn a_greeting_that_is_none_is_refused_in_words() {
        for (line, word) in [
            ("GET / HTTP/1.1", "as an agent"),
            ("\u{15}\u{3}\u{3}", "TLS"),
            ("rtorb-agent 9 hello", "version 9"),
            ("rtorb-agent 3 dance", "not understood"),
            ("rtorb-agent 3 server 7 2", "not understood"),
            ("rtorb-agent 3 server x 2 raw-server", "not a number"),
        ] {
            let error = line.parse::<Greeting>().unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    #[test]
    fn questions_are_read_back() {
        for question in [
            AgentQuestion::End(3),
            AgentQuestion::Obtained(3, "rtorb tcp server".to_owned()),
            AgentQuestion::ObtainedByPriority(4, "tao server".to_owned()),
        ] {
            let line = serde_json::to_string(&question).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(AgentQuestion::read(&line), Ok(question));
        }
        for other in [r#"{"End":"all"}"#, r#"{"Exec":[1,"sh"]}"#, "end 3"] {
            let error = AgentQuestion::read(other).unwrap_err();
            assert!(error.contains("not understood"), "{error}");
        }
    }

    #[test]
    fn an_answer_that_is_no_welcome_says_what_it_is() {
        let error = welcome("rtorb-agent 3 error somebody else is served").unwrap_err();
        assert_eq!(error, "somebody else is served");
        assert!(welcome("SSH-2.0-OpenSSH").unwrap_err().contains("SSH-2.0"));
        assert!(
            welcome("rtorb-agent 1 welcome {}")
                .unwrap_err()
                .contains("version 1")
        );
        assert!(welcome("rtorb-agent 3 welcome {}").is_err());
    }

    #[test]
    fn who_speaks_tls_is_told_of_without_a_whole_line() {
        for record in [&[0x16, 3, 1, 2, 0, 1][..], &[0x15, 3, 3, 0, 2, 2]] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let mut lines = Lines::new(listener.accept().unwrap().0);
            writer.write_all(record).unwrap();
            let Reading::Line(line) = lines.read_within(Duration::from_secs(60)) else {
                panic!("it is not known");
            };
            for error in [
                welcome(&line).unwrap_err(),
                line.parse::<Greeting>().unwrap_err(),
            ] {
                assert!(error.contains("speaks TLS"), "{error}");
            }
        }
    }

    #[test]
    fn lines_have_a_bound_and_an_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut lines = Lines::new(listener.accept().unwrap().0);
        assert_eq!(lines.broken(), None);
        writer.write_all(b"one\ntw").unwrap();
        let long = Duration::from_secs(30);
        assert_eq!(lines.read_within(long), Reading::Line("one".to_owned()));
        assert_eq!(lines.read_within(Duration::ZERO), Reading::Nothing);
        writer.write_all(&vec![b'x'; LINE_BYTES_MAX]).unwrap();
        assert!(
            matches!(lines.read_within(long), Reading::Ended(why) if why.contains("without an end"))
        );
        drop(writer);
        assert!(lines.broken().is_some());
    }
}
