//! The tags around the state of a valuetype: which type it is, whether it stood before, and its chunks (CORBA 3, "Value
//! Types" of CDR).
//!
//! The state itself is members one behind the other, which [`Encode`](crate::Encode) and [`Decode`](crate::Decode) know.

use super::{Reader, Writer};
use crate::{DecodeError, EncodeError};

/// What stands where a value is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueHead<'m> {
    /// No value.
    Null,
    /// The value that begins at that position of the stream, once more.
    Again {
        /// Where its tag is.
        position: usize,
    },
    /// A value, whose state or first chunk follows.
    Value(ValueStart<'m>),
}

/// How a value begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueStart<'m> {
    /// Where its tag is in the stream: what an indirection refers to.
    pub position: usize,
    /// Where an implementation can be had, if that was said.
    pub codebase: Option<&'m [u8]>,
    /// Repository ids without their terminators: its type first, then the bases that it may be truncated to; none if it
    /// is the type that the operation says.
    pub repository_ids: Vec<&'m [u8]>,
    /// True if its state comes in chunks.
    pub chunked: bool,
}

/// What comes next in a value whose state is in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// That many octets of state.
    State(usize),
    /// A value inside this one: its head is still to be read.
    Nested,
    /// The end of every open value of at least that depth; the outermost has depth 1.
    End(u32),
}

impl<'m> Reader<'m> {
    /// Reads what stands before the state of a value.
    ///
    /// # Errors
    /// When it is no value tag, or an indirection that does not point back.
    pub fn value_head(&mut self) -> Result<ValueHead<'m>, DecodeError> {
        self.align(4)?;
        let position = self.position();
        let tag = self.primitive::<u32>()?;
        match tag {
            NULL => return Ok(ValueHead::Null),
            INDIRECTION => {
                let position = self.indirection_target()?;
                return Ok(ValueHead::Again { position });
            }
            TAG_MIN..=TAG_MAX => {}
            value => return Err(bad(value)),
        }
        let codebase = match tag & CODEBASE {
            0 => None,
            _ => Some(self.repeatable_text()?),
        };
        let repository_ids = match tag & TYPE_MASK {
            0 => Vec::new(),
            ONE_ID => vec![self.repeatable_text()?],
            ID_LIST => self.repeatable_texts()?,
            _ => return Err(bad(tag)),
        };
        Ok(ValueHead::Value(ValueStart {
            position,
            codebase,
            repository_ids,
            chunked: tag & CHUNKED != 0,
        }))
    }

    /// Reads what comes next in a value whose state is in chunks.
    ///
    /// # Errors
    /// When it is neither a chunk nor a value nor an end.
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

    /// Skips what is left of a chunked value of that depth: what a receiver does with members that it does not know.
    ///
    /// Answers the depth of the end tag, which may end values around this one too.
    ///
    /// # Errors
    /// When the chunks do not end as they should.
    pub fn skip_chunks(&mut self, depth: u32) -> Result<u32, DecodeError> {
        let mut open = depth;
        loop {
            match self.chunk()? {
                Chunk::State(octets) => drop(self.take(octets)?),
                Chunk::Nested => {
                    if let ValueHead::Value(value) = self.value_head()? {
                        // What is not chunked has no end that could be found.
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

    /// A text, or an indirection to one that stood before.
    fn repeatable_text(&mut self) -> Result<&'m [u8], DecodeError> {
        match self.repeated()? {
            None => self.string_octets(),
            Some(mut before) => before.string_octets(),
        }
    }

    /// A list of texts, or an indirection to one that stood before.
    fn repeatable_texts(&mut self) -> Result<Vec<&'m [u8]>, DecodeError> {
        match self.repeated()? {
            None => self.text_list(),
            Some(mut before) => before.text_list(),
        }
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
        for _ in 0..count {
            texts.push(self.repeatable_text()?);
        }
        Ok(texts)
    }

    /// A reader at what an indirection here refers to; `None` if there is none.
    fn repeated(&mut self) -> Result<Option<Self>, DecodeError> {
        self.align(4)?;
        if self.clone_here()?.primitive::<u32>()? != INDIRECTION {
            return Ok(None);
        }
        self.primitive::<u32>()?;
        let target = self.indirection_target()?;
        let mut before = self.clone_at(target).ok_or(bad(INDIRECTION))?;
        // An indirection to an indirection could go on for ever.
        match before.clone_here()?.primitive::<u32>()? {
            INDIRECTION => Err(bad(INDIRECTION)),
            _ => {
                before.enter()?;
                Ok(Some(before))
            }
        }
    }

    /// Reads an offset, and answers the position that it points back to.
    fn indirection_target(&mut self) -> Result<usize, DecodeError> {
        let at = self.position();
        let offset = self.primitive::<i32>()?;
        let back = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        // An offset of -4 is the indirection's own tag.
        match at.checked_sub(back) {
            Some(target) if offset < -4 && target.is_multiple_of(4) => Ok(target),
            _ => Err(bad(offset as u32)),
        }
    }
}

impl Writer<'_> {
    /// Writes no value.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    pub fn null_value(&mut self) -> Result<(), EncodeError> {
        self.primitive(NULL)
    }

    /// Writes that the value which began at `position` comes once more.
    ///
    /// # Errors
    /// When it is too far away, or the message would outgrow its limit.
    pub fn value_again(&mut self, position: usize) -> Result<(), EncodeError> {
        self.primitive(INDIRECTION)?;
        let back = self.position() - position;
        let back = i32::try_from(back).map_err(|_| EncodeError::CountTooLarge { count: back })?;
        self.primitive(-back)
    }

    /// Writes what stands before the state of a value, and answers where it begins.
    ///
    /// # Errors
    /// When an id cannot be sent, or the message would outgrow its limit.
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

    /// Writes a chunk: the octets of `state` and how many they are.
    ///
    /// # Errors
    /// What `state` answers, or when the message would outgrow its limit.
    pub fn chunk(
        &mut self,
        state: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.sized(state)
    }

    /// Writes the end of every open value of at least that depth.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    pub fn end_value(&mut self, depth: u32) -> Result<(), EncodeError> {
        self.primitive(depth.wrapping_neg())
    }
}

/// Most types that a value may be truncated to: each may be an indirection to a long text, which has to be walked over.
const IDS_MAX: usize = 64;

const NULL: u32 = 0;
const INDIRECTION: u32 = 0xffff_ffff;
const TAG_MIN: u32 = 0x7fff_ff00;
const TAG_MAX: u32 = 0x7fff_ffff;
/// No chunk is as large as the first value tag.
const CHUNK_END: i32 = TAG_MIN as i32;

/// Bits of a value tag.
const CODEBASE: u32 = 1;
const TYPE_MASK: u32 = 6;
const ONE_ID: u32 = 2;
const ID_LIST: u32 = 6;
const CHUNKED: u32 = 8;

const fn bad(value: u32) -> DecodeError {
    DecodeError::BadTag {
        what: "the tag of a value",
        value,
    }
}
