//! The change of a running system to another one: whether every deadline holds while jobs of both are there.
//!
//! The analysis checks one system that is at least as demanding as both at any time: each behaviour has the shorter period and
//! deadline, the longer execution and jitter, and the calls and sections of both. Each thread changes its priority at a time of its own, so
//! behaviours whose ranges from the old to the new priority overlap share one priority, and bounds hold for any order of equal
//! priorities. On a CPU that schedules by deadline, each behaviour keeps the deadline that orders its jobs: a later one would delay what
//! they release, and another one take a level more. The costs are those of the new platforms. Two things are assumed. A behaviour keeps the shorter of its two periods
//! between the last arrival of the old mode and the first of the new one. A request finds a thread of its lane, which has the larger
//! number of both modes meanwhile.

mod bands;
mod merge;
mod worse;

use std::collections::HashSet;

use thiserror::Error;

use super::check::{CheckOptions, ModelError, check};
use super::platform::Platform;
use super::report::CheckReport;
use super::system::System;
use crate::SearchLimits;
use crate::admission::{IN_TWO_STEPS, Refusal};

/// A system, its platforms and its bounds.
#[derive(Clone, Copy, Debug)]
pub struct SystemMode<'a> {
    /// The system.
    pub system: &'a System,
    /// The platform of each node.
    pub platforms: &'a [Platform],
    /// The priorities and bounds.
    pub report: &'a CheckReport,
}

/// Why there is no analysis of a change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransitionError {
    /// A part of the system cannot change while it runs.
    #[error("{0}")]
    Fixed(String),
    /// Both systems together cannot be analysed.
    #[error("the old and the new system together: {0}")]
    Model(#[from] ModelError),
}

/// The analysis of a change from one system to another.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemTransition {
    report: CheckReport,
    /// The names of the old behaviours.
    old: Vec<String>,
}

impl SystemTransition {
    /// Analyses the change from `old` to `new`. Behaviours of one name are the same behaviour.
    ///
    /// # Errors
    /// [`TransitionError`].
    pub fn between(
        old: SystemMode<'_>,
        new: SystemMode<'_>,
        limits: SearchLimits,
    ) -> Result<Self, TransitionError> {
        let (system, platforms) = merge::merged(old, new)?;
        let options = CheckOptions {
            sensitivity: false,
            limits,
            strategy: None,
        };
        let report = check(&system, &platforms, &options)?;
        check_deadlines(old.report, &report)?;
        check_deadlines(new.report, &report)?;
        let behaviours = old.system.behaviours.iter();
        Ok(Self {
            report,
            old: behaviours.map(|one| one.name.clone()).collect(),
        })
    }

    /// Returns why the change is refused; `None` if every deadline holds during it.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        Some(Refusal {
            remedies: vec![IN_TWO_STEPS.to_owned()],
            ..self.report.refusal()?
        })
    }

    /// Returns the longest time for which jobs of the old system may run: the largest bound on a response of its behaviours.
    /// `None` if one is unbounded.
    #[must_use]
    pub fn longest_ns(&self) -> Option<u64> {
        let behaviours = self.report.behaviours.iter();
        let old = behaviours.filter(|one| self.old.contains(&one.behaviour));
        let mut bounds = old.flat_map(|one| &one.by_root);
        bounds.try_fold(0, |longest: u64, (_, bound_ns)| {
            Some(longest.max((*bound_ns)?))
        })
    }
}

/// Checks that the deadlines that order the jobs of a mode are those in the report of both.
fn check_deadlines(mode: &CheckReport, both: &CheckReport) -> Result<(), TransitionError> {
    let known: HashSet<&(String, u64)> = deadlines(both).collect();
    match deadlines(mode).find(|one| !known.contains(one)) {
        None => Ok(()),
        Some((name, _)) => Err(fixed(
            &format!("the deadline of {name}, which orders its jobs,"),
            "no analysis covers jobs of both deadlines",
        )),
    }
}

fn deadlines(report: &CheckReport) -> impl Iterator<Item = &(String, u64)> {
    let components = report.loading.components.iter();
    components.flat_map(|component| &component.deadlines)
}

fn fixed(what: &str, because: &str) -> TransitionError {
    TransitionError::Fixed(format!(
        "{what} cannot change while the system runs, because {because}: restart it"
    ))
}

#[cfg(test)]
mod tests;
