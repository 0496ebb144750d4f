//! One event to many consumers: when the first, the urgent one, the median one and the last have it, and how many events a second.

use std::collections::BTreeMap;
use std::time::Duration;

use rtorb_results::{Series, labels};

use super::edges::served;
use super::plan::{Plan, fan_out_period_ns};
use crate::contestants::Transport;
use crate::contestants::event_channel::consumers::NOT_RECEIVED;
use crate::contestants::event_channel::system::{Channel, Consumers, Supplier};
use crate::contestants::event_channel::{Sending, Subscribers};
use crate::contestants::square_wave::recorded::RecordedTimes;
use crate::contestants::square_wave::system::Role;
use crate::error::LabError;
use crate::experiment::{Context, Progress};
use crate::processes::awake::Awake;

/// How urgent the consumers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priorities {
    /// The first one is urgent, the others are not.
    Mixed,
    /// All are urgent.
    Equal,
}

impl Priorities {
    const ALL: [Self; 2] = [Self::Mixed, Self::Equal];

    /// The value of the label `priorities`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Equal => "equal",
        }
    }

    /// Of those that are not the first one.
    fn of_others(self) -> Role {
        match self {
            Self::Mixed => Role::Low,
            Self::Equal => Role::High,
        }
    }
}

/// Whose receipt of an event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::experiments) enum Receipt {
    /// Whoever has it first.
    First,
    /// The urgent consumer where there is one.
    High,
    /// The one with as many before as after it.
    Median,
    /// Whoever has it last.
    Last,
}

impl Receipt {
    const ALL: [Self; 4] = [Self::First, Self::High, Self::Median, Self::Last];

    /// The value of the label `receipt`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::High => "high",
            Self::Median => "median",
            Self::Last => "last",
        }
    }
}

/// What is told apart.
type Key = (Priorities, usize);

/// The receipts of all events.
#[derive(Debug, Default)]
pub(super) struct FanOut {
    pub(super) receipts: BTreeMap<(Key, Receipt), RecordedTimes>,
    pub(super) sustained: BTreeMap<Key, Sustained>,
}

/// Events that were sent one after another.
#[derive(Debug, Default)]
pub(super) struct Sustained {
    /// How long one took, in each round.
    time_an_event: RecordedTimes,
    events: u64,
    elapsed_ns: u64,
}

impl Sustained {
    pub(super) fn a_second(&self) -> f64 {
        self.events as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

impl FanOut {
    pub(super) fn measure(
        &mut self,
        (context, plan): (&Context, &Plan),
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        for priorities in Priorities::ALL {
            let mut crowd = Crowd::start(context, priorities)?;
            for consumers in plan.fan_out {
                crowd.grow(context, *consumers)?;
                for round in 0..plan.rounds {
                    if context.interrupted() {
                        return Err(LabError::Interrupted);
                    }
                    self.round((plan, round), (priorities, *consumers), &mut crowd)?;
                }
                let name = priorities.name();
                progress.step(&format!(
                    "fan-out, {consumers} consumers, priorities {name}"
                ));
            }
        }
        Ok(())
    }

    fn round(
        &mut self,
        (plan, round): (&Plan, usize),
        (priorities, consumers): Key,
        crowd: &mut Crowd,
    ) -> Result<(), LabError> {
        let key = (priorities, consumers);
        let events = plan.fan_out_events(consumers);
        let period_ns = fan_out_period_ns(consumers);
        crowd.send(events, period_ns)?;
        let (consumers_ns, wrong) = crowd.latencies(events)?;
        for receipt in Receipt::ALL {
            if receipt == Receipt::High && priorities == Priorities::Equal {
                continue;
            }
            let times_ns = receipts_ns(&consumers_ns, events, receipt);
            let recorded = self.receipts.entry((key, receipt)).or_default();
            recorded.add(round, times_ns, wrong);
        }
        let elapsed_ns = crowd.send(events, 0)?;
        let (_, wrong) = crowd.latencies(0)?;
        let sustained = self.sustained.entry(key).or_default();
        sustained
            .time_an_event
            .add(round, [elapsed_ns / events.max(1)], wrong);
        sustained.events += events;
        sustained.elapsed_ns += elapsed_ns;
        Ok(())
    }

    pub(super) fn series(&self) -> Vec<Series> {
        let of = |(priorities, consumers): &Key, part: &str| {
            labels([
                ("path", "event".into()),
                ("transport", TRANSPORT.label().into()),
                ("priorities", priorities.name().into()),
                ("consumers", (*consumers).into()),
                ("part", part.into()),
            ])
        };
        let receipts = self.receipts.iter().map(|((key, receipt), recorded)| {
            let mut labels = of(key, PART);
            labels.insert("receipt".to_owned(), receipt.name().into());
            if *receipt == Receipt::High {
                labels.insert("role".to_owned(), Role::High.name().into());
            }
            recorded.series(labels)
        });
        let sustained = self.sustained.iter().map(|(key, sustained)| Series {
            calls_per_second: Some(sustained.a_second()),
            ..sustained.time_an_event.series(of(key, SUSTAINED))
        });
        receipts.chain(sustained).collect()
    }
}

/// Consumers of one channel, more and more of them.
struct Crowd {
    // In this order: clients are ended before the channel that they are connected to.
    supplier: Supplier,
    /// Each a process.
    groups: Vec<Consumers>,
    channel: Channel,
    priorities: Priorities,
    cpu: Option<usize>,
    real_time: bool,
}

impl Crowd {
    fn start(context: &Context, priorities: Priorities) -> Result<Self, LabError> {
        let real_time = context.launcher.placement.fifo.is_some();
        let channel = Channel::start(
            context,
            (TRANSPORT, priorities.name()),
            &served(context, &Role::ALL),
        )?;
        let priority = if real_time { Role::High.priority() } else { 0 };
        Ok(Self {
            supplier: Supplier::start(context, &channel, (SOURCE, priority))?,
            groups: Vec::new(),
            channel,
            priorities,
            cpu: context.launcher.placement.cpu,
            real_time,
        })
    }

    /// Adds a process with so many consumers that there are `consumers`; the first one has a process of its own.
    fn grow(&mut self, context: &Context, consumers: usize) -> Result<(), LabError> {
        let there: usize = self.groups.iter().map(|group| group.count).sum();
        let more = consumers.saturating_sub(there);
        if there == 0 && more > 1 {
            self.grow(context, 1)?;
            return self.grow(context, consumers);
        }
        if more == 0 {
            return Ok(());
        }
        let role = match there {
            0 => Role::High,
            _ => self.priorities.of_others(),
        };
        let subscribers = Subscribers {
            count: more,
            source: SOURCE,
            priority: if self.real_time { role.priority() } else { 0 },
            events_max: EVENTS_REMEMBERED,
        };
        let name = format!("{}-{consumers}", self.priorities.name());
        let group = Consumers::start(context, (TRANSPORT, &name), &self.channel, &subscribers)?;
        self.groups.push(group);
        // Connections are opened when there is something to send, or before.
        self.send(WARM_UP_EVENTS, WARM_UP_PERIOD_NS).map(drop)
    }

    /// Sends so many events to all, and answers how long it took until all had the last one.
    fn send(&mut self, events: u64, period_ns: u64) -> Result<u64, LabError> {
        for group in &mut self.groups {
            group.clear()?;
        }
        let paced = Duration::from_nanos(events * period_ns);
        let awake = Awake::keep(self.cpu, paced + RECEIPT_TIMEOUT);
        self.supplier.begin(&Sending::paced(events, period_ns))?;
        let sent = self.supplier.finish(paced + RECEIPT_TIMEOUT)?;
        for group in &mut self.groups {
            group.await_received(events, RECEIPT_TIMEOUT)?;
        }
        drop(awake);
        Ok(sent.elapsed_ns + self.since_last_ns(events)?)
    }

    /// How long after the last event was sent the last consumer had it; those before it had theirs sooner.
    fn since_last_ns(&mut self, events: u64) -> Result<u64, LabError> {
        let Some(last) = usize::try_from(events)
            .ok()
            .and_then(|events| events.checked_sub(1))
        else {
            return Ok(0);
        };
        let mut latest_ns = 0;
        for group in &mut self.groups {
            let of_last = group.latencies(events)?.consumers_ns.into_iter();
            let of_last = of_last.filter_map(|latencies_ns| latencies_ns.get(last).copied());
            let known = of_last.filter(|ns| *ns != NOT_RECEIVED);
            latest_ns = latest_ns.max(known.max().unwrap_or(0).into());
        }
        Ok(latest_ns)
    }

    /// Of each consumer, the first one first; and how many were lost or came twice.
    fn latencies(&mut self, events: u64) -> Result<(Vec<Vec<u32>>, u64), LabError> {
        let (mut all, mut wrong) = (Vec::new(), 0);
        for group in &mut self.groups {
            let latencies = group.latencies(events)?;
            wrong += latencies.wrong();
            all.extend(latencies.consumers_ns);
        }
        Ok((all, wrong))
    }
}

/// Of each event that all consumers have.
pub(in crate::experiments) fn receipts_ns(
    consumers_ns: &[Vec<u32>],
    events: u64,
    receipt: Receipt,
) -> Vec<u64> {
    let of = |event: usize| {
        let each = consumers_ns
            .iter()
            .map(|latencies_ns| latencies_ns.get(event));
        let mut all: Vec<u32> = each
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .copied()
            .collect();
        let high_ns = *all.first()?;
        all.sort_unstable();
        let ns = match receipt {
            Receipt::First => *all.first()?,
            Receipt::High => high_ns,
            Receipt::Median => all[all.len() / 2],
            Receipt::Last => *all.last()?,
        };
        (*all.last()? != NOT_RECEIVED).then_some(u64::from(ns))
    };
    let events = usize::try_from(events).unwrap_or(usize::MAX);
    (0..events).filter_map(of).collect()
}

/// The value of the label `part` of receipts, which are no edges.
pub(super) const PART: &str = "fan_out";
/// That of events that were sent as fast as the channel takes them.
pub(super) const SUSTAINED: &str = "sustained";
const TRANSPORT: Transport = Transport::Tcp;
const SOURCE: i32 = 1;
const EVENTS_REMEMBERED: usize = 512;
const WARM_UP_EVENTS: u64 = 3;
const WARM_UP_PERIOD_NS: u64 = 10_000_000;
/// For a thousand consumers of a machine that is busy with something else.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_of_events_that_all_have() {
        let consumers_ns = [
            vec![30, 10, 40],
            vec![10, 20, 50],
            vec![20, 30, NOT_RECEIVED],
        ];
        let of = |receipt| receipts_ns(&consumers_ns, 3, receipt);
        assert_eq!(of(Receipt::First), [10, 10]);
        assert_eq!(of(Receipt::High), [30, 10]);
        assert_eq!(of(Receipt::Median), [20, 20]);
        assert_eq!(of(Receipt::Last), [30, 30]);
        assert!(receipts_ns(&consumers_ns, 0, Receipt::Last).is_empty());
    }

    #[test]
    fn events_a_second_are_of_all_rounds() {
        let sustained = Sustained {
            events: 300,
            elapsed_ns: 1_500_000_000,
            ..Sustained::default()
        };
        assert!((sustained.a_second() - 200.0).abs() < 1e-9);
    }
}
