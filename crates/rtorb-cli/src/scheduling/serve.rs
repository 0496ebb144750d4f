//! `rtorb scheduling serve`: the service itself.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use rtorb::Orb;
use rtorb_lab::processes::interrupt::on_signal;
use rtorb_lab::results::write_atomically;
use rtorb_services::scheduling::{Scheduling, SchedulingConfig};

use super::{chosen, described, strategies};
use crate::orb_options::{ClientChoices, ServerChoices, in_our_words};

/// Serve a Scheduler until SIGTERM or SIGINT. Its key is ScheduleService: corbaloc::HOST:PORT/ScheduleService.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Operations to begin with (docs/scheduling.md); their priorities are computed before the service answers.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How levels are made: rms unless this or the file says.
    #[arg(long, value_name = "NAME", value_parser = strategies())]
    strategy: Option<String>,
    /// Where to write the reference, in whole and only when the service is ready.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Operations that it keeps; one more is NO_RESOURCES.
    #[arg(long, value_name = "N", default_value_t = SchedulingConfig::default().infos_max)]
    infos_max: usize,
    /// Dependencies that it keeps; one more is NO_RESOURCES.
    #[arg(long, value_name = "N", default_value_t = SchedulingConfig::default().dependencies_max)]
    dependencies_max: usize,
    #[command(flatten)]
    server: ServerChoices,
    #[command(flatten)]
    client: ClientChoices,
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let file = self.file.as_ref();
        let description = file
            .map(|file| described(file, self.strategy.as_ref()))
            .transpose()?;
        let builder = self.server.apply(&self.client, Orb::builder());
        let orb = builder
            .and_then(|builder| builder.build())
            .map_err(in_our_words)?;
        let config = SchedulingConfig {
            strategy: chosen(self.strategy.as_ref())?,
            description,
            infos_max: self.infos_max,
            dependencies_max: self.dependencies_max,
        };
        let service = Scheduling::serve(&orb, config)?;
        orb.root_poa()?.manager().activate();
        let ending = orb.clone();
        on_signal(move || ending.shutdown()).context("cannot listen to signals")?;
        if let Some(file) = &self.ior_file {
            let text = format!("{}\n", service.reference().as_object());
            write_atomically(file, text.as_bytes())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        for endpoint in orb.endpoints() {
            eprintln!("serving a Scheduler at {endpoint}");
        }
        orb.run()?;
        Ok(ExitCode::SUCCESS)
    }
}
