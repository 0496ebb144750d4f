//! `rtorb scheduling serve`: serves a Scheduler.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use rtorb::Orb;
use rtorb_services::scheduling::{Admission, Scheduling, SchedulingConfig, SchedulingError};

use super::if_preempted;
use super::reload::{self, Reload};
use super::system_file::SystemFile;
use crate::named_file;
use crate::orb_options::{ClientOptions, ServerOptions, option_error, usage, usage_of_field};
use crate::output::{note, warn};
use crate::serving::serve_recorder;
use crate::supervisor;

/// Serve a Scheduler until SIGTERM or SIGINT. Its object key is ScheduleService: corbaloc::HOST:PORT/ScheduleService.
///
/// The system of a file is admitted only if every deadline is proven to hold. On SIGHUP, the command reads the file again and
/// changes the running system to it, as `rtorb model apply` does.
///
/// Exit status 1: a deadline of the file is missed or not proven to hold. The message names the first one and what would help.
#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    system: SystemFile,
    /// Serve the file even if a deadline is missed or not proven to hold. A warning names the first one.
    #[arg(long, requires = "file")]
    admit_anyway: bool,
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
        let system = self.system.read()?;
        let builder = self.server.apply(&self.client, Orb::builder());
        let orb = builder.build().map_err(option_error)?;
        serve_recorder(&orb)?;
        let config = SchedulingConfig {
            strategy: self.system.strategy()?,
            system,
            admission: self.admission(),
            infos_max: self.infos_max,
            dependencies_max: self.dependencies_max,
        };
        let service = Scheduling::serve(&orb, config).map_err(|error| self.error(error))?;
        if let Some(unproven) = service.unproven() {
            warn(format!("{unproven}. It is served anyway"));
        } else if service.needs_preemption() {
            note!("every deadline holds{}", if_preempted(true));
        }
        let reload = self.reload_on_hangup(&service)?;
        orb.shutdown_on_signals(supervisor::tell_end)?;
        orb.run_with(|| {
            if let Some(file) = &self.ior_file {
                let text = format!("{}\n", service.reference().as_object());
                named_file::write(file, text.as_bytes())?;
            }
            for endpoint in orb.endpoints() {
                note!("serving a Scheduler at {endpoint}");
            }
            supervisor::tell_ready(&orb, "ScheduleService");
            anyhow::Ok(())
        })?;
        if let Some(reload) = reload {
            reload.end();
        }
        Ok(ExitCode::SUCCESS)
    }

    fn admission(&self) -> Admission {
        if self.admit_anyway {
            Admission::AdmitAnyway
        } else {
            Admission::RefuseUnproven
        }
    }

    /// Converts an error of the service: one of the options or of the file is a usage error.
    fn error(&self, error: SchedulingError) -> anyhow::Error {
        match (&error, &self.system.file) {
            (SchedulingError::Bound { bound, .. }, _) => usage_of_field(&error, bound),
            (SchedulingError::Compute(cause), Some(file)) if cause.is_wrong_description() => {
                usage(format!("{}: {error}", file.display()))
            }
            _ => anyhow!(error),
        }
    }

    /// Starts the thread that reads the file again on SIGHUP, if there is a file.
    fn reload_on_hangup(&self, service: &Scheduling) -> anyhow::Result<Option<Reload>> {
        let Some(file) = self.system.file.clone() else {
            return Ok(None);
        };
        let (system, service) = (self.system.clone(), service.clone());
        let admission = self.admission();
        Reload::start(move || {
            let changed = system
                .read_from(&file)
                .and_then(|described| Ok(service.apply(described, admission)?));
            match changed {
                Ok(change) => note!("{}", reload::words(&change)),
                Err(error) => warn(format!("the system stays as it was: {error}")),
            }
        })
        .map(Some)
    }
}
