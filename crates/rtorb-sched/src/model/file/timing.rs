//! IDL annotations of a behaviour: they apply if the file says nothing, and the file may not contradict them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::hardware::check_path;
use super::tables::BehaviourTable;
use super::values::TIME_NS_MAX;
use super::{Interfaces, LineError, Lines, Place};
use crate::model::system::{Execution, Timing};
use crate::task::Criticality;
use crate::text_file::nearest;
use crate::times::text_of_ns;

/// The annotations of every operation; `None` if the file names no IDL.
pub(super) type Annotations = Option<BTreeMap<String, Timing>>;

/// A value of the file, and its place.
#[derive(Clone, Copy)]
pub(super) struct AtLine<T> {
    pub(super) value: T,
    pub(super) line: Place,
}

/// The operation that a behaviour executes, and its annotations.
#[derive(Clone, Copy)]
pub(super) struct AnnotatedOperation<'a> {
    pub(super) name: &'a str,
    pub(super) timing: &'a Timing,
}

impl AnnotatedOperation<'_> {
    fn contradicts(self, line: Place, fact: &str, annotation: &str) -> LineError {
        let reason = format!(
            "{fact}, but {annotation} of {}{} promises better: the file may only be stricter than the IDL, so change one of them",
            self.name,
            place(self.timing)
        );
        LineError::at(line, reason)
    }
}

/// Reads the annotations of the IDL files that the system names.
pub(super) fn annotations(
    idl: &[Spanned<String>],
    folder: &Path,
    interfaces: Interfaces,
    lines: &Lines,
) -> Result<Annotations, LineError> {
    let Some(first) = idl.first() else {
        return Ok(None);
    };
    for path in idl {
        check_path(path, lines)?;
    }
    let paths: Vec<PathBuf> = idl.iter().map(|path| folder.join(path.get_ref())).collect();
    interfaces(&paths)
        .map(Some)
        .map_err(|reason| LineError::at(lines.of(first), reason))
}

/// Returns the annotations of a behaviour's operation.
pub(super) fn of<'a>(
    behaviour: &BehaviourTable,
    annotations: &'a Annotations,
    lines: &Lines,
) -> Result<Option<&'a Timing>, LineError> {
    let Some(operation) = &behaviour.operation else {
        return Ok(None);
    };
    let wrong = |reason: String| Err(LineError::at(lines.of(operation), reason));
    let name = operation.get_ref();
    let Some(all) = annotations else {
        return wrong(format!(
            "the IDL file of {name:?} is missing: name its file at the top, such as idl = [\"system.idl\"]"
        ));
    };
    match all.get(name) {
        Some(timing) => match unusable(timing) {
            Some((annotation, ns)) => wrong(format!(
                "{annotation} of {name:?}{} is {}: a time of a system is 1ns to 86400s",
                place(timing),
                text_of_ns(ns)
            )),
            None => Ok(Some(timing)),
        },
        None => wrong(match nearest(name, all.keys().map(String::as_str)) {
            Some(meant) => {
                format!("the IDL has no annotated operation {name:?}: did you mean {meant:?}?")
            }
            None => format!(
                "the IDL has no annotated operation {name:?}: write it as Module::Interface::operation, and annotate it there, such as @worst_case_time(\"2ms\")"
            ),
        }),
    }
}

/// Returns an annotation whose time is out of range, if there is one.
fn unusable(timing: &Timing) -> Option<(&'static str, u64)> {
    let times = [
        ("@worst_case_time", timing.worst_ns),
        ("@deadline", timing.deadline_ns),
        ("@period", timing.period_ns),
    ];
    let given = times
        .into_iter()
        .filter_map(|(annotation, ns)| Some((annotation, ns?)));
    given
        .into_iter()
        .find(|(_, ns)| !(1..=TIME_NS_MAX).contains(ns))
}

/// Returns the execution time: the file's, at most the annotated one; else the annotated one.
pub(super) fn execution(
    given: Option<AtLine<Execution>>,
    operation: Option<AnnotatedOperation<'_>>,
) -> Option<Result<Execution, LineError>> {
    let annotated = operation.and_then(|operation| Some((operation, operation.timing.worst_ns?)));
    match (given, annotated) {
        (None, None) => None,
        (None, Some((_, ns))) => Some(Ok(Execution::Fixed { ns })),
        (Some(given), Some((operation, most_ns))) if given.value.worst_ns() > most_ns => {
            let worst = text_of_ns(given.value.worst_ns());
            Some(Err(operation.contradicts(
                given.line,
                &format!("it executes for up to {worst}"),
                &format!("@worst_case_time(\"{}\")", text_of_ns(most_ns)),
            )))
        }
        (Some(given), _) => Some(Ok(given.value)),
    }
}

/// Returns the deadline: the file's, at most the annotated one; else the annotated one.
pub(super) fn deadline(
    given: Option<AtLine<u64>>,
    operation: Option<AnnotatedOperation<'_>>,
) -> Result<Option<u64>, LineError> {
    let annotated =
        operation.and_then(|operation| Some((operation, operation.timing.deadline_ns?)));
    match (given, annotated) {
        (Some(given), Some((operation, most_ns))) if given.value > most_ns => Err(operation
            .contradicts(
                given.line,
                &format!("its deadline is {}", text_of_ns(given.value)),
                &format!("@deadline(\"{}\")", text_of_ns(most_ns)),
            )),
        (Some(given), _) => Ok(Some(given.value)),
        (None, annotated) => Ok(annotated.map(|(_, ns)| ns)),
    }
}

/// Checks that a period or gap of the file is not shorter than the annotated one.
pub(super) fn check_period(
    given: AtLine<u64>,
    operation: Option<AnnotatedOperation<'_>>,
) -> Result<(), LineError> {
    let annotated = operation.and_then(|operation| Some((operation, operation.timing.period_ns?)));
    match annotated {
        Some((operation, least_ns)) if given.value < least_ns => Err(operation.contradicts(
            given.line,
            &format!("it arrives again after {}", text_of_ns(given.value)),
            &format!("@period(\"{}\")", text_of_ns(least_ns)),
        )),
        _ => Ok(()),
    }
}

/// Returns the criticality: the file's, at least the annotated one; else the annotated one.
pub(super) fn criticality(
    given: Option<AtLine<Criticality>>,
    operation: Option<AnnotatedOperation<'_>>,
) -> Result<Criticality, LineError> {
    let annotated =
        operation.and_then(|operation| Some((operation, operation.timing.criticality?)));
    match (given, annotated) {
        (Some(given), Some((operation, least))) if given.value < least => {
            Err(operation.contradicts(given.line, "it is less critical", "@criticality"))
        }
        (Some(given), _) => Ok(given.value),
        (None, annotated) => Ok(annotated.map_or(Criticality::Medium, |(_, least)| least)),
    }
}

/// Formats the place of an annotation for messages.
pub(super) fn place(timing: &Timing) -> String {
    if timing.place.is_empty() {
        String::new()
    } else {
        format!(" ({})", timing.place)
    }
}
