//! Federation of two channels: a gateway brings the consumers of one channel the events of another.
//!
//! A gateway is a consumer of one channel, `from`, and a supplier of another, `to`. As an observer of `to` it learns what its
//! consumers subscribe to, and subscribes to that at `from`. It declares itself a gateway, so two gateways in opposite directions
//! do not subscribe to each other's events for ever. It forwards an event only while its `ttl` is above 0, and decreases it.

mod config;
mod connection;
mod message;
mod subscribed;
mod work_queue;

pub use config::{End, Ends, Find, GatewayConfig, GatewayError, GatewayStatistics, News};
pub use subscribed::{SubscribedEntry, subscribed_entries};

use std::sync::Arc;

use rtorb::Orb;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, spawn};

use connection::{ConnectionEnd, GatewayConnection};
use work_queue::WorkQueue;

/// A gateway from one channel to another. Dropping it stops it.
#[derive(Debug)]
pub struct Gateway {
    work: Arc<WorkQueue>,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

impl Gateway {
    /// Starts a gateway with objects of `orb`. The ORB must serve, and its calls should have a timeout: it bounds each step of the gateway, such
    /// as connecting to both channels. The gateway reports to `tell` on its own thread, so `tell` must not [stop](Self::stop) it.
    ///
    /// # Errors
    /// A value out of its range, or an error of the ORB or the host. A channel that cannot be reached is no error: the gateway
    /// reports it and tries again.
    pub fn start(
        orb: &Orb,
        ends: Ends,
        config: GatewayConfig,
        tell: impl Fn(&News) + Send + 'static,
    ) -> Result<Self, GatewayError> {
        config.check()?;
        let poa = orb.root_poa()?;
        let work = Arc::new(WorkQueue::new(config.queue_pushes, config.queue_bytes));
        let thread = config.thread.clone();
        let run = GatewayRun {
            orb: orb.clone(),
            poa,
            ends,
            config,
            work: Arc::clone(&work),
        };
        let thread = spawn("rtorb-gateway", &thread, move || run.run(&tell))?;
        Ok(Self {
            work,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Its counts.
    #[must_use]
    pub fn statistics(&self) -> GatewayStatistics {
        self.work.statistics()
    }

    /// True if it has ended: by [`stop`](Self::stop), or because it gave up.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.work.has_ended()
    }

    /// Disconnects from both channels and waits for that, at most as long as the step in progress and one call may take. Discards
    /// what waits. If several threads call it, each of them waits for that.
    pub fn stop(&self) {
        self.work.stop();
        // Under the lock, so that another caller waits too.
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The gateway's thread.
struct GatewayRun {
    orb: Orb,
    poa: rtorb::Poa,
    ends: Ends,
    config: GatewayConfig,
    work: Arc<WorkQueue>,
}

impl GatewayRun {
    fn run(&self, tell: &dyn Fn(&News)) {
        let mut tries = 0;
        while !self.work.shall_stop() {
            match GatewayConnection::open(&self.orb, &self.ends, &self.poa, &self.work) {
                Ok(mut connection) => {
                    self.work.count_connection();
                    tell(&News::Connected);
                    let ended = connection.serve(&self.config, tell);
                    connection.close();
                    self.work.clear();
                    if connection.has_served() {
                        tries = 0;
                    }
                    match ended {
                        ConnectionEnd::Stopped => break,
                        ConnectionEnd::Lost { end, exception } => {
                            tries += u32::from(!connection.has_served());
                            tell(&News::Lost { end, exception });
                        }
                        ConnectionEnd::NotSubscribed(error) => {
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
            self.work.pause_until(monotonic_ns() + self.pause_ns(tries));
        }
        self.work.end();
    }

    fn pause_ns(&self, tries: u32) -> u64 {
        let factor = 1u32
            .checked_shl(tries.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let pause = self.config.pause_min.saturating_mul(factor);
        pause.min(self.config.pause_max).as_nanos() as u64
    }
}
