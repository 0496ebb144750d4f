//! A value as JSON.

use core::fmt::Write as _;

use rtorb::any::{Any, State, Value, find_state_type};
use rtorb::type_code::{Aggregate, Kind, Label, Scope, Shape, TypeCode};
use rtorb_wire::DecodeError;
use serde_json::{Map, Number, Value as Json, json};

use super::bits;
use super::number::{exact_double, fixed_text};
use super::{
    EXACT_MAX, EXCEPTION, HEX, exception_key, known, may_be_null, optional_content, type_key,
};
use crate::types::Types;

/// The reason why a value has no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The value is not of the type.
    #[error("the value is not of its type")]
    WrongType,
    /// The value has too many parts. A shared value counts each time that it occurs, and a long text as several.
    #[error(
        "the value has more than {VALUES_MAX} parts, where {PART_BYTES} bytes of a text are one"
    )]
    TooLarge,
    /// The value of an any cannot be decoded.
    #[error(transparent)]
    Any(#[from] DecodeError),
}

/// The JSON of a value of `type_code`.
///
/// # Errors
/// [`WriteError`], if the value is of another type, or has too many parts.
pub fn to_json(types: &Types, value: &Value, type_code: &TypeCode) -> Result<Json, WriteError> {
    Writer { types, values: 0 }.value(value, &Scope::new(type_code))
}

struct Writer<'t> {
    types: &'t Types,
    /// The values written so far, and parts of texts. Shared values could make a short message endless, and each element of a sequence can
    /// repeat long names of a peer's type.
    values: usize,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, scope: &Scope<'_>) -> Result<Json, WriteError> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(WriteError::TooLarge);
        }
        if let Some(bits) = self.types.bits(scope.type_code) {
            let json = bits::number(value).and_then(|number| bits::write(bits, number));
            return json.ok_or(WriteError::WrongType);
        }
        let json = self.uncounted(value, scope)?;
        if let Json::String(text) = &json {
            self.count(text);
        }
        Ok(json)
    }

    /// Counts a text that is written besides a value.
    fn count(&mut self, text: &str) {
        self.values += text.len() / PART_BYTES;
    }

    fn uncounted(&mut self, value: &Value, scope: &Scope<'_>) -> Result<Json, WriteError> {
        // A peer's type may have many aliases between two levels of a value.
        let scope = &scope.resolved().ok_or(WriteError::WrongType)?;
        Ok(match (value, scope.type_code.shape()) {
            (Value::Fixed(unscaled), Shape::Fixed { scale, .. }) => {
                json!(fixed_text(*unscaled, *scale))
            }
            (Value::Enum(ordinal), Shape::Enum(enumeration)) => {
                let name = enumeration.enumerators.get(*ordinal as usize);
                json!(name.ok_or(WriteError::WrongType)?)
            }
            (Value::Members(values), Shape::Struct(made) | Shape::Except(made)) => {
                self.members(values, made, scope)?
            }
            (
                Value::Union {
                    discriminator,
                    value,
                },
                Shape::Union(union),
            ) => {
                let mut object = Map::new();
                let label = label(*discriminator, &union.discriminator)?;
                self.count(label.as_str().unwrap_or_default());
                object.insert("d".to_owned(), label);
                if let (Some(value), Some(member)) = (value, union.select(*discriminator)) {
                    let value = self.value(value, &scope.inside(&member.type_code))?;
                    object.insert("v".to_owned(), value);
                }
                Json::Object(object)
            }
            (Value::Elements(values), Shape::Sequence(made) | Shape::Array(made)) => {
                let element = scope.inside(&made.element);
                let values = values.iter().map(|value| self.value(value, &element));
                values.collect::<Result<_, _>>()?
            }
            (Value::Octets(bytes), Shape::Sequence(made) | Shape::Array(made))
                if self.types.bits(&made.element).is_some() =>
            {
                let element = scope.inside(&made.element);
                let values = bytes
                    .iter()
                    .map(|it| self.value(&Value::Octet(*it), &element));
                values.collect::<Result<_, _>>()?
            }
            (Value::Valuetype(None), _) => Json::Null,
            (Value::Valuetype(Some(state)), _) => self.state(state, scope)?,
            (Value::Any(any), _) => self.any(any)?,
            (Value::TypeCode(inner), _) => json!(self.types.text(inner)),
            (value, _) => plain(value).ok_or(WriteError::WrongType)?,
        })
    }

    fn members(
        &mut self,
        values: &[Value],
        made: &Aggregate,
        scope: &Scope<'_>,
    ) -> Result<Json, WriteError> {
        let is_exception = scope.type_code.kind() == Kind::Except;
        let mut object = Map::new();
        if is_exception {
            self.count(&made.named.id);
            object.insert(EXCEPTION.to_owned(), json!(made.named.id));
        }
        for (member, value) in made.members.iter().zip(values) {
            let value = self.member(value, &member.name, scope, &member.type_code)?;
            let key = if is_exception {
                exception_key(&member.name)
            } else {
                &member.name
            };
            self.count(key);
            object.insert(key.to_owned(), value);
        }
        Ok(Json::Object(object))
    }

    /// A member of the type of `scope`. An optional one without a value is null.
    fn member(
        &mut self,
        value: &Value,
        name: &str,
        scope: &Scope<'_>,
        type_code: &TypeCode,
    ) -> Result<Json, WriteError> {
        let member = scope.inside(type_code);
        let Some(content) = optional_content(self.types, scope, name, type_code) else {
            return self.value(value, &member);
        };
        let element = member.inside(content);
        let json = match value {
            Value::Elements(values) => values.first().map(|it| self.value(it, &element)),
            Value::Octets(bytes) => {
                let byte = bytes.first().map(|byte| Value::Octet(*byte));
                byte.map(|byte| self.value(&byte, &element))
            }
            _ => return Err(WriteError::WrongType),
        };
        match json.transpose()? {
            Some(json) if may_be_null(content) => Ok(json!({ "value": json })),
            json => Ok(json.unwrap_or_default()),
        }
    }

    fn any(&mut self, any: &Any) -> Result<Json, WriteError> {
        let value = any.value_with(&known(self.types))?;
        if value == Value::Nothing && any.type_code().kind() == Kind::Null {
            return Ok(Json::Null);
        }
        let value = self.value(&value, &Scope::new(any.type_code()))?;
        let type_text = self.types.text(any.type_code());
        self.count(&type_text);
        Ok(json!({ "type": type_text, "value": value }))
    }

    fn state(&mut self, state: &State, scope: &Scope<'_>) -> Result<Json, WriteError> {
        let known = known(self.types);
        let found = find_state_type(scope, &state.repository_id, &known);
        let found = found.ok_or(WriteError::WrongType)?;
        let is_expected = scope.type_code.repository_id() == Some(&state.repository_id);
        found.in_scope(scope, |scope| {
            let mut members = state.members.iter();
            if let Shape::ValueBox(boxed) = scope.type_code.shape() {
                let value = members.next().ok_or(WriteError::WrongType)?;
                let value = self.value(value, &scope.inside(&boxed.content))?;
                return Ok(match is_expected {
                    true if !may_be_null(&boxed.content) => value,
                    true => json!({ "value": value }),
                    false => json!({ "type": self.types.text(scope.type_code), "value": value }),
                });
            }
            let mut object = Map::new();
            if !is_expected {
                let name = self.types.text(scope.type_code);
                object.insert(type_key(scope).to_owned(), json!(name));
            }
            scope.each_state_member(&mut |member, scope| {
                let value = members.next().ok_or(WriteError::WrongType)?;
                let value = self.member(value, &member.name, scope, &member.type_code)?;
                self.count(&member.name);
                object.insert(member.name.to_string(), value);
                Ok::<(), WriteError>(())
            })?;
            Ok(Json::Object(object))
        })
    }
}

/// The JSON of a value without parts; `None` for a value that needs its type.
pub(super) fn plain(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Nothing => Json::Null,
        Value::Boolean(value) => json!(value),
        Value::Octet(value) => json!(value),
        Value::Short(value) => json!(value),
        Value::UShort(value) => json!(value),
        Value::Long(value) => json!(value),
        Value::ULong(value) => json!(value),
        Value::LongLong(value) if value.unsigned_abs() > EXACT_MAX => json!(value.to_string()),
        Value::LongLong(value) => json!(value),
        Value::ULongLong(value) if *value > EXACT_MAX => json!(value.to_string()),
        Value::ULongLong(value) => json!(value),
        // The shortest text of this float. That of the same number as a double would be longer.
        Value::Float(value) => real(value.to_string().parse().unwrap_or(f64::from(*value))),
        Value::Double(value) => real(*value),
        Value::LongDouble(value) => match exact_double(*value) {
            Some(double) => real(double),
            None => json!(format!("{HEX}{:032x}", value.0)),
        },
        Value::Char(value) | Value::WChar(value) => json!(value),
        Value::String(text) | Value::WString(text) => json!(text),
        Value::Octets(bytes) => json!(hex(bytes)),
        Value::Reference(ior) if ior.is_nil() => Json::Null,
        Value::Reference(ior) => json!(ior.to_string()),
        _ => return None,
    })
}

/// The JSON of a union's discriminator.
pub(super) fn label(label: Label, type_code: &TypeCode) -> Result<Json, WriteError> {
    let number = u32::try_from(label).ok();
    Ok(match type_code.unaliased().shape() {
        Shape::Plain(Kind::Boolean) => json!(label != 0),
        Shape::Plain(Kind::Char | Kind::WChar) => {
            let character = number.and_then(char::from_u32);
            json!(character.ok_or(WriteError::WrongType)?)
        }
        Shape::Plain(Kind::ULongLong) => {
            plain(&Value::ULongLong(label.cast_unsigned())).ok_or(WriteError::WrongType)?
        }
        Shape::Enum(enumeration) => {
            let name = number.and_then(|it| enumeration.enumerators.get(it as usize));
            json!(name.ok_or(WriteError::WrongType)?)
        }
        _ => plain(&Value::LongLong(label)).ok_or(WriteError::WrongType)?,
    })
}

/// A real number; as text if it is infinite or NaN, which JSON cannot express.
fn real(value: f64) -> Json {
    match Number::from_f64(value) {
        Some(number) => Json::Number(number),
        None => json!(value.to_string()),
    }
}

/// `hex:` and the digits of the bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = HEX.to_owned();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The most parts of a value. A shared value counts each time that it occurs.
const VALUES_MAX: usize = 4_000_000;
/// The bytes of a text that count as one part.
const PART_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_counts_as_several_parts() {
        let types = Types::default();
        let long = "x".repeat(10 * PART_BYTES);
        let count = |value: &Value, type_code: &TypeCode| {
            let mut writer = Writer {
                types: &types,
                values: 0,
            };
            let json = writer.value(value, &Scope::new(type_code));
            assert!(json.is_ok(), "{json:?}");
            writer.values
        };
        assert_eq!(count(&Value::String(long.clone()), &TypeCode::STRING), 11);
        let named = TypeCode::structure("IDL:S:1.0", "S", [(&*long, TypeCode::OCTET)]);
        assert_eq!(count(&Value::Members(vec![Value::Octet(1)]), &named), 12);
        let raised = TypeCode::exception(&long, "E", []);
        assert_eq!(count(&Value::Members(Vec::new()), &raised), 11);
        let names = TypeCode::enumeration("IDL:E:1.0", "E", [&*long]);
        assert_eq!(count(&Value::Enum(0), &names), 11);
        let members = [(0, "u", TypeCode::OCTET)];
        let union = TypeCode::union("IDL:U:1.0", "U", names, None, members);
        let value = Value::Union {
            discriminator: 0,
            value: Some(Box::new(Value::Octet(1))),
        };
        assert_eq!(count(&value, &union), 12);
    }
}
