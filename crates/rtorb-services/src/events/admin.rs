//! The servants of a channel and of its administrations, which make the proxies.

use super::channel_core::ChannelCore;
use super::proxies::{ConsumerProxy, SupplierProxy};
use crate::stubs::rtec_event::rtec_event_channel_admin::event_channel::{
    CantAppendObserver, CantRemoveObserver,
};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerAdmin, ConsumerAdminServant, EventChannelAppendObserverError,
    EventChannelRemoveObserverError, EventChannelServant, Observer, ProxyPushConsumer,
    ProxyPushSupplier, SupplierAdmin, SupplierAdminServant,
};
use rtorb::exception::local;
use rtorb::{PoaError, SystemException};
use std::sync::Arc;

/// The servant of the channel itself.
#[derive(Debug)]
pub(crate) struct ChannelServant {
    pub(crate) core: Arc<ChannelCore>,
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

    /// The keeper ends the channel, so the caller need not wait until all clients are notified.
    fn destroy(&self) -> Result<(), SystemException> {
        self.core.end();
        Ok(())
    }

    fn append_observer(
        &self,
        observer: Option<&Observer>,
    ) -> Result<u32, EventChannelAppendObserverError> {
        let observer = observer.ok_or(CantAppendObserver)?;
        let handle = self.core.observers().append(observer.clone());
        let handle = handle.ok_or(CantAppendObserver)?;
        self.core.note_change();
        Ok(handle)
    }

    fn remove_observer(&self, handle: u32) -> Result<(), EventChannelRemoveObserverError> {
        if self.core.observers().remove(handle) {
            return Ok(());
        }
        Err(CantRemoveObserver.into())
    }
}

/// The servant of the administration of consumers.
#[derive(Debug)]
pub(crate) struct ForConsumers(pub(crate) Arc<ChannelCore>);

impl ConsumerAdminServant for ForConsumers {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplier>, SystemException> {
        let core = &self.0;
        let made = core
            .open_registry()?
            .add_consumer(core.config().consumers_max, |number| {
                let proxy = ConsumerProxy::new(Arc::clone(core), number);
                let proxy: ProxyPushSupplier = core.poa().activate(proxy).map_err(exception)?;
                Ok(proxy.as_object().clone())
            })?;
        Ok(Some(ProxyPushSupplier::unchecked_narrow(made)))
    }
}

/// The servant of the administration of suppliers.
#[derive(Debug)]
pub(crate) struct ForSuppliers(pub(crate) Arc<ChannelCore>);

impl SupplierAdminServant for ForSuppliers {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumer>, SystemException> {
        let core = &self.0;
        let made = core
            .open_registry()?
            .add_supplier(core.config().suppliers_max, |supplier| {
                let proxy = SupplierProxy {
                    core: Arc::clone(core),
                    supplier: Arc::clone(supplier),
                };
                let proxy: ProxyPushConsumer = core.poa().activate(proxy).map_err(exception)?;
                Ok(proxy.as_object().clone())
            })?;
        Ok(Some(ProxyPushConsumer::unchecked_narrow(made)))
    }
}

/// The exception of a client for an error of the adapter.
fn exception(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        _ => local::NOT_ACTIVATED,
    }
}
