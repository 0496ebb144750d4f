//! A suite: several studies that are run one after the other as one experiment.

use rtorb_results::cells::Cells;
use rtorb_results::profile::ServiceRow;
use rtorb_results::systems::Gathered;
use rtorb_results::{Claim, LabelValue, Labels, LostRound, Results};

use crate::error::LabError;
use crate::experiment::{Context, Effort, Emulated, Experiment, Parameters, Progress, Said};
use crate::study::{Study, Subject};

/// Several studies as one experiment.
pub struct Suite {
    /// The name by which it is run.
    pub(crate) name: &'static str,
    /// What it shows, in a line.
    pub(crate) title: &'static str,
    /// The published table or figure that it repeats.
    pub(crate) reproduces: &'static str,
    /// The studies that an effort has, in order.
    pub(crate) studies: fn(Effort) -> &'static [&'static dyn Member],
    /// What a reader must know of every run.
    pub(crate) notes: fn(&Context) -> Vec<String>,
}

/// A study of a suite.
pub(crate) trait Member: Experiment {
    /// The number of its turns.
    fn turns(&self, effort: Effort) -> usize;

    /// Its claims if nothing of it is measured. `absent` has the cells that this host cannot have, with the reason.
    fn unmeasured(&self, context: &Context, absent: &[(Labels, String)]) -> Vec<Claim>;
}

impl<S: Subject> Member for Study<S> {
    fn turns(&self, effort: Effort) -> usize {
        let (rounds, _) = self.amounts.of(effort);
        rounds * self.cells(effort).len()
    }

    fn unmeasured(&self, context: &Context, absent: &[(Labels, String)]) -> Vec<Claim> {
        self.say(context, &Cells::default(), absent).claims
    }
}

impl Experiment for Suite {
    fn name(&self) -> &str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn reproduces(&self) -> &'static str {
        self.reproduces
    }

    /// Where studies differ, the first one counts; seconds are added up.
    fn parameters(&self, effort: Effort) -> Parameters {
        let mut all = Parameters::new();
        let mut seconds = 0i64;
        for study in (self.studies)(effort) {
            let of_study = study.parameters(effort);
            let paced = of_study.get(PACED).and_then(LabelValue::number);
            seconds += paced.unwrap_or(0);
            for (name, value) in of_study {
                all.entry(name).or_insert(value);
            }
        }
        if seconds > 0 {
            all.insert(PACED.to_owned(), LabelValue::Number(seconds));
        }
        all
    }

    fn says(&self) -> Vec<Said<'_>> {
        let studies = (self.studies)(Effort::Full).iter();
        studies.flat_map(|study| study.says()).collect()
    }

    fn amount(&self, effort: Effort) -> usize {
        let studies = (self.studies)(effort).iter();
        studies.map(|study| study.amount(effort)).sum()
    }

    fn varies_load(&self) -> bool {
        let mut studies = (self.studies)(Effort::Full).iter();
        studies.any(|study| study.varies_load())
    }

    /// As the first study: with agents, studies that measure this host alone are left out.
    fn agents_max(&self) -> usize {
        let studies = (self.studies)(Effort::Full);
        studies.first().map_or(0, |study| study.agents_max())
    }

    /// As the first study.
    fn emulated(&self) -> Option<Emulated> {
        let studies = (self.studies)(Effort::Full);
        studies.first().and_then(|study| study.emulated())
    }

    /// As the first study.
    fn kernels(&self, gathered: &Gathered<'_>) -> Option<Results> {
        let studies = (self.studies)(Effort::Full);
        studies.first().and_then(|study| study.kernels(gathered))
    }

    /// As the first study that has any.
    fn services(&self) -> &'static [ServiceRow] {
        let studies = (self.studies)(Effort::Full).iter();
        let mut rows = studies.map(|study| study.services());
        rows.find(|rows| !rows.is_empty()).unwrap_or_default()
    }

    /// A study that fails leaves the others alone, unless it is the first. Its claims are not measured, as those of a study that an agent
    /// leaves out are.
    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Results, LabError> {
        let is_alone = context.launcher.agents.is_empty() || self.agents_max() == 0;
        let studies = (self.studies)(context.effort).iter().copied();
        let (studies, left_out): (Vec<&dyn Member>, Vec<&dyn Member>) =
            studies.partition(|study| is_alone || study.agents_max() > 0);
        let turns = studies.iter().map(|study| study.turns(context.effort));
        progress.begin(turns.sum());
        let mut all = Results {
            complete: true,
            notes: (self.notes)(context),
            ..Results::default()
        };
        let of_one_host = [(Labels::new(), OF_ONE_HOST.to_owned())];
        let left_out = left_out.into_iter();
        let left_out = left_out.flat_map(|study| study.unmeasured(context, &of_one_host));
        all.claims.extend(left_out);
        for (place, study) in studies.iter().enumerate() {
            match study.run(context, &mut BegunStudy(progress)) {
                Ok(found) => append(&mut all, found),
                Err(error) if place == 0 => return Err(error),
                Err(error) => {
                    all.claims.extend(study.unmeasured(context, &[]));
                    all.lost.push(LostRound {
                        round: 0,
                        what: study.title().to_owned(),
                        why: error.to_string(),
                    });
                }
            }
            if !all.complete {
                let rest = studies[place + 1..].iter();
                let rest = rest.flat_map(|study| study.unmeasured(context, &[]));
                all.claims.extend(rest);
                break;
            }
        }
        Ok(all)
    }
}

/// Adds what another study found.
fn append(all: &mut Results, mut other: Results) {
    all.complete &= other.complete;
    if all.columns.is_empty() {
        all.columns = other.columns;
    }
    all.scheduling.append(&mut other.scheduling);
    all.highlights.append(&mut other.highlights);
    all.series.append(&mut other.series);
    all.tables.append(&mut other.tables);
    all.plots.append(&mut other.plots);
    all.derived.append(&mut other.derived);
    all.claims.append(&mut other.claims);
    all.lost.append(&mut other.lost);
    all.conclusions.append(&mut other.conclusions);
    all.published.append(&mut other.published);
    all.notes.append(&mut other.notes);
}

/// The progress of a study in a suite, which knows the number of all steps.
struct BegunStudy<'a>(&'a mut dyn Progress);

impl Progress for BegunStudy<'_> {
    fn begin(&mut self, _: usize) {}

    fn step(&mut self, next: &str) {
        self.0.step(next);
    }

    fn note(&mut self, text: &str) {
        self.0.note(text);
    }
}

/// Why a study is left out with agents.
const OF_ONE_HOST: &str = "it is measured on this host alone, and there is an agent";
/// The parameter that has the seconds in which samples have a rate.
const PACED: &str = "paced_seconds";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::interrupt::Interrupt;
    use crate::study::{Amounts, Cell, Sampled, Turn};
    use rtorb_results::Verdict;
    use rtorb_results::claim::Declaration;
    use rtorb_results::metric::{Metric, Statistic::P50};
    use rtorb_results::statements::Statements;

    struct Toy;

    impl Subject for Toy {
        fn measure(&mut self, _: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
            Ok(Sampled::whole(vec![7; turn.samples]))
        }
    }

    const fn study(name: &'static str, rounds: usize) -> Study<Toy> {
        Study {
            name,
            title: "A toy",
            amounts: Amounts {
                glance: 1,
                emulated: 1,
                quick: [rounds, 1_000],
                full: [rounds, 1_000],
                samples: name,
            },
            period_ns: 1_000_000,
            notes: |_| vec!["a toy".to_owned()],
            ..Study::with(|_, _| Ok(Toy))
        }
    }

    const FIRST: Study<Toy> = study("first", 2);
    const BROKEN: Study<Toy> = Study {
        start: |_, _| Err(LabError::process("toy", "it broke")),
        says: Statements {
            claims: &[Declaration::at_most("short", Metric::of(P50), 1.0).of("", "it is short")],
            ..Statements::NONE
        },
        ..study("broken", 1)
    };
    const LAST: Study<Toy> = study("last", 3);
    const INTERRUPTED: Study<Toy> = Study {
        start: |context, _| {
            context.launcher.interrupt.request();
            Ok(Toy)
        },
        ..study("interrupted", 1)
    };

    const SUITE: Suite = Suite {
        name: "toy/suite",
        title: "Toys",
        reproduces: "nothing",
        studies: |effort| match effort {
            Effort::Glance => &[&BROKEN],
            Effort::Full => &[&INTERRUPTED, &BROKEN],
            _ => &[&FIRST, &BROKEN, &LAST],
        },
        notes: |_| vec!["toys".to_owned()],
    };

    #[derive(Default)]
    struct Steps {
        planned: usize,
        done: usize,
    }

    impl Progress for Steps {
        fn begin(&mut self, steps: usize) {
            self.planned += steps;
        }
        fn step(&mut self, _: &str) {
            self.done += 1;
        }
        fn note(&mut self, _: &str) {}
    }

    fn run(effort: Effort) -> (Result<Results, LabError>, Steps) {
        let context = Context::new(effort, "/bin/false".into(), Interrupt::new());
        let mut steps = Steps::default();
        let outcome = SUITE.run(&context.expect("a folder"), &mut steps);
        (outcome, steps)
    }

    #[test]
    fn a_study_that_fails_leaves_the_others_alone() {
        let (outcome, steps) = run(Effort::Quick);
        let outcome = outcome.expect("it runs");
        assert!(outcome.complete);
        assert_eq!((outcome.series.len(), steps.planned, steps.done), (2, 6, 5));
        assert_eq!(outcome.notes[..2], ["toys", "a toy"]);
        assert_eq!(outcome.lost.len(), 1, "{:?}", outcome.lost);
        let claims: Vec<_> = outcome
            .claims
            .iter()
            .map(|it| (it.verdict, it.is_failure()))
            .collect();
        assert_eq!(
            claims,
            [(Verdict::NotMeasured, true)],
            "its claims do not vanish"
        );
        assert!(run(Effort::Glance).0.is_err(), "the first one must run");
    }

    #[test]
    fn what_an_interrupt_leaves_out_keeps_its_claims() {
        let outcome = run(Effort::Full).0.expect("it runs");
        assert!(!outcome.complete);
        let verdicts: Vec<_> = outcome.claims.iter().map(|it| it.verdict).collect();
        assert_eq!(verdicts, [Verdict::NotMeasured]);
    }

    #[test]
    fn parameters_are_of_the_first_study_and_seconds_of_all() {
        let parameters = SUITE.parameters(Effort::Quick);
        assert_eq!(parameters["rounds"], 2usize.into());
        assert_eq!(parameters["paced_seconds"], 6usize.into());
        assert_eq!(parameters["last"], 1_000usize.into());
    }
}
