//! The deadlines of a system, and the owners of its priorities.

use std::collections::HashMap;

use super::super::composition::{Activation, Composition};
use super::super::system::{Behaviour, System};
use crate::Criticality;
use crate::holistic::SchedulingPolicy;

/// A behaviour with a thread of its own. At its priority run its own code and its two-way callees.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    /// The behaviour.
    pub(super) behaviour: usize,
    /// The segments at its priority.
    pub(super) segments: Vec<usize>,
    /// The least period of its roots.
    pub(super) period_ns: u64,
    /// The shortest deadline of its own, of its two-way callees, and of chains through them.
    pub(super) deadline_ns: u64,
    /// The highest criticality of its own and of its two-way callees.
    pub(super) criticality: Criticality,
    /// The priority that the file gives.
    pub(super) given: Option<i16>,
    /// Whether any of its segments runs under fixed priorities.
    pub(super) fixed: bool,
}

/// The deadlines and owners of a system.
#[derive(Clone, Debug)]
pub(super) struct Goals {
    /// The behaviours that have priorities.
    pub(super) owners: Vec<Owner>,
    /// The owner of each segment.
    pub(super) owner_of: Vec<usize>,
    /// The owner of each behaviour that is one.
    pub(super) of_owner: HashMap<usize, usize>,
    /// The deadline of each activation.
    pub(super) deadlines_ns: Vec<u64>,
    /// The activations of each behaviour.
    pub(super) of_behaviour: Vec<Vec<usize>>,
    /// The activations along each chain.
    pub(super) of_chain: Vec<Vec<usize>>,
    /// The activations along each stage of each cause-effect chain.
    pub(super) of_stage: Vec<Vec<Vec<usize>>>,
}

impl Goals {
    pub(super) fn new(system: &System, composition: &Composition) -> Self {
        let deadline = |activation: &Activation| {
            let own = system.behaviours[activation.behaviour].deadline_ns;
            own.unwrap_or(period_ns(&system.behaviours[activation.root]))
        };
        let deadlines_ns: Vec<u64> = composition.activations.iter().map(deadline).collect();
        let mut of_behaviour = vec![vec![]; system.behaviours.len()];
        let mut by_path: HashMap<&[usize], Vec<usize>> = HashMap::new();
        for (index, activation) in composition.activations.iter().enumerate() {
            of_behaviour[activation.behaviour].push(index);
            by_path.entry(&activation.path).or_default().push(index);
        }
        let along = |path: &[usize]| by_path.get(path).cloned().unwrap_or_default();
        let of_chain = system.chains.iter().map(|chain| along(&chain.through));
        let of_chain = of_chain.collect();
        let of_stage = system.cause_effect_chains.iter().map(|chain| {
            let stages = chain.stages.iter().map(|stage| along(stage));
            stages.collect()
        });
        let of_stage = of_stage.collect();
        let (mut owners, owner_of) = owners(system, composition);
        for (index, activation) in composition.activations.iter().enumerate() {
            let owner = &mut owners[owner_of[activation.done]];
            owner.carry(
                &system.behaviours[activation.behaviour],
                deadlines_ns[index],
            );
        }
        for chain in &system.chains {
            for steps in 1..=chain.through.len() {
                for index in along(&chain.through[..steps]) {
                    let owner = &mut owners[owner_of[composition.activations[index].done]];
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
            of_stage,
        }
    }
}

impl Owner {
    fn carry(&mut self, behaviour: &Behaviour, deadline_ns: u64) {
        self.deadline_ns = self.deadline_ns.min(deadline_ns);
        self.criticality = self.criticality.max(behaviour.criticality);
    }
}

/// Returns the period, gap or window of a behaviour; 0 if it is called.
pub(super) fn period_ns(behaviour: &Behaviour) -> u64 {
    behaviour.trigger.period_ns().unwrap_or(0)
}

/// Returns the owners in the order of the system, without the deadlines of their callees, and the owner of each segment.
fn owners(system: &System, composition: &Composition) -> (Vec<Owner>, Vec<usize>) {
    let mut owners: Vec<Option<Owner>> = vec![None; system.behaviours.len()];
    for (index, segment) in composition.segments.iter().enumerate() {
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
        let processor = &composition.processors[segment.processor];
        owner.fixed |= processor.scheduling == SchedulingPolicy::FixedPriority;
    }
    let owners: Vec<Owner> = owners.into_iter().flatten().collect();
    let mut owner_of = vec![0; composition.segments.len()];
    for (index, owner) in owners.iter().enumerate() {
        owner
            .segments
            .iter()
            .for_each(|&segment| owner_of[segment] = index);
    }
    (owners, owner_of)
}
