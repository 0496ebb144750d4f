//! `rtorb check`: checks whether this host is fit for real time.

use std::process::ExitCode;

use clap::Args;
use rtorb_host::Host;
use rtorb_host::preflight::{self, Finding, Severity, Topic};
use serde_json::json;

use crate::colour::Tone;
use crate::exit_status::FAILED;
use crate::output::{columns, indented, line_in, print_json};

/// Check whether this host is fit for real time, and list what to change.
///
/// The command changes nothing on the host. Exit status 0: fit. 1: not fit. docs/reference/check.md explains each finding.
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
            for text in lines(&host, &findings, columns()) {
                line_in(tone(&text), text)?;
            }
        }
        Ok(if fit {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }
}

/// Returns the tone of a heading, or of the verdict.
fn tone(line: &str) -> Tone {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|begin| line.starts_with(begin));
    if begins(&["UNFIT", "This host is not"]) {
        Tone::Bad
    } else if begins(&["ADVICE", "UNKNOWN"]) {
        Tone::Doubt
    } else if begins(&["GOOD", "This host is fit"]) {
        Tone::Good
    } else {
        Tone::Plain
    }
}

/// Formats the findings as text, the gravest first, in lines of at most `width` columns.
fn lines(host: &Host, findings: &[Finding], width: usize) -> Vec<String> {
    let mut lines = about(host, width);
    for (severity, title) in GRAVE {
        let found = findings
            .iter()
            .filter(|finding| finding.severity == severity);
        for (index, finding) in found.enumerate() {
            if index == 0 {
                lines.push(String::new());
                lines.extend(indented(title, ["", ""], width));
            }
            lines.extend(grave(finding, width));
        }
    }
    lines.extend(good(findings, width));
    lines.push(String::new());
    lines.extend(indented(&verdict(findings), ["", ""], width));
    lines
}

fn about(host: &Host, width: usize) -> Vec<String> {
    let cpu = host.cpu_model.as_deref().unwrap_or(&host.machine);
    let mut text = format!(
        "Linux {} {}, {}, {} x {cpu}",
        host.kernel_release, host.kernel_version, host.machine, host.cpus_online
    );
    if let Some(cpu) = host.cpu_measured {
        text.push_str(&format!("; measured on CPU {cpu}"));
    }
    indented(&text, ["", ""], width)
}

/// Formats what was found, why it matters and how to change it.
fn grave(finding: &Finding, width: usize) -> Vec<String> {
    let what = format!("{}: {}", finding.topic.word(), finding.what);
    let mut lines = indented(&what, ["  * ", "    "], width);
    lines.extend(indented(
        &finding.why,
        ["      why: ", "           "],
        width,
    ));
    lines.extend(indented(
        &finding.how,
        ["      how: ", "           "],
        width,
    ));
    lines
}

/// Formats the findings that need no change, a paragraph for each topic.
fn good(findings: &[Finding], width: usize) -> Vec<String> {
    let good: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Good)
        .collect();
    let mut lines = Vec::new();
    if !good.is_empty() {
        lines.extend([String::new(), GOOD.to_owned()]);
    }
    for topic in TOPICS {
        let of_topic = good.iter().filter(|finding| finding.topic == topic);
        let found: Vec<&str> = of_topic.map(|finding| finding.what.as_str()).collect();
        if !found.is_empty() {
            let text = format!("{}: {}", topic.word(), found.join("; "));
            lines.extend(indented(&text, ["  * ", "    "], width));
        }
    }
    lines
}

fn verdict(findings: &[Finding]) -> String {
    let count = |severity| {
        let of_severity = findings
            .iter()
            .filter(|finding| finding.severity == severity);
        of_severity.count()
    };
    let verdict = if preflight::is_fit(findings) {
        "This host is fit for real time"
    } else {
        "This host is not fit for real time"
    };
    format!(
        "{verdict}: {} unfit, {} to improve, {} unknown, {} good.",
        count(Severity::Unfit),
        count(Severity::Advice),
        count(Severity::Unknown),
        count(Severity::Good)
    )
}

const GRAVE: [(Severity, &str); 3] = [
    (
        Severity::Unfit,
        "UNFIT: deadlines are not reliable until this is changed",
    ),
    (
        Severity::Advice,
        "ADVICE: changes that make deadlines safer or shorter",
    ),
    (Severity::Unknown, "UNKNOWN: cannot be read from here"),
];
const GOOD: &str = "GOOD: needs no change";
const TOPICS: [Topic; 8] = [
    Topic::Kernel,
    Topic::Permissions,
    Topic::Memory,
    Topic::Cpus,
    Topic::Clocks,
    Topic::Interference,
    Topic::Network,
    Topic::Other,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal() {
        let host = Host::describe();
        let findings = preflight::findings(&host);
        for width in [60, 80, 100] {
            for line in lines(&host, &findings, width) {
                let one_word = line.split_whitespace().count() <= 2;
                assert!(line.chars().count() <= width || one_word, "{width}: {line}");
            }
        }
    }

    #[test]
    fn lists_every_finding_and_the_gravest_first() {
        let host = Host::describe();
        let of = |id: &str, severity| Finding {
            id: id.to_owned(),
            topic: Topic::Memory,
            severity,
            what: format!("what {id}"),
            why: format!("why {id}"),
            how: format!("how {id}"),
        };
        let mut findings = vec![
            of("a", Severity::Unfit),
            of("b", Severity::Advice),
            of("c", Severity::Unknown),
            of("d", Severity::Good),
            of("e", Severity::Good),
        ];
        let text = lines(&host, &findings, 100).join("\n");
        let places = [
            "what a",
            "why a",
            "how a",
            "what b",
            "how b",
            "what c",
            "what d; what e",
        ]
        .map(|words| {
            text.find(words)
                .unwrap_or_else(|| panic!("{words}: {text}"))
        });
        assert!(places.is_sorted(), "{text}");
        assert!(text.ends_with(
            "This host is not fit for real time: 1 unfit, 1 to improve, 1 unknown, 2 good."
        ));
        findings.remove(0);
        let text = lines(&host, &findings, 80).join("\n");
        assert!(text.contains("This host is fit") && !text.contains("UNFIT"));
    }
}
