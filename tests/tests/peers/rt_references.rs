//! What references to objects of adapters with policies of RT-CORBA tell, octet by octet as TAO writes it, and what other
//! ORBs make of it.

use std::net::SocketAddr;
use std::sync::Arc;

use rtorb::ior::{
    Component, Ior, ProfileBody, TaggedComponent, TaoEndpoint, TaoUnixEndpoint, component_tag,
    policy_type, profile_tag,
};
use rtorb::rt::{
    Policy, PriorityModel, Protocol, TcpProtocolProperties, Threadpool,
    UnixDomainProtocolProperties,
};
use rtorb::{DispatchStrategy, Orb, Poa, PoaError, PoaPolicies};
use rtorb_tests::peers::omniorb::{decoded, omniorb};
use rtorb_tests::raw::{Connection, LOCATE_REQUEST, REQUEST, Stream};
use rtorb_tests::relay::{Served, bands, has_priorities, lane, laned_pool, model, priority};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::{Cubit, Relay};

use PriorityModel::{ClientPropagated, ServerDeclared};

/// Tags of every reference of ours.
const PLAIN: [u32; 2] = [component_tag::ORB_TYPE, component_tag::CODE_SETS];

/// A reference to an object of an adapter, activated in it.
fn activated(served: &Served, poa: &Poa) -> Ior {
    let relay: Relay = poa.activate(served.relayer("r")).expect("room");
    relay.as_object().ior().clone()
}

fn reference(served: &Served, name: &str, policies: &[Policy]) -> Ior {
    let poa = served.adapter(name, policies).expect("they go together");
    activated(served, &poa)
}

/// The components of a reference's only IIOP profile.
fn components(ior: &Ior) -> Vec<TaggedComponent> {
    let profiles: Vec<_> = ior.iiop_profiles().collect();
    assert_eq!(profiles.len(), 1, "{ior}");
    profiles
        .into_iter()
        .flat_map(|one| one.components)
        .collect()
}

fn tags(ior: &Ior) -> Vec<u32> {
    components(ior)
        .iter()
        .map(|component| component.tag)
        .collect()
}

fn data(ior: &Ior, tag: u32) -> Vec<u8> {
    let found = components(ior).into_iter().find(|one| one.tag == tag);
    found.expect("it has that component").data
}

/// Host and port of the profile itself.
fn address(ior: &Ior) -> (String, u16) {
    let profile = ior.iiop_profiles().next().expect("an IIOP profile");
    (profile.host, profile.port)
}

fn endpoints(ior: &Ior) -> Vec<TaoEndpoint> {
    let component = TaggedComponent {
        tag: component_tag::TAO_ENDPOINTS,
        data: data(ior, component_tag::TAO_ENDPOINTS),
    };
    match Component::from_tagged(&component) {
        Ok(Component::TaoEndpoints(endpoints)) => endpoints,
        other => panic!("{other:?}"),
    }
}

/// The octets that hexadecimal digits stand for; `None` on a machine that sends the other byte order.
fn little_endian(text: &str) -> Option<Vec<u8>> {
    let octet = |text| u8::from_str_radix(text, 16).expect("hexadecimal digits");
    cfg!(target_endian = "little").then(|| text.split_whitespace().map(octet).collect())
}

#[test]
fn without_policies_a_reference_tells_nothing_of_real_time() {
    let served = Served::by(Orb::builder());
    assert_eq!(tags(&activated(&served, &served.root)), PLAIN);
    assert_eq!(tags(&reference(&served, "plain", &[])), PLAIN);
}

#[test]
fn the_model_is_told_beside_an_endpoint_of_no_lane() {
    let served = Served::by(Orb::builder());
    let declared = reference(&served, "declared", &[model(ServerDeclared, 5)]);
    let [orb_type, code_sets] = PLAIN;
    let expected = [
        orb_type,
        code_sets,
        component_tag::TAO_ENDPOINTS,
        component_tag::POLICIES,
    ];
    assert_eq!(tags(&declared), expected);
    let (host, port) = address(&declared);
    let priority = -1;
    let only = [TaoEndpoint {
        host,
        port,
        priority,
    }];
    assert_eq!(endpoints(&declared), only);
    let octets = "01 00 00 00 01 00 00 00 28 00 00 00 0a 00 00 00 01 00 00 00 01 00 00 00 05 00";
    if let Some(octets) = little_endian(octets) {
        assert_eq!(data(&declared, component_tag::POLICIES), octets);
    }
    let propagated = reference(&served, "propagated", &[model(ClientPropagated, 3)]);
    let octets = "01 00 00 00 01 00 00 00 28 00 00 00 0a 00 00 00 01 00 00 00 00 00 00 00 03 00";
    if let Some(octets) = little_endian(octets) {
        assert_eq!(data(&propagated, component_tag::POLICIES), octets);
    }
}

/// The octets of a live TAO 2.2.1, its undefined padding zero.
#[test]
fn bands_stand_before_the_model_as_tao_writes_them() {
    let served = Served::by(Orb::builder());
    let policies = [
        model(ServerDeclared, 43),
        bands(&[(35, 39), (40, 46), (47, 50)]),
    ];
    let ior = reference(&served, "banded", &policies);
    let octets = "01 00 00 00 02 00 00 00 \
                  2d 00 00 00 14 00 00 00 01 00 00 00 03 00 00 00 23 00 27 00 28 00 2e 00 2f 00 32 00 \
                  28 00 00 00 0a 00 00 00 01 00 00 00 01 00 00 00 2b 00";
    if let Some(octets) = little_endian(octets) {
        assert_eq!(data(&ior, component_tag::POLICIES), octets);
    }
}

#[test]
fn an_object_tells_its_own_priority() {
    let served = Served::by(Orb::builder());
    let poa = served
        .adapter("declared", &[model(ServerDeclared, 5)])
        .expect("it goes");
    let relay: Relay = poa
        .activate_with_priority(served.relayer("r"), priority(9))
        .expect("room");
    let octets = "01 00 00 00 01 00 00 00 28 00 00 00 0a 00 00 00 01 00 00 00 01 00 00 00 09 00";
    if let Some(octets) = little_endian(octets) {
        let ior = relay.as_object().ior();
        assert_eq!(data(ior, component_tag::POLICIES), octets);
    }
}

#[test]
fn protocols_are_told_to_clients_and_chosen_by_servers() {
    let scratch = Scratch::new();
    let socket = format!("uiop://{}", scratch.join("socket").display());
    let builder = Orb::builder().listen("iiop://127.0.0.1:0");
    let served = Served::by(builder.listen(&socket));
    let tcp = Protocol::Tcp(TcpProtocolProperties {
        send_buffer_size: 65_536,
        keep_alive: true,
        ..TcpProtocolProperties::default()
    });
    let unix = Protocol::UnixDomain(UnixDomainProtocolProperties::default());
    let ior = reference(
        &served,
        "client",
        &[Policy::ClientProtocol(vec![unix, tcp])],
    );
    let octets = "01 00 00 00 01 00 00 00 2b 00 00 00 23 00 00 00 01 00 00 00 02 00 00 00 \
                  00 4f 41 54 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 01 00 01";
    if let Some(octets) = little_endian(octets) {
        assert_eq!(data(&ior, component_tag::POLICIES), octets);
    }
    let (iiop, uiop) = (profile_tag::INTERNET_IOP, profile_tag::TAO_UIOP);
    let rows = [
        ("both", vec![unix, tcp], vec![uiop, iiop]),
        ("tcp", vec![tcp], vec![iiop]),
        ("unix", vec![unix], vec![uiop]),
    ];
    for (name, protocols, expected) in rows {
        let ior = reference(&served, name, &[Policy::ServerProtocol(protocols)]);
        let profiles: Vec<_> = ior.profiles.iter().map(|profile| profile.tag).collect();
        assert_eq!(profiles, expected);
        let names_a_socket =
            profiles.contains(&iiop) && tags(&ior).contains(&component_tag::OMNI_UNIX_TRANS);
        assert_eq!(names_a_socket, name == "both");
    }
}

#[test]
fn clients_that_propagate_are_told_every_lane_and_others_the_lane_that_was_declared() {
    let scratch = Scratch::new();
    let socket = format!("uiop://{}", scratch.join("socket").display());
    let builder = Orb::builder().listen("iiop://127.0.0.1:0");
    let served = Served::by(builder.listen(&socket));
    let Some(pool) = laned_pool(&served.orb.rt_orb(), &[2, 5, 0]) else {
        return;
    };
    let threads = Policy::Threadpool(pool);
    let all = reference(
        &served,
        "all",
        &[threads.clone(), model(ClientPropagated, 0)],
    );
    let lanes = endpoints(&all);
    let priorities: Vec<_> = lanes.iter().map(|lane| lane.priority).collect();
    // A client that knows no lanes takes the first address. The others stand in the order of their making.
    assert_eq!(
        priorities,
        [0, 2, 5],
        "the lane of the server's priority is first"
    );
    assert_eq!(address(&all), (lanes[0].host.clone(), lanes[0].port));
    let ports: std::collections::BTreeSet<_> = lanes.iter().map(|lane| lane.port).collect();
    assert_eq!(ports.len(), 3, "each lane has its own");
    assert!(!tags(&all).contains(&component_tag::ALTERNATE_IIOP_ADDRESS));

    let one = reference(&served, "one", &[threads, model(ServerDeclared, 5)]);
    let expected = TaoEndpoint {
        priority: -1,
        ..lanes[2].clone()
    };
    assert_eq!(endpoints(&one), [expected]);
    assert_eq!(address(&one), (lanes[2].host.clone(), lanes[2].port));

    let sockets = unix_endpoints(&all);
    let priorities: Vec<_> = sockets.iter().flatten().map(|one| one.priority).collect();
    assert_eq!((sockets.len(), priorities), (1, vec![0, 2, 5]));
    let declared = unix_endpoints(&one);
    assert_eq!(declared[0][0].path, sockets[0][2].path);
    assert_eq!(declared[0][0].priority, -1);
}

#[test]
fn the_orbs_own_lanes_are_told_as_those_of_a_pool() {
    if !has_priorities() {
        return;
    }
    let lanes = Orb::builder().dispatch(DispatchStrategy::Lanes);
    let served = Served::by(lanes.lanes([lane(2), lane(5)]));
    let all = reference(&served, "all", &[model(ClientPropagated, 0)]);
    let told = endpoints(&all);
    let priorities: Vec<_> = told.iter().map(|lane| lane.priority).collect();
    assert_eq!(priorities, [2, 5]);
    let one = reference(&served, "one", &[model(ServerDeclared, 5)]);
    assert_eq!(address(&one), (told[1].host.clone(), told[1].port));
    let plain = activated(&served, &served.root);
    assert_eq!(tags(&plain), PLAIN);
    assert_eq!(address(&plain), (told[0].host.clone(), told[0].port));
    let none = served.adapter("none", &[model(ServerDeclared, 3)]);
    assert!(
        matches!(none, Err(PoaError::InvalidPolicy { index: 0, .. })),
        "{none:?}"
    );
}

/// The endpoints in each UIOP profile.
fn unix_endpoints(ior: &Ior) -> Vec<Vec<TaoUnixEndpoint>> {
    let bodies = ior.profiles.iter().map(ProfileBody::from_tagged);
    let components = bodies.filter_map(|body| match body {
        Ok(ProfileBody::Uiop(profile)) => Some(profile.components),
        _ => None,
    });
    let endpoints = components.map(|components| {
        let read = components.iter().map(Component::from_uiop_tagged);
        read.filter_map(|component| match component {
            Ok(Component::TaoUnixEndpoints(endpoints)) => Some(endpoints),
            _ => None,
        })
        .flatten()
        .collect()
    });
    endpoints.collect()
}

#[test]
fn catior_decodes_a_reference_with_policies_and_lanes() {
    if omniorb().is_none() {
        return;
    }
    let served = Served::by(Orb::builder());
    let Some(pool) = laned_pool(&served.orb.rt_orb(), &[2, 5]) else {
        return;
    };
    let policies = [
        Policy::Threadpool(pool),
        model(ClientPropagated, 0),
        bands(&[(0, 2), (3, 9)]),
    ];
    let ior = reference(&served, "lanes", &policies);
    let said = decoded(&ior.to_string());
    for part in [
        "IDL:Relay:1.0",
        "TAG_POLICIES",
        &policy_type::PRIORITY_MODEL.to_string(),
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn a_client_without_real_time_calls_an_object_behind_lanes() {
    let Some(omniorb) = omniorb() else { return };
    let served = Served::by(Orb::builder());
    let Some(pool) = laned_pool(&served.orb.rt_orb(), &[2, 5]) else {
        return;
    };
    for (name, model) in [
        ("a", model(ClientPropagated, 0)),
        ("b", model(ServerDeclared, 5)),
    ] {
        let poa = served
            .adapter(name, &[Policy::Threadpool(pool), model])
            .expect("they go together");
        let orb = served.orb.clone();
        let cubit: Cubit = poa.activate(Cubes { orb }).expect("room");
        omniorb.call("cubit_client", &cubit.as_object().to_string(), &[]);
    }
}

/// A client that knows the key and asks elsewhere is sent to the pool's own endpoints.
#[test]
fn an_object_of_a_pool_is_served_by_no_other_thread() {
    let served = Served::by(Orb::builder());
    let rt_orb = served.orb.rt_orb();
    let pool = rt_orb
        .create_threadpool(Threadpool::default())
        .expect("threads of time sharing");
    let policies = PoaPolicies::PERSISTENT.with(Policy::Threadpool(pool));
    let poa = served.root.create_poa("Pooled", policies).expect("free");
    let names = Arc::new(rtorb_tests::relay::ThreadNames::default());
    let relay: Relay = poa
        .activate_with_id("relay", Arc::clone(&names))
        .expect("room");
    let own = address(&activated(&served, &served.root));
    assert_ne!(address(relay.as_object().ior()), own);
    let client = Orb::builder().build().expect("an ORB");
    let by_the_wrong_door = format!("corbaloc::{}:{}/Pooled/relay", own.0, own.1);
    for text in [relay.as_object().to_string(), by_the_wrong_door] {
        let object = client.string_to_object(&text).expect("a reference");
        Relay::unchecked_narrow(object)
            .pass_on()
            .expect("it is served");
    }
    // Nor is a client told that its request is here, which asks for no more (SYNC_WITH_SERVER).
    let mut stream = Stream::new(REQUEST, 2, false);
    stream.ulong(5).raw(&[1, 0, 0, 0]).ushort(0);
    stream.octets(b"Pooled/relay").string("pass_on").ulong(0);
    let answer = Connection::to(SocketAddr::new(own.0.parse().expect("loopback"), own.1))
        .ask(&stream.message())
        .expect("a reply");
    assert_eq!(answer.status, 3, "LOCATION_FORWARD");
    let names = names.seen();
    assert_eq!(names.len(), 2);
    assert!(
        names.iter().all(|name| name.starts_with("rtorb-p1l0-")),
        "{names:?}"
    );
}

/// The same for a lane of another priority than the one that was declared.
#[test]
fn an_object_of_a_declared_priority_is_served_by_its_lane() {
    let served = Served::by(Orb::builder());
    let Some(pool) = laned_pool(&served.orb.rt_orb(), &[2, 5]) else {
        return;
    };
    let threads = Policy::Threadpool(pool);
    let all = reference(
        &served,
        "all",
        &[threads.clone(), model(ClientPropagated, 2)],
    );
    let policies = PoaPolicies::PERSISTENT.with(threads);
    let poa = served
        .root
        .create_poa("Urgent", policies.with(model(ServerDeclared, 5)))
        .expect("free");
    let relay: Relay = poa
        .activate_with_id("relay", served.relayer("r"))
        .expect("room");
    assert_eq!(
        poa.reference_to_id(relay.as_object()),
        Ok(b"relay".to_vec())
    );
    let client = Orb::builder().build().expect("an ORB");
    for lane in endpoints(&all) {
        let mut stream = Stream::new(LOCATE_REQUEST, 2, false);
        stream.ulong(5).ushort(0).octets(b"Urgent/relay");
        let located = Connection::to(SocketAddr::new(
            lane.host.parse().expect("loopback"),
            lane.port,
        ))
        .ask(&stream.message())
        .expect("a reply");
        // OBJECT_HERE, or OBJECT_FORWARD.
        assert_eq!(located.status, if lane.priority == 5 { 1 } else { 2 });
        let text = format!("corbaloc::{}:{}/Urgent/relay", lane.host, lane.port);
        let object = client.string_to_object(&text).expect("a reference");
        let way = Relay::unchecked_narrow(object).pass_on();
        let way = way.expect("it is served");
        assert_eq!((way[0].corba, way[0].kernel), (5, 5), "{text}");
    }
}
