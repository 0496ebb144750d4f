//! `os/clock-overhead`: the processor time that one tick of a clock costs, at resolutions of 100 us to 100 ms (P3 section 4.2,
//! Figures 3 to 5).
//!
//! A program P of some 10 ms computes on one CPU while a real timer ticks there. What P takes longer than without ticks, over
//! the number of ticks, is what one costs: Eq. (1) to (6), solved in the module `equations`. Each round has executions of all
//! kinds, so that a drift of the machine's speed cancels.

use std::time::Duration;

use rtorb_host::description::kernel_tick_hz;
use rtorb_results::PublishedPoints;

use crate::experiments::prelude::*;
use crate::processes::computation::Computation;
use crate::processes::probe::{Answer, Probe};
use crate::suite::{Member, Suite};
use probe::{Executions, PAUSE, PROGRAM_PRIORITY, Question, TICK_PRIORITY};
use tick::Tick;

mod computed;
mod equations;
mod finest;
mod kernels;
mod overheads;
pub mod probe;
mod tick;

/// The experiment.
pub static SUITE: Suite = Suite {
    name: STUDY.name,
    title: STUDY.title,
    reproduces: STUDY.reproduces,
    studies: |effort| {
        const ALL: &[&dyn Member] = &[&STUDY, &finest::STUDY];
        // Only an emulated machine may be brought to where it makes no progress.
        if effort.seeds().is_some() {
            ALL
        } else {
            &ALL[..1]
        }
    },
    notes: |_| Vec::new(),
};

/// What a tick costs.
const STUDY: Study<TimedProgram> = Study {
    name: "os/clock-overhead",
    title: "The processor time that a clock tick costs, from a tick every 100 us to one every 100 ms",
    reproduces: "P3 Figures 3 to 5, Equations 1 to 6",
    amounts: Amounts {
        glance: 2,
        emulated: 1,
        quick: [9, 2],
        full: [2_500, 4],
        samples: "executions_signal_per_round",
    },
    factors: &[
        Factor::texts("tick", &["none", "signal", "thread"]),
        Factor::numbers(
            "resolution_us",
            &[
                FINEST_US,
                200,
                500,
                1_000,
                2_000,
                5_000,
                10_000,
                20_000,
                50_000,
                COARSEST_US,
            ],
        ),
    ],
    parameters: &[
        (
            "executions_thread_per_round",
            Text("as by signal; 1 in a full run"),
        ),
        (
            "executions_none_per_round",
            Text("6; 4 in a glance and in an emulated machine"),
        ),
        ("program_us", Number((PROGRAM_NS / 1_000) as i64)),
        ("program_ends_by", Text("steps")),
        ("pause_us", Number(PAUSE.as_micros() as i64)),
        ("tick_priority", Number(TICK_PRIORITY as i64)),
        ("program_priority", Number(PROGRAM_PRIORITY as i64)),
        ("cpu_kept_awake", Flag(false)),
    ],
    columns: &["tick"],
    leaves_out,
    plots,
    says: computed::SAYS,
    computed: computed::compute,
    notes,
    services: &[
        ServiceRow::new("clock", "tick")
            .of(&[("what", "overhead")])
            .configured_by(&["tick", "resolution_us"]),
        ServiceRow::new("clock", "tick_from_medians")
            .of(&[("what", "overhead_from_medians")])
            .configured_by(&["tick", "resolution_us"]),
    ],
    emulated: Some(Emulated::unloaded(1.0)),
    kernels: Some(kernels::view),
    ..Study::with(TimedProgram::start)
};

/// P, in a probe. A round is one question: between questions the CPU sleeps, and P takes longer after that.
#[derive(Debug)]
pub struct TimedProgram {
    probe: Probe<Question>,
    program: Computation,
    /// The kind of ticks and their distance in each cell.
    cells: Vec<CellTicks>,
    /// The number of the round that was measured, its executions, and their answer.
    measured: Option<(usize, Vec<Executions>, Answer)>,
}

impl TimedProgram {
    fn start(context: &Context, cells: &[Cell<'_>]) -> Result<Self, LabError> {
        let mut probe = Probe::start(&context.launcher, "clock-overhead")?;
        Ok(Self {
            program: probe.calibrate(Duration::from_nanos(PROGRAM_NS))?,
            probe,
            cells: cells.iter().map(ticks).collect(),
            measured: None,
        })
    }

    fn executions(&self, turn: &Turn<'_>) -> Vec<Executions> {
        let of = |tick| {
            let cells = self.cells.iter().copied();
            cells.filter_map(move |(of, resolution_ns)| match of {
                None => {
                    let count = executions_without(turn.context.effort);
                    Some(Executions::without_ticks(tick, count))
                }
                Some(of) => (of == tick).then(|| {
                    let count = executions_with(tick, turn);
                    Executions::of(tick, resolution_ns, count)
                }),
            })
        };
        Tick::ALL.into_iter().flat_map(of).collect()
    }

    /// Measures the round, unless that is done.
    fn round(&mut self, turn: &Turn<'_>) -> Result<(&[Executions], &mut Answer), LabError> {
        if self.measured.as_ref().is_none_or(|of| of.0 != turn.round) {
            let placement = &turn.context.launcher.placement;
            let executions = self.executions(turn);
            let question = Question {
                program: self.program,
                cpu: placement.cpu,
                real_time: placement.fifo.is_some(),
                executions: executions.clone(),
            };
            let answer = self.probe.ask(&question, WITHIN)?;
            self.measured = Some((turn.round, executions, answer));
        }
        let (_, executions, answer) = self.measured.as_mut().expect("it was just measured");
        Ok((executions, answer))
    }
}

impl Subject for TimedProgram {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let (executions, answer) = self.round(turn)?;
        let pairs = executions.iter().zip(answer.samples.chunks_exact(2));
        let of_cell = pairs.filter(|(executions, _)| executions.of_cell() == ticks(cell));
        let of_cell = Answer {
            samples: of_cell.flat_map(|(_, pair)| pair.to_vec()).collect(),
            scheduling: std::mem::take(&mut answer.scheduling),
            ..Answer::default()
        };
        Ok(Sampled::kept(of_cell).of_threads(&["program", "tick"]))
    }
}

/// The kind of ticks, of which there is none in executions without them, and their distance in nanoseconds.
type CellTicks = (Option<Tick>, u64);

fn ticks(cell: &Cell<'_>) -> CellTicks {
    let mut all = Tick::ALL.into_iter();
    let tick = all.find(|tick| cell.is("tick", tick.label()));
    (tick, 1_000 * cell.number("resolution_us") as u64)
}

/// The signal is P3's tick and has P3's 10,000 samples; for the thread a quarter must do, in half an hour in all.
fn executions_with(tick: Tick, turn: &Turn<'_>) -> usize {
    match (tick, turn.context.effort) {
        (Tick::Thread, Effort::Full) => 1,
        _ => turn.samples,
    }
}

/// Of each timer, which runs and does not tick.
fn executions_without(effort: Effort) -> usize {
    match effort {
        Effort::Quick | Effort::Full => 3,
        Effort::Glance | Effort::Emulated { .. } => 2,
    }
}

fn leaves_out(cell: &Cell<'_>, effort: Effort) -> bool {
    let measured: &[usize] = match effort {
        _ if cell.is("tick", "none") => &[COARSEST_US as usize],
        Effort::Full | Effort::Emulated { full: true, .. } => return false,
        Effort::Emulated { .. } => &[100, 1_000, 10_000],
        Effort::Glance => &[500, 10_000],
        Effort::Quick => &[100, 200, 500, 1_000, 2_000, 10_000, 100_000],
    };
    !measured.contains(&cell.number("resolution_us"))
}

fn plots() -> Vec<Plot> {
    let against_resolution = |id, title| {
        Plot::line_chart(id, title)
            .x("resolution_us")
            .x_title("from tick to tick (us)")
            .values([
                StatisticName::Min,
                StatisticName::P50,
                StatisticName::Mean,
                StatisticName::Max,
            ])
            .log_x()
            .log_y()
    };
    vec![
        against_resolution(
            "overhead-against-resolution",
            "What a tick costs, against the distance of ticks",
        )
        .caption(
            "Minimum, median, mean and maximum of Eq. (5) over all executions. What else delays the program is divided by the number \
             of ticks and counted as theirs: the fewer ticks, the more of it. The published levels are from the text, \
             which names no resolution but 0.1 ms.",
        )
        .of(labels([("what", "overhead".into())]))
        .choose(["tick"])
        .published(published_levels()),
        against_resolution("overhead-and-noise", "What of that is the tick")
            .caption(
                "Medians of the rounds. `overhead` is Eq. (5) over the shortest execution without ticks, as P3 has it; \
                 `overhead_of_no_tick` what it says of executions without any tick; `overhead_from_medians` Eq. (5) over their \
                 median, in which what else delays the program cancels.",
            )
            .choose(["tick"])
            .lines(["what"])
            .values([StatisticName::P50]),
        Plot {
            log_y: false,
            ..against_resolution(
                "execution-against-resolution",
                "How long the program takes, against the distance of ticks",
            )
            .caption("What was measured: e_m of Eq. (1). The point without ticks stands at 100 ms.")
            .of(labels([("what", "execution".into()), ("part", "execution".into())]))
            .lines(["tick"])
        },
    ]
}

/// P3's levels, as lines from the finest resolution to the coarsest.
fn published_levels() -> Vec<PublishedPoints> {
    let levels: [(&str, &[(i64, f64)]); 6] = [
        ("QNX, normal, lower end", &[(FINEST_US, 5.0)]),
        ("QNX, normal, upper end", &[(FINEST_US, 7.0)]),
        ("QNX, maximum", &[(FINEST_US, 30.0)]),
        ("Real-Time Linux", &[(FINEST_US, 20.0)]),
        ("Real-Time Linux, maximum", &[(FINEST_US, 60.0)]),
        ("OSEKWorks", &[(FINEST_US, 70.0), (200, 60.0)]),
    ];
    let level = |(name, begin): (&str, &[(i64, f64)])| {
        let end = begin.last().map(|(_, us)| (COARSEST_US, *us));
        let points = begin.iter().copied().chain(end);
        PublishedPoints {
            source: "P3 section 5.1".to_owned(),
            name: name.to_owned(),
            points: points.map(|(x, us)| (LabelValue::Number(x), us)).collect(),
            ..PublishedPoints::default()
        }
    };
    levels.into_iter().map(level).collect()
}

fn notes(context: &Context) -> Vec<String> {
    let hz = kernel_tick_hz(&context.host.kernel_release);
    let hz = hz.map_or_else(String::new, |hz| format!(" (CONFIG_HZ={hz})"));
    let kernel = format!(
        "The kernel's own tick{hz} comes in all executions, those without ticks of ours too: it is in e, and not in the overhead."
    );
    let [first, others @ ..] = NOTES.map(str::to_owned);
    let all = [first, kernel].into_iter().chain(others);
    all.chain(context.without_fifo(NOT_REAL_TIME)).collect()
}

const FINEST_US: i64 = 100;
/// P3's coarsest resolution, from which e_0 comes (Eq. 6): the timer runs, and its first tick is long after P.
const COARSEST_US: i64 = 100_000;
/// P3's program takes 10 ms. A twentieth more, so that the first tick of a clock of 10 ms surely falls into it.
const PROGRAM_NS: u64 = 10_500_000;
/// More than a round takes.
const WITHIN: Duration = Duration::from_secs(3);

const NOT_REAL_TIME: &str = "Program and tick did not have SCHED_FIFO: others ran in between, and the thread may tick late or not \
                             at all while the program runs. The numbers are those of the host, not of its timer.";
const NOTES: [&str; 4] = [
    "The tick is a real timer on the program's CPU. `signal`: a periodic POSIX timer whose signal the program's own thread \
     handles. `thread`: a thread of higher priority that wakes at an absolute time and sleeps again, which is an interrupt \
     and two context switches.",
    "Every execution begins in phase with its tick: the first comes one resolution after the beginning of the program. At \
     resolutions longer than the program none would come and Eq. (5) would divide by 0: there the first comes in its middle.",
    "e is the shortest execution without ticks of the same round (Eq. 6). An execution shorter than that has a negative \
     overhead, which counts as 0 in percentiles of all samples. Whatever else delays the program counts as overhead, as \
     in P3: `overhead_of_no_tick` is what Eq. (5) says of the executions without ticks themselves. \
     `overhead_from_medians` compares the median with and without ticks, so that it cancels; conclusions use it.",
    "Eq. (3) and (4) leave out ticks that come while ticks are served, beyond the first or at all: at a tick that takes a third \
     of its resolution Eq. (5) finds a tenth too much. `overhead_by_counted_ticks` divides by the ticks that were counted.",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn the_paper_has_its_ten_thousand_samples_and_its_range() {
        let [rounds, signal] = STUDY.amounts.full;
        assert!(rounds * signal >= 10_000);
        let parameters = STUDY.parameters(Effort::Full);
        let all = "100 200 500 1000 2000 5000 10000 20000 50000 100000";
        assert_eq!(parameters["resolution_us"], all.into());
        let glance = STUDY.parameters(Effort::Glance);
        assert_eq!(glance["resolution_us"], "500 10000 100000".into());
        assert_eq!(glance["tick"], "none signal thread".into());
    }

    #[test]
    fn published_levels_span_the_axis() {
        let plots = plots();
        let osek = plots[0].published.last().unwrap();
        assert_eq!(
            osek.points,
            [
                (100u64.into(), 70.0),
                (200u64.into(), 60.0),
                (100_000u64.into(), 60.0)
            ]
        );
    }
}
