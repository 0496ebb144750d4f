//! Recording of the calls that a process serves, by copies that its own threads make.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use rtorb::recorder::{CallReader, CopiedCall, ProcessSnapshot};
use rtorb_dynamic::copied::CallDecoder;
use rtorb_dynamic::recording::RotatingLog;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::termination::Termination;

use super::{CallPrinter, Record};
use crate::exit_status::FAILED;
use crate::interface_options::interface_error;
use crate::named_file;
use crate::output::{note, warn};

/// Options of a recording without a proxy.
#[derive(Debug, Args)]
pub(super) struct InLane {
    /// Process whose own threads copy the calls that they serve: its id or its name, of which the kernel keeps 15 bytes.
    #[arg(long, value_name = "PROCESS", conflicts_with_all = ["reference", "ior_file", "key"])]
    in_lane: Option<String>,
    /// Record one of N calls of each thread, with --in-lane.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        conflicts_with = "reference"
    )]
    sample: NonZeroU32,
    /// Size in bytes at which the file of --out is renamed, to session.jsonl.1 for session.jsonl, and a new one begins; with --in-lane.
    #[arg(long, value_name = "BYTES", conflicts_with = "reference")]
    rotate: Option<u64>,
    /// Number of renamed files that stay.
    #[arg(long, value_name = "K", default_value_t = 4, requires = "rotate", value_parser = clap::value_parser!(u32).range(..=1_000))]
    keep: u32,
}

impl Record {
    /// Records until a signal, or until the process ends.
    pub(super) fn run_in_lane(self) -> anyhow::Result<ExitCode> {
        // First: a signal must not end the file.
        let interrupted = Termination::watch()?;
        let mut session = self.session()?;
        note!(
            "recording the calls of process {}",
            session.reader.process()
        );
        let mut is_over = false;
        while !is_over {
            is_over = interrupted.has_come() || has_ended(session.reader.process());
            let calls = if is_over {
                session.reader.stop()?
            } else {
                sleep_until(monotonic_ns() + LOOK_NS);
                session.reader.read()?
            };
            session.record(&calls);
        }
        // Calls that were in progress have ended since, and a spoilt ring is told.
        let last = session.reader.stop()?;
        session.record(&last);
        Ok(session.end())
    }

    fn session(&self) -> anyhow::Result<LaneSession> {
        let target = self.lane.in_lane.as_deref().unwrap_or_default();
        let process = process(target)?;
        let orb = self.calling.orb()?;
        let search = self.interface.search();
        let decoder = match &self.interface.interface {
            Some(name) => {
                let found = search.interface_named(name).map_err(interface_error)?;
                CallDecoder::new(&orb, found.types).with_interface(found.interface)
            }
            None => CallDecoder::new(&orb, Arc::new(search.types().map_err(interface_error)?)),
        };
        let printer = CallPrinter::start(self.json)?;
        let reader = CallReader::of_process(process, self.lane.sample)?;
        Ok(LaneSession {
            log: self.lane_log()?,
            decoder,
            printer,
            reader,
            recorded: 0,
            is_complete: true,
        })
    }

    fn lane_log(&self) -> anyhow::Result<Option<RotatingLog>> {
        let Some(path) = &self.out else {
            return Ok(None);
        };
        let log = match self.lane.rotate {
            Some(bytes) => RotatingLog::create(path, bytes, self.lane.keep),
            None => RotatingLog::ending(path, self.serving.bytes_max()),
        };
        Ok(Some(log.map_err(named_file::unwritable(path))?))
    }
}

/// A recording that is in progress.
struct LaneSession {
    reader: CallReader,
    decoder: CallDecoder,
    log: Option<RotatingLog>,
    printer: CallPrinter,
    recorded: u64,
    is_complete: bool,
}

impl LaneSession {
    fn record(&mut self, calls: &[CopiedCall]) {
        for record in calls.iter().filter_map(|call| self.decoder.record(call)) {
            self.printer.print(&record);
            self.recorded += 1;
            let written = self.log.as_mut().map(|log| log.write(&record));
            if let Some(Err(error)) = written {
                self.is_complete = false;
                // A session has no gap.
                self.log = None;
                warn(error);
            }
        }
    }

    /// Says what was recorded, and what was not.
    fn end(self) -> ExitCode {
        self.printer.end();
        let (served, lost) = (self.reader.served(), self.reader.lost());
        note!("{} of {served} calls are recorded", self.recorded);
        if lost > 0 {
            warn(format!(
                "{lost} calls had no room: give the process a larger -ORBRecordCalls, or record one of more calls by --sample"
            ));
        }
        if lost == 0 && self.is_complete {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        }
    }
}

/// Returns the process with that id, or the only one with that name and a recorder.
fn process(target: &str) -> anyhow::Result<u32> {
    if let Ok(process) = target.parse() {
        return Ok(process);
    }
    // The kernel keeps that much of a name.
    let kept = &target.as_bytes()[..target.len().min(15)];
    let is_named = |process: &u32| {
        ProcessSnapshot::counters_of_process(*process)
            .is_ok_and(|snapshot| snapshot.name.as_bytes() == kept)
    };
    let named = ProcessSnapshot::processes().into_iter().filter(is_named);
    match named.collect::<Vec<u32>>()[..] {
        [process] => Ok(process),
        [] => bail!(
            "no process {target} has a recorder: start it with -ORBRecordCalls 1048576, or give its id"
        ),
        ref several => {
            bail!("several processes are named {target}: give the id of one of {several:?}")
        }
    }
}

/// Returns true if the process has ended. Its folder stays in /proc until its parent waits for it, but then has no program. For the process of
/// another user the kernel refuses the answer, and that is no end.
fn has_ended(process: u32) -> bool {
    let program = fs::read_link(format!("/proc/{process}/exe"));
    program.is_err_and(|error| error.kind() != io::ErrorKind::PermissionDenied)
}

/// Time between two looks at the rings.
const LOOK_NS: u64 = 20_000_000;
