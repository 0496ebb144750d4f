//! A lane: a thread of one priority, the events that it has to distribute, the consumers that it has to serve now, and those that
//! it has to look at later.

use super::agenda::Agenda;
use super::consumer::{Consumer, Dispatch, Turn};
use super::doorbell::Doorbell;
use super::event::Incoming;
use super::filter::Key;
use super::intake::Intake;
use super::subscriptions::{Matching, Subscriptions};
use super::{ChannelConfig, Dispatching, WhenFull};
use core::cmp::Ordering as Order;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::rt::Priority;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// What suppliers' threads and the lane's own share.
#[derive(Debug)]
pub(crate) struct Lane {
    priority: Priority,
    /// Its consumers are as urgent as that, and no less.
    urgencies: RangeInclusive<i32>,
    /// None where nothing is handed over: where all is dispatched in place, and where who dispatches may have to wait for a consumer.
    intake: Option<Intake>,
    ready: Mutex<Ready>,
    bell: Doorbell,
    is_stopping: AtomicBool,
}

/// Consumers that something waits for, each at most once.
#[derive(Debug)]
struct Ready {
    standing: BinaryHeap<Standing>,
    arrivals: u64,
}

#[derive(Debug)]
struct Standing {
    /// Its turn, for lanes in order of deadline or laxity; 0 for all in order of arrival.
    turn_ns: u64,
    arrival: u64,
    consumer: Arc<Consumer>,
}

impl Lane {
    /// Those of a channel, the most urgent first.
    pub(crate) fn all(config: &ChannelConfig) -> Vec<Arc<Self>> {
        let lanes = config.lanes.iter().enumerate();
        let lane = |(index, &priority): (usize, &Priority)| {
            let most = match index {
                0 => i32::MAX,
                _ => i32::from(priority.get()),
            };
            let next = config.lanes.get(index + 1);
            let least = next.map_or(i32::MIN, |next| i32::from(next.get()) + 1);
            Arc::new(Self::new(priority, least..=most, config))
        };
        lanes.map(lane).collect()
    }

    fn new(priority: Priority, urgencies: RangeInclusive<i32>, config: &ChannelConfig) -> Self {
        let consumers_max = config.consumers_max;
        let hands_over = config.dispatching != Dispatching::Reactive
            && !matches!(config.when_full, WhenFull::Wait { .. });
        Self {
            priority,
            urgencies,
            intake: hands_over.then(|| Intake::new(config)),
            ready: Mutex::new(Ready {
                // Who departs stands once more, so that the agenda lets it go.
                standing: BinaryHeap::with_capacity(2 * consumers_max),
                arrivals: 0,
            }),
            bell: Doorbell::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// The CORBA priority of its thread.
    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    /// Takes an event for all its consumers; false if it does not do that. It is to be rung then.
    pub(crate) fn hand_over(
        &self,
        event: &Incoming<'_>,
        came_ns: u64,
        subscriptions: &Subscriptions<Arc<Consumer>>,
    ) -> bool {
        let Some(intake) = &self.intake else {
            return false;
        };
        intake.hand_over(event, came_ns, |event, came_ns| {
            // Who helps out is not to send for others.
            self.offer_to_all(event, came_ns, (subscriptions, || Dispatch::ByLane));
        });
        true
    }

    /// Events that it has taken, and not yet offered to all its consumers.
    pub(crate) fn undistributed(&self) -> usize {
        self.intake.as_ref().map_or(0, Intake::len)
    }

    /// Leaves its consumers out, and those of more urgent lanes.
    pub(crate) fn skip(&self, matching: &mut Matching<'_, Arc<Consumer>>) {
        matching.skip_above(self.urgencies.start().saturating_sub(1));
    }

    /// Lets a consumer stand for its turn; the lane does not know before it is [rung](Self::ring).
    pub(crate) fn add(&self, consumer: Arc<Consumer>, turn_ns: u64) {
        let mut ready = self.ready.lock();
        ready.arrivals += 1;
        let arrival = ready.arrivals;
        ready.standing.push(Standing {
            turn_ns,
            arrival,
            consumer,
        });
    }

    /// Wakes the lane's thread if it sleeps.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Ends the lane's thread after the turn that it is in.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// Serves consumers until the lane is stopped: the lane's thread.
    pub(crate) fn work(&self, slots: usize, subscriptions: &Subscriptions<Arc<Consumer>>) {
        let mut agenda = Agenda::new(slots);
        while !self.is_stopping.load(Ordering::SeqCst) {
            let heard = self.bell.rings();
            if !self.step(&mut agenda, subscriptions) {
                self.bell.wait(heard, agenda.next_ns());
            }
        }
        // For the counts: its consumers have departed by now.
        for _ in 0..self.undistributed() {
            self.distribute(subscriptions);
        }
    }

    /// Distributes what was handed over, looks at those whose time has come, and serves the one whose turn it is; false when there
    /// was nothing to do.
    pub(crate) fn step(
        &self,
        agenda: &mut Agenda,
        subscriptions: &Subscriptions<Arc<Consumer>>,
    ) -> bool {
        let mut was_due = self.distribute(subscriptions);
        // No timeout comes before an event that came before it.
        let oldest_ns = self.intake.as_ref().and_then(Intake::oldest_ns);
        let now_ns = oldest_ns.unwrap_or_else(monotonic_ns);
        // As many as there are slots at most: what a turn puts back is later than now.
        while let Some(consumer) = agenda.take_due(now_ns) {
            was_due = true;
            self.turn(&consumer, agenda, now_ns);
        }
        let first = self.ready.lock().standing.pop();
        match first {
            Some(standing) => self.turn(&standing.consumer, agenda, now_ns),
            None => return was_due,
        }
        true
    }

    /// Distributes one event, so that who stands for a turn gets one between them; all of them where turns go by time, since they
    /// decide who is next. False when there was none.
    fn distribute(&self, subscriptions: &Subscriptions<Arc<Consumer>>) -> bool {
        let Some(intake) = &self.intake else {
            return false;
        };
        let events = intake.len();
        for distributed in 0..events {
            if distributed > 0 && !self.has_turns_by_time() {
                break;
            }
            intake.distribute_oldest(|event, came_ns| {
                let dispatch = || {
                    // Who waits for the distribution is not to wait until everybody is sent the event.
                    match intake.is_waited_for() {
                        true => Dispatch::ByLane,
                        false => Dispatch::InTurn,
                    }
                };
                self.offer_to_all(event, came_ns, (subscriptions, dispatch));
            });
        }
        events > 0
    }

    /// Offers an event to all its consumers that want it and were there when it came.
    fn offer_to_all(
        &self,
        event: &Incoming<'_>,
        came_ns: u64,
        (subscriptions, dispatch): (&Subscriptions<Arc<Consumer>>, impl Fn() -> Dispatch),
    ) {
        // Not that of when the event came: it may have been without one who connected before that. Who has another subscription
        // since then is found by that one, once.
        let consumers = subscriptions.snapshot();
        let mut matching = consumers.matching(Key::of(&event.header));
        matching.skip_above(*self.urgencies.end());
        let own = matching.take_while(|consumer| core::ptr::eq(&raw const **consumer.lane(), self));
        for consumer in own.filter(|consumer| consumer.connected_ns() <= came_ns) {
            consumer.offer(event, dispatch(), came_ns);
        }
    }

    fn has_turns_by_time(&self) -> bool {
        let ready = self.ready.lock();
        ready.standing.peek().is_some_and(|first| first.turn_ns > 0)
    }

    fn turn(&self, consumer: &Arc<Consumer>, agenda: &mut Agenda, now_ns: u64) {
        let Turn {
            stands_again,
            look_at_ns,
        } = consumer.turn(now_ns);
        agenda.set(consumer, look_at_ns);
        if let Some(turn_ns) = stands_again {
            self.add(Arc::clone(consumer), turn_ns);
        }
    }
}

impl Ord for Standing {
    /// The greatest is the next one.
    fn cmp(&self, other: &Self) -> Order {
        (other.turn_ns, other.arrival).cmp(&(self.turn_ns, self.arrival))
    }
}

impl PartialOrd for Standing {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Standing {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Order::Equal
    }
}

impl Eq for Standing {}
