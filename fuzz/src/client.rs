//! A target that sends replies to a whole client: the ORB, and the clients of the services.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::Duration;

use rtorb::{ObjectRef, Orb};
use rtorb_dynamic::Request;
use rtorb_dynamic::types::Types;
use rtorb_instruments::network::enter_new_network;
use rtorb_services::events::client::channel_of;
use rtorb_services::naming::client::{Context, parse_name};
use tempfile::TempDir;

use crate::messages::messages;

/// Replies to each request of a client with the next message of the input, and ends the connection after the last one. The first byte
/// of the input chooses what the client calls, and whether the replies get the ids of the requests.
pub(crate) fn call(input: &[u8]) {
    // Without a network of its own, a client that is forwarded could call any host.
    let Some(client) = &*CLIENT else {
        return;
    };
    let client = client.lock().expect("no input has failed");
    client
        .calls
        .send(input.to_vec())
        .expect("the client's thread runs");
    client
        .done
        .recv_timeout(PATIENCE)
        .expect("a call ends by its deadline");
}

/// How long the calls of one input may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The timeout of a call: an input makes a dozen, and each may have to wait for it.
const TIMEOUT: Duration = Duration::from_millis(50);

/// The thread that calls, and the fake server of its calls.
struct Client {
    calls: Sender<Vec<u8>>,
    done: Receiver<()>,
}

static CLIENT: LazyLock<Option<Mutex<Client>>> = LazyLock::new(Client::start);

impl Client {
    /// Starts a client whose threads have a network of their own; returns `None` if the host refuses the network.
    fn start() -> Option<Mutex<Self>> {
        let (calls, inputs) = channel();
        let (finished, done) = channel();
        thread::spawn(move || {
            if let Err(refused) = enter_new_network() {
                eprintln!("left out, because the host refuses a network namespace: {refused}");
                return;
            }
            finished.send(()).expect("the target waits");
            let caller = Caller::new();
            for input in inputs {
                caller.call(input);
                finished.send(()).expect("the target waits");
            }
        });
        done.recv().ok()?;
        Some(Mutex::new(Self { calls, done }))
    }
}

/// A client's ORB and its fake server.
struct Caller {
    orb: Orb,
    reference: String,
    types: Arc<Types>,
    replies: Arc<Mutex<Vec<u8>>>,
    _folder: TempDir,
}

impl Caller {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("a free path");
        let replies = Arc::default();
        let sent = Arc::clone(&replies);
        thread::spawn(move || reply_to_all(&listener, &sent));
        let orb = Orb::builder().round_trip_timeout(Some(TIMEOUT)).build();
        let mut types = Types::standard();
        types
            .add_text("echo.idl", include_str!("../../tests/idl/echo.idl"))
            .expect("the IDL of the tests is right");
        Self {
            orb: orb.expect("an ORB"),
            reference: format!("corbaloc:uiop:1.2@{}/cubit", socket.display()),
            types: types.into(),
            replies,
            _folder: folder,
        }
    }

    /// Makes the calls that the input chooses.
    fn call(&self, mut input: Vec<u8>) {
        let form = input.first().copied().unwrap_or(0);
        if !input.starts_with(b"GIOP") && !input.is_empty() {
            input.remove(0);
        }
        *self.replies.lock().expect("the fake server runs") = input;
        let Ok(object) = self.orb.string_to_object(&self.reference) else {
            return;
        };
        // Outcomes are of no interest: each is right if it comes in time.
        match form & 15 {
            0 => drop(object.is_a("IDL:Cubit:1.0")),
            1 => self.use_context(&object),
            2 => drop(channel_of(&self.orb, &self.reference).map(|it| it.for_consumers())),
            3 => drop(object.validate_connection()),
            number => self.invoke(&object, INTERFACES[usize::from(number) % INTERFACES.len()]),
        }
    }

    fn use_context(&self, object: &ObjectRef) {
        let name = parse_name("a/name").expect("a name");
        if let Ok(context) = Context::narrow(object) {
            let _ = context.resolve(&name);
            if let Ok(bindings) = context.bindings(2) {
                let _ = bindings.take(BINDINGS_MAX).count();
            }
        }
    }

    /// Calls all operations of an interface with examples of their arguments.
    fn invoke(&self, object: &ObjectRef, interface: &str) {
        let interface = self.types.interface(interface).expect("known IDL");
        for name in interface.names() {
            let operation = interface.operation(name).expect("its own");
            let examples = operation.example_inputs(&self.types);
            let Some(inputs) = examples.into_iter().collect::<Option<Vec<_>>>() else {
                continue;
            };
            let Ok(inputs) = operation.inputs_from_json(&self.types, &inputs) else {
                continue;
            };
            if let Ok(request) = Request::new(object, &operation, &self.types, inputs)
                && let Ok(results) = request.invoke()
            {
                // What a server may send cannot always be written as JSON.
                let _ = operation.results_to_json(&self.types, &results);
            }
        }
    }
}

/// Interfaces whose results have many types.
const INTERFACES: [&str; 7] = [
    "Cubit",
    "Echo::Numbers",
    "Echo::Texts",
    "Echo::Sequences",
    "Echo::Composites",
    "Echo::References",
    "Echo::Anys",
];

/// Bindings that a client takes from a server that goes on for ever.
const BINDINGS_MAX: usize = 16;

/// Serves one connection after the other. All get the replies of the newest input, each reply once.
fn reply_to_all(listener: &UnixListener, replies: &Mutex<Vec<u8>>) {
    for stream in listener.incoming().flatten() {
        reply(stream, replies);
    }
}

/// Replies to the requests of a connection until there are no more replies.
fn reply(mut stream: UnixStream, replies: &Mutex<Vec<u8>>) {
    while let Some(request) = next_message(&mut stream) {
        let mut left = replies.lock().expect("the client runs");
        let Some(whole) = messages(&left).next().map(|whole| whole.len()) else {
            // No message: bytes that the client did not expect.
            let _ = stream.write_all(&left);
            left.clear();
            return;
        };
        let mut message: Vec<u8> = left.drain(..whole).collect();
        drop(left);
        answer(&mut message, &request);
        if stream.write_all(&message).is_err() {
            return;
        }
    }
}

/// Gives a reply of GIOP 1.2 the id of the request, unless a reserved flag of its header is set.
fn answer(reply: &mut [u8], request: &[u8]) {
    if let (Some(to), Some(from)) = (reply.get_mut(4..16), request.get(12..16))
        && to[1] == 2
        && to[2] & 0x80 == 0
    {
        let is_big = to[2] & 1 == 0;
        to[8..].copy_from_slice(from);
        if is_big {
            // The client sends little-endian ids.
            to[8..].reverse();
        }
    }
}

/// The next message of a client, or `None` at the end.
fn next_message(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut message = vec![0; 12];
    stream.read_exact(&mut message).ok()?;
    let size = u32::from_le_bytes(message[8..].try_into().ok()?) as usize;
    message.resize(12 + size, 0);
    stream.read_exact(&mut message[12..]).ok()?;
    Some(message)
}
