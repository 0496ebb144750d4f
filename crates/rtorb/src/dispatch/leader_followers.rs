//! A pool of threads. The leader waits for all connections. It makes another thread the leader before it calls the servant
//! (miniCOOL, P1 2.2.2).
//!
//! No request changes threads. The leader takes the next request, whatever its priority. If all threads are in servants, an
//! urgent request waits until one of them is done.

use super::reactor::Reactor;
use super::{DispatchError, join};
use crate::server::{
    Next, Served, Server, ServerCore, Session, TakenRequest, ThreadPriority, Token, Workspace,
};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, spawn};
use rustix::io::Errno;
use std::sync::Arc;

/// Serves until the ORB is stopped; the calling thread waits for the others to end.
pub(super) fn run(
    orb: &Arc<ServerCore>,
    server: &Server,
    threads_max: usize,
) -> Result<(), DispatchError> {
    let token = Arc::new(Mutex::new(Leading {
        reactor: Reactor::new(orb, server)?,
        unfinished: None,
        failed: None,
    }));
    let config = orb.rt.obtainable(&orb.server_threads);
    let mut threads: Vec<JoinHandle<Option<()>>> = Vec::new();
    let mut refused = None;
    for number in 1..=threads_max {
        let (core, token) = (Arc::clone(orb), Arc::clone(&token));
        let serve = move || {
            if let Some(server) = core.server() {
                follow_and_lead(&core, server, &token);
            }
        };
        match spawn(&format!("rtorb-lf-{number}"), &config, serve) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                orb.stop();
                refused = Some(error);
                break;
            }
        }
    }
    join(threads);
    let leading = token.lock();
    server.close_all();
    match (refused, leading.failed) {
        (Some(refused), _) => Err(DispatchError::Refused(refused)),
        (None, Some(errno)) => Err(errno.into()),
        (None, None) => Ok(()),
    }
}

/// The state of the leader: the thread that holds its lock leads.
///
/// Followers wait for the lock in order of priority.
#[derive(Debug)]
struct Leading {
    reactor: Reactor,
    /// The connection of the last request, if bytes were left behind it: no event reports them.
    unfinished: Option<Token>,
    failed: Option<Errno>,
}

fn follow_and_lead(orb: &Arc<ServerCore>, server: &Server, token: &Mutex<Leading>) {
    let mut workspace = Workspace::new(ThreadPriority::returning());
    let mut request = TakenRequest::with_room();
    loop {
        let taken = token.lock().take(orb, server, &mut workspace, &mut request);
        let Some(session) = taken else { return };
        // If the reply cannot be sent, the connection is shut, and the leader gets its end.
        let _ = request.serve(&session, &mut workspace);
        request.trim();
    }
}

impl Leading {
    /// Waits for a request and takes it; `None` when the ORB stops.
    fn take(
        &mut self,
        orb: &Arc<ServerCore>,
        server: &Server,
        workspace: &mut Workspace,
        request: &mut TakenRequest,
    ) -> Option<Arc<Session>> {
        while !orb.is_stopping() {
            let number = match self.unfinished.take() {
                Some(number) => Some((number, Served::Open)),
                None => self.receive(orb, server),
            };
            let Some((number, received)) = number else {
                continue;
            };
            let Some(connection) = self.reactor.connection(number) else {
                continue;
            };
            let session = &connection.session;
            if session.has_unsent() && received == Served::Open {
                // An event reports when the client has taken it.
                continue;
            }
            let next = match received {
                Served::Open => connection.reading.take_next(session, workspace, request),
                Served::Over => Next::Over,
            };
            match next {
                Next::Done => {
                    let session = Arc::clone(session);
                    if !connection.reading.is_empty() {
                        self.unfinished = Some(number);
                    }
                    return Some(session);
                }
                Next::Incomplete => {}
                // Connections that the ORB itself ends get CloseConnection at the end.
                Next::Over if orb.is_stopping() => {}
                Next::Over => self.reactor.remove(number, server),
            }
        }
        None
    }

    /// Waits for bytes of a connection and receives them.
    fn receive(&mut self, orb: &Arc<ServerCore>, server: &Server) -> Option<(Token, Served)> {
        match self.reactor.next(orb, server) {
            Ok(number) => {
                let number = number?;
                let connection = self.reactor.connection(number)?;
                Some((number, connection.receive_now()))
            }
            Err(errno) => {
                self.failed = Some(errno);
                orb.stop();
                None
            }
        }
    }
}
