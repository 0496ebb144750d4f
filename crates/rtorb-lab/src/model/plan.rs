//! What each process of a run is told: its lanes, its behaviours, whom they call, and which places of the tree of calls are theirs.

use std::collections::BTreeSet;

use rtorb_sched::model::{
    CallWay, CheckReport, ComponentLoading, Execution, Locking, Placement, SchedulingPolicy,
    System, Trigger,
};
use serde::{Deserialize, Serialize};

use super::places::Processor;
use super::tree::Tree;
pub(crate) use by_deadline::Levels;
use by_deadline::OrderDeadlines;

mod by_deadline;

/// The plan of one process. It performs one component, or all components of a CPU that schedules by deadline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ComponentPlan {
    /// The component, or the components.
    pub(crate) name: String,
    /// The node and the CPU.
    pub(crate) processor: Processor,
    /// CORBA priorities and threads, the most urgent first.
    pub(crate) lanes: Vec<(u8, u32)>,
    /// The levels of its last lane if that dispatches by deadline. A lane above it passes jobs on to it.
    pub(crate) levels: Option<Levels>,
    /// The ceiling of each resource of the process; `None` inherits.
    pub(crate) mutexes: Vec<Option<u8>>,
    /// What it does.
    pub(crate) behaviours: Vec<BehaviourPlan>,
    /// Room for so many jobs.
    pub(crate) jobs_max: usize,
    /// And for so many gaps in their work.
    pub(crate) gaps_max: usize,
    /// What is drawn is drawn from it.
    pub(crate) seed: u64,
}

/// A behaviour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BehaviourPlan {
    /// Its place in the system.
    pub(crate) number: u32,
    /// Its name.
    pub(crate) name: String,
    /// What makes it run.
    pub(crate) begins: Begins,
    /// The priority of a behaviour that has its own thread or job; `None` for others. On a CPU by deadline, its calls to other CPUs have it.
    pub(crate) priority: Option<u8>,
    /// The relative deadline that orders the jobs of a root on a CPU that schedules by deadline, in ns.
    pub(crate) deadline_ns: u64,
    /// All at which it may run.
    pub(crate) runs_at: Vec<u8>,
    /// How many take at most how long, in ns: of a range or a fixed time, one.
    pub(crate) execution: Vec<Drawn>,
    /// Which of the component's mutexes, and for how long.
    pub(crate) sections: Vec<(usize, u64)>,
    /// Whom it calls, in this order.
    pub(crate) calls: Vec<CallPlan>,
    /// Where it is in the tree, by who called.
    pub(crate) places: Vec<PlaceOf>,
}

/// What makes a behaviour run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Begins {
    /// The clock.
    Periodic { period_ns: u64, offset_ns: u64 },
    /// Something outside, with this gap or one that is so much longer at most.
    Sporadic {
        gap_ns: u64,
        more_ns: u64,
        burst: Option<BurstLimit>,
    },
    /// A call that is waited for.
    TwoWay,
    /// A call that is not.
    OneWay,
    /// An event.
    Event,
}

/// A bound on the arrivals within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BurstLimit {
    pub(crate) jobs: u32,
    pub(crate) window_ns: u64,
}

/// So many take between two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drawn {
    pub(crate) least_ns: u64,
    pub(crate) most_ns: u64,
    pub(crate) count: u64,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallPlan {
    pub(crate) to: To,
    pub(crate) payload_octets: u32,
    pub(crate) count: u32,
    /// The deadline that it brings, in ns from the arrival of the root.
    pub(crate) deadline_ns: Option<u64>,
}

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum To {
    TwoWay {
        behaviour: u32,
    },
    /// A behaviour of the same process by deadline, which the caller's thread performs, on the level of its lane.
    Here {
        behaviour: u32,
    },
    OneWay {
        behaviour: u32,
    },
    /// A behaviour of the same lane with levels, to which the lane above it passes the call on.
    PassedOn {
        behaviour: u32,
    },
    /// All who want the events of this source, which is this call's alone.
    Event {
        channel: usize,
        source: i32,
    },
}

/// Called by that place with its so-and-so-many-th call, it is at this one. A root is called by nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PlaceOf {
    pub(crate) caller: u32,
    pub(crate) call: u32,
    pub(crate) place: u32,
    /// The CORBA priority of its calls.
    pub(crate) priority: u8,
}

/// A subscription of an event callee: whose events, by which channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Subscription {
    pub(crate) behaviour: u32,
    pub(crate) channel: usize,
    pub(crate) source: i32,
}

/// What all processes of a run are told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Each process of components, in the order of the system.
    pub(crate) components: Vec<ComponentPlan>,
    /// The priorities of each channel's lanes, the most urgent first.
    pub(crate) channels: Vec<Vec<u8>>,
    /// Who gets which events.
    pub(crate) subscriptions: Vec<Subscription>,
    /// Every way from a root to a behaviour.
    pub(crate) tree: Tree,
    /// The priority of each behaviour that has one of its own.
    pub(crate) priorities: Vec<Option<u8>>,
}

/// Called by nobody: the caller of a root, and of what is done for practice.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Plan {
    /// Returns the highest native priority of a thread of the run.
    pub(crate) fn highest_priority(&self) -> u8 {
        let places = self.tree.places.iter().map(|place| place.priority);
        let levels = self.components.iter().filter_map(|one| one.levels);
        let all = places.chain(levels.map(Levels::releasing));
        all.max().unwrap_or(1)
    }

    /// What a run of that system for so long takes.
    ///
    /// # Errors
    /// In words, what of the system cannot be run, and what to do.
    pub(crate) fn of(
        system: &System,
        checked: &CheckReport,
        (duration_ns, seed): (u64, u64),
    ) -> Result<Self, String> {
        refuse_enforcement(system)?;
        let loading = |index: usize| {
            let mut loading = checked.loading.components.iter();
            loading.find(|loading| loading.component == system.components[index].name)
        };
        let components = 0..system.components.len();
        let levels = components.map(|index| Levels::of(system, index, loading(index)));
        let levels = levels.collect::<Result<Vec<_>, String>>()?;
        let priorities = own_priorities(system, checked, &levels)?;
        let tree = Tree::of(system, &priorities)?;
        let deadlines = OrderDeadlines::of(system, checked);
        let sources = Sources::of(system);
        let parts = Parts {
            system,
            tree: &tree,
            priorities: &priorities,
            sources: &sources,
            deadlines: &deadlines,
        };
        let mut components = Vec::new();
        for process in processes(system) {
            let first = process[0];
            let levels = levels[first];
            let names = process
                .iter()
                .map(|one| system.components[*one].name.as_str());
            components.push(ComponentPlan {
                name: names.collect::<Vec<_>>().join(" and "),
                processor: (system.components[first].node, system.components[first].cpu),
                lanes: match levels {
                    Some(levels) => levels.lanes(),
                    None => lanes(system, &tree, first, loading(first))?,
                },
                levels,
                mutexes: mutexes(system, &tree, &process, levels),
                behaviours: parts.behaviours(&process, levels)?,
                jobs_max: room(system, &tree, (&process, duration_ns), |_| 1).min(JOBS_MAX),
                gaps_max: room(system, &tree, (&process, duration_ns), gaps_a_job).min(GAPS_MAX),
                seed,
            });
        }
        Ok(Self {
            components,
            channels: channels(checked)?,
            subscriptions: sources.subscriptions(system),
            tree,
            priorities,
        })
    }
}

/// Refuses executions beyond an enforced budget: the run draws the whole execution and enforces nothing.
fn refuse_enforcement(system: &System) -> Result<(), String> {
    let each = system.behaviours.iter().enumerate();
    let mut exceeding =
        each.filter(|(index, one)| system.urgent_ns(*index) < one.execution.worst_ns());
    match exceeding.next() {
        None => Ok(()),
        Some((_, behaviour)) => Err(format!(
            "{} may execute beyond its budget, and a run enforces no budgets: shorten its execution to run the system",
            behaviour.name
        )),
    }
}

/// Returns the components of each process: one, or all of a CPU that schedules by deadline.
fn processes(system: &System) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for (index, one) in system.components.iter().enumerate() {
        let place = Placement {
            node: one.node,
            cpu: one.cpu,
        };
        let by_deadline = system.scheduling(place) == SchedulingPolicy::EarliestDeadline;
        let shares = |known: &&mut Vec<usize>| {
            let first = &system.components[known[0]];
            by_deadline && (first.node, first.cpu) == (one.node, one.cpu)
        };
        match found.iter_mut().find(shares) {
            Some(process) => process.push(index),
            None => found.push(vec![index]),
        }
    }
    found
}

/// The priorities of behaviours with a thread or a job of their own. By deadline, it is that of their calls to other CPUs.
fn own_priorities(
    system: &System,
    checked: &CheckReport,
    levels: &[Option<Levels>],
) -> Result<Vec<Option<u8>>, String> {
    let of = |(index, behaviour): (usize, &rtorb_sched::model::Behaviour)| {
        if begins(system, index)? == Begins::TwoWay {
            return Ok(None);
        }
        let assigned = assigned_priority(checked, &behaviour.name);
        let priority = match levels[behaviour.component] {
            Some(levels) => assigned.or(Some(levels.lowest.into())),
            None => behaviour.priority.or(assigned),
        };
        native(&behaviour.name, priority).map(Some)
    };
    system.behaviours.iter().enumerate().map(of).collect()
}

/// Returns the priority that a behaviour has in the analysis; `None` if nothing of it executes by priority.
fn assigned_priority(checked: &CheckReport, name: &str) -> Option<i16> {
    let components = checked.loading.components.iter();
    let mut assigned = components.flat_map(|component| &component.priorities);
    assigned
        .find(|(known, _)| known == name)
        .map(|(_, priority)| *priority)
}

/// Returns the native priority of something, which with the native mapping is its CORBA priority.
fn native(name: &str, priority: Option<i16>) -> Result<u8, String> {
    let priority = priority.ok_or_else(|| {
        format!("{name} has no priority: neither the file gives one, nor the analysis")
    })?;
    match u8::try_from(priority) {
        Ok(native @ 1..=NATIVE_MAX) => Ok(native),
        _ => Err(format!(
            "{name} has priority {priority}, and a run has 1 to {NATIVE_MAX}, the priorities of SCHED_FIFO below the kernel's own: \
             choose `priorities` of the system in that range"
        )),
    }
}

/// What makes it run: of one that is called, how.
fn begins(system: &System, behaviour: usize) -> Result<Begins, String> {
    match system.behaviours[behaviour].trigger {
        Trigger::Periodic {
            period_ns,
            offset_ns,
        } => {
            let offset_ns = offset_ns.unwrap_or(0);
            return Ok(Begins::Periodic {
                period_ns,
                offset_ns,
            });
        }
        Trigger::Sporadic { gap_ns, burst } => {
            let burst = burst.map(|burst| BurstLimit {
                jobs: burst.jobs,
                window_ns: burst.window_ns,
            });
            let most_ns = system.behaviours[behaviour].gap_max_ns;
            let more_ns = most_ns.map_or(u64::MAX, |most_ns| most_ns.saturating_sub(gap_ns));
            return Ok(Begins::Sporadic {
                gap_ns,
                more_ns: more_ns.min(gap_ns / 2),
                burst,
            });
        }
        Trigger::Called => {}
    }
    let calls = system.behaviours.iter().flat_map(|caller| &caller.calls);
    let ways: BTreeSet<u8> = calls
        .filter(|call| call.to.contains(&behaviour))
        .map(|call| match call.way {
            CallWay::TwoWay => 0,
            CallWay::OneWay => 1,
            CallWay::Event { .. } => 2,
        })
        .collect();
    let name = &system.behaviours[behaviour].name;
    match ways.iter().copied().collect::<Vec<_>>()[..] {
        [0] => Ok(Begins::TwoWay),
        [1] => Ok(Begins::OneWay),
        [2] => Ok(Begins::Event),
        [] => Err(format!(
            "nobody calls {name}, and it is neither periodic nor sporadic"
        )),
        // An object that is called both ways takes both.
        [1, 2] => Ok(Begins::Event),
        _ => Err(format!(
            "{name} is called both two-way and one-way: write two behaviours"
        )),
    }
}

/// As the analysis says, and each priority at which somebody calls.
fn lanes(
    system: &System,
    tree: &Tree,
    component: usize,
    loading: Option<&ComponentLoading>,
) -> Result<Vec<(u8, u32)>, String> {
    let name = &system.components[component].name;
    let mut lanes: Vec<(u8, u32)> = Vec::new();
    for lane in loading.map_or(&[][..], |loading| &loading.lanes) {
        let priority = native(&format!("a lane of {name}"), Some(lane.priority))?;
        lanes.push((priority, lane.threads.max(1)));
    }
    for place in &tree.places {
        let is_ours = system.behaviours[place.behaviour].component == component;
        let is_called = place.caller.is_some();
        if is_ours && is_called && !lanes.iter().any(|(known, _)| *known == place.priority) {
            return Err(format!(
                "{} is called at priority {}, and the analysis gives {name} no lane of it",
                system.behaviours[place.behaviour].name, place.priority
            ));
        }
    }
    lanes.sort_unstable_by(|one, other| other.cmp(one));
    Ok(lanes)
}

fn mutexes(
    system: &System,
    tree: &Tree,
    process: &[usize],
    levels: Option<Levels>,
) -> Vec<Option<u8>> {
    let ours = system
        .resources
        .iter()
        .enumerate()
        .filter(|(_, resource)| process.contains(&resource.component));
    ours.map(|(index, resource)| match (resource.locking, levels) {
        (Locking::Inheritance, _) => None,
        (Locking::Ceiling, Some(levels)) => Some(levels.ceiling()),
        (Locking::Ceiling, None) => {
            let who_locks = tree.places.iter().filter(|place| {
                let sections = &system.behaviours[place.behaviour].sections;
                sections.iter().any(|section| section.resource == index)
            });
            Some(who_locks.map(|place| place.priority).max().unwrap_or(1))
        }
    })
    .collect()
}

/// What the plan of every process is made of.
struct Parts<'a> {
    system: &'a System,
    tree: &'a Tree,
    priorities: &'a [Option<u8>],
    sources: &'a Sources,
    deadlines: &'a OrderDeadlines<'a>,
}

impl Parts<'_> {
    fn behaviours(
        &self,
        process: &[usize],
        levels: Option<Levels>,
    ) -> Result<Vec<BehaviourPlan>, String> {
        let ours = self.system.behaviours.iter().enumerate();
        let ours = ours.filter(|(_, behaviour)| process.contains(&behaviour.component));
        ours.map(|(index, _)| self.behaviour(index, process, levels))
            .collect()
    }

    fn behaviour(
        &self,
        index: usize,
        process: &[usize],
        levels: Option<Levels>,
    ) -> Result<BehaviourPlan, String> {
        let Self {
            system,
            tree,
            deadlines,
            ..
        } = *self;
        let behaviour = &system.behaviours[index];
        let places = tree.places_of(index);
        let runs_at: BTreeSet<u8> = match levels {
            Some(levels) => levels.priorities().collect(),
            None => places
                .iter()
                .map(|place| tree.places[place.place as usize].priority)
                .collect(),
        };
        let resources = system.resources.iter().enumerate();
        let ours: Vec<usize> = resources
            .filter(|(_, resource)| process.contains(&resource.component))
            .map(|(index, _)| index)
            .collect();
        let section = |section: &rtorb_sched::model::Section| {
            let mutex = ours.iter().position(|index| *index == section.resource);
            let mutex = mutex
                .ok_or_else(|| format!("{} locks what is another component's", behaviour.name))?;
            Ok((mutex, section.length_ns))
        };
        Ok(BehaviourPlan {
            number: index as u32,
            name: behaviour.name.clone(),
            begins: begins(system, index)?,
            priority: self.priorities[index],
            deadline_ns: deadlines
                .of_behaviour(index)
                .unwrap_or_else(|| by_deadline::own_deadline_ns(system, index)),
            runs_at: runs_at.into_iter().collect(),
            execution: drawn(&behaviour.execution),
            sections: behaviour
                .sections
                .iter()
                .map(section)
                .collect::<Result<_, String>>()?,
            calls: self.calls(index),
            places,
        })
    }

    fn calls(&self, behaviour: usize) -> Vec<CallPlan> {
        let Self {
            system, deadlines, ..
        } = *self;
        let calls = system.behaviours[behaviour].calls.iter().enumerate();
        calls
            .map(|(index, call)| {
                let callee = call.to.first().copied().unwrap_or(0);
                let to = callee as u32;
                CallPlan {
                    to: match call.way {
                        CallWay::TwoWay if deadlines.stays(behaviour, call) => {
                            To::Here { behaviour: to }
                        }
                        CallWay::TwoWay => To::TwoWay { behaviour: to },
                        CallWay::OneWay if system.is_passed_on(behaviour, call.way, callee) => {
                            To::PassedOn { behaviour: to }
                        }
                        CallWay::OneWay => To::OneWay { behaviour: to },
                        CallWay::Event { channel } => To::Event {
                            channel,
                            source: self.sources.of_call(behaviour, index),
                        },
                    },
                    payload_octets: call.payload_bytes,
                    count: call.count.max(1),
                    deadline_ns: deadlines.of_call(behaviour, call),
                }
            })
            .collect()
    }
}

fn drawn(execution: &Execution) -> Vec<Drawn> {
    let one = |least_ns: u64, most_ns: u64, count: u64| Drawn {
        least_ns: least_ns.min(most_ns),
        most_ns,
        count,
    };
    match execution {
        Execution::Fixed { ns } => vec![one(*ns, *ns, 1)],
        Execution::Range { least_ns, most_ns } => vec![one(*least_ns, *most_ns, 1)],
        Execution::Histogram { buckets } => {
            let lower = [0].into_iter().chain(buckets.iter().map(|b| b.up_to_ns));
            let both = buckets.iter().zip(lower);
            both.map(|(bucket, lower)| one(lower, bucket.up_to_ns, bucket.count))
                .collect()
        }
    }
}

/// Returns the priorities of each channel's lanes, as the analysis says.
fn channels(checked: &CheckReport) -> Result<Vec<Vec<u8>>, String> {
    let channels = checked.loading.channels.iter();
    let lanes = channels.map(|(name, lanes)| {
        let name = format!("a lane of the channel {name}");
        let lanes = lanes.iter();
        lanes
            .map(|lane| native(&name, Some(lane.priority)))
            .collect()
    });
    lanes.collect()
}

/// Returns how many records a process needs room for: an upper bound on its jobs in `duration_ns`, times the records of each job.
fn room(
    system: &System,
    tree: &Tree,
    (process, duration_ns): (&[usize], u64),
    a_job: impl Fn(&Execution) -> u64,
) -> usize {
    let ours = tree.places.iter();
    let ours = ours.filter(|place| process.contains(&system.behaviours[place.behaviour].component));
    let records = ours.map(|place| {
        let period_ns = tree.period_ns(system, place);
        let jobs = place
            .times
            .saturating_mul(duration_ns / period_ns.max(1) + 2);
        jobs.saturating_mul(a_job(&system.behaviours[place.behaviour].execution))
    });
    usize::try_from(records.fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
}

/// One each time that a tick may come, and for preemptions.
fn gaps_a_job(execution: &Execution) -> u64 {
    execution.worst_ns() / GAP_EVERY_NS + GAPS_BESIDE
}

/// Each call by an event has a source of its own, so that who gets it is who is meant.
struct Sources(Vec<(usize, usize)>);

impl Sources {
    fn of(system: &System) -> Self {
        let mut found = Vec::new();
        for (index, behaviour) in system.behaviours.iter().enumerate() {
            for (call_index, call) in behaviour.calls.iter().enumerate() {
                if matches!(call.way, CallWay::Event { .. }) {
                    found.push((index, call_index));
                }
            }
        }
        Self(found)
    }

    /// From 1: 0 is no source.
    fn of_call(&self, behaviour: usize, call: usize) -> i32 {
        let place = self.0.iter().position(|known| *known == (behaviour, call));
        place.map_or(0, |place| place as i32 + 1)
    }

    fn subscriptions(&self, system: &System) -> Vec<Subscription> {
        let mut found = Vec::new();
        for (behaviour, call_index) in &self.0 {
            let call = &system.behaviours[*behaviour].calls[*call_index];
            let CallWay::Event { channel } = call.way else {
                continue;
            };
            found.extend(call.to.iter().map(|to| Subscription {
                behaviour: *to as u32,
                channel,
                source: self.of_call(*behaviour, *call_index),
            }));
        }
        found
    }
}

/// Above it are the kernel's own threads that everybody needs.
const NATIVE_MAX: u8 = 98;
/// Of a process: sixteen mebibytes of records.
const JOBS_MAX: usize = 400_000;
/// Of a process: forty-eight mebibytes.
const GAPS_MAX: usize = 2 << 20;
/// Some times as often as the fastest tick.
const GAP_EVERY_NS: u64 = 200_000;
const GAPS_BESIDE: u64 = 8;

#[cfg(test)]
mod tests;
