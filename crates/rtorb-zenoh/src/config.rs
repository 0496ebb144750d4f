//! The configuration of a member, its errors and its news.

use core::fmt;
use std::time::Duration;

use rtorb::SystemException;
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb_os::Refused;
use rtorb_services::events::client::ConnectError;

use crate::bands::PriorityBands;
use crate::keys::{EventKey, check_name, check_prefix};

/// The configuration of a member. Everything that it keeps or tries has a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationConfig {
    /// The begin of all key expressions of the federation: names joined by `/`, as `plant/events`. Members with the same one are one
    /// federation.
    pub prefix: String,
    /// The name of the channel in the federation. Each member has another one.
    pub name: String,
    /// Where other members, or routers of Zenoh, are.
    pub network: FederationNetwork,
    /// The lanes that publish the channel's events, 1 to 16. By default one publishes all of them, without a priority.
    pub lanes: Vec<FederationLane>,
    /// The priorities of Zenoh that events of CORBA priorities have.
    pub bands: PriorityBands,
    /// What Zenoh does with an event that a link has no room for.
    pub congestion: FederationCongestion,
    /// The time from the publication of an event until its delivery at another channel; `None` is without bound. Beyond it, an event is
    /// discarded and counted. Members of several hosts need synchronized clocks for it.
    pub deadline: Option<Duration>,
    /// The greatest size of an event that this member sends or accepts, in bytes with its encoding, 64 bytes to 16 MiB (default 64 KiB).
    pub event_bytes_max: usize,
    /// The greatest number of events that wait in each queue, 1 to 1,048,576 (default 1,024): those of each lane to be published, and those
    /// of each priority of Zenoh to be delivered. A lane discards the newest event beyond it, and a priority the oldest one.
    pub queue_events: usize,
    /// Bytes of the events of a priority that wait to be delivered, 1 KiB to 1 GiB (default 1 MiB).
    pub queue_bytes: usize,
    /// The CORBA priority at which events are delivered to the channel.
    pub delivery: DeliveryPriority,
    /// How often each lane reports how many events it has published, 10 ms to 1 h (default 1 s): so long it takes until an event is counted
    /// as lost that no other event follows.
    pub report_every: Duration,
    /// How often the member asks its channel whether it still serves it, 10 ms to 1 h (default 1 s).
    pub ping_every: Duration,
    /// The number of failed attempts in a row to connect to the channel before the member gives up, at least 1 (default 60).
    pub tries_max: u32,
    /// The pause before the second attempt (default 100 ms). It doubles with each failure in a row up to `pause_max` (default 2 s).
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// The configuration of the member's own threads. By default they have the policy and the CPUs of the thread that starts the member.
    pub thread: ThreadConfig,
    /// The configuration of the threads of Zenoh: SCHED_OTHER by default, whatever the process has. They are threads of the process, and
    /// those of its first session in Zenoh: a later one changes nothing.
    pub zenoh_thread: ThreadConfig,
}

impl FederationConfig {
    /// The configuration of a channel with this name in the federation with this prefix.
    #[must_use]
    pub fn new(prefix: &str, name: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            name: name.to_owned(),
            network: FederationNetwork::default(),
            lanes: vec![FederationLane::default()],
            bands: PriorityBands::default(),
            congestion: FederationCongestion::default(),
            deadline: None,
            event_bytes_max: 64 << 10,
            queue_events: 1024,
            queue_bytes: 1 << 20,
            delivery: DeliveryPriority::default(),
            report_every: Duration::from_secs(1),
            ping_every: Duration::from_secs(1),
            tries_max: 60,
            pause_min: Duration::from_millis(100),
            pause_max: Duration::from_secs(2),
            thread: ThreadConfig::default(),
            zenoh_thread: ThreadConfig {
                policy: Some(SchedPolicy::Other),
                ..ThreadConfig::default()
            },
        }
    }
}

/// How a member reaches the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationNetwork {
    /// Endpoints of members and routers to connect to, as Zenoh writes them: `tcp/HOST:PORT` or `unixsock-stream/PATH`. It tries them again
    /// and again.
    pub connect: Vec<String>,
    /// Endpoints to listen at, in the same form. A member is a router of Zenoh: members that connect to it reach each other.
    pub listen: Vec<String>,
    /// Find members in the local network by UDP multicast (224.0.0.224:7446), and be found.
    pub multicast: bool,
    /// The time without a sign of life after which a link is closed, 100 ms to 1 h (default 10 s).
    pub lease: Duration,
}

impl Default for FederationNetwork {
    fn default() -> Self {
        Self {
            connect: Vec::new(),
            listen: Vec::new(),
            multicast: false,
            lease: Duration::from_secs(10),
        }
    }
}

/// A lane: events that are published at one priority, by a thread of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FederationLane {
    /// The CORBA priority of its events, 0 to 32767; `None` is without one.
    pub priority: Option<i16>,
    /// The `rt_info` of its subscription at the channel; `None` takes the priority, which is right for a channel without a scheduler.
    pub rt_info: Option<i32>,
    /// The events of the lane: types, each with a source or 0 for any. Without any, all events of no other lane. An event that several lanes
    /// have is published several times.
    pub keys: Vec<EventKey>,
}

/// What Zenoh does with an event that a link has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FederationCongestion {
    /// It waits this long, 0 to 1 s, and discards the event. Those who miss it count it as lost (default, 1 ms).
    Drop(Duration),
    /// It waits this long, 1 ms to 1 h, and closes the link, which is opened again. The lane waits meanwhile, and its queue fills.
    Block(Duration),
}

impl Default for FederationCongestion {
    fn default() -> Self {
        Self::Drop(Duration::from_millis(1))
    }
}

/// The CORBA priority at which events are delivered to the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryPriority {
    /// That of the thread that starts the member.
    #[default]
    OfMember,
    /// That at which they were published, 0 for those without one, but not above a bound. Another member chooses it, so the bound is what it
    /// may take here.
    AsPublished {
        /// The most urgent one.
        most: i16,
    },
}

/// A report of a member.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FederationNews {
    /// It is connected to its channel.
    Connected,
    /// It has subscribed to what the consumers of its channel want.
    Subscribed {
        /// The number of key expressions; 0 is no subscription.
        keys: usize,
    },
    /// It could not connect to its channel.
    Failed {
        /// The reason.
        error: ConnectError,
        /// The number of failures in a row.
        tries: u32,
    },
    /// The channel has disconnected it or does not answer any more.
    Lost {
        /// The exception; `None` if the channel disconnected it.
        exception: Option<SystemException>,
    },
    /// `tries_max` attempts in a row have failed, and it ends.
    GaveUp,
    /// Another member is there.
    Joined {
        /// Its name.
        name: String,
    },
    /// Another member has ended, or cannot be reached.
    Left {
        /// Its name.
        name: String,
    },
    /// A member speaks another version. Nothing is exchanged with it.
    OtherVersion {
        /// Its name.
        name: String,
        /// Its version.
        version: u32,
    },
    /// Another member has this member's name.
    SameName {
        /// The name.
        name: String,
    },
    /// A sample is no event. Each of 64 keys is reported once, and counted each time.
    Malformed {
        /// Its key.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// The host does not permit the priority of an event, which is delivered at the priority before. It is reported once.
    PriorityRefused {
        /// The priority.
        priority: i16,
        /// The reason.
        exception: SystemException,
    },
    /// For some time it had no link, or saw no member at the other end of a link. It opens its session in Zenoh again.
    OpensAgain,
    /// The session in Zenoh cannot be opened again. It is tried later, and what is published until then is refused.
    NotOpened {
        /// The reason.
        reason: String,
    },
    /// Zenoh refused a subscription: events that match it do not come.
    NotSubscribed {
        /// The key expression.
        key: String,
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for FederationNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected => f.write_str("connected to the channel"),
            Self::Subscribed { keys: 0 } => f.write_str("no consumer subscribes to anything"),
            Self::Subscribed { keys } => write!(f, "subscribed, with {keys} key expressions"),
            Self::Failed { error, tries } => write!(f, "the channel, attempt {tries}: {error}"),
            Self::Lost { exception: None } => {
                f.write_str("the channel has disconnected the member")
            }
            Self::Lost {
                exception: Some(exception),
            } => write!(f, "the channel is lost: {exception}"),
            Self::GaveUp => f.write_str("gives up after the configured number of attempts"),
            Self::Joined { name } => write!(f, "member {name} is there"),
            Self::Left { name } => write!(f, "member {name} has ended or cannot be reached"),
            Self::OtherVersion { name, version } => write!(
                f,
                "member {name} is refused: it speaks version {version} of the federation and this member version {}; give all members the \
                 same version of rtorb",
                crate::message::VERSION
            ),
            Self::SameName { name } => write!(
                f,
                "another member has the name {name} too: give each channel another name"
            ),
            Self::Malformed { key, reason } => write!(f, "a sample at {key} is refused: {reason}"),
            Self::PriorityRefused {
                priority,
                exception,
            } => write!(
                f,
                "events of CORBA priority {priority} cannot be delivered at that priority, and keep the one before: {exception}"
            ),
            Self::OpensAgain => {
                f.write_str("others are not reached: the session in Zenoh is opened again")
            }
            Self::NotOpened { reason } => write!(
                f,
                "the session in Zenoh cannot be opened again, which is tried later: {reason}"
            ),
            Self::NotSubscribed { key, reason } => {
                write!(
                    f,
                    "events at {key} do not come, Zenoh refuses the subscription: {reason}"
                )
            }
        }
    }
}

/// Why a member could not start.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FederationError {
    /// A value is out of its range.
    #[error("federation: {name} must be {right}")]
    Config {
        /// The field of [`FederationConfig`].
        name: &'static str,
        /// The range.
        right: String,
    },
    /// An error of the ORB.
    #[error("federation: {0}")]
    System(#[from] SystemException),
    /// The host refuses its threads.
    #[error("federation: {0}")]
    Thread(#[from] Refused),
    /// Zenoh refuses an endpoint, or cannot listen at it.
    #[error("federation: Zenoh cannot be started so: {0}")]
    Zenoh(String),
}

impl FederationConfig {
    pub(crate) fn check(&self) -> Result<(), FederationError> {
        check_prefix(&self.prefix).map_err(|right| wrong("prefix", right))?;
        check_name(&self.name).map_err(|right| wrong("name", right))?;
        self.check_lanes()?;
        self.check_bounds()?;
        self.check_times()
    }

    fn check_lanes(&self) -> Result<(), FederationError> {
        if !(1..=LANES_MAX).contains(&self.lanes.len()) {
            return Err(wrong("lanes", "1 to 16 lanes"));
        }
        let rest = self.lanes.iter().filter(|lane| lane.keys.is_empty());
        if rest.count() > 1 {
            return Err(wrong("lanes", "lanes of which at most one has no keys"));
        }
        for lane in &self.lanes {
            if lane.priority.is_some_and(|priority| priority < 0) {
                return Err(wrong("lanes", "lanes of CORBA priorities 0 to 32767"));
            }
            if lane.keys.len() > LANE_KEYS_MAX {
                return Err(wrong("lanes", "lanes of at most 256 keys"));
            }
            let is_type = |key: &EventKey| key.event_type >= TYPES_FROM && key.source >= 0;
            if !lane.keys.iter().all(is_type) {
                return Err(wrong(
                    "lanes",
                    "lanes whose keys have types from 16 and sources from 1, or 0",
                ));
            }
        }
        if !self.bands.is_ordered() {
            return Err(wrong(
                "bands",
                "bands each of which begins below the one before, and above 0",
            ));
        }
        match self.delivery {
            DeliveryPriority::AsPublished { most } if most < 0 => {
                Err(wrong("delivery", "a CORBA priority, 0 to 32767"))
            }
            _ => Ok(()),
        }
    }

    fn check_bounds(&self) -> Result<(), FederationError> {
        if !(64..=16 << 20).contains(&self.event_bytes_max) {
            return Err(wrong("event_bytes_max", "64 bytes to 16 MiB"));
        }
        if !(1..=1 << 20).contains(&self.queue_events) {
            return Err(wrong("queue_events", "1 to 1,048,576"));
        }
        if !(1 << 10..=1 << 30).contains(&self.queue_bytes) {
            return Err(wrong("queue_bytes", "1 KiB to 1 GiB"));
        }
        if self.tries_max == 0 {
            return Err(wrong("tries_max", "1 at least"));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), FederationError> {
        let (ms, hour) = (Duration::from_millis, Duration::from_secs(3600));
        if !(ms(10)..=hour).contains(&self.report_every) {
            return Err(wrong("report_every", "10 ms to 1 h"));
        }
        if !(ms(10)..=hour).contains(&self.ping_every) {
            return Err(wrong("ping_every", "10 ms to 1 h"));
        }
        if !(ms(1)..=hour).contains(&self.pause_min)
            || !(self.pause_min..=hour).contains(&self.pause_max)
        {
            return Err(wrong(
                "pause_min and pause_max",
                "1 ms to 1 h, and pause_max not the smaller one",
            ));
        }
        if !(ms(100)..=hour).contains(&self.network.lease) {
            return Err(wrong("network.lease", "100 ms to 1 h"));
        }
        if let Some(deadline) = self.deadline
            && !(Duration::from_micros(1)..=hour).contains(&deadline)
        {
            return Err(wrong("deadline", "1 us to 1 h"));
        }
        match self.congestion {
            FederationCongestion::Drop(wait) if wait > Duration::from_secs(1) => Err(wrong(
                "congestion",
                "a wait of at most 1 s before an event is discarded",
            )),
            FederationCongestion::Block(wait) if !(ms(1)..=hour).contains(&wait) => Err(wrong(
                "congestion",
                "a wait of 1 ms to 1 h before a link is closed",
            )),
            _ => Ok(()),
        }
    }
}

fn wrong(name: &'static str, right: impl fmt::Display) -> FederationError {
    let right = right.to_string();
    FederationError::Config { name, right }
}

const LANES_MAX: usize = 16;
/// A channel bounds the entries of a subscription.
const LANE_KEYS_MAX: usize = 256;
/// The first type of applications.
const TYPES_FROM: i32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_out_of_range_is_named() {
        let refused = |change: &dyn Fn(&mut FederationConfig)| {
            let mut config = FederationConfig::new("plant", "press");
            change(&mut config);
            config.check().expect_err("out of range").to_string()
        };
        assert_eq!(FederationConfig::new("plant", "press").check(), Ok(()));
        assert!(refused(&|config| config.prefix.clear()).contains("prefix"));
        assert!(refused(&|config| config.name.push('/')).contains("name"));
        assert!(refused(&|config| config.lanes.clear()).contains("lanes"));
        let rest = FederationLane::default();
        assert!(refused(&|config| config.lanes.push(rest.clone())).contains("at most one"));
        assert!(refused(&|config| config.lanes[0].priority = Some(-1)).contains("32767"));
        let reserved = EventKey {
            event_type: 3,
            source: 0,
        };
        assert!(refused(&|config| config.lanes[0].keys = vec![reserved]).contains("from 16"));
        assert!(refused(&|config| config.bands.floors[1] = 99).contains("bands"));
        assert!(refused(&|config| config.event_bytes_max = 1).contains("event_bytes_max"));
        assert!(refused(&|config| config.queue_events = 0).contains("queue_events"));
        assert!(refused(&|config| config.queue_bytes = 0).contains("queue_bytes"));
        assert!(refused(&|config| config.tries_max = 0).contains("tries_max"));
        assert!(refused(&|config| config.pause_max = Duration::ZERO).contains("pause_max"));
        assert!(refused(&|config| config.ping_every = Duration::ZERO).contains("ping_every"));
        assert!(refused(&|config| config.report_every = Duration::ZERO).contains("report_every"));
        assert!(refused(&|config| config.network.lease = Duration::ZERO).contains("lease"));
        assert!(refused(&|config| config.deadline = Some(Duration::ZERO)).contains("deadline"));
        let block = FederationCongestion::Block(Duration::ZERO);
        assert!(refused(&|config| config.congestion = block).contains("congestion"));
        let delivery = DeliveryPriority::AsPublished { most: -1 };
        assert!(refused(&|config| config.delivery = delivery).contains("delivery"));
    }

    #[test]
    fn a_member_of_another_version_is_refused_with_what_to_do() {
        let news = FederationNews::OtherVersion {
            name: "press".to_owned(),
            version: 2,
        };
        let said = news.to_string();
        for part in ["press", "version 2", "version 1", "same version of rtorb"] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
}
