//! Values as JSON, and JSON as values: `docs/how-to/call.md` has the form of each type.

mod bits;
mod error;
mod example;
mod number;
mod read;
mod scalar;
mod write;

pub use error::JsonError;
pub use example::example;
pub use read::from_json;
pub(crate) use write::hex;
pub use write::{WriteError, to_json};

use rtorb::type_code::{Kind, Scope, Shape, TypeCode};

use serde::de::{DeserializeOwned, Error as _};

use crate::types::Types;

/// Parses JSON that is nested as deep as a value may be: 64 sequences, valuetypes or anys, and the structs between them.
///
/// # Errors
/// When the text is no JSON of `T`, or is nested more than 512 deep.
pub fn parse<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    if depth(text) > DEPTH_MAX {
        let message = format!("it is nested more than {DEPTH_MAX} deep");
        return Err(serde_json::Error::custom(message));
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    parser.disable_recursion_limit();
    let value = T::deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

/// The most brackets that are open at a time, outside of strings.
fn depth(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                open += 1;
                most = most.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b'"' => {
                while let Some(inside) = bytes.next().filter(|it| *it != b'"') {
                    if inside == b'\\' {
                        bytes.next();
                    }
                }
            }
            _ => {}
        }
    }
    most
}

/// The deepest JSON that is parsed.
const DEPTH_MAX: usize = 512;

/// A function that finds the valuetypes of `types`, for decoding and encoding.
pub fn known(types: &Types) -> impl Fn(&str) -> Option<TypeCode> + '_ {
    |id| types.by_id(id).cloned()
}

/// The key of the type of a valuetype: `type`, or `_type` if a member is called `type`. No IDL name begins with an underscore.
fn type_key(scope: &Scope<'_>) -> &'static str {
    let mut key = "type";
    let found: Result<(), ()> = scope.each_state_member(&mut |member, _| {
        if &*member.name == "type" {
            key = "_type";
        }
        Ok(())
    });
    debug_assert!(found.is_ok());
    key
}

/// The key of a member of an exception: its name, or `_exception` for a member called `exception`.
fn exception_key(name: &str) -> &str {
    if name == EXCEPTION {
        "_exception"
    } else {
        name
    }
}

/// True if the JSON of this type may be `null`. Then a boxed value of the type has another form than the value.
pub(crate) fn may_be_null(type_code: &TypeCode) -> bool {
    // The kind of a recursive type is null, and it may be a valuetype.
    matches!(
        type_code.unaliased().kind(),
        Kind::Any
            | Kind::ObjectReference
            | Kind::AbstractInterface
            | Kind::Value
            | Kind::ValueBox
            | Kind::Event
            | Kind::Null
            | Kind::Void
    )
}

/// The type of the member `name` of the type of `scope` without the sequence around it; `None` if the member is not optional.
pub(crate) fn optional_content<'t>(
    types: &Types,
    scope: &Scope<'_>,
    name: &str,
    type_code: &'t TypeCode,
) -> Option<&'t TypeCode> {
    match type_code.shape() {
        Shape::Sequence(elements) if types.is_optional(scope.type_code, name) => {
            Some(&elements.element)
        }
        _ => None,
    }
}

/// The key of an exception's repository id.
pub const EXCEPTION: &str = "exception";
/// The prefix of bytes as hexadecimal digits.
const HEX: &str = "hex:";
/// The largest integer that is written as a number. Readers that use doubles would change larger ones.
const EXACT_MAX: u64 = 1 << 53;
