//! Opening a connection: to the endpoint, set up as policies say, and told its band where that is asked for.

use super::reply::Outcome;
use super::request::{Ask, Request};
use super::{Failure, Results};
use crate::endpoint::Endpoint;
use crate::exception::{Cause, CompletionStatus, ExceptionKind, Phase, SystemException};
use crate::transport::{Stream, properties, tcp, unix};
use rtorb_wire::giop::Response;
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Instant;

/// Opens a stream to the endpoint of the request's route.
#[cold]
pub(super) fn open(request: &Request<'_>) -> Result<Stream, SystemException> {
    let endpoint = &request.route.endpoint.endpoint;
    if request.orb.would_deadlock(endpoint) {
        return Err(SystemException::omg(ExceptionKind::BadInvOrder, 3));
    }
    let begun = Instant::now();
    connect(request).map_err(|(phase, errno)| {
        let exception = match phase {
            // Whatever was refused, waiting or another endpoint does not help.
            Phase::SetUp => ExceptionKind::NoResources.into(),
            _ => refused(errno),
        };
        exception.with_cause(Cause {
            phase,
            endpoint: Some(Arc::clone(endpoint)),
            elapsed: begun.elapsed(),
            errno: Some(errno.into()),
        })
    })
}

fn connect(request: &Request<'_>) -> Result<Stream, (Phase, Errno)> {
    let endpoint = &request.route.endpoint;
    let timeout = request.orb.connect_timeout;
    let stream = match &*endpoint.endpoint {
        Endpoint::Tcp { host, port } => tcp::connect(host, *port, timeout)?,
        Endpoint::Unix { path } => {
            unix::connect(path, timeout).map_err(|errno| (Phase::Connect, errno))?
        }
    };
    let in_set_up = |errno| (Phase::SetUp, errno);
    if let Some(protocol) = &endpoint.protocol {
        properties::apply(&stream, protocol).map_err(in_set_up)?;
    }
    if let Some(marks) = request.channel.marks {
        properties::mark(&stream, marks).map_err(in_set_up)?;
    }
    Ok(stream)
}

/// Tells the server at the other end of a new connection which priorities it is for, where the ORB was built to.
///
/// A server that has no such operation needs not know.
pub(super) fn bind_band(
    request: &Request<'_>,
    call: impl FnOnce(&Request<'_>, Results<'_>) -> Result<Outcome, Failure>,
) -> Result<(), Failure> {
    if !request.orb.binds_priority_bands || request.channel.band.is_none() {
        return Ok(());
    }
    let bind = Request {
        ask: Ask::Band,
        operation: "_bind_priority_band",
        response: Response::FromTarget,
        ..*request
    };
    match call(&bind, &mut |_, _| Ok(())) {
        Err(mut failure) if failure.exception.kind != ExceptionKind::BadOperation => {
            // Whatever became of this question: the call itself has not been sent.
            failure.exception.completed = CompletionStatus::No;
            Err(failure)
        }
        _ => Ok(()),
    }
}

fn refused(errno: Errno) -> SystemException {
    match errno {
        // RelativeRoundtripTimeout covers connecting too; its code is the OMG's 2, the request never began.
        Errno::TIMEDOUT | Errno::AGAIN | Errno::INPROGRESS => {
            SystemException::omg(ExceptionKind::Timeout, 2)
        }
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => {
            ExceptionKind::NoResources.into()
        }
        _ => SystemException::omg(ExceptionKind::Transient, 2),
    }
}
