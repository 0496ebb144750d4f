//! The JSON of types that IDL 4 has and GIOP has not: bitmasks and bitsets.
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

#[test]
fn examples_name_flags_and_fields() {
    let shown = |name: &str| example(&TYPES, &TYPES.parse(name).unwrap()).unwrap();
    assert_eq!(shown("Permission"), json!(["read"]));
    assert_eq!(shown("All"), json!([["read"]]));
    assert_eq!(
        shown("State"),
        json!({"running": true, "gear": 1, "slope": 1})
    );
}
