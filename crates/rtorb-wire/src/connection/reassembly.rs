//! The reassembly of fragmented messages.

use crate::DecodeError;
use crate::giop::{
    HEADER_BYTES, Header, MessageType, ServiceContexts, fragment_header_bytes, may_be_fragmented,
    patch,
};
use alloc::vec::Vec;

/// The incomplete messages of one direction of a connection, bounded in bytes and in messages.
//= GIOP 1.2 §15.4.9
//# The fragments of different GIOP 1.2 messages may interleave; a fragment names its message by the request id behind its
//# header. GIOP 1.1 has no id, and one fragmented message at a time.
#[derive(Debug)]
pub(super) struct Reassembly {
    chains: Vec<Chain>,
    bytes: usize,
    bytes_max: usize,
    chains_max: usize,
    /// The time at which the next chain begins, whatever the owner measures it by.
    pub(super) now: u32,
}

/// The result of [`Reassembly::accept`].
pub(super) enum Accepted {
    /// The message is not fragmented.
    Whole,
    /// The message is a fragment. It is kept until the last fragment arrives.
    Kept,
    /// The message was the last fragment. This is the whole message.
    Message(Header, Vec<u8>),
}

impl Reassembly {
    /// A reassembly of at most `bytes_max` bytes, in at most `chains_max` messages.
    pub(super) fn new(bytes_max: usize, chains_max: usize) -> Self {
        Self {
            chains: Vec::new(),
            bytes: 0,
            bytes_max,
            chains_max,
            now: 0,
        }
    }

    /// Takes the next message of the connection, `bytes`, which begins with `header`.
    ///
    /// # Errors
    /// When a fragment continues no message, or a limit is exceeded. Then the connection cannot be used any longer.
    pub(super) fn accept(
        &mut self,
        header: &Header,
        bytes: &[u8],
    ) -> Result<Accepted, DecodeError> {
        match header.message_type {
            MessageType::Fragment => self.continue_chain(header, bytes),
            //= GIOP 1.2 §15.4.9
            //# A CancelRequest ends the fragments of its request, without a last fragment.
            MessageType::CancelRequest => {
                let request_id = Some(header.reader(bytes).primitive()?);
                let mut chains = self.chains.iter();
                if let Some(index) = chains.position(|chain| chain.id_of_request() == request_id) {
                    self.remove(index);
                }
                Ok(Accepted::Whole)
            }
            _ if header.more_fragments => self.begin_chain(header, bytes),
            _ => Ok(Accepted::Whole),
        }
    }

    /// True if no message is incomplete.
    pub(super) fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// When the oldest incomplete message began.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.chains.iter().map(|chain| chain.begun).min()
    }

    fn begin_chain(&mut self, header: &Header, bytes: &[u8]) -> Result<Accepted, DecodeError> {
        let request_id = request_id(header, bytes)?;
        if !may_be_fragmented(header) || self.find(request_id).is_some() {
            return Err(out_of_place(request_id));
        }
        if self.chains.len() == self.chains_max {
            let max = self.chains_max;
            return Err(DecodeError::TooManyFragmented { max });
        }
        self.claim(bytes.len())?;
        self.chains.push(Chain {
            request_id,
            header: *header,
            bytes: bytes.to_vec(),
            begun: self.now,
        });
        Ok(Accepted::Kept)
    }

    fn continue_chain(&mut self, header: &Header, bytes: &[u8]) -> Result<Accepted, DecodeError> {
        let request_id = request_id(header, bytes)?;
        let index = self.find(request_id).filter(|&index| {
            let first = self.chains[index].header;
            first.version == header.version && first.order == header.order
        });
        let index = index.ok_or_else(|| out_of_place(request_id))?;
        let more = &bytes[fragment_header_bytes(header)..];
        self.claim(more.len())?;
        self.chains[index].bytes.extend_from_slice(more);
        if header.more_fragments {
            return Ok(Accepted::Kept);
        }
        let Chain {
            header, mut bytes, ..
        } = self.remove(index);
        patch(&mut bytes, header.order, false);
        let header = Header {
            more_fragments: false,
            body_bytes: (bytes.len() - HEADER_BYTES) as u32,
            ..header
        };
        Ok(Accepted::Message(header, bytes))
    }

    fn claim(&mut self, bytes: usize) -> Result<(), DecodeError> {
        let total = self.bytes + bytes;
        if total > self.bytes_max {
            return Err(DecodeError::TooLarge {
                bytes: total as u64,
                limit: self.bytes_max,
            });
        }
        self.bytes = total;
        Ok(())
    }

    fn find(&self, request_id: Option<u32>) -> Option<usize> {
        let mut chains = self.chains.iter();
        chains.position(|chain| chain.request_id == request_id)
    }

    fn remove(&mut self, index: usize) -> Chain {
        let chain = self.chains.swap_remove(index);
        self.bytes -= chain.bytes.len();
        chain
    }
}

/// A message whose last fragment has not arrived yet.
#[derive(Debug)]
struct Chain {
    /// None in GIOP 1.1.
    request_id: Option<u32>,
    /// The header of its first fragment.
    header: Header,
    bytes: Vec<u8>,
    begun: u32,
}

impl Chain {
    /// The id of the request that the fragments are; `None` before it has arrived.
    fn id_of_request(&self) -> Option<u32> {
        self.request_id.or_else(|| {
            // Before GIOP 1.2 it stands behind the service contexts.
            let mut r = self.header.reader(&self.bytes);
            ServiceContexts::decode(&mut r).ok()?;
            r.primitive().ok()
        })
    }
}

/// The request id of a fragment; `None` before GIOP 1.2.
fn request_id(header: &Header, bytes: &[u8]) -> Result<Option<u32>, DecodeError> {
    match header.version.minor {
        2.. => header.reader(bytes).primitive().map(Some),
        _ => Ok(None),
    }
}

fn out_of_place(request_id: Option<u32>) -> DecodeError {
    DecodeError::bad_tag("the request id of a fragment", request_id.unwrap_or(0))
}
