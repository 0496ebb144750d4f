//! What a reader who chooses a kernel needs first: how late each wakes the most urgent thread under each load, and why.

use rtorb_results::Results;
use rtorb_results::campaign::PREFIX;
use rtorb_results::summary::TitledTable;

use crate::campaign::{Beside, Explained};
use crate::matrix;

/// The top of a page of one campaign over kernels.
pub(crate) struct Headline<'a> {
    /// The section that it is from.
    pub(crate) anchor: String,
    pub(crate) matrix: TitledTable,
    /// The most important that follows.
    pub(crate) conclusions: &'a [String],
    pub(crate) explained: Vec<&'a Explained>,
}

impl<'a> Headline<'a> {
    /// None where there is no such experiment, or several: then no table is that of the page.
    pub(crate) fn of(shown: &[&'a Results], beside: &'a Beside) -> Option<Self> {
        let is_it =
            |results: &&&Results| results.experiment.strip_prefix(PREFIX) == Some(EXPERIMENT);
        let mut found = shown.iter().filter(is_it);
        let (results, None) = (found.next()?, found.next()) else {
            return None;
        };
        let conclusions = &results.conclusions;
        let mut explained = beside.of(results);
        explained.sort_by_key(|one| std::cmp::Reverse(one.explanation.value));
        Some(Self {
            anchor: crate::section::anchor(results),
            matrix: matrix::of(results)?,
            conclusions: conclusions.get(..CONCLUSIONS).unwrap_or(conclusions),
            explained,
        })
    }
}

pub(crate) const EXPERIMENT: &str = "os/wakeup";
const CONCLUSIONS: usize = 3;
