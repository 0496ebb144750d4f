//! The work of a lane's thread: it distributes events to the lane's consumers, handles their timers, and sends for them.

use super::consumer::{Consumer, Dispatch, TurnResult};
use super::event::Incoming;
use super::filter::Key;
use super::intake::Intake;
use super::lane::Lane;
use super::subscriptions::{Matching, Subscriptions};
use super::timer_queue::TimerQueue;
use rtorb::rt::Priority;
use rtorb_os::clock::monotonic_ns;
use std::sync::Arc;

impl Lane<Consumer> {
    /// Works until the lane is stopped. `slots` is the greatest number of consumers. The calling thread has the lane's priority, and
    /// `take_priority` gives it another one.
    pub(crate) fn work(
        &self,
        slots: usize,
        subscriptions: &Subscriptions<Arc<Consumer>>,
        take_priority: impl Fn(Priority),
    ) {
        let mut timers = TimerQueue::new(slots);
        let mut priority = self.priority();
        while !self.is_stopping() {
            let seen = self.signal().count();
            let wanted = self.priority();
            if wanted != priority {
                take_priority(wanted);
                priority = wanted;
            }
            if !self.step(&mut timers, subscriptions) {
                self.signal().wait(seen, timers.next_ns());
            }
        }
        // All consumers have departed by now; this counts their events.
        for _ in 0..self.undistributed() {
            self.distribute(subscriptions);
        }
    }

    /// Takes an event for all its consumers, if the lane has an intake. The caller wakes the lane then.
    pub(crate) fn accept(
        &self,
        event: &Incoming<'_>,
        came_ns: u64,
        subscriptions: &Subscriptions<Arc<Consumer>>,
    ) -> bool {
        let Some(intake) = self.intake() else {
            return false;
        };
        intake.enqueue(event, came_ns, |event, came_ns| {
            // A supplier's thread that makes room does not send as well.
            self.offer_to_all(event, came_ns, subscriptions, || Dispatch::ByLane);
        });
        true
    }

    /// Distributes events, handles timers that are due, and serves the consumer whose turn it is. Returns false if there was
    /// nothing to do.
    pub(crate) fn step(
        &self,
        timers: &mut TimerQueue<Arc<Consumer>>,
        subscriptions: &Subscriptions<Arc<Consumer>>,
    ) -> bool {
        let mut was_due = self.distribute(subscriptions);
        // An event that came before a timeout is handled before it.
        let oldest_ns = self.intake().and_then(Intake::oldest_ns);
        let now_ns = oldest_ns.unwrap_or_else(monotonic_ns);
        // At most one iteration a slot: a turn sets its timer to a later time.
        while let Some(consumer) = timers.take_due(now_ns) {
            was_due = true;
            self.turn(&consumer, timers, now_ns);
        }
        let Some(consumer) = self.take_ready() else {
            return was_due;
        };
        self.turn(&consumer, timers, now_ns);
        true
    }

    /// Distributes one event, so that a waiting consumer gets a turn between two events. Where turns go by time it distributes all
    /// events, because they decide who is next. Returns false if there was none.
    fn distribute(&self, subscriptions: &Subscriptions<Arc<Consumer>>) -> bool {
        let Some(intake) = self.intake() else {
            return false;
        };
        let events = intake.len();
        for distributed in 0..events {
            if distributed > 0 && !self.has_timed_turns() {
                break;
            }
            intake.distribute_oldest(|event, came_ns| {
                // A supplier's thread that waits for the distribution lock must not wait for sending too.
                let dispatch = || {
                    if intake.is_waited_for() {
                        Dispatch::ByLane
                    } else {
                        Dispatch::InTurn
                    }
                };
                self.offer_to_all(event, came_ns, subscriptions, dispatch);
            });
        }
        events > 0
    }

    /// Offers an event to its consumers that want it and were connected when it came.
    fn offer_to_all(
        &self,
        event: &Incoming<'_>,
        came_ns: u64,
        subscriptions: &Subscriptions<Arc<Consumer>>,
        dispatch: impl Fn() -> Dispatch,
    ) {
        // A new snapshot, not that of the event's arrival: the old one may lack a consumer that connected before the event came.
        // A consumer with a new subscription is in it once.
        let consumers = subscriptions.snapshot();
        let mut matching = consumers.matching(Key::of(&event.header));
        self.skip_more_urgent(&mut matching);
        let own = matching.take_while(|consumer| self.serves(consumer));
        for consumer in own.filter(|consumer| consumer.connected_ns() <= came_ns) {
            consumer.offer(event, dispatch(), came_ns);
        }
    }

    /// Skips the consumers of this lane, which are the next ones.
    pub(crate) fn skip(&self, matching: &mut Matching<'_, Arc<Consumer>>) {
        matching.skip_first(|consumer| self.serves(consumer));
    }

    /// Skips the consumers of more urgent lanes, lane by lane: a snapshot has the consumers of a lane in a row, and another
    /// snapshot may have the lanes in another order.
    fn skip_more_urgent(&self, matching: &mut Matching<'_, Arc<Consumer>>) {
        while let Some(first) = matching.peek()
            && !self.serves(first)
        {
            first.lane().skip(matching);
        }
    }

    fn serves(&self, consumer: &Consumer) -> bool {
        core::ptr::eq(&raw const **consumer.lane(), self)
    }

    fn turn(&self, consumer: &Arc<Consumer>, timers: &mut TimerQueue<Arc<Consumer>>, now_ns: u64) {
        let TurnResult {
            next_turn_ns,
            check_at_ns,
        } = consumer.turn(now_ns);
        timers.set(consumer.slot(), consumer, check_at_ns);
        if let Some(turn_ns) = next_turn_ns {
            self.enqueue(Arc::clone(consumer), turn_ns);
        }
    }
}
