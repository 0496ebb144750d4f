//! A thread for each connection: it reads a request, calls the servant and writes the reply, and shares nothing.

use super::{DispatchError, await_connection, join};
use crate::server::{Admission, Server, ServerCore, ThreadPriority, Workspace, refuse};
use rtorb_os::Resource;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::thread::{JoinHandle, spawn};
use std::sync::Arc;

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
    while !orb.is_stopping() {
        if let Err(errno) = await_connection(server) {
            orb.stop();
            join(threads);
            return Err(errno.into());
        }
        threads.retain(|thread| !thread.is_finished());
        for listener in &server.listeners {
            let mut connection = match server.accept(orb, listener) {
                Admission::Accepted(connection) => connection,
                Admission::Refused | Admission::Empty => continue,
                Admission::Pending => {
                    sleep_until(monotonic_ns() + PENDING_NS);
                    continue;
                }
                Admission::Exhausted => {
                    sleep_until(monotonic_ns() + EXHAUSTED_NS);
                    continue;
                }
            };
            let session = Arc::clone(&connection.session);
            if orb
                .client
                .core
                .watchdog
                .watch_peer(&session.stream)
                .is_err()
            {
                refuse(&session.stream);
                continue;
            }
            number += 1;
            let serve = move || {
                let mut workspace = Workspace::new(ThreadPriority::keeping());
                connection.serve_to_the_end(&mut workspace);
            };
            match spawn(&format!("rtorb-conn-{number}"), &config, serve) {
                Ok(thread) => threads.push(thread),
                // The host refuses one more thread: this client is refused, the others are not affected.
                Err(refused) if refused.resource == Resource::Thread && !threads.is_empty() => {
                    refuse(&session.stream);
                }
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

/// How long an idle connection is given to give way, in nanoseconds.
const PENDING_NS: u64 = 1_000_000;

/// How long to accept nothing when the process has no file descriptor left, in nanoseconds.
const EXHAUSTED_NS: u64 = 100_000_000;
