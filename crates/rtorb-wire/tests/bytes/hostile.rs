//! Hostile bytes: random ones, and damaged messages, anys and references.

use crate::decoders;
use proptest::collection::vec;
use proptest::prelude::*;
use rtorb_wire::giop::{MessageType, Version, begin_message, end_message};
use rtorb_wire::ior::{
    AttributeLayer, AuthenticationLayer, Component, CompoundSecMech, CsiSecMechList,
    TaggedComponent, component_tag,
};
use rtorb_wire::{Any, ByteOrder, Encode, TypeCode, Writer};

/// Damage: at these places (modulo the length) stands this octet.
fn damage() -> impl Strategy<Value = Vec<(usize, u8)>> {
    vec((any::<usize>(), any::<u8>()), 0..4)
}

fn damaged(octets: &[u8], damage: &[(usize, u8)], keep: usize) -> Vec<u8> {
    let mut octets = octets.to_vec();
    for (at, octet) in damage {
        let at = at % octets.len();
        octets[at] = *octet;
    }
    octets.truncate(keep % (octets.len() + 1));
    octets
}

fn written(any: &Any, order: ByteOrder) -> Vec<u8> {
    let how = order.flag() | 2 << 2;
    let mut w = Writer::new(Vec::new(), 1 << 16).with_order(order);
    any.encode(&mut w).expect("it fits");
    let mut octets = vec![how];
    octets.extend(w.to_bytes());
    octets
}

/// A type with something of everything, recursive in two ways.
fn everything() -> TypeCode {
    let id = "IDL:All:1.0";
    let color = TypeCode::enumeration("IDL:C:1.0", "C", ["red", "green"]);
    let labels = [
        (0, "none", TypeCode::OCTET),
        (1, "some", TypeCode::sequence(TypeCode::recursive(id), 0)),
    ];
    let choice = TypeCode::union("IDL:U:1.0", "U", color.clone(), None, labels);
    TypeCode::structure(
        id,
        "All",
        [
            ("color", color),
            ("choice", choice),
            ("text", TypeCode::string(9)),
            ("wide", TypeCode::WSTRING),
            (
                "matrix",
                TypeCode::array(TypeCode::array(TypeCode::DOUBLE, 2), 2),
            ),
            ("any", TypeCode::ANY),
            ("number", TypeCode::fixed(5, 2)),
            ("more", TypeCode::sequence(TypeCode::recursive(id), 3)),
            ("object", TypeCode::object_reference("IDL:I:1.0", "I")),
        ],
    )
}

/// A list of one security mechanism with that transport.
fn mechanisms(transport: TaggedComponent) -> TaggedComponent {
    let mechanism = CompoundSecMech {
        requires: 0,
        transport,
        authentication: AuthenticationLayer {
            supports: 0,
            requires: 0,
            mechanism: Vec::new(),
            target: Vec::new(),
        },
        attributes: AttributeLayer {
            supports: 0,
            requires: 0,
            authorities: Vec::new(),
            naming_mechanisms: Vec::new(),
            identity_types: 0,
        },
    };
    let list = CsiSecMechList {
        stateful: false,
        mechanisms: vec![mechanism],
    };
    let tagged = Component::CsiSecMechList(list).to_tagged();
    tagged.expect("it has no text")
}

#[test]
fn nested_lists_of_security_mechanisms_are_described_without_recursion() {
    let mut nested = TaggedComponent {
        tag: component_tag::TLS_SEC_TRANS,
        data: vec![0; 12],
    };
    for _ in 0..3000 {
        nested = mechanisms(nested);
    }
    let described = nested.describe();
    assert!(described.starts_with("security mechanisms: component 0x21: "));
    let one = mechanisms(TaggedComponent {
        tag: component_tag::TLS_SEC_TRANS,
        data: vec![0; 12],
    });
    let described = one.describe();
    assert!(
        described.starts_with("security mechanisms: TLS at none"),
        "{described}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_make_no_decoder_panic(octets in vec(any::<u8>(), 0..200)) {
        decoders::values(&octets);
        decoders::any(&octets);
        decoders::reference(&octets);
        decoders::text(&octets);
        decoders::stream(&octets);
    }

    #[test]
    fn random_bodies_make_no_decoder_panic(
        body in vec(any::<u8>(), 0..200),
        kind in 0u8..8,
        minor in 0u8..3,
        flags in 0u8..4,
    ) {
        let version = Version { major: 1, minor };
        let Some(message_type) = MessageType::from_byte(kind, minor) else {
            return Ok(());
        };
        let order = ByteOrder::from_flag(flags);
        let mut w = Writer::new(Vec::new(), 1 << 16).with_order(order);
        begin_message(&mut w, version, message_type).unwrap();
        w.octets(&body).unwrap();
        end_message(&mut w).unwrap();
        let mut message = w.to_bytes();
        message[6] = flags;
        decoders::giop(&message);
        decoders::stream(&message);
        decoders::parts(&message);
    }

    #[test]
    fn damaged_anys_make_no_decoder_panic(
        damage in damage(),
        keep in any::<usize>(),
        big in any::<bool>(),
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let type_code = Any::from_value(&everything()).expect("a TypeCode");
        let list = Any::from_value(&vec![type_code.clone(), type_code]).expect("anys");
        let octets = written(&list, order);
        decoders::any(&octets);
        decoders::any(&damaged(&octets, &damage, keep));
        decoders::any(&damaged(&octets, &damage, octets.len()));
    }
}
