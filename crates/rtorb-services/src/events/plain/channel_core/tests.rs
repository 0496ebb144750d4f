//! A plain channel whose thread does not run.

use std::time::Duration;

use rtorb::skeleton::{OperationTable, ServerCall, unknown_operation};
use rtorb::{CurrentCall, Interface, Orb};

use super::*;
use crate::stubs::cos_event::cos_event_comm::PushConsumer as PlainConsumer;

/// A core whose thread does not run, and an object that nobody serves.
fn core(config: PlainConfig) -> (PlainCore, ObjectRef) {
    let orb = rtorb::Orb::builder().build().expect("an ORB");
    let poa = orb.root_poa().expect("its adapter");
    let object = orb.string_to_object("corbaloc::127.0.0.1:1/x");
    let object = object.expect("a reference");
    let channel = rtec::EventChannel::unchecked_narrow(object.clone());
    (PlainCore::new(poa, channel, config), object)
}

fn add_supplier(core: &PlainCore, object: &ObjectRef) -> u64 {
    let admitted = core.admit_supplier(|_| Ok(object.clone()));
    admitted.expect("there is room");
    core.state.lock().last_number
}

fn add_consumer(core: &PlainCore, object: &ObjectRef) -> Result<u64, SystemException> {
    core.admit_consumer(|_| Ok(object.clone()))?;
    let number = core.state.lock().last_number;
    let object = PlainConsumer::unchecked_narrow(object.clone());
    let consumer = Arc::new(QueuedConsumer::new(core.config(), &core.counts, &object));
    assert_eq!(core.connect_consumer(number, &consumer), Some(true));
    Ok(number)
}

#[test]
fn goodbyes_are_bounded_by_the_configured_maxima_and_the_others_are_counted() {
    let (core, object) = core(PlainConfig {
        suppliers_max: 1,
        consumers_max: 2,
        ..PlainConfig::default()
    });
    for _ in 0..1000 {
        let number = add_supplier(&core, &object);
        let supplier = plain::PushSupplier::unchecked_narrow(object.clone());
        assert_eq!(core.connect_supplier(number, Some(supplier)), Some(true));
        core.end_supplier(number);
        let number = add_consumer(&core, &object).expect("there is room");
        core.end_consumer(number, Notify::Consumer);
        core.thread_ended(number);
    }
    let mut state = core.state.lock();
    assert_eq!(state.goodbyes.drain(usize::MAX).len(), 1 + 2);
    assert!(state.suppliers.is_empty() && state.consumers.is_empty());
    drop(state);
    assert_eq!(core.statistics().goodbyes_dropped, 999 + 998);
}

#[test]
fn a_consumer_keeps_its_place_until_its_thread_has_ended() {
    let (core, object) = core(PlainConfig {
        consumers_max: 1,
        ..PlainConfig::default()
    });
    let first = add_consumer(&core, &object).expect("there is room");
    core.end_consumer(first, Notify::Nobody);
    let refused = add_consumer(&core, &object).expect_err("its thread still runs");
    assert_eq!(refused, local::SERVICE_FULL);
    core.thread_ended(first);
    let second = add_consumer(&core, &object).expect("its thread has ended");
    // A thread that could not start, or panicked.
    core.thread_ended(second);
    add_consumer(&core, &object).expect("its place is free");
}

#[test]
fn a_channel_that_ends_admits_nobody_and_says_that_it_is_gone() {
    let (core, object) = core(PlainConfig::default());
    core.state.lock().stop = true;
    let refused = add_consumer(&core, &object).expect_err("it ends");
    assert_eq!(refused, local::OBJECT_GONE);
    let refused = core.admit_supplier(|_| Ok(object.clone()));
    assert_eq!(refused.expect_err("it ends"), local::OBJECT_GONE);
}

/// Pings the silent suppliers, as the thread of the channel does.
fn ping_suppliers(core: &PlainCore) {
    let mut pings = core.suppliers_to_ask();
    while core.ask_supplier(&mut pings) {}
}

#[test]
fn a_supplier_that_does_not_answer_is_dropped_after_failures_max_pings_without_a_push() {
    const FAILURES_MAX: u32 = 3;
    let (core, unreachable) = core(PlainConfig {
        failures_max: FAILURES_MAX,
        ..PlainConfig::default()
    });
    let number = add_supplier(&core, &unreachable);
    let supplier = plain::PushSupplier::unchecked_narrow(unreachable.clone());
    assert_eq!(core.connect_supplier(number, Some(supplier)), Some(true));
    for _ in 1..FAILURES_MAX {
        ping_suppliers(&core);
    }
    assert!(core.note_push(number), "it may be slow");
    // Not counted: it was not silent.
    ping_suppliers(&core);
    for _ in 1..FAILURES_MAX {
        ping_suppliers(&core);
        assert_eq!(core.statistics().suppliers, 1);
    }
    ping_suppliers(&core);
    assert!(!core.note_push(number));
    assert_eq!(core.statistics().dropped, 1);
}

#[test]
fn a_supplier_that_does_not_exist_is_dropped_at_once() {
    let (core, unreachable) = core(PlainConfig::default());
    let orb = core.channel.as_object().orb().clone();
    // It serves calls with a timeout.
    let server = orb.clone();
    let serving = std::thread::spawn(move || server.run());
    let number = add_supplier(&core, &unreachable);
    let dead = plain::PushSupplier::unchecked_narrow(deactivated(&core));
    assert_eq!(core.connect_supplier(number, Some(dead)), Some(true));
    ping_suppliers(&core);
    orb.shutdown();
    serving.join().expect("no panic").expect("it served");
    assert_eq!(core.statistics().dropped, 1);
}

/// The reference of an object of this ORB that does not exist any more.
fn deactivated(core: &PlainCore) -> ObjectRef {
    let object: SlowPeerRef = core.poa.activate(SlowPeer::default()).expect("room");
    core.poa.deactivate(&object.0).expect("it was active");
    object.0
}

#[test]
fn a_proxy_that_does_not_answer_is_kept_and_one_that_does_not_exist_is_not() {
    let (core, unreachable) = core(PlainConfig::default());
    core.poa.manager().activate();
    for (object, is_kept) in [(unreachable, true), (deactivated(&core), false)] {
        let supply = rtec::ProxyPushConsumer::unchecked_narrow(object.clone());
        *core.supply.lock() = Some(supply);
        let proxy = rtec::ProxyPushSupplier::unchecked_narrow(object.clone());
        let mut link = ChannelLink {
            consumer: Some((PushConsumer::unchecked_narrow(object), proxy)),
        };
        core.ask_channel(&mut link);
        let kept = (core.supply.lock().is_some(), link.consumer.is_some());
        assert_eq!(kept, (is_kept, is_kept));
    }
}

#[test]
fn an_administration_is_one_object_and_none_is_made_after_the_end() {
    let mut limits = rtorb::Limits::default();
    limits.objects_max = 1;
    let orb = Orb::builder().limits(limits).build().expect("an ORB");
    let poa = orb.root_poa().expect("its adapter");
    let (other, object) = core(PlainConfig::default());
    let channel = rtec::EventChannel::unchecked_narrow(object);
    let core = PlainCore::new(poa, channel, PlainConfig::default());
    let cell = OnceLock::<SlowPeerRef>::new();
    let made = core.made_once(&cell, || {
        // As another thread does, between the look at the cell and the activation.
        core.made_once(&cell, SlowPeer::default).expect("room");
        SlowPeer::default()
    });
    assert!(made.is_ok(), "there is room for one object");
    other.stop();
    let late = other.made_once(&OnceLock::<SlowPeerRef>::new(), SlowPeer::default);
    let late = late.map(|_| ()).expect_err("it ends");
    assert_eq!(late.kind, ExceptionKind::ObjectNotExist);
}

/// An object that fails every call, after it let some of the call's time pass. It notes its calls, with the time left.
#[derive(Clone, Default)]
struct SlowPeer {
    calls: Arc<Mutex<Vec<(&'static str, Duration)>>>,
}

#[derive(Clone)]
struct SlowPeerRef(ObjectRef);

impl Interface for SlowPeerRef {
    type Object = ObjectRef;
    const REPOSITORY_ID: &'static str = "IDL:test/SlowPeer:1.0";
    const ANCESTORS: &'static [&'static str] = &[];

    fn unchecked_narrow(object: ObjectRef) -> Self {
        Self(object)
    }

    fn as_object(&self) -> &ObjectRef {
        &self.0
    }
}

const OPERATIONS: [&str; 4] = [
    "for_suppliers",
    "for_consumers",
    "disconnect_push_supplier",
    "disconnect_push_consumer",
];

impl ServedBy<SlowPeer> for SlowPeerRef {
    fn find_operation(name: &[u8]) -> Option<usize> {
        static TABLE: OperationTable<4, 1, 8> = OperationTable::new(OPERATIONS);
        TABLE.find(name)
    }

    fn dispatch(
        peer: &SlowPeer,
        operation: usize,
        _: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        let remaining = || CurrentCall::get().and_then(|call| call.remaining());
        let at_first = remaining().ok_or(unknown_operation())?;
        let mut at_last = at_first;
        while at_last + PASSED > at_first {
            at_last = remaining().unwrap_or_default();
        }
        peer.calls.lock().push((OPERATIONS[operation], at_last));
        Err(unknown_operation())
    }
}

impl SlowPeer {
    /// Has a plain channel on this peer make a step. Returns the calls of the step.
    fn calls_of(
        &self,
        step: impl FnOnce(&Arc<PlainCore>, &ObjectRef),
    ) -> Vec<(&'static str, Duration)> {
        let server = Orb::builder().build().expect("an ORB");
        let poa = server.root_poa().expect("its adapter");
        let peer: SlowPeerRef = poa.activate(self.clone()).expect("an object");
        let running = server.clone();
        let serving = std::thread::spawn(move || running.run());

        let orb = Orb::builder().build().expect("an ORB");
        let peer = orb.string_to_object(&peer.0.to_string());
        let peer = peer.expect("a reference");
        let config = PlainConfig {
            // Less than the ORB's own timeout.
            push_timeout: Duration::from_secs(20),
            ..PlainConfig::default()
        };
        let channel = rtec::EventChannel::unchecked_narrow(peer.clone());
        let poa = orb.root_poa().expect("its adapter");
        let core = Arc::new(PlainCore::new(poa, channel, config));
        step(&core, &peer);
        server.shutdown();
        let ended = serving.join().expect("no panic");
        ended.expect("it has served");
        std::mem::take(&mut self.calls.lock())
    }
}

/// Checks that these calls were made, and that each had no more time than the one before left.
fn assert_share_a_deadline(calls: &[(&'static str, Duration)], expected: &[&'static str]) {
    let made: Vec<_> = calls.iter().map(|(operation, _)| *operation).collect();
    assert_eq!(made, expected);
    for pair in calls.windows(2) {
        assert!(pair[1].1 + PASSED <= pair[0].1, "{calls:?}");
    }
}

/// The time that passes in each call of a slow peer.
const PASSED: Duration = Duration::from_millis(20);

#[test]
fn connecting_as_supplier_and_as_consumer_share_a_deadline() {
    let calls = SlowPeer::default().calls_of(|core, object| {
        add_consumer(core, object).expect("there is room");
        assert!(!core.relink(&mut ChannelLink::default()));
    });
    assert_share_a_deadline(&calls, &["for_suppliers", "for_consumers"]);
}

#[test]
fn all_disconnects_at_the_end_share_a_deadline() {
    let calls = SlowPeer::default().calls_of(|core, object| {
        let consumer: PushConsumer = (core.poa.activate(FanOut(Arc::clone(core)))).expect("room");
        let proxy = rtec::ProxyPushSupplier::unchecked_narrow(object.clone());
        let supply = rtec::ProxyPushConsumer::unchecked_narrow(object.clone());
        *core.supply.lock() = Some(supply);
        let number = add_supplier(core, object);
        let supplier = plain::PushSupplier::unchecked_narrow(object.clone());
        assert_eq!(core.connect_supplier(number, Some(supplier)), Some(true));
        core.end(&mut ChannelLink {
            consumer: Some((consumer, proxy)),
        });
    });
    let expected = [
        "disconnect_push_consumer",
        "disconnect_push_supplier",
        "disconnect_push_supplier",
    ];
    assert_share_a_deadline(&calls, &expected);
}
