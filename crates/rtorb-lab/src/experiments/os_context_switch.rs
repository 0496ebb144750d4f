//! `os/context-switch`: how long the operating system takes to stop one thread and go on with another, in the three ways of P0
//! and P2, on one CPU.
//!
//! A run is some rounds in a process of their own. Its figure is the median of its rounds' medians; how far the figures of the
//! runs are apart says what any of them is worth.

use std::time::Duration;

use rtorb_results::PublishedRow;

use crate::experiments::os_services::probe::{BUDGET_NS, NOT_IN_TURN, Question, Service, WARM_UP};
use crate::experiments::prelude::*;
use crate::processes::probe::ProbeInTurn;
use computed::SWITCH;
use probe::{Test, YIELDS};
use published::{P0, P2};

mod computed;
mod kernels;
pub mod probe;
mod published;

/// The experiment.
pub const STUDY: Study<TwoThreads> = Study {
    name: "os/context-switch",
    title: "How long the operating system takes to stop one thread and go on with another, on one CPU",
    reproduces: "P0 Table 1, P2 Table 1 (context switch overhead)",
    amounts: Amounts {
        glance: 50,
        emulated: 100,
        quick: [RUNS * rounds_of_run(Effort::Quick), 400],
        full: [RUNS * rounds_of_run(Effort::Full), 1_000],
        samples: "samples_per_round",
    },
    factors: &[Factor::texts("test", Test::VARIANTS)],
    parameters: &[
        ("warm_up", Number(WARM_UP as i64)),
        ("yields_per_sample", Number(2 * YIELDS as i64)),
        ("priority_low", Number(LOW as i64)),
        ("priority_high", Number(LOW as i64 + 1)),
        ("process", Text("each run has one of its own")),
        (
            "suspend_resume",
            Text("futex(2), since Linux suspends no single thread"),
        ),
    ],
    columns: &["what"],
    plots,
    tables: || vec![switches(), parts()],
    says: computed::SAYS,
    computed: computed::compute,
    notes,
    services: &[ServiceRow::new("scheduler", "context_switch")
        .of(&[("what", "switch")])
        .configured_by(&["test"])],
    emulated: Some(Emulated::unloaded(1.0)),
    kernels: Some(kernels::view),
    ..Study::with(|context, _| {
        Ok(TwoThreads {
            probe: ProbeInTurn::new(&context.launcher, "os/context-switch"),
            dropped: [0; 2],
        })
    })
};

/// The threads of a test, in a probe for each run.
#[derive(Debug)]
pub struct TwoThreads {
    probe: ProbeInTurn<Question>,
    /// Samples that are not counted, and all samples.
    dropped: [usize; 2],
}

impl Subject for TwoThreads {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let context = turn.context;
        let mut tests = Test::ALL.into_iter();
        let test = tests.find(|test| cell.is("test", test.label()));
        let question = Question {
            service: Service::Switch(test.expect("every level is a test")),
            samples: turn.samples as u32,
            low_priority: context.launcher.placement.fifo.map(|_| LOW),
            pause_ns_max: 0,
            seed: turn.seed(),
            other: None,
        };
        let run = turn.round / rounds_of_run(context.effort);
        let answer = self.probe.of(run)?.ask(&question, WITHIN)?;
        let dropped = answer.numbers.get(NOT_IN_TURN).copied().unwrap_or(0.0) as usize;
        let taken = dropped + answer.samples.first().map_or(0, Vec::len);
        self.dropped = [self.dropped[0] + dropped, self.dropped[1] + taken];
        std::thread::sleep(PAUSE);
        Ok(Sampled::kept(answer))
    }

    fn notes(&self) -> Vec<String> {
        let [dropped, taken] = self.dropped;
        let note = (dropped > 0).then(|| {
            format!(
                "In {dropped} of {taken} samples the other thread did not run when it should have; they are not counted."
            )
        });
        note.into_iter().collect()
    }

    fn parameters(effort: Effort) -> Parameters {
        let runs = match effort {
            Effort::Glance => 1,
            Effort::Emulated { seeds, .. } => usize::from(seeds),
            Effort::Quick | Effort::Full => RUNS,
        };
        labels([("runs", runs.into())])
    }
}

/// The table of P0 and P2: a row that has one name for each test.
fn switches() -> TableView {
    let tables = [&P0, &P2].into_iter();
    TableView::new("context-switch", "Context switch latency, jitter in parentheses")
        .caption(
            "As the papers' tables; their rows are in microseconds of their machines. Suspend-resume is by futexes, which did not exist \
             when the papers were written.",
        )
        .of(labels([("what", SWITCH.into())]))
        .rows(["what"])
        .columns(["test"])
        .values([CellValue::MeanAndDeviation])
        .published(tables.flat_map(published::Table::rows).collect())
}

fn parts() -> TableView {
    TableView::new("context-switch-medians", "Medians of the parts")
        .rows(["test"])
        .columns(["what"])
        .values([CellValue::Median])
}

fn notes(context: &Context) -> Vec<String> {
    let left = [LEFT_BY_FUTEX, LEFT_BY_MUTEX].map(str::to_owned);
    left.into_iter()
        .chain(context.without_fifo(NO_FIFO))
        .collect()
}

/// The same, each number divided by the yield of its row. A row without a yield is left out.
#[must_use]
pub(super) fn published_in_yields() -> Vec<PublishedRow> {
    let tables = [&P0, &P2].into_iter();
    tables.flat_map(published::Table::in_yields).collect()
}

fn plots() -> Vec<Plot> {
    let of_switch = labels([("what", SWITCH.into())]);
    vec![
        Plot::bars("context-switch", "A context switch beside the published ones")
            .caption(
                "Ours are medians of the rounds' medians, the published ones means. The machines are not ours: what can be \
                 compared is the order of the tests.",
            )
            .of(of_switch.clone())
            .x("test")
            .values([StatisticName::P50])
            .log_y()
            .published([&P0, &P2].into_iter().flat_map(published::Table::points).collect()),
        Plot::histogram(
            "context-switch-parts",
            "The hand-over, the same calls without a switch, and their difference",
        )
        .caption("A yield has nothing subtracted: its switch is the hand-over.")
        .choose(["test"])
        .lines(["what"]),
        Plot::percentiles("context-switch-percentiles", "The tail of a context switch")
            .caption("Of yields, a sample is the mean of a batch.")
            .of(of_switch)
            .lines(["test"])
            .log_y(),
    ]
}

/// In an emulated machine, a seed is a run of one round: how far they are apart is what a seed changes.
const fn rounds_of_run(effort: Effort) -> usize {
    match effort {
        Effort::Glance | Effort::Emulated { .. } => 1,
        Effort::Quick => 15,
        Effort::Full => 25,
    }
}

/// What the promise of stability speaks of.
const RUNS: usize = 5;
/// Less urgent than the probe's main thread, which only waits meanwhile.
const LOW: u8 = 40;
const WITHIN: Duration = Duration::from_nanos(BUDGET_NS);
/// Leaves the CPU to others between questions, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(2);
const LEFT_BY_FUTEX: &str = "Suspend-resume: the low-priority thread wakes the high-priority one, which sleeps again. What is subtracted is a \
                             futex(2) call that finds nobody to wake and one that finds no reason to sleep, and the rest is halved, as in \
                             P0 and P2. That the one call makes a thread ready and the other takes it off the ready queue is left in the \
                             switch.";
const LEFT_BY_MUTEX: &str = "Synchronized suspend-resume: what is subtracted is taking and giving back a free mutex, as in P0, which on Linux \
                             makes no system call. So the switch holds what the kernel does for a contended one: futex(2) to give it \
                             back and wake the waiting thread, the return from the call in which it slept, and with priority inheritance \
                             the hand-over of ownership and of the lent priority.";
const NO_FIFO: &str = "Without SCHED_FIFO a yield need not let the other thread run, and a thread that is woken need not run at once: batches \
                       of yields in which the threads did not take turns are dropped, and a hand-over may hold what the first \
                       thread did until it slept.";
