//! Answers of an analysis for tests, made by hand: the analysis is tested where it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rtorb_sched::model::{
    BehaviourBound, ChainBound, CheckReport, ComponentLoading, LaneLoading, LaneOrder, Loading,
    Standing, System, Timing,
};

/// A system of a file's text.
pub(in crate::model) fn system(text: &str) -> System {
    System::parse(text, Path::new(""), &|_| Ok(BTreeMap::new())).unwrap()
}

/// An example, whatever timing its IDL has.
pub(in crate::model) fn example(name: &str) -> System {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/model")
        .join(name);
    let timing = Timing {
        worst_ns: Some(1_000_000),
        ..Timing::default()
    };
    let operations = [
        "Avionics::Filter::smooth",
        "Avionics::Navigation::update",
        "Avionics::Navigation::position",
    ];
    let known = move |_: &[PathBuf]| {
        Ok(operations
            .map(|name| (name.to_owned(), timing.clone()))
            .into())
    };
    System::read(path, &known).unwrap()
}

/// Every behaviour has this bound, from every root, and every chain. Priorities go down from 60 in the order of the file, and each
/// component has a lane for each of them.
pub(in crate::model) fn checked(system: &System, bound_ns: Option<u64>) -> CheckReport {
    let names = || system.behaviours.iter().map(|behaviour| &behaviour.name);
    let priorities: Vec<i16> = (0..61).rev().take(system.behaviours.len()).collect();
    let own: Vec<(String, i16)> = names().cloned().zip(priorities.iter().copied()).collect();
    let of_file = system
        .behaviours
        .iter()
        .filter_map(|behaviour| behaviour.priority);
    let mut lanes: Vec<i16> = priorities.iter().copied().chain(of_file).collect();
    lanes.sort_unstable_by(|one, other| other.cmp(one));
    lanes.dedup();
    let loading = |component: &rtorb_sched::model::Component| ComponentLoading {
        component: component.name.clone(),
        lanes: lanes
            .iter()
            .map(|priority| LaneLoading {
                priority: *priority,
                threads: 1,
                order: LaneOrder::Fifo,
            })
            .collect(),
        priorities: own.clone(),
        ..ComponentLoading::default()
    };
    CheckReport {
        schema: "rtorb-model/1",
        system: system.name.clone(),
        standing: Standing::Holds,
        first_miss: None,
        strategy: "rms".to_owned(),
        processors: Vec::new(),
        behaviours: names().map(|name| bound(system, name, bound_ns)).collect(),
        chains: system
            .chains
            .iter()
            .map(|chain| ChainBound {
                chain: chain.name.clone(),
                through: Vec::new(),
                deadline_ns: chain.deadline_ns,
                bound_ns,
                slack_ns: None,
                standing: Standing::Holds,
                shares: Vec::new(),
                explanation: String::new(),
            })
            .collect(),
        cause_effect_chains: Vec::new(),
        loading: Loading {
            components: system.components.iter().map(loading).collect(),
            channels: Vec::new(),
        },
        assumptions: Vec::new(),
    }
}

fn bound(system: &System, name: &str, bound_ns: Option<u64>) -> BehaviourBound {
    let roots = system
        .behaviours
        .iter()
        .map(|root| (root.name.clone(), bound_ns));
    BehaviourBound {
        behaviour: name.to_owned(),
        root: name.to_owned(),
        processor: String::new(),
        priority: None,
        assigned: true,
        period_ns: 0,
        jobs: 1,
        offset_ns: None,
        deadline_ns: 0,
        bound_ns,
        slack_ns: None,
        standing: Standing::Holds,
        shares: Vec::new(),
        by_root: roots.collect(),
        sensitivity: None,
        explanation: String::new(),
    }
}
