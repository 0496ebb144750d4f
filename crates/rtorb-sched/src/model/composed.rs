//! A system composed with its platforms: what every CPU executes, each part with its layer. Between the file and the analysis.

use super::checked::{Assumption, Layer};
use super::system::{Scheduling, Section};

/// Segments on processors, before they have levels. Indices are places in these vectors, or in those of the system where it is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Composed {
    /// The CPUs on which something runs.
    pub processors: Vec<Processor>,
    /// What they execute.
    pub segments: Vec<Segment>,
    /// Which segment ends which behaviour.
    pub activations: Vec<Activation>,
    /// What the costs rest on.
    pub assumptions: Vec<Assumption>,
}

/// A CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    /// The node in the system.
    pub node: usize,
    /// Which CPU of it.
    pub cpu: u32,
    /// Who runs first.
    pub scheduling: Scheduling,
    /// What goes before every segment: the clock's tick, the interrupts of timers.
    pub interrupts: Vec<Interrupt>,
    /// The longest that a hypervisor was seen to take the CPU away, in ns; not in any bound. 0 on bare metal.
    pub hypervisor_ns: u64,
}

/// Something that the kernel executes again and again before all segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupt {
    /// How often at most, in ns.
    pub period_ns: u64,
    /// How long each time.
    pub cost: Part,
}

/// A part of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whose it is.
    pub layer: Layer,
    /// What it is, in words.
    pub what: String,
    /// The behaviour whose own code it is: what a longer execution of that behaviour makes longer, `times` over. `None` of what the
    /// host and the ORB add.
    pub code_of: Option<usize>,
    /// How many times.
    pub times: u64,
    /// In all, at worst, in ns.
    pub ns: u64,
}

/// Something that one processor executes without suspending itself. The segments of a root form a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The behaviour whose code it mostly is, or the caller that waits; of a channel's work, the supplier
    /// until the event is with its consumers' lanes, then the consumer.
    pub behaviour: usize,
    /// The periodic or sporadic behaviour that begins it; arrivals are its.
    pub root: usize,
    /// The behaviour at whose own priority it runs: of a two-way call's, the caller's and so on upwards.
    pub priority_of: usize,
    /// Where.
    pub processor: usize,
    /// The segment whose end releases it; `None` of the first.
    pub after: Option<usize>,
    /// From that end to its release: networks, wake-ups of other CPUs.
    pub delay: Vec<Part>,
    /// How much later than its arrival the first may be released.
    pub jitter: Vec<Part>,
    /// What it executes.
    pub execution: Vec<Part>,
    /// What may keep it waiting once, beside the sections of others: the kernel's longest section that cannot be preempted.
    pub blocking: Vec<Part>,
    /// What it locks; the behaviour whose sections these are (a servant locks in its caller's segment), and each of them.
    pub sections: Vec<(usize, Section)>,
    /// The cost of one lock that another holds, in ns: once for each section that may wait.
    pub contended_lock_ns: u64,
}

/// The end of a behaviour that a root began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The behaviour.
    pub behaviour: usize,
    /// What began it.
    pub root: usize,
    /// The behaviours on the way, from the root to this one.
    pub path: Vec<usize>,
    /// The segment in which it is done; not before that segment's end.
    pub done: usize,
}
