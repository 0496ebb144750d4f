//! Opens connections to endpoints, with the socket properties that policies require.

use super::invocation::{Invocation, InvocationKind};
use super::reply::{CallError, Outcome, Results};
use crate::clock::monotonic_ns;
use crate::endpoint::Endpoint;
use crate::exception::{Cause, CompletionStatus, ExceptionKind, Phase, SystemException, local};
use crate::trace::trace_event;
use crate::transport::{Stream, properties, shared_memory, tcp, unix};
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::Response;
use rustix::io::Errno;
use std::os::fd::AsFd as _;
use std::sync::Arc;

/// Opens a stream to the endpoint of the invocation's route, within its share of the time that is left.
#[cold]
pub(super) fn open(invocation: &Invocation<'_>) -> Result<Stream, SystemException> {
    let endpoint = &invocation.route.endpoint.endpoint;
    if invocation.client.host.would_deadlock(endpoint) {
        return Err(local::WOULD_DEADLOCK);
    }
    let opening = deadline(invocation);
    let opened = connect(invocation, opening).map_err(|Unopened { phase, failure }| {
        let (exception, errno) = match failure {
            Failure::Refused(exception) => (exception, None),
            Failure::System(errno) => (of_system(phase, errno), Some(errno)),
        };
        // The resolver has no error number of the system for an unknown name, or for one name too many.
        let errno = errno.filter(|errno| {
            phase != Phase::Resolve || !matches!(*errno, Errno::HOSTUNREACH | Errno::NOBUFS)
        });
        exception.with_cause(Cause {
            phase,
            endpoint: Some(Arc::clone(endpoint)),
            elapsed: opening.elapsed(monotonic_ns()),
            errno: errno.map(Into::into),
        })
    });
    let opened = opened.and_then(|stream| {
        // A request whose deadline has passed is not sent.
        invocation.check_time(Phase::Connect)?;
        let watched = invocation.core.watchdog.watch_peer(&stream);
        watched.map_err(|unwatched| unwatched.at(endpoint))?;
        Ok(stream)
    });
    match &opened {
        Ok(_) => trace_event!(DEBUG, %endpoint, "connected"),
        Err(_exception) => {
            trace_event!(WARN, %endpoint, exception = %_exception, "cannot connect");
        }
    }
    opened
}

/// Returns the deadline for opening a connection now. An endpoint that never replies must not use up the time of the next ones.
pub(super) fn deadline(invocation: &Invocation<'_>) -> Deadline {
    let now_ns = monotonic_ns();
    let opening = Deadline::new(now_ns, Some(invocation.core.connect_timeout));
    match invocation.deadline.at_ns() {
        None => opening,
        Some(at_ns) => {
            let left_ns = at_ns.saturating_sub(now_ns);
            opening.no_later_than(now_ns + left_ns / u64::from(invocation.routes_left.max(1)))
        }
    }
}

/// Returns the exception for an error of the host in a phase of opening.
fn of_system(phase: Phase, errno: Errno) -> SystemException {
    match (phase, errno) {
        // If the host refuses this, neither waiting nor another endpoint helps.
        (Phase::SetUp, _) => ExceptionKind::NoResources.into(),
        (Phase::Resolve, Errno::NOBUFS) => local::NAMES_FULL,
        (Phase::Resolve, Errno::NOMEM) => local::THREAD_REFUSED,
        _ => refused(errno),
    }
}

/// Why a connection is not opened, and in which phase.
struct Unopened {
    phase: Phase,
    failure: Failure,
}

enum Failure {
    System(Errno),
    Refused(SystemException),
}

impl From<(Phase, Errno)> for Unopened {
    fn from((phase, errno): (Phase, Errno)) -> Self {
        let failure = Failure::System(errno);
        Self { phase, failure }
    }
}

/// Makes the handshake of TLS over a connected stream.
fn secure(
    invocation: &Invocation<'_>,
    stream: Stream,
    host: &str,
    until_ns: u64,
) -> Result<Stream, Unopened> {
    let phase = Phase::Handshake;
    let refused = |exception| Unopened {
        phase,
        failure: Failure::Refused(exception),
    };
    let securing = &invocation.core.securing;
    let Some(transport) = &securing.transport else {
        return Err(refused(local::NEEDS_TLS));
    };
    match transport.connect(stream.as_fd(), host, until_ns, &securing.report) {
        Ok(link) => Ok(stream.secured(link)),
        Err(error) => match error.into_exception() {
            Ok(exception) => Err(refused(exception)),
            Err(errno) => Err((phase, errno).into()),
        },
    }
}

fn connect(invocation: &Invocation<'_>, opening: Deadline) -> Result<Stream, Unopened> {
    let endpoint = &invocation.route.endpoint;
    let core = invocation.core;
    let until_ns = opening.at_ns().unwrap_or(u64::MAX);
    let in_connect = |errno| (Phase::Connect, errno);
    let stream = match &*endpoint.endpoint {
        Endpoint::Tcp { .. } if core.requires_tls => {
            return Err(Unopened {
                phase: Phase::Connect,
                failure: Failure::Refused(local::PLAIN_REFUSED),
            });
        }
        Endpoint::Tcp { host, port } => tcp::connect(&core.resolver, host, *port, until_ns)?,
        Endpoint::Tls { host, port } => {
            let stream = tcp::connect(&core.resolver, host, *port, until_ns)?;
            secure(invocation, stream, host, until_ns)?
        }
        Endpoint::Unix { path } => unix::connect(path, until_ns).map_err(in_connect)?,
        Endpoint::SharedMemory { path } => {
            let memory = core.shared_memory.of_protocol(endpoint.protocol);
            shared_memory::connect(path, until_ns, &memory).map_err(in_connect)?
        }
    };
    let in_set_up = |errno| (Phase::SetUp, errno);
    if let Some(protocol) = &endpoint.protocol {
        properties::apply(&stream, protocol).map_err(in_set_up)?;
    }
    if let Some(marks) = invocation.channel.marks {
        properties::mark(&stream, marks).map_err(in_set_up)?;
    }
    Ok(stream)
}

/// Binds a new connection to its priority band (`_bind_priority_band`), if the ORB is configured to do so.
///
/// A server without that operation is not an error.
pub(super) fn bind_band(
    invocation: &Invocation<'_>,
    call: impl FnOnce(&Invocation<'_>, Results<'_>) -> Result<Outcome, CallError>,
) -> Result<(), SystemException> {
    if !invocation.core.binds_priority_bands || invocation.channel.band.is_none() {
        return Ok(());
    }
    let bind = Invocation {
        kind: InvocationKind::BindBand,
        operation: "_bind_priority_band",
        response: Response::FromTarget,
        ..*invocation
    };
    let Err(error) = call(&bind, &mut |_, _| Ok(())) else {
        return Ok(());
    };
    let exception = error.into_exception(&bind);
    if exception.kind == ExceptionKind::BadOperation {
        return Ok(());
    }
    // This request may have arrived, but the caller's own request has not been sent.
    Err(exception.with_completion(CompletionStatus::No))
}

fn refused(errno: Errno) -> SystemException {
    match errno {
        // RelativeRoundtripTimeout covers connecting too. Minor code 2 of the OMG: the request was not sent.
        Errno::TIMEDOUT | Errno::AGAIN | Errno::INPROGRESS => {
            SystemException::omg(ExceptionKind::Timeout, 2)
        }
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => local::DESCRIPTOR_REFUSED,
        _ => SystemException::omg(ExceptionKind::Transient, 2),
    }
}
