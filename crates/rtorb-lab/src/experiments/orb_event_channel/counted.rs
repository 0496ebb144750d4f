//! What an event costs the channel's process besides time: heap calls, locks, context switches and system calls.

use std::collections::BTreeMap;
use std::time::Duration;

use rtorb_results::statistics::{Recorder, Statistics, median};
use rtorb_results::{Series, labels};

use super::edges::served;
use super::plan::Plan;
use crate::contestants::Transport;
use crate::contestants::event_channel::system::{Channel, Consumers, Supplier};
use crate::contestants::event_channel::{Sending, Served, Subscribers};
use crate::contestants::square_wave::system::Role;
use crate::contestants::whitebox::strace::{self, Strace};
use crate::error::LabError;
use crate::experiment::{Context, Progress};

/// Counts an event, round by round, by what is counted and how many consumers there are.
#[derive(Debug, Default)]
pub(super) struct CountedEvents {
    pub(super) cells: BTreeMap<(String, usize), Cell>,
}

/// Counts an event, one of each round.
#[derive(Debug, Default)]
pub(super) struct Cell {
    rounds: Vec<f64>,
    events: u64,
}

impl CountedEvents {
    pub(super) fn measure(
        &mut self,
        (context, plan): (&Context, &Plan),
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let traces = strace::is_usable();
        for consumers in CONSUMERS {
            let mut counted = Counted::start(context, consumers)?;
            // The first ones open connections, and reserve what is used again.
            counted.send(WARM_UP_EVENTS)?;
            for _ in 0..plan.rounds {
                if context.interrupted() {
                    return Err(LabError::Interrupted);
                }
                self.round(plan.counted_events, consumers, &mut counted)?;
            }
            if traces {
                self.trace(context, consumers, &mut counted)?;
            }
            progress.step(&format!("counts, {consumers} consumers"));
        }
        Ok(())
    }

    fn round(
        &mut self,
        events: u64,
        consumers: usize,
        counted: &mut Counted,
    ) -> Result<(), LabError> {
        // The connection of the sending thread belongs to no event: neither what the first event on it makes, nor its end.
        counted.begin(&Sending {
            pause_ns: PAUSE_NS,
            ..Sending::paced(events + 1, PERIOD_NS)
        })?;
        counted.consumers.await_received(1, RECEIPT_TIMEOUT)?;
        let before = counted.channel.counts()?;
        counted
            .consumers
            .await_received(events + 1, RECEIPT_TIMEOUT)?;
        let after = counted.channel.counts()?;
        counted.finish(events + 1)?;
        let (counts, threads) = (after.0.since(before.0), after.1.since(before.1));
        for (what, count) in [
            ("heap_calls", counts.heap_calls),
            ("user_locks", counts.lock_operations),
            ("contended_locks", counts.contended),
            ("voluntary_switches", threads.voluntary_switches),
            ("involuntary_switches", threads.involuntary_switches),
        ] {
            self.add(what, consumers, (count, events));
        }
        Ok(())
    }

    fn trace(
        &mut self,
        context: &Context,
        consumers: usize,
        counted: &mut Counted,
    ) -> Result<(), LabError> {
        counted.begin(&Sending {
            pause_ns: TRACE_PAUSE_NS,
            ..Sending::paced(TRACED_EVENTS + 1, PERIOD_NS)
        })?;
        counted.consumers.await_received(1, RECEIPT_TIMEOUT)?;
        let process = counted.channel.process().id();
        let strace = Strace::attach(context.folder(), process)?;
        let before = counted.consumers.received()?.0;
        counted
            .consumers
            .await_received(TRACED_EVENTS + 1, RECEIPT_TIMEOUT)?;
        let calls = strace.finish()?;
        counted.finish(TRACED_EVENTS + 1)?;
        let events = (TRACED_EVENTS + 1).saturating_sub(before);
        let all: u64 = calls.values().sum();
        self.add("system_calls", consumers, (all, events));
        for (name, count) in &calls {
            self.add(&format!("system_call_{name}"), consumers, (*count, events));
        }
        Ok(())
    }

    fn add(&mut self, what: &str, consumers: usize, (count, events): (u64, u64)) {
        let cell = self.cells.entry((what.to_owned(), consumers)).or_default();
        cell.rounds.push(count as f64 / events.max(1) as f64);
        cell.events += events;
    }

    /// The median over rounds.
    pub(super) fn get(&self, what: &str, consumers: usize) -> Option<f64> {
        let cell = self.cells.get(&(what.to_owned(), consumers))?;
        median(&cell.rounds)
    }

    pub(super) fn series(&self) -> Vec<Series> {
        let series = self.cells.iter().map(|((what, consumers), cell)| {
            let labels = labels([
                ("path", "event".into()),
                ("transport", TRANSPORT.label().into()),
                ("consumers", (*consumers).into()),
                ("counted", what.as_str().into()),
                ("part", PART.into()),
            ]);
            Series {
                unit: "per_event".to_owned(),
                count: cell.events,
                statistics: Statistics::of_rounds(&cell.rounds),
                rounds_p50: cell.rounds.clone(),
                ..Series::from_recorder(labels, &Recorder::new())
            }
        });
        series.collect()
    }
}

/// A channel that counts, and its clients.
struct Counted {
    // In this order: clients are ended before the channel that they are connected to.
    supplier: Supplier,
    consumers: Consumers,
    channel: Channel,
}

impl Counted {
    fn start(context: &Context, consumers: usize) -> Result<Self, LabError> {
        let served = Served {
            counts: true,
            ..served(context, &[Role::High])
        };
        let name = format!("counted-{consumers}");
        let channel = Channel::start(context, (TRANSPORT, &name), &served)?;
        let real_time = context.launcher.placement.fifo.is_some();
        let priority = if real_time { Role::High.priority() } else { 0 };
        let subscribers = Subscribers {
            count: consumers,
            source: SOURCE,
            priority,
            events_max: 0,
        };
        Ok(Self {
            consumers: Consumers::start(context, (TRANSPORT, &name), &channel, &subscribers)?,
            supplier: Supplier::start(context, &channel, (SOURCE, priority))?,
            channel,
        })
    }

    fn send(&mut self, events: u64) -> Result<(), LabError> {
        self.begin(&Sending::paced(events, PERIOD_NS))?;
        self.finish(events)
    }

    fn begin(&mut self, sending: &Sending) -> Result<(), LabError> {
        self.consumers.clear()?;
        self.supplier.begin(sending)
    }

    fn finish(&mut self, events: u64) -> Result<(), LabError> {
        self.supplier.finish(Duration::from_nanos(
            2 * TRACE_PAUSE_NS + events * PERIOD_NS,
        ))?;
        self.consumers.await_received(events, RECEIPT_TIMEOUT)
    }
}

/// The value of the label `part`.
pub(super) const PART: &str = "count";
/// The numbers of consumers.
pub(super) const CONSUMERS: [usize; 2] = [1, 10];
const TRANSPORT: Transport = Transport::Tcp;
const SOURCE: i32 = 1;
const PERIOD_NS: u64 = 500_000;
/// A hundred times what it takes to ask for the counts.
const PAUSE_NS: u64 = 50_000_000;
/// Longer than it takes to attach strace, and to be rid of it.
const TRACE_PAUSE_NS: u64 = 400_000_000;
const WARM_UP_EVENTS: u64 = 100;
/// Fewer, since every system call stops its thread twice.
const TRACED_EVENTS: u64 = 100;
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_of_one_event() {
        let mut counted = CountedEvents::default();
        for count in [100, 300, 200] {
            counted.add("heap_calls", 1, (count, 100));
        }
        assert_eq!(counted.get("heap_calls", 1), Some(2.0));
        assert_eq!(counted.get("heap_calls", 10), None);
        let series = counted.series();
        assert_eq!(
            (series[0].count, series[0].unit.as_str()),
            (300, "per_event")
        );
        assert_eq!(series[0].median_of_rounds(), 2.0);
    }
}
