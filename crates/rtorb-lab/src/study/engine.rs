//! The engine: how the cells of a study are measured, and what becomes of them.

use rtorb_host::description::kernel_tick_hz;
use rtorb_results::cells::Cells;
use rtorb_results::claim::Grounds;
use rtorb_results::pattern;
use rtorb_results::profile::ServiceRow;
use rtorb_results::systems::Gathered;
use rtorb_results::{
    LabelValue, Labels, LostRound, ObtainedScheduling, Results, all_real_time, labels,
};

use super::{Answered, Cell, Conditions, Factor, Sampled, Study, Subject, Turn};
use crate::error::LabError;
use crate::experiment::{
    Context, Effort, Emulated, Experiment, Parameters, Progress, Said, is_complete,
};

impl<S: Subject> Study<S> {
    /// The combinations of levels that are measured, in order.
    pub(crate) fn cells(&self, effort: Effort) -> Vec<Labels> {
        let mut all = combinations(self.fixed, self.factors);
        all.retain(|cell| !(self.leaves_out)(&Cell::of(cell), effort));
        all
    }

    /// Block after block, or all cells in one.
    fn measure(
        &self,
        context: &Context,
        measured: &mut Measured,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let cells = self.cells(context.effort);
        let all: Vec<Cell<'_>> = cells.iter().map(Cell::of).collect();
        let mut subject = (self.start)(context, &all)?;
        measured.scheduling = subject.scheduling()?;
        subject.notes().iter().for_each(|note| progress.note(note));
        let (rounds, _) = self.amounts.of(context.effort);
        progress.begin(rounds * cells.len());
        let level = |cell: &Labels| S::BLOCKS.and_then(|label| cell.get(label).cloned());
        let mut blocks = cells.chunk_by(|one, next| level(one) == level(next));
        let done = blocks.try_for_each(|block| {
            self.take_rounds(context, block, &mut subject, measured, progress)
        });
        measured.notes = subject.notes();
        // The subject's reasons go before the general one.
        measured.absent.splice(0..0, subject.absent());
        done
    }

    /// Each cell once a round. Which comes first differs from round to round.
    fn take_rounds(
        &self,
        context: &Context,
        cells: &[Labels],
        subject: &mut S,
        measured: &mut Measured,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let (rounds, samples) = self.amounts.of(context.effort);
        for round in 0..rounds {
            context.begin_round(round);
            for place in 0..cells.len() {
                if context.interrupted() {
                    return Err(LabError::Interrupted);
                }
                let cell = &cells[(place + round) % cells.len()];
                let turn = Turn {
                    context,
                    round,
                    samples,
                    run_ms: (self.run_ms)(&Cell::of(cell), context.effort),
                };
                match subject.measure(&Cell::of(cell), &turn) {
                    Ok(sampled) if sampled.is_nothing() => {
                        let mut left_out = cell.clone();
                        name_load(&mut left_out, context);
                        measured.leave_out(left_out);
                    }
                    Ok(sampled) => {
                        let marked = context.add_marks(sampled.marks);
                        let is_emulated = context.effort.seeds().is_some();
                        let marked = is_emulated.then_some(marked);
                        measured.add(cell, (round, marked), sampled);
                    }
                    Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                    Err(error) => measured.lost.push(LostRound {
                        round,
                        what: self.name_of(cell),
                        why: error.to_string(),
                    }),
                }
                progress.step(&format!(
                    "round {} of {rounds}: {}",
                    round + 1,
                    self.name_of(cell)
                ));
            }
        }
        Ok(())
    }

    /// What is said about cells, and about those that were planned.
    pub(crate) fn say(
        &self,
        context: &Context,
        cells: &Cells,
        absent: &[(Labels, String)],
    ) -> Results {
        let mut planned = self.cells(context.effort);
        planned.iter_mut().for_each(|cell| name_load(cell, context));
        self.says.evaluate(&Grounds {
            cells,
            planned: &planned,
            rounds: self.amounts.of(context.effort).0,
            is_emulated: context.effort.seeds().is_some(),
            on_hosts: self.agents_max > 0 && context.launcher.agent().is_some(),
            absent,
        })
    }

    /// The levels of a cell in words.
    fn name_of(&self, cell: &Labels) -> String {
        let levels = self.factors.iter();
        let levels = levels.filter_map(|factor| {
            let value = cell.get(factor.label)?;
            Some(format!("{} {value}", factor.label))
        });
        levels.collect::<Vec<_>>().join(", ")
    }
}

/// Names the load that the run has, in a cell that is measured under the chosen one.
fn name_load(cell: &mut Labels, context: &Context) {
    if let Some(load) = cell
        .get_mut("load")
        .filter(|load| **load == "chosen".into())
    {
        *load = context.varied_load().to_string().into();
    }
}

/// Returns all combinations of levels, each with the fixed values. The code is compiled once, not for each kind of subject.
fn combinations(fixed: &str, factors: &[Factor]) -> Vec<Labels> {
    let mut all = vec![pattern::wanted(fixed)];
    for factor in factors {
        let levels = factor.levels();
        let with = |cell: &Labels, level: &Option<LabelValue>| {
            let level = level.iter().cloned();
            let mut cell = cell.clone();
            cell.extend(level.map(|level| (factor.label.to_owned(), level)));
            cell
        };
        let each = all.iter();
        all = each
            .flat_map(|cell| levels.iter().map(move |level| with(cell, level)))
            .collect();
    }
    all
}

impl<S: Subject> Experiment for Study<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn reproduces(&self) -> &'static str {
        self.reproduces
    }

    fn agents_max(&self) -> usize {
        self.agents_max
    }

    fn emulated(&self) -> Option<Emulated> {
        self.emulated
    }

    fn modules(&self) -> &'static [&'static str] {
        self.modules
    }

    fn kernels(&self, gathered: &Gathered<'_>) -> Option<Results> {
        self.kernels.map(|view| view(gathered))
    }

    fn services(&self) -> &'static [ServiceRow] {
        self.services
    }

    fn says(&self) -> Vec<Said<'_>> {
        vec![Said {
            says: &self.says,
            planned: self.cells(Effort::Full),
        }]
    }

    fn amount(&self, effort: Effort) -> usize {
        let (rounds, samples) = self.amounts.of(effort);
        let of_cell = |cell: &Labels| match (self.run_ms)(&Cell::of(cell), effort) {
            0 => samples,
            run_ms => run_ms,
        };
        rounds * self.cells(effort).iter().map(of_cell).sum::<usize>()
    }

    fn varies_load(&self) -> bool {
        self.factors.iter().any(Factor::is_background_load)
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let (rounds, samples) = self.amounts.of(effort);
        let mut parameters = labels([
            ("effort", effort.name().into()),
            ("rounds", rounds.into()),
            (self.amounts.samples, samples.into()),
        ]);
        let cells = self.cells(effort);
        // Only the run knows the load.
        let known = self.factors.iter();
        for factor in known.filter(|factor| !factor.is_background_load()) {
            let levels = factor.levels().into_iter().flatten();
            let is_measured = |level: &LabelValue| {
                let mut cells = cells.iter();
                cells.any(|cell| cell.get(factor.label) == Some(level))
            };
            let levels = levels.filter(is_measured).map(|level| level.to_string());
            let levels = levels.collect::<Vec<_>>().join(" ");
            parameters.insert(factor.label.to_owned(), levels.into());
        }
        parameters.extend(pattern::wanted(self.fixed));
        let others = self.parameters.iter();
        parameters.extend(others.map(|(name, value)| ((*name).to_owned(), value.with(effort))));
        if self.period_ns > 0 {
            let paced = (rounds * cells.len() * samples) as u64 * self.period_ns;
            parameters.insert("paced_seconds".to_owned(), (paced / 1_000_000_000).into());
            parameters.insert("awake".to_owned(), effort.seeds().is_none().into());
        }
        let run_ms = cells
            .iter()
            .map(|cell| (self.run_ms)(&Cell::of(cell), effort));
        let paced_ms = rounds * run_ms.sum::<usize>();
        if paced_ms > 0 {
            parameters.insert("paced_seconds".to_owned(), (paced_ms / 1_000).into());
        }
        parameters.extend(S::parameters(effort));
        parameters
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Results, LabError> {
        if let Some(obstacle) = (self.obstacle)(context) {
            let absent = [(Labels::new(), obstacle.to_owned())];
            return Ok(Results {
                complete: true,
                claims: self.say(context, &Cells::default(), &absent).claims,
                notes: vec![obstacle.to_owned()],
                ..Results::default()
            });
        }
        let mut measured = Measured::default();
        let done = self.measure(context, &mut measured, progress);
        let complete = is_complete(done)?;
        let real_time = all_real_time(&measured.scheduling);
        let mut beside = (self.labels_of_run)(context);
        beside.insert("real_time".to_owned(), real_time.into());
        let conditions = Conditions {
            effort: context.effort,
            // An emulated machine is one whose time stands still while it does not run.
            virtual_machine: context.effort.seeds().is_none() && context.host.is_virtual_machine(),
            tick_hz: kernel_tick_hz(&context.host.kernel_release),
            answers: measured.answers,
        };
        let computed = (self.computed)(&measured.cells, &conditions);
        measured.cells.extend(computed.cells);
        let said = self.say(context, &measured.cells, &measured.absent);
        for (_, why) in &measured.absent {
            if !measured.notes.contains(why) {
                measured.notes.push(why.clone());
            }
        }
        let notes = (self.notes)(context).into_iter().chain(measured.notes);
        Ok(Results {
            complete,
            series: measured.cells.series(&beside),
            scheduling: measured.scheduling,
            lost: measured.lost,
            columns: self.columns.iter().map(|name| (*name).to_owned()).collect(),
            tables: (self.tables)(),
            plots: (self.plots)(),
            notes: notes.chain(computed.notes).collect(),
            ..said
        })
    }
}

/// Why a claim about a cell is not measured that the subject does not have.
const LEFT_OUT: &str = "Some combinations of levels do not exist with these hosts and options: nothing is measured of them.";

/// What the engine has of a run.
#[derive(Debug, Default)]
struct Measured {
    cells: Cells,
    scheduling: Vec<ObtainedScheduling>,
    lost: Vec<LostRound>,
    notes: Vec<String>,
    absent: Vec<(Labels, String)>,
    answers: Vec<Answered>,
}

impl Measured {
    fn add(&mut self, cell: &Labels, (round, marked): (usize, Option<u64>), sampled: Sampled) {
        for (part, times_ns) in sampled.parts {
            let mut labels = cell.clone();
            labels.extend(part);
            self.cells.add(&labels, round, &times_ns, sampled.wrong);
            self.cells.add_elapsed(&labels, sampled.elapsed_ns);
            if let (Some(marked), Some(warm_up)) = (marked, sampled.warm_up) {
                self.cells.mark(&labels, marked + warm_up + 1, &times_ns);
            }
        }
        for (part, count, of) in sampled.counts {
            let mut labels = cell.clone();
            labels.extend(part);
            self.cells.add_count(&labels, round, count, of);
            self.cells.add_wrong(&labels, sampled.wrong);
        }
        for found in sampled.scheduling {
            self.note_scheduling(found);
        }
        self.answers.extend(sampled.answer.map(|answer| Answered {
            labels: cell.clone(),
            round,
            answer,
        }));
    }

    /// Notes a cell that the subject does not have where it runs.
    fn leave_out(&mut self, cell: Labels) {
        if !self.absent.iter().any(|(known, _)| *known == cell) {
            self.absent.push((cell, LEFT_OUT.to_owned()));
        }
    }

    /// Of threads of a kind, of which cells have different numbers, the largest number is kept.
    fn note_scheduling(&mut self, found: ObtainedScheduling) {
        let same = |known: &&mut ObtainedScheduling| {
            let as_many = ObtainedScheduling {
                threads: known.threads,
                ..found.clone()
            };
            **known == as_many
        };
        match self.scheduling.iter_mut().find(same) {
            Some(known) => known.threads = known.threads.max(found.threads),
            None => self.scheduling.push(found),
        }
    }
}
