//! A timeout of 20 ms in each phase of a call, with every strategy: what is raised, and that it comes in time.
//!
//! Each test prints the longest call. The bound is generous, because other programs may keep the CPUs: what it excludes is a
//! phase that begins the time anew, or does not know of it.

use super::segments::{RING_BYTES, greeting, try_send};
use super::shared_memory::segment;
use super::started_calls::supporting;
use rtorb::exception::Phase;
use rtorb::{
    CompletionStatus, ConnectionStrategy, DispatchStrategy, ExceptionKind, Limits, ObjectRef, Orb,
    OrbBuilder, SystemException, WaitStrategy,
};
use rtorb_tests::fake::{FakeServer, Peer, reply};
use rtorb_tests::ours::Ours;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::exchange::{Party, PartyServant};
use rtorb_wire::giop::Version;
use rtorb_wire::ior::{Ior, ShmiopProfile, TaggedProfile, UiopProfile};
use rtorb_wire::{Decode, Encode, Writer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, listen, socket_with};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_millis(20);
/// An endpoint that used up this time took longer than the bound.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const BOUND: Duration = Duration::from_secs(15);

/// How a call ends when its time has passed in a phase.
const UNCONNECTED: (Phase, CompletionStatus) = (Phase::Connect, CompletionStatus::No);
const UNSENT: (Phase, CompletionStatus) = (Phase::Send, CompletionStatus::No);
const BEGUN: (Phase, CompletionStatus) = (Phase::Send, CompletionStatus::Maybe);
const SENT: (Phase, CompletionStatus) = (Phase::AwaitReply, CompletionStatus::Maybe);

/// The longest call of a test, and whether a call has ended in the phase that the test is about.
struct Longest(&'static str, Duration, bool);

impl Longest {
    fn of(what: &'static str) -> Self {
        Self(what, Duration::ZERO, false)
    }

    /// Makes a call that must end with TIMEOUT in one of these phases. On a busy host its time may pass before it comes to them: then
    /// the operation was not carried out, or the thread of the connection was about to send the request.
    fn check(
        &mut self,
        how: &str,
        ends: &[(Phase, CompletionStatus)],
        call: impl FnOnce() -> Result<(), SystemException>,
    ) {
        let begun = Instant::now();
        let ended = call();
        let elapsed = begun.elapsed();
        let failed = ended.expect_err(how);
        let cause = failed.cause.as_ref().expect("it has a cause");
        assert_eq!(failed.kind, ExceptionKind::Timeout, "{how}: {failed}");
        let end = (cause.phase, failed.completed);
        let is_meant = ends.contains(&end);
        assert!(
            is_meant || [UNCONNECTED, UNSENT, BEGUN].contains(&end),
            "{how}: {failed}"
        );
        self.2 |= is_meant;
        assert!(elapsed < BOUND, "{how}: {elapsed:?}");
        self.1 = self.1.max(elapsed);
    }
}

impl Drop for Longest {
    fn drop(&mut self) {
        assert!(self.2 || std::thread::panicking(), "{}: no call", self.0);
        println!(
            "{}: at most {:?} for a timeout of {TIMEOUT:?}",
            self.0, self.1
        );
    }
}

/// A builder of clients for each strategy.
fn clients() -> impl Iterator<Item = (String, OrbBuilder)> {
    let all = ConnectionStrategy::ALL.into_iter();
    let all = all.flat_map(|(_, it)| WaitStrategy::ALL.map(|(_, wait)| it.with_wait(wait)));
    all.flatten().map(client_of)
}

fn client_of(connection: ConnectionStrategy) -> (String, OrbBuilder) {
    let builder = Orb::builder()
        .connection(connection)
        .connect_timeout(CONNECT_TIMEOUT)
        .round_trip_timeout(Some(TIMEOUT));
    (format!("{connection} and {}", connection.wait()), builder)
}

fn object(builder: OrbBuilder, reference: &str) -> ObjectRef {
    let orb = builder.build().expect("the ORB can be built");
    orb.string_to_object(reference).expect("a reference")
}

fn ask(object: &ObjectRef) -> Result<(), SystemException> {
    object.is_a("IDL:Any:1.0").map(|_| ())
}

/// A TCP port that lets nobody in, because its queue is full.
pub(super) struct FullPort {
    pub(super) address: SocketAddr,
    _sockets: Vec<OwnedFd>,
}

impl FullPort {
    pub(super) fn new() -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = || socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
        let listener = socket().expect("the host has sockets");
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        rustix::net::bind(&listener, &any).expect("loopback has a free port");
        listen(&listener, 0).expect("it is bound");
        let address = rustix::net::getsockname(&listener).expect("it is bound");
        let address = SocketAddr::try_from(address).expect("an address of IPv4");
        let mut sockets = vec![listener];
        loop {
            let client = socket().expect("the host has sockets");
            // It does not wait.
            let _ = connect(&client, &address);
            let mut events = [PollFd::new(&client, PollFlags::OUT)];
            let moment = rtorb_os::clock::timespec(50_000_000);
            let is_let_in = poll(&mut events, Some(&moment)).expect("it can be polled") > 0;
            sockets.push(client);
            if !is_let_in {
                break;
            }
        }
        Self {
            address,
            _sockets: sockets,
        }
    }
}

//= RT-CORBA 1.2 §Invocation Timeout
//% test
#[test]
fn endpoints_that_let_nobody_in_share_one_timeout() {
    let port = FullPort::new();
    let one = format!("iiop:1.2@{}", port.address);
    let four = format!("corbaloc:{one},{one},{one},{one}/object");
    let mut longest = Longest::of("connecting, TCP");
    for (how, builder) in clients() {
        let object = object(builder, &four);
        longest.check(&how, &[UNCONNECTED], || ask(&object));
        longest.check(&how, &[UNCONNECTED], || object.non_existent().map(|_| ()));
        longest.check(&how, &[UNCONNECTED], || object.validate_connection());
        longest.check(&how, &[UNCONNECTED], || {
            object.invoke_oneway("tell", |_| Ok(()))
        });
    }
}

/// A reference with so many equal addresses: shared memory that is given behind that path.
fn by_shared_memory(path: &Path, addresses: usize) -> String {
    let profile = ShmiopProfile {
        version: Version::V1_2,
        host: String::new(),
        path: path.display().to_string(),
        object_key: b"object".to_vec(),
        components: Vec::new(),
    };
    with_profiles(vec![profile.to_tagged().expect("legal"); addresses])
}

/// A reference with so many equal addresses: the UNIX socket of that path.
fn by_socket(path: &Path, addresses: usize) -> String {
    let profile = UiopProfile {
        version: Version::V1_2,
        path: path.display().to_string(),
        object_key: b"object".to_vec(),
        components: Vec::new(),
    };
    with_profiles(vec![profile.to_tagged().expect("legal"); addresses])
}

fn with_profiles(profiles: Vec<TaggedProfile>) -> String {
    let type_id = String::new();
    Ior { type_id, profiles }.to_string()
}

#[test]
fn sockets_of_this_host_that_let_nobody_in_are_a_timeout_of_connecting() {
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    // Its queue takes connections, but nobody sends the memory.
    let _listener = UnixListener::bind(&path).expect("the folder can be written");
    let full = scratch.join("full");
    let flags = SocketFlags::CLOEXEC;
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let listener = listener.expect("the host has sockets");
    let address = rustix::net::SocketAddrUnix::new(&full).expect("a short path");
    rustix::net::bind(&listener, &address).expect("the folder can be written");
    listen(&listener, 0).expect("it is bound");
    let _first = std::os::unix::net::UnixStream::connect(&full).expect("there is one place");
    let mut longest = Longest::of("connecting, UNIX socket and shared memory");
    for reference in [by_shared_memory(&path, 4), by_socket(&full, 4)] {
        for (how, builder) in clients() {
            let object = object(builder, &reference);
            longest.check(&how, &[UNCONNECTED], || ask(&object));
        }
    }
}

/// Peers that the client connects to, by TCP, a UNIX socket and shared memory, and that take nothing.
struct FullPeers {
    references: [String; 3],
    _scratch: Scratch,
    _listener: UnixListener,
}

impl FullPeers {
    fn new() -> Self {
        let kept = Mutex::new(Vec::new());
        let kept = Arc::new(kept);
        let tcp = FakeServer::new(move |_, peer: Peer| {
            kept.lock().expect("no panic").push(peer);
        });
        let scratch = Scratch::new();
        let [socket, memory] = ["socket", "memory"].map(|name| scratch.join(name));
        // Its queue takes connections.
        let listener = UnixListener::bind(&socket).expect("the folder can be written");
        let giver = UnixListener::bind(&memory).expect("the folder can be written");
        thread::spawn(move || {
            let mut kept = Vec::new();
            for client in giver.incoming().flatten() {
                let segment = segment();
                let greeting = greeting(b"RTORBSHM", 1, RING_BYTES);
                // A client may have given up.
                let _ = try_send(&client, &greeting, Some(&segment));
                kept.push((client, segment));
            }
        });
        Self {
            references: [
                tcp.reference(),
                by_socket(&socket, 1),
                by_shared_memory(&memory, 1),
            ],
            _scratch: scratch,
            _listener: listener,
        }
    }
}

#[test]
fn a_peer_that_takes_no_request_is_a_timeout_of_sending() {
    let argument = vec![7_u8; 12 << 20];
    for (reference, what) in FullPeers::new().references.iter().zip([
        "sending, TCP",
        "sending, UNIX socket",
        "sending, shared memory",
    ]) {
        let mut longest = Longest::of(what);
        for (how, builder) in clients() {
            let object = object(builder, reference);
            // The thread of a connection may not have begun with it.
            let ends = [BEGUN, UNSENT];
            longest.check(&how, &ends, || {
                object.invoke("eat", |w| argument.encode(w), |_| Ok(()))
            });
            longest.check(&how, &ends, || {
                object.invoke_oneway("eat", |w| argument.encode(w))
            });
        }
    }
}

#[test]
fn started_calls_end_in_time_while_they_connect_and_send() {
    let port = FullPort::new();
    let one = format!("iiop:1.2@{}", port.address);
    let unconnected = format!("corbaloc:{one},{one}/object");
    let full = FullPeers::new();
    let argument = vec![7_u8; 12 << 20];
    let mut connecting = Longest::of("connecting, started");
    let mut sending = Longest::of("sending, started");
    for (how, builder) in supporting().into_iter().map(client_of) {
        let orb = builder.build().expect("the ORB can be built");
        let object = |text: &str| orb.string_to_object(text).expect("a reference");
        let object_there = object(&unconnected);
        connecting.check(&how, &[UNCONNECTED], || {
            object_there.start("ask", |_| Ok(()), |_| Ok(())).wait()
        });
        for reference in &full.references {
            let object = object(reference);
            sending.check(&how, &[BEGUN, UNSENT], || {
                let eat = object.start("eat", |w| argument.encode(w), |_| Ok(()));
                eat.wait()
            });
        }
    }
}

#[test]
fn a_silent_peer_is_a_timeout_of_awaiting_the_reply() {
    let server = FakeServer::new(|_, mut peer: Peer| peer.wait_for_end());
    // It says that a large reply comes, and sends a part of it.
    let lame = FakeServer::new(|_, mut peer: Peer| {
        let whole = reply(peer.request().unwrap_or(0), 0, |body| {
            body.ulong(200_000).raw(&[7; 200_000]);
        });
        peer.send(&whole[..100_000]);
        peer.wait_for_end();
    });
    let mut longest = Longest::of("waiting, TCP");
    for (how, builder) in clients() {
        let orb = builder.build().expect("the ORB can be built");
        for server in [&server, &lame] {
            let object = orb.string_to_object(&server.reference());
            let object = object.expect("a reference");
            longest.check(&how, &[SENT], || {
                let bytes = object.invoke("bytes", |_| Ok(()), Vec::<u8>::decode);
                bytes.map(|_| ())
            });
        }
        let object = orb.string_to_object(&server.reference());
        let object = object.expect("a reference");
        longest.check(&how, &[SENT], || object.validate_connection());
    }
}

#[test]
fn a_server_that_forwards_to_itself_for_ever_is_a_timeout() {
    let own = Arc::new(Mutex::new(Vec::new()));
    let known = Arc::clone(&own);
    let server = FakeServer::new(move |_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            let ior = known.lock().expect("no panic").clone();
            peer.send(&reply(id, 3, |body| {
                body.raw(&ior);
            }));
        }
    });
    let ior: Ior = server.reference().parse().expect("an IOR");
    let mut w = Writer::new(Vec::new(), 1000);
    ior.encode(&mut w).expect("it fits");
    *own.lock().expect("no panic") = w.to_bytes().to_vec();
    let limits = Limits::with(|limits| limits.forwards_max = usize::MAX);
    let mut longest = Longest::of("forwards");
    for (how, builder) in clients() {
        let object = object(builder.limits(limits.clone()), &server.reference());
        // The deadline passes while it asks one of the servers, or between two of them.
        let between = (Phase::Forward, CompletionStatus::No);
        longest.check(&how, &[SENT, UNSENT, between], || ask(&object));
    }
}

/// A party whose level is told when the gate is open.
struct Held(Arc<Mutex<()>>);

impl PartyServant for Held {
    fn name(&self) -> Result<String, SystemException> {
        Ok(String::new())
    }

    fn level(&self) -> Result<i32, SystemException> {
        let _open = self.0.lock().expect("nobody panics");
        Ok(1)
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_servant_that_does_not_return_is_a_timeout_with_every_dispatch_strategy() {
    let mut longest = Longest::of("waiting, TCP, shared memory and own pool");
    for (_, dispatch) in DispatchStrategy::ALL {
        for endpoint in ["iiop", "shmiop"] {
            let scratch = Scratch::new();
            let endpoint = match endpoint {
                "iiop" => "iiop://127.0.0.1:0".to_owned(),
                _ => format!("shmiop://{}", scratch.join("socket").display()),
            };
            let server = Orb::builder().dispatch(dispatch).listen(&endpoint);
            let ours = Ours::serve_as(server);
            let gate = Arc::new(Mutex::new(()));
            let closed = gate.lock().expect("nobody panics");
            let party: Party = ours.poa.activate(Held(Arc::clone(&gate))).expect("room");
            let text = ours.text(party.as_object());
            // A server none of whose threads is free gives no memory to a client.
            let ends = [SENT, UNCONNECTED];
            let ends = if endpoint.starts_with("shmiop") {
                &ends[..]
            } else {
                &ends[..1]
            };
            for (how, builder) in clients() {
                let how = format!("{how}, {dispatch}, {endpoint}");
                let party = Party::unchecked_narrow(object(builder, &text));
                longest.check(&how, ends, || party.level().map(|_| ()));
            }
            let own = party.as_object().with_timeout(TIMEOUT);
            let own = Party::unchecked_narrow(own);
            longest.check("own", ends, || own.level().map(|_| ()));
            drop(closed);
        }
    }
}

#[test]
fn a_connection_that_another_thread_uses_is_a_timeout_of_sending() {
    let (heard, is_heard) = mpsc::channel();
    let (end, ends) = mpsc::channel();
    let ends = Arc::new(Mutex::new(ends));
    let server = FakeServer::new(move |_, mut peer: Peer| {
        if peer.request().is_some() {
            let _ = heard.send(());
            let _ = ends.lock().expect("no panic").recv();
        }
    });
    let mut longest = Longest::of("waiting for a shared connection");
    for (_, connection) in ConnectionStrategy::ALL {
        if connection == ConnectionStrategy::Exclusive {
            continue;
        }
        let builder = Orb::builder().connection(connection);
        let busy = object(builder.round_trip_timeout(None), &server.reference());
        let hasty = busy.with_timeout(TIMEOUT);
        thread::scope(|scope| {
            let first = busy.with_timeout(4 * BOUND);
            scope.spawn(move || ask(&first).expect_err("nobody replies"));
            is_heard.recv().expect("the call comes");
            longest.check(&connection.to_string(), &[UNSENT], || ask(&hasty));
            end.send(()).expect("the server waits for it");
        });
    }
}
