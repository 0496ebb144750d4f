//! Gives an operation two hundred times the work that its annotation states, beside a neighbour that has a period of 10 ms on the same CPU,
//! and prints how many deadlines the neighbour misses under each policy for overruns.
//!
//! `neighbours [--json] [--deadlines N]`: N deadlines of the neighbour with the policies that protect it, 10,000 by default, and a
//! tenth of that with the policy that does not. It needs the right to SCHED_FIFO.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::timing::{Overrun, TimingSide};
use rtorb::{CurrentCall, Deadlines, Orb, SystemException};
use rtorb_examples::{
    Responses, Serving, adapter, arguments, compute, lane, require_real_time, server, take_priority,
};
use rtorb_os::clock::{monotonic_ns, thread_cpu_ns};
use rtorb_os::sched::{apply_affinity, current_affinity};
use rtorb_os::timer::PeriodicTimer;
use std::io::{Write, stderr, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

rtorb::include_idl!("neighbours");
use sharing::{Axis, AxisServant, Survey, SurveyServant};

/// The survey is the more urgent one, so that nothing but its worst case protects the axis.
const SURVEY_PRIORITY: i16 = 40;
const AXIS_PRIORITY: i16 = 30;
/// The period and the deadline of the axis.
const PERIOD_NS: u64 = 10_000_000;
/// The work of each call of the survey, whose worst case is 4 ms.
const WORK_MS: u32 = 800;
/// The survey is called again after this time, at the earliest.
const SURVEY_PERIOD_NS: u64 = 1_000_000_000;

/// Keeps the CPU for as long as it is told to, unless it is asked to stop.
struct Camera {
    is_over: Arc<AtomicBool>,
}

impl SurveyServant for Camera {
    fn scan(&self, work_ms: u32) -> Result<(), SystemException> {
        let end_ns = thread_cpu_ns() + u64::from(work_ms) * 1_000_000;
        while thread_cpu_ns() < end_ns && !self.is_over.load(Ordering::Relaxed) {
            compute(50_000);
            if let Some(call) = CurrentCall::get() {
                call.check()?;
            }
        }
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

/// What the neighbour saw under one policy.
struct Outcome {
    policy: &'static str,
    seen: Responses,
    overruns: u64,
}

fn main() -> anyhow::Result<()> {
    let (is_json, deadlines) = arguments("neighbours", "--deadlines", 10_000)?;
    require_real_time(SURVEY_PRIORITY + 1)?;
    // Threads inherit it: all of both ORBs run on one CPU.
    let cpu = *current_affinity().last().context("there is no CPU")?;
    apply_affinity(&[cpu])?;
    let policies = [
        ("count", Overrun::Count, deadlines.div_ceil(10)),
        ("demote", Overrun::Demote(1), deadlines),
        ("stop", Overrun::Stop, deadlines),
    ];
    let mut outcomes = Vec::new();
    for (policy, overrun, deadlines) in policies {
        let seconds = deadlines * PERIOD_NS / 1_000_000_000;
        writeln!(stderr(), "{policy}: {deadlines} deadlines, {seconds} s")?;
        outcomes.push(measure(policy, overrun, deadlines)?);
    }
    if is_json {
        print_json(&outcomes)
    } else {
        print_table(&outcomes)
    }
}

/// Calls the axis in its period, and beside it the survey, until the axis has had so many deadlines.
fn measure(policy: &'static str, overrun: Overrun, deadlines: u64) -> anyhow::Result<Outcome> {
    let is_over = Arc::new(AtomicBool::new(false));
    let server = server(&format!("neighbours-{policy}"))
        .lanes([lane(SURVEY_PRIORITY)?, lane(AXIS_PRIORITY)?])
        .deadlines(Deadlines::Count)
        .overrun(overrun)
        .build()?;
    let camera = Camera {
        is_over: Arc::clone(&is_over),
    };
    let survey: Survey = adapter(&server, SURVEY_PRIORITY)?.activate(camera)?;
    let axis: Axis = adapter(&server, AXIS_PRIORITY)?.activate(Motor)?;
    let serving = Serving::start(&server);

    let client = Orb::builder().deadlines(Deadlines::Count).build()?;
    let survey: Survey = client.string_to_reference(&survey.as_object().to_string())?;
    let axis: Axis = client.string_to_reference(&axis.as_object().to_string())?;
    let (axis_ready, is_axis_ready) = mpsc::channel();
    let surveying = survey_until(&client, survey, &is_over, is_axis_ready);
    let stepping = {
        let client = client.clone();
        thread::spawn(move || drive(&client, &axis, &axis_ready, deadlines))
    };
    let seen = stepping.join().expect("no panic")?;
    is_over.store(true, Ordering::Relaxed);
    surveying.join().expect("no panic")?;
    serving.end()?;
    let mut counts = server.timing().into_iter();
    let counts = counts.find(|counts| {
        counts.side == TimingSide::Server && counts.operation.name().ends_with("scan")
    });
    Ok(Outcome {
        policy,
        seen,
        overruns: counts.map_or(0, |counts| counts.overruns),
    })
}

/// Calls the axis in each period.
fn drive(
    client: &Orb,
    axis: &Axis,
    ready: &Sender<()>,
    deadlines: u64,
) -> anyhow::Result<Responses> {
    take_priority(client, AXIS_PRIORITY)?;
    // The connection is open before the first period begins.
    axis.step()?;
    ready.send(())?;
    let timer = PeriodicTimer::every(PERIOD_NS);
    Responses::of(timer, PERIOD_NS, deadlines, || axis.step())
}

/// Calls the survey again and again on a thread of its own.
fn survey_until(
    client: &Orb,
    survey: Survey,
    is_over: &Arc<AtomicBool>,
    is_axis_ready: Receiver<()>,
) -> JoinHandle<anyhow::Result<()>> {
    let (client, is_over) = (client.clone(), Arc::clone(is_over));
    thread::spawn(move || {
        take_priority(&client, SURVEY_PRIORITY)?;
        // The connection is open before the first call with too much work.
        survey.scan(0)?;
        is_axis_ready.recv()?;
        let first_ns = monotonic_ns() + PERIOD_NS;
        let mut timer = PeriodicTimer::starting_at(first_ns, SURVEY_PERIOD_NS);
        while !is_over.load(Ordering::Relaxed) {
            timer.wait();
            // A servant that is stopped raises TIMEOUT.
            let _ = survey.scan(WORK_MS);
        }
        Ok(())
    })
}

fn print_json(outcomes: &[Outcome]) -> anyhow::Result<()> {
    let objects: Vec<String> = outcomes
        .iter()
        .map(|outcome| {
            format!(
                "{{\"policy\": \"{}\", \"neighbour_calls\": {}, \"neighbour_missed\": {}, \"longest_neighbour_us\": {}}}",
                outcome.policy, outcome.seen.periods, outcome.seen.missed, outcome.seen.longest_ns / 1000
            )
        })
        .collect();
    writeln!(stdout(), "[{}]", objects.join(", "))?;
    Ok(())
}

fn print_table(outcomes: &[Outcome]) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    writeln!(
        out,
        "A survey works for {WORK_MS} ms, its worst case is 4 ms. Its neighbour has a period and a deadline of 10 ms."
    )?;
    writeln!(
        out,
        "{:8} {:>9} {:>20} {:>17} {:>22}",
        "overrun", "overruns", "neighbour's periods", "deadlines missed", "longest response (ms)"
    )?;
    for outcome in outcomes {
        writeln!(
            out,
            "{:8} {:>9} {:>20} {:>17} {:>22.3}",
            outcome.policy,
            outcome.overruns,
            outcome.seen.periods,
            outcome.seen.missed,
            outcome.seen.longest_ns as f64 / 1e6
        )?;
    }
    Ok(())
}
