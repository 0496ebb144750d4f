//! A process of its own in which a service of the operating system is timed: how it is asked, and how it answers.
//!
//! A question is a line of JSON, and so is the head of its answer, after which the samples follow as unsigned 64-bit
//! little-endian numbers. The process has locked its memory, and makes the threads that the question is about itself:
//!
//! ```text
//! {"ask":{"count":1000,...}}
//! {"counts":[1000],"scheduling":[...],"numbers":{},"memory_locked":true,"marks":0}    then 8,000 octets
//! ```
//!
//! What cannot be done is answered by `error TEXT`. An experiment defines its [`Question`] and the role of its probe
//! ([`role`]).

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::marker::PhantomData;
use std::time::Duration;

use rtorb_instruments::replay::samples_taken;
use rtorb_results::ObtainedScheduling;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::processes::child::{Role, ready};
use crate::processes::computation::Computation;
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
        ready("");
        serve::<Q>(io::stdin().lock(), io::stdout()).map_err(|error| error.to_string())
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

impl<Q: Serialize> fmt::Display for Line<&Q> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        formatter.write_str(&line)
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
    /// Whether the process could lock its memory: filled in by [`serve`].
    pub memory_locked: bool,
    /// How often [`rtorb_instruments::replay::sample_taken`] was called for it: filled in by [`serve`]. An experiment that runs in
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
        let mut process = launcher.start(name, &[Q::ROLE])?;
        process.ready()?;
        Ok(Self {
            process,
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
        let count = |head: &Head| head.counts.iter().sum();
        let (head, samples) = self.process.ask_for_samples(line, within, count)?;
        Ok(head.with_samples(samples))
    }

    /// The computation that lasts so long on the probe's CPU when nothing interrupts it.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(crate) fn calibrate(&mut self, lasting: Duration) -> Result<Computation, LabError> {
        let computation_ns = u64::try_from(lasting.as_nanos()).unwrap_or(u64::MAX);
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

    /// The process's id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
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

/// What the child does: answers questions until standard input ends.
///
/// # Errors
/// What the input or output said.
fn serve<Q: Question>(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let memory_locked = rtorb_os::memory::lock_all().is_ok();
    for line in input.lines() {
        let marked = samples_taken();
        let answered = serde_json::from_str(&line?)
            .map_err(|error| format!("not a question: {error}"))
            .and_then(|line: Line<Q>| line.answer());
        match answered {
            Ok(answer) => Answer {
                memory_locked,
                marks: samples_taken() - marked,
                ..answer
            }
            .write(&mut output)?,
            Err(what) => writeln!(output, "error {}", what.replace('\n', " "))?,
        }
        output.flush()?;
    }
    Ok(())
}

impl Answer {
    fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let head = Head {
            counts: self.samples.iter().map(Vec::len).collect(),
            numbers: self.numbers.clone(),
            scheduling: self.scheduling.clone(),
            memory_locked: self.memory_locked,
            marks: self.marks,
        };
        serde_json::to_writer(&mut *output, &head)?;
        output.write_all(b"\n")?;
        for sample in self.samples.iter().flatten() {
            output.write_all(&sample.to_le_bytes())?;
        }
        Ok(())
    }
}

/// The first line of an answer.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    counts: Vec<usize>,
    numbers: BTreeMap<String, f64>,
    scheduling: Vec<ObtainedScheduling>,
    memory_locked: bool,
    marks: u64,
}

impl Head {
    fn with_samples(self, samples: Vec<u64>) -> Answer {
        let mut all = samples.into_iter();
        Answer {
            samples: self
                .counts
                .iter()
                .map(|count| all.by_ref().take(*count).collect())
                .collect(),
            numbers: self.numbers,
            scheduling: self.scheduling,
            memory_locked: self.memory_locked,
            marks: self.marks,
        }
    }
}

impl std::str::FromStr for Head {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let head: Self = match line.strip_prefix("error ") {
            Some(what) => return Err(what.to_owned()),
            None => serde_json::from_str(line).map_err(|error| format!("{error}: {line:?}"))?,
        };
        match head.counts.iter().sum::<usize>() {
            too_many if too_many > SAMPLES_MAX => Err(format!("{too_many} samples are too many")),
            _ => Ok(head),
        }
    }
}

/// The number that answers [`Line::Calibrate`].
const STEPS: &str = "steps";
/// Some ten times what any experiment has calibrated.
const CALIBRATION: Duration = Duration::from_secs(1);
/// 32 MiB of them: ten times what any experiment takes at once.
const SAMPLES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_back() {
        let answer = Answer {
            samples: vec![vec![1, u64::MAX, 3], vec![], vec![1 << 40]],
            numbers: BTreeMap::from([("switches".to_owned(), 2.5)]),
            marks: 3,
            ..Answer::default()
        };
        let mut written = Vec::new();
        answer.write(&mut written).unwrap();
        let end = written.iter().position(|octet| *octet == b'\n').unwrap();
        let head: Head = std::str::from_utf8(&written[..end])
            .unwrap()
            .parse()
            .unwrap();
        let (samples, rest) = written[end + 1..].as_chunks();
        assert!(rest.is_empty());
        let samples = samples.iter().map(|eight| u64::from_le_bytes(*eight));
        assert_eq!(head.with_samples(samples.collect()), answer);
    }

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
        let mut output = Vec::new();
        serve::<Count>(questions.as_bytes(), &mut output).unwrap();
        rtorb_os::memory::unlock_all();
        let text = String::from_utf8_lossy(&output);
        assert!(text.starts_with("error not a question"), "{text}");
        assert!(text.contains("\"counts\":[2]"), "{text}");
    }

    #[test]
    fn too_many_samples_are_refused() {
        let line = "{\"counts\":[99999999],\"numbers\":{},\"scheduling\":[],\"memory_locked\":true,\"marks\":0}";
        assert!(line.parse::<Head>().unwrap_err().contains("too many"));
    }
}
