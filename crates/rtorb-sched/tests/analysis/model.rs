//! Whole systems, from their files to bounds: examples computed by hand, and properties of random systems.

mod answers;
mod properties;
mod random;
mod suspensions;
mod thousand;
mod threads;

use std::collections::BTreeMap;
use std::path::Path;

use rtorb_sched::model::{BehaviourBound, CheckOptions, CheckReport, Platform, System, check};

/// Parses a system without IDL.
pub(crate) fn system(text: &str) -> System {
    let interfaces = |_: &[std::path::PathBuf]| Ok(BTreeMap::new());
    System::parse(text, Path::new(""), &interfaces).unwrap_or_else(|(line, reason)| {
        panic!("line {line:?}: {reason}\n{text}");
    })
}

/// Checks a system on platforms that cost nothing.
pub(crate) fn checked(text: &str) -> CheckReport {
    on_ideal(&system(text), &CheckOptions::default())
}

pub(crate) fn on_ideal(system: &System, options: &CheckOptions) -> CheckReport {
    let platforms = vec![Platform::ideal(); system.nodes.len()];
    check(system, &platforms, options).expect("it can be checked")
}

fn behaviour<'a>(checked: &'a CheckReport, name: &str) -> &'a BehaviourBound {
    let found = checked
        .behaviours
        .iter()
        .find(|each| each.behaviour == name);
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

const MS: u64 = 1_000_000;

/// Returns the bounds of behaviours, in ms.
fn bounds_ms(checked: &CheckReport, names: &[&str]) -> Vec<Option<u64>> {
    let bound = |name: &&str| {
        let ns = behaviour(checked, name).bound_ns?;
        assert_eq!(ns % MS, 0, "{name}: {ns} ns");
        Some(ns / MS)
    };
    names.iter().map(bound).collect()
}
