//! The tags around the state of a valuetype: its type, indirections and chunks (GIOP 1.2 §15.3.4).
//!
//! The state is the members in order, written by [`Encode`](crate::Encode) and read by [`Decode`](crate::Decode).

use super::text::TYPE_TEXT_BYTES_MAX;
use super::{Reader, Writer};
use crate::{DecodeError, EncodeError};
use alloc::vec;
use alloc::vec::Vec;

/// The start of a valuetype on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueHead<'m> {
    /// The null value.
    Null,
    /// An indirection to an earlier value.
    Indirection {
        /// The position of the earlier value's tag.
        position: usize,
    },
    /// A value. Its state or first chunk follows.
    Value(ValueStart<'m>),
}

/// The part of a value before its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueStart<'m> {
    /// The position of its tag, to which indirections refer.
    pub position: usize,
    /// The URL of an implementation, if it was sent.
    pub codebase: Option<&'m [u8]>,
    /// Repository ids without their terminators: its type first, then the bases that it may be truncated to. Empty if it
    /// is of the formal type.
    pub repository_ids: Vec<&'m [u8]>,
    /// True if its state is chunked.
    pub chunked: bool,
}

/// The next part of a chunked value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// A chunk of state, with its size in bytes.
    State(usize),
    /// A nested value. Its head is not read yet.
    Nested,
    /// The end of all open values of at least that depth. The outermost has depth 1.
    End(u32),
}

impl<'m> Reader<'m> {
    /// Reads the part of a value before its state.
    ///
    /// # Errors
    /// When there is no value tag, or an indirection that does not point back.
    //= GIOP 1.2 §15.3.4
    //# A value begins with 0 for null, 0xffffffff for an indirection, or a tag of 0x7fffff00 to 0x7fffffff. The flags of
    //# the tag tell whether a code base URL, one or several repository ids, and chunks follow.
    pub fn value_head(&mut self) -> Result<ValueHead<'m>, DecodeError> {
        self.align(4)?;
        let position = self.position();
        let tag = self.primitive::<u32>()?;
        match tag {
            NULL => return Ok(ValueHead::Null),
            INDIRECTION => {
                let position = self.indirection_target()?;
                return Ok(ValueHead::Indirection { position });
            }
            TAG_MIN..=TAG_MAX => {}
            value => return Err(bad(value)),
        }
        let codebase = match tag & CODEBASE {
            0 => None,
            _ => Some(self.following_indirection(Self::codebase)?),
        };
        let repository_ids = match tag & TYPE_MASK {
            0 => Vec::new(),
            ONE_ID => vec![self.value_id(TYPE_TEXT_BYTES_MAX)?],
            ID_LIST => self.following_indirection(Self::text_list)?,
            _ => return Err(bad(tag)),
        };
        Ok(ValueHead::Value(ValueStart {
            position,
            codebase,
            repository_ids,
            chunked: tag & CHUNKED != 0,
        }))
    }

    /// Reads the next part of a chunked value.
    ///
    /// # Errors
    /// When it is neither a chunk nor a value nor an end tag.
    //= GIOP 1.2 §15.3.4
    //# A chunk begins with its size, above 0 and below every value tag. An end tag is the negative depth of the outermost
    //# value that it ends.
    pub fn chunk(&mut self) -> Result<Chunk, DecodeError> {
        self.align(4)?;
        let size = self.clone_here()?.primitive::<i32>()?;
        match size {
            1..CHUNK_END => {
                self.primitive::<i32>()?;
                if size as usize > self.remaining() {
                    return Err(DecodeError::CountTooLarge {
                        count: size as u32,
                        left: self.remaining(),
                    });
                }
                Ok(Chunk::State(size as usize))
            }
            CHUNK_END.. => Ok(Chunk::Nested),
            0 => Err(bad(0)),
            i32::MIN..0 => {
                self.primitive::<i32>()?;
                Ok(Chunk::End(size.unsigned_abs()))
            }
        }
    }

    /// Skips the rest of a chunked value of that depth.
    ///
    /// Returns the depth of the end tag, which may end enclosing values too.
    ///
    /// # Errors
    /// When chunks or end tags are malformed.
    pub fn skip_chunks(&mut self, depth: u32) -> Result<u32, DecodeError> {
        let mut open = depth;
        loop {
            match self.chunk()? {
                Chunk::State(bytes) => drop(self.take(bytes)?),
                Chunk::Nested => {
                    if let ValueHead::Value(value) = self.value_head()? {
                        // An unchunked value has no end tag to skip to.
                        if !value.chunked {
                            return Err(bad(0));
                        }
                        open = open.saturating_add(1);
                    }
                }
                Chunk::End(ended) if ended > open || ended == 0 => return Err(bad(ended)),
                Chunk::End(ended) if ended <= depth => return Ok(ended),
                Chunk::End(ended) => open = ended - 1,
            }
        }
    }

    /// Calls `read` here, or at the target of the indirection if one stands here.
    fn following_indirection<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let mut before = self.indirection()?;
        read(before.as_mut().unwrap_or(self))
    }

    fn text_list(&mut self) -> Result<Vec<&'m [u8]>, DecodeError> {
        let count = self.count(4)?;
        if count > IDS_MAX {
            return Err(DecodeError::OverBound {
                count,
                bound: IDS_MAX,
            });
        }
        let mut texts = Vec::new();
        let mut left = IDS_BYTES_MAX;
        for _ in 0..count {
            let text = self.value_id(TYPE_TEXT_BYTES_MAX.min(left))?;
            left -= text.len();
            texts.push(text);
        }
        Ok(texts)
    }

    /// Reads a repository id of at most `bytes_max` bytes.
    fn value_id(&mut self, bytes_max: usize) -> Result<&'m [u8], DecodeError> {
        self.following_indirection(|r| r.short_string_bytes(bytes_max))
    }

    /// Reads a code base URL. It may be long and stand behind an indirection, so its bytes are not searched for zeros.
    fn codebase(&mut self) -> Result<&'m [u8], DecodeError> {
        match self.octets()?.split_last() {
            None => Ok(&[]),
            Some((0, url)) => Ok(url),
            Some(_) => Err(DecodeError::BadString),
        }
    }

    /// Reads an indirection and returns a reader at its target; `None` if no indirection stands here.
    fn indirection(&mut self) -> Result<Option<Self>, DecodeError> {
        self.align(4)?;
        if self.clone_here()?.primitive::<u32>()? != INDIRECTION {
            return Ok(None);
        }
        self.primitive::<u32>()?;
        let target = self.indirection_target()?;
        let mut before = self.clone_at(target).ok_or(bad(INDIRECTION))?;
        // An indirection to an indirection could loop.
        match before.clone_here()?.primitive::<u32>()? {
            INDIRECTION => Err(bad(INDIRECTION)),
            _ => {
                before.enter()?;
                Ok(Some(before))
            }
        }
    }

    /// Reads an offset and returns its target.
    //= GIOP 1.2 §15.3.4.3
    //# The offset of an indirection counts from its own position, and points back to an earlier item of the same stream.
    fn indirection_target(&mut self) -> Result<usize, DecodeError> {
        let at = self.position();
        let offset = self.primitive::<i32>()?;
        let back = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        // An offset of -4 points to the indirection's own tag.
        match at.checked_sub(back) {
            Some(target) if offset < -4 && target.is_multiple_of(4) => Ok(target),
            _ => Err(bad(offset as u32)),
        }
    }
}

impl Writer<'_> {
    /// Writes the null value.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    pub fn null_value(&mut self) -> Result<(), EncodeError> {
        self.primitive(NULL)
    }

    /// Writes an indirection to the value that began at `position`.
    ///
    /// # Errors
    /// When it is too far back, or the message would exceed its limit.
    pub fn value_indirection(&mut self, position: usize) -> Result<(), EncodeError> {
        self.primitive(INDIRECTION)?;
        let back = self.position() - position;
        let back = i32::try_from(back).map_err(|_| EncodeError::CountTooLarge { count: back })?;
        self.primitive(-back)
    }

    /// Writes the part of a value before its state, and returns the position of its tag.
    ///
    /// # Errors
    /// When an id cannot be sent, or the message would exceed its limit.
    pub fn begin_value(
        &mut self,
        repository_ids: &[&str],
        chunked: bool,
    ) -> Result<usize, EncodeError> {
        self.align(4)?;
        let position = self.position();
        let ids = match repository_ids.len() {
            0 => 0,
            1 => ONE_ID,
            _ => ID_LIST,
        };
        let chunks = if chunked { CHUNKED } else { 0 };
        self.primitive(TAG_MIN | ids | chunks)?;
        if ids == ID_LIST {
            self.count(repository_ids.len())?;
        }
        repository_ids.iter().try_for_each(|id| self.str(id))?;
        Ok(position)
    }

    /// Writes a chunk: the number of bytes that `state` writes, and those bytes.
    ///
    /// # Errors
    /// The error of `state`, or when the message would exceed its limit.
    pub fn chunk(
        &mut self,
        state: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.sized(state)
    }

    /// Writes the end tag of all open values of at least that depth.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    pub fn end_value(&mut self, depth: u32) -> Result<(), EncodeError> {
        self.primitive(depth.wrapping_neg())
    }
}

/// The most repository ids of a value, and the most bytes of them all. Each may be an indirection to a long string, which takes time to
/// scan.
const IDS_MAX: usize = 64;
const IDS_BYTES_MAX: usize = 4 * TYPE_TEXT_BYTES_MAX;

const NULL: u32 = 0;
const INDIRECTION: u32 = 0xffff_ffff;
const TAG_MIN: u32 = 0x7fff_ff00;
const TAG_MAX: u32 = 0x7fff_ffff;
/// The smallest number that is not a chunk size: the first value tag.
const CHUNK_END: i32 = TAG_MIN as i32;

/// Bits of a value tag.
const CODEBASE: u32 = 1;
const TYPE_MASK: u32 = 6;
const ONE_ID: u32 = 2;
const ID_LIST: u32 = 6;
const CHUNKED: u32 = 8;

const fn bad(value: u32) -> DecodeError {
    DecodeError::bad_tag("the tag of a value", value)
}
