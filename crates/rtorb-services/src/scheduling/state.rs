//! The state that the threads of a scheduling service share.

use arc_swap::ArcSwapOption;
use rtorb_os::sync::Mutex;
use rtorb_sched::{Dispatching, PriorityRange, Severity, Strategy};
use std::sync::{Arc, Weak};

use super::admission::AdmittedFlows;
use super::exception::SchedulerException;
use super::published::{Analysis, PublishedSchedule};
use super::schedule::{ComputeError, Level, Schedule};
use super::server_scheduler::ScheduledServer;
use super::table::{Table, UNIT_NS};
use crate::events::ChannelCore;
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
    /// The channels that a change reorders.
    pub(super) channels: Mutex<Vec<Weak<ChannelCore>>>,
    /// The servers whose objects a change moves.
    pub(super) servers: Mutex<Vec<Weak<ScheduledServer>>>,
    /// The events of channels that were admitted. It is taken after the registry of a channel.
    pub(super) flows: Mutex<AdmittedFlows>,
    /// What was refused last, in words.
    pub(super) last_refusal: Mutex<String>,
}

impl SchedulerState {
    /// The last computed schedule. A reader never waits for a writer.
    pub(super) fn published(&self) -> Result<Arc<PublishedSchedule>, SchedulerException> {
        self.published
            .load_full()
            .ok_or(SchedulerException::NotScheduled)
    }

    pub(super) fn publish(&self, computed: PublishedSchedule) {
        self.published.store(Some(Arc::new(computed)));
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
        // A change may have brought another strategy.
        let strategy = match self.published().ok().as_deref() {
            None => self.strategy,
            Some(PublishedSchedule {
                analysis: Analysis::System(_),
                ..
            }) => return Ok(vec![fatal(SYSTEM_RUNS.to_owned())]),
            Some(known) => known.description.strategy,
        };
        let description = self.table.lock().description(strategy, priorities);
        match PublishedSchedule::of_operations(description) {
            Ok(computed) => {
                let anomalies = match &computed.analysis {
                    Analysis::Operations(analysis) => analysis.anomalies.clone(),
                    Analysis::System(_) => Vec::new(),
                };
                self.publish(computed);
                let each = anomalies.into_iter();
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
            Err(error @ (ComputeError::Graph(_) | ComputeError::Model(_))) => {
                Ok(vec![fatal(error.to_string())])
            }
        }
    }
}

fn fatal(description: String) -> SchedulingAnomaly {
    SchedulingAnomaly {
        description,
        severity: AnomalySeverity::AnomalyFatal,
    }
}

const SYSTEM_RUNS: &str = "a system of components runs, whose priorities follow from its file: apply another file of a system";

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
