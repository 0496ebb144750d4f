//! A supplier of the channel.

use super::statistics::{Published, SupplierStatistics};
use crate::stubs::rtec_event::rtec_event_channel_admin::{AlreadyConnected, SupplierQos};
use crate::stubs::rtec_event::rtec_event_comm::PushSupplier;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use rtorb_os::clock::coarse_monotonic_ns;
use rtorb_os::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// A supplier, connected or not.
#[derive(Debug)]
pub(crate) struct ChannelSupplier {
    number: u64,
    is_connected: AtomicBool,
    last_response_ns: AtomicU64,
    /// Pings in a row without a reply.
    misses: AtomicU32,
    connection: Mutex<Option<Connection>>,
}

#[derive(Debug)]
struct Connection {
    /// The object for pings and notifications. A supplier may connect without one.
    reference: Option<PushSupplier>,
    qos: Arc<SupplierQos>,
}

impl ChannelSupplier {
    /// A supplier that is not connected yet.
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            is_connected: AtomicBool::new(false),
            last_response_ns: AtomicU64::new(0),
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

    /// Connects it. Calls to it time out after `call_timeout`.
    ///
    /// # Errors
    /// If it is connected already.
    pub(crate) fn connect(
        &self,
        reference: Option<&PushSupplier>,
        qos: SupplierQos,
        call_timeout: Duration,
    ) -> Result<(), AlreadyConnected> {
        let mut connection = self.connection.lock();
        if connection.is_some() {
            return Err(AlreadyConnected);
        }
        *connection = Some(Connection {
            reference: reference.map(|it| it.with_timeout(call_timeout)),
            qos: Arc::new(qos),
        });
        self.note_response(coarse_monotonic_ns());
        self.is_connected.store(true, Ordering::Release);
        Ok(())
    }

    /// Refuses all its events from now on.
    pub(crate) fn disconnect(&self) {
        self.is_connected.store(false, Ordering::Release);
        *self.connection.lock() = None;
    }

    pub(crate) fn note_response(&self, now_ns: u64) {
        self.last_response_ns.store(now_ns, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
    }

    /// Waits `ping_every` before the next ping, though it did not answer.
    pub(crate) fn postpone_ping(&self, now_ns: u64) {
        self.last_response_ns.store(now_ns, Ordering::Relaxed);
    }

    /// When it last responded, if it has an object to ping.
    pub(crate) fn silent_since_ns(&self) -> Option<u64> {
        self.reference()
            .map(|_| self.last_response_ns.load(Ordering::Relaxed))
    }

    /// Asks whether it exists. May wait.
    pub(crate) fn ping(&self) -> Presence {
        let Some(reference) = self.reference() else {
            return Presence::Unknown;
        };
        match reference.as_object().non_existent() {
            Ok(false) => Presence::Here,
            Ok(true) => Presence::Gone,
            Err(_) if self.misses.fetch_add(1, Ordering::Relaxed) + 1 < MISSES_MAX => {
                Presence::Unknown
            }
            Err(_) => Presence::Gone,
        }
    }

    /// Calls its `disconnect_push_supplier`. May wait.
    pub(crate) fn notify_disconnected(&self) {
        if let Some(reference) = self.reference() {
            // A supplier that this does not reach gets OBJECT_NOT_EXIST from its proxy later.
            let _ = reference.disconnect_push_supplier();
        }
    }

    /// Its publications, while it is connected.
    pub(crate) fn qos(&self) -> Option<Arc<SupplierQos>> {
        let connection = self.connection.lock();
        connection.as_ref().map(|it| Arc::clone(&it.qos))
    }

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

    fn reference(&self) -> Option<PushSupplier> {
        let connection = self.connection.lock();
        connection.as_ref().and_then(|it| it.reference.clone())
    }
}

/// The result of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Here,
    /// The supplier did not answer, or has no object.
    Unknown,
    /// The supplier does not exist, or did not answer several times in a row.
    Gone,
}

/// A supplier that cannot be reached may still send: it is dropped only when that lasts.
const MISSES_MAX: u32 = 3;
