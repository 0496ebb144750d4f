//! A caller's priority is what servants see, as RTCurrent and the kernel say it, unless something changes it on the way.

use rtorb::rt::{
    LinearMapping, Policy, Priority, PriorityModel, PriorityTransform, Protocol, Threadpool,
    UnixDomainProtocolProperties,
};
use rtorb::{DispatchStrategy, ExceptionKind, Orb, Strategies, SystemException};
use rtorb_tests::relay::{Relayer, Served, has_priorities, lane, laned_pool, model, relay, way};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Relay;

use PriorityModel::{ClientPropagated, ServerDeclared};

//= RT-CORBA 1.2 §Real-Time CORBA Priority Models
//% test
#[test]
fn a_propagated_priority_is_the_callers() {
    if !has_priorities() {
        return;
    }
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Served::by(Orb::builder().dispatch(dispatch));
        let relay = relay(&served, "propagated", &[model(ClientPropagated, 3)]);
        for number in [0, 1, 40, 7] {
            let seen = way(Orb::builder(), &relay, Some(number));
            assert_eq!(seen, Ok(vec![(number, number)]), "{name}");
        }
    }
}

#[test]
fn nested_calls_have_the_priority_of_the_first() {
    if !has_priorities() {
        return;
    }
    let last = Served::by(Orb::builder());
    let behind = relay(&last, "last", &[model(ClientPropagated, 3)]);
    let first = Served::by(Orb::builder());
    let text = behind.as_object().to_string();
    let object = first.orb.string_to_object(&text).expect("a reference");
    let next = Some(Relay::unchecked_narrow(object));
    for (name, model, expected) in [
        ("propagated", model(ClientPropagated, 3), 11),
        ("declared", model(ServerDeclared, 5), 5),
    ] {
        let poa = first.adapter(name, &[model]).expect("free");
        let relay: Relay = poa
            .activate(Relayer {
                next: next.clone(),
                ..first.relayer(name)
            })
            .expect("room");
        let seen = way(Orb::builder(), &relay, Some(11));
        assert_eq!(seen, Ok(vec![(expected, expected); 2]), "{name}");
    }
}

//= RT-CORBA 1.2 §CORBA Priority Mappings
//% test
//= RT-CORBA 1.2 §Native Thread Priorities
//% test
#[test]
fn a_priority_is_mapped_to_the_kernels() {
    if !has_priorities() {
        return;
    }
    let linear = || Orb::builder().priority_mapping(LinearMapping);
    let served = Served::by(linear());
    let relay = relay(&served, "propagated", &[model(ClientPropagated, 0)]);
    for pair in [(0, 1), (16_384, 50), (32_767, 99)] {
        assert_eq!(way(linear(), &relay, Some(pair.0)), Ok(vec![pair]));
    }
}

//= RT-CORBA 1.2 §Threadpools
//% test
#[test]
fn a_pool_without_lanes_takes_the_priority_of_each_call() {
    let served = Served::by(Orb::builder());
    let rt_orb = served.orb.rt_orb();
    let pool = rt_orb
        .create_threadpool(Threadpool {
            static_threads: 2,
            ..Threadpool::default()
        })
        .expect("threads of time sharing");
    if !has_priorities() {
        return;
    }
    let threads = Policy::Threadpool(pool);
    let propagated = relay(&served, "a", &[threads.clone(), model(ClientPropagated, 3)]);
    let declared = relay(&served, "b", &[threads, model(ServerDeclared, 5)]);
    for number in [20, 0, 6] {
        let seen = way(Orb::builder(), &propagated, Some(number));
        assert_eq!(seen, Ok(vec![(number, number)]));
        let seen = way(Orb::builder(), &declared, Some(number));
        assert_eq!(seen, Ok(vec![(5, 5)]));
    }
}

#[test]
fn a_lane_serves_calls_of_its_priority() {
    let served = Served::by(Orb::builder());
    let Some(pool) = laned_pool(&served.orb.rt_orb(), &[0, 5, 10]) else {
        return;
    };
    let threads = Policy::Threadpool(pool);
    let propagated = relay(&served, "a", &[threads.clone(), model(ClientPropagated, 0)]);
    for number in [0, 5, 10] {
        let seen = way(Orb::builder(), &propagated, Some(number));
        assert_eq!(seen, Ok(vec![(number, number)]));
    }
    let nobody = way(Orb::builder(), &propagated, Some(7)).expect_err("there is no such lane");
    assert_eq!(nobody.kind, ExceptionKind::InvPolicy);
    let declared = relay(&served, "b", &[threads, model(ServerDeclared, 5)]);
    for number in [0, 7, 20] {
        let seen = way(Orb::builder(), &declared, Some(number));
        assert_eq!(seen, Ok(vec![(5, 5)]));
    }
}

#[test]
fn a_lane_is_chosen_over_unix_sockets_too() {
    let scratch = Scratch::new();
    let socket = format!("uiop://{}", scratch.join("socket").display());
    let tcp = || Orb::builder().listen("iiop://127.0.0.1:0");
    for builder in [Orb::builder(), tcp()] {
        let served = Served::by(builder.listen(&socket));
        let Some(pool) = laned_pool(&served.orb.rt_orb(), &[0, 5]) else {
            return;
        };
        let unix = UnixDomainProtocolProperties::default();
        for policies in [
            vec![],
            vec![Policy::ServerProtocol(vec![Protocol::UnixDomain(unix)])],
        ] {
            let name = format!("with {} more", policies.len());
            let lanes = [Policy::Threadpool(pool), model(ClientPropagated, 0)];
            let relay = relay(&served, &name, &[&lanes[..], &policies].concat());
            for number in [0, 5] {
                let seen = way(Orb::builder(), &relay, Some(number));
                assert_eq!(seen, Ok(vec![(number, number)]), "{name}");
            }
        }
    }
}

#[test]
fn the_orbs_own_lanes_serve_calls_of_their_priorities() {
    if !has_priorities() {
        return;
    }
    let lanes = Orb::builder().strategies(Strategies::TAO);
    let served = Served::by(lanes.lanes([lane(0), lane(5)]));
    let propagated = relay(&served, "a", &[model(ClientPropagated, 0)]);
    let declared = relay(&served, "b", &[model(ServerDeclared, 5)]);
    for number in [0, 5] {
        let seen = way(Orb::builder(), &propagated, Some(number));
        assert_eq!(seen, Ok(vec![(number, number)]));
        assert_eq!(
            way(Orb::builder(), &declared, Some(number)),
            Ok(vec![(5, 5)])
        );
    }
}

/// Adds to each priority below 50, and refuses the others.
#[derive(Debug)]
struct Add(i16);

impl PriorityTransform for Add {
    fn transform_priority(&self, priority: Priority, object: &[u8]) -> Option<Priority> {
        assert!(!object.is_empty(), "an object has an id");
        let sum = priority.get().checked_add(self.0)?;
        Priority::new(sum).ok().filter(|_| priority.get() < 50)
    }
}

//= RT-CORBA 1.2 §Priority Transforms
//% test
#[test]
fn transforms_change_priorities_coming_in_and_going_out() {
    if !has_priorities() {
        return;
    }
    let served = Served::by(Orb::builder().inbound_transform(Add(1)));
    let propagated = relay(&served, "a", &[model(ClientPropagated, 0)]);
    let declared = relay(&served, "b", &[model(ServerDeclared, 5)]);
    let out = || Orb::builder().outbound_transform(Add(10));
    assert_eq!(way(Orb::builder(), &propagated, Some(4)), Ok(vec![(5, 5)]));
    assert_eq!(way(out(), &propagated, Some(4)), Ok(vec![(15, 15)]));
    assert_eq!(way(out(), &declared, Some(4)), Ok(vec![(6, 6)]));
    let refused = SystemException::omg(ExceptionKind::DataConversion, 2);
    for (builder, number) in [(Orb::builder(), 50), (out(), 60)] {
        let answer = way(builder, &propagated, Some(number));
        assert_eq!(answer.expect_err("refused"), refused);
    }
}

/// Cannot bear 7.
#[derive(Debug)]
struct Superstitious;

impl PriorityTransform for Superstitious {
    fn transform_priority(&self, priority: Priority, _: &[u8]) -> Option<Priority> {
        assert_ne!(priority.get(), 7, "as the test wants it");
        Some(priority)
    }
}

#[test]
fn a_transform_that_panics_fails_one_call_and_no_thread() {
    if !has_priorities() {
        return;
    }
    for dispatch in [
        DispatchStrategy::Reactive,
        DispatchStrategy::WorkerPool,
        DispatchStrategy::FilterChain,
    ] {
        let builder = Orb::builder().dispatch(dispatch).pool_threads(1);
        let served = Served::by(builder.inbound_transform(Superstitious));
        let propagated = relay(&served, "a", &[model(ClientPropagated, 0)]);
        let failed = way(Orb::builder(), &propagated, Some(7)).expect_err("it panics");
        assert_eq!(failed.kind, ExceptionKind::Unknown, "{dispatch}");
        let seen = way(Orb::builder(), &propagated, Some(8));
        assert_eq!(seen, Ok(vec![(8, 8)]), "{dispatch}");
    }
}
