//! The admission of servants whose operations have times in IDL, by the analysis of a system.

use rtorb::timing::{Criticality as Annotated, OperationTiming};
use rtorb::{AdmittedServant, ServantAdmission};
use rtorb_os::sync::Mutex;
use rtorb_sched::{CallGraph, Criticality, Operation, SearchLimits, admit};
use std::sync::Arc;

use super::description::Description;
use super::schedule::ComputeError;

/// A system, and the active servants whose operations have times in IDL.
///
/// A servant is admitted if every deadline holds with its operations too, in an order by the strategy of the system. Each operation with
/// `@period` and `@worst_case_time` counts, for each servant; `@deadline` is its period if it has none. An operation that the
/// system's file has by its name, `Module::Interface::operation`, counts as the file says. It knows neither the events of channels nor a later
/// change of a scheduling service. A system by deadline or laxity is served by the lanes of [`Schedule::lanes`](super::Schedule::lanes). Give it to
/// [`OrbBuilder::servant_admission`](rtorb::OrbBuilder::servant_admission).
#[derive(Clone, Debug)]
pub struct ServantSchedule(Arc<Mutex<Admitted>>);

#[derive(Debug)]
struct Admitted {
    system: Description,
    /// The operations of each active servant.
    servants: Vec<(u64, Vec<Operation>)>,
    last_number: u64,
}

/// The operations of an active servant. They count until it is dropped.
#[derive(Debug)]
struct ActiveServant {
    schedule: Arc<Mutex<Admitted>>,
    number: u64,
}

impl ServantSchedule {
    /// A system without servants. If it does not hold by itself, no servant is admitted.
    ///
    /// # Errors
    /// [`ComputeError`] if the system has no schedule.
    pub fn new(system: Description) -> Result<Self, ComputeError> {
        super::schedule::Schedule::compute(&system)?;
        Ok(Self(Arc::new(Mutex::new(Admitted {
            system,
            servants: Vec::new(),
            last_number: 0,
        }))))
    }
}

impl ServantAdmission for ServantSchedule {
    fn admit(&self, operations: &'static [OperationTiming]) -> Result<AdmittedServant, String> {
        let mut admitted = self.0.lock();
        let number = admitted.last_number + 1;
        let operations = admitted.counted(operations, number);
        let graph = admitted.with(&operations);
        if !operations.is_empty() {
            let strategy = admitted.system.strategy;
            let computed =
                rtorb_sched::Schedule::compute(&graph, strategy, SearchLimits::default());
            let computed = computed.map_err(|error| error.to_string())?;
            admit(&graph, &computed).map_err(|refusal| refusal.to_string())?;
        }
        admitted.last_number = number;
        admitted.servants.push((number, operations));
        Ok(Box::new(ActiveServant {
            schedule: Arc::clone(&self.0),
            number,
        }))
    }
}

impl Drop for ActiveServant {
    fn drop(&mut self) {
        let mut admitted = self.schedule.lock();
        admitted
            .servants
            .retain(|(number, _)| *number != self.number);
    }
}

impl Admitted {
    /// The operations of a servant that count and that the system's file does not have.
    fn counted(&self, operations: &[OperationTiming], number: u64) -> Vec<Operation> {
        let known = |name: &str| {
            let mut operations = self.system.graph.operations.iter();
            operations.any(|operation| operation.name == name)
        };
        let others = operations.iter().filter(|timing| !known(timing.name()));
        others
            .filter_map(|timing| operation(timing, number))
            .collect()
    }

    /// The system with all servants and these operations.
    fn with(&self, new: &[Operation]) -> CallGraph {
        let mut graph = self.system.graph.clone();
        let active = self.servants.iter().flat_map(|(_, operations)| operations);
        graph.operations.extend(active.chain(new).cloned());
        graph
    }
}

fn operation(timing: &OperationTiming, number: u64) -> Option<Operation> {
    let name = format!("{} of servant {number}", timing.name());
    let criticality = timing.criticality().map(|criticality| match criticality {
        Annotated::VeryLow => Criticality::VeryLow,
        Annotated::Low => Criticality::Low,
        Annotated::Medium => Criticality::Medium,
        Annotated::High => Criticality::High,
        Annotated::VeryHigh => Criticality::VeryHigh,
    });
    let unnamed = Operation::named(&name);
    Some(Operation {
        period_ns: Some(timing.period_ns?),
        deadline_ns: timing.deadline_ns,
        worst_ns: timing.worst_ns?,
        typical_ns: timing.worst_ns?,
        criticality: criticality.unwrap_or(unnamed.criticality),
        ..unnamed
    })
}
