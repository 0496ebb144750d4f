//! One experiment on the page, and its line in the overview.

use super::figures::{self, Figure};
use super::hosts::HostPart;
use super::{host_rows, said};
use crate::results::Results;
use crate::results::summary::{self, Table};

/// One experiment on the page.
pub(super) struct Section<'a> {
    pub(super) results: &'a Results,
    pub(super) anchor: String,
    /// The host, where the page has several.
    pub(super) host: String,
    pub(super) real_time: bool,
    pub(super) medians: Table,
    pub(super) tails: Table,
    pub(super) figures: Vec<Figure>,
}

impl<'a> Section<'a> {
    pub(super) fn of(results: &'a Results, hosts: &[HostPart<'_>]) -> Self {
        let host = hosts.iter().find(|host| host.is_of(results));
        Self {
            results,
            anchor: results.experiment.replace('/', "-"),
            host: host.map(|host| host.name.clone()).unwrap_or_default(),
            real_time: results.is_real_time(),
            medians: summary::medians(results),
            tails: summary::tails(results),
            figures: figures::figures(results),
        }
    }

    /// Processes that were not scheduled in real time: shown in plain sight.
    pub(super) fn not_real_time(&self) -> Vec<String> {
        let processes = self
            .results
            .scheduling
            .iter()
            .filter(|process| !process.real_time);
        let describe = processes.map(|process| {
            format!(
                "{}: {}, CPUs {}",
                process.process, process.policy, process.cpus
            )
        });
        describe.collect()
    }

    /// Whether it counts, and times nothing.
    pub(super) fn counts(&self) -> bool {
        !self.results.series.is_empty() && summary::calls(self.results).next().is_none()
    }

    /// The other host, in words, where servers ran on one.
    pub(super) fn server_host(&self) -> Option<String> {
        let host = self.results.server_host.as_ref()?;
        let name = host.name.as_deref().unwrap_or("a host without a name");
        Some(format!("{name}: {}", host_rows::line(host)))
    }

    /// Whether every value was measured once, as sizes are.
    pub(super) fn is_of_single_values(&self) -> bool {
        self.results.series.iter().all(|series| series.count <= 1)
    }

    pub(super) fn started(&self) -> String {
        said(&self.results.started)
    }

    pub(super) fn duration(&self) -> String {
        format!("{:.0} s", self.results.duration_s)
    }

    pub(super) fn samples(&self) -> u64 {
        let counts = self.results.series.iter().map(|series| series.count);
        match self.counts() {
            // The same requests are counted in many ways.
            true => counts.max().unwrap_or(0),
            false => counts.sum(),
        }
    }

    pub(super) fn wrong(&self) -> u64 {
        self.results.series.iter().map(|series| series.wrong).sum()
    }

    pub(super) fn held(&self) -> usize {
        self.results
            .targets
            .iter()
            .filter(|target| target.holds)
            .count()
    }

    pub(super) fn missed(&self) -> usize {
        self.results.targets.len() - self.held()
    }
}
