//! `rtorb model apply`: changes a running system to another file.

mod components;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use rtorb::CompletionStatus;
use rtorb_services::scheduling::{Description, Schedule, text_of_ns};
use rtorb_services::stubs::rtec_scheduler::rtorb_scheduling::{
    Admission, Change, ChangeableScheduler, ChangeableSchedulerApplyError,
    ChangeableSchedulerApplySystemError,
};

use super::SystemOptions;
use crate::exit_status::FAILED;
use crate::named_file::{self, file_error};
use crate::orb_options::usage;
use crate::output::{line, warn};
use crate::reference::{CallOptions, object};
use crate::scheduling::if_preempted;
use crate::system_options::{FILE_BYTES_MAX, has_components, not_for_operations};

/// Change a running system to another file, without a restart and without losing a request.
///
/// The file has operations (docs/how-to/scheduling.md), or a system of nodes and components (docs/reference/model.md). The scheduling service of
/// the system checks the new system, and the change to it: during it, work of both is there. It changes all priorities at once, and
/// the lanes and consumers of the channels of its process, or nothing. A service that runs operations takes operations, and one that runs a
/// system of components takes another one; a service that runs nothing takes both.
///
/// Exit status 0: the system has changed. 1: it has not, because a deadline would be missed or is not proven to hold (the first one
/// is named, with what would help), or because a part cannot change while it runs; or it is unknown whether it has, which the message
/// says. 2: the file is wrong.
///
/// Without --timeout, the service has 60 s for the analysis. It changes nothing for a caller that has given up.
#[derive(Debug, Args)]
pub(super) struct Apply {
    /// File of the new operations or of the new system.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Scheduler of the running system: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(long, value_name = "REF")]
    to: String,
    /// Change it even if a deadline is missed or not proven to hold.
    #[arg(long)]
    admit_anyway: bool,
    #[command(flatten)]
    options: SystemOptions,
    #[command(flatten)]
    calling: CallOptions,
}

impl Apply {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let text = named_file::read_text(&self.file, FILE_BYTES_MAX)?;
        let system = if has_components(&text) {
            Some(components::system_file(
                &self.file,
                text.clone(),
                &self.options,
            )?)
        } else {
            None
        };
        let needs_preemption = system.is_none() && self.check_operations()?;
        let orb = self.calling.orb_within(PATIENCE)?;
        let scheduler = ChangeableScheduler::narrow(&object(&orb, &self.to)?)
            .map_err(|exception| anyhow!("--to {}: {exception}", self.to))?;
        let admission = if self.admit_anyway {
            Admission::AdmitAnyway
        } else {
            Admission::RefuseUnproven
        };
        let changed = match &system {
            Some(file) => {
                let changed = scheduler.apply_system(file, admission);
                changed.map_err(as_of_operations)
            }
            None => scheduler.apply(&text, admission),
        };
        match changed {
            Ok(change) => print(&change, needs_preemption),
            Err(refused) => self.refused(refused),
        }
    }

    /// Checks a file of operations, and prints all mistakes with their lines. Returns true if its deadlines hold only in a lane that
    /// preempts.
    fn check_operations(&self) -> anyhow::Result<bool> {
        if self.options.is_given() {
            return Err(not_for_operations(
                &self.file,
                "--profile, --costs, --ideal, --strategy and -I",
            ));
        }
        let description = Description::read(&self.file).map_err(file_error)?;
        // The service says what is wrong with a system that has no schedule.
        let computed = Schedule::compute(&description);
        Ok(computed.is_ok_and(|computed| computed.analysis.needs_preemption()))
    }

    /// Prints why nothing has changed, or that this is unknown.
    fn refused(&self, refused: ChangeableSchedulerApplyError) -> anyhow::Result<ExitCode> {
        match refused {
            ChangeableSchedulerApplyError::NotAdmitted(refused) => {
                warn(format!("{} {}", refused.operation, refused.reason));
                for remedy in refused.what_helps {
                    warn(format!("what would help: {remedy}"));
                }
            }
            ChangeableSchedulerApplyError::CannotChange(part) => warn(part.reason),
            ChangeableSchedulerApplyError::WrongFile(wrong) => {
                return Err(usage(format!("{}: {}", self.file.display(), wrong.reason)));
            }
            ChangeableSchedulerApplyError::System(exception)
                if exception.completed != CompletionStatus::No =>
            {
                return Err(anyhow!(
                    "--to {}: {exception}. It is unknown whether the system has changed: `rtorb scheduling show {}` shows its priorities",
                    self.to,
                    self.to
                ));
            }
            ChangeableSchedulerApplyError::System(exception) => {
                return Err(anyhow!("--to {}: {exception}", self.to));
            }
        }
        Ok(ExitCode::from(FAILED))
    }
}

fn print(change: &Change, needs_preemption: bool) -> anyhow::Result<ExitCode> {
    line(format!("{} operations changed", change.operations_changed))?;
    if change.is_proven && change.longest_old_job > 0 {
        line(format!(
            "every deadline holds{}, and work of the old system ends within {}",
            if_preempted(needs_preemption),
            text_of_ns(change.longest_old_job)
        ))?;
    }
    if !change.is_proven {
        warn("not every deadline is proven to hold; it was changed anyway");
    }
    Ok(ExitCode::SUCCESS)
}

/// The exceptions of both operations are the same.
fn as_of_operations(error: ChangeableSchedulerApplySystemError) -> ChangeableSchedulerApplyError {
    match error {
        ChangeableSchedulerApplySystemError::NotAdmitted(refused) => refused.into(),
        ChangeableSchedulerApplySystemError::WrongFile(wrong) => wrong.into(),
        ChangeableSchedulerApplySystemError::CannotChange(part) => part.into(),
        ChangeableSchedulerApplySystemError::System(exception) => exception.into(),
    }
}

/// The default timeout: the analysis of a large system takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);
