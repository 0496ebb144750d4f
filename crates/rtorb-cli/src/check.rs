//! `rtorb check`: is this host fit for real time, and what to change.

use std::process::ExitCode;

use clap::Args;
use rtorb_lab::host::Host;
use rtorb_lab::preflight::{self, Finding, Severity};
use serde_json::json;

use crate::NO;
use crate::output::{line, print_json};

/// Tell whether this host is fit for real time, and what to change.
///
/// Exit status 0 means fit, 1 not fit.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Print one JSON object: fit, findings, host.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let host = Host::describe();
        let findings = preflight::findings(&host);
        let fit = preflight::is_fit(&findings);
        if self.json {
            print_json(&json!({ "fit": fit, "findings": findings, "host": host }))?;
        } else {
            print_findings(&host, &findings)?;
            line(if fit {
                "This host is fit for real time."
            } else {
                "This host is not fit for real time."
            })?;
        }
        Ok(if fit {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(NO)
        })
    }
}

fn print_findings(host: &Host, findings: &[Finding]) -> anyhow::Result<()> {
    line(format!(
        "{} {}, {} CPUs",
        host.kernel_release, host.kernel_version, host.cpus_online
    ))?;
    for finding in findings {
        line(format!("{:>6}  {}", finding.severity.word(), finding.what))?;
        if finding.severity != Severity::Good {
            line(format!("        why: {}", finding.why))?;
            line(format!("        how: {}", finding.how))?;
        }
    }
    line("")
}
