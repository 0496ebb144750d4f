//! `any`: a value that brings its type along.

mod layout;
mod transcode;
mod typed;
mod value;

pub use typed::Typed;
pub use value::Value;

use crate::cdr::CharCodeSet;
use crate::type_code::{Kind, TypeCode};
use crate::{ByteOrder, Decode, DecodeError, Encode, EncodeError, Reader, Writer};
use core::fmt;
use transcode::Refused;

/// A value of any type, with its TypeCode.
///
/// The value is kept as the octets it has in a stream of its own, in this machine's byte order: making, sending and
/// extracting one costs no more than the type inside. [`Any::value`] takes it apart without knowing its Rust type.
#[derive(Clone)]
pub struct Any {
    type_code: TypeCode,
    octets: Vec<u8>,
    char_code_set: CharCodeSet,
}

/// Why a value of that type is not in an any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The any holds a value of another type.
    #[error("the any holds a value of another type")]
    WrongType,
    /// The value is not one of the Rust type, such as a sequence over its bound.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl Any {
    /// Nothing: what [`Default`] gives.
    pub const NULL: Self = Self {
        type_code: TypeCode::NULL,
        octets: Vec::new(),
        char_code_set: CharCodeSet::Utf8,
    };

    /// An any that holds `value`.
    ///
    /// # Errors
    /// When the value cannot be sent; in debug builds also when it is not of the type that [`Typed`] says.
    pub fn from_value<T: Typed + Encode>(value: &T) -> Result<Self, EncodeError> {
        let type_code = T::type_code();
        Self::build(type_code.clone(), |w| {
            // The value of an exception begins with its repository id; the Rust type has only its members.
            if let (Kind::Except, Some(id)) = (type_code.kind(), type_code.repository_id()) {
                w.str(id)?;
            }
            value.encode(w)
        })
    }

    /// An any of that type that holds a value which is known only now.
    ///
    /// # Errors
    /// When the value is not of the type, or cannot be sent.
    pub fn from_parts(type_code: TypeCode, value: &Value) -> Result<Self, EncodeError> {
        Self::build(type_code.clone(), |w| value.encode(&type_code, w))
    }

    /// The value, if its type is equivalent to that of `T`.
    ///
    /// # Errors
    /// When it is of another type, or the octets are not a value of `T`.
    pub fn extract<T: Typed + Decode>(&self) -> Result<T, ExtractError> {
        self.extract_with(self.reader())
    }

    /// As [`extract`](Self::extract), from what [`reader`](Self::reader) gave and the caller has added to: the values
    /// of object references need an ORB.
    ///
    /// # Errors
    /// As [`extract`](Self::extract).
    pub fn extract_with<T: Typed + Decode>(&self, mut r: Reader<'_>) -> Result<T, ExtractError> {
        if !self.type_code.equivalent(&T::type_code()) {
            return Err(ExtractError::WrongType);
        }
        if self.type_code.unaliased().kind() == Kind::Except {
            r.string_octets()?;
        }
        Ok(T::decode(&mut r)?)
    }

    /// The value, taken apart by its type.
    ///
    /// # Errors
    /// When it is nested too deeply.
    pub fn value(&self) -> Result<Value, DecodeError> {
        Value::decode(&self.type_code, &mut self.reader())
    }

    /// Its type.
    pub fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// A reader at the value.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.octets, ByteOrder::NATIVE).with_char_code_set(self.char_code_set)
    }

    /// Reads an any in the place of this one, into the memory that its value has: no heap call where that is large enough and the
    /// type is one without parameters. Nothing ([`NULL`](Self::NULL)) is left after an error.
    ///
    /// # Errors
    /// As [`decode`](Decode::decode).
    pub fn decode_over(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        let memory = core::mem::take(self).octets;
        let (type_code, w) = read(r, memory)?;
        let char_code_set = w.char_code_set();
        // Nothing is lent to it: a value is copied.
        let (mut octets, count, _) = w.finish();
        octets.truncate(count);
        *self = Self {
            type_code,
            octets,
            char_code_set,
        };
        Ok(())
    }

    /// Writes the any without lending its octets.
    pub(crate) fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.type_code.write(w)?;
        if self.goes_as_it_is(w) {
            return w.octets(&self.octets);
        }
        self.write_value(w)
    }

    /// True if the value's octets at the writer's position are those that it has here.
    fn goes_as_it_is(&self, w: &Writer<'_>) -> bool {
        let summary = self.type_code.shape().summary();
        let aligned = w.position().is_multiple_of(usize::from(summary.alignment));
        aligned && !summary.text && !w.order().is_foreign()
    }

    fn write_value(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        transcode::copy(&self.type_code, &mut self.reader(), w).map_err(|refused| match refused {
            Refused::Encode(error) => error,
            // The octets were checked against the type when the any was made.
            Refused::Decode(_) => EncodeError::WrongType,
        })
    }

    fn build<'v>(
        type_code: TypeCode,
        content: impl Fn(&mut Writer<'v>) -> Result<(), EncodeError>,
    ) -> Result<Self, EncodeError> {
        let write = |char_code_set| {
            let mut w = writer(char_code_set);
            content(&mut w).map(|()| Self {
                type_code: type_code.clone(),
                octets: w.to_octets(),
                char_code_set,
            })
        };
        // UTF-8 has every text; but its single octets, which are all that a `char` has, are ASCII only.
        let any = match write(CharCodeSet::Utf8) {
            Err(EncodeError::NotInCodeSet { .. }) => write(CharCodeSet::Latin1)?,
            other => other?,
        };
        // A `Typed` that does not say what its `Encode` does is a mistake that tests find; calls need not look for it.
        if cfg!(debug_assertions) && !any.is_of_its_type() {
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
        if self.goes_as_it_is(w) {
            return w.lend_octets(&self.octets);
        }
        self.write_value(w)
    }
}

impl Decode for Any {
    const OCTETS_MIN: usize = 4;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (type_code, w) = read(r, Vec::new())?;
        Ok(Self {
            type_code,
            char_code_set: w.char_code_set(),
            octets: w.to_octets(),
        })
    }
}

impl PartialEq for Any {
    fn eq(&self, other: &Self) -> bool {
        self.type_code == other.type_code
            && match self.char_code_set == other.char_code_set {
                true => self.octets == other.octets,
                false => self.value().is_ok_and(|value| other.value() == Ok(value)),
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

/// Reads a type and a value of it, into that memory.
fn read<'w>(r: &mut Reader<'_>, memory: Vec<u8>) -> Result<(TypeCode, Writer<'w>), DecodeError> {
    r.nested(|r| {
        let type_code = TypeCode::decode(r)?;
        let mut w = writer_into(memory, r.char_code_set());
        transcode::copy(&type_code, r, &mut w).map_err(|refused| match refused {
            Refused::Decode(error) => error,
            // Only memory can be short: what was read can be written.
            Refused::Encode(_) => DecodeError::TooLarge {
                octets: w.len() as u64,
                limit: w.len(),
            },
        })?;
        Ok((type_code, w))
    })
}

fn writer<'a>(set: CharCodeSet) -> Writer<'a> {
    writer_into(Vec::new(), set)
}

/// A writer without a limit of its own: what goes into an any is in memory already.
fn writer_into<'a>(memory: Vec<u8>, set: CharCodeSet) -> Writer<'a> {
    Writer::new(memory, isize::MAX as usize).with_char_code_set(set)
}
