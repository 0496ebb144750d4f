//! The platform profile: what each service of the operating system and of the ORB costs here, in the form that a
//! schedulability model reads (docs/reference/profile.md).
//!
//! P3 section 3 stores with each component its performance characteristics, for every configuration that was measured,
//! with mean, deviation, and the smallest and largest value as bounds on a given platform.

use std::path::{Path, PathBuf};

use rtorb_host::Host;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::json::{read_json, write_json};
use crate::timestamp;
use crate::{Emulation, Labels, Results, TimeUnit};
pub use blocking::{Blocking, UsualBlocking};
pub use service_row::{ServiceRow, Services};

mod blocking;
mod service_row;

/// What the services of one platform cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The form of the file: [`SCHEMA`].
    pub schema: String,
    /// When it was made, UTC, as RFC 3339 has it.
    pub created: String,
    /// Where everything in it was measured.
    pub host: Host,
    /// Whether everything in it was measured in real time; otherwise its bounds bound nothing.
    pub real_time: bool,
    /// What is missing or weak, and why.
    pub incomplete: Vec<Gap>,
    /// The machine that was emulated, where time is no time of day but a count of its instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_time: Option<VirtualTime>,
    /// From one tick of the kernel to the next, in nanoseconds; `None` where neither its configuration nor its interrupts tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_period_ns: Option<u64>,
    /// How long the most urgent thread waited for the CPU at worst; `None` where that was not measured under load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<Blocking>,
    /// What was measured: each service in each configuration.
    pub services: Vec<Service>,
}

/// What the times of a profile are when a machine was emulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualTime {
    /// What a nanosecond in the profile is.
    pub nanosecond_is: String,
    /// What is not in it: a model that needs times of a machine must add it.
    pub leaves_out: Vec<String>,
    /// What everything in it depends on.
    pub emulation: Emulation,
}

impl VirtualTime {
    /// Of results of an emulated machine that say which; `None` of all others.
    fn of(results: &Results) -> Option<Self> {
        results.emulation.as_ref().map(|emulation| Self {
            nanosecond_is: match emulation.shift {
                0 => NANOSECOND_IS.to_owned(),
                shift => format!(
                    "one of virtual time: a guest instruction takes {} ns",
                    1u64 << shift
                ),
            },
            leaves_out: LEFT_OUT.map(str::to_owned).to_vec(),
            emulation: emulation.clone(),
        })
    }
}

/// Something that a profile should have and has not, or has not well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The experiment that would have it.
    pub experiment: String,
    /// What is missing, and why.
    pub why: String,
}

/// One service in one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// The component of the platform: `clock`, `kernel`, `hypervisor`, `scheduler`, `timer`, `mutex`, `transport`, `orb`,
    /// `event_channel`.
    pub component: String,
    /// What it does: `tick`, `context_switch`, ...
    pub service: String,
    /// Under which circumstances.
    pub configuration: Labels,
    /// The unit of all its values: `ns`.
    pub unit: String,
    /// The smallest sample.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The largest sample: the bound that was observed.
    pub max: f64,
    /// The sample standard deviation (divisor n - 1).
    pub stddev: f64,
    /// How many samples there were.
    pub count: u64,
    /// 99 of 100 samples are at most this.
    pub p99: f64,
    /// Where it was measured.
    pub source: Source,
}

/// The measurement that a service was taken from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The experiment.
    pub experiment: String,
    /// The run, as its results name it.
    pub run: String,
    /// The derived number, where it was no series.
    pub derived: Option<String>,
    /// All labels of the series or derived number.
    pub labels: Labels,
}

impl Profile {
    /// The profile of these results; of one experiment, the last one counts. Those of another host, or whose
    /// servers ran on another one, are left out, and the profile says so.
    ///
    /// # Errors
    /// That nothing in the results belongs in a profile.
    pub fn from_results(all: &[Results], known: &[Services]) -> Result<Self, Error> {
        let last = |name: &str| {
            let of_it = all.iter().filter(|results| results.experiment == name);
            of_it.max_by(|left, right| left.started.cmp(&right.started))
        };
        let found: Vec<&Results> = known
            .iter()
            .filter_map(|of_it| last(of_it.experiment))
            .collect();
        let newest = found
            .iter()
            .max_by(|left, right| left.started.cmp(&right.started));
        let Some(newest) = newest else {
            let what = format!(
                "there are no results of any experiment that a platform profile is made of ({}): run `rtorb lab run profile`",
                names(known).join(", ")
            );
            return Err(Error::Incomplete { what });
        };
        let host = &newest.host;
        let (here, elsewhere): (Vec<&Results>, Vec<&Results>) = found
            .iter()
            .partition(|results| why_left_out(results, host).is_none());
        let services_of = |services: &Services| {
            let mut here = here.iter();
            let results = here.find(|results| results.experiment == services.experiment);
            let rows =
                results.map(|results| services.rows.iter().flat_map(|row| row.services(results)));
            rows.into_iter().flatten().collect::<Vec<_>>()
        };
        let services: Vec<Service> = known.iter().flat_map(services_of).collect();
        let is_left_out = |gap: &Gap| {
            let mut names = elsewhere.iter().map(|results| &results.experiment);
            names.any(|name| *name == gap.experiment)
        };
        let mut incomplete = gaps(&here, &services, known);
        incomplete.retain(|gap| !is_left_out(gap));
        incomplete.extend(elsewhere.iter().filter_map(|results| {
            Some(Gap {
                experiment: results.experiment.clone(),
                why: why_left_out(results, host)?,
            })
        }));
        Ok(Self {
            schema: SCHEMA.to_owned(),
            created: match newest.time_unit() {
                TimeUnit::Seconds => timestamp::now(),
                // The same for the same campaign, octet by octet.
                TimeUnit::GuestInstructions | TimeUnit::VirtualSeconds => newest.started.clone(),
            },
            host: host.clone(),
            real_time: here
                .iter()
                .filter(|results| !results.series.is_empty())
                .all(|results| results.is_real_time()),
            incomplete,
            virtual_time: VirtualTime::of(newest),
            tick_period_ns: here.iter().find_map(|results| tick_period_ns(results)),
            blocking: Blocking::of(&here),
            services,
        })
    }

    /// Writes [`FILE`] in a folder, in whole or not at all, and answers its path.
    ///
    /// # Errors
    /// What the file system said.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, Error> {
        let path = folder.join(FILE);
        write_json(&path, self).map_err(Error::file(&path))?;
        Ok(path)
    }

    /// Reads a file that [`Self::write`] made.
    ///
    /// # Errors
    /// What the file system said, or that the file is no profile of this schema.
    pub fn read(path: &Path) -> Result<Self, Error> {
        read_json(path, SCHEMA).map_err(|error| {
            let made = "`rtorb lab profile DIR` makes a profile";
            Error::file(path)(std::io::Error::new(
                error.kind(),
                format!("{error}. {made}"),
            ))
        })
    }
}

/// Writes the profile of one system of a campaign beside its results, and answers its path; nothing is written where none of them
/// belongs in a profile.
///
/// # Errors
/// What the file system said.
pub fn keep(
    folder: &Path,
    results: &[Results],
    known: &[Services],
) -> Result<Option<PathBuf>, Error> {
    match Profile::from_results(results, known) {
        Ok(profile) => profile.write(folder).map(Some),
        Err(Error::Incomplete { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn names(known: &[Services]) -> Vec<&'static str> {
    known.iter().map(|services| services.experiment).collect()
}

/// From one tick of the kernel to the next, as an experiment has found out.
fn tick_period_ns(results: &Results) -> Option<u64> {
    let mut derived = results.derived.iter();
    let period = derived.find(|derived| derived.name == TICK_PERIOD)?;
    (period.value >= 1.0).then_some(period.value as u64)
}

/// What is missing, and what is there but weak.
fn gaps(found: &[&Results], services: &[Service], known: &[Services]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut all = found.iter();
    let emulated = all.any(|results| results.time_unit().is_virtual());
    for Services {
        experiment: name,
        rows,
    } in known
    {
        let mut add = |why: String| {
            gaps.push(Gap {
                experiment: (*name).to_owned(),
                why,
            });
        };
        let Some(results) = found.iter().find(|results| results.experiment == *name) else {
            add(if emulated {
                "it was not measured in the campaign".to_owned()
            } else {
                format!("it was not measured: run `rtorb lab run {name}` into the same folder")
            });
            continue;
        };
        if !results.complete {
            add("its run was interrupted: configurations may be missing".to_owned());
        }
        if results.is_glance() {
            add("it was a glance: there are far too few samples for bounds".to_owned());
        }
        let seeds = results.emulation.as_ref().map(|emulation| emulation.seeds);
        if let Some(seeds @ ..SEEDS_MIN) = seeds {
            add(format!(
                "it has {seeds} seeds: a worst case over fewer than {SEEDS_MIN} is no bound"
            ));
        }
        if results.has_wrong_answers() {
            add("series with wrong answers were left out".to_owned());
        }
        for row in *rows {
            let is_there = services.iter().any(|service| row.is_of(service));
            if !is_there && !row.may_lack {
                let notes = results.notes.join(" ");
                add(format!(
                    "it has nothing for {} {}. {notes}",
                    row.component, row.service
                ));
            }
        }
    }
    gaps
}

/// Why results say nothing of this host; `None` when they do.
fn why_left_out(results: &Results, host: &Host) -> Option<String> {
    if results.server_host.is_some() {
        return Some(
            "left out: its servers ran on another host (`--agent`), so its calls are none of this platform. Measure it without an agent"
                .to_owned(),
        );
    }
    (!is_same_platform(&results.host, host)).then(|| {
        format!(
            "left out: it was measured on another host or kernel ({}, {})",
            results.host.kernel_release,
            results.host.cpu_model.as_deref().unwrap_or("unknown CPU")
        )
    })
}

/// The same machine under the same kernel.
fn is_same_platform(one: &Host, other: &Host) -> bool {
    let of = |host: &Host| {
        (
            host.kernel_release.clone(),
            host.kernel_version.clone(),
            host.machine.clone(),
            host.cpu_model.clone(),
            host.cpus_online,
        )
    };
    of(one) == of(other)
}

/// The derived number that has the period of the kernel's tick, in nanoseconds.
pub const TICK_PERIOD: &str = "tick_period";
const NANOSECOND_IS: &str = "one instruction of the emulated machine";
const LEFT_OUT: [&str; 5] = [
    "caches and the translation of addresses",
    "buses, devices and their transfers",
    "interrupts of firmware",
    "other CPUs: there is one",
    "how many instructions the target does in a nanosecond",
];
const SEEDS_MIN: u16 = 4;
/// The form of the file.
pub const SCHEMA: &str = "rtorb-profile/1";
/// The file's name in the folder of its run.
pub const FILE: &str = "profile.json";

#[cfg(test)]
mod tests;
