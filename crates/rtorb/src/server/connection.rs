//! A client's connection that one thread serves: the thread reads, calls and replies, and shares nothing.

use super::closing::close_all;
use super::reading::{Next, Reading};
use super::session::Session;
use super::upcall::site;
use super::workspace::Workspace;
use rtorb_wire::connection::Receiver;
use rustix::io::Errno;
use std::sync::Arc;

/// A connection being served, by one thread at a time.
#[derive(Debug)]
pub(crate) struct ServedConnection {
    pub(crate) session: Arc<Session>,
    pub(crate) reading: Reading,
}

impl ServedConnection {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        let reading = Reading::new(&session);
        Self { session, reading }
    }

    /// Has the thread that serves the connection notice when it is silent, if it then has a buffer to give back: not yet, at a plain socket.
    pub(crate) fn begin_watching_silence(&self) -> Result<(), Errno> {
        if self.is_at_plain_socket() {
            return Ok(());
        }
        self.watch_silence(true)
    }

    /// Waits for requests and serves them until the connection has ended, and sends CloseConnection if the ORB ends it.
    pub(crate) fn serve_to_the_end(&mut self, workspace: &mut Workspace) {
        // A small buffer, while the connection has a larger one or none.
        let mut small = Vec::new();
        self.await_bytes(&mut small);
        loop {
            match self
                .reading
                .serve_next::<{ site::CONNECTION }>(&self.session, workspace)
            {
                Next::Done if !self.reading.is_empty() => continue,
                Next::Done => {}
                Next::Incomplete => self.take_larger_buffer_if_needed(&mut small),
                Next::Over => break,
            }
            match self.reading.receive(&self.session) {
                Ok(0) if self.reading.get_buffer(&self.session) => {}
                Ok(0) => break,
                Ok(_) => {}
                // The receive timeout of the socket has passed.
                Err(Errno::AGAIN) => {
                    self.session.note_look();
                    self.give_memory_back(&mut small);
                }
                // The thread that looks for silent connections has interrupted the wait at shared memory.
                Err(Errno::INTR) => self.give_memory_back(&mut small),
                Err(_) => break,
            }
        }
        self.end();
    }

    /// Ends the connection, with CloseConnection if the ORB ends it.
    // Inlined, it would cost each request 30 instructions.
    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        self.session.end_reading();
        self.reading.end_buffer(&self.session);
        self.session.orb.buffers.note_freed();
        if self.session.orb.is_stopping() {
            close_all(vec![Arc::clone(&self.session)]);
        }
    }

    /// Gives the memory of a silent connection back, and waits without it.
    #[cold]
    fn give_memory_back(&mut self, small: &mut Vec<u8>) {
        if self.session.is_silent() {
            self.reading.give_buffer_back(&self.session);
            self.await_bytes(small);
        }
    }

    /// Waits for bytes or the end, and gets a buffer: at a plain socket a small one of its own, with which a silent connection may wait.
    /// So the kernel sets a timer only in waits of connections with large messages.
    #[cold]
    fn await_bytes(&mut self, small: &mut Vec<u8>) {
        while self.session.stream.await_readable(None) == Err(Errno::INTR) {}
        // The thread finds an error when it receives.
        if !self.is_at_plain_socket() || self.reading.has_buffer() {
            self.reading.get_buffer(&self.session);
            return;
        }
        if small.is_empty() {
            *small = Receiver::new_small_buffer();
        } else {
            // It has had a larger one. With the timeout it would only look in vain.
            let _ = self.watch_silence(false);
        }
        self.reading.exchange_buffer(core::mem::take(small));
    }

    /// Goes on with a buffer of the pool, until the connection is silent, if a message does not fit into the small one.
    #[cold]
    fn take_larger_buffer_if_needed(&mut self, small: &mut Vec<u8>) {
        if self.reading.needs_larger_buffer() {
            let larger = self.session.orb.buffers.take();
            *small = self.reading.exchange_buffer(larger);
            // Without the timeout it keeps the buffer.
            let _ = self.watch_silence(true);
        }
    }

    fn is_at_plain_socket(&self) -> bool {
        self.session.stream.shows_unread_bytes()
    }

    fn watch_silence(&self, is_watched: bool) -> Result<(), Errno> {
        let silence = self.session.orb.limits.idle_buffer_time / 2;
        let timeout = is_watched.then_some(silence);
        self.session.stream.set_receive_timeout(timeout)
    }
}
