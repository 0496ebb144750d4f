//! What IDL annotations say of a behaviour: taken where the file says nothing, and never contradicted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::hardware::check_path;
use super::tables::BehaviourTable;
use super::values::TIME_NS_MAX;
use super::{Interfaces, Lines, Wrong};
use crate::model::system::{Execution, Timing};
use crate::task::Criticality;
use crate::times::text_of_ns;
use crate::toml_file::nearest;

/// The annotations of every operation; `None` where the file names no IDL.
pub(super) type Annotated = Option<BTreeMap<String, Timing>>;

pub(super) fn annotated(
    idl: &[Spanned<String>],
    folder: &Path,
    interfaces: Interfaces,
    lines: &Lines,
) -> Result<Annotated, Wrong> {
    let Some(first) = idl.first() else {
        return Ok(None);
    };
    for path in idl {
        check_path(path, lines)?;
    }
    let paths: Vec<PathBuf> = idl.iter().map(|path| folder.join(path.get_ref())).collect();
    interfaces(&paths)
        .map(Some)
        .map_err(|reason| Wrong::at(lines.of(first), reason))
}

/// The annotations of the operation that a behaviour is.
pub(super) fn of<'a>(
    behaviour: &BehaviourTable,
    annotated: &'a Annotated,
    lines: &Lines,
) -> Result<Option<&'a Timing>, Wrong> {
    let Some(operation) = &behaviour.operation else {
        return Ok(None);
    };
    let wrong = |reason: String| Err(Wrong::at(lines.of(operation), reason));
    let name = operation.get_ref();
    let Some(all) = annotated else {
        return wrong(format!(
            "nothing says where {name:?} is: name its file at the top, as idl = [\"system.idl\"]"
        ));
    };
    match all.get(name) {
        Some(timing) => match unusable(timing) {
            Some((annotation, ns)) => wrong(format!(
                "{annotation} of {name:?}{} is {}: times of a system are 1ns to 86400s",
                place(timing),
                text_of_ns(ns)
            )),
            None => Ok(Some(timing)),
        },
        None => wrong(match nearest(name, all.keys().map(String::as_str)) {
            Some(meant) => {
                format!(
                    "no operation {name:?} with annotations is in the IDL: did you mean {meant:?}?"
                )
            }
            None => format!(
                "no operation {name:?} with annotations is in the IDL: write it as Module::Interface::operation, and annotate it there, as @worst_case_time(\"2ms\")"
            ),
        }),
    }
}

/// The annotation whose time is none of a system, if any is.
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

/// The execution time: the file's, within the annotated one, or else the annotated one.
pub(super) fn execution(
    given: Option<(Execution, usize)>,
    operation: Option<(&str, &Timing)>,
) -> Option<Result<Execution, Wrong>> {
    let annotated = operation.and_then(|(name, timing)| Some((name, timing, timing.worst_ns?)));
    match (given, annotated) {
        (None, None) => None,
        (None, Some((.., ns))) => Some(Ok(Execution::Fixed { ns })),
        (Some((execution, line)), Some((name, timing, most_ns)))
            if execution.worst_ns() > most_ns =>
        {
            Some(Err(contradicted(
                line,
                format!("it executes for up to {}", text_of_ns(execution.worst_ns())),
                format!("@worst_case_time(\"{}\")", text_of_ns(most_ns)),
                (name, timing),
            )))
        }
        (Some((execution, _)), _) => Some(Ok(execution)),
    }
}

/// The deadline: the file's, not after the annotated one, or else the annotated one.
pub(super) fn deadline(
    given: Option<(u64, usize)>,
    operation: Option<(&str, &Timing)>,
) -> Result<Option<u64>, Wrong> {
    let annotated = operation.and_then(|(name, timing)| Some((name, timing, timing.deadline_ns?)));
    match (given, annotated) {
        (Some((ns, line)), Some((name, timing, most_ns))) if ns > most_ns => Err(contradicted(
            line,
            format!("its deadline is {}", text_of_ns(ns)),
            format!("@deadline(\"{}\")", text_of_ns(most_ns)),
            (name, timing),
        )),
        (Some((ns, _)), _) => Ok(Some(ns)),
        (None, annotated) => Ok(annotated.map(|(.., ns)| ns)),
    }
}

/// A period or gap of the file may be longer than the annotated one, and not shorter.
pub(super) fn check_period(
    (ns, line): (u64, usize),
    operation: Option<(&str, &Timing)>,
) -> Result<(), Wrong> {
    let annotated = operation.and_then(|(name, timing)| Some((name, timing, timing.period_ns?)));
    match annotated {
        Some((name, timing, least_ns)) if ns < least_ns => Err(contradicted(
            line,
            format!("it comes again after {}", text_of_ns(ns)),
            format!("@period(\"{}\")", text_of_ns(least_ns)),
            (name, timing),
        )),
        _ => Ok(()),
    }
}

/// The criticality: the file's, not less than the annotated one, or else the annotated one.
pub(super) fn criticality(
    given: Option<(Criticality, usize)>,
    operation: Option<(&str, &Timing)>,
) -> Result<Criticality, Wrong> {
    let annotated = operation.and_then(|(name, timing)| Some((name, timing, timing.criticality?)));
    match (given, annotated) {
        (Some((less, line)), Some((name, timing, least))) if less < least => Err(contradicted(
            line,
            "it is less critical".to_owned(),
            "@criticality".to_owned(),
            (name, timing),
        )),
        (Some((criticality, _)), _) => Ok(criticality),
        (None, annotated) => Ok(annotated.map_or(Criticality::Medium, |(.., least)| least)),
    }
}

fn contradicted(
    line: usize,
    said: String,
    annotation: String,
    (name, timing): (&str, &Timing),
) -> Wrong {
    Wrong::at(
        line,
        format!(
            "{said}, and {annotation} of {name}{} promises better: this file may be stricter than the IDL, so change one of them",
            place(timing)
        ),
    )
}

/// Where an annotation is, as it stands in messages.
pub(super) fn place(timing: &Timing) -> String {
    if timing.place.is_empty() {
        String::new()
    } else {
        format!(" ({})", timing.place)
    }
}
