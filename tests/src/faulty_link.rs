//! Two hosts in one process: two network namespaces and a link between them, which loses, delays and reorders packets, or carries
//! none.
//!
//! The kernel's TCP is at both ends; only the link is ours, and its faults repeat with its seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rtorb_instruments::network::{enter_new_network, open_tunnel};
use rustix::event::{PollFd, PollFlags, poll};

use crate::running::output_of;

/// The address of the host whose thread called [`Link::to_server`].
pub const CLIENT: &str = "10.9.0.1";
/// The address of the server's host.
pub const SERVER: &str = "10.9.0.2";
/// The address at which the server's host sees the client's if the link [translates](Faults::translates).
pub const GATE: &str = "10.9.0.9";

/// The packets that wait in the link at most; what comes then is lost, as in a router.
const ROOM: usize = 1_000;
/// How long the link sleeps at most before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(10);

/// What the link does to packets in both directions. All may change at any moment.
#[derive(Debug, Default)]
pub struct Faults {
    /// The packets that are lost, of 1,000.
    pub lost_per_mille: AtomicU32,
    /// The shortest time of a packet on the link, in microseconds.
    pub delay_us: AtomicU32,
    /// A packet takes up to this much longer, in microseconds. Packets overtake each other.
    pub jitter_us: AtomicU32,
    /// Nothing passes.
    pub cut: AtomicBool,
    /// The client's host is behind NAT: the server's sees it at [`GATE`], and opens no connection to it. Only TCP passes.
    pub translates: AtomicBool,
}

/// A link; dropped, it carries nothing any more, and its thread has ended.
#[derive(Debug)]
pub struct Link {
    /// What it does to packets.
    pub faults: Arc<Faults>,
    ended: Arc<AtomicBool>,
    carrier: Option<JoinHandle<()>>,
}

impl Link {
    /// Moves the calling thread to a host of its own, with the address [`CLIENT`], and runs `start` on a thread of the other host, whose
    /// address is [`SERVER`]. The processes and threads that they start stay where their starters are.
    ///
    /// # Errors
    ///
    /// The kernel's reason: this process may not make namespaces, or the host has no tunnels.
    ///
    /// # Panics
    ///
    /// A new interface cannot be given its address, or `start` panics.
    pub fn to_server<T: Send>(
        seed: u64,
        start: impl FnOnce() -> T + Send,
    ) -> Result<(Self, T), rustix::io::Errno> {
        let client = new_host(CLIENT)?;
        let (server, started) = thread::scope(|scope| {
            let host = scope.spawn(|| Ok::<_, rustix::io::Errno>((new_host(SERVER)?, start())));
            host.join().expect("the server's host starts")
        })?;
        let faults = Arc::new(Faults::default());
        let ended = Arc::new(AtomicBool::new(false));
        let carrier = Carrier {
            hosts: [client, server],
            faults: faults.clone(),
            ended: ended.clone(),
            random: fastrand::Rng::with_seed(seed),
            packets: BinaryHeap::new(),
            accepted: 0,
        };
        let carrier = Some(thread::spawn(move || carrier.run()));
        let link = Self {
            faults,
            ended,
            carrier,
        };
        Ok((link, started))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(carrier) = self.carrier.take() {
            // A carrier that panicked has said so, and the calls of its test have failed.
            let _ = carrier.join();
        }
    }
}

/// Moves the calling thread into a new network with this address on a tunnel, and answers the tunnel's other end.
fn new_host(address: &str) -> Result<File, rustix::io::Errno> {
    enter_new_network()?;
    let tunnel = open_tunnel("wire")?;
    for arguments in [
        format!("address add {address}/24 dev wire"),
        "link set wire up".to_owned(),
        "link set lo up".to_owned(),
    ] {
        output_of(Command::new("ip").args(arguments.split(' ')));
    }
    Ok(tunnel)
}

/// A packet on its way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    due: Instant,
    /// Packets of one moment keep their order.
    number: u64,
    to: usize,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Carrier {
    hosts: [File; 2],
    faults: Arc<Faults>,
    ended: Arc<AtomicBool>,
    random: fastrand::Rng,
    packets: BinaryHeap<Reverse<Packet>>,
    accepted: u64,
}

impl Carrier {
    fn run(mut self) {
        while !self.ended.load(Ordering::Acquire) {
            let now = Instant::now();
            self.deliver(now);
            let next = self.packets.peek().map(|packet| packet.0.due);
            let wait = next.map_or(LOOK, |due| due.saturating_duration_since(now).min(LOOK));
            for from in self.readable(wait) {
                self.accept(from);
            }
        }
    }

    fn readable(&self, wait: Duration) -> Vec<usize> {
        let [client, server] = &self.hosts;
        let mut asked = [client, server].map(|host| PollFd::new(host, PollFlags::IN));
        let wait = rustix::event::Timespec::try_from(wait).expect("the wait is short");
        poll(&mut asked, Some(&wait)).expect("two files can be polled");
        (0..2)
            .filter(|&host| !asked[host].revents().is_empty())
            .collect()
    }

    fn accept(&mut self, from: usize) {
        let mut bytes = vec![0; 1_600];
        let read = self.hosts[from]
            .read(&mut bytes)
            .expect("a packet is there");
        bytes.truncate(read);
        let faults = &self.faults;
        let is_lost = self.random.u32(..1_000) < faults.lost_per_mille.load(Ordering::Relaxed);
        let is_stopped =
            faults.translates.load(Ordering::Relaxed) && !is_translated(from, &mut bytes);
        let is_cut = faults.cut.load(Ordering::Relaxed);
        if is_lost || is_cut || is_stopped || self.packets.len() == ROOM {
            return;
        }
        let jitter = self.random.u32(..=faults.jitter_us.load(Ordering::Relaxed));
        let delay = faults.delay_us.load(Ordering::Relaxed) + jitter;
        self.accepted += 1;
        self.packets.push(Reverse(Packet {
            due: Instant::now() + Duration::from_micros(delay.into()),
            number: self.accepted,
            to: 1 - from,
            bytes,
        }));
    }

    fn deliver(&mut self, now: Instant) {
        while let Some(packet) = self.packets.peek_mut() {
            if packet.0.due > now {
                break;
            }
            let Reverse(packet) = std::collections::binary_heap::PeekMut::pop(packet);
            // What the other host has no room for is lost.
            let _ = self.hosts[packet.to].write(&packet.bytes);
        }
    }
}

/// Changes the client's address in a packet of TCP over IPv4, as NAT does. Returns false for a packet that does not pass: the first one of a
/// connection to the client, or one to the client's own address.
fn is_translated(from: usize, packet: &mut [u8]) -> bool {
    const TCP: u8 = 6;
    let header = usize::from(packet.first().map_or(0, |first| first & 15)) * 4;
    if packet.get(9) != Some(&TCP) || packet.len() < header + 20 {
        return false;
    }
    let address = |text: &str| text.parse::<Ipv4Addr>().expect("an address").octets();
    if from == 0 {
        translate(packet, 12, address(GATE));
        return true;
    }
    // SYN without ACK.
    let is_first = packet[header + 13] & 0b1_0010 == 0b10;
    let passes = packet[16..20] == address(GATE) && !is_first;
    if passes {
        translate(packet, 16, address(CLIENT));
    }
    passes
}

/// Replaces an address, and corrects the checksums of IP and TCP for it (RFC 1624).
fn translate(packet: &mut [u8], place: usize, address: [u8; 4]) {
    let header = usize::from(packet[0] & 15) * 4;
    let word = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    for half in [0, 2] {
        let (old, new) = (word(&packet[place + half..]), word(&address[half..]));
        for checksum in [10, header + 16] {
            let sum = u32::from(!word(&packet[checksum..])) + u32::from(!old) + u32::from(new);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            packet[checksum..checksum + 2].copy_from_slice(&sum.to_be_bytes());
        }
    }
    packet[place..place + 4].copy_from_slice(&address);
}
