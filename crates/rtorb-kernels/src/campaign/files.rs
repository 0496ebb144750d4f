//! The files of a campaign, and which campaign a folder already holds.

use std::path::{Path, PathBuf};

use rtorb_lab::LabError;
use rtorb_lab::experiments;
use rtorb_results::campaign::{Identity, Record, System};
use rtorb_results::profile;
use rtorb_results::runs;
use rtorb_results::{Results, write_json};

use crate::board;
use crate::comparison;
use crate::comparison::OfSystem;

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
    if !folder.join(Record::FILE).exists() {
        let other = ["results", KERNELS].map(|name| folder.join(name));
        return if other.iter().any(|path| path.exists()) {
            Err(LabError::folder(folder, HOLDS_OTHERS))
        } else {
            Ok(None)
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
    let boards = |identity: &Identity| board::in_words(identity.boards.as_ref());
    let pairs: [(&str, String, String); 11] = [
        ("boards", boards(a), boards(b)),
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
        ("full", a.full.to_string(), b.full.to_string()),
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
        profile::keep(&below, &one.results, &experiments::services())?;
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
    let path = folder.join(Record::FILE);
    write_json(&path, record).map_err(cannot(&path))?;
    if compared.is_empty() {
        return Ok((compared, None));
    }
    let page =
        rtorb_report::write(folder, &rtorb_lab::experiments::names()).map_err(cannot(folder))?;
    Ok((compared, Some(page)))
}

const KERNELS: &str = "kernels";
const DIGITS: usize = 12;
const HOLDS_OTHERS: &str = "holds results that are of no campaign over kernels, which these would be mixed with: choose another \
                            folder with `--out DIR`";
#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Finished;
    use crate::catalogue::Kernel;
    use rtorb_results::LostRound;
    use rtorb_results::campaign::{Host, SCHEMA, SelfCheck, Wall};
    use rtorb_results::{labels, synthetic};

    fn identity() -> Identity {
        let kernel = Kernel {
            name: "6.12".to_owned(),
            release: String::new(),
            image: PathBuf::from("/somewhere/vmlinuz"),
            sha256: "0123456789abcdef".to_owned(),
            package: None,
            board: None,
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
            id: comparison::name_of(identity),
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
    fn a_campaign_that_lost_a_round_is_not_good() {
        for is_lost in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let identity = identity();
            let mut record = record(&identity);
            record.self_check.repeats = Some(true);
            let mut systems = systems(&identity);
            let lost = is_lost.then(|| LostRound {
                round: 1,
                what: "load none: tool rtorb".to_owned(),
                why: "it was silent".to_owned(),
            });
            systems[0].results[0].lost.extend(lost);
            let (compared, page) = write(folder.path(), &record, &systems).unwrap();
            let whats: Vec<&str> = compared[0].lost.iter().map(|one| &*one.what).collect();
            let expected = ["6.12 voluntary, load none: tool rtorb"];
            assert_eq!(whats, expected[..usize::from(is_lost)]);
            let finished = Finished {
                record,
                compared,
                page,
            };
            assert_eq!(finished.is_good(), !is_lost);
        }
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
        let mut names: Vec<String> = changed.iter().map(comparison::name_of).collect();
        names.push(comparison::name_of(&identity));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 6);
        let mut moved = identity.clone();
        moved.systems[0].kernel.image = PathBuf::from("/elsewhere");
        assert_eq!(comparison::name_of(&moved), comparison::name_of(&identity));
    }
}
