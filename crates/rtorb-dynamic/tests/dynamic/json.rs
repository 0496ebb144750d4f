//! Every IDL type as JSON and back, with random types and values.

use std::sync::{Arc, LazyLock};

use proptest::collection::vec;
use proptest::prelude::*;
use rtorb::any::{Any, State, Value};
use rtorb::cdr::LongDouble;
use rtorb::type_code::{Kind, Label, Scope, Shape, TypeCode};
use rtorb_dynamic::Types;
use rtorb_dynamic::json::{example, from_json, to_json};
use rtorb_wire::url::{Corbaloc, CorbalocAddress};
use rtorb_wire::valuetype;

/// Types without parts that have values.
fn plain_type() -> impl Strategy<Value = TypeCode> {
    let plain = [
        TypeCode::BOOLEAN,
        TypeCode::OCTET,
        TypeCode::SHORT,
        TypeCode::USHORT,
        TypeCode::LONG,
        TypeCode::ULONG,
        TypeCode::LONG_LONG,
        TypeCode::ULONG_LONG,
        TypeCode::FLOAT,
        TypeCode::DOUBLE,
        TypeCode::LONG_DOUBLE,
        TypeCode::CHAR,
        TypeCode::WCHAR,
        TypeCode::ANY,
        TypeCode::TYPE_CODE,
        TypeCode::STRING,
        TypeCode::WSTRING,
        TypeCode::object_reference("IDL:omg.org/CORBA/Object:1.0", "Object"),
    ];
    prop_oneof![
        4 => proptest::sample::select(plain.to_vec()),
        1 => (0u32..6).prop_map(TypeCode::string),
        1 => (0u32..6).prop_map(TypeCode::wstring),
        1 => (1u16..=31).prop_flat_map(|digits| (Just(digits), 0..=digits.cast_signed()))
            .prop_map(|(digits, scale)| TypeCode::fixed(digits, scale)),
        1 => Just(colour()),
    ]
}

fn colour() -> TypeCode {
    TypeCode::enumeration("IDL:Colour:1.0", "Colour", ["red", "green", "blue"])
}

/// A list in a struct, a list of values, and a value that derives from another.
fn recursive_types() -> [TypeCode; 3] {
    let kids = TypeCode::sequence(TypeCode::recursive("IDL:Node:1.0"), 0);
    let members = [("number", TypeCode::LONG), ("kids", kids)];
    let node = TypeCode::structure("IDL:Node:1.0", "Node", members);
    let next = TypeCode::recursive("IDL:Link:1.0");
    let members = [("number", TypeCode::LONG, true), ("next", next, true)];
    let link = valuetype::type_code("IDL:Link:1.0", "Link", 0, TypeCode::NULL, members);
    let own = [("type", TypeCode::STRING, true)];
    let pin = valuetype::type_code("IDL:Pin:1.0", "Pin", 3, link.clone(), own);
    [node, link, pin]
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let mut types = Types::standard();
    for type_code in recursive_types().into_iter().chain([colour()]) {
        let name = type_code.name().unwrap().to_owned();
        assert!(types.add_type(&name, type_code));
    }
    types
});

fn any_type() -> impl Strategy<Value = TypeCode> {
    let leaf = prop_oneof![
        6 => plain_type(),
        1 => proptest::sample::select(recursive_types().to_vec()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0u32..4)
                .prop_map(|(element, bound)| TypeCode::sequence(element, bound)),
            (inner.clone(), 1u32..4).prop_map(|(element, length)| TypeCode::array(element, length)),
            inner
                .clone()
                .prop_map(|content| TypeCode::alias("IDL:Alias:1.0", "Alias", content)),
            inner.clone().prop_map(|content| valuetype::box_type_code(
                "IDL:Box:1.0",
                "Box",
                content
            )),
            vec(inner.clone(), 0..4).prop_map(|members| {
                TypeCode::structure("IDL:Made:1.0", "Made", named(members))
            }),
            vec(inner.clone(), 0..3).prop_map(|members| {
                TypeCode::exception("IDL:Wrong:1.0", "Wrong", named(members))
            }),
            (vec(inner.clone(), 1..4), any::<bool>(), discriminator()).prop_map(union),
            (inner, any::<bool>()).prop_map(|(member, is_public)| {
                let members = [("member", member, is_public)];
                valuetype::type_code("IDL:Val:1.0", "Val", 0, TypeCode::NULL, members)
            }),
        ]
    })
}

fn discriminator() -> impl Strategy<Value = TypeCode> {
    proptest::sample::select(vec![
        TypeCode::LONG,
        TypeCode::ULONG_LONG,
        TypeCode::SHORT,
        TypeCode::CHAR,
        TypeCode::BOOLEAN,
        colour(),
    ])
}

fn union((members, has_default, discriminator): (Vec<TypeCode>, bool, TypeCode)) -> TypeCode {
    let labels = match discriminator.kind() {
        Kind::Boolean => 2,
        Kind::Enum => 3,
        _ => 4,
    };
    let first: Label = if discriminator.kind() == Kind::Char {
        65
    } else {
        0
    };
    let names = ["a", "b", "c", "d"];
    let members: Vec<_> = members.into_iter().take(labels).zip(names).collect();
    let default = has_default.then(|| u32::try_from(members.len() - 1).unwrap());
    let members = (first..)
        .zip(members)
        .map(|(label, (type_code, name))| (label, name, type_code));
    TypeCode::union("IDL:Either:1.0", "Either", discriminator, default, members)
}

fn named(members: Vec<TypeCode>) -> Vec<(&'static str, TypeCode)> {
    ["first", "second", "third", "exception"]
        .into_iter()
        .zip(members)
        .collect()
}

/// A value of a type, drawn from bytes: each choice takes some.
struct Draw<'b> {
    bytes: std::iter::Cycle<std::slice::Iter<'b, u8>>,
    depth: usize,
}

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        *self.bytes.next().unwrap()
    }

    fn number(&mut self) -> u128 {
        let bytes: [u8; 16] = std::array::from_fn(|_| self.byte());
        // Small numbers too.
        u128::from_le_bytes(bytes) >> (self.byte() % 128)
    }

    fn text(&mut self, bound: u32) -> String {
        let most = if bound == 0 { 8 } else { bound };
        let count = u32::from(self.byte()) % (most + 1);
        (0..count).map(|_| self.character()).collect()
    }

    fn character(&mut self) -> char {
        ['a', '"', '\\', '\n', '\u{e9}', '\u{3b1}', '\u{1f600}', '{'][usize::from(self.byte()) % 8]
    }

    fn value(&mut self, scope: &Scope<'_>) -> Value {
        self.depth += 1;
        let value = self.shape(scope);
        self.depth -= 1;
        value
    }

    fn shape(&mut self, scope: &Scope<'_>) -> Value {
        match scope.type_code.shape() {
            Shape::Plain(kind) => self.plain(*kind),
            Shape::String { bound } => Value::String(self.text(*bound)),
            Shape::WString { bound } => Value::WString(self.text(*bound)),
            Shape::Fixed { digits, .. } => {
                let size = (self.number() % 10u128.pow(u32::from(*digits))).cast_signed();
                Value::Fixed(if self.byte().is_multiple_of(2) {
                    size
                } else {
                    -size
                })
            }
            Shape::Enum(_) => Value::Enum(u32::from(self.byte()) % 3),
            Shape::Alias(alias) => self.value(&scope.inside(&alias.content)),
            Shape::Recursive(id) => self.value(scope.enclosing(id).unwrap()),
            Shape::Sequence(elements) | Shape::Array(elements) => {
                let count = match (scope.type_code.kind(), elements.count) {
                    (Kind::Array, count) => count,
                    _ if self.depth > 8 => 0,
                    (_, 0) => u32::from(self.byte()) % 4,
                    (_, bound) => u32::from(self.byte()) % (bound + 1),
                };
                if elements.element.unaliased().kind() == Kind::Octet {
                    return Value::Octets((0..count).map(|_| self.byte()).collect());
                }
                let element = scope.inside(&elements.element);
                Value::Elements((0..count).map(|_| self.value(&element)).collect())
            }
            Shape::Struct(made) | Shape::Except(made) => {
                let members = made.members.iter();
                Value::Members(
                    members
                        .map(|it| self.value(&scope.inside(&it.type_code)))
                        .collect(),
                )
            }
            Shape::Union(union) => {
                let count = u32::try_from(union.members.len()).unwrap();
                let place = u32::from(self.byte()) % (count + 1);
                // Behind the last label: the default, or no member.
                let discriminator = match union.members.get(place as usize) {
                    Some(member) => member.label,
                    None if matches!(union.discriminator.kind(), Kind::Boolean | Kind::Enum) => {
                        union.members[0].label
                    }
                    None => union.members[0].label + 5,
                };
                let member = union.select(discriminator);
                let value = member.map(|it| Box::new(self.value(&scope.inside(&it.type_code))));
                Value::Union {
                    discriminator,
                    value,
                }
            }
            Shape::ValueBox(_) | Shape::Value(_) => self.state(scope),
            Shape::Named(..) => Value::Reference(if self.byte().is_multiple_of(2) {
                rtorb::ior::Ior::NIL
            } else {
                Corbaloc {
                    addresses: vec![CorbalocAddress::Iiop {
                        version: rtorb::giop::Version::V1_2,
                        host: "plant".to_owned(),
                        port: 2809,
                    }],
                    object_key: b"Valve".to_vec(),
                }
                .to_ior("IDL:Valve:1.0")
                .unwrap()
            }),
            Shape::Event(_) => unreachable!("none is made"),
        }
    }

    fn state(&mut self, scope: &Scope<'_>) -> Value {
        if self.depth > 6 || self.byte().is_multiple_of(4) {
            return Value::Valuetype(None);
        }
        let [_, _, pin] = recursive_types();
        let is_link = scope.type_code.repository_id() == Some("IDL:Link:1.0");
        let derived = Scope::new(&pin);
        let scope = if is_link && self.byte().is_multiple_of(3) {
            &derived
        } else {
            scope
        };
        let mut members = Vec::new();
        if let Shape::ValueBox(boxed) = scope.type_code.shape() {
            members.push(self.value(&scope.inside(&boxed.content)));
        }
        scope
            .each_state_member(&mut |member, scope| {
                members.push(self.value(&scope.inside(&member.type_code)));
                Ok::<(), ()>(())
            })
            .unwrap();
        let repository_id = scope.type_code.repository_id().unwrap().into();
        Value::Valuetype(Some(Arc::new(State {
            repository_id,
            members,
        })))
    }

    fn plain(&mut self, kind: Kind) -> Value {
        let number = self.number();
        match kind {
            Kind::Boolean => Value::Boolean(number & 1 == 1),
            Kind::Octet => Value::Octet(number as u8),
            Kind::Short => Value::Short(number as i16),
            Kind::UShort => Value::UShort(number as u16),
            Kind::Long => Value::Long(number as i32),
            Kind::ULong => Value::ULong(number as u32),
            Kind::LongLong => Value::LongLong(number as i64),
            Kind::ULongLong => Value::ULongLong(number as u64),
            Kind::Float => Value::Float(match f32::from_bits(number as u32) {
                float if float.is_nan() => f32::INFINITY,
                float => float,
            }),
            Kind::Double => Value::Double(match f64::from_bits(number as u64) {
                double if double.is_nan() => f64::NEG_INFINITY,
                double => double,
            }),
            Kind::LongDouble => Value::LongDouble(LongDouble(number)),
            Kind::Char => Value::Char(['a', '\0', '\u{e9}'][usize::from(self.byte()) % 3]),
            Kind::WChar => Value::WChar(self.character()),
            Kind::TypeCode => Value::TypeCode(self.inner_type()),
            Kind::Any => {
                if self.depth > 4 {
                    return Value::Any(Any::NULL);
                }
                let type_code = self.inner_type();
                let value = self.value(&Scope::new(&type_code));
                // A derived value cannot be in an any of its base.
                Value::Any(Any::from_parts(type_code, &value).unwrap_or_default())
            }
            other => unreachable!("{other:?} is not drawn"),
        }
    }

    /// A type whose text is enough to make it again.
    fn inner_type(&mut self) -> TypeCode {
        let [node, link, pin] = recursive_types();
        let all = [
            TypeCode::LONG,
            TypeCode::STRING,
            TypeCode::array(TypeCode::sequence(TypeCode::DOUBLE, 3), 2),
            TypeCode::ANY,
            TypeCode::sequence(TypeCode::OCTET, 0),
            TypeCode::fixed(9, 4),
            colour(),
            node,
            link,
            pin,
        ];
        all[usize::from(self.byte()) % all.len()].clone()
    }
}

proptest! {
    #[test]
    fn a_value_is_the_same_after_json(type_code in any_type(), bytes in vec(any::<u8>(), 1..200)) {
        let mut draw = Draw { bytes: bytes.iter().cycle(), depth: 0 };
        let value = draw.value(&Scope::new(&type_code));
        let json = to_json(&TYPES, &value, &type_code).unwrap();
        // As a program would get it.
        let text = json.to_string();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let again = from_json(&TYPES, &json, &type_code);
        prop_assert_eq!(again.as_ref(), Ok(&value), "{:#} {}", type_code, text);
    }

    #[test]
    fn the_example_of_a_type_is_one_of_its_values(type_code in any_type()) {
        if let Some(example) = example(&TYPES, &type_code) {
            let read = from_json(&TYPES, &example, &type_code);
            prop_assert!(read.is_ok(), "{:#} {}: {:?}", type_code, example, read);
        }
    }

    #[test]
    fn any_json_is_a_value_or_an_error_with_its_place(
        type_code in any_type(), bytes in vec(any::<u8>(), 1..100), other in any_type(),
    ) {
        let mut draw = Draw { bytes: bytes.iter().cycle(), depth: 0 };
        let value = draw.value(&Scope::new(&other));
        let json = to_json(&TYPES, &value, &other).unwrap();
        if let Err(error) = from_json(&TYPES, &json, &type_code) {
            prop_assert!(error.to_string().contains("is expected"), "{}", error);
        }
    }
}

#[test]
fn json_has_the_documented_forms() {
    let shown = |type_code: &TypeCode, value: Value| {
        to_json(&TYPES, &value, type_code).unwrap().to_string()
    };
    assert_eq!(
        shown(&TypeCode::ULONG_LONG, Value::ULongLong(1 << 53)),
        "9007199254740992"
    );
    assert_eq!(
        shown(&TypeCode::ULONG_LONG, Value::ULongLong(u64::MAX)),
        "\"18446744073709551615\""
    );
    assert_eq!(shown(&TypeCode::FLOAT, Value::Float(0.1)), "0.1");
    assert_eq!(shown(&TypeCode::DOUBLE, Value::Double(f64::NAN)), "\"NaN\"");
    assert_eq!(
        shown(&TypeCode::fixed(5, 2), Value::Fixed(-1250)),
        "\"-12.50\""
    );
    let octets = TypeCode::sequence(TypeCode::OCTET, 0);
    assert_eq!(shown(&octets, Value::Octets(vec![10, 11])), "\"hex:0a0b\"");
    let long = Any::from_value(&7i32).unwrap();
    assert_eq!(
        shown(&TypeCode::ANY, Value::Any(long)),
        r#"{"type":"long","value":7}"#
    );
    let [_, link, _] = recursive_types();
    let repository_id = "IDL:Pin:1.0".into();
    let members = vec![
        Value::Long(1),
        Value::Valuetype(None),
        Value::String("t".to_owned()),
    ];
    let pin = Value::Valuetype(Some(Arc::new(State {
        repository_id,
        members,
    })));
    assert_eq!(
        shown(&link, pin),
        r#"{"_type":"Pin","next":null,"number":1,"type":"t"}"#
    );
}

/// Each value is shared twice by the next one: 2^60 values in a message of 2 kB.
#[test]
fn shared_values_cannot_make_json_endless() {
    let member = |name| (name, TypeCode::recursive("IDL:Two:1.0"), true);
    let members = [member("a"), member("b")];
    let two = valuetype::type_code("IDL:Two:1.0", "Two", 0, TypeCode::NULL, members);
    let mut value = Value::Valuetype(None);
    for _ in 0..60 {
        let members = vec![value.clone(), value];
        let repository_id = "IDL:Two:1.0".into();
        value = Value::Valuetype(Some(Arc::new(State {
            repository_id,
            members,
        })));
    }
    assert!(to_json(&Types::default(), &value, &two).is_err());
}
