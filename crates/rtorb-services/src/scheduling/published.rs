//! The schedule in force, with what it follows from: operations of one processor, or a system of components.

use rtorb_sched::model::{
    CheckOptions, CheckReport, CompiledRequirements, ModelError, SystemMode, SystemTransition,
    TransitionError,
};
use rtorb_sched::{GraphError, Mode, PriorityRange, Refusal, SearchLimits, Transition, admit};
use std::collections::HashMap;

use super::change::{DescribedSystem, SystemChangeError};
use super::description::Description;
use super::modelled_system::ModelledSystem;
use super::schedule::{ComputeError, Level, Schedule, ScheduledOperation};
use crate::events::{PrioritySource as _, Urgency};

/// A computed schedule.
#[derive(Debug)]
pub(super) struct PublishedSchedule {
    /// The operations and calls. Of a system, they are its behaviours.
    pub(super) description: Description,
    pub(super) analysis: Analysis,
    pub(super) schedule: Schedule,
}

/// The analysis of a schedule.
#[derive(Debug)]
pub(super) enum Analysis {
    /// Of operations on one processor.
    Operations(rtorb_sched::Schedule),
    /// Of a system of components.
    System(Box<AnalysedSystem>),
}

/// A system of components with its bounds.
#[derive(Debug)]
pub(super) struct AnalysedSystem {
    modelled: ModelledSystem,
    report: CheckReport,
}

/// What is proven of a change.
pub(super) struct ChangeAnalysis {
    /// Why a deadline is not proven to hold during it.
    pub(super) refusal: Option<Refusal>,
    /// The longest time for which work of the old system may go on.
    pub(super) longest_ns: Option<u64>,
}

impl PublishedSchedule {
    /// Computes the schedule of a system, whose operations the description has with their handles.
    pub(super) fn of(
        system: DescribedSystem,
        description: Description,
    ) -> Result<Self, ComputeError> {
        match system {
            DescribedSystem::Operations(_) => Self::of_operations(description),
            DescribedSystem::Components(modelled) => Ok(Self::of_system(modelled, description)?),
        }
    }

    /// Computes the schedule of operations.
    pub(super) fn of_operations(description: Description) -> Result<Self, ComputeError> {
        let computed = Schedule::compute(&description)?;
        Ok(Self {
            description,
            analysis: Analysis::Operations(computed.analysis),
            schedule: computed.schedule,
        })
    }

    /// Computes the schedule of a system, whose behaviours the description has with their handles.
    fn of_system(modelled: ModelledSystem, description: Description) -> Result<Self, ModelError> {
        let options = CheckOptions {
            sensitivity: false,
            ..CheckOptions::default()
        };
        let (system, platforms) = (&modelled.system, &modelled.platforms);
        let report = rtorb_sched::model::check(system, platforms, &options)?;
        let names = description.graph.operations.iter().map(|it| &it.name);
        let handles = names.zip(&description.handles);
        let schedule = Schedule::of_model(system, &report).with_handles(
            &handles
                .map(|(name, handle)| (name.as_str(), *handle))
                .collect(),
        );
        Ok(Self {
            description,
            analysis: Analysis::System(Box::new(AnalysedSystem { modelled, report })),
            schedule,
        })
    }

    /// True if every deadline is proven to hold; `None` if that is unknown.
    pub(super) fn holds(&self) -> Option<bool> {
        match &self.analysis {
            Analysis::Operations(analysis) => analysis.holds(),
            Analysis::System(analysed) => Some(analysed.report.refusal().is_none()),
        }
    }

    /// True if a deadline holds only in a lane that preempts.
    pub(super) fn needs_preemption(&self) -> bool {
        match &self.analysis {
            Analysis::Operations(analysis) => analysis.needs_preemption(),
            Analysis::System(_) => false,
        }
    }

    /// The first deadline that is not proven to hold.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match &self.analysis {
            Analysis::Operations(analysis) => admit(&self.description.graph, analysis).err(),
            Analysis::System(analysed) => analysed.report.refusal(),
        }
    }

    /// Checks that a running system changes to one of its kind, because the bounds of one do not hold for the other, and that it keeps the
    /// requirements with which its programs are compiled.
    pub(super) fn check_kind(&self, new: &Self) -> Result<(), SystemChangeError> {
        let (runs, is, apply) = match (&self.analysis, &new.analysis) {
            (Analysis::Operations(_), Analysis::System(_)) => (OPERATIONS, SYSTEM, OPERATIONS),
            (Analysis::System(_), Analysis::Operations(_)) => (SYSTEM, OPERATIONS, SYSTEM),
            (Analysis::System(old), Analysis::System(new)) => return old.check_requirements(new),
            (Analysis::Operations(_), Analysis::Operations(_)) => return Ok(()),
        };
        Err(SystemChangeError::Fixed(format!(
            "the service runs {runs}, and the new file has {is}: apply a file with {apply}, or restart the service"
        )))
    }

    /// Analyses the change to a schedule of the same kind.
    pub(super) fn transition_to(&self, new: &Self) -> Result<ChangeAnalysis, SystemChangeError> {
        match (&self.analysis, &new.analysis) {
            (Analysis::Operations(old_analysis), Analysis::Operations(new_analysis)) => {
                let transition = self.transition_of_operations(old_analysis, new, new_analysis)?;
                Ok(ChangeAnalysis {
                    refusal: transition.refusal(),
                    longest_ns: transition.longest_ns(),
                })
            }
            (Analysis::System(old), Analysis::System(new)) => {
                let limits = SearchLimits::default();
                let transition = SystemTransition::between(old.mode(), new.mode(), limits);
                let transition = transition.map_err(|error: TransitionError| {
                    SystemChangeError::Fixed(error.to_string())
                })?;
                Ok(ChangeAnalysis {
                    refusal: transition.refusal(),
                    longest_ns: transition.longest_ns(),
                })
            }
            _ => self.check_kind(new).map(|()| ChangeAnalysis {
                refusal: None,
                longest_ns: None,
            }),
        }
    }

    fn transition_of_operations(
        &self,
        old_analysis: &rtorb_sched::Schedule,
        new: &Self,
        new_analysis: &rtorb_sched::Schedule,
    ) -> Result<Transition, SystemChangeError> {
        let most_urgent_is_low = |range: PriorityRange| range.most_urgent < range.least_urgent;
        let reversed = most_urgent_is_low(new.description.priorities);
        if reversed != most_urgent_is_low(self.description.priorities) {
            return Err(SystemChangeError::Fixed(
                "the direction of the priorities cannot change while the system runs: restart it"
                    .to_owned(),
            ));
        }
        let urgencies = |schedule: &Schedule| -> Vec<i32> {
            let levels = schedule.levels().iter();
            let urgency = |level: &Level| {
                if reversed {
                    -level.priority
                } else {
                    level.priority
                }
            };
            levels.map(urgency).collect()
        };
        let (old_urgencies, new_urgencies) = (urgencies(&self.schedule), urgencies(&new.schedule));
        let old = Mode {
            graph: &self.description.graph,
            schedule: old_analysis,
            urgencies: &old_urgencies,
        };
        let new = Mode {
            graph: &new.description.graph,
            schedule: new_analysis,
            urgencies: &new_urgencies,
        };
        let found = Transition::between(old, new, SearchLimits::default());
        found.map_err(|error: GraphError| {
            SystemChangeError::Fixed(format!("the old and the new system together: {error}"))
        })
    }

    /// The number of operations whose urgency or deadline differs from that of an older schedule, and of new ones.
    pub(super) fn changed_since(&self, before: Option<&Self>) -> u32 {
        let before = before.map(Self::requirements).unwrap_or_default();
        let new = self.requirements();
        let count = new
            .iter()
            .filter(|(handle, wanted)| before.get(handle) != Some(wanted))
            .count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The urgency of each scheduled operation by its handle, and its deadline. A behaviour that is called two-way, or runs by
    /// deadline, has no urgency of its own.
    fn requirements(&self) -> HashMap<i32, (Option<Urgency>, u64)> {
        let urgency = |handle: i32| self.schedule.urgency(handle).ok();
        match &self.analysis {
            Analysis::Operations(_) => {
                let operations = self.schedule.operations().iter();
                let required = |it: &ScheduledOperation| (urgency(it.handle), it.deadline_ns);
                operations.map(|it| (it.handle, required(it))).collect()
            }
            Analysis::System(analysed) => {
                let bounds = analysed.report.behaviours.iter();
                let handles = self.description.handles.iter().copied();
                let both = handles.zip(bounds);
                both.map(|(handle, bound)| (handle, (urgency(handle), bound.deadline_ns)))
                    .collect()
            }
        }
    }
}

impl AnalysedSystem {
    fn check_requirements(&self, new: &Self) -> Result<(), SystemChangeError> {
        let behaviours = &self.modelled.system.behaviours;
        let old: HashMap<&str, CompiledRequirements> = behaviours
            .iter()
            .filter_map(|one| Some((one.operation.as_deref()?, one.requirements)))
            .collect();
        for behaviour in &new.modelled.system.behaviours {
            let known = behaviour.operation.as_deref();
            let known = known.and_then(|operation| Some((operation, old.get(operation)?)));
            if let Some((operation, requirements)) = known
                && let Some(annotation) = requirements.difference(behaviour.requirements)
            {
                return Err(SystemChangeError::Fixed(format!(
                    "{annotation} of {operation} cannot change while the system runs: its clients and servers are compiled with it"
                )));
            }
        }
        Ok(())
    }

    fn mode(&self) -> SystemMode<'_> {
        SystemMode {
            system: &self.modelled.system,
            platforms: &self.modelled.platforms,
            report: &self.report,
        }
    }
}

const OPERATIONS: &str = "operations of one processor";
const SYSTEM: &str = "a system of components";
