//! `rtorb model apply`: changes a running system to the operations of a file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use rtorb_services::scheduling::{Description, text_of_ns};
use rtorb_services::stubs::rtec_scheduler::rtorb_scheduling::{
    Admission, ChangeableScheduler, ChangeableSchedulerApplyError,
};

use crate::exit_status::FAILED;
use crate::named_file::{self, file_error};
use crate::orb_options::usage;
use crate::output::{line, warn};
use crate::reference::{CallOptions, object};

/// Change a running system to the operations of a file, without a restart and without losing a request.
///
/// The scheduling service of the system checks the new operations, and the change to them: during it, work of both is there. It
/// changes all priorities at once, and the lanes and consumers of the channels of its process, or nothing.
///
/// Exit status 0: the system has changed. 1: it has not, because a deadline would be missed or is not proven to hold (the first one
/// is named, with what would help), or because a part cannot change while it runs. 2: the file is wrong.
#[derive(Debug, Args)]
pub(super) struct Apply {
    /// File of the new operations (docs/how-to/scheduling.md).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Scheduler of the running system: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(long, value_name = "REF")]
    to: String,
    /// Change it even if a deadline is missed or not proven to hold.
    #[arg(long)]
    admit_anyway: bool,
    #[command(flatten)]
    calling: CallOptions,
}

impl Apply {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        // All mistakes with their lines.
        Description::read(&self.file).map_err(file_error)?;
        let text = named_file::read_text(&self.file, FILE_BYTES_MAX)?;
        let orb = self.calling.orb()?;
        let scheduler = ChangeableScheduler::narrow(&object(&orb, &self.to)?)
            .map_err(|exception| anyhow!("--to {}: {exception}", self.to))?;
        let admission = if self.admit_anyway {
            Admission::AdmitAnyway
        } else {
            Admission::RefuseUnproven
        };
        let change = match scheduler.apply(&text, admission) {
            Ok(change) => change,
            Err(refused) => return self.refused(refused),
        };
        line(format!("{} operations changed", change.operations_changed))?;
        if change.is_proven && change.longest_old_job > 0 {
            line(format!(
                "every deadline holds, and work of the old system ends within {}",
                text_of_ns(change.longest_old_job)
            ))?;
        }
        if !change.is_proven {
            warn("not every deadline is proven to hold; it was changed anyway");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints why nothing has changed.
    fn refused(&self, refused: ChangeableSchedulerApplyError) -> anyhow::Result<ExitCode> {
        match refused {
            ChangeableSchedulerApplyError::NotAdmitted(refused) => {
                warn(format!("{} {}", refused.operation, refused.reason));
                for remedy in refused.what_helps {
                    warn(format!("what would help: {remedy}"));
                }
            }
            ChangeableSchedulerApplyError::CannotChange(part) => warn(part.reason),
            ChangeableSchedulerApplyError::WrongFile(wrong) => return Err(usage(wrong.reason)),
            ChangeableSchedulerApplyError::System(exception) => {
                return Err(anyhow!("--to {}: {exception}", self.to));
            }
        }
        Ok(ExitCode::from(FAILED))
    }
}

/// A request has the whole text, and a server takes no larger one by default.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
