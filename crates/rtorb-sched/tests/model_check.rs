//! Whole systems, from their files to bounds: examples that can be worked out by hand, and properties of random ones.

#[path = "model/answers.rs"]
mod answers;
#[path = "model/properties.rs"]
mod properties;
#[path = "model/random.rs"]
mod random;
#[path = "model/thousand.rs"]
mod thousand;

use std::collections::BTreeMap;
use std::path::Path;

use rtorb_sched::model::{BehaviourBound, CheckOptions, Checked, Platform, System, check};

/// A system without IDL.
fn system(text: &str) -> System {
    let interfaces = |_: &[std::path::PathBuf]| Ok(BTreeMap::new());
    System::parse(text, Path::new(""), &interfaces).unwrap_or_else(|(line, reason)| {
        panic!("line {line:?}: {reason}\n{text}");
    })
}

/// On platforms that cost nothing.
fn checked(text: &str) -> Checked {
    on_ideal(&system(text), &CheckOptions::default())
}

fn on_ideal(system: &System, options: &CheckOptions) -> Checked {
    let platforms = vec![Platform::ideal(); system.nodes.len()];
    check(system, &platforms, options).expect("it can be checked")
}

fn behaviour<'a>(checked: &'a Checked, name: &str) -> &'a BehaviourBound {
    let found = checked
        .behaviours
        .iter()
        .find(|each| each.behaviour == name);
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

const MS: u64 = 1_000_000;

/// The bounds of behaviours, in ms.
fn bounds_ms(checked: &Checked, names: &[&str]) -> Vec<Option<u64>> {
    let bound = |name: &&str| {
        let ns = behaviour(checked, name).bound_ns?;
        assert_eq!(ns % MS, 0, "{name}: {ns} ns");
        Some(ns / MS)
    };
    names.iter().map(bound).collect()
}
