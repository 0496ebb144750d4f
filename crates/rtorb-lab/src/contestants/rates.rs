//! Clients that call at a rate: what a run of them is, and what their processes are asked.
//!
//! The laboratory asks in two steps, so that nothing but the run itself is measured: threads are made and warmed up in the
//! first, and wait at a barrier until the second.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::processes::Process;
use crate::processes::questions::Reply;

pub mod clients;
pub mod contestants;
pub mod entrant;
pub mod line_up;
pub(crate) mod roles;
pub mod server;

/// The priority of a pair of client and servant that has one of its own. The high-priority pair is the first, 0.
pub const fn priority_of_pair(pair: usize) -> u8 {
    HIGHEST_OF_PAIRS.saturating_sub(pair as u8)
}

const HIGHEST_OF_PAIRS: u8 = 60;

/// What a process of clients is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientsQuestion {
    /// To start clients, which wait at the barrier.
    Prepare(Run),
    /// To open the barrier: what the clients have measured.
    Go,
}

/// What their server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerQuestion {
    /// The processor time of the process, in nanoseconds.
    Cpu,
    /// To take so much processor time for each request from now on, in nanoseconds.
    Work(u64),
}

/// A run of clients.
///
/// The order of the fields, and that of [`Group`], is the one in which `peers/omniorb/rates.cc` reads them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// From the barrier until no more calls are released.
    pub duration_ns: u64,
    /// Which round this is: the phases of the clients differ from round to round.
    pub round: usize,
    /// When clients are first released.
    pub first: FirstReleases,
    /// The clients, each group of one kind.
    pub groups: Vec<Group>,
}

/// When the clients of a run are first released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstReleases {
    /// Spread evenly over their periods.
    #[default]
    Spread,
    /// All at once, as P1's barrier does.
    Together,
}

/// Clients of one kind: threads of one priority that call one object at one rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Which of the server's objects.
    pub object: usize,
    /// SCHED_FIFO priority of their threads; 0 leaves the scheduling as it is.
    pub priority: u8,
    /// How many threads.
    pub clients: usize,
    /// From one release to the next.
    pub period_ns: u64,
    /// Calls a release, one after another.
    pub calls: usize,
    /// What becomes of releases that come while the one before still runs.
    pub releases: Releases,
}

/// What becomes of releases whose time comes while the thread still calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Releases {
    /// All are made up for, each counted from when it should have been: for what is measured.
    Each,
    /// Only the latest is: for load, which must not pile up beyond what the CPU can do. Those that are skipped are counted, and each
    /// is as late as the reply to the latest.
    Latest,
}

/// Has a process of clients start those of a run, which wait at the barrier.
pub(crate) fn prepare(clients: &mut Process, run: &Run) -> Result<(), LabError> {
    clients.ask(&ClientsQuestion::Prepare(run.clone()), Duration::ZERO)
}

/// Opens the barrier, and returns what the clients have measured.
pub(crate) fn go(clients: &mut Process, duration: Duration) -> Result<Ran, LabError> {
    let reply = clients.ask_for_series(&ClientsQuestion::Go, duration)?;
    Ran::of(reply).map_err(|what| LabError::process(clients.name(), what))
}

impl Run {
    /// Refuses a run that no client can make.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        let each = self.groups.iter().map(|group| group.clients);
        let clients = each.fold(0, usize::saturating_add);
        if clients > CLIENTS_MAX {
            return Err(format!(
                "{clients} clients are too many: at most {CLIENTS_MAX}"
            ));
        }
        if let Some(group) = self.groups.iter().find(|group| group.priority > 99) {
            return Err(format!("not a priority: {}", group.priority));
        }
        if self.groups.iter().any(|group| group.period_ns == 0) {
            return Err("a period takes time".to_owned());
        }
        Ok(())
    }

    /// When the client of this number, counted over all groups, is first released after the barrier.
    ///
    /// Multiples of the golden ratio spread clients evenly over the period however many there are, and differently in each
    /// round; with equal phases a call would meet the same of the others each time. The first of round 0 has phase 0.
    #[must_use]
    pub fn phase_ns(&self, client: usize, period_ns: u64) -> u64 {
        if self.first == FirstReleases::Together {
            return 0;
        }
        let clients: usize = self.groups.iter().map(|group| group.clients).sum();
        let multiple = (client + self.round * clients) as f64 * GOLDEN;
        (multiple.fract() * period_ns as f64) as u64
    }
}

impl Group {
    /// Releases of each client within a run of this length.
    #[must_use]
    pub fn releases_max(&self, duration_ns: u64) -> usize {
        let releases = duration_ns / self.period_ns.max(1) + 1;
        usize::try_from(releases).unwrap_or(usize::MAX)
    }
}

/// What a run brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// From the barrier until the last client had its last reply.
    pub elapsed_ns: u64,
    /// Processor time that the process of the clients took meanwhile.
    pub cpu_ns: u64,
    /// As many as the run has.
    pub groups: Vec<Times>,
}

/// The times of the calls of one group, in no order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From sending to having the reply, of every call.
    pub sent_ns: Vec<u64>,
    /// Of every planned release, from when its first call should have been sent to having the reply. One that was skipped has the
    /// reply to the call that was made for it.
    pub release_ns: Vec<u64>,
    /// Answers that were wrong.
    pub wrong: u64,
    /// Releases that were left out because the one before still ran.
    pub missed: u64,
}

impl Times {
    /// With room for what one client of the group will record, so that recording makes no heap call.
    #[must_use]
    pub fn for_client(group: &Group, duration_ns: u64) -> Self {
        let releases = group.releases_max(duration_ns).min(SAMPLES_MAX);
        let calls = releases.saturating_mul(group.calls).min(SAMPLES_MAX);
        Self {
            sent_ns: Vec::with_capacity(calls),
            release_ns: Vec::with_capacity(releases),
            wrong: 0,
            missed: 0,
        }
    }

    /// Adds what another client of the group recorded.
    pub fn append(&mut self, mut other: Self) {
        self.sent_ns.append(&mut other.sent_ns);
        self.release_ns.append(&mut other.release_ns);
        self.wrong += other.wrong;
        self.missed += other.missed;
    }
}

/// What is said of a run, whose times follow: of each group those from sending on, and those from the releases on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    elapsed_ns: u64,
    cpu_ns: u64,
    groups: Vec<GroupEnd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct GroupEnd {
    wrong: u64,
    missed: u64,
}

impl Ran {
    /// As the answer to [`ClientsQuestion::Go`].
    pub(crate) fn into_reply(self) -> Reply<RunEnd> {
        let end = |Times { wrong, missed, .. }: &Times| GroupEnd {
            wrong: *wrong,
            missed: *missed,
        };
        let groups = self.groups.iter().map(end).collect();
        let times = self.groups.into_iter();
        Reply {
            value: RunEnd {
                elapsed_ns: self.elapsed_ns,
                cpu_ns: self.cpu_ns,
                groups,
            },
            series: times
                .flat_map(|times| [times.sent_ns, times.release_ns])
                .collect(),
        }
    }

    /// Puts the answer together.
    ///
    /// # Errors
    /// That it does not have two series for each group.
    pub(crate) fn of(reply: Reply<RunEnd>) -> Result<Self, String> {
        let Reply { value: end, series } = reply;
        if series.len() != 2 * end.groups.len() {
            let groups = end.groups.len();
            return Err(format!("sent {} series for {groups} groups", series.len()));
        }
        let mut series = series.into_iter();
        let mut next = || series.next().unwrap_or_default();
        let groups = end.groups.iter().map(|group| Times {
            sent_ns: next(),
            release_ns: next(),
            wrong: group.wrong,
            missed: group.missed,
        });
        Ok(Self {
            elapsed_ns: end.elapsed_ns,
            cpu_ns: end.cpu_ns,
            groups: groups.collect(),
        })
    }
}

/// Processor time of the calling process in nanoseconds, threads that ended included.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

pub(super) const GOLDEN: f64 = 0.618_033_988_749_895;
/// More than any experiment has.
const CLIENTS_MAX: usize = 1_000;
/// A hundred and twenty-eight mebibytes of times: a run that would take more records no more.
pub(crate) const SAMPLES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::questions::tests::replies;

    fn run() -> Run {
        let high = Group {
            object: 1,
            priority: 60,
            clients: 1,
            period_ns: 4_000_000,
            calls: 1,
            releases: Releases::Each,
        };
        let low = Group {
            object: 0,
            priority: 10,
            clients: 50,
            period_ns: 28_600_000,
            calls: 2,
            releases: Releases::Latest,
        };
        Run {
            duration_ns: 400_000_000,
            round: 2,
            first: FirstReleases::Spread,
            groups: vec![high, low],
        }
    }

    #[test]
    fn a_run_is_read_back() {
        let question = ClientsQuestion::Prepare(run());
        let line = serde_json::to_string(&question).unwrap();
        assert_eq!(
            line,
            concat!(
                r#"{"prepare":{"duration_ns":400000000,"round":2,"first":"spread","groups":["#,
                r#"{"object":1,"priority":60,"clients":1,"period_ns":4000000,"calls":1,"releases":"each"},"#,
                r#"{"object":0,"priority":10,"clients":50,"period_ns":28600000,"calls":2,"releases":"latest"}]}}"#,
            )
        );
        assert_eq!(
            serde_json::from_str::<ClientsQuestion>(&line).unwrap(),
            question
        );
        let go = serde_json::to_string(&ClientsQuestion::Go).unwrap();
        assert_eq!(go, "\"go\"");
        let work = serde_json::to_string(&ServerQuestion::Work(500)).unwrap();
        assert_eq!(work, r#"{"work":500}"#);
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        let line = serde_json::to_string(&run()).unwrap();
        let with = |from: &str, to: &str| line.replace(from, to);
        for (line, word) in [
            ("\"run\"".to_owned(), "struct Run"),
            (with("400000000", "\"x\""), "\"x\""),
            (with(",\"round\":2", ""), "round"),
            (with("spread", "1:2:3"), "`together`"),
            (with(",\"calls\":1", ""), "calls"),
            (with(":60", ":100"), "priority"),
            (with(":60", ":256"), "256"),
            (with("4000000,", "0,"), "period"),
            (with("latest", "some"), "`latest`"),
            (with(":50,", ":1001,"), "too many"),
        ] {
            let read = serde_json::from_str::<Run>(&line).map_err(|error| error.to_string());
            let error = read.and_then(|run| run.check()).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
        assert_eq!(run().check(), Ok(()));
    }

    #[test]
    fn phases_are_spread_over_the_period_and_differ_from_round_to_round() {
        let mut first = run();
        first.round = 0;
        let period_ns = 1_000_000;
        assert_eq!(first.phase_ns(0, period_ns), 0);
        let mut phases: Vec<u64> = (0..51)
            .map(|client| first.phase_ns(client, period_ns))
            .collect();
        assert_ne!(run().phase_ns(0, period_ns), phases[0]);
        first.first = FirstReleases::Together;
        assert_eq!(first.phase_ns(7, period_ns), 0);
        phases.sort_unstable();
        assert!(phases.iter().all(|phase| *phase < period_ns));
        let gap_max = phases.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(gap_max.is_some_and(|gap| gap < 3 * period_ns / 51));
    }

    #[test]
    fn times_are_read_back_group_by_group() {
        let ran = Ran {
            elapsed_ns: 400,
            cpu_ns: 300,
            groups: vec![
                Times {
                    sent_ns: vec![1, 7_000_000_000],
                    release_ns: vec![3],
                    wrong: 0,
                    missed: 7,
                },
                Times::default(),
                Times {
                    sent_ns: vec![4],
                    release_ns: vec![5],
                    wrong: 1,
                    missed: 0,
                },
            ],
        };
        let go = |_: ClientsQuestion| Ok(ran.clone().into_reply());
        let [Ok(reply)] = &replies::<_, _, RunEnd>("\"go\"\n", go)[..] else {
            panic!("one answer");
        };
        assert_eq!(Ran::of(reply.clone()), Ok(ran.clone()));
        let mut fewer = reply.clone();
        fewer.series.pop();
        assert!(
            Ran::of(fewer)
                .unwrap_err()
                .contains("5 series for 3 groups")
        );
    }

    #[test]
    fn a_client_has_room_for_all_that_it_records() {
        let group = run().groups.remove(1);
        assert_eq!(group.releases_max(400_000_000), 14);
        let times = Times::for_client(&group, 400_000_000);
        assert!(times.sent_ns.capacity() >= 28 && times.release_ns.capacity() >= 14);
    }
}
