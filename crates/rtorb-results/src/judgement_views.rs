//! What people see of a run: its tables, and the numbers and plots that its page draws.

use rtorb_sched::model::{CheckReport, Layer, rounded_up};
use rtorb_sched::times::text_of_ns;

use crate::judgement::{Judgement, Observed, ObservedChain, ObservedStanding};
use crate::summary::TitledTable;
use crate::table::Table;
use crate::{Derived, Labels, Plot, labels};

impl Observed {
    /// The behaviour, or the chain; with its root where that is another one.
    #[must_use]
    pub fn name(&self) -> String {
        match self.behaviour.as_str() {
            "" => self.chain.clone(),
            behaviour => end_of(behaviour, &self.root),
        }
    }

    /// Whether every job was done in time and within the bound.
    #[must_use]
    pub fn is_as_promised(&self) -> bool {
        self.misses == 0 && self.standing == ObservedStanding::Within
    }
}

impl ObservedChain {
    /// Whether both were within their limits, and within their bounds where the host did not take the CPU. What a run was too short to show
    /// is kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        let both = [&self.data_age, &self.reaction_time];
        both.into_iter().all(|one| {
            let is_late = one.worst_ns > one.limit_ns && one.limit_ns.is_some();
            !is_late && one.standing != ObservedStanding::Unexplained
        })
    }
}

/// A behaviour, with its root where that is another one.
pub(super) fn end_of(behaviour: &str, root: &str) -> String {
    if behaviour == root {
        behaviour.to_owned()
    } else {
        format!("{behaviour} from {root}")
    }
}

impl Judgement {
    /// Whether the run kept what a run must keep: every deadline, and every bound where the host did not take the CPU. What was never
    /// done shows neither.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        use ObservedStanding::{Unexplained, Unseen};
        let is_bad = |one: &Observed| matches!(one.standing, Unseen | Unexplained);
        let is_kept = self.all().all(|one| one.misses == 0 && !is_bad(one));
        let mut chains = self.cause_effect_chains.iter();
        is_kept && chains.all(ObservedChain::is_kept)
    }

    /// What was observed, in a sentence or two.
    #[must_use]
    pub fn verdict(&self) -> String {
        let missed: Vec<&Observed> = self.all().filter(|one| one.misses > 0).collect();
        let deadlines = match (missed.first(), missed.len()) {
            (None, _) => format!("Every deadline of {} was kept", self.system),
            (Some(first), 1) => format!("{} missed its deadline", first.name()),
            (Some(_), count) => format!(
                "{count} of {} deadlines of {} were missed",
                self.all().count(),
                self.system
            ),
        };
        let bounds = match self.standing {
            ObservedStanding::Within => "no response was longer than its bound",
            ObservedStanding::Unbounded => {
                "no response was longer than its bound, where there is one"
            }
            ObservedStanding::Unseen => {
                "no response was longer than its bound, but of some no job was done"
            }
            ObservedStanding::ExplainedByTheHost => {
                "where a response was longer than its bound, the host had taken the CPU for at least as long"
            }
            ObservedStanding::Unexplained => {
                "some responses were longer than their bounds, and the interruptions of their CPUs do not explain it"
            }
        };
        let seconds = self.duration_ns as f64 / 1e9;
        format!("{deadlines} in {seconds} s; {bounds}.")
    }

    fn all(&self) -> impl Iterator<Item = &Observed> {
        self.behaviours.iter().chain(&self.chains)
    }
}

impl ObservedStanding {
    /// In words as a table has them.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Unbounded => "no bound",
            Self::Unseen => "never done",
            Self::ExplainedByTheHost => "host took more",
            Self::Unexplained => "UNEXPLAINED",
        }
    }
}

/// Every behaviour, and every chain, as observed and as bounded; without those that there are none of.
#[must_use]
pub fn tables(judgement: &Judgement) -> Vec<TitledTable> {
    let made = [
        (
            "observed-behaviours",
            "Behaviours: observed, and bounded",
            &judgement.behaviours,
        ),
        (
            "observed-chains",
            "Chains: observed, and bounded",
            &judgement.chains,
        ),
    ];
    let filled = made.into_iter().filter(|(_, _, of)| !of.is_empty());
    let filled = filled.map(|(id, title, of)| TitledTable {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: TABLE_CAPTION.to_owned(),
        table: table(of),
    });
    let data = &judgement.cause_effect_chains;
    let data = (!data.is_empty()).then(|| TitledTable {
        id: "observed-cause-effect-chains".to_owned(),
        title: "Cause-effect chains: observed, and bounded".to_owned(),
        caption: "What a register would have held that is read when a job's own code begins, and written when the job is done.".to_owned(),
        table: latency_table(data),
    });
    filled.chain(data).collect()
}

fn latency_table(of: &[ObservedChain]) -> Table {
    let head = [
        "",
        "",
        "standing",
        "observed worst",
        "bound",
        "limit",
        "observed",
    ];
    let time = |ns: Option<u64>| ns.map_or_else(|| "none".to_owned(), rounded_up);
    let rows = of.iter().flat_map(|one| {
        let both = [
            ("data age", &one.data_age),
            ("reaction time", &one.reaction_time),
        ];
        both.map(|(what, latency)| {
            vec![
                one.chain.clone(),
                what.to_owned(),
                latency.standing.words().to_owned(),
                time(latency.worst_ns),
                time(latency.bound_ns),
                latency
                    .limit_ns
                    .map_or_else(|| "none".to_owned(), text_of_ns),
                latency.count.to_string(),
            ]
        })
    });
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

fn table(of: &[Observed]) -> Table {
    let head = [
        "",
        "standing",
        "observed worst",
        "bound",
        "worst quiet",
        "bound / quiet",
        "deadline",
        "missed",
        "jobs",
    ];
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: of.iter().map(row).collect(),
    }
}

fn row(one: &Observed) -> Vec<String> {
    let time = |ns: Option<u64>| ns.map_or_else(|| "none".to_owned(), rounded_up);
    let ratio = one.ratio.map(|ratio| format!("{ratio:.2}"));
    vec![
        one.name(),
        one.standing.words().to_owned(),
        time(one.worst_ns),
        time(one.bound_ns),
        time(one.quiet_worst_ns),
        ratio.unwrap_or_default(),
        text_of_ns(one.deadline_ns),
        one.misses.to_string(),
        one.count.to_string(),
    ]
}

/// The numbers beside the series: bounds and deadlines, what bounds are made of, and the worst that was observed.
#[must_use]
pub fn derived(checked: &CheckReport, judgement: &Judgement) -> Vec<Derived> {
    let mut all: Vec<Derived> = judgement.all().flat_map(of_observed).collect();
    let behaviours = checked.behaviours.iter();
    let behaviours = behaviours.map(|one| {
        let end = end_of(&one.behaviour, &one.root);
        (end, one.bound_ns, one.layers_ns())
    });
    let chains = checked.chains.iter();
    let chains = chains.map(|one| (one.chain.clone(), one.bound_ns, one.layers_ns()));
    for (end, bound_ns, layers) in behaviours.chain(chains) {
        if let Some(bound_ns) = bound_ns.filter(|bound| *bound > 0) {
            all.extend(of_bound(&end, bound_ns, layers));
            all.extend(worst_of(judgement, &end, bound_ns));
        }
    }
    all
}

/// What was observed, and what it is held against.
fn of_observed(one: &Observed) -> impl Iterator<Item = Derived> {
    let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let numbers = [
        (BOUND, "ns", ns(one.bound_ns)),
        (DEADLINE, "ns", ns(Some(one.deadline_ns))),
        (WORST, "ns", ns(one.worst_ns)),
        (QUIET, "ns", ns(one.quiet_worst_ns)),
        ("bound_by_worst_quiet", "ratio", one.ratio),
        ("misses", "jobs", Some(one.misses as f64)),
    ];
    let of = labels_of(one);
    numbers.into_iter().filter_map(move |(name, unit, value)| {
        Some(Derived {
            unit: unit.to_owned(),
            ..number(name, of.clone(), value?)
        })
    })
}

fn labels_of(one: &Observed) -> Labels {
    let (kind, name) = match one.behaviour.as_str() {
        "" => ("chain", &one.chain),
        _ => ("behaviour", &one.behaviour),
    };
    labels([
        (END, one.name().into()),
        (kind, name.as_str().into()),
        ("root", one.root.as_str().into()),
    ])
}

/// What one bound is made of, in ns and as percent of it, the application first as on an axis of layers.
fn of_bound(end: &str, bound_ns: u64, layers: [(Layer, i64); 4]) -> impl Iterator<Item = Derived> {
    let owner = end.to_owned();
    layers.into_iter().rev().flat_map(move |(layer, ns)| {
        let of = labels([
            (END, owner.as_str().into()),
            ("layer", layer.to_string().into()),
        ]);
        [
            number(SHARE, of.clone(), ns as f64),
            percent(SHARE_OF_BOUND, of, ns as f64, bound_ns),
        ]
    })
}

/// The worst that was observed, as percent of the bound.
fn worst_of(judgement: &Judgement, end: &str, bound_ns: u64) -> Vec<Derived> {
    let Some(found) = judgement.all().find(|one| one.name() == end) else {
        return Vec::new();
    };
    let worsts = [
        (found.worst_ns, WORST_OF_BOUND),
        (found.quiet_worst_ns, QUIET_OF_BOUND),
    ];
    let seen = worsts.into_iter().filter_map(|(worst_ns, name)| {
        let worst = worst_ns? as f64;
        Some(percent(name, labels_of(found), worst, bound_ns))
    });
    seen.collect()
}

/// The plots of a run: its responses with bounds and deadlines, and its bounds by layer with what was observed.
#[must_use]
pub fn plots() -> Vec<Plot> {
    let bars = |id: &str, title: &str, caption: &str, derived: &str, marks: [&str; 2]| {
        Plot::bars(id, title)
            .caption(caption)
            .lines(["layer"])
            .x(END)
            .derived(derived)
            .stacked()
            .marks(marks)
    };
    let responses = |plot: Plot, caption: &str| {
        plot.caption(caption)
            .choose([END])
            .marks([BOUND, DEADLINE])
            .log_x()
    };
    vec![
        bars(
            "bounds-in-percent",
            "What each bound is made of, and how near it was reached",
            "100 % is the bound of the behaviour or chain: what its own code and that of others on its way takes (application), what \
             calls and events take, what the operating system takes, and the network. A diamond is the longest response that was \
             observed, a triangle the longest of the jobs during which the host took no CPU away: it must be below 100 %.",
            SHARE_OF_BOUND,
            [WORST_OF_BOUND, QUIET_OF_BOUND],
        ),
        bars(
            "bounds",
            "The same in time",
            "Bounds by layer, and the longest responses that were observed.",
            SHARE,
            [WORST, QUIET],
        ),
        responses(
            Plot::histogram("responses", "Responses, with bound and deadline"),
            "How many jobs took how long, from the arrival of what began them until they were done.",
        )
        .x_title("us from the arrival of what begins it"),
        responses(
            Plot::percentiles(
                "response-tails",
                "How rare long responses are, with bound and deadline",
            ),
            "From the arrival of what began them until they were done.",
        ),
    ]
}

fn number(name: &str, labels: Labels, value: f64) -> Derived {
    Derived {
        name: name.to_owned(),
        labels,
        unit: "ns".to_owned(),
        value,
        rounds: Vec::new(),
    }
}

fn percent(name: &str, labels: Labels, part: f64, whole: u64) -> Derived {
    Derived {
        unit: "percent".to_owned(),
        ..number(name, labels, part * 100.0 / whole as f64)
    }
}

const BOUND: &str = "bound";
const DEADLINE: &str = "deadline";
const SHARE: &str = "bound_by_layer";
const SHARE_OF_BOUND: &str = "bound_by_layer_percent";
const WORST: &str = "observed_worst";
const WORST_OF_BOUND: &str = "observed_worst_percent";
const QUIET: &str = "worst_quiet";
const QUIET_OF_BOUND: &str = "worst_quiet_percent";
/// The label that names a behaviour or a chain, as [`Observed::name`] does; the series of its responses has it too.
pub const END: &str = "end";
const TABLE_CAPTION: &str = "From the arrival of what begins it until it is done. Quiet are the jobs during which the host took no CPU \
     away; their longest response must be within the bound, and shows how tight it is.";
