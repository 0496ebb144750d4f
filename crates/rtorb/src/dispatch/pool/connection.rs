//! A client's connection as the threads of a lane serve it: in place by one of them as long as the client awaits each reply;
//! by several when it does not.
//!
//! A thread that gets an event locks the connection, serves the message where it lies, and unlocks it: nothing is copied, and
//! no thread waits. If bytes come before the last request is replied to, requests are taken out from then on: a thread takes
//! one, leaves the rest to others, and serves it without the lock. After a while in which requests came one by one, they are
//! served in place again. The states are those of [`ServerConnection`](rtorb_wire::connection::ServerConnection).

use crate::server::{
    Look, Next, Readiness, Reading, ServedConnection, Session, TakenRequest, Workspace, site,
};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::recheck_lock::{RecheckGuard, RecheckLock};
use rustix::io::Errno;
use std::sync::Arc;

/// A connection of a lane.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) session: Arc<Session>,
    /// Every request is taken out before it is served.
    takes_all: bool,
    /// Several threads may serve it at a time.
    is_shared: AtomicBool,
    lock: RecheckLock<ConnectionReader>,
}

/// When several threads serve one connection at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concurrency {
    /// Never: one thread serves the lane.
    Never,
    /// While the client sends requests before it has the replies to earlier ones.
    Pipelined,
    /// Always: every request is taken out before it is served.
    Always,
}

/// The reading side of a connection. One thread at a time has it.
#[derive(Debug)]
pub(crate) struct ConnectionReader {
    reading: Reading,
    /// Requests in a row that were taken out while no other was in progress.
    alone: u32,
    /// Nothing more is received, although events may still come.
    is_over: bool,
}

/// The number of requests served one by one after which a connection is served in place again.
const ALONE_MAX: u32 = 64;

/// Requests that a thread serves on one connection before it turns to the next.
pub(crate) const TURN_MAX: u32 = 16;

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
    pub(crate) fn new(connection: ServedConnection, sharing: Concurrency) -> Self {
        if sharing == Concurrency::Always {
            connection.session.state.take_out();
        }
        Self {
            session: connection.session,
            takes_all: sharing == Concurrency::Always,
            is_shared: AtomicBool::new(sharing != Concurrency::Never),
            lock: RecheckLock::new(ConnectionReader {
                reading: connection.reading,
                alone: 0,
                is_over: false,
            }),
        }
    }

    /// Lets several threads serve it at a time from now on.
    #[cold]
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
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
        let Some(mut reader) = self.enter(readiness) else {
            return Turn::Done;
        };
        for _ in 0..TURN_MAX {
            let state = &self.session.state;
            if state.has_unsent() {
                // An event reports when the client has taken its replies. If it just has, unlocking finds that event's mark.
                match self.leave(reader) {
                    None => return Turn::Done,
                    Some(marked) => reader = marked,
                }
                continue;
            }
            if state.is_taken_out() && !self.serve_in_place(&mut reader) {
                return self.take(workspace, request, reader);
            }
            match reader.serve_in_place(workspace, self) {
                Served::Over => return Turn::Over,
                Served::More => break,
                Served::Pipelined => state.take_out(),
                Served::All => match self.leave(reader) {
                    None => return Turn::Done,
                    Some(marked) => reader = marked,
                },
            }
        }
        self.yield_turn(reader);
        Turn::Done
    }

    /// Ends the connection if a message does not arrive in time, and gives the memory of a silent connection back. Does nothing to a
    /// connection that is in use.
    #[cold]
    pub(crate) fn look(&self, look: Look) {
        let Some(mut reader) = self.lock.try_lock() else {
            return;
        };
        if reader.reading.has_partial() {
            if look.is_for_partial {
                self.session.state.note_partial();
                self.session.look_at_partial();
            }
        } else if look.is_silent && self.session.is_silent() {
            reader.reading.give_buffer_back(&self.session);
            self.session.trim();
        }
        // An event that came meanwhile is reported again.
        if let Some(marked) = reader.unlock() {
            self.yield_turn(marked);
        }
    }

    /// Serves the request that was [taken](Turn::Taken) out.
    #[cold]
    pub(crate) fn serve_taken(&self, workspace: &mut Workspace, request: &mut TakenRequest) {
        // If the connection breaks, it is shut, and the next thread that reads it finds its end.
        let _ = request.serve(&self.session, workspace);
        self.session.note_served();
        request.trim();
    }

    /// Takes one request out, and leaves the rest to others.
    #[cold]
    fn take(
        &self,
        workspace: &mut Workspace,
        request: &mut TakenRequest,
        mut reader: RecheckGuard<'_, ConnectionReader>,
    ) -> Turn {
        let mut held;
        let has_more = loop {
            // First, because the client may never stop sending newer ones.
            held = self.session.orb.held.take_due(&self.session, request);
            if held.is_some() {
                // There may be more of them.
                break true;
            }
            match reader.take_one::<false>(workspace, request, self) {
                (Next::Over, _) => return Turn::Over,
                (Next::Done, has_more) => break has_more,
                (Next::Incomplete, _) => {}
            }
            match self.leave(reader) {
                None => return Turn::Done,
                Some(marked) => reader = marked,
            }
        };
        reader.note_others(self.session.state.take());
        drop(held);
        let inside = if has_more {
            Some(reader)
        } else {
            self.leave(reader)
        };
        if let Some(reader) = inside {
            self.yield_turn(reader);
        }
        Turn::Taken
    }

    /// Locks the connection. If another thread has it, that thread checks again for the event.
    #[inline]
    pub(crate) fn enter(&self, readiness: Readiness) -> Option<RecheckGuard<'_, ConnectionReader>> {
        let state = &self.session.state;
        if readiness == Readiness::Ended {
            state.report_end();
        }
        // A client that has its reply may send again before the thread that replied has unlocked the connection.
        let is_awaited = !state.is_answered();
        let reader = self.lock.try_lock();
        if reader.is_none() && is_awaited {
            state.take_out();
        }
        reader
    }

    /// Has requests served in place again if they have come one by one for a while.
    #[cold]
    fn serve_in_place(&self, reader: &mut ConnectionReader) -> bool {
        let is_alone =
            !self.takes_all && reader.alone > ALONE_MAX && self.session.state.serve_in_place();
        if is_alone {
            reader.alone = 0;
            if self.session.has_due() {
                // A thread that has released them may have set what this one has cleared.
                self.session.state.take_out();
                return false;
            }
        }
        is_alone
    }

    /// Unlocks the connection when everything is served; returns the lock if another event came meanwhile.
    #[inline]
    fn leave<'g>(
        &self,
        reader: RecheckGuard<'g, ConnectionReader>,
    ) -> Option<RecheckGuard<'g, ConnectionReader>> {
        if self.session.state.is_requested() {
            self.session.end_request();
        }
        reader.unlock()
    }

    /// Unlocks the connection, and has it reported again, because there is more to serve.
    #[cold]
    fn yield_turn(&self, reader: RecheckGuard<'_, ConnectionReader>) {
        // Noted events can be forgotten: the requested report comes after them.
        drop(reader);
        self.session.request_report();
    }
}

impl ConnectionReader {
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
                match self
                    .reading
                    .serve_next::<{ site::LANE }>(&of.session, workspace)
                {
                    Next::Over => {
                        self.end(of);
                        return Served::Over;
                    }
                    Next::Incomplete => break,
                    Next::Done if of.session.state.has_unsent() => return Served::All,
                    Next::Done if self.reading.is_empty() => served += 1,
                    Next::Done if of.is_shared.load(Ordering::Relaxed) => return Served::Pipelined,
                    // A client that never stops sending must not keep the thread from the others.
                    Next::Done if served == TURN_MAX - 1 || of.session.state.may_be_bulk() => {
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

    /// Takes the next request out, and receives until one is complete. Also returns whether there may be more. `BIDIRECTIONAL` for an ORB
    /// whose connections may be so.
    pub(crate) fn take_one<const BIDIRECTIONAL: bool>(
        &mut self,
        workspace: &mut Workspace,
        request: &mut TakenRequest,
        of: &Connection,
    ) -> (Next, bool) {
        let mut received = Received::More;
        loop {
            let next = (self.reading).take_next::<BIDIRECTIONAL>(&of.session, workspace, request);
            match next {
                Next::Incomplete if received == Received::All => return (Next::Incomplete, false),
                Next::Incomplete => {}
                Next::Over => {
                    self.end(of);
                    return (Next::Over, false);
                }
                next @ Next::Done => {
                    return (next, received == Received::More || !self.reading.is_empty());
                }
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
            Ok(_) if of.session.state.is_ending() || self.reading.is_full() => Received::More,
            Ok(_) | Err(Errno::AGAIN) => Received::All,
            Err(Errno::INTR) => Received::More,
            Err(_) => self.received_end(of),
        }
    }

    /// The end, unless there was no buffer to receive into because the connection was silent.
    #[cold]
    fn received_nothing(&mut self, of: &Connection) -> Received {
        if !self.is_over && self.reading.get_buffer(&of.session) {
            // The caller receives again. A call of `receive` here would keep it from being inlined there.
            Received::More
        } else {
            self.received_end(of)
        }
    }

    /// The end.
    #[cold]
    fn received_end(&mut self, of: &Connection) -> Received {
        self.end(of);
        Received::End
    }

    /// Gives the buffer back. Bytes that follow have no meaning, although the connection is watched until the lane has removed it.
    #[cold]
    fn end(&mut self, of: &Connection) {
        self.is_over = true;
        self.reading.end_buffer(&of.session);
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
    use crate::tests::network::reset_all;
    use crate::tests::world::World;
    use crate::transport::resolver::Resolver;
    use crate::transport::{Stream, tcp};
    use rtorb_tests::raw::Request;

    const FOR_PARTIAL: Look = Look {
        is_for_partial: true,
        is_silent: false,
    };

    /// A connection that a server has accepted, and its client's end.
    fn accepted(orb: &Orb) -> (ServedConnection, Stream) {
        orb.root_poa().expect("it listens");
        let core = &orb.core.adapters.server;
        let server = core.server().expect("it is open");
        let Endpoint::Tcp { host, port } = server.listeners[0].bound.clone() else {
            panic!("the default endpoint is TCP");
        };
        let client = tcp::connect(&Resolver::default(), &host, port, u64::MAX);
        let Admission::Accepted(accepted) = server.accept(core, &server.listeners[0]) else {
            panic!("a client waits");
        };
        (accepted, client.expect("it listens"))
    }

    #[test]
    fn a_message_may_take_from_one_look_to_the_next_but_not_longer() {
        let _world = World::perfect();
        let orb = Orb::builder().build().expect("an ORB");
        let (accepted, client) = accepted(&orb);
        let connection = Connection::new(accepted, Concurrency::Never);
        let mut workspace = Workspace::new(ThreadPriority::keeping());
        let mut room = TakenRequest::with_room();
        let mut send = |bytes: &[u8]| {
            let sent = client.send_message_now(bytes, &[]).expect("it is open");
            assert_eq!(sent, bytes.len());
            connection.serve(Readiness::Readable, &mut workspace, &mut room)
        };
        let state = &connection.session.state;
        let request = Request::two_way(b"unknown", "unknown").empty();
        for split in [1, 12, request.len() - 1] {
            // Each request arrives in parts, with looks between them.
            send(&request[..split]);
            connection.look(FOR_PARTIAL);
            send(&request[split..]);
            connection.look(FOR_PARTIAL);
            assert!(!state.gives_way(), "{split}: the request is whole");
        }
        for look in 0..5 {
            connection.look(FOR_PARTIAL);
            assert!(!state.gives_way(), "{look}: it sends nothing");
        }
        send(&request[..20]);
        connection.look(FOR_PARTIAL);
        assert!(!state.gives_way(), "it has just begun");
        // One more byte is no excuse.
        send(&request[20..21]);
        connection.look(FOR_PARTIAL);
        assert!(state.gives_way());
        connection.look(FOR_PARTIAL);
        assert_eq!(
            orb.connection_counts().slow_senders,
            1,
            "it is counted once"
        );
    }

    #[test]
    fn the_end_of_a_connection_takes_no_buffer_from_the_pool() {
        let _world = World::perfect();
        let orb = Orb::builder().build().expect("an ORB");
        let (mut accepted, client) = accepted(&orb);
        let core = &orb.core.adapters.server;
        let mut buffer = core.buffers.take();
        buffer[0] = 7;
        core.buffers.give_back(buffer);
        assert!(accepted.reading.get_buffer(&accepted.session));
        assert_eq!(core.buffers.take()[0], 0, "the connection has the other");
        drop(client);
        let connection = Connection::new(accepted, Concurrency::Never);
        let mut workspace = Workspace::new(ThreadPriority::keeping());
        let mut request = TakenRequest::with_room();
        let turn = connection.serve(Readiness::Ended, &mut workspace, &mut request);
        assert_eq!(turn, Turn::Over);
        assert_eq!(core.buffers.take()[0], 7, "the same buffer");
    }

    #[test]
    fn a_connection_that_ends_by_its_reply_takes_no_buffer_from_the_pool() {
        let _world = World::perfect();
        let orb = Orb::builder().build().expect("an ORB");
        let (mut accepted, client) = accepted(&orb);
        let core = &orb.core.adapters.server;
        let mut buffer = core.buffers.take();
        // Behind what is received into it.
        buffer[8000] = 7;
        core.buffers.give_back(buffer);
        assert!(accepted.reading.get_buffer(&accepted.session));
        let request = Request::two_way(b"unknown", "unknown").empty();
        let sent = client.send_message_now(&request, &[]);
        assert_eq!(sent.expect("it is open"), request.len());
        let received = accepted.reading.receive_now(&accepted.session);
        assert_eq!(received, Ok(request.len()));
        // The client takes no reply.
        reset_all();
        let connection = Connection::new(accepted, Concurrency::Never);
        let mut workspace = Workspace::new(ThreadPriority::keeping());
        let mut room = TakenRequest::with_room();
        let turn = connection.serve(Readiness::Readable, &mut workspace, &mut room);
        assert_eq!(turn, Turn::Over);
        assert_eq!(core.buffers.take()[8000], 7, "the same buffer");
    }

    #[test]
    fn a_connection_that_its_client_closes_takes_no_buffer_from_the_pool() {
        let _world = World::perfect();
        let orb = Orb::builder().build().expect("an ORB");
        let (mut accepted, client) = accepted(&orb);
        let core = &orb.core.adapters.server;
        let mut buffer = core.buffers.take();
        // Behind what is received into it.
        buffer[8000] = 7;
        core.buffers.give_back(buffer);
        assert!(accepted.reading.get_buffer(&accepted.session));
        // A CloseConnection, and a byte that has no meaning any more.
        let close = b"GIOP\x01\x02\x00\x05\x00\x00\x00\x00.";
        let sent = client.send_message_now(close, &[]);
        assert_eq!(sent.expect("it is open"), close.len());
        let connection = Connection::new(accepted, Concurrency::Always);
        let mut workspace = Workspace::new(ThreadPriority::keeping());
        let mut request = TakenRequest::with_room();
        let mut reader = connection.enter(Readiness::Readable).expect("nobody reads");
        let taken = reader.take_one::<false>(&mut workspace, &mut request, &connection);
        assert_eq!(taken, (Next::Over, false));
        // Another thread may have an event for what follows, before the lane has removed the connection.
        let later = Request::two_way(b"unknown", "unknown").empty();
        let sent = client.send_message_now(&later, &[]);
        assert_eq!(sent.expect("it is open"), later.len());
        let taken = reader.take_one::<false>(&mut workspace, &mut request, &connection);
        assert_eq!(taken, (Next::Over, false));
        assert_eq!(core.buffers.take()[8000], 7, "the same buffer");
    }

    #[test]
    fn the_end_of_a_connection_with_a_thread_of_its_own_takes_no_buffer_from_the_pool() {
        let _world = World::perfect();
        let orb = Orb::builder().build().expect("an ORB");
        let (mut accepted, client) = accepted(&orb);
        let core = &orb.core.adapters.server;
        let mut buffer = core.buffers.take();
        buffer[0] = 7;
        core.buffers.give_back(buffer);
        drop(client);
        accepted.serve_to_the_end(&mut Workspace::new(ThreadPriority::keeping()));
        assert_eq!(core.buffers.take()[0], 7, "the same buffer");
    }
}
