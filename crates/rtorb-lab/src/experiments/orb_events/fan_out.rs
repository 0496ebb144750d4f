//! One event to many consumers: when the first, the urgent one, the median one and the last have it, and how many events a second.

use rtorb_results::labels_with;

use super::{served, table_of_part};
use crate::contestants::Transport;
use crate::contestants::event_channel::consumers::NOT_RECEIVED;
use crate::contestants::event_channel::system::{
    Channel, Consumers, RECEIPT_TIMEOUT, Supplier, priority_on,
};
use crate::contestants::event_channel::{Sending, Subscribers};
use crate::contestants::square_wave::system::Role;
use crate::experiments::prelude::*;
use crate::processes::awake::Awake;

pub(super) const STUDY: Study<Crowds> = Study {
    name: "fan-out",
    title: "One event to many consumers",
    amounts: Amounts {
        glance: 20,
        emulated: 0,
        quick: [2, 2_000],
        full: [10, 20_000],
        samples: "deliveries_per_round",
    },
    factors: &[
        // Consumers join, and none leaves: each number is measured before the next.
        Factor::numbers(CONSUMERS, &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]),
        Factor::texts(PRIORITIES, &[MIXED, "equal"]),
        Factor::texts("part", &[FAN_OUT, SUSTAINED]),
    ],
    fixed: "orb=rtorb, path=event, transport=tcp",
    leaves_out: |cell, effort| !consumers(effort).contains(&cell.number(CONSUMERS)),
    tables: || {
        vec![
            table_of_part("fan-out", "One event to many consumers", FAN_OUT)
                .caption(
                    "From sending an event until consumers have it: the first of them, the urgent one (high), the median one, the last one. \
                     Mixed: the others are less urgent; equal: all are urgent.",
                )
                .rows([PRIORITIES, CONSUMERS])
                .columns(["receipt"]),
            table_of_part("sustained", "Events a second", SUSTAINED)
                .caption(
                    "One event after another, as fast as they can be sent, until the last consumer has the last one.",
                )
                .rows([CONSUMERS])
                .columns([PRIORITIES])
                .values([CellValue::CallsPerSecond]),
        ]
    },
    plots: || {
        let plot = |id: &str, title: &str, value| {
            Plot::line_chart(id, title)
                .x(CONSUMERS)
                .values([value])
                .log_x()
                .log_y()
        };
        let many = "When consumers have an event, against their number";
        let a_second = "Events a second, against the number of consumers";
        vec![
            plot("fan-out", many, StatisticName::P50)
                .caption(
                    "The first consumer that has it, the urgent one (high), the median one and the last one.",
                )
                .of(labels([("part", FAN_OUT.into())]))
                .choose([PRIORITIES])
                .lines(["receipt"]),
            plot("sustained", a_second, StatisticName::CallsPerSecond)
                .caption("Sent as fast as the channel takes them; none is lost.")
                .of(labels([("part", SUSTAINED.into())]))
                .lines([PRIORITIES]),
        ]
    },
    ..Study::with(|context, _| {
        Ok(Crowds {
            mixed: Crowd::start(context, MIXED, Role::Low)?,
            equal: Crowd::start(context, "equal", Role::High)?,
        })
    })
};

/// The numbers of consumers.
fn consumers(effort: Effort) -> &'static [usize] {
    match effort {
        Effort::Emulated { .. } => &[],
        Effort::Glance => &[1, 5],
        Effort::Quick => &[1, 10, 100],
        Effort::Full => &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000],
    }
}

/// Events of a round: fewer for many consumers, each of which has them all.
fn events(deliveries: usize, consumers: usize) -> u64 {
    (deliveries / consumers.max(1)).clamp(10, 500) as u64
}

/// From event to event: time enough for all consumers to have one before the next.
fn period_ns(consumers: usize) -> u64 {
    PERIOD_NS.max(consumers as u64 * PERIOD_NS_A_CONSUMER)
}

/// Consumers whose first one is urgent and the others are not, and consumers that all are.
pub(super) struct Crowds {
    mixed: Crowd,
    equal: Crowd,
}

impl Subject for Crowds {
    const BLOCKS: Option<&'static str> = Some(CONSUMERS);

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let is_mixed = cell.is(PRIORITIES, MIXED);
        let crowd = if is_mixed {
            &mut self.mixed
        } else {
            &mut self.equal
        };
        let consumers = cell.number(CONSUMERS);
        crowd.grow(turn.context, consumers)?;
        let events = events(turn.samples, consumers);
        let mut sampled = if cell.is("part", SUSTAINED) {
            let elapsed_ns = crowd.send(events, 0)?;
            // Each round has as many, so that the mean of their times gives the rate.
            let time_ns = elapsed_ns / events;
            Sampled {
                elapsed_ns: time_ns,
                wrong: crowd.latencies(0)?.1,
                ..Sampled::whole(vec![time_ns])
            }
        } else {
            crowd.send(events, period_ns(consumers))?;
            let (consumers_ns, wrong) = crowd.latencies(events)?;
            let receipts = Receipt::ALL.into_iter();
            let receipts = receipts.filter(|receipt| is_mixed || *receipt != Receipt::High);
            let part = |receipt: Receipt| {
                let times_ns = receipts_ns(&consumers_ns, events, receipt);
                (receipt.labels(), times_ns)
            };
            Sampled {
                parts: receipts.map(part).collect(),
                wrong,
                ..Sampled::default()
            }
        };
        let clients = crowd.groups.iter().map(Consumers::process);
        let clients = clients.chain([crowd.supplier.process()]);
        sampled.scheduling = crowd.channel.scheduling(clients);
        Ok(sampled)
    }

    fn parameters(effort: Effort) -> Parameters {
        let (rounds, deliveries) = STUDY.amounts.of(effort);
        let each = consumers(effort).iter();
        let paced_ns = each.map(|consumers| events(deliveries, *consumers) * period_ns(*consumers));
        let paced_ns = 2 * rounds as u64 * paced_ns.sum::<u64>();
        labels([("paced_seconds", (paced_ns / 1_000_000_000).into())])
    }
}

/// Which consumer's receipt of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receipt {
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

    fn labels(self) -> Labels {
        let receipt = |name: &str| labels([("receipt", name.into())]);
        match self {
            Self::First => receipt("first"),
            Self::High => labels_with(&receipt("high"), [("role", Role::High.name().into())]),
            Self::Median => receipt("median"),
            Self::Last => receipt("last"),
        }
    }
}

/// Consumers of one channel, more and more of them.
struct Crowd {
    // In this order: clients are ended before the channel that they are connected to.
    supplier: Supplier,
    /// Each a process.
    groups: Vec<Consumers>,
    channel: Channel,
    name: &'static str,
    /// Of those that are not the first one.
    role_of_others: Role,
    cpu: Option<usize>,
}

impl Crowd {
    fn start(
        context: &Context,
        name: &'static str,
        role_of_others: Role,
    ) -> Result<Self, LabError> {
        let served = served(context, &Role::ALL);
        let channel = Channel::start(context, Transport::Tcp, name, &served)?;
        let priority = priority_on(context, Role::High.priority());
        Ok(Self {
            supplier: channel.supplier(context, SOURCE, priority)?,
            groups: Vec::new(),
            channel,
            name,
            role_of_others,
            cpu: context.launcher.placement.cpu,
        })
    }

    /// Adds a process with so many consumers that there are `consumers`; the first one has a process of its own.
    fn grow(&mut self, context: &Context, consumers: usize) -> Result<(), LabError> {
        let there: usize = self.groups.iter().map(|group| group.count).sum();
        if there >= consumers {
            return Ok(());
        }
        if there == 0 && consumers > 1 {
            self.grow(context, 1)?;
            return self.grow(context, consumers);
        }
        let role = match there {
            0 => Role::High,
            _ => self.role_of_others,
        };
        let subscribers = Subscribers {
            count: consumers - there,
            source: SOURCE,
            priority: priority_on(context, role.priority()),
            events_max: EVENTS_REMEMBERED,
        };
        let name = format!("{}-{consumers}", self.name);
        let group = self.channel.consumers(context, &name, &subscribers)?;
        self.groups.push(group);
        // Connections are opened when there is something to send, or before.
        self.send(WARM_UP_EVENTS, WARM_UP_PERIOD_NS).map(drop)
    }

    /// Sends so many events to all, and answers how long it took until all had the last one.
    fn send(&mut self, events: u64, period_ns: u64) -> Result<u64, LabError> {
        let sending = Sending::paced(events, period_ns);
        let awake = Awake::keep(self.cpu, sending.lasting() + RECEIPT_TIMEOUT);
        let sent = self.supplier.send(&sending, &mut self.groups)?;
        drop(awake);
        // How long after the last event was sent the last consumer had it; those before it had theirs sooner.
        let (consumers_ns, _) = self.latencies(events)?;
        let of_last = consumers_ns
            .iter()
            .filter_map(|ns| ns.get(events as usize - 1));
        let known = of_last.filter(|ns| **ns != NOT_RECEIVED);
        Ok(sent.elapsed_ns + u64::from(known.max().copied().unwrap_or(0)))
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
pub(super) fn receipts_ns(consumers_ns: &[Vec<u32>], events: u64, receipt: Receipt) -> Vec<u64> {
    let of = |event: usize| {
        let each = consumers_ns.iter().map(|ns| ns.get(event).copied());
        let mut all: Vec<u32> = each.collect::<Option<_>>()?;
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
    (0..events as usize).filter_map(of).collect()
}

const CONSUMERS: &str = "consumers";
const PRIORITIES: &str = "priorities";
const MIXED: &str = "mixed";
/// The value of the label `part` of receipts, which are no edges.
const FAN_OUT: &str = "fan_out";
/// That of events that were sent as fast as the channel takes them.
const SUSTAINED: &str = "sustained";
const SOURCE: i32 = 1;
const EVENTS_REMEMBERED: usize = 512;
const WARM_UP_EVENTS: u64 = 3;
const WARM_UP_PERIOD_NS: u64 = 10_000_000;
const PERIOD_NS: u64 = 1_000_000;
/// Several times what it takes to give one consumer an event.
const PERIOD_NS_A_CONSUMER: u64 = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_consumers_have_more_events_and_many_more_time() {
        let events = [1, 100, 1_000].map(|consumers| events(2_000, consumers));
        assert_eq!(events, [500, 20, 10]);
        assert_eq!([1, 1_000].map(period_ns), [PERIOD_NS, 50_000_000]);
    }

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
}
