//! A process of its own in which a service of the operating system is timed: how it is asked, and how it answers.
//!
//! The process has locked its memory, and makes the threads that the question is about itself. An experiment defines its [`Question`]
//! and the role of its probe ([`role`]).

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use rtorb_instruments::replay::samples_taken;
use rtorb_results::ObtainedScheduling;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::processes::child::Role;
use crate::processes::computation::Computation;
use crate::processes::questions::{self, Reply};
use crate::processes::readable::nanoseconds;
use crate::processes::{Launcher, Process};

/// What a probe is asked. The experiment that asks defines it and how it is answered.
pub trait Question: fmt::Debug + Serialize + DeserializeOwned {
    /// The role of the process.
    const ROLE: &'static str;

    /// Measures, in the process of the probe.
    ///
    /// # Errors
    /// What went wrong.
    fn answer(&self) -> Result<Answer, String>;
}

/// The role of a process that answers these questions.
pub(crate) const fn role<Q: Question>() -> Role {
    Role::here(Q::ROLE, |_| {
        let memory_locked = rtorb_os::memory::lock_all().is_ok();
        questions::serve(|line: Line<Q>| line.reply(memory_locked))
    })
}

/// A line of a laboratory.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<Q> {
    Ask(Q),
    /// How many steps a computation has that lasts so long: the number [`STEPS`].
    Calibrate {
        computation_ns: u64,
    },
}

impl<Q: Question> Line<Q> {
    fn reply(&self, memory_locked: bool) -> Result<Reply<Head>, String> {
        let marked = samples_taken();
        let answer = self.answer()?;
        Ok(Reply {
            value: Head {
                numbers: answer.numbers,
                scheduling: answer.scheduling,
                memory_locked,
                marks: samples_taken() - marked,
            },
            series: answer.samples,
        })
    }

    fn answer(&self) -> Result<Answer, String> {
        match self {
            Self::Ask(question) => question.answer(),
            Self::Calibrate { computation_ns } => {
                let steps = Computation::lasting(*computation_ns).steps;
                Ok(Answer {
                    numbers: BTreeMap::from([(STEPS.to_owned(), steps as f64)]),
                    ..Answer::default()
                })
            }
        }
    }
}

/// What a probe answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The samples of each series that the question asks for, in its order; times in nanoseconds.
    pub samples: Vec<Vec<u64>>,
    /// Single numbers by name.
    pub numbers: BTreeMap<String, f64>,
    /// The scheduling that the measuring threads had, read while they ran.
    pub scheduling: Vec<ObtainedScheduling>,
    /// Whether the process could lock its memory: filled in by the process.
    pub memory_locked: bool,
    /// How often [`rtorb_instruments::replay::sample_taken`] was called for it: filled in by the process. An experiment that runs in
    /// emulated machines tells [`crate::experiment::Context::add_marks`].
    pub marks: u64,
}

/// A running probe that is asked such questions.
#[derive(Debug)]
pub struct Probe<Q> {
    process: Process,
    asked: PhantomData<Q>,
}

impl<Q: Question> Probe<Q> {
    /// Starts the process.
    ///
    /// # Errors
    /// That it could not be started.
    pub fn start(launcher: &Launcher, name: &str) -> Result<Self, LabError> {
        Ok(Self {
            process: launcher.start(name, &[Q::ROLE])?,
            asked: PhantomData,
        })
    }

    /// Asks, and waits for the answer for as long as `within` and ten seconds more.
    ///
    /// # Errors
    /// What the probe said went wrong, that it ended or was silent, or the interrupt.
    pub fn ask(&mut self, question: &Q, within: Duration) -> Result<Answer, LabError> {
        self.tell(&Line::Ask(question), within)
    }

    fn tell(&mut self, line: &Line<&Q>, within: Duration) -> Result<Answer, LabError> {
        let Reply { value, series } = self.process.ask_for_series::<Head>(line, within)?;
        Ok(Answer {
            samples: series,
            numbers: value.numbers,
            scheduling: value.scheduling,
            memory_locked: value.memory_locked,
            marks: value.marks,
        })
    }

    /// The computation that lasts so long on the probe's CPU when nothing interrupts it.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(crate) fn calibrate(&mut self, lasting: Duration) -> Result<Computation, LabError> {
        let computation_ns = nanoseconds(lasting);
        let answer = self.tell(&Line::Calibrate { computation_ns }, CALIBRATION)?;
        match answer.numbers.get(STEPS) {
            Some(steps) => Ok(Computation {
                steps: *steps as u64,
            }),
            None => Err(LabError::process(
                self.process.name(),
                "did not say how many steps a computation has",
            )),
        }
    }
}

/// Probes that take turns: each has a number, and the one before it is ended.
#[derive(Debug)]
pub(crate) struct ProbeInTurn<Q> {
    launcher: Launcher,
    name: &'static str,
    running: Option<(usize, Probe<Q>)>,
}

impl<Q: Question> ProbeInTurn<Q> {
    /// None runs yet.
    pub(crate) fn new(launcher: &Launcher, name: &'static str) -> Self {
        Self {
            launcher: launcher.clone(),
            name,
            running: None,
        }
    }

    /// The probe with that number.
    ///
    /// # Errors
    /// As [`Probe::start`].
    pub(crate) fn of(&mut self, number: usize) -> Result<&mut Probe<Q>, LabError> {
        if self.running.as_ref().is_none_or(|(of, _)| *of != number) {
            self.running = None;
            self.running = Some((number, Probe::start(&self.launcher, self.name)?));
        }
        let (_, probe) = self.running.as_mut().expect("it was just started");
        Ok(probe)
    }
}

/// An answer without its samples.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    numbers: BTreeMap<String, f64>,
    scheduling: Vec<ObtainedScheduling>,
    memory_locked: bool,
    marks: u64,
}

/// The number that answers [`Line::Calibrate`].
const STEPS: &str = "steps";
/// Some ten times what any experiment has calibrated.
const CALIBRATION: Duration = Duration::from_secs(1);
#[cfg(test)]
mod tests {
    use super::*;

    /// How many samples the answer has.
    #[derive(Debug, Serialize, Deserialize)]
    struct Count(usize);

    impl Question for Count {
        const ROLE: &'static str = "probe-count";

        fn answer(&self) -> Result<Answer, String> {
            Ok(Answer {
                samples: vec![vec![0; self.0]],
                ..Answer::default()
            })
        }
    }

    #[test]
    fn a_question_that_is_none_is_answered_and_the_next_one_too() {
        let questions = "pigeon\n{\"ask\":2}\n";
        let answer = |line: Line<Count>| line.reply(true);
        let replies = questions::tests::replies::<_, _, Head>(questions, answer);
        let [Err(none), Ok(two)] = &replies[..] else {
            panic!("{replies:?}")
        };
        assert!(none.starts_with("not a question"), "{none}");
        assert_eq!(two.series, [[0, 0]]);
        assert!(two.value.memory_locked);
    }
}
