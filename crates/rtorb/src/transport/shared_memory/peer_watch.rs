//! Finds the ends of peers of connections through shared memory, and wakes the threads that sleep there.
//!
//! When a process ends, the kernel closes its sockets but wakes no thread that sleeps on a futex of it. One thread that waits for all
//! these sockets saves every call a timer.

use super::MemoryLink;
use crate::poller::{Poller, Token};
use crate::transport::Stream;
use rtorb_os::byte_rings::Awaited;
use rtorb_os::slab::Slab;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::sync::{Arc, Weak};

/// The connections whose peers are watched.
#[derive(Debug)]
pub(crate) struct PeerWatch {
    links: Slab<Weak<MemoryLink>>,
}

/// The number of connections that are watched at most: as many as a process has descriptors.
const LINKS_MAX: usize = 1 << 20;

impl PeerWatch {
    pub(crate) fn new() -> Self {
        Self {
            links: Slab::new(LINKS_MAX),
        }
    }

    /// Has a poller report the end of a connection's peer.
    pub(crate) fn add(
        &self,
        link: &Arc<MemoryLink>,
        stream: &Stream,
        poller: &Poller,
    ) -> Result<(), Errno> {
        self.links.retain(|link| link.strong_count() > 0);
        let key = self.links.insert(Arc::downgrade(link));
        let token = Token::of(key.ok_or(Errno::NOBUFS)?);
        // Bytes at the doorbell are no event.
        poller.add(stream, token, EventFlags::RDHUP | EventFlags::ET)?;
        link.note_watched();
        Ok(())
    }

    /// Notes the end of a peer that the poller reported.
    pub(crate) fn note_end(&self, token: Token, flags: EventFlags) {
        let link = self.links.get(token.key());
        let Some(link) = link.and_then(|link| link.upgrade()) else {
            return;
        };
        link.note_end(Awaited::Bytes);
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            link.note_end(Awaited::Room);
        }
    }

    /// Wakes the threads whose peers are gone. Returns true if one of them may still sleep: then call this again soon.
    pub(crate) fn wake_threads(&self) -> bool {
        let mut may_sleep = false;
        self.links.retain(|link| {
            let link = link.upgrade();
            may_sleep |= link.as_ref().is_some_and(|link| link.wake_ended());
            link.is_some()
        });
        may_sleep
    }
}
