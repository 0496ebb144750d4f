//! The simulated transport: connections in memory, whose bytes are split, delayed and cut off.
//!
//! Its functions stand in the place of the system calls of `transport::socket`. For a socket that it does not know they are
//! those system calls. A simulated socket has a descriptor of the host, so that options can be set and event loops can watch it;
//! no byte goes through it.

use super::random::Random;
use super::{clock, world};
use crate::clock::monotonic_ns;
use crate::transport::{Stream, socket};
use core::cell::RefCell;
use core::mem::MaybeUninit;
use core::time::Duration;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType,
};
use rustix::time::Timespec;
use std::collections::{HashMap, VecDeque};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

thread_local! {
    static NETWORK: RefCell<Option<Network>> = const { RefCell::new(None) };
}

/// The connections of a test.
#[derive(Debug)]
struct Network {
    links: Vec<Link>,
    /// The ends that are open, by their descriptors.
    ends: HashMap<RawFd, End>,
    /// Connections that wait to be accepted, with the port of their listener.
    backlog: Vec<(u16, OwnedFd)>,
    /// The ports of listeners that have ended.
    ended_ports: Vec<u16>,
    /// The ports that swallow everything.
    silent_ports: Vec<u16>,
    random: Random,
    conditions: Conditions,
    /// What happens to the next connections, in their order.
    cuts: VecDeque<Option<Cut>>,
    /// Counts everything that an end did.
    activity: u64,
}

/// One end of a connection; the client's has the number 0.
#[derive(Clone, Copy, Debug)]
struct End {
    link: usize,
    number: usize,
}

/// A connection: what the end of a number sends goes through the pipe of that number.
#[derive(Debug)]
struct Link {
    pipes: [Pipe; 2],
    cut: Option<Cut>,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Pipe {
    /// Bytes with the time of their arrival.
    chunks: VecDeque<(u64, VecDeque<u8>)>,
    /// Bytes in the chunks.
    bytes: usize,
    /// Bytes that were received.
    received: usize,
    /// When the end arrives, once the sender has ended.
    end_ns: Option<u64>,
    is_reset: bool,
    /// The receiver has shut it, and reads its end behind what has arrived.
    is_shut: bool,
    /// The receiver takes nothing more.
    is_deserted: bool,
}

/// How a network carries bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// Bytes arrive at most this much later.
    pub(crate) delay_ns_max: usize,
    /// Bytes that a connection takes in one direction before the receiver has them.
    pub(crate) pipe_bytes_max: usize,
    /// Sending and receiving take any part of the bytes.
    pub(crate) splits: bool,
    /// A thread that waits notices what has happened after all others have acted.
    pub(crate) late_wakeups: bool,
}

/// Where a connection breaks: when that many bytes of one direction were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) direction: Direction,
    pub(crate) received: usize,
    pub(crate) fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Both ends get ECONNRESET; bytes on their way, and those of this direction, are lost.
    Reset,
    /// The receiver reads the end of the stream; the other direction goes on.
    HalfClose,
    /// Nothing arrives any more, and neither side gets an error.
    Silence,
}

impl Conditions {
    /// Everything arrives at once and whole.
    pub(crate) const PERFECT: Self = Self {
        delay_ns_max: 0,
        pipe_bytes_max: 1 << 20,
        splits: false,
        late_wakeups: false,
    };
}

/// Begins a network without connections.
pub(crate) fn begin(seed: u64, conditions: Conditions) {
    let network = Network {
        links: Vec::new(),
        ends: HashMap::new(),
        backlog: Vec::new(),
        ended_ports: Vec::new(),
        silent_ports: Vec::new(),
        random: Random(seed),
        conditions,
        cuts: VecDeque::new(),
        activity: 0,
    };
    NETWORK.set(Some(network));
}

/// Ends the network of this thread.
pub(crate) fn end() {
    drop(NETWORK.take());
}

/// Has the next connections break so, one after the other.
pub(crate) fn cut_next(cuts: impl IntoIterator<Item = Option<Cut>>) {
    with(|network| network.cuts.extend(cuts));
}

/// Changes how bytes are carried from now on.
pub(crate) fn set_conditions(conditions: Conditions) {
    with(|network| network.conditions = conditions);
}

/// Has nobody answer at that port.
pub(crate) fn silence(port: u16) {
    with(|network| network.silent_ports.push(port));
}

/// Breaks all connections.
pub(crate) fn reset_all() {
    with(|network| {
        network.activity += 1;
        network.links.iter_mut().for_each(Link::reset);
    });
}

/// The number of connections that there were.
pub(crate) fn connections() -> usize {
    with(|network| network.links.len())
}

/// True if a thread that waits notices last what has happened.
pub(crate) fn has_late_wakeups() -> bool {
    with(|network| network.conditions.late_wakeups)
}

/// A count that changes with everything that an end does.
pub(crate) fn activity() -> u64 {
    with(|network| network.activity)
}

/// When the next bytes or the next end arrive; `None` if nothing is on its way.
pub(crate) fn next_arrival_ns() -> Option<u64> {
    let now_ns = monotonic_ns();
    with(|network| {
        let pipes = network.links.iter().flat_map(|link| &link.pipes);
        let times = pipes.flat_map(|pipe| [pipe.chunks.front().map(|chunk| chunk.0), pipe.end_ns]);
        times.flatten().filter(|&at| at > now_ns).min()
    })
}

/// Connects to a simulated listener; `None` on a thread without a simulated network.
pub(crate) fn connect(address: &SocketAddr, timeout: Duration) -> Option<Result<Stream, Errno>> {
    if !clock::is_virtual() {
        return None;
    }
    if with(|network| network.silent_ports.contains(&address.port())) {
        clock::sleep_until(monotonic_ns() + timeout.as_nanos() as u64);
        return Some(Err(Errno::TIMEDOUT));
    }
    let sockets = [descriptor(), descriptor()];
    Some(with(|network| {
        if network.ended_ports.contains(&address.port()) {
            return Err(Errno::CONNREFUSED);
        }
        let cut = network.cuts.pop_front().flatten();
        let link = network.links.len();
        network.links.push(Link {
            pipes: Default::default(),
            cut,
        });
        for (number, socket) in sockets.iter().enumerate() {
            let end = End { link, number };
            network.ends.insert(socket.as_raw_fd(), end);
        }
        let [client, server] = sockets;
        network.backlog.push((address.port(), server));
        network.activity += 1;
        Ok(Stream::new(client))
    }))
}

/// True if a client waits to be accepted.
pub(crate) fn has_clients() -> bool {
    with(|network| !network.backlog.is_empty())
}

/// Takes a client that waits at a port.
pub(crate) fn accept_at(port: u16) -> Option<OwnedFd> {
    with(|network| {
        let place = network.backlog.iter().position(|it| it.0 == port)?;
        network.activity += 1;
        Some(network.backlog.remove(place).1)
    })
}

pub(crate) fn accept_with(listener: impl AsFd, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    if !clock::is_virtual() {
        return socket::accept_with(listener, flags);
    }
    accept_at(port_of(listener)?).ok_or(Errno::AGAIN)
}

/// The port that a listener has on the host.
fn port_of(listener: impl AsFd) -> Result<u16, Errno> {
    let bound = rustix::net::getsockname(listener)?;
    Ok(SocketAddr::try_from(bound)?.port())
}

pub(crate) fn send(socket: impl AsFd, bytes: &[u8], flags: SendFlags) -> Result<usize, Errno> {
    let Some(end) = end_of(&socket) else {
        return socket::send(socket, bytes, flags);
    };
    if flags.contains(SendFlags::DONTWAIT) {
        return with(|network| network.send(end, bytes));
    }
    let mut sent = 0;
    while sent < bytes.len() {
        match with(|network| network.send(end, &bytes[sent..])) {
            Ok(more) => sent += more,
            Err(Errno::AGAIN) => {
                world::run_until(|| with(|network| network.is_writable(end)), None);
            }
            Err(errno) if sent == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    Ok(sent)
}

pub(crate) fn sendmsg(
    socket: impl AsFd,
    parts: &[IoSlice<'_>],
    control: &mut SendAncillaryBuffer<'_, '_, '_>,
    flags: SendFlags,
) -> Result<usize, Errno> {
    if end_of(&socket).is_none() {
        return socket::sendmsg(socket, parts, control, flags);
    }
    let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
    send(socket, &parts.concat(), flags)
}

/// A buffer of recv(2).
pub(crate) trait Room {
    /// What was received.
    type Output;

    fn receive(self, socket: impl AsFd, flags: RecvFlags) -> Result<(Self::Output, usize), Errno>;
    fn bytes_max(&self) -> usize;
    fn put(self, bytes: &[u8]) -> Self::Output;
}

impl Room for &mut [u8] {
    type Output = usize;

    fn receive(self, socket: impl AsFd, flags: RecvFlags) -> Result<(usize, usize), Errno> {
        socket::recv(socket, self, flags)
    }

    fn bytes_max(&self) -> usize {
        self.len()
    }

    fn put(self, bytes: &[u8]) -> usize {
        self[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    }
}

impl Room for &mut [MaybeUninit<u8>] {
    type Output = ();

    fn receive(self, socket: impl AsFd, flags: RecvFlags) -> Result<((), usize), Errno> {
        socket::recv(socket, self, flags).map(|(_, received)| ((), received))
    }

    fn bytes_max(&self) -> usize {
        self.len()
    }

    fn put(self, bytes: &[u8]) {
        for (place, byte) in self.iter_mut().zip(bytes) {
            place.write(*byte);
        }
    }
}

pub(crate) fn recv<R: Room>(
    socket: impl AsFd,
    into: R,
    flags: RecvFlags,
) -> Result<(R::Output, usize), Errno> {
    let Some(end) = end_of(&socket) else {
        return into.receive(socket, flags);
    };
    if !flags.contains(RecvFlags::DONTWAIT) {
        world::run_until(|| with(|network| network.is_readable(end)), None);
    }
    let bytes_max = into.bytes_max();
    let received = if flags.contains(RecvFlags::PEEK) {
        with(|network| network.peek(end, bytes_max))?
    } else {
        with(|network| network.receive(end, bytes_max))?
    };
    Ok((into.put(&received), received.len()))
}

pub(crate) fn receive_behind_now(
    socket: impl AsFd,
    into: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<usize, Errno> {
    let Some(end) = end_of(&socket) else {
        return socket::receive_behind_now(socket, into, bytes_max);
    };
    let room = (into.capacity() - into.len()).min(bytes_max);
    let received = with(|network| network.receive(end, room))?;
    into.extend_from_slice(&received);
    Ok(received.len())
}

pub(crate) fn poll(
    socket: impl AsFd,
    events: PollFlags,
    timeout: Option<&Timespec>,
) -> Result<PollFlags, Errno> {
    let Some(end) = end_of(&socket) else {
        return socket::poll(socket, events, timeout);
    };
    let deadline_ns = timeout.map(|timeout| {
        monotonic_ns() + timeout.tv_sec as u64 * 1_000_000_000 + timeout.tv_nsec as u64
    });
    let ready = || with(|network| network.events(end)) & (events | PollFlags::HUP);
    world::run_until(|| !ready().is_empty(), deadline_ns);
    Ok(ready())
}

pub(crate) fn unacknowledged_bytes(socket: impl AsFd) -> Result<usize, Errno> {
    let Some(end) = end_of(&socket) else {
        return socket::unacknowledged_bytes(socket);
    };
    let now_ns = monotonic_ns();
    Ok(with(|network| {
        let pipe = &network.links[end.link].pipes[end.number];
        let on_their_way = pipe.chunks.iter().filter(|chunk| chunk.0 > now_ns);
        on_their_way.map(|chunk| chunk.1.len()).sum()
    }))
}

pub(crate) fn shutdown(socket: impl AsFd, how: Shutdown) -> Result<(), Errno> {
    let Some(end) = end_of(&socket) else {
        if clock::is_virtual()
            && let Ok(port) = port_of(&socket)
        {
            with(|network| network.ended_ports.push(port));
        }
        return socket::shutdown(socket, how);
    };
    with(|network| network.shut(end, how));
    Ok(())
}

impl Drop for Stream {
    fn drop(&mut self) {
        let descriptor = self.as_fd().as_raw_fd();
        // A thread that is ending has no network any more.
        let _ = NETWORK.try_with(|network| {
            if let Some(network) = &mut *network.borrow_mut() {
                network.close(descriptor);
            }
        });
    }
}

/// A socket of the host that is connected to nothing.
fn descriptor() -> OwnedFd {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    rustix::net::socket_with(family, SocketType::STREAM, flags, None).expect("the host has sockets")
}

fn with<T>(act: impl FnOnce(&mut Network) -> T) -> T {
    NETWORK.with_borrow_mut(|network| act(network.as_mut().expect("the test has a network")))
}

fn end_of(socket: &impl AsFd) -> Option<End> {
    let descriptor = socket.as_fd().as_raw_fd();
    NETWORK.with_borrow(|network| network.as_ref()?.ends.get(&descriptor).copied())
}

impl Network {
    fn send(&mut self, end: End, bytes: &[u8]) -> Result<usize, Errno> {
        let Conditions {
            delay_ns_max,
            pipe_bytes_max,
            splits,
            ..
        } = self.conditions;
        let link = &mut self.links[end.link];
        let pipe = &mut link.pipes[end.number];
        if pipe.is_reset {
            return Err(Errno::CONNRESET);
        }
        if pipe.end_ns.is_some() {
            return Err(Errno::PIPE);
        }
        if pipe.is_deserted {
            // The host of the receiver refuses them, which the sender learns later.
            link.reset();
            self.activity += 1;
            return Ok(bytes.len());
        }
        let room = bytes.len().min(pipe_bytes_max.saturating_sub(pipe.bytes));
        if bytes.is_empty() {
            return Ok(0);
        }
        if room == 0 {
            return Err(Errno::AGAIN);
        }
        let count = if splits && self.random.one_in(2) {
            1 + self.random.below(room)
        } else {
            room
        };
        let last_ns = pipe.chunks.back().map_or(0, |chunk| chunk.0);
        let delay_ns = self.random.below(delay_ns_max + 1) as u64;
        let arrival_ns = (monotonic_ns() + delay_ns).max(last_ns);
        pipe.chunks
            .push_back((arrival_ns, bytes[..count].to_vec().into()));
        pipe.bytes += count;
        self.activity += 1;
        Ok(count)
    }

    fn receive(&mut self, end: End, bytes_max: usize) -> Result<Vec<u8>, Errno> {
        let now_ns = monotonic_ns();
        let link = &mut self.links[end.link];
        let number = 1 - end.number;
        link.break_if_due(number);
        let pipe = &mut link.pipes[number];
        let Some((arrival_ns, chunk)) = pipe.chunks.front_mut() else {
            return match pipe.end_ns {
                _ if pipe.is_shut => Ok(Vec::new()),
                _ if pipe.is_reset => Err(Errno::CONNRESET),
                Some(end_ns) if end_ns <= now_ns => Ok(Vec::new()),
                _ => Err(Errno::AGAIN),
            };
        };
        if *arrival_ns > now_ns {
            return if pipe.is_shut {
                Ok(Vec::new())
            } else {
                Err(Errno::AGAIN)
            };
        }
        let mut most = chunk.len().min(bytes_max);
        if let Some(cut) = link.cut.filter(|cut| cut.pipe() == number) {
            most = most.min(cut.received - pipe.received);
        }
        let count = if self.conditions.splits && most > 0 && self.random.one_in(2) {
            1 + self.random.below(most)
        } else {
            most
        };
        let bytes: Vec<u8> = chunk.drain(..count).collect();
        if chunk.is_empty() {
            pipe.chunks.pop_front();
        }
        pipe.bytes -= count;
        pipe.received += count;
        link.break_if_due(number);
        self.activity += 1;
        Ok(bytes)
    }

    /// What a receiver would get first, without taking it.
    fn peek(&mut self, end: End, bytes_max: usize) -> Result<Vec<u8>, Errno> {
        if !self.is_readable(end) {
            return Err(Errno::AGAIN);
        }
        let now_ns = monotonic_ns();
        let pipe = &self.links[end.link].pipes[1 - end.number];
        match pipe.chunks.front().filter(|chunk| chunk.0 <= now_ns) {
            Some((_, bytes)) => Ok(bytes.iter().take(bytes_max).copied().collect()),
            None if pipe.is_reset => Err(Errno::CONNRESET),
            None => Ok(Vec::new()),
        }
    }

    fn is_readable(&mut self, end: End) -> bool {
        let now_ns = monotonic_ns();
        let link = &mut self.links[end.link];
        link.break_if_due(1 - end.number);
        let pipe = &link.pipes[1 - end.number];
        let arrives = match pipe.chunks.front() {
            Some(chunk) => Some(chunk.0),
            None => pipe.end_ns,
        };
        pipe.is_reset || pipe.is_shut || arrives.is_some_and(|at| at <= now_ns)
    }

    fn is_writable(&self, end: End) -> bool {
        let pipe = &self.links[end.link].pipes[end.number];
        let has_room = pipe.bytes < self.conditions.pipe_bytes_max;
        pipe.is_reset || pipe.end_ns.is_some() || has_room
    }

    fn events(&mut self, end: End) -> PollFlags {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, self.is_readable(end));
        events.set(PollFlags::OUT, self.is_writable(end));
        events.set(PollFlags::HUP, self.links[end.link].pipes[0].is_reset);
        events
    }

    fn shut(&mut self, end: End, how: Shutdown) {
        self.activity += 1;
        let pipes = &mut self.links[end.link].pipes;
        if how != Shutdown::Read {
            pipes[end.number].finish();
        }
        if how != Shutdown::Write {
            pipes[1 - end.number].is_shut = true;
        }
        // As Linux does: what comes for a connection that is shut in both directions resets it.
        pipes[1 - end.number].is_deserted |= how == Shutdown::Both;
    }

    fn close(&mut self, descriptor: RawFd) {
        let Some(end) = self.ends.remove(&descriptor) else {
            return;
        };
        self.activity += 1;
        let now_ns = monotonic_ns();
        let link = &mut self.links[end.link];
        let received = &mut link.pipes[1 - end.number];
        received.is_deserted = true;
        // As Linux does: the peer may lose what was sent to it last.
        if received
            .chunks
            .front()
            .is_some_and(|chunk| chunk.0 <= now_ns)
        {
            return link.reset();
        }
        received.chunks.clear();
        received.bytes = 0;
        link.pipes[end.number].finish();
    }
}

impl Link {
    /// Breaks the connection. As with Linux, bytes that have arrived can still be read.
    fn reset(&mut self) {
        let now_ns = monotonic_ns();
        for pipe in &mut self.pipes {
            pipe.chunks.retain(|chunk| chunk.0 <= now_ns);
            pipe.bytes = pipe.chunks.iter().map(|chunk| chunk.1.len()).sum();
            pipe.is_reset = true;
        }
    }

    /// Breaks the connection in a direction if that many bytes were received.
    fn break_if_due(&mut self, number: usize) {
        let Some(cut) = self.cut else { return };
        let pipe = &mut self.pipes[number];
        if cut.pipe() != number || pipe.received < cut.received {
            return;
        }
        pipe.chunks.clear();
        pipe.bytes = 0;
        match cut.fault {
            Fault::Reset => self.reset(),
            Fault::HalfClose => pipe.finish(),
            // What is sent later is lost too.
            Fault::Silence => return pipe.end_ns = None,
        }
        self.cut = None;
    }
}

impl Pipe {
    fn finish(&mut self) {
        let last_ns = self.chunks.back().map_or(0, |chunk| chunk.0);
        self.end_ns.get_or_insert(monotonic_ns().max(last_ns));
    }
}

impl Cut {
    fn pipe(&self) -> usize {
        match self.direction {
            Direction::ToServer => 0,
            Direction::ToClient => 1,
        }
    }
}
