//! Explains the samples that are the bounds of the user's own programs, so that a baseline has the functions that they were spent in.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rtorb_lab::LabError;
use rtorb_lab::experiments::own_program;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::explanation::{Explanation, Sample};

use super::of_campaign::{CampaignFiles, Candidate, Here, samples_of};
use crate::baseline::BoundKey;
use crate::campaign::Record;
use crate::initramfs::OwnFile;

/// Which bounds.
#[derive(Clone, Debug)]
pub struct BoundsRequest {
    /// The campaign's folder.
    pub folder: PathBuf,
    /// The guests' program; `None` finds it.
    pub program: Option<PathBuf>,
    /// The programs, in the campaign's order.
    pub own_programs: Vec<OwnFile>,
    /// Only these; `None` is for all of the programs.
    pub only: Option<BTreeSet<BoundKey>>,
}

/// A bound, and its explanation or why it has none.
pub type ExplainedBound = (BoundKey, Result<Explanation, LabError>);

/// Explains the slowest sample of each of these bounds, and writes the files as [`super::explain`] does.
///
/// # Errors
/// That there is no campaign, or that no boot of it can be repeated here; or the interrupt.
pub fn explain_bounds(
    request: &BoundsRequest,
    executable: &Path,
    interrupt: &Interrupt,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<ExplainedBound>, LabError> {
    let record = Record::read(&request.folder)?;
    let (mut bounds, left_out) = bounds(request, &record);
    if bounds.is_empty() {
        return Ok(Vec::new());
    }
    let files = CampaignFiles {
        folder: &request.folder,
        program: request.program.as_deref(),
        own_programs: &request.own_programs,
    };
    let here = Here::find(files, &record, executable, interrupt)?;
    let explained = here.explain_all(&bounds, note)?;
    let of_none = left_out.iter().map(|_| {
        let what = format!("the {BOUNDS_MAX} longest bounds alone are explained");
        Err(LabError::Incomplete { what })
    });
    let explained: Vec<_> = explained.into_iter().chain(of_none).collect();
    bounds.extend(left_out);
    let keys = bounds.iter().map(Candidate::bound);
    Ok(keys.zip(explained).collect())
}

/// The bounds that are asked for, the longest first, and those that are too many.
fn bounds(request: &BoundsRequest, record: &Record) -> (Vec<Candidate>, Vec<Candidate>) {
    let experiments = record.identity.experiments.iter();
    let own = experiments.filter(|name| name.starts_with(own_program::PREFIX));
    let samples =
        own.flat_map(|name| samples_of(&request.folder, &record.identity, (name, Sample::Worst)));
    let only = request.only.as_ref();
    let mut wanted: Vec<_> = samples
        .filter(|one| only.is_none_or(|only| only.contains(&one.bound())))
        .collect();
    wanted.sort_by_key(|one| Reverse(one.value));
    let left_out = wanted.split_off(wanted.len().min(BOUNDS_MAX));
    (wanted, left_out)
}

/// Each takes a boot.
const BOUNDS_MAX: usize = 32;
