//! `rtorb trace`: records the calls of running processes.

use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use rtorb::recorder::ProcessSnapshot;
use rtorb_os::termination::Termination;
use rtorb_recording::gathering::{Wanted, record};
use rtorb_recording::short_name;
use rtorb_sched::times::parse_ns;

use crate::named_file;
use crate::orb_options::usage;
use crate::output::{line, printable, warn};

/// Record the calls of running processes, for ui.perfetto.dev and for `rtorb why` (docs/how-to/late-calls.md).
///
/// The processes have -ORBRecorder yes among the options of their ORBs. They are neither stopped nor delayed: their recorders are memory
/// that this command reads. The file has the calls that end while it records, and the kernel's switches, wake-ups, interrupts and page
/// faults of the same time if tracefs can be read, which root may. SIGINT (Ctrl-C) or SIGTERM ends the recording, and the file has what was
/// recorded until then.
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
}

impl Trace {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        // First: a signal must end neither the file nor the kernel's record.
        let interrupted = Termination::watch()?;
        let wanted = Wanted {
            processes: processes(&self.targets)?,
            duration: self.duration,
            kernel: !self.no_kernel,
        };
        let is_new = !self.out.exists();
        let is_pipe = |it: fs::Metadata| it.file_type().is_fifo();
        if !self.out.metadata().is_ok_and(is_pipe) {
            // Report a file that cannot be written before the time is spent. The reader of a pipe would take the closing for the end.
            let opened = File::options().append(true).create(true).open(&self.out);
            drop(opened.map_err(named_file::unwritable(&self.out))?);
        }
        let recorded = record(&wanted, || interrupted.has_come());
        let recording = recorded.inspect_err(|_| {
            if is_new {
                let _ = fs::remove_file(&self.out);
            }
        })?;
        let left_out = recording.write(&self.out)?;
        if left_out > 0 {
            warn(format!(
                "{left_out} calls are left out: their times are in no order"
            ));
        }
        let hosts = recording.hosts.iter();
        for host in hosts {
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
                Err(why) if !self.no_kernel => {
                    warn(format!("the recording has no events of the kernel: {why}"));
                }
                _ => {}
            }
        }
        line(format!("Written: {}", self.out.display()))?;
        Ok(ExitCode::SUCCESS)
    }
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

const DURATION_MAX: Duration = Duration::from_secs(600);
const PROCESSES_MAX: usize = 64;

const EXAMPLES: &str = "Examples:
  rtorb trace plant 4711 --out plant.pftrace
  rtorb trace plant --for 0s --out last-calls.pftrace";
