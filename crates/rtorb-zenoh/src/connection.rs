//! One connection of a member to its channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rtorb::exception::local;
use rtorb::rt::Priority;
use rtorb::{ExceptionKind, Orb, Poa, SystemException, with_deadline};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::thread::{JoinHandle, join_unless_own, spawn};
use rtorb_services::events::client::{ConnectError, Receiver, Supplier};
use rtorb_services::events::gateway::{Find, subscribed_entries};
use rtorb_services::events::subscribe::{Interest, Publications};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, EventChannel, EventChannelAppendObserverError, Observer, ObserverServant,
    SupplierQos,
};

use crate::config::{DeliveryPriority, FederationConfig, FederationNews};
use crate::keys::{EventKey, KeyPattern, reduced};
use crate::message::decode_event;
use crate::outgoing::{LanePublisher, utc_ticks};
use crate::shared::Shared;
use crate::work_queue::ReceivedSample;

/// A connection to the channel: a consumer for each lane, a supplier, and an observer of what the consumers want.
pub(crate) struct ChannelConnection {
    shared: Arc<Shared>,
    orb: Orb,
    poa: Poa,
    channel: EventChannel,
    supplier: Supplier,
    observer: Observer,
    observer_handle: u32,
    lanes: Vec<JoinHandle<Option<()>>>,
    /// True when the lanes shall end.
    is_closing: Arc<AtomicBool>,
    /// The CORBA priority of the last delivery.
    priority: Option<i16>,
}

impl ChannelConnection {
    /// Finds the channel and connects to it, all within the timeout of one call, and the time to discard a proxy if that fails.
    pub(crate) fn open(
        orb: &Orb,
        poa: &Poa,
        find: &Find,
        shared: &Arc<Shared>,
    ) -> Result<Self, ConnectError> {
        orb.within_timeout(|| {
            let channel = find()?;
            let of_channel = channel.as_object().clone();
            of_channel.within_timeout(|| Self::join(orb, poa, channel, shared))
        })
    }

    fn join(
        orb: &Orb,
        poa: &Poa,
        channel: EventChannel,
        shared: &Arc<Shared>,
    ) -> Result<Self, ConnectError> {
        let number = shared.work.begin();
        let supplier = Supplier::connect_served(&channel, poa, &publication())?;
        let observer: Observer = poa.activate(WantedObserver {
            shared: Arc::clone(shared),
            connection: number,
        })?;
        let deactivate = || drop(poa.deactivate(observer.as_object()));
        let observer_handle = channel.append_observer(Some(&observer)).map_err(|error| {
            deactivate();
            observer_refused(error)
        })?;
        let mut made = Self {
            shared: Arc::clone(shared),
            orb: orb.clone(),
            poa: poa.clone(),
            channel,
            supplier,
            observer,
            observer_handle,
            lanes: Vec::new(),
            is_closing: Arc::default(),
            priority: None,
        };
        let started = made.start_lanes(number);
        started.inspect_err(|_| made.close())?;
        Ok(made)
    }

    fn start_lanes(&mut self, number: u64) -> Result<(), ConnectError> {
        let config = &self.shared.config;
        for place in 0..config.lanes.len() {
            let qos = subscription(config, place);
            let events_max = config.queue_events;
            let receiver = Receiver::connect(&self.channel, &self.poa, &qos, events_max)?;
            let lane = LanePublisher::new(&self.shared, place, receiver, number, &self.is_closing);
            let thread = spawn("rtorb-federate", &config.thread, move || lane.run());
            let refused = |_| ConnectError::System(ExceptionKind::NoResources.into());
            let thread = thread.map_err(refused)?;
            self.lanes.push(thread);
        }
        Ok(())
    }

    /// Delivers an event to the channel.
    ///
    /// # Errors
    /// The exception, if the channel is lost.
    pub(crate) fn deliver(&mut self, sample: &ReceivedSample) -> Result<(), SystemException> {
        let shared = Arc::clone(&self.shared);
        let now_ns = monotonic_ns();
        let remaining = sample.header.deadline_left_ns(utc_ticks(now_ns));
        if remaining == Some(0) {
            shared.counts.incoming(|counts| {
                counts.waiting -= 1;
                counts.discarded_late += 1;
            });
            return Ok(());
        }
        let mut event = match decode_event(&sample.payload, sample.key) {
            Ok(event) => event,
            Err(wrong) => {
                shared.counts.incoming(|counts| counts.waiting -= 1);
                shared.refuse(&sample.key_expr, wrong);
                return Ok(());
            }
        };
        // Whatever its publisher wrote: it does not go into the federation again.
        event.data.pad1 = shared.mark;
        self.take_priority(sample.header.priority);
        let remaining = remaining.map(std::time::Duration::from_nanos);
        let pushed = match remaining {
            Some(remaining) => with_deadline(remaining, || self.supplier.push(&[event])),
            None => self.supplier.push(&[event]),
        };
        shared.counts.incoming(|counts| {
            counts.waiting -= 1;
            let is_late = |exception: &SystemException| {
                remaining.is_some() && exception.kind == ExceptionKind::Timeout
            };
            let count = match &pushed {
                Ok(()) => &mut counts.delivered,
                Err(exception) if is_late(exception) => &mut counts.discarded_late,
                Err(_) => &mut counts.discarded_lost,
            };
            *count += 1;
        });
        match pushed {
            // An event that cannot be encoded for the channel, or is late, does not end the connection.
            Err(exception) if !is_of_event(&exception) => Err(exception),
            _ => Ok(()),
        }
    }

    /// Asks whether the channel still serves this member.
    ///
    /// # Errors
    /// The exception, if it does not.
    pub(crate) fn ping(&self) -> Result<(), SystemException> {
        self.supplier.arrived()
    }

    /// Disconnects, as far as the channel answers within the timeout of one call. The lanes publish what waits.
    pub(crate) fn close(&mut self) {
        self.is_closing.store(true, Ordering::Release);
        self.lanes.drain(..).for_each(join_unless_own);
        // The channel may be gone.
        let _ = self.channel.remove_observer(self.observer_handle);
        let _ = self.poa.deactivate(self.observer.as_object());
    }

    /// Gives the calling thread the priority of an event, within the configured bound.
    fn take_priority(&mut self, published: Option<i16>) {
        let DeliveryPriority::AsPublished { most } = self.shared.config.delivery else {
            return;
        };
        let wanted = published.unwrap_or(0).min(most);
        if self.priority == Some(wanted) {
            return;
        }
        self.priority = Some(wanted);
        let priority = Priority::new(wanted);
        let taken = priority.and_then(|priority| self.orb.rt_current().set_the_priority(priority));
        if let Err(exception) = taken {
            self.shared.report_once(FederationNews::PriorityRefused {
                priority: wanted,
                exception,
            });
        }
    }
}

/// True if an exception is about one event, and not about the channel.
fn is_of_event(exception: &SystemException) -> bool {
    matches!(
        exception.kind,
        ExceptionKind::DataConversion
            | ExceptionKind::ImpLimit
            | ExceptionKind::Marshal
            | ExceptionKind::Timeout
    )
}

/// The channel calls it when the subscriptions of its consumers change.
struct WantedObserver {
    shared: Arc<Shared>,
    connection: u64,
}

impl ObserverServant for WantedObserver {
    fn update_consumer(&self, sub: &ConsumerQos) -> Result<(), SystemException> {
        let any_if_0 = |number: i32| (number != 0).then_some(number);
        let entries = subscribed_entries(&sub.dependencies);
        let patterns = entries.iter().map(|entry| KeyPattern {
            event_type: any_if_0(entry.event_type),
            source: any_if_0(entry.source),
        });
        let wanted = reduced(patterns.collect(), PATTERNS_MAX);
        self.shared.work.want(self.connection, wanted);
        Ok(())
    }

    fn update_supplier(&self, _pub: &SupplierQos) -> Result<(), SystemException> {
        Ok(())
    }
}

fn observer_refused(error: EventChannelAppendObserverError) -> ConnectError {
    match error {
        EventChannelAppendObserverError::System(exception) => exception.into(),
        EventChannelAppendObserverError::CantAppendObserver(_) => ConnectError::NoObserver,
        _ => ConnectError::System(local::SERVICE_FULL),
    }
}

/// The subscription of a lane. No gateway subscribes on its behalf elsewhere.
fn subscription(config: &FederationConfig, place: usize) -> ConsumerQos {
    let lane = &config.lanes[place];
    let interest_in = |key: &EventKey| Interest::event(key.source, key.event_type);
    let others: Vec<&EventKey> = (config.lanes.iter()).flat_map(|lane| &lane.keys).collect();
    let interest = if !lane.keys.is_empty() {
        Interest::disjunction(lane.keys.iter().map(interest_in))
    } else if others.is_empty() {
        Interest::anything()
    } else {
        Interest::negation(Interest::disjunction(others.into_iter().map(interest_in)))
    };
    let rt_info = lane.rt_info.or(lane.priority.map(i32::from));
    ConsumerQos {
        is_gateway: true,
        ..interest.rt_info(rt_info.unwrap_or(0)).consumer_qos()
    }
}

/// Events of any type and source: what a member brings depends on the others.
fn publication() -> SupplierQos {
    SupplierQos {
        is_gateway: true,
        ..Publications::new().event(0, 0, 0).supplier_qos()
    }
}

/// Beyond it, a member subscribes to all events, and its channel leaves out those that nobody wants.
const PATTERNS_MAX: usize = 1024;
