//! Federation of two channels: what consumers of the one want of the other.
//!
//! A gateway is a consumer of one channel, `from`, and a supplier of another, `to`. What the consumers of `to` want, it is told
//! as an observer of `to`, and subscribes to that at `from`. It says of itself that it is a gateway, so that two gateways in
//! opposite directions do not want each other's events for ever; and it passes an event on only while its `ttl` is above 0, with
//! one less.

mod link;
mod passing;
mod waiting;

use core::fmt;
use std::sync::Arc;
use std::time::Duration;

use rtorb::thread::ThreadConfig;
use rtorb::{Orb, SystemException};
use rtorb_os::Refused;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, spawn};

use crate::events::client::ConnectError;
use crate::stubs::rtec_event::rtec_event_channel_admin::EventChannel;
use link::{Ended, Link};
use waiting::Waiting;

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

/// A gateway from one channel to another. It ends when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    waiting: Arc<Waiting>,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

impl Gateway {
    /// Begins a gateway with objects of `orb`, which must serve, and have timeouts for its calls. What happens is told to `tell`,
    /// on the gateway's own thread.
    ///
    /// # Errors
    /// A choice out of its range, or what the ORB or the host refuses. That a channel cannot be reached is no error: it is told,
    /// and tried again.
    pub fn start(
        orb: &Orb,
        ends: Ends,
        config: GatewayConfig,
        tell: impl Fn(&News) + Send + 'static,
    ) -> Result<Self, GatewayError> {
        config.check()?;
        let poa = orb.root_poa()?;
        let waiting = Arc::new(Waiting::new(config.queue_pushes, config.queue_octets));
        let thread = config.thread.clone();
        let run = Run {
            poa,
            ends,
            config,
            waiting: Arc::clone(&waiting),
        };
        let thread = spawn("rtorb-gateway", &thread, move || run.run(&tell))?;
        Ok(Self {
            waiting,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// What it has counted.
    #[must_use]
    pub fn statistics(&self) -> GatewayStatistics {
        self.waiting.statistics()
    }

    /// Whether it has ended: by [`stop`](Self::stop), or because it gave up.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.waiting.has_ended()
    }

    /// Disconnects from both channels, and waits for that as long as the ORB's timeouts allow. What waits is discarded.
    pub fn stop(&self) {
        self.waiting.stop();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // Its end is all that is asked for.
            let _ = thread.join();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

impl GatewayConfig {
    fn check(&self) -> Result<(), GatewayError> {
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

/// What the gateway's thread has.
struct Run {
    poa: rtorb::Poa,
    ends: Ends,
    config: GatewayConfig,
    waiting: Arc<Waiting>,
}

impl Run {
    fn run(&self, tell: &dyn Fn(&News)) {
        let mut tries = 0;
        while !self.waiting.shall_stop() {
            match Link::open(&self.ends, &self.poa, &self.waiting) {
                Ok(mut link) => {
                    tries = 0;
                    self.waiting.count_connection();
                    tell(&News::Connected);
                    let ended = link.serve(&self.config, tell);
                    link.close();
                    self.waiting.clear();
                    match ended {
                        Ended::Stopped => break,
                        Ended::Lost { end, exception } => tell(&News::Lost { end, exception }),
                        Ended::Refused(error) => {
                            tries += 1;
                            let end = End::From;
                            tell(&News::Failed { end, error, tries });
                        }
                    }
                }
                Err((end, error)) => {
                    tries += 1;
                    tell(&News::Failed { end, error, tries });
                }
            }
            if tries >= self.config.tries_max {
                tell(&News::GaveUp);
                break;
            }
            self.waiting
                .pause_until(monotonic_ns() + self.pause_ns(tries));
        }
        self.waiting.end();
    }

    fn pause_ns(&self, tries: u32) -> u64 {
        let factor = 1u32
            .checked_shl(tries.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let pause = self.config.pause_min.saturating_mul(factor);
        pause.min(self.config.pause_max).as_nanos() as u64
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
