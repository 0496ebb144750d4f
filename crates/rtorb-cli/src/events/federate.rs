//! `rtorb events federate`: joins a channel to a federation over Zenoh.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::orb_options::ServerOptions;
use crate::reference::{CallOptions, duration};

/// Join a channel to those of other hosts over Zenoh, until it is interrupted. It needs a command that is built with the feature `zenoh`.
///
/// Each member of a federation has one channel, and its consumers get the events of the others that they subscribe to. Exit status 1: the
/// channel became unreachable.
#[derive(Debug, Args)]
pub(crate) struct Federate {
    /// Channel: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one. It is read again each time the member connects.
    #[arg(value_name = "REF")]
    reference: String,
    /// Begin of all key expressions of the federation: names joined by /, such as plant/events.
    #[arg(long, value_name = "KEY")]
    prefix: String,
    /// Name of the channel in the federation. No other member may have it [default: the name of the host].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Member or router to connect to: tcp/HOST:PORT or unixsock-stream/PATH. May be given more than once.
    #[arg(long, value_name = "ENDPOINT")]
    zenoh_connect: Vec<String>,
    /// Endpoint at which other members may connect, in the same form: those that do reach each other. May be given more than once.
    #[arg(long, value_name = "ENDPOINT")]
    zenoh_listen: Vec<String>,
    /// Find members in the local network by multicast, and be found.
    #[arg(long)]
    multicast: bool,
    /// Publish events of a type, and a source, at a CORBA priority: PRIORITY:TYPE[/SOURCE], such as 90:20 or 90:21/3. May be given more than
    /// once. All other events have the priority of --priority.
    #[arg(long, value_name = "EVENTS", value_parser = published)]
    publish: Vec<PublishedEvents>,
    /// Publish no other events than those of --publish.
    #[arg(long, requires = "publish")]
    publish_only: bool,
    /// Deliver events to the channel at the CORBA priority at which they were published, and at most at this one [default: at that of
    /// --priority].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(0..))]
    delivery_priority_max: Option<i16>,
    /// What Zenoh does with an event that a link has no room for: drop:TIME waits, at most 1s, and discards it; wait:TIME waits and closes the
    /// link.
    #[arg(long, value_name = "HOW", default_value = "drop:1ms", value_parser = when_full)]
    when_full: WhenLinkFull,
    /// Time from the publication of an event until its delivery. Beyond it, the event is discarded. Hosts need synchronized clocks for it
    /// [default: without bound].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    deadline: Option<Duration>,
    /// Maximum size of an event in bytes, sent and accepted.
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    event_bytes: usize,
    /// Maximum number of events that wait in each queue. Beyond it, the newest is discarded that waits to be published, and the oldest that
    /// waits to be delivered.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    queue_events: usize,
    /// Maximum size of the events that wait to be delivered, for each of the seven priorities, in bytes.
    #[arg(long, value_name = "N", default_value_t = 1_048_576)]
    queue_bytes: usize,
    /// RT_Info of the member's subscription, known to the scheduler of the channel [default: the priority of the events].
    #[arg(long, value_name = "N")]
    rt_info: Option<i32>,
    /// Number of failed attempts in a row before the member gives up.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    /// Interval of pings to the channel.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    ping_every: Duration,
    /// Time after which the member ends [default: until it is interrupted].
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: CallOptions,
    #[command(flatten)]
    server: ServerOptions,
}

/// The events that are published at a priority. Source 0 is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PublishedEvents {
    priority: i16,
    event_type: i32,
    source: i32,
}

fn published(text: &str) -> Result<PublishedEvents, String> {
    let read = || {
        let (priority, key) = text.split_once(':')?;
        let (event_type, source) = match key.split_once('/') {
            Some((event_type, source)) => (event_type, source.parse().ok().filter(|&it| it > 0)?),
            None => (key, 0),
        };
        Some(PublishedEvents {
            priority: priority.parse().ok().filter(|&it| it >= 0)?,
            event_type: event_type.parse().ok().filter(|&it| it >= 16)?,
            source,
        })
    };
    read().ok_or_else(|| {
        format!("{text:?} does not say what to publish: write PRIORITY:TYPE or PRIORITY:TYPE/SOURCE, such as 90:20/1, with types from 16")
    })
}

/// What Zenoh does with an event that a link has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhenLinkFull {
    Drop(Duration),
    Wait(Duration),
}

fn when_full(text: &str) -> Result<WhenLinkFull, String> {
    match text.split_once(':') {
        Some(("drop", time)) => duration(time).map(WhenLinkFull::Drop),
        Some(("wait", time)) => duration(time).map(WhenLinkFull::Wait),
        _ => Err(format!("{text:?} is neither drop:TIME nor wait:TIME")),
    }
}

#[cfg(not(feature = "zenoh"))]
impl Federate {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        drop(self);
        Err(crate::orb_options::usage(
            "this program was built without Zenoh: build rtorb-cli with the feature `zenoh` (cargo build --release -p rtorb-cli --features zenoh)",
        ))
    }
}

#[cfg(feature = "zenoh")]
mod running {
    use anyhow::anyhow;
    use rtorb::Orb;
    use rtorb::rt::Priority;
    use rtorb_os::clock::{monotonic_ns, sleep_until};
    use rtorb_os::termination::Termination;
    use rtorb_zenoh::{
        DeliveryPriority, EventKey, Federation, FederationConfig, FederationCongestion,
        FederationError, FederationLane, FederationNetwork, FederationNews, FederationStatistics,
        PriorityBands,
    };
    use rustix::system::uname;

    use super::{ExitCode, Federate, WhenLinkFull};
    use crate::events::{find, spawn_server};
    use crate::exit_status::FAILED;
    use crate::orb_options::{usage_of, usage_of_field};
    use crate::output::{line, note, print_json};
    use crate::reference::text_of;

    impl Federate {
        pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
            let termination = Termination::watch()?;
            let orb = self.calling.serving_orb(&self.server)?;
            text_of(&self.reference)?;
            let config = self.config(&orb)?;
            orb.root_poa()?;
            let serving = spawn_server(&orb)?;
            let find = find(&orb, &self.reference);
            let member = Federation::start(&orb, find, config, print_news);
            let member = member.map_err(federation_error)?;
            let begin_ns = monotonic_ns();
            let time_ns = self.duration.map(|time| time.as_nanos() as u64);
            let is_over = || time_ns.is_some_and(|time_ns| monotonic_ns() - begin_ns >= time_ns);
            while !termination.has_come() && !member.has_ended() && !is_over() {
                sleep_until(monotonic_ns() + LOOK_EVERY_NS);
            }
            let gave_up = member.has_ended();
            member.stop();
            let statistics = member.statistics();
            orb.shutdown();
            if let Ok(Some(served)) = serving.join() {
                served?;
            }
            self.print(&statistics)?;
            Ok(if gave_up {
                ExitCode::from(FAILED)
            } else {
                ExitCode::SUCCESS
            })
        }

        fn config(&self, orb: &Orb) -> anyhow::Result<FederationConfig> {
            let host = || uname().nodename().to_string_lossy().into_owned();
            let name = self.name.clone().unwrap_or_else(host);
            Ok(FederationConfig {
                network: FederationNetwork {
                    connect: self.zenoh_connect.clone(),
                    listen: self.zenoh_listen.clone(),
                    multicast: self.multicast,
                    ..FederationNetwork::default()
                },
                lanes: self.lanes()?,
                bands: PriorityBands::of_orb(orb),
                congestion: match self.when_full {
                    WhenLinkFull::Drop(time) => FederationCongestion::Drop(time),
                    WhenLinkFull::Wait(time) => FederationCongestion::Block(time),
                },
                deadline: self.deadline,
                event_bytes_max: self.event_bytes,
                queue_events: self.queue_events,
                queue_bytes: self.queue_bytes,
                delivery: match self.delivery_priority_max {
                    Some(most) => DeliveryPriority::AsPublished { most },
                    None => DeliveryPriority::OfMember,
                },
                ping_every: self.ping_every,
                tries_max: self.tries,
                ..FederationConfig::new(&self.prefix, &name)
            })
        }

        fn lanes(&self) -> anyhow::Result<Vec<FederationLane>> {
            let mut lanes: Vec<FederationLane> = Vec::new();
            let rt_info = self.rt_info;
            if !self.publish_only {
                let priority = self.calling.priority()?.map(Priority::get);
                lanes.push(FederationLane {
                    priority,
                    rt_info,
                    keys: Vec::new(),
                });
            }
            for events in &self.publish {
                let priority = Some(events.priority);
                let key = EventKey {
                    event_type: events.event_type,
                    source: events.source,
                };
                let mut with_keys = lanes.iter_mut().filter(|lane| !lane.keys.is_empty());
                match with_keys.find(|lane| lane.priority == priority) {
                    Some(lane) => lane.keys.push(key),
                    None => lanes.push(FederationLane {
                        priority,
                        rt_info,
                        keys: vec![key],
                    }),
                }
            }
            Ok(lanes)
        }

        fn print(&self, statistics: &FederationStatistics) -> anyhow::Result<()> {
            if self.json {
                return print_json(statistics);
            }
            let (outgoing, incoming) = (&statistics.outgoing, &statistics.incoming);
            line(format!(
                "{} events received, {} published, {} looped back, {} expired (ttl), {} discarded",
                outgoing.received,
                outgoing.published,
                outgoing.looped_back,
                outgoing.expired,
                outgoing.received - outgoing.published - outgoing.looped_back - outgoing.expired
            ))?;
            line(format!(
                "{} events arrived, {} delivered, {} repeated, {} malformed, {} discarded; {} lost",
                incoming.arrived,
                incoming.delivered,
                incoming.repeated,
                incoming.malformed + incoming.other_version,
                incoming.discarded(),
                incoming.lost
            ))
        }
    }

    /// Converts an error of the member: a wrong option is a usage error, a refusal of the host is not.
    fn federation_error(error: FederationError) -> anyhow::Error {
        let FederationError::Config { name, .. } = &error else {
            return anyhow!(error);
        };
        match *name {
            "event_bytes_max" => usage_of(&error, name, "--event-bytes"),
            "tries_max" => usage_of(&error, name, "--tries"),
            "congestion" => usage_of(&error, name, "--when-full"),
            "lanes" => usage_of(&error, name, "--publish"),
            name => usage_of_field(&error, name),
        }
    }

    fn print_news(news: &FederationNews) {
        note!("federation: {news}");
    }

    /// The interval of checks for a signal.
    const LOOK_EVERY_NS: u64 = 50_000_000;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_events_have_a_priority_a_type_and_perhaps_a_source() {
        let expected = |priority, event_type, source| {
            Ok(PublishedEvents {
                priority,
                event_type,
                source,
            })
        };
        assert_eq!(published("90:20"), expected(90, 20, 0));
        assert_eq!(published("0:21/3"), expected(0, 21, 3));
        for wrong in [
            "", "90", "90:", "90:3", "-1:20", "90:20/0", "90:20/", "90:20/x",
        ] {
            assert!(published(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_full_link_drops_or_waits() {
        let ms = Duration::from_millis;
        assert_eq!(when_full("drop:1ms"), Ok(WhenLinkFull::Drop(ms(1))));
        assert_eq!(when_full("wait:2s"), Ok(WhenLinkFull::Wait(ms(2000))));
        for wrong in ["", "drop", "wait:", "block:1s"] {
            assert!(when_full(wrong).is_err(), "{wrong}");
        }
    }
}
