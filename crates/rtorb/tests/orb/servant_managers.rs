//! Objects whose servants come from elsewhere: activators, default servants and adapter activators (CORBA 3, 11.3).

use super::object_keys::{Names, client, persistent};
use rtorb::exception::local;
use rtorb::poa::PoaManager;
use rtorb::{
    DispatchStrategy, ExceptionKind, Intervention, Orb, Poa, PoaError, PoaPolicies,
    ServantActivator, SystemException,
};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{Connection, LOCATE_REQUEST, REQUEST, Request, Stream};
use rtorb_tests::running::until;
use rtorb_tests::stubs::{Cubit, Relay, RelayServant, Seen};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

/// What an activator has done, as texts.
type Events = Arc<Mutex<Vec<String>>>;

/// Makes servants that are named as their ids, but for some ids.
struct Makes {
    events: Events,
}

impl ServantActivator for Makes {
    type Servant = Names;

    fn incarnate(&self, id: &[u8]) -> Result<Names, Intervention> {
        let id = String::from_utf8_lossy(id).into_owned();
        match id.as_str() {
            "gone" => return Err(ExceptionKind::ObjectNotExist.into()),
            "panics" => panic!("as it shall"),
            _ => {}
        }
        note(&self.events, format!("+{id}"));
        Ok(Names(id))
    }

    fn etherealize(&self, id: &[u8], servant: Names) {
        assert_eq!(servant.0.as_bytes(), id);
        note(&self.events, format!("-{}", servant.0));
    }
}

fn note(events: &Events, event: String) {
    events.lock().expect("nobody panics").push(event);
}

fn taken(events: &Events) -> Vec<String> {
    core::mem::take(&mut *events.lock().expect("nobody panics"))
}

/// Waits until so many servants have ended, which may be after the replies to their last calls, and returns them in order.
fn ended(events: &Events, count: usize) -> Vec<String> {
    until("the servants have ended", || {
        let is_enough = events.lock().expect("nobody panics").len() >= count;
        is_enough.then_some(())
    });
    let mut ended = taken(events);
    ended.sort_unstable();
    ended
}

/// An adapter with an activator, and what that does.
fn activated(ours: &Ours, name: &str) -> (Poa, Events) {
    let (poa, events) = (persistent(ours, name), Events::default());
    let makes = Makes {
        events: Arc::clone(&events),
    };
    poa.set_servant_activator::<Relay, _>(makes)
        .expect("it has none");
    (poa, events)
}

fn client_orb() -> Orb {
    Orb::builder().build().expect("an ORB")
}

fn who(relay: &Relay) -> Result<String, ExceptionKind> {
    let seen = relay.pass_on().map_err(|failed| failed.kind);
    seen.map(|mut seen| seen.remove(0).who)
}

/// As [`who`], for an object whose last servant has been etherealized, perhaps by a thread that has not come back from that.
fn who_next(relay: &Relay) -> Result<String, ExceptionKind> {
    until("the last servant has ended", || {
        let who = who(relay);
        (who != Err(ExceptionKind::Transient)).then_some(who)
    })
}

const GONE: Result<String, ExceptionKind> = Err(ExceptionKind::ObjectNotExist);

#[test]
fn an_activator_makes_each_servant_once_and_ends_it_once() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).pool_threads(2));
        let (poa, events) = activated(&ours, "Activated");
        let orb = client_orb();
        let relays = ["a", "b/%"].map(|id| client(&orb, &poa, id));
        for _ in 0..3 {
            assert_eq!(who(&relays[0]).as_deref(), Ok("a"), "{name}");
            assert_eq!(who(&relays[1]).as_deref(), Ok("b/%"), "{name}");
        }
        assert_eq!(taken(&events), ["+a", "+b/%"], "{name}");
        assert!(poa.is_active(relays[0].as_object()), "{name}");
        poa.deactivate_id("a").expect("it is active");
        assert_eq!(ended(&events, 1), ["-a"], "{name}");
        assert_eq!(who_next(&relays[0]).as_deref(), Ok("a"), "{name}");
        assert_eq!(taken(&events), ["+a"], "{name}");
        poa.destroy();
        assert_eq!(ended(&events, 2), ["-a", "-b/%"], "{name}");
        assert_eq!(who(&relays[0]), GONE, "{name}");
        assert_eq!(taken(&events), [""; 0], "{name}");
    }
}

#[test]
fn what_an_activator_says_of_an_id_is_what_clients_are_told() {
    let ours = Ours::serve();
    let (poa, events) = activated(&ours, "Activated");
    let orb = client_orb();
    let object = client(&orb, &poa, "asked");
    assert_eq!(object.as_object().is_a("IDL:Relay:1.0"), Ok(true));
    assert_eq!(object.as_object().is_a("IDL:Cubit:1.0"), Ok(false));
    assert_eq!(object.as_object().non_existent(), Ok(false));
    assert_eq!(taken(&events), ["+asked"]);
    let gone = client(&orb, &poa, "gone");
    assert_eq!(who(&gone), GONE);
    assert_eq!(gone.as_object().non_existent(), Ok(true));
    let panics = client(&orb, &poa, "panics");
    for _ in 0..2 {
        assert_eq!(who(&panics), Err(ExceptionKind::Unknown));
    }
    let unknown = panics.as_object().non_existent().map_err(|it| it.kind);
    assert_eq!(unknown, Err(ExceptionKind::Unknown));
    assert_eq!(taken(&events), [""; 0]);
}

#[test]
fn of_many_first_requests_for_an_object_one_makes_its_servant() {
    const CLIENTS: usize = 8;
    let ours = Ours::serve();
    let (poa, events) = activated(&ours, "Activated");
    let orb = client_orb();
    for round in 0..20 {
        let id = format!("object {round}");
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| assert_eq!(who(&client(&orb, &poa, &id)), Ok(id.clone())));
            }
        });
        assert_eq!(taken(&events), [format!("+{id}")]);
    }
}

#[test]
fn a_servant_is_etherealized_after_its_last_call_and_its_object_waits_for_that() {
    /// Waits in `etherealize`.
    struct Waits {
        ends: Mutex<Sender<()>>,
        goes_on: Mutex<Receiver<()>>,
        made: AtomicUsize,
    }
    impl ServantActivator for Waits {
        type Servant = Names;

        fn incarnate(&self, _: &[u8]) -> Result<Names, Intervention> {
            let number = self.made.fetch_add(1, Ordering::SeqCst);
            Ok(Names(number.to_string()))
        }

        fn etherealize(&self, _: &[u8], _: Names) {
            let _ = self.ends.lock().expect("nobody panics").send(());
            let _ = self
                .goes_on
                .lock()
                .expect("nobody panics")
                .recv_timeout(LONG);
        }
    }
    let ours = Ours::serve();
    let poa = persistent(&ours, "Activated");
    let ((ends, ended), (lets, goes_on)) = (channel(), channel());
    let waits = Waits {
        ends: Mutex::new(ends),
        goes_on: Mutex::new(goes_on),
        made: AtomicUsize::new(0),
    };
    poa.set_servant_activator::<Relay, _>(waits)
        .expect("it has none");
    let orb = client_orb();
    let relay = client(&orb, &poa, "x");
    assert_eq!(who(&relay).as_deref(), Ok("0"));
    thread::scope(|scope| {
        let deactivates = scope.spawn(|| poa.deactivate_id("x"));
        ended.recv_timeout(LONG).expect("it is etherealized");
        // The thread of the last call may be the one that waits, so this one goes over another connection.
        let failed = client(&client_orb(), &poa, "x")
            .pass_on()
            .expect_err("the last servant has not ended");
        assert_eq!(failed.kind, ExceptionKind::Transient, "{failed}");
        assert!(failed.to_string().contains("has not ended yet"), "{failed}");
        lets.send(()).expect("it waits");
        assert_eq!(deactivates.join().expect("no panic").ok(), Some(()));
    });
    assert_eq!(who_next(&relay).as_deref(), Ok("1"));
    drop(lets);
}

#[test]
fn a_servant_that_deactivates_itself_ends_with_its_call() {
    struct Once {
        poa: Poa,
        ended: Arc<AtomicUsize>,
    }
    impl RelayServant for Once {
        fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
            self.poa.deactivate_id("once").expect("it is active");
            assert_eq!(self.ended.load(Ordering::SeqCst), 0, "the call runs");
            Ok(Vec::new())
        }

        fn shutdown(&self) -> Result<(), SystemException> {
            Ok(())
        }
    }
    struct Makes {
        poa: Mutex<Option<Poa>>,
        ended: Arc<AtomicUsize>,
    }
    impl ServantActivator for Makes {
        type Servant = Once;

        fn incarnate(&self, _: &[u8]) -> Result<Once, Intervention> {
            let poa = self.poa.lock().expect("nobody panics").take();
            Ok(Once {
                poa: poa.ok_or(ExceptionKind::ObjectNotExist)?,
                ended: Arc::clone(&self.ended),
            })
        }

        fn etherealize(&self, _: &[u8], servant: Once) {
            servant.ended.fetch_add(1, Ordering::SeqCst);
        }
    }
    let ours = Ours::serve();
    let (poa, ended) = (persistent(&ours, "Once"), Arc::default());
    let makes = Makes {
        poa: Mutex::new(Some(poa.clone())),
        ended: Arc::clone(&ended),
    };
    poa.set_servant_activator::<Relay, _>(makes)
        .expect("it has none");
    let relay = client(&client_orb(), &poa, "once");
    assert_eq!(relay.pass_on(), Ok(Vec::new()));
    // The reply may come before the servant's end.
    until("its servant has ended", || {
        (ended.load(Ordering::SeqCst) == 1).then_some(())
    });
    assert_eq!(who_next(&relay), GONE);
}

#[test]
fn an_activator_that_calls_the_object_which_it_makes_is_told() {
    struct Circular(Mutex<Option<Relay>>);
    impl ServantActivator for Circular {
        type Servant = Names;

        fn incarnate(&self, _: &[u8]) -> Result<Names, Intervention> {
            let own = self.0.lock().expect("nobody panics").take();
            let answer = own.ok_or(ExceptionKind::NoImplement)?.pass_on();
            Ok(answer.map(|_| Names(String::new()))?)
        }
    }
    let ours = Ours::serve_collocated(Orb::builder());
    let poa = persistent(&ours, "Circular");
    let own: Relay = poa.create_reference_with_id("x").expect("it is persistent");
    let circular = Circular(Mutex::new(Some(own.clone())));
    poa.set_servant_activator::<Relay, _>(circular)
        .expect("it has none");
    assert_eq!(who(&own), Err(ExceptionKind::BadInvOrder));
}

/// CORBA 3, 11.3.7.5 and 11.3.7.6: what serves a request for an object, by the adapter's servant retention and request processing.
#[test]
fn who_serves_a_request_is_as_in_the_tables_of_the_standard() {
    let ours = Ours::serve();
    let orb = client_orb();
    let names =
        |id: &[u8]| Ok::<_, Intervention>(Names(format!("{} by id", String::from_utf8_lossy(id))));
    let own = || Names("own servant".to_owned());

    // RETAIN, USE_ACTIVE_OBJECT_MAP_ONLY.
    let map_only = persistent(&ours, "MapOnly");
    map_only
        .activate_with_id::<Relay, _>("a", own())
        .expect("room");
    // RETAIN, USE_DEFAULT_SERVANT, set before and after the object.
    let default = persistent(&ours, "Default");
    default
        .set_default_servant::<Relay, _, _>(names)
        .expect("it has none");
    default
        .activate_with_id::<Relay, _>("a", own())
        .expect("room");
    let later = persistent(&ours, "Later");
    later
        .activate_with_id::<Relay, _>("a", own())
        .expect("room");
    later
        .set_default_servant::<Relay, _, _>(names)
        .expect("it has none");
    // RETAIN, USE_SERVANT_MANAGER.
    let (activator, _) = activated(&ours, "Activator");
    activator
        .activate_with_id::<Relay, _>("a", own())
        .expect("room");
    // NON_RETAIN, USE_SERVANT_MANAGER.
    let locator = persistent(&ours, "Locator");
    locator
        .set_servant_locator::<Relay, _, _>(names)
        .expect("it has none");
    let refused = locator.activate_with_id::<Relay, _>("a", own());
    assert!(matches!(refused, Err(PoaError::WrongPolicy)));

    let rows = [
        (&map_only, "a", Ok("own servant")),
        (&map_only, "b", Err(ExceptionKind::ObjectNotExist)),
        (&default, "a", Ok("own servant")),
        (&default, "b", Ok("b by id")),
        (&later, "a", Ok("own servant")),
        (&later, "b", Ok("b by id")),
        (&activator, "a", Ok("own servant")),
        (&activator, "b", Ok("b")),
        (&activator, "gone", Err(ExceptionKind::ObjectNotExist)),
        (&locator, "a", Ok("a by id")),
        (&locator, "b", Ok("b by id")),
    ];
    for (poa, id, expected) in rows {
        let relay = client(&orb, poa, id);
        for _ in 0..2 {
            assert_eq!(
                who(&relay).as_deref().map_err(|it| *it),
                expected,
                "{} {id}",
                poa.name()
            );
        }
    }
}

#[test]
fn an_object_has_its_own_servant_once_it_is_active_and_an_adapter_one_source_of_others() {
    let ours = Ours::serve();
    let orb = client_orb();
    let names =
        |id: &[u8]| Ok::<_, Intervention>(Names(format!("{} by id", String::from_utf8_lossy(id))));
    let default = persistent(&ours, "Default");
    default
        .set_default_servant::<Relay, _, _>(names)
        .expect("it has none");
    let relay = client(&orb, &default, "c");
    assert_eq!(who(&relay).as_deref(), Ok("c by id"));
    let own = Names("own servant".to_owned());
    default
        .activate_with_id::<Relay, _>("c", own)
        .expect("room");
    assert_eq!(who(&relay).as_deref(), Ok("own servant"));
    default.deactivate_id("c").expect("it is active");
    assert_eq!(who(&relay).as_deref(), Ok("c by id"));
    let (activator, _) = activated(&ours, "Activator");
    for poa in [&default, &activator] {
        let again = poa.set_default_servant::<Relay, _, _>(names);
        let is_told =
            matches!(again, Err(PoaError::System(told)) if told.kind == ExceptionKind::BadInvOrder);
        assert!(is_told, "{}", poa.name());
    }
    // Their objects have keys only if the adapter is persistent.
    let root = ours.orb.root_poa().expect("the ORB runs");
    let refused = root.set_default_servant::<Relay, _, _>(names);
    assert!(matches!(refused, Err(PoaError::WrongPolicy)));
}

/// What serves the objects of an adapter, or a part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Its own servant, of one object.
    Own,
    Locator,
    DefaultServant,
    Activator,
}

impl Source {
    const ALL: [Self; 4] = [
        Self::Own,
        Self::Locator,
        Self::DefaultServant,
        Self::Activator,
    ];

    /// Gives it to an adapter. It notes what it serves, but for an own servant.
    fn place(self, poa: &Poa, id: &str, events: &Events) -> Result<(), PoaError> {
        let noted = Arc::clone(events);
        let named = move |id: &[u8]| {
            let id = String::from_utf8_lossy(id).into_owned();
            note(&noted, format!("+{id}"));
            Ok::<_, Intervention>(Names(id))
        };
        match self {
            Self::Own => {
                let own = poa.activate_with_id::<Relay, _>(id, Names("own servant".to_owned()));
                own.map(drop)
            }
            Self::Locator => poa.set_servant_locator::<Relay, _, _>(named),
            Self::DefaultServant => poa.set_default_servant::<Relay, _, _>(named),
            Self::Activator => {
                let events = Arc::clone(events);
                poa.set_servant_activator::<Relay, _>(Makes { events })
            }
        }
    }
}

//= CORBA 3 §Request Processing Policy
//% test
#[test]
fn a_second_source_of_servants_is_refused_unless_one_serves_active_objects_only() {
    use Source::{Activator, DefaultServant, Locator, Own};
    let (wrong, taken) = (
        || Err(PoaError::WrongPolicy),
        || Err(PoaError::System(local::HAS_OBJECTS)),
    );
    // What the sources in the order of `Source::ALL` get after the first one.
    let rows = [
        (Own, [Ok(()), taken(), Ok(()), Ok(())]),
        (Locator, [wrong(), taken(), taken(), taken()]),
        (DefaultServant, [Ok(()), taken(), taken(), taken()]),
        (Activator, [Ok(()), taken(), taken(), taken()]),
    ];
    let ours = Ours::serve();
    for (first, expected) in rows {
        for (second, expected) in Source::ALL.into_iter().zip(expected) {
            let label = format!("{first:?}-{second:?}");
            let (poa, events) = (persistent(&ours, &label), Events::default());
            assert_eq!(first.place(&poa, "a", &events), Ok(()), "{label}");
            assert_eq!(second.place(&poa, "b", &events), expected, "{label}");
        }
    }
}

type ManagerOperation = fn(&PoaManager);

/// The operations of a manager that is not active, and what a request then gets; none if it waits.
const NOT_ACTIVE: [(ManagerOperation, Option<ExceptionKind>); 3] = [
    (PoaManager::hold_requests, None),
    (PoaManager::discard_requests, Some(ExceptionKind::Transient)),
    (PoaManager::deactivate, Some(ExceptionKind::ObjAdapter)),
];

/// Calls an object whose manager is not active. A call that waits is served once the manager is activated. Returns what it gets.
fn call_while_not_active(
    relay: &Relay,
    manager: &PoaManager,
    until_activated: impl FnOnce(),
) -> Result<String, ExceptionKind> {
    thread::scope(|scope| {
        let call = scope.spawn(|| who(relay));
        until("it waits or is refused", || {
            (manager.held_requests() == 1 || call.is_finished()).then_some(())
        });
        until_activated();
        manager.activate();
        call.join().expect("no panic")
    })
}

//= CORBA 3 §Processing States
//% test
#[test]
fn a_servant_manager_is_called_for_no_request_that_its_manager_does_not_admit() {
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    for (row, (enter, refused)) in NOT_ACTIVE.into_iter().enumerate() {
        for source in [Source::Locator, Source::DefaultServant, Source::Activator] {
            let label = format!("{source:?}-{row}");
            let manager = root.create_manager();
            let poa = root.create_poa_with_manager(&label, PoaPolicies::PERSISTENT, &manager);
            let (poa, events) = (poa.expect("it is free"), Events::default());
            source.place(&poa, "", &events).expect("it has none");
            enter(&manager);
            let relay = client(&client_orb(), &poa, "a");
            let answer = call_while_not_active(&relay, &manager, || {
                assert_eq!(taken(&events), [""; 0], "{label}");
            });
            let expected = refused.map_or(Ok("a".to_owned()), Err);
            let served: &[&str] = if expected.is_ok() { &["+a"] } else { &[] };
            assert_eq!(answer, expected, "{label}");
            assert_eq!(taken(&events), served, "{label}");
        }
    }
}

/// The new adapter has the manager of its parent, which so decides about the request.
#[test]
fn an_adapter_activator_is_asked_in_each_state_of_its_manager() {
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    let orb = client_orb();
    for (row, (enter, refused)) in NOT_ACTIVE.into_iter().enumerate() {
        let (manager, asked) = (root.create_manager(), Events::default());
        let name = format!("Parent{row}");
        let parent = root.create_poa_with_manager(&name, PoaPolicies::PERSISTENT, &manager);
        grow(&parent.expect("it is free"), Arc::clone(&asked));
        enter(&manager);
        let url = format!("corbaloc:iiop:1.2@{}/{name}/Child/x", ours.address());
        let object = orb.string_to_object(&url).expect("a URL");
        let relay = Relay::unchecked_narrow(object);
        let answer = call_while_not_active(&relay, &manager, || {});
        assert_eq!(answer, refused.map_or(Ok("x".to_owned()), Err), "{row}");
        assert_eq!(taken(&asked), [format!("{name}/Child")], "{row}");
    }
}

/// Has an adapter make each child that is asked for, with objects that are named as their ids, and so on. Notes the children's names.
fn grow(poa: &Poa, asked: Events) {
    let set = poa.set_adapter_activator(move |parent, name| {
        let Ok(child) = parent.create_poa(name, PoaPolicies::PERSISTENT) else {
            return false;
        };
        note(&asked, child.name().to_owned());
        grow(&child, Arc::clone(&asked));
        let named = |id: &[u8]| Ok(Names(String::from_utf8_lossy(id).into_owned()));
        child.set_servant_locator::<Relay, _, _>(named).is_ok()
    });
    set.expect("the adapter exists");
}

//= CORBA 3 §AdapterActivator Interface
//% test
#[test]
fn an_adapter_activator_is_asked_once_for_each_missing_adapter() {
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    let (orb, asked) = (client_orb(), Events::default());
    grow(&root, Arc::clone(&asked));
    let called = |key: &str| {
        let url = format!("corbaloc:iiop:1.2@{}/{key}", ours.address());
        let object = orb.string_to_object(&url).expect("a URL");
        who(&Relay::unchecked_narrow(object))
    };
    let rows: [(&str, &[&str]); 6] = [
        ("A/x", &["A"]),
        ("A/y", &[]),
        ("A/B/C/x", &["A/B", "A/B/C"]),
        ("A/B/x", &[]),
        ("A/B/D/x", &["A/B/D"]),
        ("E/F/G/x", &["E", "E/F", "E/F/G"]),
    ];
    for (key, expected) in rows {
        let id = key.rsplit('/').next().map(str::to_owned);
        assert_eq!(called(key).ok(), id, "{key}");
        assert_eq!(taken(&asked), expected, "{key}");
    }
    let a = root.find_poa("A").expect("it is made");
    let rows: [(&Poa, &str, &[&str]); 4] = [
        (&root, "A", &[]),
        (&root, "H", &["H"]),
        (&root, "H", &[]),
        (&a, "I", &["A/I"]),
    ];
    for (parent, name, expected) in rows {
        parent.find_poa(name).expect("its activator makes it");
        assert_eq!(taken(&asked), expected, "{name}");
    }
    // Its children have ended with it.
    a.destroy();
    assert_eq!(called("A/B/x").as_deref(), Ok("x"));
    assert_eq!(taken(&asked), ["A", "A/B"]);
}

#[test]
fn an_adapter_that_its_activator_does_not_make_does_not_exist() {
    let activators: [fn(&Poa, &str) -> bool; 4] = [
        |_, _| false,
        // It is believed only if the adapter is there.
        |_, _| true,
        // It is not asked for what it is to make.
        |root, name| root.find_poa(name).is_ok(),
        |_, _| panic!("as it shall"),
    ];
    for (row, activator) in activators.into_iter().enumerate() {
        let ours = Ours::serve();
        let root = ours.orb.root_poa().expect("the ORB runs");
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let set = root.set_adapter_activator(move |root, name| {
            counted.fetch_add(1, Ordering::SeqCst);
            activator(root, name)
        });
        set.expect("the root exists");
        let orb = client_orb();
        let url = format!("corbaloc:iiop:1.2@{}/No/x", ours.address());
        let object = orb.string_to_object(&url).expect("a URL");
        assert_eq!(who(&Relay::unchecked_narrow(object)), GONE, "{row}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{row}");
        let found = root.find_poa("No").map(drop);
        assert_eq!(found, Err(PoaError::AdapterNonExistent), "{row}");
        assert_eq!(asked.load(Ordering::SeqCst), 2, "{row}");
    }
}

/// While the activator runs, the new adapter has no objects yet.
//= CORBA 3 §AdapterActivator Interface
//% test
#[test]
fn of_many_first_requests_for_an_adapter_one_makes_it_and_all_find_its_objects() {
    const CLIENTS: usize = 8;
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    let (orb, asked) = (client_orb(), Events::default());
    let noted = Arc::clone(&asked);
    let set = root.set_adapter_activator(move |root, name| {
        note(&noted, name.to_owned());
        let made = root.create_poa(name, PoaPolicies::PERSISTENT);
        let made = made.expect("no other thread makes it");
        // It takes a while, so that other requests come.
        thread::sleep(Duration::from_millis(1));
        let named = |id: &[u8]| Ok(Names(String::from_utf8_lossy(id).into_owned()));
        made.set_servant_locator::<Relay, _, _>(named).is_ok()
    });
    set.expect("the root exists");
    for round in 0..20 {
        let name = format!("Made{round}");
        let url = format!("corbaloc:iiop:1.2@{}/{name}/x", ours.address());
        let object = orb.string_to_object(&url).expect("a URL");
        let relay = Relay::unchecked_narrow(object);
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| assert_eq!(who(&relay).as_deref(), Ok("x"), "{name}"));
            }
            scope.spawn(|| {
                let found = root.find_poa(&name).expect("its activator makes it");
                let second = Source::Locator.place(&found, "", &Events::default());
                let has_one = Err(PoaError::System(local::HAS_OBJECTS));
                assert_eq!(second, has_one, "{name}: its activator has returned");
            });
        });
        assert_eq!(taken(&asked), [name]);
    }
}

/// What is done to an adapter with an activator, which has a child with another one.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Destroy,
    DestroyRoot,
    EndOrb,
}

//= CORBA 3 §POA Interface
//% test
#[test]
fn the_end_of_an_adapter_etherealizes_the_servants_of_its_children_first() {
    for ending in [Ending::Destroy, Ending::DestroyRoot, Ending::EndOrb] {
        let ours = Ours::serve();
        let root = ours.orb.root_poa().expect("the ORB runs");
        let (parent, events) = activated(&ours, "Parent");
        let child = parent.create_poa("Child", PoaPolicies::PERSISTENT);
        let child = child.expect("it is free");
        Source::Activator
            .place(&child, "", &events)
            .expect("it has none");
        // The activator has not made this servant, and does not end it.
        Source::Own.place(&parent, "own", &events).expect("room");
        let orb = client_orb();
        for (poa, id) in [(&parent, "a"), (&child, "b")] {
            assert_eq!(who(&client(&orb, poa, id)).as_deref(), Ok(id), "{ending:?}");
        }
        // The thread that served those calls has left their servants before it serves this one.
        let cubit = orb.string_to_object(&ours.cubit.as_object().to_string());
        let cubit = Cubit::unchecked_narrow(cubit.expect("a reference"));
        assert_eq!(cubit.cube_long(3), Ok(27), "{ending:?}");
        assert_eq!(taken(&events), ["+a", "+b"], "{ending:?}");
        root.manager().deactivate();
        assert_eq!(taken(&events), [""; 0], "a manager ends no servant");
        match ending {
            Ending::Destroy => parent.destroy(),
            Ending::DestroyRoot => root.destroy(),
            Ending::EndOrb => drop(ours),
        }
        assert_eq!(taken(&events), ["-b", "-a"], "{ending:?}");
    }
}

/// Tells of each call, and then waits for a word.
struct Pausing {
    called: Sender<()>,
    goes_on: Arc<Mutex<Receiver<()>>>,
}

impl RelayServant for Pausing {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        let _ = self.called.send(());
        let goes_on = self.goes_on.lock().expect("nobody panics");
        let _ = goes_on.recv_timeout(LONG);
        Ok(Vec::new())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Makes such servants.
struct MakesPausing {
    called: Sender<()>,
    goes_on: Arc<Mutex<Receiver<()>>>,
    events: Events,
}

impl ServantActivator for MakesPausing {
    type Servant = Pausing;

    fn incarnate(&self, _: &[u8]) -> Result<Pausing, Intervention> {
        note(&self.events, "+".to_owned());
        Ok(Pausing {
            called: self.called.clone(),
            goes_on: Arc::clone(&self.goes_on),
        })
    }

    fn etherealize(&self, _: &[u8], _: Pausing) {
        note(&self.events, "-".to_owned());
    }
}

//= CORBA 3 §ServantActivator Interface
//% test
#[test]
fn a_servant_whose_object_is_deactivated_in_a_call_is_etherealized_after_it() {
    let ours = Ours::serve();
    let (poa, events) = (persistent(&ours, "Waiting"), Events::default());
    let ((calls, called), (lets, goes_on)) = (channel(), channel());
    let makes = MakesPausing {
        called: calls,
        goes_on: Arc::new(Mutex::new(goes_on)),
        events: Arc::clone(&events),
    };
    poa.set_servant_activator::<Relay, _>(makes)
        .expect("it has none");
    let relay = client(&client_orb(), &poa, "x");
    thread::scope(|scope| {
        let call = scope.spawn(|| relay.pass_on());
        called.recv_timeout(LONG).expect("it is called");
        poa.deactivate_id("x").expect("it is active");
        assert!(!poa.is_active(relay.as_object()));
        let again = poa.deactivate_id("x");
        assert_eq!(again, Err(PoaError::ObjectNotActive));
        let next = client(&client_orb(), &poa, "x").pass_on();
        let told = next.map_err(|it| (it.kind, it.minor));
        let expected = (ExceptionKind::Transient, local::BEING_ETHEREALIZED.minor);
        assert_eq!(told, Err(expected), "the last servant has not ended");
        assert_eq!(taken(&events), ["+"], "the call runs");
        lets.send(()).expect("it waits");
        assert_eq!(call.join().expect("no panic"), Ok(Vec::new()));
    });
    assert_eq!(ended(&events, 1), ["-"]);
    lets.send(()).expect("the activator is there");
    let next = until("the last servant has ended", || {
        let next = relay.pass_on().map_err(|it| it.kind);
        (next != Err(ExceptionKind::Transient)).then_some(next)
    });
    assert_eq!(next, Ok(Vec::new()));
    assert_eq!(taken(&events), ["+"]);
}

#[test]
fn an_incarnation_that_fails_is_tried_again_for_the_next_request() {
    /// Fails for the first time.
    struct Fails {
        fail: fn() -> Intervention,
        asked: AtomicUsize,
    }
    impl ServantActivator for Fails {
        type Servant = Names;

        fn incarnate(&self, id: &[u8]) -> Result<Names, Intervention> {
            if self.asked.fetch_add(1, Ordering::SeqCst) == 0 {
                return Err((self.fail)());
            }
            Ok(Names(String::from_utf8_lossy(id).into_owned()))
        }
    }
    type Fail = fn() -> Intervention;
    let rows: [(&str, Fail, ExceptionKind); 3] = [
        (
            "unknown",
            || ExceptionKind::ObjectNotExist.into(),
            ExceptionKind::ObjectNotExist,
        ),
        (
            "unread",
            || ExceptionKind::PersistStore.into(),
            ExceptionKind::PersistStore,
        ),
        ("panics", || panic!("as it shall"), ExceptionKind::Unknown),
    ];
    let ours = Ours::serve();
    let orb = client_orb();
    for (name, fail, expected) in rows {
        let poa = persistent(&ours, name);
        let asked = AtomicUsize::new(0);
        poa.set_servant_activator::<Relay, _>(Fails { fail, asked })
            .expect("it has none");
        let relay = client(&orb, &poa, "x");
        assert_eq!(who(&relay), Err(expected), "{name}");
        assert!(!poa.is_active(relay.as_object()), "{name}");
        assert_eq!(who(&relay).as_deref(), Ok("x"), "{name}");
        assert!(poa.is_active(relay.as_object()), "{name}");
    }
}

#[test]
fn a_servant_that_comes_too_late_is_etherealized() {
    type Act = fn(&Poa);
    /// Does something else before it makes its first servant.
    struct Acts {
        first: Mutex<Option<(Poa, Act)>>,
        events: Events,
    }
    impl ServantActivator for Acts {
        type Servant = Names;

        fn incarnate(&self, id: &[u8]) -> Result<Names, Intervention> {
            let first = self.first.lock().expect("nobody panics").take();
            if let Some((poa, act)) = first {
                act(&poa);
            }
            let id = String::from_utf8_lossy(id).into_owned();
            note(&self.events, format!("+{id}"));
            Ok(Names(id))
        }

        fn etherealize(&self, _: &[u8], servant: Names) {
            note(&self.events, format!("-{}", servant.0));
        }
    }
    let rows: [(&str, Act, Result<&str, ExceptionKind>); 2] = [
        (
            "Activated",
            |poa| {
                let own = Names("own servant".to_owned());
                let own = poa.activate_with_id::<Relay, _>("x", own);
                own.expect("it is not active yet");
            },
            Ok("own servant"),
        ),
        (
            "Destroyed",
            |poa| poa.destroy(),
            Err(ExceptionKind::ObjAdapter),
        ),
    ];
    let ours = Ours::serve();
    let orb = client_orb();
    for (name, act, expected) in rows {
        let (poa, events) = (persistent(&ours, name), Events::default());
        let acts = Acts {
            first: Mutex::new(Some((poa.clone(), act))),
            events: Arc::clone(&events),
        };
        poa.set_servant_activator::<Relay, _>(acts)
            .expect("it has none");
        let answer = who(&client(&orb, &poa, "x"));
        assert_eq!(answer.as_deref().map_err(|it| *it), expected, "{name}");
        assert_eq!(taken(&events), ["+x", "-x"], "{name}");
    }
}

/// What a thread did for a request, in order.
type Steps = Arc<Mutex<Vec<(&'static str, ThreadId)>>>;

fn step(steps: &Steps, name: &'static str) {
    let mut steps = steps.lock().expect("nobody panics");
    steps.push((name, thread::current().id()));
}

/// The servant of one request.
struct Stepping {
    steps: Steps,
    act: fn() -> Result<Vec<Seen>, SystemException>,
}

impl RelayServant for Stepping {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        step(&self.steps, "operation");
        (self.act)()
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Drop for Stepping {
    fn drop(&mut self) {
        step(&self.steps, "postinvoke");
    }
}

//= CORBA 3 §ServantLocator Interface
//% test
#[test]
fn a_locator_a_request_and_the_end_of_its_servant_are_of_one_thread() {
    type Act = fn() -> Result<Vec<Seen>, SystemException>;
    let acts: [(Act, Result<Vec<Seen>, ExceptionKind>); 3] = [
        (|| Ok(Vec::new()), Ok(Vec::new())),
        (
            || Err(ExceptionKind::NoPermission.into()),
            Err(ExceptionKind::NoPermission),
        ),
        (|| panic!("as it shall"), Err(ExceptionKind::Unknown)),
    ];
    for (name, dispatch) in DispatchStrategy::ALL {
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).pool_threads(2));
        for (row, (act, expected)) in acts.iter().enumerate() {
            let label = format!("{name}-{row}");
            let (poa, steps) = (persistent(&ours, &label), Steps::default());
            let (of_locator, act) = (Arc::clone(&steps), *act);
            let locate = move |_: &[u8]| {
                step(&of_locator, "preinvoke");
                let steps = Arc::clone(&of_locator);
                Ok::<_, Intervention>(Stepping { steps, act })
            };
            poa.set_servant_locator::<Relay, _, _>(locate)
                .expect("it has none");
            let answer = client(&client_orb(), &poa, "x").pass_on();
            assert_eq!(answer.map_err(|it| it.kind), *expected, "{label}");
            // The reply may come before the servant's end.
            let steps = until("the servant has ended", || {
                let steps = steps.lock().expect("nobody panics");
                (steps.len() >= 3).then(|| steps.clone())
            });
            let thread = steps[0].1;
            let expected = ["preinvoke", "operation", "postinvoke"].map(|it| (it, thread));
            assert_eq!(steps, expected, "{label}");
        }
    }
}

#[test]
fn an_adapter_activator_makes_the_adapters_that_requests_name() {
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    let asked = Events::default();
    let of_root = Arc::clone(&asked);
    let set = root.set_adapter_activator(move |root, name| {
        note(&of_root, name.to_owned());
        if name != "Rooms" {
            return false;
        }
        let rooms = root.create_poa(name, PoaPolicies::PERSISTENT);
        let rooms = rooms.expect("it is free");
        let set = rooms.set_adapter_activator(|rooms, floor| {
            let Ok(poa) = rooms.create_poa(floor, PoaPolicies::PERSISTENT) else {
                return false;
            };
            let named = |id: &[u8]| Ok(Names(String::from_utf8_lossy(id).into_owned()));
            poa.set_servant_locator::<Relay, _, _>(named).is_ok()
        });
        set.is_ok()
    });
    set.expect("the root exists");
    let orb = client_orb();
    let called = |key: &str| {
        let url = format!("corbaloc:iiop:1.2@{}/{key}", ours.address());
        let object = orb.string_to_object(&url).expect("a URL");
        who(&Relay::unchecked_narrow(object))
    };
    assert_eq!(called("Rooms/First/12").as_deref(), Ok("12"));
    assert_eq!(called("Rooms/First/13").as_deref(), Ok("13"));
    assert_eq!(called("Rooms/Second/21").as_deref(), Ok("21"));
    assert_eq!(taken(&asked), ["Rooms"]);
    assert_eq!(called("Gardens/x"), GONE);
    assert_eq!(called("Rooms/x"), GONE);
    assert_eq!(called("x"), GONE);
    assert_eq!(taken(&asked), ["Gardens"]);
    let rooms = root.find_poa("Rooms").expect("it is made");
    assert_eq!(
        rooms.find_poa("Third").expect("its activator").name(),
        "Rooms/Third"
    );
    let unknown = root.find_poa("Gardens").map(|_| ());
    assert!(matches!(unknown, Err(PoaError::AdapterNonExistent)));
}

#[test]
fn an_adapter_activator_that_panics_does_so_for_one_request() {
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    let set = root.set_adapter_activator(|_, _| panic!("as it shall"));
    set.expect("the root exists");
    let own = persistent(&ours, "Made");
    let relay: Relay = own
        .activate_with_id("x", Names("x".to_owned()))
        .expect("room");
    let orb = client_orb();
    let url = format!("corbaloc:iiop:1.2@{}/No/x", ours.address());
    let object = orb.string_to_object(&url).expect("a URL");
    assert_eq!(who(&Relay::unchecked_narrow(object)), GONE);
    assert_eq!(who(&client(&orb, &own, "x")).as_deref(), Ok("x"));
    drop(relay);
}

/// ForwardRequest of CORBA 3, 11.3.4.1 and 11.3.5.1: all that a request asks is asked at the other object.
#[test]
fn a_servant_manager_forwards_clients_to_another_object() {
    /// Forwards all objects but one.
    struct Elsewhere(Relay);
    impl Elsewhere {
        fn find(&self, id: &[u8]) -> Result<Names, Intervention> {
            match id {
                b"here" => Ok(Names("here".to_owned())),
                _ => Err(Intervention::Forward(self.0.as_object().ior().clone())),
            }
        }
    }
    impl ServantActivator for Elsewhere {
        type Servant = Names;

        fn incarnate(&self, id: &[u8]) -> Result<Names, Intervention> {
            self.find(id)
        }
    }
    for (name, dispatch) in DispatchStrategy::ALL {
        let other = Ours::serve();
        let there = Names("there".to_owned());
        let elsewhere: Relay = other.poa.activate(there).expect("there is room");
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).pool_threads(2));
        let activator = persistent(&ours, "Activator");
        (activator.set_servant_activator::<Relay, _>(Elsewhere(elsewhere.clone())))
            .expect("it has none");
        let locator = persistent(&ours, "Locator");
        let of_locator = Elsewhere(elsewhere.clone());
        (locator.set_servant_locator::<Relay, _, _>(move |id| of_locator.find(id)))
            .expect("it has none");
        let default = persistent(&ours, "Default");
        let of_default = Elsewhere(elsewhere.clone());
        (default.set_default_servant::<Relay, _, _>(move |id| of_default.find(id)))
            .expect("it has none");
        for poa in [&activator, &locator, &default] {
            let called = || client(&client_orb(), poa, "x");
            let label = format!("{name} {}", poa.name());
            assert_eq!(who(&called()).as_deref(), Ok("there"), "{label}");
            let moved = called();
            // By a LocateRequest, and by operations of all objects.
            moved.as_object().validate_connection().expect(&label);
            assert_eq!(
                called().as_object().is_a("IDL:Relay:1.0"),
                Ok(true),
                "{label}"
            );
            assert_eq!(
                called().as_object().is_a("IDL:Cubit:1.0"),
                Ok(false),
                "{label}"
            );
            assert_eq!(called().as_object().non_existent(), Ok(false), "{label}");
            assert_eq!(
                who(&client(&client_orb(), poa, "here")).as_deref(),
                Ok("here"),
                "{label}"
            );
        }
        // The client asks again where it was, once the other object is gone.
        let relay = client(&client_orb(), &activator, "x");
        assert_eq!(who(&relay).as_deref(), Ok("there"), "{name}");
        drop(other);
        assert!(who(&relay).is_err(), "{name}");
    }
}

#[test]
fn of_many_first_requests_all_are_forwarded() {
    /// Takes a while, so that other requests wait.
    struct Elsewhere(Relay);
    impl ServantActivator for Elsewhere {
        type Servant = Names;

        fn incarnate(&self, _: &[u8]) -> Result<Names, Intervention> {
            thread::sleep(Duration::from_millis(5));
            Err(Intervention::Forward(self.0.as_object().ior().clone()))
        }
    }
    const CLIENTS: usize = 8;
    let other = Ours::serve();
    let there = Names("there".to_owned());
    let elsewhere: Relay = other.poa.activate(there).expect("there is room");
    let pool = Orb::builder().dispatch(DispatchStrategy::WorkerPool);
    let ours = Ours::serve_as(pool.pool_threads(CLIENTS));
    let poa = persistent(&ours, "Activator");
    poa.set_servant_activator::<Relay, _>(Elsewhere(elsewhere))
        .expect("it has none");
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let called = client(&client_orb(), &poa, "x");
            scope.spawn(move || assert_eq!(who(&called).as_deref(), Ok("there")));
        }
    });
}

/// The client of a oneway that waits for the server (SYNC_WITH_SERVER) has not got its reply before the object is known.
#[test]
fn a_oneway_is_forwarded_or_refused_before_its_client_is_told_that_it_has_arrived() {
    let (other, ours) = (Ours::serve(), Ours::serve());
    let elsewhere = other.cubit.as_object().ior().clone();
    let locate = move |id: &[u8]| match id {
        b"moved" => Err(Intervention::Forward(elsewhere.clone())),
        b"gone" => Err(ExceptionKind::ObjectNotExist.into()),
        _ => Ok(Names(String::new())),
    };
    let locator = persistent(&ours, "Locator");
    (locator.set_servant_locator::<Relay, _, _>(locate.clone())).expect("it has none");
    struct Makes<L>(L);
    impl<L> ServantActivator for Makes<L>
    where
        L: Fn(&[u8]) -> Result<Names, Intervention> + Send + Sync + 'static,
    {
        type Servant = Names;

        fn incarnate(&self, id: &[u8]) -> Result<Names, Intervention> {
            (self.0)(id)
        }
    }
    let activator = persistent(&ours, "Activator");
    (activator.set_servant_activator::<Relay, _>(Makes(locate))).expect("it has none");
    let mut connection = Connection::to(ours.address());
    for poa in [&locator, &activator] {
        for (id, status) in [("here", 0), ("moved", 3), ("gone", 2), ("here", 0)] {
            let object: Relay = poa.create_reference_with_id(id).expect("persistent");
            let mut oneway = Stream::new(REQUEST, 2, false);
            oneway.ulong(7).raw(&[1, 0, 0, 0]).ushort(0);
            oneway
                .octets(&ours.key(object.as_object()))
                .string("shutdown")
                .ulong(0);
            let answer = connection.ask(&oneway.message()).expect("it is answered");
            assert_eq!(
                (answer.id, answer.status),
                (7, status),
                "{} {id}",
                poa.name()
            );
        }
    }
}

#[test]
fn a_locator_that_panics_when_it_is_dropped_ends_no_thread_that_serves() {
    struct Falls;
    impl Drop for Falls {
        fn drop(&mut self) {
            panic!("as it shall");
        }
    }
    for (name, dispatch) in DispatchStrategy::ALL {
        for asks_by_locate_request in [true, false] {
            let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).pool_threads(1));
            let poa = persistent(&ours, "Falls");
            let (falls, destroyed) = (Falls, poa.clone());
            let locate = move |_: &[u8]| {
                let _lives_as_long = &falls;
                destroyed.destroy();
                Ok::<_, Intervention>(Names(String::new()))
            };
            poa.set_servant_locator::<Relay, _, _>(locate)
                .expect("it has none");
            let located = poa.create_reference_with_id::<Relay>("x");
            let key = ours.key(located.expect("it has a locator").as_object());
            let mut client = Connection::to(ours.address());
            let asked = if asks_by_locate_request {
                let mut locate = Stream::new(LOCATE_REQUEST, 2, false);
                locate.ulong(1).ushort(0).octets(&key);
                locate.message()
            } else {
                Request::two_way(&key, "_non_existent").empty()
            };
            assert_eq!(client.ask(&asked).map(|it| it.id), Some(1), "{name}");
            let cubit = ours.key(ours.cubit.as_object());
            let cube = Request::two_way(&cubit, "cube_long").of_long(3);
            let answer = client.ask(&cube).expect(name);
            assert_eq!(answer.long(), 27, "{name}");
        }
    }
}
