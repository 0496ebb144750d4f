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
/// It is disconnected when it is dropped, as far as the channel answers.
#[derive(Debug)]
pub struct Supplier {
    proxy: ProxyPushConsumer,
    callback: Option<CallbackObject<PushSupplier>>,
    is_connected: bool,
}

impl Supplier {
    /// Connects without an object of its own: the channel cannot tell it that it ends, and the ORB need not serve.
    ///
    /// # Errors
    /// What the channel answered.
    pub fn connect(channel: &EventChannel, qos: &SupplierQos) -> Result<Self, ConnectError> {
        Self::through(channel, None, qos)
    }

    /// Connects with an object of `poa`, which the channel tells when it disconnects the supplier. The ORB must serve.
    ///
    /// # Errors
    /// What the channel or the adapter answered.
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

    /// Pushes events, as one set. It is not known when, or whether, they have arrived: see [`arrived`](Self::arrived).
    ///
    /// # Errors
    /// What kept them from being sent.
    pub fn push(&self, events: &[Event]) -> Result<(), SystemException> {
        self.proxy.push(events)
    }

    /// Waits until the channel has taken what was pushed before from this thread.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST when the channel has disconnected the supplier; otherwise what kept it from answering.
    pub fn arrived(&self) -> Result<(), SystemException> {
        is_there(self.proxy.as_object())
    }

    /// Whether the channel has disconnected the supplier; a supplier without an object of its own is never told.
    #[must_use]
    pub fn was_disconnected(&self) -> bool {
        self.callback
            .as_ref()
            .is_some_and(CallbackObject::was_disconnected)
    }

    /// Disconnects.
    ///
    /// # Errors
    /// What kept the channel from taking note.
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
