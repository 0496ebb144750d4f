//! The messages of GIOP 1.0, 1.1 and 1.2: headers, beginning, end and fragments.
//!
//! Position 0 of a message's stream is its first byte, the `G`, so alignment counts from there. The headers of requests and
//! replies borrow from the message and allocate nothing.

mod cancelled;
mod exception;
mod expiry;
mod fragments;
mod header;
mod locate;
mod numbered;
mod passed;
mod reply;
mod request;
mod service_context;
mod target;
mod thread_context;

pub mod contexts;

pub use crate::version::Version;
pub use cancelled::cancelled_requests;
pub use exception::SystemExceptionBody;
pub use expiry::{
    END_TIMES_BYTES, Expiry, REMAINING_TIME_BYTES, UtcOrigin, UtcTime, remaining_time,
};
pub use fragments::{FRAGMENT_BYTES_MIN, fragments};
pub(crate) use fragments::{fragment_header_bytes, may_be_fragmented, patch};
pub use header::{HEADER_BYTES, Header, MessageType, begin_message, end_message};
pub use locate::{
    LocateReplyHeader, LocateRequestHeader, LocateStatus, write_cancel_request,
    write_close_connection, write_locate_forward, write_locate_reply, write_locate_request,
    write_locate_request_to, write_message_error,
};
pub use passed::{PassedDeadline, PassedReply, PassedRequest, PassedTarget};
pub use reply::{ReplyHeader, ReplyStatus, begin_reply};
pub use request::{
    RequestHeader, RequestPrefix, RequestStart, Response, begin_request, begin_request_at,
};
pub use service_context::{ContextBuffer, ServiceContext, ServiceContexts, ServiceContextsIter};
pub use target::{Address, AddressingMode, Target};
pub use thread_context::{
    DISTRIBUTABLE_THREAD, SEGMENT_NAME_BYTES_MAX, SegmentParameter, THREAD_CONTEXT_BYTES_MAX,
    ThreadContext,
};

use crate::{DecodeError, EncodeError, Reader, Writer};

/// Writes the body of a request or reply: the padding of GIOP 1.2, and `content`.
///
/// # Errors
/// The error of `content`, or when the message would exceed its limit.
//= GIOP 1.2 §15.4.2.2
//# The body of a GIOP 1.2 request starts at a multiple of 8. There is no padding before an empty body.
//= GIOP 1.2 §15.4.3.2
//# The body of a GIOP 1.2 reply starts at a multiple of 8. There is no padding before an empty body.
#[inline(always)]
pub fn encode_body<'a>(
    w: &mut Writer<'a>,
    version: Version,
    content: impl FnOnce(&mut Writer<'a>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    if version.minor < 2 {
        return content(w);
    }
    let end_of_header = w.len();
    w.align(BODY_ALIGNMENT)?;
    let start = w.len();
    content(w)?;
    if w.len() == start {
        w.truncate(end_of_header);
    }
    Ok(())
}

/// The alignment of the body of a GIOP 1.2 request or reply.
const BODY_ALIGNMENT: usize = 8;

/// Skips the padding between header and body. Some peers send padding without a body, which is accepted.
#[inline]
fn skip_to_body(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    if r.giop_minor() < 2 {
        return Ok(());
    }
    let pad = r.position().wrapping_neg() & (BODY_ALIGNMENT - 1);
    if pad == 0 {
        return Ok(());
    }
    let pad = pad.min(r.remaining());
    r.take(pad).map(|_| ())
}
