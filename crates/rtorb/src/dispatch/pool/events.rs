//! What the threads of a lane wait for: requests, clients that connect, calls for help, the end.

use super::connection::Told;
use crate::transport::{Listener, Stream};
use core::mem::MaybeUninit;
use rtorb_os::clock::timespec;
use rtorb_os::slab::Key;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The set that all threads of a lane wait in; one event wakes one of them.
///
/// A connection's event is told once for what has come (edge-triggered), so that no thread finds what another is at
/// already. Its number leads to the connection without a lock, and to nothing once that has gone.
#[derive(Debug)]
pub(super) struct Events {
    epoll: OwnedFd,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The pool shall end.
    Stop,
    /// A more urgent lane needs a thread.
    Help,
    /// Somebody connects.
    Listener(usize),
    /// A client sent something, or ended.
    Connection(Key, Told),
}

impl Events {
    /// Watches over what a lane has from the beginning.
    pub(super) fn new(
        stop: BorrowedFd<'_>,
        help: BorrowedFd<'_>,
        listeners: &[Listener],
    ) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let help_flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, help, EventData::new_u64(HELP), help_flags)?;
        for (number, listener) in (FIRST_LISTENER..).zip(listeners) {
            let data = EventData::new_u64(number);
            epoll::add(&epoll, &listener.socket, data, EventFlags::IN)?;
        }
        Ok(Self { epoll })
    }

    /// Watches over a connection.
    pub(super) fn add(&self, key: Key, stream: &Stream) -> Result<(), Errno> {
        epoll::add(&self.epoll, stream, data(key), OCTETS)
    }

    /// Tells of a connection again, now: somebody left octets of it unread, or messages in its inbox.
    ///
    /// That it can be sent to is nearly always true, so asking for that as well makes an event.
    pub(super) fn tell_again(&self, key: Key, stream: &Stream) {
        // It fails for a connection that is no longer watched, of which nothing is to be told.
        let _ = epoll::modify(&self.epoll, stream, data(key), OCTETS | EventFlags::OUT);
    }

    /// Tells no more of what [`tell_again`](Self::tell_again) asked for.
    pub(super) fn tell_of_octets(&self, key: Key, stream: &Stream) {
        let _ = epoll::modify(&self.epoll, stream, data(key), OCTETS);
    }

    /// Watches over a connection no more.
    pub(super) fn remove(&self, stream: &Stream) {
        let _ = epoll::delete(&self.epoll, stream);
    }

    /// Waits for the next event, at most `timeout_ns`; `None` when none came by then, or a signal did.
    ///
    /// # Panics
    /// When the set itself is broken, which only a wrong program can do.
    #[inline]
    pub(super) fn next(&self, timeout_ns: Option<u64>) -> Option<Event> {
        let mut room = [MaybeUninit::uninit()];
        let timeout = timeout_ns.map(timespec);
        let event = match epoll::wait(&self.epoll, &mut room, timeout.as_ref()) {
            Ok((events, _)) => *events.first()?,
            Err(errno) => {
                assert!(
                    errno == Errno::INTR,
                    "the events of a lane are lost: {errno}"
                );
                return None;
            }
        };
        let number = { event.data }.u64();
        Some(match number {
            STOP => Event::Stop,
            HELP => Event::Help,
            _ if number & SPECIAL != 0 => Event::Listener((number - FIRST_LISTENER) as usize),
            _ => Event::Connection(key(number), told(event.flags)),
        })
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// What is no connection; their indices are below it.
const SPECIAL: u64 = 1 << 31;
const STOP: u64 = SPECIAL;
const HELP: u64 = SPECIAL + 1;
const FIRST_LISTENER: u64 = SPECIAL + 2;

const OCTETS: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);
const ENDED: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);

fn told(flags: EventFlags) -> Told {
    if flags.intersects(ENDED) {
        Told::End
    } else if flags.contains(EventFlags::OUT) {
        Told::Left
    } else {
        Told::Octets
    }
}

fn data(key: Key) -> EventData {
    EventData::new_u64(u64::from(key.generation) << 32 | u64::from(key.index))
}

fn key(number: u64) -> Key {
    Key {
        index: number as u32,
        generation: (number >> 32) as u32,
    }
}
