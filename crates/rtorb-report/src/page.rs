//! The page that people read: one file, no network, for phones and wide screens, light and dark.

use std::path::{Path, PathBuf};

use askama::Template;
use rtorb_results::campaign::PREFIX;
use rtorb_results::{Claim, ExperimentFailure, Results, Verdict, write_atomically};

use crate::answer::Answer;
use crate::campaign::{Beside, CampaignPart};
use crate::groups::Group;
use crate::headline::Headline;
use crate::hosts::HostPart;
use crate::moment::said;
use crate::section::Section;

/// Which run a page is of.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What its results have as `run`.
    pub id: &'a str,
    /// The experiments of this run that could not be measured.
    pub failures: &'a [ExperimentFailure],
    /// The names of all experiments in the order in which they are shown.
    pub order: &'a [&'a str],
}

/// Writes `index.html` in a folder from all results below it, whenever and wherever measured, and answers its path. Experiments are
/// shown in the order of these names, and others after them.
///
/// # Errors
/// That there are no results, or what the file system said.
pub fn write(folder: &Path, order: &[&str]) -> std::io::Result<PathBuf> {
    let all = Results::read_folder(folder)?;
    let beside = Beside::read(folder);
    write_page(
        folder,
        &render_page((all.iter().collect(), Vec::new()), &[], order, &beside)?,
    )
}

/// Writes `index.html` in a folder from the results of one run below it, and answers its path. Those of other runs are only named.
///
/// # Errors
/// That the run left no results there, or what the file system said.
pub fn write_run(folder: &Path, run: &Run<'_>) -> std::io::Result<PathBuf> {
    write_page(folder, &render_run(&Results::read_folder(folder)?, run)?)
}

/// The page of all these results.
///
/// # Errors
/// That there are none.
pub fn render(all: &[Results], order: &[&str]) -> std::io::Result<String> {
    render_page(
        (all.iter().collect(), Vec::new()),
        &[],
        order,
        &Beside::default(),
    )
}

/// The page of those of these results that are of one run.
///
/// # Errors
/// That there are none.
pub fn render_run(all: &[Results], run: &Run<'_>) -> std::io::Result<String> {
    let shown_and_others = all.iter().partition(|results| results.run == run.id);
    render_page(
        shown_and_others,
        run.failures,
        run.order,
        &Beside::default(),
    )
}

fn render_page(
    (mut shown, mut others): (Vec<&Results>, Vec<&Results>),
    failures: &[ExperimentFailure],
    order: &[&str],
    beside: &Beside,
) -> std::io::Result<String> {
    in_order(&mut shown, order);
    in_order(&mut others, order);
    if shown.is_empty() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "there are no results",
        ));
    }
    // The clock of an emulated machine says nothing of when it ran.
    let timed: Vec<&Results> = shown
        .iter()
        .copied()
        .filter(|results| !crate::campaign::is_emulated(results))
        .collect();
    let moment = |moment: Option<&String>| moment.map(|moment| said(moment)).unwrap_or_default();
    let hosts = crate::hosts::of(&timed);
    let campaigns = crate::campaign::of(&shown, beside);
    let sections: Vec<Section> = shown
        .iter()
        .map(|results| Section::of(results, &hosts, (&campaigns, beside)))
        .collect();
    let has_figures = sections.iter().any(|section| !section.figures.is_empty());
    let page = Page {
        first: moment(timed.iter().map(|results| &results.started).min()),
        last: moment(timed.iter().map(|results| &results.started).max()),
        runs: runs(&timed),
        is_emulated: timed.len() < shown.len(),
        answer: Answer::of(&shown),
        headline: Headline::of(&shown, beside),
        groups: crate::groups::of(sections),
        hosts,
        campaigns,
        others,
        failures,
        plotly_script: if has_figures {
            plotly_script()
        } else {
            String::new()
        },
    };
    page.render().map_err(std::io::Error::other)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    /// When the first and the last experiment began; empty where all were run in virtual time.
    first: String,
    last: String,
    /// How many runs the results are of.
    runs: usize,
    /// What a reader asks first, where calls were timed.
    answer: Option<Answer>,
    /// What kernels are chosen by, where the page is of one campaign over them.
    headline: Option<Headline<'a>>,
    groups: Vec<Group<'a>>,
    hosts: Vec<HostPart<'a>>,
    /// Whether there are results of an emulated machine.
    is_emulated: bool,
    campaigns: Vec<CampaignPart<'a>>,
    /// Results beside these that are not shown.
    others: Vec<&'a Results>,
    failures: &'a [ExperimentFailure],
    plotly_script: String,
}

impl Page<'_> {
    /// Every claim that is missed, with its section.
    fn missed(&self) -> Vec<(&Section<'_>, &Claim)> {
        let sections = self.groups.iter().flat_map(|group| &group.sections);
        let missed =
            sections.flat_map(|section| section.missed().map(move |claim| (section, claim)));
        missed.collect()
    }

    fn said(moment: &str) -> String {
        said(moment)
    }
}

/// In the order of a run; what this program does not know comes last. Of kernels, what they are chosen by comes first.
fn in_order(results: &mut [&Results], order: &[&str]) {
    let place = |results: &Results| {
        let name = results.experiment.as_str();
        let of_kernels = name.strip_prefix(PREFIX);
        let name = of_kernels.unwrap_or(name);
        let known = order.iter().position(|known| *known == name);
        (
            of_kernels.is_some() && name != crate::headline::EXPERIMENT,
            known.unwrap_or(order.len()),
        )
    };
    results.sort_by_key(|results| place(results));
}

fn runs(results: &[&Results]) -> usize {
    let mut ids: Vec<&str> = results.iter().map(|results| results.run.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

fn write_page(folder: &Path, page: &str) -> std::io::Result<PathBuf> {
    let path = folder.join("index.html");
    write_atomically(&path, page.as_bytes())?;
    Ok(path)
}

/// The plotting library's own script, without the one for formulas that it comes with.
fn plotly_script() -> String {
    let scripts = plotly::Plot::offline_js_sources();
    scripts
        .find(SCRIPT_END)
        .map(|end| scripts[..end + SCRIPT_END.len()].to_owned())
        .unwrap_or(scripts)
}

const SCRIPT_END: &str = "</script>";
