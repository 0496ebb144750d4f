//! The servants of the proxies that consumers and suppliers connect to.

use super::channel_core::{ChannelCore, ConnectSupplierError};
use super::connection::RemoteConsumer;
use super::consumer::{Consumer, Departure};
use super::event;
use super::filter::SubscriptionError;
use super::supplier::ChannelSupplier;
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    AlreadyConnected, ConsumerQos, ProxyPushConsumer, ProxyPushSupplierConnectPushConsumerError,
    ProxyPushSupplierServant, SupplierQos, TypeError,
};
use crate::stubs::rtec_event::rtec_event_comm::{
    Event, PushConsumer, PushSupplier, PushSupplierServant,
};
use rtorb::SystemException;
use rtorb::cdr::Decode;
use rtorb::exception::local;
use rtorb::skeleton::{OperationTable, ServedBy, ServerCall, unknown_operation};
use rtorb_os::clock::coarse_monotonic_ns;
use rtorb_os::sync::Mutex;
use std::sync::Arc;

/// The servant of a proxy push supplier.
#[derive(Debug)]
pub(crate) struct ConsumerProxy {
    core: Arc<ChannelCore>,
    number: u64,
    state: Mutex<ProxyState>,
}

#[derive(Debug)]
enum ProxyState {
    Unconnected,
    Connected {
        consumer: Arc<Consumer>,
        reference: PushConsumer,
    },
    /// The proxy is disconnected for good.
    Disconnected,
}

impl ConsumerProxy {
    pub(crate) fn new(core: Arc<ChannelCore>, number: u64) -> Self {
        Self {
            core,
            number,
            state: Mutex::new(ProxyState::Unconnected),
        }
    }

    fn consumer(&self) -> Result<Arc<Consumer>, SystemException> {
        match &*self.state.lock() {
            ProxyState::Connected { consumer, .. } => Ok(Arc::clone(consumer)),
            ProxyState::Unconnected => Err(local::NOT_CONNECTED),
            // The keeper may not have deactivated the proxy yet.
            ProxyState::Disconnected => Err(local::PROXY_GONE),
        }
    }
}

impl ProxyPushSupplierServant for ConsumerProxy {
    /// A second call with the same consumer changes its subscription: TypeError if that belongs to another lane. A call with another
    /// consumer is AlreadyConnected.
    fn connect_push_consumer(
        &self,
        consumer: Option<&PushConsumer>,
        qos: &ConsumerQos,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let consumer = consumer.ok_or(local::NIL_ARGUMENT)?;
        let mut state = self.state.lock();
        let connected = match &*state {
            ProxyState::Unconnected => None,
            ProxyState::Connected {
                consumer: connected,
                reference,
            } if reference == consumer => Some(connected),
            ProxyState::Connected { .. } => return Err(AlreadyConnected.into()),
            ProxyState::Disconnected => {
                return Err(local::PROXY_GONE.into());
            }
        };
        let request = self.core.subscription(qos).map_err(|error| match error {
            SubscriptionError::TooManyEntries { .. } => local::TOO_MANY_ENTRIES.into(),
            _ => ProxyPushSupplierConnectPushConsumerError::from(TypeError),
        })?;
        if let Some(connected) = connected {
            return self.core.resubscribe_consumer(connected, request);
        }
        let connection = RemoteConsumer::new(consumer, self.core.config().ping_timeout)?;
        let connected = (self.core).connect_consumer(self.number, request, Arc::new(connection))?;
        *state = ProxyState::Connected {
            consumer: connected,
            reference: consumer.clone(),
        };
        Ok(())
    }

    fn suspend_connection(&self) -> Result<(), SystemException> {
        self.consumer()?.suspend();
        Ok(())
    }

    fn resume_connection(&self) -> Result<(), SystemException> {
        self.consumer()?.resume();
        Ok(())
    }
}

impl PushSupplierServant for ConsumerProxy {
    /// Does not call the consumer back, as TAO's default.
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        let state = core::mem::replace(&mut *self.state.lock(), ProxyState::Disconnected);
        match state {
            ProxyState::Connected { consumer, .. } => {
                consumer.depart(Departure::Disconnected);
                self.core.forget_consumer(&consumer);
            }
            ProxyState::Unconnected => self.core.forget_unused(self.number),
            ProxyState::Disconnected => {}
        }
        Ok(())
    }
}

/// The servant of a proxy push consumer. Its skeleton is written by hand: it keeps events as bytes, where a generated one makes values.
#[derive(Debug)]
pub(crate) struct SupplierProxy {
    pub(crate) core: Arc<ChannelCore>,
    pub(crate) supplier: Arc<ChannelSupplier>,
}

impl SupplierProxy {
    /// Dispatches the events of a push.
    fn push(&self, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        match self.take(call) {
            Ok(()) => call.reply(|_| Ok(())),
            Err(exception) => {
                self.core.note_malformed();
                Err(exception)
            }
        }
    }

    /// Dispatches the events of a push, or counts them if no supplier is connected.
    fn take(&self, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        if !self.supplier.is_connected() {
            let events = call.arguments().count(Event::BYTES_MIN)?;
            self.core.note_not_connected(events as u64);
            return Ok(());
        }
        self.supplier.note_response(coarse_monotonic_ns());
        let priority = self.core.caller_priority();
        event::read(call.arguments(), |event| {
            self.core.dispatch(&event, priority)
        })?;
        Ok(())
    }

    fn connect(&self, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let supplier: Option<PushSupplier> = call.argument()?;
        let qos: SupplierQos = call.argument()?;
        if qos.publications.len() > self.core.config().entries_max {
            return Err(local::TOO_MANY_ENTRIES);
        }
        let connected = (self.core).connect_supplier(&self.supplier, supplier.as_ref(), qos);
        match connected {
            Ok(()) => call.reply(|_| Ok(())),
            Err(ConnectSupplierError::AlreadyConnected(already)) => call.raise(&already),
            Err(ConnectSupplierError::System(exception)) => Err(exception),
        }
    }
}

impl ServedBy<SupplierProxy> for ProxyPushConsumer {
    fn find_operation(name: &[u8]) -> Option<usize> {
        static TABLE: OperationTable<3, 1, 16> =
            OperationTable::new(["push", "disconnect_push_consumer", "connect_push_supplier"]);
        TABLE.find(name)
    }

    fn dispatch(
        proxy: &SupplierProxy,
        operation: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            0 => proxy.push(call),
            1 => {
                proxy.core.forget_supplier(proxy.supplier.number());
                call.reply(|_| Ok(()))
            }
            2 => proxy.connect(call),
            _ => Err(unknown_operation()),
        }
    }
}
