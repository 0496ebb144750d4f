//! `os/interval-jitter`: how far the intervals of periodic tasks deviate from their length, by number of timers, pattern of
//! intervals and priority (P3 section 4.2, Table 3, Figures 6 to 13).
//!
//! All tasks run on one CPU, each a thread with one timer and a priority of its own. The timers begin together, on a multiple of
//! the clock resolution, and every interval is a multiple of it: so they expire together, as those of a kernel that looks at
//! its timers once a tick. The jitter of an interval is |actual - nominal| length, measured by the task when it wakes.

use std::time::Duration;

use rtorb_results::StatisticName::{Max, Mean, P50, P99};

use crate::experiments::prelude::*;
use crate::processes::computation::Computation;
use crate::processes::probe::Probe;
use crate::systems::essential;
use plan::{Configuration, Rank};
use probe::{HIGHEST_PRIORITY, Question, WARM_UP};

mod plan;
pub mod probe;
mod says;

/// The experiment.
pub const STUDY: Study<Tasks> = Study {
    name: "os/interval-jitter",
    title: "How far the intervals of periodic tasks deviate: by number of timers, pattern and priority",
    reproduces: "P3 Table 3, Figures 6 to 13",
    // In a full run, 10,000 samples of each observed task.
    amounts: Amounts {
        glance: 20,
        emulated: 40,
        quick: [3, 45],
        full: [21, 500],
        samples: "releases_per_round",
    },
    factors: &[
        Factor::numbers("resolution_us", &[500, 1_000]),
        Factor::numbers("timers", &[1, 2, 5, 10, 15, 20]),
        Factor::texts(
            "pattern",
            &[
                "harmonic",
                "non_harmonic",
                "alone_1",
                "alone_2",
                "alone_4",
                "alone_8",
                "alone_16",
                "alone_32",
            ],
        ),
    ],
    parameters: &[
        ("alone_us_per_release_max", Number(ALONE_NS as i64 / 1_000)),
        ("intervals_harmonic", Text("2, 4, 8, 16 resolutions")),
        ("intervals_non_harmonic", Text("2, 5, 7, 9 resolutions")),
        ("interval_of_observed", Text(INTERVAL_OF_OBSERVED)),
        (
            "timers_begin",
            Text("together, on a multiple of the resolution"),
        ),
        ("work_us", Number(WORK.as_micros() as i64)),
        ("warm_up_intervals", Number(WARM_UP as i64)),
        ("priority_highest", Number(HIGHEST_PRIORITY as i64)),
        ("cpu_kept_awake", Flag(true)),
    ],
    columns: &["priority"],
    leaves_out,
    plots,
    says: says::SAYS,
    notes: |context| {
        let notes = NOTES.map(str::to_owned).into_iter();
        notes.chain(context.without_fifo(NOT_REAL_TIME)).collect()
    },
    services: &[
        row("interval_jitter", &[("what", "jitter")]),
        row("release_lateness", &[("what", "lateness")]),
        row("interval_jitter_alone", &[("what", "jitter_alone")]),
        row("release_lateness_alone", &[("what", "lateness_alone")]),
    ],
    emulated: Some(Emulated::unloaded(2.5)),
    kernels: Some(|gathered| {
        // What others suffer is interference, and not the kernel's.
        let of = labels([("what", "jitter".into()), ("priority", "highest".into())]);
        essential(gathered, "Jitter of the most urgent task", &of)
    }),
    ..Study::with(|context, _| {
        let mut probe = Probe::start(&context.launcher, "interval-jitter")?;
        let work = probe.calibrate(WORK)?;
        Ok(Tasks { probe, work })
    })
};

const fn row(service: &'static str, of: &'static [(&'static str, &'static str)]) -> ServiceRow {
    let row = ServiceRow::new("timer", service).of(of);
    row.configured_by(&[
        "timers",
        "pattern",
        "priority",
        "resolution_us",
        "interval_us",
    ])
}

/// The tasks, in a probe.
#[derive(Debug)]
pub struct Tasks {
    probe: Probe<Question>,
    work: Computation,
}

impl Subject for Tasks {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let configuration = Configuration::of(cell);
        let placement = &turn.context.launcher.placement;
        let question = Question {
            tasks: configuration.tasks(),
            work: self.work,
            cpu: placement.cpu,
            real_time: placement.fifo.is_some(),
            resolution_ns: configuration.resolution_us * 1_000,
            duration_ns: duration_ns(configuration, turn.samples),
        };
        let within = Duration::from_nanos(question.duration_ns);
        let answer = self.probe.ask(&question, within)?;
        let ranks = configuration.ranks().iter();
        let parts = ranks
            .flat_map(|rank| ["jitter", "lateness"].map(|what| configuration.labels(*rank, what)));
        Ok(Sampled {
            parts: parts.zip(answer.samples).collect(),
            scheduling: answer.scheduling,
            ..Sampled::default()
        }
        // All tasks are made alike; the observed ones stand for them.
        .of_threads(&Rank::ALL.map(Rank::label)))
    }
}

/// How long tasks run in a turn: of long intervals what there is time for.
fn duration_ns(configuration: Configuration, releases: usize) -> u64 {
    let longest_ns = if configuration.is_alone() {
        ALONE_NS
    } else {
        u64::MAX
    };
    releases as u64 * configuration.shortest_interval_ns().min(longest_ns)
}

fn leaves_out(cell: &Cell<'_>, effort: Effort) -> bool {
    if effort.is_full() {
        return cell.number("timers") > 1 && Configuration::of(cell).is_alone();
    }
    let (resolutions_us, timers, alone): (&[usize], &[usize], &[&str]) = match effort {
        Effort::Emulated { .. } => (&[500], &[1, 5, 10], &["alone_1", "alone_4"]),
        Effort::Glance => (&[500], &[1, 2, 5], &["alone_1", "alone_4"]),
        Effort::Quick | Effort::Full => (
            &[500, 1_000],
            &[1, 2, 5, 10, 20],
            &["alone_1", "alone_4", "alone_16"],
        ),
    };
    let is_alone = Configuration::of(cell).is_alone();
    let is_wanted = if is_alone {
        cell.number("timers") == 1 && alone.iter().any(|level| cell.is("pattern", level))
    } else {
        timers.contains(&cell.number("timers"))
    };
    !is_wanted || !resolutions_us.contains(&cell.number("resolution_us"))
}

fn plots() -> Vec<Plot> {
    let against_timers = |id, title, values: &[StatisticName]| {
        Plot::line_chart(id, title)
            .caption(
                "Jitter: how far the distance of two wake-ups deviates from the interval. All tasks on one CPU, each with a priority \
                 of its own; one task alone is the highest, of two there is no middle.",
            )
            .of(labels([("what", "jitter".into())]))
            .choose(["pattern", "resolution_us"])
            .lines(["priority"])
            .x("timers")
            .x_title("number of timers")
            .values(values.to_vec())
            .log_y()
    };
    vec![
        against_timers(
            "jitter-against-timers",
            "Median interval jitter against the number of timers, both patterns",
            &[P50],
        )
        .choose(["resolution_us"])
        .lines(["priority", "pattern"]),
        against_timers(
            "worst-jitter-against-timers",
            "Mean, 99th percentile and maximum of the jitter against the number of timers",
            &[Mean, P99, Max],
        ),
        Plot::percentiles("jitter-percentiles", "The tail of the jitter, by priority")
            .caption("The whole distribution for each of the three tasks.")
            .of(labels([("what", "jitter".into())]))
            .choose(["pattern", "resolution_us", "timers"])
            .lines(["priority"])
            .log_y(),
        against_timers(
            "lateness-against-timers",
            "How late a task wakes, against the number of timers",
            &[P50, Mean, P99],
        )
        .caption(
            "Lateness: from the release to the wake-up. A task that is always equally late has no jitter.",
        )
        .of(labels([("what", "lateness".into()), ("part", "lateness".into())])),
        Plot::line_chart(
            "jitter-against-interval",
            "Interval jitter against the length of the interval, one task alone",
        )
        .caption(
            "P3 Figures 6 and 7 show the same for QNX and RTLinux; the text has no numbers for them.",
        )
        .of(labels([("what", "jitter_alone".into())]))
        .lines(["resolution_us"])
        .x("interval_us")
        .x_title("interval (us)")
        .values([P50, Mean, P99, Max])
        .log_x()
        .log_y(),
    ]
}

/// What a small control task computes at each release.
const WORK: Duration = Duration::from_micros(20);
/// For each release of a task that runs alone: as long as the shortest interval of several at the coarser resolution.
const ALONE_NS: u64 = 2_000_000;
const INTERVAL_OF_OBSERVED: &str = "2 resolutions, so that the observed tasks differ in priority alone; of two tasks, the more \
                                    urgent one has 4 (harmonic) or 5 (non-harmonic)";

const NOTES: [&str; 3] = [
    "Linux with high-resolution timers has no clock tick that releases tasks: each timer interrupts when it is due. The resolution \
     is therefore that of the intervals and of the moment at which all begin, so that timers expire together as they would at a \
     tick; no tick was added that the kernel does not have.",
    "An idle-class thread kept the CPU from sleeping: otherwise what is seen is how long an idle CPU takes to wake.",
    "P3 speaks of averages. Where something else takes the CPU for many intervals, such as the host of a virtual machine, one \
     such stall is a long interval and then a short one for each release that was missed, since none is left out. These make most \
     of a mean, and of the 99th percentile when samples are few: the median is beside them for that.",
];
const NOT_REAL_TIME: &str = "The tasks did not have SCHED_FIFO: `priority` says what was asked for, and nobody had it. The kernel may \
                             add up to 50 us to each sleep (timer slack).";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use plan::Pattern;
    use rtorb_results::LabelValue;

    const ALONE: [u64; 6] = [1, 2, 4, 8, 16, 32];

    #[test]
    fn the_paper_has_its_factors_and_samples() {
        let full = STUDY.parameters(Effort::Full);
        assert_eq!(full["timers"], "1 2 5 10 15 20".into());
        assert_eq!(full["resolution_us"], "500 1000".into());
        let quick = STUDY.parameters(Effort::Quick);
        assert_eq!(quick["timers"], "1 2 5 10 20".into());
        let patterns = "harmonic non_harmonic alone_1 alone_4 alone_16";
        assert_eq!(quick["pattern"], patterns.into());
        let [rounds, releases] = STUDY.amounts.full;
        assert!(rounds * (releases - 1 - WARM_UP) >= 10_000);
    }

    #[test]
    fn nobody_waits_long_for_the_next_step() {
        let [_, releases] = STUDY.amounts.full;
        let patterns = Pattern::TOGETHER.into_iter();
        for pattern in patterns.chain(ALONE.map(Pattern::Alone)) {
            let configuration = Configuration {
                pattern,
                resolution_us: 1_000,
                timers: 1,
            };
            assert!(duration_ns(configuration, releases) <= 1_000_000_000);
        }
    }

    #[test]
    fn a_quick_run_takes_less_than_its_share() {
        let of = |effort, [rounds, releases]: [usize; 2]| {
            let parameters = STUDY.parameters(effort);
            let count = |name: &str| parameters[name].to_string().split(' ').count();
            let mut sum_ns = 0;
            for resolution in parameters["resolution_us"].to_string().split(' ') {
                let ns = |pattern| {
                    let configuration = Configuration {
                        pattern,
                        resolution_us: resolution.parse().unwrap(),
                        timers: 1,
                    };
                    duration_ns(configuration, releases)
                };
                let measured = parameters["pattern"].to_string();
                let is_measured = |multiple: &u64| {
                    let mut patterns = measured.split(' ');
                    patterns.any(|pattern| pattern == format!("alone_{multiple}"))
                };
                let alone = ALONE.into_iter().filter(is_measured);
                sum_ns += alone
                    .map(|multiple| ns(Pattern::Alone(multiple)))
                    .sum::<u64>();
                sum_ns += 2 * count("timers") as u64 * ns(Pattern::Harmonic);
            }
            rounds as u64 * sum_ns
        };
        assert!(of(Effort::Quick, STUDY.amounts.quick) < 13_000_000_000);
        let emulated = [4, STUDY.amounts.emulated];
        assert!(
            of(
                Effort::Emulated {
                    seeds: 4,
                    full: false
                },
                emulated
            ) < 1_500_000_000
        );
    }

    #[test]
    fn both_patterns_are_plotted_against_the_number_of_timers() {
        let plot = &plots()[0];
        assert_eq!(plot.x, "timers");
        assert!(plot.lines.contains(&"pattern".to_owned()));
        assert_eq!(plot.of.get("what"), Some(&LabelValue::from("jitter")));
    }
}
