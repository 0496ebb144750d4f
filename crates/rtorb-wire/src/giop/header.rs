//! The header of every message, 12 bytes.

use super::Version;
use super::numbered::numbered_enum;
use crate::{ByteOrder, DecodeError, EncodeError, Reader, Writer};

/// The size of the header.
pub const HEADER_BYTES: usize = 12;

const MAGIC: [u8; 4] = *b"GIOP";
pub(super) const MORE_FRAGMENTS: u8 = 2;
pub(super) const FLAGS_AT: usize = 6;
pub(super) const TYPE_AT: usize = 7;
pub(super) const SIZE_AT: usize = 8;

numbered_enum! {
    /// The type of a message.
    #[derive(Hash)]
    pub enum MessageType: u8, from_byte {
        /// A request to invoke an operation.
        Request = 0,
        /// The reply to a request.
        Reply = 1,
        /// The client no longer waits for a reply.
        CancelRequest = 2,
        /// A question for the location of an object.
        LocateRequest = 3,
        /// The reply to a locate request.
        LocateReply = 4,
        /// The end of a connection. Requests without a reply were not processed.
        CloseConnection = 5,
        /// The sender did not understand a message.
        MessageError = 6,
        /// A later part of a message (GIOP 1.1 and 1.2).
        Fragment = 7 since 1,
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The GIOP version of the message.
    pub version: Version,
    /// The byte order of its numbers, with those of the header.
    pub order: ByteOrder,
    /// True if [`MessageType::Fragment`] messages continue it.
    pub more_fragments: bool,
    /// The type of the message.
    pub message_type: MessageType,
    /// The number of bytes behind the header.
    pub body_bytes: u32,
}

impl Header {
    /// Decodes the header of a message of at most `bytes_max` bytes; `None` while there are fewer than 12 bytes.
    ///
    /// # Errors
    /// [`DecodeError::BadMagic`], [`DecodeError::BadVersion`], [`DecodeError::BadTag`] for a type that the version does
    /// not have, [`DecodeError::TooLarge`].
    //= GIOP 1.2 §15.4.1
    //# A message begins with GIOP, its version, flags, type and size. Bit 0 of the flags is the byte order, bit 1 announces
    //# fragments; in GIOP 1.0 the flags are a boolean. The size counts the bytes behind the header.
    #[inline]
    pub fn parse(bytes: &[u8], bytes_max: usize) -> Result<Option<Self>, DecodeError> {
        let Some(&[m0, m1, m2, m3, major, minor, flags, kind, s0, s1, s2, s3]) =
            bytes.first_chunk::<HEADER_BYTES>()
        else {
            return Ok(None);
        };
        if [m0, m1, m2, m3] != MAGIC {
            return Err(of_other_protocol([m0, m1]));
        }
        if major != 1 || minor > 2 {
            return Err(DecodeError::BadVersion { major, minor });
        }
        let Some(message_type) = MessageType::from_byte(kind, minor) else {
            return Err(DecodeError::bad_tag(
                "the type of a message",
                u32::from(kind),
            ));
        };
        let order = ByteOrder::from_flag(flags);
        let body_bytes = order.convert(u32::from_ne_bytes([s0, s1, s2, s3]));
        let whole = u64::from(body_bytes) + HEADER_BYTES as u64;
        if whole > bytes_max as u64 {
            return Err(DecodeError::TooLarge {
                bytes: whole,
                limit: bytes_max,
            });
        }
        Ok(Some(Self {
            version: Version { major, minor },
            order,
            // In GIOP 1.0 the byte is a boolean.
            more_fragments: minor > 0 && flags & MORE_FRAGMENTS != 0,
            message_type,
            body_bytes,
        }))
    }

    /// The size of the message with its header.
    #[inline]
    pub fn message_bytes(&self) -> usize {
        HEADER_BYTES + self.body_bytes as usize
    }

    /// A reader of `message`, behind this header.
    #[inline]
    pub fn reader<'m>(&self, message: &'m [u8]) -> Reader<'m> {
        let mut reader = Reader::new(message, self.order).with_giop_minor(self.version.minor);
        reader.skip_buffered(HEADER_BYTES.min(message.len()));
        reader
    }
}

/// Begins a message: writes its header with a size of 0, which [`end_message`] corrects.
///
/// The writer must be empty. From here on it writes the wide characters of this version.
///
/// # Errors
/// When the message would exceed its limit.
#[inline]
pub fn begin_message(
    w: &mut Writer<'_>,
    version: Version,
    message_type: MessageType,
) -> Result<(), EncodeError> {
    debug_assert!(w.is_empty(), "a message begins at position 0");
    w.set_giop_minor(version.minor);
    let ([g, i, o, p], flags) = (MAGIC, w.order().flag());
    let (major, minor, kind) = (version.major, version.minor, message_type as u8);
    *w.block()? = [g, i, o, p, major, minor, flags, kind, 0, 0, 0, 0];
    Ok(())
}

/// Ends a message: writes its size into its header.
///
/// # Errors
/// When the message has exceeded its limit.
#[inline]
pub fn end_message(w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.check_len()?;
    let body = w.len() - HEADER_BYTES;
    let size = u32::try_from(body).map_err(|_| EncodeError::CountTooLarge { count: body })?;
    w.patch_u32(SIZE_AT, size);
    Ok(())
}
/// Returns the error for bytes that begin no message of GIOP. A record of TLS begins with its type and major version.
#[cold]
fn of_other_protocol([kind, major]: [u8; 2]) -> DecodeError {
    if matches!((kind, major), (20..=23, 3)) {
        DecodeError::Tls
    } else {
        DecodeError::BadMagic
    }
}
