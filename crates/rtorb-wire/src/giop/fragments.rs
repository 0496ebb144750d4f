//! Fragmented messages: reassembly and fragmentation.

use super::{HEADER_OCTETS, Header, MessageType, Version};
use crate::{ByteOrder, DecodeError};

/// The reassembly of the fragmented messages of one direction of a connection, bounded in bytes and in messages.
//= GIOP 1.2 §15.4.9
//# The fragments of different GIOP 1.2 messages may interleave; a fragment names its message by the request id behind its
//# header. GIOP 1.1 has no id, and one fragmented message at a time.
#[derive(Debug)]
pub struct Reassembly {
    chains: Vec<Chain>,
    octets: usize,
    octets_max: usize,
    chains_max: usize,
}

/// The result of [`Reassembly::accept`].
#[derive(Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The message is not fragmented.
    Whole,
    /// The message is a fragment that is kept until the last one arrives.
    Kept,
    /// The message was the last fragment. This is the whole message, with a header.
    Message(Vec<u8>),
}

impl Reassembly {
    /// A reassembly of at most `octets_max` bytes, in at most `chains_max` messages.
    pub fn new(octets_max: usize, chains_max: usize) -> Self {
        Self {
            chains: Vec::new(),
            octets: 0,
            octets_max,
            chains_max,
        }
    }

    /// Takes the next message of the connection, `octets`, which begins with `header`.
    ///
    /// # Errors
    /// When a fragment continues no message, or a limit is exceeded. Then the connection cannot be used any longer.
    pub fn accept(&mut self, header: &Header, octets: &[u8]) -> Result<Accepted, DecodeError> {
        match header.message_type {
            MessageType::Fragment => self.continue_chain(header, octets),
            MessageType::CancelRequest => {
                self.cancel(header.reader(octets).primitive()?);
                Ok(Accepted::Whole)
            }
            _ if header.more_fragments => self.begin_chain(header, octets),
            _ => Ok(Accepted::Whole),
        }
    }

    /// Drops the fragments of the message with that request id.
    //= GIOP 1.2 §15.4.9
    //# A CancelRequest ends the fragments of its request, without a last fragment.
    pub fn cancel(&mut self, request_id: u32) {
        if let Some(index) = self.find(Some(request_id)) {
            self.remove(index);
        }
    }

    /// The number of bytes kept.
    pub fn octets(&self) -> usize {
        self.octets
    }

    fn begin_chain(&mut self, header: &Header, octets: &[u8]) -> Result<Accepted, DecodeError> {
        //= GIOP 1.2 §15.4.9
        //# Requests and replies may be fragmented, and in GIOP 1.2 locate requests and locate replies too.
        let may = match header.message_type {
            MessageType::Request | MessageType::Reply => true,
            MessageType::LocateRequest | MessageType::LocateReply => header.version.minor >= 2,
            _ => false,
        };
        let (request_id, _) = preamble(header, octets)?;
        if !may || self.find(request_id).is_some() {
            return Err(out_of_place(request_id));
        }
        if self.chains.len() == self.chains_max {
            return Err(DecodeError::TooManyFragmented {
                max: self.chains_max,
            });
        }
        self.claim(octets.len())?;
        self.chains.push(Chain {
            request_id,
            version: header.version,
            order: header.order,
            octets: octets.to_vec(),
        });
        Ok(Accepted::Kept)
    }

    fn continue_chain(&mut self, header: &Header, octets: &[u8]) -> Result<Accepted, DecodeError> {
        let (request_id, start) = preamble(header, octets)?;
        let index = self
            .find(request_id)
            .filter(|&index| {
                let chain = &self.chains[index];
                chain.version == header.version && chain.order == header.order
            })
            .ok_or_else(|| out_of_place(request_id))?;
        let more = &octets[start..];
        self.claim(more.len())?;
        self.chains[index].octets.extend_from_slice(more);
        if header.more_fragments {
            return Ok(Accepted::Kept);
        }
        Ok(Accepted::Message(self.remove(index).into_message()))
    }

    fn claim(&mut self, octets: usize) -> Result<(), DecodeError> {
        let total = self.octets + octets;
        if total > self.octets_max {
            return Err(DecodeError::TooLarge {
                octets: total as u64,
                limit: self.octets_max,
            });
        }
        self.octets = total;
        Ok(())
    }

    fn find(&self, request_id: Option<u32>) -> Option<usize> {
        self.chains
            .iter()
            .position(|chain| chain.request_id == request_id)
    }

    fn remove(&mut self, index: usize) -> Chain {
        let chain = self.chains.swap_remove(index);
        self.octets -= chain.octets.len();
        chain
    }
}

/// A message whose last fragment has not arrived yet.
#[derive(Debug)]
struct Chain {
    /// None in GIOP 1.1.
    request_id: Option<u32>,
    version: Version,
    order: ByteOrder,
    octets: Vec<u8>,
}

impl Chain {
    fn into_message(self) -> Vec<u8> {
        let mut message = self.octets;
        patch(&mut message, self.order, false);
        message
    }
}

/// Splits a finished GIOP 1.1 or 1.2 message into messages of at most `octets_max` bytes, but no less than
/// [`FRAGMENT_OCTETS_MIN`].
///
/// A message that cannot be fragmented (GIOP 1.0, messages without a body, locate messages of 1.1) is returned unchanged.
//= GIOP 1.2 §15.4.9
//# The size of every part but the last is a multiple of 8, header included, so that no number straddles a boundary.
pub fn fragments(message: &[u8], octets_max: usize) -> FragmentedMessage<'_> {
    let part_octets = octets_max.max(FRAGMENT_OCTETS_MIN) & !7;
    let header = Header::parse(message, usize::MAX).ok().flatten();
    let header = header.filter(|header| {
        header.message_octets() == message.len()
            && matches!(
                (header.version.minor, header.message_type),
                (1.., MessageType::Request | MessageType::Reply)
                    | (2.., MessageType::LocateRequest | MessageType::LocateReply)
            )
    });
    FragmentedMessage {
        rest: message,
        header: header.filter(|_| message.len() > part_octets),
        preamble: ([0; FRAGMENT_HEADER_OCTETS], 0),
        part_octets,
    }
}

/// The smallest useful fragment: a header, a request id and one number.
pub const FRAGMENT_OCTETS_MIN: usize = 24;

/// The parts of a message, each of which is a message.
#[derive(Clone, Debug)]
pub struct FragmentedMessage<'m> {
    rest: &'m [u8],
    /// None if the message is not fragmented.
    header: Option<Header>,
    /// The header of the next part, and its size: 0 before the first.
    preamble: ([u8; FRAGMENT_HEADER_OCTETS], usize),
    part_octets: usize,
}

impl Iterator for FragmentedMessage<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(header) = self.header else {
            return Some(core::mem::take(&mut self.rest).to_vec());
        };
        let (preamble, preamble_octets) = self.preamble;
        let room = self.part_octets - preamble_octets;
        let (now, rest) = self.rest.split_at(room.min(self.rest.len()));
        let mut part = Vec::with_capacity(preamble_octets + now.len());
        part.extend_from_slice(&preamble[..preamble_octets]);
        part.extend_from_slice(now);
        patch(&mut part, header.order, !rest.is_empty());
        if preamble_octets == 0 {
            self.preamble = fragment_preamble(&header, &part);
        }
        self.rest = rest;
        Some(part)
    }
}

/// The size of a fragment's header with, in GIOP 1.2, the request id.
const FRAGMENT_HEADER_OCTETS: usize = HEADER_OCTETS + 4;

fn fragment_preamble(header: &Header, first_part: &[u8]) -> ([u8; FRAGMENT_HEADER_OCTETS], usize) {
    let fragment = Header {
        message_type: MessageType::Fragment,
        ..*header
    };
    let mut preamble = [0; FRAGMENT_HEADER_OCTETS];
    // In GIOP 1.2 every message that can be fragmented has its request id behind the header.
    preamble.copy_from_slice(&first_part[..FRAGMENT_HEADER_OCTETS]);
    preamble[..HEADER_OCTETS].copy_from_slice(&fragment.to_octets());
    match header.version.minor {
        1 => (preamble, HEADER_OCTETS),
        _ => (preamble, FRAGMENT_HEADER_OCTETS),
    }
}

/// The request id of a fragment, and the index of its data.
fn preamble(header: &Header, octets: &[u8]) -> Result<(Option<u32>, usize), DecodeError> {
    if octets.len() < HEADER_OCTETS {
        return Err(DecodeError::Truncated {
            needed: HEADER_OCTETS,
            left: octets.len(),
        });
    }
    if header.version.minor < 2 {
        return Ok((None, HEADER_OCTETS));
    }
    let request_id = header.reader(octets).primitive()?;
    Ok((Some(request_id), FRAGMENT_HEADER_OCTETS))
}

/// Overwrites the size and the fragment flag of a message.
fn patch(message: &mut [u8], order: ByteOrder, more_fragments: bool) {
    let body = (message.len() - HEADER_OCTETS) as u32;
    let size = match order {
        ByteOrder::Big => body.to_be_bytes(),
        ByteOrder::Little => body.to_le_bytes(),
    };
    message[FLAGS_AT] = order.flag() | u8::from(more_fragments) << 1;
    message[SIZE_AT..HEADER_OCTETS].copy_from_slice(&size);
}

const FLAGS_AT: usize = 6;
const SIZE_AT: usize = 8;

fn out_of_place(request_id: Option<u32>) -> DecodeError {
    DecodeError::bad_tag("the request id of a fragment", request_id.unwrap_or(0))
}
