//! One connection of a gateway to both channels.

use std::sync::Arc;

use rtorb::exception::local;
use rtorb::skeleton::{OperationTable, ServedBy, ServerCall, unknown_operation};
use rtorb::{ExceptionKind, Interface, ObjectRef, Orb, Poa, PoaError, SystemException};
use rtorb_os::clock::monotonic_ns;

use super::config::{End, Ends, GatewayConfig, News};
use super::message::ForwardedMessage;
use super::subscribed::{SubscribedEntry, subscribed_entries};
use super::work_queue::{GatewayWork, WorkQueue};
use crate::events::client::{
    ConnectError, connect_consumer, connect_supplier, consumer_refused, discard_push_consumer,
    is_there,
};
use crate::events::filter::types;
use crate::events::subscribe::{Interest, Publications};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, EventChannel, EventChannelAppendObserverError, Observer, ObserverServant,
    ProxyPushConsumer, ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError, SupplierQos,
};
use crate::stubs::rtec_event::rtec_event_comm::{PushConsumer, PushSupplier, PushSupplierServant};

/// A connected gateway.
pub(super) struct GatewayConnection {
    work: Arc<WorkQueue>,
    objects: Objects,
    from: EventChannel,
    to: EventChannel,
    supplier: ProxyPushConsumer,
    observer: u32,
    consumer: Option<ProxyPushSupplier>,
    /// The current subscription; `None` until the channel `to` has reported what its consumers want.
    subscribed: Option<Vec<SubscribedEntry>>,
    has_served: bool,
}

/// Why the connection ended.
pub(super) enum ConnectionEnd {
    Stopped,
    Lost {
        end: End,
        exception: Option<SystemException>,
    },
    /// The channel `from` does not accept the subscription.
    NotSubscribed(ConnectError),
}

impl GatewayConnection {
    /// Finds both channels and joins them, all within the timeout of one call, and the time to discard a proxy if that fails.
    pub(super) fn open(
        orb: &Orb,
        ends: &Ends,
        poa: &Poa,
        work: &Arc<WorkQueue>,
    ) -> Result<Self, (End, ConnectError)> {
        orb.within_timeout(|| {
            let from = (ends.from)().map_err(|exception| (End::From, exception.into()))?;
            let to = (ends.to)().map_err(|exception| (End::To, exception.into()))?;
            within_timeout(&from, &to, || Self::join(&from, &to, poa, work))
                .map_err(|error| (End::To, error))
        })
    }

    /// Becomes a supplier and an observer of `to`.
    fn join(
        from: &EventChannel,
        to: &EventChannel,
        poa: &Poa,
        work: &Arc<WorkQueue>,
    ) -> Result<Self, ConnectError> {
        let number = work.begin();
        let objects = Objects::activate(poa, work, number)?;
        let supplier = connect_supplier(to, Some(&objects.supplier.object), &publication())?;
        let observer = match to.append_observer(Some(&objects.observer.object)) {
            Ok(observer) => observer,
            Err(error) => {
                discard_push_consumer(&supplier);
                return Err(observer_refused(error));
            }
        };
        Ok(Self {
            work: Arc::clone(work),
            objects,
            from: from.clone(),
            to: to.clone(),
            supplier,
            observer,
            consumer: None,
            subscribed: None,
            has_served: false,
        })
    }

    /// True once `from` has accepted a subscription, or both channels have answered a ping while no consumer wants anything.
    pub(super) fn has_served(&self) -> bool {
        self.has_served
    }

    /// Forwards events until a channel is lost or the gateway stops.
    pub(super) fn serve(&mut self, config: &GatewayConfig, tell: &dyn Fn(&News)) -> ConnectionEnd {
        let period_ns = config.ping_every.as_nanos() as u64;
        let mut ping_ns = monotonic_ns() + period_ns;
        loop {
            let next = self.work.next(ping_ns);
            let done = match next {
                GatewayWork::Stop => return ConnectionEnd::Stopped,
                GatewayWork::Lost(end) => {
                    let exception = None;
                    return ConnectionEnd::Lost { end, exception };
                }
                GatewayWork::Forward(message) => self.pass(&message),
                GatewayWork::Subscribe(wanted) => {
                    let entries = wanted.len();
                    if let Err(error) = self.subscribe(wanted, config.rt_info) {
                        return ConnectionEnd::NotSubscribed(error);
                    }
                    self.has_served |= entries > 0;
                    tell(&News::Subscribed { entries });
                    Ok(())
                }
                GatewayWork::Nothing => Ok(()),
            };
            let done = done.and_then(|()| {
                if monotonic_ns() >= ping_ns {
                    ping_ns = monotonic_ns() + period_ns;
                    self.ping()
                } else {
                    Ok(())
                }
            });
            if let Err((end, exception)) = done {
                let exception = Some(exception);
                return ConnectionEnd::Lost { end, exception };
            }
        }
    }

    /// Disconnects from both channels, as far as they answer within the timeout of one call.
    pub(super) fn close(&mut self) {
        let (from, to) = (self.from.clone(), self.to.clone());
        within_timeout(&from, &to, || {
            if let Some(consumer) = self.consumer.take() {
                let _ = consumer.disconnect_push_supplier();
            }
            let _ = self.to.remove_observer(self.observer);
            let _ = self.supplier.disconnect_push_consumer();
        });
    }

    fn pass(&self, message: &ForwardedMessage) -> Result<(), (End, SystemException)> {
        let object = self.supplier.as_object();
        match object.invoke_oneway("push", |w| message.write(w)) {
            Ok(()) => {
                self.work.count_forwarded(message.events);
                Ok(())
            }
            Err(exception) => {
                self.work.count_lost(message.events);
                // An event that cannot be encoded for the other channel does not end the connection.
                match exception.kind {
                    ExceptionKind::DataConversion
                    | ExceptionKind::ImpLimit
                    | ExceptionKind::Marshal => Ok(()),
                    _ => Err((End::To, exception)),
                }
            }
        }
    }

    fn ping(&mut self) -> Result<(), (End, SystemException)> {
        within_timeout(&self.from, &self.to, || {
            is_there(self.supplier.as_object()).map_err(|exception| (End::To, exception))?;
            let from = match &self.consumer {
                Some(consumer) => is_there(consumer.as_object()),
                None => is_there(self.from.as_object()),
            };
            from.map_err(|exception| (End::From, exception))
        })?;
        self.has_served |= self.subscribed.is_some();
        Ok(())
    }

    /// Changes the subscription at `from`, or disconnects there if nothing is wanted.
    ///
    /// A channel that lets a consumer change its subscription, as ours does, loses and repeats no event meanwhile. With another
    /// channel, or if the new subscription belongs to another lane, events between the disconnect and the new subscription are
    /// missed.
    fn subscribe(
        &mut self,
        mut wanted: Vec<SubscribedEntry>,
        rt_info: Option<i32>,
    ) -> Result<(), ConnectError> {
        wanted.sort_unstable();
        wanted.dedup();
        // A channel may report each consumer that comes or goes, gateways included: two gateways would keep each other busy.
        if self.subscribed.as_ref() == Some(&wanted) {
            return Ok(());
        }
        let from = self.from.clone();
        from.as_object()
            .within_timeout(|| self.resubscribe(&wanted, rt_info))?;
        self.subscribed = Some(wanted);
        Ok(())
    }

    fn resubscribe(
        &mut self,
        wanted: &[SubscribedEntry],
        rt_info: Option<i32>,
    ) -> Result<(), ConnectError> {
        if wanted.is_empty() {
            return match self.consumer.take() {
                Some(consumer) => Ok(consumer.disconnect_push_supplier()?),
                None => Ok(()),
            };
        }
        let qos = subscription(wanted, rt_info);
        if let Some(consumer) = &self.consumer {
            match consumer.connect_push_consumer(Some(&self.objects.consumer.object), &qos) {
                Ok(()) => return Ok(()),
                Err(
                    ProxyPushSupplierConnectPushConsumerError::AlreadyConnected(_)
                    | ProxyPushSupplierConnectPushConsumerError::TypeError(_),
                ) => {
                    consumer.disconnect_push_supplier()?;
                }
                Err(error) => return Err(consumer_refused(error)),
            }
        }
        self.consumer = None;
        let consumer = connect_consumer(&self.from, &self.objects.consumer.object, &qos)?;
        self.consumer = Some(consumer);
        Ok(())
    }
}

/// Runs a step that calls both channels within the timeout of one call, the shorter one.
fn within_timeout<T>(from: &EventChannel, to: &EventChannel, step: impl FnOnce() -> T) -> T {
    let of_to = || to.as_object().within_timeout(step);
    from.as_object().within_timeout(of_to)
}

/// The objects that the channels call, for one connection.
struct Objects {
    observer: Active<Observer>,
    consumer: Active<PushConsumer>,
    supplier: Active<PushSupplier>,
}

impl Objects {
    fn activate(poa: &Poa, work: &Arc<WorkQueue>, connection: u64) -> Result<Self, ConnectError> {
        let callback = |end| Callback {
            work: Arc::clone(work),
            connection,
            end,
        };
        Ok(Self {
            observer: Active::new(poa, GatewayObserver(callback(End::To)))?,
            consumer: Active::new(poa, GatewayConsumer(callback(End::From)))?,
            supplier: Active::new(poa, GatewaySupplier(callback(End::To)))?,
        })
    }
}

/// An active object. Dropping it deactivates the object.
struct Active<I: Interface<Object = ObjectRef>> {
    poa: Poa,
    object: I,
}

impl<I: Interface<Object = ObjectRef> + 'static> Active<I> {
    fn new<S>(poa: &Poa, servant: S) -> Result<Self, PoaError>
    where
        I: ServedBy<S>,
        S: Send + Sync + 'static,
    {
        let object = poa.activate(servant)?;
        Ok(Self {
            poa: poa.clone(),
            object,
        })
    }
}

impl<I: Interface<Object = ObjectRef>> Drop for Active<I> {
    fn drop(&mut self) {
        // It fails if the adapter is destroyed, and the object with it.
        let _ = self.poa.deactivate(self.object.as_object());
    }
}

struct Callback {
    work: Arc<WorkQueue>,
    connection: u64,
    end: End,
}

struct GatewayObserver(Callback);

impl ObserverServant for GatewayObserver {
    fn update_consumer(&self, sub: &ConsumerQos) -> Result<(), SystemException> {
        let Callback {
            work, connection, ..
        } = &self.0;
        work.want(*connection, subscribed_entries(&sub.dependencies));
        Ok(())
    }

    fn update_supplier(&self, _pub: &SupplierQos) -> Result<(), SystemException> {
        Ok(())
    }
}

struct GatewaySupplier(Callback);

impl PushSupplierServant for GatewaySupplier {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.0.work.lose(self.0.connection, self.0.end);
        Ok(())
    }
}

/// Written by hand: events stay bytes, except for their `ttl`.
struct GatewayConsumer(Callback);

impl ServedBy<GatewayConsumer> for PushConsumer {
    fn find_operation(name: &[u8]) -> Option<usize> {
        static TABLE: OperationTable<2, 1, 8> =
            OperationTable::new(["push", "disconnect_push_consumer"]);
        TABLE.find(name)
    }

    fn dispatch(
        GatewayConsumer(callback): &GatewayConsumer,
        operation: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            0 => {
                let taken = ForwardedMessage::take(call.arguments());
                let taken = taken.inspect_err(|_| callback.work.count_malformed())?;
                callback.work.put(callback.connection, taken);
                call.reply(|_| Ok(()))
            }
            1 => {
                callback.work.lose(callback.connection, callback.end);
                call.reply(|_| Ok(()))
            }
            _ => Err(unknown_operation()),
        }
    }
}

fn observer_refused(error: EventChannelAppendObserverError) -> ConnectError {
    match error {
        EventChannelAppendObserverError::System(exception) => exception.into(),
        EventChannelAppendObserverError::CantAppendObserver(_) => ConnectError::NoObserver,
        _ => ConnectError::System(local::SERVICE_FULL),
    }
}

/// A disjunction of the entries.
fn subscription(wanted: &[SubscribedEntry], rt_info: Option<i32>) -> ConsumerQos {
    let entry = |wanted: &SubscribedEntry| {
        let event = Interest::event(wanted.source, wanted.event_type);
        event.rt_info(rt_info.unwrap_or(wanted.rt_info))
    };
    // The designator takes the urgency of its first entry.
    let first = rt_info.unwrap_or(wanted[0].rt_info);
    let group = Interest::disjunction(wanted.iter().map(entry)).rt_info(first);
    ConsumerQos {
        is_gateway: true,
        ..group.consumer_qos()
    }
}

/// Events of any type and source: what a gateway brings depends on the consumers.
fn publication() -> SupplierQos {
    let anything = Publications::new().event(types::ANY, types::ANY, 0);
    SupplierQos {
        is_gateway: true,
        ..anything.supplier_qos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb::Limits;

    #[test]
    fn objects_that_are_made_in_vain_are_deactivated() {
        let mut limits = Limits::default();
        limits.objects_max = 2;
        let orb = Orb::builder().limits(limits).build().expect("an ORB");
        let poa = orb.root_poa().expect("its adapter");
        let work = Arc::new(WorkQueue::new(1, 1));
        for _ in 0..3 {
            assert!(Objects::activate(&poa, &work, 1).is_err(), "two of three");
        }
        let callback = || Callback {
            work: Arc::clone(&work),
            connection: 1,
            end: End::To,
        };
        let objects: Vec<Result<Active<Observer>, _>> = (0..2)
            .map(|_| Active::new(&poa, GatewayObserver(callback())))
            .collect();
        assert!(objects.iter().all(Result::is_ok), "there is room for two");
    }
}
