//! `rtorb model check`: whether every deadline holds, before anything runs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb_lab::results::loading;
use rtorb_sched::model::{CheckReport, Standing};
use rtorb_sched::toml_file::nearest;

use super::{Analysis, answer, misuse};
use crate::NO;
use crate::output::{line, print_json};

/// Bound every response and end-to-end chain of a system, and say whether every deadline holds.
///
/// Says how much slack is left, by how much each behaviour may grow, what each layer (application, ORB, operating system, hardware)
/// has in every bound, and which lanes, bands and priorities to load.
///
/// Exit status 0: every deadline holds. 1: one will be missed, the first of which is named, or it could not be proven that none is.
/// 2: something is wrong with the file, or a node has no profile.
#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    analysis: Analysis,
    /// Show every share of the bound of this behaviour or chain, and nothing else.
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    explain: Option<String>,
    /// Write what ORBs load: DIR/COMPONENT.orb.toml for -ORBConfigFile, DIR/priorities.toml for programs and channels, and the
    /// answer, DIR/check.json.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the answer as one JSON object.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let (system, checked) = self.analysis.check()?;
        let written = match &self.out {
            Some(folder) => loading::write(folder, &system, &checked)?,
            None => Vec::new(),
        };
        match (&self.explain, self.json) {
            (Some(name), _) => explain(&checked, name)?,
            (None, true) => print_json(&checked)?,
            (None, false) => {
                answer::print(&checked)?;
                if !written.is_empty() {
                    line("")?;
                }
                for file in &written {
                    line(format!("Written: {}", file.display()))?;
                }
            }
        }
        Ok(match checked.standing {
            Standing::Holds => ExitCode::SUCCESS,
            Standing::Misses | Standing::NotProven => ExitCode::from(NO),
        })
    }
}

/// Prints one bound in full.
fn explain(checked: &CheckReport, name: &str) -> anyhow::Result<()> {
    let behaviour = checked.behaviours.iter().find(|one| one.behaviour == name);
    if let Some(one) = behaviour {
        return answer::print_behaviour(one);
    }
    if let Some(one) = checked.chains.iter().find(|one| one.chain == name) {
        return answer::print_chain(one);
    }
    let names = checked.behaviours.iter().map(|one| one.behaviour.as_str());
    let names = names.chain(checked.chains.iter().map(|one| one.chain.as_str()));
    let meant =
        nearest(name, names).map_or_else(String::new, |name| format!(": did you mean {name}?"));
    Err(misuse(format!(
        "{} has no behaviour or chain {name}{meant}",
        checked.system
    )))
}
