//! The answer: bounds, what they are made of, and what ORBs load. It is what `rtorb model check --json` prints, so names here are names there.

use serde::Serialize;

/// What is known of a system on its platforms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The form of the answer: `rtorb-model/1`.
    pub schema: &'static str,
    /// The system's name.
    pub system: String,
    /// All of it.
    pub standing: Standing,
    /// The behaviour or chain whose deadline is the first to be missed: of the most urgent priority, and there of the shortest deadline.
    pub first_miss: Option<String>,
    /// The strategy that gave priorities where the file gives none.
    pub strategy: String,
    /// Every CPU that something runs on.
    pub processors: Vec<ProcessorUse>,
    /// Every behaviour, in the order of the system.
    pub behaviours: Vec<BehaviourBound>,
    /// Every chain, in the order of the system.
    pub chains: Vec<ChainBound>,
    /// What to load.
    pub loading: Loading,
    /// What the bounds rest on beyond the file: costs that were not measured, statistics that are no bounds, a host that steals.
    pub assumptions: Vec<Assumption>,
}

/// Whether deadlines hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Proven, as far as the assumptions hold.
    Holds,
    /// Neither was shown: the search ended before the answer.
    NotProven,
    /// The bound is beyond the deadline.
    Misses,
}

/// A layer of the system (P3 figure 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Networks between nodes, and what a hypervisor takes.
    Hardware,
    /// Ticks, context switches, wake-ups, locks, sections that cannot be preempted.
    OperatingSystem,
    /// Calls and events.
    Orb,
    /// The components' own code.
    Application,
}

/// A CPU and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessorUse {
    /// The node.
    pub node: String,
    /// The CPU of the node, from 0.
    pub cpu: u32,
    /// `fixed_priority` or `earliest_deadline`.
    pub scheduling: &'static str,
    /// In millionths, rounded up.
    pub utilisation_millionths: u64,
    /// The same by layer, the most of it first.
    pub layers_millionths: Vec<(Layer, u64)>,
}

/// A behaviour: when it is done at worst.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BehaviourBound {
    /// Its name, `COMPONENT.NAME`.
    pub behaviour: String,
    /// The behaviour that begins it, whose arrival responses count from: itself if it is periodic or sporadic; of several, that with the least slack.
    pub root: String,
    /// `NODE/CPU`.
    pub processor: String,
    /// The CORBA priority that it runs at: of one that is called two-way, its caller's.
    pub priority: Option<i16>,
    /// Whether the strategy chose it.
    pub assigned: bool,
    /// How often it runs at most: the period of its root, in ns.
    pub period_ns: u64,
    /// In ns from the arrival of the root.
    pub deadline_ns: u64,
    /// In ns from the arrival of the root until it is done, and never later; `None` if there is no bound or it is not known.
    pub bound_ns: Option<u64>,
    /// The deadline less the bound, in ns: negative if it is missed.
    pub slack_ns: Option<i64>,
    /// What that means.
    pub standing: Standing,
    /// What the bound is made of; the sum is the bound.
    pub shares: Vec<Share>,
    /// The bound from the arrival of every root that begins it, in ns.
    pub by_root: Vec<(String, Option<u64>)>,
    /// How its execution may grow before something breaks.
    pub sensitivity: Option<Sensitivity>,
    /// In words, why a deadline is missed or not proven, and what would help; empty where it holds.
    pub explanation: String,
}

/// A part of a bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Whose it is.
    pub layer: Layer,
    /// What it is, in words: `own execution`, `context switches`, `preempted by sensors.sample`, `tick`, ...
    pub what: String,
    /// How many times.
    pub times: u64,
    /// In all, in ns. Negative only for `arrived later`: what a later job of a busy period arrived after its beginning.
    pub ns: i64,
}

/// How much longer a behaviour's own execution may get, alone, before a deadline breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sensitivity {
    /// In ns; negative: by so much it must get shorter for all to hold. `None` if no change of it helps, or nothing breaks.
    pub may_grow_ns: Option<i64>,
    /// The behaviour or chain that breaks first then.
    pub breaks_first: Option<String>,
}

/// A chain: when its end is done at worst.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChainBound {
    /// Its name.
    pub chain: String,
    /// The behaviours' names.
    pub through: Vec<String>,
    /// In ns from the arrival of the first.
    pub deadline_ns: u64,
    /// In ns; `None` if there is no bound or it is not known.
    pub bound_ns: Option<u64>,
    /// The deadline less the bound, in ns.
    pub slack_ns: Option<i64>,
    /// What that means.
    pub standing: Standing,
    /// What the bound is made of, step by step; the sum is the bound.
    pub shares: Vec<Share>,
    /// In words, why it is missed or not proven; empty where it holds.
    pub explanation: String,
}

/// What the ORBs of a system load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Loading {
    /// Of each component.
    pub components: Vec<ComponentLoading>,
    /// Of each channel: its name and its lanes.
    pub channels: Vec<(String, Vec<LaneLoading>)>,
}

/// What the ORB of a component loads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComponentLoading {
    /// The component.
    pub component: String,
    /// Its lanes, the most urgent first: one for each priority at which it is called.
    pub lanes: Vec<LaneLoading>,
    /// The bands of its connections, as lowest and highest priority, the most urgent first: one for each priority at which it calls.
    pub bands: Vec<(i16, i16)>,
    /// The priority of each of its behaviours that has one of its own.
    pub priorities: Vec<(String, i16)>,
}

/// A lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LaneLoading {
    /// Its CORBA priority.
    pub priority: i16,
    /// Its threads: as many as may be in calls there at once, with calls that come back while others wait.
    pub threads: u32,
}

/// Something that bounds rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// The node that it is about; `None` is all of them.
    pub node: Option<String>,
    /// What is assumed, why, and what would replace it.
    pub what: String,
}
