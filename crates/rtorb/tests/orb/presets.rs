//! Every architecture as client of every architecture.

use rtorb::rt::{PriorityModel, ThreadpoolLane};
use rtorb::{ExceptionKind, Orb, OrbBuilder, Strategies, SystemException};
use rtorb_tests::fake::{FakeServer, Peer, yes};
use rtorb_tests::loopback::own_endpoint;
use rtorb_tests::ours::{Ours, Wide, check_cubit, check_desk};
use rtorb_tests::relay::{Served, model, priority};
use rtorb_tests::scheduling::TimeSharing;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::exchange::{Desk, Party, PartyServant};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const THREADS: i16 = 12;

#[test]
fn every_preset_calls_every_preset_from_many_threads() {
    each_pair(|client, server| {
        let ours = Ours::serve_as(with(server));
        let client = with(client).build().expect("the ORB can be built");
        let object = |text: &str| client.string_to_object(text).expect("a reference");
        let cubit = Cubit::unchecked_narrow(object(&ours.text(ours.cubit.as_object())));
        let desk = Desk::unchecked_narrow(object(&ours.text(ours.desk.as_object())));
        thread::scope(|scope| {
            for number in 0..THREADS {
                let (client, cubit) = (&client, &cubit);
                scope.spawn(move || {
                    let current = client.rt_current();
                    current
                        .set_the_priority(priority(number % 3))
                        .expect("no permission is needed");
                    check_cubit(cubit, &[0, 1, 1021, 30_000]);
                });
            }
        });
        check_desk(&desk, Wide::Sent);
    });
}

#[test]
fn a_priority_reaches_every_preset_from_every_preset() {
    each_pair(|client, server| {
        let served = Served::by(with(server));
        let model = model(PriorityModel::ClientPropagated, 0);
        let relay = rtorb_tests::relay::relay(&served, "Propagated", &[model]);
        for number in [2, 0, 1] {
            let way = rtorb_tests::relay::way(with(client), &relay, Some(number));
            assert_eq!(way, Ok(vec![(number, 0)]));
        }
    });
}

#[test]
fn a_call_that_takes_too_long_is_a_timeout_and_the_next_one_is_right() {
    each_pair(|client, server| {
        let ours = Ours::serve_as(with(server));
        let client = with(client).build().expect("the ORB can be built");
        let held = Arc::new(Held::default());
        let party: Party = ours.poa.activate(Arc::clone(&held)).expect("room");
        let closed = held.gate.lock().expect("nobody panics");
        let object = |text: &str| client.string_to_object(text).expect("a reference");
        let hasty = object(&ours.text(party.as_object()));
        let hasty = hasty.with_timeout(Duration::from_millis(20));
        let late = Party::unchecked_narrow(hasty).level();
        let late = late.expect_err("the servant waits");
        assert_eq!(late.kind, ExceptionKind::Timeout, "{late}");
        drop(closed);
        let desk = Desk::unchecked_narrow(object(&ours.text(ours.desk.as_object())));
        for n in 0..100 {
            assert_eq!(desk.mixed(n, 2), Ok((2 * n, 2 + n, format!("given={n}"))));
        }
    });
}

/// A party that says its level when the gate is open.
#[derive(Default)]
struct Held {
    gate: Mutex<()>,
}

impl PartyServant for Held {
    fn name(&self) -> Result<String, SystemException> {
        Ok(String::new())
    }

    fn level(&self) -> Result<i32, SystemException> {
        let _open = self.gate.lock().expect("nobody panics");
        Ok(1)
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_server_that_ends_is_noticed_by_every_preset() {
    each_pair(|client, server| {
        // Nobody else listens there when it has ended.
        let ours = Ours::serve_as(with(server).listen(&own_endpoint()));
        let client = with(client).build().expect("the ORB can be built");
        let object = client.string_to_object(&ours.text(ours.cubit.as_object()));
        let cubit = Cubit::unchecked_narrow(object.expect("a reference"));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let failed = loop {
                        match cubit.cube_long(3) {
                            Ok(cubed) => assert_eq!(cubed, 27),
                            Err(failed) => break failed,
                        }
                    };
                    let kinds = [ExceptionKind::Transient, ExceptionKind::CommFailure];
                    assert!(kinds.contains(&failed.kind), "{failed}");
                });
            }
            ours.orb.shutdown();
        });
    });
}

/// Longer than a connection is used without a look at it.
const IDLE: Duration = Duration::from_millis(1_500);

#[test]
fn the_first_call_after_a_restart_on_an_idle_connection_is_right_with_every_preset() {
    let serve = |server, address: &str| {
        let listen = Orb::builder().listen(&format!("iiop://{address}"));
        let ours = Ours::serve_as(listen.strategies(server));
        let cubit = ours.cubit.as_object();
        ours.orb
            .bind_object_key("Cubit", cubit)
            .expect("it is free");
        ours
    };
    let mut pairs = Vec::new();
    let mut killed = Vec::new();
    for (client_name, client) in Strategies::PRESETS {
        let builder = || Orb::builder().strategies(client);
        let orb = builder().build().expect("the ORB can be built");
        let object = |text: &str| orb.string_to_object(text).expect("a reference");
        for (server_name, server) in Strategies::PRESETS {
            // No other program binds a port there meanwhile.
            let ours = serve(server, "127.88.0.1:0");
            let address = ours.address().to_string();
            let cubit = object(&format!("corbaloc:iiop:1.2@{address}/Cubit"));
            let cubit = Cubit::unchecked_narrow(cubit);
            assert_eq!(cubit.cube_long(3), Ok(27));
            let what = format!("{client_name} calls {server_name}");
            pairs.push((what, cubit, server, address, Some(ours)));
        }
        // The connection of one that is killed ends without CloseConnection.
        let fake = FakeServer::new(|number, mut peer: Peer| {
            let requests = if number == 0 { 1 } else { usize::MAX };
            for _ in 0..requests {
                let Some(id) = peer.request() else {
                    return;
                };
                peer.send(&yes(id));
            }
        });
        let object = object(&fake.reference());
        assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
        killed.push((client_name, object));
    }
    for (_, _, server, address, ours) in &mut pairs {
        drop(ours.take());
        *ours = Some(serve(*server, address));
    }
    thread::sleep(IDLE);
    for (what, cubit, ..) in &pairs {
        assert_eq!(cubit.cube_long(3), Ok(27), "{what}");
    }
    for (client, object) in &killed {
        assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true), "{client}");
    }
}

fn each_pair(check: impl Fn(Strategies, Strategies)) {
    for (client_name, client) in Strategies::PRESETS {
        for (server_name, server) in Strategies::PRESETS {
            println!("{client_name} calls {server_name}");
            check(client, server);
        }
    }
}

/// An ORB of this architecture with lanes for three priorities, all under time sharing.
fn with(strategies: Strategies) -> OrbBuilder {
    let lanes = [0, 1, 2].map(|number| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 2,
        ..ThreadpoolLane::default()
    });
    Orb::builder()
        .strategies(strategies)
        .lanes(lanes)
        .priority_mapping(TimeSharing)
}
