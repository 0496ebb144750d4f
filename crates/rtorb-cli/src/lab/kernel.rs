//! `rtorb lab kernel`: experiments inside emulated machines that differ in nothing but the kernel.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use rtorb_lab::kernels::catalogue;
use rtorb_lab::kernels::initramfs::Initramfs;
use rtorb_lab::kernels::job::Job;
use rtorb_lab::kernels::machine::{Boot, Emulator};
use rtorb_lab::processes::interrupt::Interrupt;

use crate::executable;
use crate::output::print_json;

/// Measure kernels in emulated machines that differ in nothing else, in virtual time.
#[derive(Debug, Args)]
pub(crate) struct Kernel {
    #[command(subcommand)]
    subcommand: KernelSubcommand,
}

#[derive(Debug, Subcommand)]
enum KernelSubcommand {
    Boot(BootOnce),
}

/// Boot one machine and print what it says.
#[derive(Debug, Args)]
#[command(hide = true)]
struct BootOnce {
    /// A kernel image.
    #[arg(long)]
    image: PathBuf,
    #[arg(long)]
    preempt: Option<String>,
    /// The guest's program, statically linked; this one if not given.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Experiments, with commas between; none asks for the kernel's symbols.
    #[arg(long, value_delimiter = ',')]
    experiments: Vec<String>,
    #[arg(long, default_value = "none")]
    load: String,
    #[arg(long, default_value_t = 4)]
    seeds: u16,
    /// More arguments of the emulator.
    #[arg(last = true)]
    observers: Vec<String>,
}

impl Kernel {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.subcommand {
            KernelSubcommand::Boot(boot) => boot.run(),
        }
    }
}

impl BootOnce {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
        let program = match &self.program {
            Some(program) => program.clone(),
            None => executable::own()?,
        };
        let job = match self.experiments.is_empty() {
            true => Job::Symbols,
            false => Job::Measure {
                experiments: self.experiments.clone(),
                load: self.load.clone(),
                seeds: self.seeds,
            },
        };
        let kernel = catalogue::Kernel {
            name: self.image.display().to_string(),
            release: String::new(),
            image: self.image.clone(),
            sha256: String::new(),
            package: None,
        };
        let boot = Boot {
            kernel: &kernel,
            preempt: self.preempt.as_deref(),
            initramfs: &Initramfs::with_program(&program)?,
            job: &job,
            observers: &self.observers,
        };
        let messages =
            Emulator::find(&interrupt)?.run(&boot, Duration::from_secs(300), &interrupt)?;
        print_json(&messages)?;
        Ok(ExitCode::SUCCESS)
    }
}
