//! A client's connection as the threads of a lane serve it: in place by one of them as long as the client awaits each reply;
//! by several when it does not.
//!
//! A thread that gets an event locks the connection, serves the message where it lies, and unlocks it: nothing is copied, and
//! no thread waits. If bytes come before the last request is replied to, the connection is shared from then on: a thread takes
//! one request out, leaves the rest to others, and serves it without the lock. After a while in which requests came one by one,
//! it is served in place again.

use crate::server::{Next, Readiness, Reading, ServedConnection, Session, TakenRequest, Workspace};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rtorb_os::recheck_lock::{RecheckGuard, RecheckLock};
use rustix::io::Errno;
use std::sync::Arc;

/// A connection of a lane.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) session: Arc<Session>,
    sharing: Sharing,
    /// Requests that were taken out and have no reply yet. Only the thread with the lock raises it.
    under_way: AtomicU32,
    /// An event reported bytes while a request was being served.
    is_pipelined: AtomicBool,
    /// An event reported that the client sends no more.
    is_ending: AtomicBool,
    lock: RecheckLock<Inlet>,
}

/// When several threads serve one connection at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Never: one thread serves the lane.
    Never,
    /// While the client sends requests before it has the replies to earlier ones.
    Pipelined,
    /// Always: every request is taken out before it is served.
    Always,
}

/// The state that one thread at a time has.
#[derive(Debug)]
pub(super) struct Inlet {
    reading: Reading,
    is_shared: bool,
    /// Requests in a row that were taken out while no other was in progress.
    alone: u32,
    /// The event loop was asked to report the connection again, perhaps without need.
    is_requested: bool,
}

/// After so many requests one by one, a shared connection is served in place again.
const ALONE_MAX: u32 = 64;

/// Requests that a thread serves on one connection before it turns to the next.
pub(super) const TURN_MAX: u32 = 16;

/// The end of a thread's turn with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The connection is unlocked.
    Done,
    /// A request was taken out, and the connection is unlocked.
    Taken,
    /// The connection has ended.
    Over,
}

/// The result of receiving once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    /// Bytes, or none. An event reports later ones.
    All,
    /// Bytes, and there may be more.
    More,
    /// The end.
    End,
}

/// The state of a connection after it was served in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// Everything that was received is served.
    All,
    /// There may be more, which waits for the next turn.
    More,
    /// Several threads must serve it.
    Pipelined,
    /// It has ended.
    Over,
}

impl Connection {
    pub(crate) fn new(connection: ServedConnection, sharing: Sharing) -> Self {
        Self {
            session: connection.session,
            sharing,
            under_way: AtomicU32::new(0),
            is_pipelined: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            lock: RecheckLock::new(Inlet {
                reading: connection.reading,
                is_shared: sharing == Sharing::Always,
                alone: 0,
                is_requested: false,
            }),
        }
    }

    /// Serves what has been received, or takes one request out of it, unless another thread has the connection: that thread then
    /// checks again.
    // Called in two places, it would not be inlined otherwise: 30 instructions a request.
    #[inline(always)]
    pub(crate) fn serve(
        &self,
        readiness: Readiness,
        workspace: &mut Workspace,
        request: &mut TakenRequest,
    ) -> Turn {
        let Some(mut inlet) = self.enter(readiness) else {
            return Turn::Done;
        };
        self.watch_pipelining(&mut inlet);
        for _ in 0..TURN_MAX {
            if self.session.has_unsent() {
                // An event reports when the client has taken its replies. If it just has, unlocking finds that event's mark.
                match self.leave(inlet) {
                    None => return Turn::Done,
                    Some(marked) => inlet = marked,
                }
                continue;
            }
            if inlet.is_shared {
                return self.take(workspace, request, inlet);
            }
            match inlet.serve_in_place(workspace, self) {
                Served::Over => return Turn::Over,
                Served::More => break,
                Served::Pipelined => inlet.is_shared = true,
                Served::All => match self.leave(inlet) {
                    None => return Turn::Done,
                    Some(marked) => {
                        inlet = marked;
                        self.watch_pipelining(&mut inlet);
                    }
                },
            }
        }
        self.yield_turn(inlet);
        Turn::Done
    }

    /// Gives the memory of a silent connection back; nothing of a connection that is in use.
    #[cold]
    pub(super) fn give_memory_back(&self) {
        let Some(mut inlet) = self.lock.try_lock() else {
            return;
        };
        if self.session.is_silent() && self.under_way.load(Ordering::Acquire) == 0 {
            inlet.reading.give_buffer_back(&self.session);
            self.session.trim();
        }
        // An event that came meanwhile is reported again.
        if let Some(marked) = inlet.unlock() {
            self.yield_turn(marked);
        }
    }

    /// Serves the request that was [taken](Turn::Taken) out.
    #[cold]
    pub(super) fn serve_taken(&self, workspace: &mut Workspace, request: &mut TakenRequest) {
        // If the connection breaks, it is shut, and the next thread that reads it finds its end.
        let _ = request.serve(&self.session, workspace);
        self.under_way.fetch_sub(1, Ordering::Release);
        request.trim();
    }

    /// Takes one request out, and leaves the rest to others.
    #[cold]
    fn take(
        &self,
        workspace: &mut Workspace,
        request: &mut TakenRequest,
        mut inlet: RecheckGuard<'_, Inlet>,
    ) -> Turn {
        let has_more = loop {
            match inlet.take_one(workspace, request, self) {
                (Next::Over, _) => return Turn::Over,
                (Next::Done, has_more) => break has_more,
                (Next::Incomplete, _) => match self.leave(inlet) {
                    None => return Turn::Done,
                    Some(marked) => inlet = marked,
                },
            }
        };
        inlet.note_others(self.under_way.fetch_add(1, Ordering::Relaxed));
        let inside = if has_more {
            Some(inlet)
        } else {
            self.leave(inlet)
        };
        if let Some(inlet) = inside {
            self.yield_turn(inlet);
        }
        Turn::Taken
    }

    /// Locks the connection. A thread that finds it locked notes the event for the owner.
    #[inline]
    pub(super) fn enter(&self, readiness: Readiness) -> Option<RecheckGuard<'_, Inlet>> {
        if readiness == Readiness::Ended {
            self.is_ending.store(true, Ordering::Release);
        }
        // A client that has its reply may send again before the thread that replied has unlocked the connection.
        let is_awaited = !self.session.is_answered();
        let mut inlet = self.lock.try_lock();
        match &mut inlet {
            // The bytes that this event was requested for may have been served meanwhile.
            Some(inlet) if readiness == Readiness::Requested => inlet.is_requested = true,
            None if is_awaited => self.is_pipelined.store(true, Ordering::Release),
            _ => {}
        }
        inlet
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// Shares the connection if its client pipelines, and serves it in place again if the client has not for a while.
    #[inline]
    fn watch_pipelining(&self, inlet: &mut Inlet) {
        if self.is_pipelined.load(Ordering::Acquire) {
            self.is_pipelined.store(false, Ordering::Relaxed);
            inlet.is_shared = true;
            inlet.alone = 0;
        }
        if inlet.alone > ALONE_MAX
            && self.sharing != Sharing::Always
            && self.under_way.load(Ordering::Acquire) == 0
        {
            inlet.alone = 0;
            inlet.is_shared = false;
            self.session.answer_alone();
        }
    }

    /// Unlocks the connection when everything is served; returns the lock if another event came meanwhile.
    #[inline]
    fn leave<'g>(&self, mut inlet: RecheckGuard<'g, Inlet>) -> Option<RecheckGuard<'g, Inlet>> {
        if inlet.is_requested {
            inlet.is_requested = false;
            self.session.await_bytes();
        }
        inlet.unlock()
    }

    /// Unlocks the connection, and has it reported again, because there is more to serve.
    #[cold]
    fn yield_turn(&self, mut inlet: RecheckGuard<'_, Inlet>) {
        inlet.is_requested = true;
        // Noted events can be forgotten: the requested report comes after them.
        drop(inlet);
        self.session.request_event();
    }
}

impl Inlet {
    /// Serves the received requests, unless they arrive faster than they are served.
    #[inline]
    fn serve_in_place(&mut self, workspace: &mut Workspace, of: &Connection) -> Served {
        let mut served = 0;
        // Bytes that the last turn left come first.
        let mut received = if self.reading.is_empty() {
            self.receive(of)
        } else {
            Received::More
        };
        while received != Received::End {
            loop {
                match self.reading.serve_next(&of.session, workspace) {
                    Next::Over => return Served::Over,
                    Next::Incomplete => break,
                    Next::Done if of.session.has_unsent() => return Served::All,
                    Next::Done if self.reading.is_empty() => served += 1,
                    Next::Done if of.sharing != Sharing::Never => return Served::Pipelined,
                    // A client that never stops sending must not keep the thread from the others.
                    Next::Done if served == TURN_MAX || of.session.may_be_bulk() => {
                        return Served::More;
                    }
                    Next::Done => served += 1,
                }
            }
            match received {
                Received::All => return Served::All,
                _ if served > 0 => return Served::More,
                _ => received = self.receive(of),
            }
        }
        Served::Over
    }

    /// Takes the next request out, and receives until one is complete. Also returns whether there may be more.
    pub(super) fn take_one(
        &mut self,
        workspace: &mut Workspace,
        request: &mut TakenRequest,
        of: &Connection,
    ) -> (Next, bool) {
        let mut received = Received::More;
        loop {
            match self.reading.take_next(&of.session, workspace, request) {
                Next::Incomplete if received == Received::All => return (Next::Incomplete, false),
                Next::Incomplete => {}
                next => return (next, received == Received::More || !self.reading.is_empty()),
            }
            received = self.receive(of);
            if received == Received::End {
                return (Next::Over, false);
            }
        }
    }

    /// Receives once. If fewer bytes come than there is room for, the socket is empty, but for its end, which is reported once.
    // Called in three places, it would not be inlined otherwise: some 30 instructions a request.
    #[inline(always)]
    fn receive(&mut self, of: &Connection) -> Received {
        match self.reading.receive_now(&of.session) {
            Ok(0) => self.received_nothing(of),
            Ok(_) if of.is_ending() || self.reading.is_full() => Received::More,
            Ok(_) | Err(Errno::AGAIN) => Received::All,
            Err(Errno::INTR) => Received::More,
            Err(_) => self.received_end(of),
        }
    }

    /// The end, unless there was no buffer to receive into.
    #[cold]
    fn received_nothing(&mut self, of: &Connection) -> Received {
        if self.reading.get_buffer(&of.session) {
            // The caller receives again. A call of `receive` here would keep it from being inlined there.
            Received::More
        } else {
            self.received_end(of)
        }
    }

    /// The end. The buffer goes back to the pool, which would lose one with each connection otherwise.
    #[cold]
    fn received_end(&mut self, of: &Connection) -> Received {
        self.reading.give_buffer_back(&of.session);
        Received::End
    }

    /// Notes how many other requests are in progress when one is taken out.
    fn note_others(&mut self, others: u32) {
        self.alone = if others == 0 { self.alone + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Orb;
    use crate::endpoint::Endpoint;
    use crate::server::{Admission, ThreadPriority};
    use crate::tests::world::World;
    use crate::transport::resolver::Resolver;
    use crate::transport::tcp;

    #[test]
    fn the_end_of_a_connection_takes_no_buffer_from_the_pool() {
        let _world = World::perfect();
        let orb = Orb::builder().build().expect("an ORB");
        orb.root_poa().expect("it listens");
        let core = &orb.core.adapters.server;
        let server = core.server().expect("it is open");
        let Endpoint::Tcp { host, port } = server.listeners[0].bound.clone() else {
            panic!("the default endpoint is TCP");
        };
        let client = tcp::connect(&Resolver::default(), &host, port, u64::MAX);
        let client = client.expect("it listens");
        let Admission::Accepted(mut accepted) = server.accept(core, &server.listeners[0]) else {
            panic!("a client waits");
        };
        let mut buffer = core.buffers.take();
        buffer[0] = 7;
        core.buffers.give_back(buffer);
        assert!(accepted.reading.get_buffer(&accepted.session));
        assert_eq!(core.buffers.take()[0], 0, "the connection has the other");
        drop(client);
        let connection = Connection::new(accepted, Sharing::Never);
        let mut workspace = Workspace::new(ThreadPriority::keeping());
        let mut request = TakenRequest::with_room();
        let turn = connection.serve(Readiness::Ended, &mut workspace, &mut request);
        assert_eq!(turn, Turn::Over);
        assert_eq!(core.buffers.take()[0], 7, "the same buffer");
    }
}
