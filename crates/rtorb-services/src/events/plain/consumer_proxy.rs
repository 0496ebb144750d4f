//! The proxy of a plain consumer, and the thread that pushes to the consumer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rtorb::any::Any;
use rtorb::exception::local;
use rtorb::{CompletionStatus, SystemException};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::thread::spawn;

use super::channel_core::{Notify, PlainCore, no_longer_exists, refused};
use super::consumer::{ConsumerWork, QueuedConsumer};
use crate::events::client::is_there;
use crate::stubs::cos_event::cos_event_channel_admin::{
    AlreadyConnected, ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError,
    ProxyPushSupplierServant,
};
use crate::stubs::cos_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushSupplierServant,
};

/// Makes an unconnected proxy.
pub(super) fn activate(core: &Arc<PlainCore>) -> Result<ProxyPushSupplier, SystemException> {
    let object = core.admit_consumer(|number| {
        let proxy = PlainConsumerProxy {
            core: Arc::clone(core),
            number,
        };
        let proxy: ProxyPushSupplier = core.poa().activate(proxy).map_err(refused)?;
        Ok(proxy.as_object().clone())
    })?;
    Ok(ProxyPushSupplier::unchecked_narrow(object))
}

struct PlainConsumerProxy {
    core: Arc<PlainCore>,
    number: u64,
}

impl PushSupplierServant for PlainConsumerProxy {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.core.end_consumer(self.number, Notify::Consumer);
        Ok(())
    }
}

impl ProxyPushSupplierServant for PlainConsumerProxy {
    /// A nil consumer is BAD_PARAM (CosEvent 1.2, 2.3.5); TypeError is for typed consumers alone.
    fn connect_push_consumer(
        &self,
        push_consumer: Option<&PushConsumer>,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let object = push_consumer.ok_or(local::NIL_ARGUMENT)?;
        let consumer = Arc::new(QueuedConsumer::new(
            self.core.config(),
            &self.core.counts,
            object,
        ));
        match self.core.connect_consumer(self.number, &consumer) {
            Some(true) => {}
            Some(false) => return Err(AlreadyConnected.into()),
            None => return Err(local::PROXY_GONE.into()),
        }
        let worker = Worker {
            core: Arc::clone(&self.core),
            consumer,
            number: self.number,
        };
        let config = &self.core.config().consumer_threads;
        // Without a thread the worker is dropped, and the place with it.
        if spawn("plain-consumer", config, move || worker.work()).is_err() {
            return Err(local::THREAD_REFUSED.into());
        }
        self.core.await_subscription();
        Ok(())
    }
}

/// A consumer's thread. Dropping it, also by a panic, frees the consumer's place.
struct Worker {
    core: Arc<PlainCore>,
    consumer: Arc<QueuedConsumer>,
    number: u64,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.core.thread_ended(self.number);
    }
}

impl Worker {
    fn work(&self) {
        let counts = &self.core.counts;
        let ask_every_ns = self.core.config().ping_every.as_nanos() as u64;
        let mut ask_ns = monotonic_ns() + ask_every_ns;
        let mut failures = 0;
        loop {
            let answer = match self.consumer.next(ask_ns) {
                ConsumerWork::End => break,
                ConsumerWork::Ask => is_there(self.consumer.object().as_object()),
                ConsumerWork::Push(any) => match self.push(&any) {
                    Ok(()) => {
                        counts.delivered.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    }
                    Err(exception) => {
                        counts.discarded_failed.fetch_add(1, Ordering::Relaxed);
                        Err(exception)
                    }
                },
            };
            ask_ns = monotonic_ns() + ask_every_ns;
            failures = match &answer {
                Ok(()) => 0,
                Err(exception) if no_longer_exists(exception) => u32::MAX,
                Err(_) => failures + 1,
            };
            if failures >= self.core.config().failures_max {
                counts.dropped.fetch_add(1, Ordering::Relaxed);
                // A notification would not reach it.
                self.core.end_consumer(self.number, Notify::Nobody);
                break;
            }
        }
        counts
            .discarded_failed
            .fetch_add(self.consumer.left(), Ordering::Relaxed);
    }

    /// Pushes, and tries again if the consumer certainly did not get the event. Disconnected becomes OBJECT_NOT_EXIST.
    fn push(&self, any: &Any) -> Result<(), SystemException> {
        let mut tries = 0;
        loop {
            let exception = match self.consumer.object().push(any) {
                Ok(()) => return Ok(()),
                Err(PushConsumerPushError::Disconnected(_)) => local::PROXY_GONE,
                Err(PushConsumerPushError::System(exception)) => exception,
            };
            tries += 1;
            let may_try_again = exception.completed == CompletionStatus::No
                && !no_longer_exists(&exception)
                && tries < self.core.config().failures_max
                && !self.consumer.has_ended();
            if !may_try_again {
                return Err(exception);
            }
            sleep_until(monotonic_ns() + PAUSE_NS);
        }
    }
}

/// The pause before the next attempt to push.
const PAUSE_NS: u64 = 20_000_000;
