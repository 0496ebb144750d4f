//! The annotations that say what an operation's timing is: `@worst_case_time`, `@deadline`, `@period`, `@criticality`.
//!
//! They are known without being declared. A specification may declare them all the same, for compilers that do not know them.

use crate::diagnostic::Diagnostic;
use crate::suggest;
use crate::tree::{
    Annotation, Criticality, InterfaceFlavour, ItemId, ItemKind, TIMING_ANNOTATIONS, Timing,
};

use super::Checker;
use super::times::{NoTime, nanoseconds};

impl Checker<'_> {
    /// What the annotations of an operation or attribute of the current scope say; what is wrong with them is reported.
    pub(super) fn timing(&mut self, annotations: &[Annotation]) -> Timing {
        let mut timing = Timing::default();
        if let Some(owner) = self.owner()
            && let Some(why) = self.is_never_timed(owner)
        {
            for annotation in annotations
                .iter()
                .filter(|annotation| is_timing(annotation))
            {
                self.timed.insert(annotation.location);
                self.misplaced(annotation, why);
            }
            return timing;
        }
        for (at, annotation) in annotations.iter().enumerate() {
            if !is_timing(annotation) {
                self.check_slip(annotation);
                continue;
            }
            self.timed.insert(annotation.location);
            let first = annotations[..at]
                .iter()
                .find(|other| other.name == annotation.name);
            match first {
                Some(first) => self.given_twice(annotation, first),
                None => self.take(annotation, &mut timing),
            }
        }
        self.check_order(annotations, timing);
        timing
    }

    /// Annotations on timing that stand where there is no operation.
    pub(super) fn misplaced_timing(&mut self, all: &[Annotation]) {
        if !self.is_whole {
            return;
        }
        for annotation in all {
            if !self.timed.contains(&annotation.location) {
                self.misplaced(
                    annotation,
                    "this is no operation or attribute of an interface",
                );
            }
        }
    }

    /// Why nothing that is declared in `owner` has a timing, if so.
    fn is_never_timed(&self, owner: ItemId) -> Option<&'static str> {
        match &self.tree.item(owner).kind {
            ItemKind::Interface(interface) if interface.flavour == InterfaceFlavour::Local => {
                Some("the interface is local: no call of it goes through the ORB")
            }
            ItemKind::Valuetype(_) => {
                Some("this is of a valuetype: no call of it goes through the ORB")
            }
            ItemKind::Other { .. } => Some("this is of no interface"),
            _ => None,
        }
    }

    fn misplaced(&mut self, annotation: &Annotation, why: &str) {
        let message = format!("`@{}` cannot stand here", annotation.name);
        let diagnostic = Diagnostic::error(message)
            .at(annotation.location, why)
            .help("write it before each operation that it is true of");
        self.diagnostics.push(diagnostic);
    }

    fn given_twice(&mut self, again: &Annotation, first: &Annotation) {
        let diagnostic = Diagnostic::error(format!("`@{}` is given twice", again.name))
            .at(again.location, "given again here")
            .at(first.location, "first given here");
        self.diagnostics.push(diagnostic);
    }

    fn take(&mut self, annotation: &Annotation, timing: &mut Timing) {
        match annotation.name.as_str() {
            "worst_case_time" => timing.worst_ns = self.time(annotation),
            "deadline" => timing.deadline_ns = self.time(annotation),
            "period" => timing.period_ns = self.time(annotation),
            _ => timing.criticality = self.criticality(annotation),
        }
    }

    fn time(&mut self, annotation: &Annotation) -> Option<u64> {
        let example = format!("`@{}(\"2ms\")`", annotation.name);
        let written = self.value(annotation, &example)?;
        let Some(text) = unquoted(&written) else {
            let found = format!("found `{written}`, which is no text");
            self.wrong_value(annotation, &found, &example);
            return None;
        };
        let found = match nanoseconds(text) {
            Ok(0) => "no time at all: it is at least 1ns".to_owned(),
            Ok(ns) => return Some(ns),
            Err(NoTime::Malformed) => format!("`{text}` is no number with a unit"),
            Err(NoTime::WithoutUnit) => format!("`{text}` has no unit: s, ms, us or ns"),
            Err(NoTime::UnknownUnit(unit)) => {
                format!("`{unit}` is no unit of time: there are s, ms, us and ns")
            }
            Err(NoTime::TooFine) => format!("`{text}` is finer than a nanosecond"),
            Err(NoTime::TooLong) => format!("`{text}` is too long: at most {}ns", u64::MAX),
        };
        self.wrong_value(annotation, &found, &example);
        None
    }

    fn criticality(&mut self, annotation: &Annotation) -> Option<Criticality> {
        let example = "`@criticality(\"high\")`";
        let written = self.value(annotation, example)?;
        let text = unquoted(&written);
        let found = Criticality::ALL.into_iter().find(|criticality| match text {
            Some(text) => criticality.name() == text,
            None => enumerator_of(*criticality) == written,
        });
        if found.is_none() {
            let found = match text {
                Some(text) => format!("`{text}` is none of {}", known(Criticality::name)),
                None => format!(
                    "`{written}` is no text, and none of {}",
                    known(enumerator_of)
                ),
            };
            self.wrong_value(annotation, &found, example);
        }
        found
    }

    /// The one value, as it is written.
    fn value(&mut self, annotation: &Annotation, example: &str) -> Option<String> {
        let found = match annotation.parameters.as_slice() {
            [(name, value)] if name.is_empty() || name == "value" => return Some(value.clone()),
            [] => "has no value".to_owned(),
            [(name, _)] => format!("its value has no name, or the name `value`, and not `{name}`"),
            several => format!("has {} values, and takes one", several.len()),
        };
        self.wrong_value(annotation, &found, example);
        None
    }

    fn wrong_value(&mut self, annotation: &Annotation, found: &str, example: &str) {
        let diagnostic = Diagnostic::error(format!("wrong value of `@{}`", annotation.name))
            .at(annotation.location, found)
            .help(format!("write it as {example}"));
        self.diagnostics.push(diagnostic);
    }

    /// What executes longer than its deadline misses it always.
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
                .at(worst.location, "even alone on its CPU it is done too late")
                .at(deadline.location, "must be done by then");
            self.diagnostics.push(diagnostic);
        }
    }

    /// Other annotations are nobody's business, unless one was meant to be known.
    fn check_slip(&mut self, annotation: &Annotation) {
        let Some(meant) = suggest::closest(&annotation.name, TIMING_ANNOTATIONS.into_iter()) else {
            return;
        };
        if self.is_declared_annotation(&annotation.name) {
            return;
        }
        let diagnostic = Diagnostic::warning(format!("nothing is known of `@{}`", annotation.name))
            .at(annotation.location, "it has no effect")
            .help(format!("did you mean `@{meant}`?"));
        self.diagnostics.push(diagnostic);
    }

    fn is_declared_annotation(&self, name: &str) -> bool {
        let last = name.rsplit("::").next().unwrap_or(name);
        self.tree.items.iter().any(|item| {
            item.name == last
                && matches!(
                    item.kind,
                    ItemKind::Other {
                        what: "annotation",
                        ..
                    }
                )
        })
    }
}

fn is_timing(annotation: &Annotation) -> bool {
    TIMING_ANNOTATIONS.contains(&annotation.name.as_str())
}

/// The text of one string literal; none for anything else.
fn unquoted(written: &str) -> Option<&str> {
    let text = written.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains('"')).then_some(text)
}

fn known(name: impl Fn(Criticality) -> &'static str) -> String {
    Criticality::ALL.map(name).join(", ")
}

/// As an enumerator of IDL is called.
fn enumerator_of(criticality: Criticality) -> &'static str {
    match criticality {
        Criticality::VeryLow => "VERY_LOW",
        Criticality::Low => "LOW",
        Criticality::Medium => "MEDIUM",
        Criticality::High => "HIGH",
        Criticality::VeryHigh => "VERY_HIGH",
    }
}
