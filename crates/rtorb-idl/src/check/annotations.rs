//! Annotations: the values of those that change the mapping, and warnings about those that have no effect.
//!
//! The annotations that state requirements are in [`timing`](super::timing) and [`requirements`](super::requirements).
//! `docs/explanation/idl4-rust.md` lists all known ones.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use crate::diagnostic::Diagnostic;
use crate::literal;
use crate::renames::RUST_NAME;
use crate::source::Location;
use crate::suggest;
use crate::tree::{Annotation, TIMING_ANNOTATIONS, Value};

use super::timing::is_timing;
use super::{Checker, requirements};

impl Checker<'_> {
    /// The place of the annotation `name` if it has no value or the value TRUE. Reports a value that is not boolean.
    pub(super) fn is_annotated(
        &mut self,
        annotations: &[Annotation],
        name: &str,
    ) -> Option<Location> {
        let annotation = annotations.iter().rfind(|one| one.name == name)?;
        self.effective.insert(annotation.location);
        self.is_true(annotation).then_some(annotation.location)
    }

    /// True if an annotation has no value or the value TRUE. Reports a value that is not boolean.
    pub(super) fn is_true(&mut self, annotation: &Annotation) -> bool {
        if annotation.parameters.is_empty() {
            return true;
        }
        let name = &annotation.name;
        let example = format!("`@{name}`, or `@{name}(FALSE)`");
        let Some(written) = self.annotation_value(annotation, &example) else {
            return false;
        };
        if !["TRUE", "FALSE"].contains(&&*written) {
            let label = format!("expected TRUE or FALSE, found `{written}`");
            self.wrong_value(annotation, &label, &example);
        }
        written == "TRUE"
    }

    /// The number in the annotation `name`. `None` if there is no such annotation, or a wrong one, which is reported.
    pub(super) fn annotated_number(
        &mut self,
        annotations: &[Annotation],
        name: &str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let annotation = annotations.iter().rfind(|one| one.name == name)?;
        self.effective.insert(annotation.location);
        let example = format!("`@{name}({})`", range.end());
        self.number_in(annotation, range, &example)
    }

    /// The number in an annotation. `None` if it is wrong, which is reported.
    pub(super) fn number_in(
        &mut self,
        annotation: &Annotation,
        range: RangeInclusive<u32>,
        example: &str,
    ) -> Option<u32> {
        let written = self.annotation_value(annotation, example)?;
        let number = match literal::number(&written) {
            Ok(Value::Integer(number)) => u32::try_from(number).ok(),
            _ => None,
        };
        let found = number.filter(|number| range.contains(number));
        if found.is_none() {
            let (least, most) = (range.start(), range.end());
            let label = format!("expected a number from {least} to {most}, found `{written}`");
            self.wrong_value(annotation, &label, example);
        }
        found
    }

    /// Checks the value of `@bit_bound` of an enum. It has no effect there, of which [`Self::check_annotations`] warns.
    pub(super) fn check_bit_bound_of_enum(&mut self, annotations: &[Annotation]) {
        if self
            .annotated_number(annotations, BIT_BOUND, 1..=ENUM_BITS_MAX)
            .is_some()
        {
            let places = annotations.iter().rfind(|one| one.name == BIT_BOUND);
            self.effective
                .remove(&places.map(|one| one.location).unwrap_or_default());
        }
    }

    /// Reports requirements that stand before anything but an interface, operation or attribute. Warns about other annotations without an
    /// effect: once for each name that never has an effect.
    pub(super) fn check_annotations(&mut self, all: &[Annotation]) {
        if !self.is_whole {
            return;
        }
        let mut reported = HashSet::new();
        for annotation in all {
            if self.effective.contains(&annotation.location) {
                continue;
            }
            if is_timing(annotation) {
                self.misplaced(annotation, requirements::places(annotation));
                continue;
            }
            let simple = simple_name(annotation);
            let known = KNOWN.iter().find(|(known, _)| *known == simple);
            if let Some((_, Effect::On(place))) = known {
                let message = format!("`@{}` has no effect here", annotation.name);
                let warning = Diagnostic::warning(message).at(annotation.location, *place);
                self.diagnostics.push(warning);
            } else if reported.insert(&annotation.name) {
                let effect = known.map(|(_, effect)| effect);
                let warning = self.without_effect(annotation, effect);
                warning
                    .into_iter()
                    .for_each(|one| self.diagnostics.push(one));
            }
        }
    }

    /// The warning about an annotation that never has an effect; `None` if its author expects no effect.
    fn without_effect(
        &self,
        annotation: &Annotation,
        known: Option<&Effect>,
    ) -> Option<Diagnostic> {
        let (name, place) = (&annotation.name, annotation.location);
        match known {
            Some(Effect::None(why)) => {
                let message = format!("`@{name}` has no effect");
                return Some(Diagnostic::warning(message).at(place, *why));
            }
            Some(Effect::On(_) | Effect::Elsewhere) => return None,
            None => {}
        }
        let simple = simple_name(annotation);
        if self.is_declared(simple) {
            return None;
        }
        let warning = Diagnostic::warning(format!("unknown annotation `@{name}`"));
        let warning = warning.at(place, "has no effect");
        let known = KNOWN.iter().map(|(known, _)| *known);
        let help = match suggest::closest(simple, known.chain(TIMING_ANNOTATIONS)) {
            Some(meant) => format!("did you mean `@{meant}`?"),
            None => {
                format!("if it is for another tool, declare it: `@annotation {simple} {{}};`")
            }
        };
        Some(warning.help(help))
    }

    /// True if the specification declares an annotation, for another tool.
    fn is_declared(&self, simple: &str) -> bool {
        let mut items = self.tree.items.iter();
        items.any(|item| item.name == simple && item.is_other("annotation"))
    }
}

/// The name without the modules before it.
fn simple_name(annotation: &Annotation) -> &str {
    let mut parts = annotation.name.rsplit("::");
    parts.next().unwrap_or_default()
}

/// The effect of a known annotation.
enum Effect {
    /// It changes the mapping. The text says on which declarations.
    On(&'static str),
    /// It has an effect for other middleware or tools that read the same IDL, or in another part of the compiler.
    Elsewhere,
    /// It has no effect, for this reason, but may seem to change values or calls.
    None(&'static str),
}

/// The most bits of an enum (IDL 4.2, 8.3.4.1).
const ENUM_BITS_MAX: u32 = 32;
/// The annotation of a member that a value may lack.
pub(super) const OPTIONAL: &str = "optional";
/// The annotation with the number of bits of a bitmask.
pub(super) const BIT_BOUND: &str = "bit_bound";
/// The annotation with the bit of a flag.
pub(super) const POSITION: &str = "position";
/// The annotation of an operation without a reply.
pub(super) const ONEWAY: &str = "oneway";

/// The annotations of IDL 4.2 (8.3), those of DDS-XTypes, and our own except requirements.
static KNOWN: &[(&str, Effect)] = {
    use Effect::{Elsewhere, None, On};
    const UNCHECKED: &str = "values are not checked";
    &[
        (
            OPTIONAL,
            On("it has one on members of structs, exceptions and valuetypes"),
        ),
        (
            BIT_BOUND,
            On("it has one on bitmasks; an enum is always an unsigned long on the wire"),
        ),
        (POSITION, On("it has one on the flags of a bitmask")),
        (ONEWAY, On("it has one on operations")),
        (RUST_NAME, Elsewhere),
        (
            "external",
            None("the member is a part of its value, as without it"),
        ),
        (
            "shared",
            None("the member is a part of its value, as without it"),
        ),
        ("default", None("no member gets a value by itself")),
        ("default_literal", None("no enumerator is chosen by itself")),
        ("value", None("an enumerator is its position on the wire")),
        ("range", None(UNCHECKED)),
        ("min", None(UNCHECKED)),
        ("max", None(UNCHECKED)),
        ("ami", None("generated calls wait for their reply")),
        ("non_serialized", None("every member is sent")),
        (
            "try_construct",
            None("a value that does not fit fails the call"),
        ),
        ("service", Elsewhere),
        ("unit", Elsewhere),
        ("verbatim", Elsewhere),
        ("key", Elsewhere),
        ("id", Elsewhere),
        ("hashid", Elsewhere),
        ("autoid", Elsewhere),
        ("must_understand", Elsewhere),
        ("extensibility", Elsewhere),
        ("final", Elsewhere),
        ("appendable", Elsewhere),
        ("mutable", Elsewhere),
        ("nested", Elsewhere),
        ("default_nested", Elsewhere),
        ("topic", Elsewhere),
        ("data_representation", Elsewhere),
        ("ignore_literal_names", Elsewhere),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_the_mapping_lists_all_known_annotations() {
        let page = include_str!("../../../../docs/explanation/idl4-rust.md");
        let table = page.split("## Annotations").nth(1);
        let table = table.expect("the page has that section");
        let known = KNOWN.iter().map(|(known, _)| *known);
        for name in known.chain(TIMING_ANNOTATIONS) {
            assert!(table.contains(&format!("`@{name}`")), "@{name} is missing");
        }
    }
}
