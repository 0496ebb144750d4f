//! A system: nodes, components, behaviours and their calls. Indices refer to the vectors of [`System`].

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::arrivals::Burst;
use crate::holistic::SchedulingPolicy;
use crate::levels::Strategy;
use crate::mapping::PriorityRange;
use crate::task::Criticality;

/// A valid system as its file describes it: indices are in range, names are unique, calls form no cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// The name.
    pub name: String,
    /// The strategy for behaviours without a priority: rms, dms, muf or optimal.
    pub strategy: Strategy,
    /// The CORBA priorities that may be assigned.
    pub priorities: PriorityRange,
    /// The computers.
    pub nodes: Vec<Node>,
    /// The networks between two nodes.
    pub links: Vec<Link>,
    /// The event channels.
    pub channels: Vec<Channel>,
    /// The processes.
    pub components: Vec<Component>,
    /// The behaviours of all components.
    pub behaviours: Vec<Behaviour>,
    /// The resources that behaviours of one component lock.
    pub resources: Vec<Resource>,
    /// End-to-end deadlines.
    pub chains: Vec<Chain>,
    /// The chains along which data goes, also through registers.
    pub cause_effect_chains: Vec<CauseEffectChain>,
}

/// A computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The number of CPUs for the system, at least 1. Each component runs on one of them (partitioned scheduling).
    pub cpus: u32,
    /// The platform profile (docs/reference/profile.md), relative to the folder of the system's file; `None` if the command names one.
    pub profile: Option<PathBuf>,
    /// The scheduling policy of each of its CPUs.
    pub scheduling: Vec<SchedulingPolicy>,
    /// The number of native priorities over which a lane dispatches by deadline (levels); `None` for as many as are needed.
    pub levels: Option<u32>,
    /// The period of the kernel's clock tick, in ns (P3 Eq. 1 to 3); `None` takes the period of the profile's kernel.
    pub tick_ns: Option<u64>,
    /// Its line in the file.
    pub line: usize,
}

/// A CPU of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// The node.
    pub node: usize,
    /// The CPU of the node, from 0.
    pub cpu: u32,
}

/// The network between two nodes. Nodes without a link cannot call each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The two nodes, in any order.
    pub between: [usize; 2],
    /// The longest latency of a message without payload, in ns, besides the execution at both ends.
    pub latency_ns: u64,
    /// The data rate; `None` adds nothing for size.
    pub bits_per_second: Option<u64>,
    /// Its line in the file.
    pub line: usize,
}

/// An event channel: a process of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// The node.
    pub node: usize,
    /// The CPU of the node, from 0.
    pub cpu: u32,
    /// Its line in the file.
    pub line: usize,
}

/// A process with an ORB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub node: usize,
    /// The CPU of the node, from 0; all of its behaviours run there.
    pub cpu: u32,
    /// Its line in the file.
    pub line: usize,
}

/// A recurring activity of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// `COMPONENT.NAME`.
    pub name: String,
    /// The component.
    pub component: usize,
    /// The trigger.
    pub trigger: Trigger,
    /// The longest time between two arrivals of a sporadic behaviour, in ns, at least its gap; `None` if it is unknown.
    pub gap_max_ns: Option<u64>,
    /// The execution time of its own code with its critical sections, without the calls that it makes.
    pub execution: Execution,
    /// What happens if it executes longer than its budget.
    pub enforcement: Enforcement,
    /// The deadline, in ns, from the arrival of the root (the periodic or sporadic behaviour at the beginning of the calls);
    /// `None` stands for the period of the root.
    pub deadline_ns: Option<u64>,
    /// What a missed deadline costs.
    pub criticality: Criticality,
    /// The CORBA priority; `None` lets the strategy choose. A callee of a two-way call has none: it runs at its caller's
    /// (CLIENT_PROPAGATED).
    pub priority: Option<i16>,
    /// The IDL operation whose annotations supply what the file omits, as `Module::Interface::operation`.
    pub operation: Option<String>,
    /// How many calls of the operation may be late, as its annotations state.
    pub miss_ratio: Option<MissRatio>,
    /// The requirements of the operation with which its clients and servers are compiled.
    pub requirements: CompiledRequirements,
    /// The release jitter, in ns, besides that of the platform.
    pub jitter_ns: u64,
    /// The critical sections.
    pub sections: Vec<Section>,
    /// The calls, in this order, after its own code.
    pub calls: Vec<Call>,
    /// Its line in the file.
    pub line: usize,
}

/// The trigger of a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The clock releases it.
    Periodic {
        /// The period, in ns, at least 1.
        period_ns: u64,
        /// The arrival of the first job on the clock of the node, in ns; `None` if it is unknown.
        offset_ns: Option<u64>,
    },
    /// An event outside the system releases it.
    Sporadic {
        /// The least time between two arrivals, in ns, at least 1.
        gap_ns: u64,
        /// The bound on jobs that arrive so close together; `None` if they may go on.
        burst: Option<ArrivalBurst>,
    },
    /// Calls and events of other behaviours release it.
    Called,
}

/// A burst of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalBurst {
    /// The largest number of arrivals within a window, at least 2.
    pub jobs: u32,
    /// The window, in ns; not shorter than the minimum gap times `jobs`.
    pub window_ns: u64,
}

/// What happens to a job that executes longer than its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enforcement {
    /// It is counted, and goes on.
    #[default]
    Count,
    /// It goes on less urgently than all real-time work, and keeps its thread and level.
    Demote(Budget),
    /// It stops.
    Stop(Budget),
}

/// A bound on the execution of a job at its own urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The execution that is granted, in ns.
    pub budget_ns: u64,
    /// The longest execution beyond the budget until it is enforced, in ns.
    pub granularity_ns: u64,
}

impl Budget {
    /// Returns the longest execution until it is enforced, of a job that executes for `worst_ns`.
    pub(super) fn bound(self, worst_ns: u64) -> u64 {
        worst_ns.min(self.budget_ns.saturating_add(self.granularity_ns))
    }
}

/// An execution time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// A constant.
    Fixed {
        /// In ns.
        ns: u64,
    },
    /// A range.
    Range {
        /// The shortest, in ns.
        least_ns: u64,
        /// Returns the longest execution time, in ns.
        most_ns: u64,
    },
    /// A measured histogram, the shortest first; at least one bucket.
    Histogram {
        /// The buckets.
        buckets: Vec<Bucket>,
    },
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The upper bound of the bucket, in ns.
    pub up_to_ns: u64,
    /// The number of executions; at least 1.
    pub count: u64,
}

/// A critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The resource.
    pub resource: usize,
    /// The longest execution within the section, in ns.
    pub length_ns: u64,
}

/// A call that a behaviour makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The callees: one, or for an event all consumers.
    pub to: Vec<usize>,
    /// The kind of call.
    pub way: CallWay,
    /// The payload in bytes.
    pub payload_bytes: u32,
    /// The number of calls per execution, at least 1. Always 1 if the caller does not wait.
    pub count: u32,
    /// The longest time for which each side lingers in shared memory before it sleeps, in nanoseconds; 0 if it does not.
    pub lingering_ns: u64,
    /// Its line in the file.
    pub line: usize,
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallWay {
    /// The caller waits; the callee runs at the caller's priority.
    TwoWay,
    /// The caller goes on; the callee has its own priority (SERVER_DECLARED).
    OneWay,
    /// The caller goes on; an event channel delivers the event.
    Event {
        /// The channel.
        channel: usize,
    },
}

/// A resource that only one behaviour of a component holds at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// `COMPONENT.NAME`.
    pub name: String,
    /// The component.
    pub component: usize,
    /// The protocol of its mutex.
    pub locking: Locking,
    /// Its line in the file.
    pub line: usize,
}

/// The protocol of a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// The holder inherits the priority of waiting threads (PTHREAD_PRIO_INHERIT).
    Inheritance,
    /// The holder has the highest priority of all threads that lock the mutex (PTHREAD_PRIO_PROTECT).
    Ceiling,
}

/// An end-to-end deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// The behaviours from the first, which is periodic or sporadic, to the last; each calls the next.
    pub through: Vec<usize>,
    /// The deadline, in ns, from the arrival of the first behaviour to the end of the last.
    pub deadline_ns: u64,
    /// Its line in the file.
    pub line: usize,
}

/// A sequence of behaviours along which data goes from an input to an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseEffectChain {
    /// Its name.
    pub name: String,
    /// The stages, at least one. A stage is a path of calls: its first behaviour is periodic or sporadic, and each behaviour calls the
    /// next. The last behaviour of a stage writes a register, which the first one of the next stage reads.
    pub stages: Vec<Vec<usize>>,
    /// When registers are read and written.
    pub communication: Communication,
    /// The limit of the data age, in ns.
    pub data_age_max_ns: Option<u64>,
    /// The limit of the reaction time, in ns.
    pub reaction_time_max_ns: Option<u64>,
    /// Its line in the file.
    pub line: usize,
}

/// When the jobs of a cause-effect chain read and write registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Communication {
    /// A job reads when it starts and writes when it ends (implicit communication of AUTOSAR).
    #[default]
    Implicit,
    /// A job reads when it arrives and writes at the end of its period, whenever it executes (logical execution time).
    LogicalExecutionTime,
}

/// The timing annotations of an IDL operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The place of the annotations, as `FILE:LINE`, for messages; empty if unknown.
    pub place: String,
    /// `@worst_case_time`, in ns.
    pub worst_ns: Option<u64>,
    /// `@deadline`, in ns.
    pub deadline_ns: Option<u64>,
    /// `@period`, in ns: the least time between two arrivals.
    pub period_ns: Option<u64>,
    /// `@criticality`.
    pub criticality: Option<Criticality>,
    /// `@statistical`.
    pub miss_ratio: Option<MissRatio>,
    /// The requirements that bound nothing of the analysis.
    pub requirements: CompiledRequirements,
}

/// Requirements of an IDL operation that the analysis does not use, and that the code of its clients and servers contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompiledRequirements {
    /// `@network_priority`: the code point of its messages.
    pub network_priority: Option<u8>,
    /// `@largest_message`, in bytes.
    pub message_bytes_max: Option<u32>,
    /// `@queue`: the most requests that wait.
    pub queue_max: Option<u32>,
}

/// How many of any calls in succession may miss their deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissRatio {
    /// The most late calls.
    pub misses: u32,
    /// The calls among which they are counted.
    pub calls: u32,
}

impl CompiledRequirements {
    /// No requirements.
    pub const NONE: Self = Self {
        network_priority: None,
        message_bytes_max: None,
        queue_max: None,
    };

    /// Returns the annotation that differs from that of another version of the operation.
    #[must_use]
    pub fn difference(self, other: Self) -> Option<&'static str> {
        if self.network_priority != other.network_priority {
            Some("@network_priority")
        } else if self.message_bytes_max != other.message_bytes_max {
            Some("@largest_message")
        } else if self.queue_max != other.queue_max {
            Some("@queue")
        } else {
            None
        }
    }
}

impl Execution {
    /// The longest, in ns.
    #[must_use]
    pub fn worst_ns(&self) -> u64 {
        match self {
            Self::Fixed { ns } => *ns,
            Self::Range { most_ns, .. } => *most_ns,
            Self::Histogram { buckets } => buckets.last().map_or(0, |bucket| bucket.up_to_ns),
        }
    }
}

impl Trigger {
    /// Returns the period, the minimum gap, or the window of a burst, in ns; `None` if it is called.
    #[must_use]
    pub const fn period_ns(self) -> Option<u64> {
        match self {
            Self::Periodic { period_ns, .. } => Some(period_ns),
            Self::Sporadic { gap_ns, burst } => match burst {
                Some(burst) => Some(burst.window_ns),
                None => Some(gap_ns),
            },
            Self::Called => None,
        }
    }

    /// Returns the static offset, in ns, if it is known.
    #[must_use]
    pub const fn offset_ns(self) -> Option<u64> {
        match self {
            Self::Periodic { offset_ns, .. } => offset_ns,
            Self::Sporadic { .. } | Self::Called => None,
        }
    }

    /// Returns the jobs within that time.
    #[must_use]
    pub const fn burst(self) -> Burst {
        match self {
            Self::Sporadic {
                gap_ns,
                burst: Some(burst),
            } => Burst {
                jobs: burst.jobs,
                gap_ns,
            },
            _ => Burst::NONE,
        }
    }
}

impl Behaviour {
    /// Returns the longest execution of its own code for which others wait, in ns, if a demotion bounds that, or if none does.
    pub(super) fn urgent_ns(&self, is_bounded_by_demotion: bool) -> u64 {
        let worst_ns = self.execution.worst_ns();
        match self.enforcement {
            Enforcement::Demote(budget) if is_bounded_by_demotion => budget.bound(worst_ns),
            Enforcement::Stop(budget) => budget.bound(worst_ns),
            Enforcement::Count | Enforcement::Demote(_) => worst_ns,
        }
    }
}

impl System {
    /// Returns the longest execution of a behaviour's own code for which others wait, in ns: the budget and its granularity, if they are
    /// enforced and less than the longest execution. A demotion enforces them only if [nobody waits for a demoted
    /// job](Self::is_bounded_by_demotion): otherwise others wait until it ends.
    #[must_use]
    pub fn urgent_ns(&self, behaviour: usize) -> u64 {
        self.behaviours[behaviour].urgent_ns(self.is_bounded_by_demotion(behaviour))
    }

    /// Returns true if no other behaviour waits for the thread or the level of a behaviour: it is not called, and its CPU does not schedule
    /// by deadline. A job keeps its level until it ends; a two-way caller waits for its callee; and a lane serves all its calls by the same
    /// threads.
    #[must_use]
    pub fn has_own_thread(&self, behaviour: usize) -> bool {
        self.behaviours[behaviour].trigger != Trigger::Called
            && self.scheduling(self.placement(behaviour)) == SchedulingPolicy::FixedPriority
    }

    /// Returns true if a demoted job of a behaviour delays no others. The behaviour [has its own thread](Self::has_own_thread) then. It and all
    /// that it waits for lock nothing, send no oneways or events, and execute on one CPU.
    ///
    /// A demoted job that holds a mutex runs at the priority of a job that waits for the mutex. A message of a demoted job comes late, and the
    /// next job's message follows it sooner than a period later.
    #[must_use]
    pub fn is_bounded_by_demotion(&self, behaviour: usize) -> bool {
        let here = self.placement(behaviour);
        let disturbs = |&one: &usize| {
            let Behaviour {
                sections, calls, ..
            } = &self.behaviours[one];
            let sends = calls.iter().any(|call| call.way != CallWay::TwoWay);
            sends || !sections.is_empty() || self.placement(one) != here
        };
        self.has_own_thread(behaviour) && !self.with_awaited([behaviour]).iter().any(disturbs)
    }

    /// Returns these behaviours and all that they wait for, by two-way calls.
    fn with_awaited(&self, behaviours: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut next: Vec<usize> = behaviours.into_iter().collect();
        let mut seen: BTreeSet<usize> = next.iter().copied().collect();
        while let Some(one) = next.pop() {
            let calls = self.behaviours[one].calls.iter();
            let calls = calls.filter(|call| call.way == CallWay::TwoWay);
            let called = calls.flat_map(|call| call.to.iter().copied());
            next.extend(called.filter(|called| seen.insert(*called)));
        }
        seen
    }

    /// Returns for each behaviour what may go on below all real-time work in its jobs: those that [may be demoted](Self::may_be_demoted) of
    /// itself and of all that it waits for, and all that these wait for. In the jobs of a called behaviour, whose caller may be demoted, that is
    /// everything that may in any.
    pub(super) fn demoted(&self) -> Vec<BTreeSet<usize>> {
        let all = 0..self.behaviours.len();
        let in_any = self.with_awaited(all.clone().filter(|one| self.may_be_demoted(*one)));
        let in_jobs_of = |owner: usize| {
            if in_any.is_empty() || self.behaviours[owner].trigger == Trigger::Called {
                return in_any.clone();
            }
            let own = self.with_awaited([owner]).into_iter();
            self.with_awaited(own.filter(|one| self.may_be_demoted(*one)))
        };
        all.map(in_jobs_of).collect()
    }

    /// Returns true if a job of a behaviour may go on below all real-time work.
    fn may_be_demoted(&self, behaviour: usize) -> bool {
        let one = &self.behaviours[behaviour];
        let worst_ns = one.execution.worst_ns();
        let demotes = |budget: Budget| budget.bound(worst_ns) < worst_ns;
        matches!(one.enforcement, Enforcement::Demote(budget) if demotes(budget))
    }

    /// Returns the scheduling policy of a CPU.
    #[must_use]
    pub fn scheduling(&self, place: Placement) -> SchedulingPolicy {
        let policies = &self.nodes[place.node].scheduling;
        let cpu = usize::try_from(place.cpu).unwrap_or(usize::MAX);
        policies.get(cpu).copied().unwrap_or_default()
    }

    /// Returns true if a lane above the levels passes a call on to the lane with levels of the callee's CPU: an event, which brings no
    /// deadline, or a oneway call of that CPU, whose lane cannot call itself.
    #[must_use]
    pub fn is_passed_on(&self, caller: usize, way: CallWay, to: usize) -> bool {
        let place = self.placement(to);
        self.scheduling(place) == SchedulingPolicy::EarliestDeadline
            && match way {
                CallWay::TwoWay => false,
                CallWay::OneWay => self.placement(caller) == place,
                CallWay::Event { .. } => true,
            }
    }

    /// Returns the behaviour of this name.
    #[must_use]
    pub fn behaviour(&self, name: &str) -> Option<usize> {
        self.behaviours
            .iter()
            .position(|behaviour| behaviour.name == name)
    }

    /// Returns the CPU that executes a behaviour.
    #[must_use]
    pub fn placement(&self, behaviour: usize) -> Placement {
        let component = &self.components[self.behaviours[behaviour].component];
        Placement {
            node: component.node,
            cpu: component.cpu,
        }
    }
}
