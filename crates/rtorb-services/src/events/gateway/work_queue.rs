//! The work of a gateway's thread: pushes to forward, a changed subscription, a lost channel, the end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex};

use super::config::{End, GatewayStatistics};
use super::message::{ForwardedMessage, TtlResult};
use super::subscribed::SubscribedEntry;

/// The gateway's thread shares it with the objects that the channels call.
#[derive(Debug)]
pub(super) struct WorkQueue {
    state: Mutex<WorkState>,
    changed: Condvar,
    counts: WorkCounts,
    ended: AtomicBool,
}

#[derive(Debug)]
struct WorkState {
    /// The number of the current connection. Late calls for an earlier connection are ignored.
    connection: u64,
    pushes: BoundedQueue<ForwardedMessage>,
    wanted: Option<Vec<SubscribedEntry>>,
    lost: Option<End>,
    stop: bool,
}

/// The next work of the gateway's thread.
#[derive(Debug)]
pub(super) enum GatewayWork {
    Forward(ForwardedMessage),
    Subscribe(Vec<SubscribedEntry>),
    Lost(End),
    Stop,
    /// No work before the deadline.
    Nothing,
}

#[derive(Debug, Default)]
struct WorkCounts {
    received: AtomicU64,
    forwarded: AtomicU64,
    expired: AtomicU64,
    discarded_full: AtomicU64,
    discarded_lost: AtomicU64,
    malformed: AtomicU64,
    connections: AtomicU64,
}

impl WorkQueue {
    pub(super) fn new(pushes_max: usize, bytes_max: usize) -> Self {
        Self {
            state: Mutex::new(WorkState {
                connection: 0,
                pushes: BoundedQueue::new(pushes_max, bytes_max),
                wanted: None,
                lost: None,
                stop: false,
            }),
            changed: Condvar::new(),
            counts: WorkCounts::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// Begins a new connection and returns its number.
    pub(super) fn begin(&self) -> u64 {
        let mut state = self.state.lock();
        state.connection += 1;
        state.wanted = None;
        state.lost = None;
        state.connection
    }

    /// Queues a push of a connection. The oldest pushes make room, unless it is larger than the queue.
    pub(super) fn put(&self, connection: u64, taken: TtlResult) {
        let message = taken.message;
        let events = message.as_ref().map_or(0, |message| message.events);
        add(&self.counts.received, taken.expired + events);
        add(&self.counts.expired, taken.expired);
        let Some(message) = message else { return };
        let mut state = self.state.lock();
        if state.connection != connection {
            add(&self.counts.discarded_lost, message.events);
            return;
        }
        let bytes = message.bytes();
        let discard = |message: ForwardedMessage| add(&self.counts.discarded_full, message.events);
        if state.pushes.push_over(message, bytes, discard) {
            self.changed.notify_one(&self.state);
        }
    }

    /// Notes the new subscription.
    pub(super) fn want(&self, connection: u64, wanted: Vec<SubscribedEntry>) {
        let mut state = self.state.lock();
        if state.connection == connection {
            state.wanted = Some(wanted);
            self.changed.notify_one(&self.state);
        }
    }

    /// Notes that a channel has ended the connection.
    pub(super) fn lose(&self, connection: u64, end: End) {
        let mut state = self.state.lock();
        if state.connection == connection {
            state.lost = Some(end);
            self.changed.notify_one(&self.state);
        }
    }

    /// Asks the thread to end.
    pub(super) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all(&self.state);
    }

    pub(super) fn shall_stop(&self) -> bool {
        self.state.lock().stop
    }

    /// Waits for work until `deadline_ns`. A changed subscription goes before waiting pushes.
    pub(super) fn next(&self, deadline_ns: u64) -> GatewayWork {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return GatewayWork::Stop;
            }
            if let Some(end) = state.lost.take() {
                return GatewayWork::Lost(end);
            }
            if let Some(wanted) = state.wanted.take() {
                return GatewayWork::Subscribe(wanted);
            }
            if let Some(message) = state.pushes.pop() {
                return GatewayWork::Forward(message);
            }
            if monotonic_ns() >= deadline_ns {
                return GatewayWork::Nothing;
            }
            self.changed.wait_until(&mut state, deadline_ns);
        }
    }

    /// Sleeps until the deadline or until the thread must end.
    pub(super) fn pause_until(&self, deadline_ns: u64) {
        let mut state = self.state.lock();
        while !state.stop && monotonic_ns() < deadline_ns {
            self.changed.wait_until(&mut state, deadline_ns);
        }
    }

    /// Discards waiting pushes after a channel is lost.
    pub(super) fn clear(&self) {
        let mut state = self.state.lock();
        // Ignore later calls for the connection that has ended.
        state.connection += 1;
        let lost = state.pushes.drain(usize::MAX).map(|push| push.events);
        self.count_lost(lost.sum());
    }

    pub(super) fn count_forwarded(&self, events: u32) {
        add(&self.counts.forwarded, events);
    }

    pub(super) fn count_lost(&self, events: u32) {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("gateway-loss-uncounted") {
            return;
        }
        add(&self.counts.discarded_lost, events);
    }

    pub(super) fn count_malformed(&self) {
        add(&self.counts.malformed, 1);
    }

    pub(super) fn count_connection(&self) {
        add(&self.counts.connections, 1);
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(super) fn statistics(&self) -> GatewayStatistics {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        GatewayStatistics {
            received: of(&counts.received),
            forwarded: of(&counts.forwarded),
            expired: of(&counts.expired),
            discarded_full: of(&counts.discarded_full),
            discarded_lost: of(&counts.discarded_lost),
            malformed: of(&counts.malformed),
            connections: of(&counts.connections),
        }
    }
}

fn add(count: &AtomicU64, events: u32) {
    count.fetch_add(u64::from(events), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event::{event_of, header};
    use crate::stubs::rtec_event::rtec_event_comm::EventHeader;
    use rtorb::cdr::{ByteOrder, Encode, Reader, Writer};

    fn taken(payload_bytes: usize) -> TtlResult {
        let mut event = event_of(EventHeader {
            ttl: 1,
            ..header(16, 1)
        });
        event.data.payload = vec![7; payload_bytes];
        let events = [event];
        let mut w = Writer::new(Vec::new(), 1 << 20);
        events[..].encode(&mut w).expect("it can be written");
        ForwardedMessage::take(&mut Reader::new(&w.to_bytes(), ByteOrder::NATIVE)).expect("a set")
    }

    #[test]
    fn the_oldest_makes_room_and_is_counted() {
        let work = WorkQueue::new(2, 1 << 20);
        let connection = work.begin();
        (0..3).for_each(|bytes| work.put(connection, taken(bytes)));
        let statistics = work.statistics();
        assert_eq!((statistics.received, statistics.discarded_full), (3, 1));
        let sizes: Vec<usize> = std::iter::from_fn(|| match work.next(0) {
            GatewayWork::Forward(message) => Some(message.bytes()),
            _ => None,
        })
        .collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes[0] <= sizes[1], "the first of three is gone");
    }

    #[test]
    fn bytes_are_bounded_too() {
        let work = WorkQueue::new(100, 300);
        let connection = work.begin();
        work.put(connection, taken(100));
        work.put(connection, taken(1000));
        assert_eq!(work.statistics().discarded_full, 1, "the one too large");
        work.put(connection, taken(110));
        assert_eq!(work.statistics().discarded_full, 2);
        assert!(matches!(work.next(0), GatewayWork::Forward(message) if message.bytes() > 110));
        assert!(matches!(work.next(0), GatewayWork::Nothing));
    }

    #[test]
    fn what_an_earlier_connection_is_told_is_not_for_this_one() {
        let work = WorkQueue::new(10, 1 << 20);
        let first = work.begin();
        work.put(first, taken(1));
        work.clear();
        let second = work.begin();
        work.put(first, taken(1));
        work.lose(first, End::From);
        work.want(first, Vec::new());
        assert!(matches!(work.next(0), GatewayWork::Nothing));
        assert_eq!(work.statistics().discarded_lost, 2);
        work.lose(second, End::To);
        work.put(second, taken(1));
        assert!(matches!(work.next(0), GatewayWork::Lost(End::To)));
        work.stop();
        assert!(matches!(work.next(0), GatewayWork::Stop));
    }
}
