//! The timing of every annotated operation, for the analysis of systems.

use std::path::PathBuf;

use serde::Serialize;

use crate::rust::operations;
use crate::source::SourceMap;
use crate::tree::{Criticality, InterfaceFlavour, ItemKind, MissRatio, Tree};
use crate::{CompileError, Options, check};

/// The timing and the other requirements of an operation, as its annotations and those of its interface state them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperationTiming {
    /// `Module::Interface::operation`. An inherited operation is listed under the name of each interface that has it, because
    /// servants of each of them serve it. An attribute has `Module::Interface::_get_name` and, if it can be set, `_set_name`.
    pub operation: String,
    /// `@worst_case_time`, in ns.
    pub worst_ns: Option<u64>,
    /// `@deadline`, in ns.
    pub deadline_ns: Option<u64>,
    /// `@period`, in ns: the least time between two calls.
    pub period_ns: Option<u64>,
    /// `@criticality`; very high for `@critical`, very low for `@best_effort`.
    pub criticality: Option<Criticality>,
    /// `@network_priority`: the code point of its messages.
    pub network_priority: Option<u8>,
    /// `@largest_message`, in bytes.
    pub largest_message: Option<u32>,
    /// `@queue`: the most requests that wait.
    pub queue: Option<u32>,
    /// `@statistical`: how many calls may be late.
    pub statistical: Option<MissRatio>,
    /// The file of its declaration.
    pub file: String,
    /// The line of its name there, from 1.
    pub line: u32,
}

/// The annotated operations of `files`, which together are one specification, and of the files that they include, in the order
/// of declaration.
///
/// # Errors
/// The diagnostics, rendered, if the specification is wrong or a file cannot be read.
pub fn timings(
    files: &[PathBuf],
    include_dirs: &[PathBuf],
) -> Result<Vec<OperationTiming>, CompileError> {
    let options = Options {
        include_dirs: include_dirs.to_vec(),
        ..Options::default()
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
    for id in tree.ids() {
        let ItemKind::Interface(interface) = &tree.item(id).kind else {
            continue;
        };
        if interface.flavour == InterfaceFlavour::Local {
            continue;
        }
        for declaring in tree.ancestors(interface).into_iter().chain([id]) {
            for call in operations::own(tree, declaring) {
                if call.is_timed() {
                    let operation = format!("{}::{}", tree.full_name(id), call.wire_name);
                    let position = sources.position(call.location);
                    found.push(OperationTiming {
                        operation,
                        worst_ns: call.timing.worst_ns,
                        deadline_ns: call.timing.deadline_ns,
                        period_ns: call.timing.period_ns,
                        criticality: call.timing.criticality,
                        network_priority: call.timing.dscp,
                        largest_message: call.timing.message_bytes_max,
                        queue: call.timing.queue_max,
                        statistical: call.timing.miss_ratio,
                        file: position.file,
                        line: position.line,
                    });
                }
            }
        }
    }
    found
}
