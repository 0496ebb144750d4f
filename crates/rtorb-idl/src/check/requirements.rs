//! The annotations that state other requirements than times: `@critical`, `@best_effort`, `@network_priority`, `@largest_message`,
//! `@queue`, `@statistical`. On an interface, they apply to each of its operations that does not state its own.

use std::ops::RangeInclusive;

use crate::ast::Preamble;
use crate::diagnostic::Diagnostic;
use crate::tree::{Annotation, Criticality, InterfaceFlavour, MissRatio, Timing};

use super::Checker;
use super::operations::Calls;
use super::timing::{LOCAL, is_timing, unquoted};

impl Checker<'_> {
    /// Reads the requirements that an interface states for its operations, without times: `check_annotations` reports those.
    pub(super) fn interface_requirements(
        &mut self,
        preamble: &Preamble,
        flavour: InterfaceFlavour,
    ) -> Timing {
        if flavour == InterfaceFlavour::Local {
            for annotation in preamble.annotations.iter().filter(|one| is_general(one)) {
                self.effective.insert(annotation.location);
                self.misplaced(annotation, LOCAL);
            }
            return Timing::default();
        }
        self.requirements(&preamble.annotations, is_general)
    }

    /// Gives the requirements of an interface to its operations and attributes.
    pub(super) fn apply_requirements(
        &mut self,
        stated: Timing,
        preamble: &Preamble,
        calls: &mut Calls,
    ) {
        let operations = calls.operations.iter_mut().map(|one| &mut one.timing);
        let attributes = calls.attributes.iter_mut().map(|one| &mut one.timing);
        let mut has_deadline = false;
        for timing in operations.chain(attributes) {
            has_deadline |= timing.deadline_ns.is_some();
            timing.inherit(stated);
        }
        if stated.miss_ratio.is_some() && !has_deadline {
            self.check_miss_ratio(&preamble.annotations, "no operation has one");
        }
    }

    /// Reports `@statistical` without a `@deadline`, which nothing can miss.
    pub(super) fn check_miss_ratio(&mut self, annotations: &[Annotation], label: &str) {
        let stated = annotations.iter().find(|one| one.name == STATISTICAL);
        if let Some(annotation) = stated {
            let diagnostic = Diagnostic::error("`@statistical` needs a `@deadline`")
                .at(annotation.location, label)
                .help("write what the calls must keep: `@deadline(\"40ms\")`");
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reads a requirement that is not a time.
    pub(super) fn take_requirement(&mut self, annotation: &Annotation, timing: &mut Timing) {
        match annotation.name.as_str() {
            "criticality" => {
                let criticality = self.criticality(annotation);
                self.take_criticality(annotation, criticality, timing);
            }
            "critical" => {
                let criticality = self.is_true(annotation).then_some(Criticality::VeryHigh);
                self.take_criticality(annotation, criticality, timing);
            }
            "best_effort" => {
                let criticality = self.is_true(annotation).then_some(Criticality::VeryLow);
                self.take_criticality(annotation, criticality, timing);
            }
            "network_priority" => {
                let dscp = self.number(annotation, 0..=DSCP_MAX, 46);
                timing.dscp = dscp.and_then(|dscp| u8::try_from(dscp).ok());
            }
            "largest_message" => {
                timing.message_bytes_max = self.number(annotation, MESSAGE_BYTES, 1024);
            }
            "queue" => timing.queue_max = self.number(annotation, 1..=QUEUE_MAX, 4),
            _ => timing.miss_ratio = self.miss_ratio(annotation),
        }
    }

    /// Sets the criticality. Reports a second annotation that states one.
    fn take_criticality(
        &mut self,
        annotation: &Annotation,
        criticality: Option<Criticality>,
        timing: &mut Timing,
    ) {
        if timing.criticality.is_some() && criticality.is_some() {
            let message = format!("`@{}` states a second criticality", annotation.name);
            let diagnostic = Diagnostic::error(message)
                .at(annotation.location, "the criticality is stated already")
                .help("keep one of `@criticality`, `@critical` and `@best_effort`");
            self.diagnostics.push(diagnostic);
        }
        timing.criticality = timing.criticality.or(criticality);
    }

    fn number(
        &mut self,
        annotation: &Annotation,
        range: RangeInclusive<u32>,
        example: u32,
    ) -> Option<u32> {
        let example = format!("`@{}({example})`", annotation.name);
        self.number_in(annotation, range, &example)
    }

    fn miss_ratio(&mut self, annotation: &Annotation) -> Option<MissRatio> {
        let example = "`@statistical(\"1/1000\")`: at most 1 of 1000 calls is late";
        let written = self.annotation_value(annotation, example)?;
        let parts = unquoted(&written).and_then(|text| text.split_once('/'));
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let ratio = parts.and_then(|(misses, calls)| {
            Some(MissRatio {
                misses: number(misses)?,
                calls: number(calls)?,
            })
        });
        let label = match ratio {
            Some(ratio) if ratio.misses >= ratio.calls => "all calls may be late".to_owned(),
            Some(ratio) if ratio.misses > MISSES_MAX => {
                format!("more than {MISSES_MAX} late calls are not counted")
            }
            Some(ratio) => return Some(ratio),
            None => format!("expected a string of two numbers, found `{written}`"),
        };
        self.wrong_value(annotation, &label, example);
        None
    }
}

/// The places where a requirement may stand.
pub(super) fn places(annotation: &Annotation) -> &'static str {
    if is_time(annotation) {
        "expected an operation or attribute of an interface"
    } else {
        "expected an interface, or an operation or attribute of one"
    }
}

/// True for a requirement that an interface may state: any but a time.
fn is_general(annotation: &Annotation) -> bool {
    is_timing(annotation) && !is_time(annotation)
}

fn is_time(annotation: &Annotation) -> bool {
    TIMES.contains(&annotation.name.as_str())
}

/// The annotations that state times: each operation has its own.
const TIMES: [&str; 3] = ["worst_case_time", "deadline", "period"];
/// The annotation with the ratio of calls that may be late.
const STATISTICAL: &str = "statistical";
/// The largest code point of RFC 2474.
const DSCP_MAX: u32 = 63;
/// A request without arguments has about 64 bytes.
const MESSAGE_BYTES: RangeInclusive<u32> = 64..=u32::MAX;
/// No queue of the ORB holds more requests.
const QUEUE_MAX: u32 = 1 << 16;
/// The ORB keeps the numbers of at most this many late calls of an operation.
const MISSES_MAX: u32 = 64;
