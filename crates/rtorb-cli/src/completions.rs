//! `rtorb completions`: the script that completes commands and options in a shell.

use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::Command;
use crate::output::print;

/// Print the script with which a shell completes commands and options.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// Shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Command::command(), "rtorb", &mut script);
        print(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "Examples:
  rtorb completions bash > ~/.local/share/bash-completion/completions/rtorb
  rtorb completions zsh > ~/.zfunc/_rtorb       # with fpath+=~/.zfunc before compinit in ~/.zshrc
  rtorb completions fish > ~/.config/fish/completions/rtorb.fish";
