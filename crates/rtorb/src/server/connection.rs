//! A client's connection that one thread serves: the thread reads, calls and replies, and shares nothing.

use super::closing::close_all;
use super::reading::{Next, Reading};
use super::session::Session;
use super::upcall::site;
use super::workspace::Workspace;
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

    /// Waits for requests and serves them until the connection has ended, and sends CloseConnection if the ORB ends it.
    pub(crate) fn serve_to_the_end(&mut self, workspace: &mut Workspace) {
        self.await_bytes();
        loop {
            match self
                .reading
                .serve_next::<{ site::CONNECTION }>(&self.session, workspace)
            {
                Next::Done if !self.reading.is_empty() => {}
                Next::Over => break,
                Next::Done | Next::Incomplete => match self.reading.receive(&self.session) {
                    Ok(0) if self.reading.get_buffer(&self.session) => {}
                    Ok(0) => break,
                    Ok(_) => {}
                    // The receive timeout of the socket has passed.
                    Err(Errno::AGAIN) => {
                        self.session.note_look();
                        self.give_memory_back();
                    }
                    // The thread that looks for silent connections has interrupted the wait at shared memory.
                    Err(Errno::INTR) => self.give_memory_back(),
                    Err(_) => break,
                },
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
    fn give_memory_back(&mut self) {
        if self.session.is_silent() {
            self.reading.give_buffer_back(&self.session);
            self.session.trim();
            self.await_bytes();
        }
    }

    /// Waits for bytes or the end, and gets a buffer.
    #[cold]
    fn await_bytes(&mut self) {
        while self.session.stream.await_readable(None) == Err(Errno::INTR) {}
        // The thread finds an error when it receives.
        self.reading.get_buffer(&self.session);
    }
}
