//! A plain consumer: its proxy, its queue, and the thread that calls it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use rtorb::any::Any;
use rtorb::{CompletionStatus, ExceptionKind, ObjectRef, SystemException};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_os::thread::spawn;

use super::face::{Face, deactivate, refused};
use crate::events::client::is_there;
use crate::stubs::cos_event::cos_event_channel_admin::{
    AlreadyConnected, ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError,
    ProxyPushSupplierServant,
};
use crate::stubs::cos_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushSupplierServant,
};

/// Makes a proxy that nobody is connected to.
pub(super) fn activate(face: &Arc<Face>) -> Result<ProxyPushSupplier, SystemException> {
    let number = face.admit_consumer()?;
    let object = Arc::new(OnceLock::new());
    let proxy = Proxy {
        face: Arc::clone(face),
        number,
        object: Arc::clone(&object),
        consumer: Mutex::new(None),
    };
    let activated = face.poa().activate(proxy);
    let reference: ProxyPushSupplier = activated.map_err(|error| {
        face.end_consumer(number, None);
        refused(error)
    })?;
    object.get_or_init(|| reference.as_object().clone());
    Ok(reference)
}

struct Proxy {
    face: Arc<Face>,
    number: u64,
    /// The proxy itself, to end it.
    object: Arc<OnceLock<ObjectRef>>,
    /// Who is connected, to be told.
    consumer: Mutex<Option<PushConsumer>>,
}

impl PushSupplierServant for Proxy {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        let consumer = self.consumer.lock().take();
        self.face.end_consumer(self.number, consumer);
        deactivate(self.face.poa(), self.object.get());
        Ok(())
    }
}

impl ProxyPushSupplierServant for Proxy {
    /// A nil consumer is BAD_PARAM (CosEvent 1.2, 2.3.5); TypeError is for typed consumers alone.
    fn connect_push_consumer(
        &self,
        push_consumer: Option<&PushConsumer>,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let object = push_consumer.ok_or_else(|| SystemException::from(ExceptionKind::BadParam))?;
        let consumer = Arc::new(Consumer::new(&self.face, object));
        match self.face.connect_consumer(self.number, &consumer) {
            Some(true) => {}
            Some(false) => return Err(AlreadyConnected.into()),
            None => return Err(SystemException::from(ExceptionKind::ObjectNotExist).into()),
        }
        *self.consumer.lock() = Some(object.clone());
        let worker = Worker {
            face: Arc::clone(&self.face),
            consumer,
            number: self.number,
            proxy: Arc::clone(&self.object),
        };
        let config = &self.face.config().consumer_threads;
        if spawn("plain-consumer", config, move || worker.work()).is_err() {
            self.face.end_consumer(self.number, None);
            return Err(SystemException::from(ExceptionKind::NoResources).into());
        }
        self.face.await_subscription();
        Ok(())
    }
}

/// A plain consumer that is connected.
pub(super) struct Consumer {
    object: PushConsumer,
    face: std::sync::Weak<Face>,
    queue: Mutex<Queue>,
    changed: Condvar,
    events_max: usize,
    octets_max: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Arc<Any>, usize)>,
    octets: usize,
    ended: bool,
}

/// What a consumer's thread does next.
enum Next {
    Push(Arc<Any>),
    Ask,
    End,
}

impl Consumer {
    fn new(face: &Arc<Face>, object: &PushConsumer) -> Self {
        let config = face.config();
        let object = object
            .as_object()
            .with_round_trip_timeout(Some(config.push_timeout));
        Self {
            object: PushConsumer::unchecked_narrow(object),
            face: Arc::downgrade(face),
            queue: Mutex::new(Queue::default()),
            changed: Condvar::new(),
            events_max: config.queue_events,
            octets_max: config.queue_octets,
        }
    }

    pub(super) fn object(&self) -> &PushConsumer {
        &self.object
    }

    /// Puts an event behind those that wait; the oldest make room.
    pub(super) fn put(&self, any: &Arc<Any>, octets: usize) {
        let Some(face) = self.face.upgrade() else {
            return;
        };
        let mut queue = self.queue.lock();
        if queue.ended {
            return;
        }
        face.counts.received.fetch_add(1, Ordering::Relaxed);
        while queue.waiting.len() >= self.events_max || queue.octets + octets > self.octets_max {
            let oldest = queue.waiting.pop_front();
            face.counts.discarded_full.fetch_add(1, Ordering::Relaxed);
            let Some((_, octets)) = oldest else {
                // Larger than all the room.
                return;
            };
            queue.octets -= octets;
        }
        queue.octets += octets;
        queue.waiting.push_back((Arc::clone(any), octets));
        self.changed.notify_one(&self.queue);
    }

    /// Ends its thread, after the push that it is in.
    pub(super) fn end(&self) {
        self.queue.lock().ended = true;
        self.changed.notify_all(&self.queue);
    }

    fn has_ended(&self) -> bool {
        self.queue.lock().ended
    }

    fn next(&self, ask_ns: u64) -> Next {
        let mut queue = self.queue.lock();
        loop {
            if queue.ended {
                return Next::End;
            }
            if let Some((any, octets)) = queue.waiting.pop_front() {
                queue.octets -= octets;
                return Next::Push(any);
            }
            if monotonic_ns() >= ask_ns {
                return Next::Ask;
            }
            self.changed.wait_until(&mut queue, ask_ns);
        }
    }

    /// What waited when it ended.
    fn left(&self) -> u64 {
        std::mem::take(&mut self.queue.lock().waiting).len() as u64
    }
}

/// A consumer's thread.
struct Worker {
    face: Arc<Face>,
    consumer: Arc<Consumer>,
    number: u64,
    proxy: Arc<OnceLock<ObjectRef>>,
}

impl Worker {
    fn work(&self) {
        let counts = &self.face.counts;
        let ask_every_ns = self.face.config().ping_every.as_nanos() as u64;
        let mut ask_ns = monotonic_ns() + ask_every_ns;
        let mut failures = 0;
        loop {
            let answer = match self.consumer.next(ask_ns) {
                Next::End => break,
                Next::Ask => is_there(self.consumer.object.as_object()),
                Next::Push(any) => match self.push(&any) {
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
                Err(exception) if exception.kind == ExceptionKind::ObjectNotExist => u32::MAX,
                Err(_) => failures + 1,
            };
            if failures >= self.face.config().failures_max {
                counts.dropped.fetch_add(1, Ordering::Relaxed);
                // It would not hear a goodbye.
                self.face.end_consumer(self.number, None);
                deactivate(self.face.poa(), self.proxy.get());
                break;
            }
        }
        counts
            .discarded_failed
            .fetch_add(self.consumer.left(), Ordering::Relaxed);
    }

    /// Pushes, again where it is certain that the consumer has not got it. OBJECT_NOT_EXIST stands for Disconnected too.
    fn push(&self, any: &Any) -> Result<(), SystemException> {
        let mut tries = 0;
        loop {
            let exception = match self.consumer.object.push(any) {
                Ok(()) => return Ok(()),
                Err(PushConsumerPushError::Disconnected(_)) => ExceptionKind::ObjectNotExist.into(),
                Err(PushConsumerPushError::System(exception)) => exception,
            };
            tries += 1;
            let may_try_again = exception.completed == CompletionStatus::No
                && exception.kind != ExceptionKind::ObjectNotExist
                && tries < self.face.config().failures_max
                && !self.consumer.has_ended();
            if !may_try_again {
                return Err(exception);
            }
            sleep_until(monotonic_ns() + PAUSE_NS);
        }
    }
}

/// Before a push is tried again.
const PAUSE_NS: u64 = 20_000_000;
