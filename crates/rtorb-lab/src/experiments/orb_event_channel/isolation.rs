//! What the urgent consumer feels of others that are idle, served, slow, flooded, killed or hung.

use std::collections::BTreeMap;
use std::time::Duration;

use rtorb_host::placement::obtained_by_priority;
use rtorb_results::{Labels, ObtainedScheduling, Series, labels};

use super::edges::served;
use super::plan::{ISOLATED_PERIOD_NS, Plan};
use crate::contestants::Transport;
use crate::contestants::event_channel::consumers::NOT_RECEIVED;
use crate::contestants::event_channel::system::{Channel, Consumers, Supplier, within};
use crate::contestants::event_channel::{Sending, Served, Subscribers};
use crate::contestants::square_wave::recorded::RecordedTimes;
use crate::contestants::square_wave::system::Role;
use crate::error::LabError;
use crate::experiment::{Context, Progress};
use crate::processes::awake::Awake;

/// What the others do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Others {
    /// There are none.
    Absent,
    /// Nothing is sent to them.
    Idle,
    /// They are sent events, and take them.
    Served,
    /// They sleep over each event, so that their queues are full.
    Slow,
    /// They are sent more events at a time than their queues hold, by a supplier that is more urgent than they are.
    Flooded,
    /// They are served, and beside them one after another is killed while events are sent to it, every other one when it has
    /// taken none for a while.
    Killed,
    /// They are served, and beside them one is stopped, so that it takes nothing.
    Hung,
}

impl Others {
    /// In the order in which they are measured.
    pub(super) const ALL: [Self; 7] = [
        Self::Absent,
        Self::Idle,
        Self::Served,
        Self::Slow,
        Self::Flooded,
        Self::Killed,
        Self::Hung,
    ];

    /// The value of the label `flood`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Idle => "idle",
            Self::Served => "served",
            Self::Slow => "slow",
            Self::Flooded => "flooded",
            Self::Killed => "killed",
            Self::Hung => "hung",
        }
    }
}

/// The latencies of the urgent consumer's events.
#[derive(Debug, Default)]
pub(super) struct Isolation {
    /// How many others there are.
    pub(super) low_consumers: usize,
    pub(super) recorded: BTreeMap<Key, RecordedTimes>,
    /// Events that the channel discarded meanwhile, round by round.
    pub(super) discarded: BTreeMap<Key, Vec<f64>>,
    pub(super) scheduling: Vec<ObtainedScheduling>,
}

/// What is told apart.
pub(super) type Key = (Transport, Others);

impl Isolation {
    pub(super) fn measure(
        &mut self,
        (context, plan): (&Context, &Plan),
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        self.low_consumers = plan.low_consumers;
        for transport in plan.isolated_over {
            self.over(*transport, (context, plan), progress)?;
        }
        Ok(())
    }

    /// All conditions in each round; which goes first differs from round to round.
    fn over(
        &mut self,
        transport: Transport,
        (context, plan): (&Context, &Plan),
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let mut alone = Neighbourhood::start(context, plan, (transport, 0))?;
        let mut crowded = Neighbourhood::start(context, plan, (transport, plan.low_consumers))?;
        crowded.calibrate(plan)?;
        let rounds = plan.isolated_rounds;
        for round in 0..rounds {
            for turn in 0..Others::ALL.len() {
                if context.interrupted() {
                    return Err(LabError::Interrupted);
                }
                let others = Others::ALL[(turn + round) % Others::ALL.len()];
                let neighbourhood = match others {
                    Others::Absent => &mut alone,
                    _ => &mut crowded,
                };
                let (times_ns, wrong) = neighbourhood.round((context, plan), others)?;
                let discarded = neighbourhood.newly_discarded()? as f64;
                let key = (transport, others);
                self.recorded
                    .entry(key)
                    .or_default()
                    .add(round, times_ns, wrong);
                self.discarded.entry(key).or_default().push(discarded);
                progress.step(&format!(
                    "isolation, {}, round {} of {rounds}: others {}",
                    transport.label(),
                    round + 1,
                    others.name()
                ));
            }
        }
        self.scheduling.append(&mut crowded.scheduling());
        Ok(())
    }

    pub(super) fn series(&self) -> Vec<Series> {
        let series = self.recorded.iter().map(|(key, recorded)| {
            let mut labels = self.labels(*key);
            labels.insert("path".to_owned(), "event".into());
            labels.insert("part".to_owned(), PART.into());
            recorded.series(labels)
        });
        series.collect()
    }

    pub(super) fn labels(&self, (transport, others): Key) -> Labels {
        labels([
            ("transport", transport.label().into()),
            ("role", Role::High.name().into()),
            ("consumers", self.consumers(others).into()),
            ("flood", others.name().into()),
        ])
    }

    /// Together with the urgent one.
    fn consumers(&self, others: Others) -> usize {
        match others {
            Others::Absent => 1,
            _ => 1 + self.low_consumers,
        }
    }
}

/// A channel with the urgent consumer and others.
struct Neighbourhood {
    // In this order: clients are ended before the channel that they are connected to.
    high_supplier: Supplier,
    low_supplier: Supplier,
    /// Of the same events, and more urgent than who wants them.
    flood_supplier: Supplier,
    victims_supplier: Supplier,
    high: Consumers,
    low: Option<Consumers>,
    channel: Channel,
    transport: Transport,
    cpu: Option<usize>,
    real_time: bool,
    discarded: u64,
    /// What one event to all others takes, from sending to the last one.
    low_event_ns: u64,
    /// How many victims there were, for their names.
    victims: usize,
}

impl Neighbourhood {
    fn start(
        context: &Context,
        plan: &Plan,
        (transport, low_consumers): (Transport, usize),
    ) -> Result<Self, LabError> {
        let real_time = context.launcher.placement.fifo.is_some();
        let name = |what: &str| format!("{what}-{low_consumers}");
        let priorities = [Role::High.priority(), FLOOD, Role::Low.priority()];
        let [high, flood, low] = if real_time { priorities } else { [0; 3] };
        let mut served = Served {
            queue_events: QUEUE_EVENTS,
            wait_ms: None,
            ..served(context, &Role::ALL)
        };
        if real_time {
            served.lanes = priorities.to_vec();
        }
        let channel = Channel::start(context, (transport, &name("isolation")), &served)?;
        let consumers = |what: &str, count, source, priority, events_max| {
            let subscribers = Subscribers {
                count,
                source,
                priority,
                events_max,
            };
            Consumers::start(context, (transport, &name(what)), &channel, &subscribers)
        };
        let remembered = usize::try_from(plan.isolated_events).unwrap_or(usize::MAX);
        let crowd = match low_consumers {
            0 => None,
            _ => Some(consumers("low", low_consumers, LOW_SOURCE, low, 0)?),
        };
        let mut started = Self {
            high_supplier: Supplier::start(context, &channel, (HIGH_SOURCE, high))?,
            low_supplier: Supplier::start(context, &channel, (LOW_SOURCE, low))?,
            flood_supplier: Supplier::start(context, &channel, (LOW_SOURCE, flood))?,
            victims_supplier: Supplier::start(context, &channel, (VICTIMS_SOURCE, low))?,
            high: consumers("high", 1, HIGH_SOURCE, high, remembered)?,
            low: crowd,
            channel,
            transport,
            cpu: context.launcher.placement.cpu,
            real_time,
            discarded: 0,
            low_event_ns: 0,
            victims: 0,
        };
        started.send_high(WARM_UP_EVENTS)?;
        Ok(started)
    }

    /// Finds out what an event to all others takes: with its first events connections are opened.
    fn calibrate(&mut self, plan: &Plan) -> Result<(), LabError> {
        let Some(low) = &mut self.low else {
            return Ok(());
        };
        for events in [WARM_UP_EVENTS, CALIBRATION_EVENTS] {
            low.clear()?;
            let sending = Sending::paced(events, CALIBRATION_PERIOD_NS);
            self.low_supplier.begin(&sending)?;
            let paced = Duration::from_nanos(events * CALIBRATION_PERIOD_NS);
            self.low_supplier.finish(paced)?;
            low.await_received(events, RECEIPT_TIMEOUT)?;
        }
        // Together they take what their consumers' threads and the channel's had of the CPU; measured by a burst that fits.
        let burst = QUEUE_EVENTS as u64 / 2;
        low.clear()?;
        let begin_ns = rtorb_os::clock::monotonic_ns();
        self.low_supplier.begin(&Sending::paced(burst, 0))?;
        self.low_supplier.finish(Duration::ZERO)?;
        low.await_received(burst, RECEIPT_TIMEOUT)?;
        let elapsed_ns = rtorb_os::clock::monotonic_ns() - begin_ns;
        self.low_event_ns = elapsed_ns / burst;
        let most_ns = plan.isolated_events * ISOLATED_PERIOD_NS / QUEUE_EVENTS as u64;
        self.low_event_ns = self.low_event_ns.min(most_ns.max(1));
        Ok(())
    }

    /// The latencies of the urgent consumer's events beside the others, and how many were lost or came twice.
    fn round(
        &mut self,
        (context, plan): (&Context, &Plan),
        others: Others,
    ) -> Result<(Vec<u64>, u64), LabError> {
        let victims = self.victims(context, others)?;
        self.disturb(others, &victims)?;
        self.newly_discarded()?;
        let events = plan.isolated_events;
        self.high.clear()?;
        let paced = Duration::from_nanos(events * ISOLATED_PERIOD_NS);
        let awake = Awake::keep(self.cpu, paced + RECEIPT_TIMEOUT);
        self.begin_high(events)?;
        if others == Others::Killed {
            kill(&victims, paced / (VICTIMS as u32 + 1));
        }
        self.high_supplier.finish(paced)?;
        self.high.await_received(events, RECEIPT_TIMEOUT)?;
        drop(awake);
        let found = self.high.latencies(events)?;
        self.calm(others, &victims)?;
        let of_high = found.consumers_ns.first().into_iter().flatten();
        let times_ns = of_high.filter(|ns| **ns != NOT_RECEIVED);
        let times_ns = times_ns.map(|ns| u64::from(*ns)).collect();
        Ok((times_ns, found.wrong()))
    }

    /// Those that will be killed, each in a process of its own, or the one that is stopped.
    fn victims(&mut self, context: &Context, others: Others) -> Result<Vec<Consumers>, LabError> {
        let count = match others {
            Others::Killed => VICTIMS,
            Others::Hung => 1,
            _ => 0,
        };
        let subscribers = Subscribers {
            count: 1,
            source: VICTIMS_SOURCE,
            priority: if self.real_time {
                Role::Low.priority()
            } else {
                0
            },
            events_max: 0,
        };
        let mut victims = Vec::new();
        for _ in 0..count {
            self.victims += 1;
            let name = format!("victim-{}", self.victims);
            let victim = Consumers::start(
                context,
                (self.transport, &name),
                &self.channel,
                &subscribers,
            )?;
            victims.push(victim);
        }
        Ok(victims)
    }

    /// Has the others do what they do, before the urgent consumer is measured.
    fn disturb(&mut self, others: Others, victims: &[Consumers]) -> Result<(), LabError> {
        let without_end = Sending::paced(u64::MAX, LOW_PERIOD_NS);
        match (others, &mut self.low) {
            (Others::Absent | Others::Idle, _) => return Ok(()),
            (Others::Flooded, _) => {
                // A lane keeps as many as a consumer's queue does.
                let burst = 4 * QUEUE_EVENTS as u64;
                // The half that is kept takes most of the CPU's time, and not all: real-time threads that take all of it are
                // stopped by the kernel.
                let period_ns = (burst * self.low_event_ns).max(LOW_PERIOD_NS);
                return self.flood_supplier.begin(&Sending {
                    period_ns,
                    burst,
                    ..without_end
                });
            }
            (Others::Slow, Some(consumers)) => {
                consumers.work(WORK)?;
                self.fill()?;
            }
            (Others::Served | Others::Slow | Others::Killed | Others::Hung, _) => {}
        }
        self.low_supplier.begin(&without_end)?;
        if !victims.is_empty() {
            let to_victims = Sending {
                period_ns: VICTIMS_PERIOD_NS,
                burst: VICTIMS_BURST,
                ..without_end
            };
            if others == Others::Hung {
                victims.iter().for_each(|victim| victim.process().hang());
            }
            self.victims_supplier.begin(&to_victims)?;
            // Until there is one of them whose queue is full.
            self.await_discards()?;
        }
        Ok(())
    }

    /// Sends to the slow ones until the channel has no room for more, or for a while.
    fn fill(&mut self) -> Result<(), LabError> {
        let period_ns = self.low_event_ns.max(FILL_PERIOD_NS_MIN) * 5 / 4;
        self.low_supplier
            .begin(&Sending::paced(u64::MAX, period_ns))?;
        self.await_discards()?;
        self.low_supplier.stop().map(drop)
    }

    fn await_discards(&mut self) -> Result<(), LabError> {
        let before = self.channel.discarded()?;
        within(FILL_TIMEOUT, || Ok(self.channel.discarded()? > before)).map(drop)
    }

    /// Ends what the others do, and waits until nothing of it is left.
    fn calm(&mut self, others: Others, victims: &[Consumers]) -> Result<(), LabError> {
        if matches!(others, Others::Absent | Others::Idle) {
            return Ok(());
        }
        match others {
            Others::Flooded => self.flood_supplier.stop()?,
            _ => self.low_supplier.stop()?,
        };
        if !victims.is_empty() {
            self.victims_supplier.stop()?;
            victims
                .iter()
                .for_each(|victim| victim.process().kill_group());
        }
        let Some(low) = &mut self.low else {
            return Ok(());
        };
        low.work(Duration::ZERO)?;
        // Nothing has come for a while.
        let mut last = low.received()?.1;
        let is_over = within(RECEIPT_TIMEOUT, || {
            std::thread::sleep(QUIET);
            let now = low.received()?.1;
            Ok(std::mem::replace(&mut last, now) == now)
        })?;
        if is_over {
            Ok(())
        } else {
            Err(LabError::process(
                low.process().name(),
                "its consumers have more events and more, though none is sent",
            ))
        }
    }

    fn begin_high(&mut self, events: u64) -> Result<(), LabError> {
        self.high_supplier
            .begin(&Sending::paced(events, ISOLATED_PERIOD_NS))
    }

    fn send_high(&mut self, events: u64) -> Result<(), LabError> {
        self.high.clear()?;
        self.begin_high(events)?;
        self.high_supplier
            .finish(Duration::from_nanos(events * ISOLATED_PERIOD_NS))?;
        self.high.await_received(events, RECEIPT_TIMEOUT)
    }

    /// Since it was asked last.
    fn newly_discarded(&mut self) -> Result<u64, LabError> {
        let before = self.discarded;
        self.discarded = self.channel.discarded()?;
        Ok(self.discarded.saturating_sub(before))
    }

    fn scheduling(&self) -> Vec<ObtainedScheduling> {
        let suppliers = [self.high_supplier.process(), self.low_supplier.process()];
        let consumers = [Some(&self.high), self.low.as_ref()].into_iter().flatten();
        let clients = suppliers
            .into_iter()
            .chain(consumers.map(Consumers::process));
        let of_clients =
            clients.flat_map(|process| obtained_by_priority(process.name(), process.id()));
        self.channel
            .scheduling()
            .into_iter()
            .chain(of_clients)
            .collect()
    }
}

/// One after the other; every other one has been stopped before, so that it dies with its queue full and half an event sent.
fn kill(victims: &[Consumers], every: Duration) {
    for (number, victim) in victims.iter().enumerate() {
        if let Some(next) = victims.get(number + 1).filter(|_| number % 2 == 0) {
            next.process().hang();
        }
        std::thread::sleep(every);
        victim.process().kill_group();
    }
}

/// The value of the label `part`.
pub(super) const PART: &str = "isolation";
/// Between the two roles: of who sends more than the others can take, so that the events wait in the channel.
const FLOOD: u8 = Role::Low.priority() + 10;
const HIGH_SOURCE: i32 = 1;
const LOW_SOURCE: i32 = 2;
const VICTIMS_SOURCE: i32 = 3;
const QUEUE_EVENTS: usize = 64;
const WARM_UP_EVENTS: u64 = 3;
const CALIBRATION_EVENTS: u64 = 10;
const CALIBRATION_PERIOD_NS: u64 = 10_000_000;
/// In no proportion to that of the urgent events, so that they meet every moment of the others.
const LOW_PERIOD_NS: u64 = 9_718_000;
const FILL_PERIOD_NS_MIN: u64 = 100_000;
/// The time of a slow consumer for an event: its thread sleeps, for threads of real-time priority that compute would have the
/// kernel stop them all.
const WORK: Duration = Duration::from_millis(1);
const VICTIMS: usize = 3;
/// Faster than anybody who is killed can take it.
const VICTIMS_PERIOD_NS: u64 = 3_141_000;
const VICTIMS_BURST: u64 = 16;
const FILL_TIMEOUT: Duration = Duration::from_millis(1_500);
const QUIET: Duration = Duration::from_millis(30);
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(10);
