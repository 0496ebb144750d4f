//! Policies of the calls of a thread (PolicyCurrent).

use rtorb::rt::Policy;
use rtorb::{
    ConnectionStrategy, ExceptionKind, ObjectRef, Orb, PolicyOverrides, SyncScope, SystemException,
    WaitStrategy,
};
use rtorb_tests::fake::{FakeServer, Peer};
use rtorb_tests::ours::Ours;
use rtorb_tests::stubs::exchange::Desk;
use std::thread;
use std::time::Duration;

/// Longer than any test needs, and a timeout that is met.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(20);

/// A server that replies to nothing.
fn silent() -> FakeServer {
    FakeServer::new(|_, mut peer: Peer| peer.wait_for_end())
}

fn silent_object(orb: &Orb, server: &FakeServer) -> ObjectRef {
    orb.string_to_object(&server.reference())
        .expect("a reference")
}

fn client() -> Orb {
    let builder = Orb::builder().round_trip_timeout(Some(LONG));
    builder.build().expect("the ORB can be built")
}

fn ask(object: &ObjectRef) -> Result<(), ExceptionKind> {
    let asked = object.invoke("ask", |_| Ok(()), |_| Ok(()));
    asked.map_err(|exception| exception.kind)
}

fn desk_by(orb: &Orb, ours: &Ours) -> Desk {
    let object = orb.string_to_object(&ours.text(ours.desk.as_object()));
    Desk::unchecked_narrow(object.expect("a reference"))
}

fn soon() -> PolicyOverrides {
    PolicyOverrides::default().round_trip_timeout(SHORT)
}

#[test]
fn a_timeout_of_the_thread_ends_its_calls_alone() {
    let (server, orb) = (silent(), client());
    let object = silent_object(&orb, &server);
    let current = orb.policy_current();
    for _ in 0..3 {
        let ended = current.with_overrides(soon(), || {
            assert_eq!(current.overrides(), soon());
            ask(&object)
        });
        assert_eq!(ended, Ok(Err(ExceptionKind::Timeout)));
    }
    assert_eq!(current.overrides(), PolicyOverrides::default());
    assert_eq!(object.chosen_timeout(), Some(LONG));
    let ours = Ours::serve();
    let desk = desk_by(&orb, &ours);
    let from_another = current.with_overrides(soon(), || {
        // Not of this thread.
        let other = thread::spawn({
            let (orb, desk) = (orb.clone(), desk.clone());
            move || (orb.policy_current().overrides(), desk.sleep(50))
        });
        other.join().expect("no panic")
    });
    assert_eq!(
        from_another.expect("good policies"),
        (PolicyOverrides::default(), Ok(()))
    );
    // Nor of another ORB.
    let other = desk_by(&client(), &ours);
    assert_eq!(
        current.with_overrides(soon(), || other.sleep(50)),
        Ok(Ok(()))
    );
}

#[test]
fn a_policy_of_the_reference_comes_before_one_of_the_thread() {
    let ours = Ours::serve();
    let (server, orb) = (silent(), client());
    let current = orb.policy_current();
    let patient = Desk::unchecked_narrow(desk_by(&orb, &ours).as_object().with_timeout(LONG));
    assert_eq!(
        current.with_overrides(soon(), || patient.sleep(50)),
        Ok(Ok(()))
    );
    let hasty = silent_object(&orb, &server).with_timeout(SHORT);
    let long = PolicyOverrides::default().round_trip_timeout(LONG);
    let ended = current.with_overrides(long, || ask(&hasty));
    assert_eq!(ended, Ok(Err(ExceptionKind::Timeout)));
}

#[test]
fn operations_within_operations_add_policies() {
    let (server, orb) = (silent(), client());
    let (object, current) = (silent_object(&orb, &server), orb.policy_current());
    let at_once = PolicyOverrides::default().sync_scope(SyncScope::None);
    let both = soon().sync_scope(SyncScope::None);
    current
        .with_overrides(at_once.clone(), || {
            let inner = current.with_overrides(soon(), || {
                assert_eq!(current.overrides(), both);
                ask(&object)
            });
            assert_eq!(inner, Ok(Err(ExceptionKind::Timeout)));
            assert_eq!(current.overrides(), at_once);
        })
        .expect("good policies");
}

#[test]
fn a_sync_scope_of_the_thread_holds_for_its_oneways() {
    let (ours, orb) = (Ours::serve(), client());
    let (desk, current) = (desk_by(&orb, &ours), orb.policy_current());
    let at_once = || PolicyOverrides::default().sync_scope(SyncScope::None);
    let unsent = current.with_overrides(at_once(), || desk.note(1));
    let unsent = unsent.expect("good policies").expect_err("no connection");
    assert_eq!(unsent.minor, SyncScope::UNCONNECTED);
    desk.note(2).expect("it opens the connection");
    assert_eq!(
        current.with_overrides(at_once(), || desk.note(3)),
        Ok(Ok(()))
    );
    // A reference with a scope of its own waits.
    let orb = client();
    let desk = desk_by(&orb, &ours);
    let waiting = desk.as_object().with_sync_scope(SyncScope::WithTransport);
    let waiting = Desk::unchecked_narrow(waiting);
    let current = orb.policy_current();
    assert_eq!(
        current.with_overrides(at_once(), || waiting.note(4)),
        Ok(Ok(()))
    );
}

#[test]
fn policies_of_rt_corba_hold_and_wrong_ones_are_refused() {
    let (ours, orb) = (Ours::serve(), client());
    let (desk, current) = (desk_by(&orb, &ours), orb.policy_current());
    assert_eq!(desk.level(), Ok(0));
    let accepted = || ours.orb.connection_counts().accepted;
    let before = accepted();
    let private = PolicyOverrides::default().policy(Policy::PrivateConnection);
    let levels = current.with_overrides(private, || [desk.level(), desk.level()]);
    assert_eq!(levels, Ok([Ok(0), Ok(0)]));
    assert_eq!(accepted() - before, 1, "one connection for all calls");
    let server_protocol = Policy::ServerProtocol(Vec::new());
    let wrong = PolicyOverrides::default().policy(server_protocol);
    let refused: Result<(), SystemException> = current.with_overrides(wrong, || unreachable!());
    let refused = refused.expect_err("a policy of adapters");
    assert_eq!(refused.kind, ExceptionKind::NoPermission);
}

#[test]
fn started_calls_have_the_policies_of_the_thread_that_starts_them() {
    let wait = WaitStrategy::LeaderFollowers;
    let shared = ConnectionStrategy::Multiplexed { wait };
    let builder = Orb::builder().connection(shared);
    let orb = builder.round_trip_timeout(Some(LONG)).build();
    let orb = orb.expect("the ORB can be built");
    let server = silent();
    let object = silent_object(&orb, &server);
    let start = || object.start("ask", |_| Ok(()), |_| Ok(()));
    let started = orb.policy_current().with_overrides(soon(), start);
    let ended = started.expect("good policies").wait();
    let ended: Result<(), _> = ended.map_err(|exception| exception.kind);
    assert_eq!(ended, Err(ExceptionKind::Timeout));
}

#[test]
fn the_calls_of_many_references_have_the_policies() -> Result<(), SystemException> {
    let (ours, orb) = (Ours::serve(), client());
    let (desk, current) = (desk_by(&orb, &ours), orb.policy_current());
    let desks: Vec<_> = (0..40)
        .map(|_| Desk::unchecked_narrow(desk.as_object().with_sync_scope(SyncScope::WithTransport)))
        .collect();
    let soon = PolicyOverrides::default().round_trip_timeout(Duration::from_millis(20));
    let level = orb.policy_current().with_overrides(soon, || desk.level())?;
    assert!(level.is_ok() || level.is_err_and(|it| it.kind == ExceptionKind::Timeout));
    let long = PolicyOverrides::default().round_trip_timeout(LONG);
    current.with_overrides(long, || {
        for desk in desks.iter().chain(&desks) {
            assert_eq!(desk.level(), Ok(0));
        }
    })
}
