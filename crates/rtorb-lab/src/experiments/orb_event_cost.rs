//! `orb/event-cost`: what an event through the event channel takes on one CPU, and how much of that supplier, channel and consumers
//! execute: a model of a system composes the way of an event of these.
//!
//! All have one priority, and a process each. `orb/event-channel` measures events beside others.

use std::time::Duration;

use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_results::cells::Cells;
use rtorb_results::metric::{
    Metric,
    Statistic::{P50, P99},
    Step::Times,
};
use rtorb_results::profile::ServiceRow;
use rtorb_results::statements::{HighlightOf, Statements, Words};
use rtorb_results::{
    CellValue, ObtainedScheduling, Plot, PlotKind, StatisticName, TableView, labels,
};

use crate::contestants::Transport;
use crate::contestants::event_channel::rtec::STAMP_BYTES;
use crate::contestants::event_channel::system::{Channel, Consumers, Supplier, priority_on};
use crate::contestants::event_channel::{Sending, Subscribers};
use crate::contestants::square_wave::system::Role;
use crate::contestants::whitebox::threads::ThreadSums;
use crate::error::LabError;
use crate::experiment::Context;
use crate::experiments::orb_event_channel::{Receipt, receipts_ns, served};
use crate::processes::awake::Awake;
use crate::study::{
    Amounts, Cell, Conditions, Factor, Findings, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};

/// The experiment.
pub const STUDY: Study<Systems> = Study {
    name: "orb/event-cost",
    title: "What an event through the channel takes on one CPU, and what supplier, channel and consumers execute of it",
    reproduces: "P3 section 3 (the cost of each service of a platform), for the channel of P4",
    amounts: Amounts {
        glance: 20,
        emulated: 50,
        quick: [3, 100],
        full: [25, 400],
        samples: "events_per_round",
    },
    factors: &[
        Factor {
            label: "transport",
            levels: &[Text("tcp"), Text("unix")],
        },
        Factor {
            label: "consumers",
            levels: &[Number(1), Number(4)],
        },
        Factor {
            label: "payload_bytes",
            levels: &[Number(STAMP_BYTES as i64), Number(1_024)],
        },
    ],
    fixed: &[("orb", Text("rtorb"))],
    parameters: &[
        ("events_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("priority", Number(Role::High.priority() as i64)),
    ],
    period_ns: PERIOD_NS,
    tables,
    plots,
    says: SAYS,
    findings,
    notes: |_| vec![ONE_WAY.to_owned()],
    services: &[
        row("event", &[("what", "event")]),
        row("supplier_execution", &[("what", "supplier_execution")]),
        row("channel_execution", &[("what", "channel_execution")]),
        row("consumer_execution", &[("what", "consumer_execution")]),
    ],
    ..Study::with(|context, _| Systems::start(context))
};

const fn row(service: &'static str, of: &'static [(&'static str, &'static str)]) -> ServiceRow {
    let row = ServiceRow::new("event_channel", service).of(of);
    row.configured_by(&["transport", "consumers", "payload_bytes"])
}

/// A system for each transport and number of consumers.
pub struct Systems(Vec<(Transport, usize, System)>);

impl Systems {
    fn start(context: &Context) -> Result<Self, LabError> {
        let mut systems = Vec::new();
        for transport in [Transport::Tcp, Transport::Unix] {
            for consumers in [1, 4] {
                let system = System::start(context, transport, consumers)?;
                systems.push((transport, consumers, system));
            }
        }
        Ok(Self(systems))
    }
}

impl Subject for Systems {
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        let mut all: Vec<ObtainedScheduling> = Vec::new();
        for threads in self.0.iter().flat_map(|(.., system)| system.scheduling()) {
            if !all.contains(&threads) {
                all.push(threads);
            }
        }
        Ok(all)
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let events = turn.samples as u64;
        let mut systems = self.0.iter_mut();
        let system = systems.find(|(transport, consumers, _)| {
            cell.is("transport", transport.label()) && cell.number("consumers") == *consumers
        });
        let (.., system) = system.expect("each cell has a system");
        let executed = system.send(events, cell.number("payload_bytes"))?;
        // The first one opened connections, and what was executed for it was not counted.
        let latencies = system.consumers.latencies(events + 1)?;
        let wrong = latencies.wrong();
        let times_ns = receipts_ns(&latencies.consumers_ns, events + 1, Receipt::Last);
        let part = |what: &str, times_ns| (labels([("what", what.into())]), times_ns);
        let mut parts = vec![part(EVENT, times_ns.into_iter().skip(1).collect())];
        let mut sampled = Sampled {
            wrong,
            ..Sampled::default()
        };
        match executed {
            Some(executed_ns) => {
                let each = EXECUTIONS.into_iter().zip(executed_ns);
                parts.extend(each.map(|(what, sum_ns)| part(what, vec![sum_ns / events.max(1)])));
            }
            None => *sampled.numbers.entry(UNTOLD_ROUNDS.to_owned()).or_default() += 1.0,
        }
        Ok(Sampled { parts, ..sampled })
    }
}

fn findings(_: &Cells, conditions: &Conditions) -> Findings {
    let is_untold = conditions.numbers.contains_key(UNTOLD_ROUNDS);
    let notes = [(!conditions.real_time, NOT_REAL_TIME), (is_untold, UNTOLD)];
    let notes = notes.into_iter().filter(|(is_so, _)| *is_so);
    Findings {
        notes: notes.map(|(_, note)| note.to_owned()).collect(),
        ..Findings::default()
    }
}

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "an event over {transport} to {consumers} consumers",
        of: "what=event, payload_bytes=16",
        metric: Metric::of(P50).with(&[Times(1e-3)]),
        unit: "us",
        beside: Words::with(
            "99 of 100 at most {0}",
            &[(Metric::of(P99).with(&[Times(1e-3)]), "us")],
        ),
    }],
    ..Statements::NONE
};

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
        let channel = Channel::start(context, transport, &name, &served(context, &[Role::High]))?;
        let priority = priority_on(context, Role::High.priority());
        let subscribers = Subscribers {
            count: consumers,
            source: SOURCE,
            priority,
            events_max: EVENTS_REMEMBERED,
        };
        let mut system = Self {
            supplier: channel.supplier(context, SOURCE, priority)?,
            consumers: channel.consumers(context, &name, &subscribers)?,
            channel,
            cpu: context.launcher.placement.cpu,
        };
        system.send(WARM_UP_EVENTS, STAMP_BYTES)?;
        Ok(system)
    }

    fn scheduling(&self) -> Vec<ObtainedScheduling> {
        let clients = [self.supplier.process(), self.consumers.process()];
        self.channel.scheduling(clients)
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
        self.consumers.await_received(1)?;
        let before = self.sums();
        // In the middle of the pause after the last event.
        sleep_until(begun_ns + events * PERIOD_NS + PAUSE_NS + PAUSE_NS / 2);
        let after = self.sums();
        self.supplier.finish(TIMEOUT)?;
        self.consumers.await_received(events + 1)?;
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
            caption: "An event: until the last consumer has it. The others: processor time in each kind of process.".to_owned(),
            kind: PlotKind::Lines,
            choose: words(&["transport", "payload_bytes"]),
            lines: words(&["what"]),
            x: "consumers".to_owned(),
            x_title: "consumers".to_owned(),
            values: vec![StatisticName::P50],
            ..Plot::named("event-cost", "What an event takes against the number of its consumers")
        },
        Plot {
            caption: "How much longer an event takes than usual, and how rarely.".to_owned(),
            kind: PlotKind::Percentiles,
            of: labels([("what", EVENT.into())]),
            choose: words(&["transport", "payload_bytes"]),
            lines: words(&["consumers"]),
            log_y: true,
            ..Plot::named("event-cost-percentiles", "The tail of an event")
        },
    ]
}

/// The value of the label `what` of an event, and those of what is executed, in the order of [`System::sums`].
const EVENT: &str = "event";
const EXECUTIONS: [&str; 3] = [
    "supplier_execution",
    "channel_execution",
    "consumer_execution",
];
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

/// The number of rounds in which the kernel did not tell.
const UNTOLD_ROUNDS: &str = "untold";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Effort, Experiment};

    #[test]
    fn a_round_is_remembered_whole_and_a_quick_run_is_short() {
        let number = |effort, name: &str| {
            let parameters = STUDY.parameters(effort);
            parameters[name].number().expect("it is a number") as u64
        };
        for effort in [Effort::Glance, Effort::Quick, Effort::Full] {
            assert!(number(effort, "events_per_round") < EVENTS_REMEMBERED as u64);
        }
        let pauses_ns = 8 * number(Effort::Quick, "rounds") * 2 * PAUSE_NS;
        let paced_ns = number(Effort::Quick, "paced_seconds") * 1_000_000_000;
        assert!(pauses_ns + paced_ns < 12_000_000_000);
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_noted() {
        let cells = Cells::default();
        let found = findings(&cells, &Conditions::default());
        assert_eq!(found.notes, [NOT_REAL_TIME]);
        let untold = Conditions {
            real_time: true,
            numbers: [(UNTOLD_ROUNDS.to_owned(), 1.0)].into(),
            ..Conditions::default()
        };
        assert_eq!(findings(&cells, &untold).notes, [UNTOLD]);
    }
}
