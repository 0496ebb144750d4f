//! Which samples of a campaign are explained, and the boots that they are found in again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::explanation::{Explanation, Sample, in_thousands};
use rtorb_results::{LabelValue, Results, Series};

use super::replay::{self, Asked, Replay};
use crate::campaign::{Answer, Identity, Record, folder_of};
use crate::initramfs::{Initramfs, OwnFile};
use crate::job::Job;
use crate::machine::{Boot, Emulator, Machine};
use crate::program;

/// Which samples.
#[derive(Clone, Debug)]
pub struct ExplanationRequest {
    /// The campaign's folder.
    pub folder: PathBuf,
    /// The system, as its folder is called: `6.12-voluntary`; `None` for each one.
    pub system: Option<String>,
    /// The experiment.
    pub experiment: String,
    /// Labels that the series must have.
    pub labels: Vec<(String, String)>,
    /// Which sample of the series.
    pub sample: Sample,
    /// The guests' program; `None` finds it.
    pub program: Option<PathBuf>,
    /// The programs of the user's own, in the campaign's order.
    pub own_programs: Vec<OwnFile>,
}

/// A sample that can be found again.
struct Candidate {
    system: usize,
    name: String,
    series: Series,
    mark: u64,
    value: u64,
}

/// Explains one sample of each system: of the series with the slowest one, among those that the request names. Files are written
/// to `explanations` in the campaign's folder. `executable` is this program's own file.
///
/// # Errors
/// That the campaign has no such sample, or that its boots cannot be repeated here; or the interrupt.
pub fn explain(
    request: &ExplanationRequest,
    executable: &Path,
    interrupt: &Interrupt,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Explanation>, LabError> {
    let record = Record::read(&request.folder)?;
    let identity = &record.identity;
    if identity.full {
        return Err(LabError::Incomplete {
            what: TOO_LONG.to_owned(),
        });
    }
    if identity.shift != 0 {
        return Err(LabError::Incomplete {
            what: NO_INSTRUCTIONS.to_owned(),
        });
    }
    let emulator = Emulator::find(executable, interrupt)?;
    let program = program::find(request.program.as_deref(), executable, interrupt)?;
    let initramfs = Initramfs::with_program(&program)?;
    let initramfs = initramfs.with_own_programs(&request.own_programs)?;
    same(identity, &emulator, &initramfs, &request.folder)?;
    let here = Here {
        request,
        identity,
        emulator: &emulator,
        initramfs: &initramfs,
        program: &program,
        interrupt,
    };
    let mut explanations = Vec::new();
    for candidates in candidates(request, identity)?.chunks(side_by_side()) {
        let answers: Vec<&Answer> = candidates
            .iter()
            .map(|candidate| answer_of(&record, candidate, request))
            .collect::<Result<_, _>>()?;
        for (candidate, answer) in candidates.iter().zip(&answers) {
            note(&format!(
                "{}: {} under load {}, {}: the boot is repeated with an instruction trace",
                candidate.name,
                request.experiment,
                answer.load,
                in_thousands(candidate.value)
            ));
        }
        let explained: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = candidates
                .iter()
                .zip(answers)
                .map(|(candidate, answer)| scope.spawn(|| here.explain(candidate, answer)))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended
                .map(|ended| ended.unwrap_or_else(|_| Err(panicked())))
                .collect()
        });
        for one in explained {
            explanations.push(one?);
        }
    }
    Ok(explanations)
}

/// What all boots that are repeated have in common.
struct Here<'a> {
    request: &'a ExplanationRequest,
    identity: &'a Identity,
    emulator: &'a Emulator,
    initramfs: &'a Initramfs,
    program: &'a Path,
    interrupt: &'a Interrupt,
}

impl Here<'_> {
    /// Repeats the boot in which the guest said `answer`, and writes what the sample was spent in.
    fn explain(&self, candidate: &Candidate, answer: &Answer) -> Result<Explanation, LabError> {
        let job = Job::Measure {
            experiments: answer.experiments.clone(),
            load: answer.load.clone(),
            seeds: self.identity.seeds,
            full: self.identity.full,
        };
        let experiments = u32::try_from(answer.experiments.len()).unwrap_or(u32::MAX);
        let replay = Replay {
            emulator: self.emulator,
            boot: Boot {
                machine: Machine::of(self.identity),
                kernel: &self.identity.systems[candidate.system].kernel,
                preempt: self.identity.asked[candidate.system].as_deref(),
                initramfs: self.initramfs,
                job: &job,
                observers: &[],
            },
            timeout: BOOT_MAX + EXPERIMENT_MAX * experiments,
            answer,
            program: self.program,
            interrupt: self.interrupt,
        };
        let asked = Asked {
            system: candidate.name.clone(),
            experiment: self.request.experiment.clone(),
            seed: seed_of(candidate),
            labels: candidate.series.labels.clone(),
            sample: self.request.sample,
            mark: candidate.mark,
            value: candidate.value,
        };
        replay::explain(&replay, asked)?.write(&self.request.folder)
    }
}

/// How many boots are repeated at the same time.
fn side_by_side() -> usize {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(SIDE_BY_SIDE_MAX))
}

fn panicked() -> LabError {
    LabError::process("an explanation", "the thread that looked at it panicked")
}

/// What the boots of the campaign depend on must be here as it was there.
fn same(
    identity: &Identity,
    emulator: &Emulator,
    initramfs: &Initramfs,
    folder: &Path,
) -> Result<(), LabError> {
    let pairs = [
        (
            "the emulator",
            &identity.emulator_sha256,
            emulator.sha256.as_str(),
        ),
        (
            "the emulator's firmware",
            &identity.firmware_sha256,
            emulator.firmware_sha256.as_str(),
        ),
        (
            "the guests' program",
            &identity.initramfs_sha256,
            initramfs.sha256(),
        ),
    ];
    let differs: Vec<&str> = pairs
        .iter()
        .filter(|(_, then, now)| then.as_str() != *now)
        .map(|(what, _, _)| *what)
        .collect();
    if differs.is_empty() {
        return Ok(());
    }
    let what = format!(
        "holds a campaign whose boots cannot be repeated: {} changed since. Run the campaign again, or name its program with \
         `--program FILE`",
        differs.join(" and ")
    );
    Err(LabError::folder(folder, what))
}

/// For each system, the series with the slowest sample.
fn candidates(
    request: &ExplanationRequest,
    identity: &Identity,
) -> Result<Vec<Candidate>, LabError> {
    let mut candidates = Vec::new();
    for (index, system) in identity.systems.iter().enumerate() {
        let folder = folder_of(&request.folder, system);
        let name = folder.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if request
            .system
            .as_ref()
            .is_some_and(|wanted| *wanted != name)
        {
            continue;
        }
        let file = folder
            .join("results")
            .join(format!("{}.json", request.experiment));
        let Ok(results) = Results::read(&file) else {
            continue;
        };
        let slowest = results
            .series
            .into_iter()
            .filter(|series| has(series, &request.labels))
            .filter_map(|series| {
                let sample = match request.sample {
                    Sample::Worst => series.worst_sample?,
                    Sample::Median => series.typical_sample?,
                };
                Some((sample.value_ns, sample.mark, series))
            })
            .max_by_key(|(value, ..)| *value);
        if let Some((value, mark, series)) = slowest {
            candidates.push(Candidate {
                system: index,
                name,
                series,
                mark,
                value,
            });
        }
    }
    if candidates.is_empty() {
        let names: Vec<String> = identity
            .systems
            .iter()
            .map(|system| format!("{}-{}", system.kernel.name, system.preempt))
            .collect();
        return Err(LabError::Incomplete {
            what: format!(
                "{} has no sample of {} that can be found again with these labels; its systems are {}",
                request.folder.display(),
                request.experiment,
                names.join(", ")
            ),
        });
    }
    Ok(candidates)
}

fn has(series: &Series, labels: &[(String, String)]) -> bool {
    labels.iter().all(|(name, value)| {
        let found = series.labels.get(name);
        found.is_some_and(|found| found.to_string() == *value)
    })
}

fn answer_of<'a>(
    record: &'a Record,
    candidate: &Candidate,
    request: &ExplanationRequest,
) -> Result<&'a Answer, LabError> {
    let load = candidate.series.labels.get("load");
    let load = load.map_or_else(|| "none".to_owned(), LabelValue::to_string);
    let mut answers = record.answers.iter();
    let found = answers.find(|answer| {
        answer.system == candidate.system
            && answer.load == load
            && answer.experiments.contains(&request.experiment)
    });
    found.ok_or_else(|| {
        let what = format!(
            "does not say what {} answered under load {load}",
            candidate.name
        );
        LabError::folder(&request.folder, what)
    })
}

/// The seed whose largest sample it is.
fn seed_of(candidate: &Candidate) -> Option<u16> {
    let mut rounds = candidate.series.rounds_max.iter();
    let round = rounds.position(|max| *max == candidate.value as f64)?;
    u16::try_from(round + 1).ok()
}

const TOO_LONG: &str = "a boot of a campaign with --full is too long for an instruction trace: run the campaign without it, and \
                        explain that one";
/// A sample is found in the trace by its length, and the trace is of one CPU.
const NO_INSTRUCTIONS: &str = "only a machine with one CPU, on which an instruction takes a nanosecond, can be explained: run the \
                               campaign without `--machine p1`, and explain that one";
/// Each holds a trace in memory.
const SIDE_BY_SIDE_MAX: usize = 4;
/// As long as a campaign gives a boot and an experiment, and half as long again: a trace costs time.
const BOOT_MAX: Duration = Duration::from_secs(450);
const EXPERIMENT_MAX: Duration = Duration::from_secs(900);

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::campaign::{Host, SCHEMA, SelfCheck, Wall};
    use rtorb_results::write_json;

    #[test]
    fn a_campaign_whose_instructions_take_longer_than_a_nanosecond_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record {
            schema: SCHEMA.to_owned(),
            id: String::new(),
            identity: Identity {
                shift: Machine::P1.shift(),
                ..Identity::default()
            },
            complete: true,
            missing: Vec::new(),
            self_check: SelfCheck::default(),
            answers: Vec::new(),
            wall: Wall {
                started: String::new(),
                duration_s: 0.0,
                guests: 1,
                host: Host::of(&rtorb_host::Host::default()),
            },
        };
        write_json(&folder.path().join(Record::FILE), &record).unwrap();
        let request = ExplanationRequest {
            folder: folder.path().to_owned(),
            system: None,
            experiment: "os/wakeup".to_owned(),
            labels: Vec::new(),
            sample: Sample::Worst,
            program: None,
            own_programs: Vec::new(),
        };
        let nowhere = Path::new("/nowhere");
        let refused = explain(&request, nowhere, &Interrupt::new(), &mut |_| ()).unwrap_err();
        assert!(
            matches!(&refused, LabError::Incomplete { what } if what.contains("--machine p1")),
            "{refused}"
        );
    }
}
