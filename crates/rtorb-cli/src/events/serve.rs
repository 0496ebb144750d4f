//! `rtorb events serve`: a channel.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use rtorb::rt::Priority;
use rtorb::{DispatchStrategy, Limits, ObjectRef, Orb};
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::results::write_atomically;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_services::events::filter::FilterKind;
use rtorb_services::events::plain::{PlainChannel, PlainConfig};
use rtorb_services::events::{
    Channel, ChannelConfig, ChannelError, Dispatching, PrioritySource, RtInfoIsPriority, WhenFull,
    strategies,
};
use rtorb_services::naming::client::{Context, Existing, Name, parse_name};
use rtorb_services::scheduling::{RemoteScheduler, Schedule};
use rtorb_services::stubs::rtec_scheduler::rtec_scheduler::Scheduler;

use super::list;
use crate::orb_options::{ClientChoices, Misuse, ServerChoices, in_our_words};
use crate::output::print_json;
use crate::reference::{builder, duration, object};

/// Serve an event channel until SIGTERM or SIGINT, or until somebody destroys it.
///
/// It is found under the key EventService: corbaloc::HOST:PORT/EventService. At the end it says what it has counted.
#[derive(Debug, Args)]
#[command(mut_arg("lanes", |arg| arg.help(
    "The CORBA priorities of the channel's lanes, most urgent first, each with a thread: 50,30,10. With --dispatch lanes, \
     suppliers are served by two threads of each as well, and of 0, and a client of any other priority is refused \
     (INV_POLICY) [default: 0]"
)))]
pub(super) struct Serve {
    /// Where to write the channel's reference, in whole and only when it is ready.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Which thread hands events to consumers.
    #[arg(long, value_name = "NAME", value_enum, default_value = "priority")]
    dispatching: DispatchingName,
    /// How subscriptions are read: groups that end where the next begins, or that say how many children they have.
    #[arg(long, value_name = "NAME", value_enum, default_value = "basic")]
    filtering: Filtering,
    /// Events that wait for one consumer.
    #[arg(long, value_name = "N")]
    queue_events: Option<usize>,
    /// Octets of them.
    #[arg(long, value_name = "N")]
    queue_octets: Option<usize>,
    /// Events that a lane has taken and not yet distributed to its consumers; beyond them the supplier's thread distributes.
    #[arg(long, value_name = "N")]
    intake_events: Option<usize>,
    /// Octets of them.
    #[arg(long, value_name = "N")]
    intake_octets: Option<usize>,
    /// Octets of one event; a larger one is discarded.
    #[arg(long, value_name = "N")]
    event_octets: Option<usize>,
    /// What becomes of an event for whose consumer there is no room: discard_oldest, discard_newest, wait:TIME (the supplier
    /// waits), disconnect (the consumer).
    #[arg(long, value_name = "POLICY", value_parser = when_full)]
    when_full: Option<WhenFull>,
    /// What an RT_Info of a consumer is: its priority in this schedule, from `rtorb scheduling compute --out`. Without --lanes,
    /// the lanes are its priorities.
    #[arg(long, value_name = "FILE", conflicts_with = "scheduler")]
    schedule: Option<PathBuf>,
    /// The same by a Scheduler, which is asked each time when a consumer connects: an IOR:, a corbaloc: or corbaname:, or a file
    /// that holds one.
    #[arg(long, value_name = "REF")]
    scheduler: Option<String>,
    /// Consumers at a time.
    #[arg(long, value_name = "N")]
    consumers_max: Option<usize>,
    /// Suppliers at a time.
    #[arg(long, value_name = "N")]
    suppliers_max: Option<usize>,
    /// How long a consumer may take nothing while events wait for it, before it is dropped.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    hang_timeout: Option<Duration>,
    /// How often consumers and suppliers of which nothing is heard are asked whether they are there.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ping_every: Option<Duration>,
    /// Bind the channel to this name in the naming service (--init-ref NameService=REF says where that is).
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Serve a plain face as well (CosEventChannelAdmin, push only), and write its reference here.
    #[arg(long, value_name = "FILE")]
    cos_ior_file: Option<PathBuf>,
    /// The type of the events that plain suppliers push.
    #[arg(long, value_name = "N", default_value_t = PlainConfig::default().event_type, requires = "cos_ior_file",
        value_parser = clap::value_parser!(i32).range(16..))]
    cos_type: i32,
    /// Their source.
    #[arg(long, value_name = "N", default_value_t = PlainConfig::default().source, requires = "cos_ior_file",
        value_parser = clap::value_parser!(i32).range(1..))]
    cos_source: i32,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerChoices,
    #[command(flatten)]
    client: ClientChoices,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DispatchingName {
    /// The supplier's thread where it has the lane's priority, the lane's thread otherwise.
    Priority,
    /// Always the supplier's thread.
    Reactive,
    /// Always the lane's thread.
    Lanes,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Filtering {
    Basic,
    Prefix,
}

impl Serve {
    pub(super) fn run(mut self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals()?;
        let schedule = self.schedule()?;
        let config = self.config(schedule.as_ref())?;
        let orb = self.orb(&config)?;
        let priorities = self.priorities(&orb, schedule)?;
        let channel = Channel::serve_with(&orb, config, priorities).map_err(in_words)?;
        let poa = orb.root_poa()?;
        let serving = super::serve_beside(&orb)?;
        let plain = match &self.cos_ior_file {
            Some(_) => Some(PlainChannel::serve(
                &poa,
                channel.reference(),
                self.plain(),
            )?),
            None => None,
        };
        let named = match &self.name {
            Some(name) => Some(Named::bind(&orb, name, channel.reference().as_object())?),
            None => None,
        };
        if let (Some(plain), Some(file)) = (&plain, &self.cos_ior_file) {
            write_reference(file, plain.reference().as_object())?;
        }
        if let Some(file) = &self.ior_file {
            write_reference(file, channel.reference().as_object())?;
        }
        for endpoint in orb.endpoints() {
            eprintln!("serving an event channel at {endpoint}, key EventService");
        }
        if orb.strategies().dispatch == DispatchStrategy::Lanes {
            let lanes = self.server.take_lanes().unwrap_or_default();
            eprintln!(
                "suppliers and other clients need the priority of a lane, or get INV_POLICY: PRIORITY:THREADS are {lanes}"
            );
        }
        while !interrupt.requested() && !channel.is_destroyed() && !serving.is_finished() {
            sleep_until(monotonic_ns() + LOOK_EVERY_NS);
        }
        if let Some(named) = named {
            named.unbind();
        }
        drop(plain);
        let statistics = channel.statistics();
        channel.destroy();
        orb.shutdown();
        if let Ok(Some(served)) = serving.join() {
            served?;
        }
        match self.json {
            true => print_json(&statistics)?,
            false => list::print(&statistics)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn schedule(&self) -> anyhow::Result<Option<Schedule>> {
        let read = |file: &PathBuf| {
            Schedule::read(file)
                .map_err(|error| anyhow!(Misuse::new(format!("--schedule: {error}"))))
        };
        self.schedule.as_ref().map(read).transpose()
    }

    /// Who knows how urgent an RT_Info is.
    fn priorities(
        &self,
        orb: &Orb,
        schedule: Option<Schedule>,
    ) -> anyhow::Result<Arc<dyn PrioritySource>> {
        if let Some(schedule) = schedule {
            return Ok(Arc::new(schedule));
        }
        let Some(reference) = &self.scheduler else {
            return Ok(Arc::new(RtInfoIsPriority));
        };
        let scheduler = Scheduler::narrow(&object(orb, reference)?)
            .map_err(|exception| anyhow!("--scheduler {reference}: {exception}"))?;
        Ok(Arc::new(RemoteScheduler(scheduler)))
    }

    fn config(&mut self, schedule: Option<&Schedule>) -> anyhow::Result<ChannelConfig> {
        let usual = ChannelConfig::default();
        let lanes = match (self.server.take_lanes(), schedule) {
            (Some(text), _) => lanes(&text).map_err(|error| anyhow!(Misuse::new(error)))?,
            (None, Some(schedule)) => lanes_of(schedule)?,
            (None, None) => usual.lanes.clone(),
        };
        self.server.set_lanes(serving_lanes(&lanes));
        let queue_octets = self.queue_octets.unwrap_or(usual.queue_octets);
        let event_octets_max = self
            .event_octets
            .unwrap_or(usual.event_octets_max.min(queue_octets));
        Ok(ChannelConfig {
            lanes,
            dispatching: match self.dispatching {
                DispatchingName::Priority => Dispatching::Priority,
                DispatchingName::Reactive => Dispatching::Reactive,
                DispatchingName::Lanes => Dispatching::Lanes,
            },
            filter: match self.filtering {
                Filtering::Basic => FilterKind::Basic,
                Filtering::Prefix => FilterKind::Prefix,
            },
            when_full: self.when_full.unwrap_or(usual.when_full),
            consumers_max: self.consumers_max.unwrap_or(usual.consumers_max),
            suppliers_max: self.suppliers_max.unwrap_or(usual.suppliers_max),
            queue_events: self.queue_events.unwrap_or(usual.queue_events),
            queue_octets,
            intake_events: self.intake_events.unwrap_or(usual.intake_events),
            intake_octets: self
                .intake_octets
                .unwrap_or(usual.intake_octets.max(event_octets_max)),
            event_octets_max,
            hang_timeout: self.hang_timeout.unwrap_or(usual.hang_timeout),
            ping_every: self.ping_every.unwrap_or(usual.ping_every),
            ..usual
        })
    }

    fn orb(&self, config: &ChannelConfig) -> anyhow::Result<Orb> {
        let usual = builder()
            .strategies(strategies(DispatchStrategy::ThreadPerConnection))
            .limits(config.limits(Limits::default()));
        let chosen = self.server.apply(&self.client, usual);
        chosen
            .and_then(|builder| builder.build())
            .map_err(in_our_words)
    }

    fn plain(&self) -> PlainConfig {
        PlainConfig {
            event_type: self.cos_type,
            source: self.cos_source,
            ..PlainConfig::default()
        }
    }
}

/// A name that the channel has while it is served.
struct Named {
    root: Context,
    name: Name,
}

impl Named {
    fn bind(orb: &Orb, text: &str, channel: &ObjectRef) -> anyhow::Result<Self> {
        let name = parse_name(text)
            .map_err(|error| anyhow!(Misuse::new(format!("--name {text}: {error}"))))?;
        let root = Context::root(orb).context(
            "no naming service to bind --name in: start one with `rtorb naming serve`, or say where one is with \
             --init-ref NameService=REF",
        )?;
        root.bind(&name, channel, Existing::Replace)
            .with_context(|| format!("--name {text}"))?;
        Ok(Self { root, name })
    }

    fn unbind(&self) {
        if let Err(failure) = self.root.unbind(&self.name) {
            eprintln!("rtorb: the channel's name stays bound: {failure}");
        }
    }
}

fn write_reference(file: &Path, object: &ObjectRef) -> anyhow::Result<()> {
    write_atomically(file, format!("{object}\n").as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))
}

/// What is wrong with a choice is misuse; what the host refuses is not.
fn in_words(error: ChannelError) -> anyhow::Error {
    match &error {
        ChannelError::Thread { .. } => {
            anyhow!("{error}; or go on without real-time threads: --best-effort")
        }
        ChannelError::Config { .. } | ChannelError::Strategies { .. } => {
            anyhow!(Misuse::new(error.to_string()))
        }
        _ => anyhow!(error),
    }
}

fn lanes(text: &str) -> Result<Vec<Priority>, String> {
    let wrong = |part: &str| {
        format!("--lanes {text}: {part:?} is no CORBA priority (0 to 32767): write 50,30,10")
    };
    text.split(',')
        .map(|part| {
            let number: i16 = part.trim().parse().map_err(|_| wrong(part))?;
            Priority::new(number).map_err(|_| wrong(part))
        })
        .collect()
}

/// The priorities of a schedule, the most urgent first.
fn lanes_of(schedule: &Schedule) -> anyhow::Result<Vec<Priority>> {
    let mut lanes: Vec<Priority> = (schedule.lanes().iter())
        .map(|lane| lane.lane_priority)
        .collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes.reverse();
    match lanes.is_empty() {
        false => Ok(lanes),
        true => Err(anyhow!(Misuse::new(
            "--schedule: none of its priorities is one of CORBA: say which lanes there are with --lanes".to_owned()
        ))),
    }
}

/// The ORB's lanes where suppliers are served by lanes: two threads for each of the channel's, so that one may wait, and for
/// those who have no priority.
fn serving_lanes(lanes: &[Priority]) -> String {
    let lowest = (!lanes.contains(&Priority::MIN)).then_some(Priority::MIN);
    let all = lanes.iter().copied().chain(lowest);
    let each: Vec<String> = all.map(|lane| format!("{}:2", lane.get())).collect();
    each.join(",")
}

fn when_full(text: &str) -> Result<WhenFull, String> {
    match text.split_once(':') {
        None if text == "discard_oldest" => Ok(WhenFull::DiscardOldest),
        None if text == "discard_newest" => Ok(WhenFull::DiscardNewest),
        None if text == "disconnect" => Ok(WhenFull::Disconnect),
        Some(("wait", time)) => Ok(WhenFull::Wait {
            at_most: duration(time)?,
        }),
        _ => Err("there are discard_oldest, discard_newest, wait:TIME, disconnect".to_owned()),
    }
}

/// How soon an interrupt is seen.
const LOOK_EVERY_NS: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_priorities() {
        let numbers: Vec<i16> = lanes("50, 30,10")
            .unwrap()
            .iter()
            .map(|lane| lane.get())
            .collect();
        assert_eq!(numbers, [50, 30, 10]);
        for wrong in ["", "50,", "-1", "50:2", "40000"] {
            assert!(lanes(wrong).unwrap_err().contains("50,30,10"), "{wrong}");
        }
    }

    #[test]
    fn who_has_no_priority_has_a_lane_that_serves_it() {
        let serving = |text| serving_lanes(&lanes(text).unwrap());
        assert_eq!(serving("50,10"), "50:2,10:2,0:2");
        assert_eq!(serving("50,0"), "50:2,0:2");
    }

    #[test]
    fn policies_for_a_full_queue_are_named() {
        let wait = WhenFull::Wait {
            at_most: Duration::from_millis(5),
        };
        assert_eq!(when_full("wait:5ms"), Ok(wait));
        assert_eq!(when_full("disconnect"), Ok(WhenFull::Disconnect));
        assert!(when_full("drop").unwrap_err().contains("discard_oldest"));
        assert!(when_full("wait:soon").unwrap_err().contains("500ms"));
    }
}
