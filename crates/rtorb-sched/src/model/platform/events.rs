//! The cost of an event through a channel: supplier, channel and each consumer.

use std::collections::BTreeMap;

use super::Statistic;
use super::cost::Curve;
use super::orb::OrbCosts;
use super::profile::{Profile, Service, whole_ns};

/// The costs of events, by the number of consumers; empty if nothing was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct EventCosts {
    by_consumers: BTreeMap<u64, ConsumerCurves>,
    is_measured: bool,
}

/// The curves for one number of consumers, by payload.
#[derive(Clone, Debug)]
struct ConsumerCurves {
    consumers: u64,
    whole: Curve,
    supplier: Curve,
    channel: Curve,
    consumer: Curve,
}

/// The cost of an event, divided between supplier, channel and consumers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCost {
    /// The supplier's push, in ns.
    pub push_ns: u64,
    /// The channel's work for the event itself, in ns.
    pub channel_ns: u64,
    /// The channel's work for each consumer, in ns.
    pub delivery_ns: u64,
    /// The consumer's work until its own code begins, in ns.
    pub consumer_ns: u64,
    /// The number of samples; 0 if nothing was measured.
    pub samples: u64,
    /// The source, as text.
    pub source: String,
    /// The assumption, and the command that would measure the cost.
    pub assumption: Option<String>,
}

const MEASURED_BY: &str = "rtorb lab run profile";

impl EventCosts {
    pub(super) fn of(profile: &Profile, statistic: Statistic) -> Self {
        let numbers = profile
            .all("event_channel", "event")
            .filter_map(|service| service.number("consumers"));
        let by_consumers = numbers
            .filter(|consumers| *consumers > 0)
            .filter_map(|consumers| {
                Some((
                    consumers,
                    ConsumerCurves::of(profile, statistic, consumers)?,
                ))
            });
        Self {
            by_consumers: by_consumers.collect(),
            is_measured: true,
        }
    }

    pub(super) fn at(&self, orb: &OrbCosts, consumers: u64, payload_bytes: u32) -> EventCost {
        let fewer = self.by_consumers.range(..=consumers).next_back();
        let more = self.by_consumers.range(consumers..).next();
        let per_consumer = self.channel_ns_a_consumer(payload_bytes);
        let shares =
            |(_, measured): (&u64, &ConsumerCurves)| measured.shares(payload_bytes, per_consumer);
        match (fewer.map(shares), more.map(shares)) {
            (Some(fewer), Some(more)) => fewer.or_larger(more),
            (None, Some(only)) => only,
            (Some(mut last), None) => {
                last.assumption.get_or_insert_with(|| {
                    format!(
                        "an event to {consumers} consumers was not measured: the cost of each is taken from the largest number that \
                         was measured; {}",
                        last.source
                    )
                });
                last
            }
            (None, None) => self.like_calls(orb, payload_bytes),
        }
    }

    /// Returns how much the channel's execution grows with each consumer, in ns; `None` if only one number was measured.
    fn channel_ns_a_consumer(&self, payload_bytes: u32) -> Option<u64> {
        let (few, with_few) = self.by_consumers.first_key_value()?;
        let (many, with_many) = self.by_consumers.last_key_value()?;
        let bytes = u64::from(payload_bytes);
        let grown = with_many
            .channel
            .at(bytes)
            .ns
            .saturating_sub(with_few.channel.at(bytes).ns);
        (many > few).then(|| grown.div_ceil(many - few))
    }

    /// Estimates an event by halves of calls: the supplier sends, the channel receives and sends to each consumer, and each
    /// consumer receives.
    fn like_calls(&self, orb: &OrbCosts, payload_bytes: u32) -> EventCost {
        let call = orb.call.at(u64::from(payload_bytes));
        let send = orb.send(payload_bytes);
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
                    "an event through a channel was not measured: sending and receiving are taken as halves of calls; `{MEASURED_BY}` \
                     measures it"
                )
            }),
        }
    }
}

impl ConsumerCurves {
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
            Curve::through(points.into_iter(), statistic, "bytes of data")
        };
        // The executions were measured in rounds: their means divide the whole event, and bound nothing.
        let mean = |service: &Service| whole_ns(service.mean);
        Some(Self {
            consumers,
            whole: curve("event", &|service| service.ns(statistic))?,
            supplier: curve("supplier_execution", &mean)?,
            channel: curve("channel_execution", &mean)?,
            consumer: curve("consumer_execution", &mean)?,
        })
    }

    /// Divides the whole event in the proportion of its executions. If the channel's work per consumer is unknown, the event
    /// itself counts as one more consumer.
    fn shares(&self, payload_bytes: u32, channel_ns_a_consumer: Option<u64>) -> EventCost {
        let bytes = u64::from(payload_bytes);
        let whole = self.whole.at(bytes);
        let [supplier, channel, consumer] =
            [&self.supplier, &self.channel, &self.consumer].map(|curve| curve.at(bytes).ns);
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
