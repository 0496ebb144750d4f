//! Operating systems side by side: what each of them was found to do, as one results file with the tables and figures of the
//! papers that held machine and ORB and varied the operating system.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rtorb_host::Host;
use rtorb_lab::experiment::IN_INSTRUCTIONS;
use rtorb_lab::experiments;
use rtorb_lab::systems::{self, SEEDS_MIN};
use rtorb_results::campaign::PREFIX;
use rtorb_results::campaign::{Identity, System};
use rtorb_results::{
    EMULATED, EmulatedSystem, Emulation, LabelValue, LostRound, ObtainedScheduling, Published,
    Results, SCHEMA, distinct,
};

use crate::board;
use crate::sha256::sha256;
use rtorb_results::systems::Gathered;
pub use rtorb_results::systems::OfSystem;

/// The results of `kernel/<experiment>`: the series of all systems with the labels `system`, `kernel` and `preempt`, how the tables
/// and plots show them, and what follows. Everything in it comes from what it is given, so that it is the same every time.
#[must_use]
pub fn of(experiment: &str, systems: &[OfSystem], identity: &Identity) -> Results {
    let runs_it = |one: &OfSystem| {
        let mut loads = identity.loads.iter();
        loads.any(|load| board::runs(&one.system.kernel, experiment, load))
    };
    let of_it: Vec<OfSystem> = systems.iter().filter(|one| runs_it(one)).cloned().collect();
    let systems = of_it.as_slice();
    let gathered = Gathered::of(experiment, systems);
    let shown = view(&gathered);
    let first = gathered.parts.first().map(|part| part.results);
    let title = first.map_or("", |results| results.title.as_str());
    let complete =
        gathered.is_of_all(systems) && gathered.parts.iter().all(|part| part.results.complete);
    Results {
        schema: SCHEMA.to_owned(),
        experiment: format!("{PREFIX}{experiment}"),
        title: format!("{title}: operating systems side by side"),
        host: host(&gathered),
        reproduces: first.map_or_else(String::new, |results| {
            format!("{}: on several operating systems", results.reproduces)
        }),
        run: name_of(identity),
        started: first.map_or_else(String::new, |results| results.started.clone()),
        duration_s: gathered
            .parts
            .iter()
            .map(|part| part.results.duration_s)
            .sum(),
        complete,
        parameters: parameters(&gathered, identity),
        emulation: Some(emulation(systems, identity)),
        scheduling: scheduling(&gathered),
        lost: lost(&gathered),
        published: published(&gathered),
        notes: notes(&gathered, systems, identity, &shown.notes),
        series: gathered.series,
        ..shown
    }
}

/// Ordinary results of one system with what they depend on: which campaign they are of, and on which machine they were found.
#[must_use]
pub fn identified(mut results: Results, system: &System, identity: &Identity) -> Results {
    results.run = name_of(identity);
    results.emulation = Some(Emulation {
        systems: vec![emulated(system, &results.host)],
        ..machine(identity)
    });
    results
}

/// A name that is the same for the same identity, and for no other: the beginning of the SHA-256 of all that it has but the places
/// of files.
#[must_use]
pub(super) fn name_of(identity: &Identity) -> String {
    let mut lasting = identity.clone();
    for system in &mut lasting.systems {
        system.kernel.image = PathBuf::new();
    }
    let text = serde_json::to_vec(&lasting).expect("an identity has nothing that JSON has not");
    format!("campaign-{}", &sha256(&text)[..DIGITS])
}

/// How the results of an experiment are shown when it was run on several systems.
fn view(gathered: &Gathered<'_>) -> Results {
    let known = experiments::by_name(gathered.experiment).ok();
    let own = known.and_then(|known| known.kernels(gathered));
    own.unwrap_or_else(|| systems::any(gathered))
}

fn emulation(systems: &[OfSystem], identity: &Identity) -> Emulation {
    let of_system = |found: &OfSystem| {
        let host = found.results.first().map(|results| &results.host);
        host.map(|host| emulated(&found.system, host))
    };
    Emulation {
        systems: systems.iter().filter_map(of_system).collect(),
        ..machine(identity)
    }
}

fn machine(identity: &Identity) -> Emulation {
    Emulation {
        emulator: identity.emulator.clone(),
        emulator_sha256: identity.emulator_sha256.clone(),
        initramfs_sha256: identity.initramfs_sha256.clone(),
        firmware_sha256: identity.firmware_sha256.clone(),
        machine: identity.machine.clone(),
        seeds: identity.seeds,
        shift: identity.shift,
        systems: Vec::new(),
    }
}

fn emulated(system: &System, host: &Host) -> EmulatedSystem {
    let package = system.kernel.package.as_ref();
    EmulatedSystem {
        kernel: system.kernel.name.clone(),
        preempt: system.preempt.clone(),
        release: host.kernel_release.clone(),
        version: host.kernel_version.clone(),
        preempt_rt: host.preempt_rt,
        image_sha256: system.kernel.sha256.clone(),
        package: match (package, &system.kernel.board) {
            (Some(package), _) => format!("{} {}", package.name, package.version),
            (None, Some(board)) => format!("rtorb's guest for the board {board}"),
            (None, None) => String::new(),
        },
        package_sha256: package.map_or_else(String::new, |package| package.sha256.clone()),
    }
}

/// What all systems were measured with, and what a reader must know of the unit.
fn unit(shift: u8) -> String {
    match shift {
        0 => "guest instructions; a nanosecond in the files is one".to_owned(),
        shift => format!("virtual time; an instruction takes {} ns", 1u64 << shift),
    }
}

fn parameters(gathered: &Gathered<'_>, identity: &Identity) -> BTreeMap<String, LabelValue> {
    let mut parameters = gathered.common_parameters();
    parameters.remove("load");
    parameters.remove("load_generator");
    let known: [(&str, LabelValue); 7] = [
        ("effort", EMULATED.into()),
        ("unit", unit(identity.shift).into()),
        ("seeds", u32::from(identity.seeds).into()),
        ("shift", u32::from(identity.shift).into()),
        ("emulator", identity.emulator.clone().into()),
        ("emulator_sha256", identity.emulator_sha256.clone().into()),
        ("initramfs_sha256", identity.initramfs_sha256.clone().into()),
    ];
    parameters.extend(known.map(|(name, value)| (name.to_owned(), value)));
    for part in &gathered.parts {
        let digest = part.system.kernel.sha256.clone();
        parameters.insert(format!("kernel {} sha256", part.name), digest.into());
    }
    parameters
}

/// The emulated machine; what the systems say of themselves stands side by side.
fn host(gathered: &Gathered<'_>) -> Host {
    let hosts: Vec<&Host> = gathered
        .parts
        .iter()
        .map(|part| &part.results.host)
        .collect();
    let Some(first) = hosts.first() else {
        return Host::describe();
    };
    let joined =
        |of: &dyn Fn(&Host) -> String| distinct(hosts.iter().map(|host| of(host))).join("; ");
    Host {
        kernel_release: joined(&|host| host.kernel_release.clone()),
        kernel_version: joined(&|host| host.kernel_version.clone()),
        preemption: joined(&|host| host.preemption.clone()),
        preempt_rt: hosts.iter().all(|host| host.preempt_rt),
        ..(*first).clone()
    }
}

fn scheduling(gathered: &Gathered<'_>) -> Vec<ObtainedScheduling> {
    distinct(gathered.parts.iter().flat_map(|part| {
        let all = part.results.scheduling.iter();
        all.map(|found| ObtainedScheduling {
            process: format!("{}: {}", part.name, found.process),
            ..found.clone()
        })
    }))
}

/// What each system lost.
fn lost(gathered: &Gathered<'_>) -> Vec<LostRound> {
    let of_part = gathered.parts.iter().flat_map(|part| {
        part.results.lost.iter().map(|lost| LostRound {
            what: format!("{}, {}", part.name, lost.what),
            ..lost.clone()
        })
    });
    of_part.collect()
}

/// What was published once, and what each system has beside it.
fn published(gathered: &Gathered<'_>) -> Vec<Published> {
    let mut all: Vec<Published> = Vec::new();
    for part in &gathered.parts {
        for row in &part.results.published {
            let ours = format!("{}: {}", part.name, row.ours);
            let same = |known: &&mut Published| {
                known.source == row.source
                    && known.what == row.what
                    && known.published == row.published
            };
            match all.iter_mut().find(same) {
                Some(known) => known.ours = format!("{}; {ours}", known.ours),
                None => all.push(Published {
                    ours,
                    ..row.clone()
                }),
            }
        }
    }
    all
}

fn notes(
    gathered: &Gathered<'_>,
    systems: &[OfSystem],
    identity: &Identity,
    of_view: &[String],
) -> Vec<String> {
    let mut notes = Vec::new();
    if identity.seeds < SEEDS_MIN {
        notes.push(too_few_seeds(identity.seeds));
    }
    if !gathered.parts.iter().any(|part| {
        part.results
            .notes
            .iter()
            .any(|note| note == IN_INSTRUCTIONS)
    }) {
        notes.push(IN_INSTRUCTIONS.to_owned());
    }
    for found in systems {
        let name = rtorb_results::systems::name(&found.system);
        if !gathered.parts.iter().any(|part| part.name == name) {
            notes.push(format!("{name} has no results of it."));
        }
    }
    notes.extend_from_slice(of_view);
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for part in &gathered.parts {
        for note in &part.results.notes {
            match said.iter_mut().find(|(known, _)| *known == note) {
                Some((_, by)) if by.contains(&part.name.as_str()) => {}
                Some((_, by)) => by.push(&part.name),
                None => said.push((note, vec![&part.name])),
            }
        }
    }
    notes.extend(said.into_iter().map(|(note, by)| {
        if by.len() == gathered.parts.len() {
            note.to_owned()
        } else {
            format!("{}: {note}", by.join(", "))
        }
    }));
    notes
}

fn too_few_seeds(seeds: u16) -> String {
    format!(
        "FEWER THAN FOUR SEEDS: with {seeds}, a worst case is what a run happened to meet, and no bound. Conclude nothing from it; \
         measure with --seeds {SEEDS_MIN} or more."
    )
}

const DIGITS: usize = 16;

#[cfg(test)]
mod tests;
