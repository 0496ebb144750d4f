//! What an event costs the channel's process besides time: heap calls, locks, context switches and system calls.

use std::collections::BTreeMap;

use super::route::Route;
use super::{served, table_of_part};
use crate::contestants::Transport;
use crate::contestants::event_channel::{Sending, Served};
use crate::contestants::square_wave::system::Role;
use crate::contestants::whitebox::counts::Reading;
use crate::contestants::whitebox::strace::{self, Strace};
use crate::experiments::prelude::*;

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
    factors: &[Factor::numbers(CONSUMERS, &[1, 10])],
    fixed: "orb=rtorb, path=event, transport=tcp, part=count",
    tables: || {
        vec![
            table_of_part("counts", "What an event costs besides time", COUNT)
                .caption("In the process of the channel.")
                .rows(["counted"])
                .columns([CONSUMERS])
                .values([CellValue::Median]),
        ]
    },
    says: SAYS,
    ..Study::with(|context, _| {
        Ok(Counters {
            one: start(context, 1)?,
            many: start(context, 10)?,
            traces: strace::is_usable(context.folder()),
        })
    })
};

/// Channels with one consumer and with many.
pub(super) struct Counters {
    one: Route,
    many: Route,
    /// Whether system calls can be counted.
    traces: bool,
}

impl Subject for Counters {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let route = if cell.number(CONSUMERS) == 1 {
            &mut self.one
        } else {
            &mut self.many
        };
        let mut numbers = count(route, turn.samples as u64)?;
        // Once: every system call stops its thread twice.
        if self.traces && turn.round == 0 {
            numbers.extend(trace(route, turn.context)?);
        }
        Ok(Sampled {
            scheduling: route.scheduling(),
            counts: of_an_event(&numbers),
            ..Sampled::default()
        })
    }
}

fn start(context: &Context, consumers: usize) -> Result<Route, LabError> {
    let served = Served {
        counts: true,
        ..served(context, &[Role::High])
    };
    let of = (Transport::Tcp, &*format!("counted-{consumers}"));
    let mut route = Route::start(context, of, (&served, Role::High), [consumers, 0])?;
    // The first ones open connections, and reserve what is used again.
    let few = Sending::paced(WARM_UP_EVENTS, PERIOD_NS);
    route.supplier.send(&few, &mut route.consumers)?;
    Ok(route)
}

/// Events with a pause after the first one and after the last one.
fn with_pauses(pause_ns: u64) -> Sending {
    Sending {
        pause_ns,
        ..Sending::paced(0, PERIOD_NS)
    }
}

fn count(route: &mut Route, events: u64) -> Result<BTreeMap<String, f64>, LabError> {
    route.begin(events, &with_pauses(PAUSE_NS))?;
    let before = route.channel.counts()?;
    route.await_events(events)?;
    let after = route.channel.counts()?;
    let lasting = Sending::paced(events, PERIOD_NS).lasting();
    route.supplier.finish(lasting)?;
    let Reading { counts, threads } = after.since(before);
    let counted = [
        ("heap_calls", counts.heap_calls),
        ("user_locks", counts.lock_operations),
        ("contended_locks", counts.contended),
        ("voluntary_switches", threads.voluntary_switches),
        ("involuntary_switches", threads.involuntary_switches),
        (EVENTS, events),
    ];
    let counted = counted.map(|(name, count)| (name.to_owned(), count as f64));
    Ok(counted.into())
}

fn trace(route: &mut Route, context: &Context) -> Result<BTreeMap<String, f64>, LabError> {
    route.begin(TRACED_EVENTS, &with_pauses(TRACE_PAUSE_NS))?;
    let strace = Strace::attach(context.folder(), route.channel.process().id())?;
    let (before, _) = route.consumers[0].received()?;
    route.await_events(TRACED_EVENTS)?;
    let calls = strace.finish()?;
    let lasting = Sending::paced(TRACED_EVENTS, PERIOD_NS).lasting();
    route.supplier.finish(lasting)?;
    let named = calls.iter();
    let named = named.map(|(name, count)| (format!("system_call_{name}"), *count));
    let traced = (TRACED_EVENTS + 1).saturating_sub(before);
    let others = [(SYSTEM_CALLS, calls.values().sum()), (TRACED, traced)];
    let others = others.map(|(name, count)| (name.to_owned(), count));
    let all = named.chain(others);
    Ok(all.map(|(name, count)| (name, count as f64)).collect())
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
        Declaration::count("heap-calls", Metric::of(P50).in_unit("per_event"), 0.001).of(
            "consumers=1, counted=heap_calls",
            "heap calls an event in the channel's process: at most one in 1,000 events of every round",
        ),
    ],
    ..Statements::NONE
};

const CONSUMERS: &str = "consumers";
/// The value of the label `part`.
const COUNT: &str = "count";
/// The numbers of events over which counts were taken, and over which system calls were traced.
const EVENTS: &str = "events";
const TRACED: &str = "traced_events";
const SYSTEM_CALLS: &str = "system_calls";
const PERIOD_NS: u64 = 500_000;
/// A hundred times what it takes to ask for the counts.
const PAUSE_NS: u64 = 50_000_000;
/// Longer than it takes to attach and detach strace.
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
