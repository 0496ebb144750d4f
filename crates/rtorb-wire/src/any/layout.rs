//! The lengths of runs of values that consist of numbers only, which are copied in one piece.

use crate::type_code::{Kind, Shape, TypeCode};

/// The number of bytes of `count` values from stream position `position` on; `None` if it exceeds `bytes_max`.
///
/// The summary of the type must be `fixed`.
pub(super) fn run_length(
    element: &TypeCode,
    count: usize,
    position: usize,
    bytes_max: usize,
) -> Option<usize> {
    let limit = position.checked_add(bytes_max)?;
    let end = run_end(element, count, position, limit)?;
    Some(end - position)
}

/// The length of a value depends on its position modulo 8 only, so each is computed once.
const PHASES: usize = 8;

fn run_end(element: &TypeCode, count: usize, start: usize, limit: usize) -> Option<usize> {
    let mut lengths = [None; PHASES];
    let mut at = start;
    // Every value has at least one byte, so a wrong count ends at the limit.
    for _ in 0..count {
        let known = &mut lengths[at % PHASES];
        let length = match *known {
            Some(length) => length,
            None => *known.insert(end(element, at, limit)? - at),
        };
        at += length;
        if at > limit {
            return None;
        }
    }
    Some(at)
}

fn end(type_code: &TypeCode, at: usize, limit: usize) -> Option<usize> {
    let summary = type_code.summary();
    let end = match type_code.shape() {
        Shape::Plain(kind) if summary.fixed && !summary.empty => {
            let alignment = usize::from(summary.alignment);
            // Only a long double is larger than its alignment.
            let size = if *kind == Kind::LongDouble {
                16
            } else {
                alignment
            };
            at.next_multiple_of(alignment) + size
        }
        Shape::Alias(alias) => end(&alias.content, at, limit)?,
        Shape::Struct(aggregate) => {
            let mut members = aggregate.members.iter();
            members.try_fold(at, |at, member| end(&member.type_code, at, limit))?
        }
        Shape::Array(elements) => run_end(&elements.element, elements.count as usize, at, limit)?,
        _ => return None,
    };
    (end <= limit).then_some(end)
}
