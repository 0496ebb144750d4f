//! The configuration of a gateway, its counts, its errors and its news.

use core::fmt;
use std::time::Duration;

use rtorb::SystemException;
use rtorb::thread::ThreadConfig;
use rtorb_os::Refused;

use crate::events::client::ConnectError;
use crate::stubs::rtec_event::rtec_event_channel_admin::EventChannel;

/// The configuration of a gateway. Everything that it keeps or tries has a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// The greatest number of pushes that wait to be forwarded, 1 to 1,048,576 (default 1,024). Beyond it the oldest is discarded
    /// and counted.
    pub queue_pushes: usize,
    /// Bytes of these pushes (default 1 MiB), 1 to 1 GiB.
    pub queue_bytes: usize,
    /// The urgency of the subscription at `from`. By default each entry has the `rt_info` of the consumer at `to`, whose
    /// scheduler may be another one.
    pub rt_info: Option<i32>,
    /// How often it asks both channels whether they still serve it (default 1 s), 10 ms to 1 h.
    pub ping_every: Duration,
    /// The number of failed attempts in a row before it gives up (default 60), at least 1. An attempt succeeds when `from` has
    /// accepted the subscription, or when both channels have answered a ping while no consumer wants anything.
    pub tries_max: u32,
    /// The pause before the second attempt (default 100 ms). It doubles with each failure in a row up to `pause_max` (default 2 s).
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// The configuration of the thread that forwards events. By default it has the policy and the CPUs of the thread that starts the gateway.
    pub thread: ThreadConfig,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            queue_pushes: 1024,
            queue_bytes: 1 << 20,
            rt_info: None,
            ping_every: Duration::from_secs(1),
            tries_max: 60,
            pause_min: Duration::from_millis(100),
            pause_max: Duration::from_secs(2),
            thread: ThreadConfig::default(),
        }
    }
}

/// Finds a channel. The gateway calls it for each connection, because a restarted channel may be elsewhere.
pub type Find = Box<dyn Fn() -> Result<EventChannel, SystemException> + Send>;

/// The channels of a gateway.
pub struct Ends {
    /// The channel that events come from.
    pub from: Find,
    /// The channel that events go to.
    pub to: Find,
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ends").finish_non_exhaustive()
    }
}

/// One of the two channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The channel that events come from.
    From,
    /// The channel that events go to.
    To,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::From => "the channel that events come from",
            Self::To => "the channel that events go to",
        })
    }
}

/// A report of a gateway.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum News {
    /// The gateway is connected to both channels.
    Connected,
    /// The gateway has subscribed to what the consumers of the other channel want.
    Subscribed {
        /// The number of entries; 0 is no subscription.
        entries: usize,
    },
    /// The gateway could not connect or subscribe.
    Failed {
        /// The channel.
        end: End,
        /// The reason.
        error: ConnectError,
        /// The number of failures in a row.
        tries: u32,
    },
    /// A channel has disconnected it or does not answer any more.
    Lost {
        /// The channel.
        end: End,
        /// The exception; `None` if the channel disconnected it.
        exception: Option<SystemException>,
    },
    /// `tries_max` attempts in a row have failed, and the gateway ends.
    GaveUp,
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected => f.write_str("connected to both channels"),
            Self::Subscribed { entries: 0 } => f.write_str("no consumer subscribes to anything"),
            Self::Subscribed { entries } => write!(f, "subscribed, with {entries} entries"),
            Self::Failed { end, error, tries } => write!(f, "{end}, attempt {tries}: {error}"),
            Self::Lost {
                end,
                exception: None,
            } => write!(f, "{end} has disconnected the gateway"),
            Self::Lost {
                end,
                exception: Some(exception),
            } => write!(f, "{end} is lost: {exception}"),
            Self::GaveUp => f.write_str("gives up after the configured number of attempts"),
        }
    }
}

/// The counts of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct GatewayStatistics {
    /// Events received.
    pub received: u64,
    /// Events forwarded.
    pub forwarded: u64,
    /// Events whose `ttl` was used up.
    pub expired: u64,
    /// Events discarded because the queue was full.
    pub discarded_full: u64,
    /// Events that waited or were being sent when a channel was lost.
    pub discarded_lost: u64,
    /// Pushes whose bytes are not events.
    pub malformed: u64,
    /// The number of times that it connected to both channels.
    pub connections: u64,
}

/// Why a gateway could not start.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// A value is out of its range.
    #[error("gateway: {name} must be {right}")]
    Config {
        /// The field of [`GatewayConfig`].
        name: &'static str,
        /// The range.
        right: &'static str,
    },
    /// An error of the ORB.
    #[error("gateway: {0}")]
    System(#[from] SystemException),
    /// The host refuses its thread.
    #[error("gateway: {0}")]
    Thread(#[from] Refused),
}

impl GatewayConfig {
    pub(super) fn check(&self) -> Result<(), GatewayError> {
        let (ms, hour) = (Duration::from_millis, Duration::from_secs(3600));
        let wrong = |name, right| Err(GatewayError::Config { name, right });
        if !(1..=1 << 20).contains(&self.queue_pushes) {
            return wrong("queue_pushes", "1 to 1,048,576");
        }
        if !(1..=1 << 30).contains(&self.queue_bytes) {
            return wrong("queue_bytes", "1 byte to 1 GiB");
        }
        if !(ms(10)..=hour).contains(&self.ping_every) {
            return wrong("ping_every", "10 ms to 1 h");
        }
        if self.tries_max == 0 {
            return wrong("tries_max", "1 at least");
        }
        if !(ms(1)..=hour).contains(&self.pause_min)
            || !(self.pause_min..=hour).contains(&self.pause_max)
        {
            return wrong(
                "pause_min and pause_max",
                "1 ms to 1 h, and pause_max not the smaller one",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_out_of_range_is_named() {
        let refused = |change: &dyn Fn(&mut GatewayConfig)| {
            let mut config = GatewayConfig::default();
            change(&mut config);
            config.check().expect_err("out of range").to_string()
        };
        assert_eq!(GatewayConfig::default().check(), Ok(()));
        assert!(refused(&|config| config.queue_pushes = 0).contains("queue_pushes"));
        assert!(refused(&|config| config.queue_bytes = 0).contains("queue_bytes"));
        assert!(refused(&|config| config.tries_max = 0).contains("tries_max"));
        assert!(refused(&|config| config.pause_max = Duration::ZERO).contains("pause_max"));
        assert!(refused(&|config| config.ping_every = Duration::ZERO).contains("ping_every"));
    }
}
