//! A system of components as `rtorb model apply` sends it: its text, and all that its file refers to.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rtorb_idl::tree::Criticality as Annotated;
use rtorb_sched::model::{Platform, System};
use rtorb_services::stubs::rtec_scheduler::rtec_scheduler::CriticalityT;
use rtorb_services::stubs::rtec_scheduler::rtorb_scheduling::{
    CostStatistic, MissRatio, NodePlatform, OperationTimes, SystemFile,
};

use crate::model::SystemOptions;
use crate::named_file::{self, file_error};
use crate::system_options::FILE_BYTES_MAX;

/// Reads the files to which the file of a system refers. It checks all of them first, and names the line of each mistake.
pub(super) fn system_file(
    file: &Path,
    text: String,
    options: &SystemOptions,
) -> anyhow::Result<SystemFile> {
    let times = RefCell::default();
    let interfaces = |files: &[PathBuf]| {
        times.replace(annotated(files, &options.platform.include_dirs)?);
        options.platform.timings(files)
    };
    let system = System::read(file, &interfaces).map_err(file_error)?;
    Ok(SystemFile {
        text,
        platforms: platforms(file, &system, options)?,
        times: times.into_inner(),
        strategy: options.strategy.clone().unwrap_or_default(),
    })
}

fn platforms(
    file: &Path,
    system: &System,
    options: &SystemOptions,
) -> anyhow::Result<Vec<NodePlatform>> {
    let mut nodes_of: BTreeMap<Option<PathBuf>, Vec<String>> = BTreeMap::new();
    let profiles = options.platform.profiles(file, system)?;
    for (node, profile) in system.nodes.iter().zip(profiles) {
        nodes_of.entry(profile).or_default().push(node.name.clone());
    }
    let platform = |(profile, nodes): (Option<PathBuf>, Vec<String>)| {
        let profile = match profile {
            None => String::new(),
            Some(profile) => {
                Platform::read(&profile).map_err(file_error)?;
                named_file::read_text(&profile, FILE_BYTES_MAX)?
            }
        };
        Ok(NodePlatform {
            nodes,
            profile,
            costs: match options.platform.costs.as_deref() {
                None => CostStatistic::DefaultCosts,
                Some("max") => CostStatistic::MaximumCosts,
                Some(_) => CostStatistic::P99Costs,
            },
        })
    };
    nodes_of.into_iter().map(platform).collect()
}

/// The times of the operations of these IDL files.
fn annotated(files: &[PathBuf], include_dirs: &[PathBuf]) -> Result<Vec<OperationTimes>, String> {
    let found = rtorb_idl::timings(files, include_dirs).map_err(|error| error.to_string())?;
    let times = found.into_iter().map(|one| OperationTimes {
        place: format!("{}:{}", one.file, one.line),
        operation: one.operation,
        worst_case: one.worst_ns.unwrap_or(0),
        deadline: one.deadline_ns.unwrap_or(0),
        period: one.period_ns.unwrap_or(0),
        criticality: one.criticality.map(level).into_iter().collect(),
        statistical: one.statistical.map(ratio).into_iter().collect(),
        network_priority: one.network_priority.map(u32::from).into_iter().collect(),
        largest_message: one.largest_message.into_iter().collect(),
        queue: one.queue.into_iter().collect(),
    });
    Ok(times.collect())
}

fn ratio(ratio: rtorb_idl::tree::MissRatio) -> MissRatio {
    MissRatio {
        misses: ratio.misses,
        calls: ratio.calls,
    }
}

fn level(criticality: Annotated) -> CriticalityT {
    match criticality {
        Annotated::VeryLow => CriticalityT::VeryLowCriticality,
        Annotated::Low => CriticalityT::LowCriticality,
        Annotated::Medium => CriticalityT::MediumCriticality,
        Annotated::High => CriticalityT::HighCriticality,
        Annotated::VeryHigh => CriticalityT::VeryHighCriticality,
    }
}
