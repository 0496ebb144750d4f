//! One experiment on the page, and its line in the overview.

use rtorb_results::judgement_views;
use rtorb_results::summary::{self, TitledTable};
use rtorb_results::table::Table;
use rtorb_results::{Claim, Results, Verdicts};

use crate::campaign::{Beside, CampaignPart, Explained, is_emulated};
use crate::figures::{self, Figure};
use crate::host_rows;
use crate::hosts::HostPart;
use crate::moment::said;

/// One experiment on the page.
pub(crate) struct Section<'a> {
    pub(crate) results: &'a Results,
    pub(crate) anchor: String,
    /// The host, where the page has several.
    pub(crate) host: String,
    pub(crate) real_time: bool,
    /// The campaign, where the page has several.
    pub(crate) campaign: String,
    /// What a reader must know of the unit; empty where everybody does.
    pub(crate) legend: &'static str,
    pub(crate) explained: Vec<&'a Explained>,
    /// The tables that it asks for; that of the medians where it asks for none.
    pub(crate) tables: Vec<TitledTable>,
    pub(crate) medians: Table,
    pub(crate) tails: Table,
    pub(crate) figures: Vec<Figure>,
}

impl<'a> Section<'a> {
    pub(crate) fn of(
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
            campaign: if campaigns.len() > 1 && results.emulation.is_some() {
                results.run.clone()
            } else {
                String::new()
            },
            legend: results.time_unit().legend(),
            explained: beside.of(results),
            medians: if tables.is_empty() {
                summary::medians(results)
            } else {
                Table::default()
            },
            tables,
            tails: summary::tails(results),
            figures: figures::figures(results),
        }
    }

    /// What was found, in a sentence.
    pub(crate) fn finding(&self) -> Option<String> {
        summary::finding(self.results)
    }

    pub(crate) fn missed(&self) -> impl Iterator<Item = &Claim> {
        self.results.claims.iter().filter(|claim| claim.is_missed())
    }

    /// Processes that were not scheduled in real time: shown in plain sight.
    pub(crate) fn not_real_time(&self) -> Vec<String> {
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
    pub(crate) fn counts(&self) -> bool {
        !self.results.series.is_empty() && summary::calls(self.results).next().is_none()
    }

    /// Whether its times are counts of instructions.
    pub(crate) fn is_emulated(&self) -> bool {
        is_emulated(self.results)
    }

    /// How many seeds each case had.
    pub(crate) fn seeds(&self) -> u16 {
        let emulation = self.results.emulation.as_ref();
        emulation.map_or(0, |emulation| emulation.seeds)
    }

    /// The other hosts on which servers ran, in words.
    pub(crate) fn server_hosts(&self) -> Vec<String> {
        let first = self.results.server_host.iter();
        let all = first.chain(&self.results.further_hosts).map(|host| {
            let name = host.name.as_deref().unwrap_or("a host without a name");
            format!("{name}: {}", host_rows::line(host))
        });
        all.collect()
    }

    /// Whether every value was measured once, as sizes are.
    pub(crate) fn is_of_single_values(&self) -> bool {
        self.results.series.iter().all(|series| series.count <= 1)
    }

    pub(crate) fn started(&self) -> String {
        said(&self.results.started)
    }

    pub(crate) fn duration(&self) -> String {
        format!("{:.0} s", self.results.duration_s)
    }

    pub(crate) fn samples(&self) -> u64 {
        let counts = self.results.series.iter().map(|series| series.count);
        if self.counts() {
            counts.max().unwrap_or(0)
        } else {
            counts.sum()
        }
    }

    pub(crate) fn wrong(&self) -> u64 {
        let all = summary::wrong_answers(self.results).into_iter();
        all.map(|(_, wrong)| wrong).sum()
    }

    pub(crate) fn verdicts(&self) -> Verdicts {
        Verdicts::of(&self.results.claims)
    }
}

/// How the page refers to the section of these results.
pub(crate) fn anchor(results: &Results) -> String {
    results.experiment.replace('/', "-")
}
