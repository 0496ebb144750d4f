//! The work of a member's thread: received events, a changed subscription, news to report, a lost channel, the end.

use std::sync::atomic::{AtomicBool, Ordering};

use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex};
use zenoh::key_expr::KeyExpr;

use crate::bands;
use crate::config::FederationNews;
use crate::keys::{EventKey, KeyPattern};
use crate::message::SampleHeader;

/// The member's thread shares it with the threads of Zenoh, those of its lanes, and the objects that the channel calls.
#[derive(Debug)]
pub(crate) struct WorkQueue {
    state: Mutex<WorkState>,
    changed: Condvar,
    ended: AtomicBool,
}

#[derive(Debug)]
struct WorkState {
    /// The number of the current connection to the channel. Late calls for an earlier one are ignored.
    connection: u64,
    /// The queue of each band, the most urgent first.
    bands: [BoundedQueue<ReceivedSample>; bands::COUNT],
    wanted: Option<Vec<KeyPattern>>,
    news: BoundedQueue<FederationNews>,
    is_lost: bool,
    stop: bool,
}

/// An event from the federation that waits to be delivered.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedSample {
    pub(crate) key_expr: KeyExpr<'static>,
    pub(crate) key: EventKey,
    pub(crate) header: SampleHeader,
    pub(crate) payload: Vec<u8>,
}

/// The next work of the member's thread.
#[derive(Debug)]
pub(crate) enum FederationWork {
    Deliver(ReceivedSample),
    Subscribe(Vec<KeyPattern>),
    Report(FederationNews),
    Lost,
    Stop,
    /// No work before the deadline.
    Nothing,
}

impl WorkQueue {
    pub(crate) fn new(events_max: usize, bytes_max: usize) -> Self {
        Self {
            state: Mutex::new(WorkState {
                connection: 0,
                bands: std::array::from_fn(|_| BoundedQueue::new(events_max, bytes_max)),
                wanted: None,
                news: BoundedQueue::new(NEWS_MAX, usize::MAX),
                is_lost: false,
                stop: false,
            }),
            changed: Condvar::new(),
            ended: AtomicBool::new(false),
        }
    }

    /// Begins a new connection to the channel and returns its number.
    pub(crate) fn begin(&self) -> u64 {
        let mut state = self.state.lock();
        state.connection += 1;
        state.wanted = None;
        state.is_lost = false;
        state.connection
    }

    /// Queues an event of the band at `place`, and returns how many were discarded: the oldest make room.
    pub(crate) fn put(&self, place: usize, sample: ReceivedSample) -> u64 {
        let mut discarded = 0;
        let bytes = sample.payload.len();
        let mut state = self.state.lock();
        if state.bands[place].push_over(sample, bytes, |_| discarded += 1) {
            self.changed.notify_one(&self.state);
        }
        discarded
    }

    /// Notes what the consumers want.
    pub(crate) fn want(&self, connection: u64, wanted: Vec<KeyPattern>) {
        let mut state = self.state.lock();
        if state.connection == connection {
            state.wanted = Some(wanted);
            self.changed.notify_one(&self.state);
        }
    }

    /// Has the member's thread report something. Beyond a bound, nothing is reported.
    pub(crate) fn report(&self, news: FederationNews) {
        let mut state = self.state.lock();
        if state.news.push(news, 0).is_ok() {
            self.changed.notify_one(&self.state);
        }
    }

    /// Notes that the channel has ended a connection.
    pub(crate) fn lose(&self, connection: u64) {
        let mut state = self.state.lock();
        if state.connection == connection {
            state.is_lost = true;
            self.changed.notify_one(&self.state);
        }
    }

    /// Asks the thread to end.
    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all(&self.state);
    }

    pub(crate) fn shall_stop(&self) -> bool {
        self.state.lock().stop
    }

    /// Waits for work until `deadline_ns`. What changes the member goes before events, and urgent events before others.
    pub(crate) fn next(&self, deadline_ns: u64) -> FederationWork {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return FederationWork::Stop;
            }
            if core::mem::take(&mut state.is_lost) {
                return FederationWork::Lost;
            }
            if let Some(wanted) = state.wanted.take() {
                return FederationWork::Subscribe(wanted);
            }
            if let Some(news) = state.news.pop() {
                return FederationWork::Report(news);
            }
            if let Some(sample) = state.bands.iter_mut().find_map(BoundedQueue::pop) {
                return FederationWork::Deliver(sample);
            }
            if monotonic_ns() >= deadline_ns {
                return FederationWork::Nothing;
            }
            self.changed.wait_until(&mut state, deadline_ns);
        }
    }

    /// Takes the news that nobody has reported yet.
    pub(crate) fn take_news(&self) -> Option<FederationNews> {
        self.state.lock().news.pop()
    }

    /// Sleeps until the deadline, news to report, or the end.
    pub(crate) fn pause_until(&self, deadline_ns: u64) {
        let mut state = self.state.lock();
        while !state.stop && state.news.is_empty() && monotonic_ns() < deadline_ns {
            self.changed.wait_until(&mut state, deadline_ns);
        }
    }

    /// Discards waiting events after the channel is lost, and returns how many.
    pub(crate) fn clear(&self) -> u64 {
        let mut state = self.state.lock();
        // Later calls for the connection that has ended are ignored.
        state.connection += 1;
        let drain = |band: &mut BoundedQueue<ReceivedSample>| band.drain(usize::MAX).len() as u64;
        state.bands.iter_mut().map(drain).sum()
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// The greatest number of news that wait to be reported.
const NEWS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(index: u64, payload_bytes: usize) -> ReceivedSample {
        ReceivedSample {
            key_expr: KeyExpr::try_from("a/b/20/1").expect("a key"),
            key: EventKey {
                event_type: 20,
                source: 1,
            },
            header: SampleHeader {
                priority: None,
                run: 1,
                index,
                sent_ticks: 0,
                deadline_ns: 0,
            },
            payload: vec![0; payload_bytes],
        }
    }

    fn next(work: &WorkQueue) -> Option<u64> {
        match work.next(0) {
            FederationWork::Deliver(sample) => Some(sample.header.index),
            _ => None,
        }
    }

    #[test]
    fn urgent_events_go_first_and_each_band_keeps_its_order() {
        let work = WorkQueue::new(10, 1 << 10);
        for (place, index) in [(6, 0), (4, 1), (6, 2), (0, 3), (4, 4)] {
            assert_eq!(work.put(place, sample(index, 1)), 0);
        }
        let order: Vec<u64> = std::iter::from_fn(|| next(&work)).collect();
        assert_eq!(order, [3, 1, 4, 0, 2]);
    }

    #[test]
    fn the_oldest_of_a_full_band_makes_room_and_no_other_band_pays() {
        let work = WorkQueue::new(2, 1 << 10);
        assert_eq!(work.put(0, sample(9, 1)), 0);
        let discarded: u64 = (0..4).map(|index| work.put(6, sample(index, 1))).sum();
        assert_eq!(discarded, 2);
        assert_eq!(work.put(6, sample(5, 1 << 11)), 1, "larger than the queue");
        let order: Vec<u64> = std::iter::from_fn(|| next(&work)).collect();
        assert_eq!(order, [9, 2, 3]);
    }

    #[test]
    fn what_an_earlier_connection_says_is_not_for_this_one() {
        let work = WorkQueue::new(10, 1 << 10);
        let first = work.begin();
        work.put(0, sample(0, 1));
        assert_eq!(work.clear(), 1);
        let second = work.begin();
        work.lose(first);
        work.want(first, vec![KeyPattern::ANY]);
        assert!(matches!(work.next(0), FederationWork::Nothing));
        work.lose(second);
        assert!(matches!(work.next(0), FederationWork::Lost));
        work.stop();
        assert!(matches!(work.next(0), FederationWork::Stop));
    }

    #[test]
    fn news_are_bounded() {
        let work = WorkQueue::new(10, 1 << 10);
        for _ in 0..NEWS_MAX + 5 {
            work.report(FederationNews::Connected);
        }
        let news = std::iter::from_fn(|| work.take_news());
        assert_eq!(news.count(), NEWS_MAX);
    }
}
