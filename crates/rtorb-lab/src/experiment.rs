//! What an experiment is, and how one is run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rtorb_host::Host;
use rtorb_host::description::stolen_ms;
use rtorb_host::idle_states::DmaLatency;
use rtorb_host::placement::Placement;
use rtorb_host::preflight::{self, Finding};
use rtorb_host::system::cpu_list;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_results::profile::ServiceRow;
use rtorb_results::systems::Gathered;
use rtorb_results::timestamp;
use rtorb_results::{
    Claim, Derived, Highlight, LabelValue, LostRound, ObtainedScheduling, Plot, Published, Results,
    SCHEMA, Series, TableView, all_real_time,
};
use tempfile::TempDir;

use crate::error::LabError;
use crate::processes::Launcher;
use crate::processes::awake::{AWAKE_AT_MOST, Awake};
use crate::processes::interrupt::Interrupt;
use crate::processes::load::{Load, RunningLoad};

pub use crate::effort::Effort;
pub use gpio_lines::GpioLines;
use split_mix::SplitMix64;

mod gpio_lines;
pub mod split_mix;

/// A table or figure that can be measured again. Each is a file in `experiments/`.
pub trait Experiment: Sync {
    /// The name by which it is run and its results are kept: `orb/throughput`.
    fn name(&self) -> &str;

    /// What it shows, in a line.
    fn title(&self) -> &'static str;

    /// The published table or figure that it reproduces.
    fn reproduces(&self) -> &'static str;

    /// What a run with this effort would do.
    fn parameters(&self, effort: Effort) -> Parameters;

    /// Whether it measures with and without load itself. The others are run under the load that the user chose.
    fn varies_load(&self) -> bool {
        false
    }

    /// Whether its servers run on the agent when there is one. The others measure on this host alone.
    fn uses_agent(&self) -> bool {
        false
    }

    /// What a campaign of emulated machines does with it; `None` if it runs there only when it is named.
    fn emulated(&self) -> Option<Emulated> {
        None
    }

    /// How its results on several operating systems are shown side by side; `None` for a table of medians
    /// ([`crate::systems::any`]).
    fn kernels(&self, _: &Gathered<'_>) -> Option<Outcome> {
        None
    }

    /// The services of the platform that a profile takes from its results.
    fn services(&self) -> &'static [ServiceRow] {
        &[]
    }

    /// How much an effort measures, in a unit of its own: what another effort takes is guessed from the ratio.
    fn amount(&self, _: Effort) -> usize {
        1
    }

    /// Measures. An interrupt is not an error: the outcome says that it is not complete.
    ///
    /// # Errors
    /// That nothing could be measured at all.
    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError>;
}

/// Names to values.
pub type Parameters = BTreeMap<String, LabelValue>;

/// What an experiment needs to know of its surroundings.
#[derive(Debug)]
pub struct Context {
    /// How much to measure.
    pub effort: Effort,
    /// The load to measure under; what an experiment that varies it sets beside none.
    pub load: Load,
    /// Real lines for the experiments that measure from a digital input to a digital output: of the more urgent wave first.
    pub gpio: Vec<GpioLines>,
    /// Tells this run from every other.
    pub run: String,
    /// The host as it was at the beginning.
    pub host: Host,
    /// Starts measured processes.
    pub launcher: Launcher,
    /// For sockets and the like; it is removed when the context is dropped.
    folder: TempDir,
    /// How often samples were marked so far: [`Context::add_marks`].
    marks: AtomicU64,
    /// Held for the whole of a run, where the host allows it; `host` says whether it does.
    _dma_latency: Option<DmaLatency>,
}

impl Context {
    /// For this host, with `executable` as the program that plays the children's roles ([`crate::roles`]).
    ///
    /// # Errors
    /// That no folder for temporary files could be made.
    pub fn new(
        effort: Effort,
        executable: PathBuf,
        interrupt: Interrupt,
    ) -> Result<Self, LabError> {
        let mut host = match effort {
            Effort::Emulated { .. } => Host {
                virtualisation: EMULATOR.to_owned(),
                ..Host::describe_emulated()
            },
            Effort::Glance | Effort::Quick | Effort::Full => Host::describe(),
        };
        let dma_latency = DmaLatency::hold();
        host.cpu_dma_latency_held = dma_latency.is_ok();
        host.cpu_dma_latency_refused = dma_latency.as_ref().err().map(ToString::to_string);
        let placement = Placement::best(&host);
        let folder = tempfile::Builder::new()
            .prefix("rtorb-lab-")
            .tempdir()
            .map_err(|error| {
                let what = format!("{error}. Name a folder that you may write to in TMPDIR");
                LabError::file("the folder for temporary files")(std::io::Error::other(what))
            })?;
        Ok(Self {
            effort,
            load: Load::none(),
            gpio: Vec::new(),
            run: run_id(),
            host,
            launcher: Launcher {
                executable,
                placement,
                interrupt,
                agent: None,
            },
            folder,
            marks: AtomicU64::new(0),
            _dma_latency: dma_latency.ok(),
        })
    }

    /// A folder of this run's own for sockets and the like.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The seed of a round, rounds counted from 0; `None` where nothing is drawn, which is everywhere but in an emulated machine.
    #[must_use]
    pub fn seed(&self, round: usize) -> Option<u64> {
        self.effort.seeds().map(|_| round as u64 + 1)
    }

    /// To be called when a round begins: in an emulated machine it sleeps for a part of a tick that is drawn from the round's
    /// seed, without which every boot would meet kernel and load at the same moment. Everywhere else it does nothing.
    pub fn begin_round(&self, round: usize) {
        if let Some(seed) = self.seed(round) {
            let phase_ns = SplitMix64::seeded(seed).draw_below(PHASE_NS_MAX);
            sleep_until(monotonic_ns() + phase_ns);
        }
    }

    /// Counts the samples that a probe has marked, and answers how many were marked before: the n-th of these is the
    /// `marked + n`-th since the machine was switched on. It must be told of every probe's answer, or
    /// [`rtorb_results::WorstSample::mark`] is none that an observer could find.
    pub fn add_marks(&self, marks: u64) -> u64 {
        self.marks.fetch_add(marks, Ordering::Relaxed)
    }

    /// What a reader must know of a quick run; `None` for other efforts.
    pub(crate) fn if_quick(&self, note: &str) -> Option<String> {
        (self.effort == Effort::Quick).then(|| note.to_owned())
    }

    /// A CPU beside the measured one; `None` if there is none.
    #[must_use]
    pub fn other_cpu(&self) -> Option<usize> {
        let measured = self.launcher.placement.cpu?;
        let allowed = self.host.cpus_allowed.as_deref().unwrap_or_default();
        cpu_list(allowed).into_iter().find(|cpu| *cpu != measured)
    }

    /// Starts a load for this run.
    ///
    /// # Errors
    /// As [`Load::start`].
    pub fn start_load(&self, load: &Load) -> Result<RunningLoad, LabError> {
        load.start(self.effort, &self.launcher, self.folder())
    }

    /// Whether the run must end: somebody wants it, or the agent is lost.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.launcher.interrupted()
    }
}

/// What a campaign of emulated machines does with an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Emulated {
    /// The loads under which it runs.
    pub loads: EmulatedLoads,
    /// Whether it is in a quick campaign.
    pub is_quick: bool,
    /// The seconds of a quiet host that four seeds take in about, without load.
    pub cost_s: f64,
    /// The same under load. A load works whenever nothing else does; without one, idle time costs nothing.
    pub loaded_cost_s: f64,
}

/// The loads under which a campaign runs an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmulatedLoads {
    /// None.
    None,
    /// None, and all together.
    NoneAndMix,
    /// None, each alone, and all together. A quick campaign has those that tell kernels apart best.
    All,
}

impl Emulated {
    /// One that runs without load in a campaign that is not quick.
    pub(crate) const fn unloaded(cost_s: f64) -> Self {
        Self {
            loads: EmulatedLoads::None,
            is_quick: false,
            cost_s,
            loaded_cost_s: 9.0,
        }
    }
}

/// Is told how far a run is. Called between bursts, never while something is measured.
pub trait Progress {
    /// So many steps are to come.
    fn begin(&mut self, steps: usize);
    /// One more step is done; `next` is what comes now.
    fn step(&mut self, next: &str);
    /// Something that a reader should know.
    fn note(&mut self, text: &str);
}

/// What an experiment found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Whether everything was measured that was planned.
    pub complete: bool,
    /// The scheduling that the measured processes had.
    pub scheduling: Vec<ObtainedScheduling>,
    /// The few numbers to read first.
    pub highlights: Vec<Highlight>,
    /// What was measured.
    pub series: Vec<Series>,
    /// The labels whose values name the columns of the table; empty where ORB and transport do.
    pub columns: Vec<String>,
    /// The tables that show it, where it asks for other ones than that of all its medians.
    pub tables: Vec<TableView>,
    /// The plots that show it.
    pub plots: Vec<Plot>,
    /// What follows from it.
    pub derived: Vec<Derived>,
    /// The claims, and whether they are held.
    pub claims: Vec<Claim>,
    /// Measurements that failed: no claim over their rounds is judged.
    pub lost: Vec<LostRound>,
    /// What was found, in words.
    pub conclusions: Vec<String>,
    /// Published figures beside ours.
    pub published: Vec<Published>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Completes what an experiment cannot know of its run.
    fn finish(&mut self, experiment: &dyn Experiment, effort: Effort) {
        for claim in &mut self.claims {
            claim.id = format!("{}.{}", experiment.name(), claim.id);
        }
        if effort.seeds().is_none() {
            // Their rounds are no seeds: the largest of all is what counts.
            let each = self.series.iter_mut();
            each.for_each(|series| series.rounds_max.clear());
        }
    }

    /// Takes back the verdicts that this run cannot support, and adds the notes that every reader needs.
    fn judge(&mut self, effort: Effort, parameters: &Parameters, stolen_share: f64) {
        let is_real_time = all_real_time(&self.scheduling);
        let is_complete = self.complete;
        for claim in &mut self.claims {
            let planned = parameters.get(claim.planned_as());
            let planned = planned.and_then(LabelValue::number).unwrap_or(0) as usize;
            match (effort, claim.rounds) {
                (Effort::Glance, _) => claim.take_back(A_GLANCE),
                // Quotients compare instructions with instructions; a time that was claimed is one of real hardware.
                (Effort::Emulated { .. }, _) if claim.unit != "ratio" => {
                    claim.take_back(EMULATED_TIME)
                }
                _ if !is_complete => claim.take_back(INTERRUPTED),
                _ if !is_real_time => claim.take_back(NOT_REAL_TIME),
                (_, Some(rounds)) if rounds < planned => {
                    claim.take_back(format!(
                        "{} of {planned} rounds were lost",
                        planned - rounds
                    ));
                }
                (_, Some(_)) if stolen_share > STOLEN_SHARE_MAX => claim.take_back(format!(
                    "the hypervisor took {:.1} % of the time; at most {:.1} % are allowed",
                    100.0 * stolen_share,
                    100.0 * STOLEN_SHARE_MAX
                )),
                _ => {}
            }
        }
        let mut note = |text: &str| {
            if !self.notes.iter().any(|known| known == text) {
                self.notes.push(text.to_owned());
            }
        };
        if !is_complete {
            note(INTERRUPTED);
        }
        if !self.claims.is_empty() && !is_real_time {
            note(NOT_REAL_TIME);
        }
        match effort {
            Effort::Glance => note(A_GLANCE),
            Effort::Emulated { .. } => note(IN_INSTRUCTIONS),
            Effort::Quick | Effort::Full => {}
        }
    }
}

/// Whether a measurement came to its end: an interrupt is no error, and what was measured before it is shown.
///
/// # Errors
/// Any other one.
pub(crate) fn is_complete(done: Result<(), LabError>) -> Result<bool, LabError> {
    match done {
        Ok(()) => Ok(true),
        Err(LabError::Interrupted) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The note of a run that is not complete.
const INTERRUPTED: &str =
    "The run was interrupted: what is shown was measured, the rest is missing.";

/// The note of a run whose processes were not scheduled as the claims ask for.
const NOT_REAL_TIME: &str = "The claims are for processes that have SCHED_FIFO on one CPU: they were not judged in this run.";

/// Why a time is not judged in an emulated machine.
const EMULATED_TIME: &str = "a time of hardware cannot be judged by counts of instructions";

/// The share of a run that a hypervisor may take. Beyond it, no claim about times is judged.
const STOLEN_SHARE_MAX: f64 = 0.01;

/// Runs an experiment and describes the run.
///
/// # Errors
/// As [`Experiment::run`].
pub fn run(
    experiment: &dyn Experiment,
    context: &Context,
    progress: &mut dyn Progress,
) -> Result<Results, LabError> {
    let started = timestamp::now();
    let begin_ns = monotonic_ns();
    let cpu = context.launcher.placement.cpu;
    let stolen_before_ms = stolen_ms(cpu);
    let mut parameters = experiment.parameters(context.effort);
    if context.effort.seeds().is_some() {
        // As `Awake` has it.
        parameters.insert("cpu_kept_awake".to_owned(), false.into());
    }
    // An emulated machine is booted for one load: there is nothing to vary.
    let varies_load = experiment.varies_load() && context.effort.seeds().is_none();
    let running = if varies_load {
        None
    } else {
        Some(context.start_load(&context.load)?)
    };
    let awake = keep_awake(experiment, context);
    let mut outcome = match experiment.run(context, progress) {
        // Nothing can be reached any more, whatever it looked like.
        Err(_) if context.launcher.agent_lost().is_some() => Outcome::default(),
        outcome => outcome?,
    };
    if let Some(awake) = awake {
        parameters.insert("cpus_kept_awake".to_owned(), awake.is_kept().into());
    }
    let server_host = describe_agent(experiment, context, &mut parameters, &mut outcome);
    if let Some(mut running) = running {
        running.check()?;
        label_with_load(&mut outcome.series, context);
        parameters.insert("load".to_owned(), context.load.to_string().into());
        if !context.load.is_none() {
            parameters.insert("load_generator".to_owned(), running.generator().into());
        }
    }
    let stolen_ms = stolen_since(cpu, stolen_before_ms);
    let duration_s = (monotonic_ns() - begin_ns) as f64 / 1e9;
    let stolen_share = stolen_ms.unwrap_or(0) as f64 / 1e3 / duration_s.max(1e-3);
    outcome.judge(context.effort, &parameters, stolen_share);
    outcome.finish(experiment, context.effort);
    outcome
        .notes
        .extend(stolen_ms.and_then(note_of_stolen_time));
    Ok(Results {
        schema: SCHEMA.to_owned(),
        experiment: experiment.name().to_owned(),
        title: experiment.title().to_owned(),
        reproduces: experiment.reproduces().to_owned(),
        run: context.run.clone(),
        started,
        duration_s,
        stolen_ms,
        complete: outcome.complete,
        parameters,
        findings: findings(context),
        host: context.host.clone(),
        server_host,
        emulation: None,
        judgement: None,
        scheduling: outcome.scheduling,
        highlights: outcome.highlights,
        series: outcome.series,
        columns: outcome.columns,
        tables: outcome.tables,
        plots: outcome.plots,
        derived: outcome.derived,
        claims: outcome.claims,
        lost: outcome.lost,
        conclusions: outcome.conclusions,
        published: outcome.published,
        notes: outcome.notes,
    })
}

/// None of an emulated machine: what a host should be set to says nothing about it.
fn findings(context: &Context) -> Vec<Finding> {
    match context.effort {
        Effort::Emulated { .. } => Vec::new(),
        Effort::Glance | Effort::Quick | Effort::Full => preflight::findings(&context.host),
    }
}

/// What the hypervisor took since it was asked before.
fn stolen_since(cpu: Option<usize>, before_ms: Option<u64>) -> Option<u64> {
    let both = stolen_ms(cpu).zip(before_ms);
    both.map(|(after, before)| after.saturating_sub(before))
}

fn note_of_stolen_time(stolen_ms: u64) -> Option<String> {
    (stolen_ms > 0).then(|| {
        format!(
            "The hypervisor gave the measured CPU to others for {stolen_ms} ms while this was measured: that is in the largest samples, \
             and says nothing about this kernel or the ORB."
        )
    })
}

/// Keeps the clients' CPU from sleeping while its caller waits for another host; the agent does the same with the servers'.
/// On one host the two sides keep the CPU busy in turn.
fn keep_awake(experiment: &dyn Experiment, context: &Context) -> Option<Awake> {
    let uses = context.launcher.agent.is_some() && experiment.uses_agent();
    uses.then(|| Awake::keep(context.launcher.placement.cpu, AWAKE_AT_MOST))
}

/// Says what the agent had to do with it, and answers its host if that ran the servers.
fn describe_agent(
    experiment: &dyn Experiment,
    context: &Context,
    parameters: &mut Parameters,
    outcome: &mut Outcome,
) -> Option<Host> {
    let agent = context.launcher.agent.as_ref()?;
    if let Some(why) = agent.lost() {
        outcome.complete = false;
        let address = agent.address();
        outcome.notes.push(format!(
            "The agent at {address} was lost: {why}. What is shown was measured before, the rest is missing."
        ));
    }
    if !experiment.uses_agent() {
        outcome.notes.push(AGENT_UNUSED.to_owned());
        return None;
    }
    parameters.insert("agent".to_owned(), agent.address().into());
    Some(agent.host().clone())
}

/// Says under which load each series was measured. Where `load` says how clients call, it is `background_load`. In an emulated
/// machine none is a load too: it stands beside the others in one table.
fn label_with_load(series: &mut [Series], context: &Context) {
    let load = &context.load;
    if load.is_none() && context.effort.seeds().is_none() {
        return;
    }
    let load: LabelValue = load.to_string().into();
    for series in series {
        match series.labels.get("load") {
            Some(known) if *known == load => continue,
            Some(_) => series
                .labels
                .insert("background_load".to_owned(), load.clone()),
            None => series.labels.insert("load".to_owned(), load.clone()),
        };
    }
}

/// The moment and the process: no two runs on a host have both.
fn run_id() -> String {
    format!("{}-{}", timestamp::now(), std::process::id())
}

/// From tick to tick of a kernel with CONFIG_HZ=250.
const PHASE_NS_MAX: u64 = 4_000_000;
const AGENT_UNUSED: &str = "Measured on the laboratory's host alone: the agent had no part in it.";
/// Told, not found out: from inside it looks like any virtual machine.
const EMULATOR: &str = "QEMU (TCG, icount: emulated, its clock counts instructions)";
/// What a reader must know of results of an emulated machine.
pub const IN_INSTRUCTIONS: &str = "Measured in an emulated machine: a nanosecond is an instruction of the guest. There are no caches, no buses and \
                        one CPU, so this compares the lengths of paths through kernel and ORB and says nothing of hardware.";
const A_GLANCE: &str =
    "A glance: that it runs. There are far too few samples for any number here to mean something.";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Verdict;

    fn threads(real_time: bool) -> ObtainedScheduling {
        ObtainedScheduling {
            process: "measured".to_owned(),
            threads: 1,
            policy: "SCHED_FIFO".to_owned(),
            priority: 50,
            cpus: "1".to_owned(),
            real_time,
        }
    }

    /// A held claim over three rounds, a count, and a quotient.
    fn outcome(complete: bool, real_time: bool) -> Outcome {
        let times = Claim::at_most("time", "", &[1.0, 1.1, 1.0][..].into(), 2.0, "us");
        let quotients = Claim::at_most("quotient", "", &[3.0, 3.1, 3.0][..].into(), 2.0, "ratio");
        let mut claims: Vec<Claim> = times.into_iter().chain(quotients).collect();
        claims.push(Claim::counted("count", "", 0.0, 0.0, "events"));
        Outcome {
            complete,
            claims,
            scheduling: vec![threads(real_time)],
            ..Outcome::default()
        }
    }

    fn verdicts(mut outcome: Outcome, effort: Effort, rounds: usize, stolen: f64) -> [Verdict; 3] {
        let parameters = Parameters::from([("rounds".to_owned(), rounds.into())]);
        outcome.judge(effort, &parameters, stolen);
        [0, 1, 2].map(|index| outcome.claims[index].verdict)
    }

    #[test]
    fn a_run_that_cannot_support_a_claim_does_not_judge_it() {
        use Verdict::{Held, Missed, NotJudged};
        let good = || outcome(true, true);
        assert_eq!(
            verdicts(good(), Effort::Quick, 3, 0.0),
            [Held, Missed, Held]
        );
        assert_eq!(verdicts(good(), Effort::Glance, 3, 0.0), [NotJudged; 3]);
        // A lost round is never made up for by the others. A count has no rounds.
        assert_eq!(
            verdicts(good(), Effort::Quick, 4, 0.0),
            [NotJudged, NotJudged, Held]
        );
        assert_eq!(
            verdicts(good(), Effort::Quick, 3, 0.02),
            [NotJudged, NotJudged, Held]
        );
        let others = [outcome(false, true), outcome(true, false)];
        for unfit in others {
            assert_eq!(verdicts(unfit, Effort::Quick, 3, 0.0), [NotJudged; 3]);
        }
        let emulated = Effort::Emulated {
            seeds: 3,
            full: false,
        };
        assert_eq!(
            verdicts(good(), emulated, 3, 0.0),
            [NotJudged, Missed, NotJudged]
        );
    }

    #[test]
    fn only_an_emulated_machine_has_seeds() {
        let mut context = Context::new(
            Effort::Emulated {
                seeds: 4,
                full: false,
            },
            "/bin/false".into(),
            Interrupt::new(),
        )
        .unwrap();
        assert_eq!((context.seed(0), context.seed(3)), (Some(1), Some(4)));
        assert_eq!((context.add_marks(10), context.add_marks(5)), (0, 10));
        assert_eq!(context.add_marks(1), 15);
        context.effort = Effort::Quick;
        assert_eq!(context.seed(0), None);
    }

    #[test]
    fn every_series_of_an_emulated_machine_says_its_load() {
        let effort = Effort::Emulated {
            seeds: 1,
            full: false,
        };
        let mut context = Context::new(effort, "/bin/false".into(), Interrupt::new()).unwrap();
        let of = |load: Option<&str>| {
            let labels = load.map(|load| ("load".to_owned(), load.into()));
            let labels = labels.into_iter().collect();
            Series::from_recorder(labels, &rtorb_results::statistics::Recorder::new())
        };
        let mut series = [of(None), of(Some("none")), of(Some("10hz"))];
        label_with_load(&mut series, &context);
        let shown =
            |index: usize, name: &str| series[index].labels.get(name).map(ToString::to_string);
        assert_eq!(shown(0, "load").as_deref(), Some("none"));
        assert_eq!(
            (shown(1, "load").as_deref(), shown(1, "background_load")),
            (Some("none"), None)
        );
        assert_eq!(shown(2, "load").as_deref(), Some("10hz"));
        assert_eq!(shown(2, "background_load").as_deref(), Some("none"));
        context.effort = Effort::Quick;
        let mut series = [of(None)];
        label_with_load(&mut series, &context);
        assert!(series[0].labels.is_empty());
    }

    #[test]
    fn what_is_missing_is_said_once() {
        let mut outcome = Outcome {
            notes: vec![INTERRUPTED.to_owned()],
            ..Outcome::default()
        };
        outcome.judge(Effort::Glance, &Parameters::new(), 0.0);
        assert_eq!(outcome.notes, [INTERRUPTED, A_GLANCE]);
    }
}
