//! One experiment on the page, and its line in the overview.

use rtorb_results::judgement_views;
use rtorb_results::summary::{self, Table, TitledTable};
use rtorb_results::{Results, Verdicts};

use super::campaign::{Beside, CampaignPart, Explained, is_emulated};
use super::figures::{self, Figure};
use super::hosts::HostPart;
use super::{host_rows, said};

/// One experiment on the page.
pub(super) struct Section<'a> {
    pub(super) results: &'a Results,
    pub(super) anchor: String,
    /// The host, where the page has several.
    pub(super) host: String,
    pub(super) real_time: bool,
    /// The campaign, where the page has several.
    pub(super) campaign: String,
    /// What a reader must know of the unit; empty where everybody does.
    pub(super) legend: &'static str,
    pub(super) explained: Vec<&'a Explained>,
    /// The tables that it asks for; that of the medians where it asks for none.
    pub(super) tables: Vec<TitledTable>,
    pub(super) medians: Table,
    pub(super) tails: Table,
    pub(super) figures: Vec<Figure>,
}

impl<'a> Section<'a> {
    pub(super) fn of(
        results: &'a Results,
        hosts: &[HostPart<'_>],
        (campaigns, beside): (&[CampaignPart<'_>], &'a Beside),
    ) -> Self {
        let mut tables = summary::tables(results);
        tables.extend(results.judgement.iter().flat_map(judgement_views::tables));
        let host = hosts.iter().find(|host| host.is_of(results));
        Self {
            results,
            anchor: anchor(results),
            host: host.map(|host| host.name.clone()).unwrap_or_default(),
            real_time: results.is_real_time(),
            campaign: match campaigns.len() > 1 && results.emulation.is_some() {
                true => results.run.clone(),
                false => String::new(),
            },
            legend: results.time_unit().legend(),
            explained: beside.of(results),
            medians: match tables.is_empty() {
                true => summary::medians(results),
                false => Table::default(),
            },
            tables,
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

    /// Whether its times are counts of instructions.
    pub(super) fn is_emulated(&self) -> bool {
        is_emulated(self.results)
    }

    /// How many seeds each case had.
    pub(super) fn seeds(&self) -> u16 {
        let emulation = self.results.emulation.as_ref();
        emulation.map_or(0, |emulation| emulation.seeds)
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

    pub(super) fn verdicts(&self) -> Verdicts {
        Verdicts::of(&self.results.claims)
    }
}

/// How the page refers to the section of these results.
pub(super) fn anchor(results: &Results) -> String {
    results.experiment.replace('/', "-")
}
