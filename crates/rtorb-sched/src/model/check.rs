//! Priorities, bounds, and what they are made of: the answer of the model.

mod advice;
mod blocking;
mod goals;
mod growth;
mod judged;
mod loading;
mod order;
mod priorities;
mod shares;
mod steps;
mod used;
mod words;

use thiserror::Error;

use super::checked::{Checked, Standing};
use super::compose::{ComposeError, compose};
use super::composed::Composed;
use super::platform::Platform;
use super::system::System;
use crate::Limits;
use crate::levels::Strategy;
use goals::Goals;
use steps::View;

/// How a system is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Whether to find out how much longer each behaviour may execute (default: yes).
    pub sensitivity: bool,
    /// How long the analysis may search.
    pub limits: Limits,
    /// How priorities are made where the file gives none; `None` takes the file's way.
    pub strategy: Option<Strategy>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            sensitivity: true,
            limits: Limits::default(),
            strategy: None,
        }
    }
}

/// Why a system cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// It cannot be composed with the platforms.
    #[error(transparent)]
    Compose(#[from] ComposeError),
    /// The strategy gives no fixed priorities.
    #[error(
        "{strategy} gives no fixed priorities, which RT-CORBA has: choose rms, dms, muf or optimal; where the earliest deadline \
         shall go first, say `scheduling = \"edf\"` of the node"
    )]
    Strategy {
        /// What was asked for.
        strategy: Strategy,
    },
    /// The range of priorities is none.
    #[error(
        "`priorities` from {least_urgent} to {most_urgent} are none: CORBA priorities are 0 to 32767, the least urgent first"
    )]
    Range {
        /// The first.
        least_urgent: i32,
        /// The last.
        most_urgent: i32,
    },
    /// There are more levels than priorities for them.
    #[error("{}", too_few(*needed, *free, (*above, *below), *range))]
    Priorities {
        /// How many levels go there.
        needed: u32,
        /// How many priorities are free there.
        free: u32,
        /// The given priority above them, if there is one.
        above: Option<i16>,
        /// The given priority below them, if there is one.
        below: Option<i16>,
        /// What may be given out.
        range: (i16, i16),
    },
}

fn too_few(
    needed: u32,
    free: u32,
    (above, below): (Option<i16>, Option<i16>),
    range: (i16, i16),
) -> String {
    let place = match (above, below) {
        (Some(above), Some(below)) => format!(" between {above} and {below}, which are given"),
        (Some(above), None) => format!(" below {above}, which is given"),
        (None, Some(below)) => format!(" above {below}, which is given"),
        (None, None) => String::new(),
    };
    let are = if needed == 1 {
        "priority is"
    } else {
        "priorities are"
    };
    let is = if free == 1 { "is" } else { "are" };
    format!(
        "{needed} {are} needed{place}, and {free} {is} free there, for `priorities` allows {} to {}: allow more, move given ones \
         apart, or let behaviours share periods, deadlines or criticalities; rms needs the fewest",
        range.0, range.1
    )
}

/// Checks a system on platforms, one for each of its nodes, in order: whether every deadline holds.
///
/// # Errors
/// [`ModelError`] if it cannot be composed with them, or there are no priorities to give.
pub fn check(
    system: &System,
    platforms: &[Platform],
    options: &CheckOptions,
) -> Result<Checked, ModelError> {
    check_composed(system, &compose(system, platforms)?, options)
}

/// Checks a system that was composed with its platforms: gives priorities to those that have none, bounds every response and chain, and
/// says what the bounds are made of and what the ORBs load.
///
/// # Errors
/// [`ModelError`] if there are no priorities to give.
pub fn check_composed(
    system: &System,
    composed: &Composed,
    options: &CheckOptions,
) -> Result<Checked, ModelError> {
    let goals = Goals::new(system, composed);
    let view = View::new(system, composed, &goals, options.limits);
    let strategy = options.strategy.unwrap_or(system.strategy);
    let (analysed, about) = order::analysed(&view, strategy)?;
    let mut behaviours = judged::behaviours(&view, &analysed);
    let mut chains = judged::chains(&view, &analysed);
    if options.sensitivity {
        growth::add(&view, &analysed, &mut behaviours);
    }
    words::explain(&view, &analysed, &mut behaviours, &mut chains);
    let all = behaviours.iter().map(|each| each.standing);
    let all = all.chain(chains.iter().map(|each| each.standing));
    let processors = used::processors(&view, &analysed);
    let mut assumptions = composed.assumptions.clone();
    assumptions.extend(used::assumptions(&processors));
    assumptions.extend(words::of_priorities(&view, &analysed, about));
    Ok(Checked {
        schema: "rtorb-model/1",
        system: system.name.clone(),
        standing: all.max().unwrap_or(Standing::Holds),
        first_miss: judged::first_miss(&view, &behaviours, &chains),
        strategy: strategy.to_string(),
        processors,
        loading: loading::loading(&view, &analysed),
        behaviours,
        chains,
        assumptions,
    })
}
