//! Connecting to a channel as a supplier or a consumer.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use rtorb::exception::local;
use rtorb::{Interface, ObjectRef, Orb, Poa, PoaError, SystemException, without_deadline};
use std::sync::Arc;

use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, EventChannel, ProxyPushConsumer, ProxyPushConsumerConnectPushSupplierError,
    ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError, SupplierQos,
};
use crate::stubs::rtec_event::rtec_event_comm::{PushConsumer, PushSupplier};

/// Why a program could not connect to a channel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A call to the channel, or to this program's own ORB, failed.
    #[error(transparent)]
    System(#[from] SystemException),
    /// The object for the channel's calls could not be made.
    #[error(transparent)]
    Poa(#[from] PoaError),
    /// The channel returned a proxy that is in use: an error of the channel.
    #[error("the channel returned a proxy that is in use: report this to its operator")]
    AlreadyConnected,
    /// The channel refuses the subscription.
    #[error(
        "the channel refuses the subscription (TypeError): check the entries and the form of its filter, and that no time is shorter than \
         the channel allows (100 us by default)"
    )]
    TypeError,
    /// The channel accepts no observer, or no more of them.
    #[error(
        "the channel accepts no observer (CANT_APPEND_OBSERVER), which a gateway needs: a channel of TAO accepts them if its \
         configuration has `-ECObserver basic`; another may have too many already"
    )]
    NoObserver,
    /// The channel returned a nil reference instead of a proxy or an administration.
    #[error("the channel returned a nil reference")]
    Nil,
}

/// Narrows an object to a channel; asks the object if its reference does not tell.
///
/// # Errors
/// If it is not a channel or cannot be reached.
pub fn channel(object: &ObjectRef) -> Result<EventChannel, SystemException> {
    EventChannel::narrow(object)
}

/// The channel of a stringified reference.
///
/// # Errors
/// If the text is not a reference, or as [`channel`].
pub fn channel_of(orb: &Orb, text: &str) -> Result<EventChannel, SystemException> {
    channel(&orb.string_to_object(text)?)
}

/// Obtains a proxy, which gets the timeout of the channel's reference, and connects to it, all within the timeout of one call. If it cannot
/// connect, it [discards](discard_push_consumer) the proxy.
pub(crate) fn connect_supplier(
    channel: &EventChannel,
    supplier: Option<&PushSupplier>,
    qos: &SupplierQos,
) -> Result<ProxyPushConsumer, ConnectError> {
    channel.as_object().within_timeout(|| {
        let admin = channel.for_suppliers()?.ok_or(ConnectError::Nil)?;
        let proxy = admin.obtain_push_consumer()?.ok_or(ConnectError::Nil)?;
        let proxy = proxy.as_object().with_timeout_of(channel.as_object());
        let proxy = ProxyPushConsumer::unchecked_narrow(proxy);
        let Err(error) = proxy.connect_push_supplier(supplier, qos) else {
            return Ok(proxy);
        };
        discard_push_consumer(&proxy);
        Err(match error {
            ProxyPushConsumerConnectPushSupplierError::System(exception) => exception.into(),
            ProxyPushConsumerConnectPushSupplierError::AlreadyConnected(_) => {
                ConnectError::AlreadyConnected
            }
        })
    })
}

/// Obtains a proxy, which gets the timeout of the channel's reference, and connects to it, all within the timeout of one call. If it cannot
/// connect, it [discards](discard_push_supplier) the proxy.
pub(crate) fn connect_consumer(
    channel: &EventChannel,
    consumer: &PushConsumer,
    qos: &ConsumerQos,
) -> Result<ProxyPushSupplier, ConnectError> {
    channel.as_object().within_timeout(|| {
        let admin = channel.for_consumers()?.ok_or(ConnectError::Nil)?;
        let proxy = admin.obtain_push_supplier()?.ok_or(ConnectError::Nil)?;
        let proxy = proxy.as_object().with_timeout_of(channel.as_object());
        let proxy = ProxyPushSupplier::unchecked_narrow(proxy);
        let Err(error) = proxy.connect_push_consumer(Some(consumer), qos) else {
            return Ok(proxy);
        };
        discard_push_supplier(&proxy);
        Err(consumer_refused(error))
    })
}

/// Disconnects a proxy that nobody uses, also if the channel connects it late: it would count against the channel's limit, and no ping
/// finds a supplier without an object.
///
/// The deadline of the caller may have passed, so the call has a time of its own, [`DISCARD_TIMEOUT`]. A channel that begins no call within that
/// time keeps the proxy.
pub(crate) fn discard_push_consumer(proxy: &ProxyPushConsumer) {
    let proxy = proxy.with_timeout(DISCARD_TIMEOUT);
    let _ = without_deadline(|| proxy.disconnect_push_consumer());
}

/// Disconnects a proxy that nobody uses, in the same way.
fn discard_push_supplier(proxy: &ProxyPushSupplier) {
    let proxy = proxy.with_timeout(DISCARD_TIMEOUT);
    let _ = without_deadline(|| proxy.disconnect_push_supplier());
}

/// The timeout of the call that disconnects an unused proxy: the longest time that a failed attempt to connect takes beyond its own.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(250);

/// Converts a channel's answer to a subscription.
pub(crate) fn consumer_refused(error: ProxyPushSupplierConnectPushConsumerError) -> ConnectError {
    match error {
        ProxyPushSupplierConnectPushConsumerError::System(exception) => exception.into(),
        ProxyPushSupplierConnectPushConsumerError::AlreadyConnected(_) => {
            ConnectError::AlreadyConnected
        }
        ProxyPushSupplierConnectPushConsumerError::TypeError(_) => ConnectError::TypeError,
    }
}

/// Asks whether an object exists: OBJECT_NOT_EXIST if it does not, another exception if it cannot be reached.
pub(crate) fn is_there(object: &ObjectRef) -> Result<(), SystemException> {
    if object.non_existent()? {
        Err(local::OBJECT_GONE)
    } else {
        Ok(())
    }
}

/// An object of this program that the channel calls. Dropping it deactivates the object.
#[derive(Debug)]
pub(super) struct CallbackObject<I: Interface<Object = ObjectRef>> {
    pub(super) poa: Poa,
    pub(super) object: I,
    pub(super) was_disconnected: Arc<AtomicBool>,
}

impl<I: Interface<Object = ObjectRef>> CallbackObject<I> {
    pub(super) fn was_disconnected(&self) -> bool {
        self.was_disconnected.load(Ordering::Acquire)
    }
}

impl<I: Interface<Object = ObjectRef>> Drop for CallbackObject<I> {
    fn drop(&mut self) {
        // It fails if the adapter is destroyed, and the object with it.
        let _ = self.poa.deactivate(self.object.as_object());
    }
}
