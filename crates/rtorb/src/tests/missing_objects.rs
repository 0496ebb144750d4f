//! Requests for objects that do not exist: whether at least their adapters do.

use super::servant::{Log, Worker};
use super::world::{Sending, World};
use crate::endpoint::Endpoint;
use crate::exception::OMG;
use crate::server::object_key::ObjectKey;
use crate::{CompletionStatus, ExceptionKind, ObjectRef, Orb, Poa, PoaPolicies, SystemException};
use rtorb_os::slab::Key;

/// A server with the adapters `A` and `A/B`, which have no objects, and the key `alias`, bound to an object of `A`.
struct Missing {
    server: Orb,
    adapter: Poa,
    client: Orb,
    port: u16,
    /// The last to be dropped.
    _world: World,
}

impl Missing {
    fn new() -> Self {
        let world = World::perfect();
        let server = world.client(Orb::builder());
        let root = server.root_poa().expect("it listens");
        let adapter = root.create_poa("A", PoaPolicies::PERSISTENT);
        let adapter = adapter.expect("it is free");
        let below = adapter.create_poa("B", PoaPolicies::PERSISTENT);
        drop(below.expect("it is free"));
        let x: Worker = (adapter.create_reference_with_id("x")).expect("it is persistent");
        let bound = server.bind_object_key("alias", &x.0);
        bound.expect("it is free");
        world.run(server.clone(), Sending::ByEventLoop);
        let core = server.core.adapters.server.server();
        let Endpoint::Tcp { port, .. } = core.expect("it listens").listeners[0].bound else {
            panic!("the default endpoint is TCP");
        };
        Self {
            server,
            adapter,
            client: world.client(Orb::builder()),
            port,
            _world: world,
        }
    }

    /// The object with that key, as the client sees it.
    fn object(&self, key: &[u8]) -> ObjectRef {
        let escaped = key.iter().map(|byte| format!("%{byte:02x}"));
        let escaped: String = escaped.collect();
        let url = format!("corbaloc::127.0.0.1:{}/{escaped}", self.port);
        let object = self.client.string_to_object(&url);
        object.expect("a URL")
    }
}

/// Asks an operation of the interface, and one that every object has.
fn assert_missing(object: &ObjectRef, code: u32, label: &str) {
    type Ask = fn(&ObjectRef) -> Result<(), SystemException>;
    let asks: [Ask; 2] = [
        |object| object.invoke("work", |_| Ok(()), |_| Ok(())),
        |object| object.is_a("IDL:Any:1.0").map(drop),
    ];
    for ask in asks {
        let failed = ask(object).expect_err("there is no such object");
        let seen = (failed.kind, failed.minor, failed.completed);
        let expected = (
            ExceptionKind::ObjectNotExist,
            OMG | code,
            CompletionStatus::No,
        );
        assert_eq!(seen, expected, "{label}: {failed}");
    }
    assert_eq!(object.non_existent(), Ok(true), "{label}");
}

//= CORBA 3 §Exception Codes
//% test
#[test]
fn the_minor_code_says_whether_the_adapter_of_a_missing_object_exists() {
    let missing = Missing::new();
    let rows: [(&str, u32); 8] = [
        ("A/x", 1),
        ("A/B/x", 1),
        ("RootPOA/x", 1),
        ("alias", 1),
        // It names no adapter.
        ("x", 1),
        ("No/x", 2),
        ("A/No/x", 2),
        ("B/x", 2),
    ];
    for (key, code) in rows {
        assert_missing(&missing.object(key.as_bytes()), code, key);
    }
    missing.adapter.destroy();
    for key in ["A/x", "A/B/x", "alias"] {
        assert_missing(&missing.object(key.as_bytes()), 2, key);
    }
}

#[test]
fn a_transient_object_that_is_gone_says_nothing_of_its_adapter() {
    let missing = Missing::new();
    let epoch = missing.server.core.adapters.server.epoch;
    let place = Key {
        index: 7,
        generation: 1,
    };
    for (label, epoch) in [("this run", epoch), ("an earlier run", epoch ^ 1)] {
        let object = missing.object(&ObjectKey::transient(epoch, place));
        assert_missing(&object, 1, label);
    }
}

#[test]
fn a_caller_in_the_same_orb_learns_the_same() {
    let missing = Missing::new();
    let own: Worker = (missing.adapter.create_reference_with_id("y")).expect("it is persistent");
    assert_missing(&own.0, 1, "with its adapter");
    let active: Worker = (missing.adapter.activate_with_id("y", Log::default())).expect("room");
    assert_eq!(active.0.non_existent(), Ok(false));
    missing.adapter.destroy();
    assert_missing(&own.0, 2, "without its adapter");
}
