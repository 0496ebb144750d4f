//! A server of ours in this process, and the way to call every operation of a Cubit and a Desk and check the answers.

use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use rtorb::any::{Any, Typed};
use rtorb::cdr::{Encode, WChar, WString};
use rtorb::endpoint::Endpoint;
use rtorb::giop::Version;
use rtorb::ior::Ior;
use rtorb::url::{Corbaloc, CorbalocAddress};
use rtorb::{
    Collocation, CompletionStatus, ExceptionKind, ObjectRef, Orb, OrbBuilder, Poa, PoaPolicies,
};

use crate::loopback::own_endpoint;
use crate::servants::{Counter, Cubes, cube_many};
use crate::stubs::exchange::{Desk, DeskRefuseError, Empty, Party, Person, Refused};
use crate::stubs::{Cubit, Many, Oneof};

/// A server of ours; dropped, it is shut down and its thread has ended.
#[derive(Debug)]
pub struct Ours {
    /// The server's ORB.
    pub orb: Orb,
    /// The adapter of its objects.
    pub poa: Poa,
    /// A Cubit with a key of the ORB's choice.
    pub cubit: Cubit,
    /// A Desk with a key of the ORB's choice.
    pub desk: Desk,
    running: Option<JoinHandle<()>>,
}

impl Ours {
    /// Serves on a loopback address of its own.
    #[must_use]
    pub fn serve() -> Self {
        Self::serve_as(Orb::builder().listen(&own_endpoint()))
    }

    /// Serves as `builder` says; where it names no endpoint, that is a free port of loopback.
    ///
    /// # Panics
    ///
    /// It cannot be built.
    #[must_use]
    pub fn serve_as(builder: OrbBuilder) -> Self {
        Self::serve_in(builder, |orb| orb.root_poa().expect("the ORB can listen"))
    }

    /// Serves as `builder` says, with the objects in the adapter that `adapter` makes. Calls of its own objects go by a transport.
    ///
    /// # Panics
    ///
    /// It cannot be built.
    #[must_use]
    pub fn serve_in(builder: OrbBuilder, adapter: impl FnOnce(&Orb) -> Poa) -> Self {
        Self::serve_built(builder.collocation(Collocation::Transport), adapter)
    }

    /// Serves as `builder` says, and calls its own objects on the calling thread.
    ///
    /// # Panics
    ///
    /// It cannot be built.
    #[must_use]
    pub fn serve_collocated(builder: OrbBuilder) -> Self {
        Self::serve_built(builder.collocation(Collocation::Direct), |orb| {
            orb.root_poa().expect("the ORB can listen")
        })
    }

    fn serve_built(builder: OrbBuilder, adapter: impl FnOnce(&Orb) -> Poa) -> Self {
        let orb = builder.build().expect("the ORB can be built");
        let poa = adapter(&orb);
        let cubit = poa
            .activate(Cubes { orb: orb.clone() })
            .expect("there is room for a servant");
        let desk = poa
            .activate(Counter::default())
            .expect("there is room for a servant");
        let server = orb.clone();
        let running = thread::spawn(move || server.run().expect("the ORB runs"));
        Self {
            orb,
            poa,
            cubit,
            desk,
            running: Some(running),
        }
    }

    /// A reference as text.
    #[must_use]
    pub fn text(&self, object: &ObjectRef) -> String {
        self.orb.object_to_string(object)
    }

    /// The TCP address of the server.
    ///
    /// # Panics
    ///
    /// It listens on none.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let tcp = self
            .cubit
            .as_object()
            .endpoints()
            .find_map(|endpoint| match endpoint {
                Endpoint::Tcp { host, port } => format!("{host}:{port}").parse().ok(),
                _ => None,
            });
        tcp.expect("the server listens on loopback")
    }

    /// The key of an object of this server.
    ///
    /// # Panics
    ///
    /// The reference has no IIOP profile.
    #[must_use]
    pub fn key(&self, object: &ObjectRef) -> Vec<u8> {
        object
            .ior()
            .iiop_profiles()
            .next()
            .expect("an IIOP profile")
            .object_key
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.orb.shutdown();
        if let Some(running) = self.running.take() {
            // A panic of the server shows in its own words; a second one here would hide the test's.
            let ended = running.join();
            assert!(
                ended.is_ok() || thread::panicking(),
                "the server's thread panicked"
            );
        }
    }
}

/// Calls every operation of a Cubit with ordinary and extreme values, the sequences in these lengths.
///
/// # Panics
///
/// An answer is wrong or an exception.
pub fn check_cubit(cubit: &Cubit, lengths: &[usize]) {
    cubit.cube_void().expect("cube_void");
    cubit.cube_oneway().expect("cube_oneway");
    check_numbers(cubit);
    check_anys(cubit);
    check_sequences(cubit, lengths);
}

fn check_numbers(cubit: &Cubit) {
    for n in [
        0,
        1,
        2,
        7,
        100,
        i32::MIN,
        i32::MAX,
        -3,
        255,
        32_767,
        -32_768,
    ] {
        let (o, s) = (
            n.to_le_bytes()[0],
            i16::from_le_bytes([n.to_le_bytes()[0], n.to_le_bytes()[1]]),
        );
        assert_eq!(
            cubit.cube_octet(o),
            Ok(o.wrapping_pow(3)),
            "cube_octet({o})"
        );
        assert_eq!(
            cubit.cube_short(s),
            Ok(s.wrapping_pow(3)),
            "cube_short({s})"
        );
        assert_eq!(cubit.cube_long(n), Ok(n.wrapping_pow(3)), "cube_long({n})");
        let many = Many { o, l: n, s };
        assert_eq!(
            cubit.cube_struct(&many),
            Ok(cube_many(many)),
            "cube_struct({many:?})"
        );
        assert_eq!(
            cubit.cube_union(&Oneof::O(o)),
            Ok(Oneof::O(o.wrapping_pow(3)))
        );
        assert_eq!(
            cubit.cube_union(&Oneof::S(s)),
            Ok(Oneof::S(s.wrapping_pow(3)))
        );
        assert_eq!(
            cubit.cube_union(&Oneof::L(n)),
            Ok(Oneof::L(n.wrapping_pow(3)))
        );
        assert_eq!(
            cubit.cube_union(&Oneof::Cm(many)),
            Ok(Oneof::Cm(cube_many(many)))
        );
    }
}

/// Calls the operations of a Cubit that take sequences, with sequences of these lengths: a few short and long messages.
///
/// # Panics
///
/// An answer is wrong or an exception.
pub fn check_sequences(cubit: &Cubit, lengths: &[usize]) {
    for &length in lengths {
        check_sequences_of(cubit, length);
    }
}

fn check_sequences_of(cubit: &Cubit, length: usize) {
    let longs: Vec<i32> = (0..length)
        .map(|i| (i as i32).wrapping_mul(0x1e37_79b1))
        .collect();
    let octets: Vec<u8> = longs.iter().map(|l| l.to_le_bytes()[3]).collect();
    let manys: Vec<Many> = longs
        .iter()
        .map(|&l| Many {
            o: l.to_le_bytes()[0],
            l,
            s: l as i16,
        })
        .collect();
    let cubed = longs.iter().map(|l| l.wrapping_pow(3)).collect::<Vec<_>>();
    assert!(
        cubit.cube_long_sequence(&longs) == Ok(cubed),
        "cube_long_sequence of {length}"
    );
    let cubed = octets.iter().map(|o| o.wrapping_pow(3)).collect::<Vec<_>>();
    assert!(
        cubit.cube_octet_sequence(&octets) == Ok(cubed),
        "cube_octet_sequence of {length}"
    );
    let cubed = manys.iter().copied().map(cube_many).collect::<Vec<_>>();
    assert!(
        cubit.cube_many_sequence(&manys) == Ok(cubed),
        "cube_many_sequence of {length}"
    );
}

fn check_anys(cubit: &Cubit) {
    let cube = |any: Any| cubit.cube_any(&any).expect("it can be cubed");
    assert_eq!(cube(any(&3u8)).extract(), Ok(27u8));
    assert_eq!(cube(any(&-3i16)).extract(), Ok(-27i16));
    assert_eq!(cube(any(&-11i32)).extract(), Ok(-1331i32));
    let many = Many { o: 7, l: 5, s: 3 };
    assert_eq!(cube(any(&many)).extract(), Ok(cube_many(many)));
    let refused = cubit
        .cube_any(&any(&"text".to_owned()))
        .expect_err("text has no cube");
    assert_eq!(refused.kind, ExceptionKind::BadParam);
}

fn any<T: Typed + Encode>(value: &T) -> Any {
    Any::from_value(value).expect("it can be sent")
}

/// Whether wide characters go over the connection: GIOP 1.0 has none, and omniORB refuses them in 1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// They do.
    Sent,
    /// They do not, and are left out.
    LeftOut,
}

/// Calls every operation of a Desk but `level_of`, which has [`check_nested`].
///
/// # Panics
///
/// An answer is wrong, or an exception that was not asked for.
pub fn check_desk(desk: &Desk, wide: Wide) {
    check_text(desk, wide);
    assert_eq!(desk.mixed(7, 6), Ok((42, 13, "given=7".to_owned())));
    desk.set_level(-5).expect("an attribute can be set");
    assert_eq!(desk.level(), Ok(-5));
    assert!(!desk.name().expect("an attribute can be read").is_empty());
    check_exceptions(desk);
    check_references(desk);
    let before = desk.noted().expect("noted");
    for n in 0..10 {
        desk.note(n).expect("a oneway is sent");
    }
    crate::running::until("ten notes are noted", || {
        (desk.noted() == Ok(before + 10)).then_some(())
    });
}

/// Has a Desk call itself.
///
/// # Panics
///
/// The answer is wrong or an exception.
pub fn check_nested(desk: &Desk) {
    desk.set_level(41).expect("an attribute can be set");
    assert_eq!(
        desk.level_of(Some(&Party::from(desk))),
        Ok(42),
        "a call within a call"
    );
}

fn check_text(desk: &Desk, wide: Wide) {
    for text in [
        "",
        "plain",
        "caf\u{e9} \u{e5}ngstr\u{f6}m \u{ff}",
        "a longer text, its length no multiple of four",
    ] {
        assert_eq!(desk.echo_string(text).as_deref(), Ok(text));
    }
    let lines = ["one", "", "\u{df}\u{e6}"].map(str::to_owned);
    assert_eq!(desk.echo_texts(&lines).as_deref(), Ok(lines.as_slice()));
    if wide == Wide::LeftOut {
        return;
    }
    for text in ["", "plain", "\u{3b1}\u{3b2}\u{3b3}", "\u{65e5}\u{672c}"] {
        let text = WString::from(text);
        assert_eq!(desk.echo_wstring(&text), Ok(text));
    }
    let person = person('G');
    assert_eq!(desk.echo_person(&person), Ok(person));
}

/// A person with every kind of text.
#[must_use]
pub fn person(initial: char) -> Person {
    Person {
        name: "Grace".to_owned(),
        nickname: "\u{394}".into(),
        titles: vec!["Rear Admiral".to_owned(), "Dr".to_owned()],
        initial,
        mark: WChar('\u{2713}'),
        present: true,
        height: 1.625,
        born: -1_988_150_400,
        id: 0xfedc_ba98_7654_3210,
        weight: -0.5,
        house: u16::MAX,
    }
}

/// Has a Desk echo text of every kind, by its reference and by URLs that lead to it.
///
/// # Panics
///
/// An answer is wrong or an exception.
pub fn check_text_by(reference: &str) {
    for text in [reference.to_owned(), url_of(reference)] {
        let orb = Orb::builder().build().expect("nothing is opened");
        let object = orb.string_to_object(&text).expect("a reference");
        let desk = Desk::narrow(&object).expect("it is a Desk");
        check_text(&desk, Wide::Sent);
        for text in ["100 \u{20ac}", "\u{65e5}\u{672c}"] {
            assert_eq!(desk.echo_string(text).as_deref(), Ok(text));
        }
    }
}

/// The URL of the object of a reference, GIOP 1.2.
///
/// # Panics
///
/// It has no IIOP profile.
#[must_use]
pub fn url_of(reference: &str) -> String {
    let ior: Ior = reference.trim().parse().expect("a reference");
    let profile = ior.iiop_profiles().next().expect("an IIOP profile");
    let key = profile.object_key.iter();
    let key: String = key.map(|octet| format!("%{octet:02x}")).collect();
    format!("corbaloc:iiop:1.2@{}:{}/{key}", profile.host, profile.port)
}

fn check_exceptions(desk: &Desk) {
    assert!(desk.refuse(0, "nothing").is_ok());
    let reason = "no \u{e9} here".to_owned();
    let refused = desk.refuse(3, &reason);
    assert!(
        matches!(&refused, Err(DeskRefuseError::Refused(e)) if *e == Refused { reason, code: 3 }),
        "{refused:?}"
    );
    let refused = desk.refuse(-1, "");
    assert!(
        matches!(refused, Err(DeskRefuseError::Empty(Empty {}))),
        "{refused:?}"
    );
    let failed = desk.fail(0x12345).expect_err("it always fails");
    assert_eq!(
        (failed.kind, failed.minor),
        (ExceptionKind::NoPermission, 0x12345)
    );
    assert_eq!(failed.completed, CompletionStatus::Maybe);
}

fn check_references(desk: &Desk) {
    let object = desk
        .echo_object(Some(desk.as_object()))
        .expect("a reference comes back")
        .expect("not nil");
    assert_eq!(object.is_a("IDL:Exchange/Desk:1.0"), Ok(true));
    assert_eq!(desk.echo_object(None), Ok(None));
    let same = desk
        .echo_desk(Some(desk))
        .expect("a reference comes back")
        .expect("not nil");
    assert_eq!(same.level(), Ok(-5));
    assert_eq!(desk.echo_desk(None), Ok(None));
    let party = Party::from(desk);
    assert_eq!(party.level(), Ok(-5), "a base can be used");
    assert_eq!(desk.as_object().is_a("IDL:Exchange/Party:1.0"), Ok(true));
    assert_eq!(
        desk.as_object().is_a("IDL:Exchange/Stranger:1.0"),
        Ok(false)
    );
    assert_eq!(desk.as_object().non_existent(), Ok(false));
    let narrowed = Desk::narrow(desk.as_object()).expect("it is one");
    assert_eq!(narrowed.level(), Ok(-5));
}

/// Activates a Cubit and a Desk whose keys are `NAME/cubit` and `NAME/desk`.
///
/// # Panics
///
/// There is an adapter of that name already.
pub fn activate_readable(orb: &Orb, name: &str) {
    let root = orb.root_poa().expect("the ORB listens already");
    let poa = root
        .create_poa(name, PoaPolicies::PERSISTENT)
        .expect("the name is free");
    let _: Cubit = poa
        .activate_with_id("cubit", Cubes { orb: orb.clone() })
        .expect("the id is free");
    let _: Desk = poa
        .activate_with_id("desk", Counter::default())
        .expect("the id is free");
}

/// Returns a reference to an object with that key that is not there: no host has its address (RFC 5737).
///
/// # Panics
///
/// The key is too long for a reference.
#[must_use]
pub fn absent_object(orb: &Orb, key: &str) -> ObjectRef {
    let address = CorbalocAddress::Iiop {
        version: Version::V1_2,
        host: "192.0.2.1".to_owned(),
        port: 9,
    };
    let place = Corbaloc {
        addresses: vec![address],
        object_key: key.as_bytes().to_vec(),
    };
    let ior = place.to_ior("IDL:Thing:1.0").expect("a reference");
    orb.string_to_object(&ior.to_string()).expect("an object")
}
