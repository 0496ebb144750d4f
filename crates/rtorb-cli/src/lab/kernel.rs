//! `rtorb lab kernel`: experiments in emulated machines that differ only in their kernel.

use std::process::ExitCode;

use clap::{Args, Subcommand};

mod boot;
mod check;
mod explain;
mod run;

/// Measure kernels in virtual time, in emulated machines that are otherwise identical.
#[derive(Debug, Args)]
pub(crate) struct Kernel {
    #[command(subcommand)]
    subcommand: KernelSubcommand,
}

#[derive(Debug, Subcommand)]
enum KernelSubcommand {
    Run(run::RunCampaign),
    Explain(explain::Explain),
    Check(check::Check),
    Baseline(check::WriteBaseline),
    Boot(boot::BootOnce),
}

impl Kernel {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.subcommand {
            KernelSubcommand::Run(run) => run.run(),
            KernelSubcommand::Explain(explain) => explain.run(),
            KernelSubcommand::Check(check) => check.run(),
            KernelSubcommand::Baseline(baseline) => baseline.run(),
            KernelSubcommand::Boot(boot) => boot.run(),
        }
    }
}
