//! TypeCodes and anys: golden vectors, round trips and refusals.

use rtorb_wire::any::{ExtractError, State, Value};
use rtorb_wire::cdr::{BoundedSequence, BoundedString, ByteOrder, Fixed, LongDouble, WString};
use rtorb_wire::type_code::{Kind, Named, Shape};
use rtorb_wire::{
    Any, Decode, DecodeError, Encode, EncodeError, Reader, TextCodeSet, TypeCode, Typed, Writer,
    valuetype,
};
use std::sync::Arc;

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|octet| u8::from_str_radix(octet, 16).unwrap())
        .collect()
}

fn octets<T: Encode>(value: &T, order: ByteOrder) -> Vec<u8> {
    let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
    value.encode(&mut w).unwrap();
    w.to_bytes()
}

fn read<T: Decode>(octets: &[u8], order: ByteOrder) -> Result<T, DecodeError> {
    T::decode(&mut Reader::new(octets, order))
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct P {
    x: i32,
    y: f64,
}
rtorb_wire::fixed_layout!(P { x: i32, y: f64 });

impl Typed for P {
    fn type_code() -> TypeCode {
        let members = [("x", TypeCode::LONG), ("y", TypeCode::DOUBLE)];
        TypeCode::structure("IDL:P:1.0", "P", members)
    }
}

fn node() -> TypeCode {
    let kids = TypeCode::sequence(TypeCode::recursive("IDL:Node:1.0"), 0);
    TypeCode::structure("IDL:Node:1.0", "Node", [("kids", kids)])
}

//= GIOP 1.2 §15.3.5.2
//% test
#[test]
fn v17_any_of_a_long() {
    let v17 = hex("03 00 00 00 2a 00 00 00");
    let any = Any::from_value(&42i32).unwrap();
    assert_eq!(octets(&any, ByteOrder::Little), v17);
    let came: Any = read(&v17, ByteOrder::Little).unwrap();
    assert_eq!(came, any);
    assert_eq!(came.extract::<i32>(), Ok(42));
    assert_eq!(came.extract::<u32>(), Err(ExtractError::WrongType));
}

//= GIOP 1.2 §15.3.5.1
//% test
//= GIOP 1.2 §15.3.3
//% test
#[test]
fn v18_any_of_a_struct() {
    let v18 = hex(
        "0f 00 00 00 38 00 00 00 01 00 00 00 0a 00 00 00 49 44 4c 3a 50 3a 31 2e 30 00 00 00 02 00 00 00
         50 00 00 00 02 00 00 00 02 00 00 00 78 00 00 00 03 00 00 00 02 00 00 00 79 00 00 00 07 00 00 00
         05 00 00 00 00 00 00 00 00 00 00 00 00 00 f8 3f",
    );
    let p = P { x: 5, y: 1.5 };
    let any = Any::from_value(&p).unwrap();
    assert_eq!(octets(&any, ByteOrder::Little), v18);
    let came: Any = read(&v18, ByteOrder::Little).unwrap();
    assert_eq!(came.extract::<P>(), Ok(p));
    let members = vec![Value::Long(5), Value::Double(1.5)];
    assert_eq!(came.value(), Ok(Value::Members(members)));
    assert_eq!(
        format!("{:#}", came.type_code()),
        "struct P { long x; double y; }"
    );
}

//= GIOP 1.2 §15.3.5.1
//% test
#[test]
fn v19_recursive_type_code() {
    let v19 = hex(
        "0f 00 00 00 4c 00 00 00 01 00 00 00 0d 00 00 00 49 44 4c 3a 4e 6f 64 65 3a 31 2e 30 00 00 00 00
         05 00 00 00 4e 6f 64 65 00 00 00 00 01 00 00 00 05 00 00 00 6b 69 64 73 00 00 00 00 13 00 00 00
         10 00 00 00 01 00 00 00 ff ff ff ff b4 ff ff ff 00 00 00 00",
    );
    assert_eq!(octets(&node(), ByteOrder::Little), v19);
    let came: TypeCode = read(&v19, ByteOrder::Little).unwrap();
    assert_eq!(came, node());
    assert_eq!(format!("{came:#}"), "struct Node { sequence<Node> kids; }");
}

#[test]
fn a_recursive_value_goes_through_an_any() {
    let leaf = Value::Members(vec![Value::Elements(vec![])]);
    let tree = Value::Members(vec![Value::Elements(vec![leaf.clone(), leaf])]);
    let any = Any::from_parts(node(), &tree).unwrap();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let came: Any = read(&octets(&any, order), order).unwrap();
        assert_eq!(came, any);
        assert_eq!(came.value(), Ok(tree.clone()));
    }
}

#[test]
fn every_kind_of_value_comes_back() {
    fn comes_back<T: Typed + Encode + Decode + PartialEq + core::fmt::Debug>(value: &T) {
        let any = Any::from_value(value).unwrap();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for start in 0..8u8 {
                let mut w = Writer::new(Vec::new(), 1 << 16).with_order(order);
                w.octets(&vec![0xee; usize::from(start)]).unwrap();
                any.encode(&mut w).unwrap();
                let octets = w.to_bytes();
                let mut r = Reader::new(&octets, order);
                r.take(usize::from(start)).unwrap();
                let came = Any::decode(&mut r).unwrap();
                assert_eq!(r.remaining(), 0);
                assert_eq!(came.extract::<T>().as_ref(), Ok(value));
                let dynamic = Any::from_parts(T::type_code(), &came.value().unwrap()).unwrap();
                assert_eq!(dynamic.extract::<T>().as_ref(), Ok(value));
            }
        }
    }
    comes_back(&7u8);
    comes_back(&-7i16);
    comes_back(&u64::MAX);
    comes_back(&1.5f32);
    comes_back(&true);
    comes_back(&'x');
    comes_back(&'\u{e9}');
    comes_back(&"text".to_owned());
    comes_back(&WString::from("w\u{f6}rt\u{1f600}"));
    comes_back(&LongDouble::from(-2.5));
    comes_back(&Fixed::<5, 2>::new(-12_345).unwrap());
    comes_back(&vec![1u8, 2, 3]);
    comes_back(&vec![1i64, -2, 3]);
    comes_back(&vec!["a".to_owned(), String::new()]);
    comes_back(&[[1u16, 2, 3], [4, 5, 6]]);
    comes_back(&vec![P { x: 1, y: 2.0 }, P { x: 3, y: 4.0 }]);
    comes_back(&BoundedString::<4>::try_from("four").unwrap());
    comes_back(&BoundedSequence::<i32, 2>::try_from(vec![1, 2]).unwrap());
    comes_back(&TypeCode::sequence(node(), 3));
    comes_back(&Any::from_value(&Any::from_value(&"inner".to_owned()).unwrap()).unwrap());
    comes_back(&vec![
        Any::from_value(&1u8).unwrap(),
        Any::from_value(&2.5f64).unwrap(),
    ]);
}

#[test]
fn latin_1_text_survives_both_code_sets() {
    let any = Any::from_value(&"caf\u{e9}".to_owned()).unwrap();
    // A Latin-1 connection is the default.
    let came: Any = read(&octets(&any, ByteOrder::Little), ByteOrder::Little).unwrap();
    assert_eq!(came.extract::<String>().unwrap(), "caf\u{e9}");
    assert_eq!(came, any);
    let greek = Any::from_value(&"\u{3b1}".to_owned()).unwrap();
    let mut w = Writer::new(Vec::new(), 64);
    let refused = Err(EncodeError::NotInCodeSet {
        character: 0x3b1,
        code_set: TextCodeSet::Latin1,
        argument: None,
    });
    assert_eq!(greek.encode(&mut w), refused);
}

//= GIOP 1.2 §15.3.2.3
//% test
#[test]
fn unions_select_by_label_and_default() {
    let color = TypeCode::enumeration("IDL:C:1.0", "C", ["red", "green", "blue"]);
    let members = [
        (0, "r", TypeCode::OCTET),
        (1, "g", TypeCode::STRING),
        (0, "d", TypeCode::DOUBLE),
    ];
    let union = TypeCode::union("IDL:U:1.0", "U", color, Some(2), members);
    assert_eq!(
        format!("{union:#}"),
        "union U switch (C) { case red: octet r; case green: string g; default: double d; }"
    );
    for (discriminator, value) in [
        (0, Value::Octet(9)),
        (1, Value::String("x".into())),
        (2, Value::Double(0.5)),
    ] {
        let value = Value::Union {
            discriminator,
            value: Some(Box::new(value)),
        };
        let any = Any::from_parts(union.clone(), &value).unwrap();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let came: Any = read(&octets(&any, order), order).unwrap();
            assert_eq!(came.value(), Ok(value.clone()));
        }
    }
    let wrong = Value::Union {
        discriminator: 1,
        value: Some(Box::new(Value::Octet(1))),
    };
    assert!(Any::from_parts(union, &wrong).is_err());
}

//= GIOP 1.2 §15.3.7
//% test
#[test]
fn an_abstract_interface_is_a_reference_or_a_null_value() {
    // The TypeCode ends at a multiple of 4.
    let named = Named::new("IDL:A:1.0", "Abc");
    let type_code = TypeCode::from_shape(Shape::Named(Kind::AbstractInterface, named.into()));
    let kind = octets(&type_code, ByteOrder::Little);
    let reference = hex("01 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00");
    for value in [reference, hex("00 00 00 00 00 00 00 00")] {
        let sent = [&kind[..], &value].concat();
        let any: Any = read(&sent, ByteOrder::Little).unwrap();
        assert_eq!(any.type_code(), &type_code);
        assert_eq!(octets(&any, ByteOrder::Little), sent);
    }
    let other = [&kind[..], &hex("00 00 00 00 02 ff ff 7f")].concat();
    assert!(read::<Any>(&other, ByteOrder::Little).is_err());
}

//= GIOP 1.2 §15.3.1.5
//% test
#[test]
fn every_other_byte_than_0_is_true() {
    let read = [0, 1, 7].map(|byte| read::<bool>(&[byte], ByteOrder::Little).unwrap());
    assert_eq!(read, [false, true, true]);
    let sent = octets(&[true, false], ByteOrder::Little);
    assert_eq!(sent, [1, 0]);
}

//= GIOP 1.2 §15.3.5.5
//% test
#[test]
fn an_exception_in_an_any_begins_with_its_repository_id() {
    let type_code = TypeCode::exception("IDL:E:1.0", "E", [("code", TypeCode::LONG)]);
    let any = Any::from_parts(type_code, &Value::Members(vec![Value::Long(7)])).unwrap();
    let mut r = any.reader();
    assert_eq!(r.str().unwrap(), "IDL:E:1.0");
    assert_eq!(r.primitive::<i32>().unwrap(), 7);
    let came: Any = read(&octets(&any, ByteOrder::Big), ByteOrder::Big).unwrap();
    assert_eq!(came, any);
}

//= CORBA 3 §10.7.1
//% test
#[test]
fn equivalence_ignores_aliases_and_names() {
    let alias = TypeCode::alias("IDL:Len:1.0", "Len", TypeCode::LONG);
    assert!(alias.equivalent(&TypeCode::LONG));
    assert!(!alias.equal(&TypeCode::LONG));
    let unnamed = TypeCode::structure("", "", [("", TypeCode::LONG), ("", TypeCode::DOUBLE)]);
    assert!(P::type_code().equivalent(&unnamed));
    assert!(!P::type_code().equal(&unnamed));
    let other = TypeCode::structure(
        "IDL:Q:1.0",
        "P",
        [("x", TypeCode::LONG), ("y", TypeCode::DOUBLE)],
    );
    assert!(!P::type_code().equivalent(&other));
}

#[test]
fn an_indirection_to_a_finished_type_is_read() {
    // struct S { P a; P b; } with the second P as an indirection to the first.
    let twice = TypeCode::structure(
        "IDL:S:1.0",
        "S",
        [("a", P::type_code()), ("b", P::type_code())],
    );
    let plain = octets(&twice, ByteOrder::Little);
    let p = octets(&P::type_code(), ByteOrder::Little);
    let first = plain.windows(p.len()).position(|window| window == p);
    let first = first.unwrap();
    let second = plain.len() - p.len();
    let mut short = plain[..second].to_vec();
    short.extend(0xffff_ffffu32.to_le_bytes());
    let offset = first as i32 - (second as i32 + 4);
    short.extend(offset.to_le_bytes());
    let size = (short.len() - 8) as u32;
    short[4..8].copy_from_slice(&size.to_le_bytes());
    assert_eq!(read::<TypeCode>(&short, ByteOrder::Little).unwrap(), twice);
}

#[test]
fn hostile_type_codes_are_refused() {
    // An indirection at the very beginning, to itself, and forward.
    for offset in [-4i32, 0, 4, -8, i32::MIN, i32::MAX] {
        let mut octets = 0xffff_ffffu32.to_le_bytes().to_vec();
        octets.extend(offset.to_le_bytes());
        assert!(read::<TypeCode>(&octets, ByteOrder::Little).is_err());
    }
    // Numbers of too many digits, and of one byte and a very long text.
    for (digits, scale) in [(32, 0), (1, i16::MAX), (1, i16::MIN)] {
        let fixed = octets(&TypeCode::fixed(digits, scale), ByteOrder::Little);
        assert!(read::<TypeCode>(&fixed, ByteOrder::Little).is_err());
    }
    // Nested without an end.
    let mut deep = TypeCode::LONG;
    for _ in 0..100 {
        deep = TypeCode::sequence(deep, 0);
    }
    let octets = octets(&deep, ByteOrder::Little);
    assert!(matches!(
        read::<TypeCode>(&octets, ByteOrder::Little),
        Err(DecodeError::TooDeep { .. })
    ));
}

/// Appends a type with that id, an empty name, and the parameters behind them that `rest` appends, which gets the position of the type.
fn push_named(kind: Kind, id: &str, out: &mut Vec<u8>, rest: impl FnOnce(&mut Vec<u8>, usize)) {
    push_complex(kind, out, |out, start| {
        push_text(id, out);
        push_text("", out);
        rest(out, start);
    });
}

fn push_complex(kind: Kind, out: &mut Vec<u8>, rest: impl FnOnce(&mut Vec<u8>, usize)) {
    out.resize(out.len().next_multiple_of(4), 0);
    let start = out.len();
    out.extend((kind as u32).to_le_bytes());
    out.extend([0; 4]);
    out.extend(1u32.to_le_bytes());
    rest(out, start);
    let size = (out.len() - start - 8) as u32;
    out[start + 4..start + 8].copy_from_slice(&size.to_le_bytes());
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend((text.len() as u32 + 1).to_le_bytes());
    out.extend(text.as_bytes());
    out.push(0);
}

fn push_indirection(to: usize, out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(u32::MAX.to_le_bytes());
    let offset = to as i32 - out.len() as i32;
    out.extend(offset.to_le_bytes());
}

fn push_count(count: u32, out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(count.to_le_bytes());
}

/// Appends a sequence of that element, and returns the position of the sequence.
fn push_sequence(out: &mut Vec<u8>, element: impl FnOnce(&mut Vec<u8>)) -> usize {
    let mut at = 0;
    push_complex(Kind::Sequence, out, |out, start| {
        at = start;
        element(out);
        push_count(0, out);
    });
    at
}

/// A struct All of a struct A, and of `uses` members of a type in A. `members` appends the members of A, which gets the position of A, and
/// returns the position of that type.
fn uses_of_part(uses: u32, members: impl FnOnce(&mut Vec<u8>, usize) -> usize) -> Vec<u8> {
    let mut octets = Vec::new();
    push_named(Kind::Struct, "All", &mut octets, |out, _| {
        push_count(1 + uses, out);
        push_text("", out);
        let mut part = 0;
        push_named(Kind::Struct, "A", out, |out, a| part = members(out, a));
        for _ in 0..uses {
            push_text("", out);
            push_indirection(part, out);
        }
    });
    octets
}

#[test]
fn a_part_of_a_recursive_type_is_a_type_outside_of_it() {
    // struct A { sequence<A> kids; }; struct All { A a; sequence<A> more; }
    let mut octets = uses_of_part(1, |out, a| {
        push_count(1, out);
        push_text("", out);
        push_sequence(out, |out| push_indirection(a, out))
    });
    // An A without kids, and one more of those.
    for count in [0, 1, 0] {
        push_count(count, &mut octets);
    }
    let any: Any = read(&octets, ByteOrder::Little).unwrap();
    let kids = TypeCode::sequence(TypeCode::recursive("A"), 0);
    let a = TypeCode::structure("A", "", [("", kids)]);
    let more = TypeCode::sequence(a.clone(), 0);
    let all = TypeCode::structure("All", "", [("", a), ("", more)]);
    assert_eq!(any.type_code(), &all);
    let leaf = Value::Members(vec![Value::Elements(vec![])]);
    let more = Value::Elements(vec![leaf.clone()]);
    assert_eq!(any.value(), Ok(Value::Members(vec![leaf, more])));
}

#[test]
fn a_part_of_two_recursive_types_is_a_type_outside_of_them() {
    // struct A { sequence<struct B { sequence<A> a; sequence<B> b; }> bs; }; struct All { A a; sequence<B> more; }, which is the type of B::b.
    let mut octets = uses_of_part(1, |out, a| {
        let mut in_b = 0;
        push_count(1, out);
        push_text("", out);
        push_sequence(out, |out| {
            push_named(Kind::Struct, "B", out, |out, b| {
                push_count(2, out);
                push_text("", out);
                push_sequence(out, |out| push_indirection(a, out));
                push_text("", out);
                in_b = push_sequence(out, |out| push_indirection(b, out));
            });
        });
        in_b
    });
    // An A of no B, and one more B, which has no A and no B.
    for count in [0, 1, 0, 0] {
        push_count(count, &mut octets);
    }
    let any: Any = read(&octets, ByteOrder::Little).unwrap();
    let of = |element| TypeCode::sequence(element, 0);
    let b = |a| {
        let members = [("", of(a)), ("", of(TypeCode::recursive("B")))];
        TypeCode::structure("B", "", members)
    };
    let a = TypeCode::structure("A", "", [("", of(b(TypeCode::recursive("A"))))]);
    let members = [("", a.clone()), ("", of(b(a)))];
    assert_eq!(any.type_code(), &TypeCode::structure("All", "", members));
    let none = || Value::Elements(vec![]);
    let more = Value::Elements(vec![Value::Members(vec![none(), none()])]);
    let a = Value::Members(vec![none()]);
    assert_eq!(any.value(), Ok(Value::Members(vec![a, more])));
}

#[test]
fn parts_of_a_recursive_type_are_not_copied_without_end() {
    let long = "x".repeat(1000);
    let read_uses = |uses: u32| {
        let octets = uses_of_part(uses, |out, a| {
            push_count(1, out);
            push_text("", out);
            push_sequence(out, |out| {
                push_named(Kind::Struct, &long, out, |out, _| {
                    push_count(1, out);
                    push_text("", out);
                    push_sequence(out, |out| push_indirection(a, out));
                });
            })
        });
        read::<TypeCode>(&octets, ByteOrder::Little)
    };
    assert!(read_uses(5).is_ok());
    let refused = read_uses(1000);
    assert!(matches!(refused, Err(DecodeError::BadTypeCode { .. })));
}

#[test]
fn a_string_behind_a_recursive_type_refers_to_none() {
    // struct A { sequence<A> kids; string text; struct Long { string text; } part; }; struct All { A a; Long part; and so on; }
    let long = "x".repeat(1000);
    let uses = 200;
    let octets = uses_of_part(uses, |out, a| {
        let mut part = 0;
        push_count(3, out);
        push_text("", out);
        push_sequence(out, |out| push_indirection(a, out));
        push_text("", out);
        push_count(Kind::String as u32, out);
        let text = out.len() - 4;
        push_count(0, out);
        push_text("", out);
        push_named(Kind::Struct, &long, out, |out, at| {
            part = at;
            push_count(1, out);
            push_text("", out);
            push_indirection(text, out);
        });
        part
    });
    // If it referred to A, each use of the part would be a copy, and so many are refused.
    let came: TypeCode = read(&octets, ByteOrder::Little).unwrap();
    let Shape::Struct(all) = came.shape() else {
        panic!("{came:?}")
    };
    let part = TypeCode::structure(&long, "", [("", TypeCode::STRING)]);
    assert_eq!(all.members[uses as usize].type_code, part);
}

#[test]
fn contents_that_are_too_large_are_larger_than_their_limit() {
    // An any of a TypeCode: a struct of two members of the same struct, the second as an indirection, and so on.
    fn doubled(depth: u32, out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        push_named(Kind::Struct, "S", out, |out, start| {
            at = start;
            push_count(2, out);
            push_text("", out);
            let inner = if depth == 0 {
                out.resize(out.len().next_multiple_of(4), 0);
                let inner = out.len();
                push_count(Kind::Long as u32, out);
                inner
            } else {
                doubled(depth - 1, out)
            };
            push_text("", out);
            if depth == 0 {
                push_count(Kind::Long as u32, out);
            } else {
                push_indirection(inner, out);
            }
        });
        at
    }
    let mut octets = Vec::new();
    push_count(Kind::TypeCode as u32, &mut octets);
    doubled(12, &mut octets);
    let limit = octets.len() * 64 + 4096;
    match read::<Any>(&octets, ByteOrder::Little) {
        Err(DecodeError::TooLarge { bytes, limit: said }) => {
            assert_eq!(said, limit);
            assert!(bytes > limit as u64, "{bytes} exceed {limit}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_alias_that_leads_to_itself_is_refused() {
    let refused = |octets: &[u8]| {
        let came = read::<TypeCode>(octets, ByteOrder::Little);
        assert!(
            matches!(came, Err(DecodeError::BadTypeCode { .. })),
            "{came:?}"
        );
    };
    let mut alone = Vec::new();
    push_named(Kind::Alias, "A", &mut alone, |out, a| {
        push_indirection(a, out);
    });
    refused(&alone);
    // The alias between them may have no id.
    for id in ["B", ""] {
        let mut chain = Vec::new();
        push_named(Kind::Alias, "A", &mut chain, |out, a| {
            push_named(Kind::Alias, id, out, |out, _| push_indirection(a, out));
        });
        refused(&chain);
    }
    // An alias with the id of a struct around it: the id would name the alias.
    let mut same_id = Vec::new();
    push_named(Kind::Struct, "S", &mut same_id, |out, s| {
        push_count(2, out);
        push_text("", out);
        let mut to_struct = 0;
        push_named(Kind::Alias, "A", out, |out, a| {
            to_struct = a;
            push_indirection(s, out);
        });
        push_text("", out);
        push_named(Kind::Alias, "S", out, |out, _| {
            push_indirection(to_struct, out);
        });
    });
    refused(&same_id);
    // struct S { A next; } where A is an alias of S.
    let mut legal = Vec::new();
    push_named(Kind::Struct, "S", &mut legal, |out, s| {
        push_count(1, out);
        push_text("", out);
        push_named(Kind::Alias, "A", out, |out, _| push_indirection(s, out));
    });
    let came = read::<TypeCode>(&legal, ByteOrder::Little).unwrap();
    let next = TypeCode::alias("A", "", TypeCode::recursive("S"));
    assert_eq!(came, TypeCode::structure("S", "", [("", next)]));
}

#[test]
fn a_type_may_refer_to_an_alias_around_it() {
    // typedef sequence<struct E { A inner; }> A;
    let mut sent = Vec::new();
    push_named(Kind::Alias, "A", &mut sent, |out, a| {
        push_sequence(out, |out| {
            push_named(Kind::Struct, "E", out, |out, _| {
                push_count(1, out);
                push_text("", out);
                push_indirection(a, out);
            });
        });
    });
    // An E without any, and one with such an E.
    for count in [2, 0, 1, 0] {
        push_count(count, &mut sent);
    }
    let any: Any = read(&sent, ByteOrder::Little).unwrap();
    let e = |inner| Value::Members(vec![Value::Elements(inner)]);
    let value = Value::Elements(vec![e(vec![]), e(vec![e(vec![])])]);
    assert_eq!(any.value(), Ok(value.clone()));
    assert_eq!(octets(&any, ByteOrder::Little), sent);
    let made = Any::from_parts(any.type_code().clone(), &value);
    assert_eq!(made, Ok(any));
}

#[test]
fn a_type_that_stands_for_too_many_is_not_sent() {
    let type_code = (0..40).fold(TypeCode::LONG, |inner, level| {
        let id = format!("IDL:S{level}:1.0");
        TypeCode::structure(&id, "S", [("a", inner.clone()), ("b", inner)])
    });
    assert_eq!(type_code.nodes(), u32::MAX);
    let refused = Err(EncodeError::TypeCodeTooLarge {
        max: TypeCode::NODES_MAX,
    });
    let mut w = Writer::new(Vec::new(), usize::MAX >> 1);
    assert_eq!(type_code.encode(&mut w), refused);
    let any = Any::from_parts(TypeCode::TYPE_CODE, &Value::TypeCode(type_code.clone()));
    assert_eq!(any.map(drop), refused);
    assert!(type_code == type_code.clone() && type_code.equivalent(&type_code));
}

#[test]
fn a_long_text_of_a_type_is_refused() {
    let text = "x".repeat(1024);
    let member = |name: &str| TypeCode::structure("IDL:S:1.0", "S", [(name, TypeCode::LONG)]);
    let named = |id: &str, name: &str| TypeCode::object_reference(id, name);
    let comes = |type_code: &TypeCode| {
        read::<TypeCode>(&octets(type_code, ByteOrder::Little), ByteOrder::Little)
    };
    for allowed in [named(&text, ""), named("", &text), member(&text)] {
        assert_eq!(comes(&allowed), Ok(allowed));
    }
    let long = text + "x";
    for refused in [
        named(&long, ""),
        named("", &long),
        member(&long),
        TypeCode::enumeration("IDL:E:1.0", "E", [&*long]),
    ] {
        let (count, bound) = (1025, 1024);
        assert_eq!(
            comes(&refused),
            Err(DecodeError::OverBound { count, bound })
        );
    }
}

#[test]
fn types_without_bytes_are_refused_as_members() {
    let nothing = TypeCode::structure("IDL:N:1.0", "N", []);
    let mut huge = TypeCode::array(nothing.clone(), u32::MAX);
    for _ in 0..8 {
        huge = TypeCode::array(huge, u32::MAX);
    }
    let type_code = octets(&huge, ByteOrder::Little);
    assert!(matches!(
        read::<Any>(&type_code, ByteOrder::Little),
        Err(DecodeError::BadTypeCode { .. })
    ));
    assert_eq!(
        read::<TypeCode>(&octets(&nothing, ByteOrder::Little), ByteOrder::Little),
        Ok(nothing)
    );
}

#[test]
fn a_type_that_grows_by_doubling_is_refused() {
    // struct of two members, the second an indirection to the first, thirty times over.
    fn doubled(depth: u32, out: &mut Vec<u8>) {
        let start = out.len();
        if depth == 0 {
            out.extend(3u32.to_le_bytes());
            return;
        }
        out.extend((Kind::Struct as u32).to_le_bytes());
        out.extend([0; 4]);
        let body = out.len();
        out.extend(1u32.to_le_bytes());
        for _ in 0..2 {
            out.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        }
        out.extend(2u32.to_le_bytes());
        out.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        let inner = out.len();
        doubled(depth - 1, out);
        out.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        if depth == 1 {
            out.extend(3u32.to_le_bytes());
        } else {
            out.extend(0xffff_ffffu32.to_le_bytes());
            let offset = inner as i32 - out.len() as i32;
            out.extend(offset.to_le_bytes());
        }
        let size = (out.len() - body) as u32;
        out[start + 4..body].copy_from_slice(&size.to_le_bytes());
    }
    let mut few = Vec::new();
    doubled(3, &mut few);
    let few: TypeCode = read(&few, ByteOrder::Little).unwrap();
    assert!(matches!(few.shape(), Shape::Struct(_)));
    let mut many = Vec::new();
    doubled(30, &mut many);
    assert!(matches!(
        read::<TypeCode>(&many, ByteOrder::Little),
        Err(DecodeError::BadTypeCode { .. })
    ));
}

/// `valuetype Base { long x; }`, `valuetype Derived : Base { Base other; }`, and a box of a string.
fn valuetypes() -> [TypeCode; 3] {
    let base = valuetype::type_code(
        "IDL:Base:1.0",
        "Base",
        0,
        TypeCode::NULL,
        [("x", TypeCode::LONG, true)],
    );
    let own = [("other", base.clone(), true)];
    let derived = valuetype::type_code("IDL:Derived:1.0", "Derived", 3, base.clone(), own);
    let text = valuetype::box_type_code("IDL:Text:1.0", "Text", TypeCode::STRING);
    [base, derived, text]
}

fn state(id: &str, members: Vec<Value>) -> Arc<State> {
    Arc::new(State {
        repository_id: id.into(),
        members,
    })
}

#[test]
fn a_shared_valuetype_is_compared_once() {
    // Each has the one before twice.
    let shared = |innermost| {
        (0..60).fold(innermost, |inner: Value, _| {
            Value::Valuetype(Some(state("IDL:Twice:1.0", vec![inner.clone(), inner])))
        })
    };
    let null = || shared(Value::Valuetype(None));
    let (one, same) = (null(), null());
    assert_eq!(one, same);
    assert_ne!(one, shared(Value::Long(1)));
    let pair = Value::Elements(vec![one.clone(), one]);
    assert_eq!(pair, Value::Elements(vec![same, null()]));
    // A NaN does not equal itself, shared or not.
    let not_equal = shared(Value::Double(f64::NAN));
    assert_ne!(not_equal, not_equal.clone());
}

//= GIOP 1.2 §15.3.4
//% test
#[test]
fn valuetypes_go_through_anys_with_null_and_sharing() {
    let [base, derived, text] = valuetypes();
    let shared = Value::Valuetype(Some(state("IDL:Base:1.0", vec![Value::Long(7)])));
    let whole = state("IDL:Derived:1.0", vec![Value::Long(1), shared.clone()]);
    let boxed = state("IDL:Text:1.0", vec![Value::String("t".to_owned())]);
    let members = [
        ("a", base.clone()),
        ("b", base),
        ("c", derived),
        ("d", text),
    ];
    let all = TypeCode::structure("IDL:All:1.0", "All", members);
    let value = Value::Members(vec![
        shared.clone(),
        shared,
        Value::Valuetype(Some(whole)),
        Value::Valuetype(Some(boxed)),
    ]);
    let any = Any::from_parts(all.clone(), &value).unwrap();
    for order in [ByteOrder::Big, ByteOrder::Little] {
        // Once behind an octet, so that the alignment changes.
        for prefix in [0, 1] {
            let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
            w.octets(&[0; 4][..prefix]).unwrap();
            any.encode(&mut w).unwrap();
            let sent = w.to_bytes();
            let mut r = Reader::new(&sent, order);
            r.take(prefix).unwrap();
            let came = Any::decode(&mut r).unwrap();
            assert_eq!((r.remaining(), came.value()), (0, Ok(value.clone())));
            let Ok(Value::Members(members)) = came.value() else {
                panic!("{came:?}")
            };
            let [
                Value::Valuetype(Some(a)),
                Value::Valuetype(Some(b)),
                Value::Valuetype(Some(c)),
                _,
            ] = &members[..]
            else {
                panic!("{members:?}")
            };
            assert!(Arc::ptr_eq(a, b));
            assert!(
                matches!(&c.members[1], Value::Valuetype(Some(other)) if Arc::ptr_eq(a, other))
            );
            // A truncated stream is an error and no panic.
            for end in 0..sent.len() {
                let _ = Any::decode(&mut Reader::new(&sent[..end], order)).map(|any| any.value());
            }
        }
    }
    let null = Value::Members(vec![
        Value::Valuetype(None),
        Value::Valuetype(None),
        Value::Valuetype(None),
        Value::Valuetype(None),
    ]);
    let any = Any::from_parts(all, &null).unwrap();
    assert_eq!(any.value(), Ok(null));
}

#[test]
fn a_derived_valuetype_is_read_if_it_is_known_and_else_truncated() {
    let [base, derived, _] = valuetypes();
    let mut w = Writer::new(Vec::new(), 1 << 20);
    w.begin_value(&["IDL:Derived:1.0", "IDL:Base:1.0"], true)
        .unwrap();
    w.chunk(|w| w.primitive(5i32)).unwrap();
    w.chunk(|w| w.null_value()).unwrap();
    w.end_value(1).unwrap();
    w.primitive(77u8).unwrap();
    let sent = w.to_bytes();
    let mut r = Reader::new(&sent, ByteOrder::NATIVE);
    let truncated = state("IDL:Base:1.0", vec![Value::Long(5)]);
    assert_eq!(
        Value::decode(&base, &mut r),
        Ok(Value::Valuetype(Some(truncated)))
    );
    assert_eq!(r.primitive::<u8>(), Ok(77));
    let known = |id: &str| (id == "IDL:Derived:1.0").then(|| derived.clone());
    let mut r = Reader::new(&sent, ByteOrder::NATIVE);
    let read = Value::decode_with(&base, &known, &mut r).unwrap();
    let whole = state(
        "IDL:Derived:1.0",
        vec![Value::Long(5), Value::Valuetype(None)],
    );
    assert_eq!(read, Value::Valuetype(Some(whole)));
    let mut w = Writer::new(Vec::new(), 1 << 20);
    read.encode_with(&base, &known, &mut w).unwrap();
    let again = w.to_bytes();
    let mut r = Reader::new(&again, ByteOrder::NATIVE);
    assert_eq!(Value::decode_with(&base, &known, &mut r), Ok(read.clone()));
    let mut w = Writer::new(Vec::new(), 1 << 20);
    assert_eq!(read.encode(&base, &mut w), Err(EncodeError::WrongType));
}

#[test]
fn an_indirection_to_a_valuetype_of_another_type_is_refused() {
    let [base, _, text] = valuetypes();
    let pair = TypeCode::structure("IDL:Pair:1.0", "Pair", [("a", text), ("b", base)]);
    let mut w = Writer::new(Vec::new(), 1 << 20);
    let position = w.begin_value(&["IDL:Text:1.0"], false).unwrap();
    w.str("t").unwrap();
    w.value_indirection(position).unwrap();
    let sent = w.to_bytes();
    let read = Value::decode(&pair, &mut Reader::new(&sent, ByteOrder::NATIVE));
    assert_eq!(read, Err(DecodeError::UnknownValue));
}

/// As omniORB sends it: the padding behind a string is part of the chunk, before a value and at the end.
#[test]
fn a_chunk_may_end_with_padding() {
    let [base, ..] = valuetypes();
    let members = [
        ("label", TypeCode::STRING, true),
        ("beside", base, true),
        ("end", TypeCode::STRING, true),
    ];
    let pin = valuetype::type_code("IDL:Pin:1.0", "Pin", 0, TypeCode::NULL, members);
    let mut w = Writer::new(Vec::new(), 1 << 20);
    w.begin_value(&["IDL:Pin:1.0"], true).unwrap();
    let padded = |w: &mut Writer<'_>| {
        w.chunk(|w| {
            w.str("ab")?;
            w.align(4)
        })
    };
    padded(&mut w).unwrap();
    w.begin_value(&["IDL:Base:1.0"], true).unwrap();
    w.chunk(|w| w.primitive(5i32)).unwrap();
    w.end_value(2).unwrap();
    padded(&mut w).unwrap();
    w.end_value(1).unwrap();
    w.primitive(77u8).unwrap();
    let sent = w.to_bytes();
    let mut r = Reader::new(&sent, ByteOrder::NATIVE);
    let text = || Value::String("ab".to_owned());
    let beside = Value::Valuetype(Some(state("IDL:Base:1.0", vec![Value::Long(5)])));
    let whole = state("IDL:Pin:1.0", vec![text(), beside, text()]);
    let read = Value::decode(&pin, &mut r);
    assert_eq!(read, Ok(Value::Valuetype(Some(whole))));
    assert_eq!((r.primitive::<u8>(), r.remaining()), (Ok(77), 0));
}
