//! Types of values in Tango: their numbers, their form in an `any`, and their form in the union of attributes.

use rtorb::SystemException;
use rtorb::any::{Any, Typed};
use rtorb::cdr::{Encode, EncodeError, Writer};
use rtorb::type_code::TypeCode;

use crate::failure::of_orb;
use crate::tango::{
    AttrDataFormat, AttrValUnion, DevFailed, DevState, DevVarDoubleStringArray,
    DevVarLongStringArray,
};

/// A type of an argument or a result of a command.
pub trait Value: Sized + 'static {
    /// The number of the type (CmdArgType).
    const TYPE: i32;
    /// The name of the type in Tango.
    const NAME: &'static str;

    /// The value as an `any` of that type.
    ///
    /// # Errors
    /// When it cannot be sent, such as a string that contains a zero.
    fn to_any(&self) -> Result<Any, DevFailed>;

    /// The value of an `any`, if that is of the type.
    fn from_any(any: &Any) -> Option<Self>;
}

/// A type of an attribute: a scalar, or a vector for a spectrum.
pub trait AttributeType: Value {
    /// The number of the element's type.
    const ELEMENT: i32;
    /// Scalar or spectrum.
    const FORMAT: AttrDataFormat;

    /// The value as the member of the union for its type.
    fn into_union(self) -> AttrValUnion;

    /// The value of the union, if that has one of the type.
    fn from_union(value: &AttrValUnion) -> Option<Self>;
}

/// Implements both traits for elements and for vectors of them, and what needs to know all members of the union.
macro_rules! elements {
    ($($element:ty: $number:literal $name:literal, vector $vector_number:literal $vector_name:literal, $member:ident $kind:ident;)*) => {
        $(
            impl Value for $element {
                const TYPE: i32 = $number;
                const NAME: &'static str = $name;

                fn to_any(&self) -> Result<Any, DevFailed> {
                    any_of(self)
                }

                fn from_any(any: &Any) -> Option<Self> {
                    any.extract().ok()
                }
            }

            impl Value for Vec<$element> {
                const TYPE: i32 = $vector_number;
                const NAME: &'static str = $vector_name;

                fn to_any(&self) -> Result<Any, DevFailed> {
                    any_of(&Typedef(self))
                }

                fn from_any(any: &Any) -> Option<Self> {
                    any.extract().ok()
                }
            }

            impl AttributeType for $element {
                const ELEMENT: i32 = $number;
                const FORMAT: AttrDataFormat = AttrDataFormat::Scalar;

                fn into_union(self) -> AttrValUnion {
                    AttrValUnion::$member(vec![self])
                }

                fn from_union(value: &AttrValUnion) -> Option<Self> {
                    match value {
                        AttrValUnion::$member(values) if values.len() == 1 => values.first().cloned(),
                        _ => None,
                    }
                }
            }

            impl AttributeType for Vec<$element> {
                const ELEMENT: i32 = $number;
                const FORMAT: AttrDataFormat = AttrDataFormat::Spectrum;

                fn into_union(self) -> AttrValUnion {
                    AttrValUnion::$member(self)
                }

                fn from_union(value: &AttrValUnion) -> Option<Self> {
                    match value {
                        AttrValUnion::$member(values) => Some(values.clone()),
                        _ => None,
                    }
                }
            }
        )*

        impl AttrValUnion {
            /// The number of elements.
            pub(crate) fn len(&self) -> usize {
                match self {
                    $(Self::$member(values) => values.len(),)*
                    Self::DevStateAtt(_) => 1,
                    Self::EncodedAttValue(values) => values.len(),
                    Self::UnionNoData(_) => 0,
                }
            }

            /// The elements as numbers, as far as limits are compared; none of other types.
            pub(crate) fn numbers(&self) -> Vec<f64> {
                match self {
                    $(Self::$member(values) => numbers!($kind values),)*
                    _ => Vec::new(),
                }
            }

            /// Appends the elements of another value of the same type.
            pub(crate) fn append(&mut self, other: &Self) {
                match (self, other) {
                    $((Self::$member(values), Self::$member(others)) => values.extend_from_slice(others),)*
                    _ => {}
                }
            }

            /// The value as the `any` that clients of older interfaces expect.
            pub(crate) fn to_any(&self) -> Result<Any, DevFailed> {
                match self {
                    $(Self::$member(values) => values.to_any(),)*
                    Self::DevStateAtt(state) => state.to_any(),
                    Self::EncodedAttValue(values) => any_of(values),
                    Self::UnionNoData(_) => Ok(Any::NULL),
                }
            }

            /// The value of an `any` of an older interface; none if it is of no type of attributes.
            pub(crate) fn from_any(any: &Any) -> Option<Self> {
                $(if let Some(values) = Vec::<$element>::from_any(any) {
                    return Some(Self::$member(values));
                })*
                None
            }
        }
    };
}

/// The elements of a kind of union member as numbers.
macro_rules! numbers {
    (number $values:ident) => {
        $values.iter().map(|value| *value as f64).collect()
    };
    (other $values:ident) => {{
        let _ = $values;
        Vec::new()
    }};
}

elements! {
    bool: 1 "DevBoolean", vector 21 "DevVarBooleanArray", BoolAttValue other;
    i16: 2 "DevShort", vector 10 "DevVarShortArray", ShortAttValue number;
    i32: 3 "DevLong", vector 11 "DevVarLongArray", LongAttValue number;
    f32: 4 "DevFloat", vector 12 "DevVarFloatArray", FloatAttValue number;
    f64: 5 "DevDouble", vector 13 "DevVarDoubleArray", DoubleAttValue number;
    u16: 6 "DevUShort", vector 14 "DevVarUShortArray", UshortAttValue number;
    u32: 7 "DevULong", vector 15 "DevVarULongArray", UlongAttValue number;
    String: 8 "DevString", vector 16 "DevVarStringArray", StringAttValue other;
    DevState: 19 "DevState", vector 31 "DevVarStateArray", StateAttValue other;
    u8: 22 "DevUChar", vector 9 "DevVarCharArray", UcharAttValue number;
    i64: 23 "DevLong64", vector 25 "DevVarLong64Array", Long64AttValue number;
    u64: 24 "DevULong64", vector 26 "DevVarULong64Array", Ulong64AttValue number;
}

impl AttrValUnion {
    /// How many bytes the elements take in a message, at most.
    pub(crate) fn bytes_max(&self) -> usize {
        const ELEMENT: usize = 8;
        let texts = match self {
            Self::StringAttValue(texts) => texts.iter().map(String::len).sum(),
            _ => 0,
        };
        self.len() * ELEMENT + texts
    }
}

/// No argument, or no result.
impl Value for () {
    const TYPE: i32 = 0;
    const NAME: &'static str = "DevVoid";

    fn to_any(&self) -> Result<Any, DevFailed> {
        Ok(Any::NULL)
    }

    /// Tango ignores what a client sends to a command without an argument.
    fn from_any(_: &Any) -> Option<Self> {
        Some(())
    }
}

macro_rules! structs {
    ($($type:ty: $number:literal $name:literal;)*) => {$(
        impl Value for $type {
            const TYPE: i32 = $number;
            const NAME: &'static str = $name;

            fn to_any(&self) -> Result<Any, DevFailed> {
                any_of(self)
            }

            fn from_any(any: &Any) -> Option<Self> {
                any.extract().ok()
            }
        }
    )*};
}

structs! {
    DevVarLongStringArray: 17 "DevVarLongStringArray";
    DevVarDoubleStringArray: 18 "DevVarDoubleStringArray";
}

/// A sequence under the name of its typedef: clients of Tango tell types apart by the typedef.
struct Typedef<'v, T>(&'v T);

impl<T: Value + Typed> Typed for Typedef<'_, T> {
    fn type_code() -> TypeCode {
        let id = format!("IDL:Tango/{}:1.0", T::NAME);
        TypeCode::alias(&id, T::NAME, T::type_code())
    }
}

impl<T: Encode> Encode for Typedef<'_, T> {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.0.encode(w)
    }
}

fn any_of<T: Typed + Encode>(value: &T) -> Result<Any, DevFailed> {
    Any::from_value(value)
        .map_err(|error| of_orb(&SystemException::from(error), "rtorb_tango::Value::to_any"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_has_the_name_of_its_typedef_and_is_read_with_and_without_it() {
        let any = vec![1.5, -2.0].to_any().expect("numbers can be sent");
        assert_eq!(any.type_code().name(), Some("DevVarDoubleArray"));
        assert_eq!(
            any.type_code().repository_id(),
            Some("IDL:Tango/DevVarDoubleArray:1.0")
        );
        assert_eq!(Vec::<f64>::from_any(&any), Some(vec![1.5, -2.0]));
        let unnamed = Any::from_value(&vec![1.5]).expect("numbers can be sent");
        assert_eq!(Vec::<f64>::from_any(&unnamed), Some(vec![1.5]));
        assert_eq!(Vec::<f32>::from_any(&any), None);
    }

    #[test]
    fn a_union_and_an_any_have_the_same_elements() {
        for value in [
            vec![true, false].into_union(),
            vec![-1i16].into_union(),
            vec![7i32].into_union(),
            vec![1u8, 2].into_union(),
            vec![u64::MAX].into_union(),
            vec!["gr\u{fc}n".to_owned()].into_union(),
            vec![DevState::Moving].into_union(),
        ] {
            let any = value.to_any().expect("it can be sent");
            assert_eq!(AttrValUnion::from_any(&any), Some(value));
        }
        let text = Any::from_value(&"no sequence".to_owned()).expect("it can be sent");
        assert_eq!(AttrValUnion::from_any(&text), None);
    }

    #[test]
    fn a_scalar_is_a_sequence_of_one_and_nothing_else() {
        assert_eq!(f64::from_union(&2.5.into_union()), Some(2.5));
        assert_eq!(f64::from_union(&vec![2.5, 3.5].into_union()), None);
        assert_eq!(f64::from_union(&AttrValUnion::DoubleAttValue(vec![])), None);
        assert_eq!(f64::from_union(&2.5f32.into_union()), None);
    }
}
