//! A system composed with its platforms: what every CPU executes, each part with its layer. The input of the analysis.

use super::report::{Assumption, Layer};
use super::system::Section;
use crate::arrivals::Burst;
use crate::holistic::SchedulingPolicy;

/// Segments on processors, without levels. Indices refer to these vectors, or to those of the system where noted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Composition {
    /// The CPUs that execute something.
    pub processors: Vec<Processor>,
    /// What the processors execute.
    pub segments: Vec<Segment>,
    /// The end of each behaviour, as a segment.
    pub activations: Vec<Activation>,
    /// The assumptions of the costs.
    pub assumptions: Vec<Assumption>,
}

/// A CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    /// The node: an index into the system's nodes.
    pub node: usize,
    /// The CPU of the node, from 0.
    pub cpu: u32,
    /// The scheduling policy.
    pub scheduling: SchedulingPolicy,
    /// The number of levels of its lane that dispatches by deadline; `None` for as many as are needed.
    pub levels: Option<u32>,
    /// The interrupts that preempt every segment: the clock's tick, and timers.
    pub interrupts: Vec<Interrupt>,
    /// The longest time for which a hypervisor was seen to take the CPU, in ns; in no bound. 0 on bare metal.
    pub hypervisor_ns: u64,
}

/// A recurring interrupt that the kernel serves before all segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupt {
    /// The least period, in ns.
    pub period_ns: u64,
    /// The interrupts within a period.
    pub burst: Burst,
    /// The longest time from the arrival of what it releases to the interrupt, in ns.
    pub jitter_ns: u64,
    /// The cost of one interrupt.
    pub cost: Part,
}

/// A part of a segment's time, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The layer that causes it.
    pub layer: Layer,
    /// The cause, as text.
    pub what: String,
    /// The behaviour whose own code it is: longer execution of that behaviour makes the part longer, `times` over. `None` for
    /// costs of the host and the ORB.
    pub code_of: Option<usize>,
    /// The number of occurrences.
    pub times: u64,
    /// The worst-case total, in ns.
    pub ns: u64,
}

/// A part of a behaviour that one processor executes without suspending itself. The segments of a root form a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The behaviour whose code it executes, or the caller that waits. For a channel's work it is the supplier until the event
    /// reaches its consumers' lanes, then the consumer.
    pub behaviour: usize,
    /// The root: the periodic or sporadic behaviour whose arrival releases it.
    pub root: usize,
    /// The behaviour at whose own priority it runs; in a two-way call, that of the outermost caller.
    pub priority_of: usize,
    /// The processor.
    pub processor: usize,
    /// The predecessor, whose end releases it; `None` for the first segment.
    pub after: Option<usize>,
    /// Whether a message that is sent before that end releases it.
    pub begins_early: bool,
    /// Whether its thread calls a behaviour of this CPU and waits for it, which counts as its execution.
    pub calls_here: bool,
    /// The call to another CPU for which its thread waited, if it kept its level of a lane meanwhile. Then the predecessor is the segment that
    /// sent the call, and the time of the call counts as execution.
    pub waits_for: Option<Wait>,
    /// The delay from that end to its release: networks, wake-ups of other CPUs.
    pub delay: Vec<Part>,
    /// The release jitter of the first segment.
    pub jitter: Vec<Part>,
    /// The execution.
    pub execution: Vec<Part>,
    /// The blocking once per segment, besides sections of others: the kernel's longest section that cannot be preempted.
    pub blocking: Vec<Part>,
    /// The critical sections, each with its behaviour: a servant locks in its caller's segment.
    pub sections: Vec<(usize, Section)>,
    /// The cost of one contended lock, in ns: once for each section that may wait.
    pub contended_lock_ns: u64,
}

/// A call to another CPU for which a thread by deadline waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The behaviour that is called.
    pub callee: usize,
    /// The segment that sends the call.
    pub sent_by: usize,
    /// The segment at whose end the reply is sent.
    pub replied_by: usize,
    /// The delay of the reply.
    pub delay: Vec<Part>,
}

/// The end of a behaviour that a root released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The behaviour.
    pub behaviour: usize,
    /// The root.
    pub root: usize,
    /// The call path: the behaviours from the root to this one.
    pub path: Vec<usize>,
    /// The segment in which the behaviour ends; not before that segment's end.
    pub done: usize,
}

/// Returns the sum of parts, in ns.
pub(super) fn sum_ns(parts: &[Part]) -> u64 {
    parts
        .iter()
        .fold(0, |sum, part| sum.saturating_add(part.ns))
}
