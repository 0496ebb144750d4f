//! `os/ready-queue`: the switch from one task to another against the number of ready tasks and the resolution of the clock (P3
//! section 4.2, Tables 4 and 5).
//!
//! Each round has a probe of its own.

use std::time::Duration;

use crate::experiments::prelude::*;
use crate::processes::awake::Awake;
use crate::processes::probe::ProbeInTurn;
use crate::systems::essential;
use probe::{CLOCK, INTERFERENCE, PERIOD_NS, Question, TASK_1, TASK_1_WORK_NS, TASK_2, WARM_UP};

pub mod probe;
mod says;

/// The experiment.
pub const STUDY: Study<TaskSets> = Study {
    name: "os/ready-queue",
    title: "The switch from one task to a more urgent one while others are ready",
    reproduces: "P3 Tables 4 and 5, Figures 14 to 16, section 5.3 (context switch against ready tasks and clock resolution)",
    amounts: Amounts {
        glance: 20,
        emulated: 30,
        quick: [7, 60],
        full: [20, 500],
        samples: "samples_per_round",
    },
    factors: &[
        Factor::numbers("ready_tasks", &[2, 5, 10, 15, 20]),
        Factor::numbers("resolution_us", &[500, 1_000]),
    ],
    parameters: &[
        ("warm_up", Number(WARM_UP as i64)),
        ("period_us", Number((PERIOD_NS / 1_000) as i64)),
        ("task_1_work_us", Number((TASK_1_WORK_NS / 1_000) as i64)),
        ("interference_work_us", Number(0)),
        ("priority_clock", Number(CLOCK as i64)),
        ("priority_task_1", Number(TASK_1 as i64)),
        ("priority_task_2", Number(TASK_2 as i64)),
        ("priority_interference", Number(INTERFERENCE as i64)),
        ("clock", Text(THE_CLOCK)),
        ("cpu_kept_awake", Flag(true)),
    ],
    columns: &["resolution_us"],
    obstacle: |context| (!context.launcher.is_real_time()).then_some(NEEDS_FIFO),
    plots,
    says: says::SAYS,
    notes: |_| vec![STALLS.to_owned()],
    services: &[ServiceRow::new("scheduler", "ready_queue_switch")
        .configured_by(&["ready_tasks", "resolution_us"])],
    emulated: Some(Emulated::unloaded(2.5)),
    kernels: Some(|gathered| essential(gathered, "Switch with tasks ready", &labels([]))),
    ..Study::with(|context, _| {
        Ok(TaskSets {
            probe: ProbeInTurn::new(&context.launcher, "os/ready-queue"),
            _awake: Awake::keep(context.launcher.placement.cpu, AWAKE_AT_MOST),
        })
    })
};

/// The tasks of a round, in a probe.
#[derive(Debug)]
pub struct TaskSets {
    probe: ProbeInTurn<Question>,
    /// One for all: where others want the CPU too, it takes long to end.
    _awake: Awake,
}

impl Subject for TaskSets {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let question = Question {
            tasks: cell.number("ready_tasks") as u32,
            resolution_us: cell.number("resolution_us") as u64,
            periods: turn.samples as u32,
        };
        let within = Duration::from_nanos(PERIOD_NS * u64::from(question.periods + WARM_UP));
        let probe = self.probe.of(turn.round)?;
        let answer = probe.ask(&question, within)?;
        let dropped = answer.numbers.get("dropped").copied().unwrap_or(0.0);
        let taken = dropped + answer.samples.first().map_or(0, Vec::len) as f64;
        let percent = 100.0 * dropped / taken.max(1.0);
        let of_dropped = labels([("part", "dropped".into())]);
        Ok(Sampled {
            counts: vec![(of_dropped, percent, ("%", taken as u64))],
            ..Sampled::of(answer)
        })
    }
}

fn plots() -> Vec<Plot> {
    let choose = words(&["resolution_us"]);
    vec![
        Plot::line_chart("ready-queue", "A context switch against the number of tasks")
            .caption(
                "From the end of task 1 to the beginning of task 2, as P3 Figures 14 to 16 show it. All tasks but the second \
                 are made ready at the same moment.",
            )
            .choose(choose.clone())
            .x("ready_tasks")
            .x_title("tasks")
            .values([
                StatisticName::Min,
                StatisticName::P50,
                StatisticName::Mean,
                StatisticName::Max,
            ])
            .log_y(),
        Plot::percentiles("ready-queue-percentiles", "The tail of a context switch, by the number of tasks")
            .caption(
                "Where the lines lie upon each other, the length of the ready queue does not matter.",
            )
            .choose(choose)
            .lines(["ready_tasks"])
            .log_y(),
    ]
}

const THE_CLOCK: &str = "the most urgent thread on the same CPU sleeps until each tick (clock_nanosleep, absolute) and at every \
                         whole period makes task 1 and all interference tasks ready at once (futex)";
/// Far longer than a full run takes.
const AWAKE_AT_MOST: Duration = Duration::from_secs(1_000);
const NEEDS_FIFO: &str = "Nothing was measured: without SCHED_FIFO there are no priorities, and no tasks that stay in the ready \
                          queue because a more urgent one runs. `rtorb check` says how to get it.";
const STALLS: &str = "P3 speaks of minimum, mean and maximum. A round's maximum is one switch, and where something else took the CPU in it \
                      it makes the mean too: what these two say is worth what their rounds' quotients are apart. The median is \
                      beside them for that.";
