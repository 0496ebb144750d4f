//! Watches the sockets of connections through shared memory, and wakes the threads that sleep there when the peer is gone.
//!
//! The kernel closes the socket of a process that ends in any way, but no futex of it. A thread that waits for all sockets spares
//! every call a timer.

use super::Link;
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
    watched: Vec<(u64, Weak<Link>)>,
    /// Identifies the next connection. An address would not do: the next connection may get that of one that has just ended.
    next: u64,
}

/// Ended connections that one system call reports at most.
const EVENTS_MAX: usize = 16;

/// Identifies the bell. Connections have the numbers from 1.
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

    /// Watches the peer of a connection from now on, if its bytes go through memory.
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
        // Bytes at the doorbell are no event. The kernel forgets a socket that is closed.
        let flags = EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, stream, EventData::new_u64(number), flags)?;
        link.be_watched();
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
        // What ended the wait is seen by looking.
        let _ = poll(&mut interest, left_ns.map(timespec).as_ref());
    }

    /// Wakes the threads whose peer is gone; true if one may sleep still: look again soon.
    pub(crate) fn look(&self) -> bool {
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let now = timespec(0);
        // No error is possible but a signal, and then the wait ends at once and the next look sees the events.
        let (events, _) = epoll::wait(&self.epoll, &mut room[..], Some(&now)).unwrap_or_default();
        let links = self.links.lock();
        let watched = &links.watched;
        for event in events.iter() {
            let (data, flags) = ({ event.data }.u64(), { event.flags });
            // It may be gone already, and its socket with it.
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
