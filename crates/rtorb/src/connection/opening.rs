//! Opens connections to endpoints, with the socket properties that policies require.

use super::invocation::{Invocation, InvocationKind};
use super::reply::{CallError, Outcome, Results};
use crate::endpoint::Endpoint;
use crate::exception::{Cause, CompletionStatus, ExceptionKind, Phase, SystemException, local};
use crate::trace::trace_event;
use crate::transport::{Stream, properties, shared_memory, tcp, unix};
use crate::wait;
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::Response;
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Instant;

/// Opens a stream to the endpoint of the invocation's route.
#[cold]
pub(super) fn open(invocation: &Invocation<'_>) -> Result<Stream, SystemException> {
    let endpoint = &invocation.route.endpoint.endpoint;
    if invocation.client.host.would_deadlock(endpoint) {
        return Err(local::WOULD_DEADLOCK);
    }
    let begun = Instant::now();
    let opened = connect(invocation).map_err(|(phase, errno)| {
        let exception = match phase {
            // If the host refuses this, neither waiting nor another endpoint helps.
            Phase::SetUp => ExceptionKind::NoResources.into(),
            _ => refused(errno),
        };
        exception.with_cause(Cause {
            phase,
            endpoint: Some(Arc::clone(endpoint)),
            elapsed: begun.elapsed(),
            errno: Some(errno.into()),
        })
    });
    match &opened {
        Ok(_) => trace_event!(DEBUG, %endpoint, "connected"),
        Err(_exception) => {
            trace_event!(WARN, %endpoint, exception = %_exception, "cannot connect");
        }
    }
    opened
}

fn connect(invocation: &Invocation<'_>) -> Result<Stream, (Phase, Errno)> {
    let endpoint = &invocation.route.endpoint;
    let timeout = invocation.core.connect_timeout;
    let stream = match &*endpoint.endpoint {
        Endpoint::Tcp { host, port } => tcp::connect(host, *port, timeout)?,
        Endpoint::Unix { path } => {
            unix::connect(path, timeout).map_err(|errno| (Phase::Connect, errno))?
        }
        Endpoint::SharedMemory { path } => {
            let memory = invocation.core.shared_memory.of_protocol(endpoint.protocol);
            shared_memory::connect(path, timeout, &memory)
                .map_err(|errno| (Phase::Connect, errno))?
        }
    };
    let in_set_up = |errno| (Phase::SetUp, errno);
    let watchdog = &invocation.core.watchdog;
    watchdog.watch_peer(&stream).map_err(in_set_up)?;
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
    call: impl FnOnce(&Invocation<'_>, Deadline, Results<'_>) -> Result<Outcome, CallError>,
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
    let deadline = wait::deadline(bind.timeout);
    let Err(error) = call(&bind, deadline, &mut |_, _| Ok(())) else {
        return Ok(());
    };
    let exception = error.into_exception(&bind.route.endpoint.endpoint, deadline);
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
