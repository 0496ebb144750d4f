//! The state that the threads of a scheduling service share.

use arc_swap::ArcSwapOption;
use rtorb_os::sync::Mutex;
use rtorb_sched::{Dispatching, PriorityRange, Severity, Strategy};
use std::sync::Arc;

use super::exception::SchedulerException;
use super::schedule::{ComputeError, Level, Schedule};
use super::table::{Table, UNIT_NS};
use crate::stubs::rtec_scheduler::rtec_scheduler::{
    AnomalySeverity, ConfigInfo, DispatchingTypeT, SchedulingAnomaly,
};

/// The shared state of the threads.
#[derive(Debug)]
pub(super) struct SchedulerState {
    pub(super) strategy: Strategy,
    pub(super) table: Mutex<Table>,
    /// Held during a computation: one at a time, so the last started is the last published.
    pub(super) computing: Mutex<()>,
    pub(super) published: ArcSwapOption<PublishedSchedule>,
}

/// The last computed schedule.
#[derive(Debug)]
pub(super) struct PublishedSchedule {
    pub(super) schedule: Schedule,
}

impl SchedulerState {
    /// The last computed schedule. A reader never waits for a writer.
    pub(super) fn published(&self) -> Result<Arc<PublishedSchedule>, SchedulerException> {
        self.published
            .load_full()
            .ok_or(SchedulerException::NotScheduled)
    }

    pub(super) fn publish(&self, schedule: Schedule) {
        self.published
            .store(Some(Arc::new(PublishedSchedule { schedule })));
    }

    /// Computes and publishes a schedule. If that is impossible, it returns a fatal anomaly and keeps the former schedule, so
    /// that running programs keep their priorities.
    pub(super) fn compute(
        &self,
        least_urgent: i32,
        most_urgent: i32,
    ) -> Result<Vec<SchedulingAnomaly>, SchedulerException> {
        let _one = self.computing.lock();
        let priorities = PriorityRange {
            least_urgent,
            most_urgent,
        };
        let description = self.table.lock().description(self.strategy, priorities);
        match Schedule::compute(&description) {
            Ok(computed) => {
                self.publish(computed.schedule);
                let each = computed.analysis.anomalies.into_iter();
                Ok(each
                    .map(|anomaly| SchedulingAnomaly {
                        description: anomaly.description,
                        severity: severity(anomaly.severity),
                    })
                    .collect())
            }
            Err(ComputeError::Levels(_)) => {
                Err(SchedulerException::InsufficientThreadPriorityLevels)
            }
            Err(ComputeError::Graph(error)) => Ok(vec![SchedulingAnomaly {
                description: error.to_string(),
                severity: AnomalySeverity::AnomalyFatal,
            }]),
        }
    }
}

/// The levels in the form of the interface.
pub(super) fn configs(schedule: &Schedule) -> Vec<ConfigInfo> {
    let units = |ns: u64| i32::try_from(ns / UNIT_NS).unwrap_or(i32::MAX);
    let config = |(place, level): (i32, &Level)| ConfigInfo {
        preemption_priority: place,
        thread_priority: level.priority,
        dispatching_type: dispatching(level.dispatching),
        timer_periods: level.periods_ns.iter().copied().map(units).collect(),
    };
    (0..).zip(schedule.levels()).map(config).collect()
}

pub(super) fn dispatching(known: Dispatching) -> DispatchingTypeT {
    match known {
        Dispatching::Static => DispatchingTypeT::StaticDispatching,
        Dispatching::Deadline => DispatchingTypeT::DeadlineDispatching,
        Dispatching::Laxity => DispatchingTypeT::LaxityDispatching,
    }
}

fn severity(known: Severity) -> AnomalySeverity {
    match known {
        Severity::Fatal => AnomalySeverity::AnomalyFatal,
        Severity::Error => AnomalySeverity::AnomalyError,
        Severity::Warning => AnomalySeverity::AnomalyWarning,
    }
}
