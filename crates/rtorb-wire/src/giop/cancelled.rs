//! The requests that a client cancels, in bytes that are received and not yet taken.

use super::{Header, MessageType, RequestHeader};

/// Returns the ids of the earlier requests that the CancelRequests in `bytes` name. `bytes` begins with a message. The list ends before a
/// message that is not whole or no GIOP: its receiver reports that.
///
/// A request that is in `bytes` itself is not listed: who reads it finds its cancellation behind it.
pub fn cancelled_requests(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let mut before = 0;
    messages(bytes).filter_map(move |message| {
        let earlier = messages(&bytes[..before]);
        before += message.bytes.len();
        let id = message.cancelled()?;
        let mut unread = earlier.filter_map(|message| message.requested());
        (!unread.any(|unread| unread == id)).then_some(id)
    })
}

/// A whole message.
struct Whole<'m> {
    header: Header,
    bytes: &'m [u8],
}

impl Whole<'_> {
    /// The id of the request that it cancels.
    fn cancelled(&self) -> Option<u32> {
        let is_cancel = self.header.message_type == MessageType::CancelRequest;
        is_cancel.then(|| self.header.reader(self.bytes).primitive().ok())?
    }

    /// The id of the request that it is.
    fn requested(&self) -> Option<u32> {
        if self.header.message_type != MessageType::Request {
            return None;
        }
        let request = RequestHeader::decode(&mut self.header.reader(self.bytes));
        request.ok().map(|request| request.request_id)
    }
}

fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Whole<'_>> {
    core::iter::from_fn(move || {
        let header = Header::parse(bytes, usize::MAX).ok().flatten()?;
        let message = bytes.get(..header.message_bytes())?;
        bytes = &bytes[message.len()..];
        Some(Whole {
            header,
            bytes: message,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;
    use crate::giop::{
        RequestStart, Response, Version, begin_request, end_message, write_cancel_request,
    };

    fn request(request_id: u32) -> Vec<u8> {
        let start = RequestStart {
            request_id,
            response: Response::FromTarget,
            object_key: b"key",
            operation: "look",
            contexts: &[],
        };
        let mut w = Writer::new(Vec::new(), 1000);
        begin_request(&mut w, Version::V1_2, &start).expect("it fits");
        end_message(&mut w).expect("it fits");
        w.to_bytes().to_vec()
    }

    fn cancel(request_id: u32) -> Vec<u8> {
        let mut w = Writer::new(Vec::new(), 1000);
        write_cancel_request(&mut w, Version::V1_2, request_id).expect("it fits");
        w.to_bytes().to_vec()
    }

    #[test]
    fn the_list_has_earlier_requests_and_none_that_is_not_read_yet() {
        let bytes = [request(2), cancel(2), cancel(1), request(3), cancel(3)].concat();
        let listed = |bytes: &[u8]| cancelled_requests(bytes).collect::<Vec<_>>();
        assert_eq!(listed(&bytes), [1]);
        assert_eq!(listed(&bytes[request(2).len()..]), [2, 1]);
        let is_cut = bytes.len() - cancel(3).len() - 1;
        assert_eq!(listed(&bytes[..is_cut]), [1]);
        assert_eq!(listed(b"no GIOP, and long enough"), [0; 0]);
    }
}
