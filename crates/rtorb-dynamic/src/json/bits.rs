//! The JSON of bitmasks and bitsets.

use rtorb::any::Value;
use rtorb::type_code::{Kind, TypeCode};
use rtorb_wire::cdr::{bit_field, with_bit_field};
use serde_json::{Map, Value as Json};

use super::scalar::{integer, kind, short};
use super::write::plain;
use crate::types::{Bits, Field, FieldForm};

/// A part of the JSON of bits that is wrong.
pub(super) struct BitsError {
    /// Its place: `.gear`, or nothing for the whole.
    pub(super) step: Option<String>,
    /// The mistake.
    pub(super) problem: String,
}

impl BitsError {
    fn whole(problem: String) -> Self {
        let step = None;
        Self { step, problem }
    }
}

/// The JSON of a bitmask is the names of the flags that are set, with the other bits as a number at the end. That of a bitset is its
/// fields, or a number if bits without a name are set.
pub(super) fn write(bits: &Bits, number: u64) -> Option<Json> {
    match bits {
        Bits::Mask(flags) => {
            let set = flags.iter().filter(|flag| number & flag.bit != 0);
            let rest = set.clone().fold(number, |rest, flag| rest & !flag.bit);
            let names = set.map(|flag| Json::from(&*flag.name));
            let rest = (rest != 0).then(|| plain(&Value::ULongLong(rest)));
            names.map(Some).chain(rest).collect()
        }
        Bits::Set(fields) => {
            let rest = fields.iter().fold(number, |rest, it| rest & !it.bits());
            if rest != 0 {
                return plain(&Value::ULongLong(number));
            }
            let values = fields.iter();
            let values = values.map(|it| Some((it.name.clone(), field_json(it, number)?)));
            values.collect::<Option<Map<_, _>>>().map(Json::Object)
        }
    }
}

fn field_json(field: &Field, number: u64) -> Option<Json> {
    let Field { offset, width, .. } = *field;
    plain(&match field.form {
        FieldForm::Boolean => Value::Boolean(bit_field(number, offset, width)),
        FieldForm::Unsigned => Value::ULongLong(bit_field(number, offset, width)),
        FieldForm::Signed => Value::LongLong(bit_field(number, offset, width)),
    })
}

/// Converts JSON to the integer. Accepts the forms of [`write`], and a number for either.
pub(super) fn read(bits: &Bits, json: &Json) -> Result<u64, BitsError> {
    if let Some(number) = integer(json) {
        return Ok(number);
    }
    match (bits, json) {
        (Bits::Mask(flags), Json::Array(parts)) => parts.iter().try_fold(0, |bits, part| {
            let flag = flags.iter().find(|flag| *part == *flag.name);
            let part_bits = flag.map(|flag| flag.bit).or_else(|| integer(part));
            let part_bits = part_bits.ok_or_else(|| {
                let names: Vec<_> = flags.iter().map(|flag| &*flag.name).collect();
                let names = names.join(", ");
                BitsError::whole(format!("{} is no flag of {names}", short(part)))
            })?;
            Ok(bits | part_bits)
        }),
        (Bits::Set(fields), Json::Object(object)) => {
            let unknown = |name: &&String| !fields.iter().any(|field| field.name == **name);
            if let Some(unknown) = object.keys().find(unknown) {
                return Err(BitsError::whole(format!("there is no field `{unknown}`")));
            }
            fields.iter().try_fold(0, |bits, field| {
                let name = &field.name;
                let missing = || BitsError::whole(format!("the field `{name}` is missing"));
                let json = object.get(name).ok_or_else(missing)?;
                with_field(bits, field, json).ok_or_else(|| BitsError {
                    step: Some(format!(".{name}")),
                    problem: format!("{} does not fit into {}", short(json), described(field)),
                })
            })
        }
        (_, Json::Null) => Err(BitsError::whole("it is null".to_owned())),
        _ => {
            let problem = format!("{} is {}", short(json), kind(json));
            Err(BitsError::whole(problem))
        }
    }
}

/// `bits` with the value `json` in `field`; `None` if the value does not fit.
fn with_field(bits: u64, field: &Field, json: &Json) -> Option<u64> {
    let Field { offset, width, .. } = *field;
    let with = match field.form {
        FieldForm::Boolean => with_bit_field(bits, offset, width, json.as_bool()?),
        FieldForm::Unsigned => with_bit_field(bits, offset, width, integer::<u64>(json)?),
        FieldForm::Signed => with_bit_field(bits, offset, width, integer::<i64>(json)?),
    };
    with.ok()
}

fn described(field: &Field) -> String {
    match field.form {
        FieldForm::Boolean => "a boolean".to_owned(),
        FieldForm::Unsigned => format!("{} bits", field.width),
        FieldForm::Signed => format!("{} bits with a sign", field.width),
    }
}

/// An example: the first flag of a bitmask, or 1 in each field of a bitset.
pub(super) fn example(bits: &Bits) -> Option<Json> {
    let number = match bits {
        Bits::Mask(flags) => flags.first()?.bit,
        Bits::Set(fields) => fields.iter().fold(0, |bits, it| bits | 1 << it.offset),
    };
    write(bits, number)
}

/// The bits of an unsigned integer.
pub(super) fn number(value: &Value) -> Option<u64> {
    Some(match value {
        Value::Octet(value) => u64::from(*value),
        Value::UShort(value) => u64::from(*value),
        Value::ULong(value) => u64::from(*value),
        Value::ULongLong(value) => *value,
        _ => return None,
    })
}

/// The value of an unsigned integer type that has these bits.
pub(super) fn value(bits: u64, type_code: &TypeCode) -> Option<Value> {
    match type_code.unaliased().kind() {
        Kind::Octet => bits.try_into().ok().map(Value::Octet),
        Kind::UShort => bits.try_into().ok().map(Value::UShort),
        Kind::ULong => bits.try_into().ok().map(Value::ULong),
        Kind::ULongLong => Some(Value::ULongLong(bits)),
        _ => None,
    }
}
