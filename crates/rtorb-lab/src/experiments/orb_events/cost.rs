//! What an event through the event channel takes on one CPU, and how much of that supplier, channel and consumers execute: a model
//! of a system composes the way of an event of these.
//!
//! All have one priority, and a process each.

use std::time::Duration;

use indexmap::IndexMap;
use rtorb_os::clock::{monotonic_ns, sleep_until};

use super::fan_out::{Receipt, receipts_ns};
use super::route::Route;
use super::served;
use crate::contestants::Transport;
use crate::contestants::event_channel::Sending;
use crate::contestants::event_channel::rtec::STAMP_BYTES;
use crate::contestants::square_wave::system::Role;
use crate::contestants::whitebox::threads::ThreadSums;
use crate::experiments::prelude::*;
use crate::processes::Process;
use crate::processes::awake::Awake;

pub(super) const STUDY: Study<Routes> = Study {
    name: "cost",
    title: "What an event through the channel takes on one CPU, and what supplier, channel and consumers execute of it",
    amounts: Amounts {
        glance: 20,
        emulated: 50,
        quick: [3, 100],
        full: [25, 400],
        samples: "events_per_round",
    },
    factors: &[
        Factor::texts("transport", &["tcp", "unix"]),
        Factor::numbers(CONSUMERS, &[1, 4]),
        Factor::numbers("payload_bytes", &[STAMP_BYTES as i64, 1_024]),
    ],
    fixed: "orb=rtorb",
    parameters: &[
        ("events_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("priority", Number(Role::High.priority() as i64)),
    ],
    period_ns: PERIOD_NS,
    tables,
    plots,
    says: SAYS,
    notes: |_| vec![ONE_WAY.to_owned()],
    services: &[
        row("event", &[("what", "event")]),
        row("supplier_execution", &[("what", "supplier_execution")]),
        row("channel_execution", &[("what", "channel_execution")]),
        row("consumer_execution", &[("what", "consumer_execution")]),
    ],
    ..Study::with(Routes::start)
};

const fn row(service: &'static str, of: &'static [(&'static str, &'static str)]) -> ServiceRow {
    let row = ServiceRow::new("event_channel", service).of(of);
    row.configured_by(&["transport", "consumers", "payload_bytes"])
}

/// The way of an event for each transport and number of consumers.
pub(super) struct Routes {
    all: IndexMap<Labels, Route>,
    /// The kernel did not tell what is executed.
    is_untold: bool,
}

impl Routes {
    fn start(context: &Context, cells: &[Cell<'_>]) -> Result<Self, LabError> {
        let served = served(context, &[Role::High]);
        let mut all = IndexMap::new();
        for cell in cells {
            let key = cell.levels(&ROUTE);
            if !all.contains_key(&key) {
                let consumers = cell.number(CONSUMERS);
                let name = format!("cost-{consumers}");
                let of = (Transport::of(cell), name.as_str());
                let room = [consumers, EVENTS_REMEMBERED];
                let mut route = Route::start(context, of, (&served, Role::High), room)?;
                execute(&mut route, context, WARM_UP_EVENTS, STAMP_BYTES)?;
                all.insert(key, route);
            }
        }
        Ok(Self {
            all,
            is_untold: false,
        })
    }
}

impl Subject for Routes {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let events = turn.samples as u64;
        let route = self.all.get_mut(&cell.levels(&ROUTE));
        let route = route.expect("each cell has a route");
        let executed = execute(route, turn.context, events, cell.number("payload_bytes"))?;
        self.is_untold |= executed.is_none();
        // The first one opened connections, and what was executed for it was not counted.
        let latencies = route.consumers[0].latencies(events + 1)?;
        let times_ns = receipts_ns(&latencies.consumers_ns, events + 1, Receipt::Last);
        let part = |what: &str, times_ns| (labels([("what", what.into())]), times_ns);
        let each = EXECUTIONS.into_iter().zip(executed.into_iter().flatten());
        let each = each.map(|(what, sum_ns)| part(what, vec![sum_ns / events.max(1)]));
        let event = part(EVENT, times_ns.into_iter().skip(1).collect());
        Ok(Sampled {
            parts: std::iter::once(event).chain(each).collect(),
            wrong: latencies.wrong(),
            scheduling: route.scheduling(),
            ..Sampled::default()
        })
    }

    fn notes(&self) -> Vec<String> {
        self.is_untold
            .then(|| UNTOLD.to_owned())
            .into_iter()
            .collect()
    }
}

/// Sends events, and returns the processor time that all but the first took in each of [`EXECUTIONS`], in nanoseconds; `None` if the
/// kernel does not account it. No process is asked anything meanwhile, because an answer takes processor time.
fn execute(
    route: &mut Route,
    context: &Context,
    events: u64,
    payload_bytes: usize,
) -> Result<Option<[u64; 3]>, LabError> {
    let lasting_ns = 2 * PAUSE_NS + events * PERIOD_NS;
    let awake_at_most = Duration::from_nanos(lasting_ns) + TIMEOUT;
    let awake = Awake::keep(context.launcher.placement.cpu, awake_at_most);
    route.begin(
        events,
        &Sending {
            pause_ns: PAUSE_NS,
            payload_bytes,
            ..Sending::paced(0, PERIOD_NS)
        },
    )?;
    let begun_ns = monotonic_ns();
    let before = sums(route);
    // In the middle of the pause after the last event.
    sleep_until(begun_ns + events * PERIOD_NS + PAUSE_NS + PAUSE_NS / 2);
    let after = sums(route);
    route.supplier.finish(TIMEOUT)?;
    route.await_events(events)?;
    drop(awake);
    let executed = before.zip(after);
    Ok(executed.map(|(before, after)| {
        std::array::from_fn(|place| after[place].since(before[place]).cpu_ns)
    }))
}

fn sums(route: &Route) -> Option<[ThreadSums; EXECUTIONS.len()]> {
    let of = |process: &Process| ThreadSums::of(process.id());
    Some([
        of(route.supplier.process())?,
        of(route.channel.process())?,
        of(route.consumers[0].process())?,
    ])
}

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "an event over {transport} to {consumers} consumers",
        of: "what=event, payload_bytes=16",
        metric: US,
        beside: Words::with("99 of 100 at most {0}", &[P99_US]),
    }],
    ..Statements::NONE
};

fn tables() -> Vec<TableView> {
    vec![TableView::new("event-cost", "What an event takes, and what is executed of it")
        .caption(
            "From sending until the last consumer has it; below, the mean processor time of an event in each kind of process.",
        )
        .rows(["transport", "consumers", "payload_bytes"])
        .columns(["what"])
        .values([CellValue::Median, CellValue::P99])]
}

fn plots() -> Vec<Plot> {
    vec![
        Plot::line_chart("event-cost", "What an event takes against the number of its consumers")
            .caption(
                "An event: until the last consumer has it. The others: processor time in each kind of process.",
            )
            .choose(["transport", "payload_bytes"])
            .lines(["what"])
            .x("consumers")
            .values([StatisticName::P50]),
        Plot::percentiles("event-cost-percentiles", "The tail of an event")
            .caption("How much longer an event takes than usual, and how rarely.")
            .of(labels([("what", EVENT.into())]))
            .choose(["transport", "payload_bytes"])
            .lines(["consumers"])
            .log_y(),
    ]
}

const CONSUMERS: &str = "consumers";
/// The factors that a route depends on.
const ROUTE: [&str; 2] = ["transport", CONSUMERS];
/// The value of the label `what` of an event, and those of what is executed, in the order of [`sums`].
const EVENT: &str = "event";
const EXECUTIONS: [&str; 3] = [
    "supplier_execution",
    "channel_execution",
    "consumer_execution",
];
const PERIOD_NS: u64 = 1_000_000;
/// For the laboratory to read the kernel's sums after the first event and after the last one.
const PAUSE_NS: u64 = 50_000_000;
const WARM_UP_EVENTS: u64 = 5;
const EVENTS_REMEMBERED: usize = 512;
const TIMEOUT: Duration = Duration::from_secs(10);
const ONE_WAY: &str = "All processes have the same priority on one CPU, so none preempts another: the channel gets an event when the supplier \
                       sleeps, and the consumers get it when the channel sleeps. Processor times are differences of the kernel's sums \
                       for each process (schedstat) over a round; they include interrupts.";
const UNTOLD: &str = "This kernel does not account the processor time of threads (CONFIG_SCHED_INFO), so the processor times of supplier, \
                      channel and consumers are missing.";

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
}
