//! Adapters with policies of RT-CORBA: which go together, what objects with a priority may be, and what servants see.

use rtorb::exception::local;
use rtorb::poa::IdAssignment;
use rtorb::rt::{
    DestroyThreadpoolError, LanedThreadpool, Policy, Priority, PriorityModel, Protocol,
    RequestBuffering, Threadpool, ThreadpoolLane,
};
use rtorb::{ExceptionKind, Orb, PoaError, PoaPolicies, SystemException};
use rtorb_tests::relay::{Served, bands, lane, laned_pool, model, priority};
use rtorb_tests::stubs::Relay;

use PriorityModel::{ClientPropagated, ServerDeclared};

#[track_caller]
fn assert_invalid(served: &Served, policies: &[Policy], expected: usize) {
    match served.adapter("wrong", policies) {
        Err(PoaError::InvalidPolicy { index, .. }) => assert_eq!(index, expected, "{policies:?}"),
        other => panic!("{policies:?}: {other:?}"),
    }
}

#[test]
fn policies_that_do_not_go_together_are_told_by_their_index() {
    let served = Served::by(Orb::builder());
    let tcp = Protocol::Tcp(rtorb::rt::TcpProtocolProperties::default());
    let unix = Protocol::UnixDomain(rtorb::rt::UnixDomainProtocolProperties::default());
    let propagated = model(ClientPropagated, 0);
    let rows: [(&[Policy], usize); 12] = [
        (&[bands(&[(0, 10)])], 0),
        (&[propagated.clone(), bands(&[])], 1),
        (&[propagated.clone(), bands(&[(0, 10), (-1, 5)])], 1),
        (&[bands(&[(10, 9)]), propagated.clone()], 0),
        (&[bands(&[(0, 4), (6, 9)]), model(ServerDeclared, 5)], 1),
        (&[model(ServerDeclared, 100)], 0),
        (&[propagated.clone(), model(ServerDeclared, 5)], 1),
        (&[propagated.clone(), Policy::PrivateConnection], 1),
        (&[Policy::ServerProtocol(vec![])], 0),
        (&[Policy::ServerProtocol(vec![tcp, tcp])], 0),
        (&[propagated, Policy::ServerProtocol(vec![tcp, unix])], 1),
        (
            &[
                Policy::ClientProtocol(vec![]),
                Policy::ClientProtocol(vec![]),
            ],
            1,
        ),
    ];
    for (policies, index) in rows {
        assert_invalid(&served, policies, index);
    }
    let refused = served.adapter("wrong", &[bands(&[])]).expect_err("wrong");
    assert_eq!(
        refused.to_string(),
        "InvalidPolicy: policy 0 of RT-CORBA: the list of bands is empty"
    );
    let right = [bands(&[(0, 4), (5, 9)]), model(ServerDeclared, 5)];
    served
        .adapter("wrong", &right)
        .expect("the name is free still");
}

#[test]
fn policies_that_do_not_suit_a_pool_are_told_by_their_index() {
    let served = Served::by(Orb::builder());
    let rt_orb = served.orb.rt_orb();
    let Some(pool) = laned_pool(&rt_orb, &[0, 5, 10]) else {
        return;
    };
    let other = laned_pool(&rt_orb, &[1]).expect("another one");
    rt_orb.destroy_threadpool(other).expect("nobody uses it");
    let threads = Policy::Threadpool(pool);
    let gone = Policy::Threadpool(other);
    let propagated = model(ClientPropagated, 0);
    let declared = model(ServerDeclared, 5);
    let rows: [(&[Policy], usize); 6] = [
        (std::slice::from_ref(&gone), 0),
        (&[propagated.clone(), gone.clone()], 1),
        (&[bands(&[(0, 99)]), threads.clone()], 1),
        (&[threads.clone(), model(ServerDeclared, 6)], 1),
        (&[threads.clone(), propagated, bands(&[(0, 5), (6, 9)])], 2),
        (
            &[declared.clone(), threads.clone(), bands(&[(0, 4), (6, 99)])],
            2,
        ),
    ];
    for (policies, index) in &rows[..5] {
        assert_invalid(&served, policies, *index);
    }
    // Each band has a lane, and the declared priority is in none.
    assert_invalid(&served, rows[5].0, 0);
    // What was refused holds no pool.
    rt_orb.destroy_threadpool(pool).expect("nobody uses it");
}

#[test]
fn endpoints_that_adapters_share_are_set_up_once() {
    let served = Served::by(Orb::builder());
    let rt_orb = served.orb.rt_orb();
    let protocol = |size| {
        let tcp = Protocol::Tcp(rtorb::rt::TcpProtocolProperties {
            send_buffer_size: size,
            ..rtorb::rt::TcpProtocolProperties::default()
        });
        Policy::ServerProtocol(vec![tcp])
    };
    served.adapter("first", &[protocol(8192)]).expect("free");
    served
        .adapter("same", &[protocol(8192)])
        .expect("it agrees");
    assert_invalid(&served, &[protocol(9000)], 0);
    let pool = rt_orb
        .create_threadpool(Threadpool::default())
        .expect("threads of time sharing");
    let own = [protocol(9000), Policy::Threadpool(pool)];
    served.adapter("own", &own).expect("it shares with nobody");
}

//= RT-CORBA 1.2 §Threadpools
//% test
#[test]
fn a_pool_that_an_adapter_uses_is_not_destroyed() {
    let served = Served::by(Orb::builder());
    let rt_orb = served.orb.rt_orb();
    let pool = rt_orb
        .create_threadpool(Threadpool::default())
        .expect("threads of time sharing");
    let poa = served
        .adapter("user", &[Policy::Threadpool(pool)])
        .expect("the pool is there");
    match rt_orb.destroy_threadpool(pool) {
        Err(DestroyThreadpoolError::System(exception)) => {
            assert_eq!(exception.kind, ExceptionKind::BadInvOrder);
        }
        other => panic!("{other:?}"),
    }
    poa.destroy();
    rt_orb.destroy_threadpool(pool).expect("nobody uses it now");
    let again = rt_orb.destroy_threadpool(pool);
    assert!(
        matches!(again, Err(DestroyThreadpoolError::InvalidThreadpool(_))),
        "{again:?}"
    );
}

//= RT-CORBA 1.2 §Threadpools
//% test
#[test]
fn pools_that_nobody_could_serve_are_refused() {
    let served = Served::by(Orb::builder());
    let rt_orb = served.orb.rt_orb();
    let lanes = |lanes: Vec<ThreadpoolLane>| {
        let pool = LanedThreadpool {
            lanes,
            request_buffering: Some(RequestBuffering::default()),
            ..LanedThreadpool::default()
        };
        rt_orb.create_threadpool_with_lanes(pool)
    };
    let without_threads = Threadpool {
        static_threads: 0,
        ..Threadpool::default()
    };
    let of_no_priority_here = Threadpool {
        default_priority: Priority::MAX,
        ..Threadpool::default()
    };
    let too_many = Threadpool {
        dynamic_threads: u32::MAX,
        ..Threadpool::default()
    };
    let no_thread = ThreadpoolLane {
        static_threads: 0,
        ..lane(1)
    };
    let bad_parameter = local::WRONG_LANES;
    let no_such_priority = local::UNMAPPED_PRIORITY;
    let rows = [
        (rt_orb.create_threadpool(without_threads), &bad_parameter),
        (
            rt_orb.create_threadpool(of_no_priority_here),
            &no_such_priority,
        ),
        (lanes(vec![]), &bad_parameter),
        (lanes(vec![lane(0), no_thread]), &bad_parameter),
        (lanes(vec![lane(0), lane(0)]), &bad_parameter),
        (lanes(vec![lane(0), lane(100)]), &no_such_priority),
        (
            rt_orb.create_threadpool(too_many),
            &local::POOL_THREADS_FULL,
        ),
    ];
    for (number, (answer, expected)) in rows.iter().enumerate() {
        let failed = answer.as_ref().expect_err("nobody could serve it");
        let codes = (failed.kind, failed.minor, failed.completed);
        let expected = (expected.kind, expected.minor, expected.completed);
        assert_eq!(codes, expected, "row {number}");
    }
}

//= RT-CORBA 1.2 §Real-Time POA
//% test
#[test]
fn objects_have_priorities_of_their_own_where_the_server_declares_them() {
    let served = Served::by(Orb::builder());
    let relayer = || served.relayer("r");
    let plain = served.adapter("plain", &[]).expect("free");
    let propagated = served
        .adapter("propagated", &[model(ClientPropagated, 0)])
        .expect("free");
    for poa in [plain, propagated] {
        let wrong: Result<Relay, _> = poa.activate_with_priority(relayer(), Priority::MIN);
        assert_eq!(wrong.err(), Some(PoaError::WrongPolicy));
    }
    let in_bands = [bands(&[(0, 4), (6, 9)]), model(ServerDeclared, 0)];
    let poa = served.adapter("declared", &in_bands).expect("free");
    for (number, expected) in [(4, None), (5, Some(ExceptionKind::BadParam)), (9, None)] {
        let made: Result<Relay, _> = poa.activate_with_priority(relayer(), priority(number));
        let refused = made.err().map(|error| match error {
            PoaError::System(exception) => exception.kind,
            other => panic!("{other}"),
        });
        assert_eq!(refused, expected, "{number}");
    }
    let wrong: Result<Relay, _> = poa.create_reference_with_id_and_priority("x", priority(4));
    assert_eq!(wrong.err(), Some(PoaError::WrongPolicy), "it makes the ids");
    let wrong: Result<Relay, _> = poa.create_reference_with_priority(priority(4));
    assert_eq!(wrong.err(), Some(PoaError::WrongPolicy), "it is transient");
}

#[test]
fn a_reference_settles_the_priority_of_its_object() {
    let served = Served::by(Orb::builder());
    let relayer = || served.relayer("r");
    let settled = PoaError::System(SystemException::omg(ExceptionKind::BadInvOrder, 18));
    let persistent = PoaPolicies::PERSISTENT.with(model(ServerDeclared, 1));
    let poa = served
        .root
        .create_poa("given", persistent.clone())
        .expect("free");
    let early: Relay = poa
        .create_reference_with_id_and_priority("gate", priority(7))
        .expect("it needs no servant");
    let wrong: Result<Relay, _> = poa.create_reference_with_id_and_priority("gate", priority(8));
    assert_eq!(wrong.err(), Some(settled.clone()));
    let wrong: Result<Relay, _> = poa.activate_with_id_and_priority("gate", relayer(), priority(8));
    assert_eq!(wrong.err(), Some(settled));
    let late: Relay = poa.activate_with_id("gate", relayer()).expect("free");
    assert_eq!(late.as_object().ior(), early.as_object().ior());
    let plain: Relay = poa.create_reference_with_id("gate").expect("persistent");
    assert_eq!(plain.as_object().ior(), early.as_object().ior());

    let made = persistent.with_id_assignment(IdAssignment::System);
    let poa = served.root.create_poa("made", made).expect("free");
    let early: Relay = poa
        .create_reference_with_priority(priority(7))
        .expect("it needs no servant");
    let id = poa.reference_to_id(early.as_object()).expect("its own");
    let late: Relay = poa
        .activate_with_id_and_priority(&id, relayer(), priority(7))
        .expect("the adapter made the id");
    assert_eq!(late.as_object().ior(), early.as_object().ior());
    let wrong: Result<Relay, _> = poa.activate_with_id("another", relayer());
    assert_eq!(wrong.err(), Some(PoaError::WrongPolicy));
    let active: Relay = poa
        .activate_with_priority(relayer(), priority(9))
        .expect("room");
    assert!(poa.reference_to_id(active.as_object()).is_ok());
}
