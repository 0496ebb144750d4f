//! `orb/event-cost`: what an event through the event channel takes on one CPU, and how much of that is executed by the supplier, the
//! channel and the consumers: what a model of a system composes the way of an event of.
//!
//! All have one priority and a process each. How events fare beside others is `orb/event-channel`'s.

use std::collections::BTreeMap;
use std::time::Duration;

use rtorb_os::clock::{monotonic_ns, sleep_until};

use crate::contestants::Transport;
use crate::contestants::event_channel::rtec::STAMP_BYTES;
use crate::contestants::event_channel::system::{Channel, Consumers, Supplier};
use crate::contestants::event_channel::{Sending, Subscribers};
use crate::contestants::square_wave::recorded::RecordedTimes;
use crate::contestants::square_wave::system::Role;
use crate::contestants::whitebox::threads::ThreadSums;
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::experiments::orb_event_channel::{Receipt, receipts_ns, served};
use crate::processes::awake::Awake;
use crate::processes::placement::obtained_by_priority;
use crate::results::rounds::Rounds;
use crate::results::{
    CellValue, Highlight, Labels, ObtainedScheduling, Plot, PlotKind, Series, StatisticName,
    TableView, labels,
};

/// The experiment.
#[derive(Debug)]
pub struct OrbEventCost;

impl Experiment for OrbEventCost {
    fn name(&self) -> &'static str {
        "orb/event-cost"
    }

    fn title(&self) -> &'static str {
        "What an event through the channel takes on one CPU, and what supplier, channel and consumers execute of it"
    }

    fn reproduces(&self) -> &'static str {
        "P3 section 3 (the cost of each service of a platform), for the channel of P4"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        let words = |numbers: &[usize]| {
            let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            words.join(" ")
        };
        labels([
            ("rounds", plan.rounds.into()),
            ("events_per_round", plan.events.into()),
            ("events_hz", (1_000_000_000 / PERIOD_NS).into()),
            ("consumers", words(&CONSUMERS).into()),
            ("payload_bytes", words(&PAYLOADS).into()),
            ("priority", u32::from(Role::High.priority()).into()),
            ("awake", effort.seeds().is_none().into()),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        progress.begin(TRANSPORTS.len() * CONSUMERS.len() * plan.rounds);
        let mut measured = Measured::default();
        let complete = is_complete(measured.take((context, plan), progress))?;
        let real_time = context.launcher.placement.fifo.is_some();
        Ok(Outcome {
            complete,
            ..measured.outcome(real_time)
        })
    }
}

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Its place in [`TRANSPORTS`].
    transport: usize,
    consumers: usize,
    payload_bytes: usize,
}

/// What was measured so far.
#[derive(Debug, Default)]
struct Measured {
    cells: BTreeMap<Key, Cell>,
    scheduling: Vec<ObtainedScheduling>,
    /// Rounds in which the kernel did not tell the processor time.
    untold: usize,
}

#[derive(Debug, Default)]
struct Cell {
    event: RecordedTimes,
    /// Of [`EXECUTIONS`]: the mean of an event, a sample a round.
    executions: [Rounds; EXECUTIONS.len()],
}

impl Measured {
    fn take(
        &mut self,
        (context, plan): (&Context, Plan),
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        for (place, transport) in TRANSPORTS.into_iter().enumerate() {
            for consumers in CONSUMERS {
                let mut system = System::start(context, transport, consumers)?;
                for threads in system.scheduling() {
                    if !self.scheduling.contains(&threads) {
                        self.scheduling.push(threads);
                    }
                }
                for round in 0..plan.rounds {
                    for payload_bytes in PAYLOADS {
                        if context.interrupted() {
                            return Err(LabError::Interrupted);
                        }
                        let key = Key {
                            transport: place,
                            consumers,
                            payload_bytes,
                        };
                        self.round(key, (round, plan.events), &mut system)?;
                    }
                    progress.step(&format!(
                        "{}, {consumers} consumers, round {} of {}",
                        transport.label(),
                        round + 1,
                        plan.rounds
                    ));
                }
            }
        }
        Ok(())
    }

    fn round(
        &mut self,
        key: Key,
        (round, events): (usize, u64),
        system: &mut System,
    ) -> Result<(), LabError> {
        let executed = system.send(events, key.payload_bytes)?;
        // The first one opened connections, and what was executed for it was not counted.
        let latencies = system.consumers.latencies(events + 1)?;
        let wrong = latencies.wrong();
        let times_ns = receipts_ns(&latencies.consumers_ns, events + 1, Receipt::Last);
        let cell = self.cells.entry(key).or_default();
        cell.event.add(round, times_ns.into_iter().skip(1), wrong);
        match executed {
            Some(executed_ns) => {
                for (rounds, sum_ns) in cell.executions.iter_mut().zip(executed_ns) {
                    rounds.add_computed(&[sum_ns as f64 / events.max(1) as f64]);
                }
            }
            None => self.untold += 1,
        }
        Ok(())
    }

    fn outcome(&self, real_time: bool) -> Outcome {
        let mut notes = vec![ONE_WAY.to_owned()];
        if !real_time {
            notes.push(NOT_REAL_TIME.to_owned());
        }
        if self.untold > 0 {
            notes.push(UNTOLD.to_owned());
        }
        Outcome {
            scheduling: self.scheduling.clone(),
            highlights: self.highlights(),
            series: self.series(real_time),
            tables: tables(),
            plots: plots(),
            notes,
            ..Outcome::default()
        }
    }

    fn series(&self, real_time: bool) -> Vec<Series> {
        let of_cell = |(key, cell): (&Key, &Cell)| {
            let executions = EXECUTIONS.into_iter().zip(&cell.executions);
            let executions =
                executions.map(|(what, rounds)| rounds.series(key.labels(what, real_time)));
            let mut all = vec![cell.event.series(key.labels(EVENT, real_time))];
            all.extend(executions.filter(|series| series.count > 0));
            all
        };
        self.cells.iter().flat_map(of_cell).collect()
    }

    fn highlights(&self) -> Vec<Highlight> {
        let smallest = self
            .cells
            .iter()
            .filter(|(key, _)| key.payload_bytes == STAMP_BYTES);
        let highlight = |(key, cell): (&Key, &Cell)| {
            let of = cell.event.statistics();
            Highlight {
                what: format!(
                    "an event over {} to {} consumers",
                    TRANSPORTS[key.transport].label(),
                    key.consumers
                ),
                value: of.p50 / 1e3,
                unit: "us".to_owned(),
                beside: format!("99 of 100 at most {:.1} us", of.p99 / 1e3),
            }
        };
        smallest.map(highlight).collect()
    }
}

impl Key {
    fn labels(self, what: &str, real_time: bool) -> Labels {
        labels([
            ("orb", "rtorb".into()),
            ("what", what.into()),
            ("transport", TRANSPORTS[self.transport].label().into()),
            ("consumers", self.consumers.into()),
            ("payload_bytes", self.payload_bytes.into()),
            ("real_time", real_time.into()),
        ])
    }
}

/// A channel with a supplier and consumers, of one priority on one CPU.
struct System {
    // In this order: clients are ended before the channel that they are connected to.
    supplier: Supplier,
    consumers: Consumers,
    channel: Channel,
    cpu: Option<usize>,
}

impl System {
    fn start(context: &Context, transport: Transport, consumers: usize) -> Result<Self, LabError> {
        let name = format!("cost-{consumers}");
        let way = (transport, name.as_str());
        let channel = Channel::start(context, way, &served(context, &[Role::High]))?;
        let priority = match context.launcher.placement.fifo {
            Some(_) => Role::High.priority(),
            None => 0,
        };
        let subscribers = Subscribers {
            count: consumers,
            source: SOURCE,
            priority,
            events_max: EVENTS_REMEMBERED,
        };
        let mut system = Self {
            supplier: Supplier::start(context, &channel, (SOURCE, priority))?,
            consumers: Consumers::start(context, way, &channel, &subscribers)?,
            channel,
            cpu: context.launcher.placement.cpu,
        };
        system.send(WARM_UP_EVENTS, STAMP_BYTES)?;
        Ok(system)
    }

    fn scheduling(&self) -> Vec<ObtainedScheduling> {
        let clients = [self.supplier.process(), self.consumers.process()];
        let of_clients = clients
            .into_iter()
            .flat_map(|process| obtained_by_priority(process.name(), process.id()));
        self.channel
            .scheduling()
            .into_iter()
            .chain(of_clients)
            .collect()
    }

    /// Sends one event, pauses, and sends so many more. Answers the processor time that these took in each of [`EXECUTIONS`], in
    /// nanoseconds; `None` where the kernel does not tell. Nobody is asked anything meanwhile: an answer takes time too.
    fn send(&mut self, events: u64, payload_bytes: usize) -> Result<Option<[u64; 3]>, LabError> {
        self.consumers.clear()?;
        let lasting_ns = 2 * PAUSE_NS + events * PERIOD_NS;
        let awake = Awake::keep(self.cpu, Duration::from_nanos(lasting_ns) + TIMEOUT);
        self.supplier.begin(&Sending {
            pause_ns: PAUSE_NS,
            payload_bytes,
            ..Sending::paced(events + 1, PERIOD_NS)
        })?;
        let begun_ns = monotonic_ns();
        self.consumers.await_received(1, TIMEOUT)?;
        let before = self.sums();
        // In the middle of the pause after the last event.
        sleep_until(begun_ns + events * PERIOD_NS + PAUSE_NS + PAUSE_NS / 2);
        let after = self.sums();
        self.supplier.finish(TIMEOUT)?;
        self.consumers.await_received(events + 1, TIMEOUT)?;
        drop(awake);
        let executed = before.zip(after).map(|(before, after)| {
            let mut executed_ns = [0; EXECUTIONS.len()];
            for (place, executed_ns) in executed_ns.iter_mut().enumerate() {
                *executed_ns = after[place].since(before[place]).cpu_ns;
            }
            executed_ns
        });
        Ok(executed)
    }

    fn sums(&self) -> Option<[ThreadSums; EXECUTIONS.len()]> {
        Some([
            ThreadSums::of(self.supplier.process().id())?,
            ThreadSums::of(self.channel.process().id())?,
            ThreadSums::of(self.consumers.process().id())?,
        ])
    }
}

fn tables() -> Vec<TableView> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    vec![TableView {
        id: "event-cost".to_owned(),
        title: "What an event takes, and what is executed of it".to_owned(),
        caption: "From sending until the last consumer has it; below, the mean processor time of an event in each kind of process.".to_owned(),
        rows: words(&["transport", "consumers", "payload_bytes"]),
        columns: words(&["what"]),
        values: vec![CellValue::Median, CellValue::P99],
        ..TableView::default()
    }]
}

fn plots() -> Vec<Plot> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    vec![
        Plot {
            id: "event-cost".to_owned(),
            title: "What an event takes against the number of its consumers".to_owned(),
            caption: "An event: until the last consumer has it. The others: processor time in each kind of process.".to_owned(),
            kind: PlotKind::Lines,
            choose: words(&["transport", "payload_bytes"]),
            lines: words(&["what"]),
            x: "consumers".to_owned(),
            x_title: "consumers".to_owned(),
            values: vec![StatisticName::P50],
            ..Plot::default()
        },
        Plot {
            id: "event-cost-percentiles".to_owned(),
            title: "The tail of an event".to_owned(),
            caption: "How much longer an event takes than usual, and how rarely.".to_owned(),
            kind: PlotKind::Percentiles,
            of: labels([("what", EVENT.into())]),
            choose: words(&["transport", "payload_bytes"]),
            lines: words(&["consumers"]),
            log_y: true,
            ..Plot::default()
        },
    ]
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    /// In each round.
    events: u64,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        let (rounds, events) = match effort {
            Effort::Glance => (1, 20),
            Effort::Emulated { seeds } => (usize::from(seeds), 50),
            Effort::Quick => (4, 200),
            Effort::Full => (25, 400),
        };
        Self { rounds, events }
    }
}

/// The value of the label `what` of an event, and those of what is executed, in the order of [`System::sums`].
const EVENT: &str = "event";
const EXECUTIONS: [&str; 3] = [
    "supplier_execution",
    "channel_execution",
    "consumer_execution",
];
const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Unix];
const CONSUMERS: [usize; 2] = [1, 4];
const PAYLOADS: [usize; 2] = [STAMP_BYTES, 1_024];
const SOURCE: i32 = 1;
const PERIOD_NS: u64 = 1_000_000;
/// For the laboratory to read the kernel's sums after the first event and after the last one.
const PAUSE_NS: u64 = 50_000_000;
const WARM_UP_EVENTS: u64 = 5;
const EVENTS_REMEMBERED: usize = 512;
const TIMEOUT: Duration = Duration::from_secs(10);
const ONE_WAY: &str = "On one CPU and at one priority nobody takes the CPU from anybody: the channel has an event once the supplier sleeps, \
                       and consumers have it once the channel does. What is executed is read from the kernel's sums of each process \
                       (schedstat) over a round: interrupts are in it.";
const NOT_REAL_TIME: &str = "Without SCHED_FIFO no event has a priority.";
const UNTOLD: &str = "The kernel does not tell the processor time of threads (CONFIG_SCHED_INFO): what is executed by whom is missing.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_remembered_whole_and_a_quick_run_is_short() {
        for effort in [Effort::Glance, Effort::Quick, Effort::Full] {
            let plan = Plan::of(effort);
            assert!(plan.events < EVENTS_REMEMBERED as u64);
        }
        let plan = Plan::of(Effort::Quick);
        let round_ns = 2 * PAUSE_NS + plan.events * PERIOD_NS;
        let rounds = plan.rounds * TRANSPORTS.len() * CONSUMERS.len() * PAYLOADS.len();
        assert!(rounds as u64 * round_ns < 12_000_000_000);
    }

    #[test]
    fn what_the_kernel_does_not_tell_has_no_series_and_a_note() {
        let key = Key {
            transport: 0,
            consumers: 1,
            payload_bytes: STAMP_BYTES,
        };
        let mut measured = Measured {
            untold: 1,
            ..Measured::default()
        };
        let cell = measured.cells.entry(key).or_default();
        cell.event.add(0, [10_000, 12_000, 14_000], 0);
        let outcome = measured.outcome(true);
        assert_eq!(outcome.series.len(), 1);
        assert_eq!(outcome.series[0].labels["what"], EVENT.into());
        assert!(outcome.notes.contains(&UNTOLD.to_owned()));
        let cell = measured.cells.entry(key).or_default();
        for rounds in &mut cell.executions {
            rounds.add_computed(&[3_000.0]);
        }
        assert_eq!(measured.outcome(true).series.len(), 4);
        assert!((measured.highlights()[0].value - 12.0).abs() < 0.02);
    }
}
