//! A supplier of the channel, and its proxy push consumer: events come in here.
//!
//! The skeleton is written by hand, since it hands on octets where a generated one makes values.

use super::event;
use super::hub::Hub;
use super::statistics::{Published, SupplierStatistics};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    AlreadyConnected, ProxyPushConsumer, SupplierQos,
};
use crate::stubs::rtec_event::rtec_event_comm::PushSupplier;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use rtorb::codegen::{OperationTable, ServedBy, ServerCall, unknown_operation};
use rtorb::{ExceptionKind, ObjectRef, SystemException};
use rtorb_os::clock::coarse_monotonic_ns;
use rtorb_os::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// A supplier, connected or not.
#[derive(Debug)]
pub(crate) struct Supplier {
    number: u64,
    is_connected: AtomicBool,
    heard_ns: AtomicU64,
    /// Questions in a row that were not answered.
    misses: AtomicU32,
    connection: Mutex<Option<Connection>>,
}

#[derive(Debug)]
struct Connection {
    /// Whom to ask and to tell; a supplier need not be an object.
    reference: Option<ObjectRef>,
    qos: Arc<SupplierQos>,
}

impl Supplier {
    /// One that is not connected yet.
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            is_connected: AtomicBool::new(false),
            heard_ns: AtomicU64::new(0),
            misses: AtomicU32::new(0),
            connection: Mutex::default(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Acquire)
    }

    /// Connects it; its answers may take `answer_timeout`.
    ///
    /// # Errors
    /// When it is connected already.
    pub(crate) fn connect(
        &self,
        reference: Option<&ObjectRef>,
        qos: SupplierQos,
        answer_timeout: Duration,
    ) -> Result<(), AlreadyConnected> {
        let mut connection = self.connection.lock();
        if connection.is_some() {
            return Err(AlreadyConnected);
        }
        *connection = Some(Connection {
            reference: reference.map(|it| it.with_round_trip_timeout(Some(answer_timeout))),
            qos: Arc::new(qos),
        });
        self.was_heard(coarse_monotonic_ns());
        self.is_connected.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes nothing from it any more.
    pub(crate) fn disconnect(&self) {
        self.is_connected.store(false, Ordering::Release);
        *self.connection.lock() = None;
    }

    pub(crate) fn was_heard(&self, now_ns: u64) {
        self.heard_ns.store(now_ns, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
    }

    /// Leaves it alone for a while, though it did not answer.
    pub(crate) fn was_asked(&self, now_ns: u64) {
        self.heard_ns.store(now_ns, Ordering::Relaxed);
    }

    /// When something was last heard of it, if it is one that can be asked.
    pub(crate) fn silent_since_ns(&self) -> Option<u64> {
        self.reference()
            .map(|_| self.heard_ns.load(Ordering::Relaxed))
    }

    /// Asks it, which may wait.
    pub(crate) fn is_there(&self) -> Presence {
        let Some(reference) = self.reference() else {
            return Presence::Unknown;
        };
        match reference.non_existent() {
            Ok(false) => Presence::Here,
            Ok(true) => Presence::Gone,
            Err(_) if self.misses.fetch_add(1, Ordering::Relaxed) + 1 < MISSES_MAX => {
                Presence::Unknown
            }
            Err(_) => Presence::Gone,
        }
    }

    /// Tells it that it is disconnected; may wait.
    pub(crate) fn say_goodbye(&self) {
        if let Some(reference) = self.reference() {
            // Whoever does not hear it finds out by itself.
            let _ = PushSupplier::unchecked_narrow(reference).disconnect_push_supplier();
        }
    }

    /// What it publishes, while it is connected.
    pub(crate) fn qos(&self) -> Option<Arc<SupplierQos>> {
        let connection = self.connection.lock();
        connection.as_ref().map(|it| Arc::clone(&it.qos))
    }

    /// Who it is, and what it said that it publishes.
    pub(crate) fn statistics(&self) -> SupplierStatistics {
        let qos = self.qos();
        let publications = qos.iter().flat_map(|qos| &qos.publications);
        SupplierStatistics {
            number: self.number,
            is_gateway: qos.as_ref().is_some_and(|qos| qos.is_gateway),
            publications: publications
                .map(|publication| Published {
                    source: publication.event.header.source,
                    event_type: publication.event.header.r#type,
                })
                .collect(),
        }
    }

    fn reference(&self) -> Option<ObjectRef> {
        let connection = self.connection.lock();
        connection.as_ref().and_then(|it| it.reference.clone())
    }
}

/// What is known of a supplier that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Here,
    /// It did not answer, or there is nobody to ask.
    Unknown,
    /// It does not exist, or did not answer several times in a row.
    Gone,
}

/// A supplier that cannot be reached may still send: it is dropped only when that lasts.
const MISSES_MAX: u32 = 3;

/// The servant of a proxy push consumer.
#[derive(Debug)]
pub(crate) struct SupplierProxy {
    pub(crate) hub: Arc<Hub>,
    pub(crate) supplier: Arc<Supplier>,
}

impl SupplierProxy {
    /// Takes events, which never fails for the supplier: a oneway has no answer.
    fn push(&self, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        if !self.supplier.is_connected() {
            let events = call.arguments().primitive::<u32>()?;
            self.hub.note_not_connected(u64::from(events));
            return Ok(());
        }
        self.supplier.was_heard(coarse_monotonic_ns());
        let priority = self.hub.caller_priority();
        let read = event::read(call.arguments(), |event| {
            self.hub.dispatch(&event, priority)
        });
        match read {
            Ok(_) => call.reply(|_| Ok(())),
            Err(exception) => {
                self.hub.note_malformed();
                Err(exception)
            }
        }
    }

    fn connect(&self, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let supplier: Option<PushSupplier> = call.argument()?;
        let qos: SupplierQos = call.argument()?;
        if qos.publications.len() > self.hub.config().entries_max {
            return Err(ExceptionKind::ImpLimit.into());
        }
        let reference = supplier.as_ref().map(PushSupplier::as_object);
        let answer_timeout = self.hub.config().ping_timeout;
        match self.supplier.connect(reference, qos, answer_timeout) {
            Ok(()) => {
                self.hub.note_change();
                call.reply(|_| Ok(()))
            }
            Err(already) => call.raise(&already),
        }
    }
}

impl ServedBy<SupplierProxy> for ProxyPushConsumer {
    fn find_operation(name: &[u8]) -> Option<usize> {
        static TABLE: OperationTable<3, 16> =
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
                proxy.hub.forget_supplier(proxy.supplier.number());
                call.reply(|_| Ok(()))
            }
            2 => proxy.connect(call),
            _ => Err(unknown_operation()),
        }
    }
}
