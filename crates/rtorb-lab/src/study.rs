//! A study: an experiment as one description, most of it data.
//!
//! The description has the factors with their levels, the amounts, the subject, and what follows from the cells. The engine
//! here owns the rest: rounds, rotation, seeds, interrupts, progress, marks, lost rounds, and the scheduling that was obtained.

use std::collections::BTreeMap;

use rtorb_host::description::kernel_tick_hz;
use rtorb_results::cells::Cells;
use rtorb_results::profile::ServiceRow;
use rtorb_results::systems::Gathered;
use rtorb_results::{
    Claim, Derived, Highlight, LabelValue, Labels, LostRound, ObtainedScheduling, Plot, Published,
    Series, TableView, all_real_time, labels,
};

use crate::error::LabError;
use crate::experiment::{
    Context, Effort, Emulated, Experiment, Outcome, Parameters, Progress, is_complete,
};
use crate::processes::probe::Answer;

/// An experiment whose subject is measured under each combination of levels.
#[derive(Debug)]
pub struct Study<S> {
    /// The name by which it is run: `os/other-cpu`.
    pub(crate) name: &'static str,
    /// What it shows, in a line.
    pub(crate) title: &'static str,
    /// The published table or figure that it repeats.
    pub(crate) reproduces: &'static str,
    /// Rounds, and samples of a cell in a round.
    pub(crate) amounts: Amounts,
    /// What is varied. The last factor varies fastest.
    pub(crate) factors: &'static [Factor],
    /// Labels that all cells have.
    pub(crate) fixed: &'static [(&'static str, Value)],
    /// What a reader of the results must know beside factors and amounts.
    pub(crate) parameters: &'static [(&'static str, Value)],
    /// The labels whose values name the columns of the table.
    pub(crate) columns: &'static [&'static str],
    /// Labels of all series that only the run knows.
    pub(crate) labels_of_run: fn(&Context) -> Labels,
    /// The time from one sample to the next, in nanoseconds, if samples have a rate; otherwise 0.
    pub(crate) period_ns: u64,
    /// How long a turn in a cell takes, in milliseconds, if that is set; otherwise 0.
    pub(crate) run_ms: fn(&Cell<'_>, Effort) -> usize,
    /// Its servers run on the agent when there is one.
    pub(crate) uses_agent: bool,
    /// Cells that an effort leaves out.
    pub(crate) leaves_out: fn(&Cell<'_>, Effort) -> bool,
    /// Why this host cannot be measured; nothing if it can.
    pub(crate) obstacle: fn(&Context) -> Option<&'static str>,
    /// Starts the subject, which will be measured in these cells.
    pub(crate) start: fn(&Context, &[Cell<'_>]) -> Result<S, LabError>,
    /// The tables that show it, if not that of all medians.
    pub(crate) tables: fn() -> Vec<TableView>,
    /// The plots that show it.
    pub(crate) plots: fn() -> Vec<Plot>,
    /// What a campaign of emulated machines does with it; `None` if it runs there only when it is named.
    pub(crate) emulated: Option<Emulated>,
    /// How several operating systems are shown side by side; `None` for a table of medians.
    pub(crate) kernels: Option<fn(&Gathered<'_>) -> Outcome>,
    /// The services of the platform that a profile takes from its results.
    pub(crate) services: &'static [ServiceRow],
    /// What follows from the cells.
    pub(crate) findings: fn(&Cells, &Conditions) -> Findings,
    /// What a reader must know of every run.
    pub(crate) notes: fn(&Context) -> Vec<String>,
}

/// What is measured: processes, or threads of a probe.
pub trait Subject {
    /// The first factor, if its levels are measured one after the other, each in all its rounds. Otherwise all cells have a turn
    /// in each round.
    const BLOCKS: Option<&'static str> = None;

    /// The scheduling of its processes, if that is known before the first turn.
    ///
    /// # Errors
    /// That a process does not answer.
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        Ok(Vec::new())
    }

    /// Takes the samples of a cell in a round.
    ///
    /// # Errors
    /// What went wrong. The round of this cell is lost then, and the run goes on.
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError>;

    /// What a reader must know of it, such as who was left out, and why.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Parameters that are computed from the effort.
    fn parameters(_: Effort) -> Parameters {
        Parameters::new()
    }
}

/// Something that is varied.
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    /// The label.
    pub(crate) label: &'static str,
    /// Its values, in the order in which they are measured.
    pub(crate) levels: &'static [Value],
}

/// A value of a label, known when the program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A name.
    Text(&'static str),
    /// A whole number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// A whole number that depends on the effort.
    ByEffort(ByEffort),
    /// No label at all.
    Absent,
}

/// A whole number for each effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByEffort {
    pub(crate) glance: usize,
    pub(crate) emulated: usize,
    pub(crate) quick: usize,
    pub(crate) full: usize,
}

/// How much each effort measures: rounds, and samples of a cell in a round. In an emulated machine, a round is a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amounts {
    pub(crate) glance: usize,
    pub(crate) emulated: usize,
    pub(crate) quick: [usize; 2],
    pub(crate) full: [usize; 2],
    /// The parameter that has the number of samples.
    pub(crate) samples: &'static str,
}

/// A combination of levels.
#[derive(Debug)]
pub struct Cell<'a>(&'a Labels);

/// A turn of the subject.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The surroundings.
    pub(crate) context: &'a Context,
    /// The number of the round, counted from 0.
    pub(crate) round: usize,
    /// The number of samples to take.
    pub(crate) samples: usize,
    /// How long it takes, in milliseconds, if that is set; otherwise 0.
    pub(crate) run_ms: usize,
}

/// What a turn gave.
#[derive(Debug, Default)]
pub struct Sampled {
    /// The times of each part in nanoseconds, with the labels that tell the parts apart.
    pub(crate) parts: Vec<(Labels, Vec<u64>)>,
    /// Wrong answers.
    pub(crate) wrong: u64,
    /// The scheduling of the measuring threads, if they were seen.
    pub(crate) scheduling: Vec<ObtainedScheduling>,
    /// Samples that were marked, those of the warm-up included.
    pub(crate) marks: u64,
    /// The marks of the warm-up, if a repeated run can find the samples again.
    pub(crate) warm_up: Option<u64>,
    /// Numbers that are added up over the run.
    pub(crate) numbers: BTreeMap<String, f64>,
    /// From before the first sample until after the last, if the samples a second are to be known; otherwise 0.
    pub(crate) elapsed_ns: u64,
    /// The answer from which findings compute the samples, if it has none itself.
    pub(crate) answer: Option<Answer>,
}

/// An answer that was kept for the findings.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The cell.
    pub(crate) labels: Labels,
    pub(crate) round: usize,
    pub(crate) answer: Answer,
}

/// What findings depend on beside the cells.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    /// How much was measured.
    pub(crate) effort: Effort,
    /// Every measured thread had SCHED_FIFO on one CPU.
    pub(crate) real_time: bool,
    /// The kernel is a PREEMPT_RT one.
    pub(crate) preempt_rt: bool,
    /// There is a hypervisor that may take the CPU.
    pub(crate) virtual_machine: bool,
    /// The ticks of the kernel in a second, by its configuration; `None` if that cannot be read.
    pub(crate) tick_hz: Option<u32>,
    /// The numbers of all turns, added up.
    pub(crate) numbers: BTreeMap<String, f64>,
    /// The answers that were kept, in the order of the turns.
    pub(crate) answers: Vec<Answered>,
}

/// What follows from cells.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Cells that were computed from the answers. They are shown after those that were measured.
    pub(crate) cells: Cells,
    /// Series of what is not a time, such as a count.
    pub(crate) series: Vec<Series>,
    /// Plots that depend on the cells.
    pub(crate) plots: Vec<Plot>,
    pub(crate) highlights: Vec<Highlight>,
    pub(crate) derived: Vec<Derived>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) conclusions: Vec<String>,
    pub(crate) published: Vec<Published>,
    pub(crate) notes: Vec<String>,
}

impl<S> Study<S> {
    /// A study with nothing that many do without: `..Study::with(start)` leaves it out.
    pub(crate) const fn with(start: fn(&Context, &[Cell<'_>]) -> Result<S, LabError>) -> Self {
        Self {
            name: "",
            title: "",
            reproduces: "nothing that was published",
            amounts: Amounts {
                glance: 0,
                emulated: 0,
                quick: [0; 2],
                full: [0; 2],
                samples: "samples_per_round",
            },
            factors: &[],
            fixed: &[],
            parameters: &[],
            columns: &[],
            labels_of_run: |_| Labels::new(),
            period_ns: 0,
            run_ms: |_, _| 0,
            uses_agent: false,
            leaves_out: |_, _| false,
            obstacle: |_| None,
            start,
            tables: Vec::new,
            plots: Vec::new,
            emulated: None,
            kernels: None,
            services: &[],
            findings: |_, _| Findings::default(),
            notes: |_| Vec::new(),
        }
    }
}

impl<S: Subject> Study<S> {
    /// The combinations of levels that are measured, in order.
    pub(crate) fn cells(&self, effort: Effort) -> Vec<Labels> {
        let fixed = self.fixed.iter();
        let fixed =
            fixed.filter_map(|(name, value)| Some(((*name).to_owned(), value.with(effort)?)));
        let mut all: Vec<Labels> = vec![fixed.collect()];
        for factor in self.factors {
            let with = |cell: &Labels, level: &Value| {
                let level = level.with(effort);
                let mut cell = cell.clone();
                cell.extend(level.map(|level| (factor.label.to_owned(), level)));
                cell
            };
            let each = all.iter();
            all = each
                .flat_map(|cell| factor.levels.iter().map(move |level| with(cell, level)))
                .collect();
        }
        all.retain(|cell| !(self.leaves_out)(&Cell(cell), effort));
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
        let all: Vec<Cell<'_>> = cells.iter().map(Cell).collect();
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
                    run_ms: (self.run_ms)(&Cell(cell), context.effort),
                };
                match subject.measure(&Cell(cell), &turn) {
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

    fn uses_agent(&self) -> bool {
        self.uses_agent
    }

    fn emulated(&self) -> Option<Emulated> {
        self.emulated
    }

    fn kernels(&self, gathered: &Gathered<'_>) -> Option<Outcome> {
        self.kernels.map(|view| view(gathered))
    }

    fn services(&self) -> &'static [ServiceRow] {
        self.services
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
            let levels = factor.levels.iter();
            let levels = levels.filter_map(|level| level.with(effort));
            let is_measured = |level: &LabelValue| {
                let mut cells = cells.iter();
                cells.any(|cell| cell.get(factor.label) == Some(level))
            };
            let levels = levels.filter(is_measured).map(|level| level.to_string());
            let levels = levels.collect::<Vec<_>>().join(" ");
            parameters.insert(factor.label.to_owned(), levels.into());
        }
        for (name, value) in self.fixed.iter().chain(self.parameters) {
            let value = value.with(effort);
            parameters.extend(value.map(|value| ((*name).to_owned(), value)));
        }
        if self.period_ns > 0 {
            let paced = (rounds * cells.len() * samples) as u64 * self.period_ns;
            parameters.insert("paced_seconds".to_owned(), (paced / 1_000_000_000).into());
            parameters.insert("awake".to_owned(), effort.seeds().is_none().into());
        }
        let run_ms = cells.iter().map(|cell| (self.run_ms)(&Cell(cell), effort));
        let paced_ms = rounds * run_ms.sum::<usize>();
        if paced_ms > 0 {
            parameters.insert("paced_seconds".to_owned(), (paced_ms / 1_000).into());
        }
        parameters.extend(S::parameters(effort));
        parameters
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        if let Some(obstacle) = (self.obstacle)(context) {
            return Ok(Outcome {
                complete: true,
                notes: vec![obstacle.to_owned()],
                ..Outcome::default()
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
            real_time,
            preempt_rt: context.host.preempt_rt,
            // An emulated machine is one whose time stands still while it does not run.
            virtual_machine: context.effort.seeds().is_none() && context.host.is_virtual_machine(),
            tick_hz: kernel_tick_hz(&context.host.kernel_release),
            numbers: measured.numbers,
            answers: measured.answers,
        };
        let findings = (self.findings)(&measured.cells, &conditions);
        let notes = (self.notes)(context).into_iter().chain(measured.notes);
        Ok(Outcome {
            complete,
            series: [&measured.cells, &findings.cells]
                .into_iter()
                .flat_map(|cells| cells.series(&beside))
                .chain(findings.series.into_iter().map(|mut series| {
                    series.labels.extend(beside.clone());
                    series
                }))
                .collect(),
            scheduling: measured.scheduling,
            lost: measured.lost,
            columns: self.columns.iter().map(|name| (*name).to_owned()).collect(),
            tables: (self.tables)(),
            plots: (self.plots)().into_iter().chain(findings.plots).collect(),
            highlights: findings.highlights,
            derived: findings.derived,
            claims: findings.claims,
            conclusions: findings.conclusions,
            published: findings.published,
            notes: notes.chain(findings.notes).collect(),
        })
    }
}

/// What the engine has of a run.
#[derive(Debug, Default)]
struct Measured {
    cells: Cells,
    scheduling: Vec<ObtainedScheduling>,
    lost: Vec<LostRound>,
    numbers: BTreeMap<String, f64>,
    notes: Vec<String>,
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
        for (name, number) in sampled.numbers {
            *self.numbers.entry(name).or_default() += number;
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

impl Amounts {
    /// Rounds, and samples of a cell in a round.
    pub(crate) fn of(&self, effort: Effort) -> (usize, usize) {
        match effort {
            Effort::Glance => (1, self.glance),
            Effort::Emulated { seeds } => (usize::from(seeds), self.emulated),
            Effort::Quick => self.quick.into(),
            Effort::Full => self.full.into(),
        }
    }
}

impl<'a> Cell<'a> {
    /// The cell of these levels.
    pub(crate) fn of(levels: &'a Labels) -> Self {
        Self(levels)
    }

    /// A level in words; `None` if the cell has no level of that factor.
    pub(crate) fn level(&self, label: &str) -> Option<String> {
        self.0.get(label).map(ToString::to_string)
    }

    /// The number of a level.
    ///
    /// # Panics
    /// When the study has no such factor of numbers.
    pub(crate) fn number(&self, label: &str) -> usize {
        let number = self.0.get(label).and_then(LabelValue::number);
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.expect("the study has a factor with that label")
    }

    /// True if it has a level of this factor.
    pub(crate) fn has(&self, label: &str) -> bool {
        self.0.contains_key(label)
    }

    /// True if it has all of these levels.
    pub(crate) fn is_of(&self, levels: &Labels) -> bool {
        let mut levels = levels.iter();
        levels.all(|(label, level)| self.0.get(label) == Some(level))
    }

    /// The levels of these factors, as far as it has them.
    pub(crate) fn levels(&self, labels: &[&str]) -> Labels {
        let levels = self.0.iter();
        let levels = levels.filter(|(label, _)| labels.contains(&label.as_str()));
        levels
            .map(|(label, level)| (label.clone(), level.clone()))
            .collect()
    }

    /// True if the level is this one.
    pub(crate) fn is(&self, label: &str, level: &str) -> bool {
        self.0.get(label) == Some(&level.into())
    }
}

impl Turn<'_> {
    /// What the turn draws its random numbers from.
    pub(crate) fn seed(&self) -> u64 {
        self.context
            .seed(self.round)
            .unwrap_or(self.round as u64 + 1)
    }
}

impl Sampled {
    /// The first set of samples of a probe's answer.
    pub(crate) fn of(answer: Answer) -> Self {
        let mut samples = answer.samples.into_iter();
        Self {
            scheduling: answer.scheduling,
            marks: answer.marks,
            numbers: answer.numbers,
            ..Self::whole(samples.next().unwrap_or_default())
        }
    }

    /// No samples yet: findings compute them from the whole answer.
    pub(crate) fn kept(mut answer: Answer) -> Self {
        Self {
            scheduling: std::mem::take(&mut answer.scheduling),
            marks: answer.marks,
            answer: Some(answer),
            ..Self::default()
        }
    }

    /// Leaves out the scheduling of all threads but those that have one of these names: the others only wait for them.
    pub(crate) fn of_threads(mut self, names: &[&str]) -> Self {
        let is_one = |process: &str| names.iter().any(|name| process.contains(name));
        self.scheduling.retain(|threads| is_one(&threads.process));
        self
    }

    /// Times of one part, which needs no label.
    pub(crate) fn whole(times_ns: Vec<u64>) -> Self {
        Self {
            parts: vec![(Labels::new(), times_ns)],
            ..Self::default()
        }
    }
}

impl Value {
    /// The value of a label or a parameter; `None` if there is none.
    fn with(self, effort: Effort) -> Option<LabelValue> {
        Some(match self {
            Self::Text(text) => text.into(),
            Self::Number(number) => LabelValue::Number(number),
            Self::Flag(flag) => flag.into(),
            Self::ByEffort(numbers) => numbers.of(effort).into(),
            Self::Absent => return None,
        })
    }
}

impl Factor {
    /// True if its levels are without and with a load that runs beside the subject.
    fn is_background_load(&self) -> bool {
        self.label == "load" && self.levels.contains(&Value::Text("none"))
    }
}

impl ByEffort {
    /// The number with this effort.
    pub(crate) fn of(self, effort: Effort) -> usize {
        match effort {
            Effort::Glance => self.glance,
            Effort::Emulated { .. } => self.emulated,
            Effort::Quick => self.quick,
            Effort::Full => self.full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;
    use crate::processes::interrupt::Interrupt;
    use rtorb_results::statistics::Recorder;
    use rtorb_results::{PlotKind, Results, StatisticName, Verdict};

    /// A whole experiment: two factors, one plot, one claim.
    const TOY: Study<Toy> = toy(|_, _| {
        Ok(Toy {
            fails_in: None,
            keeps: false,
        })
    });

    const fn toy<S: Subject>(start: fn(&Context, &[Cell<'_>]) -> Result<S, LabError>) -> Study<S> {
        Study {
            name: "toy/size",
            title: "How long a toy takes, by size and colour",
            reproduces: "nothing that was published",
            amounts: Amounts {
                glance: 5,
                emulated: 5,
                quick: [6, 5],
                full: [12, 5],
                samples: "samples_per_round",
            },
            factors: &[
                Factor {
                    label: "colour",
                    levels: &[Value::Text("red"), Value::Text("blue")],
                },
                Factor {
                    label: "size",
                    levels: &[Value::Number(1), Value::Number(2)],
                },
            ],
            fixed: &[("material", Value::Text("wood"))],
            columns: &["colour"],
            plots: || {
                vec![Plot {
                    kind: PlotKind::Bars,
                    x: "size".to_owned(),
                    lines: vec!["colour".to_owned()],
                    values: vec![StatisticName::P50],
                    ..Plot::named("toy", "A toy's time by its size")
                }]
            },
            findings: |cells, _| {
                let of = |size: i64| {
                    let wanted = [("size", LabelValue::Number(size)), ("colour", "red".into())];
                    let found = cells.with(&wanted).next();
                    found.map(|(_, samples)| samples.rounds(|round| round.p50))
                };
                let ratio = of(2)
                    .zip(of(1))
                    .map(|(large, small)| large.divided_by(&small));
                let claim = |ratio| {
                    Claim::at_most(
                        "growth",
                        "twice as large, twice as long",
                        &ratio,
                        2.1,
                        "ratio",
                    )
                };
                Findings {
                    claims: ratio.and_then(claim).into_iter().collect(),
                    ..Findings::default()
                }
            },
            ..Study::with(start)
        }
    }

    /// One that squeaks, if it is blue.
    const SQUEAKING: Study<Toy> = Study {
        factors: &[
            Factor {
                label: "colour",
                levels: &[Value::Text("red"), Value::Text("blue")],
            },
            Factor {
                label: "size",
                levels: &[Value::Number(1)],
            },
            Factor {
                label: "sound",
                levels: &[Value::Absent, Value::Text("squeak")],
            },
        ],
        parameters: &[(
            "warm_up",
            Value::ByEffort(ByEffort {
                glance: 0,
                emulated: 1,
                quick: 2,
                full: 3,
            }),
        )],
        leaves_out: |cell, _| cell.has("sound") && cell.is("colour", "red"),
        ..TOY
    };

    /// One whose calls fail in round 3, if it is red.
    const BREAKING: Study<Toy> = Study {
        start: |_, _| {
            Ok(Toy {
                fails_in: Some(3),
                keeps: false,
            })
        },
        ..TOY
    };

    /// One that leaves the samples to the findings: how much longer each takes than the shortest of its round.
    const KEEPING: Study<Toy> = Study {
        start: |_, _| {
            Ok(Toy {
                fails_in: None,
                keeps: true,
            })
        },
        findings: |_, conditions| {
            let mut found = Findings::default();
            for kept in &conditions.answers {
                let times_ns = kept.answer.samples[0].iter();
                let longer: Vec<f64> = times_ns.map(|ns| *ns as f64 - 1_000.0).collect();
                found.cells.add_computed(&kept.labels, kept.round, &longer);
            }
            let effort = conditions.effort.name();
            found.notes.push(format!("a {effort} look"));
            found.plots.push(Plot::named("longer", "How much longer"));
            found.series.push(Series {
                unit: "per_toy".to_owned(),
                ..Series::from_recorder(Labels::new(), &Recorder::new())
            });
            found
        },
        ..TOY
    };

    #[derive(Debug)]
    struct Toy {
        fails_in: Option<usize>,
        keeps: bool,
    }

    impl Subject for Toy {
        fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
            if self.fails_in == Some(turn.round) && cell.is("colour", "red") {
                return Err(LabError::process("toy", "it broke"));
            }
            let time_ns = 1_000 * cell.number("size") as u64;
            let thread = |name: &str| ObtainedScheduling {
                process: name.to_owned(),
                threads: 1,
                policy: "SCHED_FIFO".to_owned(),
                priority: 1,
                cpus: "0".to_owned(),
                real_time: true,
            };
            let answer = Answer {
                samples: vec![vec![time_ns; turn.samples]],
                scheduling: vec![thread("toy"), thread("waits")],
                ..Answer::default()
            };
            let sampled = if self.keeps {
                Sampled::kept(answer)
            } else {
                Sampled::of(answer)
            };
            Ok(sampled.of_threads(&["toy"]))
        }

        fn notes(&self) -> Vec<String> {
            vec!["a toy".to_owned()]
        }

        fn parameters(effort: Effort) -> Parameters {
            labels([("warm", (effort == Effort::Quick).into())])
        }
    }

    /// One whose colours are measured one after the other.
    struct Painted(Toy);

    impl Subject for Painted {
        const BLOCKS: Option<&'static str> = Some("colour");

        fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
            self.0.measure(cell, turn)
        }
    }

    struct Steps(Vec<String>);

    impl Progress for Steps {
        fn begin(&mut self, _: usize) {}
        fn step(&mut self, next: &str) {
            self.0.push(next.to_owned());
        }
        fn note(&mut self, _: &str) {}
    }

    struct Silent;

    impl Progress for Silent {
        fn begin(&mut self, _: usize) {}
        fn step(&mut self, _: &str) {}
        fn note(&mut self, _: &str) {}
    }

    fn results_of(study: &Study<Toy>) -> Results {
        let context = Context::new(Effort::Quick, "/bin/false".into(), Interrupt::new());
        experiment::run(study, &context.expect("a folder"), &mut Silent).expect("it runs")
    }

    #[test]
    fn a_study_is_its_cells_its_claims_and_its_plots() {
        let results = results_of(&TOY);
        let labels: Vec<String> = results
            .series
            .iter()
            .map(|series| format!("{} {}", series.labels["colour"], series.labels["size"]))
            .collect();
        assert_eq!(labels, ["red 1", "red 2", "blue 1", "blue 2"]);
        assert!(results.series.iter().all(|series| series.count == 30));
        assert_eq!(results.series[0].labels["material"], "wood".into());
        assert_eq!(results.parameters["size"], "1 2".into());
        assert_eq!(results.parameters["warm"], true.into());
        // A host that takes the CPU away adds a note of its own.
        assert_eq!(results.notes[0], "a toy");
        assert_eq!((results.plots.len(), results.lost.len()), (1, 0));
        let claim = &results.claims[0];
        assert_eq!((claim.id.as_str(), claim.value), ("toy/size.growth", 2.0));
    }

    #[test]
    fn a_level_may_be_absent_and_a_parameter_depend_on_the_effort() {
        let results = results_of(&SQUEAKING);
        let sounds: Vec<Option<&LabelValue>> = results
            .series
            .iter()
            .map(|series| series.labels.get("sound"))
            .collect();
        assert_eq!(sounds, [None, None, Some(&"squeak".into())]);
        assert_eq!(results.parameters["sound"], "squeak".into());
        assert_eq!(results.parameters["warm_up"], 2usize.into());
    }

    #[test]
    fn a_level_may_be_measured_in_all_rounds_before_the_next_one() {
        let painted = toy(|_, _| {
            Ok(Painted(Toy {
                fails_in: None,
                keeps: false,
            }))
        });
        let context = Context::new(Effort::Quick, "/bin/false".into(), Interrupt::new());
        let mut steps = Steps(Vec::new());
        experiment::run(&painted, &context.expect("a folder"), &mut steps).expect("it runs");
        assert_eq!(steps.0.len(), 24);
        let expected = [
            "round 1 of 6: colour red, size 1",
            "round 1 of 6: colour red, size 2",
            "round 2 of 6: colour red, size 2",
        ];
        assert_eq!(steps.0[..3], expected);
        assert_eq!(steps.0[12], "round 1 of 6: colour blue, size 1");
    }

    #[test]
    fn findings_compute_samples_from_the_answers_that_were_kept() {
        let results = results_of(&KEEPING);
        let (counts, times) = results.series.split_last().expect("it has series");
        let of_run = labels([("real_time", true.into())]);
        assert_eq!((counts.unit.as_str(), &counts.labels), ("per_toy", &of_run));
        let found: Vec<(u64, f64)> = times
            .iter()
            .map(|series| (series.count, series.statistics.mean))
            .collect();
        assert_eq!(found, [(30, 0.0), (30, 1_000.0), (30, 0.0), (30, 1_000.0)]);
        assert_eq!(results.series[0].labels["real_time"], true.into());
        assert_eq!(
            results.scheduling.len(),
            1,
            "a thread that only waits is not measured"
        );
        assert_eq!(results.notes[..2], ["a toy", "a quick look"]);
        assert_eq!(results.plots[1].id, "longer");
    }

    #[test]
    fn a_claim_over_a_lost_round_is_not_judged() {
        let results = results_of(&BREAKING);
        assert!(results.complete, "the other rounds were measured");
        let lost: Vec<(usize, &str)> = results
            .lost
            .iter()
            .map(|lost| (lost.round, lost.what.as_str()))
            .collect();
        let both = ["colour red, size 1", "colour red, size 2"];
        assert_eq!(lost.len(), 2);
        assert!(
            lost.iter()
                .all(|(round, what)| *round == 3 && both.contains(what))
        );
        let claim = &results.claims[0];
        assert_eq!(claim.verdict, Verdict::NotJudged);
        assert_eq!(claim.reason, "1 of 6 rounds were lost");
    }
}
