//! What an event costs the channel's process besides time: heap calls, locks, context switches and system calls.

use std::collections::BTreeMap;

use rtorb_results::statistics::median;
use rtorb_results::{CellValue, Claim, LabelValue, Labels, Series, TableView, labels_with};

use super::{served, table, words};
use crate::contestants::Transport;
use crate::contestants::event_channel::system::{Channel, Consumers, Supplier, priority_on};
use crate::contestants::event_channel::{Sending, Served, Subscribers};
use crate::contestants::square_wave::system::Role;
use crate::contestants::whitebox::counts::Reading;
use crate::contestants::whitebox::strace::{self, Strace};
use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::probe::Answer;
use crate::study::{
    Amounts, Cell, Conditions, Factor, Findings, Sampled, Study, Subject, Turn,
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
    findings: |_, conditions| findings(conditions),
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
            answer: Some(Answer {
                numbers,
                ..Answer::default()
            }),
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

/// Counts of an event, of each round, and how many events they are of.
#[derive(Default)]
struct Counted {
    rounds: Vec<f64>,
    events: f64,
}

fn findings(conditions: &Conditions) -> Findings {
    let mut all: BTreeMap<Labels, Counted> = BTreeMap::new();
    for kept in &conditions.answers {
        let numbers = &kept.answer.numbers;
        let counts = numbers
            .iter()
            .filter(|(name, _)| ![EVENTS, TRACED].contains(&name.as_str()));
        for (name, count) in counts {
            let of = if name.starts_with("system_call") {
                TRACED
            } else {
                EVENTS
            };
            let events = numbers[of];
            let labels = labels_with(&kept.labels, [("counted", name.as_str().into())]);
            let counted = all.entry(labels).or_default();
            counted.rounds.push(count / events.max(1.0));
            counted.events += events;
        }
    }
    // Of one consumer, the median over rounds.
    let get = |what: &str| {
        let mut found = all.iter().filter(|(labels, _)| {
            labels[CONSUMERS] == LabelValue::Number(1) && labels["counted"] == what.into()
        });
        found
            .next()
            .and_then(|(_, counted)| median(&counted.rounds))
    };
    let claim = get("heap_calls").map(|heap_calls| {
        let statement = "heap calls an event in the channel's process: none in 1,000 events";
        Claim::counted("heap-calls", statement, heap_calls, NONE, "per_event")
    });
    let words = || {
        let calls = match get(SYSTEM_CALLS) {
            Some(calls) => format!("{calls:.2} system calls"),
            None => "system calls that nobody could count, for want of strace".to_owned(),
        };
        Some(format!(
            "An event to one consumer costs the channel's process {:.3} heap calls, {:.2} lock operations, {:.2} context switches and {calls}.",
            get("heap_calls")?,
            get("user_locks")?,
            get("voluntary_switches")? + get("involuntary_switches")?,
        ))
    };
    let series = all.iter().map(|(labels, counted)| {
        let events = counted.events as u64;
        Series::of_counts(labels.clone(), "per_event", events, &counted.rounds)
    });
    Findings {
        series: series.collect(),
        claims: claim.into_iter().collect(),
        conclusions: words().into_iter().collect(),
        ..Findings::default()
    }
}

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
/// None in 1,000 events.
const NONE: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Answered;
    use rtorb_results::{Verdict, labels};

    /// Heap calls of 100 events in each round, and 5 system calls an event in the first.
    fn found(heap_calls: &[f64]) -> Findings {
        let answered = |(round, heap_calls): (usize, &f64)| {
            let counts = [
                ("heap_calls", *heap_calls),
                ("user_locks", 400.0),
                ("voluntary_switches", 200.0),
                ("involuntary_switches", 0.0),
                (EVENTS, 100.0),
            ];
            let traced = [(SYSTEM_CALLS, 100.0), (TRACED, 20.0)];
            let traced = traced.into_iter().filter(|_| round == 0);
            let numbers = counts.into_iter().chain(traced);
            Answered {
                labels: labels([(CONSUMERS, 1usize.into())]),
                round,
                answer: Answer {
                    numbers: numbers
                        .map(|(name, count)| (name.to_owned(), count))
                        .collect(),
                    ..Answer::default()
                },
            }
        };
        findings(&Conditions {
            answers: heap_calls.iter().enumerate().map(answered).collect(),
            ..Conditions::default()
        })
    }

    #[test]
    fn counts_are_of_one_event() {
        let found = found(&[100.0, 300.0, 200.0]);
        let series = |what: &str| {
            let mut series = found.series.iter();
            series
                .find(|series| series.labels["counted"] == what.into())
                .expect("it is there")
        };
        let heap_calls = series("heap_calls");
        assert_eq!(
            (heap_calls.count, heap_calls.unit.as_str()),
            (300, "per_event")
        );
        assert_eq!(heap_calls.median_of_rounds(), 2.0);
        assert_eq!(
            (
                series(SYSTEM_CALLS).count,
                series(SYSTEM_CALLS).rounds_p50[0]
            ),
            (20, 5.0)
        );
        assert_eq!(found.series.len(), 5, "numbers of events are no counts");
        assert!(
            found.conclusions[0].contains("4.00 lock operations, 2.00 context switches and 5.00")
        );
    }

    #[test]
    fn an_event_calls_no_heap() {
        let verdict = |heap_calls: &[f64]| found(heap_calls).claims[0].verdict;
        assert_eq!(verdict(&[0.0, 0.0, 5.0]), Verdict::Held);
        assert_eq!(verdict(&[0.0, 5.0, 5.0]), Verdict::Missed);
        assert!(found(&[]).claims.is_empty(), "nothing was counted");
    }
}
