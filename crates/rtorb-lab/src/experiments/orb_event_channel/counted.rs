//! What an event costs the channel's process besides time: heap calls, locks, context switches and system calls.

use std::collections::BTreeMap;

use rtorb_results::claim::Declaration;
use rtorb_results::metric::{Metric, Statistic::P50};
use rtorb_results::statements::Statements;
use rtorb_results::{CellValue, Labels, TableView, labels};

use super::{served, table, words};
use crate::contestants::Transport;
use crate::contestants::event_channel::system::{Channel, Consumers, Supplier, priority_on};
use crate::contestants::event_channel::{Sending, Served, Subscribers};
use crate::contestants::square_wave::system::Role;
use crate::contestants::whitebox::counts::Reading;
use crate::contestants::whitebox::strace::{self, Strace};
use crate::error::LabError;
use crate::experiment::Context;
use crate::study::{
    Amounts, Cell, Factor, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};

pub(super) const STUDY: Study<Counters> = Study {
    name: "counts",
    title: "What an event costs besides time",
    amounts: Amounts {
        glance: 50,
        emulated: 0,
        quick: [3, 500],
        full: [10, 2_000],
        samples: "counted_events_per_round",
    },
    factors: &[Factor {
        label: CONSUMERS,
        levels: &[Number(1), Number(10)],
    }],
    fixed: &[
        ("orb", Text("rtorb")),
        ("path", Text("event")),
        ("transport", Text("tcp")),
        ("part", Text(COUNT)),
    ],
    tables: || {
        vec![TableView {
            caption: "In the process of the channel.".to_owned(),
            rows: words(&["counted"]),
            columns: words(&[CONSUMERS]),
            values: vec![CellValue::Median],
            ..table("counts", "What an event costs besides time", COUNT)
        }]
    },
    says: SAYS,
    ..Study::with(|context, _| {
        Ok(Counters {
            one: Counter::start(context, 1)?,
            many: Counter::start(context, 10)?,
            traces: strace::is_usable(),
        })
    })
};

/// Channels with one consumer and with many.
pub(super) struct Counters {
    one: Counter,
    many: Counter,
    /// Whether system calls can be counted.
    traces: bool,
}

impl Subject for Counters {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let counter = if cell.number(CONSUMERS) == 1 {
            &mut self.one
        } else {
            &mut self.many
        };
        let events = turn.samples as u64;
        let mut numbers = counter.count(events)?;
        // Once: every system call stops its thread twice.
        if self.traces && turn.round == 0 {
            numbers.extend(counter.trace(turn.context)?);
        }
        let clients = [counter.consumers[0].process(), counter.supplier.process()];
        Ok(Sampled {
            scheduling: counter.channel.scheduling(clients),
            counts: of_an_event(&numbers),
            ..Sampled::default()
        })
    }
}

/// A channel that counts, and its clients.
struct Counter {
    // In this order: clients are ended before the channel that they are connected to.
    supplier: Supplier,
    consumers: [Consumers; 1],
    channel: Channel,
}

impl Counter {
    fn start(context: &Context, count: usize) -> Result<Self, LabError> {
        let served = Served {
            counts: true,
            ..served(context, &[Role::High])
        };
        let name = format!("counted-{count}");
        let channel = Channel::start(context, Transport::Tcp, &name, &served)?;
        let priority = priority_on(context, Role::High.priority());
        let subscribers = Subscribers {
            count,
            source: SOURCE,
            priority,
            events_max: 0,
        };
        let mut started = Self {
            consumers: [channel.consumers(context, &name, &subscribers)?],
            supplier: channel.supplier(context, SOURCE, priority)?,
            channel,
        };
        // The first ones open connections, and reserve what is used again.
        let few = Sending::paced(WARM_UP_EVENTS, PERIOD_NS);
        started.supplier.send(&few, &mut started.consumers)?;
        Ok(started)
    }

    /// Sends so many events after a first one, and a pause after that. What the first one makes, and what is unmade after the last
    /// one, belongs to no event.
    fn between<T>(
        &mut self,
        events: u64,
        pause_ns: u64,
        begin: impl FnOnce(&mut Self) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let [consumers] = &mut self.consumers;
        consumers.clear()?;
        let sending = Sending {
            pause_ns,
            ..Sending::paced(events + 1, PERIOD_NS)
        };
        self.supplier.begin(&sending)?;
        consumers.await_received(1)?;
        let begun = begin(self)?;
        self.consumers[0].await_received(events + 1)?;
        Ok(begun)
    }

    fn count(&mut self, events: u64) -> Result<BTreeMap<String, f64>, LabError> {
        let before = self.between(events, PAUSE_NS, |counter| counter.channel.counts())?;
        let after = self.channel.counts()?;
        self.supplier
            .finish(Sending::paced(events, PERIOD_NS).lasting())?;
        let Reading { counts, threads } = after.since(before);
        let counted = [
            ("heap_calls", counts.heap_calls),
            ("user_locks", counts.lock_operations),
            ("contended_locks", counts.contended),
            ("voluntary_switches", threads.voluntary_switches),
            ("involuntary_switches", threads.involuntary_switches),
            (EVENTS, events),
        ];
        Ok(counted
            .map(|(name, count)| (name.to_owned(), count as f64))
            .into())
    }

    fn trace(&mut self, context: &Context) -> Result<BTreeMap<String, f64>, LabError> {
        let (strace, before) = self.between(TRACED_EVENTS, TRACE_PAUSE_NS, |counter| {
            let strace = Strace::attach(context.folder(), counter.channel.process().id())?;
            Ok((strace, counter.consumers[0].received()?.0))
        })?;
        let calls = strace.finish()?;
        self.supplier
            .finish(Sending::paced(TRACED_EVENTS, PERIOD_NS).lasting())?;
        let named = calls
            .iter()
            .map(|(name, count)| (format!("system_call_{name}"), *count));
        let others = [
            (SYSTEM_CALLS.to_owned(), calls.values().sum()),
            (
                TRACED.to_owned(),
                (TRACED_EVENTS + 1).saturating_sub(before),
            ),
        ];
        let all = named.chain(others);
        Ok(all.map(|(name, count)| (name, count as f64)).collect())
    }
}

/// The counts of an event, by their names.
fn of_an_event(numbers: &BTreeMap<String, f64>) -> Vec<(Labels, f64, (&'static str, u64))> {
    let counts = numbers
        .iter()
        .filter(|(name, _)| ![EVENTS, TRACED].contains(&name.as_str()));
    let each = counts.map(|(name, count)| {
        let is_traced = name.starts_with("system_call");
        let events = numbers[if is_traced { TRACED } else { EVENTS }];
        let labels = labels([("counted", name.as_str().into())]);
        (
            labels,
            count / events.max(1.0),
            ("per_event", events as u64),
        )
    });
    each.collect()
}

const SAYS: Statements = Statements {
    claims: &[
        Declaration::count("heap-calls", Metric::of(P50), 0.001, "per_event").of(
            "consumers=1, counted=heap_calls",
            "heap calls an event in the channel's process: at most one in 1,000 events of every round",
        ),
    ],
    ..Statements::NONE
};

const CONSUMERS: &str = "consumers";
/// The value of the label `part`.
const COUNT: &str = "count";
/// The number of events that counts are of, and that system calls are of.
const EVENTS: &str = "events";
const TRACED: &str = "traced_events";
const SYSTEM_CALLS: &str = "system_calls";
const SOURCE: i32 = 1;
const PERIOD_NS: u64 = 500_000;
/// A hundred times what it takes to ask for the counts.
const PAUSE_NS: u64 = 50_000_000;
/// Longer than it takes to attach strace, and to be rid of it.
const TRACE_PAUSE_NS: u64 = 400_000_000;
const WARM_UP_EVENTS: u64 = 100;
/// Fewer, since every system call stops its thread twice.
const TRACED_EVENTS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_of_one_event() {
        let numbers = [
            ("heap_calls", 100.0),
            (SYSTEM_CALLS, 100.0),
            (EVENTS, 50.0),
            (TRACED, 20.0),
        ];
        let numbers = numbers.map(|(name, count)| (name.to_owned(), count)).into();
        let shown =
            |(labels, value, of): (Labels, f64, _)| (labels["counted"].to_string(), value, of);
        let found: Vec<_> = of_an_event(&numbers).into_iter().map(shown).collect();
        let expected = [("heap_calls", 2.0, 50), (SYSTEM_CALLS, 5.0, 20)];
        let expected =
            expected.map(|(name, value, of)| (name.to_owned(), value, ("per_event", of)));
        assert_eq!(found, expected, "numbers of events are no counts");
    }
}
