//! `rtorb lab kernel boot`: boots one machine and prints its messages, for debugging.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use rtorb_kernels::catalogue;
use rtorb_kernels::initramfs::Initramfs;
use rtorb_kernels::job::Job;
use rtorb_kernels::machine::{Boot, Emulator, Machine};
use rtorb_lab::processes::interrupt::Interrupt;

use crate::executable;
use crate::output::print_json;

/// Boot one machine and print its messages.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct BootOnce {
    /// Kernel image.
    #[arg(long)]
    image: PathBuf,
    #[arg(long)]
    preempt: Option<String>,
    /// Statically linked program of the guest [default: this program].
    #[arg(long)]
    program: Option<PathBuf>,
    /// Experiments, separated by commas. Without any, the guest prints the kernel's symbols.
    #[arg(long, value_delimiter = ',')]
    experiments: Vec<String>,
    #[arg(long, default_value = "none")]
    load: String,
    #[arg(long, default_value_t = 4)]
    seeds: u16,
    /// Further arguments of the emulator.
    #[arg(last = true)]
    observers: Vec<String>,
}

impl BootOnce {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
        let executable = executable::own()?;
        let program = self.program.as_ref().unwrap_or(&executable);
        let job = if self.experiments.is_empty() {
            Job::Symbols
        } else {
            Job::Measure {
                experiments: self.experiments.clone(),
                load: self.load.clone(),
                seeds: self.seeds,
                full: false,
            }
        };
        let kernel = catalogue::Kernel {
            name: self.image.display().to_string(),
            release: String::new(),
            image: self.image.clone(),
            sha256: String::new(),
            package: None,
            board: None,
        };
        let boot = Boot {
            machine: Machine::default(),
            kernel: &kernel,
            preempt: self.preempt.as_deref(),
            initramfs: &Initramfs::with_program(program)?,
            job: &job,
            observers: &self.observers,
        };
        let messages = Emulator::find(&executable, &interrupt)?.run(
            &boot,
            Duration::from_secs(300),
            &interrupt,
        )?;
        print_json(&messages)?;
        Ok(ExitCode::SUCCESS)
    }
}
