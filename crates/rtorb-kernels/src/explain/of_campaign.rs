//! Which samples of a campaign are explained, and the boots that they are found in again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::experiments::own_program;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::explanation::{Explanation, Sample, in_thousands};
use rtorb_results::{LabelValue, Results, Series, WorstSample};

use super::marker::Marker;
use super::replay::{self, Asked, OwnSamples, Replay};
use crate::baseline::{BoundKey, labels_in_words, system_name};
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
pub(super) struct Candidate {
    system: usize,
    /// As the system's folder is called.
    pub(super) name: String,
    experiment: String,
    pub(super) series: Series,
    sample: Sample,
    mark: u64,
    pub(super) value: u64,
    /// How many samples the experiment took under the load of this one.
    taken_under_load: u64,
}

impl Candidate {
    /// The bound of its series.
    pub(super) fn bound(&self) -> BoundKey {
        let series = labels_in_words(&self.series.labels);
        [self.name.clone(), self.experiment.clone(), series]
    }
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
    let files = CampaignFiles {
        folder: &request.folder,
        program: request.program.as_deref(),
        own_programs: &request.own_programs,
    };
    let here = Here::find(files, &record, executable, interrupt)?;
    let candidates = slowest_of_systems(request, &record.identity)?;
    here.explain_all(&candidates, note)?.into_iter().collect()
}

/// Where a campaign and its programs are.
#[derive(Clone, Copy, Debug)]
pub(super) struct CampaignFiles<'a> {
    pub(super) folder: &'a Path,
    pub(super) program: Option<&'a Path>,
    pub(super) own_programs: &'a [OwnFile],
}

/// What every boot that is repeated needs.
struct Equipment {
    emulator: Emulator,
    program: PathBuf,
    initramfs: Initramfs,
}

impl Equipment {
    /// # Errors
    /// That something is missing, or is not what the campaign had; or the interrupt.
    fn find(
        files: &CampaignFiles<'_>,
        identity: &Identity,
        executable: &Path,
        interrupt: &Interrupt,
    ) -> Result<Self, LabError> {
        let emulator = Emulator::find(executable, interrupt)?;
        let program = program::find(files.program, executable, interrupt)?;
        let initramfs = Initramfs::with_program(&program)?;
        let initramfs = initramfs.with_own_programs(files.own_programs)?;
        same(identity, &emulator, &initramfs, files.folder)?;
        Ok(Self {
            emulator,
            program,
            initramfs,
        })
    }
}

/// # Errors
/// That the samples of such a campaign cannot be explained.
fn check_machine(identity: &Identity) -> Result<(), LabError> {
    let why = match identity {
        Identity { full: true, .. } => TOO_LONG,
        Identity { shift: 1.., .. } => NO_INSTRUCTIONS,
        _ => return Ok(()),
    };
    let what = why.to_owned();
    Err(LabError::Incomplete { what })
}

/// What all boots that are repeated have in common.
pub(super) struct Here<'a> {
    files: CampaignFiles<'a>,
    record: &'a Record,
    equipment: Equipment,
    interrupt: &'a Interrupt,
}

/// A boot that can be repeated.
struct Prepared<'a> {
    candidate: &'a Candidate,
    answer: &'a Answer,
    own: Option<OwnSamples>,
}

impl<'a> Here<'a> {
    /// # Errors
    /// That the boots of the campaign cannot be repeated here; or the interrupt.
    pub(super) fn find(
        files: CampaignFiles<'a>,
        record: &'a Record,
        executable: &Path,
        interrupt: &'a Interrupt,
    ) -> Result<Self, LabError> {
        check_machine(&record.identity)?;
        let equipment = Equipment::find(&files, &record.identity, executable, interrupt)?;
        Ok(Self {
            files,
            record,
            equipment,
            interrupt,
        })
    }

    /// Explains each sample, or says why it cannot be explained.
    ///
    /// # Errors
    /// The interrupt.
    pub(super) fn explain_all(
        &self,
        candidates: &[Candidate],
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<Result<Explanation, LabError>>, LabError> {
        let mut explained = Vec::new();
        for some in candidates.chunks(side_by_side()) {
            let prepared: Vec<_> = some.iter().map(|one| self.prepare(one)).collect();
            for one in prepared.iter().flatten() {
                let Candidate {
                    name, experiment, ..
                } = one.candidate;
                note(&format!(
                    "{name}: {experiment} under load {}, {}: the boot is repeated with an instruction trace",
                    one.answer.load,
                    in_thousands(one.candidate.value)
                ));
            }
            let ended: Vec<_> = std::thread::scope(|scope| {
                let begun: Vec<_> = prepared
                    .into_iter()
                    .map(|one| one.map(|one| scope.spawn(move || self.explain(&one))))
                    .collect();
                let end = |one: Result<std::thread::ScopedJoinHandle<'_, _>, LabError>| {
                    one.and_then(|thread| thread.join().unwrap_or_else(|_| Err(panicked())))
                };
                begun.into_iter().map(end).collect()
            });
            if self.interrupt.requested() {
                return Err(LabError::Interrupted);
            }
            explained.extend(ended);
        }
        Ok(explained)
    }

    fn prepare<'c>(&'c self, candidate: &'c Candidate) -> Result<Prepared<'c>, LabError> {
        let own_name = candidate.experiment.strip_prefix(own_program::PREFIX);
        let own = own_name.map(|name| self.own_samples(name, candidate));
        Ok(Prepared {
            candidate,
            answer: self.answer_of(candidate)?,
            own: own.transpose()?,
        })
    }

    fn own_samples(&self, name: &str, candidate: &Candidate) -> Result<OwnSamples, LabError> {
        let mut given = self.files.own_programs.iter();
        let own = given.find(|own| own.name == name);
        let own = own.ok_or_else(|| LabError::Incomplete {
            what: format!("where is the program {name}? Say `--own-program {name}=FILE`"),
        })?;
        Ok(OwnSamples {
            marker: Marker::of(own)?,
            printed: candidate.taken_under_load,
        })
    }

    /// What the guest said that took the sample.
    fn answer_of(&self, candidate: &Candidate) -> Result<&Answer, LabError> {
        let load = load_of(&candidate.series);
        let mut answers = self.record.answers.iter();
        let found = answers.find(|answer| {
            answer.system == candidate.system
                && answer.load == load
                && answer.experiments.contains(&candidate.experiment)
        });
        found.ok_or_else(|| {
            let what = format!(
                "does not say what {} answered under load {load}",
                candidate.name
            );
            LabError::folder(self.files.folder, what)
        })
    }

    /// Repeats the boot, and writes what the sample was spent in.
    fn explain(&self, prepared: &Prepared<'_>) -> Result<Explanation, LabError> {
        let (identity, answer) = (&self.record.identity, prepared.answer);
        let candidate = prepared.candidate;
        let job = Job::Measure {
            experiments: answer.experiments.clone(),
            load: answer.load.clone(),
            seeds: identity.seeds,
            full: identity.full,
        };
        let experiments = u32::try_from(answer.experiments.len()).unwrap_or(u32::MAX);
        let replay = Replay {
            emulator: &self.equipment.emulator,
            boot: Boot {
                machine: Machine::of(identity),
                kernel: &identity.systems[candidate.system].kernel,
                preempt: identity.asked[candidate.system].as_deref(),
                initramfs: &self.equipment.initramfs,
                job: &job,
                observers: &[],
            },
            timeout: BOOT_MAX + EXPERIMENT_MAX * experiments,
            answer,
            program: &self.equipment.program,
            own: prepared.own.as_ref(),
            interrupt: self.interrupt,
        };
        let asked = Asked {
            system: candidate.name.clone(),
            experiment: candidate.experiment.clone(),
            seed: seed_of(candidate),
            labels: candidate.series.labels.clone(),
            sample: candidate.sample,
            mark: candidate.mark,
            value: candidate.value,
        };
        replay::explain(&replay, asked)?.write(self.files.folder)
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

/// For each system, the series with the slowest sample of those that are asked for.
fn slowest_of_systems(
    request: &ExplanationRequest,
    identity: &Identity,
) -> Result<Vec<Candidate>, LabError> {
    let experiment = (request.experiment.as_str(), request.sample);
    let mut slowest: Vec<Candidate> = Vec::new();
    for one in samples_of(&request.folder, identity, experiment) {
        let of_request = request.system.as_ref();
        if of_request.is_some_and(|wanted| *wanted != one.name)
            || !has(&one.series, &request.labels)
        {
            continue;
        }
        match slowest.last_mut() {
            Some(last) if last.system == one.system => {
                if one.value >= last.value {
                    *last = one;
                }
            }
            _ => slowest.push(one),
        }
    }
    if slowest.is_empty() {
        let names = identity.systems.iter().map(system_name);
        return Err(LabError::Incomplete {
            what: format!(
                "{} has no sample of {} that can be found again with these labels; its systems are {}",
                request.folder.display(),
                request.experiment,
                names.collect::<Vec<_>>().join(", ")
            ),
        });
    }
    Ok(slowest)
}

/// The samples of an experiment that can be found again, one of each series, a system after the other.
pub(super) fn samples_of(
    folder: &Path,
    identity: &Identity,
    (experiment, sample): (&str, Sample),
) -> Vec<Candidate> {
    let mut samples = Vec::new();
    for (system, described) in identity.systems.iter().enumerate() {
        let results = folder_of(folder, described).join("results");
        let Ok(results) = Results::read(&results.join(format!("{experiment}.json"))) else {
            continue;
        };
        for series in &results.series {
            let found = match sample {
                Sample::Worst => series.worst_sample,
                Sample::Median => series.typical_sample,
            };
            let Some(WorstSample { mark, value_ns }) = found else {
                continue;
            };
            let beside = results.series.iter();
            let beside = beside.filter(|other| load_of(other) == load_of(series));
            samples.push(Candidate {
                system,
                name: system_name(described),
                experiment: experiment.to_owned(),
                series: series.clone(),
                sample,
                mark,
                value: value_ns,
                taken_under_load: beside.map(|other| other.count).sum(),
            });
        }
    }
    samples
}

fn load_of(series: &Series) -> String {
    let load = series.labels.get("load");
    load.map_or_else(|| "none".to_owned(), LabelValue::to_string)
}

fn has(series: &Series, labels: &[(String, String)]) -> bool {
    labels.iter().all(|(name, value)| {
        let found = series.labels.get(name);
        found.is_some_and(|found| found.to_string() == *value)
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
