//! A thread for each connection: it reads a request, calls the servant and writes the reply, and shares nothing.

use super::{DispatchError, await_connection, join};
use crate::server::{
    Admission, Buffers, Look, ServedConnection, Server, ServerCore, Session, StrangerTurns,
    ThreadPriority, Workspace, await_turn, refuse,
};
use crate::transport::Listener;
use rtorb_os::clock::{monotonic_ns, sleep_until, timespec};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, spawn};
use rtorb_os::{Refused, Resource};
use rustix::time::Timespec;
use std::sync::Arc;
use std::time::Duration;

/// Accepts connections on the calling thread until the ORB is stopped, then waits for the others to end.
///
/// Calls `ready` when the host has shown that it allows threads of this scheduling.
pub(super) fn run(
    orb: &Arc<ServerCore>,
    server: &Server,
    ready: &mut dyn FnMut(),
) -> Result<(), DispatchError> {
    let mut threads: Vec<JoinHandle<Option<()>>> = Vec::new();
    let config = orb.rt.obtainable(&orb.server_threads);
    if let Err(refused) = spawn("rtorb-probe", &config, || ()) {
        orb.stop();
        return Err(DispatchError::Refused(refused));
    }
    ready();
    let mut number = 0u64;
    // Not the turns of the server: a client that connects does not wait for those that are connected.
    let turns = Mutex::new(StrangerTurns::new(&orb.limits));
    let mut scan = ConnectionScan::new(server.look_period());
    while !orb.is_stopping() {
        let timeout = scan.time_left();
        if let Err(errno) = await_connection(server, Some(&timeout)) {
            orb.stop();
            join(threads);
            return Err(errno.into());
        }
        scan.scan_if_due(server, &orb.buffers);
        threads.retain(|thread| !thread.is_finished());
        for listener in &server.listeners {
            let Some(mut connection) = accept(orb, server, listener, &turns) else {
                continue;
            };
            let session = Arc::clone(&connection.session);
            let stream = &session.stream;
            if orb.client.core.watchdog.watch_peer(stream).is_err()
                || connection.begin_watching_silence().is_err()
            {
                refuse(&session);
                continue;
            }
            number += 1;
            let serve = move || {
                let mut workspace = Workspace::new(ThreadPriority::keeping());
                connection.serve_to_the_end(&mut workspace);
            };
            match spawn(&format!("rtorb-conn-{number}"), &config, serve) {
                Ok(thread) => threads.push(thread),
                // The host has no thread or stack now: this client is refused, and the others are not affected.
                Err(Refused {
                    resource: Resource::Thread | Resource::Stack { .. },
                    ..
                }) => refuse(&session),
                Err(refused) => {
                    orb.stop();
                    join(threads);
                    return Err(DispatchError::Refused(refused));
                }
            }
        }
    }
    join(threads);
    Ok(())
}

/// Accepts a client that waits, as a turn of a stranger; `None` if there is none or it is refused.
fn accept(
    orb: &Arc<ServerCore>,
    server: &Server,
    listener: &Listener,
    turns: &Mutex<StrangerTurns>,
) -> Option<ServedConnection> {
    match server.accept(orb, listener) {
        Admission::Accepted(connection) => {
            await_turn(orb, turns);
            return Some(connection);
        }
        Admission::Refused => await_turn(orb, turns),
        Admission::Empty => {}
        Admission::Pending => sleep_until(monotonic_ns() + PENDING_NS),
        Admission::Exhausted => sleep_until(monotonic_ns() + EXHAUSTED_NS),
    }
    None
}

/// Periodically looks for messages that do not arrive, and interrupts the threads of silent connections through shared memory, so that they
/// give their buffers back.
struct ConnectionScan {
    period_ns: u64,
    next_ns: u64,
}

impl ConnectionScan {
    fn new(period: Duration) -> Self {
        let period_ns = period.as_nanos() as u64;
        Self {
            period_ns,
            next_ns: monotonic_ns() + period_ns,
        }
    }

    /// Returns the time until the next scan.
    fn time_left(&self) -> Timespec {
        timespec(self.next_ns.saturating_sub(monotonic_ns()))
    }

    fn scan_if_due(&mut self, server: &Server, buffers: &Buffers) {
        if monotonic_ns() < self.next_ns {
            return;
        }
        let look = |session: &Session, look: Look| {
            if look.is_for_partial {
                session.look_at_partial();
            }
            if look.is_silent {
                session.trim();
                if let Some(memory) = session.stream.memory() {
                    memory.interrupt();
                }
            }
        };
        let mut next = Some(0);
        while let Some(from) = next {
            next = server.look_at_connections(from, look);
        }
        buffers.trim();
        self.next_ns = monotonic_ns() + self.period_ns;
    }
}

/// How long an idle connection may take to give way, in nanoseconds.
const PENDING_NS: u64 = 1_000_000;

/// How long no client is accepted when the process has no file descriptor left, in nanoseconds.
const EXHAUSTED_NS: u64 = 100_000_000;
