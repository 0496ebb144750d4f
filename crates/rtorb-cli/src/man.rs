//! `rtorb man`: the manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use clap_mangen::Man;

use crate::Command;
use crate::named_file;
use crate::output::{line, print};

/// Print the manual page, or write those of all commands: rtorb.1, rtorb-check.1 and so on.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Manual {
    /// Folder for all pages.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Manual {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let Some(folder) = &self.out else {
            let mut page = Vec::new();
            let command = Command::command().disable_help_subcommand(true);
            Man::new(command).render(&mut page)?;
            print(&page)?;
            return Ok(ExitCode::SUCCESS);
        };
        std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Command::command(), folder))
            .map_err(named_file::failed("write pages to", folder))?;
        line(format!("Manual pages: {}", folder.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "Examples:
  rtorb man --out ~/.local/share/man/man1       # then: man rtorb-model-check
  rtorb man | man -l -";
