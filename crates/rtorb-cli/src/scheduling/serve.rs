//! `rtorb scheduling serve`: serves a Scheduler.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb::Orb;
use rtorb_services::scheduling::{Scheduling, SchedulingConfig};

use super::{strategies, strategy};
use crate::named_file;
use crate::orb_options::{ClientOptions, ServerOptions, option_error};
use crate::output::note;

/// Serve a Scheduler until SIGTERM or SIGINT. Its object key is ScheduleService: corbaloc::HOST:PORT/ScheduleService.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// File of the first operations (docs/how-to/scheduling.md). Their priorities are computed before the service accepts calls.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Scheduling strategy [default: the file's, or rms].
    #[arg(long, value_name = "NAME", value_parser = strategies())]
    strategy: Option<String>,
    /// File to write the reference to. It is written atomically, when the service is ready.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Maximum number of operations; one more gets NO_RESOURCES.
    #[arg(long, value_name = "N", default_value_t = SchedulingConfig::default().infos_max)]
    infos_max: usize,
    /// Maximum number of dependencies; one more gets NO_RESOURCES.
    #[arg(long, value_name = "N", default_value_t = SchedulingConfig::default().dependencies_max)]
    dependencies_max: usize,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    client: ClientOptions,
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let file = self.file.as_ref();
        let description = file
            .map(|file| super::description(file, self.strategy.as_ref()))
            .transpose()?;
        let builder = self.server.apply(&self.client, Orb::builder());
        let orb = builder.build().map_err(option_error)?;
        let config = SchedulingConfig {
            strategy: strategy(self.strategy.as_ref())?,
            description,
            infos_max: self.infos_max,
            dependencies_max: self.dependencies_max,
        };
        let service = Scheduling::serve(&orb, config)?;
        orb.root_poa()?.manager().activate();
        orb.shutdown_on_signals(|| ())?;
        orb.run_with(|| {
            if let Some(file) = &self.ior_file {
                let text = format!("{}\n", service.reference().as_object());
                named_file::write(file, text.as_bytes())?;
            }
            for endpoint in orb.endpoints() {
                note!("serving a Scheduler at {endpoint}");
            }
            anyhow::Ok(())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
