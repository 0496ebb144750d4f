//! Portable interceptors: functions of the application that an ORB calls for each request (CORBA 3.3 part 1, clause 16).
//!
//! They are registered in the [builder](crate::OrbBuilder), before the ORB exists, and never change: finding them takes no lock. An ORB
//! without interceptors has no test for them in the path of a call: they are found by tests that a call makes anyway.
//!
//! A request passes the *starting points* of the interceptors in the order of their registration
//! ([`send_request`](ClientRequestInterceptor::send_request), [`receive_request`](ServerRequestInterceptor::receive_request)). Each
//! interceptor whose starting point returned `Ok` gets one *ending point* (the other methods), in reverse order. What one of them raises
//! replaces the ending for those that follow.
//!
//! ```
//! use rtorb::interceptors::{Intervention, RequestPeer, ServerRequest, ServerRequestInterceptor};
//! use rtorb::{ExceptionKind, Orb, SystemException};
//!
//! /// Lets only processes of this host call the objects of the adapter `Admin`.
//! struct LocalAdministration;
//!
//! impl ServerRequestInterceptor for LocalAdministration {
//!     fn receive_request(&self, request: &mut ServerRequest<'_>) -> Result<(), Intervention> {
//!         let is_local = match request.peer() {
//!             RequestPeer::Tcp(address) => address.ip().is_loopback(),
//!             RequestPeer::Collocated | RequestPeer::Process { .. } => true,
//!             _ => false,
//!         };
//!         if request.adapter() == "Admin" && !is_local {
//!             return Err(SystemException::from(ExceptionKind::NoPermission).into());
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), rtorb::OrbError> {
//! let orb = Orb::builder().server_interceptor(LocalAdministration).build()?;
//! # let _ = orb;
//! # Ok(())
//! # }
//! ```

mod client_interception;
mod flow_stack;
mod ior_info;
mod server_interception;

use crate::exception::{SystemException, local};
pub(crate) use client_interception::ClientInterception;
pub use client_interception::ClientRequest;
use core::fmt;
pub use ior_info::{IorInfo, IorInterceptor};
pub use rtorb_core::Intervention;
use rtorb_wire::giop::ContextBuffer;
use rtorb_wire::ior::Ior;
pub(crate) use server_interception::{RequestDescription, ServerInterception};
pub use server_interception::{RequestPeer, ServerRequest};
use std::sync::Arc;

/// Sees the requests that an ORB sends, on the threads that call.
///
/// It sees operations, also implicit ones as `_is_a`, oneways, started calls and calls of objects of the same ORB. It does not see
/// LocateRequests, nor requests that a proxy passes on unchanged. The calls that it makes itself through the ORB are intercepted too.
pub trait ClientRequestInterceptor: Send + Sync {
    /// Starting point: the request is about to be sent, to the first location or to another one after a LOCATION_FORWARD.
    ///
    /// # Errors
    /// The intervention that ends the request, which is not sent then.
    fn send_request(&self, _request: &mut ClientRequest<'_>) -> Result<(), Intervention> {
        Ok(())
    }

    /// Ending point: the reply has results.
    ///
    /// # Errors
    /// The exception that the caller gets instead.
    fn receive_reply(&self, _request: &mut ClientRequest<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// Ending point: the call ends with an exception, of the server or of this ORB.
    ///
    /// # Errors
    /// The exception that the caller gets instead; or, unless it was a user exception, the object to which the request is sent instead.
    fn receive_exception(
        &self,
        _request: &mut ClientRequest<'_>,
        _exception: RequestException<'_>,
    ) -> Result<(), Intervention> {
        Ok(())
    }

    /// Ending point: the request ends with neither results nor an exception.
    ///
    /// # Errors
    /// The exception that the caller gets instead; or, if the request was forwarded, another object to which it is sent.
    fn receive_other(
        &self,
        _request: &mut ClientRequest<'_>,
        _ending: &OtherEnding,
    ) -> Result<(), Intervention> {
        Ok(())
    }
}

/// Sees the requests that an ORB serves.
///
/// The starting point runs on the thread that will call the servant, before the ORB looks for the object; a thread-local variable that it
/// sets is there for the servant and for the calls that the servant makes. The ending point runs on the same thread, unless the reply is
/// deferred ([`Responder`](crate::Responder)): then on the thread that answers. If the deadline passes before, that is the watchdog of the
/// ORB, which must not wait: other calls have deadlines too. If an interceptor panics, the request ends with UNKNOWN.
///
/// It does not see LocateRequests, nor requests that the ORB refuses earlier: because of their code sets, their deadlines, or full queues.
pub trait ServerRequestInterceptor: Send + Sync {
    /// Starting point: the request has come, and its servant is not called yet. It stands for `receive_request_service_contexts` and
    /// `receive_request` of the standard.
    ///
    /// # Errors
    /// The intervention that the client gets. The servant is not called then.
    fn receive_request(&self, _request: &mut ServerRequest<'_>) -> Result<(), Intervention> {
        Ok(())
    }

    /// Ending point: a reply with results is about to be sent.
    ///
    /// # Errors
    /// The exception that the client gets instead.
    fn send_reply(&self, _request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// Ending point: an exception is about to be sent, or, for a oneway, is discarded.
    ///
    /// # Errors
    /// The exception that the client gets instead; or, unless it was a user exception, the object to which the client is forwarded.
    fn send_exception(
        &self,
        _request: &mut ServerRequest<'_>,
        _exception: RequestException<'_>,
    ) -> Result<(), Intervention> {
        Ok(())
    }

    /// Ending point: the request ends with neither results nor an exception.
    ///
    /// # Errors
    /// The exception that the client gets instead; or, if the client was forwarded, another object to which it is forwarded.
    fn send_other(
        &self,
        _request: &mut ServerRequest<'_>,
        _ending: &OtherEnding,
    ) -> Result<(), Intervention> {
        Ok(())
    }
}

/// The exception with which a request ends.
#[derive(Clone, Copy, Debug)]
pub enum RequestException<'e> {
    /// A user exception, by its repository id.
    User(&'e str),
    /// A system exception.
    System(&'e SystemException),
}

/// How a request ends that gets neither results nor an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherEnding {
    /// It is a oneway, which was sent or served.
    NoReply,
    /// The object is at another location (LOCATION_FORWARD), where the client sends the request next.
    Forward(Ior),
    /// The caller has dropped the started call, or the deferred reply cannot be delivered.
    Abandoned,
}

/// The most interceptors of one kind.
pub(crate) const INTERCEPTORS_MAX: usize = 16;

/// The interceptors of an ORB.
#[derive(Clone, Default)]
pub(crate) struct Interceptors {
    pub(crate) client: Vec<Arc<dyn ClientRequestInterceptor>>,
    pub(crate) server: Arc<[Arc<dyn ServerRequestInterceptor>]>,
    pub(crate) ior: Vec<Arc<dyn IorInterceptor>>,
}

impl Interceptors {
    /// Returns true if none sees requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.client.is_empty() && self.server.is_empty()
    }
}

impl fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interceptors")
            .field("client", &self.client.len())
            .field("server", &self.server.len())
            .field("ior", &self.ior.len())
            .finish()
    }
}

/// How a request ends, for the interceptors that have not seen its end yet.
#[derive(Debug)]
pub(crate) enum Ending {
    Results,
    /// The interception has its repository id.
    UserException,
    SystemException(SystemException),
    Other(OtherEnding),
}

impl Ending {
    /// Returns the interceptor's intervention, or this ending if there is none.
    fn after(self, point: Result<(), Intervention>) -> Self {
        let may_forward = matches!(
            self,
            Self::SystemException(_) | Self::Other(OtherEnding::Forward(_))
        );
        match point {
            Ok(()) => self,
            Err(Intervention::Forward(_)) if !may_forward => {
                Self::SystemException(local::WRONG_POINT)
            }
            Err(intervention) => intervention.into(),
        }
    }
}

impl From<Intervention> for Ending {
    fn from(intervention: Intervention) -> Self {
        match intervention {
            Intervention::Raise(exception) => Self::SystemException(exception),
            Intervention::Forward(ior) => Self::Other(OtherEnding::Forward(ior)),
        }
    }
}

/// The most memory that is kept for the contexts of later requests. More is freed.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Adds a service context to a message.
fn add_context(added: &mut ContextBuffer, id: u32, data: &[u8]) -> Result<(), SystemException> {
    if added.find(id).is_some() {
        return Err(local::ADDED_BEFORE);
    }
    if !added.add(id, data) {
        return Err(local::CONTEXTS_FULL);
    }
    Ok(())
}
