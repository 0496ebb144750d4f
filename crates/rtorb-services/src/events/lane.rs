//! A lane: the part of a channel with one priority. It has events to distribute and consumers that are ready to be served.
//!
//! This is the state that suppliers' threads and the lane's own thread share; `lane_thread` is the thread. `C` is a consumer.

use super::config::{ChannelConfig, Dispatching, WhenFull};
use super::intake::Intake;
use super::wake_signal::WakeSignal;
use core::cmp::Ordering as Order;
use core::sync::atomic::{AtomicI16, Ordering};
use rtorb::rt::Priority;
use rtorb_os::sync::Mutex;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The shared state of a lane.
#[derive(Debug)]
pub(crate) struct Lane<C> {
    /// The CORBA priority that its thread has, or takes before its next step.
    priority: AtomicI16,
    /// `None` where suppliers' threads never leave events to the lane: with reactive dispatching, and where they may have to wait
    /// for room in a consumer's queue.
    intake: Option<Intake>,
    ready: Mutex<ReadyQueue<C>>,
    signal: WakeSignal,
}

/// Consumers with something to send, or to set their timers, each at most once, and once more when it departs.
#[derive(Debug)]
struct ReadyQueue<C> {
    consumers: BinaryHeap<ReadyConsumer<C>>,
    arrivals: u64,
}

#[derive(Debug)]
struct ReadyConsumer<C> {
    /// The time of its turn in lanes ordered by deadline or laxity; 0 in order of arrival.
    turn_ns: u64,
    arrival: u64,
    consumer: Arc<C>,
}

impl<C> Lane<C> {
    /// The lanes of a channel, the most urgent first.
    pub(crate) fn all(config: &ChannelConfig) -> Vec<Arc<Self>> {
        let lanes = config.lanes.iter();
        lanes
            .map(|&priority| Arc::new(Self::new(priority, config)))
            .collect()
    }

    fn new(priority: Priority, config: &ChannelConfig) -> Self {
        let consumers_max = config.consumers_max;
        let has_intake = config.dispatching != Dispatching::Reactive
            && !matches!(config.when_full, WhenFull::Wait { .. });
        Self {
            priority: AtomicI16::new(priority.get()),
            intake: has_intake.then(|| Intake::new(config)),
            ready: Mutex::new(ReadyQueue {
                // A departing consumer is queued once more, so that its timer is removed.
                consumers: BinaryHeap::with_capacity(2 * consumers_max),
                arrivals: 0,
            }),
            signal: WakeSignal::default(),
        }
    }

    /// The CORBA priority of its thread.
    pub(crate) fn priority(&self) -> Priority {
        let number = self.priority.load(Ordering::Acquire);
        Priority::new(number).expect("it was a priority")
    }

    /// Gives its thread another priority before its next step.
    pub(crate) fn set_priority(&self, priority: Priority) {
        self.priority.store(priority.get(), Ordering::Release);
        self.signal.wake();
    }

    /// The queue of events that are not distributed yet, if the lane has one.
    pub(crate) fn intake(&self) -> Option<&Intake> {
        self.intake.as_ref()
    }

    /// Events in the intake.
    pub(crate) fn undistributed(&self) -> usize {
        self.intake().map_or(0, Intake::len)
    }

    /// Queues a consumer for its turn, unless the lane is stopped. The thread sees it after the next [`wake`](Self::wake).
    pub(crate) fn enqueue(&self, consumer: Arc<C>, turn_ns: u64) {
        let mut ready = self.ready.lock();
        if self.is_stopping() {
            return;
        }
        ready.arrivals += 1;
        let arrival = ready.arrivals;
        ready.consumers.push(ReadyConsumer {
            turn_ns,
            arrival,
            consumer,
        });
    }

    /// Takes the consumer whose turn it is.
    pub(crate) fn take_ready(&self) -> Option<Arc<C>> {
        let next = self.ready.lock().consumers.pop();
        next.map(|ready| ready.consumer)
    }

    /// True if a consumer waits whose turn goes by time.
    pub(crate) fn has_timed_turns(&self) -> bool {
        let ready = self.ready.lock();
        ready.consumers.peek().is_some_and(|next| next.turn_ns > 0)
    }

    /// Wakes the lane's thread if it sleeps.
    pub(crate) fn wake(&self) {
        self.signal.wake();
    }

    /// What the lane's thread sleeps on.
    pub(crate) fn signal(&self) -> &WakeSignal {
        &self.signal
    }

    /// Asks the lane's thread to end after the turn in progress. Forgets the consumers that wait for their turns: a consumer holds its
    /// lane.
    pub(crate) fn stop(&self) {
        self.signal.stop();
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("consumers-kept") {
            return;
        }
        let waiting = core::mem::take(&mut self.ready.lock().consumers);
        drop(waiting);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.signal.is_stopping()
    }
}

impl<C> Ord for ReadyConsumer<C> {
    /// The greatest is the next one.
    fn cmp(&self, other: &Self) -> Order {
        (other.turn_ns, other.arrival).cmp(&(self.turn_ns, self.arrival))
    }
}

impl<C> PartialOrd for ReadyConsumer<C> {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl<C> PartialEq for ReadyConsumer<C> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Order::Equal
    }
}

impl<C> Eq for ReadyConsumer<C> {}
