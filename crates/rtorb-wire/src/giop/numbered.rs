//! Enums whose variants are numbers on the wire.

/// Defines an enum, and a function that finds a variant by its number in GIOP 1.`minor`. A variant with `since` exists from that
/// minor version on.
macro_rules! numbered_enum {
    ($(#[$attribute:meta])* pub enum $name:ident: $number:ty, $from:ident {
        $($(#[$doc:meta])* $variant:ident = $value:literal $(since $since:literal)?,)+
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr($number)]
        pub enum $name {
            $($(#[$doc])* $variant = $value,)+
        }

        impl $name {
            /// The variant with that number, if GIOP 1.`minor` has it.
            #[inline]
            pub const fn $from(number: $number, minor: u8) -> Option<Self> {
                match number {
                    $($value $(if minor >= $since)? => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}
pub(super) use numbered_enum;
