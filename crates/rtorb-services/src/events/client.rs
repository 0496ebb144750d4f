//! The two ends of a channel, for programs: a supplier that pushes, and a receiver from which events are taken.

mod inbox;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use inbox::Inbox;
use rtorb::any::Any;
use rtorb::codegen::{OperationTable, ServedBy, ServerCall, unknown_operation};
use rtorb::{ExceptionKind, Interface, ObjectRef, Orb, Poa, PoaError, SystemException};

use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, EventChannel, ProxyPushConsumer, ProxyPushConsumerConnectPushSupplierError,
    ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError, SupplierQos,
};
use crate::stubs::rtec_event::rtec_event_comm::{
    Event, EventData, EventHeader, PushConsumer, PushSupplier, PushSupplierServant,
};

/// Why a program is not connected to a channel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A call to the channel, or of this program's own ORB, failed.
    #[error(transparent)]
    System(#[from] SystemException),
    /// The object that the channel is to call could not be made.
    #[error(transparent)]
    Poa(#[from] PoaError),
    /// The proxy that the channel gave out has somebody already: the channel is wrong.
    #[error("the channel gave out a proxy that is in use")]
    AlreadyConnected,
    /// The channel does not understand the subscription.
    #[error("the channel refuses the subscription (TypeError): its filters do not know it")]
    TypeError,
    /// The channel answered a nil reference where a proxy or an administration is due.
    #[error("the channel answered a nil reference")]
    Nil,
}

/// A supplier of a channel.
///
/// It is disconnected when it is dropped, as far as the channel answers.
#[derive(Debug)]
pub struct Supplier {
    proxy: ProxyPushConsumer,
    told: Option<Told<PushSupplier>>,
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
        let object: PushSupplier = poa.activate(SupplierEnd(Arc::clone(&was_disconnected)))?;
        let told = Told {
            poa: poa.clone(),
            object,
            was_disconnected,
        };
        Self::through(channel, Some(told), qos)
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
        self.told.as_ref().is_some_and(Told::was_disconnected)
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
        told: Option<Told<PushSupplier>>,
        qos: &SupplierQos,
    ) -> Result<Self, ConnectError> {
        let object = told.as_ref().map(|told| &told.object);
        let proxy = connect_supplier(channel, object, qos)?;
        Ok(Self {
            proxy,
            told,
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

/// A consumer of a channel, from whose queue a thread takes the events.
///
/// It is disconnected when it is dropped, as far as the channel answers.
#[derive(Debug)]
pub struct Receiver {
    proxy: ProxyPushSupplier,
    inbox: Arc<Inbox>,
    told: Told<PushConsumer>,
    is_connected: bool,
}

/// An event, and when it came; made anew, it is an empty one.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// What came.
    pub event: Event,
    /// When, of CLOCK_MONOTONIC in nanoseconds.
    pub arrived_ns: u64,
    /// How many events the channel pushed together with it, and it among them: more than 1 where all events of a
    /// conjunction come together.
    pub together: usize,
}

impl Default for Arrival {
    fn default() -> Self {
        Self {
            event: Event {
                header: EventHeader {
                    r#type: 0,
                    source: 0,
                    ttl: 0,
                    creation_time: 0,
                    ec_recv_time: 0,
                    ec_send_time: 0,
                },
                data: EventData {
                    pad1: 0,
                    payload: Vec::new(),
                    any_value: Any::NULL,
                },
            },
            arrived_ns: 0,
            together: 0,
        }
    }
}

/// What a receiver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// An event, which is in the caller's arrival now.
    Event,
    /// None came until then.
    Nothing,
    /// None will come: the channel has disconnected the receiver.
    Disconnected,
}

impl Receiver {
    /// Connects with an object of `poa`, whose ORB must serve. At most `events_max` events wait to be taken; of others it is
    /// counted that they were missed.
    ///
    /// # Errors
    /// What the channel or the adapter answered.
    pub fn connect(
        channel: &EventChannel,
        poa: &Poa,
        qos: &ConsumerQos,
        events_max: usize,
    ) -> Result<Self, ConnectError> {
        let inbox = Arc::new(Inbox::new(events_max));
        let was_disconnected = Arc::new(AtomicBool::new(false));
        let object: PushConsumer = poa.activate(ReceiverEnd {
            inbox: Arc::clone(&inbox),
            was_disconnected: Arc::clone(&was_disconnected),
        })?;
        let told = Told {
            poa: poa.clone(),
            object,
            was_disconnected,
        };
        let proxy = connect_consumer(channel, &told.object, qos)?;
        Ok(Self {
            proxy,
            inbox,
            told,
            is_connected: true,
        })
    }

    /// Puts the next event in the place of `arrival`, at the latest at `deadline_ns` of CLOCK_MONOTONIC.
    ///
    /// The memory of what was there takes an event that comes later: a receiver that has had its largest event and its longest
    /// queue makes no heap call any more, nor does the thread that serves it, for events of up to 64 KiB whose any is of a
    /// type without parameters (nothing, numbers).
    pub fn next(&self, arrival: &mut Arrival, deadline_ns: u64) -> Received {
        let was_disconnected = &self.told.was_disconnected;
        self.inbox.take(arrival, deadline_ns, was_disconnected)
    }

    /// Events that came while the queue was full, and are gone.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.inbox.missed()
    }

    /// Has the channel send nothing until [`resume`](Self::resume); what comes meanwhile is lost.
    ///
    /// # Errors
    /// What kept the channel from taking note.
    pub fn suspend(&self) -> Result<(), SystemException> {
        self.proxy.suspend_connection()
    }

    /// Has the channel send again.
    ///
    /// # Errors
    /// What kept the channel from taking note.
    pub fn resume(&self) -> Result<(), SystemException> {
        self.proxy.resume_connection()
    }

    /// Asks the channel whether it still has this receiver.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST when it has not; otherwise what kept it from answering.
    pub fn is_served(&self) -> Result<(), SystemException> {
        is_there(self.proxy.as_object())
    }

    /// Disconnects.
    ///
    /// # Errors
    /// What kept the channel from taking note.
    pub fn disconnect(mut self) -> Result<(), SystemException> {
        self.is_connected = false;
        self.proxy.disconnect_push_supplier()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if self.is_connected && !self.told.was_disconnected() {
            let _ = self.proxy.disconnect_push_supplier();
        }
    }
}

/// The channel that an object is, asked if its reference does not tell.
///
/// # Errors
/// That it is none, or cannot be asked.
pub fn channel(object: &ObjectRef) -> Result<EventChannel, SystemException> {
    EventChannel::narrow(object)
}

/// The channel of a `REF`-like text, by this ORB.
///
/// # Errors
/// What the ORB says of the text, or the object of itself.
pub fn channel_of(orb: &Orb, text: &str) -> Result<EventChannel, SystemException> {
    channel(&orb.string_to_object(text)?)
}

/// Obtains a proxy and connects to it.
pub(crate) fn connect_supplier(
    channel: &EventChannel,
    supplier: Option<&PushSupplier>,
    qos: &SupplierQos,
) -> Result<ProxyPushConsumer, ConnectError> {
    let admin = channel.for_suppliers()?.ok_or(ConnectError::Nil)?;
    let proxy = admin.obtain_push_consumer()?.ok_or(ConnectError::Nil)?;
    let Err(error) = proxy.connect_push_supplier(supplier, qos) else {
        return Ok(proxy);
    };
    // A proxy that nobody uses would count against the channel's bound.
    let _ = proxy.disconnect_push_consumer();
    Err(match error {
        ProxyPushConsumerConnectPushSupplierError::System(exception) => exception.into(),
        ProxyPushConsumerConnectPushSupplierError::AlreadyConnected(_) => {
            ConnectError::AlreadyConnected
        }
    })
}

/// Obtains a proxy and connects to it.
pub(crate) fn connect_consumer(
    channel: &EventChannel,
    consumer: &PushConsumer,
    qos: &ConsumerQos,
) -> Result<ProxyPushSupplier, ConnectError> {
    let admin = channel.for_consumers()?.ok_or(ConnectError::Nil)?;
    let proxy = admin.obtain_push_supplier()?.ok_or(ConnectError::Nil)?;
    let Err(error) = proxy.connect_push_consumer(Some(consumer), qos) else {
        return Ok(proxy);
    };
    let _ = proxy.disconnect_push_supplier();
    Err(consumer_refused(error))
}

/// What a channel says of a subscription.
pub(crate) fn consumer_refused(error: ProxyPushSupplierConnectPushConsumerError) -> ConnectError {
    match error {
        ProxyPushSupplierConnectPushConsumerError::System(exception) => exception.into(),
        ProxyPushSupplierConnectPushConsumerError::AlreadyConnected(_) => {
            ConnectError::AlreadyConnected
        }
        ProxyPushSupplierConnectPushConsumerError::TypeError(_) => ConnectError::TypeError,
    }
}

/// OBJECT_NOT_EXIST when an object says that it is no more; otherwise what kept it from answering.
pub(crate) fn is_there(object: &ObjectRef) -> Result<(), SystemException> {
    match object.non_existent()? {
        true => Err(ExceptionKind::ObjectNotExist.into()),
        false => Ok(()),
    }
}

/// An object of ours that the channel calls; it ends with its owner.
#[derive(Debug)]
struct Told<I: Interface> {
    poa: Poa,
    object: I,
    was_disconnected: Arc<AtomicBool>,
}

impl<I: Interface> Told<I> {
    fn was_disconnected(&self) -> bool {
        self.was_disconnected.load(Ordering::Acquire)
    }
}

impl<I: Interface> Drop for Told<I> {
    fn drop(&mut self) {
        // An adapter that is destroyed has ended it already.
        let _ = self.poa.deactivate(self.object.as_object());
    }
}

struct SupplierEnd(Arc<AtomicBool>);

impl PushSupplierServant for SupplierEnd {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.0.store(true, Ordering::Release);
        Ok(())
    }
}

struct ReceiverEnd {
    inbox: Arc<Inbox>,
    was_disconnected: Arc<AtomicBool>,
}

/// Written by hand, since it reads events into memory that goes round, where a generated one makes values.
impl ServedBy<ReceiverEnd> for PushConsumer {
    fn find_operation(name: &[u8]) -> Option<usize> {
        static TABLE: OperationTable<2, 8> =
            OperationTable::new(["push", "disconnect_push_consumer"]);
        TABLE.find(name)
    }

    fn dispatch(
        end: &ReceiverEnd,
        operation: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            0 => end.inbox.put(call.arguments())?,
            1 => end.inbox.close(&end.was_disconnected),
            _ => return Err(unknown_operation()),
        }
        call.reply(|_| Ok(()))
    }
}
