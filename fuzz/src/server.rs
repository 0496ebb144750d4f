//! A target that sends messages to a whole server: the ORB with the naming service, an event channel, the scheduling service, and
//! servants of the recorded conversations.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use rtorb::{CompletionStatus, DispatchStrategy, ExceptionKind, Limits, Orb};
use rtorb_dynamic::types::Types;
use rtorb_dynamic::{Failure, Operation, Results, Servant, Value, activate};
use rtorb_instruments::network::enter_new_network;
use rtorb_services::events::{Channel, ChannelConfig, strategies};
use rtorb_services::naming::{NamingConfig, NamingService};
use rtorb_services::scheduling::{Scheduling, SchedulingConfig};
use tempfile::TempDir;

use crate::messages::messages;

/// Sends the bytes on a new connection, ends it, and reads to the server's end. Each whole message of the server must be GIOP, and the
/// server must then still reply to a good request.
pub(crate) fn serve(input: &[u8]) {
    // Without a network of its own, a server of hostile references could call any host.
    let Some(server) = &*SERVER else {
        return;
    };
    let replies = exchange(&server.socket, input);
    let whole: usize = messages(&replies).map(|message| message.len()).sum();
    assert_eq!(whole, replies.len(), "the server sends whole messages");
    let reply = exchange(&server.socket, GOOD_REQUEST);
    assert_eq!(reply.get(7), Some(&REPLY), "the server still replies");
}

/// All bytes that the server sends to a client that sends these.
fn exchange(socket: &Path, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(socket).expect("the server listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a duration that is not 0");
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("a duration that is not 0");
    // A server that has closed the connection takes no more.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut replies = Vec::new();
    if let Err(error) = stream.read_to_end(&mut replies) {
        // Unread bytes of ours reset the connection, which is an end too.
        let kind = error.kind();
        assert_eq!(
            kind,
            std::io::ErrorKind::ConnectionReset,
            "it ends: {error}"
        );
    }
    replies
}

/// How long the server may take for one input.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reply, as a message's kind.
const REPLY: u8 = 1;

/// A request of GIOP 1.0 for `_non_existent` of the object `cubit`.
const GOOD_REQUEST: &[u8] = b"GIOP\x01\0\x01\0\x30\0\0\0\
    \0\0\0\0\x01\0\0\0\x01\0\0\0\x05\0\0\0cubit\0\0\0\x0e\0\0\0_non_existent\0\0\0\0\0\0\0";

/// The server that serves all inputs.
struct Server {
    socket: PathBuf,
    _folder: TempDir,
}

static SERVER: LazyLock<Option<Server>> = LazyLock::new(Server::start);

impl Server {
    /// Starts a server whose threads have a network of their own; returns `None` if the host refuses the network.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = folder.path().join("socket");
        let (ready, started) = channel();
        let endpoint = format!("uiop://{}", socket.display());
        thread::spawn(move || match enter_new_network() {
            Ok(()) => run(&endpoint, &ready),
            Err(refused) => ready.send(Err(refused.into())).expect("the target waits"),
        });
        if let Err(refused) = started.recv().expect("the server starts") {
            eprintln!("left out, because the host refuses a network namespace: {refused}");
            return None;
        }
        Some(Self {
            socket: fs::canonicalize(socket).expect("the server listens"),
            _folder: folder,
        })
    }
}

/// Serves until the process ends.
fn run(endpoint: &str, ready: &Sender<std::io::Result<()>>) {
    let limits = Limits::with(|limits| {
        limits.message_bytes_max = 1 << 16;
        limits.objects_max = 10_000;
        limits.send_timeout = Duration::from_secs(1);
    });
    // One thread serves, so that an input has the same effect each time.
    let strategies = strategies(DispatchStrategy::Reactive);
    let orb = Orb::builder()
        .listen(endpoint)
        .limits(limits)
        .strategies(strategies)
        .build()
        .expect("an ORB");
    let services = Services::start(&orb);
    orb.run_with(|| {
        ready.send(Ok(())).expect("the target waits");
        Ok::<(), rtorb::OrbError>(())
    })
    .expect("it serves");
    drop(services);
}

/// What the server serves, under the keys that the inputs name.
struct Services {
    _naming: NamingService,
    _events: Channel,
    _scheduling: Scheduling,
}

impl Services {
    fn start(orb: &Orb) -> Self {
        let naming = NamingConfig {
            bindings_max: 1_000,
            contexts_max: 100,
            forward_timeout: Duration::from_millis(10),
            ..NamingConfig::default()
        };
        let events = ChannelConfig {
            consumers_max: 16,
            suppliers_max: 16,
            connect_within: Duration::from_millis(10),
            hang_timeout: Duration::from_millis(10),
            ping_every: Duration::from_millis(10),
            ..ChannelConfig::default()
        };
        let scheduling = SchedulingConfig {
            infos_max: 100,
            dependencies_max: 400,
            ..SchedulingConfig::default()
        };
        let mut types = Types::standard();
        for (name, text) in INTERFACES {
            types.add_text(name, text).expect("the IDL is right");
        }
        let types = Arc::new(types);
        for (key, interface) in OBJECTS {
            let interface = types.interface(interface).expect("an interface of the IDL");
            let servant = Examples(Arc::clone(&types));
            let poa = orb.root_poa().expect("the ORB runs");
            let object = activate(&poa, interface, &types, servant).expect("a servant");
            orb.bind_object_key(key, &object).expect("a new key");
        }
        Self {
            _naming: NamingService::serve(orb, naming).expect("a naming service"),
            _events: Channel::serve(orb, events).expect("a channel"),
            _scheduling: Scheduling::serve(orb, scheduling).expect("a scheduling service"),
        }
    }
}

/// The IDL of the recorded conversations, and one with all types.
const INTERFACES: [(&str, &str); 2] = [
    (
        "exchange.idl",
        include_str!("../../crates/rtorb-idl/idl/exchange.idl"),
    ),
    ("echo.idl", include_str!("../../tests/idl/echo.idl")),
];

/// The objects of the recorded conversations by key, and others with all types.
const OBJECTS: [(&str, &str); 8] = [
    ("cubit", "Cubit"),
    ("desk", "Exchange::Desk"),
    ("numbers", "Echo::Numbers"),
    ("texts", "Echo::Texts"),
    ("sequences", "Echo::Sequences"),
    ("composites", "Echo::Composites"),
    ("references", "Echo::References"),
    ("anys", "Echo::Anys"),
];

/// A servant that returns an example of the results.
struct Examples(Arc<Types>);

impl Servant for Examples {
    fn call(&self, operation: &Operation, _: Vec<Value>) -> Result<Results, Failure> {
        let example = operation.example_results(&self.0);
        let results = example.and_then(|json| operation.results_from_json(&self.0, &json).ok());
        results.ok_or_else(|| {
            let status = CompletionStatus::No;
            rtorb::SystemException::new(ExceptionKind::NoImplement, 0, status).into()
        })
    }
}
