//! omniORB's clients call servants whose types are known only at run time: each passes its calls on to an ordinary servant.

use std::sync::Arc;

use rtorb::ior::Ior;
use rtorb::{CompletionStatus, ExceptionKind, ObjectRef, Orb};
use rtorb_dynamic::search::Search;
use rtorb_dynamic::{Failure, Operation, Request, Results, Servant, Types, Value, activate};
use rtorb_tests::fake::{FakeServer, Peer, reply};
use rtorb_tests::ours::Ours;
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::exchange::Desk;

/// A servant that decodes the values of a call, and calls another object with them.
struct Forward {
    target: ObjectRef,
    types: Arc<Types>,
}

impl Servant for Forward {
    fn call(&self, operation: &Operation, inputs: Vec<Value>) -> Result<Results, Failure> {
        let operation = Arc::new(operation.clone());
        Request::new(&self.target, &operation, &self.types, inputs)?.invoke()
    }
}

/// A running ORB with proxies.
struct Proxies {
    orb: Orb,
    types: Arc<Types>,
    server: Option<std::thread::JoinHandle<()>>,
}

impl Proxies {
    fn new() -> Self {
        let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/rtorb-idl/idl");
        let search = Search {
            files: vec!["exchange.idl".into(), "atlas.idl".into()],
            folders: vec![idl.into()],
            ..Search::default()
        };
        let orb = Orb::builder().build().expect("loopback has a port");
        orb.root_poa().expect("loopback has a port");
        let running = orb.clone();
        let server = std::thread::spawn(move || running.run().expect("it is shut down"));
        Self {
            orb,
            types: Arc::new(search.types().expect("the IDL is right")),
            server: Some(server),
        }
    }

    /// The reference of a proxy of an object.
    fn of(&self, target: &str) -> String {
        let target = self.orb.string_to_object(target).expect("a reference");
        let interface = self.types.interface_by_id(target.type_id());
        let interface = interface.expect("it is in the IDL");
        let types = Arc::clone(&self.types);
        let proxy = Forward { target, types };
        let poa = self.orb.root_poa().expect("the ORB runs");
        let object = activate(&poa, interface, &self.types, proxy).expect("it is activated");
        self.orb.object_to_string(&object)
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        self.orb.shutdown();
        let _ = self.server.take().map(std::thread::JoinHandle::join);
    }
}

#[test]
fn omniorb_calls_every_operation_through_proxies() {
    let Some(omniorb) = omniorb() else { return };
    let ours = Ours::serve();
    let proxies = Proxies::new();
    let cubit = proxies.of(&ours.text(ours.cubit.as_object()));
    omniorb.call("cubit_client", &cubit, &["--any"]);
    let desk = proxies.of(&ours.text(ours.desk.as_object()));
    omniorb.call("desk_client", &desk, &[]);
}

#[test]
fn valuetypes_go_through_proxies() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let (_guides, guide) = omniorb.serve("atlas_server", &scratch, Endpoint::Tcp, &[]);
    let proxies = Proxies::new();
    let lines = omniorb.call("atlas_client", &proxies.of(&guide), &[]);
    assert_eq!(lines.len(), 13, "{lines:?}");
}

#[test]
fn a_forward_of_the_target_is_followed_and_exceptions_pass_unchanged() {
    let ours = Ours::serve();
    let ior = ours.desk.as_object().ior().clone();
    let type_id = ior.type_id.clone();
    let forwarding = FakeServer::new(move |_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            peer.send(&reply(id, 3, |body| {
                body.string(&ior.type_id).ulong(ior.profiles.len() as u32);
                for profile in &ior.profiles {
                    body.ulong(profile.tag).octets(&profile.data);
                }
            }));
        }
    });
    let mut target: Ior = forwarding.reference().parse().expect("a reference");
    target.type_id = type_id;
    let proxies = Proxies::new();
    let client = Orb::builder().build().expect("nothing is opened");
    let proxy = client.string_to_object(&proxies.of(&target.to_string()));
    let desk = Desk::narrow(&proxy.expect("a reference")).expect("it is a Desk");
    assert_eq!(desk.echo_string("near"), Ok("near".to_owned()));
    let failed = desk.fail(77).expect_err("it always fails");
    assert_eq!(
        (failed.kind, failed.minor, failed.completed),
        (ExceptionKind::NoPermission, 77, CompletionStatus::Maybe)
    );
}
