//! Compares a hundred calls in flight of one thread with a hundred threads that call, over one UNIX socket and on one CPU.
//!
//! `in-flight [--json] [--calls N] [--peer NAME=PROGRAM]...`: N calls of each kind, 200,000 by default. `PROGRAM --calls N` is run on the same CPU
//! after ours, and prints the calls a second of another framework; docs/how-to/asynchronous-calls.md has those of omniORB and tonic.
//!
//! Where threads may have priorities, also compares an urgent call of one task beside 50 that saturate the server with an urgent thread beside
//! 50 threads.
#![forbid(unsafe_code)]
use anyhow::{Context, bail, ensure};
use rtorb::rt::{Policy, Priority, PriorityModel};
use rtorb::{
    Call, ConnectionStrategy, DispatchStrategy, Orb, PoaPolicies, SystemException, WaitStrategy,
};
use rtorb_examples::{Serving, require_real_time, server, take_priority};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::{apply_affinity, current_affinity};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{Write as _, stdout};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

rtorb::include_idl!("plotter");
use plotter::{Motor, MotorServant};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

const IN_FLIGHT: usize = 100;
/// The calls that saturate the server beside an urgent one.
const SATURATING: usize = 50;
const URGENT: i16 = 60;
const LESS_URGENT: i16 = 10;
/// The pause between urgent calls of a thread, in nanoseconds.
const BETWEEN_NS: u64 = 200_000;
const LEADING: WaitStrategy = WaitStrategy::LeaderFollowers;

struct Stepper;

impl MotorServant for Stepper {
    fn turn(&self, degrees: i32) -> Result<i32, SystemException> {
        Ok(degrees)
    }
}

/// The calls in flight, the oldest first.
type Calls = VecDeque<Call<i32>>;

/// Makes so many calls, a hundred at a time in flight. Returns the calls a second.
fn started(motor: &Motor, calls: u64, in_flight: &mut Calls) -> Result<f64, SystemException> {
    let begun = Instant::now();
    for degrees in 0..calls as i32 {
        if in_flight.len() == IN_FLIGHT
            && let Some(oldest) = in_flight.pop_front()
        {
            oldest.wait()?;
        }
        in_flight.push_back(motor.start().turn(degrees));
    }
    for call in in_flight.drain(..) {
        call.wait()?;
    }
    Ok(calls as f64 / begun.elapsed().as_secs_f64())
}

/// Makes so many calls by a hundred threads. Returns the calls a second.
fn blocking(motor: &Motor, calls: u64) -> Result<f64, SystemException> {
    let begun = Instant::now();
    let each = calls / IN_FLIGHT as u64;
    let call = || (0..each as i32).try_for_each(|degrees| motor.turn(degrees).map(|_| ()));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..IN_FLIGHT).map(|_| scope.spawn(call)).collect();
        let mut ended = threads.into_iter().map(|it| it.join().expect("no panic"));
        ended.try_for_each(|it| it)
    })?;
    Ok((each * IN_FLIGHT as u64) as f64 / begun.elapsed().as_secs_f64())
}

/// The response times of urgent calls, in microseconds.
struct Responses {
    p50_us: f64,
    p99_us: f64,
}

impl Responses {
    /// The response times of these calls, in nanoseconds.
    fn of(mut times_ns: Vec<u64>) -> anyhow::Result<Self> {
        times_ns.sort_unstable();
        let at = |percent: usize| {
            let time_ns = times_ns.get(times_ns.len() * percent / 100);
            time_ns.map(|&time_ns| time_ns as f64 / 1e3)
        };
        Ok(Self {
            p50_us: at(50).context("there is no call")?,
            p99_us: at(99).context("there is no call")?,
        })
    }
}

/// Makes so many urgent calls from one task, which keeps 50 less urgent ones in flight meanwhile.
fn urgent_started(motor: &Motor, calls: u64) -> anyhow::Result<Responses> {
    let (urgent, less_urgent) = (Priority::new(URGENT)?, Priority::new(LESS_URGENT)?);
    let mut saturating = Calls::with_capacity(SATURATING);
    let mut times_ns = Vec::with_capacity(calls as usize);
    for degrees in 0..calls as i32 {
        // The task goes on with a few of the others between its urgent calls.
        for call in saturating.drain(..saturating.len().min(SATURATING / 5)) {
            call.wait()?;
        }
        while saturating.len() < SATURATING {
            saturating.push_back(motor.start_at(less_urgent).turn(degrees));
        }
        let begun_ns = monotonic_ns();
        motor.start_at(urgent).turn(degrees).wait()?;
        times_ns.push(monotonic_ns() - begun_ns);
    }
    for call in saturating {
        call.wait()?;
    }
    Responses::of(times_ns)
}

/// Makes so many urgent calls from one thread, while 50 less urgent ones call.
fn urgent_blocking(client: &Orb, motor: &Motor, calls: u64) -> anyhow::Result<Responses> {
    let is_over = AtomicBool::new(false);
    let saturate = || {
        take_priority(client, LESS_URGENT)?;
        while !is_over.load(Ordering::Relaxed) {
            motor.turn(1)?;
        }
        anyhow::Ok(())
    };
    let call = || {
        let mut times_ns = Vec::with_capacity(calls as usize);
        for degrees in 0..calls as i32 {
            let begun_ns = monotonic_ns();
            motor.turn(degrees)?;
            times_ns.push(monotonic_ns() - begun_ns);
            // The others call between the urgent calls, as they do beside the task.
            sleep_until(monotonic_ns() + BETWEEN_NS);
        }
        Responses::of(times_ns)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..SATURATING).map(|_| scope.spawn(saturate)).collect();
        let responses = call();
        is_over.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().expect("no panic")?;
        }
        responses
    })
}

/// The two ways to make urgent calls; `None` where threads have no priorities.
fn urgent(calls: u64) -> anyhow::Result<Option<[Responses; 2]>> {
    if require_real_time(URGENT).is_err() {
        return Ok(None);
    }
    let server = server("urgent")
        .dispatch(DispatchStrategy::ThreadPerConnection)
        .build()?;
    let policies = PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ClientPropagated,
        server_priority: Priority::new(LESS_URGENT)?,
    });
    let motor: Motor = server
        .root_poa()?
        .create_poa("Urgent", policies)?
        .activate(Stepper)?;
    let serving = Serving::start(&server);
    let responses = thread::scope(|scope| {
        let measure = scope.spawn(|| {
            let banded = ConnectionStrategy::Banded { wait: LEADING };
            let client = Orb::builder().connection(banded).build()?;
            let motor: Motor = client.string_to_reference(&motor.to_string())?;
            take_priority(&client, URGENT)?;
            let started = urgent_started(&motor, calls)?;
            anyhow::Ok([started, urgent_blocking(&client, &motor, calls)?])
        });
        measure.join().expect("no panic")
    })?;
    serving.end()?;
    Ok(Some(responses))
}

/// The calls a second of another framework, as its program prints them.
fn peer(program: &str, calls: u64) -> anyhow::Result<f64> {
    let mut command = Command::new(program);
    let output = command.args(["--calls", &calls.to_string()]).output();
    let output = output.with_context(|| format!("{program} cannot be started"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let printed = printed.trim();
    let per_s = printed.parse();
    per_s.with_context(|| format!("{program} printed {printed:?} instead of its calls a second"))
}

/// What the command line asks for.
struct Arguments {
    is_json: bool,
    calls: u64,
    /// Names and programs of other frameworks.
    peers: Vec<(String, String)>,
}

impl Arguments {
    fn read() -> anyhow::Result<Self> {
        let (mut is_json, mut calls, mut peers) = (false, 200_000, Vec::new());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--json" => is_json = true,
                "--calls" => {
                    let number = arguments.next().context("--calls needs a number")?;
                    calls = number.parse().context("--calls needs a number")?;
                    ensure!(calls >= 1000, "--calls: at least 1000");
                }
                "--peer" => {
                    let peer = arguments.next().context("--peer needs NAME=PROGRAM")?;
                    let (name, program) =
                        peer.split_once('=').context("--peer needs NAME=PROGRAM")?;
                    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
                    ensure!(is_word, "--peer: a NAME has letters and digits");
                    peers.push((name.to_owned(), program.to_owned()));
                }
                _ => bail!("usage: in-flight [--json] [--calls N] [--peer NAME=PROGRAM]..."),
            }
        }
        Ok(Self {
            is_json,
            calls,
            peers,
        })
    }
}

/// What was measured, as the program prints it.
struct Report {
    json: String,
    text: String,
}

impl Report {
    fn add(&mut self, key: &str, words: &str, value: f64, digits: usize) {
        let separator = if self.json.is_empty() { "" } else { ", " };
        // Writing into a string does not fail.
        let _ = write!(self.json, "{separator}\"{key}\": {value:.digits$}");
        let _ = writeln!(self.text, "{words:<45} {value:>9.digits$}");
    }
}

/// Measures calls in flight of a thread, and a hundred threads that call.
fn measure(calls: u64, report: &mut Report) -> anyhow::Result<()> {
    let server = server("in-flight")
        .dispatch(DispatchStrategy::ThreadPerConnection)
        .build()?;
    let motor: Motor = server.root_poa()?.activate(Stepper)?;
    let serving = Serving::start(&server);
    let shared = ConnectionStrategy::Multiplexed { wait: LEADING };
    let client = Orb::builder().connection(shared).build()?;
    let motor: Motor = client.string_to_reference(&motor.to_string())?;
    let mut in_flight = Calls::with_capacity(IN_FLIGHT);
    started(&motor, calls / 10, &mut in_flight)?;
    let heap_before = process_heap_calls();
    let per_s = started(&motor, calls, &mut in_flight)?;
    let heap_calls = process_heap_calls() - heap_before;
    let words = "100 calls in flight of a thread, calls/s";
    report.add("calls_per_s", words, per_s, 0);
    let words = "100 threads that call, calls/s";
    report.add("blocking_calls_per_s", words, blocking(&motor, calls)?, 0);
    let per_call = heap_calls as f64 / calls as f64;
    let words = "heap calls of a call in flight";
    let digits = if heap_calls == 0 { 0 } else { 6 };
    report.add("heap_calls_per_call", words, per_call, digits);
    serving.end()
}

fn main() -> anyhow::Result<()> {
    let Arguments {
        is_json,
        calls,
        peers,
    } = Arguments::read()?;
    let cpu = *current_affinity().last().context("there is no CPU")?;
    apply_affinity(&[cpu])?;
    let mut report = Report {
        json: format!("\"in_flight\": {IN_FLIGHT}"),
        text: String::new(),
    };
    measure(calls, &mut report)?;
    if let Some([started, blocking]) = urgent(calls / 100)? {
        for (key, words, value) in [
            ("urgent_p50_us", "task, p50", started.p50_us),
            ("urgent_p99_us", "task, p99", started.p99_us),
            ("urgent_blocking_p50_us", "thread, p50", blocking.p50_us),
            ("urgent_blocking_p99_us", "thread, p99", blocking.p99_us),
        ] {
            report.add(key, &format!("urgent call of a {words} in us"), value, 1);
        }
    }
    for (name, program) in peers {
        let words = format!("{name}, 100 calls in flight, calls/s");
        let per_s = peer(&program, calls)?;
        report.add(&format!("{name}_calls_per_s"), &words, per_s, 0);
    }
    if is_json {
        writeln!(stdout(), "{{{}}}", report.json)?;
    } else {
        write!(stdout(), "{}", report.text)?;
    }
    Ok(())
}
