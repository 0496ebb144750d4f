//! A supplier and its receivers, as the laboratory sees them: processes that stay alive while others have their turn.
//!
//! With agents, the supplier runs here, and each receiver and the event channel on a host of its own, as in P4.

use std::time::Duration;

use rtorb_host::placement::Placement;
use rtorb_results::{Labels, ObtainedScheduling, labels};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clocks::realtime_ahead_ns;
use super::clocks::{Clock, in_our_time};
use super::oscilloscope::Screen;
use super::pulse::Pulse;
use super::receiver::{Outputs, Question as Asked};
use super::supplier::{self, Question};
use super::{Called, Latencies, Path, Run, Wave};
use crate::contestants::Transport;
use crate::contestants::event_channel::system::{Channel, endpoint, within};
use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::awake::Awake;
use crate::processes::child::word;
use crate::processes::{Launcher, Process};

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

    /// The number of the receiver's host among those of the agents.
    fn host(self) -> usize {
        self as usize
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

/// A running supplier with its receivers: all on one CPU, or each on a host of its own.
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
    receivers: Vec<Output>,
    channel: Channel,
    /// Sees the outputs of hosts whose clocks are unknown.
    screen: Option<Screen>,
}

/// A running receiver.
#[derive(Debug)]
struct Output {
    process: Process,
    clock: Clock,
}

impl System {
    /// Starts the processes, with a receiver for each role. Edges go by calls, or by events through the channel.
    ///
    /// # Errors
    /// That they do not start.
    pub fn start(
        context: &Context,
        transport: Transport,
        roles: &[Role],
        channel: Channel,
    ) -> Result<Self, LabError> {
        let (screen, mut ports) = start_screen(context, roles)?;
        let starting = Starting {
            context,
            transport,
            real_time: context.launcher.is_real_time(),
            channel: channel.reference(),
        };
        let mut receivers = Vec::new();
        let mut supplier_role = ["put-supplier", starting.channel]
            .map(str::to_owned)
            .to_vec();
        for (number, role) in roles.iter().enumerate() {
            let (mut receiver, pulse) = starting.receiver(number, *role, &mut ports)?;
            supplier_role.extend([word(pulse), receiver.process.text().to_owned()]);
            ask::<()>(&mut receiver.process, &Asked::Connect)?;
            receivers.push(receiver);
        }
        let name = format!("{} supplier", transport.label());
        let supplier = context.launcher.start(&name, &supplier_role)?;
        Ok(Self {
            transport,
            roles: roles.to_vec(),
            real_time: starting.real_time,
            cpu: context.launcher.placement.cpu,
            supplier,
            receivers,
            channel,
            screen,
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
        let receivers = self.receivers.iter().map(|receiver| &receiver.process);
        let mut scheduling: Vec<ObtainedScheduling> = receivers
            .chain([&self.supplier])
            .flat_map(Process::scheduling_by_priority)
            .collect();
        scheduling.extend(self.channel.scheduling([]));
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
        self.screen.as_mut().map_or(Ok(()), Screen::clear)?;
        let mut waves = run.waves.iter();
        waves.try_for_each(|wave| ask(&mut self.receivers[wave.receiver].process, &Asked::Clear))
    }

    /// Waits until a receiver of events has set its output so often: nobody else knows that they have come.
    fn await_outputs(&mut self, receiver: usize, expected: usize) -> Result<(), LabError> {
        let receiver = &mut self.receivers[receiver].process;
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
        let before_ns = realtime_ahead_ns();
        let awake = Awake::keep(self.cpu, duration + AWAKE_LONGER);
        let waves: Vec<Vec<Called>> = self.supplier.ask(&Question::Go, duration)?;
        drop(awake);
        let ahead_ns = [before_ns, realtime_ahead_ns()];
        let mut all = Vec::new();
        for (wave, called) in run.waves.iter().zip(&waves) {
            if run.path == Path::Event {
                self.await_outputs(wave.receiver, called.len())?;
            }
            let Output { process, clock } = &mut self.receivers[wave.receiver];
            let outputs: Outputs = ask(process, &Asked::Outputs)?;
            let failed = |what| LabError::process(process.name(), what);
            let sent = called.len() * run.payload_bytes;
            if outputs.octets != sent {
                let what = format!("got {} octets of data, not {sent}", outputs.octets);
                return Err(failed(what));
            }
            let set = match (*clock, &mut self.screen) {
                (Clock::Datagram, Some(screen)) => {
                    screen.changes(wave.receiver, outputs.first, called.len())?
                }
                (Clock::Disciplined { error_ns }, _) => {
                    in_our_time(&outputs, called, ahead_ns, error_ns).map_err(failed)?
                }
                _ => outputs.set,
            };
            all.push(Latencies::of(called, &set).map_err(failed)?);
        }
        Ok(all)
    }
}

/// What all receivers of a system have in common.
struct Starting<'a> {
    context: &'a Context,
    transport: Transport,
    real_time: bool,
    channel: &'a str,
}

impl Starting<'_> {
    /// Starts the receiver with this number, and returns the pulse of its wave. It takes a port of the oscilloscope.
    fn receiver(
        &self,
        number: usize,
        role: Role,
        ports: &mut impl Iterator<Item = u16>,
    ) -> Result<(Output, Pulse), LabError> {
        let launcher = self.context.launcher.at_host(role.host());
        let clock = Clock::of(self.context, &launcher);
        let pulse = match ports.next() {
            Some(port) if clock == Clock::Datagram => Pulse::Datagram(port),
            _ => pulse_of(self.context, role),
        };
        let priority = if self.real_time { role.priority() } else { 0 };
        let endpoint = match launcher.agent() {
            Some(_) => launcher.server_endpoint(),
            None => endpoint(
                self.context,
                self.transport,
                &format!("receiver-{}", role.name()),
            ),
        };
        let words = [
            "put-receiver".to_owned(),
            endpoint,
            priority.to_string(),
            word(&pulse),
            self.channel.to_owned(),
            supplier::source(number).to_string(),
        ];
        let name = format!("{} receiver {}", self.transport.label(), role.name());
        let process = launcher.start_server(&name, &words)?;
        Ok((Output { process, clock }, pulse))
    }
}

/// Starts the oscilloscope if a receiver sends datagrams; its ports are those of the receivers, in their order.
fn start_screen(
    context: &Context,
    roles: &[Role],
) -> Result<(Option<Screen>, std::vec::IntoIter<u16>), LabError> {
    let launchers: Vec<Launcher> = roles
        .iter()
        .map(|role| context.launcher.at_host(role.host()))
        .collect();
    let mut clocks = launchers
        .iter()
        .map(|launcher| Clock::of(context, launcher));
    if !clocks.any(|clock| clock == Clock::Datagram) {
        return Ok((None, Vec::new().into_iter()));
    }
    let peers = launchers
        .iter()
        .map(|launcher| launcher.server_socket().ip());
    let words = [String::from("oscilloscope")]
        .into_iter()
        .chain(peers.map(|peer| peer.to_string()));
    let words: Vec<String> = words.collect();
    // The kernel stamps what arrives: the process may run late, and must not take the supplier's CPU.
    let launcher = context.launcher.placed(Placement::default());
    let (screen, ports) = Screen::of(launcher.start("oscilloscope", &words)?)?;
    Ok((Some(screen), ports.into_iter()))
}

/// Asks a process what it answers at once.
fn ask<A: DeserializeOwned>(
    process: &mut Process,
    question: &impl Serialize,
) -> Result<A, LabError> {
    process.ask(question, Duration::ZERO)
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
    vec![pulse, hosts(context)]
}

/// Where the processes run, and how the end of a latency is known.
fn hosts(context: &Context) -> String {
    if context.launcher.agents.is_empty() {
        return ONE_HOST.to_owned();
    }
    let clock = match clock_of(context) {
        Clock::Ours => ONE_CLOCK.to_owned(),
        Clock::Disciplined { error_ns } => format!(
            "CLOCK_REALTIME of the hosts is disciplined, so the user says, and never further apart than {:.1} us: each latency is right to \
             that.",
            error_ns as f64 / 1e3
        ),
        Clock::Datagram => WAY_BACK.to_owned(),
    };
    let agents = context.launcher.agents.len();
    format!(
        "The supplier runs on this host; the receivers and the event channel run on {} other{}. {clock}",
        agents.min(HOSTS),
        if agents == 1 { "" } else { "s" }
    )
}

/// The labels of a run: what makes the pulse, and with agents how the end of a latency is known.
#[must_use]
pub fn labels_of_run(context: &Context) -> Labels {
    let mut all = labels([("pulse", pulse_of(context, Role::High).name().into())]);
    if context.launcher.agent().is_some() {
        all.insert("placement".to_owned(), "own_hosts".into());
        all.insert("clock".to_owned(), clock_of(context).name().into());
    }
    all
}

fn clock_of(context: &Context) -> Clock {
    Clock::of(context, &context.launcher.at_host(Role::High.host()))
}

/// Why nothing can be measured: lines of GPIO together with agents.
#[must_use]
pub fn obstacle(context: &Context) -> Option<&'static str> {
    let has_both = context.launcher.agent().is_some() && !context.gpio.is_empty();
    has_both.then_some(LINES_THERE)
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
const ONE_CLOCK: &str = "All hosts are network namespaces of one machine, and have one clock.";
const WAY_BACK: &str = "A latency ends when this host's kernel receives a datagram that the other host sends as it sets its output: the way of \
                        the datagram is in it.";
const LINES_THERE: &str =
    "an agent drives no lines of GPIO, since it has no authentication: leave out --gpio or --agent";
/// Two of receivers, and one of the event channel.
pub const HOSTS: usize = 3;
/// The number of the event channel's host.
pub const CHANNEL_HOST: usize = 2;

/// For the last event of a run, or the connection of a consumer.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(20);
/// Beyond the run itself: until all have answered.
const AWAKE_LONGER: Duration = Duration::from_secs(10);
