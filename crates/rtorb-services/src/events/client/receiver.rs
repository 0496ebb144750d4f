//! A program that receives events.

use core::sync::atomic::AtomicBool;
use rtorb::codegen::{OperationTable, ServedBy, ServerCall, unknown_operation};
use rtorb::{Poa, SystemException};
use std::sync::Arc;

use super::connect::{CallbackObject, ConnectError, connect_consumer, is_there};
use super::inbox::{Arrival, Inbox, Received};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, EventChannel, ProxyPushSupplier,
};
use crate::stubs::rtec_event::rtec_event_comm::PushConsumer;

/// A consumer of a channel, from whose queue a thread takes the events.
///
/// It is disconnected when it is dropped, as far as the channel answers.
#[derive(Debug)]
pub struct Receiver {
    proxy: ProxyPushSupplier,
    inbox: Arc<Inbox>,
    callback: CallbackObject<PushConsumer>,
    is_connected: bool,
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

    /// Puts the next event in the place of `arrival`, at the latest at `deadline_ns` of CLOCK_MONOTONIC.
    ///
    /// The memory of what was there takes an event that comes later: a receiver that has had its largest event and its longest
    /// queue makes no heap call any more, nor does the thread that serves it, for events of up to 64 KiB whose any is of a
    /// type without parameters (nothing, numbers).
    pub fn next(&self, arrival: &mut Arrival, deadline_ns: u64) -> Received {
        let was_disconnected = &self.callback.was_disconnected;
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
        if self.is_connected && !self.callback.was_disconnected() {
            let _ = self.proxy.disconnect_push_supplier();
        }
    }
}

struct ReceiverServant {
    inbox: Arc<Inbox>,
    was_disconnected: Arc<AtomicBool>,
}

/// Written by hand, since it reads events into memory that goes round, where a generated one makes values.
impl ServedBy<ReceiverServant> for PushConsumer {
    fn find_operation(name: &[u8]) -> Option<usize> {
        static TABLE: OperationTable<2, 8> =
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
