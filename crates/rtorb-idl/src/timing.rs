//! The timing of every annotated operation, for who analyses systems.

use std::path::PathBuf;

use serde::Serialize;

use crate::rust::idl_name;
use crate::source::SourceMap;
use crate::tree::{
    Attribute, Criticality, InterfaceFlavour, Item, ItemId, ItemKind, Operation, Timing, Tree,
};
use crate::{CompileError, Options, check};

/// What an operation's annotations say of its timing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperationTiming {
    /// `Module::Interface::operation`. What an interface inherits is told of it, too, under its own name: a servant of it
    /// serves that operation. Of an attribute there are `Module::Interface::_get_name` and, where it can be set, `_set_name`.
    pub operation: String,
    /// `@worst_case_time`, in ns.
    pub worst_ns: Option<u64>,
    /// `@deadline`, in ns.
    pub deadline_ns: Option<u64>,
    /// `@period`, in ns: the least time between two calls.
    pub period_ns: Option<u64>,
    /// `@criticality`.
    pub criticality: Option<Criticality>,
    /// The file of its declaration.
    pub file: String,
    /// The line of its name there, from 1.
    pub line: u32,
}

/// The annotated operations of `files`, which are one specification: those of included files, too, in the order of the
/// declarations.
///
/// # Errors
/// The diagnostics, rendered, if the specification is wrong or a file cannot be read.
pub fn timings(
    files: &[PathBuf],
    include_dirs: &[PathBuf],
) -> Result<Vec<OperationTiming>, CompileError> {
    let options = Options {
        include_dirs: include_dirs.to_vec(),
        defines: Vec::new(),
    };
    let outcome = check(files, &options);
    match &outcome.tree {
        Some(tree) => Ok(of_tree(tree, &outcome.sources)),
        None => Err(CompileError::of(outcome)),
    }
}

/// The annotated operations of a checked tree.
pub(crate) fn of_tree(tree: &Tree, sources: &SourceMap) -> Vec<OperationTiming> {
    let mut found = Vec::new();
    for (id, item) in (0..).map(ItemId).zip(&tree.items) {
        let ItemKind::Interface(interface) = &item.kind else {
            continue;
        };
        if interface.flavour == InterfaceFlavour::Local {
            continue;
        }
        let bases = tree.ancestors(interface);
        let bases = bases.iter().map(|&base| tree.item(base));
        for declaring in bases.chain([item]) {
            of_interface(tree, (id, declaring), sources, &mut found);
        }
    }
    found
}

/// What `declaring` declares, under the name of interface `id`.
fn of_interface(
    tree: &Tree,
    (id, declaring): (ItemId, &Item),
    sources: &SourceMap,
    found: &mut Vec<OperationTiming>,
) {
    let ItemKind::Interface(interface) = &declaring.kind else {
        return;
    };
    let interface_name = idl_name(tree, id);
    let mut tell = |name: &str, timing: Timing, location| {
        if timing.is_empty() {
            return;
        }
        let position = sources.position(location);
        found.push(OperationTiming {
            operation: format!("{interface_name}::{name}"),
            worst_ns: timing.worst_ns,
            deadline_ns: timing.deadline_ns,
            period_ns: timing.period_ns,
            criticality: timing.criticality,
            file: position.file,
            line: position.line,
        });
    };
    for Operation {
        name,
        timing,
        location,
        ..
    } in &interface.operations
    {
        tell(name, *timing, *location);
    }
    for Attribute {
        name,
        timing,
        location,
        readonly,
        ..
    } in &interface.attributes
    {
        tell(&format!("_get_{name}"), *timing, *location);
        if !readonly {
            tell(&format!("_set_{name}"), *timing, *location);
        }
    }
}
