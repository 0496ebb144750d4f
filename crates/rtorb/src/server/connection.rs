//! A client's connection in the hands of one thread: it reads, serves and answers in one place, and shares nothing.

use super::closing::close_all;
use super::reading::{Next, Reading};
use super::session::Session;
use super::workspace::Workspace;
use rustix::io::Errno;
use std::sync::Arc;

/// A connection being served, by one thread at a time.
#[derive(Debug)]
pub(crate) struct ServedConnection {
    pub(crate) session: Arc<Session>,
    pub(crate) reading: Reading,
}

/// What became of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// It goes on.
    Open,
    /// It is over: the peer ended it or broke the rules, or it broke, or the ORB stops.
    Over,
}

impl ServedConnection {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        let reading = Reading::new(&session.orb.limits);
        Self { session, reading }
    }

    /// Receives what is there without waiting.
    #[inline]
    pub(crate) fn receive_now(&mut self) -> Served {
        self.reading.receive_now(&self.session).into()
    }

    /// Waits for octets and answers what is complete.
    #[inline]
    pub(crate) fn serve_waiting(&mut self, workspace: &mut Workspace) -> Served {
        let received = self.reading.receive(&self.session);
        self.serve_received(received.into(), workspace)
    }

    /// Answers what is complete of the octets that are there.
    #[inline]
    pub(crate) fn serve_ready(&mut self, workspace: &mut Workspace) -> Served {
        let received = self.receive_now();
        self.serve_received(received, workspace)
    }

    /// Serves until the connection is over, and says CloseConnection if the ORB is what ends it.
    pub(crate) fn serve_to_the_end(&mut self, workspace: &mut Workspace) {
        while self.serve_waiting(workspace) == Served::Open {}
        if self.session.orb.is_stopping() {
            close_all(vec![Arc::clone(&self.session)]);
        }
    }

    #[inline]
    fn serve_received(&mut self, received: Served, workspace: &mut Workspace) -> Served {
        if received == Served::Over {
            return Served::Over;
        }
        // A client that does not take its replies is served on when it has.
        while !self.session.has_unsent() {
            match self.reading.serve_next(&self.session, workspace) {
                Next::Done => {}
                Next::Incomplete => return Served::Open,
                Next::Over => return Served::Over,
            }
        }
        Served::Open
    }
}

impl From<Result<usize, Errno>> for Served {
    /// What receiving says of a connection.
    #[inline]
    fn from(received: Result<usize, Errno>) -> Self {
        match received {
            Ok(0) => Self::Over,
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Self::Open,
            Err(_) => Self::Over,
        }
    }
}
