//! `rtorb lab profile DIR`: the platform profile of results that are there.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rtorb_lab::results::profile::Profile;
use rtorb_lab::results::runs;

use crate::output::{line, print_json};

/// Write DIR/profile.json, the platform profile, from the results below DIR.
///
/// `rtorb lab run profile` runs the experiments that it is made of, and writes it too.
#[derive(Debug, Args)]
pub(crate) struct MakeProfile {
    /// A folder that `measure` or `lab run` wrote; each of several runs gets a profile of its own.
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
            .map(|run| Profile::from_results(&run.results))
            .collect::<Result<Vec<_>, _>>()?;
        for (run, profile) in runs.iter().zip(&profiles) {
            let path = profile.write(&run.folder)?;
            if !self.json {
                tell(profile, &path)?;
            }
        }
        if self.json {
            print_json(&profiles)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Says where the profile is and what it lacks.
pub(crate) fn tell(profile: &Profile, path: &Path) -> anyhow::Result<()> {
    for gap in &profile.incomplete {
        line(format!("missing  {}: {}", gap.experiment, gap.why))?;
    }
    if !profile.real_time {
        line("   note  NOT REAL-TIME: what was measured in this profile bounds nothing")?;
    }
    line(format!(
        "Profile: {} ({} configurations of services)",
        path.display(),
        profile.services.len()
    ))
}
