//! The system that is at least as demanding as an old and a new one at any time of the change.

use std::collections::HashMap;

use super::super::platform::Platform;
use super::super::report::{ComponentLoading, LaneLoading, LaneOrder};
use super::super::system::{Behaviour, CallWay, Chain, Link, System};
use super::bands::{Priorities, assign, check_ceilings};
use super::worse::{effective_deadline, work, worse};
use super::{SystemMode, TransitionError, fixed};

/// Returns that system, with the platform of each of its nodes.
///
/// # Errors
/// The part that cannot change while the system runs, or two calls of one behaviour that exclude each other.
pub(super) fn merged(
    old: SystemMode<'_>,
    new: SystemMode<'_>,
) -> Result<(System, Vec<Platform>), TransitionError> {
    let mut merged = MergedSystem {
        system: System {
            // Of data that goes through registers during a change, nothing is analysed.
            cause_effect_chains: Vec::new(),
            ..new.system.clone()
        },
        platforms: new.platforms.to_vec(),
        places: Places::default(),
    };
    merged.add_hardware(old)?;
    merged.add_processes(old.system)?;
    merged.keep_levels(old, new)?;
    merged.add_behaviours(old, new)?;
    merged.add_chains(old.system);
    let modes = [Priorities::of(old), Priorities::of(new)];
    check_ceilings([old.system, new.system], &modes)?;
    assign(&mut merged.system, &modes);
    check_ways(&merged.system)?;
    Ok((merged.system, merged.platforms))
}

struct MergedSystem {
    system: System,
    platforms: Vec<Platform>,
    places: Places,
}

/// Where each part of the old system is in the merged one.
#[derive(Default)]
struct Places {
    nodes: Vec<usize>,
    components: Vec<usize>,
    channels: Vec<usize>,
    resources: Vec<usize>,
    behaviours: Vec<usize>,
}

impl MergedSystem {
    fn add_hardware(&mut self, old: SystemMode<'_>) -> Result<(), TransitionError> {
        for (node, platform) in old.system.nodes.iter().zip(old.platforms) {
            let at = place(&mut self.system.nodes, node, |one| &one.name);
            self.places.nodes.push(at);
            if at == self.platforms.len() {
                self.platforms.push(platform.clone());
            }
            let known = &mut self.system.nodes[at];
            if (&known.scheduling, known.levels) != (&node.scheduling, node.levels) {
                let what = format!("`scheduling` and `levels` of the node {}", node.name);
                let because = "no analysis covers jobs of two schedulings on one CPU";
                return Err(fixed(&what, because));
            }
            known.cpus = known.cpus.max(node.cpus);
        }
        for link in &old.system.links {
            let link = Link {
                between: link.between.map(|node| self.places.nodes[node]),
                ..link.clone()
            };
            let [one, other] = link.between;
            let mut links = self.system.links.iter_mut();
            match links.find(|known| known.between == [one, other] || known.between == [other, one])
            {
                Some(known) => {
                    known.latency_ns = known.latency_ns.max(link.latency_ns);
                    let rates = [known.bits_per_second, link.bits_per_second];
                    known.bits_per_second = rates.into_iter().flatten().min();
                }
                None => self.system.links.push(link),
            }
        }
        Ok(())
    }

    fn add_processes(&mut self, old: &System) -> Result<(), TransitionError> {
        for component in &old.components {
            let mut moved = component.clone();
            moved.node = self.places.nodes[component.node];
            let at = place(&mut self.system.components, &moved, |one| &one.name);
            let known = &self.system.components[at];
            if (known.node, known.cpu) != (moved.node, moved.cpu) {
                return Err(fixed(
                    &format!("the CPU of the component {}", moved.name),
                    MOVED,
                ));
            }
            self.places.components.push(at);
        }
        for channel in &old.channels {
            let mut moved = channel.clone();
            moved.node = self.places.nodes[channel.node];
            let at = place(&mut self.system.channels, &moved, |one| &one.name);
            let known = &self.system.channels[at];
            if (known.node, known.cpu) != (moved.node, moved.cpu) {
                return Err(fixed(
                    &format!("the CPU of the channel {}", moved.name),
                    MOVED,
                ));
            }
            self.places.channels.push(at);
        }
        for resource in &old.resources {
            let mut moved = resource.clone();
            moved.component = self.places.components[resource.component];
            let at = place(&mut self.system.resources, &moved, |one| &one.name);
            if self.system.resources[at].locking != moved.locking {
                return Err(fixed(
                    &format!("the mutex of {}", moved.name),
                    "the programs have made it",
                ));
            }
            self.places.resources.push(at);
        }
        Ok(())
    }

    /// Lanes that dispatch by deadline keep their levels, also where the nodes say no number.
    fn keep_levels(
        &mut self,
        old: SystemMode<'_>,
        new: SystemMode<'_>,
    ) -> Result<(), TransitionError> {
        let all = new.report.loading.components.iter();
        let of_new: HashMap<&str, Option<LaneLoading>> = all
            .map(|one| (one.component.as_str(), lane_by_deadline(one)))
            .collect();
        for loading in &old.report.loading.components {
            let Some(lane) = lane_by_deadline(loading) else {
                continue;
            };
            let name = loading.component.as_str();
            if of_new.get(name).is_some_and(|known| *known != Some(lane)) {
                return Err(fixed(
                    &format!("the priority and the levels of the lane of {name}"),
                    "each level has a native priority from the start",
                ));
            }
            let mut components = self.system.components.iter();
            if let Some(component) = components.find(|component| component.name == name) {
                let levels = &mut self.system.nodes[component.node].levels;
                let fewest = levels.unwrap_or(u32::MAX).min(lane.threads);
                *levels = Some(fewest);
            }
        }
        Ok(())
    }

    fn add_behaviours(
        &mut self,
        old: SystemMode<'_>,
        new: SystemMode<'_>,
    ) -> Result<(), TransitionError> {
        let of_new = self.system.behaviours.len();
        for behaviour in &old.system.behaviours {
            let at = place(&mut self.system.behaviours, behaviour, |one| &one.name);
            self.places.behaviours.push(at);
        }
        for (index, behaviour) in old.system.behaviours.iter().enumerate() {
            let at = self.places.behaviours[index];
            let moved = self.moved(behaviour);
            if at >= of_new {
                self.system.behaviours[at] = moved;
                continue;
            }
            let known = &self.system.behaviours[at];
            let both = [effective_deadline(old, index), effective_deadline(new, at)];
            let given = known.deadline_ns.or(moved.deadline_ns);
            let deadline_ns = given.and(both.into_iter().flatten().min());
            self.system.behaviours[at] = Behaviour {
                deadline_ns,
                ..worse(&moved, known)?
            };
        }
        for (behaviour, &at) in old.system.behaviours.iter().zip(&self.places.behaviours) {
            if let Some(known) = new.system.behaviours.get(at) {
                let is_bounded = self.system.is_bounded_by_demotion(at);
                let merged = &mut self.system.behaviours[at];
                (merged.execution, merged.enforcement) = work(behaviour, known, is_bounded);
            }
        }
        Ok(())
    }

    fn add_chains(&mut self, old: &System) {
        for chain in &old.chains {
            let places = chain.through.iter();
            let through: Vec<usize> = places.map(|at| self.places.behaviours[*at]).collect();
            let mut known = self.system.chains.iter_mut();
            match known.find(|one| one.through == through) {
                Some(known) => known.deadline_ns = known.deadline_ns.min(chain.deadline_ns),
                None => self.system.chains.push(Chain {
                    through,
                    ..chain.clone()
                }),
            }
        }
    }

    /// Returns an old behaviour whose indices are those of the merged system.
    fn moved(&self, behaviour: &Behaviour) -> Behaviour {
        let places = &self.places;
        let mut moved = behaviour.clone();
        moved.component = places.components[moved.component];
        for section in &mut moved.sections {
            section.resource = places.resources[section.resource];
        }
        for call in &mut moved.calls {
            for to in &mut call.to {
                *to = places.behaviours[*to];
            }
            if let CallWay::Event { channel } = &mut call.way {
                *channel = places.channels[*channel];
            }
        }
        moved
    }
}

const MOVED: &str = "no analysis covers jobs that move between CPUs";

fn lane_by_deadline(loading: &ComponentLoading) -> Option<LaneLoading> {
    let mut lanes = loading.lanes.iter().copied();
    lanes.find(|lane| lane.order == LaneOrder::EarliestDeadline)
}

/// Returns the place of the item with that name, which is added if there is none.
fn place<T: Clone>(known: &mut Vec<T>, item: &T, name: impl Fn(&T) -> &String) -> usize {
    let at = known.iter().position(|one| name(one) == name(item));
    at.unwrap_or_else(|| {
        known.push(item.clone());
        known.len() - 1
    })
}

/// Checks that no behaviour is called two-way in one mode, at its caller's priority, and in another way in the other one.
fn check_ways(system: &System) -> Result<(), TransitionError> {
    let mut is_awaited: Vec<Option<bool>> = vec![None; system.behaviours.len()];
    for call in system.behaviours.iter().flat_map(|one| &one.calls) {
        let awaited = call.way == CallWay::TwoWay;
        for &callee in &call.to {
            if is_awaited[callee]
                .replace(awaited)
                .is_some_and(|known| known != awaited)
            {
                let name = &system.behaviours[callee].name;
                return Err(fixed(
                    &format!("whether callers of {name} wait for it"),
                    "calls of both kinds would be there, at different priorities",
                ));
            }
        }
    }
    Ok(())
}
