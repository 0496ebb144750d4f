//! A flood: bursts of small datagrams at a bounded rate. Nobody reads them at the other end.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rtorb_os::timer::PeriodicTimer;
use serde::{Deserialize, Serialize};

use super::link::{End, Link};
use crate::error::LabError;
use crate::processes::questions;
use crate::processes::{Launcher, Process};

/// A process at the clients' end that sends datagrams to the server's end when it is asked.
#[derive(Debug)]
pub struct Flood(Process);

/// What the process is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Question {
    /// To begin.
    Begin,
    /// To end: how many datagrams it has sent.
    End,
}

impl Flood {
    /// Starts the process, which is silent.
    ///
    /// # Errors
    /// That it does not start.
    pub fn start(launcher: &Launcher, link: &Link) -> Result<Self, LabError> {
        let role = ["packet-flood", End::Server.address()];
        let process = link.start_at(End::Clients, launcher, "the flood", &role)?;
        Ok(Self(process))
    }

    /// Has it send.
    ///
    /// # Errors
    /// What went wrong in it.
    pub fn begin(&mut self) -> Result<(), LabError> {
        let _: u64 = self.0.ask(&Question::Begin, Duration::ZERO)?;
        Ok(())
    }

    /// Has it end, and returns how many datagrams it has sent.
    ///
    /// # Errors
    /// What went wrong in it.
    pub fn end(&mut self) -> Result<u64, LabError> {
        self.0.ask(&Question::End, Duration::ZERO)
    }
}

/// Sends datagrams to this host while it is asked to, until standard input ends.
///
/// # Errors
/// What the input or output said.
pub(super) fn serve(host: &str) -> Result<(), String> {
    let socket = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect((host, DISCARD))?;
        Ok(Arc::new(socket))
    });
    let socket = socket.map_err(|error| format!("a socket to {host}: {error}"))?;
    let mut running: Option<Running> = None;
    questions::serve(|question: Question| {
        let sent = running.take().map_or(0, Running::end);
        if question == Question::Begin {
            running = Some(Running::begin(&socket)?);
        }
        Ok(sent)
    })
}

/// The thread that sends.
struct Running {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Option<u64>>,
}

impl Running {
    fn begin(socket: &Arc<UdpSocket>) -> Result<Self, String> {
        let is_over = Arc::<AtomicBool>::default();
        let send = {
            let (is_over, socket) = (Arc::clone(&is_over), Arc::clone(socket));
            move || send(&is_over, || socket.send(&[0; DATAGRAM_BYTES]).is_ok())
        };
        let thread = spawn("flood", &ThreadConfig::default(), send);
        let thread = thread.map_err(|refused| refused.to_string())?;
        Ok(Self { is_over, thread })
    }

    fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().ok().flatten().unwrap_or(0)
    }
}

/// Sends bursts until it is over, at most for [`AT_MOST_NS`]. `send` returns whether a datagram has left: the other end may say that nobody
/// waits for them. Returns how many have left.
fn send(is_over: &AtomicBool, mut send: impl FnMut() -> bool) -> u64 {
    let begin_ns = monotonic_ns();
    let mut timer = PeriodicTimer::starting_at(begin_ns, BURST_PERIOD_NS);
    let mut sent = 0;
    while !is_over.load(Ordering::Relaxed) && timer.next_ns() < begin_ns + AT_MOST_NS {
        timer.wait();
        sent += (0..BURST).map(|_| u64::from(send())).sum::<u64>();
    }
    sent
}

/// The datagrams of a burst: fewer than a queue of veth(4) holds, 256.
const BURST: u64 = 190;
/// From one burst to the next. The period of urgent calls is no multiple of it, so that these meet all parts of a burst.
const BURST_PERIOD_NS: u64 = 475_000;
/// How many datagrams there are in a second.
pub const DATAGRAMS_HZ: u64 = BURST * 1_000_000_000 / BURST_PERIOD_NS;
/// The bytes of a datagram.
pub const DATAGRAM_BYTES: usize = 64;
/// No run takes longer.
const AT_MOST_NS: u64 = 60_000_000_000;
/// The port of RFC 863. Nothing listens to it in the namespace.
const DISCARD: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::packets::clients::PERIOD_NS;

    #[test]
    fn bursts_are_whole_and_end_when_they_are_over() {
        let is_over = AtomicBool::new(false);
        let mut asked = 0;
        let sent = send(&is_over, || {
            asked += 1;
            is_over.store(asked > BURST, Ordering::Relaxed);
            asked != 1
        });
        assert_eq!((asked, sent), (2 * BURST, 2 * BURST - 1));
        assert_eq!(DATAGRAMS_HZ, 400_000);
        assert_ne!(PERIOD_NS % BURST_PERIOD_NS, 0);
    }
}
