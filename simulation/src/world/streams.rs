//! Stream sockets: bytes on their way, connections being made, and how they end or break.

use super::files::{ERR, FileId, Files, HUP, IN, OUT, Object, RDHUP};
use super::{Core, Event};
use std::collections::VecDeque;
use std::mem::MaybeUninit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Tcp,
    Unix,
}

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) domain: Domain,
    pub(crate) address: String,
    /// Connections that are made and not accepted.
    queue: VecDeque<FileId>,
    has_ended: bool,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) domain: Domain,
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

impl Listener {
    pub(crate) fn new(domain: Domain, address: String) -> Self {
        Self {
            domain,
            address,
            queue: VecDeque::new(),
            has_ended: false,
        }
    }

    pub(crate) fn readiness(&self) -> u32 {
        match (self.has_ended, self.queue.is_empty()) {
            (true, _) => IN | HUP | RDHUP,
            (false, false) => IN,
            (false, true) => 0,
        }
    }
}

impl Stream {
    fn new(domain: Domain, local: String, remote: String) -> Self {
        Self {
            domain,
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

    /// Two ends that are connected.
    pub(crate) fn pair(
        &mut self,
        core: &mut Core,
        domain: Domain,
        addresses: [String; 2],
    ) -> [FileId; 2] {
        let [first, second] = addresses;
        let one = self.add(Object::Stream(Stream::new(
            domain,
            first.clone(),
            second.clone(),
        )));
        let other = self.add(Object::Stream(Stream::new(domain, second, first)));
        for (end, peer) in [(one, other), (other, one)] {
            let breaks = draw_break(core);
            if let Some(stream) = self.stream(end) {
                (stream.peer, stream.breaks) = (peer, breaks);
            }
        }
        [one, other]
    }

    /// Begins to connect a socket. TCP takes a time; a UNIX socket is connected at once.
    pub(crate) fn connect(
        &mut self,
        core: &mut Core,
        id: FileId,
        domain: Domain,
        to: String,
    ) -> Result<(), i32> {
        self.next_port = self.next_port.wrapping_add(1);
        let local = format!("127.0.0.1:{}", 40_000 + self.next_port % 20_000);
        self.file(id)?.object = Object::Stream(Stream::new(domain, local, to));
        if domain == Domain::Unix {
            return self.try_establish(core, id).inspect_err(|_| {
                if let Ok(file) = self.file(id) {
                    file.object = Object::Socket(domain, None);
                }
            });
        }
        let delay_ns = core.random.below(core.faults.delay_ns_max + 1);
        core.at(core.now_ns + delay_ns, Event::Established { file: id });
        Err(libc::EINPROGRESS)
    }

    pub(crate) fn establish(&mut self, core: &mut Core, id: FileId) {
        if let Err(errno) = self.try_establish(core, id)
            && let Some(stream) = self.stream(id)
        {
            (stream.error, stream.is_broken) = (Some(errno), true);
        }
        self.notify(core, id, OUT | IN | ERR | HUP);
    }

    fn try_establish(&mut self, core: &mut Core, id: FileId) -> Result<(), i32> {
        let Some(Stream {
            local,
            remote,
            domain,
            ..
        }) = self.stream(id)
        else {
            return Ok(());
        };
        let (local, remote, domain) = (local.clone(), remote.clone(), *domain);
        let listens = |object: &Object| matches!(object, Object::Listener(it) if it.address == remote && !it.has_ended);
        let listener = self
            .open
            .iter()
            .find(|(_, file)| listens(&file.object))
            .map(|(id, _)| *id);
        let listener = listener.ok_or(libc::ECONNREFUSED)?;
        if core.random.one_in(core.faults.refusal_one_in) {
            return Err(libc::ECONNREFUSED);
        }
        let served = self.add(Object::Stream(Stream::new(domain, remote, local)));
        for (end, peer) in [(id, served), (served, id)] {
            let breaks = draw_break(core);
            if let Some(stream) = self.stream(end) {
                (stream.peer, stream.breaks) = (peer, breaks);
            }
        }
        if let Object::Listener(it) = &mut self.file(listener)?.object {
            it.queue.push_back(served);
        }
        self.notify(core, listener, IN);
        Ok(())
    }

    pub(crate) fn accept(&mut self, core: &mut Core, id: FileId, flags: i32) -> Result<i32, i32> {
        let is_full = self.is_full(core);
        let Object::Listener(listener) = &mut self.file(id)?.object else {
            return Err(libc::EINVAL);
        };
        if listener.has_ended {
            return Err(libc::EINVAL);
        }
        if listener.queue.is_empty() {
            return Err(libc::EAGAIN);
        }
        if is_full {
            return Err(libc::EMFILE);
        }
        let served = listener.queue.pop_front().ok_or(libc::EAGAIN)?;
        self.describe(core, served, flags)
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
                "sends {count} bytes on {id}: {:?}",
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
            if std::mem::take(&mut sender.wants_room) {
                self.notify(core, peer, OUT);
            }
        }
        Ok(count)
    }

    pub(crate) fn shut(&mut self, core: &mut Core, id: FileId, how: i32) -> Result<(), i32> {
        core.trace(|| format!("shuts {id}: {how}"));
        if let Object::Listener(listener) = &mut self.file(id)?.object {
            listener.has_ended = true;
            for refused in std::mem::take(&mut listener.queue) {
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

    /// The streams whose program wants to send, and whose peer receives nothing.
    pub(crate) fn count_stuck(&self, core: &Core) -> usize {
        let streams = self.open.values().filter_map(|file| match &file.object {
            Object::Stream(stream) => Some(stream),
            _ => None,
        });
        let is_stuck =
            |it: &&Stream| it.wants_room && !it.is_broken && it.unread >= core.faults.pipe_bytes;
        streams.filter(is_stuck).count()
    }

    fn room(&mut self, core: &Core, id: FileId) -> usize {
        let unread = self.stream(id).map_or(0, |stream| stream.unread);
        core.faults.pipe_bytes.saturating_sub(unread)
    }

    /// As tcp_poll of the kernel: who finds no room is told when there is some.
    pub(crate) fn readiness_of_stream(&mut self, core: &Core, id: FileId) -> u32 {
        let has_room = self.room(core, id) > 0;
        let Some(stream) = self.stream(id) else {
            return 0;
        };
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
    /// True if nothing that this end sends arrives any more.
    fn is_silent(&self) -> bool {
        matches!(self.breaks, Some((at, Break::Silence)) if self.sent >= at)
    }
}

fn draw_break(core: &mut Core) -> Option<(u64, Break)> {
    let bytes_max = core.random.choose(&[40, 300, 3000, 30_000]);
    let at = core.random.below(bytes_max);
    if core.random.one_in(core.faults.reset_one_in) {
        return Some((at, Break::Reset));
    }
    core.random
        .one_in(core.faults.silence_one_in)
        .then_some((at, Break::Silence))
}
