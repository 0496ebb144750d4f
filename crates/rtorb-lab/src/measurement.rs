//! A measurement: chosen experiments, one after another, in one run or several.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rtorb_results::{ExperimentFailure, Results, runs};

use crate::error::LabError;
use crate::experiment::{self, Clocks, Context, Effort, Experiment, GpioLines, Progress};
use crate::processes::agent::{Agent, AgentSecurity};
use crate::processes::interrupt::Interrupt;
use crate::processes::load::Load;

/// What is measured, how and where.
pub struct Measurement<'a> {
    /// The experiments, in the order in which they run.
    pub chosen: &'a [&'a dyn Experiment],
    /// How much is measured.
    pub effort: Effort,
    /// The load beside the experiments that do not vary it themselves.
    pub load: &'a Load,
    /// The lines of the experiments that measure from a digital input to a digital output.
    pub gpio: &'a [GpioLines],
    /// The addresses of agents on other hosts.
    pub agents: &'a [String],
    /// TLS to the agents; `None` for plain text.
    pub security: Option<&'a AgentSecurity>,
    /// What is known of the clocks of the agents' hosts.
    pub clocks: Option<Clocks>,
    /// The folder of the results; of several runs, each has a folder in it.
    pub folder: &'a Path,
    /// The number of runs.
    pub runs: usize,
    /// The program that plays the roles of measured processes.
    pub executable: PathBuf,
    /// Ends the measurement early.
    pub interrupt: Interrupt,
}

/// The results of one run.
#[derive(Debug, Default)]
pub struct MeasuredRun {
    /// The results of each experiment that was measured.
    pub results: Vec<Results>,
    /// The experiments that could not be measured.
    pub failures: Vec<ExperimentFailure>,
    /// The error that kept results from being written. It ended the run.
    pub unwritten: Option<std::io::Error>,
}

/// Follows a measurement.
pub trait Observer {
    /// A run begins: its number, from 1.
    fn begin_run(&mut self, number: usize, context: &Context);
    /// Servers will run on the host of this agent.
    fn connected(&mut self, agent: &Agent);
    /// An experiment begins: its name, and its place in the run, from 1. The progress is dropped when it ends.
    fn begin_experiment(&mut self, name: &str, place: usize) -> Box<dyn Progress>;
    /// An experiment could not be measured.
    fn failed(&mut self, failure: &ExperimentFailure);
    /// A run has ended. Its results are in the folder, if they could be written. A break ends the measurement.
    fn end_run(&mut self, run: MeasuredRun, context: &Context, folder: &Path) -> ControlFlow<()>;
    /// An agent was lost, which ends the measurement: its address, and the reason.
    fn lost(&mut self, address: &str, why: &str);
}

impl Measurement<'_> {
    /// Measures until all runs are done, an interrupt comes, an agent is lost, or the observer breaks. An experiment that fails does
    /// not end the others.
    ///
    /// # Errors
    /// That the folder cannot be used, or no run can begin.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<(), LabError> {
        let folders = runs::folders(self.folder, self.runs)?;
        runs::prepare(self.folder)?;
        for (number, folder) in (1..).zip(&folders) {
            if number > 1 && self.interrupt.requested() {
                break;
            }
            let context = self.begin(number, observer)?;
            let run = self.run_once(&context, folder, observer);
            if observer.end_run(run, &context, folder).is_break() {
                break;
            }
            if let Some((agent, why)) = context.launcher.agent_lost() {
                observer.lost(agent.address(), &why);
                break;
            }
        }
        Ok(())
    }

    fn begin(&self, number: usize, observer: &mut dyn Observer) -> Result<Context, LabError> {
        let mut context =
            Context::new(self.effort, self.executable.clone(), self.interrupt.clone())?;
        context.load = self.load.clone();
        context.gpio = self.gpio.to_vec();
        context.clocks = self.clocks;
        if self.runs > 1 {
            // Runs of one process may begin within one second.
            context.run = format!("{}-{number}", context.run);
        }
        observer.begin_run(number, &context);
        for address in self.agents {
            let agent = Agent::connect(address, self.security)?;
            observer.connected(&agent);
            context.launcher.agents.push(agent);
        }
        Ok(context)
    }

    /// Runs each experiment once, until an interrupt. Results that cannot be written are kept, and end the run.
    fn run_once(
        &self,
        context: &Context,
        folder: &Path,
        observer: &mut dyn Observer,
    ) -> MeasuredRun {
        let mut run = MeasuredRun::default();
        for (place, experiment) in (1..).zip(self.chosen) {
            if context.interrupted() {
                break;
            }
            let mut progress = observer.begin_experiment(experiment.name(), place);
            let results = experiment::run(*experiment, context, &mut *progress);
            drop(progress);
            match results {
                Ok(results) => {
                    run.unwritten = results.write(folder).err();
                    run.results.push(results);
                    if run.unwritten.is_some() {
                        break;
                    }
                }
                Err(LabError::Interrupted) => break,
                Err(error) => {
                    let failure = ExperimentFailure {
                        experiment: experiment.name().to_owned(),
                        why: error.to_string(),
                    };
                    observer.failed(&failure);
                    run.failures.push(failure);
                }
            }
        }
        run
    }
}

impl MeasuredRun {
    /// True if all of these experiments were measured to their end.
    #[must_use]
    pub fn is_complete(&self, chosen: &[&dyn Experiment]) -> bool {
        self.results.len() == chosen.len() && self.results.iter().all(|results| results.complete)
    }

    /// True if a claim is missed, or was not measured although this host can, if a round was lost, or if an answer was wrong.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let failed = |results: &Results| {
            results.fails_a_claim() || !results.lost.is_empty() || results.has_wrong_answers()
        };
        self.results.iter().any(failed)
    }
}
