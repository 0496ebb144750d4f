//! cyclictest of rt-tests, which has measured the same for twenty years, and is run beside our loop with the same settings.

use std::process::Command;
use std::time::Duration;

use rtorb_host::placement::{Placement, obtained_by_priority};

use crate::experiments::prelude::*;
use crate::processes::Launcher;
use crate::processes::interrupt::Interrupt;
use crate::processes::tools::run_tool;

/// How it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cyclictest {
    /// Such as `V 2.40`.
    version: String,
    /// The measuring thread's; the CPU of `others` is for the thread that prints.
    placement: Placement,
    others: Option<usize>,
    interval_us: u64,
    lock_memory: bool,
}

/// What a run of it found.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Each sample, in nanoseconds.
    pub(super) late_ns: Vec<u64>,
    /// Samples that were not printed.
    pub(super) lost: u64,
    /// What its measuring thread had; none when it was gone too soon.
    pub(super) scheduling: Option<ObtainedScheduling>,
}

impl Cyclictest {
    /// With the measuring thread in `placement`; `None` where it is not installed.
    ///
    /// # Errors
    /// The interrupt.
    pub(super) fn find(
        placement: Placement,
        interval_us: u64,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, LabError> {
        let version = match run_tool(Command::new(PROGRAM).arg("--help"), HELP_TIMEOUT, interrupt) {
            Ok(printed) => version(&printed),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(_) => return Ok(None),
        };
        let mut cpus = rtorb_os::sched::current_affinity().into_iter();
        Ok(Some(Self {
            version,
            placement,
            others: cpus.find(|cpu| Some(*cpu) != placement.cpu),
            interval_us,
            lock_memory: true,
        }))
    }

    /// What it can be told, it is told to do as our loop does: whether the memory is locked.
    pub(super) fn lock_memory(&mut self, locked: bool) {
        self.lock_memory = locked;
    }

    /// Runs it for so many samples.
    ///
    /// # Errors
    /// What it said went wrong, or the interrupt.
    pub(super) fn run(&self, launcher: &Launcher, samples: usize) -> Result<Run, LabError> {
        // It gives its measuring thread priority and CPU itself; the one that prints shall have neither.
        let launcher = launcher.placed(Placement::default());
        let arguments = self.arguments(samples);
        let role: Vec<&str> = ["tool", PROGRAM]
            .into_iter()
            .chain(arguments.iter().map(String::as_str))
            .collect();
        let mut process = launcher.spawn(PROGRAM, &role)?;
        let takes = Duration::from_micros(self.interval_us * samples as u64);
        std::thread::sleep((takes / 2).min(LOOK_AFTER));
        let scheduling = obtained_by_priority(PROGRAM, process.id())
            .into_iter()
            .find(|threads| threads.real_time);
        let printed = process.output_to_end(takes)?;
        let late_ns =
            samples_of(&printed, samples).map_err(|what| LabError::process(PROGRAM, what))?;
        Ok(Run {
            lost: samples.saturating_sub(late_ns.len()) as u64,
            late_ns,
            scheduling,
        })
    }

    /// The program, its version and how it is run, for the notes.
    pub(super) fn described(&self, samples: usize) -> String {
        format!(
            "{PROGRAM} {} {}",
            self.version,
            self.arguments(samples).join(" ")
        )
    }

    /// Every sample is printed, in nanoseconds: its histogram leaves out what is beyond the last bucket. It leaves
    /// /dev/cpu_dma_latency alone, so that both loops run under what the laboratory holds.
    fn arguments(&self, samples: usize) -> Vec<String> {
        let mut arguments = vec![
            "--nsecs".to_owned(),
            "--verbose".to_owned(),
            "--default-system".to_owned(),
            "--threads=1".to_owned(),
            format!("--interval={}", self.interval_us),
            format!("--loops={samples}"),
        ];
        if let Some(priority) = self.placement.fifo {
            arguments.push("--policy=fifo".to_owned());
            arguments.push(format!("--priority={priority}"));
        }
        if let Some(cpu) = self.placement.cpu {
            arguments.push(format!("--affinity={cpu}"));
            arguments.extend(self.others.map(|cpu| format!("--mainaffinity={cpu}")));
        }
        if self.lock_memory {
            arguments.push("--mlockall".to_owned());
        }
        arguments
    }
}

/// The samples that were printed: the third number of each line `THREAD:COUNT:NANOSECONDS`; the other lines are for people.
fn samples_of(printed: &str, expected: usize) -> Result<Vec<u64>, String> {
    let sample = |line: &str| {
        let mut fields = line.split(':').map(|field| field.trim().parse::<i64>());
        match (fields.next(), fields.next(), fields.next(), fields.next()) {
            (Some(Ok(_)), Some(Ok(_)), Some(Ok(late_ns)), None) => Some(late_ns),
            _ => None,
        }
    };
    let found: Vec<u64> = printed
        .lines()
        .filter_map(sample)
        .map(|late_ns| u64::try_from(late_ns).unwrap_or(0))
        .collect();
    // The thread that prints may end before it has printed the very last ones. They are counted as lost; a run without a tenth is none.
    if found.len() * 10 < expected * 9 {
        let said: Vec<&str> = printed
            .lines()
            .filter(|line| sample(line).is_none())
            .collect();
        return Err(format!(
            "printed {} samples of {expected}: {}",
            found.len(),
            said.join("; ")
        ));
    }
    Ok(found)
}

/// `cyclictest V 2.40`, the first line.
fn version(printed: &str) -> String {
    let line = printed.lines().next().unwrap_or("");
    line.trim_start_matches(PROGRAM).trim().to_owned()
}

pub(super) const PROGRAM: &str = "cyclictest";
const HELP_TIMEOUT: Duration = Duration::from_secs(30);
/// By then its measuring thread has its priority.
const LOOK_AFTER: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "Max CPUs = 2\nOnline CPUs = 2\nUsing 1 cpus.\n\
                           # /dev/cpu_dma_latency set to 0us\nThread 0 using cpu 1.\nThread 0 Interval: 1500\n\
                           \x20      0:       0:   33981\n       0:       1:   26803\n       0:       2:      -4\n";

    #[test]
    fn every_sample_is_read_and_nothing_else() {
        assert_eq!(samples_of(PRINTED, 3).unwrap(), [33_981, 26_803, 0]);
    }

    #[test]
    fn what_it_said_instead_of_samples_is_told() {
        let what = samples_of("Unable to change scheduling policy!\n", 500).unwrap_err();
        assert!(
            what.contains("0 samples of 500") && what.contains("Unable"),
            "{what}"
        );
        assert!(samples_of(PRINTED, 5).is_err());
    }

    #[test]
    fn the_version_is_read() {
        assert_eq!(version("cyclictest V 2.40\nUsage:\n"), "V 2.40");
    }

    #[test]
    fn it_is_told_where_and_how_to_run() {
        let cyclictest = Cyclictest {
            version: "V 2.40".to_owned(),
            placement: Placement {
                cpu: Some(1),
                fifo: Some(50),
            },
            others: Some(0),
            interval_us: 1_000,
            lock_memory: true,
        };
        let told = cyclictest.described(500);
        for wanted in [
            "--affinity=1",
            "--mainaffinity=0",
            "--priority=50",
            "--interval=1000",
            "--loops=500",
            "--mlockall",
        ] {
            assert!(told.contains(wanted), "{wanted} in {told}");
        }
    }
}
