//! The oscilloscope: a process on the supplier's host that sees when the outputs of other hosts change.
//!
//! A receiver on another host sends a datagram as it sets its output. The kernel of this host stamps it when it arrives, before any
//! process runs. So the stamp does not depend on when the oscilloscope runs, and its threads need no priority.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rtorb_instruments::network::received_at_ns;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{ThreadConfig, spawn};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clocks::realtime_ahead_ns;
use super::{EDGES_MAX, Edge};
use crate::contestants::event_channel::system::within;
use crate::error::LabError;
use crate::processes::Process;
use crate::processes::questions::{json, serve_as};

/// A change of an output, as a datagram has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Counted from 0 by its sender.
    pub number: u64,
    /// 0 or 1.
    pub level: u64,
}

impl Signal {
    /// The datagram.
    #[must_use]
    pub fn octets(self) -> [u8; SIGNAL_BYTES] {
        (self.number << 1 | self.level).to_le_bytes()
    }

    fn of(octets: [u8; SIGNAL_BYTES]) -> Self {
        let both = u64::from_le_bytes(octets);
        Self {
            number: both >> 1,
            level: both & 1,
        }
    }
}

/// An oscilloscope that listens.
#[derive(Debug)]
pub struct Oscilloscope {
    inputs: Vec<(UdpSocket, Arc<Mutex<Vec<Seen>>>)>,
}

/// A signal, and when this host received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    number: u64,
    edge: Edge,
}

/// What an oscilloscope is asked.
#[derive(Debug, Serialize, Deserialize)]
enum Question {
    /// To forget what it has seen.
    Clear,
    /// What it has seen at this input, from this number on.
    Seen {
        /// The place of the input's peer among the arguments.
        input: usize,
        /// Of the first signal that is asked for.
        first: u64,
    },
}

impl Oscilloscope {
    /// Listens for the signals of each peer, and starts to receive.
    ///
    /// # Errors
    /// What the system refused.
    pub fn open(peers: &[IpAddr]) -> Result<Self, String> {
        let input = |peer: &IpAddr| -> io::Result<_> {
            let any: IpAddr = match peer {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
            // The first question makes the kernel stamp what comes: there is no stamp yet.
            let _ = received_at_ns(&socket);
            let seen = Arc::new(Mutex::new(Vec::with_capacity(EDGES_MAX)));
            Ok((socket, seen))
        };
        let inputs = peers.iter().map(input).collect::<io::Result<Vec<_>>>();
        let inputs = inputs.map_err(|error| error.to_string())?;
        for ((socket, seen), peer) in inputs.iter().zip(peers) {
            let socket = socket.try_clone().map_err(|error| error.to_string())?;
            let (seen, peer) = (Arc::clone(seen), *peer);
            let receive = move || receive(&socket, peer, &seen);
            spawn("signals", &ThreadConfig::default(), receive)
                .map_err(|refused| refused.to_string())?;
        }
        Ok(Self { inputs })
    }

    /// The port of each input, with spaces between.
    ///
    /// # Errors
    /// What the system said.
    pub fn ports(&self) -> Result<String, String> {
        let port = |(socket, _): &(UdpSocket, _)| Ok(socket.local_addr()?.port().to_string());
        let ports: io::Result<Vec<String>> = self.inputs.iter().map(port).collect();
        Ok(ports.map_err(|error| error.to_string())?.join(" "))
    }

    /// Answers questions until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub fn serve(&self) -> Result<(), String> {
        serve_as(&self.ports()?, |question| self.answer(&question))
    }

    fn answer(&self, question: &Question) -> Result<Value, String> {
        match question {
            Question::Clear => {
                self.inputs.iter().for_each(|(_, seen)| seen.lock().clear());
                json(&())
            }
            Question::Seen { input, first } => {
                let (_, seen) = self.inputs.get(*input).ok_or("there is no such input")?;
                let seen = seen.lock();
                let wanted = seen.iter().filter(|seen| seen.number >= *first);
                json(&wanted.collect::<Vec<_>>())
            }
        }
    }
}

/// Receives the signals of a peer until the socket fails. Others are ignored, as is what has no room.
fn receive(socket: &UdpSocket, peer: IpAddr, seen: &Mutex<Vec<Seen>>) {
    let mut octets = [0; SIGNAL_BYTES];
    while let Ok((count, sender)) = socket.recv_from(&mut octets) {
        let Ok(real_ns) = received_at_ns(socket) else {
            return;
        };
        let at_ns = real_ns.cast_signed() - realtime_ahead_ns();
        let mut seen = seen.lock();
        if count == SIGNAL_BYTES && sender.ip() == peer && seen.len() < EDGES_MAX {
            let Signal { number, level } = Signal::of(octets);
            let at_ns = at_ns.cast_unsigned();
            seen.push(Seen {
                number,
                edge: Edge { at_ns, level },
            });
        }
    }
}

/// A running oscilloscope, as the laboratory sees it.
#[derive(Debug)]
pub struct Screen {
    process: Process,
}

impl Screen {
    /// The screen of a process that listens, and the port of each input.
    ///
    /// # Errors
    /// What the process said.
    pub fn of(process: Process) -> Result<(Self, Vec<u16>), LabError> {
        let port = |word: &str| {
            word.parse()
                .map_err(|_| LabError::process(process.name(), format!("not a port: {word:?}")))
        };
        let ports = process.words().map(port).collect::<Result<_, _>>()?;
        Ok((Self { process }, ports))
    }

    /// Forgets what was seen.
    ///
    /// # Errors
    /// That the process ended or was silent.
    pub fn clear(&mut self) -> Result<(), LabError> {
        self.process.ask(&Question::Clear, Duration::ZERO)
    }

    /// The changes of an output from the signal `first` on, in the order in which they were sent; waits until there are `count`.
    ///
    /// # Errors
    /// That signals were lost, or that the process ended or was silent.
    pub fn changes(
        &mut self,
        input: usize,
        first: u64,
        count: usize,
    ) -> Result<Vec<Edge>, LabError> {
        let mut seen: Vec<Seen> = Vec::new();
        within(ARRIVAL_TIMEOUT, || {
            let question = Question::Seen { input, first };
            seen = self.process.ask(&question, Duration::ZERO)?;
            Ok(seen.len() >= count)
        })?;
        seen.sort_by_key(|seen| seen.number);
        let is_next = |(place, seen): (u64, &Seen)| seen.number == first + place;
        if seen.len() == count && (0..).zip(&seen).all(is_next) {
            return Ok(seen.into_iter().map(|seen| seen.edge).collect());
        }
        let what = format!(
            "received {} of {count} datagrams: the others were lost on the way",
            seen.len()
        );
        Err(LabError::process(self.process.name(), what))
    }
}

const SIGNAL_BYTES: usize = 8;
/// For the last datagram of a run, on a host that leaves little time to the threads that receive.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_os::clock::monotonic_ns;

    fn seen(oscilloscope: &Oscilloscope, first: u64, count: usize) -> Vec<Seen> {
        let mut found = Vec::new();
        within(Duration::from_secs(30), || {
            let answer = oscilloscope.answer(&Question::Seen { input: 0, first });
            found = serde_json::from_value(answer.unwrap()).unwrap();
            Ok(found.len() >= count)
        })
        .unwrap();
        found
    }

    #[test]
    fn a_signal_is_stamped_when_this_host_receives_it() {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        let oscilloscope = Oscilloscope::open(&[loopback]).unwrap();
        let port: u16 = oscilloscope.ports().unwrap().parse().unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect((loopback, port)).unwrap();
        let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
        let mut sent = Vec::new();
        for number in 0..3 {
            let signal = Signal {
                number,
                level: (number + 1) % 2,
            };
            sent.push(monotonic_ns());
            sender.send(&signal.octets()).unwrap();
            stranger
                .send_to(&signal.octets(), (loopback, port))
                .unwrap();
        }
        let found = seen(&oscilloscope, 0, 3);
        assert_eq!(found.len(), 3, "those of strangers are ignored");
        let found_ns = monotonic_ns();
        for (seen, sent_ns) in found.iter().zip(sent) {
            // A busy host delivers late, also over the loopback device. Two clocks are compared, each read within less than a millisecond.
            let slack_ns = 1_000_000;
            assert!(seen.edge.at_ns + slack_ns >= sent_ns);
            assert!(seen.edge.at_ns <= found_ns + slack_ns);
        }
        let levels: Vec<u64> = found.iter().map(|seen| seen.edge.level).collect();
        assert_eq!(levels, [1, 0, 1]);
        assert_eq!(seen(&oscilloscope, 2, 1), found[2..]);
        oscilloscope.answer(&Question::Clear).unwrap();
        assert!(seen(&oscilloscope, 0, 0).is_empty());
        assert!(
            oscilloscope
                .answer(&Question::Seen { input: 1, first: 0 })
                .is_err()
        );
    }
}
