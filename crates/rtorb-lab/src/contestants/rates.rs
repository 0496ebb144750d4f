//! Clients that call at a rate: what a run of them is, and how a process of such clients is told and tells.
//!
//! The laboratory asks in two steps, so that nothing but the run itself is measured: threads are made and warmed up in the
//! first, and wait at a barrier until the second.
//!
//! ```text
//! prepare 400000000 2 spread 1:60:1:4000000:1:each 0:10:50:28600000:1:latest     DURATION-NS ROUND FIRST GROUP...
//! prepared
//! go
//! ran 400120000 31000000 100 100 0 0 700 700 0 3     ELAPSED-NS CPU-NS, for each group CALLS RELEASES WRONG MISSED,
//!                                                    then the times: unsigned 32-bit little-endian
//! cpu                                                asked of servers
//! cpu 123456789                                      processor time of the process in nanoseconds
//! work 500000                                        asked of servers: processor time of each request from now on
//! work
//! ```
//!
//! A group is `OBJECT:PRIORITY:CLIENTS:PERIOD-NS:CALLS:RELEASES`. What cannot be done is answered by `error TEXT`.

use std::fmt;
use std::io::{BufRead, Write};
use std::str::FromStr;

use rustix::time::{ClockId, clock_gettime};

use crate::processes::child::number;

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

/// What a process of clients is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstReleases {
    /// Spread evenly over their periods.
    #[default]
    Spread,
    /// All at once, as P1's barrier does.
    Together,
}

/// Clients of one kind: threads of one priority that call one object at one rate.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Releases {
    /// All are made up for, each counted from when it should have been: for what is measured.
    Each,
    /// Only the latest is: for load, which must not pile up beyond what the CPU can do. Those that are skipped are counted, and each
    /// is as late as the reply to the latest.
    Latest,
}

impl Run {
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

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.first.word();
        write!(
            formatter,
            "prepare {} {} {first}",
            self.duration_ns, self.round
        )?;
        self.groups
            .iter()
            .try_for_each(|group| write!(formatter, " {group}"))
    }
}

impl FromStr for Run {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        if words.next() != Some("prepare") {
            return Err(format!("no run: {line:?}"));
        }
        let mut next = || number::<usize>(words.next().unwrap_or_default());
        let (duration_ns, round) = (next()? as u64, next()?);
        let word = words.next().unwrap_or_default();
        let mut known = [FirstReleases::Spread, FirstReleases::Together].into_iter();
        let first = known
            .find(|known| known.word() == word)
            .ok_or_else(|| format!("first releases are `spread` or `together`, not {word:?}"))?;
        let groups: Vec<Group> = words.map(str::parse).collect::<Result<_, _>>()?;
        let clients = groups
            .iter()
            .fold(0usize, |sum, group| sum.saturating_add(group.clients));
        if clients > CLIENTS_MAX {
            return Err(format!(
                "{clients} clients are too many: at most {CLIENTS_MAX}"
            ));
        }
        Ok(Self {
            duration_ns,
            round,
            first,
            groups,
        })
    }
}

impl fmt::Display for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            object,
            priority,
            clients,
            period_ns,
            calls,
            releases,
        } = self;
        let releases = releases.word();
        write!(
            formatter,
            "{object}:{priority}:{clients}:{period_ns}:{calls}:{releases}"
        )
    }
}

impl FromStr for Group {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let parts: Vec<&str> = word.split(':').collect();
        let [object, priority, clients, period_ns, calls, releases] = parts[..] else {
            return Err(format!(
                "a group has 6 parts, not {}: {word:?}",
                parts.len()
            ));
        };
        let priority = u8::try_from(number::<usize>(priority)?)
            .ok()
            .filter(|number| *number <= 99)
            .ok_or_else(|| format!("not a priority: {priority:?}"))?;
        let period_ns = number(period_ns)?;
        if period_ns == 0 {
            return Err(format!("a period takes time: {word:?}"));
        }
        let releases = [Releases::Each, Releases::Latest]
            .into_iter()
            .find(|known| known.word() == releases)
            .ok_or_else(|| format!("releases are `each` or `latest`, not {releases:?}"))?;
        Ok(Self {
            object: number(object)?,
            priority,
            clients: number(clients)?,
            period_ns,
            calls: number(calls)?,
            releases,
        })
    }
}

impl FirstReleases {
    fn word(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Together => "together",
        }
    }
}

impl Releases {
    fn word(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::Latest => "latest",
        }
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

impl Ran {
    /// Writes the answer to `go`.
    ///
    /// # Errors
    /// What the output said.
    pub fn write(&self, output: &mut impl Write) -> std::io::Result<()> {
        write!(output, "ran {} {}", self.elapsed_ns, self.cpu_ns)?;
        for times in &self.groups {
            let (calls, releases) = (times.sent_ns.len(), times.release_ns.len());
            write!(
                output,
                " {calls} {releases} {} {}",
                times.wrong, times.missed
            )?;
        }
        writeln!(output)?;
        for times in &self.groups {
            let all = times.sent_ns.iter().chain(&times.release_ns);
            let octets: Vec<u8> = all.flat_map(|time_ns| time_ns.to_le_bytes()).collect();
            output.write_all(&octets)?;
        }
        output.flush()
    }

    /// How many octets of times follow this line.
    ///
    /// # Errors
    /// That the line announces no times, in its own words if it is an error.
    pub fn bytes_after(line: &str) -> Result<usize, String> {
        Ok(RanHeader::parse(line)?.samples() * size_of::<u64>())
    }

    /// Puts the line and the octets after it together.
    ///
    /// # Errors
    /// That they do not belong together.
    pub fn read(line: &str, octets: &[u8]) -> Result<Self, String> {
        let header = RanHeader::parse(line)?;
        if octets.len() != header.samples() * size_of::<u64>() {
            return Err(format!("{} octets do not belong to {line:?}", octets.len()));
        }
        let (times, _) = octets.as_chunks();
        let mut times = times.iter().map(|eight| u64::from_le_bytes(*eight));
        let mut take = |count: usize| times.by_ref().take(count).collect();
        let groups = header
            .groups
            .iter()
            .map(|&[calls, releases, wrong, missed]| Times {
                sent_ns: take(calls),
                release_ns: take(releases),
                wrong: wrong as u64,
                missed: missed as u64,
            })
            .collect();
        Ok(Self {
            elapsed_ns: header.elapsed_ns,
            cpu_ns: header.cpu_ns,
            groups,
        })
    }
}

struct RanHeader {
    elapsed_ns: u64,
    cpu_ns: u64,
    /// Calls, releases, wrong, missed.
    groups: Vec<[usize; 4]>,
}

impl RanHeader {
    fn parse(line: &str) -> Result<Self, String> {
        let not_understood = || line.strip_prefix("error ").unwrap_or(line).to_owned();
        let rest = line.strip_prefix("ran ").ok_or_else(not_understood)?;
        let numbers: Vec<usize> = rest
            .split_whitespace()
            .map(number)
            .collect::<Result<_, _>>()?;
        let ([elapsed_ns, cpu_ns], groups) =
            numbers.split_first_chunk().ok_or_else(not_understood)?;
        let (groups, left) = groups.as_chunks::<4>();
        let header = Self {
            elapsed_ns: *elapsed_ns as u64,
            cpu_ns: *cpu_ns as u64,
            groups: groups.to_vec(),
        };
        if left.is_empty() && header.samples() <= SAMPLES_MAX {
            Ok(header)
        } else {
            Err(not_understood())
        }
    }

    fn samples(&self) -> usize {
        self.groups
            .iter()
            .flat_map(|[calls, releases, ..]| [*calls, *releases])
            .fold(0, usize::saturating_add)
    }
}

/// Processor time of the calling process in nanoseconds, threads that ended included.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Answers each line of `input` by what `answer` writes, or by its error, until `input` ends.
///
/// # Errors
/// What the input or output said.
pub fn answer_lines<W: Write>(
    input: impl BufRead,
    mut output: W,
    mut answer: impl FnMut(&str, &mut W) -> Result<(), String>,
) -> std::io::Result<()> {
    for line in input.lines() {
        if let Err(error) = answer(&line?, &mut output) {
            writeln!(output, "error {}", error.replace('\n', " "))?;
        }
        output.flush()?;
    }
    Ok(())
}

pub(super) const GOLDEN: f64 = 0.618_033_988_749_895;
/// More than any experiment has.
const CLIENTS_MAX: usize = 1_000;
/// Sixty-four mebibytes of times: a run that would take more records no more.
pub(crate) const SAMPLES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            run().to_string(),
            "prepare 400000000 2 spread 1:60:1:4000000:1:each 0:10:50:28600000:2:latest"
        );
        assert_eq!(run().to_string().parse(), Ok(run()));
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        for (line, word) in [
            ("run 1 2", "no run"),
            ("prepare x 0 spread", "\"x\""),
            ("prepare 1", "not a number"),
            ("prepare 1 0 1:2:3", "`together`"),
            ("prepare 1 0 spread 1:2:3", "6 parts"),
            ("prepare 1 0 spread 1:100:1:1:1:each", "priority"),
            ("prepare 1 0 spread 1:1:1:0:1:each", "period"),
            ("prepare 1 0 spread 1:1:1:1:1:some", "`latest`"),
            ("prepare 1 0 spread 1:1:1001:1:1:each", "too many"),
        ] {
            let error = line.parse::<Run>().unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
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
        let mut output = Vec::new();
        ran.write(&mut output).unwrap();
        let end = output.iter().position(|octet| *octet == b'\n').unwrap();
        let line = String::from_utf8_lossy(&output[..end]).into_owned();
        assert_eq!(Ran::bytes_after(&line), Ok(5 * 8));
        assert_eq!(Ran::read(&line, &output[end + 1..]), Ok(ran));
        assert!(Ran::read(&line, &output[end + 2..]).is_err());
    }

    #[test]
    fn what_announces_no_times_is_told_as_it_is() {
        assert_eq!(
            Ran::bytes_after("error no route"),
            Err("no route".to_owned())
        );
        assert!(Ran::bytes_after("ran 1 2 3").is_err());
        assert!(Ran::bytes_after(&format!("ran 1 2 {SAMPLES_MAX} 1 0 0")).is_err());
    }

    #[test]
    fn a_client_has_room_for_all_that_it_records() {
        let group = run().groups.remove(1);
        assert_eq!(group.releases_max(400_000_000), 14);
        let times = Times::for_client(&group, 400_000_000);
        assert!(times.sent_ns.capacity() >= 28 && times.release_ns.capacity() >= 14);
    }

    #[test]
    fn lines_are_answered_and_errors_too() {
        let mut output = Vec::new();
        answer_lines(&b"yes\nno\n"[..], &mut output, |line, output| match line {
            "yes" => writeln!(output, "done").map_err(|error| error.to_string()),
            _ => Err("not\nso".to_owned()),
        })
        .unwrap();
        assert_eq!(String::from_utf8_lossy(&output), "done\nerror not so\n");
    }
}
