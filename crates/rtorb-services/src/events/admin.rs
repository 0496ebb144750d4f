//! The servants of a channel that are asked for proxies, and the proxy that a consumer connects to.

use super::consumer::{Consumer, Departure};
use super::filter::SubscriptionError;
use super::hub::Hub;
use super::outlet::Remote;
use super::supplier::SupplierProxy;
use crate::stubs::rtec_event::rtec_event_channel_admin::event_channel::{
    CantAppendObserver, CantRemoveObserver,
};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    AlreadyConnected, ConsumerAdmin, ConsumerAdminServant, ConsumerQos,
    EventChannelAppendObserverError, EventChannelRemoveObserverError, EventChannelServant,
    Observer, ProxyPushConsumer, ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError,
    ProxyPushSupplierServant, SupplierAdmin, SupplierAdminServant, TypeError,
};
use crate::stubs::rtec_event::rtec_event_comm::{PushConsumer, PushSupplierServant};
use rtorb::{ExceptionKind, PoaError, SystemException};
use rtorb_os::sync::Mutex;
use std::sync::Arc;

/// The servant of the channel itself.
#[derive(Debug)]
pub(crate) struct ChannelServant {
    pub(crate) hub: Arc<Hub>,
    pub(crate) consumers: ConsumerAdmin,
    pub(crate) suppliers: SupplierAdmin,
}

impl EventChannelServant for ChannelServant {
    fn for_consumers(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        Ok(Some(self.consumers.clone()))
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        Ok(Some(self.suppliers.clone()))
    }

    /// The keeper ends the channel: whoever asks need not wait until everybody is told.
    fn destroy(&self) -> Result<(), SystemException> {
        self.hub.end();
        Ok(())
    }

    fn append_observer(
        &self,
        observer: Option<&Observer>,
    ) -> Result<u32, EventChannelAppendObserverError> {
        let observer = observer.ok_or(CantAppendObserver)?;
        let handle = self.hub.observers().append(observer.clone());
        let handle = handle.ok_or(CantAppendObserver)?;
        self.hub.note_change();
        Ok(handle)
    }

    fn remove_observer(&self, handle: u32) -> Result<(), EventChannelRemoveObserverError> {
        match self.hub.observers().remove(handle) {
            true => Ok(()),
            false => Err(CantRemoveObserver.into()),
        }
    }
}

/// The servant that consumers get their proxies from.
#[derive(Debug)]
pub(crate) struct ForConsumers(pub(crate) Arc<Hub>);

impl ConsumerAdminServant for ForConsumers {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplier>, SystemException> {
        let hub = &self.0;
        let made = hub
            .registry()
            .lock()
            .add_consumer(hub.config().consumers_max, |number| {
                let proxy = ConsumerProxy {
                    hub: Arc::clone(hub),
                    number,
                    seat: Mutex::new(Seat::Free),
                };
                let proxy: ProxyPushSupplier = hub.poa().activate(proxy).map_err(exception)?;
                Ok(proxy.as_object().clone())
            })?;
        Ok(Some(ProxyPushSupplier::unchecked_narrow(made)))
    }
}

/// The servant that suppliers get their proxies from.
#[derive(Debug)]
pub(crate) struct ForSuppliers(pub(crate) Arc<Hub>);

impl SupplierAdminServant for ForSuppliers {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumer>, SystemException> {
        let hub = &self.0;
        let made = hub
            .registry()
            .lock()
            .add_supplier(hub.config().suppliers_max, |supplier| {
                let proxy = SupplierProxy {
                    hub: Arc::clone(hub),
                    supplier: Arc::clone(supplier),
                };
                let proxy: ProxyPushConsumer = hub.poa().activate(proxy).map_err(exception)?;
                Ok(proxy.as_object().clone())
            })?;
        Ok(Some(ProxyPushConsumer::unchecked_narrow(made)))
    }
}

/// The servant of a proxy push supplier.
#[derive(Debug)]
pub(crate) struct ConsumerProxy {
    hub: Arc<Hub>,
    number: u64,
    seat: Mutex<Seat>,
}

/// Who is connected to a proxy.
#[derive(Debug)]
enum Seat {
    Free,
    Taken(Arc<Consumer>, PushConsumer),
    /// Nobody any more, and nobody else.
    Over,
}

impl ConsumerProxy {
    fn consumer(&self) -> Result<Arc<Consumer>, SystemException> {
        match &*self.seat.lock() {
            Seat::Taken(consumer, _) => Ok(Arc::clone(consumer)),
            Seat::Free | Seat::Over => Err(ExceptionKind::BadInvOrder.into()),
        }
    }
}

impl ProxyPushSupplierServant for ConsumerProxy {
    /// A second time changes the subscription of the same consumer, TypeError if another lane would serve it then; another
    /// consumer's is AlreadyConnected.
    fn connect_push_consumer(
        &self,
        consumer: Option<&PushConsumer>,
        qos: &ConsumerQos,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let consumer = consumer.ok_or(SystemException::from(ExceptionKind::BadParam))?;
        let mut seat = self.seat.lock();
        let connected = match &*seat {
            Seat::Free => None,
            Seat::Taken(connected, same) if same == consumer => Some(connected),
            Seat::Taken(..) => return Err(AlreadyConnected.into()),
            Seat::Over => return Err(SystemException::from(ExceptionKind::ObjectNotExist).into()),
        };
        let subscription = self.hub.subscription(qos).map_err(|error| match error {
            SubscriptionError::TooManyEntries { .. } => {
                SystemException::from(ExceptionKind::ImpLimit).into()
            }
            _ => ProxyPushSupplierConnectPushConsumerError::from(TypeError),
        })?;
        let wanted = (subscription, qos.is_gateway);
        if let Some(connected) = connected {
            return self.hub.resubscribe_consumer(connected, wanted);
        }
        let outlet = Remote::new(consumer.as_object(), self.hub.config().ping_timeout)?;
        let connected = self
            .hub
            .connect_consumer(self.number, wanted, Arc::new(outlet))?;
        *seat = Seat::Taken(connected, consumer.clone());
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
    /// The consumer is not called back: it knows (as with TAO's default).
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        let seat = core::mem::replace(&mut *self.seat.lock(), Seat::Over);
        match seat {
            Seat::Taken(consumer, _) => {
                consumer.depart(Departure::Disconnected);
                self.hub.forget_consumer(&consumer);
            }
            Seat::Free => self.hub.forget_unused(self.number),
            Seat::Over => {}
        }
        Ok(())
    }
}

/// What the adapter said, for a client.
fn exception(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        _ => ExceptionKind::ObjAdapter.into(),
    }
}
