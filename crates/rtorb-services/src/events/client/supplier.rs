//! A program that pushes events.

use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::{Poa, SystemException};
use std::sync::Arc;

use super::connect::{CallbackObject, ConnectError, connect_supplier, is_there};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    EventChannel, ProxyPushConsumer, SupplierQos,
};
use crate::stubs::rtec_event::rtec_event_comm::{Event, PushSupplier, PushSupplierServant};

/// A supplier of a channel.
///
/// Its calls have the timeout of the channel's reference. Dropping it disconnects it, if the channel answers in that time.
#[derive(Debug)]
pub struct Supplier {
    proxy: ProxyPushConsumer,
    callback: Option<CallbackObject<PushSupplier>>,
    is_connected: bool,
}

impl Supplier {
    /// Connects without an object of its own: the channel cannot notify the supplier when it ends, and the ORB need not serve.
    ///
    /// # Errors
    /// The channel's answer.
    pub fn connect(channel: &EventChannel, qos: &SupplierQos) -> Result<Self, ConnectError> {
        Self::through(channel, None, qos)
    }

    /// Connects with an object in `poa` that the channel calls when it disconnects the supplier. The ORB must serve.
    ///
    /// # Errors
    /// The answer of the channel or of the adapter.
    pub fn connect_served(
        channel: &EventChannel,
        poa: &Poa,
        qos: &SupplierQos,
    ) -> Result<Self, ConnectError> {
        let was_disconnected = Arc::new(AtomicBool::new(false));
        let object: PushSupplier = poa.activate(SupplierServant(Arc::clone(&was_disconnected)))?;
        let callback = CallbackObject {
            poa: poa.clone(),
            object,
            was_disconnected,
        };
        Self::through(channel, Some(callback), qos)
    }

    /// Pushes events as one set. A push is a oneway; use [`arrived`](Self::arrived) to wait until the channel has them.
    ///
    /// # Errors
    /// If they could not be sent.
    pub fn push(&self, events: &[Event]) -> Result<(), SystemException> {
        self.proxy.push(events)
    }

    /// Waits until the channel has received all earlier pushes of this thread at its present priority.
    ///
    /// This holds if the channel's ORB serves the requests of a connection one after another: with `thread_per_connection`, the
    /// default of `rtorb events serve`, and with `reactive`. Where several threads serve a connection, one of them may still have a
    /// push in progress.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the channel has disconnected the supplier; another exception if it does not answer.
    pub fn arrived(&self) -> Result<(), SystemException> {
        is_there(self.proxy.as_object())
    }

    /// True if the channel has notified the supplier that it is disconnected. Always false for a supplier without an object.
    #[must_use]
    pub fn was_disconnected(&self) -> bool {
        self.callback
            .as_ref()
            .is_some_and(CallbackObject::was_disconnected)
    }

    /// Disconnects.
    ///
    /// # Errors
    /// If the channel cannot be reached.
    pub fn disconnect(mut self) -> Result<(), SystemException> {
        self.is_connected = false;
        self.proxy.disconnect_push_consumer()
    }

    fn through(
        channel: &EventChannel,
        callback: Option<CallbackObject<PushSupplier>>,
        qos: &SupplierQos,
    ) -> Result<Self, ConnectError> {
        let object = callback.as_ref().map(|callback| &callback.object);
        let proxy = connect_supplier(channel, object, qos)?;
        Ok(Self {
            proxy,
            callback,
            is_connected: true,
        })
    }
}

impl Drop for Supplier {
    fn drop(&mut self) {
        if self.is_connected && !self.was_disconnected() {
            let _ = self.proxy.disconnect_push_consumer();
        }
    }
}

struct SupplierServant(Arc<AtomicBool>);

impl PushSupplierServant for SupplierServant {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.0.store(true, Ordering::Release);
        Ok(())
    }
}
