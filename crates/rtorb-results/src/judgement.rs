//! What a run of an analysed system shows of its bounds: the figures that tables, plots and the verdict are made of.

use serde::{Deserialize, Serialize};

/// Every behaviour and chain, as it was bounded and as it was observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The system's name.
    pub system: String,
    /// For how long jobs were released, in ns.
    pub duration_ns: u64,
    /// Whether the analysis had said that every deadline holds.
    pub promised: bool,
    /// What holds of all of them.
    pub standing: ObservedStanding,
    /// How an interruption is told from a tick, and when one explains an observation above its bound, in words.
    pub rule: String,
    /// From how long on a time that nothing of ours executed in is an interruption, in ns.
    pub interruption_from_ns: u64,
    /// The CPUs of the host that the system ran on.
    pub cpus: Vec<CpuObserved>,
    /// Of each behaviour and each root that begins it, in the order of the system.
    pub behaviours: Vec<Observed>,
    /// The chains, in the order of the system; `root` is their first behaviour, and `behaviour` is empty.
    pub chains: Vec<Observed>,
    /// The cause-effect chains with implicit communication, in the order of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cause_effect_chains: Vec<ObservedChain>,
    /// The longest interruptions, the longest first.
    pub interruptions: Vec<Interruption>,
    /// If a response was above its bound or late: what took the CPUs, and whose fault that is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// If a response was above its bound or late: what to do next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// What the run met beyond its jobs: records without room, shared CPUs, failed calls.
    pub remarks: Vec<String>,
}

/// A CPU of the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuObserved {
    /// Its number on the host.
    pub host_cpu: usize,
    /// The processors of the system on it, as `NODE/CPU`.
    pub processors: Vec<String>,
    /// How many interruptions were seen.
    pub interruptions: u64,
    /// How long they were in all, in ns.
    pub interrupted_ns: u64,
    /// The longest, in ns.
    pub longest_ns: u64,
    /// What the kernel counted as taken by the hypervisor meanwhile, in ms and steps of ten; `None` where it does not tell.
    pub stolen_ms: Option<u64>,
    /// For how long something of the system kept it busy, in ns, as its watcher saw it; `None` without a watcher.
    pub busy_ns: Option<u64>,
    /// What the kernel gave to ordinary threads although a real-time thread of the system could run, by its record.
    #[serde(default, skip_serializing_if = "OrdinaryTime::is_none")]
    pub ordinary: OrdinaryTime,
}

/// The time that the kernel gives to threads without a real-time priority while real-time threads could run: by its fair server, or before
/// Linux 6.12 by its limit of real-time threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrdinaryTime {
    /// How often it did so for a millisecond or longer.
    pub count: u64,
    /// How long these times were in all, in ns.
    pub total_ns: u64,
    /// The longest, in ns.
    pub longest_ns: u64,
}

impl OrdinaryTime {
    /// Returns true if it gave none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.count == 0
    }
}

/// A behaviour from one root, or a chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// `COMPONENT.NAME`; empty for a chain.
    pub behaviour: String,
    /// The chain; empty for a behaviour.
    pub chain: String,
    /// Whose arrival responses count from.
    pub root: String,
    /// `NODE/CPU` of the behaviour, or of the chain's end.
    pub processor: String,
    /// The CORBA priority that it runs at; `None` if it is not known.
    pub priority: Option<i16>,
    /// The bound of the analysis, in ns from the arrival of the root; `None` if there is none.
    pub bound_ns: Option<u64>,
    /// In ns from the arrival of the root.
    pub deadline_ns: u64,
    /// Jobs whose end was seen.
    pub count: u64,
    /// Jobs that were later than the deadline, or never came.
    pub misses: u64,
    /// Those of the misses that were never released, or never done.
    pub skipped: u64,
    /// The longest response, in ns; `None` when there was none.
    pub worst_ns: Option<u64>,
    /// The longest of the jobs that no interruption touched, in ns; `None` if there was no such job.
    pub quiet_worst_ns: Option<u64>,
    /// How many such jobs there were.
    pub quiet_count: u64,
    /// The bound by the worst quiet observation.
    pub ratio: Option<f64>,
    /// How many responses were longer than the bound.
    pub above: u64,
    /// Those that interruptions do not explain.
    pub unexplained: u64,
    /// What that means.
    pub standing: ObservedStanding,
    /// The longest responses, the longest first.
    pub outliers: Vec<Outlier>,
    /// In words.
    pub words: String,
}

/// A cause-effect chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedChain {
    /// Its name.
    pub chain: String,
    /// From the start of the job that read an input to each output that followed from it.
    pub data_age: ObservedLatency,
    /// From each input, just after which its cause came, to the first output that followed from the next one.
    pub reaction_time: ObservedLatency,
}

/// A data age or reaction time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedLatency {
    /// The bound of the analysis, in ns; `None` if there is none.
    pub bound_ns: Option<u64>,
    /// The limit, in ns; `None` if there is none.
    pub limit_ns: Option<u64>,
    /// How many were seen.
    pub count: u64,
    /// The longest, in ns; `None` when there was none.
    pub worst_ns: Option<u64>,
    /// What that means. One above the bound is explained by the host if responses of the chain are, and unexplained otherwise.
    pub standing: ObservedStanding,
}

/// How an observation stands to its bound, the better the less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservedStanding {
    /// Nothing was longer than the bound.
    #[default]
    Within,
    /// The analysis gives no bound: nothing can be longer.
    Unbounded,
    /// No job ended: nothing was seen.
    Unseen,
    /// Some were longer, and the host took at least as much time as that on the way.
    ExplainedByTheHost,
    /// Some were longer, and nothing that was seen of the host says why: a defect of the model.
    Unexplained,
}

/// A job with a long response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// Which job of the root, from 0.
    pub sequence: u32,
    /// When it arrived, in ns from the start of the run.
    pub release_ns: u64,
    /// When the behaviour was done, in ns from the start of the run.
    pub end_ns: u64,
    /// From arrival to end, in ns.
    pub response_ns: u64,
    /// By how much that is more than the bound, in ns; 0 if it is not.
    pub excess_ns: u64,
    /// From where on interruptions may have held it up, in ns from the start of the run: the beginning of the busy period.
    pub window_begin_ns: i64,
    /// How long interruptions of the CPUs on its way were within that window, in ns.
    pub interrupted_ns: u64,
    /// The longest of these.
    pub interruptions: Vec<Interruption>,
}

/// A time during which something that no thread of ours was switched for took a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// Which CPU of the host.
    pub host_cpu: usize,
    /// When it began, in ns from the start of the run; negative before it.
    pub begin_ns: i64,
    /// How long, in ns.
    pub length_ns: u64,
    /// Whether the CPU had nothing else to do before it.
    pub while_idle: bool,
    /// Whether the kernel's record of switches, wake-ups and interrupts has it. Otherwise it was seen: a thread that was reading the clock
    /// without pause did not run, and no other one did, or none but the watcher.
    #[serde(default)]
    pub traced: bool,
}
