//! A system of components that a scheduling service runs.

use rtorb_sched::model::{Behaviour, CallWay, Platform, System};
use rtorb_sched::{CallGraph, CallKind, Importance, Operation, OperationCall, OperationKind};

use super::description::Description;

/// A system of components (docs/reference/model.md) and the platforms of its nodes.
#[derive(Clone, Debug)]
pub struct ModelledSystem {
    /// The system.
    pub system: System,
    /// The platform of each node, in order.
    pub platforms: Vec<Platform>,
}

impl ModelledSystem {
    /// Returns the behaviours as operations, with handles that count from 1. They say nothing of nodes and costs.
    pub(super) fn description(&self) -> Description {
        let behaviours = &self.system.behaviours;
        let each = behaviours.iter().enumerate();
        Description {
            strategy: self.system.strategy,
            priorities: self.system.priorities,
            graph: CallGraph {
                operations: behaviours.iter().map(operation).collect(),
                calls: each.flat_map(|(caller, one)| calls(caller, one)).collect(),
            },
            handles: (1..).take(behaviours.len()).collect(),
            threads: vec![0; behaviours.len()],
        }
    }
}

fn operation(behaviour: &Behaviour) -> Operation {
    Operation {
        name: behaviour.name.clone(),
        kind: OperationKind::Operation,
        period_ns: behaviour.trigger.period_ns(),
        deadline_ns: behaviour.deadline_ns,
        worst_ns: behaviour.execution.worst_ns(),
        typical_ns: behaviour.execution.worst_ns(),
        jitter_ns: behaviour.jitter_ns,
        blocking_ns: 0,
        criticality: behaviour.criticality,
        importance: Importance::default(),
    }
}

fn calls(caller: usize, behaviour: &Behaviour) -> impl Iterator<Item = OperationCall> + '_ {
    behaviour.calls.iter().flat_map(move |call| {
        let kind = match call.way {
            CallWay::TwoWay => CallKind::TwoWay,
            CallWay::OneWay | CallWay::Event { .. } => CallKind::OneWay,
        };
        call.to.iter().map(move |&callee| OperationCall {
            caller,
            callee,
            count: call.count,
            kind,
        })
    })
}
