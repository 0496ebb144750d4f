//! Tests of a consumer with a simulated connection, which blocks, breaks and delays as the test says.

use super::*;
use crate::events::connection::{NotSent, SendProgress};
use crate::events::event::{self, EncodedEvents, Message, event_of};
use crate::events::filter::Subscription;
use crate::events::filter::{FilterKind, FilterLimits, types};
use crate::events::subscriptions::Subscriptions;
use crate::events::timer_queue::TimerQueue;
use crate::stubs::rtec_event::rtec_event_channel_admin::{ConsumerQos, Dependency};
use crate::stubs::rtec_event::rtec_event_comm::EventHeader;
use proptest::prelude::*;
use rtorb::SystemException;
use rtorb::cdr::CharCodeSet;
use rtorb::rt::Priority;
use rtorb_instruments::heap::heap_calls;
use rtorb_os::sync::lock_calls;

/// The behaviour of a simulated connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Takes everything.
    #[default]
    Takes,
    /// Takes a part of one message.
    Clogged,
    /// Another thread uses it.
    Busy,
    Broken,
    BrokenMeanwhile,
    Refuses,
}

/// A simulated connection. It records the sources of events that it took whole.
#[derive(Debug, Default)]
pub(crate) struct FakeConnection(Mutex<FakeConnectionState>);

#[derive(Debug, Default)]
struct FakeConnectionState {
    manner: Manner,
    taken: Vec<Vec<i32>>,
    rest: Option<Vec<i32>>,
    /// True after it broke with a rest, until the next flush.
    has_lost: bool,
    /// Memory for one more message, so that heap-call counts do not include this.
    spare: Vec<i32>,
}

impl FakeConnection {
    pub(crate) fn behave(&self, manner: Manner) {
        let mut state = self.0.lock();
        state.manner = manner;
        if matches!(manner, Manner::Broken | Manner::BrokenMeanwhile) {
            state.has_lost |= state.rest.take().is_some();
        }
    }

    /// Reserves memory for one more message of one event.
    pub(crate) fn reserve(&self) {
        let mut state = self.0.lock();
        state.spare = Vec::with_capacity(1);
        state.taken.reserve(1);
    }

    pub(crate) fn taken(&self) -> Vec<Vec<i32>> {
        self.0.lock().taken.clone()
    }
}

/// The source of the first event: its third 4-byte number.
fn first_source(message: &Message<'_>) -> i32 {
    let bytes = message.bytes[4..].first_chunk().expect("a header");
    i32::from_ne_bytes(*bytes)
}

impl ConsumerConnection for FakeConnection {
    fn push(&self, message: Message<'_>) -> Result<SendProgress, NotSent> {
        let mut state = self.0.lock();
        assert_eq!(state.rest, None, "the rest of the last message goes first");
        let mut sources = core::mem::take(&mut state.spare);
        match message.form.events {
            1 => sources.push(first_source(&message)),
            _ => sources.extend(
                message
                    .values()
                    .expect("events")
                    .iter()
                    .map(|event| event.header.source),
            ),
        }
        match state.manner {
            Manner::Takes => state.taken.push(sources),
            Manner::Clogged => {
                state.rest = Some(sources);
                return Ok(SendProgress::Partly);
            }
            Manner::Busy => return Err(NotSent::Busy),
            Manner::Broken => return Err(NotSent::Broken),
            Manner::BrokenMeanwhile => return Err(NotSent::BrokenMeanwhile),
            Manner::Refuses => return Err(NotSent::Unsendable),
        }
        Ok(SendProgress::Whole)
    }

    fn flush(&self) -> Result<SendProgress, SystemException> {
        let mut state = self.0.lock();
        if core::mem::take(&mut state.has_lost) {
            return Err(rtorb::ExceptionKind::CommFailure.into());
        }
        match state.manner {
            Manner::Clogged | Manner::Busy => Ok(SendProgress::Partly),
            Manner::Broken | Manner::BrokenMeanwhile => {
                Err(rtorb::ExceptionKind::CommFailure.into())
            }
            Manner::Takes | Manner::Refuses => {
                let rest = state.rest.take();
                state.taken.extend(rest);
                Ok(SendProgress::Whole)
            }
        }
    }

    fn open(&self, _: Priority) -> Result<(), SystemException> {
        Ok(())
    }

    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn notify_disconnected(&self) {}
}

/// A consumer and its lane, which the test steps.
struct Bench {
    consumer: Arc<Consumer>,
    fake: Arc<FakeConnection>,
    timers: TimerQueue<Arc<Consumer>>,
}

impl Bench {
    fn new(config: &ChannelConfig, qos: &ConsumerQos) -> Self {
        let fake = Arc::new(FakeConnection::default());
        Self::with(config, qos, Arc::clone(&fake) as _, fake)
    }

    /// With a connection that need not be the simulated one.
    fn with(
        config: &ChannelConfig,
        qos: &ConsumerQos,
        connection: Arc<dyn ConsumerConnection>,
        fake: Arc<FakeConnection>,
    ) -> Self {
        let consumer = consumer(0, qos, connection, config);
        consumer.start();
        consumer.opened();
        let mut bench = Self {
            consumer,
            fake,
            timers: TimerQueue::new(16),
        };
        bench.step();
        bench
    }

    fn of(when_full: WhenFull, queue_events: usize) -> Self {
        let config = ChannelConfig {
            when_full,
            queue_events,
            retry: RETRY,
            ..ChannelConfig::default()
        };
        Self::new(&config, &wanting(&[(0, 0)]))
    }

    fn offer(&self, source: i32, dispatch: Dispatch) {
        let bytes = bytes(source);
        let incoming = bytes.incoming(header(source));
        self.consumer.offer(&incoming, dispatch, monotonic_ns());
    }

    /// Does all current work of the lane.
    fn step(&mut self) {
        while self.step_once() {}
    }

    /// Does one step of the lane. Returns false if there was no work.
    fn step_once(&mut self) -> bool {
        let nobody = Subscriptions::new();
        self.consumer.lane().step(&mut self.timers, &nobody)
    }

    fn resubscribe(&self, qos: &ConsumerQos) {
        assert!(self.consumer.resubscribe(service(qos, None)));
    }

    /// Does all current work of the lane and returns the number of its steps.
    fn steps(&mut self) -> usize {
        core::iter::from_fn(|| self.step_once().then_some(())).count()
    }

    /// Works until no event waits.
    fn drain(&mut self) {
        let late_ns = monotonic_ns() + 20_000_000_000;
        self.step();
        while self.consumer.counts().waiting > 0 {
            assert!(monotonic_ns() < late_ns, "{:?}", self.consumer);
            // As the keeper does.
            self.consumer.opened();
            self.step();
        }
    }

    fn single(&self) -> Vec<i32> {
        self.fake.taken().into_iter().map(|set| set[0]).collect()
    }

    fn is_without_timer(&self) {
        assert_eq!(self.timers.next_ns(), None, "it has no timer");
    }

    fn balanced(&self) -> Counts {
        let counts = self.consumer.counts();
        assert!(counts.is_balanced(), "{counts:?}");
        counts
    }
}

const RETRY: Duration = Duration::from_micros(100);

pub(crate) fn header(source: i32) -> EventHeader {
    EventHeader {
        ttl: 1,
        ..event::header(16, source)
    }
}

pub(crate) fn bytes(source: i32) -> EncodedEvents {
    let event = event_of(header(source));
    EncodedEvents::of(&[event], CharCodeSet::Latin1).expect("it fits")
}

pub(crate) fn wanting(keys: &[(i32, i32)]) -> ConsumerQos {
    let dependency = |&(event_type, source): &(i32, i32)| Dependency {
        event: event_of(EventHeader {
            r#type: event_type,
            ..header(source)
        }),
        rt_info: 0,
    };
    ConsumerQos {
        dependencies: keys.iter().map(dependency).collect(),
        is_gateway: false,
    }
}

fn consumer(
    slot: usize,
    qos: &ConsumerQos,
    connection: Arc<dyn ConsumerConnection>,
    config: &ChannelConfig,
) -> Arc<Consumer> {
    let registration = Registration {
        number: slot as u64,
        slot,
        lane: Lane::all(config).remove(0),
    };
    consumer_at(registration, service(qos, None), connection, config)
}

/// A consumer that is not started and not opened.
pub(crate) fn consumer_at(
    registration: Registration,
    service: Service,
    connection: Arc<dyn ConsumerConnection>,
    config: &ChannelConfig,
) -> Arc<Consumer> {
    let keeper = Arc::new(Mailbox::new(16));
    let consumer = Consumer::new(registration, service, connection, keeper, config);
    Arc::new(consumer)
}

pub(crate) fn service(qos: &ConsumerQos, turn_after_ns: Option<u64>) -> Service {
    let limits = FilterLimits::default();
    let subscription = Subscription::build(qos, FilterKind::Basic, &limits, monotonic_ns());
    Service {
        subscription: subscription.expect("a subscription"),
        turn_after_ns,
    }
}

#[test]
fn events_keep_their_order_in_place_and_by_lane() {
    let mut bench = Bench::of(WhenFull::DiscardOldest, 256);
    for source in 1..=90 {
        let dispatch = match source % 3 {
            0 => Dispatch::ByLane,
            _ => Dispatch::InPlace,
        };
        bench.offer(source, dispatch);
        if source % 7 == 0 {
            bench.step();
        }
    }
    bench.drain();
    assert_eq!(bench.single(), (1..=90).collect::<Vec<_>>());
    assert_eq!(bench.balanced().delivered, 90);
}

#[test]
fn a_full_queue_discards_as_configured_and_counts() {
    let cases = [
        (WhenFull::DiscardOldest, vec![1, 7, 8, 9, 10]),
        (WhenFull::DiscardNewest, vec![1, 2, 3, 4, 5]),
        (
            WhenFull::Wait {
                at_most: Duration::from_millis(1),
            },
            vec![1, 2, 3, 4, 5],
        ),
    ];
    for (when_full, expected) in cases {
        let mut bench = Bench::of(when_full, 4);
        bench.fake.behave(Manner::Clogged);
        for source in 1..=10 {
            bench.offer(source, Dispatch::InPlace);
        }
        let counts = bench.balanced();
        assert_eq!((counts.discarded.full, counts.waiting), (5, 5));
        bench.fake.behave(Manner::Takes);
        bench.drain();
        assert_eq!(bench.single(), expected, "{when_full:?}");
        assert_eq!(bench.balanced().delivered, 5);
    }
}

#[test]
fn an_event_waits_for_room_no_longer_than_configured_after_it_came() {
    let at_most = Duration::from_secs(20);
    let bench = Bench::of(WhenFull::Wait { at_most }, 4);
    bench.fake.behave(Manner::Clogged);
    for source in 1..=5 {
        bench.offer(source, Dispatch::InPlace);
    }
    let bytes = bytes(6);
    let incoming = bytes.incoming(header(6));
    let now_ns = monotonic_ns();
    // It has waited for another consumer.
    let came_ns = now_ns - nanoseconds(at_most);
    bench.consumer.offer(&incoming, Dispatch::InPlace, came_ns);
    assert!(monotonic_ns() < now_ns + nanoseconds(at_most));
    assert_eq!(bench.balanced().discarded.full, 1);
}

#[test]
fn a_consumer_with_a_full_queue_is_disconnected_if_configured() {
    let mut bench = Bench::of(WhenFull::Disconnect, 4);
    bench.fake.behave(Manner::Clogged);
    for source in 1..=10 {
        bench.offer(source, Dispatch::InPlace);
    }
    bench.step();
    assert_eq!(bench.consumer.departure(), Some(Departure::Full));
    let counts = bench.balanced();
    assert_eq!((counts.discarded.gone, counts.waiting), (10, 0));
}

#[test]
fn a_resumed_consumer_gets_the_events_from_before_its_suspension() {
    let mut bench = Bench::of(WhenFull::DiscardOldest, 16);
    bench.fake.behave(Manner::Busy);
    bench.offer(1, Dispatch::InPlace);
    bench.offer(2, Dispatch::InPlace);
    bench.consumer.suspend();
    bench.fake.behave(Manner::Takes);
    bench.offer(3, Dispatch::InPlace);
    bench.step();
    assert_eq!(bench.single(), Vec::<i32>::new());
    bench.consumer.resume();
    bench.offer(4, Dispatch::InPlace);
    bench.drain();
    assert_eq!(bench.single(), [1, 2, 4]);
    assert_eq!(bench.balanced().discarded.suspended, 1);
}

#[test]
fn a_broken_connection_is_reopened_and_no_event_is_sent_twice() {
    let mut bench = Bench::of(WhenFull::DiscardOldest, 16);
    bench.fake.behave(Manner::Broken);
    bench.offer(1, Dispatch::InPlace);
    assert!(bench.consumer.must_open());
    bench.offer(2, Dispatch::InPlace);
    bench.fake.behave(Manner::BrokenMeanwhile);
    bench.consumer.opened();
    bench.step();
    assert!(bench.consumer.must_open(), "the first may have gone");
    bench.fake.behave(Manner::Takes);
    bench.consumer.opened();
    bench.drain();
    assert_eq!(bench.single(), [2]);
    let counts = bench.balanced();
    assert_eq!((counts.discarded.broken, counts.delivered), (1, 1));
}

#[test]
fn a_connection_that_breaks_too_often_ends_the_consumer() {
    let mut bench = Bench::of(WhenFull::DiscardOldest, 16);
    bench.fake.behave(Manner::Broken);
    bench.offer(1, Dispatch::InPlace);
    for _ in 0..10 {
        bench.consumer.opened();
        bench.step();
    }
    assert_eq!(bench.consumer.departure(), Some(Departure::Dead));
    assert_eq!(bench.balanced().discarded.gone, 1);
}

#[test]
fn an_unsendable_event_does_not_delay_others() {
    let mut bench = Bench::of(WhenFull::DiscardOldest, 16);
    bench.fake.behave(Manner::Refuses);
    bench.offer(1, Dispatch::InPlace);
    bench.fake.behave(Manner::Takes);
    bench.offer(2, Dispatch::InPlace);
    bench.drain();
    assert_eq!(bench.single(), [2]);
    assert_eq!(bench.balanced().discarded.unsendable, 1);
}

#[test]
fn a_consumer_that_takes_nothing_hangs() {
    let config = ChannelConfig {
        hang_timeout: Duration::from_secs(60),
        retry: RETRY,
        ..ChannelConfig::default()
    };
    let mut bench = Bench::new(&config, &wanting(&[(0, 0)]));
    let later_ns = || monotonic_ns() + 61_000_000_000;
    assert!(!bench.consumer.hangs(later_ns()));
    bench.fake.behave(Manner::Clogged);
    bench.offer(1, Dispatch::InPlace);
    assert!(!bench.consumer.hangs(monotonic_ns()));
    assert!(bench.consumer.hangs(later_ns()));
    bench.fake.behave(Manner::Takes);
    bench.drain();
    assert!(!bench.consumer.hangs(later_ns()));
}

#[test]
fn a_supplier_that_waits_for_room_gets_it_from_the_lane() {
    const EVENTS: i32 = 2000;
    let when_full = WhenFull::Wait {
        at_most: Duration::from_secs(20),
    };
    let mut bench = Bench::of(when_full, 2);
    let (own, fake) = (Arc::clone(&bench.consumer), Arc::clone(&bench.fake));
    let supplier = std::thread::spawn(move || {
        for source in 1..=EVENTS {
            fake.behave(match source % 5 {
                0 => Manner::Busy,
                _ => Manner::Takes,
            });
            let bytes = bytes(source);
            let incoming = bytes.incoming(header(source));
            own.offer(&incoming, Dispatch::InPlace, monotonic_ns());
        }
        fake.behave(Manner::Takes);
    });
    let late_ns = monotonic_ns() + 20_000_000_000;
    while !supplier.is_finished() {
        assert!(monotonic_ns() < late_ns, "{:?}", bench.consumer);
        bench.step();
        // Unblock the connection.
        if bench.consumer.counts().waiting > 2 {
            bench.fake.behave(Manner::Takes);
        }
    }
    supplier.join().expect("no panic");
    bench.drain();
    assert_eq!(bench.single(), (1..=EVENTS).collect::<Vec<_>>());
}

#[test]
fn the_events_of_a_conjunction_go_in_one_push() {
    let qos = wanting(&[(types::CONJUNCTION, 0), (16, 1), (16, 2)]);
    let mut bench = Bench::new(&ChannelConfig::default(), &qos);
    for source in [2, 2, 1, 1, 2] {
        bench.offer(source, Dispatch::InPlace);
    }
    bench.drain();
    assert_eq!(bench.fake.taken(), [[2, 1], [1, 2]]);
    assert_eq!(bench.balanced().delivered, 4);
}

#[test]
fn the_lane_sends_timeouts() {
    let mut qos = wanting(&[(types::INTERVAL_TIMEOUT, 0)]);
    // 200 us.
    qos.dependencies[0].event.header.creation_time = 2000;
    let mut bench = Bench::new(&ChannelConfig::default(), &qos);
    let late_ns = monotonic_ns() + 20_000_000_000;
    while bench.fake.taken().len() < 3 {
        assert!(monotonic_ns() < late_ns, "no timeout came");
        bench.step();
    }
    assert_eq!(bench.single()[..3], [0, 0, 0]);
    bench.consumer.depart(Departure::Disconnected);
    bench.step();
    bench.is_without_timer();
    bench.balanced();
}

#[test]
fn a_new_subscription_keeps_waiting_events_and_ignores_stale_ones() {
    let mut bench = Bench::of(WhenFull::DiscardOldest, 16);
    bench.fake.behave(Manner::Busy);
    for source in 1..=3 {
        bench.offer(source, Dispatch::ByLane);
    }
    bench.resubscribe(&wanting(&[(16, 4), (16, 5)]));
    // Source 6 comes through the former lookup table.
    for source in [4, 6, 5] {
        bench.offer(source, Dispatch::ByLane);
    }
    bench.fake.behave(Manner::Takes);
    bench.drain();
    assert_eq!(bench.single(), [1, 2, 3, 4, 5]);
    assert_eq!(bench.balanced().received, 5);
}

#[test]
fn a_new_subscription_has_its_own_timeouts() {
    let mut qos = wanting(&[(types::INTERVAL_TIMEOUT, 0)]);
    // A minute, longer than this test.
    qos.dependencies[0].event.header.creation_time = 600_000_000;
    let mut bench = Bench::new(&ChannelConfig::default(), &qos);
    let due_ns = bench.timers.next_ns().expect("a timeout");
    bench.resubscribe(&qos);
    bench.step();
    assert!(
        bench
            .timers
            .next_ns()
            .is_some_and(|anew_ns| anew_ns > due_ns)
    );
    bench.resubscribe(&wanting(&[(0, 0)]));
    bench.step();
    bench.is_without_timer();
    bench.consumer.depart(Departure::Disconnected);
    assert!(!bench.consumer.resubscribe(service(&qos, None)));
}

/// Subscribes again, as a client does that has nothing else to do, with a timeout of a minute.
fn resubscribe_often(consumer: &Arc<Consumer>) {
    let mut qos = wanting(&[(types::INTERVAL_TIMEOUT, 0), (0, 0)]);
    qos.dependencies[0].event.header.creation_time = 600_000_000;
    for _ in 0..100 {
        assert!(consumer.resubscribe(service(&qos, None)));
    }
}

/// A connection whose consumer subscribes again while a thread sends for it.
#[derive(Debug, Default)]
struct Resubscribing(Mutex<Option<Arc<Consumer>>>);

impl ConsumerConnection for Resubscribing {
    fn push(&self, _: Message<'_>) -> Result<SendProgress, NotSent> {
        let consumer = self.0.lock().take();
        resubscribe_often(&consumer.expect("one push"));
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

#[test]
fn a_consumer_that_subscribes_often_waits_for_one_turn() {
    let config = ChannelConfig {
        // No retry comes meanwhile.
        retry: Duration::from_secs(60),
        ..ChannelConfig::default()
    };
    let qos = wanting(&[(0, 0)]);
    let mut bench = Bench::new(&config, &qos);
    resubscribe_often(&bench.consumer);
    assert_eq!(bench.steps(), 1, "it was idle");
    assert!(bench.timers.next_ns().is_some());

    bench.fake.behave(Manner::Clogged);
    bench.offer(1, Dispatch::InPlace);
    bench.step();
    resubscribe_often(&bench.consumer);
    assert!(bench.steps() <= 1, "it has a timer");

    for dispatch in [Dispatch::InPlace, Dispatch::ByLane] {
        let sending = Arc::new(Resubscribing::default());
        let mut bench = Bench::with(&config, &qos, Arc::clone(&sending) as _, Arc::default());
        *sending.0.lock() = Some(Arc::clone(&bench.consumer));
        bench.offer(1, dispatch);
        let sends = usize::from(dispatch == Dispatch::ByLane);
        assert_eq!(bench.steps(), sends + 1, "a thread sent for it");
        assert!(bench.timers.next_ns().is_some(), "its timeout");
    }
}

#[test]
fn sending_in_place_makes_no_heap_call_and_waits_for_no_lock() {
    let bench = Bench::of(WhenFull::DiscardOldest, 16);
    let bytes = bytes(1);
    let incoming = bytes.incoming(header(1));
    for _ in 0..20 {
        bench.fake.reserve();
        let offer = || bench.consumer.offer(&incoming, Dispatch::InPlace, 1);
        let ((_, locks), heap) = heap_calls(|| lock_calls(offer));
        assert_eq!(heap, 0);
        // To begin, in the simulated connection, and to note the result.
        assert_eq!((locks.all, locks.contended), (3, 0));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Offer(Dispatch),
    Behave(Manner),
    Lane,
    /// With the same keys.
    Resubscribe,
    Suspend,
    Resume,
    Open,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let manner = prop_oneof![
        4 => Just(Manner::Takes),
        2 => Just(Manner::Clogged),
        2 => Just(Manner::Busy),
        1 => Just(Manner::Broken),
        1 => Just(Manner::BrokenMeanwhile),
        1 => Just(Manner::Refuses),
    ];
    let step = prop_oneof![
        6 => Just(Step::Offer(Dispatch::InPlace)),
        3 => Just(Step::Offer(Dispatch::ByLane)),
        3 => manner.prop_map(Step::Behave),
        3 => Just(Step::Lane),
        1 => Just(Step::Resubscribe),
        1 => Just(Step::Suspend),
        2 => Just(Step::Resume),
        2 => Just(Step::Open),
    ];
    proptest::collection::vec(step, 0..120)
}

proptest! {
    #[test]
    fn random_steps_account_for_every_event_and_send_none_twice(
        steps in steps(),
        when_full in prop_oneof![Just(WhenFull::DiscardOldest), Just(WhenFull::DiscardNewest), Just(WhenFull::Disconnect)],
        queue_events in 1usize..6,
    ) {
        let mut bench = Bench::of(when_full, queue_events);
        let mut offered = 0;
        for step in steps {
            match step {
                Step::Offer(dispatch) => {
                    offered += 1;
                    bench.offer(offered, dispatch);
                }
                Step::Behave(manner) => bench.fake.behave(manner),
                Step::Lane => { bench.step_once(); }
                Step::Resubscribe => { bench.consumer.resubscribe(service(&wanting(&[(0, 0)]), None)); }
                Step::Suspend => bench.consumer.suspend(),
                Step::Resume => bench.consumer.resume(),
                Step::Open => bench.consumer.opened(),
            }
            let counts = bench.balanced();
            prop_assert_eq!(counts.received, offered as u64);
        }
        bench.fake.behave(Manner::Takes);
        bench.consumer.resume();
        bench.consumer.opened();
        bench.drain();
        let counts = bench.balanced();
        let taken = bench.single();
        prop_assert_eq!(counts.delivered, taken.len() as u64);
        prop_assert!(taken.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", taken);
    }
}
