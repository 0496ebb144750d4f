//! `rtorb model check`: checks whether every deadline holds, before anything runs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb_lab::model::loading;
use rtorb_sched::model::{CheckReport, Standing};
use rtorb_sched::text_file::nearest;

use super::{Analysis, answer};
use crate::exit_status::FAILED;
use crate::orb_options::usage;
use crate::output::{line, print_json};

/// Bound every response, end-to-end chain and cause-effect chain of a system, and check whether every deadline and limit holds.
///
/// Prints the slack, the permitted growth of each behaviour, the share of each layer (application, ORB, operating system,
/// hardware) in every bound, and the lanes, bands and priorities of the ORBs.
///
/// Exit status 0: every deadline and limit holds. 1: one will be missed (the first one is named) or is not proven to hold. 2: the
/// file is wrong, or a node has no profile.
#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    analysis: Analysis,
    /// Show every share of the bound of this behaviour or chain, and nothing else.
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    explain: Option<String>,
    /// Write the ORBs' configuration: DIR/COMPONENT.orb.toml for -ORBConfigFile, DIR/priorities.toml for programs and channels,
    /// and the report, DIR/check.json.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the report as one JSON object.
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
            Standing::Misses | Standing::NotProven => ExitCode::from(FAILED),
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
    let cause_effect = checked.cause_effect_chains.iter();
    if let Some(one) = cause_effect.clone().find(|one| one.chain == name) {
        return answer::print_cause_effect_chain(one);
    }
    let names = checked.behaviours.iter().map(|one| one.behaviour.as_str());
    let names = names.chain(checked.chains.iter().map(|one| one.chain.as_str()));
    let names = names.chain(cause_effect.map(|one| one.chain.as_str()));
    let meant =
        nearest(name, names).map_or_else(String::new, |name| format!(": did you mean {name}?"));
    Err(usage(format!(
        "{} has no behaviour or chain {name}{meant}",
        checked.system
    )))
}
