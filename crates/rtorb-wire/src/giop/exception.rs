//! The body of a reply with a system exception.

use crate::{DecodeError, EncodeError, Reader, Writer};

/// A system exception on the wire.
//= GIOP 1.2 §15.4.3.2
//# A system exception is its repository id, its minor code and its completion status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemExceptionBody<'m> {
    /// `IDL:omg.org/CORBA/NAME:1.0`, without a terminator.
    pub repository_id: &'m [u8],
    /// The minor code: the vendor in the upper 20 bits, the code in the lower 12.
    pub minor: u32,
    /// The completion status: 0 for yes, 1 for no, 2 for maybe.
    pub completed: u32,
}

impl<'m> SystemExceptionBody<'m> {
    /// Decodes the body.
    ///
    /// # Errors
    /// When the bytes are not such a body, or the completion status is invalid.
    pub fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        let body = Self {
            repository_id: r.string_bytes()?,
            minor: r.primitive()?,
            completed: r.primitive()?,
        };
        match body.completed {
            0..=2 => Ok(body),
            value => Err(DecodeError::BadEnum { value }),
        }
    }

    /// Writes the body.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.terminated_bytes(self.repository_id)?;
        w.primitive(self.minor)?;
        w.primitive(self.completed)
    }
}
