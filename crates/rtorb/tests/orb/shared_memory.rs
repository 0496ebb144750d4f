//! Calls through shared memory: who takes it, all ways of waiting, and peers that break its rules.

use super::segments::{
    HEADER_BYTES, Meeting, RING_BYTES, Scribbler, greeting, meet, send, try_send,
};
use rtorb::endpoint::Endpoint;
use rtorb::rt::{Policy, Protocol, SharedMemoryProtocolProperties, TcpProtocolProperties};
use rtorb::{
    ConnectionStrategy, DispatchStrategy, ExceptionKind, Orb, OrbBuilder, SharedMemoryWait,
    SystemException, WaitStrategy,
};
use rtorb_os::byte_rings::{Awaited, Duplex};
use rtorb_tests::ours::{Ours, check_cubit, check_sequences};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use rtorb_wire::ior::{Ior, ProfileBody};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::pread;
use std::io::{IoSlice, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than any of these calls takes, and short enough to see that something hangs.
const LONG: Duration = Duration::from_secs(20);

fn endpoint(path: &Path) -> String {
    format!("shmiop://{}", path.display())
}

fn serve(path: &Path) -> OrbBuilder {
    let server = Orb::builder().shared_memory_ring_bytes(RING_BYTES);
    server.listen(&endpoint(path))
}

fn client(builder: OrbBuilder, reference: &str) -> Cubit {
    let orb = builder.build().expect("an ORB");
    Cubit::unchecked_narrow(orb.string_to_object(reference).expect("a reference"))
}

#[test]
fn every_client_strategy_is_right_with_every_wait() {
    for (_, wait) in SharedMemoryWait::ALL {
        for dispatch in [
            DispatchStrategy::ThreadPerConnection,
            DispatchStrategy::Lanes,
        ] {
            let scratch = Scratch::new();
            let server = serve(&scratch.join("socket")).shared_memory_wait(wait);
            let ours = Ours::serve_as(server.dispatch(dispatch));
            let reference = ours.text(ours.cubit.as_object());
            let client = |builder: OrbBuilder| client(builder.shared_memory_wait(wait), &reference);
            check_cubit(&client(Orb::builder()), &[20_000]);
            for (_, connection) in ConnectionStrategy::ALL {
                for (_, how) in WaitStrategy::ALL {
                    let Some(connection) = connection.with_wait(how) else {
                        continue;
                    };
                    println!("{wait}, {dispatch}, {connection} and {how}");
                    let cubit = client(Orb::builder().connection(connection));
                    // Messages of three rings at most: on a busy host, a peer that yields or spins waits for a time slice of other
                    // programs at each end of the ring.
                    thread::scope(|scope| {
                        for _ in 0..3 {
                            scope.spawn(|| check_sequences(&cubit, &[0, 1, 1021]));
                        }
                    });
                }
            }
        }
    }
}

#[test]
fn a_client_that_calls_without_pause_does_not_keep_others_from_a_lane_that_lingers() {
    for wait in [SharedMemoryWait::Yield, SharedMemoryWait::Spin] {
        for dispatch in [DispatchStrategy::Reactive, DispatchStrategy::Lanes] {
            let scratch = Scratch::new();
            let server = serve(&scratch.join("socket")).shared_memory_wait(wait);
            let ours = Ours::serve_as(server.dispatch(dispatch));
            let reference = ours.text(ours.cubit.as_object());
            let busy = client(Orb::builder().shared_memory_wait(wait), &reference);
            let is_over = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        assert_eq!(busy.cube_long(2), Ok(8));
                    }
                });
                // Each connects anew, and leaves the busy client alone in the lane again.
                let results: Vec<_> = (0..5)
                    .map(|_| {
                        let other = Orb::builder().round_trip_timeout(Some(LONG));
                        client(other, &reference).cube_long(3)
                    })
                    .collect();
                is_over.store(true, Ordering::Relaxed);
                assert_eq!(results, [const { Ok(27) }; 5], "{wait}, {dispatch}");
            });
        }
    }
}

#[test]
fn a_call_is_right_after_a_silence() {
    let scratch = Scratch::new();
    let ours = Ours::serve_as(serve(&scratch.join("socket")));
    let cubit = client(Orb::builder(), &ours.text(ours.cubit.as_object()));
    for pause_ms in [0, 250, 90, 110, 0] {
        thread::sleep(Duration::from_millis(pause_ms));
        check_cubit(&cubit, &[0, 20_000]);
    }
}

#[test]
fn a_client_takes_shared_memory_by_itself_and_its_protocols_choose() {
    let scratch = Scratch::new();
    let builder = serve(&scratch.join("socket")).listen("iiop://127.0.0.1:0");
    let ours = Ours::serve_as(builder);
    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object(&ours.text(ours.cubit.as_object()));
    let object = object.expect("a reference");
    let memory = |wait| Protocol::SharedMemory(SharedMemoryProtocolProperties { wait });
    let tcp = Protocol::Tcp(TcpProtocolProperties::default());
    for (protocols, schemes) in [
        (vec![], ["shmiop", "iiop"].as_slice()),
        (vec![tcp, memory(None)], &["iiop", "shmiop"]),
        (vec![memory(Some(SharedMemoryWait::Yield))], &["shmiop"]),
        (vec![tcp], &["iiop"]),
    ] {
        let policies: Vec<_> = (!protocols.is_empty())
            .then_some(Policy::ClientProtocol(protocols))
            .into_iter()
            .collect();
        let object = object
            .set_policy_overrides(&policies)
            .expect("a client may");
        let seen: Vec<_> = object
            .endpoints()
            .map(|endpoint| endpoint.to_string().split(':').next().map(str::to_owned))
            .collect();
        let schemes: Vec<_> = schemes.iter().map(|it| Some((*it).to_owned())).collect();
        assert_eq!(seen, schemes);
        let cubit = Cubit::narrow(&object).expect("it answers");
        assert_eq!(cubit.cube_long(3), Ok(27));
    }
}

#[test]
fn an_object_of_this_host_is_found_by_its_key() {
    let scratch = Scratch::new();
    let path = scratch.join("a,socket|");
    let ours = Ours::serve_as(serve(&path));
    let bound = ours
        .orb
        .bind_object_key("plant/cubit", ours.cubit.as_object());
    bound.expect("it is free");
    let path = path.display().to_string();
    let path = path.replace(',', "%2c").replace('|', "%7c");
    let cubit = client(
        Orb::builder(),
        &format!("corbaloc:shmiop:1.2@{path}|plant/cubit"),
    );
    let mut endpoints = cubit.as_object().endpoints();
    assert!(endpoints.all(|endpoint| matches!(endpoint, Endpoint::SharedMemory { .. })));
    assert_eq!(cubit.cube_long(3), Ok(27));
}

#[test]
fn the_memory_of_another_host_is_left_alone() {
    let scratch = Scratch::new();
    let builder = serve(&scratch.join("socket")).listen("iiop://127.0.0.1:0");
    let ours = Ours::serve_as(builder);
    let text = ours.text(ours.cubit.as_object());
    let mut ior: Ior = text.parse().expect("a reference");
    for profile in &mut ior.profiles {
        if let Ok(ProfileBody::Shmiop(mut body)) = ProfileBody::from_tagged(profile) {
            body.host = "another".to_owned();
            *profile = body.to_tagged().expect("it can be written");
        }
    }
    let cubit = client(Orb::builder(), &ior.to_string());
    let is_tcp = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Tcp { .. });
    assert!(cubit.as_object().endpoints().all(is_tcp));
    assert_eq!(cubit.cube_long(3), Ok(27));
}

#[test]
fn a_server_is_not_disturbed_by_clients_that_scribble() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let scratch = Scratch::new();
        let path = scratch.join("socket");
        let ours = Ours::serve_as(serve(&path).dispatch(dispatch));
        let good = client(
            Orb::builder().round_trip_timeout(Some(LONG)),
            &ours.text(ours.cubit.as_object()),
        );
        for seed in 0..40 {
            let Meeting {
                mut socket, memory, ..
            } = meet(&path);
            let mut scribbler = Scribbler::new(seed);
            for _ in 0..50 {
                scribbler.scribble(&memory);
                // The server may have ended the connection: it has every right to.
                let _ = socket.write(&[1]);
            }
            assert_eq!(good.cube_long(3), Ok(27), "{name}, seed {seed}");
        }
        check_cubit(&good, &[0, 1021]);
    }
}

/// A server that greets as it likes, and what a call to it ends with.
fn call_of(greet: impl FnOnce(UnixStream) + Send + 'static, timeout: Duration) -> SystemException {
    call_by(Orb::builder(), greet, timeout)
}

/// The same with a client's strategies.
fn call_by(
    client_orb: OrbBuilder,
    greet: impl FnOnce(UnixStream) + Send + 'static,
    timeout: Duration,
) -> SystemException {
    let scratch = Scratch::new();
    let path = scratch.join("socket");
    let reference = reference_to(&path);
    let listener = UnixListener::bind(&path).expect("the folder can be written");
    let server = thread::spawn(move || greet(listener.accept().expect("a client comes").0));
    let begun = Instant::now();
    // A thread's idle connection ends with the thread.
    let caller = thread::spawn(move || {
        let cubit = client(client_orb.round_trip_timeout(Some(timeout)), &reference);
        cubit.cube_long(3).expect_err("no server answers")
    });
    let failed = caller.join().expect("the client does not panic");
    assert!(
        begun.elapsed() < LONG,
        "{failed} after {:?}",
        begun.elapsed()
    );
    // The server does not wait for a client whose time passed before it connected.
    drop(UnixStream::connect(&path));
    server.join().expect("the server does not panic");
    failed
}

/// A reference to an object behind that path; its server is gone.
fn reference_to(path: &Path) -> String {
    let ours = Ours::serve_as(serve(path));
    ours.text(ours.cubit.as_object())
}

fn memory(bytes: usize, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = memfd_create("test", flags).expect("the host has memory");
    ftruncate(&memory, bytes as u64).expect("it is not sealed yet");
    fcntl_add_seals(&memory, seals).expect("it may be sealed");
    memory
}

const SEALED: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);
const SEGMENT_BYTES: usize = HEADER_BYTES + 2 * RING_BYTES;

#[test]
fn a_server_that_greets_wrongly_is_transient_and_its_memory_is_not_mapped() {
    type Greet = fn(&UnixStream);
    let wrong: [(&str, Greet); 8] = [
        ("no greeting, and the end", |_| {}),
        ("another protocol", |it| send(it, b"GIOP", None)),
        ("no memory", |it| {
            send(it, &greeting(b"RTORBSHM", 1, RING_BYTES), None);
        }),
        ("another magic", |it| {
            let memory = memory(SEGMENT_BYTES, SEALED);
            send(it, &greeting(b"RTORBSHN", 1, RING_BYTES), Some(&memory));
        }),
        ("another version", |it| {
            let memory = memory(SEGMENT_BYTES, SEALED);
            send(it, &greeting(b"RTORBSHM", 2, RING_BYTES), Some(&memory));
        }),
        ("less memory than it says", |it| {
            let memory = memory(SEGMENT_BYTES - 1, SEALED);
            send(it, &greeting(b"RTORBSHM", 1, RING_BYTES), Some(&memory));
        }),
        ("memory that it could truncate", |it| {
            let memory = memory(SEGMENT_BYTES, SealFlags::GROW);
            send(it, &greeting(b"RTORBSHM", 1, RING_BYTES), Some(&memory));
        }),
        ("no power of two", |it| {
            let memory = memory(HEADER_BYTES + 2 * 5000, SEALED);
            send(it, &greeting(b"RTORBSHM", 1, 5000), Some(&memory));
        }),
    ];
    for (what, greet) in wrong {
        let failed = call_of(move |socket| greet(&socket), LONG);
        assert_eq!(failed.kind, ExceptionKind::Transient, "{what}: {failed}");
    }
}

#[test]
fn a_server_that_never_greets_is_a_timeout_of_connecting() {
    let failed = call_by(
        Orb::builder().connect_timeout(Duration::from_millis(300)),
        |socket| {
            // Until the client ends the connection.
            let mut byte = [0];
            let _ = std::io::Read::read(&mut &socket, &mut byte);
        },
        LONG,
    );
    assert_eq!(failed.kind, ExceptionKind::Timeout, "{failed}");
}

/// The memory that a server should give.
pub(super) fn segment() -> OwnedFd {
    memory(SEGMENT_BYTES, SEALED)
}

/// Greets as a server should, and returns the memory. A client whose time has passed is gone.
fn greet(socket: &UnixStream) -> OwnedFd {
    let memory = segment();
    let _ = try_send(socket, &greeting(b"RTORBSHM", 1, RING_BYTES), Some(&memory));
    memory
}

const MILLISECOND: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// Waits until the client has written into its ring; returns false if it ended the connection before. On a busy host, the time of
/// a call may have passed before it sends its request.
fn await_request(socket: &UnixStream, memory: &OwnedFd) -> bool {
    let mut position = [0; 8];
    let begun = Instant::now();
    while begun.elapsed() < LONG {
        // The client is the second of the two sides.
        pread(memory, &mut position, 128).expect("it can be read");
        if position != [0; 8] {
            return true;
        }
        let mut end = [PollFd::new(socket, PollFlags::RDHUP)];
        if poll(&mut end, Some(&MILLISECOND)).expect("the socket is open") > 0 {
            return false;
        }
    }
    panic!("no request came");
}

#[test]
fn a_server_that_does_not_reply_is_a_timeout() {
    let failed = call_of(
        |socket| {
            let memory = greet(&socket);
            await_request(&socket, &memory);
            let mut byte = [0];
            while !matches!(std::io::Read::read(&mut &socket, &mut byte), Ok(0) | Err(_)) {}
        },
        Duration::from_millis(200),
    );
    assert_eq!(failed.kind, ExceptionKind::Timeout, "{failed}");
}

/// Fills the ring of the client with replies to requests that nobody has sent, until the client ends the connection.
fn flood(socket: &UnixStream) {
    let (mut ends, memory) = Duplex::create(RING_BYTES).expect("the host has memory");
    let _ = try_send(socket, &greeting(b"RTORBSHM", 1, RING_BYTES), Some(&memory));
    if !await_request(socket, &memory) {
        return;
    }
    // GIOP 1.2, little endian, Reply, 12 bytes: the id, NO_EXCEPTION, no contexts.
    let reply = [
        b"GIOP\x01\x02\x01\x01\x0c\0\0\0".as_slice(),
        &0x7fff_0001_u32.to_le_bytes(),
        &[0; 8],
    ]
    .concat();
    let replies = reply.repeat(100);
    let (begun, mut sent) = (Instant::now(), 0);
    while begun.elapsed() < LONG && !ends.rings.has_peer_ended(Awaited::Bytes) {
        let rest = IoSlice::new(&replies[sent % replies.len()..]);
        sent += ends.sender.send(&[rest]).expect("the client is ours");
        if ends.rings.call_peer(Awaited::Bytes) && (&*socket).write(&[1]).is_err() {
            return;
        }
    }
}

#[test]
fn a_server_that_sends_without_end_is_a_timeout() {
    let shared =
        WaitStrategy::ALL.map(|(name, wait)| (name, ConnectionStrategy::Multiplexed { wait }));
    for (name, strategy) in [("exclusive", ConnectionStrategy::Exclusive)]
        .into_iter()
        .chain(shared)
    {
        let builder = Orb::builder().connection(strategy);
        let failed = call_by(builder, |socket| flood(&socket), Duration::from_millis(200));
        assert_eq!(failed.kind, ExceptionKind::Timeout, "{name}: {failed}");
    }
}

#[test]
fn a_server_that_ends_inside_a_call_is_comm_failure() {
    let failed = call_of(
        |socket| {
            let memory = greet(&socket);
            assert!(await_request(&socket, &memory), "the call has time");
        },
        LONG,
    );
    assert_eq!(failed.kind, ExceptionKind::CommFailure, "{failed}");
}

#[test]
fn a_client_of_a_server_that_scribbles_gets_an_exception_in_time() {
    for seed in 0..40 {
        let failed = call_of(
            move |socket| {
                let memory = greet(&socket);
                await_request(&socket, &memory);
                let mut scribbler = Scribbler::new(seed);
                for _ in 0..50 {
                    scribbler.scribble(&memory);
                }
                let mut byte = [0];
                while !matches!(std::io::Read::read(&mut &socket, &mut byte), Ok(0) | Err(_)) {}
            },
            Duration::from_millis(300),
        );
        let kinds = [
            ExceptionKind::CommFailure,
            ExceptionKind::Timeout,
            ExceptionKind::Marshal,
            ExceptionKind::Transient,
        ];
        assert!(kinds.contains(&failed.kind), "seed {seed}: {failed}");
    }
}
