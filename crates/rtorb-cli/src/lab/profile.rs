//! `rtorb lab profile DIR`: makes a platform profile from existing results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rtorb_lab::experiments;
use rtorb_results::profile::Profile;
use rtorb_results::runs;

use crate::output::{line, print_json};

/// Write the platform profile DIR/profile.json from the results below DIR.
///
/// `rtorb lab run profile` runs the experiments that a profile needs, and writes it too.
#[derive(Debug, Args)]
pub(crate) struct MakeProfile {
    /// Folder that `measure` or `lab run` wrote; each of several runs gets its own profile.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print one JSON array of the profiles.
    #[arg(long)]
    json: bool,
}

impl MakeProfile {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let runs = runs::read(&self.folder)?;
        let profiles = runs
            .iter()
            .map(|run| Profile::from_results(&run.results, &experiments::services()))
            .collect::<Result<Vec<_>, _>>()?;
        for (run, profile) in runs.iter().zip(&profiles) {
            let path = profile.write(&run.folder)?;
            if !self.json {
                print(profile, &path)?;
            }
        }
        if self.json {
            print_json(&profiles)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the profile's path and what is missing from it.
pub(crate) fn print(profile: &Profile, path: &Path) -> anyhow::Result<()> {
    for gap in &profile.incomplete {
        line(format!("missing  {}: {}", gap.experiment, gap.why))?;
    }
    if !profile.real_time {
        line("   note  NOT REAL-TIME: the measurements in this profile are no bounds")?;
    }
    line(format!(
        "Profile: {} ({} configurations of services)",
        path.display(),
        profile.services.len()
    ))
}
