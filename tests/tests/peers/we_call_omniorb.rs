//! Our client against omniORB's server: every operation, every version, both transports and byte orders.

use rtorb::cdr::CharCodeSet;
use rtorb::giop::Version;
use rtorb::{ExceptionKind, ObjectRef, Orb, OrbBuilder};
use rtorb_tests::ours::{
    Wide, check_cubit, check_desk, check_nested, check_text_by, person, url_of,
};
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::exchange::Desk;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];
const LENGTHS: [usize; 5] = [0, 1, 4, 1021, 4096];

#[test]
fn every_operation_in_every_version() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_cubits, cubit) = omniorb.serve("cubit_server", &scratch, Endpoint::Tcp, &[]);
    let (_desks, desk) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &[]);
    for version in VERSIONS {
        let orb = || Orb::builder().max_giop_version(version);
        check_cubit(&cubit_of(orb(), &cubit), &LENGTHS);
        let wide = if version == Version::V1_2 {
            Wide::Sent
        } else {
            Wide::LeftOut
        };
        check_desk(&desk_of(orb(), &desk), wide);
        check_nested(&desk_of(orb(), &desk));
    }
}

#[test]
fn in_the_other_byte_order() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_cubits, cubit) = omniorb.serve("cubit_server", &scratch, Endpoint::Tcp, &[]);
    let (_desks, desk) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &[]);
    for version in VERSIONS {
        let orb = || {
            Orb::builder()
                .max_giop_version(version)
                .byte_order(rtorb_wire::ByteOrder::Big)
        };
        check_cubit(&cubit_of(orb(), &cubit), &LENGTHS);
        let wide = if version == Version::V1_2 {
            Wide::Sent
        } else {
            Wide::LeftOut
        };
        check_desk(&desk_of(orb(), &desk), wide);
        check_nested(&desk_of(orb(), &desk));
    }
}

#[test]
fn fragmented_replies_are_put_together() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_cubits, cubit) = omniorb.serve("cubit_server", &scratch, Endpoint::Tcp, &[]);
    for version in VERSIONS {
        let orb = Orb::builder().max_giop_version(version);
        check_cubit(&cubit_of(orb, &cubit), &[1100, 20_000, 100_000]);
    }
}

#[test]
fn fragmented_requests_are_put_together_by_it() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_cubits, cubit) = omniorb.serve("cubit_server", &scratch, Endpoint::Tcp, &[]);
    check_cubit(
        &cubit_of(Orb::builder().fragment_bytes(512), &cubit),
        &[0, 1, 1021, 20_000],
    );
}

#[test]
fn over_its_unix_socket() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let endpoint = scratch.join("socket");
    let (_cubits, cubit) = omniorb.serve("cubit_server", &scratch, Endpoint::Unix(&endpoint), &[]);
    let endpoint = scratch.join("other");
    let (_desks, desk) = omniorb.serve("desk_server", &scratch, Endpoint::Unix(&endpoint), &[]);
    check_cubit(&cubit_of(Orb::builder(), &cubit), &LENGTHS);
    check_desk(&desk_of(Orb::builder(), &desk), Wide::Sent);
}

#[test]
fn a_corbaloc_finds_its_naming_service() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_names, address) = omniorb.names(&scratch);
    for version in ["1.0", "1.1", "1.2"] {
        let text = format!("corbaloc::{version}@{address}/NameService");
        let names = object(Orb::builder(), &text);
        assert_eq!(
            names.is_a("IDL:omg.org/CosNaming/NamingContext:1.0"),
            Ok(true),
            "{text}"
        );
        assert_eq!(
            names.is_a("IDL:omg.org/CosNaming/BindingIterator:1.0"),
            Ok(false),
            "{text}"
        );
        assert_eq!(names.non_existent(), Ok(false), "{text}");
    }
    let orb = Orb::builder()
        .initial_reference("NameService", &format!("corbaloc::{address}/NameService"));
    let orb = orb.build().expect("the ORB can be built");
    let names = orb
        .resolve_initial_references("NameService")
        .expect("it was given");
    assert_eq!(
        names.is_a("IDL:omg.org/CosNaming/NamingContextExt:1.0"),
        Ok(true)
    );
    let nobody = object(Orb::builder(), &format!("corbaloc::{address}/Nobody"));
    assert_eq!(nobody.non_existent(), Ok(true));
    let refused = nobody
        .is_a("IDL:Cubit:1.0")
        .expect_err("there is no such object");
    assert_eq!(refused.kind, ExceptionKind::ObjectNotExist);
}

#[test]
fn a_corbaloc_finds_its_objects_in_every_version() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_cubits, reference) = omniorb.serve("cubit_server", &scratch, Endpoint::Tcp, &[]);
    let address = cubit_of(Orb::builder(), &reference);
    let address = address
        .as_object()
        .endpoints()
        .next()
        .expect("one endpoint")
        .to_string();
    let address = address.strip_prefix("iiop://").expect("TCP").to_owned();
    for version in ["1.0", "1.1", "1.2"] {
        let text = format!("corbaloc:iiop:{version}@{address}/cubit");
        let cubit = Cubit::narrow(&object(Orb::builder(), &text)).expect("it is a Cubit");
        check_cubit(&cubit, &[0, 4, 1021]);
    }
}

#[test]
fn text_passes_by_a_url_as_by_a_reference() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    // Its native code set must have the text, because it converts it.
    let options = ["-ORBnativeCharCodeSet", "UTF-8"];
    let (_desks, reference) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &options);
    check_text_by(&reference);
}

#[test]
fn a_client_with_its_native_code_set_sends_every_char() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_desks, reference) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &[]);
    let latin_1 = || Orb::builder().native_char_code_set(CharCodeSet::Latin1);
    for text in [&reference, &url_of(&reference)] {
        let desk = desk_of(latin_1(), text);
        assert_eq!(desk.echo_person(&person('\u{e9}')), Ok(person('\u{e9}')));
        check_desk(&desk, Wide::Sent);
        let refused = desk_of(Orb::builder(), text).echo_person(&person('\u{e9}'));
        let refused = refused.expect_err("a char of UTF-8 is ASCII");
        assert_eq!(refused.kind, ExceptionKind::DataConversion, "{refused}");
    }
}

#[test]
fn the_euro_sign_is_a_char_in_iso_8859_15() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let options = ["-ORBnativeCharCodeSet", "ISO-8859-15"];
    let (_desks, reference) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &options);
    let builder = Orb::builder().native_char_code_set(CharCodeSet::Latin9);
    let desk = desk_of(builder, &reference);
    assert_eq!(
        desk.echo_person(&person('\u{20ac}')),
        Ok(person('\u{20ac}'))
    );
    let refused = desk.echo_person(&person('\u{a4}'));
    let refused = refused.expect_err("the Euro sign has its place");
    assert_eq!(refused.kind, ExceptionKind::DataConversion, "{refused}");
}

fn object(builder: OrbBuilder, text: &str) -> ObjectRef {
    let orb = builder.build().expect("the ORB can be built");
    orb.string_to_object(text).expect("a reference")
}

fn cubit_of(builder: OrbBuilder, text: &str) -> Cubit {
    Cubit::narrow(&object(builder, text)).expect("it is a Cubit")
}

fn desk_of(builder: OrbBuilder, text: &str) -> Desk {
    Desk::narrow(&object(builder, text)).expect("it is a Desk")
}
