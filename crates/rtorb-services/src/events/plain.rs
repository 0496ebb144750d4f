//! A plain channel: CosEventChannelAdmin's push model on a channel, for clients that know no types and sources.
//!
//! The any of a plain supplier becomes an event with a configured type and source; plain consumers get the any of each event. A
//! plain channel is an ordinary supplier and consumer of its channel, so it works with any channel. Plain pushes are two-way:
//! each consumer has a thread that waits for its reply, so no consumer delays another.
//!
//! The pull model is not implemented: NO_IMPLEMENT.

mod channel_core;
mod config;
mod consumer;
mod consumer_proxy;
mod counts;
mod supplier_proxy;
mod value;

pub use config::{PlainConfig, PlainError, PlainStatistics};

use std::sync::Arc;

use rtorb::exception::local;
use rtorb::thread::ThreadConfig;
use rtorb::{Poa, SystemException};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, spawn};

use crate::stubs::cos_event::cos_event_channel_admin::{
    ConsumerAdmin, ConsumerAdminServant, EventChannel, EventChannelServant, ProxyPullConsumer,
    ProxyPullSupplier, ProxyPushConsumer, ProxyPushSupplier, SupplierAdmin, SupplierAdminServant,
};
use crate::stubs::rtec_event::rtec_event_channel_admin as rtec;
use channel_core::PlainCore;

/// A plain channel. It ends when it is dropped.
#[derive(Debug)]
pub struct PlainChannel {
    core: Arc<PlainCore>,
    reference: EventChannel,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

impl PlainChannel {
    /// Serves a plain channel on `channel` with objects in `poa`. Its own thread connects it: as a supplier at once, as a
    /// consumer while it has plain consumers. Plain suppliers get TRANSIENT while the channel cannot be reached.
    ///
    /// # Errors
    /// A value out of its range, or an error of the ORB or the host.
    pub fn serve(
        poa: &Poa,
        channel: &rtec::EventChannel,
        mut config: PlainConfig,
    ) -> Result<Self, PlainError> {
        config.check()?;
        // A consumer's thread is created by the one that serves its connecting.
        config.consumer_threads = config.consumer_threads.or_as_here();
        let core = Arc::new(PlainCore::new(poa.clone(), channel.clone(), config));
        let reference: EventChannel = poa.activate(Root(Arc::clone(&core)))?;
        let working = Arc::clone(&core);
        let thread = spawn("rtorb-plain", &ThreadConfig::default(), move || {
            working.work();
        })
        .inspect_err(|_| drop(poa.deactivate(reference.as_object())))?;
        Ok(Self {
            core,
            reference,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Its object.
    #[must_use]
    pub fn reference(&self) -> &EventChannel {
        &self.reference
    }

    /// Its counts.
    #[must_use]
    pub fn statistics(&self) -> PlainStatistics {
        self.core.statistics()
    }

    /// Disconnects from the channel and from all clients, ends its threads and deactivates its objects: all together in at most
    /// `push_timeout`, after the steps that its thread has begun. Clients that it could not notify in that time are counted as
    /// [`goodbyes_dropped`](PlainStatistics::goodbyes_dropped). If several threads call it, each of them waits for that.
    ///
    /// A thread that serves a request of the plain channel must not call it.
    pub fn destroy(&self) {
        self.core.stop();
        // Under the lock, so that another caller waits too.
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.take() {
            let _ = thread.join();
        }
        drop(thread);
        // It fails if the adapter is destroyed, and the object with it.
        let _ = self.core.poa().deactivate(self.reference.as_object());
    }
}

impl Drop for PlainChannel {
    fn drop(&mut self) {
        self.destroy();
    }
}

/// The servant of the plain channel.
struct Root(Arc<PlainCore>);

impl EventChannelServant for Root {
    fn for_consumers(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        let admin = || Admin(Arc::clone(&self.0));
        self.0.made_once(&self.0.consumer_admin, admin).map(Some)
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        let admin = || Admin(Arc::clone(&self.0));
        self.0.made_once(&self.0.supplier_admin, admin).map(Some)
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.0.stop();
        Ok(())
    }
}

/// The servant of both administrations.
struct Admin(Arc<PlainCore>);

impl ConsumerAdminServant for Admin {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplier>, SystemException> {
        consumer_proxy::activate(&self.0).map(Some)
    }

    fn obtain_pull_supplier(&self) -> Result<Option<ProxyPullSupplier>, SystemException> {
        Err(local::PULL_MODEL)
    }
}

impl SupplierAdminServant for Admin {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumer>, SystemException> {
        supplier_proxy::activate(&self.0).map(Some)
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumer>, SystemException> {
        Err(local::PULL_MODEL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stubs::cos_event::cos_event_comm::PushSupplier;
    use rtorb_os::clock::{monotonic_ns, sleep_until};
    use std::time::Duration;

    #[test]
    fn no_object_of_a_client_outlives_it_or_the_channel() {
        let orb = rtorb::Orb::builder().build().expect("an ORB");
        let poa = orb.root_poa().expect("its adapter");
        poa.manager().activate();
        let gone = orb.string_to_object("corbaloc::127.0.0.1:1/x");
        let gone = gone.expect("a reference");
        let config = PlainConfig {
            ping_every: Duration::from_millis(5),
            ..PlainConfig::default()
        };
        let channel = rtec::EventChannel::unchecked_narrow(gone.clone());
        let plain = PlainChannel::serve(&poa, &channel, config).expect("it is served");
        let suppliers = plain.reference().for_suppliers().expect("it answers");
        let suppliers = suppliers.expect("an administration");
        let obtain = || suppliers.obtain_push_consumer().expect("there is room");
        let proxy = obtain().expect("a proxy");
        let supplier = PushSupplier::unchecked_narrow(gone);
        (proxy.connect_push_supplier(Some(&supplier))).expect("it is connected");
        let is_gone = || proxy.as_object().non_existent() == Ok(true);
        let deadline_ns = monotonic_ns() + 20_000_000_000;
        while !is_gone() {
            assert!(monotonic_ns() < deadline_ns, "its proxy stays");
            sleep_until(monotonic_ns() + 1_000_000);
        }

        let unused = obtain().expect("a proxy");
        plain.destroy();
        for object in [unused.as_object(), suppliers.as_object()] {
            assert_eq!(object.non_existent(), Ok(true));
        }
    }
}
