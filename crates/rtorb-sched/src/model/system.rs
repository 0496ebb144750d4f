//! A system: nodes, components, what they do, and how they call each other. Indices are places in the vectors of [`System`].

use std::path::PathBuf;

use crate::levels::Strategy;
use crate::mapping::PriorityRange;
use crate::task::Criticality;

/// A system as its file describes it; what it says is checked: indices are in range, names are unique, calls go in no circle.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Its name.
    pub name: String,
    /// How priorities are made for behaviours that have none: rms, dms, muf or optimal.
    pub strategy: Strategy,
    /// The CORBA priorities that may be given out.
    pub priorities: PriorityRange,
    /// The computers.
    pub nodes: Vec<Node>,
    /// The networks between two of them.
    pub links: Vec<Link>,
    /// The event channels.
    pub channels: Vec<Channel>,
    /// The processes.
    pub components: Vec<Component>,
    /// What they do; all of them, whichever component they are of.
    pub behaviours: Vec<Behaviour>,
    /// What behaviours of one component lock.
    pub resources: Vec<Resource>,
    /// End-to-end deadlines.
    pub chains: Vec<Chain>,
}

/// A computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// How many CPUs it has for the system; each component is on one of them (partitioned). At least 1.
    pub cpus: u32,
    /// Its platform profile (docs/profile.md), found from the folder of the system's file; `None` where the command names one.
    pub profile: Option<PathBuf>,
    /// Who runs first.
    pub scheduling: Scheduling,
    /// The period of the kernel's clock tick, in ns (P3 Eq. 1 to 3); `None` takes that of the profile's kernel.
    pub tick_ns: Option<u64>,
    /// Its line in the file.
    pub line: usize,
}

/// Who runs first on the CPUs of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// The higher priority, preemptively (SCHED_FIFO).
    #[default]
    FixedPriority,
    /// The earliest deadline, preemptively. It can be analysed, and not be run: RT-CORBA priorities are fixed.
    EarliestDeadline,
}

/// The network between two nodes; where none is given, they cannot call each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The two, in no order.
    pub between: [usize; 2],
    /// The longest that a message without payload is on its way, in ns, beyond what both ends execute.
    pub latency_ns: u64,
    /// How fast its octets follow each other; `None` adds nothing for size.
    pub bits_per_second: Option<u64>,
    /// Its line in the file.
    pub line: usize,
}

/// An event channel: a process of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub node: usize,
    /// On which CPU of the node, from 0.
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
    /// On which CPU of the node, from 0; all of its behaviours run there.
    pub cpu: u32,
    /// Its line in the file.
    pub line: usize,
}

/// Something that a component does, again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// `COMPONENT.NAME`.
    pub name: String,
    /// The component.
    pub component: usize,
    /// What makes it run.
    pub trigger: Trigger,
    /// How long its own code executes, without the calls that it makes; the sections are within it.
    pub execution: Execution,
    /// From the arrival of what began it (the release of the periodic or sporadic behaviour at the beginning of the calls) until
    /// it must be done, in ns; `None` is the period of that.
    pub deadline_ns: Option<u64>,
    /// What a missed deadline costs.
    pub criticality: Criticality,
    /// Its CORBA priority; `None` lets the strategy choose. Never of one that is called two-way: it has its caller's (CLIENT_PROPAGATED).
    pub priority: Option<i16>,
    /// The IDL operation whose annotations say what the file does not, as `Module::Interface::operation`.
    pub operation: Option<String>,
    /// How much later than its arrival it may be released, in ns, beyond what the platform adds.
    pub jitter_ns: u64,
    /// What it locks.
    pub sections: Vec<Section>,
    /// What it calls, in this order, after its own code.
    pub calls: Vec<Call>,
    /// Its line in the file.
    pub line: usize,
}

/// What makes a behaviour run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The clock.
    Periodic {
        /// In ns, at least 1.
        period_ns: u64,
    },
    /// Something outside.
    Sporadic {
        /// The least time between two arrivals, in ns, at least 1.
        gap_ns: u64,
    },
    /// Calls and events of other behaviours.
    Called,
}

/// How long something executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Always the same.
    Fixed {
        /// In ns.
        ns: u64,
    },
    /// Anything between two times.
    Range {
        /// The shortest, in ns.
        least_ns: u64,
        /// The longest, in ns.
        most_ns: u64,
    },
    /// As it was measured, the shortest first; at least one bucket.
    Histogram {
        /// How many took how long.
        buckets: Vec<Bucket>,
    },
}

/// How many executions took that long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// None of them longer than this, in ns.
    pub up_to_ns: u64,
    /// How many; at least 1.
    pub count: u64,
}

/// A critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// What is locked.
    pub resource: usize,
    /// For how long at most, in ns of execution.
    pub length_ns: u64,
}

/// A call that a behaviour makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who is called: one, or for an event all who get it.
    pub to: Vec<usize>,
    /// How.
    pub way: CallWay,
    /// Octets of data with it.
    pub payload_octets: u32,
    /// How many times each time; at least 1. Always 1 for what nobody waits for.
    pub count: u32,
    /// Its line in the file.
    pub line: usize,
}

/// How a behaviour calls another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallWay {
    /// And waits: the called runs at the caller's priority.
    TwoWay,
    /// And goes on: the called has a priority of its own (SERVER_DECLARED).
    OneWay,
    /// The same through an event channel.
    Event {
        /// Which.
        channel: usize,
    },
}

/// Something that only one behaviour of a component has at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// `COMPONENT.NAME`.
    pub name: String,
    /// The component.
    pub component: usize,
    /// What its mutex does about priorities.
    pub locking: Locking,
    /// Its line in the file.
    pub line: usize,
}

/// What a mutex does about priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// The holder inherits the priority of whoever waits (PTHREAD_PRIO_INHERIT).
    Inheritance,
    /// The holder has the highest priority of all who ever lock it (PTHREAD_PRIO_PROTECT).
    Ceiling,
}

/// An end-to-end deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// The behaviours from the first, which is periodic or sporadic, to the last; each calls the next.
    pub through: Vec<usize>,
    /// From the arrival of the first until the last is done, in ns.
    pub deadline_ns: u64,
    /// Its line in the file.
    pub line: usize,
}

/// What the annotations of an IDL operation say of its timing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Where it is annotated, as `FILE:LINE`, for messages; empty where that is not known.
    pub place: String,
    /// `@worst_case_time`, in ns.
    pub worst_ns: Option<u64>,
    /// `@deadline`, in ns.
    pub deadline_ns: Option<u64>,
    /// `@period`, in ns: the least time between two arrivals.
    pub period_ns: Option<u64>,
    /// `@criticality`.
    pub criticality: Option<Criticality>,
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

impl System {
    /// The behaviour of this name.
    #[must_use]
    pub fn behaviour(&self, name: &str) -> Option<usize> {
        self.behaviours
            .iter()
            .position(|behaviour| behaviour.name == name)
    }

    /// Where a behaviour runs: node, and CPU of the node.
    #[must_use]
    pub fn place(&self, behaviour: usize) -> (usize, u32) {
        let component = &self.components[self.behaviours[behaviour].component];
        (component.node, component.cpu)
    }
}
