//! The value of an any as JSON, in a fixed form for programs.

use rtorb::any::{Any, Value as IdlValue};
use rtorb::type_code::{Shape, TypeCode};
use serde_json::{Map, Number, Value, json};

use super::text::hex;

/// Returns `{"type": IDL-TYPE, "value": VALUE}`, or `null` for an empty any.
///
/// Values that JSON cannot express, and members of recursive types, are text.
pub(super) fn any(any: &Any) -> Value {
    match any.value() {
        Ok(IdlValue::Nothing) => Value::Null,
        Ok(value) => json!({
            "type": any.type_code().to_string(),
            "value": of(&value, any.type_code()),
        }),
        Err(error) => json!({ "type": any.type_code().to_string(), "error": error.to_string() }),
    }
}

fn of(value: &IdlValue, type_code: &TypeCode) -> Value {
    match value {
        IdlValue::Nothing => Value::Null,
        IdlValue::Boolean(value) => json!(value),
        IdlValue::Octet(value) => json!(value),
        IdlValue::Short(value) => json!(value),
        IdlValue::UShort(value) => json!(value),
        IdlValue::Long(value) => json!(value),
        IdlValue::ULong(value) => json!(value),
        IdlValue::LongLong(value) if value.unsigned_abs() > EXACT_MAX => json!(value.to_string()),
        IdlValue::LongLong(value) => json!(value),
        IdlValue::ULongLong(value) if *value > EXACT_MAX => json!(value.to_string()),
        IdlValue::ULongLong(value) => json!(value),
        IdlValue::Float(value) => real(f64::from(*value)),
        IdlValue::Double(value) => real(*value),
        IdlValue::Char(value) | IdlValue::WChar(value) => json!(value),
        IdlValue::String(text) | IdlValue::WString(text) => json!(text),
        IdlValue::Octets(octets) => json!(hex(octets, usize::MAX)),
        IdlValue::Any(inner) => any(inner),
        IdlValue::TypeCode(inner) => json!(inner.to_string()),
        IdlValue::Reference(reference) => json!(reference.to_string()),
        IdlValue::Enum(_) | IdlValue::Members(_) | IdlValue::Elements(_) => typed(value, type_code),
        _ => json!(format!("{value:?}")),
    }
}

/// Formats a value that needs its type, for the names of enumerators and members and for the type of elements.
fn typed(value: &IdlValue, type_code: &TypeCode) -> Value {
    match (value, type_code.unaliased().shape()) {
        (IdlValue::Enum(ordinal), Shape::Enum(enumeration)) => {
            match enumeration.enumerators.get(*ordinal as usize) {
                Some(name) => json!(name),
                None => json!(ordinal),
            }
        }
        (IdlValue::Members(values), Shape::Struct(made) | Shape::Except(made)) => {
            let members = made.members.iter().zip(values);
            let named = members.map(|(it, value)| (it.name.to_string(), of(value, &it.type_code)));
            Value::Object(named.collect::<Map<_, _>>())
        }
        (IdlValue::Elements(values), Shape::Sequence(made) | Shape::Array(made)) => values
            .iter()
            .map(|value| of(value, &made.element))
            .collect(),
        _ => json!(format!("{value:?}")),
    }
}

/// Formats a real number; as text if it is infinite or NaN, which JSON cannot express.
fn real(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None => json!(value.to_string()),
    }
}

/// A reader that takes numbers as doubles would change larger ones.
const EXACT_MAX: u64 = 1 << 53;

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb::any::Any;
    use rtorb_services::stubs::rtec_event::rtec_event_comm::EventHeader;
    use rtorb_services::stubs::rtec_event::rtorb_events::ConnectionState;

    #[test]
    fn values_are_json_where_json_can_express_them() {
        let shown = |value: Any| any(&value)["value"].clone();
        assert_eq!(any(&Any::NULL), Value::Null);
        let long = Any::from_value(&-7i32).unwrap();
        assert_eq!(any(&long), json!({"type": "long", "value": -7}));
        assert_eq!(
            shown(Any::from_value(&u64::MAX).unwrap()),
            "18446744073709551615"
        );
        assert_eq!(shown(Any::from_value(&f64::INFINITY).unwrap()), "inf");
        assert_eq!(
            shown(Any::from_value(&"t\u{e9}".to_owned()).unwrap()),
            "t\u{e9}"
        );
        assert_eq!(shown(Any::from_value(&vec![1u8, 255]).unwrap()), "hex:01ff");
        assert_eq!(
            shown(Any::from_value(&vec![1i16, -2]).unwrap()),
            json!([1, -2])
        );
        let state = Any::from_value(&ConnectionState::Clogged).unwrap();
        assert_eq!(shown(state), "CLOGGED");
    }

    #[test]
    fn a_struct_has_its_members_by_name() {
        let header = EventHeader {
            r#type: 16,
            source: 1,
            ttl: 2,
            creation_time: 1 << 60,
            ec_recv_time: 3,
            ec_send_time: 4,
        };
        let shown = any(&Any::from_value(&header).unwrap());
        assert_eq!(shown["type"], "EventHeader");
        assert_eq!(shown["value"]["type"], 16);
        assert_eq!(shown["value"]["creation_time"], "1152921504606846976");
    }
}
