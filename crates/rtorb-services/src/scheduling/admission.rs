//! The admission of channels' events by the schedule in force.

use core::fmt;
use rtorb_sched::{CallGraph, CallKind, OperationCall, Refusal, SearchLimits, Verdict};
use std::collections::BTreeMap;

use super::change::check_caller;
use super::description::Description;
use super::published::{Analysis, PublishedSchedule};
use super::service::Scheduling;
use super::state::SchedulerState;
use crate::events::{EventFlow, FlowAdmission};

/// The admitted events of each channel. They count in the admission of others, and in changes of the system.
#[derive(Debug)]
pub(super) struct AdmittedFlows {
    channels: BTreeMap<String, Vec<EventFlow>>,
    /// The number of changes.
    changes: u64,
    /// The largest number of flows of all channels together.
    flows_max: usize,
}

impl AdmittedFlows {
    pub(super) fn new(flows_max: usize) -> Self {
        Self {
            channels: BTreeMap::new(),
            changes: 0,
            flows_max,
        }
    }

    /// The flows of all channels, and the number of changes so far.
    pub(super) fn all(&self) -> (Vec<EventFlow>, u64) {
        let flows = self.channels.values().flatten();
        (flows.copied().collect(), self.changes)
    }

    /// True if nothing has changed since [`Self::all`] had that number.
    pub(super) fn are_as_of(&self, changes: u64) -> bool {
        self.changes == changes
    }

    /// The flows of all other channels.
    fn of_others(&self, channel: &str) -> impl Iterator<Item = &EventFlow> {
        let others = self
            .channels
            .iter()
            .filter(move |(name, _)| *name != channel);
        others.flat_map(|(_, flows)| flows)
    }

    /// True if the channel has each of these flows already, as often. Both are [`merged`].
    fn have(&self, channel: &str, flows: &[EventFlow]) -> bool {
        let known = self.channels.get(channel).map_or(&[][..], Vec::as_slice);
        let is_known = |flow: &EventFlow| {
            let found = known.binary_search_by_key(&ends(flow), ends);
            found.is_ok_and(|index| known[index].count >= flow.count)
        };
        flows.iter().all(is_known)
    }

    /// Checks the bounds of the table, for flows beside `others`.
    fn check_room(&self, channel: &str, flows: &[EventFlow], others: usize) -> Result<(), Refusal> {
        let refuse = |reason| Err(refusal(reason));
        if channel.len() > NAME_BYTES_MAX {
            return refuse(format!("has a name of more than {NAME_BYTES_MAX} bytes"));
        }
        if others.saturating_add(flows.len()) > self.flows_max {
            return refuse(format!(
                "has more events than the service keeps: {} for all channels (dependencies_max)",
                self.flows_max
            ));
        }
        Ok(())
    }

    fn replace(&mut self, channel: &str, flows: Vec<EventFlow>) {
        self.changes += 1;
        if flows.is_empty() {
            self.channels.remove(channel);
        } else {
            self.channels.insert(channel.to_owned(), flows);
        }
    }
}

impl SchedulerState {
    /// Checks that every deadline also holds with these events of a channel beside those of all others, if it held without them, and
    /// keeps them in place of the channel's former ones. Events of operations that the schedule does not have, and those that it has as
    /// calls already, change nothing. Flows between the same operations count together. A caller that has given up is refused.
    pub(super) fn admit(&self, channel: &str, flows: &[EventFlow]) -> Result<(), Refusal> {
        let mut known = self.flows.lock();
        let admitted = self.merge_and_check(&known, channel, flows);
        // Events that nobody knows to be admitted would stay.
        let admitted = admitted.and_then(|flows| match check_caller() {
            Ok(()) => Ok(flows),
            Err(reason) => Err(refusal(format!("does not await the answer: {reason}"))),
        });
        let flows = admitted.inspect_err(|refused| self.note_refusal(refused))?;
        known.replace(channel, flows);
        Ok(())
    }

    /// Returns the flows that [`admit`](Self::admit) keeps.
    fn merge_and_check(
        &self,
        known: &AdmittedFlows,
        channel: &str,
        flows: &[EventFlow],
    ) -> Result<Vec<EventFlow>, Refusal> {
        known.check_room(channel, flows, known.of_others(channel).count())?;
        let flows = merged(flows);
        if !known.have(channel, &flows) {
            let all: Vec<EventFlow> = known.of_others(channel).chain(&flows).copied().collect();
            self.check_flows(known, &all)?;
        }
        Ok(flows)
    }

    /// Does the same for a channel without a name, and forgets its events.
    pub(super) fn admit_once(&self, flows: &[EventFlow]) -> Result<(), Refusal> {
        let known = self.flows.lock();
        let (mut all, _) = known.all();
        let admitted = known.check_room("", flows, all.len()).and_then(|()| {
            all.extend(flows);
            self.check_flows(&known, &all)
        });
        admitted.inspect_err(|refused| self.note_refusal(refused))
    }

    /// Checks that every deadline holds with these events, if it does with those that are known.
    fn check_flows(&self, known: &AdmittedFlows, flows: &[EventFlow]) -> Result<(), Refusal> {
        match self.published() {
            Ok(published) if published.holds() == Some(true) => {
                match published.refusal_with(flows) {
                    Some(refusal) if published.refusal_with(&known.all().0).is_none() => {
                        Err(refusal)
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Remembers a refusal for clients.
    pub(super) fn note_refusal(&self, refused: &dyn fmt::Display) {
        *self.last_refusal.lock() = refused.to_string();
    }
}

impl PublishedSchedule {
    /// The first deadline that is not proven to hold with these events of channels.
    pub(super) fn refusal_with(&self, flows: &[EventFlow]) -> Option<Refusal> {
        match self.with_events(flows) {
            Ok(with_events) => with_events.as_ref().unwrap_or(self).refusal(),
            Err(refusal) => Some(refusal),
        }
    }

    /// The same levels under these events of channels; `None` if the operations have them all as calls.
    ///
    /// # Errors
    /// The consumer that they may not run.
    pub(super) fn with_events(&self, flows: &[EventFlow]) -> Result<Option<Self>, Refusal> {
        let Analysis::Operations(analysis) = &self.analysis else {
            let graph = self.graph_with(flows);
            return graph.map_or(Ok(None), |graph| {
                Err(undeclared(&self.description.graph, &graph))
            });
        };
        if let Some(consumer) = self.consumer_that_preempts(analysis, flows) {
            return Err(Refusal {
                operation: self.description.graph.operations[consumer].name.clone(),
                reason: "shares a level whose deadlines hold only in a lane that preempts, which that of a channel does not"
                    .to_owned(),
                remedies: Vec::new(),
            });
        }
        let Some(graph) = self.graph_with(flows) else {
            return Ok(None);
        };
        match analysis.reanalysed(&graph, SearchLimits::default()) {
            Ok(analysed) => Ok(Some(Self {
                description: Description {
                    graph,
                    ..self.description.clone()
                },
                analysis: Analysis::Operations(analysed),
                schedule: self.schedule.clone(),
            })),
            Err(error) => Err(Refusal {
                operation: "the system with these events".to_owned(),
                reason: format!("has no schedule: {error}"),
                remedies: Vec::new(),
            }),
        }
    }

    /// The first consumer in a level in which a deadline holds only by preemption.
    fn consumer_that_preempts(
        &self,
        analysis: &rtorb_sched::Schedule,
        flows: &[EventFlow],
    ) -> Option<usize> {
        let preempts = |level: Option<u32>| {
            let mut operations = analysis.operations.iter();
            operations.any(|it| it.level == level && it.verdict == Verdict::MeetsIfPreempted)
        };
        let mut consumers = flows.iter().filter_map(|flow| self.index(flow.consumer));
        consumers.find(|&consumer| preempts(analysis.operations[consumer].level))
    }

    fn index(&self, handle: i32) -> Option<usize> {
        let mut handles = self.description.handles.iter();
        handles.position(|one| *one == handle)
    }

    /// The operations with these events as calls; `None` if there are none that it does not have.
    fn graph_with(&self, flows: &[EventFlow]) -> Option<CallGraph> {
        let mut counts: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        for flow in flows {
            if let Some(both) = self.index(flow.supplier).zip(self.index(flow.consumer)) {
                let count = counts.entry(both).or_default();
                *count = count.saturating_add(flow.count);
            }
        }
        let mut graph = self.description.graph.clone();
        let mut has_more = false;
        for ((caller, callee), count) in counts {
            let declared = graph.calls.iter_mut().find(|call| {
                (call.caller, call.callee, call.kind) == (caller, callee, CallKind::OneWay)
            });
            match declared {
                Some(declared) if declared.count >= count => continue,
                Some(declared) => declared.count = count,
                None => graph.calls.push(OperationCall {
                    caller,
                    callee,
                    count,
                    kind: CallKind::OneWay,
                }),
            }
            has_more = true;
        }
        has_more.then_some(graph)
    }
}

/// Refuses the events of a channel.
fn refusal(reason: String) -> Refusal {
    Refusal {
        operation: "a channel".to_owned(),
        reason,
        remedies: Vec::new(),
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

/// Returns the flows in the order of their operations, one for each pair, with the sum of the counts.
fn merged(flows: &[EventFlow]) -> Vec<EventFlow> {
    let mut flows = flows.to_vec();
    flows.sort_unstable_by_key(ends);
    flows.dedup_by(|next, kept| {
        let is_same = ends(next) == ends(kept);
        if is_same {
            kept.count = kept.count.saturating_add(next.count);
        }
        is_same
    });
    flows
}

/// The operations of a flow.
fn ends(flow: &EventFlow) -> (i32, i32) {
    (flow.supplier, flow.consumer)
}

impl FlowAdmission for Scheduling {
    fn admit(&self, channel: &str, flows: &[EventFlow]) -> Result<(), String> {
        let admitted = self.shared.admit(channel, flows);
        admitted.map_err(|refusal| refusal.to_string())
    }
}

/// The longest name of a channel: a host, an object key and some endpoints.
const NAME_BYTES_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::{Scheduling, SchedulingConfig};
    use crate::stubs::rtec_event::rtec_event_channel_admin::{
        ConsumerQos, Observer, ObserverServant, SupplierQos,
    };
    use rtorb::{Orb, SystemException, with_deadline};
    use std::time::Duration;

    /// Asks for the admission of an event in each call.
    struct Asking {
        service: Scheduling,
        channel: &'static str,
    }

    impl ObserverServant for Asking {
        fn update_consumer(&self, _: &ConsumerQos) -> Result<(), SystemException> {
            let flow = EventFlow {
                supplier: 1,
                consumer: 2,
                count: 1,
            };
            let admitted = self.service.admit(self.channel, &[flow]);
            admitted.map_err(|reason| rtorb::exception::local::NOT_ADMITTED.with_detail(reason))
        }

        fn update_supplier(&self, _: &SupplierQos) -> Result<(), SystemException> {
            Ok(())
        }
    }

    #[test]
    fn events_whose_channel_has_given_up_are_not_kept() {
        let orb = Orb::builder().build().expect("an ORB");
        let service = Scheduling::serve(&orb, SchedulingConfig::default()).expect("it serves");
        let poa = orb.root_poa().expect("its adapter");
        let kept = || service.shared.flows.lock().all().0.len();
        for (channel, left, expected) in [
            ("late", Duration::ZERO, 0),
            ("in time", Duration::from_secs(3600), 1),
        ] {
            let asking = Asking {
                service: service.clone(),
                channel,
            };
            let asking: Observer = poa.activate(asking).expect("room");
            let subscription = ConsumerQos {
                dependencies: Vec::new(),
                is_gateway: false,
            };
            let asked = with_deadline(left, || asking.update_consumer(&subscription));
            assert_eq!(
                (asked.is_ok(), kept()),
                (expected == 1, expected),
                "{channel}"
            );
        }
    }
}
