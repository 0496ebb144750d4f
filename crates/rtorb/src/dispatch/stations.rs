//! One I/O thread that reads all requests into queues, and threads that serve the queues.

use super::reactor::Reactor;
use super::request_queue::{Buffering, Job, RequestQueue};
use super::{DispatchError, join};
use crate::exception::SystemException;
use crate::realtime::Priority;
use crate::server::{
    Next, Served, ServedConnection, Server, ServerCore, Session, TakenRequest, ThreadPriority,
    Workspace,
};
use rtorb_os::Refused;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rustix::io::Errno;
use std::sync::Arc;

/// The threads of one queue.
#[derive(Clone, Debug)]
pub(super) struct Station {
    /// The beginning of their names; a number follows.
    pub(super) name: String,
    pub(super) threads: u32,
    pub(super) config: ThreadConfig,
    /// The CORBA priority of all calls here; `None` if each call has its own.
    pub(super) priority: Option<Priority>,
}

/// Chooses the station of a request. An error is the reply to the client.
pub(super) type Choose = Box<
    dyn FnMut(&Session, &TakenRequest, &mut Workspace) -> Result<usize, SystemException> + Send,
>;

/// Serves until the ORB is stopped. Requests that were read by then get their replies.
///
/// `io_thread` is the scheduling of the I/O thread.
pub(super) fn run(
    orb: &Arc<ServerCore>,
    server: &Server,
    io_thread: &ThreadConfig,
    stations: &[Station],
    choose: Choose,
) -> Result<(), DispatchError> {
    let queue = |station: &Station| {
        let buffering = Buffering::default();
        Arc::new(RequestQueue::new(buffering, station.threads, &orb.limits))
    };
    let queues: Vec<_> = stations.iter().map(queue).collect();
    let reactor = Reactor::new(orb, server)?;
    let mut threads = Vec::new();
    let started = start_serving(stations, &queues, &mut threads).and_then(|()| {
        let threads = stations.iter().map(|station| station.threads);
        let queues = queues.iter().cloned().zip(threads).collect();
        start_reading(orb, io_thread, reactor, choose, queues)
    });
    let read = match started {
        Ok(reading) => reading.join().ok().flatten(),
        Err(refused) => {
            orb.stop();
            queues.iter().for_each(|queue| queue.close());
            join(threads);
            return Err(DispatchError::Refused(refused));
        }
    };
    queues.iter().for_each(|queue| queue.close());
    join(threads);
    // The reactor holds the connections until then.
    server.close_all();
    Ok(read.map_or(Ok(()), |(_, read)| read)?)
}

fn start_serving(
    stations: &[Station],
    queues: &[Arc<RequestQueue>],
    threads: &mut Vec<JoinHandle<Option<()>>>,
) -> Result<(), Refused> {
    for (station, queue) in stations.iter().zip(queues) {
        for number in 1..=station.threads {
            let (queue, priority) = (Arc::clone(queue), station.priority);
            let serve = move || {
                let thread =
                    priority.map_or_else(ThreadPriority::returning, ThreadPriority::of_station);
                let mut workspace = Workspace::new(thread);
                // No lane asks for help here.
                while let Ok(Job::Request(session, request)) = queue.next(None) {
                    queue.serve(&session, request, &mut workspace);
                }
            };
            let name = format!("{}-{number}", station.name);
            threads.push(spawn(&name, &station.config, serve)?);
        }
    }
    Ok(())
}

/// The connections that the I/O thread has read, and how it ended.
type ReadConnections = (Reactor, Result<(), Errno>);

fn start_reading(
    orb: &Arc<ServerCore>,
    io_thread: &ThreadConfig,
    mut reactor: Reactor,
    choose: Choose,
    queues: Vec<(Arc<RequestQueue>, u32)>,
) -> Result<JoinHandle<Option<ReadConnections>>, Refused> {
    let mut reader = Reader {
        queues,
        choose,
        next: TakenRequest::with_room(),
        // Replies from here have no priority: only malformed and refused requests get one.
        workspace: None,
    };
    let orb = Arc::clone(orb);
    let read = move || {
        let read = match orb.server() {
            Some(server) => reactor.run(&orb, server, |connection| reader.read(connection)),
            None => Ok(()),
        };
        if read.is_err() {
            orb.stop();
        }
        (reactor, read)
    };
    spawn("rtorb-io", io_thread, read)
}

/// The state of the I/O thread.
struct Reader {
    /// Each queue with the number of its threads.
    queues: Vec<(Arc<RequestQueue>, u32)>,
    choose: Choose,
    next: TakenRequest,
    /// Made on the I/O thread.
    workspace: Option<Workspace>,
}

impl Reader {
    /// True if a connection must not be read until some of its requests are served.
    ///
    /// With several queues it is always read: an urgent request may stand behind others that wait.
    fn holds(&self, session: &Session) -> bool {
        matches!(&*self.queues, [(queue, _)] if queue.holds(session))
    }

    /// Queues all requests that a connection has received.
    fn read(&mut self, connection: &mut ServedConnection) -> Served {
        let mut is_received = false;
        // A client that does not take its replies is read again when it has; one that pipelines, when it was served.
        while !connection.session.has_unsent() && !self.holds(&connection.session) {
            let (session, reading) = (&connection.session, &mut connection.reading);
            let workspace = self
                .workspace
                .get_or_insert_with(|| Workspace::new(ThreadPriority::returning()));
            match reading.take_next(session, workspace, &mut self.next) {
                Next::Done => {}
                Next::Incomplete if is_received => return Served::Open,
                Next::Incomplete => {
                    is_received = true;
                    if connection.receive_now() == Served::Over {
                        return Served::Over;
                    }
                    continue;
                }
                Next::Over => return Served::Over,
            }
            match (self.choose)(session, &self.next, workspace) {
                Ok(station) => {
                    let (queue, threads) = &self.queues[station];
                    queue.put(session, &mut self.next, *threads, workspace);
                }
                Err(exception) => self.next.refuse(session, workspace, &exception),
            }
            if session.orb.is_stopping() {
                return Served::Over;
            }
        }
        Served::Open
    }
}
