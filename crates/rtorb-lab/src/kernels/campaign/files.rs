//! The files of a campaign, and which campaign a folder already holds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rtorb_results::profile;
use rtorb_results::runs;
use rtorb_results::{Results, write_atomically};
use serde::{Deserialize, Serialize};

use super::{Identity, OfSystem, System};
use crate::error::LabError;
use crate::kernels::comparison;
use crate::report;

/// campaign.json: what the campaign depends on, whether it repeats, and what nothing depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The form of the file: `rtorb-campaign/1`.
    pub schema: String,
    /// The identity's name, which every results file of the campaign has as `run`.
    pub id: String,
    /// What it depends on.
    pub identity: Identity,
    /// Whether everything was measured that was planned.
    pub complete: bool,
    /// What is not there.
    pub missing: Vec<Absent>,
    /// One case, run twice.
    pub self_check: SelfCheck,
    /// What the guests said: a repetition of a boot must say the same.
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// When, how long, where: nothing in the results depends on it.
    pub wall: Wall,
}

/// What the guest of one boot said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Which system, by its index in the identity.
    pub system: usize,
    /// Under which load.
    pub load: String,
    /// The experiments of this boot.
    pub experiments: Vec<String>,
    /// The address of [`rtorb_os::replay::sample_taken`] in it.
    pub sample_taken: u64,
    /// The SHA-256 of all that it said.
    pub sha256: String,
}

/// Something that was planned and is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Of which kernel.
    pub kernel: String,
    /// With which preemption model; empty where it never booted.
    pub preempt: String,
    /// Under which load.
    pub load: String,
    /// Which experiment.
    pub experiment: String,
    /// Why.
    pub why: String,
}

/// Whether the case that was run twice said the same octets both times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Which case.
    pub case: String,
    /// Whether; `None` where it did not come to its end twice.
    pub repeats: Option<bool>,
    /// The SHA-256 of what each of the two guests said.
    pub sha256: Vec<String>,
}

/// When and where a campaign was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wall {
    /// UTC, as RFC 3339 has it.
    pub started: String,
    /// In seconds.
    pub duration_s: f64,
    /// How many guests ran side by side.
    pub guests: usize,
    /// Where.
    pub host: Host,
}

/// The host of the emulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// `uname -n`.
    pub name: Option<String>,
    /// `uname -r`.
    pub kernel_release: String,
    /// The CPU's own name.
    pub cpu_model: Option<String>,
    /// CPUs online.
    pub cpus_online: usize,
}

impl Host {
    /// What matters here of a host.
    #[must_use]
    pub fn of(host: &rtorb_host::Host) -> Self {
        Self {
            name: host.name.clone(),
            kernel_release: host.kernel_release.clone(),
            cpu_model: host.cpu_model.clone(),
            cpus_online: host.cpus_online,
        }
    }
}

impl Record {
    /// The record of the campaign in a folder.
    ///
    /// # Errors
    /// That there is none, or that it cannot be read.
    pub fn read(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join(RECORD);
        let text = fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LabError::folder(folder, HOLDS_NONE),
            _ => LabError::file(&path)(error),
        })?;
        let unreadable = |what: String| LabError::file(&path)(io::Error::other(what));
        let record: Self =
            serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        match record.schema == SCHEMA {
            true => Ok(record),
            false => Err(unreadable(format!(
                "it has schema {:?}, this program reads {SCHEMA:?}",
                record.schema
            ))),
        }
    }
}

/// Where the results of one system are: `DIR/kernels/6.12-voluntary`.
#[must_use]
pub fn folder_of(folder: &Path, system: &System) -> PathBuf {
    let name = format!("{}-{}", system.kernel.name, system.preempt);
    folder.join(KERNELS).join(name)
}

/// The record of the same campaign, if the folder holds it.
///
/// # Errors
/// That the folder holds anything else, or cannot be written to: better before measuring than after.
pub(super) fn earlier(folder: &Path, identity: &Identity) -> Result<Option<Record>, LabError> {
    runs::prepare(folder)?;
    if !folder.join(RECORD).exists() {
        let other = ["results", KERNELS].map(|name| folder.join(name));
        return match other.iter().any(|path| path.exists()) {
            true => Err(LabError::folder(folder, HOLDS_OTHERS)),
            false => Ok(None),
        };
    }
    let earlier = Record::read(folder)?;
    let differences = differences(&earlier.identity, identity);
    if differences.is_empty() {
        return Ok(Some(earlier));
    }
    let what = format!(
        "holds another campaign, which this one would be mixed with; what differs: {}. That is a different experiment: choose \
         another folder with `--out DIR`, or remove this one",
        differences.join("; ")
    );
    Err(LabError::folder(folder, what))
}

/// What two campaigns differ in, in words. What a kernel says that it runs follows from the rest, and is not known before it
/// has booted.
fn differences(a: &Identity, b: &Identity) -> Vec<String> {
    let systems = |identity: &Identity| {
        let named = identity.systems.iter().zip(&identity.asked);
        let words = named.map(|(system, asked)| {
            let model = asked.as_deref().unwrap_or("as it is");
            let digest = system.kernel.sha256.get(..DIGITS).unwrap_or_default();
            format!("{} {digest} ({model})", system.kernel.name)
        });
        words.collect::<Vec<_>>().join(", ")
    };
    let boots = |identity: &Identity| {
        let words = identity.boots.iter();
        let words = words.map(|(load, names)| format!("{load}: {}", names.join(" ")));
        words.collect::<Vec<_>>().join(", ")
    };
    let digest = |text: &String| text.get(..DIGITS).unwrap_or_default().to_owned();
    let pairs: [(&str, String, String); 9] = [
        ("emulator", a.emulator.clone(), b.emulator.clone()),
        (
            "emulator's program",
            digest(&a.emulator_sha256),
            digest(&b.emulator_sha256),
        ),
        (
            "firmware",
            digest(&a.firmware_sha256),
            digest(&b.firmware_sha256),
        ),
        ("machine", a.machine.clone(), b.machine.clone()),
        (
            "guest's program",
            digest(&a.initramfs_sha256),
            digest(&b.initramfs_sha256),
        ),
        ("kernels", systems(a), systems(b)),
        ("boots", boots(a), boots(b)),
        ("seeds", a.seeds.to_string(), b.seeds.to_string()),
        ("shift", a.shift.to_string(), b.shift.to_string()),
    ];
    let differing = pairs.into_iter().filter(|(_, a, b)| a != b);
    differing
        .map(|(what, a, b)| format!("{what}: there {a}, now {b}"))
        .collect()
}

/// Writes everything, and answers the comparisons and the report's path.
pub(super) fn write(
    folder: &Path,
    record: &Record,
    systems: &[OfSystem],
) -> Result<(Vec<Results>, Option<PathBuf>), LabError> {
    let cannot = |path: &Path| LabError::file(path.to_owned());
    for one in systems {
        let below = folder_of(folder, &one.system);
        for results in &one.results {
            results.write(&below).map_err(cannot(&below))?;
        }
        profile::keep(&below, &one.results)?;
    }
    let mut compared = Vec::new();
    for experiment in &record.identity.experiments {
        let is_there = |one: &OfSystem| one.results.iter().any(|r| r.experiment == *experiment);
        if systems.iter().any(is_there) {
            let mut results = comparison::of(experiment, systems, &record.identity);
            results
                .notes
                .extend(record.self_check.warning().map(str::to_owned));
            results.write(folder).map_err(cannot(folder))?;
            compared.push(results);
        }
    }
    let path = folder.join(RECORD);
    let mut text = serde_json::to_string_pretty(record)
        .map_err(|error| LabError::file(&path)(error.into()))?;
    text.push('\n');
    write_atomically(&path, text.as_bytes()).map_err(cannot(&path))?;
    if compared.is_empty() {
        return Ok((compared, None));
    }
    let page = report::write(folder).map_err(cannot(folder))?;
    Ok((compared, Some(page)))
}

impl SelfCheck {
    /// What a reader of the results must know of it.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        (self.repeats == Some(false)).then_some(DOES_NOT_REPEAT)
    }
}

pub(super) const SCHEMA: &str = "rtorb-campaign/1";
const RECORD: &str = "campaign.json";
const KERNELS: &str = "kernels";
const DIGITS: usize = 12;
const HOLDS_NONE: &str =
    "holds no campaign: give a folder that `rtorb lab kernel run --out DIR` wrote";
const HOLDS_OTHERS: &str = "holds results that are of no campaign over kernels, which these would be mixed with: choose another \
                            folder with `--out DIR`";
const DOES_NOT_REPEAT: &str = "NOT REPEATABLE: one case was run twice and did not say the same both times, so that no number here can be \
                               relied on. campaign.json names the case, and the folder `differs` has both answers.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::catalogue::Kernel;
    use rtorb_results::{labels, synthetic};

    fn identity() -> Identity {
        let kernel = Kernel {
            name: "6.12".to_owned(),
            release: String::new(),
            image: PathBuf::from("/somewhere/vmlinuz"),
            sha256: "0123456789abcdef".to_owned(),
            package: None,
        };
        Identity {
            systems: vec![System {
                kernel,
                preempt: "voluntary".to_owned(),
            }],
            asked: vec![None],
            experiments: vec!["os/wakeup".to_owned()],
            loads: vec!["none".to_owned()],
            boots: vec![("none".to_owned(), vec!["os/wakeup".to_owned()])],
            seeds: 4,
            ..Identity::default()
        }
    }

    fn record(identity: &Identity) -> Record {
        Record {
            schema: SCHEMA.to_owned(),
            id: identity.name(),
            identity: identity.clone(),
            complete: true,
            missing: Vec::new(),
            self_check: SelfCheck::default(),
            answers: Vec::new(),
            wall: Wall {
                started: String::new(),
                duration_s: 1.0,
                guests: 2,
                host: Host {
                    name: None,
                    kernel_release: String::new(),
                    cpu_model: None,
                    cpus_online: 2,
                },
            },
        }
    }

    fn systems(identity: &Identity) -> Vec<OfSystem> {
        let series = synthetic::series(labels([("load", "none".into())]), [1, 2, 3]);
        vec![OfSystem {
            system: identity.systems[0].clone(),
            results: vec![synthetic::results("os/wakeup", vec![series])],
        }]
    }

    #[test]
    fn a_campaign_is_written_and_known_again() {
        let folder = tempfile::tempdir().unwrap();
        let identity = identity();
        assert_eq!(earlier(folder.path(), &identity).unwrap(), None);
        let record = record(&identity);
        write(folder.path(), &record, &systems(&identity)).unwrap();
        for file in [
            "campaign.json",
            "index.html",
            "results/kernel/os/wakeup.json",
            "kernels/6.12-voluntary/results/os/wakeup.json",
        ] {
            assert!(folder.path().join(file).is_file(), "{file}");
        }
        // Before it has booted, a kernel has not said what it runs; and its image may lie elsewhere.
        let mut again = identity.clone();
        again.systems[0].preempt = String::new();
        again.systems[0].kernel.image = PathBuf::from("/elsewhere");
        assert_eq!(earlier(folder.path(), &again).unwrap(), Some(record));
    }

    #[test]
    fn another_campaign_is_not_mixed_with_the_one_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let identity = identity();
        write(folder.path(), &record(&identity), &systems(&identity)).unwrap();
        let mut other = identity.clone();
        other.seeds = 8;
        other.systems[0].kernel.sha256 = "another".to_owned();
        let error = earlier(folder.path(), &other).unwrap_err().to_string();
        for word in ["seeds: there 4, now 8", "kernels", "--out DIR"] {
            assert!(error.contains(word), "{word} in {error}");
        }
        assert!(
            !error.contains("boots"),
            "what is equal is not named: {error}"
        );
    }

    #[test]
    fn results_of_a_host_are_not_mixed_with_a_campaign() {
        let folder = tempfile::tempdir().unwrap();
        let results = synthetic::results("os/mutex", Vec::new());
        results.write(folder.path()).unwrap();
        let error = earlier(folder.path(), &identity()).unwrap_err().to_string();
        assert!(error.contains("no campaign"), "{error}");
    }

    #[test]
    fn whatever_a_campaign_depends_on_changes_its_name() {
        let identity = identity();
        let mut changed: Vec<Identity> = (0..5).map(|_| identity.clone()).collect();
        changed[0].firmware_sha256 = "f".to_owned();
        changed[1].machine = "m".to_owned();
        changed[2].asked = vec![Some("full".to_owned())];
        changed[3].boots.clear();
        changed[4].systems[0].kernel.sha256 = "k".to_owned();
        let mut names: Vec<String> = changed.iter().map(Identity::name).collect();
        names.push(identity.name());
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 6);
        let mut moved = identity.clone();
        moved.systems[0].kernel.image = PathBuf::from("/elsewhere");
        assert_eq!(moved.name(), identity.name());
    }
}
