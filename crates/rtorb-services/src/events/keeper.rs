//! The keeper: one thread of low priority for all that may wait. It opens connections, asks who is there, drops who is not.
//!
//! Its own waits are bounded by the ORB's connect timeout and `ping_timeout`. While it waits for one answer, a new consumer waits to
//! be opened; nobody whose connection is open is held up.

use super::consumer::{Consumer, Departure};
use super::doorbell::Doorbell;
use super::hub::Hub;
use super::supplier::{Presence, Supplier};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::{ExceptionKind, SystemException};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Where the keeper is told what to do.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Consumers that are to be opened, or have departed; each at most once for each of these.
    called: Mutex<VecDeque<Arc<Consumer>>>,
    bell: Doorbell,
    is_stopping: AtomicBool,
}

impl Mailbox {
    /// For at most so many consumers.
    pub(crate) fn new(consumers_max: usize) -> Self {
        Self {
            called: Mutex::new(VecDeque::with_capacity(2 * consumers_max)),
            bell: Doorbell::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Has the keeper look at a consumer.
    pub(crate) fn call(&self, consumer: Arc<Consumer>) {
        self.called.lock().push_back(consumer);
        self.bell.ring();
    }

    /// Wakes the keeper, since there is something for it elsewhere.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Ends the keeper's thread, after what it is about.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.bell.ring();
    }
}

/// What the keeper still has to do, beside what it is called for.
#[derive(Debug, Default)]
struct Errands {
    /// Dropped consumers that are told.
    goodbyes: VecDeque<Arc<Consumer>>,
    /// Consumers and suppliers of which nothing was heard.
    questions: VecDeque<Question>,
}

#[derive(Debug)]
enum Question {
    ToConsumer(Arc<Consumer>),
    ToSupplier(Arc<Supplier>),
}

/// Works until the channel is stopped: the keeper's thread.
///
/// Before each wait for an answer it looks for what is more important: who is called for, and who hangs.
pub(crate) fn work(hub: &Arc<Hub>) {
    let mailbox = hub.mailbox();
    let round_ns = round(hub).as_nanos() as u64;
    let mut next_round_ns = monotonic_ns() + round_ns;
    let mut errands = Errands::default();
    while !mailbox.is_stopping.load(Ordering::SeqCst) {
        let heard = mailbox.bell.rings();
        let called = mailbox.called.lock().pop_front();
        if let Some(consumer) = called {
            attend(hub, consumer, &mut errands);
            continue;
        }
        hub.tell_observers();
        let now_ns = monotonic_ns();
        if now_ns >= next_round_ns {
            make_round(hub, &mut errands, now_ns);
            next_round_ns = monotonic_ns() + round_ns;
        } else if let Some(consumer) = errands.goodbyes.pop_front() {
            consumer.outlet().say_goodbye();
        } else if let Some(question) = errands.questions.pop_front() {
            ask(hub, &question);
        } else {
            mailbox.bell.wait(heard, Some(next_round_ns));
        }
    }
    end(hub);
}

/// Ends the channel: nothing more is dispatched, everybody is told as far as the time goes, and its objects are no more.
fn end(hub: &Hub) {
    let (consumers, suppliers) = (hub.consumers(), hub.suppliers());
    for consumer in &consumers {
        consumer.depart(Departure::Disconnected);
    }
    hub.lanes().iter().for_each(|lane| lane.stop());
    let deadline_ns = monotonic_ns() + hub.config().goodbye_timeout.as_nanos() as u64;
    for consumer in &consumers {
        if monotonic_ns() < deadline_ns {
            consumer.outlet().say_goodbye();
        }
        hub.forget_consumer(consumer);
    }
    for supplier in &suppliers {
        if monotonic_ns() < deadline_ns {
            supplier.say_goodbye();
        }
        hub.forget_supplier(supplier.number());
    }
    hub.end_objects();
}

/// Opens a consumer's connection, or does what is left of its departure.
fn attend(hub: &Hub, consumer: Arc<Consumer>, errands: &mut Errands) {
    if let Some(departure) = consumer.departure() {
        hub.forget_consumer(&consumer);
        if matches!(departure, Departure::Hung | Departure::Full) {
            errands.goodbyes.push_back(consumer);
        }
        return;
    }
    if consumer.is_to_be_opened() {
        match consumer.outlet().open(consumer.lane().priority()) {
            Ok(()) => consumer.opened(),
            Err(_) => drop(consumer.depart(Departure::Dead)),
        }
    }
}

/// Looks at everybody: who hangs, who is to be asked, who never connected, who can be freed. It waits for nobody.
fn make_round(hub: &Hub, errands: &mut Errands, now_ns: u64) {
    // Not again before all of them were asked.
    let may_ask = errands.questions.is_empty();
    for consumer in hub.consumers() {
        if consumer.hangs(now_ns) {
            consumer.depart(Departure::Hung);
        } else if may_ask && is_due(hub, consumer.idle_since_ns(), now_ns) {
            errands.questions.push_back(Question::ToConsumer(consumer));
        }
    }
    for supplier in hub.suppliers() {
        if may_ask && is_due(hub, supplier.silent_since_ns(), now_ns) {
            errands.questions.push_back(Question::ToSupplier(supplier));
        }
    }
    hub.forget_unconnected(now_ns);
    hub.free_departed();
}

/// Asks whether somebody is there, and drops who is not.
fn ask(hub: &Hub, question: &Question) {
    match question {
        Question::ToConsumer(consumer) if consumer.departure().is_some() => {}
        Question::ToConsumer(consumer) => match consumer.outlet().ask() {
            Err(exception) if is_gone(&exception) => drop(consumer.depart(Departure::Dead)),
            // One that is busy, or stopped, costs nothing before events wait for it.
            Ok(()) | Err(_) => consumer.was_heard(monotonic_ns()),
        },
        Question::ToSupplier(supplier) => match supplier.is_there() {
            Presence::Here => supplier.was_heard(monotonic_ns()),
            Presence::Unknown => supplier.was_asked(monotonic_ns()),
            Presence::Gone => hub.forget_supplier(supplier.number()),
        },
    }
}

/// True for what is said of an object or a server that is not there; false for silence.
fn is_gone(exception: &SystemException) -> bool {
    matches!(
        exception.kind,
        ExceptionKind::ObjectNotExist | ExceptionKind::Transient | ExceptionKind::CommFailure
    )
}

fn is_due(hub: &Hub, since_ns: Option<u64>, now_ns: u64) -> bool {
    let ping_ns = hub.config().ping_every.as_nanos() as u64;
    since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= ping_ns)
}

/// How often everybody is looked at: a fraction of the times that are to be kept.
fn round(hub: &Hub) -> Duration {
    let config = hub.config();
    (config.hang_timeout.min(config.ping_every) / ROUNDS).max(ROUND_MIN)
}

/// Rounds in the shortest time that is to be kept, so that it is exceeded by a quarter at most.
const ROUNDS: u32 = 4;

/// More often is work without use.
const ROUND_MIN: Duration = Duration::from_millis(5);
