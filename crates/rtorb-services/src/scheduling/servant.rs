//! The servant of a Scheduler.

use std::sync::Arc;

use super::change::{DescribedSystem, NotAdmitted as Refused, SystemChangeError};
use super::config::Admission as IfUnproven;
use super::description::Description;
use super::exception::SchedulerException;
use super::state::{SchedulerState, configs, dispatching};
use super::system_file;
use super::table::{Characteristics, number};
use crate::stubs::rtec_scheduler::rtec_base::{
    DependencyEnabledTypeT, DependencyInfo, DependencyTypeT,
};
use crate::stubs::rtec_scheduler::rtec_scheduler::*;
use crate::stubs::rtec_scheduler::rtorb_scheduling as idl;
use crate::stubs::rtec_scheduler::rtorb_scheduling::{
    Admission, CannotChange, Change, ChangeableSchedulerAdmitChannelError,
    ChangeableSchedulerAdmitError, ChangeableSchedulerApplyError,
    ChangeableSchedulerApplySystemError, ChangeableSchedulerServant, EventFlow, NotAdmitted,
    OperationMissRatio, SystemFile, WrongFile,
};
use rtorb::SystemException;
use rtorb::timing::MissRatio;

/// The servant of a Scheduler.
#[derive(Debug)]
pub(super) struct SchedulerObject(pub(super) Arc<SchedulerState>);

impl SchedulerObject {
    fn place(&self, handle: i32) -> Result<(i32, i32, i32), SchedulerException> {
        let published = self.0.published()?;
        let placed = published.schedule.placed(handle);
        let placed = placed.ok_or(SchedulerException::NotScheduled)?;
        let level = &published.schedule.levels()[placed.level as usize];
        Ok((
            level.priority,
            number(placed.subpriority),
            number(placed.level),
        ))
    }
}

impl SchedulerObject {
    fn change(
        &self,
        new: DescribedSystem,
        if_unproven: Admission,
    ) -> Result<Change, ChangeableSchedulerApplyError> {
        let admission = match if_unproven {
            Admission::RefuseUnproven => IfUnproven::RefuseUnproven,
            Admission::AdmitAnyway => IfUnproven::AdmitAnyway,
        };
        let change = self.0.apply(new, admission)?;
        Ok(Change {
            operations_changed: change.operations_changed,
            is_proven: change.unproven.is_none(),
            longest_old_job: change.longest_old_job_ns.unwrap_or(0),
        })
    }
}

impl SchedulerServant for SchedulerObject {
    fn create(&self, entry_point: &str) -> Result<i32, SchedulerCreateError> {
        Ok(self.0.table.lock().create(entry_point)?)
    }

    fn lookup(&self, entry_point: &str) -> Result<i32, SchedulerLookupError> {
        Ok(self.0.table.lock().lookup(entry_point)?)
    }

    fn get(&self, handle: i32) -> Result<RtInfo, SchedulerGetError> {
        let published = self.0.published().ok();
        let schedule = published.as_ref().map(|published| &published.schedule);
        Ok(self.0.table.lock().info(handle, schedule)?)
    }

    fn set(
        &self,
        handle: i32,
        criticality: CriticalityT,
        worst: u64,
        typical: u64,
        cached: u64,
        period: i32,
        importance: ImportanceT,
        quantum: u64,
        threads: i32,
        info_type: InfoTypeT,
    ) -> Result<(), SchedulerSetError> {
        let given = Characteristics {
            criticality,
            worst,
            typical,
            cached,
            period,
            importance,
            quantum,
            threads,
            info_type,
        };
        Ok(self.0.table.lock().set(handle, &given)?)
    }

    fn reset(
        &self,
        handle: i32,
        criticality: CriticalityT,
        worst: u64,
        typical: u64,
        cached: u64,
        period: i32,
        importance: ImportanceT,
        quantum: u64,
        threads: i32,
        info_type: InfoTypeT,
    ) -> Result<(), SchedulerResetError> {
        let given = Characteristics {
            criticality,
            worst,
            typical,
            cached,
            period,
            importance,
            quantum,
            threads,
            info_type,
        };
        Ok(self.0.table.lock().set(handle, &given)?)
    }

    fn set_seq(&self, infos: &[RtInfo]) -> Result<(), SchedulerSetSeqError> {
        Ok(self.0.table.lock().set_all(infos)?)
    }

    fn reset_seq(&self, infos: &[RtInfo]) -> Result<(), SchedulerResetSeqError> {
        Ok(self.0.table.lock().set_all(infos)?)
    }

    fn replace_seq(&self, infos: &[RtInfo]) -> Result<(), SchedulerReplaceSeqError> {
        Ok(self.0.table.lock().replace_all(infos)?)
    }

    fn add_dependency(
        &self,
        handle: i32,
        dependency: i32,
        number_of_calls: i32,
        dependency_type: DependencyTypeT,
    ) -> Result<(), SchedulerAddDependencyError> {
        let mut table = self.0.table.lock();
        Ok(table.add_dependency(handle, dependency, number_of_calls, dependency_type)?)
    }

    fn remove_dependency(
        &self,
        handle: i32,
        dependency: i32,
        number_of_calls: i32,
        dependency_type: DependencyTypeT,
    ) -> Result<(), SchedulerRemoveDependencyError> {
        let wanted = DependencyInfo {
            dependency_type,
            number_of_calls,
            rt_info: handle,
            rt_info_depended_on: dependency,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        };
        Ok(self.0.table.lock().remove_dependency(&wanted)?)
    }

    fn set_dependency_enable_state(
        &self,
        handle: i32,
        dependency: i32,
        number_of_calls: i32,
        dependency_type: DependencyTypeT,
        enabled: DependencyEnabledTypeT,
    ) -> Result<(), SchedulerSetDependencyEnableStateError> {
        let wanted = DependencyInfo {
            dependency_type,
            number_of_calls,
            rt_info: handle,
            rt_info_depended_on: dependency,
            enabled,
        };
        Ok(self.0.table.lock().enable_dependencies(&[wanted])?)
    }

    fn set_dependency_enable_state_seq(
        &self,
        dependencies: &[DependencyInfo],
    ) -> Result<(), SchedulerSetDependencyEnableStateSeqError> {
        Ok(self.0.table.lock().enable_dependencies(dependencies)?)
    }

    fn set_rt_info_enable_state(
        &self,
        handle: i32,
        enabled: RtInfoEnabledTypeT,
    ) -> Result<(), SchedulerSetRtInfoEnableStateError> {
        Ok(self.0.table.lock().enable(handle, enabled)?)
    }

    fn set_rt_info_enable_state_seq(
        &self,
        pairs: &[RtInfoEnableStatePair],
    ) -> Result<(), SchedulerSetRtInfoEnableStateSeqError> {
        let mut table = self.0.table.lock();
        // All or none.
        for pair in pairs {
            table.check(pair.handle)?;
        }
        for pair in pairs {
            table.enable(pair.handle, pair.enabled)?;
        }
        Ok(())
    }

    fn priority(&self, handle: i32) -> Result<(i32, i32, i32), SchedulerPriorityError> {
        self.0.table.lock().check(handle)?;
        Ok(self.place(handle)?)
    }

    fn entry_point_priority(
        &self,
        entry_point: &str,
    ) -> Result<(i32, i32, i32), SchedulerEntryPointPriorityError> {
        let handle = self.0.table.lock().lookup(entry_point)?;
        Ok(self.place(handle)?)
    }

    fn compute_scheduling(
        &self,
        minimum_priority: i32,
        maximum_priority: i32,
    ) -> Result<
        (
            RtInfoSet,
            DependencySet,
            ConfigInfoSet,
            SchedulingAnomalySet,
        ),
        SchedulerComputeSchedulingError,
    > {
        let anomalies = self.0.compute(minimum_priority, maximum_priority)?;
        let published = self.0.published().ok();
        let schedule = published.as_ref().map(|published| &published.schedule);
        let table = self.0.table.lock();
        Ok((
            table.infos(schedule),
            table.dependencies(),
            schedule.map(configs).unwrap_or_default(),
            anomalies,
        ))
    }

    fn recompute_scheduling(
        &self,
        minimum_priority: i32,
        maximum_priority: i32,
    ) -> Result<SchedulingAnomalySet, SchedulerRecomputeSchedulingError> {
        Ok(self.0.compute(minimum_priority, maximum_priority)?)
    }

    fn get_rt_info_set(&self) -> Result<RtInfoSet, SchedulerGetRtInfoSetError> {
        let published = self.0.published().ok();
        let schedule = published.as_ref().map(|published| &published.schedule);
        Ok(self.0.table.lock().infos(schedule))
    }

    fn get_dependency_set(&self) -> Result<DependencySet, SchedulerGetDependencySetError> {
        Ok(self.0.table.lock().dependencies())
    }

    fn get_config_info_set(&self) -> Result<ConfigInfoSet, SchedulerGetConfigInfoSetError> {
        let published = self.0.published().ok();
        Ok(published.map_or_else(Vec::new, |published| configs(&published.schedule)))
    }

    fn dispatch_configuration(
        &self,
        p_priority: i32,
    ) -> Result<(i32, DispatchingTypeT), SchedulerDispatchConfigurationError> {
        let published = self.0.published()?;
        let levels = published.schedule.levels();
        let level = usize::try_from(p_priority)
            .ok()
            .and_then(|place| levels.get(place));
        let level = level.ok_or(SchedulerException::UnknownPriorityLevel)?;
        Ok((level.priority, dispatching(level.dispatching)))
    }

    fn last_scheduled_priority(&self) -> Result<i32, SchedulerLastScheduledPriorityError> {
        let published = self.0.published()?;
        let levels = published.schedule.levels().len();
        let last = levels
            .checked_sub(1)
            .ok_or(SchedulerException::NotScheduled)?;
        Ok(i32::try_from(last).unwrap_or(i32::MAX))
    }

    fn get_config_infos(&self) -> Result<ConfigInfoSet, SchedulerGetConfigInfosError> {
        Ok(configs(&self.0.published()?.schedule))
    }
}

impl ChangeableSchedulerServant for SchedulerObject {
    fn apply(
        &self,
        text: &str,
        if_unproven: Admission,
    ) -> Result<Change, ChangeableSchedulerApplyError> {
        let description = Description::of_text("the new file", text);
        let description = description.map_err(|errors| WrongFile {
            reason: errors.to_string(),
        })?;
        let new = DescribedSystem::Operations(description);
        self.change(new, if_unproven)
    }

    fn apply_system(
        &self,
        file: &SystemFile,
        if_unproven: Admission,
    ) -> Result<Change, ChangeableSchedulerApplySystemError> {
        let modelled = system_file::read(file).map_err(|reason| WrongFile { reason })?;
        let new = DescribedSystem::Components(modelled);
        Ok(self.change(new, if_unproven)?)
    }

    fn miss_ratios(&self) -> Result<Vec<OperationMissRatio>, SystemException> {
        let published = self.0.published();
        let ratios = published.map(|it| it.schedule.miss_ratios().clone());
        let ratios = ratios.unwrap_or_default().into_iter();
        let all = ratios.map(|(operation, ratio)| OperationMissRatio {
            operation,
            ratio: ratio
                .map(|MissRatio { misses, calls }| idl::MissRatio { misses, calls })
                .into_iter()
                .collect(),
        });
        Ok(all.collect())
    }

    fn admit(&self, flows: &[EventFlow]) -> Result<(), ChangeableSchedulerAdmitError> {
        let admitted = self.0.admit_once(&event_flows(flows));
        Ok(admitted.map_err(not_admitted)?)
    }

    fn admit_channel(
        &self,
        channel: &str,
        flows: &[EventFlow],
    ) -> Result<(), ChangeableSchedulerAdmitChannelError> {
        let admitted = self.0.admit(channel, &event_flows(flows));
        Ok(admitted.map_err(not_admitted)?)
    }

    fn last_refusal(&self) -> Result<String, SystemException> {
        Ok(self.0.last_refusal.lock().clone())
    }
}

impl From<SystemChangeError> for ChangeableSchedulerApplyError {
    fn from(error: SystemChangeError) -> Self {
        match error {
            SystemChangeError::NotAdmitted(Refused { refusal, .. }) => not_admitted(refusal).into(),
            SystemChangeError::System(exception) => exception.into(),
            SystemChangeError::Compute(error) if error.is_wrong_description() => WrongFile {
                reason: error.to_string(),
            }
            .into(),
            other => CannotChange {
                reason: other.to_string(),
            }
            .into(),
        }
    }
}

impl From<ChangeableSchedulerApplyError> for ChangeableSchedulerApplySystemError {
    fn from(error: ChangeableSchedulerApplyError) -> Self {
        match error {
            ChangeableSchedulerApplyError::NotAdmitted(refused) => refused.into(),
            ChangeableSchedulerApplyError::WrongFile(wrong) => wrong.into(),
            ChangeableSchedulerApplyError::CannotChange(part) => part.into(),
            ChangeableSchedulerApplyError::System(exception) => exception.into(),
        }
    }
}

fn event_flows(flows: &[EventFlow]) -> Vec<crate::events::EventFlow> {
    let flow = |flow: &EventFlow| crate::events::EventFlow {
        supplier: flow.supplier,
        consumer: flow.consumer,
        count: flow.count,
    };
    flows.iter().map(flow).collect()
}

fn not_admitted(refusal: rtorb_sched::Refusal) -> NotAdmitted {
    NotAdmitted {
        operation: refusal.operation,
        reason: refusal.reason,
        what_helps: refusal.remedies,
    }
}
