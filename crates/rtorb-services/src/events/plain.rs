//! The plain face of a channel: CosEventChannelAdmin's push model, for clients that know no types and sources.
//!
//! What a plain supplier pushes becomes an event with that any, of one type and source that are chosen; what the channel brings
//! goes to plain consumers as its any. The face is a supplier and a consumer of the channel like others, so that it works with
//! any channel. Plain pushes are two-way: each consumer has a thread that waits for it, and none can delay another.
//!
//! The pull model is not there: NO_IMPLEMENT.

mod consumer;
mod face;
mod supplier;
mod value;

use std::sync::Arc;
use std::time::Duration;

use rtorb::thread::ThreadConfig;
use rtorb::{ExceptionKind, Poa, PoaError, SystemException};
use rtorb_os::Refused;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, spawn};

use crate::stubs::cos_event::cos_event_channel_admin::{
    ConsumerAdmin, ConsumerAdminServant, EventChannel, EventChannelServant, ProxyPullConsumer,
    ProxyPullSupplier, ProxyPushConsumer, ProxyPushSupplier, SupplierAdmin, SupplierAdminServant,
};
use crate::stubs::rtec_event::rtec_event_channel_admin as rtec;
use face::Face;

/// What is chosen for a plain face. Everything that grows has a bound here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainConfig {
    /// The type of the events that plain suppliers push (default 16, the first one for applications).
    pub event_type: i32,
    /// Their source (default 1).
    pub source: i32,
    /// How many gateways they may pass (default 1).
    pub ttl: i32,
    /// The types of events that plain consumers get; none for any.
    pub types: Vec<i32>,
    /// The sources of events that plain consumers get; none for any.
    pub sources: Vec<i32>,
    /// How urgent the face is as a consumer of the channel: an RT_Info of its scheduler, or a CORBA priority.
    pub rt_info: i32,
    /// Proxies for plain suppliers at a time (default 1,024), 1 at least: NO_RESOURCES.
    pub suppliers_max: usize,
    /// Proxies for plain consumers at a time (default 256), 1 at least: NO_RESOURCES. Each that is connected has a thread.
    pub consumers_max: usize,
    /// Events that wait for one consumer (default 256), 1 at least. Of more, the oldest is discarded, and counted.
    pub queue_events: usize,
    /// Octets of their anys (default 1 MiB); an event is shared by all consumers that wait for it.
    pub queue_octets: usize,
    /// How long a push may take (default 2 s), and each goodbye.
    pub push_timeout: Duration,
    /// Pushes in a row that fail before a consumer is dropped (default 3), 1 at least. One that says that it is disconnected, or
    /// does not exist, is dropped at once.
    pub failures_max: u32,
    /// How often suppliers and consumers of which nothing was heard are asked whether they are there (default 10 s).
    pub ping_every: Duration,
    /// How the threads of consumers run: with the priority of a lane, for example.
    pub consumer_threads: ThreadConfig,
}

impl Default for PlainConfig {
    fn default() -> Self {
        Self {
            event_type: crate::events::filter::types::UNDEFINED,
            source: 1,
            ttl: 1,
            types: Vec::new(),
            sources: Vec::new(),
            rt_info: 0,
            suppliers_max: 1024,
            consumers_max: 256,
            queue_events: 256,
            queue_octets: 1 << 20,
            push_timeout: Duration::from_secs(2),
            failures_max: 3,
            ping_every: Duration::from_secs(10),
            consumer_threads: ThreadConfig::default(),
        }
    }
}

/// What a plain face has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct PlainStatistics {
    /// Suppliers that are connected.
    pub suppliers: u64,
    /// Consumers that are connected.
    pub consumers: u64,
    /// Events that suppliers pushed and the channel was sent.
    pub pushed: u64,
    /// Events that suppliers were told could not be sent.
    pub refused: u64,
    /// Events that the channel brought, times the consumers that were there.
    pub received: u64,
    /// Those of them that a consumer has taken.
    pub delivered: u64,
    /// Those that were discarded: their queue was full.
    pub discarded_full: u64,
    /// Those that were discarded: their push failed, or their consumer was gone.
    pub discarded_failed: u64,
    /// Consumers that were dropped since they were gone, or failed too often.
    pub dropped: u64,
}

/// Why a plain face is not there.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlainError {
    /// A choice is out of its range.
    #[error("plain face: {name} must be {right}")]
    Config {
        /// The field of [`PlainConfig`].
        name: &'static str,
        /// What it may be.
        right: &'static str,
    },
    /// The adapter refuses.
    #[error("plain face: {0}")]
    Poa(#[from] PoaError),
    /// The ORB refuses.
    #[error("plain face: {0}")]
    System(#[from] SystemException),
    /// The host refuses its thread.
    #[error("plain face: {0}")]
    Thread(#[from] Refused),
}

/// The plain face of a channel; it ends when it is dropped.
#[derive(Debug)]
pub struct PlainChannel {
    face: Arc<Face>,
    reference: EventChannel,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

impl PlainChannel {
    /// Makes the face of `channel`, with objects of `poa`. A thread of its own connects it to the channel, as a supplier at once
    /// and as a consumer while there are plain consumers; suppliers get TRANSIENT while the channel cannot be reached.
    ///
    /// # Errors
    /// A choice out of its range, or what the ORB or the host refuses.
    pub fn serve(
        poa: &Poa,
        channel: &rtec::EventChannel,
        config: PlainConfig,
    ) -> Result<Self, PlainError> {
        config.check()?;
        let face = Arc::new(Face::new(poa.clone(), channel.clone(), config));
        let reference = poa.activate(Root(Arc::clone(&face)))?;
        let working = Arc::clone(&face);
        let thread = spawn("rtorb-plain", &ThreadConfig::default(), move || {
            working.work();
        })?;
        Ok(Self {
            face,
            reference,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// The face as an object.
    #[must_use]
    pub fn reference(&self) -> &EventChannel {
        &self.reference
    }

    /// What it has counted.
    #[must_use]
    pub fn statistics(&self) -> PlainStatistics {
        self.face.statistics()
    }

    /// Disconnects everybody, and waits for that: at most `push_timeout` for each who does not answer.
    pub fn destroy(&self) {
        self.face.stop();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        // An adapter that is destroyed has ended it already.
        let _ = self.face.poa().deactivate(self.reference.as_object());
    }
}

impl Drop for PlainChannel {
    fn drop(&mut self) {
        self.destroy();
    }
}

impl PlainConfig {
    fn check(&self) -> Result<(), PlainError> {
        let wrong = |name, right| Err(PlainError::Config { name, right });
        if self.event_type < crate::events::filter::types::UNDEFINED {
            return wrong(
                "event_type",
                "16 at least: what is below has meanings of its own",
            );
        }
        let counts = [
            ("suppliers_max", self.suppliers_max),
            ("consumers_max", self.consumers_max),
            ("queue_events", self.queue_events),
            ("queue_octets", self.queue_octets),
            ("failures_max", self.failures_max as usize),
        ];
        if let Some((name, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return wrong(name, "1 at least");
        }
        let range = Duration::from_millis(1)..=Duration::from_secs(3600);
        let times = [
            ("push_timeout", self.push_timeout),
            ("ping_every", self.ping_every),
        ];
        match times.into_iter().find(|(_, time)| !range.contains(time)) {
            Some((name, _)) => wrong(name, "1 ms to 1 h"),
            None => Ok(()),
        }
    }
}

/// The object of the channel itself.
struct Root(Arc<Face>);

impl EventChannelServant for Root {
    fn for_consumers(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        let admin = || Admin(Arc::clone(&self.0));
        self.0.consumer_admin(admin).map(Some)
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        let admin = || Admin(Arc::clone(&self.0));
        self.0.supplier_admin(admin).map(Some)
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.0.stop();
        Ok(())
    }
}

/// Gives out proxies.
struct Admin(Arc<Face>);

impl ConsumerAdminServant for Admin {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplier>, SystemException> {
        consumer::activate(&self.0).map(Some)
    }

    fn obtain_pull_supplier(&self) -> Result<Option<ProxyPullSupplier>, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }
}

impl SupplierAdminServant for Admin {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumer>, SystemException> {
        supplier::activate(&self.0).map(Some)
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumer>, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_out_of_range_is_named() {
        let refused = |change: &dyn Fn(&mut PlainConfig)| {
            let mut config = PlainConfig::default();
            change(&mut config);
            config.check().expect_err("out of range").to_string()
        };
        assert_eq!(PlainConfig::default().check(), Ok(()));
        assert!(refused(&|config| config.event_type = 9).contains("event_type"));
        assert!(refused(&|config| config.queue_events = 0).contains("queue_events"));
        assert!(refused(&|config| config.failures_max = 0).contains("failures_max"));
        assert!(refused(&|config| config.push_timeout = Duration::ZERO).contains("push_timeout"));
    }
}
