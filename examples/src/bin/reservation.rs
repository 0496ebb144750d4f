//! Spins beside a lane, and in one, and prints how many deadlines are missed if the lane has a priority, and if its threads have a
//! reservation (SCHED_DEADLINE).
//!
//! `reservation [--json] [--seconds N]`: N seconds of each, 10 by default. It needs the right to SCHED_FIFO and SCHED_DEADLINE.
//!
//! Each second has 0.6 s of spinning, on all CPUs. Linux takes the CPU from threads with a priority that keep it for longer than 0.95 s.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::rt::{Reservation, ThreadpoolLane};
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::{Deadlines, Orb, SystemException};
use rtorb_examples::{
    Responses, Serving, adapter, arguments, compute, lane, require_real_time, server, take_priority,
};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::current_affinity;
use rtorb_os::thread::spawn;
use rtorb_os::timer::PeriodicTimer;
use std::io::{Write, stderr, stdout};
use std::thread::JoinHandle;
use std::time::Duration;

rtorb::include_idl!("neighbours");
use sharing::{Axis, AxisServant, Survey, SurveyServant};

const SURVEY_PRIORITY: i16 = 40;
const AXIS_PRIORITY: i16 = 30;
/// Of a thread that is no part of the server.
const FOREIGN_PRIORITY: u8 = 50;
/// The client of the axis does nothing but wait, and is to be delayed by nobody.
const CLIENT_PRIORITY: i16 = 60;
const PERIOD_NS: u64 = 10_000_000;
const SPINNING_MS: u32 = 600;
const SECOND_NS: u64 = 1_000_000_000;

/// Keeps the CPU until so much time has elapsed.
struct Camera;

impl SurveyServant for Camera {
    fn scan(&self, work_ms: u32) -> Result<(), SystemException> {
        spin(work_ms);
        Ok(())
    }
}

/// Has 0.1 ms of work.
struct Motor;

impl AxisServant for Motor {
    fn step(&self) -> Result<(), SystemException> {
        compute(100_000);
        Ok(())
    }
}

fn spin(ms: u32) {
    let end_ns = monotonic_ns() + u64::from(ms) * 1_000_000;
    while monotonic_ns() < end_ns {
        core::hint::spin_loop();
    }
}

type Spinning = JoinHandle<Option<anyhow::Result<()>>>;

/// Who spins, and which lane has a reservation.
struct Case {
    name: &'static str,
    spins: Spins,
    survey: Option<Reservation>,
    axis: Option<Reservation>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spins {
    /// The servants of the survey, whose lane is above that of the axis.
    Survey,
    /// Threads of a higher priority that do not belong to the server.
    Foreigners,
}

/// A fifth of a CPU for the survey, and a tenth for the axis.
const CASES: [Case; 4] = [
    Case {
        name: "an urgent lane spins, by priority",
        spins: Spins::Survey,
        survey: None,
        axis: None,
    },
    Case {
        name: "an urgent lane spins, in its reservation",
        spins: Spins::Survey,
        survey: Some(reservation(2)),
        axis: None,
    },
    Case {
        name: "others spin, the axis has a priority",
        spins: Spins::Foreigners,
        survey: None,
        axis: None,
    },
    Case {
        name: "others spin, the axis has a reservation",
        spins: Spins::Foreigners,
        survey: None,
        axis: Some(reservation(1)),
    },
];

const fn reservation(runtime_ms: u64) -> Reservation {
    Reservation {
        runtime: Duration::from_millis(runtime_ms),
        deadline: Duration::from_nanos(PERIOD_NS),
        period: Duration::from_nanos(PERIOD_NS),
    }
}

fn main() -> anyhow::Result<()> {
    let (is_json, seconds) = arguments("reservation", "--seconds", 10)?;
    require_real_time(CLIENT_PRIORITY)?;
    for case in &CASES {
        writeln!(stderr(), "{}: {seconds} s", case.name)?;
        let Responses {
            periods,
            missed,
            longest_ns,
        } = measure(case, seconds)?;
        let name = case.name;
        if is_json {
            let longest_us = longest_ns / 1000;
            writeln!(
                stdout(),
                "{{\"case\": \"{name}\", \"periods\": {periods}, \"missed\": {missed}, \"longest_us\": {longest_us}}}"
            )?;
        } else {
            let longest_ms = longest_ns as f64 / 1e6;
            writeln!(
                stdout(),
                "{name:42} {periods:>6} periods, {missed:>5} missed, longest {longest_ms:>8.3} ms"
            )?;
        }
    }
    Ok(())
}

/// Calls the axis in each period of so many seconds, while something spins.
fn measure(case: &Case, seconds: u64) -> anyhow::Result<Responses> {
    let spinners = current_affinity().len();
    let server = server("reservation")
        .lanes([
            ThreadpoolLane {
                static_threads: spinners as u32,
                reservation: case.survey,
                ..lane(SURVEY_PRIORITY)?
            },
            ThreadpoolLane {
                reservation: case.axis,
                ..lane(AXIS_PRIORITY)?
            },
        ])
        .deadlines(Deadlines::Count)
        .build()
        .context("the server, with its reservations")?;
    let survey: Survey = adapter(&server, SURVEY_PRIORITY)?.activate(Camera)?;
    let axis: Axis = adapter(&server, AXIS_PRIORITY)?.activate(Motor)?;
    let serving = Serving::start(&server);

    let client = Orb::builder().deadlines(Deadlines::Count).build()?;
    let axis: Axis = client.string_to_reference(&axis.as_object().to_string())?;
    let survey = survey.as_object().to_string();
    let first_ns = (monotonic_ns() / SECOND_NS + 2) * SECOND_NS;
    let spinning: Vec<_> = (0..spinners)
        .map(|_| spin_each_second(case.spins, &client, &survey, first_ns, seconds))
        .collect::<anyhow::Result<_>>()?;
    let driven = drive(&client, &axis, first_ns, seconds);
    for spinning in spinning {
        let spun = spinning.join().expect("no panic");
        spun.context("the spinner ends")??;
    }
    serving.end()?;
    driven
}

/// Spins in each second: on a thread that is made for it, or in a servant of the survey.
fn spin_each_second(
    spins: Spins,
    client: &Orb,
    survey: &str,
    first_ns: u64,
    seconds: u64,
) -> anyhow::Result<Spinning> {
    let survey: Survey = client.string_to_reference(survey)?;
    let policy = match spins {
        Spins::Survey => SchedPolicy::Fifo(CLIENT_PRIORITY as u8),
        Spins::Foreigners => SchedPolicy::Fifo(FOREIGN_PRIORITY),
    };
    let thread = ThreadConfig {
        policy: Some(policy),
        ..ThreadConfig::default()
    };
    let spinning = move || {
        // The connection is open before anything spins.
        survey.scan(0)?;
        for second in 0..seconds {
            sleep_until(first_ns + second * SECOND_NS);
            match spins {
                Spins::Survey => survey.scan(SPINNING_MS)?,
                Spins::Foreigners => spin(SPINNING_MS),
            }
        }
        Ok(())
    };
    Ok(spawn("spinner", &thread, spinning)?)
}

/// Calls the axis in each period.
fn drive(client: &Orb, axis: &Axis, first_ns: u64, seconds: u64) -> anyhow::Result<Responses> {
    take_priority(client, CLIENT_PRIORITY)?;
    axis.step()?;
    let timer = PeriodicTimer::starting_at(first_ns, PERIOD_NS);
    let periods = seconds * SECOND_NS / PERIOD_NS;
    Responses::of(timer, PERIOD_NS, periods, || axis.step())
}
