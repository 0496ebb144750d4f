//! What object adapters promise, by the tables of the standard (CORBA 3, 11.3.7 and 11.3.8): what policies allow, names that can be used
//! again, and references that never lead to another object.

use super::object_keys::{Names, client, persistent};
use rtorb::exception::local;
use rtorb::poa::{IdAssignment, Lifespan};
use rtorb::{
    ExceptionKind, Intervention, Limits, Orb, Poa, PoaError, PoaPolicies, ServantActivator,
};
use rtorb_tests::ours::Ours;
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::{Cubit, Relay};

#[test]
fn the_name_of_a_destroyed_adapter_is_free_again() {
    let limits = Limits::with(|limits| limits.adapters_max = 4);
    let (orb, root) = served(limits);
    for _ in 0..10 {
        let outer = root
            .create_poa("outer", PoaPolicies::PERSISTENT)
            .expect("free");
        let inner = outer
            .create_poa("inner", PoaPolicies::PERSISTENT)
            .expect("free");
        let _: Cubit = inner
            .activate_with_id("a", Cubes { orb: orb.clone() })
            .expect("room");
        inner.destroy();
        assert!(matches!(
            outer.find_poa("inner"),
            Err(PoaError::AdapterNonExistent)
        ));
        let inner = outer
            .create_poa("inner", PoaPolicies::PERSISTENT)
            .expect("free again");
        let _: Cubit = inner
            .activate_with_id("a", Cubes { orb: orb.clone() })
            .expect("room");
        outer.destroy();
        inner.destroy();
        assert!(matches!(
            outer.create_poa("late", PoaPolicies::PERSISTENT),
            Err(PoaError::System(_))
        ));
    }
    orb.shutdown();
    orb.run().expect("it ends");
}

#[test]
fn no_adapter_is_taken_for_the_root() {
    let (orb, root) = served(Limits::default());
    assert!(matches!(
        root.create_poa("RootPOA", PoaPolicies::PERSISTENT),
        Err(PoaError::BadName)
    ));
    orb.shutdown();
}

#[test]
fn an_id_that_an_adapter_makes_for_a_persistent_object_is_never_made_again() {
    let key = || {
        let (orb, root) = served(Limits::default());
        let policies = PoaPolicies::PERSISTENT.with_id_assignment(IdAssignment::System);
        let poa = root.create_poa("Made", policies).expect("free");
        let cubit: Cubit = poa.activate(Cubes { orb: orb.clone() }).expect("room");
        let key = cubit
            .as_object()
            .ior()
            .iiop_profiles()
            .next()
            .expect("TCP")
            .object_key;
        orb.shutdown();
        orb.run().expect("it ends");
        key
    };
    assert_ne!(
        key(),
        key(),
        "a later process would serve another object by it"
    );
}

/// An operation of an adapter, and whether it is done.
type Operation = fn(&Poa) -> Result<(), PoaError>;

/// The operations that need policies, but those of RT-CORBA.
const OPERATIONS: [(&str, Operation); 6] = [
    ("activate", |poa| {
        poa.activate::<Relay, _>(names("own")).map(drop)
    }),
    ("activate_with_id", activate_x),
    ("create_reference_with_id", |poa| {
        poa.create_reference_with_id::<Relay>("x").map(drop)
    }),
    ("set_servant_locator", |poa| {
        poa.set_servant_locator::<Relay, _, _>(locate)
    }),
    ("set_default_servant", |poa| {
        poa.set_default_servant::<Relay, _, _>(locate)
    }),
    ("set_servant_activator", |poa| {
        poa.set_servant_activator::<Relay, _>(Makes)
    }),
];

fn activate_x(poa: &Poa) -> Result<(), PoaError> {
    poa.activate_with_id::<Relay, _>("x", names("own"))
        .map(drop)
}

fn names(name: &str) -> Names {
    Names(name.to_owned())
}

fn locate(_: &[u8]) -> Result<Names, Intervention> {
    Ok(names("located"))
}

/// Makes servants.
struct Makes;

impl ServantActivator for Makes {
    type Servant = Names;

    fn incarnate(&self, _: &[u8]) -> Result<Names, Intervention> {
        Ok(names("made"))
    }
}

/// The policies with a lifespan and an assignment of ids, and the name of an adapter with them.
fn policies(lifespan: Lifespan, ids: IdAssignment) -> (String, PoaPolicies) {
    let policies = PoaPolicies::default();
    let policies = policies.with_lifespan(lifespan).with_id_assignment(ids);
    (format!("{lifespan:?}-{ids:?}"), policies)
}

//= CORBA 3 §POA Policy Objects
//% test
#[test]
fn an_operation_that_the_policies_do_not_allow_is_refused() {
    use IdAssignment::{System, User};
    use Lifespan::{Persistent, Transient};
    let (orb, root) = served(Limits::default());
    // In the order of the operations. References to objects that are not active, and what serves those, need keys that last.
    let rows = [
        (Transient, System, [true, false, false, false, false, false]),
        (Transient, User, [false, true, false, false, false, false]),
        (Persistent, System, [true, false, true, true, true, true]),
        (Persistent, User, [false, true, true, true, true, true]),
    ];
    for (lifespan, ids, allowed) in rows {
        let (name, policies) = policies(lifespan, ids);
        for ((operation, act), is_allowed) in OPERATIONS.into_iter().zip(allowed) {
            let name = format!("{name}-{operation}");
            let poa = root.create_poa(&name, policies.clone()).expect("free");
            let expected = if is_allowed {
                Ok(())
            } else {
                Err(PoaError::WrongPolicy)
            };
            assert_eq!(act(&poa), expected, "{name}");
        }
    }
    orb.shutdown();
}

//= CORBA 3 §Servant Retention Policy
//% test
#[test]
fn an_adapter_that_retains_no_objects_activates_and_deactivates_none() {
    let (orb, root) = served(Limits::default());
    let poa = root.create_poa("Located", PoaPolicies::PERSISTENT);
    let poa = poa.expect("free");
    poa.set_servant_locator::<Relay, _, _>(locate)
        .expect("it has no objects");
    let x: Relay = poa.create_reference_with_id("x").expect("it is persistent");
    let rows: [(&str, Result<(), PoaError>); 3] = [
        ("activate_with_id", activate_x(&poa)),
        ("deactivate", poa.deactivate(x.as_object())),
        ("deactivate_id", poa.deactivate_id("x")),
    ];
    for (operation, answer) in rows {
        assert_eq!(answer, Err(PoaError::WrongPolicy), "{operation}");
    }
    assert!(!poa.is_active(x.as_object()));
    orb.shutdown();
}

#[test]
fn the_name_of_an_adapter_is_its_own_under_its_parent() {
    let (orb, root) = served(Limits::default());
    let make = |parent: &Poa, name: &str| {
        let made = parent.create_poa(name, PoaPolicies::PERSISTENT);
        made.map(|poa| poa.name().to_owned())
    };
    let outer = root.create_poa("outer", PoaPolicies::PERSISTENT);
    let outer = outer.expect("free");
    let rows = [
        (&root, "", Err(PoaError::BadName)),
        (&root, "a/b", Err(PoaError::BadName)),
        (&root, "a\0", Err(PoaError::BadName)),
        (&root, "RootPOA", Err(PoaError::BadName)),
        (&root, "outer", Err(PoaError::AdapterAlreadyExists)),
        (&outer, "outer", Ok("outer/outer")),
        (&outer, "outer", Err(PoaError::AdapterAlreadyExists)),
        (&outer, "RootPOA", Ok("outer/RootPOA")),
        (&root, "Outer", Ok("Outer")),
    ];
    for (parent, name, expected) in rows {
        let expected = expected.map(str::to_owned);
        assert_eq!(make(parent, name), expected, "{name:?} in {parent:?}");
    }
    let found = |parent: &Poa, name: &str| {
        let found = parent.find_poa(name);
        found.map(|poa| poa.name().to_owned())
    };
    let none = || Err(PoaError::AdapterNonExistent);
    let rows = [
        (&root, "outer", Ok("outer")),
        (&outer, "outer", Ok("outer/outer")),
        (&root, "outer/outer", none()),
        (&root, "inner", none()),
        (&root, "RootPOA", none()),
        (&root, "", none()),
        (&outer, "Outer", none()),
    ];
    for (parent, name, expected) in rows {
        let expected = expected.map(str::to_owned);
        assert_eq!(found(parent, name), expected, "{name:?} in {parent:?}");
    }
    orb.shutdown();
}

#[test]
fn an_id_has_one_active_object_and_its_reference_gives_it_back() {
    let (orb, root) = served(Limits::default());
    let ids: [&[u8]; 8] = [
        b"",
        b"x",
        b"/",
        b"a/b",
        b"%",
        b"%2F",
        b"\xc3\xa9",
        b"\0\xff",
    ];
    for lifespan in [Lifespan::Transient, Lifespan::Persistent] {
        let (name, policies) = policies(lifespan, IdAssignment::User);
        let poa = root.create_poa(&name, policies).expect("free");
        for id in ids {
            let label = format!("{lifespan:?} {id:?}");
            let activate = || poa.activate_with_id::<Relay, _>(id, names("own"));
            let first = activate().expect("there is room");
            let second = activate().map(drop);
            assert_eq!(second, Err(PoaError::ObjectAlreadyActive), "{label}");
            let read = poa.reference_to_id(first.as_object());
            assert_eq!(read.as_deref(), Ok(id), "{label}");
            assert!(poa.is_active(first.as_object()), "{label}");
            assert_eq!(poa.deactivate_id(id), Ok(()), "{label}");
            let again = poa.deactivate_id(id);
            assert_eq!(again, Err(PoaError::ObjectNotActive), "{label}");
            let again = poa.deactivate(first.as_object());
            assert_eq!(again, Err(PoaError::ObjectNotActive), "{label}");
            assert!(!poa.is_active(first.as_object()), "{label}");
            let next = activate().expect("the id is free again");
            let is_same = next.as_object().ior() == first.as_object().ior();
            assert_eq!(is_same, lifespan == Lifespan::Persistent, "{label}");
            assert_eq!(poa.deactivate(next.as_object()), Ok(()), "{label}");
            if lifespan == Lifespan::Persistent {
                let promised: Relay = poa.create_reference_with_id(id).expect("persistent");
                assert_eq!(promised.as_object().ior(), first.as_object().ior());
                let read = poa.reference_to_id(promised.as_object());
                assert_eq!(read.as_deref(), Ok(id), "{label}");
            }
        }
    }
    orb.shutdown();
}

#[test]
fn an_adapter_makes_each_id_once() {
    let (orb, root) = served(Limits::default());
    for lifespan in [Lifespan::Transient, Lifespan::Persistent] {
        let (name, policies) = policies(lifespan, IdAssignment::System);
        let poa = root.create_poa(&name, policies).expect("free");
        let mut made = Vec::new();
        for _ in 0..20 {
            let relay: Relay = poa.activate(names("own")).expect("there is room");
            let id = poa.reference_to_id(relay.as_object());
            made.push(id.expect("it is its own"));
            poa.deactivate(relay.as_object()).expect("it is active");
        }
        made.sort_unstable();
        made.dedup();
        assert_eq!(made.len(), 20, "{name}");
    }
    orb.shutdown();
}

#[test]
fn a_reference_of_another_adapter_is_told_from_one_whose_object_is_not_active() {
    use PoaError::{ObjectNotActive, WrongAdapter};
    let (orb, root) = served(Limits::default());
    let (other_orb, other_root) = served(Limits::default());
    let create = |root: &Poa, name: &str| {
        let poa = root.create_poa(name, PoaPolicies::PERSISTENT);
        poa.expect("free")
    };
    let (own, sibling) = (create(&root, "own"), create(&root, "sibling"));
    let (child, foreign) = (create(&own, "child"), create(&other_root, "foreign"));
    let active = |poa: &Poa| {
        let relay: Relay = poa.activate_with_id("a", names("a")).expect("room");
        relay
    };
    let idle = |poa: &Poa| {
        let relay: Relay = poa.create_reference_with_id("i").expect("persistent");
        relay
    };
    let transient = |root: &Poa| root.activate::<Relay, _>(names("t")).expect("room");
    let gone = transient(&root);
    root.deactivate(gone.as_object()).expect("it is active");
    let wrong = || (Err(WrongAdapter), Err(WrongAdapter));
    // The object; what deactivation returns, and the id.
    let rows = [
        ("own", active(&own), (Ok(()), Ok("a"))),
        ("own, idle", idle(&own), (Err(ObjectNotActive), Ok("i"))),
        ("sibling", active(&sibling), wrong()),
        ("sibling, idle", idle(&sibling), wrong()),
        ("child, idle", idle(&child), wrong()),
        ("root", transient(&root), wrong()),
        // Its adapter is not known any more.
        (
            "root, gone",
            gone,
            (Err(ObjectNotActive), Err(WrongAdapter)),
        ),
        ("other ORB", active(&foreign), wrong()),
        ("other root", transient(&other_root), wrong()),
    ];
    for (label, relay, (deactivated, id)) in rows {
        let object = relay.as_object();
        assert_eq!(own.is_active(object), deactivated.is_ok(), "{label}");
        let id = id.map(|id: &str| id.as_bytes().to_vec());
        assert_eq!(own.reference_to_id(object), id, "{label}");
        assert_eq!(own.deactivate(object), deactivated, "{label}");
    }
    assert_eq!(sibling.deactivate_id("a"), Ok(()), "it is active still");
    orb.shutdown();
    other_orb.shutdown();
}

/// Each operation of a destroyed adapter: its name, what it gave, and what it has to give.
fn operations_of_a_destroyed(poa: &Poa, own: &Relay) -> [(&'static str, Outcome, Outcome); 10] {
    let destroyed = || Err(PoaError::System(local::ADAPTER_DESTROYED));
    [
        ("activate_with_id", activate_x(poa), destroyed()),
        (
            "create_reference_with_id",
            poa.create_reference_with_id::<Relay>("x").map(drop),
            destroyed(),
        ),
        (
            "create_poa",
            poa.create_poa("late", PoaPolicies::PERSISTENT).map(drop),
            destroyed(),
        ),
        (
            "set_servant_locator",
            poa.set_servant_locator::<Relay, _, _>(locate),
            destroyed(),
        ),
        (
            "set_default_servant",
            poa.set_default_servant::<Relay, _, _>(locate),
            destroyed(),
        ),
        (
            "set_servant_activator",
            poa.set_servant_activator::<Relay, _>(Makes),
            destroyed(),
        ),
        (
            "set_adapter_activator",
            poa.set_adapter_activator(|_, _| false),
            destroyed(),
        ),
        (
            "find_poa",
            poa.find_poa("child").map(drop),
            Err(PoaError::AdapterNonExistent),
        ),
        (
            "deactivate_id",
            poa.deactivate_id("own"),
            Err(PoaError::ObjectNotActive),
        ),
        (
            "deactivate",
            poa.deactivate(own.as_object()),
            Err(PoaError::ObjectNotActive),
        ),
    ]
}

type Outcome = Result<(), PoaError>;

#[test]
fn an_adapter_that_is_destroyed_by_itself_or_with_its_parent_does_nothing_more() {
    let by_itself: fn(&Poa, &Poa) = |_, poa| poa.destroy();
    let with_parent: fn(&Poa, &Poa) = |parent, _| parent.destroy();
    let twice: fn(&Poa, &Poa) = |parent, poa| {
        poa.destroy();
        parent.destroy();
        poa.destroy();
    };
    let (orb, root) = served(Limits::default());
    for (label, destroy) in [
        ("by itself", by_itself),
        ("with its parent", with_parent),
        ("twice", twice),
    ] {
        let parent = root.create_poa("parent", PoaPolicies::PERSISTENT);
        let parent = parent.expect("free");
        let poa = parent.create_poa("poa", PoaPolicies::PERSISTENT);
        let poa = poa.expect("free");
        let own: Relay = poa.activate_with_id("own", names("own")).expect("room");
        poa.create_poa("child", PoaPolicies::PERSISTENT)
            .expect("free");
        destroy(&parent, &poa);
        parent.destroy();
        for (operation, answer, expected) in operations_of_a_destroyed(&poa, &own) {
            assert_eq!(answer, expected, "{operation} {label}");
        }
        assert!(!poa.is_active(own.as_object()), "{label}");
        assert_eq!(poa.name(), "parent/poa");
    }
    orb.shutdown();
}

//= CORBA 3 §Lifespan Policy
//% test
#[test]
fn a_transient_reference_ends_with_its_adapter_and_a_persistent_one_does_not() {
    let ours = Ours::serve();
    let orb = Orb::builder().build().expect("an ORB");
    let root = ours.orb.root_poa().expect("the ORB runs");
    let who = |relay: &Relay| {
        let seen = relay.pass_on().map_err(|failed| failed.kind);
        seen.map(|mut seen| seen.remove(0).who)
    };
    let rows = [
        (Lifespan::Transient, Err(ExceptionKind::ObjectNotExist)),
        (Lifespan::Persistent, Ok("second".to_owned())),
    ];
    for (lifespan, expected) in rows {
        let (name, policies) = policies(lifespan, IdAssignment::User);
        let serve = |servant: &str| {
            let poa = root.create_poa(&name, policies.clone()).expect("free");
            let relay: Relay = poa.activate_with_id("x", names(servant)).expect("room");
            (poa, relay.as_object().to_string())
        };
        let (poa, text) = serve("first");
        let object = orb.string_to_object(&text).expect("a reference");
        let relay = Relay::unchecked_narrow(object);
        assert_eq!(who(&relay).as_deref(), Ok("first"), "{name}");
        poa.destroy();
        let gone = Err(ExceptionKind::ObjectNotExist);
        assert_eq!(who(&relay), gone, "{name}");
        let (poa, _) = serve("second");
        assert_eq!(who(&relay), expected, "{name}");
        poa.destroy();
    }
    // The same key leads to an object that is activated later.
    let later = persistent(&ours, "Later");
    let relay = client(&orb, &later, "x");
    assert_eq!(who(&relay), Err(ExceptionKind::ObjectNotExist));
    activate_x(&later).expect("room");
    assert_eq!(who(&relay).as_deref(), Ok("own"));
}

fn served(limits: Limits) -> (Orb, Poa) {
    let orb = Orb::builder().limits(limits).build().expect("an ORB");
    let root = orb.root_poa().expect("a port");
    (orb, root)
}
