//! What must be done when, and who runs at whose priority.

use std::collections::HashMap;

use super::super::composed::{Activation, Composed};
use super::super::system::{Behaviour, Scheduling, System, Trigger};
use crate::Criticality;

/// A behaviour with a thread of its own: what it runs, at its priority, is its own code and that of the two-way calls below it.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    /// The behaviour.
    pub(super) behaviour: usize,
    /// What runs at its priority.
    pub(super) segments: Vec<usize>,
    /// The least period of what begins it.
    pub(super) period_ns: u64,
    /// The shortest deadline of all that it carries: its own, those of the called, and of the chains through them.
    pub(super) deadline_ns: u64,
    /// The highest of all that it carries.
    pub(super) criticality: Criticality,
    /// What the file gives it.
    pub(super) given: Option<i16>,
    /// Whether any of it runs where priorities decide.
    pub(super) fixed: bool,
}

/// The goals of a system.
#[derive(Clone, Debug)]
pub(super) struct Goals {
    /// Who have priorities.
    pub(super) owners: Vec<Owner>,
    /// The owner of each segment.
    pub(super) owner_of: Vec<usize>,
    /// Which owner a behaviour is, of those that are.
    pub(super) of_owner: HashMap<usize, usize>,
    /// When each activation must be done.
    pub(super) deadlines_ns: Vec<u64>,
    /// The activations of each behaviour.
    pub(super) of_behaviour: Vec<Vec<usize>>,
    /// The activations whose path is the chain's.
    pub(super) of_chain: Vec<Vec<usize>>,
}

impl Goals {
    pub(super) fn new(system: &System, composed: &Composed) -> Self {
        let deadline = |activation: &Activation| {
            let own = system.behaviours[activation.behaviour].deadline_ns;
            own.unwrap_or(period_ns(&system.behaviours[activation.root]))
        };
        let deadlines_ns: Vec<u64> = composed.activations.iter().map(deadline).collect();
        let mut of_behaviour = vec![vec![]; system.behaviours.len()];
        let mut by_path: HashMap<&[usize], Vec<usize>> = HashMap::new();
        for (index, activation) in composed.activations.iter().enumerate() {
            of_behaviour[activation.behaviour].push(index);
            by_path.entry(&activation.path).or_default().push(index);
        }
        let along = |path: &[usize]| by_path.get(path).cloned().unwrap_or_default();
        let of_chain = system.chains.iter().map(|chain| along(&chain.through));
        let of_chain = of_chain.collect();
        let (mut owners, owner_of) = owners(system, composed);
        for (index, activation) in composed.activations.iter().enumerate() {
            let owner = &mut owners[owner_of[activation.done]];
            owner.carry(
                &system.behaviours[activation.behaviour],
                deadlines_ns[index],
            );
        }
        for chain in &system.chains {
            for steps in 1..=chain.through.len() {
                for index in along(&chain.through[..steps]) {
                    let owner = &mut owners[owner_of[composed.activations[index].done]];
                    owner.deadline_ns = owner.deadline_ns.min(chain.deadline_ns);
                }
            }
        }
        let of_owner = owners.iter().enumerate();
        let of_owner = of_owner.map(|(index, owner)| (owner.behaviour, index));
        Self {
            of_owner: of_owner.collect(),
            owners,
            owner_of,
            deadlines_ns,
            of_behaviour,
            of_chain,
        }
    }
}

impl Owner {
    fn carry(&mut self, behaviour: &Behaviour, deadline_ns: u64) {
        self.deadline_ns = self.deadline_ns.min(deadline_ns);
        self.criticality = self.criticality.max(behaviour.criticality);
    }
}

/// How often a behaviour begins at most; 0 of one that only others begin.
pub(super) fn period_ns(behaviour: &Behaviour) -> u64 {
    match behaviour.trigger {
        Trigger::Periodic { period_ns } => period_ns,
        Trigger::Sporadic { gap_ns } => gap_ns,
        Trigger::Called => 0,
    }
}

/// The owners in the order of the system, without the deadlines of what they carry; and that of each segment.
fn owners(system: &System, composed: &Composed) -> (Vec<Owner>, Vec<usize>) {
    let mut owners: Vec<Option<Owner>> = vec![None; system.behaviours.len()];
    for (index, segment) in composed.segments.iter().enumerate() {
        let behaviour = &system.behaviours[segment.priority_of];
        let period_ns = period_ns(&system.behaviours[segment.root]);
        let owner = owners[segment.priority_of].get_or_insert_with(|| Owner {
            behaviour: segment.priority_of,
            segments: vec![],
            period_ns,
            deadline_ns: u64::MAX,
            criticality: behaviour.criticality,
            given: behaviour.priority,
            fixed: false,
        });
        owner.segments.push(index);
        owner.period_ns = owner.period_ns.min(period_ns);
        let processor = &composed.processors[segment.processor];
        owner.fixed |= processor.scheduling == Scheduling::FixedPriority;
    }
    let owners: Vec<Owner> = owners.into_iter().flatten().collect();
    let mut owner_of = vec![0; composed.segments.len()];
    for (index, owner) in owners.iter().enumerate() {
        owner
            .segments
            .iter()
            .for_each(|&segment| owner_of[segment] = index);
    }
    (owners, owner_of)
}
