//! The admission of a channel's events by the schedule in force.

use rtorb_sched::{CallGraph, CallKind, OperationCall, Refusal, SearchLimits, admit};

use super::published::{Analysis, PublishedSchedule};
use super::service::Scheduling;
use super::state::SchedulerState;
use crate::events::{EventFlow, FlowAdmission};

impl SchedulerState {
    /// Checks that every deadline also holds with these events, if it held without them. Events of operations that the schedule
    /// does not have, and those that it has as calls already, change nothing.
    pub(super) fn admit(&self, flows: &[EventFlow]) -> Result<(), Refusal> {
        let Ok(published) = self.published() else {
            return Ok(());
        };
        if published.holds() != Some(true) {
            return Ok(());
        }
        let Some(graph) = published.with_events(flows) else {
            return Ok(());
        };
        let admitted = match &published.analysis {
            Analysis::System(_) => Err(undeclared(&published.description.graph, &graph)),
            Analysis::Operations(analysis) => {
                match analysis.reanalysed(&graph, SearchLimits::default()) {
                    Ok(analysed) => admit(&graph, &analysed),
                    Err(error) => Err(Refusal {
                        operation: "the system with these events".to_owned(),
                        reason: format!("has no schedule: {error}"),
                        remedies: Vec::new(),
                    }),
                }
            }
        };
        admitted.inspect_err(|refused| self.note_refusal(refused))
    }
}

impl PublishedSchedule {
    /// The operations with these events as calls; `None` if there are none that it does not have.
    fn with_events(&self, flows: &[EventFlow]) -> Option<CallGraph> {
        let index = |handle: i32| {
            self.description
                .handles
                .iter()
                .position(|one| *one == handle)
        };
        let mut graph = self.description.graph.clone();
        let mut has_more = false;
        for flow in flows {
            let (Some(caller), Some(callee)) = (index(flow.supplier), index(flow.consumer)) else {
                continue;
            };
            let declared = graph.calls.iter_mut().find(|call| {
                (call.caller, call.callee, call.kind) == (caller, callee, CallKind::OneWay)
            });
            match declared {
                Some(declared) if declared.count >= flow.count => {}
                Some(declared) => {
                    declared.count = flow.count;
                    has_more = true;
                }
                None => {
                    graph.calls.push(OperationCall {
                        caller,
                        callee,
                        count: flow.count,
                        kind: CallKind::OneWay,
                    });
                    has_more = true;
                }
            }
        }
        has_more.then_some(graph)
    }
}

/// Refuses events that the file of a system does not have: its bounds hold for the events that it has.
fn undeclared(declared: &CallGraph, wanted: &CallGraph) -> Refusal {
    let is_more = |call: &&OperationCall| !declared.calls.contains(call);
    let name = |index: usize| wanted.operations[index].name.clone();
    let more = wanted.calls.iter().find(is_more);
    let (supplier, consumer) = more.map_or_else(Default::default, |call| {
        (name(call.caller), name(call.callee))
    });
    Refusal {
        reason: format!("would run for more events of {supplier} than the file of the system has"),
        remedies: vec![format!(
            "write the event as a call of {supplier} to {consumer}, and apply the file"
        )],
        operation: consumer,
    }
}

impl FlowAdmission for Scheduling {
    fn admit(&self, flows: &[EventFlow]) -> Result<(), String> {
        let admitted = self.shared.admit(flows);
        admitted.map_err(|refusal| refusal.to_string())
    }
}
