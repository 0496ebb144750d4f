//! Which samples of a campaign are explained, and the boots that they are found in again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::LabError;
use crate::kernels::campaign::{Answer, Identity, Record, folder_of};
use crate::kernels::initramfs::{Initramfs, OwnFile};
use crate::kernels::job::Job;
use crate::kernels::machine::{Boot, Emulator};
use crate::kernels::program;
use crate::processes::interrupt::Interrupt;
use crate::results::{LabelValue, Results, Series};

use super::explanation::{Explanation, Sample, in_thousands};
use super::replay::{self, Asked, Replay};

/// Which samples.
#[derive(Clone, Debug)]
pub struct Request {
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
    request: &Request,
    executable: &Path,
    interrupt: &Interrupt,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Explanation>, LabError> {
    let record = Record::read(&request.folder)?;
    let identity = &record.identity;
    let emulator = Emulator::find(executable, interrupt)?;
    let program = program::find(request.program.as_deref(), executable, interrupt)?;
    let initramfs = Initramfs::with_program(&program)?;
    let initramfs = initramfs.with_own_programs(&request.own_programs)?;
    same(identity, &emulator, &initramfs, &request.folder)?;
    let mut explanations = Vec::new();
    for candidate in candidates(request, identity)? {
        let answer = answer_of(&record, &candidate, request)?;
        note(&format!(
            "{}: {} under load {}, {}: the boot is repeated with an instruction trace",
            candidate.name,
            request.experiment,
            answer.load,
            in_thousands(candidate.value)
        ));
        let job = Job::Measure {
            experiments: answer.experiments.clone(),
            load: answer.load.clone(),
            seeds: identity.seeds,
        };
        let experiments = u32::try_from(answer.experiments.len()).unwrap_or(u32::MAX);
        let replay = Replay {
            emulator: &emulator,
            boot: Boot {
                kernel: &identity.systems[candidate.system].kernel,
                preempt: identity.asked[candidate.system].as_deref(),
                initramfs: &initramfs,
                job: &job,
                observers: &[],
            },
            timeout: BOOT_MAX + EXPERIMENT_MAX * experiments,
            answer,
            program: &program,
            interrupt,
        };
        let asked = Asked {
            system: candidate.name.clone(),
            experiment: request.experiment.clone(),
            seed: seed_of(&candidate),
            labels: candidate.series.labels.clone(),
            sample: request.sample,
            mark: candidate.mark,
            value: candidate.value,
        };
        let explained = replay::explain(&replay, asked)?;
        explanations.push(explained.write(&request.folder)?);
    }
    Ok(explanations)
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
fn candidates(request: &Request, identity: &Identity) -> Result<Vec<Candidate>, LabError> {
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
    request: &Request,
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

/// As long as a campaign gives a boot and an experiment, and half as long again: a trace costs time.
const BOOT_MAX: Duration = Duration::from_secs(450);
const EXPERIMENT_MAX: Duration = Duration::from_secs(900);
