//! `soak`: whether an ORB that is called at full load for hours grows, or becomes slower.
//!
//! Clients come and go: those of each part are new threads with new connections. Memory, descriptors and threads are read while all
//! clients of a part are connected and none calls. The time is divided into tenths, and the last one is compared with an early one.

use std::fs;
use std::time::Duration;

use rtorb_results::cells::Cells;
use rtorb_results::claim::Grounds;
use rtorb_results::{LostRound, all_real_time, labels_with};

use super::orb_footprint::memory::{Memory, NO_MEMORY, PRIVATE_DIRTY};
use crate::contestants::event_channel::system::priority_on;
use crate::contestants::rates::{self, FirstReleases, Group, Releases, Run, priority_of_pair};
use crate::experiment::{Experiment, Progress, Said, is_complete};
use crate::experiments::prelude::*;
use crate::processes::Process;

/// The experiment, of a length that the user chose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Soak {
    seconds: f64,
}

impl Soak {
    /// The name by which it is run.
    pub const NAME: &str = "soak";

    /// A soak of so many hours, from 0.005 to 168.
    ///
    /// # Errors
    /// The range, if this is not in it.
    pub fn of_hours(hours: f64) -> Result<Self, LabError> {
        if (0.005..=168.0).contains(&hours) {
            let seconds = hours * 3_600.0;
            return Ok(Self { seconds });
        }
        let what = format!("takes 0.005 to 168 hours, and not {hours}");
        Err(LabError::process(Self::NAME, what))
    }

    /// The parts of a tenth: as many as a claim needs, and none longer than a minute.
    fn parts_of_tenth(self) -> usize {
        ((self.seconds / TENTHS as f64 / PART_S_MAX).ceil() as usize).max(PARTS_MIN)
    }

    fn part(self) -> Duration {
        Duration::from_secs_f64(self.seconds / (TENTHS * self.parts_of_tenth()) as f64)
    }

    fn measure(
        self,
        context: &Context,
        soaked: &mut Soaked,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let parts = self.parts_of_tenth();
        progress.begin(TENTHS * parts);
        soaked.lacks_memory = Memory::of(std::process::id()).is_none();
        let mut pair = Pair::start(context)?;
        for part in 0..TENTHS * parts {
            if context.interrupted() {
                return Err(LabError::Interrupted);
            }
            let (tenth, round) = (part / parts + 1, part % parts);
            pair.run(part, self.part(), (tenth, round), soaked)?;
            progress.step(&format!("part {} of {}", part + 1, TENTHS * parts));
        }
        Ok(())
    }
}

impl Experiment for Soak {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn title(&self) -> &'static str {
        "Whether an ORB at full load for hours grows, or becomes slower"
    }

    fn reproduces(&self) -> &'static str {
        "nothing that was published"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        labels([
            ("rounds", self.parts_of_tenth().into()),
            ("seconds", (self.seconds.round() as usize).into()),
            ("clients", (1 + LOW_CLIENTS).into()),
            ("effort", effort.name().into()),
        ])
    }

    fn says(&self) -> Vec<Said<'_>> {
        vec![Said {
            says: &SAYS,
            planned: planned(),
        }]
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Results, LabError> {
        let mut soaked = Soaked::default();
        let done = self.measure(context, &mut soaked, progress);
        let complete = match is_complete(done) {
            // What was measured before tells more than the failure alone.
            Err(error) if soaked.cells.all().next().is_some() => {
                soaked.lost.push(LostRound {
                    round: 0,
                    what: Self::NAME.to_owned(),
                    why: error.to_string(),
                });
                false
            }
            done => done?,
        };
        Ok(soaked.results(complete, self.parts_of_tenth()))
    }
}

/// A server and its clients.
struct Pair {
    // In this order: the clients are ended before the server that they are connected to.
    clients: Process,
    server: Process,
    /// 0 if threads have no priorities.
    urgent_priority: u8,
}

impl Pair {
    fn start(context: &Context) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        let role = ["rate-server", "iiop://127.0.0.1:0", "default", "0"];
        let server = launcher.start("soak server", &role)?;
        let role = ["rate-clients", "default", server.text()];
        let clients = launcher.start("soak clients", &role)?;
        Ok(Self {
            clients,
            server,
            urgent_priority: priority_on(context, priority_of_pair(0)),
        })
    }

    /// One part: new clients connect, what there is is counted, and all call.
    fn run(
        &mut self,
        part: usize,
        duration: Duration,
        (tenth, round): (usize, usize),
        soaked: &mut Soaked,
    ) -> Result<(), LabError> {
        let run = Run {
            duration_ns: duration.as_nanos() as u64,
            round: part,
            first: FirstReleases::Spread,
            groups: self.groups(),
        };
        rates::prepare(&mut self.clients, &run)?;
        for (what, process) in [("server", &self.server), ("clients", &self.clients)] {
            for (counted, unit, count) in counts(process)? {
                let labels = labels_of(tenth, what, counted);
                soaked
                    .cells
                    .add_count(&labels, round, count as f64, (unit, 1));
            }
        }
        if part == 0 {
            soaked.scheduling.extend(self.server.scheduling());
            soaked
                .scheduling
                .extend(self.clients.scheduling_by_priority());
        }
        let ran = rates::go(&mut self.clients, duration)?;
        for (call, times) in CALLS.into_iter().zip(ran.groups) {
            let labels = labels([("tenth", tenth.into()), ("call", call.into())]);
            soaked
                .cells
                .add(&labels, round, &times.release_ns, times.wrong);
        }
        Ok(())
    }

    /// An urgent client that calls at 1 kHz, and others that call as often as they can.
    fn groups(&self) -> Vec<Group> {
        let urgent = Group {
            object: 0,
            priority: self.urgent_priority,
            clients: 1,
            period_ns: 1_000_000,
            calls: 1,
            releases: Releases::Each,
        };
        let others = Group {
            priority: 0,
            clients: LOW_CLIENTS,
            period_ns: 200_000,
            releases: Releases::Latest,
            ..urgent
        };
        vec![urgent, others]
    }
}

/// What a process has: each with its unit. Not every kernel tells the memory.
fn counts(
    process: &Process,
) -> Result<impl Iterator<Item = (&'static str, &'static str, u64)>, LabError> {
    let gone = || LabError::process(process.name(), "its files in /proc cannot be read");
    let entries = |folder: &str| -> Result<u64, LabError> {
        let path = format!("/proc/{}/{folder}", process.id());
        Ok(fs::read_dir(path).map_err(|_| gone())?.count() as u64)
    };
    let memory = Memory::of(process.id());
    let memory = memory.map(|memory| (PRIVATE_DIRTY, "bytes", memory.private_dirty));
    let others = [
        (DESCRIPTORS, DESCRIPTORS, entries("fd")?),
        (THREADS, THREADS, entries("task")?),
    ];
    Ok(memory.into_iter().chain(others))
}

/// Everything that was measured.
#[derive(Debug, Default)]
struct Soaked {
    cells: Cells,
    lost: Vec<LostRound>,
    scheduling: Vec<ObtainedScheduling>,
    /// True if the kernel does not tell the memory of processes.
    lacks_memory: bool,
}

impl Soaked {
    fn results(self, complete: bool, rounds: usize) -> Results {
        let planned = planned();
        let absent = self.lacks_memory.then(|| {
            let of_memory = labels([("counted", PRIVATE_DIRTY.into())]);
            (of_memory, NO_MEMORY.to_owned())
        });
        let said = SAYS.evaluate(&Grounds {
            planned: &planned,
            absent: absent.as_slice(),
            ..Grounds::of(&self.cells, rounds)
        });
        let real_time = all_real_time(&self.scheduling);
        Results {
            complete,
            series: self
                .cells
                .series(&labels([("real_time", real_time.into())])),
            columns: words(&["tenth"]),
            plots: vec![plot()],
            notes: std::iter::once(NOTE.to_owned())
                .chain(absent.map(|(_, why)| why))
                .collect(),
            lost: self.lost,
            scheduling: self.scheduling,
            ..said
        }
    }
}

fn labels_of(tenth: usize, what: &str, counted: &str) -> Labels {
    labels([
        ("tenth", tenth.into()),
        ("what", what.into()),
        ("counted", counted.into()),
    ])
}

/// The cells of all tenths.
fn planned() -> Vec<Labels> {
    let of_tenth = |tenth: usize| {
        let of_tenth = labels([("tenth", tenth.into())]);
        let calls = CALLS.map(|call| labels_with(&of_tenth, [("call", call.into())]));
        let counts = ["server", "clients"].into_iter().flat_map(move |what| {
            [PRIVATE_DIRTY, DESCRIPTORS, THREADS].map(|counted| labels_of(tenth, what, counted))
        });
        counts.chain(calls)
    };
    (1..=TENTHS).flat_map(of_tenth).collect()
}

const MIB: Metric = Metric::of(P50)
    .with(&[Times(1.0 / (1024.0 * 1024.0))])
    .in_unit("MiB");
const SAYS: Statements = Statements {
    highlights: &[
        HighlightOf {
            what: "an urgent call in the last tenth, 99 of 100 within",
            of: "tenth=10, call=urgent",
            metric: P99_US,
            beside: Words::with("in the first: {0}", &[P99_US.at("tenth=1")]),
        },
        HighlightOf {
            what: "memory of the server in the last tenth that it shares with no other process",
            of: "tenth=10, what=server, counted=private_dirty",
            metric: MIB,
            beside: Words::with("in the second: {0}", &[MIB.at("tenth=2")]),
        },
    ],
    claims: &[
        Declaration::at_most("tail.{call}", Metric::of(P99).with(&[Over(P99, "tenth=1")]), 1.2)
        .of("tenth=10, call=urgent", "The 99th percentile of an urgent call in the last tenth is at most 1.2 times that in the first."),
        Declaration::count("memory.{what}", Metric::of(P50).with(&[Over(P50, "tenth=2")]), 1.05)
        .of("tenth=10, counted=private_dirty", "The memory of the {what} is at most 5 % larger in the last tenth than in the second."),
        Declaration::count(
            "descriptors.{what}",
            Metric::of(P50).with(&[Less(P50, "tenth=2")]).in_unit(DESCRIPTORS),
            0.0,
        )
        .of("tenth=10, counted=descriptors", "Descriptors of the {what}: no more in the last tenth than in the second."),
        Declaration::count(
            "threads.{what}",
            Metric::of(P50).with(&[Less(P50, "tenth=2")]).in_unit(THREADS),
            0.0,
        )
        .of("tenth=10, counted=threads", "Threads of the {what}: no more in the last tenth than in the second."),
    ],
    ..Statements::NONE
};

fn plot() -> Plot {
    Plot::line_chart("tail-against-time", "The tail against time")
        .caption("99 of 100 calls came back within this time, counted from their releases.")
        .lines(["call"])
        .x("tenth")
        .x_title("tenths of the time")
        .values([StatisticName::P99])
}

const TENTHS: usize = 10;
const PARTS_MIN: usize = 6;
const PART_S_MAX: f64 = 60.0;
const LOW_CLIENTS: usize = 8;
/// The groups of clients, in order.
const CALLS: [&str; 2] = ["urgent", "other"];
const DESCRIPTORS: &str = "descriptors";
const THREADS: &str = "threads";
const NOTE: &str = "Each part has new clients: threads that connect, call, and end. The first tenth warms the allocator up, so counts are compared with the second.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_is_divided_into_parts_of_at_most_a_minute() {
        let soak = |hours| Soak::of_hours(hours).unwrap();
        assert_eq!(soak(1.0).parts_of_tenth(), 6);
        assert_eq!(soak(1.0).part(), Duration::from_secs(60));
        assert_eq!(soak(10.0).parts_of_tenth(), 60);
        assert_eq!(soak(0.005).part(), Duration::from_millis(300));
        for hours in [0.0, -1.0, 169.0, f64::NAN] {
            assert!(Soak::of_hours(hours).is_err(), "{hours}");
        }
    }

    /// The verdicts on a soak in which one thing grows: in each tenth it is as many times the first value as the number of the tenth.
    fn claims(grown: &str) -> Vec<(String, rtorb_results::Verdict)> {
        let mut soaked = Soaked::default();
        for (tenth, round) in (1..=TENTHS).flat_map(|tenth| (0..6).map(move |round| (tenth, round)))
        {
            for call in CALLS {
                let labels = labels([("tenth", tenth.into()), ("call", call.into())]);
                let factor = if grown == call { tenth as u64 } else { 1 };
                soaked
                    .cells
                    .add(&labels, round, &[1_000 * factor; 2_000], 0);
            }
            for what in ["server", "clients"] {
                for counted in [PRIVATE_DIRTY, DESCRIPTORS, THREADS] {
                    let factor = if grown == counted { tenth } else { 1 };
                    let labels = labels_of(tenth, what, counted);
                    let count = (100 * factor) as f64;
                    soaked.cells.add_count(&labels, round, count, (counted, 1));
                }
            }
        }
        let claims = soaked.results(true, 6).claims.into_iter();
        claims.map(|claim| (claim.id, claim.verdict)).collect()
    }

    #[test]
    fn a_kernel_that_does_not_tell_memory_leaves_out_its_claims_alone() {
        let mut soaked = Soaked {
            lacks_memory: true,
            ..Soaked::default()
        };
        for (tenth, round) in (1..=TENTHS).flat_map(|tenth| (0..6).map(move |round| (tenth, round)))
        {
            let labels = labels_of(tenth, "server", THREADS);
            soaked.cells.add_count(&labels, round, 9.0, (THREADS, 1));
        }
        let results = soaked.results(true, 6);
        let claim = |id: &str| {
            let mut claims = results.claims.iter();
            claims.find(|claim| claim.id == id).expect("it is declared")
        };
        let memory = claim("memory.server");
        assert_eq!(memory.verdict, rtorb_results::Verdict::NotMeasured);
        assert!(!memory.is_failure() && memory.reason.contains("smaps_rollup"));
        assert!(
            results
                .notes
                .iter()
                .any(|note| note.contains("smaps_rollup"))
        );
        assert_eq!(
            claim("threads.server").verdict,
            rtorb_results::Verdict::Held
        );
        assert!(claim("descriptors.server").is_failure());
    }

    #[test]
    fn every_series_says_whether_its_threads_were_real_time_ones() {
        let threads = |real_time| ObtainedScheduling {
            process: "soak clients".to_owned(),
            threads: 9,
            policy: "SCHED_FIFO".to_owned(),
            priority: 50,
            cpus: "0".to_owned(),
            real_time,
        };
        for real_time in [false, true] {
            let mut soaked = Soaked::default();
            let urgent = labels([("tenth", 1usize.into()), ("call", "urgent".into())]);
            soaked.cells.add(&urgent, 0, &[1_000], 0);
            soaked.scheduling.push(threads(real_time));
            let results = soaked.results(true, 1);
            assert_eq!(results.series[0].labels["real_time"], real_time.into());
        }
    }

    #[test]
    fn what_grows_is_missed_and_nothing_else() {
        let starts = [
            ("nothing", "-"),
            ("urgent", "tail"),
            (PRIVATE_DIRTY, "memory"),
            (DESCRIPTORS, "descriptors"),
            (THREADS, "threads"),
        ];
        for (grown, start) in starts {
            let claims = claims(grown);
            assert_eq!(claims.len(), 7, "{claims:?}");
            for (id, verdict) in claims {
                let is_missed = verdict == rtorb_results::Verdict::Missed;
                assert_eq!(
                    is_missed,
                    id.starts_with(start),
                    "{grown}: {id} {verdict:?}"
                );
            }
        }
    }
}
