//! The requests that a client cancels, in bytes that are received and not yet taken.

use super::{Header, MessageType};

/// Returns the ids of the requests that the CancelRequests in `bytes` name. `bytes` begins with a message. The list ends before a
/// message that is not whole or no GIOP: its receiver reports that.
pub fn cancelled_requests(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        loop {
            let header = Header::parse(bytes, usize::MAX).ok().flatten()?;
            let message = bytes.get(..header.message_bytes())?;
            bytes = &bytes[message.len()..];
            if header.message_type == MessageType::CancelRequest {
                return header.reader(message).primitive().ok();
            }
        }
    })
}
