//! A system of components as a client sends it: the text of its file, and what the file refers to.

use rtorb_sched::Strategy;
use rtorb_sched::model::{CompiledRequirements, MissRatio, Platform, Statistic, System, Timing};
use rtorb_sched::text_file::{FileErrors, Mistake};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::modelled_system::ModelledSystem;
use super::table::criticality;
use crate::stubs::rtec_scheduler::rtorb_scheduling::{
    CostStatistic, NodePlatform, OperationTimes, SystemFile,
};

/// Reads a system and the platforms of its nodes.
///
/// # Errors
/// In words, what is wrong with the file.
pub(super) fn read(file: &SystemFile) -> Result<ModelledSystem, String> {
    let times = file.times.iter();
    let times = times.map(|one| Ok((one.operation.clone(), timing(one)?)));
    let times: BTreeMap<String, Timing> = times.collect::<Result<_, String>>()?;
    let interfaces = |_: &[std::path::PathBuf]| Ok(times.clone());
    let system = System::parse_all(&file.text, Path::new(""), &interfaces);
    let mut system = system.map_err(|mistakes| words("the new file", &file.text, mistakes))?;
    if !file.strategy.is_empty() {
        system.strategy = file.strategy.parse::<Strategy>()?;
    }
    let mut of_nodes: HashMap<&str, Platform> = HashMap::new();
    for given in &file.platforms {
        let platform = platform(given)?;
        for node in &given.nodes {
            of_nodes.insert(node, platform.clone());
        }
    }
    let platforms = system.nodes.iter().map(|node| {
        let known = of_nodes.get(node.name.as_str()).cloned();
        known.ok_or_else(|| format!("the node {} has no platform", node.name))
    });
    let platforms = platforms.collect::<Result<_, String>>()?;
    Ok(ModelledSystem { system, platforms })
}

fn timing(times: &OperationTimes) -> Result<Timing, String> {
    let given = |ns: u64| Some(ns).filter(|ns| *ns > 0);
    let stated = |numbers: &[u32]| numbers.first().copied();
    let code_point = stated(&times.network_priority).map(u8::try_from);
    let code_point = code_point
        .transpose()
        .map_err(|_| format!("@network_priority of {} is no code point", times.operation))?;
    Ok(Timing {
        place: times.place.clone(),
        worst_ns: given(times.worst_case),
        deadline_ns: given(times.deadline),
        period_ns: given(times.period),
        criticality: times.criticality.first().copied().map(criticality),
        miss_ratio: miss_ratio(times)?,
        requirements: CompiledRequirements {
            network_priority: code_point,
            message_bytes_max: stated(&times.largest_message),
            queue_max: stated(&times.queue),
        },
    })
}

fn miss_ratio(times: &OperationTimes) -> Result<Option<MissRatio>, String> {
    let Some(stated) = times.statistical.first() else {
        return Ok(None);
    };
    let counted = rtorb::timing::MissRatio {
        misses: stated.misses,
        calls: stated.calls,
    };
    if !counted.is_countable() {
        return Err(format!(
            "@statistical of {} allows {} late calls of {}: fewer than all may be late, and at most {}",
            times.operation,
            stated.misses,
            stated.calls,
            rtorb::timing::MissRatio::MISSES_MAX
        ));
    }
    Ok(Some(MissRatio {
        misses: stated.misses,
        calls: stated.calls,
    }))
}

fn platform(given: &NodePlatform) -> Result<Platform, String> {
    let platform = if given.profile.is_empty() {
        Platform::ideal()
    } else {
        let read = Platform::parse(&given.profile);
        let name = given.nodes.join(", ");
        read.map_err(|mistakes| words(&format!("the profile of {name}"), &given.profile, mistakes))?
    };
    Ok(match given.costs {
        CostStatistic::DefaultCosts => platform,
        CostStatistic::MaximumCosts => platform.with_statistic(Statistic::Max),
        CostStatistic::P99Costs => platform.with_statistic(Statistic::P99),
    })
}

fn words(name: &str, text: &str, mistakes: Vec<Mistake>) -> String {
    FileErrors::new(Path::new(name), text.to_owned(), mistakes).to_string()
}
