//! Types whose CDR form is the same octets every time, apart from padding: numbers, enums, and structs and arrays of them.
//!
//! Where a value starts modulo its alignment decides where each of its members stands. The loops below turn that
//! remainder into a constant for each of the (at most eight) cases, so that the compiler lays the members out once and
//! no member costs an alignment or a bounds check.

use super::{Reader, Writer};
use crate::{DecodeError, EncodeError};

/// A type with a fixed layout.
pub trait FixedLayout: Copy {
    /// Most octets a value takes, the padding before and inside it counted.
    const OCTETS_MAX: usize;
    /// Fewest octets a value takes.
    const OCTETS_MIN: usize;
    /// The largest alignment of its members: a power of two, at most 8.
    const ALIGNMENT: usize;

    /// Writes at `at` and answers where the value ends.
    ///
    /// # Panics
    /// If `out` is shorter than `at` and [`OCTETS_MAX`](Self::OCTETS_MAX): a mistake of the caller.
    fn put(&self, out: &mut [u8], at: usize, form: Form) -> usize;

    /// Reads at `at` and answers the value and where it ends.
    ///
    /// # Errors
    /// When `from` ends too early, or a member is an enum with a wrong value.
    fn get(from: &[u8], at: usize, form: Form) -> Result<(Self, usize), DecodeError>;
}

/// How the octets of a slice stand in their stream.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The stream position of the slice's first octet, modulo the alignment.
    pub phase: usize,
    /// True if the octets of numbers change places.
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
    const OCTETS_MAX: usize = run_octets_max::<T>(N);
    const OCTETS_MIN: usize = N * T::OCTETS_MIN;
    const ALIGNMENT: usize = T::ALIGNMENT;

    #[inline(always)]
    fn put(&self, out: &mut [u8], at: usize, form: Form) -> usize {
        self.iter().fold(at, |at, item| item.put(out, at, form))
    }

    #[inline(always)]
    fn get(from: &[u8], at: usize, form: Form) -> Result<(Self, usize), DecodeError> {
        let mut items = arrayvec::ArrayVec::<T, N>::new();
        let mut end = at;
        while !items.is_full() {
            let (item, next) = T::get(from, end, form)?;
            items.push(item);
            end = next;
        }
        let Ok(items) = items.into_inner() else {
            unreachable!("the loop ends when it is full")
        };
        Ok((items, end))
    }
}

impl Writer<'_> {
    /// Writes one value of fixed layout.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    #[inline]
    pub fn fixed<T: FixedLayout>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.fixed_slice(core::slice::from_ref(value))
    }

    /// Writes values of fixed layout, without a count.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    #[inline]
    pub fn fixed_slice<T: FixedLayout>(&mut self, values: &[T]) -> Result<(), EncodeError> {
        match self.reserve(run_octets_max::<T>(values.len())) {
            // With all the padding that could be they do not fit; with what there is they may.
            Err(_) if values.len() > 1 => {
                return values.iter().try_for_each(|value| self.fixed(value));
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
}

impl Reader<'_> {
    /// Reads one value of fixed layout.
    ///
    /// # Errors
    /// When the message ends too early, or an enum is out of range.
    #[inline]
    pub fn fixed<T: FixedLayout>(&mut self) -> Result<T, DecodeError> {
        self.buffer_up(T::OCTETS_MAX)?;
        let swap = self.order().is_foreign();
        let position = self.position();
        let octets = self.buffered();
        let (value, used) = T::get(
            octets,
            0,
            Form {
                phase: position & 7,
                swap,
            },
        )?;
        self.skip_buffered(used);
        Ok(value)
    }

    /// Reads `count` values of fixed layout behind what `into` holds.
    ///
    /// # Errors
    /// As [`fixed`](Self::fixed).
    #[inline]
    pub fn fixed_into<T: FixedLayout>(
        &mut self,
        into: &mut Vec<T>,
        count: usize,
    ) -> Result<(), DecodeError> {
        self.buffer_up(run_octets_max::<T>(count))?;
        into.reserve(count);
        let position = self.position();
        let octets = self.buffered();
        let used = if self.order().is_foreign() {
            get_all::<T, true>(into, count, octets, position)?
        } else {
            get_all::<T, false>(into, count, octets, position)?
        };
        self.skip_buffered(used);
        Ok(())
    }
}

/// Most octets that `count` values behind each other take.
#[inline]
const fn run_octets_max<T: FixedLayout>(count: usize) -> usize {
    // What is no larger than its alignment is padded before the first alone.
    let next = if T::OCTETS_MIN == T::ALIGNMENT {
        T::OCTETS_MIN
    } else {
        T::OCTETS_MAX
    };
    match count.checked_sub(1) {
        None => 0,
        Some(others) => others.saturating_mul(next).saturating_add(T::OCTETS_MAX),
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

/// Writes all values from `at` on and answers where they end; `position` is the stream's at `at`.
#[inline(always)]
fn put_all<T: FixedLayout, const SWAP: bool>(
    values: &[T],
    buffer: &mut [u8],
    at: usize,
    position: usize,
) -> usize {
    let shift = position.wrapping_sub(at);
    values.iter().fold(at, |at, value| {
        let window = &mut buffer[at..at + T::OCTETS_MAX];
        at + with_constant_phase!(at.wrapping_add(shift), put_one::<T, SWAP>(value, window))
    })
}

#[inline(always)]
fn put_one<T: FixedLayout, const PHASE: usize, const SWAP: bool>(
    value: &T,
    window: &mut [u8],
) -> usize {
    value.put(
        window,
        0,
        Form {
            phase: PHASE,
            swap: SWAP,
        },
    )
}

/// Reads `count` values into a vector that has room for them and answers how many octets they took.
#[inline(always)]
fn get_all<T: FixedLayout, const SWAP: bool>(
    into: &mut Vec<T>,
    count: usize,
    octets: &[u8],
    position: usize,
) -> Result<usize, DecodeError> {
    let mut at = 0;
    for _ in 0..count {
        // The last values may end before a whole window does; they are read with every bound checked.
        let (value, used) = match octets.get(at..at + T::OCTETS_MAX) {
            Some(window) => {
                with_constant_phase!(position.wrapping_add(at), get_one::<T, SWAP>(window))?
            }
            None => {
                let left = octets.get(at..).unwrap_or(&[]);
                T::get(
                    left,
                    0,
                    Form {
                        phase: position.wrapping_add(at) & 7,
                        swap: SWAP,
                    },
                )?
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
    T::get(
        window,
        0,
        Form {
            phase: PHASE,
            swap: SWAP,
        },
    )
}

/// Gives a `Copy` struct of numbers, enums and the like its CDR form, members in the order named.
#[macro_export]
macro_rules! fixed_layout {
    ($name:ident { $($member:ident : $type:ty),+ $(,)? }) => {
        impl $crate::FixedLayout for $name {
            const OCTETS_MAX: usize = 0 $(+ <$type as $crate::FixedLayout>::OCTETS_MAX)+;
            const OCTETS_MIN: usize = 0 $(+ <$type as $crate::FixedLayout>::OCTETS_MIN)+;
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
            const OCTETS_MIN: usize = <Self as $crate::FixedLayout>::OCTETS_MIN;

            #[inline]
            fn decode(r: &mut $crate::Reader<'_>) -> ::core::result::Result<Self, $crate::DecodeError> {
                r.fixed()
            }

            #[inline]
            fn decode_into(
                into: &mut ::std::vec::Vec<Self>,
                count: usize,
                r: &mut $crate::Reader<'_>,
            ) -> ::core::result::Result<(), $crate::DecodeError> {
                r.fixed_into(into, count)
            }
        }
    };
}

/// Gives a fieldless enum its CDR form: an unsigned long with the ordinal named.
#[macro_export]
macro_rules! cdr_enum {
    ($name:ident { $($variant:ident = $ordinal:literal),+ $(,)? }) => {
        impl $crate::FixedLayout for $name {
            const OCTETS_MAX: usize = <u32 as $crate::FixedLayout>::OCTETS_MAX;
            const OCTETS_MIN: usize = 4;
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
        }
        $crate::fixed_layout!(@cdr $name);
    };
}
