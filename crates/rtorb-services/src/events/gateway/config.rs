//! The configuration of a gateway, its counts, its errors and its news.

use core::fmt;
use std::time::Duration;

use rtorb::{SystemException, ThreadConfig};
use rtorb_os::Refused;

use crate::events::client::ConnectError;
use crate::stubs::rtec_event::rtec_event_channel_admin::EventChannel;

/// How a gateway shall behave. Everything that it keeps or tries has a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Pushes that wait to be passed on, 1 to 1,048,576 (default 1,024). Beyond it the oldest is discarded, and counted.
    pub queue_pushes: usize,
    /// Octets of them (default 1 MiB), 1 to 1 GiB.
    pub queue_octets: usize,
    /// What the subscription at `from` says of its urgency; without it, each entry says what the consumer at `to` says, whose
    /// scheduler may be another one.
    pub rt_info: Option<i32>,
    /// How often the two channels are asked whether they still have the gateway (default 1 s), 10 ms to 1 h.
    pub ping_every: Duration,
    /// How often in a row it tries to connect before it gives up (default 60), 1 at least.
    pub tries_max: u32,
    /// The pause before another try (default 100 ms); it doubles from try to try up to `pause_max` (default 2 s).
    pub pause_min: Duration,
    /// See `pause_min`.
    pub pause_max: Duration,
    /// How the thread runs that passes events on.
    pub thread: ThreadConfig,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            queue_pushes: 1024,
            queue_octets: 1 << 20,
            rt_info: None,
            ping_every: Duration::from_secs(1),
            tries_max: 60,
            pause_min: Duration::from_millis(100),
            pause_max: Duration::from_secs(2),
            thread: ThreadConfig::default(),
        }
    }
}

/// How a channel is found, each time when the gateway connects: a channel that was started again may be elsewhere.
pub type Find = Box<dyn Fn() -> Result<EventChannel, SystemException> + Send>;

/// The channels of a gateway.
pub struct Ends {
    /// Where events come from.
    pub from: Find,
    /// Where they go.
    pub to: Find,
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ends").finish_non_exhaustive()
    }
}

/// Which of the two channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Where events come from.
    From,
    /// Where they go.
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

/// What a gateway has to tell.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum News {
    /// It is connected to both channels.
    Connected,
    /// It subscribed to so many entries, as many as the consumers there want; 0 is no subscription at all.
    Subscribed {
        /// How many.
        entries: usize,
    },
    /// It could not connect, or subscribe.
    Failed {
        /// At which channel.
        end: End,
        /// Why.
        error: ConnectError,
        /// How often in a row it has failed.
        tries: u32,
    },
    /// A channel has disconnected it, or does not answer any more.
    Lost {
        /// Which one.
        end: End,
        /// What it answered; none where it said that it ends.
        exception: Option<SystemException>,
    },
    /// It has tried often enough, and ends.
    GaveUp,
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected => f.write_str("connected to both channels"),
            Self::Subscribed { entries: 0 } => f.write_str("no consumer there wants anything"),
            Self::Subscribed { entries } => write!(f, "subscribed, with {entries} entries"),
            Self::Failed { end, error, tries } => write!(f, "{end}, try {tries}: {error}"),
            Self::Lost {
                end,
                exception: None,
            } => write!(f, "{end} has said goodbye"),
            Self::Lost {
                end,
                exception: Some(exception),
            } => write!(f, "{end} is lost: {exception}"),
            Self::GaveUp => f.write_str("tried often enough, and gives up"),
        }
    }
}

/// What a gateway has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct GatewayStatistics {
    /// Events that came.
    pub received: u64,
    /// Events that were sent on.
    pub forwarded: u64,
    /// Events that have passed all the gateways that they may pass.
    pub expired: u64,
    /// Events for which there was no room.
    pub discarded_full: u64,
    /// Events that waited, or were being sent, when a channel was lost.
    pub discarded_lost: u64,
    /// Messages that are no events.
    pub malformed: u64,
    /// How often it was connected to both channels.
    pub connections: u64,
}

/// Why a gateway was not begun.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// A choice is out of its range.
    #[error("gateway: {name} must be {right}")]
    Config {
        /// The field of [`GatewayConfig`].
        name: &'static str,
        /// What it may be.
        right: &'static str,
    },
    /// The ORB would not serve.
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
        if !(1..=1 << 30).contains(&self.queue_octets) {
            return wrong("queue_octets", "1 octet to 1 GiB");
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
        assert!(refused(&|config| config.queue_octets = 0).contains("queue_octets"));
        assert!(refused(&|config| config.tries_max = 0).contains("tries_max"));
        assert!(refused(&|config| config.pause_max = Duration::ZERO).contains("pause_max"));
        assert!(refused(&|config| config.ping_every = Duration::ZERO).contains("ping_every"));
    }
}
