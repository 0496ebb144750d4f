//! The message by which a client says that it does not expect a reply any more.

use crate::transport::Stream;
use rtorb_wire::giop::{self, Version};
use rtorb_wire::{ByteOrder, Writer};

/// A CancelRequest, which is small enough to be sent without waiting or not at all.
//= GIOP 1.2 §15.4.4
//# A client sends CancelRequest to say that it does not expect a reply any more.
#[derive(Debug)]
pub(crate) struct CancelRequest {
    pub(crate) request_id: u32,
    version: Version,
    bytes: [u8; BYTES],
}

/// What a socket has taken of a CancelRequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelSent {
    /// All of it: the server learns of it.
    Whole,
    /// Nothing: it has no room, or is broken, which the thread finds that reads.
    Nothing,
    /// A part, which no other message may follow: the connection cannot be used again.
    Part,
}

/// A message header, and the id of a request.
const BYTES: usize = giop::HEADER_BYTES + 4;

impl CancelRequest {
    pub(crate) fn new(version: Version, order: ByteOrder, request_id: u32) -> Self {
        let mut w = Writer::new(Vec::new(), BYTES).with_order(order);
        let written = giop::write_cancel_request(&mut w, version, request_id);
        debug_assert!(written.is_ok(), "it has room");
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&w.to_bytes());
        Self {
            request_id,
            version,
            bytes,
        }
    }

    /// True if it may be sent on a connection that several threads share. Before GIOP 1.2 it may not: omniORB closes the connection
    /// then, and calls of other threads may be lost.
    pub(crate) fn may_be_shared(&self) -> bool {
        self.version >= Version::V1_2
    }

    /// Sends it without waiting.
    #[cold]
    pub(crate) fn send(&self, stream: &Stream) -> CancelSent {
        match stream.send_message_now(&self.bytes, &[]) {
            Ok(BYTES) => CancelSent::Whole,
            Ok(0) | Err(_) => CancelSent::Nothing,
            Ok(_) => CancelSent::Part,
        }
    }
}
