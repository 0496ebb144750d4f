//! The annotations that state the requirements of an operation: its times, and how critical it is. [`requirements`](super::requirements)
//! reads the others.
//!
//! They need no declaration. A specification may still declare them for other compilers.

use crate::diagnostic::Diagnostic;
use crate::tree::{
    Annotation, AnnotationParameter, Criticality, InterfaceFlavour, ItemId, ItemKind,
    TIMING_ANNOTATIONS, Timing,
};

use super::Checker;
use super::times::{TimeError, nanoseconds};

impl Checker<'_> {
    /// Reads the timing in the annotations of an operation or attribute of the current scope. Reports wrong annotations.
    pub(super) fn timing(&mut self, annotations: &[Annotation]) -> Timing {
        if let Some(owner) = self.owner()
            && let Some(why) = self.is_never_timed(owner)
        {
            for annotation in annotations.iter().filter(|one| is_timing(one)) {
                self.effective.insert(annotation.location);
                self.misplaced(annotation, why);
            }
            return Timing::default();
        }
        let timing = self.requirements(annotations, is_timing);
        self.check_order(annotations, timing);
        if timing.deadline_ns.is_none() {
            self.check_miss_ratio(annotations, "the operation has none");
        }
        timing
    }

    /// Reads those of the annotations that `is_read` selects, each at most once.
    pub(super) fn requirements(
        &mut self,
        annotations: &[Annotation],
        is_read: fn(&Annotation) -> bool,
    ) -> Timing {
        let mut timing = Timing::default();
        for (at, annotation) in annotations.iter().enumerate() {
            if !is_read(annotation) {
                continue;
            }
            self.effective.insert(annotation.location);
            let mut before = annotations[..at].iter();
            let Some(first) = before.find(|other| other.name == annotation.name) else {
                self.take(annotation, &mut timing);
                continue;
            };
            let message = format!("`@{}` is given twice", annotation.name);
            let diagnostic = Diagnostic::error(message)
                .at(annotation.location, "given again here")
                .at(first.location, "first given here");
            self.diagnostics.push(diagnostic);
        }
        timing
    }

    /// The reason why declarations in `owner` have no timing, if there is one.
    fn is_never_timed(&self, owner: ItemId) -> Option<&'static str> {
        match &self.tree.item(owner).kind {
            ItemKind::Interface(interface) if interface.flavour == InterfaceFlavour::Local => {
                Some(LOCAL)
            }
            ItemKind::Valuetype(_) => {
                Some("this is in a valuetype: its calls do not go through the ORB")
            }
            ItemKind::Other { .. } => Some("this is not in an interface"),
            _ => None,
        }
    }

    pub(super) fn misplaced(&mut self, annotation: &Annotation, why: &str) {
        let message = format!("`@{}` cannot stand here", annotation.name);
        let diagnostic = Diagnostic::error(message)
            .at(annotation.location, why)
            .help("write it before each operation that it applies to");
        self.diagnostics.push(diagnostic);
    }

    fn take(&mut self, annotation: &Annotation, timing: &mut Timing) {
        match annotation.name.as_str() {
            "worst_case_time" => timing.worst_ns = self.time(annotation),
            "deadline" => timing.deadline_ns = self.time(annotation),
            "period" => timing.period_ns = self.time(annotation),
            _ => self.take_requirement(annotation, timing),
        }
    }

    fn time(&mut self, annotation: &Annotation) -> Option<u64> {
        let example = format!("`@{}(\"2ms\")`", annotation.name);
        let written = self.annotation_value(annotation, &example)?;
        let Some(text) = unquoted(&written) else {
            let label = format!("expected a string, found `{written}`");
            self.wrong_value(annotation, &label, &example);
            return None;
        };
        let found = match nanoseconds(text) {
            Ok(0) => "the time must be at least 1ns".to_owned(),
            Ok(ns) => return Some(ns),
            Err(TimeError::Malformed) => format!("`{text}` is not a number with a unit"),
            Err(TimeError::WithoutUnit) => format!("`{text}` has no unit: add s, ms, us or ns"),
            Err(TimeError::UnknownUnit(unit)) => {
                format!("`{unit}` is not a unit of time: use s, ms, us or ns")
            }
            Err(TimeError::TooFine) => format!("`{text}` is finer than a nanosecond"),
            Err(TimeError::TooLong) => format!("`{text}` is too long: at most {}ns", u64::MAX),
        };
        self.wrong_value(annotation, &found, &example);
        None
    }

    pub(super) fn criticality(&mut self, annotation: &Annotation) -> Option<Criticality> {
        let example = "`@criticality(\"high\")`";
        let written = self.annotation_value(annotation, example)?;
        let text = unquoted(&written);
        let found = Criticality::ALL.into_iter().find(|criticality| match text {
            Some(text) => criticality.name() == text,
            None => enumerator_of(*criticality) == written,
        });
        if found.is_none() {
            let label = match text {
                Some(text) => format!(
                    "`{text}` is not one of {}",
                    known(|one| one.name().to_owned())
                ),
                None => format!(
                    "`{written}` is not a string, and not one of {}",
                    known(enumerator_of)
                ),
            };
            self.wrong_value(annotation, &label, example);
        }
        found
    }

    /// The value of an annotation with one value, as written. Reports any other number of values.
    pub(super) fn annotation_value(
        &mut self,
        annotation: &Annotation,
        example: &str,
    ) -> Option<String> {
        let found = match annotation.parameters.as_slice() {
            [only] if only.name.is_empty() || only.name == "value" => {
                return Some(only.value.clone());
            }
            [] => "expected a value".to_owned(),
            [AnnotationParameter { name, .. }] => {
                format!("expected a value without a name or called `value`, found `{name}`")
            }
            several => format!("expected one value, found {}", several.len()),
        };
        self.wrong_value(annotation, &found, example);
        None
    }

    pub(super) fn wrong_value(&mut self, annotation: &Annotation, found: &str, example: &str) {
        let diagnostic = Diagnostic::error(format!("wrong value of `@{}`", annotation.name))
            .at(annotation.location, found)
            .help(format!("write it as {example}"));
        self.diagnostics.push(diagnostic);
    }

    /// Reports an operation whose worst case is longer than its deadline: it always misses the deadline.
    fn check_order(&mut self, annotations: &[Annotation], timing: Timing) {
        let (Some(worst_ns), Some(deadline_ns)) = (timing.worst_ns, timing.deadline_ns) else {
            return;
        };
        let place = |name| {
            annotations
                .iter()
                .find(|annotation| annotation.name == name)
        };
        if worst_ns > deadline_ns
            && let (Some(worst), Some(deadline)) = (place("worst_case_time"), place("deadline"))
        {
            let diagnostic = Diagnostic::error("the worst case is longer than the deadline")
                .at(
                    worst.location,
                    "misses the deadline even when it runs alone",
                )
                .at(deadline.location, "the deadline is shorter");
            self.diagnostics.push(diagnostic);
        }
    }
}

pub(super) fn is_timing(annotation: &Annotation) -> bool {
    TIMING_ANNOTATIONS.contains(&annotation.name.as_str())
}

/// The reason why the operations of a local interface have no requirements.
pub(super) const LOCAL: &str = "the interface is local: its calls do not go through the ORB";

/// The text of a single string literal; `None` for anything else.
pub(super) fn unquoted(written: &str) -> Option<&str> {
    let text = written.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains('"')).then_some(text)
}

fn known(name: fn(Criticality) -> String) -> String {
    Criticality::ALL.map(name).join(", ")
}

/// The name of an IDL enumerator: `VERY_LOW`.
fn enumerator_of(criticality: Criticality) -> String {
    criticality.name().to_uppercase().replace('-', "_")
}
