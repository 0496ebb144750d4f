//! `any`: a value with its type.

mod compare;
mod layout;
mod state;
mod transcode;
mod typed;
mod value;

use alloc::vec::Vec;
pub use state::{KnownTypes, NOTHING_KNOWN, State, StateType, VALUE_BASE, find as find_state_type};
pub use typed::{Typed, map_type_code};
pub use value::Value;

use crate::cdr::CharCodeSet;
use crate::type_code::{Kind, TypeCode};
use crate::{ByteOrder, Decode, DecodeError, Encode, EncodeError, Reader, Writer};
use core::fmt;
use transcode::CopyError;

/// A value of any type, with its TypeCode.
///
/// The value is stored as the bytes of a separate stream in this machine's byte order, so construction, sending and
/// extraction cost no more than those of the value. [`Any::value`] decodes it without its Rust type.
#[derive(Clone)]
pub struct Any {
    type_code: TypeCode,
    bytes: Vec<u8>,
    char_code_set: CharCodeSet,
}

/// The reason why a value cannot be extracted from an any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The any contains a value of another type.
    #[error("the any contains a value of another type")]
    WrongType,
    /// The bytes are not a value of the Rust type, such as a sequence over its bound.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl Any {
    /// The empty any, which is the default.
    pub const NULL: Self = Self {
        type_code: TypeCode::NULL,
        bytes: Vec::new(),
        char_code_set: CharCodeSet::Utf8,
    };

    /// An any that contains `value`.
    ///
    /// # Errors
    /// When the value cannot be sent, such as a custom valuetype, or any value but null where the type is an abstract valuetype. In
    /// debug builds also when the value is not of the type that [`Typed`] returns.
    pub fn from_value<T: Typed + Encode>(value: &T) -> Result<Self, EncodeError> {
        let type_code = T::type_code();
        Self::build(type_code.clone(), |w| {
            //= GIOP 1.2 §15.3.5.5
            //# An exception is its repository id and its members.
            if let (Kind::Except, Some(id)) = (type_code.kind(), type_code.repository_id()) {
                w.str(id)?;
            }
            value.encode(w)
        })
    }

    /// An any of type `type_code` that contains `value`.
    ///
    /// # Errors
    /// When the value is not of the type, or cannot be sent.
    pub fn from_parts(type_code: TypeCode, value: &Value) -> Result<Self, EncodeError> {
        Self::build(type_code.clone(), |w| value.encode(&type_code, w))
    }

    /// The value, if its type is equivalent to that of `T`.
    ///
    /// # Errors
    /// When it is of another type, or the bytes are not a value of `T`.
    pub fn extract<T: Typed + Decode>(&self) -> Result<T, ExtractError> {
        self.extract_with(self.reader())
    }

    /// As [`extract`](Self::extract), with a [`reader`](Self::reader) that the caller has configured. Object references need one
    /// with an ORB.
    ///
    /// # Errors
    /// As [`extract`](Self::extract).
    pub fn extract_with<T: Typed + Decode>(&self, mut r: Reader<'_>) -> Result<T, ExtractError> {
        if !self.type_code.equivalent(&T::type_code()) {
            return Err(ExtractError::WrongType);
        }
        if self.type_code.unaliased().kind() == Kind::Except {
            r.string_bytes()?;
        }
        Ok(T::decode(&mut r)?)
    }

    /// The value, decoded by its TypeCode.
    ///
    /// # Errors
    /// When it is nested too deeply.
    pub fn value(&self) -> Result<Value, DecodeError> {
        Value::decode(&self.type_code, &mut self.reader())
    }

    /// The value, decoded by its TypeCode, with derived valuetypes that `known` finds.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    pub fn value_with(&self, known: KnownTypes<'_>) -> Result<Value, DecodeError> {
        Value::decode_with(&self.type_code, known, &mut self.reader())
    }

    /// The type of the value.
    pub fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// A reader of the value.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.bytes, ByteOrder::NATIVE).with_char_code_set(self.char_code_set)
    }

    /// Reads an any into this one and reuses its memory. Makes no heap call if the memory is large enough and the type has no
    /// parameters. After an error this any is [`NULL`](Self::NULL).
    ///
    /// # Errors
    /// As [`decode`](Decode::decode).
    pub fn decode_over(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let memory = core::mem::take(self).bytes;
        let (type_code, w) = read(r, memory)?;
        let char_code_set = w.char_code_set();
        // Nothing is lent to the writer, because values are copied.
        let (mut bytes, count, _) = w.finish();
        bytes.truncate(count);
        *self = Self {
            type_code,
            bytes,
            char_code_set,
        };
        Ok(())
    }

    /// Writes the any without lending its bytes.
    pub(crate) fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.type_code.write(w)?;
        if self.can_copy(w) {
            return w.octets(&self.bytes);
        }
        self.write_value(w)
    }

    /// True if the value has the same bytes at the writer's position: a valuetype inside a chunked one is chunked.
    fn can_copy(&self, w: &Writer<'_>) -> bool {
        let summary = self.type_code.summary();
        let aligned = w.position().is_multiple_of(usize::from(summary.alignment));
        aligned && !summary.text && !w.order().is_foreign() && !w.is_in_chunks()
    }

    fn write_value(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        transcode::copy(&self.type_code, &mut self.reader(), w).map_err(|error| match error {
            CopyError::Encode(error) => error,
            // The bytes were checked against the type when the any was constructed.
            CopyError::Decode(_) => EncodeError::WrongType,
        })
    }

    fn build<'v>(
        type_code: TypeCode,
        content: impl Fn(&mut Writer<'v>) -> Result<(), EncodeError>,
    ) -> Result<Self, EncodeError> {
        let write = |char_code_set| {
            let mut w = writer(char_code_set);
            content(&mut w)?;
            let any = Self {
                type_code: type_code.clone(),
                bytes: w.to_bytes(),
                char_code_set,
            };
            Ok((any, w.has_values()))
        };
        // UTF-8 can encode every string. A `char` is one byte, which in UTF-8 must be ASCII.
        let mut written = write(CharCodeSet::Utf8);
        for one_byte in [CharCodeSet::Latin1, CharCodeSet::Latin9] {
            if matches!(written, Err(EncodeError::NotInCodeSet { .. })) {
                written = write(one_byte);
            }
        }
        let (any, has_values) = written?;
        // A wrong `Typed` is a mistake that tests find, so release builds need not check it. But a value may be of a type that the
        // TypeCode does not describe.
        if (cfg!(debug_assertions) || has_values) && !any.is_of_its_type() {
            return Err(EncodeError::WrongType);
        }
        Ok(any)
    }

    fn is_of_its_type(&self) -> bool {
        let mut r = self.reader();
        let mut copy = writer(self.char_code_set);
        transcode::copy(&self.type_code, &mut r, &mut copy).is_ok() && r.remaining() == 0
    }
}

impl Default for Any {
    fn default() -> Self {
        Self::NULL
    }
}

impl Encode for Any {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.type_code.write(w)?;
        if self.can_copy(w) {
            return w.lend_bytes(&self.bytes);
        }
        self.write_value(w)
    }
}

impl Decode for Any {
    const BYTES_MIN: usize = 4;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (type_code, w) = read(r, Vec::new())?;
        Ok(Self {
            type_code,
            char_code_set: w.char_code_set(),
            bytes: w.to_bytes(),
        })
    }
}

impl PartialEq for Any {
    fn eq(&self, other: &Self) -> bool {
        self.type_code == other.type_code
            && if self.char_code_set == other.char_code_set {
                self.bytes == other.bytes
            } else {
                self.value().is_ok_and(|value| other.value() == Ok(value))
            }
    }
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Any")
            .field("type_code", &self.type_code)
            .field("value", &self.value())
            .finish()
    }
}

/// Reads a type and a value of it into `memory`.
//= GIOP 1.2 §15.3.5.2
//# An any is a TypeCode and a value of its type, in the same stream.
fn read<'w>(r: &mut Reader<'_>, memory: Vec<u8>) -> Result<(TypeCode, Writer<'w>), DecodeError> {
    r.nested(|r| {
        let start = r.position();
        let mut w = writer_into(memory, r.char_code_set(), contents_max(r.remaining()));
        let type_code = TypeCode::decode(r)?;
        transcode::copy(&type_code, r, &mut w).map_err(|error| match error {
            CopyError::Decode(error) => error,
            // A value that was read can be written, unless memory is short or the limit is reached.
            CopyError::Encode(error) => {
                let limit = match error {
                    EncodeError::TooLarge { limit } => limit,
                    _ => w.len(),
                };
                // How much larger the contents would be is unknown.
                let bytes = limit as u64 + 1;
                DecodeError::TooLarge { bytes, limit }
            }
        })?;
        let (bytes, limit) = (w.len(), contents_max(r.position().wrapping_sub(start)));
        if bytes > limit {
            let bytes = bytes as u64;
            return Err(DecodeError::TooLarge { bytes, limit });
        }
        Ok((type_code, w))
    })
}

fn writer<'a>(set: CharCodeSet) -> Writer<'a> {
    // No limit, because the value is in memory already.
    writer_into(Vec::new(), set, isize::MAX as usize)
}

fn writer_into<'a>(memory: Vec<u8>, set: CharCodeSet, bytes_max: usize) -> Writer<'a> {
    Writer::new(memory, bytes_max).with_char_code_set(set)
}

/// The most bytes of the contents of an any that was read from that many bytes.
///
/// Contents can be larger than what was received: the TypeCodes in them have no indirections, each valuetype has its id, and a value that
/// another any of the message has is copied.
const fn contents_max(received: usize) -> usize {
    received.saturating_mul(64).saturating_add(4096)
}

/// Checks a count against an IDL bound; 0 is no bound.
fn check_bound(count: usize, bound: u32) -> Result<(), DecodeError> {
    let bound = bound as usize;
    if bound != 0 && count > bound {
        return Err(DecodeError::OverBound { count, bound });
    }
    Ok(())
}

const fn unsupported(kind: Kind) -> DecodeError {
    DecodeError::Unsupported { kind: kind as u32 }
}
