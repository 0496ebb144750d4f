//! Open files and their descriptors, and who waits for them.

use super::disk::InodeId;
use super::epolls::Epoll;
use super::processes::ProcessId;
use super::streams::{Domain, Listener, Stream};
use super::tasks::{Ticket, Woken};
use super::{Core, Event};
use std::collections::BTreeMap;

/// The number of an open file; never used again.
pub(crate) type FileId = u64;

#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) open: BTreeMap<FileId, File>,
    descriptors: BTreeMap<i32, Descriptor>,
    next: FileId,
    pub(crate) next_port: u16,
    /// The connections that servers have accepted and not closed.
    pub(crate) accepted: usize,
}

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    file: FileId,
    process: ProcessId,
}

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) object: Object,
    pub(crate) is_nonblocking: bool,
    descriptors: usize,
    /// Threads that wait for it; each event wakes all of them.
    waiters: Vec<Ticket>,
    /// The epoll sets that it is in.
    pub(crate) watchers: Vec<FileId>,
}

#[derive(Debug)]
pub(crate) enum Object {
    /// A socket that is neither bound nor connected, or bound to an address.
    Socket(Domain, Option<String>),
    Listener(Listener),
    Stream(Stream),
    Bell {
        rings: u64,
    },
    Timer {
        set: u64,
        expired: u64,
    },
    Epoll(Epoll),
    OnDisk(InodeId),
    /// The folder of the disk.
    Folder,
}

/// The first descriptor of the world: those of the real process are below.
pub(crate) const FIRST_DESCRIPTOR: i32 = 100_000;

pub(crate) const IN: u32 = libc::EPOLLIN as u32;
pub(crate) const OUT: u32 = libc::EPOLLOUT as u32;
pub(crate) const ERR: u32 = libc::EPOLLERR as u32;
pub(crate) const HUP: u32 = libc::EPOLLHUP as u32;
pub(crate) const RDHUP: u32 = libc::EPOLLRDHUP as u32;

impl Files {
    /// Adds a file without a descriptor.
    pub(crate) fn add(&mut self, object: Object) -> FileId {
        self.next += 1;
        let file = File {
            object,
            is_nonblocking: false,
            descriptors: 0,
            waiters: Vec::new(),
            watchers: Vec::new(),
        };
        self.open.insert(self.next, file);
        self.next
    }

    /// Adds a file with a descriptor.
    pub(crate) fn create(&mut self, core: &Core, object: Object, flags: i32) -> Result<i32, i32> {
        if self.is_full(core) {
            return Err(libc::EMFILE);
        }
        let id = self.add(object);
        self.describe(core, id, flags)
    }

    pub(crate) fn is_full(&self, core: &Core) -> bool {
        self.descriptors.len() >= core.faults.descriptors_max
    }

    /// Gives a file the lowest descriptor that is free.
    pub(crate) fn describe(&mut self, core: &Core, id: FileId, flags: i32) -> Result<i32, i32> {
        if self.is_full(core) {
            return Err(libc::EMFILE);
        }
        let free = (FIRST_DESCRIPTOR..).find(|number| !self.descriptors.contains_key(number));
        let descriptor = free.ok_or(libc::EMFILE)?;
        let process = core.tasks.all[core.tasks.current].process;
        let new = Descriptor { file: id, process };
        self.descriptors.insert(descriptor, new);
        core.trace(|| format!("opens {id}"));
        let file = self.file(id)?;
        file.descriptors += 1;
        file.is_nonblocking |= flags & libc::SOCK_NONBLOCK != 0;
        Ok(descriptor)
    }

    pub(crate) fn id(&self, descriptor: i32) -> Result<FileId, i32> {
        self.descriptors
            .get(&descriptor)
            .map(|it| it.file)
            .ok_or(libc::EBADF)
    }

    pub(crate) fn file(&mut self, id: FileId) -> Result<&mut File, i32> {
        self.open.get_mut(&id).ok_or(libc::EBADF)
    }

    /// The descriptors of a process, and their files.
    pub(super) fn of_process(&self, process: ProcessId) -> Vec<(i32, FileId)> {
        let all = self.descriptors.iter();
        let own = all.filter(|(_, it)| it.process == process);
        own.map(|(number, it)| (*number, it.file)).collect()
    }

    /// The number of descriptors.
    pub(crate) fn count(&self) -> usize {
        self.descriptors.len()
    }

    /// The open files, for the report of a failure.
    pub(crate) fn list(&self) -> String {
        let kind = |file: &File| match &file.object {
            Object::Socket(..) => "socket",
            Object::Listener(_) => "listener",
            Object::Stream(_) => "stream",
            Object::Bell { .. } => "bell",
            Object::Timer { .. } => "timer",
            Object::Epoll(_) => "epoll",
            Object::OnDisk(_) | Object::Folder => "file",
        };
        let described = self.open.iter().filter(|(_, file)| file.descriptors > 0);
        let described = described.map(|(id, file)| format!("{id} {}", kind(file)));
        described.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn close(&mut self, core: &mut Core, descriptor: i32) -> Result<(), i32> {
        let id = self.id(descriptor)?;
        core.trace(|| format!("closes {id}"));
        self.descriptors.remove(&descriptor);
        let file = self.file(id)?;
        file.descriptors -= 1;
        if file.descriptors > 0 {
            return Ok(());
        }
        let watchers = std::mem::take(&mut file.watchers);
        self.accepted -= usize::from(self.is_served(id));
        self.close_stream(core, id);
        if let Some(file) = self.open.remove(&id) {
            for waiter in file.waiters {
                core.tasks.wake(waiter, Woken::ByEvent);
            }
        }
        for watcher in watchers {
            if let Some(epoll) = self.epoll(watcher) {
                epoll.remove(id);
            }
        }
        Ok(())
    }

    /// Queues the current thread for the file's next event.
    pub(crate) fn wait(&mut self, id: FileId, ticket: Ticket) {
        if let Some(file) = self.open.get_mut(&id) {
            file.waiters.push(ticket);
        }
    }

    /// What can be done with a file now, in the bits of epoll.
    pub(crate) fn readiness(&mut self, core: &Core, id: FileId) -> u32 {
        match self.open.get(&id).map(|file| &file.object) {
            Some(Object::Socket(..)) => OUT | HUP,
            Some(Object::Listener(listener)) => listener.readiness(),
            Some(Object::Stream(_)) => self.readiness_of_stream(core, id),
            Some(Object::Bell { rings }) => OUT | if *rings > 0 { IN } else { 0 },
            Some(Object::Timer { expired: 1.., .. }) => IN,
            Some(Object::Epoll(epoll)) if epoll.has_ready() => IN,
            _ => 0,
        }
    }

    /// Something has happened to a file: wakes who waits for it.
    pub(crate) fn notify(&mut self, core: &mut Core, id: FileId, events: u32) {
        let Some(file) = self.open.get_mut(&id) else {
            return;
        };
        let watchers = file.watchers.clone();
        for waiter in std::mem::take(&mut file.waiters) {
            core.tasks.wake(waiter, Woken::ByEvent);
        }
        for watcher in watchers {
            let is_new = match self.epoll(watcher) {
                Some(epoll) => epoll.note(core, id, events),
                None => false,
            };
            if is_new {
                self.notify(core, watcher, IN);
            }
        }
    }

    pub(crate) fn happen(&mut self, core: &mut Core, event: Event) {
        match event {
            Event::Timer { file, set } => self.expire(core, file, set),
            Event::Established { file } => self.establish(core, file),
            Event::Arrival { to, from, bytes } => self.arrive(core, to, from, &bytes),
            Event::End { to } => self.end(core, to),
            Event::Reset { to } => self.reset(core, to),
            Event::Wake(..) | Event::Kill { .. } => {}
        }
    }

    /// Sets a timer; `None` stops it.
    pub(crate) fn set_timer(
        &mut self,
        core: &mut Core,
        id: FileId,
        at: Option<u64>,
    ) -> Result<(), i32> {
        let Object::Timer { set, expired } = &mut self.file(id)?.object else {
            return Err(libc::EINVAL);
        };
        *set += 1;
        *expired = 0;
        let set = *set;
        if let Some(at_ns) = at {
            let late_ns = core.random.below(core.faults.late_ns_max + 1);
            core.at(
                at_ns.max(core.now_ns) + late_ns,
                Event::Timer { file: id, set },
            );
        }
        Ok(())
    }

    fn expire(&mut self, core: &mut Core, id: FileId, of: u64) {
        if let Some(File {
            object: Object::Timer { set, expired, .. },
            ..
        }) = self.open.get_mut(&id)
            && *set == of
        {
            *expired += 1;
            self.notify(core, id, IN);
        }
    }

    /// Takes the number of rings or expiries.
    pub(crate) fn take_count(&mut self, id: FileId) -> Result<u64, i32> {
        let count = match &mut self.file(id)?.object {
            Object::Bell { rings } => rings,
            Object::Timer { expired, .. } => expired,
            _ => return Err(libc::EINVAL),
        };
        match std::mem::take(count) {
            0 => Err(libc::EAGAIN),
            count => Ok(count),
        }
    }
}
