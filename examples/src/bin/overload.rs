//! Calls a plant for 130 % of the time that one CPU has, and prints what becomes of the calls of each criticality: in a lane that serves
//! them in the order of their arrival and only counts deadlines, in one that enforces them, and in one that also looks at criticality.
//!
//! `overload [--json] [--seconds N]`: N seconds of each, 10 by default. It needs the right to SCHED_FIFO.
//!
//! Each second has 0.6 s of overload. Linux takes the CPU from threads with a priority that keep it for longer than 0.95 s.
#![forbid(unsafe_code)]
use anyhow::{Context, bail};
use rtorb::exception::local;
use rtorb::rt::{RequestOrder, ThreadpoolLane};
use rtorb::thread::ThreadConfig;
use rtorb::{Deadlines, ExceptionKind, Limits, Orb, SystemException};
use rtorb_examples::{
    Serving, adapter, arguments, compute, lane, require_real_time, server, take_priority,
};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::current_affinity;
use rtorb_os::timer::PeriodicTimer;
use std::io::{Write, stderr, stdout};
use std::ops::AddAssign;
use std::sync::{Arc, Barrier};
use std::thread;

rtorb::include_idl!("overload");
use plant::{Control, ControlServant};

const LANE_PRIORITY: i16 = 40;
/// The clients are more urgent than the server, so that the load does not depend on it.
const CLIENT_PRIORITY: i16 = 60;
/// The period and the deadline of each client, and the work of each call.
const PERIOD_NS: u64 = 10_000_000;
const WORK_NS: u64 = 1_000_000;
/// The periods of overload in a second.
const PERIODS: u64 = 60;
const SECOND_NS: u64 = 1_000_000_000;
/// All that may wait in the lane. A very critical call waits for it, the call that runs, and the others of its kind.
const QUEUED_MAX: usize = 4;

/// The calls until one is served.
const CONNECTING_MAX: u32 = 100;

type Operation = fn(&Control) -> Result<(), SystemException>;

/// The operations with the number of clients of each: 13 ms of work in each period of 10 ms.
const OPERATIONS: [(&str, u64, Operation); 3] = [
    ("very high", 3, Control::protect),
    ("medium", 5, Control::regulate),
    ("low", 5, Control::log_values),
];

/// How a server treats an overload.
struct Treatment {
    name: &'static str,
    order: RequestOrder,
    deadlines: Deadlines,
}

const TREATMENTS: [Treatment; 3] = [
    Treatment {
        name: "fifo, count",
        order: RequestOrder::Fifo,
        deadlines: Deadlines::Count,
    },
    Treatment {
        name: "fifo, enforce",
        order: RequestOrder::Fifo,
        deadlines: Deadlines::Enforce,
    },
    Treatment {
        name: "maximum_urgency, enforce",
        order: RequestOrder::MaximumUrgency,
        deadlines: Deadlines::Enforce,
    },
];

/// Has 1 ms of work for each call.
struct Valves;

impl ControlServant for Valves {
    fn protect(&self) -> Result<(), SystemException> {
        compute(WORK_NS);
        Ok(())
    }

    fn regulate(&self) -> Result<(), SystemException> {
        compute(WORK_NS);
        Ok(())
    }

    fn log_values(&self) -> Result<(), SystemException> {
        compute(WORK_NS);
        Ok(())
    }
}

/// What became of the calls of one criticality.
#[derive(Clone, Copy, Default)]
struct Outcome {
    periods: u64,
    in_time: u64,
    /// The result came after the deadline, or the period was over before the call before had ended.
    late: u64,
    /// TRANSIENT: the call lost its place to a more critical one, or found none.
    shed: u64,
    refused: u64,
    /// TIMEOUT.
    expired: u64,
    longest_ns: u64,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.periods += other.periods;
        self.in_time += other.in_time;
        self.late += other.late;
        self.shed += other.shed;
        self.refused += other.refused;
        self.expired += other.expired;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

fn main() -> anyhow::Result<()> {
    let (is_json, seconds) = arguments("overload", "--seconds", 10)?;
    require_real_time(CLIENT_PRIORITY)?;
    if !is_json {
        writeln!(
            stdout(),
            "{:24} {:>11} {:>8} {:>8} {:>7} {:>7} {:>8} {:>8} {:>13}",
            "lane",
            "criticality",
            "periods",
            "in time",
            "late",
            "shed",
            "refused",
            "expired",
            "longest (ms)"
        )?;
    }
    for treatment in &TREATMENTS {
        writeln!(stderr(), "{}: {seconds} s", treatment.name)?;
        let outcomes = measure(treatment, seconds)?;
        print(treatment, &outcomes, is_json)?;
    }
    Ok(())
}

/// Overloads a server for so long, and returns what became of the calls of each operation.
fn measure(treatment: &Treatment, seconds: u64) -> anyhow::Result<[Outcome; 3]> {
    let cpu = *current_affinity().last().context("there is no CPU")?;
    let server = server("overload")
        .lanes([ThreadpoolLane {
            order: treatment.order,
            ..lane(LANE_PRIORITY)?
        }])
        .server_threads(ThreadConfig {
            affinity: vec![cpu],
            ..ThreadConfig::default()
        })
        .limits(Limits::with(|limits| {
            limits.queued_requests_max = QUEUED_MAX
        }))
        .deadlines(treatment.deadlines)
        .build()?;
    let control: Control = adapter(&server, LANE_PRIORITY)?.activate(Valves)?;
    let serving = Serving::start(&server);

    let client = Orb::builder().deadlines(treatment.deadlines).build()?;
    let reference = control.as_object().to_string();
    let clients: u64 = OPERATIONS.iter().map(|(_, count, _)| count).sum();
    let are_connected = Arc::new(Barrier::new(clients as usize));
    let mut driving = Vec::new();
    for (kind, &(_, count, operation)) in OPERATIONS.iter().enumerate() {
        for _ in 0..count {
            let control: Control = client.string_to_reference(&reference)?;
            let (client, are_connected) = (client.clone(), Arc::clone(&are_connected));
            let drive = move || {
                let driven = connect(&client, &control, operation);
                are_connected.wait();
                driven.map(|()| drive(&control, operation, seconds))
            };
            driving.push((kind, thread::spawn(drive)));
        }
    }
    let mut outcomes = [Outcome::default(); 3];
    for (kind, driving) in driving {
        outcomes[kind] += driving.join().expect("no panic")?;
    }
    serving.end()?;
    Ok(outcomes)
}

/// Opens the connection of the calling thread.
fn connect(client: &Orb, control: &Control, operation: Operation) -> anyhow::Result<()> {
    take_priority(client, CLIENT_PRIORITY)?;
    // All clients connect at once, so the first calls may be shed or late.
    for _ in 0..CONNECTING_MAX {
        if operation(control).is_ok() {
            return Ok(());
        }
        sleep_until(monotonic_ns() + PERIOD_NS);
    }
    bail!("the server serves no call")
}

/// Calls the operation in each period of the overload.
fn drive(control: &Control, operation: Operation, seconds: u64) -> Outcome {
    let mut outcome = Outcome::default();
    // The seconds of all clients begin at the same times.
    let first_ns = (monotonic_ns() / SECOND_NS + 2) * SECOND_NS;
    for second in 0..seconds {
        let begin_ns = first_ns + second * SECOND_NS;
        sleep_until(begin_ns - PERIOD_NS);
        let mut timer = PeriodicTimer::starting_at(begin_ns, PERIOD_NS);
        let end = outcome.periods + PERIODS;
        while outcome.periods < end {
            let release = timer.wait();
            let called = operation(control);
            let response_ns = monotonic_ns().saturating_sub(release.scheduled_ns);
            let skipped = release.missed.min(end - outcome.periods - 1);
            outcome.periods += 1 + skipped;
            outcome.late += skipped;
            outcome.note(&called, response_ns);
        }
    }
    outcome
}

impl Outcome {
    fn note(&mut self, called: &Result<(), SystemException>, response_ns: u64) {
        let count = match called {
            Ok(()) if response_ns <= PERIOD_NS => &mut self.in_time,
            Ok(()) => &mut self.late,
            Err(refused) if *refused == local::SHED => &mut self.shed,
            Err(refused) if refused.kind == ExceptionKind::Timeout => &mut self.expired,
            Err(_) => &mut self.refused,
        };
        *count += 1;
        if called.is_ok() {
            self.longest_ns = self.longest_ns.max(response_ns);
        }
    }
}

fn print(treatment: &Treatment, outcomes: &[Outcome; 3], is_json: bool) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    for ((criticality, ..), outcome) in OPERATIONS.iter().zip(outcomes) {
        let Outcome {
            periods,
            in_time,
            late,
            shed,
            refused,
            expired,
            longest_ns,
        } = outcome;
        let name = treatment.name;
        if is_json {
            writeln!(
                out,
                "{{\"lane\": \"{name}\", \"criticality\": \"{criticality}\", \"periods\": {periods}, \"in_time\": {in_time}, \
                 \"late\": {late}, \"shed\": {shed}, \"refused\": {refused}, \"expired\": {expired}, \"longest_us\": {}}}",
                longest_ns / 1000
            )?;
        } else {
            let longest_ms = *longest_ns as f64 / 1e6;
            writeln!(
                out,
                "{name:24} {criticality:>11} {periods:>8} {in_time:>8} {late:>7} {shed:>7} {refused:>8} {expired:>8} {longest_ms:>13.3}"
            )?;
        }
    }
    Ok(())
}
