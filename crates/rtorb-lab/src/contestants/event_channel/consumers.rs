//! A process with consumers, each of which counts what it receives by the numbers of the events.

use std::io::{self, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rtorb::{Limits, Orb, PoaPolicies, Strategies, SystemException};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::ProxyPushSupplier;
use rtorb_services::stubs::rtec_event::rtec_event_comm::{
    Event, PushConsumer, PushConsumerServant,
};

use super::rtec::{self, Stamp};
use super::{CONSUMERS_MAX, Subscribers};
use crate::contestants::rates::{answer_lines, number};
use crate::contestants::square_wave::receiver::{lane, propagated};

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
    /// Makes an ORB with the preset `tao` and the objects. With a priority, they take that of the calls, and are served by a
    /// lane of one thread.
    ///
    /// # Errors
    /// What the ORB said.
    pub fn open(endpoint: &str, channel: &str, subscribers: &Subscribers) -> Result<Self, String> {
        let priority = subscribers.priority;
        let lane = (priority > 0).then(|| lane(priority)).transpose()?;
        // One a consumer, and a few for clients that ask whether they are there.
        let limits =
            Limits::with(|limits| limits.connections_max = CONSUMERS_MAX + CONNECTIONS_BESIDE);
        let orb = Orb::builder()
            .strategies(Strategies::TAO)
            .limits(limits)
            .lanes(lane)
            .listen(endpoint)
            .and_then(rtorb::OrbBuilder::build)
            .map_err(|error| error.to_string())?;
        let policies = lane.map_or_else(PoaPolicies::default, propagated);
        let root = orb.root_poa().map_err(|exception| exception.to_string())?;
        let poa = root
            .create_poa("consumers", policies)
            .map_err(|error| error.to_string())?;
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
    pub fn run(self, ready: impl FnOnce(&str)) -> Result<(), String> {
        let orb = self.orb.clone();
        let mut asked = Asked {
            consumers: self,
            proxies: Vec::new(),
        };
        let questions = move || {
            // An error means that the laboratory is gone, and then it is time to end too.
            let _ = answer_lines(
                BufReader::new(io::stdin()),
                io::stdout(),
                |question, output| asked.answer(question, output),
            );
            std::process::exit(0);
        };
        rtorb_os::thread::spawn("questions", &Default::default(), questions)
            .map_err(|refused| refused.to_string())?;
        ready("");
        orb.run().map_err(|error| error.to_string())
    }
}

/// What the thread that answers questions has.
#[derive(Debug)]
struct Asked {
    consumers: Consumers,
    /// Kept, since whoever is connected may want to go.
    proxies: Vec<ProxyPushSupplier>,
}

impl Asked {
    fn answer(&mut self, question: &str, output: &mut impl Write) -> Result<(), String> {
        let (word, rest) = question.split_once(' ').unwrap_or((question, ""));
        let counted = &self.consumers.counted;
        let written = match word {
            "connect" => {
                self.connect()?;
                writeln!(output, "connected")
            }
            "clear" => {
                counted.iter().for_each(|counted| counted.clear());
                writeln!(output, "cleared")
            }
            "work" => {
                let work_ns = (number(rest)? as u64).min(WORK_NS_MAX);
                let set =
                    |counted: &Arc<Counted>| counted.work_ns.store(work_ns, Ordering::Relaxed);
                counted.iter().for_each(set);
                writeln!(output, "working")
            }
            "received" => {
                let each = || counted.iter().map(|counted| counted.received());
                let fewest = each().min().unwrap_or(0);
                writeln!(output, "received {fewest} {}", each().sum::<u64>())
            }
            "latencies" => Latencies::of(counted, number(rest)?).write(output),
            _ => return Err(format!("not understood: {question:?}")),
        };
        written.map_err(|error| error.to_string())
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
        let Stamp { number, sent_ns } = stamp;
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
            let ns = u32::try_from(now_ns.saturating_sub(sent_ns)).unwrap_or(NOT_RECEIVED);
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let events = self.consumers_ns.first().map_or(0, Vec::len);
        let Self {
            lost,
            repeated,
            malformed,
            consumers_ns,
        } = self;
        let consumers = consumers_ns.len();
        writeln!(
            output,
            "latencies {consumers} {events} {lost} {repeated} {malformed}"
        )?;
        let mut octets = Vec::with_capacity(consumers * events * LATENCY_BYTES);
        for ns in consumers_ns.iter().flatten() {
            octets.extend_from_slice(&ns.to_le_bytes());
        }
        output.write_all(&octets)
    }

    /// How many octets follow this line.
    ///
    /// # Errors
    /// That the line announces none, in its own words if it is an error.
    pub fn octets_after(line: &str) -> Result<usize, String> {
        let [consumers, events, ..] = Self::head(line)?;
        let count = consumers.checked_mul(events);
        count
            .and_then(|count| usize::try_from(count).ok())
            .filter(|count| *count <= super::LATENCIES_MAX)
            .map(|count| count * LATENCY_BYTES)
            .ok_or_else(|| line.to_owned())
    }

    /// Puts the line and the octets after it together.
    ///
    /// # Errors
    /// As [`Self::octets_after`].
    pub fn read(line: &str, octets: &[u8]) -> Result<Self, String> {
        let [consumers, events, lost, repeated, malformed] = Self::head(line)?;
        let mut all = octets
            .as_chunks::<LATENCY_BYTES>()
            .0
            .iter()
            .map(|four| u32::from_le_bytes(*four));
        let events = usize::try_from(events).map_err(|error| error.to_string())?;
        Ok(Self {
            consumers_ns: (0..consumers)
                .map(|_| all.by_ref().take(events).collect())
                .collect(),
            lost,
            repeated,
            malformed,
        })
    }

    fn head(line: &str) -> Result<[u64; 5], String> {
        let not_understood = || line.strip_prefix("error ").unwrap_or(line).to_owned();
        let words = line.strip_prefix("latencies ").ok_or_else(not_understood)?;
        let numbers = words.split(' ').map(|word| word.parse().ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        numbers.ok_or_else(not_understood)
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// More than any latency that is remembered.
pub const NOT_RECEIVED: u32 = u32::MAX;
const WORK_NS_MAX: u64 = 1_000_000_000;
const LATENCY_BYTES: usize = size_of::<u32>();
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
                sent_ns: monotonic_ns(),
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

    #[test]
    fn latencies_are_read_back_consumer_by_consumer() {
        let latencies = Latencies {
            consumers_ns: vec![vec![1, 2, NOT_RECEIVED], vec![4, 5, 6]],
            lost: 1,
            repeated: 2,
            malformed: 3,
        };
        let mut written = Vec::new();
        latencies.write(&mut written).unwrap();
        let end = written.iter().position(|octet| *octet == b'\n').unwrap();
        let line = std::str::from_utf8(&written[..end]).unwrap();
        let rest = &written[end + 1..];
        assert_eq!(Latencies::octets_after(line), Ok(rest.len()));
        assert_eq!(Latencies::read(line, rest), Ok(latencies));
        assert_eq!(
            Latencies::octets_after("error gone"),
            Err("gone".to_owned())
        );
        assert!(Latencies::octets_after("latencies 99999999 99999999 0 0 0").is_err());
    }
}
