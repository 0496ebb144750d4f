//! Numbers: the bytes of the machine in either order.

use super::fixed_layout::Form;
use super::{Decode, Encode, FixedLayout, Reader, Writer};
use crate::{DecodeError, EncodeError};
use alloc::vec::Vec;

/// A number that CDR aligns to its own size.
pub trait Primitive: bytemuck::Pod + FixedLayout {
    /// The number with its bytes in the other order.
    #[must_use]
    fn swapped(self) -> Self;
}

macro_rules! primitive {
    ($($type:ty, $swap:expr;)*) => {$(
        impl Primitive for $type {
            #[inline(always)]
            fn swapped(self) -> Self {
                let swap: fn($type) -> $type = $swap;
                swap(self)
            }
        }

        impl FixedLayout for $type {
            const BYTES_MAX: usize = 2 * size_of::<$type>() - 1;
            const BYTES_MIN: usize = size_of::<$type>();
            const ALIGNMENT: usize = size_of::<$type>();

            #[inline(always)]
            fn put(&self, out: &mut [u8], at: usize, form: Form) -> usize {
                const SIZE: usize = size_of::<$type>();
                let start = form.aligned(at, SIZE);
                for pad in &mut out[at..start] {
                    *pad = 0;
                }
                let value = if form.swap { self.swapped() } else { *self };
                out[start..start + SIZE].copy_from_slice(bytemuck::bytes_of(&value));
                start + SIZE
            }

            #[inline(always)]
            fn get(from: &[u8], at: usize, form: Form) -> Result<(Self, usize), DecodeError> {
                const SIZE: usize = size_of::<$type>();
                let start = form.aligned(at, SIZE);
                let Some(bytes) = from.get(start..start + SIZE) else {
                    return Err(DecodeError::Truncated { needed: SIZE, left: from.len().saturating_sub(start) });
                };
                let value: $type = bytemuck::pod_read_unaligned(bytes);
                Ok((if form.swap { value.swapped() } else { value }, start + SIZE))
            }

            fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.primitive()
            }
        }

        impl Encode for $type {
            #[inline(always)]
            fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
                w.primitive(*self)
            }

            #[inline]
            fn encode_slice<'a>(items: &'a [Self], w: &mut Writer<'a>) -> Result<(), EncodeError> {
                w.primitives(items)
            }
        }

        impl Decode for $type {
            const BYTES_MIN: usize = size_of::<$type>();

            #[inline(always)]
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.primitive()
            }

            #[inline]
            fn decode_into(into: &mut Vec<Self>, count: usize, r: &mut Reader<'_>) -> Result<(), DecodeError> {
                r.primitives_into(into, count)
            }
        }
    )*};
}

primitive! {
    u8, |v| v;
    i8, |v| v;
    u16, u16::swap_bytes;
    i16, i16::swap_bytes;
    u32, u32::swap_bytes;
    i32, i32::swap_bytes;
    u64, u64::swap_bytes;
    i64, i64::swap_bytes;
    f32, |v| f32::from_bits(v.to_bits().swap_bytes());
    f64, |v| f64::from_bits(v.to_bits().swap_bytes());
}

impl FixedLayout for bool {
    const BYTES_MAX: usize = 1;
    const BYTES_MIN: usize = 1;
    const ALIGNMENT: usize = 1;

    #[inline(always)]
    fn put(&self, out: &mut [u8], at: usize, form: Form) -> usize {
        u8::from(*self).put(out, at, form)
    }

    //= GIOP 1.2 §15.3.1.5
    //# A boolean is a byte, 1 for true and 0 for false. (Other ORBs read every other value as true, and so does this one.)
    #[inline(always)]
    fn get(from: &[u8], at: usize, form: Form) -> Result<(Self, usize), DecodeError> {
        u8::get(from, at, form).map(|(byte, end)| (byte != 0, end))
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.primitive::<u8>().map(|byte| byte != 0)
    }
}

crate::fixed_layout!(@cdr bool);
