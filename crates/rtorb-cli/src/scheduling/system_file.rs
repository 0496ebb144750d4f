//! The file of the system that a scheduling service runs.

use std::path::{Path, PathBuf};

use clap::Args;
use rtorb_sched::Strategy;
use rtorb_services::scheduling::{DescribedSystem, Description, ModelledSystem};

use super::{strategies, strategy};
use crate::named_file::{self, file_error};
use crate::orb_options::usage;
use crate::system_options::{FILE_BYTES_MAX, PlatformOptions, has_components, not_for_operations};

/// The file of a system, and how it is read: again, if it may have changed.
#[derive(Clone, Debug, Args)]
pub(super) struct SystemFile {
    /// File of the initial system: operations (docs/how-to/scheduling.md), or nodes and components (docs/reference/model.md). Their
    /// priorities are computed before the service accepts calls.
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Scheduling strategy [default: the file's, or rms].
    #[arg(long, value_name = "NAME", value_parser = strategies())]
    strategy: Option<String>,
    #[command(flatten)]
    platform: PlatformOptions,
}

impl SystemFile {
    /// The strategy that overrides the file's.
    pub(super) fn strategy(&self) -> anyhow::Result<Option<Strategy>> {
        strategy(self.strategy.as_ref())
    }

    /// Reads the system, if there is a file.
    pub(super) fn read(&self) -> anyhow::Result<Option<DescribedSystem>> {
        match &self.file {
            Some(file) => self.read_from(file).map(Some),
            None if self.platform.is_given() => Err(usage(
                "--profile, --costs, --ideal and -I are for a file of components: give one with --file",
            )),
            None => Ok(None),
        }
    }

    /// Reads the system in this file.
    pub(super) fn read_from(&self, file: &Path) -> anyhow::Result<DescribedSystem> {
        let text = named_file::read_text(file, FILE_BYTES_MAX)?;
        let described = if has_components(&text) {
            let system = self.platform.system(file)?;
            let platforms = self.platform.platforms(file, &system)?;
            ModelledSystem { system, platforms }.into()
        } else if self.platform.is_given() {
            return Err(not_for_operations(
                file,
                "--profile, --costs, --ideal and -I",
            ));
        } else {
            DescribedSystem::from(Description::read(file).map_err(file_error)?)
        };
        Ok(match self.strategy()? {
            Some(strategy) => described.with_strategy(strategy),
            None => described,
        })
    }
}
