//! Errors for text and values that cannot be sent: the character, the code set, and the remedy.

use core::fmt;
use core::num::NonZeroU32;
use rtorb_wire::EncodeError;
pub use rtorb_wire::TextCodeSet;
use rtorb_wire::exception::{ExceptionKind, OMG, TOO_DEEP, WRONG_TYPE, ZERO_IN_STRING};

/// A character that the code set of a connection does not have.
///
/// It has the size of a character, because an exception is a part of the result of each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsentCharacter(NonZeroU32);

impl UnsentCharacter {
    pub(super) const fn of(error: EncodeError) -> Option<Self> {
        let EncodeError::NotInCodeSet {
            character,
            code_set,
            argument,
        } = error
        else {
            return None;
        };
        let set = match code_set {
            TextCodeSet::Latin1 => 1,
            TextCodeSet::Utf8Char => 2,
            TextCodeSet::Utf16WChar => 3,
            TextCodeSet::Latin9 => 4,
        };
        let argument = match argument {
            Some(argument) => argument.get() as u32,
            None => 0,
        };
        match NonZeroU32::new(
            argument << ARGUMENT_SHIFT | set << SET_SHIFT | character & CHARACTER_MASK,
        ) {
            Some(both) => Some(Self(both)),
            None => None,
        }
    }

    /// The character.
    pub const fn character(self) -> Option<char> {
        char::from_u32(self.0.get() & CHARACTER_MASK)
    }

    /// Returns the code set that does not have the character.
    pub const fn code_set(self) -> TextCodeSet {
        match self.0.get() >> SET_SHIFT & SET_MASK {
            1 => TextCodeSet::Latin1,
            2 => TextCodeSet::Utf8Char,
            4 => TextCodeSet::Latin9,
            _ => TextCodeSet::Utf16WChar,
        }
    }

    /// Returns the position of the argument that has the character, from 1, of those that the client sends; 255 stands for all beyond.
    /// Calls that generated code makes know it.
    pub const fn argument(self) -> Option<u8> {
        match self.0.get() >> ARGUMENT_SHIFT {
            0 => None,
            argument => Some(argument as u8),
        }
    }

    #[cfg(feature = "std")]
    const fn advice(self) -> &'static str {
        match self.code_set() {
            TextCodeSet::Latin1 => {
                "use a reference that names UTF-8, or a URL with iiop:1.2@: GIOP 1.0 and servers without code sets have only ISO \
                 8859-1"
            }
            TextCodeSet::Latin9 => {
                "let both sides use UTF-8 as the native code set (`native_char_code_set`)"
            }
            TextCodeSet::Utf8Char => {
                "send a string or a wchar, or choose ISO-8859-1 or ISO-8859-15 as the native code set of the client and of the server \
                 (`native_char_code_set`, --native-char-code-set of the command)"
            }
            TextCodeSet::Utf16WChar => "send a wstring",
        }
    }
}

impl fmt::Display for UnsentCharacter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let character = self.0.get() & CHARACTER_MASK;
        if let Some(argument) = self.argument() {
            write!(f, "argument {argument} has ")?;
        }
        if let Some(shown) = char::from_u32(character).filter(|it| !it.is_control()) {
            write!(f, "{shown:?} ")?;
        }
        let which = if self.argument().is_some() {
            ", which"
        } else {
            ""
        };
        let refusal = self.code_set().refusal();
        write!(f, "U+{character:04X}{which} {refusal}")
    }
}

/// A code point has 21 bits, the number of a code set three, and the position of an argument eight.
const SET_SHIFT: u32 = 21;
const ARGUMENT_SHIFT: u32 = 24;
const CHARACTER_MASK: u32 = (1 << SET_SHIFT) - 1;
const SET_MASK: u32 = (1 << (ARGUMENT_SHIFT - SET_SHIFT)) - 1;

/// The minor codes for text and values.
pub const CODES: [(ExceptionKind, u32); 5] = [
    (ExceptionKind::DataConversion, OMG | 1),
    (ExceptionKind::BadParam, OMG | 23),
    (ExceptionKind::BadParam, TOO_DEEP),
    (ExceptionKind::BadParam, WRONG_TYPE),
    (ExceptionKind::BadParam, ZERO_IN_STRING),
];

/// The remedy for an exception about text or values.
#[cfg(feature = "std")]
pub(super) const fn advice(
    kind: ExceptionKind,
    minor: u32,
    unsent: Option<UnsentCharacter>,
) -> Option<&'static str> {
    const TEXT: u32 = OMG | 1;
    const WIDE: u32 = OMG | 23;
    Some(match (kind, minor) {
        (ExceptionKind::DataConversion, TEXT) => match unsent {
            Some(unsent) => unsent.advice(),
            None => {
                "a character is not in the code set of the connection, or text that came is not valid in it: let both sides use \
                 UTF-8, or the same native code set (`native_char_code_set`)"
            }
        },
        (ExceptionKind::BadParam, WIDE) => {
            "wide text needs a code set that the client names: use GIOP 1.2, and a reference that names code sets or a URL with \
             iiop:1.2@"
        }
        (ExceptionKind::BadParam, TOO_DEEP) => {
            "values are nested more than 64 deep: send them in parts, or as a list whose elements name each other by a key"
        }
        (ExceptionKind::BadParam, WRONG_TYPE) => "a value is not of the type that the IDL has here",
        (ExceptionKind::BadParam, ZERO_IN_STRING) => {
            "a string contains a zero character: send such text as a sequence of octets"
        }
        _ => return None,
    })
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::exception::{Cause, CompletionStatus, SystemException};
    use alloc::borrow::ToOwned as _;
    use alloc::boxed::Box;
    use alloc::format;
    use alloc::string::ToString as _;
    use core::num::NonZeroU8;

    #[test]
    fn an_unsent_character_is_told_with_its_code_set_and_a_remedy() {
        for (character, code_set, words) in [
            (0x20ac, TextCodeSet::Latin1, "U+20AC is not in ISO 8859-1"),
            (0xa4, TextCodeSet::Latin9, "U+00A4 is not in ISO 8859-15"),
            (0xe9, TextCodeSet::Utf8Char, "U+00E9 is no char in UTF-8"),
            (0x1_f600, TextCodeSet::Utf16WChar, "U+1F600 is no wchar"),
        ] {
            for argument in [0, 2, 255].map(NonZeroU8::new) {
                let exception = SystemException::from_encode(EncodeError::NotInCodeSet {
                    character,
                    code_set,
                    argument,
                });
                let text = exception.to_string();
                let words = match argument {
                    Some(_) => words.replacen(" is", ", which is", 1),
                    None => words.to_owned(),
                };
                assert!(text.contains(&words) && text.contains("; "), "{text}");
                let place = argument.map(|it| format!(": argument {it} has "));
                assert_eq!(
                    place.as_ref().map(|it| text.contains(it)),
                    argument.map(|_| true),
                    "{text}"
                );
                let unsent = exception.unsent_character().expect("it is known");
                assert_eq!(unsent.character(), char::from_u32(character));
                assert_eq!(unsent.code_set(), code_set);
                assert_eq!(unsent.argument(), argument.map(NonZeroU8::get));
            }
        }
    }

    #[test]
    fn an_exception_is_as_small_as_without_the_character() {
        struct Without {
            _kind: ExceptionKind,
            _minor: u32,
            _completed: CompletionStatus,
            _cause: Option<Cause>,
            _detail: Option<Box<u8>>,
        }
        assert_eq!(size_of::<SystemException>(), size_of::<Without>());
    }
}
