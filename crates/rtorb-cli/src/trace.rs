//! `rtorb trace`: records the calls of running processes.

mod on_miss;

use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use rtorb::recorder::ProcessSnapshot;
use rtorb_os::termination::Termination;
use rtorb_recording::gathering::{Wanted, record};
use rtorb_recording::{HostRecord, Recording, short_name};
use rtorb_sched::times::parse_ns;

use crate::named_file;
use crate::orb_options::usage;
use crate::output::{line, printable, warn};

/// Record the calls of running processes, for ui.perfetto.dev and for `rtorb why` (docs/how-to/late-calls.md).
///
/// The processes have -ORBRecorder yes among the options of their ORBs. They are neither stopped nor delayed: their recorders are memory
/// that this command reads. The file has the calls that end while it records, and the kernel's switches, wake-ups, interrupts and page
/// faults of the same time if tracefs can be read, which root may. SIGINT (Ctrl-C), SIGTERM or SIGHUP (the terminal is closed) ends the
/// recording, and the file has what was recorded until then. Under nohup, SIGHUP ends nothing.
///
/// With --on-miss, the command waits until an operation misses its deadline, and writes what happened before and after. A miss is a call that ended
/// with TIMEOUT, a call of an annotated operation that ended later than its @deadline, or a request whose deadline had passed before its
/// servant was called. A late call counts also where @statistical allows it. The command looks for one every 10 ms. Meanwhile, SIGUSR1 has it write what it has then to a file of its own, as in
/// plant-signal-1.pftrace beside plant.pftrace.
///
/// Exit status 0: the recording is written; with --on-miss, all of --count. 1: --on-miss ended before, by --timeout, by Ctrl-C, or because
/// the processes have ended.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Trace {
    /// Process id, or the name of processes, of which the kernel keeps 15 bytes.
    #[arg(value_name = "TARGET", required = true)]
    targets: Vec<String>,
    /// File to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long to record, at most 10min. With 0s, only the last calls that the recorders hold already.
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = time)]
    duration: Duration,
    /// Leave out the kernel's events.
    #[arg(long)]
    no_kernel: bool,
    /// Wait for a missed deadline, and record what happened before and after.
    #[arg(long, conflicts_with = "duration")]
    on_miss: bool,
    #[command(flatten)]
    misses: MissOptions,
}

/// The options of --on-miss.
#[derive(Debug, Args)]
struct MissOptions {
    /// Time before the miss that is recorded, and time after it, at most 1min. Longer than a call may take, so that the whole call is in it.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "on_miss", value_parser = window)]
    window: Duration,
    /// Number of recordings after which the command ends. With more than one, the files are numbered: plant-1.pftrace for plant.pftrace.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "on_miss", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    count: u32,
    /// Time after which the command waits no longer.
    #[arg(long, value_name = "TIME", requires = "on_miss", value_parser = timeout)]
    timeout: Option<Duration>,
}

impl Trace {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        // First: a signal must end neither the file nor the kernel's record.
        let interrupted = Termination::watch_with_hangup()?;
        let wanted = Wanted {
            processes: processes(&self.targets)?,
            duration: if self.on_miss {
                self.misses.window
            } else {
                self.duration
            },
            kernel: !self.no_kernel,
        };
        if self.on_miss {
            return self.wait_for_misses(&wanted, &interrupted);
        }
        let _file = OutputFile::open(&self.out)?;
        let recording = record(&wanted, || interrupted.has_come())?;
        write(&recording, &self.out, wanted.kernel)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A file that is to be written when the time is spent. Dropping it removes a file that was not there before and has nothing in it.
struct OutputFile<'p> {
    path: &'p Path,
    is_new: bool,
}

impl<'p> OutputFile<'p> {
    /// Makes the file, if there is none.
    ///
    /// # Errors
    /// That it cannot be written: before the time is spent.
    fn open(path: &'p Path) -> anyhow::Result<Self> {
        let is_new = !path.exists();
        let is_pipe = |it: fs::Metadata| it.file_type().is_fifo();
        // The reader of a pipe would take the closing for the end.
        if !path.metadata().is_ok_and(is_pipe) {
            let opened = File::options().append(true).create(true).open(path);
            drop(opened.map_err(named_file::unwritable(path))?);
        }
        Ok(Self { path, is_new })
    }
}

impl Drop for OutputFile<'_> {
    fn drop(&mut self) {
        let is_empty = |it: fs::Metadata| it.is_file() && it.len() == 0;
        if self.is_new && self.path.metadata().is_ok_and(is_empty) {
            let _ = fs::remove_file(self.path);
        }
    }
}

/// Writes a recording, and prints what it has.
fn write(recording: &Recording, path: &Path, has_kernel: bool) -> anyhow::Result<()> {
    let left_out = recording.write(path)?;
    if left_out > 0 {
        warn(format!(
            "{left_out} calls are left out: their times are in no order"
        ));
    }
    for host in &recording.hosts {
        print(host, has_kernel)?;
    }
    line(format!("Written: {}", path.display()))
}

fn print(host: &HostRecord, has_kernel: bool) -> anyhow::Result<()> {
    for process in &host.processes {
        let threads = process.threads.iter();
        let (calls, lost) = threads.fold((0, 0_u64), |(calls, lost), thread| {
            (calls + thread.calls.len(), lost.saturating_add(thread.lost))
        });
        let lost = match lost {
            0 => String::new(),
            lost => format!(", and {lost} that were lost"),
        };
        let name = printable(&process.name);
        line(format!("{name} ({}): {calls} calls{lost}", process.pid))?;
    }
    match &host.kernel {
        Ok(record) if record.lost > 0 => warn(format!(
            "the kernel's record had no room for {} events: record a shorter time",
            record.lost
        )),
        Err(why) if has_kernel => {
            warn(format!("the recording has no events of the kernel: {why}"));
        }
        _ => {}
    }
    Ok(())
}

/// Returns the processes that are meant, each once.
pub(crate) fn processes(targets: &[String]) -> anyhow::Result<Vec<u32>> {
    let mut found: Vec<u32> = Vec::new();
    for target in targets {
        if let Ok(process) = target.parse() {
            found.push(process);
            continue;
        }
        let recorded = ProcessSnapshot::processes().into_iter();
        let named = recorded.filter(|process| {
            ProcessSnapshot::counters_of_process(*process)
                .is_ok_and(|snapshot| snapshot.name == short_name(target))
        });
        let named: Vec<u32> = named.collect();
        if named.is_empty() {
            bail!(
                "no process {target} has a recorder: start it with -ORBRecorder yes, or give its id"
            );
        }
        found.extend(named);
    }
    found.sort_unstable();
    found.dedup();
    if found.len() > PROCESSES_MAX {
        return Err(usage(format!(
            "these are {} processes, and one file has at most {PROCESSES_MAX}",
            found.len()
        )));
    }
    Ok(found)
}

fn time(text: &str) -> Result<Duration, String> {
    let duration = match text {
        "0" | "0s" => Duration::ZERO,
        text => parse_ns(text).map(Duration::from_nanos)?,
    };
    if duration <= DURATION_MAX {
        Ok(duration)
    } else {
        Err("at most 10min can be recorded at once".to_owned())
    }
}

fn window(text: &str) -> Result<Duration, String> {
    let window = Duration::from_nanos(parse_ns(text)?);
    if (WINDOW_MIN..=WINDOW_MAX).contains(&window) {
        Ok(window)
    } else {
        Err("the window of a miss is 10ms to 1min".to_owned())
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    parse_ns(text).map(Duration::from_nanos)
}

const WINDOW_MIN: Duration = Duration::from_millis(10);
const WINDOW_MAX: Duration = Duration::from_secs(60);
const DURATION_MAX: Duration = Duration::from_secs(600);
const PROCESSES_MAX: usize = 64;

const EXAMPLES: &str = "Examples:
  rtorb trace plant 4711 --out plant.pftrace
  rtorb trace plant --for 0s --out last-calls.pftrace
  rtorb trace plant display --on-miss --timeout 3600s --out late.pftrace";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_stays_only_if_something_is_written_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let [new, written, earlier] =
            ["new", "written", "earlier"].map(|it| folder.path().join(it));
        fs::write(&earlier, "").unwrap();
        for path in [&new, &written, &earlier] {
            let file = OutputFile::open(path).unwrap();
            assert!(path.exists());
            if *path == written {
                fs::write(path, "calls").unwrap();
            }
            drop(file);
        }
        let stays = [&new, &written, &earlier].map(|path| path.exists());
        assert_eq!(stays, [false, true, true]);
    }
}
