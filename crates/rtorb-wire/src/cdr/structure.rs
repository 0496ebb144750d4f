//! Structs: members in the order of their declaration, each with its own alignment.

/// Implements [`Encode`](crate::Encode) and [`Decode`](crate::Decode) for a struct whose members have them.
macro_rules! cdr_struct {
    ($name:ident { $($member:ident : $type:ty),+ $(,)? }) => {
        impl $crate::Encode for $name {
            fn encode<'a>(&'a self, w: &mut $crate::Writer<'a>) -> Result<(), $crate::EncodeError> {
                $($crate::Encode::encode(&self.$member, w)?;)+
                Ok(())
            }
        }

        impl $crate::Decode for $name {
            const OCTETS_MIN: usize = 0 $(+ <$type as $crate::Decode>::OCTETS_MIN)+;

            fn decode(r: &mut $crate::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                Ok(Self { $($member: $crate::Decode::decode(r)?),+ })
            }
        }
    };
}
pub(crate) use cdr_struct;
