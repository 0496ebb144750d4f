//! Tagged components.

use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};

/// Something that a client may want to know about an object or its server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaggedComponent {
    /// What it is: see [`component_tag`].
    pub tag: u32,
    /// Its octets, most often an encapsulation.
    pub data: Vec<u8>,
}

impl Encode for TaggedComponent {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.tag.encode(w)?;
        self.data.encode(w)
    }
}

impl Decode for TaggedComponent {
    const OCTETS_MIN: usize = 8;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            tag: r.primitive()?,
            data: r.octets()?.to_vec(),
        })
    }
}
