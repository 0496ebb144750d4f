//! The service context of a request that a distributable thread makes: which thread it is, and how its segment is scheduled.

use crate::cdr::{ByteOrder, CharCodeSet};
use crate::{DecodeError, EncodeError, Reader, Writer};
use alloc::borrow::Cow;
use alloc::vec::Vec;

/// The thread of a request: a [`ThreadContext`]. The standard has no number for it; the number begins with `rtb`, as all of ours do.
pub const DISTRIBUTABLE_THREAD: u32 = 0x7274_6210;

/// The longest name of a segment, in bytes.
pub const SEGMENT_NAME_BYTES_MAX: usize = 255;

/// The largest data of a [`DISTRIBUTABLE_THREAD`] context, in bytes.
pub const THREAD_CONTEXT_BYTES_MAX: usize = 512;

/// The distributable thread that makes a request.
//= RT-CORBA 1.2 §Distributable Threads
//# A request of a distributable thread carries its identity and its scheduling parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadContext<'m> {
    /// The identity of the thread.
    pub thread_id: [u8; 16],
    /// The name of the innermost segment; may be empty.
    pub segment: Cow<'m, str>,
    /// How the segment is scheduled.
    pub parameter: SegmentParameter,
    /// How a thread that this one makes is scheduled.
    pub implicit: SegmentParameter,
}

/// How a segment of a distributable thread is scheduled, as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentParameter {
    /// As its thread is.
    None,
    /// By a CORBA priority.
    Priority(i16),
    /// By a deadline.
    Deadline {
        /// The time that is left when the request is sent; 0 if the deadline has passed.
        left_ns: u64,
        /// The importance beside other deadlines; the larger, the more important.
        importance: i32,
    },
}

impl<'m> ThreadContext<'m> {
    /// Writes the data of the context into `buffer`, which it empties first.
    ///
    /// # Errors
    /// When the name of the segment is too long or contains a zero.
    pub fn write(&self, buffer: &mut Vec<u8>, order: ByteOrder) -> Result<(), EncodeError> {
        if self.segment.len() > SEGMENT_NAME_BYTES_MAX {
            return Err(EncodeError::TooLarge {
                limit: SEGMENT_NAME_BYTES_MAX,
            });
        }
        buffer.clear();
        let mut w = Writer::new(core::mem::take(buffer), THREAD_CONTEXT_BYTES_MAX)
            .with_order(order)
            .with_char_code_set(CharCodeSet::Utf8);
        let written = self.write_fields(&mut w, order);
        let (data, bytes) = w.finish_whole();
        *buffer = data;
        buffer.truncate(bytes);
        written
    }

    fn write_fields(&self, w: &mut Writer<'_>, order: ByteOrder) -> Result<(), EncodeError> {
        w.primitive(order.flag())?;
        w.block::<16>()?.copy_from_slice(&self.thread_id);
        w.str(&self.segment)?;
        self.parameter.write(w)?;
        self.implicit.write(w)
    }

    /// Reads the data of the context.
    ///
    /// # Errors
    /// When the data is malformed, or longer than [`THREAD_CONTEXT_BYTES_MAX`].
    pub fn read(data: &'m [u8]) -> Result<Self, DecodeError> {
        if data.len() > THREAD_CONTEXT_BYTES_MAX {
            return Err(bad("the size of a thread's context", data.len()));
        }
        let mut r = Reader::encapsulated(data)?.with_char_code_set(CharCodeSet::Utf8);
        let mut thread_id = [0; 16];
        thread_id.copy_from_slice(r.take(16)?);
        let segment = r.str()?;
        if segment.len() > SEGMENT_NAME_BYTES_MAX {
            return Err(bad("the length of a segment's name", segment.len()));
        }
        Ok(Self {
            thread_id,
            segment,
            parameter: SegmentParameter::read(&mut r)?,
            implicit: SegmentParameter::read(&mut r)?,
        })
    }
}

impl SegmentParameter {
    fn write(self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::None => w.primitive(NONE),
            Self::Priority(priority) => {
                w.primitive(PRIORITY)?;
                w.primitive(priority)
            }
            Self::Deadline {
                left_ns,
                importance,
            } => {
                w.primitive(DEADLINE)?;
                w.primitive(left_ns)?;
                w.primitive(importance)
            }
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.primitive::<u32>()? {
            NONE => Self::None,
            PRIORITY => Self::Priority(r.primitive()?),
            DEADLINE => Self::Deadline {
                left_ns: r.primitive()?,
                importance: r.primitive()?,
            },
            other => return Err(bad("the kind of a scheduling parameter", other as usize)),
        })
    }
}

const NONE: u32 = 0;
const PRIORITY: u32 = 1;
const DEADLINE: u32 = 2;

#[cold]
fn bad(what: &'static str, value: usize) -> DecodeError {
    DecodeError::BadTag {
        what,
        value: value as u32,
    }
}
