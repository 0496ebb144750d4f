//! The body of a reply that carries a system exception.

use crate::{DecodeError, EncodeError, Reader, Writer};

/// A system exception as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemExceptionBody<'m> {
    /// `IDL:omg.org/CORBA/NAME:1.0`, without a terminator.
    pub repository_id: &'m [u8],
    /// Vendor in the upper 20 bits, code in the lower 12.
    pub minor: u32,
    /// 0 completed, 1 not, 2 perhaps.
    pub completed: u32,
}

impl<'m> SystemExceptionBody<'m> {
    /// Reads a body.
    ///
    /// # Errors
    /// When the octets are no such body, or the completion status is none of the three.
    pub fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        let body = Self {
            repository_id: r.string_octets()?,
            minor: r.primitive()?,
            completed: r.primitive()?,
        };
        match body.completed {
            0..=2 => Ok(body),
            value => Err(DecodeError::BadEnum { value }),
        }
    }

    /// Writes a body.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.count(self.repository_id.len() + 1)?;
        w.octets(self.repository_id)?;
        w.primitive(0u8)?;
        w.primitive(self.minor)?;
        w.primitive(self.completed)
    }
}
