//! Requests of other clients, which a proxy passes on as they came.

use super::{Asked, ObjectRef};
use crate::connection::InvocationKind;
use crate::exception::{SystemException, local};
use rtorb_wire::giop::{PassedReply, PassedRequest, Response};

impl ObjectRef {
    /// Sends another client's request to this object, and returns the reply of its server with a result or an exception; `None`
    /// if the client expects none. Forwards (LOCATION_FORWARD) are followed.
    ///
    /// A connection has the code sets of the first request that names some. So a proxy needs, for clients with other code sets,
    /// another reference with connections of its own ([`PrivateConnection`](crate::realtime::Policy::PrivateConnection)).
    ///
    /// # Errors
    /// A system exception of this ORB, if there is no reply.
    pub fn pass(
        &self,
        request: &PassedRequest<'_>,
    ) -> Result<Option<PassedReply>, SystemException> {
        let header = request.request();
        // It is for messages about the call. The bytes that are sent are those of the request.
        let operation = core::str::from_utf8(header.operation).unwrap_or_default();
        let mut reply = None;
        let asked = Asked {
            kind: InvocationKind::Passed(request),
            ..Asked::operation(operation, header.response)
        };
        self.invoke_at(asked, &|_| Ok(()), &mut |_, r| {
            reply = Some(PassedReply::copy(r.whole()?)?);
            Ok(())
        })?;
        if reply.is_none() && header.response != Response::None {
            return Err(local::CONTRADICTION);
        }
        Ok(reply)
    }
}
