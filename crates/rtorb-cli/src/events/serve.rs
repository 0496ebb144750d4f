//! `rtorb events serve`: serves a channel.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use rtorb::rt::Priority;
use rtorb::{DispatchStrategy, Limits, ObjectRef, Orb};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::termination::Termination;
use rtorb_services::events::filter::FilterKind;
use rtorb_services::events::plain::{PlainChannel, PlainConfig};
use rtorb_services::events::{
    Channel, ChannelConfig, ChannelError, Dispatching, EVENT_BYTES_MIN, PrioritySource,
    RtInfoIsPriority, WhenFull, strategies,
};
use rtorb_services::naming::client::{BoundName, Context, Failure, FailureReason, parse_name};
use rtorb_services::scheduling::{RemoteScheduler, Schedule};
use rtorb_services::stubs::rtec_scheduler::rtec_scheduler::Scheduler;

use super::followed_scheduler::FollowedScheduler;
use super::list;
use crate::named_file::{self, file_error};
use crate::orb_options::{
    ClientOptions, ServerOptions, UsageError, option_error, usage, usage_of, usage_of_field,
};
use crate::output::{note, print_json, warn};
use crate::reference::{builder, duration, object};
use crate::serving::serve_recorder;
use crate::supervisor;

/// Serve an event channel until SIGTERM or SIGINT, or until a client destroys it.
///
/// The channel's object key is EventService: corbaloc::HOST:PORT/EventService. Its counters are printed at the end.
#[derive(Debug, Args)]
#[command(mut_arg("lanes", |arg| arg.help(
    "The CORBA priorities of the channel's lanes, most urgent first, each with a thread: 50,30,10. With --dispatch lanes, \
     suppliers are served by two threads of each as well, and of 0, and a client of any other priority is refused \
     (INV_POLICY) [default: 0]"
)))]
pub(super) struct Serve {
    /// File to write the channel's reference to. It is written atomically, when the channel is ready.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Thread that sends events to consumers.
    #[arg(long, value_name = "NAME", value_enum, default_value = "priority")]
    dispatching: DispatchingName,
    /// Form of subscriptions: a group ends where the next begins (basic), or has its number of children (prefix).
    #[arg(long, value_name = "NAME", value_enum, default_value = "basic")]
    filtering: Filtering,
    /// Maximum number of events that wait for one consumer.
    #[arg(long, value_name = "N", default_value_t = ChannelConfig::default().queue_events)]
    queue_events: usize,
    /// Maximum size of these waiting events in bytes.
    #[arg(long, value_name = "N", default_value_t = ChannelConfig::default().queue_bytes)]
    queue_bytes: usize,
    /// Maximum number of events that a lane has not yet distributed to its consumers. Beyond it, the supplier's thread
    /// distributes.
    #[arg(long, value_name = "N", default_value_t = ChannelConfig::default().intake_events)]
    intake_events: usize,
    /// Maximum size of these undistributed events in bytes [default: 65536, or --event-bytes if that is more].
    #[arg(long, value_name = "N")]
    intake_bytes: Option<usize>,
    /// Maximum size of one event in bytes. A larger event is discarded [default: 16384, or --queue-bytes if that is less].
    #[arg(long, value_name = "N")]
    event_bytes: Option<usize>,
    /// Policy for an event that finds a consumer's queue full: discard_oldest, discard_newest, wait:TIME (the supplier waits),
    /// disconnect (the consumer)
    /// [default: discard_oldest].
    #[arg(long, value_name = "POLICY", value_parser = when_full)]
    when_full: Option<WhenFull>,
    /// Schedule with the priorities of the consumers' RT_Infos, from `rtorb scheduling compute --out`. Without --lanes, its
    /// priorities are the lanes.
    #[arg(long, value_name = "FILE", conflicts_with = "scheduler")]
    schedule: Option<PathBuf>,
    /// Scheduler that returns these priorities whenever a consumer connects: an IOR:, a corbaloc: or corbaname: URL, or a file
    /// that contains one.
    #[arg(long, value_name = "REF")]
    scheduler: Option<String>,
    /// Maximum number of connected consumers.
    #[arg(long, value_name = "N", default_value_t = ChannelConfig::default().consumers_max)]
    consumers_max: usize,
    /// Maximum number of connected suppliers.
    #[arg(long, value_name = "N", default_value_t = ChannelConfig::default().suppliers_max)]
    suppliers_max: usize,
    /// Time without progress after which a consumer with waiting events is dropped [default: 5s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    hang_timeout: Option<Duration>,
    /// Interval of pings to silent consumers and suppliers [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ping_every: Option<Duration>,
    /// Name to bind the channel to in the naming service (of --init-ref NameService=REF).
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Make the missing contexts of that name.
    #[arg(long, requires = "name")]
    parents: bool,
    /// File for the reference of a CosEventChannelAdmin interface (push only) to the channel, which is then served too.
    #[arg(long, value_name = "FILE")]
    cos_ior_file: Option<PathBuf>,
    /// Type of the events that CosEvent suppliers push.
    #[arg(long, value_name = "N", default_value_t = PlainConfig::default().event_type, requires = "cos_ior_file",
        value_parser = clap::value_parser!(i32).range(16..))]
    cos_type: i32,
    /// Source of these events.
    #[arg(long, value_name = "N", default_value_t = PlainConfig::default().source, requires = "cos_ior_file",
        value_parser = clap::value_parser!(i32).range(1..))]
    cos_source: i32,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    client: ClientOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DispatchingName {
    /// The supplier's thread if it has the lane's priority, otherwise the lane's thread.
    Priority,
    /// The supplier's thread, as long as the consumer's connection takes the events.
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
        let termination = Termination::watch()?;
        let schedule = self.schedule()?;
        let config = self.config(schedule.as_ref())?;
        let orb = self.orb(&config)?;
        let scheduler = self.scheduler(&orb)?;
        let mut followed = scheduler.clone().map(FollowedScheduler::new);
        let priorities: Arc<dyn PrioritySource> = match (schedule, scheduler) {
            (Some(schedule), _) => Arc::new(schedule),
            (None, Some(scheduler)) => Arc::new(RemoteScheduler(scheduler)),
            (None, None) => Arc::new(RtInfoIsPriority),
        };
        let channel = Channel::serve_with(&orb, config, priorities).map_err(channel_error)?;
        serve_recorder(&orb)?;
        let poa = orb.root_poa()?;
        let serving = super::spawn_server(&orb)?;
        let plain = match &self.cos_ior_file {
            Some(_) => Some(PlainChannel::serve(
                &poa,
                channel.reference(),
                self.plain(),
            )?),
            None => None,
        };
        let named = match &self.name {
            Some(name) => Some(bind_name(
                &orb,
                name,
                self.parents,
                channel.reference().as_object(),
            )?),
            None => None,
        };
        if let Err(error) = self.write_references(&channel, plain.as_ref()) {
            unbind(named);
            return Err(error);
        }
        for endpoint in orb.endpoints() {
            note!("serving an event channel at {endpoint}, key EventService");
        }
        if orb.strategies().dispatch == DispatchStrategy::Lanes {
            let lanes = self.server.take_lanes().unwrap_or_default();
            note!(
                "suppliers and other clients need the priority of a lane, or get INV_POLICY; the lanes (PRIORITY:THREADS) are {lanes}"
            );
        }
        supervisor::tell_ready(&orb, "EventService");
        while !termination.has_come() && !channel.is_destroyed() && !serving.is_finished() {
            sleep_until(monotonic_ns() + LOOK_EVERY_NS);
            if let Some(followed) = &mut followed {
                followed.look(&channel);
            }
        }
        supervisor::tell_end();
        unbind(named);
        drop(plain);
        let statistics = channel.statistics();
        channel.destroy();
        orb.shutdown();
        if let Ok(Some(served)) = serving.join() {
            served?;
        }
        if self.json {
            print_json(&statistics)?
        } else {
            list::print(&statistics)?
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write_references(
        &self,
        channel: &Channel,
        plain: Option<&PlainChannel>,
    ) -> anyhow::Result<()> {
        if let (Some(plain), Some(file)) = (plain, &self.cos_ior_file) {
            write_reference(file, plain.reference().as_object())?;
        }
        if let Some(file) = &self.ior_file {
            write_reference(file, channel.reference().as_object())?;
        }
        Ok(())
    }

    fn schedule(&self) -> anyhow::Result<Option<Schedule>> {
        let read = |file: &PathBuf| Schedule::read(file).map_err(file_error);
        self.schedule.as_ref().map(read).transpose()
    }

    /// Returns the scheduler of another process that has the priorities of RT_Infos, if one is named.
    fn scheduler(&self, orb: &Orb) -> anyhow::Result<Option<Scheduler>> {
        let Some(reference) = &self.scheduler else {
            return Ok(None);
        };
        let scheduler = Scheduler::narrow(&object(orb, reference)?);
        scheduler
            .map(Some)
            .map_err(|exception| anyhow!("--scheduler {reference}: {exception}"))
    }

    fn config(&mut self, schedule: Option<&Schedule>) -> anyhow::Result<ChannelConfig> {
        let usual = ChannelConfig::default();
        let lanes = match (self.server.take_lanes(), schedule) {
            (Some(text), _) => lanes(&text).map_err(|error| anyhow!(UsageError::new(error)))?,
            (None, Some(schedule)) => lanes_of(schedule)?,
            (None, None) => usual.lanes.clone(),
        };
        self.server.set_lanes(serving_lanes(&lanes));
        let event_bytes_max = self.event_bytes.unwrap_or(
            self.queue_bytes
                .clamp(EVENT_BYTES_MIN, usual.event_bytes_max),
        );
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
            consumers_max: self.consumers_max,
            suppliers_max: self.suppliers_max,
            queue_events: self.queue_events,
            queue_bytes: self.queue_bytes,
            intake_events: self.intake_events,
            intake_bytes: self
                .intake_bytes
                .unwrap_or(usual.intake_bytes.max(event_bytes_max)),
            event_bytes_max,
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
        chosen.build().map_err(option_error)
    }

    fn plain(&self) -> PlainConfig {
        PlainConfig {
            event_type: self.cos_type,
            source: self.cos_source,
            ..PlainConfig::default()
        }
    }
}

/// Binds the channel to a name; with `makes_parents`, the contexts of the name are made too.
fn bind_name(
    orb: &Orb,
    text: &str,
    makes_parents: bool,
    channel: &ObjectRef,
) -> anyhow::Result<BoundName> {
    let name = parse_name(text)
        .map_err(|error| anyhow!(UsageError::new(format!("--name {text}: {error}"))))?;
    let root = Context::root(orb).context(
        "cannot find a naming service for --name: start one with `rtorb naming serve`, or give its reference with \
         --init-ref NameService=REF",
    )?;
    let bound = BoundName::bind(root, name, channel, makes_parents);
    bound.map_err(|failure| name_error(text, &failure))
}

/// Unbinds the channel's name, if it has one.
fn unbind(named: Option<BoundName>) {
    if let Some(Err(failure)) = named.map(BoundName::unbind) {
        warn(format!("cannot unbind the channel's name: {failure}"));
    }
}

/// Converts the failure of a binding.
fn name_error(text: &str, failure: &Failure) -> anyhow::Error {
    let advice = match failure.reason {
        FailureReason::MissingNode(_) => "; --parents makes the missing contexts",
        _ => "",
    };
    anyhow!("--name {text}: {failure}{advice}")
}

fn write_reference(file: &Path, object: &ObjectRef) -> anyhow::Result<()> {
    Ok(named_file::write(file, format!("{object}\n").as_bytes())?)
}

/// Converts an error of the channel: a wrong option is a usage error, a refusal of the host is not.
fn channel_error(error: ChannelError) -> anyhow::Error {
    match &error {
        ChannelError::Config { name, .. } => match *name {
            "event_bytes_max" => usage_of(&error, name, "--event-bytes"),
            "the number of lanes" => usage(&error),
            name => usage_of_field(&error, name),
        },
        // The text names --best-effort where that helps.
        ChannelError::Thread {
            is_mapped: false, ..
        }
        | ChannelError::Strategies { .. } => usage(&error),
        _ => anyhow!(error),
    }
}

fn lanes(text: &str) -> Result<Vec<Priority>, String> {
    let wrong = |part: &str| {
        format!("--lanes {text}: {part:?} is not a CORBA priority (0 to 32767): write 50,30,10")
    };
    text.split(',')
        .map(|part| {
            let number: i16 = part.trim().parse().map_err(|_| wrong(part))?;
            Priority::new(number).map_err(|_| wrong(part))
        })
        .collect()
}

/// Returns the priorities of a schedule, the most urgent first.
fn lanes_of(schedule: &Schedule) -> anyhow::Result<Vec<Priority>> {
    let lanes = schedule.lane_priorities();
    if lanes.is_empty() {
        Err(anyhow!(UsageError::new(
            "--schedule: the schedule has no CORBA priorities: give the lanes with --lanes"
                .to_owned()
        )))
    } else {
        Ok(lanes)
    }
}

/// Returns the lanes of an ORB that serves suppliers by lanes: two threads for each lane of the channel, so that one may wait,
/// and two for clients without a priority.
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
        _ => Err(
            "the policies are discard_oldest, discard_newest, wait:TIME and disconnect".to_owned(),
        ),
    }
}

/// The interval of checks for a signal.
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
    fn a_lane_serves_clients_without_priority() {
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
