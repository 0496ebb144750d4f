//! Is this host fit for real time: what stands in the way, why it matters, and how to change it.
//!
//! A finding follows from the description of the host alone, so that the findings of a results file are those of the host
//! that it was measured on.

use serde::{Deserialize, Serialize};

use crate::description::Host;

mod clocks;
mod cpus;
mod interference;
mod kernel;
mod memory;
mod network;
mod permissions;

/// One thing about the host that a real-time program should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A short name that scripts may compare: `fifo`, `preempt-rt`, ...
    pub id: String,
    /// What it is about.
    #[serde(default)]
    pub topic: Topic,
    /// How much it matters.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// Why it matters to a deadline.
    pub why: String,
    /// How to change it, or how to make it visible; empty when nothing needs to change.
    pub how: String,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Good,
    /// It cannot be seen from here.
    Unknown,
    /// Deadlines hold less surely, or later, than they could.
    Advice,
    /// Deadlines cannot be relied on while it is so.
    Unfit,
}

/// What findings are about, in the order in which they are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// How the kernel preempts and schedules.
    Kernel,
    /// What this process may do.
    Permissions,
    /// Memory that stays where it is.
    Memory,
    /// Who uses the CPUs, how fast they are and how deep they sleep.
    Cpus,
    /// Clocks and timers.
    Clocks,
    /// Who takes time from a program.
    Interference,
    /// What delays packets on their way through the host.
    Network,
    /// Of results that were written before findings had topics.
    #[default]
    Other,
}

impl Severity {
    /// The word that is printed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Unknown => "unknown",
            Self::Advice => "advice",
            Self::Unfit => "unfit",
        }
    }
}

impl Topic {
    /// The word that is printed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Permissions => "permissions",
            Self::Memory => "memory",
            Self::Cpus => "CPUs",
            Self::Clocks => "clocks",
            Self::Interference => "interference",
            Self::Network => "network",
            Self::Other => "other",
        }
    }
}

/// Every finding about a host, the gravest first, and those of a topic together.
#[must_use]
pub fn findings(host: &Host) -> Vec<Finding> {
    let topics = [
        (Topic::Kernel, kernel::findings(host)),
        (Topic::Permissions, permissions::findings(host)),
        (Topic::Memory, memory::findings(host)),
        (Topic::Cpus, cpus::findings(host)),
        (Topic::Clocks, clocks::findings(host)),
        (Topic::Interference, interference::findings(host)),
        (Topic::Network, network::findings(host)),
    ];
    let findings = topics.into_iter().flat_map(|(topic, found)| {
        let found = found.into_iter();
        found.map(move |finding| Finding { topic, ..finding })
    });
    let mut findings: Vec<Finding> = findings.collect();
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.topic));
    findings
}

/// Whether nothing found makes deadlines unreliable. What cannot be seen does not: it is said.
#[must_use]
pub fn is_fit(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.severity != Severity::Unfit)
}

/// What a finding is about, whatever is found.
#[derive(Clone, Copy, Debug)]
struct Subject {
    id: &'static str,
    why: &'static str,
}

impl Subject {
    const fn new(id: &'static str, why: &'static str) -> Self {
        Self { id, why }
    }

    fn good(self, what: impl Into<String>) -> Finding {
        self.finding(Severity::Good, what.into(), "")
    }

    /// `how` says how to make it visible.
    fn unknown(self, what: impl Into<String>, how: impl Into<String>) -> Finding {
        self.finding(Severity::Unknown, what.into(), how)
    }

    fn advice(self, what: impl Into<String>, how: impl Into<String>) -> Finding {
        self.finding(Severity::Advice, what.into(), how)
    }

    fn unfit(self, what: impl Into<String>, how: impl Into<String>) -> Finding {
        self.finding(Severity::Unfit, what.into(), how)
    }

    fn finding(self, severity: Severity, what: String, how: impl Into<String>) -> Finding {
        Finding {
            id: self.id.to_owned(),
            // `findings` knows it.
            topic: Topic::default(),
            severity,
            what,
            why: self.why.to_owned(),
            how: how.into(),
        }
    }
}

#[cfg(test)]
mod tests;
