//! Bitmasks and bitsets of IDL 4, which CDR does not have: they have the form of an unsigned integer.

use core::fmt;

/// A value has more bits than its field of a bitset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} does not fit into a field of {width} bits")]
pub struct OverWidth {
    /// The value given.
    pub value: i128,
    /// The bits of the field.
    pub width: u32,
}

/// A type of the fields of bitsets: `bool` or an integer, signed ones in two's complement.
pub trait BitField: Copy + Into<i128> {
    /// The value in the lowest `width` bits of `bits`. Higher bits are ignored.
    fn of_bits(bits: u64, width: u32) -> Self;
}

impl BitField for bool {
    fn of_bits(bits: u64, _: u32) -> Self {
        bits & 1 != 0
    }
}

macro_rules! bit_field {
    ($($unsigned:ident $signed:ident)*) => {$(
        impl BitField for $unsigned {
            fn of_bits(bits: u64, width: u32) -> Self {
                (bits & lowest(width)) as Self
            }
        }

        impl BitField for $signed {
            fn of_bits(bits: u64, width: u32) -> Self {
                let unused = u64::BITS - width;
                ((bits << unused).cast_signed() >> unused) as Self
            }
        }
    )*};
}
bit_field!(u8 i8 u16 i16 u32 i32 u64 i64);

/// The value of the field of `width` bits from bit `offset` on.
pub fn bit_field<T: BitField>(bits: u64, offset: u32, width: u32) -> T {
    T::of_bits(bits >> offset, width)
}

/// Returns `bits` with `value` in the field of `width` bits from bit `offset` on.
///
/// # Errors
/// [`OverWidth`], if the value does not fit.
pub fn with_bit_field<T: BitField>(
    bits: u64,
    offset: u32,
    width: u32,
    value: T,
) -> Result<u64, OverWidth> {
    let value: i128 = value.into();
    let own = value as u64 & lowest(width);
    if T::of_bits(own, width).into() != value {
        return Err(OverWidth { value, width });
    }
    Ok(bits & !(lowest(width) << offset) | own << offset)
}

/// A number whose `width` lowest bits are set; 1 to 64 of them.
const fn lowest(width: u32) -> u64 {
    u64::MAX >> (u64::BITS - width)
}

/// Writes the names of the flags that are set, and the other bits as a number.
///
/// # Errors
/// Those of the formatter.
pub fn fmt_flags(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    bits: u64,
    flags: &[(&str, u32)],
) -> fmt::Result {
    write!(f, "{name}(")?;
    let mut unknown = bits;
    let mut separator = "";
    for (flag, position) in flags {
        if bits >> position & 1 != 0 {
            write!(f, "{separator}{flag}")?;
            separator = " | ";
            unknown &= !(1 << position);
        }
    }
    if unknown != 0 || bits == 0 {
        write!(f, "{separator}{unknown:#x}")?;
    }
    write!(f, ")")
}

/// Implements the flags, the operators and the CDR form of a bitmask: a struct around an unsigned integer.
#[macro_export]
macro_rules! bitmask {
    ($name:ident($holder:ty) { $($(#[$doc:meta])* $flag:ident = $position:literal),+ $(,)? }) => {
        impl $name {
            $($(#[$doc])* pub const $flag: Self = Self(1 << $position);)+

            /// True if all flags of `flags` are set.
            pub const fn contains(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let flags = [$((stringify!($flag), $position)),+];
                $crate::cdr::fmt_flags(f, stringify!($name), u64::from(self.0), &flags)
            }
        }

        impl ::core::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl ::core::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl ::core::ops::BitAnd for $name {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl ::core::ops::BitAndAssign for $name {
            fn bitand_assign(&mut self, other: Self) {
                self.0 &= other.0;
            }
        }

        impl ::core::ops::Not for $name {
            type Output = Self;
            fn not(self) -> Self {
                Self(!self.0)
            }
        }

        $crate::fixed_layout!($name($holder));
    };
}

/// Implements the fields and the CDR form of a bitset: a struct around an unsigned integer.
///
/// A field is `whole` if every value of its type fits, or else `part`.
#[macro_export]
macro_rules! bitset {
    ($name:ident($holder:ty) { $(
        $form:ident $(#[$doc:meta])* $get:ident $set:ident: $type:ty = $offset:literal, $width:literal;
    )* }) => {
        impl $name {
            $(
                $(#[$doc])*
                pub fn $get(self) -> $type {
                    $crate::cdr::bit_field(u64::from(self.0), $offset, $width)
                }

                $crate::bitset!(@$form ($holder) ($(#[$doc])*) $set: $type = $offset, $width);
            )*
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($get), &self.$get()))*
                    .finish()
            }
        }

        $crate::fixed_layout!($name($holder));
    };
    (@whole ($holder:ty) ($($doc:tt)*) $set:ident: $type:ty = $offset:literal, $width:literal) => {
        $($doc)*
        pub fn $set(&mut self, value: $type) {
            let bits = u64::from(self.0);
            if let Ok(bits) = $crate::cdr::with_bit_field(bits, $offset, $width, value) {
                self.0 = bits as $holder;
            }
        }
    };
    (@part ($holder:ty) ($($doc:tt)*) $set:ident: $type:ty = $offset:literal, $width:literal) => {
        $($doc)*
        ///
        /// # Errors
        /// If the value does not fit into the bits of the field.
        pub fn $set(
            &mut self,
            value: $type,
        ) -> ::core::result::Result<(), $crate::cdr::OverWidth> {
            let bits = u64::from(self.0);
            self.0 = $crate::cdr::with_bit_field(bits, $offset, $width, value)? as $holder;
            ::core::result::Result::Ok(())
        }
    };
}
