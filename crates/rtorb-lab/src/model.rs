//! The run that checks the model: a system that was analysed, built out of synthetic work and real calls, and observed.
//!
//! [`run`] starts a process for each component and each event channel of a system, places each of its processors on a CPU of this
//! host, and sets beside each bound what was observed: a [`Judgement`](rtorb_results::judgement::Judgement). Below: the plan of each
//! process (`plan`, `tree`, `places`), what the processes do (`component`, `watcher`), who leads them (`conductor`), what they saw (`records`,
//! `timeline`), and what it means (`judging`, `latencies`, `causes`, `words`, `outcome`). [`noise`] observes the host before a run, and
//! [`repeats`] compares several runs.

use std::collections::BTreeMap;
use std::time::Duration;

use rtorb_host::system::cpu_list;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::SchedPolicy;
use rtorb_results::Results;
use rtorb_results::timestamp;
use rtorb_sched::model::{CheckReport, Standing, System};

use crate::error::LabError;
use crate::experiment::{Context, Progress};
use causes::Beside;
use judging::Ran;
use places::Places;
use plan::Plan;

mod causes;
pub(crate) mod component;
mod conductor;
mod judging;
mod latencies;
pub mod loading;
pub mod noise;
mod outcome;
mod places;
mod plan;
mod records;
pub mod repeats;
pub(crate) mod roles;
#[cfg(test)]
mod tests;
mod timeline;
mod tree;
pub(crate) mod watcher;
mod words;

/// How a system is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// For how long jobs arrive, 10 ms to an hour.
    pub duration: Duration,
    /// Whether a system is run of which the analysis says that deadlines are missed, or may be.
    pub force: bool,
    /// What execution times and gaps are drawn from.
    pub seed: u64,
    /// The CPU of this host for processors of the system, by node and CPU of the node; those that are not here get one each, from the
    /// measured CPU downwards.
    pub place: BTreeMap<(String, u32), usize>,
    /// Whether a CPU of the host may play several processors: no bound holds then.
    pub share: bool,
    /// From how long on what takes a CPU is an interruption, in ns; `None` is twice what the bounds reckon for one tick or one interrupt
    /// of a timer, and 10 us at least.
    pub interruption_from_ns: Option<u64>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(60),
            force: false,
            seed: 1,
            place: BTreeMap::new(),
            share: false,
            interruption_from_ns: None,
        }
    }
}

/// Runs a system that was checked: experiment `model/NAME`.
///
/// Its threads have SCHED_FIFO at their CORBA priorities, or at the levels of a lane that dispatches by deadline: they do not run where the host refuses that. All processes have ended when
/// this returns.
///
/// # Errors
/// [`LabError::Model`] if the system cannot be run or is not to be, with what to do; that a process did not do what it should; or
/// [`LabError::Interrupted`].
pub fn run(
    system: &System,
    checked: &CheckReport,
    options: &RunOptions,
    context: &Context,
    progress: &mut dyn Progress,
) -> Result<Results, LabError> {
    let refused = |what: String| LabError::Model { what };
    refuse(checked, options).map_err(refused)?;
    let duration_ns = u64::try_from(options.duration.as_nanos()).unwrap_or(u64::MAX);
    let plan = Plan::of(system, checked, (duration_ns, options.seed)).map_err(refused)?;
    let allowed = cpu_list(context.host.cpus_allowed.as_deref().unwrap_or_default());
    let places = Places::of(
        system,
        (&allowed, context.launcher.placement.cpu),
        (&options.place, options.share),
    )
    .map_err(refused)?;
    refuse_without_real_time(&plan).map_err(refused)?;
    let (started, begin_ns) = (timestamp::now(), monotonic_ns());
    let evidence = conductor::conduct(
        (system, &plan),
        &places,
        options.duration,
        context,
        progress,
    )?;
    let ran = Ran {
        system,
        plan: &plan,
        checked,
        places: &places,
    };
    let from_ns = options.interruption_from_ns;
    let from_ns = from_ns.unwrap_or_else(|| interruption_from_ns(checked));
    let mut judgement = judging::judge(ran, &evidence, from_ns);
    let beside = Beside {
        cpu_use: &evidence.cpu_use,
        is_virtual: context.host.is_virtual_machine(),
    };
    let found = causes::of(&judgement, beside);
    (judgement.causes, judgement.next) = (found.causes, found.next);
    let duration_s = (monotonic_ns() - begin_ns) as f64 / 1e9;
    Ok(outcome::results(
        ran,
        (&evidence, judgement),
        (options, context),
        (started, duration_s),
    ))
}

/// What is not to be run without being forced.
fn refuse(checked: &CheckReport, options: &RunOptions) -> Result<(), String> {
    if !(DURATION_MIN..=DURATION_MAX).contains(&options.duration) {
        let asked = options.duration.as_secs_f64();
        return Err(format!("a run takes 10 ms to an hour, not {asked} s"));
    }
    if checked.standing == Standing::Holds || options.force {
        return Ok(());
    }
    let name = &checked.system;
    let first = checked.first_miss.as_deref();
    let first = first.map_or_else(String::new, |first| {
        format!(" {first} is the first to miss its deadline.")
    });
    Err(format!(
        "the analysis does not promise that {name} meets its deadlines.{first} `rtorb model check` says why; --force runs it all the same"
    ))
}

/// What is in the bounds is no interruption: ticks, and interrupts of timers.
fn interruption_from_ns(checked: &CheckReport) -> u64 {
    let shares = checked.behaviours.iter().flat_map(|bound| &bound.shares);
    let interrupts =
        shares.filter(|share| share.what == "tick" || share.what.starts_with("release of "));
    let each_ns = interrupts.map(|share| share.ns.unsigned_abs() / share.times.max(1));
    let dearest_ns = each_ns.max().unwrap_or(0);
    dearest_ns.saturating_mul(2).max(INTERRUPTION_NS_MIN)
}

fn refuse_without_real_time(plan: &Plan) -> Result<(), String> {
    let config = rtorb_os::thread::ThreadConfig {
        policy: Some(SchedPolicy::Fifo(plan.highest_priority())),
        ..Default::default()
    };
    // Only who tries knows: a container may keep the capability and refuse its use.
    rtorb_os::thread::spawn("fifo-probe", &config, || ())
        .map(drop)
        .map_err(|refused| format!("the bounds are those of real-time threads: {refused}"))
}

const INTERRUPTION_NS_MIN: u64 = 10_000;
/// The shortest run.
pub const DURATION_MIN: Duration = Duration::from_millis(10);
/// The longest run.
pub const DURATION_MAX: Duration = Duration::from_secs(3_600);
