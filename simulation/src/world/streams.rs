//! Stream sockets: bytes on their way, connections being made, and how they end or break.

use super::files::{ERR, File, FileId, Files, HUP, IN, OUT, Object, RDHUP};
use super::{Core, Event};
use std::collections::VecDeque;
use std::mem::MaybeUninit;

mod connecting;

pub(crate) use connecting::Listener;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Tcp,
    Unix,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) domain: Domain,
    /// It is the end of the server: its listener made it.
    is_served: bool,
    /// 0 as long as it is not connected.
    peer: FileId,
    pub(crate) local: String,
    pub(crate) remote: String,
    arrived: VecDeque<u8>,
    /// Sent by this end, and not received by the peer's program.
    unread: usize,
    /// Sent by this end, and not at the peer.
    pub(crate) on_the_way: usize,
    last_arrival_ns: u64,
    sent: u64,
    /// What happens to this direction, at which byte.
    breaks: Option<(u64, Break)>,
    has_peer_ended: bool,
    ends_reading: bool,
    ends_writing: bool,
    /// A send found no room: its end is told when there is some (SOCK_NOSPACE).
    wants_room: bool,
    error: Option<i32>,
    is_broken: bool,
}

#[derive(Clone, Copy, Debug)]
enum Break {
    Reset,
    Silence,
}

impl Stream {
    fn new(domain: Domain, local: String, remote: String) -> Self {
        Self {
            domain,
            is_served: false,
            peer: 0,
            local,
            remote,
            arrived: VecDeque::new(),
            unread: 0,
            on_the_way: 0,
            last_arrival_ns: 0,
            sent: 0,
            breaks: None,
            has_peer_ended: false,
            ends_reading: false,
            ends_writing: false,
            wants_room: false,
            error: None,
            is_broken: false,
        }
    }
}

impl Files {
    fn stream(&mut self, id: FileId) -> Option<&mut Stream> {
        match &mut self.open.get_mut(&id)?.object {
            Object::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    pub(crate) fn connected(&mut self, id: FileId) -> Result<&mut Stream, i32> {
        self.stream(id).ok_or(libc::ENOTCONN)
    }

    pub(crate) fn send(&mut self, core: &mut Core, id: FileId, bytes: &[u8]) -> Result<usize, i32> {
        let room = self.room(core, id);
        let stream = self.connected(id)?;
        if let Some(errno) = stream.error.take() {
            return Err(errno);
        }
        if stream.is_broken || stream.ends_writing {
            return Err(libc::EPIPE);
        }
        if stream.peer == 0 {
            return Err(libc::EAGAIN);
        }
        if room == 0 && !bytes.is_empty() {
            stream.wants_room = true;
            return Err(libc::EAGAIN);
        }
        let mut count = room.min(bytes.len());
        if count > 1 && core.random.one_in(core.faults.split_one_in) {
            count = 1 + core.random.below(count as u64) as usize;
        }
        let begin = stream.sent;
        stream.sent += count as u64;
        stream.unread += count;
        stream.on_the_way += count;
        let mut passed = count;
        let mut is_reset = false;
        if let Some((at, how)) = stream.breaks
            && stream.sent > at
        {
            passed = at.saturating_sub(begin) as usize;
            is_reset = matches!(how, Break::Reset) && begin <= at;
        }
        let delay_ns = core.random.below(core.faults.delay_ns_max + 1);
        stream.last_arrival_ns = stream.last_arrival_ns.max(core.now_ns + delay_ns);
        let (mut at_ns, to) = (stream.last_arrival_ns, stream.peer);
        core.trace(|| {
            format!(
                "sends {count} bytes on {id}, of which {passed} pass: {:?}",
                String::from_utf8_lossy(&bytes[..count.min(60)])
            )
        });
        core.mix(
            bytes[..count]
                .iter()
                .fold(id, |sum, byte| sum.wrapping_mul(31) ^ u64::from(*byte)),
        );
        let parts = if passed > 1 && core.random.one_in(core.faults.split_one_in) {
            let middle = 1 + core.random.below(passed as u64 - 1) as usize;
            [&bytes[..middle], &bytes[middle..passed]]
        } else {
            [&bytes[..passed], &[]]
        };
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let bytes = part.to_vec();
            core.at(
                at_ns,
                Event::Arrival {
                    to,
                    from: id,
                    bytes,
                },
            );
            at_ns += core.random.below(core.faults.delay_ns_max + 1);
        }
        if let Some(stream) = self.stream(id) {
            stream.last_arrival_ns = at_ns;
        }
        if is_reset {
            core.at(at_ns, Event::Reset { to });
            core.at(at_ns + 1, Event::Reset { to: id });
        }
        Ok(count)
    }

    /// Receives into the room; `peeks` leaves the bytes.
    pub(crate) fn receive(
        &mut self,
        core: &mut Core,
        id: FileId,
        room: &mut [MaybeUninit<u8>],
        peeks: bool,
    ) -> Result<usize, i32> {
        let stream = self.connected(id)?;
        // As the kernel: a call that receives less than it could has received all (epoll(7)).
        let count = room.len().min(stream.arrived.len());
        if count == 0 {
            return match stream.error.take() {
                _ if room.is_empty() => Ok(0),
                Some(errno) => Err(errno),
                None if stream.has_peer_ended || stream.ends_reading || stream.is_broken => Ok(0),
                None => Err(libc::EAGAIN),
            };
        }
        for (to, from) in room.iter_mut().zip(stream.arrived.iter().take(count)) {
            to.write(*from);
        }
        if peeks {
            return Ok(count);
        }
        core.trace(|| format!("receives {count} bytes on {id}"));
        stream.arrived.drain(..count);
        let peer = stream.peer;
        if let Some(sender) = self.stream(peer) {
            sender.unread -= count;
            if sender.has_room(core) && std::mem::take(&mut sender.wants_room) {
                self.notify(core, peer, OUT);
            }
        }
        Ok(count)
    }

    pub(crate) fn shut(&mut self, core: &mut Core, id: FileId, how: i32) -> Result<(), i32> {
        core.trace(|| format!("shuts {id}: {how}"));
        if let Object::Listener(listener) = &mut self.file(id)?.object {
            for refused in listener.end() {
                self.close_stream(core, refused);
                self.open.remove(&refused);
            }
            self.notify(core, id, IN | HUP | RDHUP);
            return Ok(());
        }
        let stream = self.connected(id)?;
        if stream.peer == 0 || stream.is_broken {
            return Err(libc::ENOTCONN);
        }
        if how != libc::SHUT_RD && !std::mem::replace(&mut stream.ends_writing, true) {
            let (at_ns, to) = (stream.last_arrival_ns.max(core.now_ns), stream.peer);
            if !stream.is_silent() {
                core.at(at_ns, Event::End { to });
            }
        }
        if how != libc::SHUT_WR {
            self.connected(id)?.ends_reading = true;
        }
        self.notify(core, id, IN | OUT | RDHUP);
        Ok(())
    }

    /// The last descriptor of a stream is closed, or that of a listener.
    pub(crate) fn close_stream(&mut self, core: &mut Core, id: FileId) {
        if matches!(
            self.open.get(&id).map(|it| &it.object),
            Some(Object::Listener(_))
        ) {
            let _ = self.shut(core, id, libc::SHUT_RDWR);
            return;
        }
        let Some(stream) = self.stream(id) else {
            return;
        };
        let (at_ns, to) = (stream.last_arrival_ns.max(core.now_ns), stream.peer);
        if stream.is_silent() {
            return;
        }
        if !stream.arrived.is_empty() {
            core.at(at_ns, Event::Reset { to });
        } else if !stream.ends_writing {
            core.at(at_ns, Event::End { to });
        }
    }

    pub(crate) fn arrive(&mut self, core: &mut Core, to: FileId, from: FileId, bytes: &[u8]) {
        if let Some(sender) = self.stream(from) {
            sender.on_the_way -= bytes.len();
        }
        match self.stream(to) {
            Some(stream) if !stream.is_broken => {
                stream.arrived.extend(bytes);
                self.notify(core, to, IN);
            }
            // The host answers for a program that has closed.
            _ => core.at(core.now_ns, Event::Reset { to: from }),
        }
    }

    pub(crate) fn end(&mut self, core: &mut Core, to: FileId) {
        if let Some(stream) = self.stream(to) {
            stream.has_peer_ended = true;
            self.notify(core, to, IN | RDHUP);
        }
    }

    pub(crate) fn reset(&mut self, core: &mut Core, to: FileId) {
        if let Some(stream) = self.stream(to)
            && !stream.is_broken
        {
            (stream.error, stream.is_broken) = (Some(libc::ECONNRESET), true);
            self.notify(core, to, IN | OUT | RDHUP | HUP | ERR);
        }
    }

    pub(crate) fn take_error(&mut self, id: FileId) -> i32 {
        self.stream(id)
            .and_then(|stream| stream.error.take())
            .unwrap_or(0)
    }

    /// Nothing that is sent on this end, or on connections that its listener has not accepted, arrives any more, not even its end.
    pub(super) fn silence(&mut self, id: FileId) {
        if let Some(Object::Listener(listener)) = self.open.get(&id).map(|file| &file.object) {
            for waiting in listener.waiting() {
                self.silence(waiting);
            }
        }
        if let Some(stream) = self.stream(id) {
            stream.breaks = Some((0, Break::Silence));
        }
    }

    /// The ends of servers that want to send, and whose clients receive nothing.
    pub(crate) fn count_stuck(&self, core: &Core) -> usize {
        let streams = self.open.values().filter_map(|file| match &file.object {
            Object::Stream(stream) => Some(stream),
            _ => None,
        });
        let is_stuck =
            |it: &&Stream| it.is_served && it.wants_room && !it.is_broken && !it.has_room(core);
        streams.filter(is_stuck).count()
    }

    /// The ends of servers: accepted, and not accepted yet.
    pub(crate) fn count_served(&self) -> usize {
        let is_served = |file: &&File| matches!(&file.object, Object::Stream(it) if it.is_served);
        self.open.values().filter(is_served).count()
    }

    /// True for the end of a server.
    pub(super) fn is_served(&mut self, id: FileId) -> bool {
        self.stream(id).is_some_and(|stream| stream.is_served)
    }

    fn room(&mut self, core: &Core, id: FileId) -> usize {
        let unread = self.stream(id).map_or(0, |stream| stream.unread);
        core.faults.pipe_bytes.saturating_sub(unread)
    }

    /// As tcp_poll of the kernel: who finds no room is told when there is some.
    pub(crate) fn readiness_of_stream(&mut self, core: &Core, id: FileId) -> u32 {
        let Some(stream) = self.stream(id) else {
            return 0;
        };
        let has_room = stream.has_room(core);
        let mut ready = 0;
        let is_read_up = stream.has_peer_ended || stream.ends_reading || stream.is_broken;
        if !stream.arrived.is_empty() || is_read_up {
            ready |= IN;
        }
        if is_read_up {
            ready |= RDHUP;
        }
        if stream.is_broken || is_read_up && stream.ends_writing {
            ready |= HUP;
        }
        if stream.error.is_some() {
            ready |= ERR;
        }
        if stream.is_broken || stream.ends_writing || stream.peer != 0 && has_room {
            ready |= OUT;
        } else {
            stream.wants_room = true;
        }
        ready
    }
}

impl Stream {
    /// True if a third of the pipe is free. As in the kernel (sk_stream_min_wspace), less is not worth a wake-up.
    fn has_room(&self, core: &Core) -> bool {
        core.faults.pipe_bytes.saturating_sub(self.unread) >= self.unread.div_ceil(2).max(1)
    }

    /// True if nothing that this end sends arrives any more.
    fn is_silent(&self) -> bool {
        matches!(self.breaks, Some((at, Break::Silence)) if self.sent >= at)
    }
}
