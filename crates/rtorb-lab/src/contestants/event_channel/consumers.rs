//! A process with consumers, each of which counts what it receives by the numbers of the events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rtorb::{Limits, Orb, SystemException};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::ProxyPushSupplier;
use rtorb_services::stubs::rtec_event::rtec_event_comm::{
    Event, PushConsumer, PushConsumerServant,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rtec::{self, Stamp};
use super::{CONSUMERS_MAX, Subscribers};
use crate::contestants::square_wave::receiver::server;
use crate::processes::questions::{json, serve_beside};

/// Consumers that listen, and are not connected yet.
#[derive(Debug)]
pub struct Consumers {
    orb: Orb,
    channel: String,
    subscribers: Subscribers,
    counted: Arc<Vec<Arc<Counted>>>,
    objects: Vec<PushConsumer>,
}

impl Consumers {
    /// Makes a [`server`] and the objects.
    ///
    /// # Errors
    /// What the ORB said, or that these are too many.
    pub fn open(endpoint: &str, channel: &str, subscribers: &Subscribers) -> Result<Self, String> {
        subscribers.check()?;
        // One a consumer, and a few for clients that ask whether they are there.
        let limits =
            Limits::with(|limits| limits.connections_max = CONSUMERS_MAX + CONNECTIONS_BESIDE);
        let (orb, poa) = server(endpoint, "consumers", subscribers.priority, limits)?;
        let counted: Vec<Arc<Counted>> = (0..subscribers.count)
            .map(|_| Arc::new(Counted::of(subscribers)))
            .collect();
        let activated = counted
            .iter()
            .map(|counted| poa.activate::<PushConsumer, _>(Arc::clone(counted)));
        let objects = activated
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            orb,
            channel: channel.to_owned(),
            subscribers: subscribers.clone(),
            counted: Arc::new(counted),
            objects,
        })
    }

    /// Serves, and answers questions on standard input, until that ends; then the process ends.
    ///
    /// # Errors
    /// What the host refused.
    pub fn run(self) -> Result<(), String> {
        let orb = self.orb.clone();
        let mut asked = Asked {
            consumers: self,
            proxies: Vec::new(),
        };
        let answer = move |question| asked.answer(question);
        serve_beside(&orb, "", answer)
    }
}

/// What consumers are asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// To subscribe.
    Connect,
    /// To forget all events: numbers begin at 0 again.
    Clear,
    /// To sleep so long over each event from now on, in nanoseconds.
    Work(u64),
    /// How many events have come: [`Received`].
    Received,
    /// The [`Latencies`] of the first so many events.
    Latencies(usize),
}

/// How many events have come.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Received {
    /// To the consumer with the fewest.
    pub(super) fewest: u64,
    /// To all together.
    pub(super) all: u64,
}

/// What the thread that answers questions has.
#[derive(Debug)]
struct Asked {
    consumers: Consumers,
    /// Kept, since whoever is connected may want to go.
    proxies: Vec<ProxyPushSupplier>,
}

impl Asked {
    fn answer(&mut self, question: Question) -> Result<Value, String> {
        let counted = &self.consumers.counted;
        match question {
            Question::Connect => self.connect()?,
            Question::Clear => counted.iter().for_each(|counted| counted.clear()),
            Question::Work(work_ns) => {
                let work_ns = work_ns.min(WORK_NS_MAX);
                let work = counted.iter().map(|counted| &counted.work_ns);
                work.for_each(|time_ns| time_ns.store(work_ns, Ordering::Relaxed));
            }
            Question::Received => {
                let each = || counted.iter().map(|counted| counted.received());
                return json(&Received {
                    fewest: each().min().unwrap_or(0),
                    all: each().sum(),
                });
            }
            Question::Latencies(events) => return json(&Latencies::of(counted, events)),
        }
        json(&())
    }

    fn connect(&mut self) -> Result<(), String> {
        let Consumers {
            orb,
            channel,
            subscribers,
            objects,
            ..
        } = &self.consumers;
        let Subscribers {
            source, priority, ..
        } = *subscribers;
        let channel = rtec::channel(orb, channel, priority)?;
        for object in &objects[self.proxies.len()..] {
            let proxy = rtec::subscribe(&channel, object, source, priority)?;
            self.proxies.push(proxy);
        }
        Ok(())
    }
}

/// The servant: what one consumer has received.
#[derive(Debug)]
struct Counted {
    /// The number of the event that comes next, if none is lost.
    next: AtomicU64,
    received: AtomicU64,
    lost: AtomicU64,
    repeated: AtomicU64,
    malformed: AtomicU64,
    /// By number; [`NOT_RECEIVED`] where none came.
    latencies_ns: Vec<AtomicU32>,
    /// For how long it sleeps over an event.
    work_ns: AtomicU64,
}

impl PushConsumerServant for Counted {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        let now_ns = monotonic_ns();
        for event in data {
            match Stamp::read(&event.data.payload) {
                Some(stamp) => self.count(stamp, now_ns),
                None => add(&self.malformed, 1),
            }
        }
        let work_ns = self.work_ns.load(Ordering::Relaxed);
        if work_ns > 0 {
            sleep_until(monotonic_ns() + work_ns);
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Counted {
    fn of(subscribers: &Subscribers) -> Self {
        let latency = |_| AtomicU32::new(NOT_RECEIVED);
        Self {
            next: AtomicU64::new(0),
            received: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            latencies_ns: (0..subscribers.events_max).map(latency).collect(),
            work_ns: AtomicU64::new(0),
        }
    }

    /// Events of one consumer come one after another, though not always from the same thread.
    fn count(&self, stamp: Stamp, now_ns: u64) {
        let Stamp { number, release_ns } = stamp;
        let next = self.next.load(Ordering::Relaxed);
        match number.checked_sub(next) {
            Some(missing) => {
                add(&self.lost, missing);
                self.next.store(number + 1, Ordering::Relaxed);
            }
            None => add(&self.repeated, 1),
        }
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(latency_ns) = self.latencies_ns.get(place) {
            let ns = u32::try_from(now_ns.saturating_sub(release_ns)).unwrap_or(NOT_RECEIVED);
            latency_ns.store(ns.min(NOT_RECEIVED - 1), Ordering::Relaxed);
        }
        // Last: whoever sees the event counted sees its latency.
        self.received.fetch_add(1, Ordering::Release);
    }

    fn clear(&self) {
        let counters = [&self.next, &self.lost, &self.repeated, &self.malformed];
        for counter in counters.into_iter().chain([&self.received]) {
            counter.store(0, Ordering::Relaxed);
        }
        for latency_ns in &self.latencies_ns {
            latency_ns.store(NOT_RECEIVED, Ordering::Relaxed);
        }
    }

    fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }
}

/// What consumers answer after a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Of each consumer those of the first events, by their numbers; [`NOT_RECEIVED`] where none came.
    pub consumers_ns: Vec<Vec<u32>>,
    /// Numbers that were left out, over all consumers.
    pub lost: u64,
    /// Events whose number had been there before, or that came after a later one.
    pub repeated: u64,
    /// Events that carried no number.
    pub malformed: u64,
}

impl Latencies {
    fn of(counted: &[Arc<Counted>], events: usize) -> Self {
        let sum = |which: fn(&Counted) -> &AtomicU64| {
            let each = counted.iter();
            each.map(|counted| which(counted).load(Ordering::Relaxed))
                .sum()
        };
        let latencies_ns = |counted: &Arc<Counted>| {
            let first = counted.latencies_ns.iter().take(events);
            first.map(|ns| ns.load(Ordering::Relaxed)).collect()
        };
        Self {
            lost: sum(|counted| &counted.lost),
            repeated: sum(|counted| &counted.repeated),
            malformed: sum(|counted| &counted.malformed),
            consumers_ns: counted.iter().map(latencies_ns).collect(),
        }
    }

    /// Events that were not as they should be.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.lost + self.repeated + self.malformed
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// More than any latency that is remembered.
pub const NOT_RECEIVED: u32 = u32::MAX;
const WORK_NS_MAX: u64 = 1_000_000_000;
const CONNECTIONS_BESIDE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> Counted {
        Counted::of(&Subscribers {
            count: 1,
            source: 1,
            priority: 0,
            events_max: 4,
        })
    }

    fn receive(counted: &Counted, numbers: &[u64]) {
        for number in numbers {
            let stamp = Stamp {
                number: *number,
                release_ns: monotonic_ns(),
            };
            let mut payload = vec![0; rtec::STAMP_BYTES];
            stamp.write(&mut payload);
            counted
                .push(&[rtec::event(1, rtec::FELL, payload)])
                .unwrap();
        }
    }

    #[test]
    fn what_is_lost_and_what_comes_twice_is_counted() {
        let counted = Arc::new(counted());
        receive(&counted, &[0, 1, 3, 3, 2, 9]);
        let found = Latencies::of(std::slice::from_ref(&counted), 4);
        assert_eq!((found.lost, found.repeated, found.wrong()), (6, 2, 8));
        assert_eq!(counted.received(), 6);
        assert!(found.consumers_ns[0].iter().all(|ns| *ns < NOT_RECEIVED));
        counted.push(&[rtec::event(1, rtec::FELL, vec![])]).unwrap();
        assert_eq!(counted.malformed.load(Ordering::Relaxed), 1);
        counted.clear();
        receive(&counted, &[0]);
        let found = Latencies::of(&[counted], 2);
        assert_eq!(found.wrong(), 0);
        assert_eq!(found.consumers_ns[0][1], NOT_RECEIVED);
    }
}
