//! Sessions of omniORB's clients, recorded and replayed: a client sees no difference.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use rtorb::ior::Ior;
use rtorb::{Orb, PoaPolicies};
use rtorb_dynamic::recording::Log;
use rtorb_dynamic::search::{FoundInterface, Search};
use rtorb_dynamic::stand_in::{Answers, Context, Delays, Session, StandIn};
use rtorb_dynamic::{OwnReference, Proxy, Servant, activate, standing_for};
use rtorb_tests::ours::Ours;
use rtorb_tests::peers::omniorb::{Endpoint, OmniOrb, omniorb};
use rtorb_tests::scratch::Scratch;

/// A running ORB with one object, as `rtorb serve` and `rtorb record` have it.
struct Server {
    orb: Orb,
    own: OwnReference,
    running: Option<JoinHandle<()>>,
}

impl Server {
    fn new() -> Self {
        let orb = Orb::builder().build().expect("loopback has a port");
        orb.root_poa().expect("loopback has a port");
        let server = orb.clone();
        let running = std::thread::spawn(move || server.run().expect("it is shut down"));
        Self {
            orb,
            own: OwnReference::default(),
            running: Some(running),
        }
    }

    /// Activates a proxy, and returns its reference.
    fn activate_proxy(&self, proxy: Proxy, target: &Ior) -> String {
        let poa = self.orb.root_poa().expect("the ORB runs");
        let object = poa.activate_dynamic(proxy.with_own_reference(&self.own));
        let ior = standing_for(object.expect("there is room for it").ior(), target);
        self.own.set(&ior);
        ior.to_string()
    }

    /// Activates the object, and returns its reference.
    fn activate(&self, found: &FoundInterface, servant: impl Servant + 'static) -> String {
        let poa = self.orb.root_poa().expect("the ORB runs");
        let poa = poa.create_poa("rtorb", PoaPolicies::default());
        let poa = poa.expect("there is no other");
        let object = activate(&poa, &found.interface, &found.types, servant);
        let object = object.expect("there is room for it");
        self.own.set(object.ior());
        self.orb.object_to_string(&object)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.orb.shutdown();
        let _ = self.running.take().map(JoinHandle::join);
    }
}

/// Records a session of a client with a server, ends the server, and replays the session to the client.
struct Client<'p> {
    omniorb: &'p OmniOrb,
    program: &'p str,
    options: &'p [&'p str],
    idl: &'p [&'p str],
}

impl Client<'_> {
    fn found(&self, reference: &str) -> FoundInterface {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/rtorb-idl/idl");
        let search = Search {
            files: self.idl.iter().map(|file| folder.join(file)).collect(),
            ..Search::default()
        };
        let orb = Orb::builder().build().expect("nothing is opened");
        let object = orb.string_to_object(reference).expect("a reference");
        search
            .interface_of(&object, None)
            .expect("it is in the IDL")
    }

    fn record(&self, target: &str, session: &Path) -> Vec<String> {
        let server = Server::new();
        let found = self.found(target);
        let log =
            Arc::new(Log::create(session, 1 << 30).expect("the scratch folder can be written"));
        let own_log = Arc::clone(&log);
        let target = server.orb.string_to_object(target).expect("a reference");
        let ior = target.ior().clone();
        let proxy = Proxy::new(target, &server.orb, move |record| {
            own_log.write(record).expect("there is room on the disk");
        });
        let reference = server.activate_proxy(proxy.with_interface(found), &ior);
        let lines = self.omniorb.call(self.program, &reference, self.options);
        assert!(log.is_complete());
        lines
    }

    fn session(&self, session: &Path, target: &str, server: &Server) -> Session {
        let text = std::fs::read_to_string(session).expect("it was recorded");
        let found = self.found(target);
        let interface = Session::interface(&text);
        assert_eq!(interface.as_ref(), Some(&found.interface.repository_id));
        let context = Context {
            interface: &found.interface,
            types: &found.types,
            own: &server.own,
        };
        let session = Session::parse(&text, Delays::None, context);
        session.unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn replay(&self, session: &Path, target: &str) -> Vec<String> {
        let server = Server::new();
        let found = self.found(target);
        let stand_in = StandIn::new(&found.types, &server.own, |unanswered| {
            eprintln!("{unanswered}");
        });
        let stand_in = Arc::new(stand_in);
        let reference = server.activate(&found, Arc::clone(&stand_in));
        let session = self.session(session, target, &server);
        stand_in.set_answers(Answers::Session(session));
        let lines = self.omniorb.call(self.program, &reference, self.options);
        assert_eq!(stand_in.unanswered(), 0);
        lines
    }

    /// `target` is a server that ends when it is dropped, and its reference.
    fn check<S>(&self, (server, target): (S, String)) {
        let scratch = Scratch::new();
        let session = scratch.join("session.jsonl");
        let recorded = self.record(&target, &session);
        drop(server);
        assert_eq!(self.replay(&session, &target), recorded);
    }
}

#[test]
fn a_desk_of_omniorb_is_replayed_to_its_client() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let client = Client {
        omniorb,
        program: "desk_client",
        options: &[],
        idl: &["exchange.idl"],
    };
    client.check(omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &[]));
}

#[test]
fn our_cubit_is_replayed_to_omniorbs_client() {
    let Some(omniorb) = omniorb() else { return };
    let client = Client {
        omniorb,
        program: "cubit_client",
        options: &["--any"],
        idl: &[],
    };
    let ours = Ours::serve();
    let target = ours.text(ours.cubit.as_object());
    client.check((ours, target));
}

#[test]
fn valuetypes_of_omniorb_are_recorded() {
    let Some(omniorb) = omniorb() else { return };
    let scratch = Scratch::new();
    let client = Client {
        omniorb,
        program: "atlas_client",
        options: &[],
        idl: &["atlas.idl"],
    };
    let (_guides, guide) = omniorb.serve("atlas_server", &scratch, Endpoint::Tcp, &[]);
    let session = scratch.join("session.jsonl");
    assert_eq!(client.record(&guide, &session).len(), 13);
    // The client would notice that a replayed value is not shared any more; but all of the session can be replayed.
    let server = Server::new();
    client.session(&session, &guide, &server);
}
