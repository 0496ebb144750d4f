//! Types whose CDR form has a fixed layout, apart from padding: numbers, enums, and structs and arrays of them.
//!
//! The position of a value modulo its alignment (the phase) determines the offsets of its members. The loops below make the
//! phase a constant in each of the (at most eight) cases, so that the compiler computes the offsets once, and no member
//! costs an alignment or a bounds check.

use super::types::array_of;
use super::{Reader, Writer};
use crate::{DecodeError, EncodeError};
use alloc::vec::Vec;

/// A type with a fixed layout.
pub trait FixedLayout: Copy {
    /// The most bytes of a value, with the padding before and inside it.
    const BYTES_MAX: usize;
    /// The fewest bytes of a value.
    const BYTES_MIN: usize;
    /// The largest alignment of its members: a power of two, at most 8.
    const ALIGNMENT: usize;

    /// Writes at `at` and returns the end of the value.
    ///
    /// # Panics
    /// If `out` is shorter than `at` plus [`BYTES_MAX`](Self::BYTES_MAX).
    fn put(&self, out: &mut [u8], at: usize, form: Form) -> usize;

    /// Reads at `at` and returns the value and its end.
    ///
    /// # Errors
    /// When `from` ends too early, or an enum has a wrong value.
    fn get(from: &[u8], at: usize, form: Form) -> Result<(Self, usize), DecodeError>;

    /// Reads a value number by number: in the state of a chunked valuetype, a chunk may end between any two.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// The position of a slice in its stream, and its byte order.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The stream position of the slice's first byte, modulo the alignment.
    pub phase: usize,
    /// True if numbers must be swapped.
    pub swap: bool,
}

impl Form {
    /// The next index at or behind `at` whose stream position is a multiple of `size`, a power of two.
    #[inline(always)]
    pub const fn aligned(self, at: usize, size: usize) -> usize {
        ((at + self.phase + size - 1) & !(size - 1)) - self.phase
    }
}

impl<T: FixedLayout, const N: usize> FixedLayout for [T; N] {
    const BYTES_MAX: usize = run_bytes_max::<T>(N);
    const BYTES_MIN: usize = N * T::BYTES_MIN;
    const ALIGNMENT: usize = T::ALIGNMENT;

    #[inline(always)]
    fn put(&self, out: &mut [u8], at: usize, form: Form) -> usize {
        self.iter().fold(at, |at, item| item.put(out, at, form))
    }

    #[inline(always)]
    fn get(from: &[u8], at: usize, form: Form) -> Result<(Self, usize), DecodeError> {
        let mut end = at;
        let items = array_of(|| {
            let (item, next) = T::get(from, end, form)?;
            end = next;
            Ok(item)
        })?;
        Ok((items, end))
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        array_of(|| T::read(r))
    }
}

impl Writer<'_> {
    /// Writes one value of fixed layout.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline]
    pub fn fixed<T: FixedLayout>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.fixed_slice(core::slice::from_ref(value))
    }

    /// Writes values of fixed layout, without a count.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline]
    pub fn fixed_slice<T: FixedLayout>(&mut self, values: &[T]) -> Result<(), EncodeError> {
        match self.reserve(run_bytes_max::<T>(values.len())) {
            // They do not fit with the most padding that is possible, but they may fit one by one.
            Err(EncodeError::TooLarge { .. }) => {
                return match values {
                    [value] => self.fixed_at_limit(value),
                    _ => values.iter().try_for_each(|value| self.fixed(value)),
                };
            }
            other => other?,
        }
        let foreign = self.order().is_foreign();
        let position = self.position();
        let (buffer, at) = self.raw();
        let end = if foreign {
            put_all::<T, true>(values, buffer, at, position)
        } else {
            put_all::<T, false>(values, buffer, at, position)
        };
        self.advance_to(end);
        Ok(())
    }

    /// Writes one value that does not fit with the most padding that is possible.
    #[cold]
    #[inline(never)]
    fn fixed_at_limit<T: FixedLayout>(&mut self, value: &T) -> Result<(), EncodeError> {
        // It is refused at once if it has no room even without padding.
        self.reserve(T::BYTES_MIN)?;
        let mut apart = Vec::new();
        let bytes = T::BYTES_MAX;
        let reserved = apart.try_reserve_exact(bytes);
        reserved.map_err(|_| EncodeError::NoMemory { bytes })?;
        apart.resize(bytes, 0);
        let (phase, swap) = (self.position() & 7, self.order().is_foreign());
        let end = value.put(&mut apart, 0, Form { phase, swap });
        self.octets(&apart[..end])
    }
}

impl Reader<'_> {
    /// Reads one value of fixed layout.
    ///
    /// # Errors
    /// When the message ends too early, or an enum is out of range.
    #[inline]
    pub fn fixed<T: FixedLayout>(&mut self) -> Result<T, DecodeError> {
        self.buffer_up(T::BYTES_MAX)?;
        let (phase, swap) = (self.position() & 7, self.order().is_foreign());
        match T::get(self.buffered(), 0, Form { phase, swap }) {
            Ok((value, used)) => {
                self.skip_buffered(used);
                Ok(value)
            }
            Err(DecodeError::Truncated { .. }) if self.is_inside_chunk() => T::read(self),
            Err(error) => Err(error),
        }
    }

    /// Reads `count` values of fixed layout and appends them to `into`.
    ///
    /// # Errors
    /// As [`fixed`](Self::fixed).
    #[inline]
    pub fn fixed_into<T: FixedLayout>(
        &mut self,
        into: &mut Vec<T>,
        count: usize,
    ) -> Result<(), DecodeError> {
        // A chunk may end here, and no other need follow.
        if count == 0 {
            return Ok(());
        }
        self.buffer_up(run_bytes_max::<T>(count))?;
        into.reserve(count);
        let before = into.len();
        let position = self.position();
        let bytes = self.buffered();
        let used = if self.order().is_foreign() {
            get_all::<T, true>(into, count, bytes, position)
        } else {
            get_all::<T, false>(into, count, bytes, position)
        };
        match used {
            Ok(used) => {
                self.skip_buffered(used);
                Ok(())
            }
            Err(DecodeError::Truncated { .. }) if self.is_inside_chunk() => {
                into.truncate(before);
                (0..count).try_for_each(|_| {
                    into.push(T::read(self)?);
                    Ok(())
                })
            }
            Err(error) => Err(error),
        }
    }
}

/// The most bytes of `count` consecutive values.
#[inline]
const fn run_bytes_max<T: FixedLayout>(count: usize) -> usize {
    // Values as large as their alignment have padding before the first only.
    let next = if T::BYTES_MIN == T::ALIGNMENT {
        T::BYTES_MIN
    } else {
        T::BYTES_MAX
    };
    match count.checked_sub(1) {
        None => 0,
        Some(others) => others.saturating_mul(next).saturating_add(T::BYTES_MAX),
    }
}

/// Calls `$each` with the phase as a constant.
macro_rules! with_constant_phase {
    ($phase:expr, $each:ident :: <$T:ty, $SWAP:ident> ( $($argument:expr),* )) => {
        match $phase & (<$T>::ALIGNMENT - 1) {
            0 => $each::<$T, 0, $SWAP>($($argument),*),
            1 => $each::<$T, 1, $SWAP>($($argument),*),
            2 => $each::<$T, 2, $SWAP>($($argument),*),
            3 => $each::<$T, 3, $SWAP>($($argument),*),
            4 => $each::<$T, 4, $SWAP>($($argument),*),
            5 => $each::<$T, 5, $SWAP>($($argument),*),
            6 => $each::<$T, 6, $SWAP>($($argument),*),
            _ => $each::<$T, 7, $SWAP>($($argument),*),
        }
    };
}

/// Writes all values from `at` on and returns their end; `position` is the stream position of `at`.
#[inline(always)]
fn put_all<T: FixedLayout, const SWAP: bool>(
    values: &[T],
    buffer: &mut [u8],
    at: usize,
    position: usize,
) -> usize {
    let shift = position.wrapping_sub(at);
    values.iter().fold(at, |at, value| {
        let window = &mut buffer[at..at + T::BYTES_MAX];
        at + with_constant_phase!(at.wrapping_add(shift), put_one::<T, SWAP>(value, window))
    })
}

#[inline(always)]
fn put_one<T: FixedLayout, const PHASE: usize, const SWAP: bool>(
    value: &T,
    window: &mut [u8],
) -> usize {
    let (phase, swap) = (PHASE, SWAP);
    value.put(window, 0, Form { phase, swap })
}

/// Appends `count` values to a vector with room for them, and returns the number of bytes that they took.
#[inline(always)]
fn get_all<T: FixedLayout, const SWAP: bool>(
    into: &mut Vec<T>,
    count: usize,
    bytes: &[u8],
    position: usize,
) -> Result<usize, DecodeError> {
    let mut at = 0;
    for _ in 0..count {
        // The last values may be shorter than a whole window; they are read with all bounds checked.
        let (value, used) = match bytes.get(at..at + T::BYTES_MAX) {
            Some(window) => {
                with_constant_phase!(position.wrapping_add(at), get_one::<T, SWAP>(window))?
            }
            None => {
                let left = bytes.get(at..).unwrap_or(&[]);
                let (phase, swap) = (position.wrapping_add(at) & 7, SWAP);
                T::get(left, 0, Form { phase, swap })?
            }
        };
        into.push(value);
        at += used;
    }
    Ok(at)
}

#[inline(always)]
fn get_one<T: FixedLayout, const PHASE: usize, const SWAP: bool>(
    window: &[u8],
) -> Result<(T, usize), DecodeError> {
    let (phase, swap) = (PHASE, SWAP);
    T::get(window, 0, Form { phase, swap })
}

/// Implements the CDR form of a `Copy` struct of fixed layout, members in the order given.
#[macro_export]
macro_rules! fixed_layout {
    ($name:ident { $($member:ident : $type:ty),+ $(,)? }) => {
        impl $crate::FixedLayout for $name {
            const BYTES_MAX: usize = 0 $(+ <$type as $crate::FixedLayout>::BYTES_MAX)+;
            const BYTES_MIN: usize = 0 $(+ <$type as $crate::FixedLayout>::BYTES_MIN)+;
            const ALIGNMENT: usize = {
                let mut largest = 1;
                $(if <$type as $crate::FixedLayout>::ALIGNMENT > largest {
                    largest = <$type as $crate::FixedLayout>::ALIGNMENT;
                })+
                largest
            };

            #[inline(always)]
            fn put(&self, out: &mut [u8], at: usize, form: $crate::cdr::Form) -> usize {
                $(let at = $crate::FixedLayout::put(&self.$member, out, at, form);)+
                at
            }

            #[inline(always)]
            fn get(
                from: &[u8],
                at: usize,
                form: $crate::cdr::Form,
            ) -> ::core::result::Result<(Self, usize), $crate::DecodeError> {
                $(let ($member, at) = <$type as $crate::FixedLayout>::get(from, at, form)?;)+
                ::core::result::Result::Ok((Self { $($member),+ }, at))
            }

            fn read(r: &mut $crate::Reader<'_>) -> ::core::result::Result<Self, $crate::DecodeError> {
                ::core::result::Result::Ok(Self { $($member: <$type as $crate::FixedLayout>::read(r)?),+ })
            }
        }
        $crate::fixed_layout!(@cdr $name);
    };
    // A struct around one value.
    ($name:ident($type:ty)) => {
        impl $crate::FixedLayout for $name {
            const BYTES_MAX: usize = <$type as $crate::FixedLayout>::BYTES_MAX;
            const BYTES_MIN: usize = <$type as $crate::FixedLayout>::BYTES_MIN;
            const ALIGNMENT: usize = <$type as $crate::FixedLayout>::ALIGNMENT;

            #[inline(always)]
            fn put(&self, out: &mut [u8], at: usize, form: $crate::cdr::Form) -> usize {
                $crate::FixedLayout::put(&self.0, out, at, form)
            }

            #[inline(always)]
            fn get(
                from: &[u8],
                at: usize,
                form: $crate::cdr::Form,
            ) -> ::core::result::Result<(Self, usize), $crate::DecodeError> {
                let (value, at) = <$type as $crate::FixedLayout>::get(from, at, form)?;
                ::core::result::Result::Ok((Self(value), at))
            }

            fn read(r: &mut $crate::Reader<'_>) -> ::core::result::Result<Self, $crate::DecodeError> {
                <$type as $crate::FixedLayout>::read(r).map(Self)
            }
        }
        $crate::fixed_layout!(@cdr $name);
    };
    (@cdr $name:ident) => {
        impl $crate::Encode for $name {
            #[inline]
            fn encode<'a>(&'a self, w: &mut $crate::Writer<'a>) -> ::core::result::Result<(), $crate::EncodeError> {
                w.fixed(self)
            }

            #[inline]
            fn encode_slice<'a>(
                items: &'a [Self],
                w: &mut $crate::Writer<'a>,
            ) -> ::core::result::Result<(), $crate::EncodeError> {
                w.fixed_slice(items)
            }
        }

        impl $crate::Decode for $name {
            const BYTES_MIN: usize = <Self as $crate::FixedLayout>::BYTES_MIN;

            #[inline]
            fn decode(r: &mut $crate::Reader<'_>) -> ::core::result::Result<Self, $crate::DecodeError> {
                r.fixed()
            }

            #[inline]
            fn decode_into(
                into: &mut $crate::alloc::vec::Vec<Self>,
                count: usize,
                r: &mut $crate::Reader<'_>,
            ) -> ::core::result::Result<(), $crate::DecodeError> {
                r.fixed_into(into, count)
            }
        }
    };
}

/// Implements the CDR form of a fieldless enum.
//= GIOP 1.2 §15.3.2.6
//# An enum is an unsigned long, the ordinal of the enumerator.
#[macro_export]
macro_rules! cdr_enum {
    ($name:ident { $($variant:ident = $ordinal:literal),+ $(,)? }) => {
        impl $crate::FixedLayout for $name {
            const BYTES_MAX: usize = <u32 as $crate::FixedLayout>::BYTES_MAX;
            const BYTES_MIN: usize = 4;
            const ALIGNMENT: usize = 4;

            #[inline(always)]
            fn put(&self, out: &mut [u8], at: usize, form: $crate::cdr::Form) -> usize {
                let ordinal: u32 = match self { $(Self::$variant => $ordinal),+ };
                $crate::FixedLayout::put(&ordinal, out, at, form)
            }

            #[inline(always)]
            fn get(
                from: &[u8],
                at: usize,
                form: $crate::cdr::Form,
            ) -> ::core::result::Result<(Self, usize), $crate::DecodeError> {
                let (ordinal, at) = <u32 as $crate::FixedLayout>::get(from, at, form)?;
                match ordinal {
                    $($ordinal => ::core::result::Result::Ok((Self::$variant, at)),)+
                    value => ::core::result::Result::Err($crate::DecodeError::BadEnum { value }),
                }
            }

            fn read(r: &mut $crate::Reader<'_>) -> ::core::result::Result<Self, $crate::DecodeError> {
                let form = $crate::cdr::Form { phase: 0, swap: false };
                let ordinal = r.primitive::<u32>()?.to_ne_bytes();
                <Self as $crate::FixedLayout>::get(&ordinal, 0, form).map(|got| got.0)
            }
        }
        $crate::fixed_layout!(@cdr $name);
    };
}
