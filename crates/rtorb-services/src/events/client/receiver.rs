//! A program that receives events.

use core::sync::atomic::AtomicBool;
use rtorb::skeleton::{OperationTable, ServedBy, ServerCall, unknown_operation};
use rtorb::{Poa, SystemException};
use std::sync::Arc;

use super::connect::{CallbackObject, ConnectError, connect_consumer, is_there};
use super::inbox::{Arrival, Inbox, Received};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, EventChannel, ProxyPushSupplier,
};
use crate::stubs::rtec_event::rtec_event_comm::PushConsumer;

/// A consumer of a channel with a queue, from which a thread takes the events.
///
/// Its calls have the timeout of the channel's reference. Dropping it disconnects it, if the channel answers in that time.
#[derive(Debug)]
pub struct Receiver {
    proxy: ProxyPushSupplier,
    inbox: Arc<Inbox>,
    callback: CallbackObject<PushConsumer>,
    is_connected: bool,
}

impl Receiver {
    /// Connects with an object in `poa`, whose ORB must serve. At most `events_max` events wait in the queue;
    /// [`missed`](Self::missed) counts the others.
    ///
    /// # Errors
    /// The answer of the channel or of the adapter.
    pub fn connect(
        channel: &EventChannel,
        poa: &Poa,
        qos: &ConsumerQos,
        events_max: usize,
    ) -> Result<Self, ConnectError> {
        let inbox = Arc::new(Inbox::new(events_max));
        let was_disconnected = Arc::new(AtomicBool::new(false));
        let object: PushConsumer = poa.activate(ReceiverServant {
            inbox: Arc::clone(&inbox),
            was_disconnected: Arc::clone(&was_disconnected),
        })?;
        let callback = CallbackObject {
            poa: poa.clone(),
            object,
            was_disconnected,
        };
        let proxy = connect_consumer(channel, &callback.object, qos)?;
        Ok(Self {
            proxy,
            inbox,
            callback,
            is_connected: true,
        })
    }

    /// Replaces `arrival` with the next event. Waits for one until `deadline_ns` of CLOCK_MONOTONIC.
    ///
    /// Later events reuse the memory of `arrival`. Once a receiver has had its largest event and its longest queue, it and the
    /// thread that serves it make no heap calls, for events of up to 64 KiB whose any has a type without parameters (none,
    /// numbers).
    pub fn next(&self, arrival: &mut Arrival, deadline_ns: u64) -> Received {
        let was_disconnected = &self.callback.was_disconnected;
        self.inbox.take(arrival, deadline_ns, was_disconnected)
    }

    /// Events that were lost because the queue was full.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.inbox.missed()
    }

    /// Asks the channel to discard the receiver's events until [`resume`](Self::resume).
    ///
    /// # Errors
    /// If the channel cannot be reached.
    pub fn suspend(&self) -> Result<(), SystemException> {
        self.proxy.suspend_connection()
    }

    /// Ends a [`suspend`](Self::suspend).
    ///
    /// # Errors
    /// If the channel cannot be reached.
    pub fn resume(&self) -> Result<(), SystemException> {
        self.proxy.resume_connection()
    }

    /// Asks whether the channel still serves this receiver.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if it does not; another exception if the channel does not answer.
    pub fn is_served(&self) -> Result<(), SystemException> {
        is_there(self.proxy.as_object())
    }

    /// Disconnects.
    ///
    /// # Errors
    /// If the channel cannot be reached.
    pub fn disconnect(mut self) -> Result<(), SystemException> {
        self.is_connected = false;
        self.proxy.disconnect_push_supplier()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if self.is_connected && !self.callback.was_disconnected() {
            let _ = self.proxy.disconnect_push_supplier();
        }
    }
}

struct ReceiverServant {
    inbox: Arc<Inbox>,
    was_disconnected: Arc<AtomicBool>,
}

/// Written by hand: it decodes events into reused memory, where a generated skeleton makes new values.
impl ServedBy<ReceiverServant> for PushConsumer {
    fn find_operation(name: &[u8]) -> Option<usize> {
        static TABLE: OperationTable<2, 1, 8> =
            OperationTable::new(["push", "disconnect_push_consumer"]);
        TABLE.find(name)
    }

    fn dispatch(
        servant: &ReceiverServant,
        operation: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            0 => servant.inbox.put(call.arguments())?,
            1 => servant.inbox.close(&servant.was_disconnected),
            _ => return Err(unknown_operation()),
        }
        call.reply(|_| Ok(()))
    }
}
