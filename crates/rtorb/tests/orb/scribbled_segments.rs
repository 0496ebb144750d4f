//! Segments that somebody scribbles over at random while a client and a server of ours use them.
//!
//! `RTORB_SCRIBBLE_SECONDS` is how long, and `RTORB_SCRIBBLE_SEED` what is drawn. A client reaches its server through a relay,
//! which passes the memory and the doorbell on and keeps a descriptor of the memory. The threads of both sides run as they like,
//! so that a seed repeats what is written, and not when.

use super::segments::{Area, Meeting, RING_BYTES, Scribbler, meet, try_send};
use rtorb::{DispatchStrategy, Orb, SharedMemoryWait};
use rtorb_tests::ours::{Ours, check_cubit};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use rtorb_wire::ior::{Ior, ProfileBody};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a client and a server are together.
const SLICE: Duration = Duration::from_millis(400);
const TIMEOUT: Duration = Duration::from_millis(200);
/// Far longer than a call with that timeout takes, on a busy machine too.
const LONG: Duration = Duration::from_secs(20);

fn number_of(variable: &str, otherwise: u64) -> u64 {
    let number = std::env::var(variable).ok();
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or(otherwise)
}

#[test]
fn calls_through_a_segment_that_is_scribbled_over_end_in_time_and_disturb_nobody() {
    let first = number_of("RTORB_SCRIBBLE_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number_of("RTORB_SCRIBBLE_SECONDS", 3));
    let latest = end + LONG;
    let mut all = Seen::default();
    let mut seed = first;
    // On a busy host, few calls are made in that time.
    let lacks_some = |all: &Seen| (all.returned == 0 || all.failed == 0) && Instant::now() < latest;
    while Instant::now() < end || lacks_some(&all) {
        all.add(&slice(seed));
        seed += 1;
    }
    println!("seeds {first} to {}: {all:?}", seed - 1);
    assert!(all.returned > 0, "no call came through: {all:?}");
    assert!(all.failed > 0, "no call felt anything: {all:?}");
}

/// What clients saw.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    connections: u64,
    scribbles: u64,
    /// Calls with a reply that returned, with whatever result.
    returned: u64,
    /// Calls that ended with an exception.
    failed: u64,
    longest: Duration,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.scribbles += other.scribbles;
        self.returned += other.returned;
        self.failed += other.failed;
        self.longest = self.longest.max(other.longest);
    }
}

/// A server, clients whose segments are scribbled over, and one whose segment is not.
fn slice(seed: u64) -> Seen {
    let mut scribbler = Scribbler::new(seed);
    let (name, dispatch) = DispatchStrategy::ALL[scribbler.number(6)];
    let (_, wait) = SharedMemoryWait::ALL[scribbler.number(4)];
    println!("seed {seed}: {name}, {wait}");
    let scratch = Scratch::new();
    let [served, relayed] = ["served", "relayed"].map(|name| scratch.join(name));
    let server = Orb::builder()
        .shared_memory_ring_bytes(RING_BYTES)
        .shared_memory_wait(wait)
        .dispatch(dispatch)
        .listen(&format!("shmiop://{}", served.display()));
    let ours = Ours::serve_as(server);
    let reference = ours.text(ours.cubit.as_object());
    let by_relay = by_way_of(&reference, &relayed);
    let listener = UnixListener::bind(&relayed).expect("the folder can be written");
    let listener = &listener;
    let is_over = &AtomicBool::new(false);
    let mut seen = Seen::default();
    thread::scope(|scope| {
        let relay = scope.spawn(|| relay(listener, &served, scribbler, is_over));
        let clients = [(); CLIENTS].map(|()| scope.spawn(|| call(&by_relay, wait, is_over)));
        let good = client(&reference, wait, LONG);
        let end = Instant::now() + SLICE;
        while Instant::now() < end {
            check_cubit(&good, &[0, 1021]);
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            seen.add(&client.join().expect("a client does not panic"));
        }
        seen.add(&relay.join().expect("the relay does not panic"));
    });
    assert!(seen.longest < LONG, "seed {seed}: {seen:?}");
    seen
}

const CLIENTS: usize = 2;

/// The reference with the socket file of the relay.
fn by_way_of(reference: &str, socket: &Path) -> String {
    let mut ior: Ior = reference.parse().expect("a reference");
    for profile in &mut ior.profiles {
        if let Ok(ProfileBody::Shmiop(mut body)) = ProfileBody::from_tagged(profile) {
            body.path = socket.display().to_string();
            *profile = body.to_tagged().expect("it can be written");
        }
    }
    ior.to_string()
}

fn client(reference: &str, wait: SharedMemoryWait, timeout: Duration) -> Cubit {
    let builder = Orb::builder()
        .shared_memory_wait(wait)
        .connect_timeout(timeout)
        .round_trip_timeout(Some(timeout));
    let orb = builder.build().expect("an ORB");
    Cubit::unchecked_narrow(orb.string_to_object(reference).expect("a reference"))
}

/// Calls until it is over. Results may be wrong, since there may be other bytes in the messages.
fn call(reference: &str, wait: SharedMemoryWait, is_over: &AtomicBool) -> Seen {
    let cubit = client(reference, wait, TIMEOUT);
    let octets = [7; 3 * RING_BYTES];
    let mut seen = Seen::default();
    let goes_on = |_: &u32| !is_over.load(Ordering::Relaxed);
    for turn in (0..4).cycle().take_while(goes_on) {
        let begun = Instant::now();
        let ended = match turn {
            0 => cubit.cube_octet_sequence(&octets).map(drop),
            1 => cubit.cube_octet_sequence(&octets[..100]).map(drop),
            2 => cubit.cube_oneway(),
            _ => cubit.cube_long(3).map(drop),
        };
        seen.longest = seen.longest.max(begun.elapsed());
        match ended {
            Ok(()) => seen.returned += u64::from(turn != 2),
            Err(_) => seen.failed += 1,
        }
    }
    seen
}

/// A client that is connected to the server.
struct Pair {
    client: UnixStream,
    server: Meeting,
    area: Area,
    end: Instant,
}

/// Connects each client that comes to the server, and scribbles over their segments.
fn relay(
    listener: &UnixListener,
    served: &Path,
    mut scribbler: Scribbler,
    is_over: &AtomicBool,
) -> Seen {
    listener.set_nonblocking(true).expect("it is a socket");
    let mut pairs: Vec<Pair> = Vec::new();
    let mut seen = Seen::default();
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((client, _)) = listener.accept() {
            // A client that has given up meanwhile is gone.
            if let Some(pair) = introduce(client, served, &mut scribbler) {
                pairs.push(pair);
                seen.connections += 1;
            }
        }
        await_doorbells(&pairs, PAUSES_US[scribbler.number(PAUSES_US.len())]);
        pairs.retain_mut(|pair| {
            scribbler.scribble_in(pair.area, &pair.server.memory);
            seen.scribbles += 1;
            pass_on(&mut pair.client, &mut pair.server.socket)
                && pass_on(&mut pair.server.socket, &mut pair.client)
                && Instant::now() < pair.end
        });
    }
    seen
}

fn introduce(client: UnixStream, served: &Path, scribbler: &mut Scribbler) -> Option<Pair> {
    let server = meet(served);
    try_send(&client, &server.greeting, Some(&server.memory)).ok()?;
    for socket in [&client, &server.socket] {
        socket.set_nonblocking(true).expect("it is a socket");
    }
    let lasting = Duration::from_millis(1 + scribbler.number(100) as u64);
    Some(Pair {
        client,
        server,
        area: [Area::Whole, Area::Flags, Area::Payload][scribbler.number(3)],
        end: Instant::now() + lasting,
    })
}

/// From one scribble to the next.
const PAUSES_US: [u32; 4] = [0, 10, 100, 1_000];

fn await_doorbells(pairs: &[Pair], pause_us: u32) {
    let sockets = pairs
        .iter()
        .flat_map(|pair| [&pair.client, &pair.server.socket]);
    let mut doorbells: Vec<_> = sockets
        .map(|socket| PollFd::new(socket, PollFlags::IN))
        .collect();
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(pause_us) * 1_000,
    };
    poll(&mut doorbells, Some(&pause)).expect("they can be polled");
}

/// Passes the bytes of a doorbell on; false once it is closed.
fn pass_on(from: &mut UnixStream, to: &mut UnixStream) -> bool {
    let mut bytes = [0; 64];
    match from.read(&mut bytes) {
        Ok(0) => false,
        // A socket that is full has been rung often enough.
        Ok(count) => match to.write(&bytes[..count]) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        },
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}
