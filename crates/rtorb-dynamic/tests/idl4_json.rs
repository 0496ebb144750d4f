//! The JSON of what IDL 4 has and GIOP has not: bitmasks, bitsets, optional members and maps.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::sync::LazyLock;

use rtorb::any::Value;
use rtorb_dynamic::Types;
use rtorb_dynamic::json::{example, from_json, to_json};
use serde_json::{Value as Json, json};

const IDL: &str = "
module Yard {
  @bit_bound(8) bitmask Rights { read, write, @position(7) owner };
  @bit_bound(64) bitmask Widest { @position(63) top };
  bitset State { bitfield<1> running; bitfield<3> gear; bitfield<2>; bitfield<4, short> slope; };
  bitset Number { bitfield<64> all; };
  typedef Rights Permission;
  typedef sequence<Permission, 3> All;
  struct Held { Permission permission; State state; };
  struct Point { long x; @optional long y; @optional octet z; @optional Object whom; @optional Rights who; };
  struct Tree { @optional sequence<Tree> kids; };
  typedef map<string, Rights, 4> Index;
  exception Missing { @optional string why; };
  valuetype Base { @optional public long number; };
  valuetype Derived : Base { public long other; @optional public Base next; };
};
";

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let mut types = Types::default();
    types.add_text("yard.idl", IDL).unwrap();
    types
});

/// Checks that a value has this JSON, and that this JSON means the value.
fn is_written_as(name: &str, value: &Value, json: &Json) {
    let type_code = TYPES.parse(name).unwrap();
    assert_eq!(to_json(&TYPES, value, &type_code).unwrap(), *json);
    assert_eq!(from_json(&TYPES, json, &type_code).unwrap(), *value);
}

fn read(name: &str, json: &Json) -> Value {
    from_json(&TYPES, json, &TYPES.parse(name).unwrap()).unwrap()
}

#[test]
fn a_bitmask_is_an_array_of_names_and_other_bits() {
    is_written_as("Rights", &Value::Octet(0), &json!([]));
    is_written_as("Rights", &Value::Octet(0x82), &json!(["write", "owner"]));
    is_written_as("Rights", &Value::Octet(0x41), &json!(["read", 64]));
    let widest = Value::ULongLong(u64::MAX);
    let others = json!(["top", "9223372036854775807"]);
    is_written_as("Widest", &widest, &others);
    assert_eq!(read("Rights", &json!(3)), Value::Octet(3));
    assert_eq!(read("Rights", &json!(["read", "read"])), Value::Octet(1));
}

#[test]
fn a_bitset_is_an_object_of_its_fields() {
    let state = Value::UShort(1 | 5 << 1 | 0xf << 6);
    let json = json!({"running": true, "gear": 5, "slope": -1});
    is_written_as("State", &state, &json);
    assert_eq!(read("State", &json!(2)), Value::UShort(2));
    let big = json!({"all": u64::MAX.to_string()});
    is_written_as("Number", &Value::ULongLong(u64::MAX), &big);
}

#[test]
fn a_bitset_with_bits_that_have_no_name_is_a_number() {
    is_written_as("State", &Value::UShort(0x30), &json!(0x30));
    is_written_as("State", &Value::UShort(0x8001), &json!(0x8001));
}

#[test]
fn bits_keep_their_names_inside_other_types() {
    let value = Value::Members(vec![Value::Octet(1), Value::UShort(0)]);
    let state = json!({"running": false, "gear": 0, "slope": 0});
    let json = json!({"permission": ["read"], "state": state});
    is_written_as("Held", &value, &json);
    let octets = Value::Octets(vec![0, 3]);
    is_written_as("All", &octets, &json!([[], ["read", "write"]]));
    assert_eq!(read("All", &json!("hex:0003")), octets);
    let any = json!({"type": "Yard::Rights", "value": ["owner"]});
    assert_eq!(
        to_json(&TYPES, &read("any", &any), &rtorb::type_code::TypeCode::ANY).unwrap(),
        any
    );
}

fn elements<const N: usize>(values: [Value; N]) -> Value {
    Value::Elements(values.to_vec())
}

fn no_octets() -> Value {
    Value::Octets(Vec::new())
}

#[test]
fn an_optional_member_is_its_value_or_null() {
    let parts = [
        Value::Long(1),
        elements([Value::Long(2)]),
        Value::Octets(vec![3]),
        elements([]),
        Value::Octets(vec![2]),
    ];
    let json = json!({"x": 1, "y": 2, "z": 3, "whom": null, "who": ["write"]});
    is_written_as("Point", &Value::Members(parts.to_vec()), &json);
    let [x, ..] = parts;
    let none = vec![x, elements([]), no_octets(), elements([]), no_octets()];
    let json = json!({"x": 1, "y": null, "z": null, "whom": null, "who": null});
    is_written_as("Point", &Value::Members(none.clone()), &json);
    assert_eq!(read("Point", &json!({"x": 1})), Value::Members(none));
}

#[test]
fn an_optional_nil_reference_is_not_an_absent_one() {
    let json = json!({"x": 1, "y": null, "z": null, "whom": {"value": null}, "who": null});
    let Value::Members(members) = read("Point", &json) else {
        panic!("a struct has members");
    };
    assert!(matches!(&members[3], Value::Elements(one) if one.len() == 1));
    is_written_as("Point", &Value::Members(members), &json);
    let wrong = json!({"x": 1, "whom": "IOR:00"});
    let error = from_json(&TYPES, &wrong, &TYPES.parse("Point").unwrap()).unwrap_err();
    assert!(
        error.expected.contains("an object with a `value`"),
        "{error}"
    );
    assert_eq!(error.place(), ".whom");
}

#[test]
fn optional_members_nest_and_stand_in_exceptions_and_values() {
    let leaf = Value::Members(vec![elements([])]);
    let tree = Value::Members(vec![elements([elements([leaf])])]);
    is_written_as("Tree", &tree, &json!({"kids": [{"kids": null}]}));
    let missing = Value::Members(vec![elements([Value::String("gone".to_owned())])]);
    let json = json!({"exception": "IDL:Yard/Missing:1.0", "why": "gone"});
    is_written_as("Missing", &missing, &json);
    let value = read("Derived", &json!({"other": 5}));
    let json = json!({"number": null, "other": 5, "next": null});
    is_written_as("Derived", &value, &json);
    let next = json!({"value": {"number": 7}});
    let json = json!({"number": 6, "other": 5, "next": next});
    is_written_as("Derived", &read("Derived", &json), &json);
}

#[test]
fn a_map_is_an_array_of_pairs() {
    let pair = |key: &str, rights| {
        let key = Value::String(key.to_owned());
        Value::Members(vec![key, Value::Octet(rights)])
    };
    let index = elements([pair("a", 1), pair("b", 0)]);
    let json = json!([{"key": "a", "value": ["read"]}, {"key": "b", "value": []}]);
    is_written_as("Index", &index, &json);
    let bound = json!(vec![json!({"key": "a", "value": []}); 5]);
    let read = from_json(&TYPES, &bound, &TYPES.parse("Index").unwrap());
    assert!(
        read.unwrap_err()
            .problem
            .contains("5 elements are too many")
    );
}

#[test]
fn wrong_optional_members_have_their_place() {
    let told = |json: &Json| {
        let read = from_json(&TYPES, json, &TYPES.parse("Point").unwrap());
        read.expect_err("it is wrong").to_string()
    };
    let text = told(&json!({"x": 1, "y": "two"}));
    assert!(
        text.starts_with("y: \"two\" is a string, but long is expected"),
        "{text}"
    );
    let text = told(&json!({"x": 1, "z": 256}));
    assert!(text.starts_with("z: 256 does not fit, but octet"), "{text}");
}

#[test]
fn examples_name_flags_and_fields() {
    let shown = |name: &str| example(&TYPES, &TYPES.parse(name).unwrap()).unwrap();
    assert_eq!(shown("Permission"), json!(["read"]));
    assert_eq!(shown("All"), json!([["read"]]));
    assert_eq!(
        shown("State"),
        json!({"running": true, "gear": 1, "slope": 1})
    );
    let reference = json!({ "value": null });
    let who = json!(["read"]);
    assert_eq!(
        shown("Point"),
        json!({"x": 1, "y": 1, "z": 1, "whom": reference, "who": who})
    );
    for name in ["Tree", "Missing", "Derived"] {
        let _ = read(name, &shown(name));
    }
}
