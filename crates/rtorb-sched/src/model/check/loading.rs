//! The configuration of the ORBs, so that a run has the priorities and threads of the analysis.

mod by_deadline;
mod ceilings;

use std::collections::{BTreeMap, BTreeSet};

use super::super::composition::Activation;
use super::super::report::{ComponentLoading, LaneLoading, LaneOrder, Loading};
use super::super::system::{CallWay, Trigger};
use super::steps::{Analysis, View};

/// The threads of lanes by priority, the most urgent last.
type Lanes = BTreeMap<i16, u32>;

/// Returns the lanes, bands and priorities of every component, and the lanes of every channel.
///
/// A lane has a thread for each call that it may serve at once. Each owner makes one two-way call at a time and waits. Each
/// nested call back to a component whose thread waits needs another thread. A oneway call or event needs a thread for each job
/// that may not have ended when the next one arrives. A channel's lane has a thread for each supplier at its priority, and at
/// least one if it has consumers. A CPU that schedules by deadline has one lane for its jobs, whose threads are levels.
pub(super) fn loading(view: &View<'_>, analysis: &Analysis) -> Loading {
    let system = view.system;
    let mut components = vec![Draft::default(); system.components.len()];
    let mut channels: Vec<Lanes> = vec![Lanes::new(); system.channels.len()];
    for (index, owner) in view.goals.owners.iter().enumerate() {
        let Some(priority) = analysis.priorities[index] else {
            continue;
        };
        let behaviour = &system.behaviours[owner.behaviour];
        let component = &mut components[behaviour.component];
        component
            .priorities
            .push((behaviour.name.clone(), priority));
    }
    let priority_of = |behaviour: usize| {
        let owner = view.goals.of_owner.get(&behaviour)?;
        analysis.priorities[*owner]
    };
    // The threads that each owner occupies in a component, and its callees: once, for all paths.
    let mut calls: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut depths: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    for activation in &view.composition.activations {
        let owner = view.goals.owner_of[activation.done];
        let component = system.behaviours[activation.behaviour].component;
        let depth = depths.entry((owner, component)).or_default();
        *depth = (*depth).max(depth_of(view, owner, activation));
        calls.insert((owner, activation.behaviour));
    }
    for ((owner, component), depth) in depths {
        let Some(priority) = analysis.priorities[owner].filter(|_| depth > 0) else {
            continue;
        };
        let lane = components[component].lanes.entry(priority).or_default();
        *lane = lane.saturating_add(depth.saturating_mul(threads(view, analysis, owner)));
    }
    for (owner, behaviour) in calls {
        let behaviour = &system.behaviours[behaviour];
        let Some(priority) = analysis.priorities[owner] else {
            continue;
        };
        for call in &behaviour.calls {
            components[behaviour.component].bands.insert(priority);
            let CallWay::Event { channel } = call.way else {
                continue;
            };
            let lanes = &mut channels[channel];
            let lane = lanes.entry(priority).or_default();
            *lane = lane.saturating_add(threads(view, analysis, owner));
            for priority in call.to.iter().filter_map(|&to| priority_of(to)) {
                let lane = lanes.entry(priority).or_default();
                *lane = (*lane).max(1);
            }
        }
    }
    by_deadline::add(view, analysis, &mut components);
    let named = system.components.iter().zip(components);
    let channels = system.channels.iter().zip(&channels);
    Loading {
        components: named
            .map(|(component, draft)| draft.finish(&component.name))
            .collect(),
        channels: channels
            .map(|(channel, lanes)| (channel.name.clone(), listed(lanes)))
            .collect(),
    }
}

/// Returns how many threads a path occupies in the component of its last behaviour: one for each waiting call into it, and one
/// for the first call if a message released it.
fn depth_of(view: &View<'_>, owner: usize, activation: &Activation) -> u32 {
    let system = view.system;
    let owner = view.goals.owners[owner].behaviour;
    let begin = activation
        .path
        .iter()
        .rposition(|&behaviour| behaviour == owner);
    let waiting = &activation.path[begin.unwrap_or(0)..];
    let component = system.behaviours[activation.behaviour].component;
    let kept = |&behaviour: &&usize| {
        let behaviour = &system.behaviours[*behaviour];
        behaviour.component == component && behaviour.trigger == Trigger::Called
    };
    u32::try_from(waiting.iter().filter(kept).count()).unwrap_or(u32::MAX)
}

/// Returns how many jobs of an owner may be active at once. A root has one thread, whose jobs wait for each other.
fn threads(view: &View<'_>, analysis: &Analysis, owner: usize) -> u32 {
    let behaviour = view.goals.owners[owner].behaviour;
    if view.system.behaviours[behaviour].trigger != Trigger::Called {
        return 1;
    }
    let at_once = |&activation: &usize| {
        let activation = &view.composition.activations[activation];
        let arrivals = analysis.steps[activation.done].task.arrivals();
        let bound_ns = analysis.found[activation.done].response.bound_ns();
        let jobs = bound_ns.map_or(1, |ns| arrivals.jobs_in(ns.into()).max(1));
        u32::try_from(jobs).unwrap_or(u32::MAX)
    };
    let activations = view.goals.of_behaviour[behaviour].iter();
    let all = activations.map(at_once).fold(0, u32::saturating_add);
    all.clamp(1, THREADS_MAX)
}

/// The maximum; a system with more active jobs has other problems, which its bound shows.
const THREADS_MAX: u32 = 1_000;

#[derive(Clone, Default)]
struct Draft {
    lanes: Lanes,
    bands: BTreeSet<i16>,
    priorities: Vec<(String, i16)>,
    /// The lanes of a CPU that schedules by deadline.
    by_deadline: Option<Vec<LaneLoading>>,
    process_with: Vec<String>,
    lacks_lane: Option<String>,
    deadlines: Vec<(String, u64)>,
}

impl Draft {
    fn finish(self, name: &str) -> ComponentLoading {
        // By deadline, calls have the priority of a lane and not that of their caller.
        let (lanes, bands) = match (self.by_deadline, &self.lacks_lane) {
            (Some(lanes), _) => (lanes, BTreeSet::new()),
            (None, Some(_)) => (Vec::new(), BTreeSet::new()),
            (None, None) => (listed(&self.lanes), self.bands),
        };
        let bands = bands.into_iter().rev();
        ComponentLoading {
            component: name.to_owned(),
            lanes,
            bands: bands.map(|priority| (priority, priority)).collect(),
            priorities: self.priorities,
            deadlines: self.deadlines,
            process_with: self.process_with,
            lacks_lane: self.lacks_lane,
        }
    }
}

fn listed(lanes: &Lanes) -> Vec<LaneLoading> {
    let lane = |(&priority, &threads): (&i16, &u32)| LaneLoading {
        priority,
        threads,
        order: LaneOrder::Fifo,
    };
    lanes.iter().rev().map(lane).collect()
}
