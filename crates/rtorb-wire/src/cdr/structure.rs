//! Structs: members in the order of their declaration, each with its own alignment.

/// Defines structs, and implements [`Encode`](crate::Encode) and [`Decode`](crate::Decode) for them by their members.
macro_rules! cdr_struct {
    ($($(#[$attribute:meta])* pub struct $name:ident {
        $($(#[$about:meta])* pub $member:ident : $type:ty,)+
    })+) => {$(
        $(#[$attribute])*
        pub struct $name {
            $($(#[$about])* pub $member: $type,)+
        }

        impl $crate::Encode for $name {
            fn encode<'a>(&'a self, w: &mut $crate::Writer<'a>) -> Result<(), $crate::EncodeError> {
                $($crate::Encode::encode(&self.$member, w)?;)+
                Ok(())
            }
        }

        impl $crate::Decode for $name {
            const BYTES_MIN: usize = 0 $(+ <$type as $crate::Decode>::BYTES_MIN)+;

            fn decode(r: &mut $crate::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                Ok(Self { $($member: $crate::Decode::decode(r)?),+ })
            }
        }
    )+};
}
pub(crate) use cdr_struct;
