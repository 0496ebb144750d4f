//! The golden references, components, wide strings, decimal numbers and context data.

use rtorb_wire::cdr::{
    ByteOrder, CharCodeSet, Chunk, Fixed, LongDouble, ValueHead, ValueStart, WChar, WString,
};
use rtorb_wire::code_sets::{self, CodeSetComponent, CodeSetComponentInfo};
use rtorb_wire::giop::Version;
use rtorb_wire::giop::contexts::{self, CodeSets, ListenPoint};
use rtorb_wire::ior::{
    Component, ExposedPolicy, IiopProfile, Ior, PriorityBand, PriorityModel, ProfileBody,
    TaggedComponent, TaoEndpoint, TaoUnixEndpoint, UiopProfile, component_tag,
};
use rtorb_wire::{Decode, DecodeError, Encode, EncodeError, Reader, TextCodeSet, Writer};

const V13: &str = "IOR:010000001700000049444c3a546573742f526f756e64747269703a312e3000000100000000000000200000000101020005000000686f73740000a00f06000000616263646566000000000000";
const V15: &str = "IOR:010000001700000049444c3a546573742f526f756e64747269703a312e3000000100000000000000ba0000000101020005000000686f73740000a00f06000000616263646566000004000000000000000800000001000000004f4154010000001800000001000000010001000100000001000105090101000000000002000000340000000100000002000000280000000a0000000100000000000000000000002d0000001000000001000000020000000000aa2aab2aff7f024f415426000000010000000200000005000000686f73740000a00f6400000005000000686f73740000a10fc800";
const V16: &str = "IOR:01000000010000000000000000000000";

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|octet| u8::from_str_radix(octet, 16).unwrap())
        .collect()
}

fn written<T: Encode>(value: &T, minor: u8) -> Vec<u8> {
    let mut w = Writer::new(Vec::new(), 1024)
        .with_order(ByteOrder::Little)
        .with_giop_minor(minor);
    value.encode(&mut w).unwrap();
    w.to_bytes()
}

fn read<T: Decode>(octets: &[u8], minor: u8) -> Result<T, DecodeError> {
    let mut r = Reader::new(octets, ByteOrder::Little).with_giop_minor(minor);
    let value = T::decode(&mut r)?;
    assert_eq!(r.remaining(), 0);
    Ok(value)
}

fn profile(components: Vec<TaggedComponent>) -> IiopProfile {
    IiopProfile {
        version: Version::V1_2,
        host: "host".into(),
        port: 4000,
        object_key: b"abcdef".to_vec(),
        components,
    }
}

fn components() -> Vec<Component> {
    vec![
        Component::OrbType(0x5441_4f00),
        Component::CodeSets(CodeSetComponentInfo {
            char_data: CodeSetComponent {
                native: code_sets::ISO_8859_1,
                conversion: vec![code_sets::UTF_8],
            },
            wchar_data: CodeSetComponent {
                native: code_sets::UTF_16,
                conversion: vec![],
            },
        }),
        Component::Policies(vec![
            ExposedPolicy::PriorityModel {
                model: PriorityModel::ClientPropagated,
                server_priority: 0,
            },
            ExposedPolicy::PriorityBands(vec![
                PriorityBand {
                    low: 0,
                    high: 10922,
                },
                PriorityBand {
                    low: 10923,
                    high: 32767,
                },
            ]),
        ]),
        Component::TaoEndpoints(vec![
            TaoEndpoint {
                host: "host".into(),
                port: 4000,
                priority: 100,
            },
            TaoEndpoint {
                host: "host".into(),
                port: 4001,
                priority: 200,
            },
        ]),
    ]
}

#[test]
fn endpoints_of_a_uiop_profile_have_a_path_and_no_port() {
    let component = Component::TaoUnixEndpoints(vec![
        TaoUnixEndpoint {
            path: "/a".into(),
            priority: 2,
        },
        TaoUnixEndpoint {
            path: "/bc".into(),
            priority: -1,
        },
    ]);
    let tagged = component.to_tagged().unwrap();
    assert_eq!(tagged.tag, component_tag::TAO_ENDPOINTS);
    let expected =
        "01 00 00 00 02 00 00 00 03 00 00 00 2f 61 00 00 02 00 00 00 04 00 00 00 2f 62 63 00 ff ff";
    assert_eq!(tagged.data, hex(expected));
    assert_eq!(Component::from_uiop_tagged(&tagged), Ok(component));
}

//= CORBA 3 §13.6.9
//% test
#[test]
fn v13_reference_without_components() {
    let ior = Ior {
        type_id: "IDL:Test/Roundtrip:1.0".into(),
        profiles: vec![profile(vec![]).to_tagged().unwrap()],
    };
    assert_eq!(ior.to_string(), V13);
    assert_eq!(Ior::parse(V13), Ok(ior));
    let spaced = format!(" {}\n", V13.to_ascii_uppercase());
    assert_eq!(Ior::parse(&spaced).unwrap().to_string(), V13);
}

//= CORBA 3 §13.10.2.4
//% test
//= CORBA 3 §13.6.5
//% test
#[test]
fn v14_components() {
    let golden = [
        "01 00 00 00 00 4f 41 54",
        "01 00 00 00 01 00 01 00 01 00 00 00 01 00 01 05 09 01 01 00 00 00 00 00",
        "01 00 00 00 02 00 00 00 28 00 00 00 0a 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 2d 00 00 00
         10 00 00 00 01 00 00 00 02 00 00 00 00 00 aa 2a ab 2a ff 7f",
        "01 00 00 00 02 00 00 00 05 00 00 00 68 6f 73 74 00 00 a0 0f 64 00 00 00 05 00 00 00 68 6f 73 74
         00 00 a1 0f c8 00",
    ];
    // PriorityModel's value is ten octets on the wire; the vector says so at 0x0c.
    for (component, octets) in components().iter().zip(golden) {
        let tagged = component.to_tagged().unwrap();
        assert_eq!(tagged.data, hex(octets), "{component}");
        assert_eq!(Component::from_tagged(&tagged).as_ref(), Ok(component));
    }
}

//= GIOP 1.2 §15.7.2
//% test
#[test]
fn v15_reference_with_components() {
    let tagged = components()
        .iter()
        .map(|c| c.to_tagged().unwrap())
        .collect();
    let ior = Ior {
        type_id: "IDL:Test/Roundtrip:1.0".into(),
        profiles: vec![profile(tagged).to_tagged().unwrap()],
    };
    assert_eq!(ior.to_string(), V15);
    let came = Ior::parse(V15).unwrap();
    assert_eq!(came, ior);
    let profile = came.iiop_profiles().next().unwrap();
    let lines: Vec<_> = profile
        .components
        .iter()
        .map(TaggedComponent::describe)
        .collect();
    assert_eq!(
        lines,
        [
            "ORB type: TAO",
            "code sets: char ISO 8859-1, also UTF-8; wchar UTF-16",
            "policies: priority of the client, otherwise 0, priority bands 0 to 10922, 10923 to 32767",
            "endpoints: host:4000 for priority 100, host:4001 for priority 200",
        ]
    );
}

//= GIOP 1.2 §15.3.6
//% test
#[test]
fn v16_nil_reference() {
    assert_eq!(Ior::NIL.to_string(), V16);
    assert!(Ior::parse(V16).unwrap().is_nil());
}

#[test]
fn unix_socket_profiles_come_back() {
    let profile = UiopProfile {
        version: Version::V1_2,
        path: "/tmp/orb".into(),
        object_key: b"key".to_vec(),
        components: vec![Component::OrbType(1).to_tagged().unwrap()],
    };
    let tagged = profile.to_tagged().unwrap();
    assert_eq!(
        ProfileBody::from_tagged(&tagged),
        Ok(ProfileBody::Uiop(profile))
    );
    assert_eq!(
        rtorb_wire::ior::object_key(tagged.tag, &tagged.data),
        Ok(&b"key"[..])
    );
}

//= GIOP 1.2 §15.3.2.7
//% test
#[test]
fn v23_to_v25_wide_strings() {
    let text = WString::from("AB");
    let v23 = hex("06 00 00 00 ff fe 41 00 42 00");
    let v24 = hex("04 00 00 00 00 41 00 42");
    let v25 = hex("03 00 00 00 41 00 42 00 00 00");
    assert_eq!(read(&v23, 2), Ok(text.clone()));
    assert_eq!(read(&v24, 2), Ok(text.clone()));
    assert_eq!(read(&v25, 1), Ok(text.clone()));
    assert_eq!(written(&text, 2), v24);
    assert_eq!(written(&text, 1), v25);
    assert_eq!(read::<WString>(&v25, 0), Err(DecodeError::WideInGiop10));
}

//= GIOP 1.2 §15.3.1.6
//% test
#[test]
fn wide_characters_are_read_in_every_form() {
    for octets in ["02 00 41", "04 ff fe 41 00", "04 fe ff 00 41"] {
        assert_eq!(read(&hex(octets), 2), Ok(WChar('A')));
    }
    assert_eq!(read(&hex("41 00"), 1), Ok(WChar('A')));
    assert!(read::<WChar>(&hex("03 00 41 00"), 2).is_err());
}

//= GIOP 1.2 §15.3.2.8
//% test
#[test]
fn v26_and_v27_decimals() {
    let v26 = hex("12 34 5c");
    let v27 = hex("01 23 4d");
    let positive = Fixed::<5, 2>::new(12_345).unwrap();
    let negative = Fixed::<4, 1>::new(-1_234).unwrap();
    assert_eq!(written(&positive, 2), v26);
    assert_eq!(written(&negative, 2), v27);
    assert_eq!(read(&v26, 2), Ok(positive));
    assert_eq!(read(&v27, 2), Ok(negative));
    assert_eq!(positive.to_string(), "123.45");
    assert_eq!(negative.to_string(), "-123.4");
    // The padding of an even number of digits, and a sign that is none.
    assert!(read::<Fixed<4, 1>>(&hex("11 23 4d"), 2).is_err());
    assert!(read::<Fixed<4, 1>>(&hex("01 23 4e"), 2).is_err());
}

#[test]
fn v28_and_v29_context_data() {
    let v28 = hex("01 00 00 00 01 00 00 00 07 00 00 00 63 6c 69 65 6e 74 00 00 88 13");
    let v29 = hex("01 00 00 00 01 00 01 00 09 01 01 00");
    let points = vec![ListenPoint {
        host: "client".into(),
        port: 5000,
    }];
    assert_eq!(contexts::to_data(&points).unwrap(), v28);
    assert_eq!(contexts::from_data(&v28), Ok(points));
    let sets = CodeSets {
        char_data: code_sets::ISO_8859_1,
        wchar_data: code_sets::UTF_16,
    };
    assert_eq!(sets.to_data()[..], v29);
    assert_eq!(CodeSets::from_data(&v29), Ok(sets));
}

//= RT-CORBA 1.2 §Priority Banded Connections
//% test
#[test]
fn other_context_data_comes_back() {
    let data = contexts::priority_range(-3, 400);
    assert_eq!(contexts::decode_priority_range(&data), Ok((-3, 400)));
    let detail = WString::from("why \u{1f600}");
    let data = contexts::to_data(&detail).unwrap();
    assert_eq!(contexts::from_data(&data), Ok(detail));
}

//= GIOP 1.2 §15.3.2.7
//% test
#[test]
fn an_empty_string_of_length_zero_is_read() {
    assert_eq!(read(&hex("00 00 00 00"), 2), Ok(String::new()));
    assert_eq!(written(&String::new(), 2), hex("01 00 00 00 00"));
    assert!(read::<String>(&hex("02 00 00 00 61 62"), 2).is_err());
}

//= GIOP 1.2 §15.3.1.3
//% test
#[test]
fn binary128_has_the_bits_of_ieee_754() {
    assert_eq!(LongDouble::from(1.0).0, 0x3fff << 112);
    assert_eq!(LongDouble::from(-2.0).0, 0xc000 << 112);
    assert_eq!(LongDouble::from(0.0).0, 0);
    assert_eq!(LongDouble::from(f64::INFINITY).0, 0x7fff << 112);
    // The smallest double is 2^-1074, normal here.
    assert_eq!(
        LongDouble::from(f64::from_bits(1)).0,
        (16_383 - 1_074) << 112
    );
    assert_eq!(LongDouble::from(1.5).0, 0x3fff << 112 | 1 << 111);
}

//= GIOP 1.2 §15.3.4
//% test
#[test]
fn v20_to_v22_value_tags() {
    let v20 = hex(
        "0a ff ff 7f 0a 00 00 00 49 44 4c 3a 56 3a 31 2e 30 00 00 00 04 00 00 00 07 00 00 00 ff ff ff ff",
    );
    let v21 = hex("02 ff ff 7f 0a 00 00 00 49 44 4c 3a 56 3a 31 2e 30 00 00 00 07 00 00 00");
    let v22 = hex(
        "02 ff ff 7f 0a 00 00 00 49 44 4c 3a 56 3a 31 2e 30 00 00 00 07 00 00 00 ff ff ff ff e4 ff ff ff",
    );
    let writer = || Writer::new(Vec::new(), 64).with_order(ByteOrder::Little);
    let mut w = writer();
    w.begin_value(&["IDL:V:1.0"], true).unwrap();
    w.chunk(|w| w.primitive(7i32)).unwrap();
    w.end_value(1).unwrap();
    assert_eq!(w.to_bytes(), v20);
    let mut w = writer();
    let position = w.begin_value(&["IDL:V:1.0"], false).unwrap();
    w.primitive(7i32).unwrap();
    assert_eq!(w.len(), v21.len());
    w.value_indirection(position).unwrap();
    assert_eq!(w.to_bytes(), v22);

    let start = |chunked| {
        ValueHead::Value(ValueStart {
            position: 0,
            codebase: None,
            repository_ids: vec![b"IDL:V:1.0"],
            chunked,
        })
    };
    let mut r = Reader::new(&v20, ByteOrder::Little);
    assert_eq!(r.value_head(), Ok(start(true)));
    assert_eq!(r.chunk(), Ok(Chunk::State(4)));
    assert_eq!(r.primitive(), Ok(7i32));
    assert_eq!(r.chunk(), Ok(Chunk::End(1)));
    let mut r = Reader::new(&v20, ByteOrder::Little);
    r.value_head().unwrap();
    assert_eq!(r.skip_chunks(1), Ok(1));
    assert_eq!(r.remaining(), 0);
    let mut r = Reader::new(&v22, ByteOrder::Little);
    assert_eq!(r.value_head(), Ok(start(false)));
    assert_eq!(r.primitive(), Ok(7i32));
    assert_eq!(r.value_head(), Ok(ValueHead::Indirection { position: 0 }));
    assert_eq!(r.remaining(), 0);
}

#[test]
fn nested_chunked_values_are_skipped_to_their_end() {
    let mut w = Writer::new(Vec::new(), 512);
    w.begin_value(&["IDL:Derived:1.0", "IDL:Base:1.0"], true)
        .unwrap();
    w.chunk(|w| w.octets(&[1, 2, 3])).unwrap();
    w.begin_value(&["IDL:Inner:1.0"], true).unwrap();
    w.chunk(|w| w.primitive(5u32)).unwrap();
    w.end_value(2).unwrap();
    w.chunk(|w| w.primitive(6u32)).unwrap();
    w.begin_value(&[], true).unwrap();
    // One tag ends both.
    w.end_value(1).unwrap();
    w.primitive(9u32).unwrap();
    let octets = w.to_bytes();
    let mut r = Reader::new(&octets, ByteOrder::NATIVE);
    let ValueHead::Value(start) = r.value_head().unwrap() else {
        panic!("a value");
    };
    let ids: [&[u8]; 2] = [b"IDL:Derived:1.0", b"IDL:Base:1.0"];
    assert_eq!(start.repository_ids, ids);
    assert_eq!(r.skip_chunks(1), Ok(1));
    assert_eq!(r.primitive(), Ok(9u32));
}

//= GIOP 1.2 §15.3.4.3
//% test
#[test]
fn wrong_value_tags_are_refused() {
    for octets in [
        "01 00 00 00",
        "04 ff ff 7f",
        "ff ff ff ff fc ff ff ff",
        "ff ff ff ff 00 00 00 00",
        "ff ff ff ff f0 ff ff ff",
        // An id that is an indirection to itself.
        "02 ff ff 7f ff ff ff ff fc ff ff ff",
    ] {
        let octets = hex(octets);
        assert!(
            Reader::new(&octets, ByteOrder::Little)
                .value_head()
                .is_err()
        );
    }
    let mut r = Reader::new(&[0; 4], ByteOrder::Little);
    assert_eq!(r.value_head(), Ok(ValueHead::Null));
    assert!(Reader::new(&[0; 4], ByteOrder::Little).chunk().is_err());
    // A chunk of more than there is.
    assert!(
        Reader::new(&[9, 0, 0, 0, 1], ByteOrder::Little)
            .chunk()
            .is_err()
    );
}

#[test]
fn the_repository_ids_of_a_value_have_a_bound() {
    let text = "x".repeat(1025);
    let read = |ids: &[&str]| {
        let mut w = Writer::new(Vec::new(), 1 << 16).with_order(ByteOrder::Little);
        w.begin_value(ids, true).unwrap();
        let octets = w.to_bytes();
        let head = Reader::new(&octets, ByteOrder::Little).value_head();
        head.map(|_| ())
    };
    let refused = |count, bound| Err(DecodeError::OverBound { count, bound });
    assert_eq!(read(&[&text[1..]]), Ok(()));
    assert_eq!(read(&[&text]), refused(1025, 1024));
    assert_eq!(read(&[&text[1..]; 4]), Ok(()));
    assert_eq!(read(&["x", &text]), refused(1025, 1024));
    // All ids together.
    assert_eq!(read(&[&text[1..]; 5]), refused(1024, 0));
}

/// The bytes 0xa0 to 0xff in ISO 8859-15, as the tables of Python and of glibc have them.
const UPPER_LATIN_9: &str = "\u{a0}¡¢£€¥Š§š©ª«¬\u{ad}®¯°±²³Žµ¶·ž¹º»ŒœŸ¿ÀÁÂÃÄÅ\
    ÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ";

#[test]
fn text_in_iso_8859_15_has_the_bytes_of_its_table() {
    let bytes: Vec<u8> = (0xa0..=0xff).collect();
    let set = CharCodeSet::Latin9;
    let mut w = Writer::new(Vec::new(), 1024)
        .with_order(ByteOrder::Little)
        .with_char_code_set(set);
    w.str(UPPER_LATIN_9).unwrap();
    w.char('\u{20ac}').unwrap();
    let written = w.to_bytes();
    assert_eq!(written[..4], 97u32.to_le_bytes());
    assert_eq!(written[4..100], bytes[..]);
    assert_eq!(written[100..], [0, 0xa4]);
    let mut r = Reader::new(&written, ByteOrder::Little).with_char_code_set(set);
    assert_eq!(r.str().unwrap(), UPPER_LATIN_9);
    assert_eq!(r.char(), Ok('\u{20ac}'));
    for replaced in "\u{a4}\u{a6}\u{a8}\u{b4}\u{b8}\u{bc}\u{bd}\u{be}\u{100}".chars() {
        let mut w = Writer::new(Vec::new(), 1024).with_char_code_set(set);
        let code_set = TextCodeSet::Latin9;
        let character = u32::from(replaced);
        let refused = EncodeError::NotInCodeSet {
            character,
            code_set,
            argument: None,
        };
        assert_eq!(w.char(replaced), Err(refused));
        assert_eq!(w.str(&format!("a{replaced}")), Err(refused));
    }
}
