//! What an event through a channel costs: the supplier, the channel, and each consumer.

use std::collections::BTreeMap;

use super::Statistic;
use super::cost::Curve;
use super::orb::Orb;
use super::profile::{Profile, Service, whole_ns};

/// By the number of consumers; empty where nothing was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    by_consumers: BTreeMap<u64, Measured>,
    is_measured: bool,
}

/// With one number of consumers, by octets of data.
#[derive(Clone, Debug)]
struct Measured {
    consumers: u64,
    whole: Curve,
    supplier: Curve,
    channel: Curve,
    consumer: Curve,
}

/// An event, divided between those who execute it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCost {
    /// The supplier's push, in ns.
    pub push_ns: u64,
    /// The channel's work for the event itself, in ns.
    pub channel_ns: u64,
    /// The channel's work for each consumer, in ns.
    pub delivery_ns: u64,
    /// Each consumer's until its own code begins, in ns.
    pub consumer_ns: u64,
    /// How many samples it is made of; 0 where nothing was measured.
    pub samples: u64,
    /// Where it comes from, in words.
    pub source: String,
    /// What is assumed with it, and which command would measure it.
    pub assumption: Option<String>,
}

const MEASURED_BY: &str = "rtorb lab run profile";

impl Events {
    pub(super) fn of(profile: &Profile, statistic: Statistic) -> Self {
        let numbers = profile
            .all("event_channel", "event")
            .filter_map(|service| service.number("consumers"));
        let by_consumers = numbers
            .filter(|consumers| *consumers > 0)
            .filter_map(|consumers| {
                Some((consumers, Measured::of(profile, statistic, consumers)?))
            });
        Self {
            by_consumers: by_consumers.collect(),
            is_measured: true,
        }
    }

    pub(super) fn at(&self, orb: &Orb, consumers: u64, payload_octets: u32) -> EventCost {
        let fewer = self.by_consumers.range(..=consumers).next_back();
        let more = self.by_consumers.range(consumers..).next();
        let per_consumer = self.channel_ns_a_consumer(payload_octets);
        let shares =
            |(_, measured): (&u64, &Measured)| measured.shares(payload_octets, per_consumer);
        match (fewer.map(shares), more.map(shares)) {
            (Some(fewer), Some(more)) => fewer.or_larger(more),
            (None, Some(only)) => only,
            (Some(mut last), None) => {
                last.assumption.get_or_insert_with(|| {
                    format!(
                        "an event to {consumers} consumers was not measured: each is taken to cost what it does with the most that \
                         were measured; {}",
                        last.source
                    )
                });
                last
            }
            (None, None) => self.like_calls(orb, payload_octets),
        }
    }

    /// How the channel's execution grows with each consumer, in ns; `None` where one number of them was measured.
    fn channel_ns_a_consumer(&self, payload_octets: u32) -> Option<u64> {
        let (few, with_few) = self.by_consumers.first_key_value()?;
        let (many, with_many) = self.by_consumers.last_key_value()?;
        let octets = u64::from(payload_octets);
        let grown = with_many
            .channel
            .at(octets)
            .ns
            .saturating_sub(with_few.channel.at(octets).ns);
        (many > few).then(|| grown.div_ceil(many - few))
    }

    /// The supplier sends, the channel receives and sends to each, and each receives: halves of calls.
    fn like_calls(&self, orb: &Orb, payload_octets: u32) -> EventCost {
        let call = orb.call.at(u64::from(payload_octets));
        let send = orb.send(payload_octets);
        let half_ns = call.ns.div_ceil(2);
        EventCost {
            push_ns: send.ns,
            channel_ns: half_ns,
            delivery_ns: send.ns,
            consumer_ns: half_ns,
            samples: call.samples.min(send.samples),
            source: format!("halves of {}", call.source),
            assumption: self.is_measured.then(|| {
                format!(
                    "an event through a channel was not measured: sending and receiving are taken to be halves of calls; `{MEASURED_BY}` \
                     measures it"
                )
            }),
        }
    }
}

impl Measured {
    fn of(profile: &Profile, statistic: Statistic, consumers: u64) -> Option<Self> {
        let with = move |service: &&Service| {
            service
                .says("transport")
                .is_none_or(|transport| transport == "tcp")
                && service.number("consumers") == Some(consumers)
        };
        let curve = |service: &str, value: &dyn Fn(&Service) -> u64| {
            let points = profile
                .all("event_channel", service)
                .filter(with)
                .filter_map(|found| Some((found.number("payload_bytes")?, value(found), found)))
                .collect::<Vec<_>>();
            Curve::through(points.into_iter(), statistic, "octets of data")
        };
        // Those who execute it are measured in rounds: their means divide the whole, and bound nothing.
        let mean = |service: &Service| whole_ns(service.mean);
        Some(Self {
            consumers,
            whole: curve("event", &|service| service.ns(statistic))?,
            supplier: curve("supplier_execution", &mean)?,
            channel: curve("channel_execution", &mean)?,
            consumer: curve("consumer_execution", &mean)?,
        })
    }

    /// The whole event, divided as its execution is. Where the channel's work for one consumer is not known, the event itself is taken
    /// to be as much as one.
    fn shares(&self, payload_octets: u32, channel_ns_a_consumer: Option<u64>) -> EventCost {
        let octets = u64::from(payload_octets);
        let whole = self.whole.at(octets);
        let [supplier, channel, consumer] =
            [&self.supplier, &self.channel, &self.consumer].map(|curve| curve.at(octets).ns);
        let all = u128::from(supplier) + u128::from(channel) + u128::from(consumer);
        let share = |of_ns: u64, between: u64| {
            let part = u128::from(whole.ns) * u128::from(of_ns);
            u64::try_from(part.div_ceil((all * u128::from(between)).max(1))).unwrap_or(u64::MAX)
        };
        let each = channel_ns_a_consumer
            .unwrap_or_else(|| channel.div_ceil(self.consumers.saturating_add(1)));
        let to_all = each.saturating_mul(self.consumers).min(channel);
        EventCost {
            push_ns: share(supplier, 1),
            channel_ns: share(channel - to_all, 1),
            delivery_ns: share(to_all, self.consumers),
            consumer_ns: share(consumer, self.consumers),
            samples: whole.samples,
            source: format!(
                "{} to {} consumers, divided as its execution is",
                whole.source, self.consumers
            ),
            assumption: whole.assumption,
        }
    }
}

impl EventCost {
    fn or_larger(self, other: Self) -> Self {
        Self {
            push_ns: self.push_ns.max(other.push_ns),
            channel_ns: self.channel_ns.max(other.channel_ns),
            delivery_ns: self.delivery_ns.max(other.delivery_ns),
            consumer_ns: self.consumer_ns.max(other.consumer_ns),
            samples: self.samples.min(other.samples),
            source: other.source,
            assumption: self.assumption.or(other.assumption),
        }
    }
}
