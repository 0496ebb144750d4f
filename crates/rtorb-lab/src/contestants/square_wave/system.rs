//! A supplier and its receivers, as the laboratory sees them: processes that stay alive while others have their turn.

use std::time::Duration;

use rtorb_host::placement::obtained_by_priority;
use rtorb_results::ObtainedScheduling;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::pulse::Pulse;
use super::receiver::{Outputs, Question as Asked};
use super::supplier::{self, Question};
use super::{Called, Latencies, Path, Run, Wave};
use crate::contestants::Transport;
use crate::contestants::event_channel::system::{Channel, endpoint, within};
use crate::contestants::questions;
use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::Process;
use crate::processes::awake::Awake;

/// How urgent a receiver's object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// P4's receiver II.
    High,
    /// P4's receiver I.
    Low,
}

impl Role {
    /// Every role, in the order in which lines of GPIO are given.
    pub const ALL: [Self; 2] = [Self::High, Self::Low];

    /// The value of the label `role`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Low => "low",
        }
    }

    /// The CORBA priority, which is the native one too.
    #[must_use]
    pub const fn priority(self) -> u8 {
        match self {
            Self::High => 60,
            Self::Low => 40,
        }
    }
}

/// A running supplier with its receivers, all on one CPU.
#[derive(Debug)]
pub struct System {
    /// How the calls travel.
    pub transport: Transport,
    /// The urgency of each receiver, in their order.
    pub roles: Vec<Role>,
    /// Whether the calls have priorities.
    pub real_time: bool,
    cpu: Option<usize>,
    // In this order: the supplier is ended before the receivers that it is connected to.
    supplier: Process,
    receivers: Vec<Process>,
    channel: Option<Channel>,
}

impl System {
    /// Starts the processes, with a receiver for each role.
    ///
    /// # Errors
    /// That they do not start.
    pub fn start(
        context: &Context,
        transport: Transport,
        roles: &[Role],
    ) -> Result<Self, LabError> {
        Self::start_with(context, transport, roles, None)
    }

    /// The same with an event channel, through which edges may go too.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with(
        context: &Context,
        transport: Transport,
        roles: &[Role],
        channel: Option<Channel>,
    ) -> Result<Self, LabError> {
        let real_time = context.launcher.placement.fifo.is_some();
        let mut receivers = Vec::new();
        let reference = channel.as_ref().map_or(NO_CHANNEL, Channel::reference);
        let mut supplier_role = ["put-supplier", reference].map(str::to_owned).to_vec();
        for (number, role) in roles.iter().enumerate() {
            let pulse = pulse_of(context, *role);
            let priority = if real_time { role.priority() } else { 0 };
            let receiver_role = [
                "put-receiver".to_owned(),
                endpoint(context, transport, &format!("receiver-{}", role.name())),
                priority.to_string(),
                pulse.to_string(),
                reference.to_owned(),
                supplier::source(number).to_string(),
            ];
            let mut receiver = context.launcher.start(
                &format!("{} receiver {}", transport.label(), role.name()),
                &receiver_role.each_ref().map(String::as_str),
            )?;
            supplier_role.extend([pulse.to_string(), receiver.ready()?]);
            if channel.is_some() {
                ask::<()>(&mut receiver, &Asked::Connect)?;
            }
            receivers.push(receiver);
        }
        let words: Vec<&str> = supplier_role.iter().map(String::as_str).collect();
        let name = format!("{} supplier", transport.label());
        let mut supplier = context.launcher.start(&name, &words)?;
        supplier.ready()?;
        Ok(Self {
            transport,
            roles: roles.to_vec(),
            real_time,
            cpu: context.launcher.placement.cpu,
            supplier,
            receivers,
            channel,
        })
    }

    /// A wave for the receiver of this role.
    #[must_use]
    pub fn wave(&self, role: Role, period_ns: u64, lead_ns_max: u64) -> Wave {
        Wave {
            receiver: self
                .roles
                .iter()
                .position(|found| *found == role)
                .unwrap_or(0),
            priority: if self.real_time { role.priority() } else { 0 },
            period_ns,
            lead_ns_max,
        }
    }

    /// Has the supplier make a run, on a CPU that is kept awake; the latencies are in the order of the run's waves.
    ///
    /// # Errors
    /// What went wrong in a process, or that it ended or was silent.
    pub fn run(&mut self, run: &Run) -> Result<Vec<Latencies>, LabError> {
        self.prepare(run)?;
        self.go(run)
    }

    /// What the threads of all processes have, read while those of this run wait at the barrier.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn roll_call(&mut self, run: &Run) -> Result<Vec<ObtainedScheduling>, LabError> {
        self.prepare(run)?;
        let processes = self.receivers.iter().chain([&self.supplier]);
        let mut scheduling: Vec<ObtainedScheduling> = processes
            .flat_map(|process| obtained_by_priority(process.name(), process.id()))
            .collect();
        let of_channel = self.channel.iter();
        scheduling.extend(of_channel.flat_map(|channel| channel.scheduling([])));
        self.go(run)?;
        Ok(scheduling)
    }

    /// Leaves the threads of the supplier at the barrier, and nothing on its way.
    fn prepare(&mut self, run: &Run) -> Result<(), LabError> {
        self.clear(run)?;
        ask::<()>(&mut self.supplier, &Question::Prepare(run.clone()))?;
        for wave in run.waves.iter().filter(|_| run.path == Path::Event) {
            self.await_outputs(wave.receiver, supplier::WARM_UP_CALLS)?;
        }
        Ok(())
    }

    fn clear(&mut self, run: &Run) -> Result<(), LabError> {
        let mut waves = run.waves.iter();
        waves.try_for_each(|wave| ask(&mut self.receivers[wave.receiver], &Asked::Clear))
    }

    /// Waits until a receiver of events has set its output so often: nobody else knows that they have come.
    fn await_outputs(&mut self, receiver: usize, expected: usize) -> Result<(), LabError> {
        let receiver = &mut self.receivers[receiver];
        let mut count: usize = 0;
        let have_come = within(EVENTS_TIMEOUT, || {
            count = ask(receiver, &Asked::Count)?;
            Ok(count >= expected)
        })?;
        if have_come {
            return Ok(());
        }
        let what = format!("{count} of {expected} events have come");
        Err(LabError::process(receiver.name(), what))
    }

    fn go(&mut self, run: &Run) -> Result<Vec<Latencies>, LabError> {
        self.clear(run)?;
        let duration = Duration::from_nanos(run.duration_ns);
        let awake = Awake::keep(self.cpu, duration + AWAKE_LONGER);
        let waves: Vec<Vec<Called>> = questions::ask(&mut self.supplier, &Question::Go, duration)?;
        drop(awake);
        let mut all = Vec::new();
        for (wave, called) in run.waves.iter().zip(&waves) {
            if run.path == Path::Event {
                self.await_outputs(wave.receiver, called.len())?;
            }
            let receiver = &mut self.receivers[wave.receiver];
            let outputs: Outputs = ask(receiver, &Asked::Outputs)?;
            let sent = called.len() * run.payload_bytes;
            let latencies = if outputs.octets == sent {
                Latencies::of(called, &outputs.set)
            } else {
                Err(format!("got {} octets of data, not {sent}", outputs.octets))
            };
            all.push(latencies.map_err(|what| LabError::process(receiver.name(), what))?);
        }
        Ok(all)
    }
}

/// Asks a process what it answers at once.
fn ask<A: DeserializeOwned>(
    process: &mut Process,
    question: &impl Serialize,
) -> Result<A, LabError> {
    questions::ask(process, question, Duration::ZERO)
}

/// What a reader must know of the pulse and of the three systems.
#[must_use]
pub fn notes(context: &Context) -> Vec<String> {
    let pulse = match &context.gpio[..] {
        [] => TIMER.to_owned(),
        lines => {
            let ends = if lines.iter().all(|lines| lines.monitor.is_some()) {
                "when the kernel saw the monitor line change"
            } else {
                "where a monitor line is given when the kernel saw it change, elsewhere when the output line was set"
            };
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            format!(
                "The pulse comes through real lines ({}): a latency begins when the kernel saw the input change, and ends {ends}. \
                 How often edges come, the generator says.",
                lines.join(", ")
            )
        }
    };
    vec![pulse, ONE_HOST.to_owned()]
}

/// What makes the pulse for the receiver of this role: the lines that the user gave, or a timer.
#[must_use]
pub fn pulse_of(context: &Context, role: Role) -> Pulse {
    match context.gpio.get(role as usize) {
        Some(lines) => Pulse::Gpio(lines.clone()),
        None => Pulse::Timer,
    }
}

const TIMER: &str = "The pulse is made by a timer: an edge is the moment for which it is set, and the output is a word in the \
                     receiver's memory. With `--gpio` it comes through real lines.";
const ONE_HOST: &str = "P4's supplier and receivers are three hosts and a network; here they are processes on one CPU and the \
                        loopback device.";
/// In the place of a channel's reference.
pub(crate) const NO_CHANNEL: &str = "none";
/// For the last event of a run, or the connection of a consumer.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(5);
/// Beyond the run itself: until all have answered.
const AWAKE_LONGER: Duration = Duration::from_secs(10);
