//! The exit statuses of all subcommands.

use std::process::ExitCode;

use rtorb_results::is_wrong_path;

use crate::laboratory;
use crate::named_file::NamedFileError;
use crate::orb_options::UsageError;

/// The statuses, as the help shows them. A status of 0 is [`ExitCode::SUCCESS`].
pub(crate) const HELP: &str = "Exit status of every command:
  0  done
  1  the answer is no, or the work failed
  2  wrong use: the command line, or a file or folder that it names, must be corrected";

/// The exit status if the answer is no or the work failed.
pub(crate) const FAILED: u8 = 1;

/// The exit status of wrong use; the same as clap's.
pub(crate) const WRONG_USE: u8 = 2;

/// Returns the exit status for an error.
pub(crate) fn of_error(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if is_wrong_use(error) {
        WRONG_USE
    } else {
        FAILED
    })
}

/// Returns true if another command line, or another content of a named file, would correct the error.
fn is_wrong_use(error: &anyhow::Error) -> bool {
    error.is::<UsageError>()
        || error
            .downcast_ref::<NamedFileError>()
            .is_some_and(|error| is_wrong_path(&error.error))
        || laboratory::is_wrong_use(error)
}
