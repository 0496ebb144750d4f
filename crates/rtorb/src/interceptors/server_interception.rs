//! The interception of one request in a server.

use super::flow_stack::FlowStack;
use super::{
    Ending, Intervention, KEPT_BYTES_MAX, RequestException, ServerRequestInterceptor, add_context,
};
use crate::exception::SystemException;
use crate::security::PeerIdentity;
use core::fmt;
use rtorb_wire::giop::{ContextBuffer, RequestHeader, Response};
use std::net::SocketAddr;
use std::sync::Arc;

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestPeer {
    /// A thread of the same ORB, which serves the request itself.
    Collocated,
    /// A host, by the address of its end of the connection.
    Tcp(SocketAddr),
    /// A process of this host, over a UNIX socket or through shared memory. These are its credentials when it connected (SO_PEERCRED).
    Process {
        /// The process.
        pid: i32,
        /// Its user.
        uid: u32,
        /// Its primary group.
        gid: u32,
    },
    /// The connection has ended.
    Gone,
}

/// A request in a server, as an interceptor sees it.
#[derive(Debug)]
pub struct ServerRequest<'r> {
    request: &'r mut ReceivedRequest,
    note: &'r mut u64,
}

impl ServerRequest<'_> {
    /// Returns the name of the operation, as it is on the wire: `_get_speed` for an attribute. A name that is not UTF-8 is empty: no object
    /// has such an operation.
    pub fn operation(&self) -> &str {
        &self.request.operation
    }

    /// Returns the key of the object.
    pub fn object_key(&self) -> &[u8] {
        &self.request.object_key
    }

    /// Returns the path of the object's adapter from the root, as [`Poa::name`](crate::Poa::name); empty for a transient object that is not active.
    pub fn adapter(&self) -> &str {
        &self.request.adapter
    }

    /// Returns the id of the object in its adapter; empty if the object is not there now.
    pub fn object_id(&self) -> &[u8] {
        &self.request.object_id
    }

    /// Returns the sender.
    pub fn peer(&self) -> RequestPeer {
        self.request.peer
    }

    /// Returns who the sender has proved to be, by a certificate that a trusted authority has signed; `None` over a transport that is not
    /// secured, and for a client without a certificate.
    pub fn peer_identity(&self) -> Option<&PeerIdentity> {
        self.request.identity.as_deref()
    }

    /// Returns false for a oneway.
    pub fn expects_reply(&self) -> bool {
        self.request.response != Response::None
    }

    /// Returns the data of a context of the request (`get_request_service_context`).
    pub fn context(&self, id: u32) -> Option<&[u8]> {
        self.request.contexts.find(id)
    }

    /// Adds a service context to the reply, whatever it is (`add_reply_service_context`). A reply that a proxy passes on does not take it.
    ///
    /// # Errors
    /// BAD_INV_ORDER 15 if an interceptor has added one with that id; IMP_LIMIT for more than 32 contexts.
    pub fn add_reply_context(&mut self, id: u32, data: &[u8]) -> Result<(), SystemException> {
        add_context(&mut self.request.added, id, data)
    }

    /// Returns what this interceptor noted for the request at its starting point; 0 if nothing.
    pub fn note(&self) -> u64 {
        *self.note
    }

    /// Notes a number for the ending point of this interceptor, such as the beginning of the call or an index.
    pub fn set_note(&mut self, note: u64) {
        *self.note = note;
    }
}

/// A received request, for interceptors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestDescription<'d> {
    pub(crate) header: &'d RequestHeader<'d>,
    pub(crate) adapter: &'d str,
    pub(crate) object_id: &'d [u8],
    pub(crate) peer: RequestPeer,
    pub(crate) identity: Option<&'d Arc<PeerIdentity>>,
}

/// What the interceptors of a server know of one request. Later requests use the memory again.
#[derive(Default)]
pub(crate) struct ServerInterception {
    interceptors: Arc<[Arc<dyn ServerRequestInterceptor>]>,
    stack: FlowStack,
    request: ReceivedRequest,
    /// The repository id of the user exception that the request ends with.
    exception_id: String,
    /// The intervention that replaces the reply, until it is sent.
    pub(crate) replacement: Option<Intervention>,
}

/// The part of a request that outlives its message: a deferred reply is intercepted too.
#[derive(Debug)]
struct ReceivedRequest {
    operation: String,
    object_key: Vec<u8>,
    adapter: String,
    object_id: Vec<u8>,
    peer: RequestPeer,
    identity: Option<Arc<PeerIdentity>>,
    response: Response,
    contexts: ContextBuffer,
    /// The contexts that the interceptors add to the reply.
    added: ContextBuffer,
}

impl Default for ReceivedRequest {
    fn default() -> Self {
        Self {
            operation: String::new(),
            object_key: Vec::new(),
            adapter: String::new(),
            object_id: Vec::new(),
            peer: RequestPeer::Gone,
            identity: None,
            response: Response::None,
            contexts: ContextBuffer::default(),
            added: ContextBuffer::default(),
        }
    }
}

impl ServerInterception {
    /// Begins the interception of a request.
    pub(crate) fn begin(
        &mut self,
        interceptors: &Arc<[Arc<dyn ServerRequestInterceptor>]>,
        received: &RequestDescription<'_>,
    ) -> Result<(), SystemException> {
        if !Arc::ptr_eq(&self.interceptors, interceptors) {
            self.interceptors = Arc::clone(interceptors);
        }
        self.stack.clear();
        self.replacement = None;
        self.request.read(received)
    }

    /// Calls the starting points.
    ///
    /// # Errors
    /// The intervention of an interceptor.
    pub(crate) fn start(&mut self) -> Result<(), Intervention> {
        for (index, interceptor) in self.interceptors.iter().enumerate() {
            interceptor.receive_request(&mut ServerRequest {
                request: &mut self.request,
                note: self.stack.note(index),
            })?;
            self.stack.push();
        }
        Ok(())
    }

    /// Returns true if interceptors have to see the end of the request.
    pub(crate) fn is_begun(&self) -> bool {
        !self.stack.is_empty()
    }

    /// Calls the ending points. Returns true if one of them replaces the ending.
    //= CORBA 3 §The Flow Stack Visual Model
    //# Each interceptor whose starting point was called gets one ending point, in reverse order. What one raises replaces the ending.
    pub(crate) fn end(&mut self, ending: &mut Ending) -> bool {
        let mut is_replaced = false;
        while let Some(index) = self.stack.pop() {
            let interceptor = &self.interceptors[index];
            let request = &mut ServerRequest {
                request: &mut self.request,
                note: self.stack.note(index),
            };
            let point = match &*ending {
                Ending::Results => interceptor.send_reply(request).map_err(Into::into),
                Ending::UserException => {
                    interceptor.send_exception(request, RequestException::User(&self.exception_id))
                }
                Ending::SystemException(exception) => {
                    interceptor.send_exception(request, RequestException::System(exception))
                }
                Ending::Other(other) => interceptor.send_other(request, other),
            };
            if point.is_err() {
                is_replaced = true;
                let seen = core::mem::replace(ending, Ending::Results);
                *ending = seen.after(point);
            }
        }
        is_replaced
    }

    /// Returns the ending of a request that ends with the user exception that has this repository id.
    pub(crate) fn with_exception(&mut self, id: &[u8]) -> Ending {
        self.exception_id.clear();
        self.exception_id
            .push_str(core::str::from_utf8(id).unwrap_or_default());
        Ending::UserException
    }

    /// Returns the contexts for the reply; `None` if there are none.
    pub(crate) fn added(&self) -> Option<&ContextBuffer> {
        let added = &self.request.added;
        (!added.is_empty()).then_some(added)
    }

    /// Forgets the contexts for the reply, which is sent.
    pub(crate) fn forget_added(&mut self) {
        self.request.added.clear(KEPT_BYTES_MAX);
    }
}

impl fmt::Debug for ServerInterception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerInterception")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl ReceivedRequest {
    /// Copies what interceptors may ask for.
    fn read(&mut self, received: &RequestDescription<'_>) -> Result<(), SystemException> {
        let header = received.header;
        self.operation.clear();
        self.operation
            .push_str(core::str::from_utf8(header.operation).unwrap_or_default());
        self.object_key.clear();
        self.object_key
            .extend_from_slice(header.target.object_key()?);
        self.adapter.clear();
        self.adapter.push_str(received.adapter);
        self.object_id.clear();
        self.object_id.extend_from_slice(received.object_id);
        self.peer = received.peer;
        self.identity = received.identity.cloned();
        self.response = header.response;
        self.added.clear(KEPT_BYTES_MAX);
        self.contexts.clear(KEPT_BYTES_MAX);
        for context in header.contexts {
            self.contexts.add(context.id, context.data);
        }
        Ok(())
    }
}
