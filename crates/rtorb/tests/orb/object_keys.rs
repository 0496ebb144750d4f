//! Object keys that the application chooses, and objects that need no activation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rtorb::{
    DispatchStrategy, ExceptionKind, Intervention, Limits, ObjectKeyError, ObjectRef, Orb, Poa,
    PoaError, PoaPolicies, SystemException,
};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{Connection, LOCATE_REQUEST, REPLY, Request, Stream};
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::{Cubit, Relay, RelayServant, Seen};

#[test]
fn an_object_is_found_by_the_key_that_it_was_bound_to() {
    let ours = Ours::serve();
    let orb = Orb::builder().build().expect("it can be built");
    // A transient one, and a persistent one.
    let poa = persistent(&ours, "Kept");
    let kept: Cubit = poa
        .activate_with_id("k", cubes(&ours))
        .expect("there is room");
    for (key, object) in [
        ("Counter", ours.cubit.as_object()),
        ("Kept", kept.as_object()),
    ] {
        let bound = corbaloc(&orb, &ours, key);
        expect_gone(bound.validate_connection());
        ours.orb.bind_object_key(key, object).expect("it is free");
        bound.validate_connection().expect("it is bound");
        let cubit = Cubit::narrow(&bound).expect("it is a Cubit");
        assert_eq!(cubit.cube_long(3), Ok(27));
        assert_eq!(bound.non_existent(), Ok(false));
        // The server's thread remembers it, and must not for long.
        assert!(ours.orb.unbind_object_key(key));
        expect_gone(cubit.cube_long(3));
        assert_eq!(bound.non_existent(), Ok(true));
        assert!(!ours.orb.unbind_object_key(key));
    }
    assert_eq!(kept.cube_long(3), Ok(27));
}

#[test]
fn a_bound_key_is_served_without_a_forward() {
    let ours = Ours::serve();
    let cubit = ours.cubit.as_object();
    ours.orb.bind_object_key("Key", cubit).expect("it is free");
    let mut connection = Connection::to(ours.address());
    let request = Request::two_way(b"Key", "cube_long").of_long(3);
    let answer = connection.ask(&request).expect("it is answered");
    assert_eq!((answer.kind, answer.status, answer.long()), (REPLY, 0, 27));
    for (key, status) in [("Key", 1), ("key", 0)] {
        let mut locate = Stream::new(LOCATE_REQUEST, 2, false);
        locate.ulong(7).ushort(0).octets(key.as_bytes());
        let answer = connection.ask(&locate.message()).expect("it is answered");
        assert_eq!((answer.id, answer.status), (7, status), "{key}");
    }
}

#[test]
fn a_bound_key_leads_to_the_object_of_the_time() {
    let ours = Ours::serve();
    let poa = persistent(&ours, "Kept");
    let kept: Cubit = poa.create_reference_with_id("k").expect("it is persistent");
    ours.orb
        .bind_object_key("Key", kept.as_object())
        .expect("it is free");
    let orb = Orb::builder().build().expect("it can be built");
    let bound = Cubit::unchecked_narrow(corbaloc(&orb, &ours, "Key"));
    for _ in 0..3 {
        expect_gone(bound.cube_long(3));
        let _: Cubit = poa
            .activate_with_id("k", cubes(&ours))
            .expect("there is room");
        assert_eq!(bound.cube_long(3), Ok(27));
        poa.deactivate_id("k").expect("it is active");
    }
}

#[test]
fn a_bound_key_may_have_slashes_unless_it_is_one_of_an_adapter() {
    let ours = Ours::serve();
    let poa = persistent(&ours, "Kept");
    let kept: Cubit = poa
        .activate_with_id("k", cubes(&ours))
        .expect("there is room");
    let bind = |key: &str| ours.orb.bind_object_key(key, kept.as_object());
    let orb = Orb::builder().build().expect("it can be built");
    for key in ["test/motor/1", "Kept/deeper/k", "/", "a//b"] {
        assert_eq!(bind(key), Ok(()), "{key}");
        let cubit = Cubit::unchecked_narrow(corbaloc(&orb, &ours, key));
        assert_eq!(cubit.cube_long(3), Ok(27), "{key}");
    }
    for of_adapter in ["Kept/k", "Kept/other"] {
        assert_eq!(bind(of_adapter), Err(ObjectKeyError::OfAdapter));
    }
    // An adapter whose objects would have the bound key cannot come into being.
    let root = ours.orb.root_poa().expect("the ORB runs");
    let test = root.create_poa("test", PoaPolicies::PERSISTENT);
    let test = test.expect("no key of its objects is bound");
    let refused = test.create_poa("motor", PoaPolicies::PERSISTENT);
    assert!(matches!(refused, Err(PoaError::AdapterAlreadyExists)));
    assert!(ours.orb.unbind_object_key("test/motor/1"));
    let motor = test.create_poa("motor", PoaPolicies::PERSISTENT);
    motor.expect("its keys are its own");
}

#[test]
fn keys_that_cannot_be_bound_are_refused_with_the_reason() {
    let limits = Limits::with(|limits| limits.bound_keys_max = 2);
    let ours = Ours::serve_as(Orb::builder().limits(limits));
    let object = ours.cubit.as_object();
    let bind = |key: &[u8]| ours.orb.bind_object_key(key, object);
    for unfit in [&b""[..], b"a\0", &[b'x'; 256]] {
        assert_eq!(bind(unfit), Err(ObjectKeyError::Unfit));
    }
    assert_eq!(bind(b"one"), Ok(()));
    assert_eq!(bind(b"one"), Err(ObjectKeyError::Taken));
    assert_eq!(bind(&[b'x'; 255]), Ok(()));
    assert_eq!(bind(b"three"), Err(ObjectKeyError::TooMany));
    let other = Ours::serve();
    let poa = persistent(&other, "Kept");
    let kept: Cubit = poa.create_reference_with_id("k").expect("it is persistent");
    let by_key = corbaloc(&ours.orb, &ours, "one");
    for foreign in [other.cubit.as_object(), kept.as_object(), &by_key] {
        let bound = ours.orb.bind_object_key("four", foreign);
        assert_eq!(bound, Err(ObjectKeyError::NotOwn));
    }
}

#[test]
fn every_id_that_a_locator_knows_is_an_object() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let server = Orb::builder().dispatch(dispatch).pool_threads(2);
        let ours = Ours::serve_as(server);
        let poa = located(&ours, "Located");
        let orb = Orb::builder().build().expect("it can be built");
        thread::scope(|scope| {
            for thread in 0..4 {
                let (poa, orb) = (&poa, &orb);
                scope.spawn(move || {
                    for number in 0..200 {
                        let id = format!("a/%{thread}-{number}");
                        let relay = client(orb, poa, &id);
                        assert_eq!(who(&relay), Ok(id), "{name}");
                    }
                });
            }
        });
    }
}

#[test]
fn what_a_locator_says_of_an_id_is_what_clients_are_told() {
    let ours = Ours::serve();
    let poa = located(&ours, "Located");
    let orb = Orb::builder().build().expect("it can be built");
    let here = client(&orb, &poa, "a");
    assert_eq!(
        poa.reference_to_id(here.as_object()).ok(),
        Some(b"a".to_vec())
    );
    let object = here.as_object();
    assert_eq!(object.is_a("IDL:Relay:1.0"), Ok(true));
    assert_eq!(object.is_a("IDL:Cubit:1.0"), Ok(false));
    assert_eq!(object.non_existent(), Ok(false));
    object.validate_connection().expect("it is there");
    // Ids that begin with "gone" are unknown to the locator.
    let gone = client(&orb, &poa, "gone");
    expect_gone(who(&gone));
    expect_gone(gone.as_object().is_a("IDL:Relay:1.0"));
    expect_gone(gone.as_object().validate_connection());
    assert_eq!(gone.as_object().non_existent(), Ok(true));
    // Of what cannot be looked for nothing is known.
    let lost = client(&orb, &poa, "lost");
    let kind = |answer: Result<bool, SystemException>| answer.map_err(|failed| failed.kind);
    let cannot = Err(ExceptionKind::PersistStore);
    assert_eq!(
        who(&lost).map_err(|failed| failed.kind),
        cannot.map(|()| String::new())
    );
    assert_eq!(kind(lost.as_object().non_existent()), cannot.map(|()| true));
    lost.as_object()
        .validate_connection()
        .expect("it may be there");
    // A locator that panics does so for one request.
    let panics = client(&orb, &poa, "panics");
    let unknown = Err(ExceptionKind::Unknown);
    assert_eq!(
        kind(panics.as_object().non_existent()),
        unknown.map(|()| true)
    );
    assert_eq!(
        who(&panics).map_err(|failed| failed.kind),
        unknown.map(|()| String::new())
    );
    assert_eq!(who(&here), Ok("a".to_owned()));
}

#[test]
fn an_object_that_a_locator_knows_may_be_bound_to_a_key() {
    let ours = Ours::serve();
    let poa = located(&ours, "Located");
    let root: Relay = poa
        .create_reference_with_id("root")
        .expect("it is persistent");
    ours.orb
        .bind_object_key("NameService", root.as_object())
        .expect("it is free");
    let orb = Orb::builder().build().expect("it can be built");
    let bound = Relay::narrow(&corbaloc(&orb, &ours, "NameService")).expect("it is a Relay");
    let other = client(&orb, &poa, "other");
    for _ in 0..3 {
        assert_eq!(who(&bound), Ok("root".to_owned()));
        assert_eq!(who(&other), Ok("other".to_owned()));
    }
    assert!(ours.orb.unbind_object_key("NameService"));
    expect_gone(who(&bound));
    assert_eq!(who(&other), Ok("other".to_owned()));
}

#[test]
fn an_adapter_has_a_locator_or_active_objects_and_its_end_is_theirs() {
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    let locate = |_: &[u8]| Ok::<_, Intervention>(Names(String::new()));
    let transient = root.set_servant_locator::<Relay, _, _>(locate);
    assert!(matches!(transient, Err(PoaError::WrongPolicy)));
    let active = persistent(&ours, "Active");
    let one: Cubit = active
        .activate_with_id("", cubes(&ours))
        .expect("there is room");
    assert_eq!(one.cube_long(2), Ok(8));
    expect_refused(&active.set_servant_locator::<Relay, _, _>(locate));
    // An object with an empty id is one object.
    let other: Cubit = active
        .create_reference_with_id("x")
        .expect("it is persistent");
    expect_gone(other.cube_long(2));

    let poa = located(&ours, "Located");
    expect_refused(&poa.set_servant_locator::<Relay, _, _>(locate));
    let refused = poa.activate_with_id::<Cubit, _>("x", cubes(&ours));
    assert!(matches!(refused, Err(PoaError::WrongPolicy)));
    assert_eq!(poa.deactivate_id(""), Err(PoaError::WrongPolicy));
    let orb = Orb::builder().build().expect("it can be built");
    let nameless = client(&orb, &poa, "");
    assert_eq!(who(&nameless), Ok(String::new()));
    poa.destroy();
    expect_gone(who(&nameless));
    let again = located(&ours, "Located");
    assert_eq!(who(&nameless), Ok(String::new()));
    drop(again);
}

#[test]
fn a_locator_and_its_servants_are_dropped() {
    struct Drops(Arc<AtomicUsize>);
    impl Drop for Drops {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    struct Counts(#[expect(dead_code, reason = "it is dropped")] Drops);
    impl RelayServant for Counts {
        fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
            Ok(Vec::new())
        }
        fn shutdown(&self) -> Result<(), SystemException> {
            Ok(())
        }
    }
    let (servants, locators) = (Arc::default(), Arc::default());
    let ours = Ours::serve();
    let poa = persistent(&ours, "Located");
    let (of_servants, own) = (Arc::clone(&servants), Drops(Arc::clone(&locators)));
    let set = poa.set_servant_locator::<Relay, _, _>(move |_| {
        let _ = &own;
        Ok(Counts(Drops(Arc::clone(&of_servants))))
    });
    set.expect("it has none");
    let orb = Orb::builder().build().expect("it can be built");
    for _ in 0..3 {
        client(&orb, &poa, "x").pass_on().expect("it is there");
    }
    poa.destroy();
    drop((poa, ours));
    assert_eq!(servants.load(Ordering::SeqCst), 3);
    assert_eq!(locators.load(Ordering::SeqCst), 1);
}

/// A servant that tells its name.
pub(super) struct Names(pub(super) String);

impl RelayServant for Names {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        Ok(vec![Seen {
            who: self.0.clone(),
            corba: 0,
            kernel: 0,
        }])
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn who(relay: &Relay) -> Result<String, SystemException> {
    relay.pass_on().map(|mut seen| seen.remove(0).who)
}

pub(super) fn persistent(ours: &Ours, name: &str) -> Poa {
    let root = ours.orb.root_poa().expect("the ORB runs");
    root.create_poa(name, PoaPolicies::PERSISTENT)
        .expect("it is free")
}

/// An adapter whose objects are called as their ids are, with some that are not there.
fn located(ours: &Ours, name: &str) -> Poa {
    let poa = persistent(ours, name);
    let set = poa.set_servant_locator::<Relay, _, _>(|id| match id {
        b"gone" => Err(ExceptionKind::ObjectNotExist.into()),
        b"lost" => Err(ExceptionKind::PersistStore.into()),
        b"panics" => panic!("as it shall"),
        id => Ok(Names(String::from_utf8_lossy(id).into_owned())),
    });
    set.expect("it has none");
    poa
}

/// An object of an adapter, as another ORB sees it.
pub(super) fn client(orb: &Orb, poa: &Poa, id: &str) -> Relay {
    let own: Relay = poa.create_reference_with_id(id).expect("it is persistent");
    let object = orb.string_to_object(&own.as_object().to_string());
    Relay::unchecked_narrow(object.expect("a reference"))
}

fn corbaloc(orb: &Orb, ours: &Ours, key: &str) -> ObjectRef {
    let url = format!("corbaloc:iiop:1.2@{}/{key}", ours.address());
    orb.string_to_object(&url).expect("a URL")
}

fn cubes(ours: &Ours) -> Cubes {
    Cubes {
        orb: ours.orb.clone(),
    }
}

fn expect_gone<T: std::fmt::Debug>(answer: Result<T, SystemException>) {
    let failed = answer.expect_err("it is not there");
    assert_eq!(failed.kind, ExceptionKind::ObjectNotExist, "{failed}");
}

fn expect_refused(answer: &Result<(), PoaError>) {
    let is_refused = matches!(answer, Err(PoaError::System(exception))
        if exception.kind == ExceptionKind::BadInvOrder);
    assert!(is_refused, "{answer:?}");
}
