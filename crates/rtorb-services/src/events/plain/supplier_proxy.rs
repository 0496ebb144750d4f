//! The proxy of a plain supplier: it sends pushed events to the channel.

use std::sync::{Arc, OnceLock};

use rtorb::any::Any;
use rtorb::exception::local;
use rtorb::{ObjectRef, SystemException};

use super::core::{PlainCore, deactivate, refused};
use crate::stubs::cos_event::cos_event_channel_admin::{
    AlreadyConnected, ProxyPushConsumer, ProxyPushConsumerConnectPushSupplierError,
    ProxyPushConsumerServant,
};
use crate::stubs::cos_event::cos_event_comm::{
    Disconnected, PushConsumerPushError, PushConsumerServant, PushSupplier,
};

/// Makes an unconnected proxy.
pub(super) fn activate(core: &Arc<PlainCore>) -> Result<ProxyPushConsumer, SystemException> {
    let number = core.admit_supplier()?;
    let object = Arc::new(OnceLock::new());
    let proxy = Proxy {
        core: Arc::clone(core),
        number,
        object: Arc::clone(&object),
    };
    let activated = core.poa().activate(proxy);
    let reference: ProxyPushConsumer = activated.map_err(|error| {
        core.end_supplier(number);
        refused(error)
    })?;
    object.get_or_init(|| reference.as_object().clone());
    Ok(reference)
}

struct Proxy {
    core: Arc<PlainCore>,
    number: u64,
    /// The proxy's own object, to deactivate it.
    object: Arc<OnceLock<ObjectRef>>,
}

impl PushConsumerServant for Proxy {
    fn push(&self, data: &Any) -> Result<(), PushConsumerPushError> {
        if !self.core.is_connected_supplier(self.number) {
            return Err(Disconnected.into());
        }
        Ok(self.core.push(data)?)
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.core.end_supplier(self.number);
        deactivate(self.core.poa(), self.object.get());
        Ok(())
    }
}

impl ProxyPushConsumerServant for Proxy {
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
