//! The check of a system: priorities, bounds and their shares.

mod advice;
mod blocking;
mod bounds;
mod cause_effect;
mod explanations;
mod goals;
mod growth;
mod loading;
mod order;
mod priorities;
mod processor_use;
mod shares;
mod steps;
mod suspensions;

use core::fmt;

use thiserror::Error;

use super::compose::{ComposeError, compose};
use super::composition::Composition;
use super::platform::Platform;
use super::report::{CheckReport, Standing};
use super::system::System;
use crate::SearchLimits;
use crate::levels::Strategy;
pub(super) use advice::remedies;
use goals::Goals;
use steps::{Analysis, View};

/// The options of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Whether to compute how much each behaviour's execution may grow (default: yes).
    pub sensitivity: bool,
    /// The limits of every search.
    pub limits: SearchLimits,
    /// The strategy for behaviours without a priority; `None` takes the file's.
    pub strategy: Option<Strategy>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            sensitivity: true,
            limits: SearchLimits::default(),
            strategy: None,
        }
    }
}

/// An error of a check.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The system does not fit the platforms.
    #[error(transparent)]
    Compose(#[from] ComposeError),
    /// The strategy assigns no fixed priorities.
    #[error(
        "{strategy} assigns no fixed priorities, and RT-CORBA has no others: choose rms, dms, muf or optimal. For earliest \
         deadline first, write `scheduling = \"edf\"` at the node"
    )]
    Strategy {
        /// The requested strategy.
        strategy: Strategy,
    },
    /// The range of priorities is invalid.
    #[error(
        "`priorities` from {least_urgent} to {most_urgent} is not a range: CORBA priorities are 0 to 32767, and the least urgent comes first"
    )]
    Range {
        /// The least urgent priority.
        least_urgent: i32,
        /// The most urgent priority.
        most_urgent: i32,
    },
    /// There are more levels than free priorities.
    #[error(transparent)]
    Priorities(#[from] TooFewPriorities),
}

/// More levels of one place in the order than free CORBA priorities there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewPriorities {
    /// How many priorities the levels need.
    pub needed: u32,
    /// How many priorities are free.
    pub free: u32,
    /// The priority above them that the file gives, if there is one.
    pub above: Option<i16>,
    /// The priority below them that the file gives, if there is one.
    pub below: Option<i16>,
    /// The least urgent priority that may be assigned.
    pub least_urgent: i16,
    /// The most urgent priority that may be assigned.
    pub most_urgent: i16,
}

impl core::error::Error for TooFewPriorities {}

impl fmt::Display for TooFewPriorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let are = if self.needed == 1 {
            "priority is"
        } else {
            "priorities are"
        };
        write!(f, "{} {are} needed", self.needed)?;
        match (self.above, self.below) {
            (Some(above), Some(below)) => write!(f, " between the given {above} and {below}")?,
            (Some(above), None) => write!(f, " below the given {above}")?,
            (None, Some(below)) => write!(f, " above the given {below}")?,
            (None, None) => {}
        }
        let is = if self.free == 1 { "is" } else { "are" };
        write!(
            f,
            ", but {} {is} free there: `priorities` allows {} to {}. Allow more, move the given ones apart, or let behaviours share \
             periods, deadlines or criticalities; rms needs the fewest",
            self.free, self.least_urgent, self.most_urgent
        )
    }
}

/// Checks whether a system meets every deadline on its platforms. `platforms` holds one for each node, in order.
///
/// # Errors
/// [`ModelError`] if the system does not fit the platforms, or priorities cannot be assigned.
pub fn check(
    system: &System,
    platforms: &[Platform],
    options: &CheckOptions,
) -> Result<CheckReport, ModelError> {
    check_composed(system, &compose(system, platforms)?, options)
}

/// Checks a composed system: assigns priorities to behaviours without one, bounds every response and chain, and reports the
/// shares of the bounds and the configuration of the ORBs.
///
/// # Errors
/// [`ModelError`] if priorities cannot be assigned.
pub fn check_composed(
    system: &System,
    composition: &Composition,
    options: &CheckOptions,
) -> Result<CheckReport, ModelError> {
    let goals = Goals::new(system, composition);
    let strategy = options.strategy.unwrap_or(system.strategy);
    let mut longer: Option<Composition> = None;
    let mut round = 0;
    loop {
        let composition = longer.as_ref().unwrap_or(composition);
        let view = View::new(system, composition, &goals, options.limits);
        let (analysis, about) = order::analysis(&view, strategy)?;
        match suspensions::longer(&view, &analysis, round) {
            None => {
                let found = (&analysis, about);
                return Ok(report(&view, found, strategy, options.sensitivity));
            }
            next => longer = next,
        }
        round += 1;
    }
}

/// Reports an analysis, and a remark on the search for priorities.
fn report(
    view: &View<'_>,
    (analysis, about): (&Analysis, Option<&'static str>),
    strategy: Strategy,
    sensitivity: bool,
) -> CheckReport {
    let (system, composition) = (view.system, view.composition);
    let mut behaviours = bounds::behaviours(view, analysis);
    let mut chains = bounds::chains(view, analysis);
    if sensitivity && !view.has_suspensions() {
        growth::add(view, analysis, &mut behaviours);
    }
    explanations::explain(view, analysis, &mut behaviours, &mut chains);
    let all = behaviours.iter().map(|each| each.standing);
    let all = all.chain(chains.iter().map(|each| each.standing));
    let cause_effect_chains = cause_effect::chains(view, analysis);
    let latencies = cause_effect_chains.iter();
    let latencies = latencies.flat_map(|each| [&each.data_age, &each.reaction_time]);
    let all = all.chain(latencies.map(|each| each.standing));
    let processors = processor_use::processors(view, analysis);
    let mut assumptions = composition.assumptions.clone();
    assumptions.extend(processor_use::assumptions(&processors));
    assumptions.extend(explanations::of_priorities(view, analysis, about));
    assumptions.extend(explanations::of_releases(system));
    assumptions.extend(cause_effect::assumptions(system));
    CheckReport {
        schema: "rtorb-model/1",
        system: system.name.clone(),
        standing: all.max().unwrap_or(Standing::Holds),
        first_miss: bounds::first_miss(view, &behaviours, &chains)
            .or_else(|| cause_effect::first_miss(&cause_effect_chains)),
        strategy: strategy.to_string(),
        processors,
        loading: loading::loading(view, analysis),
        behaviours,
        chains,
        cause_effect_chains,
        assumptions,
    }
}
