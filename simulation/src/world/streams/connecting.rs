//! Connections being made: listeners, both ends of a new connection, and whether it breaks.

use super::{Break, Domain, Stream};
use crate::world::files::{ERR, FileId, Files, HUP, IN, OUT, Object, RDHUP};
use crate::world::{Core, Event};
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) domain: Domain,
    pub(crate) address: String,
    /// Connections that are made and not accepted.
    queue: VecDeque<FileId>,
    has_ended: bool,
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

    /// The connections that were not accepted.
    pub(super) fn waiting(&self) -> Vec<FileId> {
        self.queue.iter().copied().collect()
    }

    /// Listens no more; returns the connections that were not accepted.
    pub(super) fn end(&mut self) -> VecDeque<FileId> {
        self.has_ended = true;
        std::mem::take(&mut self.queue)
    }

    pub(crate) fn readiness(&self) -> u32 {
        match (self.has_ended, self.queue.is_empty()) {
            (true, _) => IN | HUP | RDHUP,
            (false, false) => IN,
            (false, true) => 0,
        }
    }
}

impl Files {
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
        self.join(core, one, other);
        [one, other]
    }

    /// Makes two streams the ends of one connection.
    fn join(&mut self, core: &mut Core, one: FileId, other: FileId) {
        for (end, peer) in [(one, other), (other, one)] {
            if let Some(stream) = self.stream(end) {
                stream.peer = peer;
                // No network is between two programs of one host.
                if stream.domain == Domain::Tcp {
                    stream.breaks = draw_break(core);
                }
            }
        }
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
        let served = self.add(Object::Stream(Stream {
            is_served: true,
            ..Stream::new(domain, remote, local)
        }));
        self.join(core, id, served);
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
        let descriptor = self.describe(core, served, flags)?;
        self.count_accept(core, id);
        Ok(descriptor)
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
