//! The calls of an urgent lane alone and beside a flood of handshakes, in turns. It measures only with RTORB_TLS_FLOOD=PER_SECOND, such as
//! 1000, takes half a minute, and needs the right to SCHED_FIFO and two idle CPUs for figures that mean something.

#[path = "tls/pki.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod pki;

use pki::{Pki, nameless, orb};
use rtorb::ior::{Component, Ior};
use rtorb::rt::{Policy, Priority, PriorityModel, ThreadpoolLane};
use rtorb::security::ClientCertificates;
use rtorb::{Collocation, DispatchStrategy, Orb, PoaPolicies};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::{apply_affinity, current_affinity};
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const PRIORITY: i16 = 40;
/// The client is more urgent than the server, so that it gets the CPU as soon as it has its reply.
const CLIENT_PRIORITY: i16 = 60;
const CALLS: usize = 5_000;
const PERIOD_NS: u64 = 500_000;
const ROUNDS: usize = 5;

fn main() {
    let Ok(per_second) = std::env::var("RTORB_TLS_FLOOD") else {
        return;
    };
    let per_second = per_second.parse().expect("a number");
    let cpus = current_affinity();
    let (own, others) = cpus.split_first().expect("a CPU");
    apply_affinity(&[*own]).expect("an own CPU");
    let pki = Pki::new();
    let (server, reference) = server(&pki);
    let ior = Ior::parse(&reference).expect("a reference");
    let secure = ior.iiop_profiles().find_map(|profile| {
        let components = profile.components.into_iter();
        components
            .filter_map(|component| Component::from_tagged(&component).ok())
            .find_map(|component| match component {
                Component::SslSecTrans(ssl) => Some(ssl.port),
                _ => None,
            })
    });
    let address = SocketAddr::from(([127, 0, 0, 1], secure.expect("a port of TLS")));
    let serving = server.clone();
    let serving = thread::spawn(move || serving.run());
    let client = Orb::builder().build().expect("an ORB");
    let priority = Priority::new(CLIENT_PRIORITY).expect("legal");
    client
        .rt_current()
        .set_the_priority(priority)
        .expect("the right to SCHED_FIFO");
    let cubit: Cubit = client.string_to_reference(&reference).expect("a reference");
    let hello = client_hello(&pki);
    let mut tails = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        tails[0].push(round(&cubit, "alone"));
        let flood = Flood::start(address, &hello, per_second, others);
        thread::sleep(Duration::from_secs(1));
        let (before, begun_ns) = (flood.answered(), monotonic_ns());
        tails[1].push(round(&cubit, "beside it"));
        let seconds = (monotonic_ns() - begun_ns) as f64 / 1e9;
        let answered = (flood.answered() - before) as f64 / seconds;
        let tried = flood.tried.load(Ordering::Relaxed);
        println!("{answered:.0} handshakes a second were answered, {tried} were begun in all");
    }
    let [alone, beside] = tails.map(|mut tails| {
        tails.sort_unstable();
        tails[ROUNDS / 2]
    });
    let moved = (beside as f64 / alone as f64 - 1.0) * 100.0;
    println!("p99 moved by {moved:.1} %");
    server.shutdown();
    serving.join().expect("no panic").expect("it ran");
}

/// A server with an urgent lane, at a plain port and at one of TLS.
fn server(pki: &Pki) -> (Orb, String) {
    let lane = ThreadpoolLane {
        lane_priority: Priority::new(PRIORITY).expect("legal"),
        ..ThreadpoolLane::default()
    };
    let server = orb(pki.server().clients(ClientCertificates::None))
        .listen("iiop://127.0.0.1:0")
        .listen("ssliop://127.0.0.1:0")
        .dispatch(DispatchStrategy::Lanes)
        .lanes([lane])
        .collocation(Collocation::Transport)
        .build()
        .expect("an ORB");
    let policies = PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ServerDeclared,
        server_priority: Priority::new(PRIORITY).expect("legal"),
    });
    let root = server.root_poa().expect("it listens");
    let adapter = root.create_poa("Urgent", policies).expect("an adapter");
    let orb = server.clone();
    let cubit: Cubit = adapter.activate(Cubes { orb }).expect("there is room");
    let reference = cubit.to_string();
    (server, reference)
}

/// Calls so many times, prints the times, and returns their 99th percentile in nanoseconds.
fn round(cubit: &Cubit, name: &str) -> u64 {
    let mut times = Vec::with_capacity(CALLS);
    let mut release_ns = monotonic_ns();
    for _ in 0..CALLS {
        release_ns = monotonic_ns().max(release_ns + PERIOD_NS);
        sleep_until(release_ns);
        let begun_ns = monotonic_ns();
        cubit.cube_long(3).expect("a reply");
        times.push(monotonic_ns() - begun_ns);
    }
    times.sort_unstable();
    let [p50, p99, p999] = [500, 990, 999].map(|per_mille| times[CALLS * per_mille / 1000]);
    let max = times[CALLS - 1];
    println!("{name:12} p50 {p50:>8} p99 {p99:>8} p99.9 {p999:>8} max {max:>9} ns");
    p99
}

/// Returns what a client sends first, which every server answers by a key exchange and a signature.
fn client_hello(pki: &Pki) -> Vec<u8> {
    let deaf = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = deaf.local_addr().expect("it is bound").port();
    let client = orb(nameless(pki)).round_trip_timeout(Some(Duration::from_millis(200)));
    let client = client.build().expect("an ORB");
    let reader = thread::spawn(move || {
        let (mut socket, _) = deaf.accept().expect("a client");
        let mut hello = vec![0; 4096];
        let count = socket.read(&mut hello).expect("its first message");
        hello.truncate(count);
        hello
    });
    let reference = format!("corbaloc:ssliop:127.0.0.1:{port}/x");
    // It calls to find out the interface.
    let answer = client.string_to_reference::<Cubit>(&reference);
    answer.expect_err("nobody answers");
    reader.join().expect("no panic")
}

/// Threads that begin handshakes and go when they are answered. They end when this is dropped.
struct Flood {
    ends: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    tried: Arc<AtomicU64>,
    threads: Vec<thread::JoinHandle<()>>,
}

const THREADS: u64 = 64;

impl Flood {
    /// It runs on those CPUs, and has no priority.
    fn start(address: SocketAddr, hello: &[u8], per_second: u64, cpus: &[usize]) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (answered, tried) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let threads = (0..THREADS).map(|_| {
            let (ends, hello, cpus) = (Arc::clone(&ends), hello.to_vec(), cpus.to_vec());
            let (answered, tried) = (Arc::clone(&answered), Arc::clone(&tried));
            thread::spawn(move || {
                rtorb_os::sched::apply_policy(rtorb_os::sched::SchedPolicy::Other)
                    .expect("every thread may");
                apply_affinity(&cpus).expect("the host has them");
                let mut next_ns = monotonic_ns();
                while !ends.load(Ordering::Relaxed) {
                    next_ns += 1_000_000_000 * THREADS / per_second;
                    sleep_until(next_ns);
                    tried.fetch_add(1, Ordering::Relaxed);
                    let begun = TcpStream::connect(address).and_then(|mut socket| {
                        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
                        socket.write_all(&hello)?;
                        socket.read(&mut [0; 4096])
                    });
                    answered.fetch_add(u64::from(begun.is_ok()), Ordering::Relaxed);
                }
            })
        });
        Self {
            threads: threads.collect(),
            ends,
            answered,
            tried,
        }
    }

    fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("no panic");
        }
    }
}
