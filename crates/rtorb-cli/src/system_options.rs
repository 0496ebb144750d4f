//! The options of a system of components: the platforms of its nodes, and its interfaces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use rtorb_idl::tree::Criticality as Annotated;
use rtorb_sched::Criticality;
use rtorb_sched::model::{
    CompiledRequirements, MissRatio, Platform, ProfileOption, Statistic, System, Timing,
    profiles_of,
};
use rtorb_sched::text_file::from_toml;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::named_file::file_error;
use crate::orb_options::usage;

/// The error of options for a system of components that are given with a file of operations.
pub(crate) fn not_for_operations(file: &Path, options: &str) -> anyhow::Error {
    usage(format!(
        "{} is a file of operations: {options} are for a system of components",
        file.display()
    ))
}

/// The platforms and interfaces of a system.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlatformOptions {
    /// Platform profile, of one node or of all. Overrides those of the file. `rtorb lab run profile` writes one.
    #[arg(long = "profile", value_name = "[NODE=]FILE", conflicts_with = "ideal")]
    pub(crate) profiles: Vec<ProfileOption>,
    /// Statistic of the measured costs: the largest (max), or p99, with rare costs as separate terms.
    ///
    /// The default is max, but p99 in a virtual machine, where the largest value contains what the hypervisor took.
    #[arg(long, value_name = "STATISTIC", value_parser = ["max", "p99"], conflicts_with = "ideal")]
    pub(crate) costs: Option<String>,
    /// Assume a platform that costs nothing: only the application's own code counts.
    #[arg(long)]
    pub(crate) ideal: bool,
    /// Folder to search for included IDL files. May be given more than once.
    #[arg(short = 'I', value_name = "DIR")]
    pub(crate) include_dirs: Vec<PathBuf>,
}

impl PlatformOptions {
    /// True if one of them is given.
    pub(crate) fn is_given(&self) -> bool {
        let Self {
            profiles,
            costs,
            ideal,
            include_dirs,
        } = self;
        costs.is_some() || *ideal || !profiles.is_empty() || !include_dirs.is_empty()
    }

    /// Reads the file of a system.
    pub(crate) fn system(&self, file: &Path) -> anyhow::Result<System> {
        System::read(file, &|files| self.timings(files)).map_err(file_error)
    }

    /// Returns the profile of each node, in order; `None` for a platform that costs nothing.
    pub(crate) fn profiles(
        &self,
        file: &Path,
        system: &System,
    ) -> anyhow::Result<Vec<Option<PathBuf>>> {
        if self.ideal {
            return Ok(vec![None; system.nodes.len()]);
        }
        let files = profiles_of(system, &self.profiles)
            .map_err(|reason| usage(format!("{}: {reason}", file.display())))?;
        Ok(files.into_iter().map(Some).collect())
    }

    /// Returns a platform for each node; reads a profile of several nodes once.
    pub(crate) fn platforms(&self, file: &Path, system: &System) -> anyhow::Result<Vec<Platform>> {
        let files = self.profiles(file, system)?;
        let mut read: BTreeMap<&Path, Platform> = BTreeMap::new();
        for file in files.iter().flatten() {
            if !read.contains_key(file.as_path()) {
                let platform = Platform::read(file).map_err(file_error)?;
                read.insert(file, self.with_costs(platform));
            }
        }
        let each = files.iter().map(|file| match file {
            Some(file) => read[file.as_path()].clone(),
            None => Platform::ideal(),
        });
        Ok(each.collect())
    }

    fn with_costs(&self, platform: Platform) -> Platform {
        match self.costs.as_deref() {
            Some("max") => platform.with_statistic(Statistic::Max),
            Some(_) => platform.with_statistic(Statistic::P99),
            None => platform,
        }
    }

    /// Returns the timing annotations of the operations in IDL.
    pub(crate) fn timings(&self, files: &[PathBuf]) -> Result<BTreeMap<String, Timing>, String> {
        let found = rtorb_idl::timings(files, &self.include_dirs);
        let found = found.map_err(|error| error.to_string())?;
        let named = found.into_iter().map(|one| {
            let timing = Timing {
                place: format!("{}:{}", one.file, one.line),
                worst_ns: one.worst_ns,
                deadline_ns: one.deadline_ns,
                period_ns: one.period_ns,
                criticality: one.criticality.map(in_the_model),
                miss_ratio: one.statistical.map(|ratio| MissRatio {
                    misses: ratio.misses,
                    calls: ratio.calls,
                }),
                requirements: CompiledRequirements {
                    network_priority: one.network_priority,
                    message_bytes_max: one.largest_message,
                    queue_max: one.queue,
                },
            };
            (one.operation, timing)
        });
        Ok(named.collect())
    }
}

fn in_the_model(criticality: Annotated) -> Criticality {
    match criticality {
        Annotated::VeryLow => Criticality::VeryLow,
        Annotated::Low => Criticality::Low,
        Annotated::Medium => Criticality::Medium,
        Annotated::High => Criticality::High,
        Annotated::VeryHigh => Criticality::VeryHigh,
    }
}

/// True if the text is the file of a system of components, right or wrong.
pub(crate) fn has_components(text: &str) -> bool {
    from_toml::<Parts>(text).is_ok_and(|parts| parts.node.or(parts.component).is_some())
}

/// The tables that only the file of a system has.
#[derive(Deserialize)]
struct Parts {
    node: Option<IgnoredAny>,
    component: Option<IgnoredAny>,
}

/// The largest file of a system: a request has the whole text, and a server takes no larger one by default.
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * 1024;
