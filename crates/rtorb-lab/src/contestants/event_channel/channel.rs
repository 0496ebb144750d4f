//! The process that is the event channel.

use std::time::Duration;

use rtorb::rt::{Priority, ThreadpoolLane};
use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_services::events::{Channel, ChannelConfig, Statistics, WhenFull, strategies};
use serde::{Deserialize, Serialize};

use super::{CONSUMERS_MAX, Served};
use crate::contestants::real_time::{as_this_thread, lane};
use crate::contestants::whitebox::start_counting;
use crate::processes::questions::serve_beside;

/// A channel that listens, and does not serve yet.
#[derive(Debug)]
pub struct Server {
    orb: Orb,
    channel: Channel,
}

impl Server {
    /// Makes the ORB, with a lane of one thread for each lane of the channel, and the channel.
    ///
    /// # Errors
    /// What either said.
    pub fn open(endpoint: &str, served: &Served) -> Result<Self, String> {
        if served.counts {
            start_counting();
        }
        let lanes = served.lanes.iter().filter(|priority| **priority > 0);
        let lanes: Vec<ThreadpoolLane> = lanes
            .map(|priority| lane(*priority))
            .collect::<Result<_, _>>()?;
        let limits = Limits::with(|limits| {
            limits.connections_max = CONSUMERS_MAX + CONNECTIONS_BESIDE;
            // For events and for questions.
            limits.shared_connections_max = 2 * PEERS_MAX;
        });
        let builder = if lanes.is_empty() {
            Orb::builder().best_effort()
        } else {
            Orb::builder()
        };
        let orb = builder
            .strategies(strategies(DispatchStrategy::Lanes))
            .limits(limits)
            .lanes(lanes.iter().copied())
            .watchdog_thread(as_this_thread())
            .listen(endpoint)
            .build()
            .map_err(|error| error.to_string())?;
        let channel =
            Channel::serve(&orb, config(served, &lanes)).map_err(|error| error.to_string())?;
        Ok(Self { orb, channel })
    }

    /// Serves, and answers questions on standard input, until that ends; then the process ends.
    ///
    /// # Errors
    /// What the host refused.
    pub fn run(self) -> Result<(), String> {
        let reference = self
            .orb
            .object_to_string(self.channel.reference().as_object());
        let channel = self.channel;
        let answer = move |Question::Discarded| Ok(discarded(&channel.statistics()));
        serve_beside(&self.orb, &reference, answer)
    }
}

/// What a channel is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// How many events it has discarded, over all consumers.
    Discarded,
}

fn discarded(statistics: &Statistics) -> u64 {
    let refused = &statistics.refused;
    let connected = statistics.consumers.iter();
    let of_connected: u64 = connected
        .map(|consumer| consumer.events.discarded.all())
        .sum();
    let at_the_door = refused.too_large + refused.not_connected + refused.malformed;
    at_the_door + of_connected + statistics.departed.events.discarded.all()
}

fn config(served: &Served, lanes: &[ThreadpoolLane]) -> ChannelConfig {
    let priorities: Vec<Priority> = lanes.iter().map(|lane| lane.lane_priority).collect();
    let default = ChannelConfig::default();
    ChannelConfig {
        lanes: if priorities.is_empty() {
            default.lanes.clone()
        } else {
            priorities
        },
        queue_events: served.queue_events,
        intake_events: served.queue_events,
        when_full: match served.wait_ms {
            Some(wait_ms) => WhenFull::Wait {
                at_most: Duration::from_millis(wait_ms),
            },
            None => WhenFull::DiscardOldest,
        },
        consumers_max: PEERS_MAX,
        // One that is stopped stays for the whole of a run.
        hang_timeout: RARELY,
        // What the keeper does belongs to no event.
        ping_every: RARELY,
        ..default
    }
}

const RARELY: Duration = Duration::from_secs(60);
/// A few more than there are, since those that are killed are found out later.
const PEERS_MAX: usize = CONSUMERS_MAX + 64;
const CONNECTIONS_BESIDE: usize = 16;
