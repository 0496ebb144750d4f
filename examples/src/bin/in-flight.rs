//! Compares a hundred calls in flight of one thread with a hundred threads that call, over one UNIX socket and on one CPU.
//!
//! `in-flight [--json] [--calls N]`: N calls of each kind, 200,000 by default.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::{Call, ConnectionStrategy, DispatchStrategy, Orb, SystemException, WaitStrategy};
use rtorb_examples::{Serving, arguments, server};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls};
use rtorb_os::sched::{apply_affinity, current_affinity};
use std::collections::VecDeque;
use std::io::{Write as _, stdout};
use std::thread;
use std::time::Instant;

rtorb::include_idl!("plotter");
use plotter::{Motor, MotorServant};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

const IN_FLIGHT: usize = 100;

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

fn main() -> anyhow::Result<()> {
    let (is_json, calls) = arguments("in-flight", "--calls", 200_000)?;
    let cpu = *current_affinity().last().context("there is no CPU")?;
    apply_affinity(&[cpu])?;
    let server = server("in-flight")
        .dispatch(DispatchStrategy::ThreadPerConnection)
        .build()?;
    let motor: Motor = server.root_poa()?.activate(Stepper)?;
    let serving = Serving::start(&server);
    let shared = ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::LeaderFollowers,
    };
    let client = Orb::builder().connection(shared).build()?;
    let motor: Motor = client.string_to_reference(&motor.to_string())?;
    let mut in_flight = Calls::with_capacity(IN_FLIGHT);
    started(&motor, calls / 10, &mut in_flight)?;
    let heap_before = process_heap_calls();
    let started_per_s = started(&motor, calls, &mut in_flight)?;
    let heap_calls = process_heap_calls() - heap_before;
    let blocking_per_s = blocking(&motor, calls)?;
    let per_call = heap_calls as f64 / calls as f64;
    if is_json {
        writeln!(
            stdout(),
            "{{\"in_flight\": {IN_FLIGHT}, \"calls_per_s\": {started_per_s:.0}, \"blocking_calls_per_s\": {blocking_per_s:.0}, \
             \"heap_calls_per_call\": {per_call}}}"
        )?;
    } else {
        writeln!(
            stdout(),
            "{IN_FLIGHT} calls in flight:  {started_per_s:>9.0} calls/s, {per_call} heap calls a call"
        )?;
        writeln!(
            stdout(),
            "{IN_FLIGHT} threads that call: {blocking_per_s:>9.0} calls/s"
        )?;
    }
    serving.end()
}
