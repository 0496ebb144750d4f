//! Measures the calls of an urgent client alone and beside a flood of strangers, in turns.
//!
//! `flood [CONNECTIONS [PACE [TURNS]]]`: that many connections, 1,000 by default. Half of them send bytes that are no GIOP and connect again;
//! the others send a message that never ends, one byte at a time. PACE of them send in a millisecond, 10 by default. The server begins TURNS
//! of their turns in 10 ms, by default as many as any server. Client and server have the first CPU that the program may use, and the flood
//! has the others. It needs the right to SCHED_FIFO, and two idle CPUs for figures that mean something.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Write, stdout};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rtorb::ior::Ior;
use rtorb::rt::{Policy, Priority, PriorityModel, ThreadpoolLane};
use rtorb::{Collocation, DispatchStrategy, Limits, Orb, PoaPolicies};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::{apply_affinity, current_affinity};
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const PRIORITY: i16 = 40;
/// The client is more urgent than the server, so that it gets the CPU as soon as it has its reply.
const CLIENT_PRIORITY: i16 = 60;
const CALLS: usize = 10_000;
const PERIOD_NS: u64 = 500_000;
const ROUNDS: usize = 3;

/// Bytes that are no GIOP.
const GARBAGE: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
/// The header of a long message.
const LONG: &[u8] = b"GIOP\x01\x02\x01\x00\x00\x00\xf0\x00";
/// It ends by then, also if nobody ends it.
const FLOOD_NS_MAX: u64 = 120_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    raise_descriptors()?;
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => measure(["1000", "10"], None),
        ["send", address, connections, pace] => {
            send(address.parse()?, connections.parse()?, pace.parse()?)
        }
        [connections] => measure([connections, "10"], None),
        [connections, pace] => measure([connections, pace], None),
        [connections, pace, turns] => measure([connections, pace], Some(turns.parse()?)),
        _ => Err("usage: flood [CONNECTIONS [PACE [TURNS]]]".into()),
    }
}

/// Lets the process have as many descriptors as the host allows.
fn raise_descriptors() -> Result<(), Box<dyn Error>> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Measures rounds without and with a flood of that many connections and that pace.
fn measure(flood: [&str; 2], turns: Option<usize>) -> Result<(), Box<dyn Error>> {
    let cpus = current_affinity();
    let (own, others) = cpus.split_first().ok_or("no CPU")?;
    apply_affinity(&[*own])?;
    let (server, reference) = server(turns)?;
    let ior: Ior = reference.parse()?;
    let profile = ior.iiop_profiles().next().ok_or("no IIOP profile")?;
    let address = format!("{}:{}", profile.host, profile.port);
    let serving = server.clone();
    let serving = thread::spawn(move || serving.run());
    let client = Orb::builder().build()?;
    let priority = Priority::new(CLIENT_PRIORITY)?;
    client.rt_current().set_the_priority(priority)?;
    let cubit: Cubit = client.string_to_reference(&reference)?;
    let mut tails = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        tails[0].push(round(&cubit, "alone")?);
        let flood = Flood::start(&address, flood, others)?;
        // Until all have connected.
        thread::sleep(Duration::from_secs(2));
        tails[1].push(round(&cubit, "beside it")?);
        drop(flood);
    }
    let [alone, beside] = tails.map(|mut tails| {
        tails.sort_unstable();
        tails[ROUNDS / 2]
    });
    let moved = (beside as f64 / alone as f64 - 1.0) * 100.0;
    let counts = server.connection_counts();
    writeln!(stdout(), "p99 moved by {moved:.1} %: {counts:?}")?;
    server.shutdown();
    serving.join().map_err(|_| "the server panicked")??;
    Ok(())
}

/// A server with one urgent lane, and the reference of its object.
fn server(turns: Option<usize>) -> Result<(Orb, String), Box<dyn Error>> {
    let lane = ThreadpoolLane {
        lane_priority: Priority::new(PRIORITY)?,
        ..ThreadpoolLane::default()
    };
    let server = Orb::builder()
        .listen("iiop://127.0.0.1:0")
        .dispatch(DispatchStrategy::Lanes)
        .lanes([lane])
        .collocation(Collocation::Transport)
        .limits(Limits::with(|limits| {
            limits.connections_max = 4096;
            limits.stranger_turns_max = turns.unwrap_or(limits.stranger_turns_max);
        }))
        .build()?;
    let policies = PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ServerDeclared,
        server_priority: Priority::new(PRIORITY)?,
    });
    let adapter = server.root_poa()?.create_poa("Urgent", policies)?;
    let orb = server.clone();
    let cubit: Cubit = adapter.activate(Cubes { orb })?;
    Ok((server, cubit.to_string()))
}

/// Calls so many times, prints the times, and returns their 99th percentile in nanoseconds.
fn round(cubit: &Cubit, name: &str) -> Result<u64, Box<dyn Error>> {
    let mut times = Vec::with_capacity(CALLS);
    let mut release_ns = monotonic_ns();
    for _ in 0..CALLS {
        release_ns = monotonic_ns().max(release_ns + PERIOD_NS);
        sleep_until(release_ns);
        let begun_ns = monotonic_ns();
        cubit.cube_long(3)?;
        times.push(monotonic_ns() - begun_ns);
    }
    times.sort_unstable();
    let [p50, p99, p999] = [500, 990, 999].map(|per_mille| times[CALLS * per_mille / 1000]);
    let max = times[CALLS - 1];
    writeln!(
        stdout(),
        "{name:12} p50 {p50:>8} p99 {p99:>8} p99.9 {p999:>8} max {max:>9} ns"
    )?;
    Ok(p99)
}

/// The process of the flood, which is killed when this is dropped.
struct Flood(Child);

impl Flood {
    /// It runs on those CPUs, and has no priority.
    fn start(
        address: &str,
        [connections, pace]: [&str; 2],
        cpus: &[usize],
    ) -> Result<Self, Box<dyn Error>> {
        let cpus: Vec<_> = cpus.iter().map(usize::to_string).collect();
        let mut command = Command::new("taskset");
        command.args(["-c", &cpus.join(","), "chrt", "-o", "0"]);
        command.arg(std::env::current_exe()?);
        command.args(["send", address, connections, pace]);
        Ok(Self(command.stdin(Stdio::null()).spawn()?))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Floods a server.
fn send(address: SocketAddr, connections: usize, pace: usize) -> Result<(), Box<dyn Error>> {
    let end_ns = monotonic_ns() + FLOOD_NS_MAX;
    let connect = || -> Result<TcpStream, std::io::Error> {
        let stream = TcpStream::connect(address)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    let mut strangers = (0..connections)
        .map(|_| connect())
        .collect::<Result<Vec<_>, _>>()?;
    for stranger in strangers.iter_mut().skip(1).step_by(2) {
        stranger.write_all(LONG)?;
    }
    while monotonic_ns() < end_ns {
        for (number, stranger) in strangers.iter_mut().enumerate() {
            let bytes = if number % 2 == 0 { GARBAGE } else { b"\0" };
            if stranger.write(bytes).is_err() && number % 2 == 0 {
                *stranger = connect()?;
            }
            if number.is_multiple_of(pace) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    Ok(())
}
