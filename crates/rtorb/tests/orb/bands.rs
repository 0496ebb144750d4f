//! Which lane, which band and which connection a call takes by its priority, and what its server is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rtorb::exception::OMG;
use rtorb::giop::Version;
use rtorb::ior::{
    Component, ExposedPolicy as Exposed, IiopProfile, Ior, TaoEndpoint as LaneEndpoint,
    TaoUnixEndpoint, UiopProfile,
};
use rtorb::rt::{
    NativePriority, Policy, Priority, PriorityBand, PriorityMapping, PriorityModel, Protocol,
    TcpProtocolProperties, UnixDomainProtocolProperties,
};
use rtorb::{
    ConnectionStrategy, ExceptionKind, Limits, ObjectRef, Orb, OrbBuilder, PoaPolicies, SyncScope,
    SystemException, WaitStrategy,
};
use rtorb_tests::fake::{FakeServer, Peer, reply, yes};
use rtorb_tests::loopback::NOBODYS_PORT;
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::Stream;
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;

const LOCATE_REQUEST: u8 = 3;
const LOCATE_REPLY: u8 = 4;

#[test]
fn a_call_goes_to_the_lane_of_its_priority_and_says_it() {
    for connection in architectures() {
        let lanes = [Lane::new(), Lane::new()];
        let orb = orb(Orb::builder().connection(connection));
        let endpoints = [(lanes[0].port(), 10), (lanes[1].port(), 20)];
        let object = object(&orb, &reference(&PROPAGATED, &endpoints));
        for (priority, lane) in [(10, 0), (20, 1), (20, 1), (10, 0)] {
            let before = lanes.each_ref().map(Lane::asked);
            call_at(&orb, priority, &object).expect("there is a lane");
            let mut expected = before;
            expected[lane] += 1;
            assert_eq!(lanes.each_ref().map(Lane::asked), expected, "{priority}");
        }
        for (lane, priority) in [(0, 10), (1, 20)] {
            assert_eq!(lanes[lane].priorities(), [Some(priority); 2], "lane {lane}");
            assert_eq!(lanes[lane].connections(), 1, "lane {lane}, {connection:?}");
        }
        let failed = call_at(&orb, 15, &object).expect_err("no lane has 15");
        expect_inconsistent(&failed, "lane");
    }
}

#[test]
fn a_thread_without_a_priority_is_served_at_the_servers() {
    for connection in architectures() {
        let lanes = [Lane::new(), Lane::new()];
        let orb = orb(Orb::builder().connection(connection));
        let endpoints = [(lanes[0].port(), 60), (lanes[1].port(), 10)];
        let at_10 = [model(PriorityModel::ClientPropagated, 10)];
        let object = object(&orb, &reference(&at_10, &endpoints));
        call_without_priority(&object).expect("the lane of the server's priority");
        let banded = banded(&object, &[band(5, 15), band(60, 60)]);
        call_without_priority(&banded).expect("it needs no band");
        assert_eq!(lanes.each_ref().map(Lane::asked), [0, 2]);
        assert_eq!(lanes[1].priorities(), [None; 2]);

        call_at(&orb, 15, &banded).expect("a band with a lane");
        let of_its_own = lanes[1].connections() >= 2;
        assert!(of_its_own, "a band shares its connection, {connection:?}");
        let failed = call_at(&orb, 7, &object).expect_err("it has said 7");
        assert_eq!(
            failed.detail(),
            Some("the call has priority 7, the lanes have 60, 10")
        );
        let failed = call_at(&orb, 20, &banded).expect_err("it has said 20");
        assert_eq!(
            failed.detail(),
            Some("the call has priority 20, the bands are 5-15, 60-60")
        );
    }
}

#[test]
fn a_program_with_bands_and_lanes_of_a_file_may_call_before_it_has_a_priority() {
    let options = |options: &[&str]| {
        let options = options.iter().map(ToString::to_string);
        Orb::builder().args(options)
    };
    let server = ["-ORBDispatch", "lanes", "-ORBLanes", "60:1,59:1"];
    let server = options(&[&server[..], &["-ORBBestEffort", "yes"]].concat());
    let ours = Ours::serve_in(server, |orb| {
        let model = PriorityModel::ClientPropagated;
        let model = orb
            .rt_orb()
            .create_priority_model_policy(model, priority(59));
        let policies = PoaPolicies::default().with(model);
        let root = orb.root_poa().expect("it can listen");
        root.create_poa("lanes", policies).expect("it can be made")
    });
    let client = options(&["-ORBBands", "60-60,59-59"])
        .build()
        .expect("an ORB");
    let object = object(&client, &ours.text(ours.cubit.as_object()));
    let is_cubit = || object.is_a("IDL:Cubit:1.0");
    let said = thread::scope(|scope| scope.spawn(is_cubit).join().expect("no panic"));
    assert_eq!(said, Ok(true));
}

#[test]
fn a_thread_without_a_priority_is_told_the_lanes_if_none_has_the_servers() {
    let lane = Lane::new();
    let orb = orb(Orb::builder());
    let endpoints = [(lane.port(), 60), (lane.port(), 10)];
    let object = object(&orb, &reference(&PROPAGATED, &endpoints));
    let failed = call_without_priority(&object).expect_err("no lane has 0");
    expect_inconsistent(&failed, "`--priority` of the command");
    assert_eq!(
        failed.detail(),
        Some("the call has priority 0, the lanes have 60, 10")
    );
    assert_eq!(lane.asked(), 0);
}

#[test]
fn a_lane_that_is_gone_is_not_replaced_by_another() {
    let lane = Lane::new();
    let orb = orb(Orb::builder());
    let object = object(
        &orb,
        &reference(&PROPAGATED, &[(lane.port(), 10), (NOBODYS_PORT, 20)]),
    );
    call_at(&orb, 10, &object).expect("the lane is there");
    for _ in 0..3 {
        let failed = call_at(&orb, 20, &object).expect_err("its lane is not there");
        assert_eq!(failed.kind, ExceptionKind::Transient, "{failed}");
    }
    assert_eq!(lane.asked(), 1);
}

//= RT-CORBA 1.2 §CORBA Priority
//% test
#[test]
fn the_context_of_the_priority_is_as_the_golden_one() {
    let lane = Lane::new();
    let orb = orb(Orb::builder());
    let object = object(&orb, &reference(&PROPAGATED, &[(lane.port(), -1)]));
    call_at(&orb, 16383, &object).expect("one endpoint without a lane serves every priority");
    let message = lane.messages().remove(0);
    let context: [u8; 12] = [10, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0xff, 0x3f];
    let is_there = |window: &[u8]| *window == [&[1, 0, 0, 0], &context[..]].concat();
    assert!(message.windows(16).any(is_there), "{message:02x?}");
}

#[test]
fn a_declared_priority_is_the_servers_own_affair() {
    let lanes = [Lane::new(), Lane::new()];
    let orb = orb(Orb::builder());
    let endpoints = [(lanes[0].port(), 10), (lanes[1].port(), 20)];
    let declared = [model(PriorityModel::ServerDeclared, 5)];
    let object = object(&orb, &reference(&declared, &endpoints));
    call_at(&orb, 99, &object).expect("any endpoint does");
    assert_eq!(lanes[0].priorities(), [None]);
    assert_eq!(
        object.policies(),
        [Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: priority(5),
        }]
    );
}

//= RT-CORBA 1.2 §Priority Banded Connections
//% test
#[test]
fn each_band_has_a_connection_of_its_own() {
    let bands = [band(0, 9), band(10, 19)];
    for connection in architectures() {
        for is_exposed in [true, false] {
            let lane = Lane::new();
            let orb = orb(Orb::builder().connection(connection));
            let mut exposed = PROPAGATED.to_vec();
            if is_exposed {
                exposed.push(Exposed::PriorityBands(bands.to_vec()));
            }
            let object = object(&orb, &reference(&exposed, &[(lane.port(), -1)]));
            let object = if is_exposed {
                object
            } else {
                banded(&object, &bands)
            };
            for priority in [0, 3, 9, 12, 19, 5] {
                call_at(&orb, priority, &object).expect("there is a band");
            }
            assert_eq!(lane.connections(), 2, "{connection:?}");
            let failed = call_at(&orb, 20, &object).expect_err("no band has 20");
            expect_inconsistent(&failed, "band");
            assert_eq!(lane.asked(), 6);
        }
    }
}

#[test]
fn a_band_goes_to_the_lane_within_it() {
    let lanes = [Lane::new(), Lane::new()];
    let orb = orb(Orb::builder());
    let endpoints = [(lanes[0].port(), 10), (lanes[1].port(), 20)];
    let object = object(&orb, &reference(&PROPAGATED, &endpoints));
    let object = banded(&object, &[band(0, 15), band(16, 30), band(31, 99)]);
    call_at(&orb, 3, &object).expect("band 0 has lane 10");
    call_at(&orb, 30, &object).expect("band 1 has lane 20");
    assert_eq!(lanes[0].priorities(), [Some(3)]);
    assert_eq!(lanes[1].priorities(), [Some(30)]);
    let failed = call_at(&orb, 31, &object).expect_err("band 2 has no lane");
    expect_inconsistent(&failed, "lane");
}

#[test]
fn threads_share_a_connection_a_band_or_a_priority_or_have_their_own() {
    let expected = [
        (ConnectionStrategy::Exclusive, 4 * 4),
        (MULTIPLEXED, 1),
        (BANDED, 4),
    ];
    for (connection, connections) in expected {
        for connection in waits_of(connection) {
            let lane = Lane::new();
            let orb = orb(Orb::builder().connection(connection));
            let object = object(&orb, &reference(&[], &[(lane.port(), -1)]));
            // All at once, so that no thread's connection ends before another begins.
            let all = std::sync::Barrier::new(16);
            thread::scope(|scope| {
                for number in 0..16 {
                    let (orb, object, all) = (&orb, &object, &all);
                    scope.spawn(move || {
                        all.wait();
                        call_at(orb, number % 4, object).expect("it is answered");
                    });
                }
            });
            assert_eq!(lane.connections(), connections, "{connection:?}");
            assert!(
                lane.priorities().iter().all(Option::is_none),
                "nobody asked for it"
            );
        }
    }
}

#[test]
fn connections_beyond_the_limit_take_the_place_of_unused_ones() {
    let limits = Limits::with(|limits| limits.shared_connections_max = 2);
    for connection in waits_of(BANDED) {
        let lane = Lane::new();
        let builder = Orb::builder().limits(limits.clone());
        let orb = orb(builder.connection(connection));
        let object = object(&orb, &reference(&[], &[(lane.port(), -1)]));
        for number in [0, 1, 2, 3, 4, 4, 3, 0] {
            call_at(&orb, number, &object).expect("it is answered");
        }
        assert_eq!(lane.connections(), 6, "{connection:?}");
        until("the others are closed", || (lane.open() == 2).then_some(()));
    }
}

//= RT-CORBA 1.2 §PrivateConnectionPolicy
//% test
#[test]
fn a_private_connection_is_used_by_one_reference_alone() {
    for connection in architectures() {
        let lane = Lane::new();
        let orb = orb(Orb::builder().connection(connection));
        let plain = object(&orb, &reference(&[], &[(lane.port(), -1)]));
        let own = || {
            let own = plain.set_policy_overrides(&[Policy::PrivateConnection]);
            own.expect("a client may")
        };
        let (one, two) = (own(), own());
        for object in [&plain, &one, &two, &one, &plain, &two] {
            call_at(&orb, 0, object).expect("it is answered");
        }
        assert_eq!(lane.connections(), 3, "{connection:?}");
        assert_eq!(one.policies(), [Policy::PrivateConnection]);
        drop((one, two));
        // Where each thread has its own, it looks for those of no use when it opens another.
        call_at(&orb, 0, &own()).expect("it is answered");
        until("they end with their references", || {
            (lane.open() <= 2).then_some(())
        });
    }
}

#[test]
fn what_is_an_adapters_is_not_a_clients() {
    let orb = orb(Orb::builder());
    let object = object(&orb, &reference(&PROPAGATED, &[(1, -1)]));
    let refused = [
        Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: priority(1),
        },
        Policy::ServerProtocol(Vec::new()),
    ];
    for policy in refused {
        let failed = object.set_policy_overrides(std::slice::from_ref(&policy));
        let failed = failed.expect_err("it is the adapter's");
        assert_eq!(failed.kind, ExceptionKind::NoPermission, "{failed}");
        let built = Orb::builder().client_policies([policy]).build();
        let built = built.expect_err("it is the adapter's").to_string();
        assert!(built.contains("create_poa"), "{built}");
    }
    let upside_down = Policy::PriorityBandedConnection(vec![band(5, 4)]);
    let failed = object.set_policy_overrides(&[upside_down]);
    let failed = failed.expect_err("nothing is in it");
    assert_eq!(failed.kind, ExceptionKind::BadParam);
}

#[test]
fn policies_that_do_not_go_together_are_named() {
    let lane = Lane::new();
    let orb = orb(Orb::builder());
    let endpoint = [(lane.port(), -1)];
    let mut with_bands = PROPAGATED.to_vec();
    with_bands.push(Exposed::PriorityBands(vec![band(0, 99)]));
    let twice = banded(
        &object(&orb, &reference(&with_bands, &endpoint)),
        &[band(0, 9)],
    );
    let failed = twice.validate_connection().expect_err("both have bands");
    assert_eq!(failed.minor, OMG | 1);
    expect_inconsistent(&failed, "PriorityBandedConnection");

    let plain = object(&orb, &reference(&[], &endpoint));
    let failed = banded(&plain, &[band(0, 9)]).validate_connection();
    expect_inconsistent(&failed.expect_err("no model"), "PriorityModel");

    let unix = Protocol::UnixDomain(UnixDomainProtocolProperties::default());
    let unix = plain.set_policy_overrides(&[Policy::ClientProtocol(vec![unix])]);
    let failed = unix.expect("a client may").is_a("IDL:Any:1.0");
    expect_inconsistent(&failed.expect_err("no such profile"), "ClientProtocol");
    assert_eq!(lane.asked(), 0);

    // An empty list says nothing.
    let one = banded(&object(&orb, &reference(&with_bands, &endpoint)), &[]);
    call_at(&orb, 50, &one).expect("the adapter's bands");
}

#[test]
fn bands_of_the_orb_are_for_objects_with_a_model() {
    let lane = Lane::new();
    let bands = Policy::PriorityBandedConnection(vec![band(0, 9), band(10, 19)]);
    let orb = orb(Orb::builder().client_policies([bands]));
    let plain = object(&orb, &reference(&[], &[(lane.port(), -1)]));
    call_at(&orb, 50, &plain).expect("a plain object has no bands");
    let propagated = object(&orb, &reference(&PROPAGATED, &[(lane.port(), -1)]));
    call_at(&orb, 3, &propagated).expect("a band");
    let failed = call_at(&orb, 50, &propagated).expect_err("no band");
    expect_inconsistent(&failed, "band");
}

//= RT-CORBA 1.2 §Protocol Configuration
//% test
#[test]
fn the_protocols_of_a_client_choose_and_order_its_routes() {
    let scratch = Scratch::new();
    let unix = format!("uiop://{}", scratch.join("socket").display());
    let builder = Orb::builder().listen("iiop://127.0.0.1:0");
    let ours = Ours::serve_as(builder.listen(&unix));
    let orb = orb(Orb::builder());
    let object = object(&orb, &ours.text(ours.cubit.as_object()));
    let tcp = Protocol::Tcp(TcpProtocolProperties {
        send_buffer_size: 20_000,
        recv_buffer_size: 20_000,
        keep_alive: true,
        dont_route: true,
        no_delay: true,
        enable_network_priority: true,
    });
    let socket = Protocol::UnixDomain(UnixDomainProtocolProperties {
        send_buffer_size: 20_000,
        recv_buffer_size: 0,
    });
    for (protocols, schemes) in [
        (vec![tcp, socket], vec!["iiop", "uiop"]),
        (vec![socket, tcp], vec!["uiop", "iiop"]),
        (vec![tcp], vec!["iiop"]),
        (vec![socket], vec!["uiop"]),
    ] {
        let object = object.set_policy_overrides(&[Policy::ClientProtocol(protocols)]);
        let object = object.expect("a client may");
        let mut seen: Vec<_> = object
            .endpoints()
            .map(|endpoint| endpoint.to_string()[..4].to_owned())
            .collect();
        seen.dedup();
        assert_eq!(seen, schemes);
        let cubit = Cubit::narrow(&object).expect("it answers");
        assert_eq!(cubit.cube_long(3), Ok(27));
    }
}

#[test]
fn the_policies_that_an_rt_orb_makes_have_their_effect() {
    let lane = Lane::new();
    let orb = orb(Orb::builder());
    let rt_orb = orb.rt_orb();
    let plain = object(&orb, &reference(&PROPAGATED, &[(lane.port(), -1)]));
    let with = |object: &ObjectRef, policy| {
        let object = object.set_policy_overrides(&[policy]);
        object.expect("a client may")
    };
    let bands = rt_orb.create_priority_banded_connection_policy(vec![band(0, 9), band(10, 19)]);
    let banded = with(&plain, bands);
    for number in [0, 12, 9] {
        call_at(&orb, number, &banded).expect("there is a band");
    }
    assert_eq!(lane.connections(), 2, "one for each band");
    let private = with(&plain, rt_orb.create_private_connection_policy());
    call_at(&orb, 0, &private).expect("it is answered");
    assert_eq!(lane.connections(), 3, "its own");

    let tcp = rt_orb.create_tcp_protocol_properties(TcpProtocolProperties::default());
    let scratch = Scratch::new();
    let both = |name: &str| {
        let unix = format!("uiop://{}", scratch.join(name).display());
        Orb::builder().listen("iiop://127.0.0.1:0").listen(&unix)
    };
    let ours = Ours::serve_in(both("first"), |server| {
        let protocols = server.rt_orb().create_server_protocol_policy(vec![tcp]);
        let policies = PoaPolicies::default().with(protocols);
        let root = server.root_poa().expect("it can listen");
        root.create_poa("tcp", policies).expect("it can be made")
    });
    let schemes = |object: &ObjectRef| -> Vec<String> {
        let endpoints = object.endpoints();
        let schemes = endpoints.map(|endpoint| endpoint.to_string()[..4].to_owned());
        schemes.collect()
    };
    let over_tcp = object(&orb, &ours.text(ours.cubit.as_object()));
    assert_eq!(schemes(&over_tcp), ["iiop"], "no socket");

    let ours = Ours::serve_as(both("second"));
    let over_both = object(&orb, &ours.text(ours.cubit.as_object()));
    assert!(schemes(&over_both).contains(&"uiop".to_owned()));
    let over_tcp = with(&over_both, rt_orb.create_client_protocol_policy(vec![tcp]));
    assert_eq!(schemes(&over_tcp), ["iiop"], "as the client says");
    let cubit = Cubit::narrow(&over_tcp).expect("it answers");
    assert_eq!(cubit.cube_long(3), Ok(27));
}

#[test]
fn packets_with_other_marks_go_over_another_connection() {
    let lane = Lane::new();
    let orb = orb(Orb::builder());
    let plain = object(&orb, &reference(&[], &[(lane.port(), -1)]));
    let marking = Protocol::Tcp(TcpProtocolProperties {
        enable_network_priority: true,
        ..TcpProtocolProperties::default()
    });
    let marked = plain.set_policy_overrides(&[Policy::ClientProtocol(vec![marking])]);
    let marked = marked.expect("a client may");
    // Of the six treatments the first and the last, twice each.
    for number in [0, 32_767, 1, 32_766] {
        call_at(&orb, number, &marked).expect("it is answered");
    }
    assert!(
        (2..=4).contains(&lane.connections()),
        "{}",
        lane.connections()
    );
    let before = lane.connections();
    call_at(&orb, 0, &marked).expect("it is answered");
    assert_eq!(lane.connections(), before);
}

//= RT-CORBA 1.2 §Implicit and Explicit Binding
//% test
#[test]
fn validating_opens_the_connections_of_all_bands() {
    for connection in architectures() {
        let lane = Lane::new();
        let orb = orb(Orb::builder().connection(connection));
        let object = object(&orb, &reference(&PROPAGATED, &[(lane.port(), -1)]));
        let object = banded(&object, &[band(0, 9), band(10, 19), band(20, 29)]);
        object.validate_connection().expect("it is there");
        assert_eq!(lane.connections(), 3);
        let kinds: Vec<u8> = lane.messages().iter().map(|message| message[7]).collect();
        assert_eq!(kinds, [LOCATE_REQUEST; 3]);
        for number in [25, 15, 5] {
            call_at(&orb, number, &object).expect("it is answered");
        }
        assert_eq!(lane.connections(), 3, "{connection:?}");
    }
}

#[test]
fn validating_at_a_priority_opens_the_connection_for_the_threads_that_have_it() {
    let lanes = [Lane::new(), Lane::new()];
    let orb = orb(Orb::builder().connection(MULTIPLEXED));
    let endpoints = [(lanes[0].port(), 10), (lanes[1].port(), 20)];
    let object = object(&orb, &reference(&PROPAGATED, &endpoints));
    let own = object.set_policy_overrides(&[Policy::PrivateConnection]);
    let own = own.expect("a client may").with_sync_scope(SyncScope::None);
    let send_at = |number: i16| {
        let current = orb.rt_current();
        current.set_the_priority(priority(number)).expect("Flat");
        own.invoke_oneway("push", |_| Ok(()))
    };
    let failed = send_at(20).expect_err("nothing is open");
    assert_eq!(failed.minor, SyncScope::UNCONNECTED, "{failed}");
    thread::scope(|scope| {
        let opens = scope.spawn(|| own.validate_connection_at(priority(20)));
        opens.join().expect("no panic").expect("it is there");
    });
    send_at(20).expect("it is open");
    let failed = send_at(10).expect_err("that of the other lane is not");
    assert_eq!(failed.minor, SyncScope::UNCONNECTED, "{failed}");
    assert_eq!(lanes.each_ref().map(Lane::connections), [0, 1]);
    until("it came", || (lanes[1].asked() == 2).then_some(()));
    assert_eq!(lanes[1].priorities(), [None, Some(20)]);
    let failed = own.validate_connection_at(priority(15));
    expect_inconsistent(&failed.expect_err("no lane has 15"), "lane");
}

#[test]
fn validating_says_that_an_object_is_gone() {
    let ours = Ours::serve();
    let orb = orb(Orb::builder());
    let object = object(&orb, &ours.text(ours.cubit.as_object()));
    object.validate_connection().expect("it is there");
    let root = ours.orb.root_poa().expect("it serves");
    root.deactivate(ours.cubit.as_object()).expect("active");
    let failed = object.validate_connection().expect_err("it is gone");
    assert_eq!(failed.kind, ExceptionKind::ObjectNotExist, "{failed}");
}

#[test]
fn a_server_is_told_the_band_of_a_connection_where_the_orb_was_built_to() {
    for connection in architectures() {
        for knows in [true, false] {
            let lane = Lane::answering(if knows {
                |id| reply(id, 0, |_| {})
            } else {
                bad_operation
            });
            let builder = Orb::builder().connection(connection);
            let orb = orb(builder.bind_priority_bands());
            let object = object(&orb, &reference(&PROPAGATED, &[(lane.port(), -1)]));
            let object = banded(&object, &[band(0, 9), band(10, 0x1234)]);
            for number in [3, 4, 11, 12] {
                call_at(&orb, number, &object).expect("it is answered");
            }
            let messages = lane.messages();
            let binds: Vec<_> = messages.iter().filter(|octets| is_bind(octets)).collect();
            assert_eq!((messages.len(), binds.len()), (6, 2));
            let context = [11, 0, 0, 0, 6, 0, 0, 0, 1, 0, 10, 0, 0x34, 0x12];
            assert!(binds[1].windows(14).any(|window| *window == context));
        }
    }
}

#[test]
fn lanes_of_unix_sockets_are_read_as_tao_writes_them() {
    let orb = orb(Orb::builder());
    let lanes = [("/run/low", 10), ("/run/high", 20)].map(|(path, priority)| TaoUnixEndpoint {
        path: path.to_owned(),
        priority,
    });
    let components = [
        Component::TaoUnixEndpoints(lanes.to_vec()),
        Component::Policies(PROPAGATED.to_vec()),
    ];
    let components = components.map(|component| component.to_tagged().expect("legal"));
    let profile = UiopProfile {
        version: Version::V1_2,
        path: "/run/low".to_owned(),
        object_key: b"object".to_vec(),
        components: components.to_vec(),
    };
    let ior = Ior {
        type_id: String::new(),
        profiles: vec![profile.to_tagged().expect("legal")],
    };
    let object = object(&orb, &ior.to_string());
    let endpoints: Vec<_> = object.endpoints().map(ToString::to_string).collect();
    assert_eq!(endpoints, ["uiop:///run/low", "uiop:///run/high"]);
    let failed = call_at(&orb, 15, &object).expect_err("no lane");
    expect_inconsistent(&failed, "lane");
    let failed = call_at(&orb, 20, &object).expect_err("nobody listens");
    assert!(failed.to_string().contains("/run/high"), "{failed}");
}

/// A fake server that stands for one lane, counts its connections and keeps what it is sent.
struct Lane {
    server: FakeServer,
    connections: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    messages: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Lane {
    fn new() -> Self {
        Self::answering(bad_operation)
    }

    /// One that answers `_bind_priority_band` so.
    fn answering(bind: fn(u32) -> Vec<u8>) -> Self {
        let connections = Arc::new(AtomicUsize::new(0));
        let ended = Arc::new(AtomicUsize::new(0));
        let messages = Arc::new(Mutex::new(Vec::new()));
        let (counted, kept) = (Arc::clone(&connections), Arc::clone(&messages));
        let counted_ends = Arc::clone(&ended);
        let server = FakeServer::new(move |_, mut peer: Peer| {
            counted.fetch_add(1, Ordering::SeqCst);
            while let Some(octets) = peer.message() {
                let id = [octets[12], octets[13], octets[14], octets[15]];
                let id = u32::from_le_bytes(id);
                let answer = match octets[7] {
                    LOCATE_REQUEST => {
                        let mut here = Stream::new(LOCATE_REPLY, 2, false);
                        here.ulong(id).ulong(1);
                        here.message()
                    }
                    _ if is_bind(&octets) => bind(id),
                    _ => yes(id),
                };
                kept.lock().expect("no panic").push(octets);
                peer.send(&answer);
            }
            counted_ends.fetch_add(1, Ordering::SeqCst);
        });
        Self {
            server,
            connections,
            ended,
            messages,
        }
    }

    fn port(&self) -> u16 {
        self.server.port()
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    fn open(&self) -> usize {
        self.connections() - self.ended.load(Ordering::SeqCst)
    }

    fn messages(&self) -> Vec<Vec<u8>> {
        self.messages.lock().expect("no panic").clone()
    }

    fn asked(&self) -> usize {
        self.messages().len()
    }

    /// What each request said of its priority.
    fn priorities(&self) -> Vec<Option<i16>> {
        let said = |octets: &Vec<u8>| {
            let id_and_size = [10, 0, 0, 0, 4, 0, 0, 0];
            let at = octets
                .windows(8)
                .position(|window| *window == id_and_size)?;
            Some(i16::from_le_bytes([octets[at + 10], octets[at + 11]]))
        };
        self.messages().iter().map(said).collect()
    }
}

fn is_bind(octets: &[u8]) -> bool {
    let name = b"_bind_priority_band";
    octets.windows(name.len()).any(|window| window == name)
}

fn bad_operation(id: u32) -> Vec<u8> {
    reply(id, 2, |body| {
        body.string("IDL:omg.org/CORBA/BAD_OPERATION:1.0");
        body.ulong(0).ulong(1);
    })
}

/// Every CORBA priority is the host's ordinary one, so that a test needs no privilege.
#[derive(Debug)]
struct Flat;

impl PriorityMapping for Flat {
    fn to_native(&self, _: Priority) -> Option<NativePriority> {
        Some(0)
    }

    fn to_corba(&self, _: NativePriority) -> Option<Priority> {
        None
    }
}

const PROPAGATED: [Exposed; 1] = [model(PriorityModel::ClientPropagated, 0)];

const fn model(model: PriorityModel, server_priority: i16) -> Exposed {
    Exposed::PriorityModel {
        model,
        server_priority,
    }
}

fn band(low: i16, high: i16) -> PriorityBand {
    PriorityBand { low, high }
}

fn priority(number: i16) -> Priority {
    Priority::new(number).expect("legal")
}

/// A reference with these policies and TAO's endpoints, port and lane; -1 is no lane.
fn reference(policies: &[Exposed], endpoints: &[(u16, i16)]) -> String {
    let host = "127.0.0.1".to_owned();
    let lanes = endpoints.iter().map(|&(port, priority)| LaneEndpoint {
        host: host.clone(),
        port,
        priority,
    });
    let components = [
        Component::TaoEndpoints(lanes.collect()),
        Component::Policies(policies.to_vec()),
    ];
    let components = components.map(|component| component.to_tagged().expect("legal"));
    let profile = IiopProfile {
        version: Version::V1_2,
        host,
        port: endpoints[0].0,
        object_key: b"object".to_vec(),
        components: components.to_vec(),
    };
    let profiles = vec![profile.to_tagged().expect("legal")];
    let type_id = String::new();
    Ior { type_id, profiles }.to_string()
}

fn banded(object: &ObjectRef, bands: &[PriorityBand]) -> ObjectRef {
    let policy = Policy::PriorityBandedConnection(bands.to_vec());
    object
        .set_policy_overrides(&[policy])
        .expect("a client may")
}

/// The client's strategies whose connections are of a different kind.
fn architectures() -> Vec<ConnectionStrategy> {
    [&[ConnectionStrategy::Exclusive][..], &waits_of(MULTIPLEXED)].concat()
}

/// A connection strategy with each wait strategy that it has.
fn waits_of(connection: ConnectionStrategy) -> Vec<ConnectionStrategy> {
    let all = WaitStrategy::ALL.map(|(_, wait)| connection.with_wait(wait));
    all.into_iter().flatten().collect()
}

const MULTIPLEXED: ConnectionStrategy = ConnectionStrategy::Multiplexed {
    wait: WaitStrategy::Read,
};

const BANDED: ConnectionStrategy = ConnectionStrategy::Banded {
    wait: WaitStrategy::Read,
};

fn orb(builder: OrbBuilder) -> Orb {
    let built = builder.priority_mapping(Flat).build();
    built.expect("the ORB can be built")
}

fn object(orb: &Orb, reference: &str) -> ObjectRef {
    orb.string_to_object(reference).expect("a reference")
}

/// Calls with the calling thread at that priority.
fn call_at(orb: &Orb, number: i16, object: &ObjectRef) -> Result<(), SystemException> {
    let current = orb.rt_current();
    current.set_the_priority(priority(number)).expect("Flat");
    object.is_a("IDL:Any:1.0").map(|yes| assert!(yes))
}

/// Calls by a thread that has set no priority.
fn call_without_priority(object: &ObjectRef) -> Result<(), SystemException> {
    let call = || object.is_a("IDL:Any:1.0").map(|yes| assert!(yes));
    thread::scope(|scope| scope.spawn(call).join().expect("no panic"))
}

/// An exception that says which policies, and what to do.
fn expect_inconsistent(failed: &SystemException, word: &str) {
    assert_eq!(failed.kind, ExceptionKind::InvPolicy, "{failed}");
    let advice = failed.advice().expect("it says what to do");
    assert!(advice.contains(word), "{advice}");
}
