//! Objects whose servants come from elsewhere: activators, default servants and adapter activators (CORBA 3, 11.3).

use super::object_keys::{Names, client, persistent};
use rtorb::{
    DispatchStrategy, ExceptionKind, Intervention, Orb, Poa, PoaError, PoaPolicies,
    ServantActivator, SystemException,
};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{Connection, LOCATE_REQUEST, REQUEST, Request, Stream};
use rtorb_tests::running::until;
use rtorb_tests::stubs::{Relay, RelayServant, Seen};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
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

#[test]
fn an_adapter_activator_makes_the_adapters_that_requests_name() {
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    let asked = Events::default();
    let of_root = Arc::clone(&asked);
    root.set_adapter_activator(move |root, name| {
        note(&of_root, name.to_owned());
        if name != "Rooms" {
            return false;
        }
        let rooms = root.create_poa(name, PoaPolicies::PERSISTENT);
        let rooms = rooms.expect("it is free");
        rooms.set_adapter_activator(|rooms, floor| {
            let Ok(poa) = rooms.create_poa(floor, PoaPolicies::PERSISTENT) else {
                return false;
            };
            let named = |id: &[u8]| Ok(Names(String::from_utf8_lossy(id).into_owned()));
            poa.set_servant_locator::<Relay, _, _>(named).is_ok()
        });
        true
    });
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
    root.set_adapter_activator(|_, _| panic!("as it shall"));
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
