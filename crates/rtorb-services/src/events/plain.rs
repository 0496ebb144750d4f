//! The plain face of a channel: CosEventChannelAdmin's push model, for clients that know no types and sources.
//!
//! What a plain supplier pushes becomes an event with that any, of one type and source that are chosen; what the channel brings
//! goes to plain consumers as its any. The face is a supplier and a consumer of the channel like others, so that it works with
//! any channel. Plain pushes are two-way: each consumer has a thread that waits for it, and none can delay another.
//!
//! The pull model is not there: NO_IMPLEMENT.

mod config;
mod consumer;
mod consumer_proxy;
mod core;
mod counts;
mod supplier_proxy;
mod value;

pub use config::{PlainConfig, PlainError, PlainStatistics};

use std::sync::Arc;

use rtorb::{ExceptionKind, Poa, SystemException, ThreadConfig};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, spawn};

use crate::stubs::cos_event::cos_event_channel_admin::{
    ConsumerAdmin, ConsumerAdminServant, EventChannel, EventChannelServant, ProxyPullConsumer,
    ProxyPullSupplier, ProxyPushConsumer, ProxyPushSupplier, SupplierAdmin, SupplierAdminServant,
};
use crate::stubs::rtec_event::rtec_event_channel_admin as rtec;
use core::PlainCore;

/// The plain face of a channel; it ends when it is dropped.
#[derive(Debug)]
pub struct PlainChannel {
    core: Arc<PlainCore>,
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
        let core = Arc::new(PlainCore::new(poa.clone(), channel.clone(), config));
        let reference = poa.activate(Root(Arc::clone(&core)))?;
        let working = Arc::clone(&core);
        let thread = spawn("rtorb-plain", &ThreadConfig::default(), move || {
            working.work();
        })?;
        Ok(Self {
            core,
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
        self.core.statistics()
    }

    /// Disconnects everybody, and waits for that: at most `push_timeout` for each who does not answer.
    pub fn destroy(&self) {
        self.core.stop();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        // An adapter that is destroyed has ended it already.
        let _ = self.core.poa().deactivate(self.reference.as_object());
    }
}

impl Drop for PlainChannel {
    fn drop(&mut self) {
        self.destroy();
    }
}

/// The object of the channel itself.
struct Root(Arc<PlainCore>);

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
struct Admin(Arc<PlainCore>);

impl ConsumerAdminServant for Admin {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplier>, SystemException> {
        consumer_proxy::activate(&self.0).map(Some)
    }

    fn obtain_pull_supplier(&self) -> Result<Option<ProxyPullSupplier>, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }
}

impl SupplierAdminServant for Admin {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumer>, SystemException> {
        supplier_proxy::activate(&self.0).map(Some)
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumer>, SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }
}
