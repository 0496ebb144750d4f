//! The values of annotations that have a meaning for the mapping.

use std::ops::RangeInclusive;

use crate::literal;
use crate::tree::{Annotation, Value};

use super::Checker;

impl Checker<'_> {
    /// True if a member is `@optional`. Reports a wrong value of the annotation.
    pub(super) fn is_optional(&mut self, annotations: &[Annotation]) -> bool {
        let mut annotations = annotations.iter();
        let Some(annotation) = annotations.rfind(|one| one.name == OPTIONAL) else {
            return false;
        };
        self.effective.insert(annotation.location);
        if annotation.parameters.is_empty() {
            return true;
        }
        let example = "`@optional`, or `@optional(FALSE)`";
        let written = self.annotation_value(annotation, example);
        match written.as_deref() {
            Some("TRUE") => return true,
            Some("FALSE") | None => {}
            Some(other) => {
                let label = format!("expected TRUE or FALSE, found `{other}`");
                self.wrong_value(annotation, &label, example);
            }
        }
        false
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
        let written = self.annotation_value(annotation, &example)?;
        let number = match literal::number(&written) {
            Ok(Value::Integer(number)) => u32::try_from(number).ok(),
            _ => None,
        };
        let found = number.filter(|number| range.contains(number));
        if found.is_none() {
            let (least, most) = (range.start(), range.end());
            let label = format!("expected a number from {least} to {most}, found `{written}`");
            self.wrong_value(annotation, &label, &example);
        }
        found
    }
}

/// The annotation of a member that a value may be without.
const OPTIONAL: &str = "optional";
