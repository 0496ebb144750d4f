//! The proxy of a plain supplier: it sends pushed events to the channel.

use std::sync::Arc;

use rtorb::SystemException;
use rtorb::any::Any;
use rtorb::exception::local;

use super::channel_core::{PlainCore, refused};
use crate::stubs::cos_event::cos_event_channel_admin::{
    AlreadyConnected, ProxyPushConsumer, ProxyPushConsumerConnectPushSupplierError,
    ProxyPushConsumerServant,
};
use crate::stubs::cos_event::cos_event_comm::{
    Disconnected, PushConsumerPushError, PushConsumerServant, PushSupplier,
};

/// Makes an unconnected proxy.
pub(super) fn activate(core: &Arc<PlainCore>) -> Result<ProxyPushConsumer, SystemException> {
    let object = core.admit_supplier(|number| {
        let proxy = PlainSupplierProxy {
            core: Arc::clone(core),
            number,
        };
        let proxy: ProxyPushConsumer = core.poa().activate(proxy).map_err(refused)?;
        Ok(proxy.as_object().clone())
    })?;
    Ok(ProxyPushConsumer::unchecked_narrow(object))
}

struct PlainSupplierProxy {
    core: Arc<PlainCore>,
    number: u64,
}

impl PushConsumerServant for PlainSupplierProxy {
    fn push(&self, data: &Any) -> Result<(), PushConsumerPushError> {
        if !self.core.note_push(self.number) {
            return Err(Disconnected.into());
        }
        Ok(self.core.push(data)?)
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.core.end_supplier(self.number);
        Ok(())
    }
}

impl ProxyPushConsumerServant for PlainSupplierProxy {
    /// A nil supplier is valid; it cannot be notified when the connection ends (CosEvent 1.2, 2.3.4).
    fn connect_push_supplier(
        &self,
        push_supplier: Option<&PushSupplier>,
    ) -> Result<(), ProxyPushConsumerConnectPushSupplierError> {
        match self
            .core
            .connect_supplier(self.number, push_supplier.cloned())
        {
            Some(true) => Ok(()),
            Some(false) => Err(AlreadyConnected.into()),
            None => Err(local::PROXY_GONE.into()),
        }
    }
}
