//! A program without the laboratory: its subcommands say how to get it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Subcommand;

use crate::orb_options::usage;

/// Subcommands of the laboratory, which is not built in.
#[derive(Debug, Subcommand)]
pub(crate) enum Laboratory {
    #[command(name = "lab", aliases = ["measure", "check", "model", "top", "trace", "why", "cubit"], hide = true, disable_help_flag = true)]
    Absent {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

impl Laboratory {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        Err(usage(
            "measure, check, lab, model, top, trace, why and cubit are commands of the laboratory, and this program was built without it: \
             build rtorb-cli with the feature `laboratory`, which is on by default",
        ))
    }
}

/// Does nothing: this program uses the allocator of the system, and boots no emulated machine.
pub(crate) fn start() -> Option<ExitCode> {
    None
}

/// Returns false: there are no errors of a laboratory.
pub(crate) fn is_wrong_use(_: &anyhow::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::orb_options::UsageError;
    use crate::{Command, Subcommands};

    #[test]
    fn each_command_of_the_laboratory_says_how_to_get_it() {
        for arguments in [
            &["measure", "--full"][..],
            &["check", "--json"],
            &["lab", "run", "os/wakeup"],
            &["lab", "--help"],
            &["model", "check", "system.toml"],
            &["top", "plant"],
            &["trace", "plant", "--out", "file"],
            &["why", "file"],
            &["cubit", "serve"],
        ] {
            let command = Command::try_parse_from([&["rtorb"], arguments].concat()).unwrap();
            let Subcommands::Laboratory(laboratory) = command.subcommand else {
                panic!("{arguments:?} is no command of the laboratory");
            };
            let error = laboratory.run().unwrap_err();
            assert!(error.is::<UsageError>(), "{error}");
            assert!(
                error.to_string().contains("feature `laboratory`"),
                "{error}"
            );
        }
    }
}
