//! A channel core whose consumers only write down what they get.

use super::*;
use crate::events::admin::{ForConsumers, ForSuppliers};
use crate::events::client::Arrival;
use crate::events::config::Dispatching;
use crate::events::connection::{NotSent, SendProgress};
use crate::events::consumer::Departure;
use crate::events::event::{EncodedEvents, Message};
use crate::events::priority_source::{FlowAdmission, RtInfoIsPriority};
use crate::events::timer_queue::TimerQueue;
use crate::stubs::rtec_event::rtec_base::DependencyInfo;
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerAdminServant, Dependency, Observer, ObserverServant, Publication, SupplierAdminServant,
};
use rtorb::CurrentCall;
use rtorb::cdr::CharCodeSet;
use rtorb_os::thread::thread_id;
use rtorb_tests::asleep::until_asleep;
use std::sync::mpsc;

/// Records the priority of each consumer that gets a message.
#[derive(Debug)]
struct RecordingConnection {
    priority: i32,
    sent: Arc<Mutex<Vec<i32>>>,
}

impl ConsumerConnection for RecordingConnection {
    fn push(&self, _: Message<'_>) -> Result<SendProgress, NotSent> {
        self.sent.lock().push(self.priority);
        Ok(SendProgress::Whole)
    }

    fn flush(&self) -> Result<SendProgress, SystemException> {
        Ok(SendProgress::Whole)
    }

    fn open(&self, _: Priority) -> Result<(), SystemException> {
        Ok(())
    }

    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn notify_disconnected(&self) {}
}

/// A channel without threads of its own.
fn channel(dispatching: Dispatching, lanes: &[i16]) -> ChannelCore {
    let priority = |lane: &i16| Priority::new(*lane).expect("a priority");
    channel_of(ChannelConfig {
        dispatching,
        lanes: lanes.iter().map(priority).collect(),
        ..ChannelConfig::default()
    })
}

/// A channel with this configuration and without threads of its own.
pub(crate) fn channel_of(config: ChannelConfig) -> ChannelCore {
    channel_with(config, Arc::new(RtInfoIsPriority))
}

fn channel_with(config: ChannelConfig, source: Arc<dyn PrioritySource>) -> ChannelCore {
    let orb = Orb::builder().listen("iiop://127.0.0.1:0");
    let orb = orb.build().expect("an ORB");
    let poa = orb.root_poa().expect("it listens");
    ChannelCore::new(config, source, orb, poa)
}

fn connect(core: &ChannelCore, priority: i32, sent: &Arc<Mutex<Vec<i32>>>) {
    let connection = RecordingConnection {
        priority,
        sent: Arc::clone(sent),
    };
    connect_with(core, priority, Arc::new(connection)).opened();
}

/// Connects a consumer of all events.
pub(crate) fn connect_with(
    core: &ChannelCore,
    priority: i32,
    connection: Arc<dyn ConsumerConnection>,
) -> Arc<Consumer> {
    let number = consumer_proxy(core);
    let consumer = core.connect_consumer(number, everything(core, priority), connection);
    consumer.expect("there is room")
}

fn everything(core: &ChannelCore, priority: i32) -> SubscriptionRequest {
    let everything = Dependency {
        event: Arrival::default().event,
        rt_info: priority,
    };
    let qos = ConsumerQos {
        dependencies: vec![everything],
        is_gateway: false,
    };
    core.subscription(&qos).expect("a subscription")
}

/// The number of a new proxy for a consumer.
fn consumer_proxy(core: &ChannelCore) -> u64 {
    let mut number = 0;
    let proxy = core.registry.lock().add_consumer(16, |given| {
        number = given;
        proxy_object(core)
    });
    proxy.expect("there is room");
    number
}

fn supplier_proxy(core: &ChannelCore) -> Arc<ChannelSupplier> {
    let mut supplier = None;
    let proxy = core.registry.lock().add_supplier(16, |given| {
        supplier = Some(Arc::clone(given));
        proxy_object(core)
    });
    proxy.expect("there is room");
    supplier.expect("it is given")
}

fn proxy_object(core: &ChannelCore) -> Result<ObjectRef, SystemException> {
    core.orb.string_to_object("corbaloc::127.0.0.1:1/proxy")
}

/// Connects a supplier of nothing. Returns the kind of the exception.
fn connect_supplier(core: &ChannelCore, supplier: &ChannelSupplier) -> Option<ExceptionKind> {
    let qos = SupplierQos {
        publications: Vec::new(),
        is_gateway: false,
    };
    match core.connect_supplier(supplier, None, qos) {
        Ok(()) => None,
        Err(ConnectSupplierError::System(exception)) => Some(exception.kind),
        Err(other) => panic!("{other:?}"),
    }
}

fn recording() -> Arc<dyn ConsumerConnection> {
    Arc::new(RecordingConnection {
        priority: 0,
        sent: Arc::default(),
    })
}

const GONE: Option<ExceptionKind> = Some(ExceptionKind::ObjectNotExist);

#[test]
fn a_channel_that_ends_connects_nobody() {
    let core = Arc::new(channel(Dispatching::Reactive, &[0]));
    let (consumer, supplier) = (consumer_proxy(&core), supplier_proxy(&core));
    let connected = connect_with(&core, 0, recording());
    core.end();
    let late = core.connect_consumer(consumer, everything(&core, 0), recording());
    assert_eq!(late.err().map(|it| it.kind), GONE);
    assert_eq!(connect_supplier(&core, &supplier), GONE);
    let obtained = ForConsumers(Arc::clone(&core)).obtain_push_supplier();
    assert_eq!(obtained.err().map(|it| it.kind), GONE);
    let obtained = ForSuppliers(Arc::clone(&core)).obtain_push_consumer();
    assert_eq!(obtained.err().map(|it| it.kind), GONE);
    let (consumers, suppliers) = core.last_clients();
    assert!(suppliers.is_empty() && Arc::ptr_eq(&consumers[0], &connected));
}

/// An admission that counts its calls and calls an observer.
#[derive(Debug)]
struct Admitting {
    calls: AtomicU64,
    observer: Option<Observer>,
}

impl PrioritySource for Admitting {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError> {
        RtInfoIsPriority.urgency(rt_info)
    }

    fn admission(&self) -> Option<&dyn FlowAdmission> {
        Some(self)
    }
}

impl FlowAdmission for Admitting {
    fn admit(&self, _: &str, _: &[EventFlow]) -> Result<(), String> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let asked = self.observer.as_ref().map(|observer| {
            observer.update_supplier(&SupplierQos {
                publications: Vec::new(),
                is_gateway: false,
            })
        });
        asked.unwrap_or(Ok(())).map_err(|it| it.to_string())
    }
}

#[test]
fn a_client_whose_proxy_is_gone_is_not_admitted() {
    let source = Arc::new(Admitting {
        calls: AtomicU64::new(0),
        observer: None,
    });
    let core = channel_with(ChannelConfig::default(), Arc::clone(&source) as _);
    let consumer = connect_with(&core, 0, recording());
    let supplier = supplier_proxy(&core);
    consumer.depart(Departure::Disconnected);
    core.forget_consumer(&consumer);
    core.forget_supplier(supplier.number());
    assert_eq!(connect_supplier(&core, &supplier), GONE);
    assert!(!supplier.is_connected());
    match core.resubscribe_consumer(&consumer, everything(&core, 0)) {
        Err(ProxyPushSupplierConnectPushConsumerError::System(exception)) => {
            assert_eq!(exception.kind, ExceptionKind::ObjectNotExist);
        }
        other => panic!("{other:?}"),
    }
    let calls = source.calls.load(Ordering::SeqCst);
    assert_eq!(calls, 1, "of the consumer when it connected");
}

/// An admission that keeps the events of each call, and has an error for those in which a given consumer takes part.
#[derive(Debug)]
struct Silent {
    of_consumer: i32,
    kept: Mutex<Vec<Vec<EventFlow>>>,
}

impl PrioritySource for Silent {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError> {
        RtInfoIsPriority.urgency(rt_info)
    }

    fn admission(&self) -> Option<&dyn FlowAdmission> {
        Some(self)
    }
}

impl FlowAdmission for Silent {
    fn admit(&self, _: &str, flows: &[EventFlow]) -> Result<(), String> {
        self.kept.lock().push(flows.to_vec());
        let is_silent = flows.iter().any(|flow| flow.consumer == self.of_consumer);
        (!is_silent).then_some(()).ok_or("too late".to_owned())
    }
}

#[test]
fn a_source_whose_answer_is_late_learns_which_events_are_left() {
    for others in [vec![7], vec![]] {
        let source = Arc::new(Silent {
            of_consumer: 9,
            kept: Mutex::default(),
        });
        let core = channel_with(ChannelConfig::default(), Arc::clone(&source) as _);
        let supplier = supplier_proxy(&core);
        let publication = Publication {
            event: Arrival::default().event,
            dependency_info: DependencyInfo {
                rt_info: 1,
                ..DependencyInfo::default()
            },
        };
        let qos = SupplierQos {
            publications: vec![publication],
            is_gateway: false,
        };
        let connected = core.connect_supplier(&supplier, None, qos);
        connected.expect("it is admitted");
        for other in others {
            connect_with(&core, other, recording());
        }
        let before = source.kept.lock().last().cloned();
        let request = everything(&core, source.of_consumer);
        let refused = core.connect_consumer(consumer_proxy(&core), request, recording());
        assert_eq!(
            refused.err().map(|it| it.kind),
            Some(ExceptionKind::NoResources)
        );
        let asked = source.kept.lock().len();
        core.update_admission();
        assert_eq!(source.kept.lock()[asked..].first(), before.as_ref());
        core.update_admission();
        assert_eq!(source.kept.lock().len(), asked + 1, "it knows them");
    }
}

#[test]
fn a_consumer_that_departs_meanwhile_is_counted_once() {
    let core = channel(Dispatching::Reactive, &[0]);
    let consumer = connect_with(&core, 0, recording());
    consumer.depart(Departure::Disconnected);
    let registry = core.registry.lock();
    let (tell, told) = mpsc::channel();
    let statistics = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            tell.send(thread_id()).expect("the test waits");
            core.statistics()
        });
        until_asleep(&[told.recv().expect("it runs")]);
        // As in `forget_consumer`.
        let mut registry = registry;
        let forgotten = registry.forget_consumer(&consumer).subscriber;
        core.subscriptions.remove(forgotten.expect("it was in it"));
        drop(registry);
        asking.join().expect("no panic")
    });
    assert_eq!(statistics.departed.disconnected, 1);
    assert!(statistics.consumers.is_empty(), "{statistics:?}");
}

/// Notes the time that its callers have left.
#[derive(Default)]
struct TimeLeft(Mutex<Vec<Option<Duration>>>);

impl ObserverServant for TimeLeft {
    fn update_consumer(&self, _: &ConsumerQos) -> Result<(), SystemException> {
        Ok(())
    }

    fn update_supplier(&self, _: &SupplierQos) -> Result<(), SystemException> {
        let left = CurrentCall::get().and_then(|call| call.remaining());
        self.0.lock().push(left);
        Ok(())
    }
}

#[test]
fn an_admission_has_a_bound_of_its_own() {
    let orb = Orb::builder().round_trip_timeout(None).build();
    let orb = orb.expect("an ORB");
    let poa = orb.root_poa().expect("its adapter");
    poa.manager().activate();
    let left = Arc::new(TimeLeft::default());
    let observer: Observer = poa.activate(Arc::clone(&left)).expect("an object");
    let source = Arc::new(Admitting {
        calls: AtomicU64::new(0),
        observer: Some(observer),
    });
    let core = channel_with(ChannelConfig::default(), source);
    let consumer = connect_with(&core, 0, recording());
    let again = core.resubscribe_consumer(&consumer, everything(&core, 0));
    again.expect("it is admitted");
    assert_eq!(connect_supplier(&core, &supplier_proxy(&core)), None);
    let left = left.0.lock();
    assert_eq!(left.len(), 3);
    let is_bounded = |left: &Option<Duration>| left.is_some_and(|it| it <= ADMISSION_TIMEOUT);
    assert!(left.iter().all(is_bounded), "{left:?}");
}

/// Does the work of the lanes' threads, the most urgent first. Returns false if there was none.
fn work(core: &ChannelCore) -> bool {
    let mut has_worked = false;
    for lane in core.lanes() {
        let mut timers = TimerQueue::new(16);
        while lane.step(&mut timers, core.subscriptions()) {
            has_worked = true;
        }
    }
    has_worked
}

#[test]
fn more_urgent_consumers_get_an_event_first() {
    for dispatching in [Dispatching::Reactive, Dispatching::Lanes] {
        let core = channel(dispatching, &[300, 200, 100]);
        let sent = Arc::default();
        for priority in [100, 300, 200, 150, 300, 50] {
            connect(&core, priority, &sent);
        }
        work(&core);
        let event = Arrival::default().event;
        let bytes = EncodedEvents::of(core::slice::from_ref(&event), CharCodeSet::Latin1);
        let bytes = bytes.expect("it fits");
        for _ in 0..3 {
            let incoming = bytes.incoming(event.header);
            core.dispatch(&incoming, Priority::MIN);
            assert_eq!(work(&core), dispatching == Dispatching::Lanes);
            let sent = core::mem::take(&mut *sent.lock());
            let expected = [300, 300, 200, 150, 100, 50];
            assert_eq!(sent, expected, "{dispatching:?}");
        }
    }
}
