//! What the urgent consumer feels of others that are idle, served, slow, flooded, killed or hung.

use std::time::Duration;

use rtorb_os::clock::monotonic_ns;

use super::{served, table_of, table_of_part};
use crate::contestants::Transport;
use crate::contestants::event_channel::consumers::NOT_RECEIVED;
use crate::contestants::event_channel::system::{
    Channel, Consumers, RECEIPT_TIMEOUT, Supplier, priority_on, within,
};
use crate::contestants::event_channel::{Sending, Served, Subscribers};
use crate::contestants::square_wave::system::Role;
use crate::experiments::prelude::*;
use crate::experiments::transports::TRANSPORTS;
use crate::processes::awake::Awake;

pub(super) const STUDY: Study<Neighbourhoods> = Study {
    name: "isolation",
    title: "The urgent consumer beside others",
    amounts: AMOUNTS,
    factors: &[
        TRANSPORTS,
        Factor::texts(
            FLOOD,
            &[
                ABSENT, "idle", "served", "slow", "flooded", "killed", "hung",
            ],
        ),
    ],
    fixed: "orb=rtorb, path=event, role=high, part=isolation",
    parameters: &[
        (
            ROUNDS,
            Value::ByEffort(ByEffort {
                glance: 1,
                emulated: 0,
                quick: AMOUNTS.quick[0],
                full: AMOUNTS.full[0],
            }),
        ),
        (LOW_CONSUMERS, Value::ByEffort(LOW)),
    ],
    period_ns: PERIOD_NS,
    leaves_out: |cell, effort| effort != Effort::Full && Transport::of(cell) != Transport::Unix,
    tables: || {
        vec![
            table_of_part("isolation", "The urgent consumer beside others", ISOLATION)
                .caption(format!("From sending an event until the urgent consumer has it. {OTHERS}"))
                .rows([FLOOD])
                .columns(["transport"]),
            table_of(BESIDE_TO_ALONE, "isolation-ratio", "What the urgent consumer feels of others")
                .caption(
                    "The 99th percentile beside others, by that alone in the same round: the median over rounds.",
                )
                .rows([FLOOD])
                .columns(["transport"]),
            table_of(DISCARDED, "isolation-discards", "Events for others that were discarded")
                .caption(
                    "Where there are any, queues were full while the urgent consumer was measured; in the median round.",
                )
                .rows([FLOOD])
                .columns(["transport"]),
        ]
    },
    plots: || {
        vec![
            Plot::percentiles(
                "isolation",
                "The urgent consumer beside others that misbehave",
            )
            .caption(format!(
                "Where nothing is felt of the others, the lines are one. {OTHERS}"
            ))
            .of(labels([("part", ISOLATION.into())]))
            .choose(["transport"])
            .lines([FLOOD])
            .log_y(),
        ]
    },
    says: SAYS,
    ..Study::with(|_, _| Ok(Neighbourhoods(None)))
};

const AMOUNTS: Amounts = Amounts {
    glance: 20,
    emulated: 0,
    quick: [7, 220],
    full: [20, 1_000],
    samples: "isolated_events_per_round",
};

/// Beside the urgent one.
const LOW: ByEffort = ByEffort {
    glance: 4,
    emulated: 0,
    quick: 100,
    full: 100,
};

/// Those of the transport that is measured: the urgent consumer alone, and beside others.
pub(super) struct Neighbourhoods(Option<[Neighbourhood; 2]>);

impl Subject for Neighbourhoods {
    const BLOCKS: Option<&'static str> = Some("transport");

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let transport = Transport::of(cell);
        let is_started = |both: &&mut [Neighbourhood; 2]| both[0].transport == transport;
        if self.0.as_mut().filter(is_started).is_none() {
            self.0 = None;
            let events = turn.samples as u64;
            let start = |low| Neighbourhood::start(turn.context, transport, low, events);
            self.0 = Some([start(0)?, start(LOW.of(turn.context.effort))?]);
        }
        let [alone, crowded] = self.0.as_mut().expect("they were started");
        let is_alone = cell.is(FLOOD, ABSENT);
        let neighbourhood = if is_alone { alone } else { crowded };
        neighbourhood.measure(cell, turn)
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
    high: [Consumers; 1],
    /// One process, or none.
    low: Vec<Consumers>,
    channel: Channel,
    transport: Transport,
    discarded: u64,
    /// What one event to all others takes, from sending to the last one.
    low_event_ns: u64,
    /// How many victims there were, for their names.
    victims: usize,
}

impl Neighbourhood {
    fn start(
        context: &Context,
        transport: Transport,
        low_consumers: usize,
        events: u64,
    ) -> Result<Self, LabError> {
        let name = |what: &str| format!("{what}-{low_consumers}");
        let priorities = [Role::High.priority(), FLOOD_PRIORITY, Role::Low.priority()];
        let [high, flood, low] = priorities.map(|priority| priority_on(context, priority));
        let mut served = Served {
            queue_events: QUEUE_EVENTS,
            wait_ms: None,
            ..served(context, &Role::ALL)
        };
        if high > 0 {
            served.lanes = priorities.to_vec();
        }
        let channel = Channel::start(context, transport, &name("isolation"), &served)?;
        let consumers = |what: &str, count, source, priority, events_max| {
            let subscribers = Subscribers {
                count,
                source,
                priority,
                events_max,
            };
            channel.consumers(context, &name(what), &subscribers)
        };
        let supplier = |source, priority| channel.supplier(context, source, priority);
        let mut crowd = Vec::new();
        if low_consumers > 0 {
            crowd.push(consumers("low", low_consumers, LOW_SOURCE, low, 0)?);
        }
        let mut started = Self {
            high_supplier: supplier(HIGH_SOURCE, high)?,
            low_supplier: supplier(LOW_SOURCE, low)?,
            flood_supplier: supplier(LOW_SOURCE, flood)?,
            victims_supplier: supplier(VICTIMS_SOURCE, low)?,
            high: [consumers("high", 1, HIGH_SOURCE, high, events as usize)?],
            low: crowd,
            channel,
            transport,
            discarded: 0,
            low_event_ns: 0,
            victims: 0,
        };
        let few = Sending::paced(WARM_UP_EVENTS, PERIOD_NS);
        started.high_supplier.send(&few, &mut started.high)?;
        started.calibrate(events * PERIOD_NS / QUEUE_EVENTS as u64)?;
        Ok(started)
    }

    /// Finds out what an event to all others takes: with its first events connections are opened.
    fn calibrate(&mut self, most_ns: u64) -> Result<(), LabError> {
        for events in [WARM_UP_EVENTS, CALIBRATION_EVENTS] {
            let sending = Sending::paced(events, CALIBRATION_PERIOD_NS);
            self.low_supplier.send(&sending, &mut self.low)?;
        }
        // Together they take what their consumers' threads and the channel's had of the CPU; measured by a burst that fits.
        let burst = QUEUE_EVENTS as u64 / 2;
        let begin_ns = monotonic_ns();
        let sending = Sending::paced(burst, 0);
        self.low_supplier.send(&sending, &mut self.low)?;
        let event_ns = (monotonic_ns() - begin_ns) / burst;
        self.low_event_ns = event_ns.min(most_ns.max(1));
        Ok(())
    }

    /// The latencies of the urgent consumer's events beside the others, and what was discarded meanwhile.
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let mut victims = self.victims(cell, turn.context)?;
        self.disturb(cell, &mut victims)?;
        self.newly_discarded()?;
        let events = turn.samples as u64;
        let sending = Sending::paced(events, PERIOD_NS);
        let awake = Awake::keep(
            turn.context.launcher.placement.cpu,
            sending.lasting() + RECEIPT_TIMEOUT,
        );
        let [high] = &mut self.high;
        high.clear()?;
        self.high_supplier.begin(&sending)?;
        if cell.is(FLOOD, "killed") {
            kill(&victims, sending.lasting() / (VICTIMS as u32 + 1));
        }
        self.high_supplier.finish(sending.lasting())?;
        high.await_received(events)?;
        drop(awake);
        let found = high.latencies(events)?;
        self.calm(cell, &victims)?;
        let of_high = found.consumers_ns.first().into_iter().flatten();
        let times_ns = of_high.filter(|ns| **ns != NOT_RECEIVED);
        let times_ns = times_ns.map(|ns| u64::from(*ns)).collect();
        let discarded = self.newly_discarded()? as f64;
        let consumers = 1 + self.low.iter().map(|low| low.count).sum::<usize>();
        let clients = self.high.iter().chain(&self.low).map(Consumers::process);
        let suppliers = [self.high_supplier.process(), self.low_supplier.process()];
        Ok(Sampled {
            parts: vec![(labels([(CONSUMERS, consumers.into())]), times_ns)],
            wrong: found.wrong(),
            scheduling: self.channel.scheduling(clients.chain(suppliers)),
            counts: vec![(
                labels([("part", "discards".into()), ("counted", DISCARDED.into())]),
                discarded,
                ("events", turn.samples as u64),
            )],
            ..Sampled::default()
        })
    }

    /// Those that will be killed, each in a process of its own, or the one that is stopped.
    fn victims(&mut self, cell: &Cell<'_>, context: &Context) -> Result<Vec<Consumers>, LabError> {
        let count = match () {
            () if cell.is(FLOOD, "killed") => VICTIMS,
            () if cell.is(FLOOD, "hung") => 1,
            () => 0,
        };
        let subscribers = Subscribers {
            count: 1,
            source: VICTIMS_SOURCE,
            priority: priority_on(context, Role::Low.priority()),
            events_max: 0,
        };
        let mut victims = Vec::new();
        for _ in 0..count {
            self.victims += 1;
            let name = format!("victim-{}", self.victims);
            victims.push(self.channel.consumers(context, &name, &subscribers)?);
        }
        Ok(victims)
    }

    /// Has the others do what they do, before the urgent consumer is measured.
    fn disturb(&mut self, cell: &Cell<'_>, victims: &mut [Consumers]) -> Result<(), LabError> {
        let without_end = Sending::paced(u64::MAX, LOW_PERIOD_NS);
        if is_quiet(cell) {
            return Ok(());
        }
        if cell.is(FLOOD, "flooded") {
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
        if cell.is(FLOOD, "slow") {
            self.low.iter_mut().try_for_each(|low| low.work(WORK))?;
            // Until the channel has no room for more, or for a while.
            let period_ns = self.low_event_ns.max(FILL_PERIOD_NS_MIN) * 5 / 4;
            self.low_supplier
                .begin(&Sending::paced(u64::MAX, period_ns))?;
            self.await_discards()?;
            self.low_supplier.stop()?;
        }
        self.low_supplier.begin(&without_end)?;
        if !victims.is_empty() {
            if cell.is(FLOOD, "hung") {
                victims.iter().for_each(|victim| victim.process().hang());
            }
            self.victims_supplier.begin(&Sending {
                period_ns: VICTIMS_PERIOD_NS,
                burst: VICTIMS_BURST,
                ..without_end
            })?;
            if cell.is(FLOOD, "hung") {
                // Until its queue is full.
                self.await_discards()?;
            } else {
                let mut victims = victims.iter_mut();
                victims.try_for_each(|victim| victim.await_received(1))?;
            }
        }
        Ok(())
    }

    fn await_discards(&mut self) -> Result<(), LabError> {
        let before = self.channel.discarded()?;
        within(FILL_TIMEOUT, || Ok(self.channel.discarded()? > before)).map(drop)
    }

    /// Ends what the others do, and waits until nothing of it is left.
    fn calm(&mut self, cell: &Cell<'_>, victims: &[Consumers]) -> Result<(), LabError> {
        if is_quiet(cell) {
            return Ok(());
        }
        let supplier = if cell.is(FLOOD, "flooded") {
            &mut self.flood_supplier
        } else {
            &mut self.low_supplier
        };
        supplier.stop()?;
        if !victims.is_empty() {
            self.victims_supplier.stop()?;
            let processes = victims.iter().map(Consumers::process);
            processes.for_each(|process| process.kill_group());
        }
        for low in &mut self.low {
            low.work(Duration::ZERO)?;
            // Nothing has come for a while.
            let mut last = low.received()?.1;
            let is_over = within(RECEIPT_TIMEOUT, || {
                std::thread::sleep(QUIET);
                let now = low.received()?.1;
                Ok(std::mem::replace(&mut last, now) == now)
            })?;
            if !is_over {
                let what = "its consumers have more events and more, though none is sent";
                return Err(LabError::process(low.process().name(), what));
            }
        }
        Ok(())
    }

    /// Since it was asked last.
    fn newly_discarded(&mut self) -> Result<u64, LabError> {
        let before = self.discarded;
        self.discarded = self.channel.discarded()?;
        Ok(self.discarded.saturating_sub(before))
    }
}

/// True if nothing is sent to the others.
fn is_quiet(cell: &Cell<'_>) -> bool {
    cell.is(FLOOD, ABSENT) || cell.is(FLOOD, "idle")
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

/// The urgent consumer's 99th percentile beside others, by that alone in the same round.
const TO_ALONE: Metric = Metric::of(P99).with(&[Over(P99, "flood=absent, consumers=1")]);
const BESIDE: &str = "flood!=absent, part=isolation";

const SAYS: Statements = Statements {
    derived: &[
        DerivedOf {
            name: BESIDE_TO_ALONE,
            of: BESIDE,
            without: &["orb", "path", "part"],
            metric: TO_ALONE,
        },
        DerivedOf {
            name: DISCARDED,
            of: "counted=discarded_for_others",
            without: &["orb", "path", "part", "counted"],
            metric: Metric::of(P50).in_unit("events"),
        },
    ],
    // A fifth more than alone.
    claims: &[
        Declaration::at_most("beside-to-alone.{transport}.{flood}", TO_ALONE, 1.2).of(
            BESIDE,
            "{transport}: the urgent consumer's 99th percentile beside others that are {flood}, by that alone",
        ),
    ],
    ..Statements::NONE
};

/// What the others do meanwhile.
const FLOOD: &str = "flood";
/// There are none.
const ABSENT: &str = "absent";
const CONSUMERS: &str = "consumers";
/// The value of the label `part`.
const ISOLATION: &str = "isolation";
const ROUNDS: &str = "isolated_rounds";
const LOW_CONSUMERS: &str = "low_consumers";
/// Names of derived numbers that are shown in tables.
const BESIDE_TO_ALONE: &str = "beside_to_alone_p99";
const DISCARDED: &str = "discarded_for_others";
const OTHERS: &str = "The others: absent (there are none), idle (nothing is sent to them), served (they are sent events, and take them), slow (they \
                      sleep over each), flooded (they are sent more at a time than their queues hold), killed, hung (one of them is stopped).";
/// Twice as often as edges, for a percentile needs many.
const PERIOD_NS: u64 = 500_000;
/// Between the two roles: of who sends more than the others can take, so that the events wait in the channel.
const FLOOD_PRIORITY: u8 = Role::Low.priority() + 10;
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
