//! Wakes the threads that sleep on a connection through shared memory when its peer is gone.
//!
//! When a process ends in any way, the kernel closes its sockets, but wakes no futex. One thread that waits for all sockets saves every
//! call a timer.

use super::MemoryLink;
use crate::transport::Stream;
use core::mem::MaybeUninit;
use rtorb_os::byte_rings::Awaited;
use rtorb_os::clock::timespec;
use rtorb_os::sync::Mutex;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// The connections whose peers are watched. One thread [waits](Self::wait) for them.
#[derive(Debug)]
pub(crate) struct PeerWatch {
    epoll: OwnedFd,
    /// Ends a wait.
    bell: OwnedFd,
    links: Mutex<Links>,
}

#[derive(Debug)]
struct Links {
    watched: Vec<(u64, Weak<MemoryLink>)>,
    /// The id of the next connection. An address would be reused after the connection has ended.
    next: u64,
}

/// The most ended connections that one system call reports.
const EVENTS_MAX: usize = 16;

/// The id of the bell. Connections have ids from 1.
const BELL: u64 = 0;

impl PeerWatch {
    pub(crate) fn new() -> Result<Self, Errno> {
        let watch = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            links: Mutex::new(Links {
                watched: Vec::new(),
                next: BELL + 1,
            }),
        };
        // Edge-triggered, so that nobody has to read it.
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&watch.epoll, &watch.bell, EventData::new_u64(BELL), flags)?;
        Ok(watch)
    }

    /// Adds a connection, if its bytes go through shared memory.
    pub(crate) fn add(&self, stream: &Stream) -> Result<(), Errno> {
        let Some(link) = stream.memory() else {
            return Ok(());
        };
        let number = {
            let mut links = self.links.lock();
            let number = links.next;
            links.next += 1;
            links.watched.retain(|(_, known)| known.strong_count() > 0);
            links.watched.push((number, Arc::downgrade(link)));
            number
        };
        // Bytes at the doorbell are not reported. The kernel removes a closed socket.
        let flags = EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, stream, EventData::new_u64(number), flags)?;
        link.note_watched();
        Ok(())
    }

    /// Ends a wait.
    pub(crate) fn ring(&self) {
        // It fails only if the counter is full, and that takes centuries.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Waits until a peer is gone, the bell rings, or `left_ns` nanoseconds have passed.
    pub(crate) fn wait(&self, left_ns: Option<u64>) {
        let mut interest = [PollFd::new(&self.epoll, PollFlags::IN)];
        // `look` finds out what ended the wait.
        let _ = poll(&mut interest, left_ns.map(timespec).as_ref());
    }

    /// Wakes the threads whose peer is gone. Returns true if one may still sleep: call it again soon.
    pub(crate) fn look(&self) -> bool {
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let now = timespec(0);
        // The only possible error is a signal. Then the next call reports the events.
        let (events, _) = epoll::wait(&self.epoll, &mut room[..], Some(&now)).unwrap_or_default();
        let links = self.links.lock();
        let watched = &links.watched;
        for event in events.iter() {
            let (data, flags) = ({ event.data }.u64(), { event.flags });
            // The connection may have been dropped meanwhile.
            let link = watched.iter().find(|(number, _)| *number == data);
            let Some(link) = link.and_then(|(_, link)| link.upgrade()) else {
                continue;
            };
            link.note_end(Awaited::Bytes);
            if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
                link.note_end(Awaited::Room);
            }
        }
        let mut sleeps = false;
        for link in watched.iter().filter_map(|(_, link)| link.upgrade()) {
            sleeps |= link.wake_ended();
        }
        sleeps
    }
}
