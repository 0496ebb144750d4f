//! The report of a check: bounds, their shares, and the configuration of the ORBs. `rtorb model check --json` prints it, so the
//! names here are the names there.

use serde::Serialize;

/// The result of checking a system on its platforms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckReport {
    /// The schema of the report: `rtorb-model/1`.
    pub schema: &'static str,
    /// The name of the system.
    pub system: String,
    /// The worst standing of all behaviours, chains and cause-effect chains.
    pub standing: Standing,
    /// The behaviour or chain that misses its deadline first: the most urgent priority, then the shortest deadline. If none does, the first
    /// cause-effect chain that exceeds a limit.
    pub first_miss: Option<String>,
    /// The strategy that assigned priorities to behaviours without one.
    pub strategy: String,
    /// Every CPU that executes something.
    pub processors: Vec<ProcessorUse>,
    /// Every behaviour, in the order of the system.
    pub behaviours: Vec<BehaviourBound>,
    /// Every chain, in the order of the system.
    pub chains: Vec<ChainBound>,
    /// Every cause-effect chain, in the order of the system.
    pub cause_effect_chains: Vec<CauseEffectBound>,
    /// The configuration of the ORBs.
    pub loading: Loading,
    /// What the bounds assume beyond the file: costs that were not measured, statistics that are no bounds, a hypervisor.
    pub assumptions: Vec<Assumption>,
}

/// Whether deadlines hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// All deadlines are proven to hold, under the assumptions.
    Holds,
    /// Undecided: the search ended early.
    NotProven,
    /// The bound exceeds the deadline.
    Misses,
}

/// A layer of the system (P3 figure 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Networks between nodes, and hypervisors.
    Hardware,
    /// Ticks, context switches, wake-ups, locks, and kernel sections that cannot be preempted.
    OperatingSystem,
    /// Calls and events.
    Orb,
    /// The components' own code.
    Application,
}

/// The utilisation of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessorUse {
    /// The node.
    pub node: String,
    /// The CPU of the node, from 0.
    pub cpu: u32,
    /// `fixed_priority` or `earliest_deadline`.
    pub scheduling: &'static str,
    /// The number of levels of a lane that dispatches by deadline; `None` for as many as are needed.
    pub levels: Option<u32>,
    /// In millionths, rounded up.
    pub utilisation_millionths: u64,
    /// The utilisation by layer, the largest first.
    pub layers_millionths: Vec<(Layer, u64)>,
}

/// The bound of a behaviour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BehaviourBound {
    /// The name, `COMPONENT.NAME`.
    pub behaviour: String,
    /// The root, from whose arrival the response counts: the behaviour itself if it is periodic or sporadic. Of several roots,
    /// the one with the least slack.
    pub root: String,
    /// `NODE/CPU`.
    pub processor: String,
    /// The CORBA priority at which it runs; a callee of a two-way call has its caller's.
    pub priority: Option<i16>,
    /// Whether the strategy assigned the priority.
    pub assigned: bool,
    /// The period of the root, in ns; the window of a burst.
    pub period_ns: u64,
    /// The largest number of arrivals of the root within that time.
    pub jobs: u32,
    /// The static offset of the root, in ns; `None` if it is unknown.
    pub offset_ns: Option<u64>,
    /// The deadline, in ns from the arrival of the root.
    pub deadline_ns: u64,
    /// The bound of the response time, in ns from the arrival of the root; `None` if there is none or it is unknown.
    pub bound_ns: Option<u64>,
    /// The deadline minus the bound, in ns; negative if the deadline is missed.
    pub slack_ns: Option<i64>,
    /// Whether the deadline holds.
    pub standing: Standing,
    /// The shares of the bound; their sum is the bound.
    pub shares: Vec<Share>,
    /// The bound from the arrival of each root, in ns.
    pub by_root: Vec<(String, Option<u64>)>,
    /// How much its execution may grow.
    pub sensitivity: Option<Sensitivity>,
    /// Why the deadline is missed or not proven, and what would help; empty if it holds.
    pub explanation: String,
}

/// A share of a bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The layer that causes it.
    pub layer: Layer,
    /// The cause: `own execution`, `context switches`, `preempted by sensors.sample`, `tick`, ...
    pub what: String,
    /// The number of occurrences.
    pub times: u64,
    /// The total time, in ns. Negative only for `arrived later`: the time by which a later job of a busy period arrived after its
    /// beginning.
    pub ns: i64,
}

/// How much a behaviour's own execution may grow, alone, before a deadline is missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sensitivity {
    /// The growth, in ns. If it is negative, the execution must shrink by so much for all deadlines to hold. `None` if no change
    /// helps, or no growth breaks a deadline.
    pub may_grow_ns: Option<i64>,
    /// The behaviour or chain that misses its deadline first with more growth.
    pub breaks_first: Option<String>,
}

/// The bound of a chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChainBound {
    /// The name.
    pub chain: String,
    /// The names of its behaviours.
    pub through: Vec<String>,
    /// The deadline, in ns from the arrival of the first behaviour.
    pub deadline_ns: u64,
    /// The bound, in ns; `None` if there is none or it is unknown.
    pub bound_ns: Option<u64>,
    /// The deadline minus the bound, in ns.
    pub slack_ns: Option<i64>,
    /// Whether the deadline holds.
    pub standing: Standing,
    /// The shares of the bound, step by step; their sum is the bound.
    pub shares: Vec<Share>,
    /// Why the deadline is missed or not proven; empty if it holds.
    pub explanation: String,
}

/// The bounds of a cause-effect chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseEffectBound {
    /// The name.
    pub chain: String,
    /// The names of the behaviours of each stage. The last of a stage writes a register that the first of the next one reads.
    pub stages: Vec<Vec<String>>,
    /// When registers are read and written.
    pub communication: CommunicationLabel,
    /// Whether the bounds are reached: logical execution time with known phases.
    #[serde(rename = "exact")]
    pub is_exact: bool,
    /// The longest time from the read of an input to the write of an output that follows from it.
    pub data_age: LatencyBound,
    /// The longest time from a change of the input to the first output that follows from it or from a later one.
    pub reaction_time: LatencyBound,
}

/// When registers are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommunicationLabel {
    /// At the start and the end of jobs.
    Implicit,
    /// At their arrival and the end of their period: logical execution time.
    Let,
}

/// The bound of a data age or reaction time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyBound {
    /// The limit, in ns; `None` if the file has none.
    pub limit_ns: Option<u64>,
    /// The bound, in ns; `None` if there is none or it is unknown.
    pub bound_ns: Option<u64>,
    /// The limit minus the bound, in ns.
    pub slack_ns: Option<i64>,
    /// Whether the limit holds; without a limit, it does.
    pub standing: Standing,
    /// The shares of the bound, from the input to the output; their sum is the bound.
    pub shares: Vec<LatencyShare>,
    /// Why the limit is exceeded or not proven, or why there is no bound; empty otherwise.
    pub explanation: String,
}

/// A share of a data age or reaction time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyShare {
    /// Where the time passes: `input of A`, `register of A`, or `A` and `A to B` for the time from the arrival of `A`'s job until the value is in
    /// the register.
    pub what: String,
    /// The time, in ns.
    pub ns: u64,
}

/// The configuration of the ORBs of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Loading {
    /// The configuration of each component.
    pub components: Vec<ComponentLoading>,
    /// The name and the lanes of each channel.
    pub channels: Vec<(String, Vec<LaneLoading>)>,
}

/// The configuration of a component's ORB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComponentLoading {
    /// The component.
    pub component: String,
    /// The lanes, the most urgent first: one for each priority at which the component is called. On a CPU that schedules by deadline, one
    /// for all its jobs, and above it one that passes on what arrives without a deadline, if anything does.
    pub lanes: Vec<LaneLoading>,
    /// The bands of its connections, as lowest and highest priority, the most urgent first: one for each priority at which the
    /// component calls.
    pub bands: Vec<(i16, i16)>,
    /// The priority of each of its behaviours that has its own.
    pub priorities: Vec<(String, i16)>,
    /// The deadline, in ns from the arrival of the root, of each of its behaviours that has its own thread or job and executes on
    /// a CPU that schedules by deadline: it orders the jobs there.
    pub deadlines: Vec<(String, u64)>,
    /// The other components of its process. A CPU that schedules by deadline has one process, because one lane orders all its jobs.
    pub process_with: Vec<String>,
    /// Why no lane serves it, if its CPU schedules by deadline and an ORB cannot do so.
    pub lacks_lane: Option<String>,
}

/// A lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LaneLoading {
    /// The CORBA priority; by deadline, that of the lowest level.
    pub priority: i16,
    /// The number of threads: as many as can serve calls there at once, including calls back to the component while its threads
    /// wait. By deadline, each is a level with a native priority of its own.
    pub threads: u32,
    /// The order of its requests.
    pub order: LaneOrder,
}

/// The order of the requests of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneOrder {
    /// In the order of their arrival.
    #[default]
    Fifo,
    /// The earliest deadline first, on as many levels as the lane has threads.
    EarliestDeadline,
}

/// An assumption of the bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// The node; `None` for all nodes.
    pub node: Option<String>,
    /// What is assumed, why, and what would replace the assumption.
    pub what: String,
}
