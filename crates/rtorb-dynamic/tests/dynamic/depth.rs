//! How deep values may be nested: as deep as in generated code, and no deeper than a stack has room for.

use std::sync::Arc;

use rtorb::any::{Any, Value};
use rtorb::cdr::ByteOrder;
use rtorb::type_code::TypeCode;
use rtorb_dynamic::Types;
use rtorb_dynamic::json::{from_json, known, parse, to_json};
use rtorb_wire::{Decode as _, DecodeError, Encode as _, Reader, Writer};

const IDL: &str = "
struct Node;
typedef sequence<Node> Nodes;
struct Node { Nodes below; };
valuetype Link { public Link next; };
";

const DEPTH_MAX: usize = 64;

fn types() -> Types {
    let mut types = Types::default();
    types.add_text("depth.idl", IDL).unwrap();
    types
}

/// The JSON of `depth` values in each other.
fn nested(depth: usize, begin: &str, end: &str, leaf: &str) -> String {
    format!("{}{leaf}{}", begin.repeat(depth - 1), end.repeat(depth - 1))
}

/// The bytes of a value from its JSON.
fn encoded(types: &Types, json: &str, type_code: &TypeCode) -> Vec<u8> {
    let json = parse(json).unwrap();
    let value = from_json(types, &json, type_code).unwrap();
    let mut w = Writer::new(Vec::new(), 1 << 20).with_order(ByteOrder::Little);
    // A writer has the bound of a reader for valuetypes only.
    value.encode_with(type_code, &known(types), &mut w).unwrap();
    w.to_bytes()
}

#[test]
fn a_value_may_be_as_deep_as_in_generated_code() {
    let types = types();
    for (name, begin, end, leaf) in [
        ("Node", r#"{"below":["#, "]}", r#"{"below":[]}"#),
        ("Link", r#"{"next":"#, "}", r#"{"next":null}"#),
    ] {
        let type_code = types.by_id(&format!("IDL:{name}:1.0")).unwrap();
        let json = nested(DEPTH_MAX, begin, end, leaf);
        let octets = encoded(&types, &json, type_code);
        let mut r = Reader::new(&octets, ByteOrder::Little);
        let value = Value::decode_with(type_code, &known(&types), &mut r).unwrap();
        let shown = to_json(&types, &value, type_code).unwrap();
        assert_eq!(shown.to_string(), json, "{name}");
    }
    let node = types.by_id("IDL:Node:1.0").unwrap();
    let json = nested(DEPTH_MAX + 1, r#"{"below":["#, "]}", r#"{"below":[]}"#);
    let octets = encoded(&types, &json, node);
    let mut r = Reader::new(&octets, ByteOrder::Little);
    let refused = Value::decode_with(node, &known(&types), &mut r);
    assert_eq!(refused, Err(DecodeError::TooDeep { max: 64 }));
    let link = types.by_id("IDL:Link:1.0").unwrap();
    let json = nested(DEPTH_MAX + 1, r#"{"next":"#, "}", r#"{"next":null}"#);
    let value = from_json(&types, &parse(&json).unwrap(), link).unwrap();
    let mut w = Writer::new(Vec::new(), 1 << 20);
    assert!(value.encode_with(link, &known(&types), &mut w).is_err());
}

#[test]
fn an_any_has_the_same_bound_less_its_own_level() {
    let types = types();
    let node = types.by_id("IDL:Node:1.0").unwrap();
    for (depth, is_read) in [(DEPTH_MAX - 1, true), (DEPTH_MAX, false)] {
        let json = nested(depth, r#"{"below":["#, "]}", r#"{"below":[]}"#);
        let mut w = Writer::new(Vec::new(), 1 << 20).with_order(ByteOrder::Little);
        node.encode(&mut w).unwrap();
        w.align(4).unwrap();
        w.octets(&encoded(&types, &json, node)).unwrap();
        let octets = w.to_bytes();
        let any = Any::decode(&mut Reader::new(&octets, ByteOrder::Little));
        assert_eq!(any.is_ok(), is_read, "{depth}: {any:?}");
    }
}

/// A type that encloses itself with fifty structs between.
fn hostile() -> TypeCode {
    let mut inner = TypeCode::sequence(TypeCode::recursive("IDL:S:1.0"), 0);
    for place in 0..50 {
        let id = format!("IDL:S{place}:1.0");
        inner = TypeCode::structure(&id, "S", [("m", inner)]);
    }
    TypeCode::structure("IDL:S:1.0", "S", [("m", inner)])
}

#[test]
fn types_of_a_peer_do_not_use_up_a_stack() {
    let type_code = hostile();
    let mut w = Writer::new(Vec::new(), 1 << 20).with_order(ByteOrder::Little);
    type_code.encode(&mut w).unwrap();
    w.align(4).unwrap();
    for _ in 0..1000 {
        w.primitive(1u32).unwrap();
    }
    let octets = w.to_bytes();
    drop(w);
    let types = Arc::new(types());
    let json = nested(DEPTH_MAX, r#"{"below":["#, "]}", r#"{"below":[]}"#);
    let node = types.by_id("IDL:Node:1.0").unwrap().clone();
    let deep = encoded(&types, &json, &node);
    // An application may give its lanes a small stack.
    let run = |stack: usize, work: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().stack_size(stack);
        thread.spawn(work).unwrap().join().unwrap();
    };
    let own = octets.clone();
    let read_any = move || {
        let any = Any::decode(&mut Reader::new(&own, ByteOrder::Little));
        assert!(matches!(any, Err(DecodeError::TooDeep { .. })), "{any:?}");
    };
    run(STACK_SMALL, Box::new(read_any));
    let read_value = move || {
        let mut r = Reader::new(&octets, ByteOrder::Little);
        TypeCode::decode(&mut r).unwrap();
        r.align(4).unwrap();
        let value = Value::decode(&type_code, &mut r);
        assert!(matches!(value, Err(DecodeError::TooDeep { .. })));
    };
    run(STACK_SMALL, Box::new(read_value));
    let to_text = move || {
        let mut r = Reader::new(&deep, ByteOrder::Little);
        let value = Value::decode_with(&node, &known(&types), &mut r).unwrap();
        to_json(&types, &value, &node).unwrap();
    };
    run(4 * STACK_SMALL, Box::new(to_text));
}

#[test]
fn aliases_of_a_peer_do_not_use_up_a_stack() {
    // A type that encloses itself with fifty aliases between.
    let recursive = TypeCode::sequence(TypeCode::recursive("IDL:S:1.0"), 0);
    let aliases = (0..50).fold(recursive, |inner, place| {
        TypeCode::alias(&format!("IDL:A{place}:1.0"), "A", inner)
    });
    let type_code = TypeCode::structure("IDL:S:1.0", "S", [("m", aliases)]);
    let mut octets = 1u32.to_le_bytes().repeat(DEPTH_MAX - 1);
    octets.extend(0u32.to_le_bytes());
    let to_text_and_bytes = move || {
        let mut r = Reader::new(&octets, ByteOrder::Little);
        let value = Value::decode(&type_code, &mut r).unwrap();
        let json = nested(DEPTH_MAX, r#"{"m":["#, "]}", r#"{"m":[]}"#);
        let shown = to_json(&types(), &value, &type_code).unwrap();
        assert_eq!(shown.to_string(), json);
        let mut w = Writer::new(Vec::new(), 1 << 20).with_order(ByteOrder::Little);
        value.encode(&type_code, &mut w).unwrap();
        assert_eq!(w.to_bytes(), octets);
    };
    let thread = std::thread::Builder::new().stack_size(4 * STACK_SMALL);
    thread.spawn(to_text_and_bytes).unwrap().join().unwrap();
}

/// The stack on which types of a peer are read.
const STACK_SMALL: usize = 256 << 10;

#[test]
fn json_is_bounded_too() {
    let open = "[".repeat(513);
    let refused = parse::<serde_json::Value>(&open).unwrap_err();
    assert!(refused.to_string().contains("512 deep"), "{refused}");
    let text = format!(r#"["{open}\"{open}"]"#);
    assert!(
        parse::<serde_json::Value>(&text).is_ok(),
        "brackets of a string"
    );
}
