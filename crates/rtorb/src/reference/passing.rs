//! Forwards requests of other clients unchanged, but for the time that is left of their deadlines, for proxies.

use super::ObjectRef;
use super::call::CallRequest;
use crate::connection::InvocationKind;
use crate::exception::{SystemException, local};
use rtorb_wire::giop::{PassedReply, PassedRequest, Response};

impl ObjectRef {
    /// Sends another client's request to this object, and returns the reply of its server, which contains a result or an exception;
    /// `None` if the client expects no reply. Follows LOCATION_FORWARD.
    ///
    /// The bytes stay as they came, but for the request id, the object key and a remaining time: the server gets what is left of that.
    ///
    /// A connection has the code sets of the first request that names some. So for clients with other code sets, a proxy needs
    /// another reference with connections of its own ([`PrivateConnection`](crate::realtime::Policy::PrivateConnection)).
    ///
    /// # Errors
    /// A system exception of this ORB, if there is no reply.
    pub fn pass(
        &self,
        request: &PassedRequest<'_>,
    ) -> Result<Option<PassedReply>, SystemException> {
        let header = request.request();
        // For messages about the call. The sent bytes are those of the request.
        let operation = core::str::from_utf8(header.operation).unwrap_or_default();
        let mut reply = None;
        let request = CallRequest {
            kind: InvocationKind::Passed(request),
            ..CallRequest::operation(operation, header.response)
        };
        self.invoke_at(request, &|_| Ok(()), &mut |_, r| {
            reply = Some(PassedReply::copy(r.whole()?)?);
            Ok(())
        })?;
        if reply.is_none() && header.response != Response::None {
            return Err(local::CONTRADICTION);
        }
        Ok(reply)
    }
}
