//! A lane: a thread of one priority, the consumers that it has to serve now, and those that it has to look at later.

use super::agenda::Agenda;
use super::consumer::{Consumer, Turn};
use super::doorbell::Doorbell;
use core::cmp::Ordering as Order;
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
    /// One of that priority, for at most so many consumers.
    pub(crate) fn new(priority: Priority, consumers_max: usize) -> Self {
        Self {
            priority,
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
    pub(crate) fn work(&self, slots: usize) {
        let mut agenda = Agenda::new(slots);
        while !self.is_stopping.load(Ordering::SeqCst) {
            let heard = self.bell.rings();
            if !self.step(&mut agenda) {
                self.bell.wait(heard, agenda.next_ns());
            }
        }
    }

    /// Looks at those whose time has come, and serves the one whose turn it is; false when there was nothing to do.
    pub(crate) fn step(&self, agenda: &mut Agenda) -> bool {
        let now_ns = monotonic_ns();
        let mut was_due = false;
        // As many as there are slots at most: what a turn puts back is later than now.
        while let Some(consumer) = agenda.take_due(now_ns) {
            was_due = true;
            self.turn(&consumer, agenda);
        }
        let first = self.ready.lock().standing.pop();
        match first {
            Some(standing) => self.turn(&standing.consumer, agenda),
            None => return was_due,
        }
        true
    }

    fn turn(&self, consumer: &Arc<Consumer>, agenda: &mut Agenda) {
        let lane = consumer.lane();
        if !core::ptr::eq(&**lane, self) {
            // It has another subscription by now, which is another lane's.
            agenda.set(consumer, None);
            lane.add(Arc::clone(consumer), 0);
            lane.ring();
            return;
        }
        let Turn {
            stands_again,
            look_at_ns,
        } = consumer.turn(monotonic_ns());
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
