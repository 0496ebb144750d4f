//! Finds every mistake in the form of a text: unknown and missing fields, and wrong values.
//!
//! A right text never comes here: the reader of its format is faster, but stops at the first mistake. The search reads a tree of
//! values again after each mistake, without the part that has it. An invented value takes the place of a missing
//! one.

use core::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue, Error, ValueDeserializer};

use super::{Mistake, nearest};

/// Returns the mistakes of TOML in the form of a `T`.
pub(super) fn of_toml<T: DeserializeOwned>(text: &str) -> Vec<Mistake> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let span = root.span();
        let root = Spanned::new(span, DeValue::Table(root.into_inner()));
        return of_tree::<T>(text, root, |field| format!("{field} = ..."));
    }
    let mut mistakes: Vec<Mistake> = Vec::new();
    for error in &errors {
        let mistake = mistake(text, error);
        // What follows in a line that cannot be parsed follows from the first mistake in it.
        let is_new = mistakes.last().is_none_or(|last| last.line != mistake.line);
        if is_new && mistakes.len() < MISTAKES_MAX {
            mistakes.push(mistake);
        }
    }
    mistakes
}

/// Returns the mistakes of a tree of values in the form of a `T`. `assignment` returns how a missing field is written. Nothing is found in
/// a text that is too long to be read many times.
pub(super) fn of_tree<T: DeserializeOwned>(
    text: &str,
    root: Spanned<DeValue>,
    assignment: impl Fn(&str) -> String,
) -> Vec<Mistake> {
    if text.len() > SEARCHED_BYTES_MAX {
        return Vec::new();
    }
    let mut search = Search {
        text,
        root,
        mistakes: Vec::new(),
        missing: Vec::new(),
        removed: Vec::new(),
        invented: 0,
    };
    for _ in 0..STEPS_MAX {
        let Err(error) = T::deserialize(ValueDeserializer::from(search.root.clone())) else {
            break;
        };
        let found = search.mistakes.len() + search.missing.len();
        if found == MISTAKES_MAX || !search.go_beyond(&error) {
            break;
        }
    }
    let missing = search.missing.iter().map(|(span, fields)| {
        let names: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
        let are = if fields.len() == 1 { "is" } else { "are" };
        let written: Vec<String> = fields.iter().map(|field| assignment(field)).collect();
        let (names, written) = (names.join(", "), written.join(", "));
        let reason = format!("{names} {are} missing here: write {written}");
        Mistake::at(text, span.clone(), cut(reason))
    });
    search.mistakes.into_iter().chain(missing).collect()
}

/// The state of a search for mistakes.
struct Search<'t> {
    text: &'t str,
    root: Spanned<DeValue<'t>>,
    mistakes: Vec<Mistake>,
    /// The missing fields of each table, with its place.
    missing: Vec<(Range<usize>, Vec<String>)>,
    /// The fields with a mistake, each with its table's place.
    removed: Vec<(Range<usize>, String)>,
    /// The number of values in the places of missing and wrong ones. Their places are beyond the text.
    invented: usize,
}

/// A step from a value to a part of it.
#[derive(Clone)]
enum PathStep {
    Field(String),
    Element(usize),
}

impl Search<'_> {
    /// Adds the mistake unless it follows from another one, and changes the tree so that the next one is found. Returns false if
    /// the search cannot go on.
    fn go_beyond(&mut self, error: &Error) -> bool {
        let Some(span) = error.span() else {
            return self.add(error);
        };
        let path = path_to(&self.root, &span);
        if self.is_invented(&span) {
            return self.invent_another(&path);
        }
        if let Some(field) = quoted(error.message(), "missing field ") {
            let path = path_to_table(&self.root, &span);
            if !self.removed.contains(&(span.clone(), field.to_owned())) {
                self.add_missing(span, field);
            }
            return self.invent(&path, field);
        }
        let end = self.text.len();
        let about = value_at(&mut self.root, &path);
        let follows = about.is_some_and(|value| has_place_beyond(value, end));
        (follows || self.add(error)) && self.remove(&path)
    }

    /// Adds a mistake. Returns false if it was just added: its part could not be removed.
    fn add(&mut self, error: &Error) -> bool {
        let mistake = mistake(self.text, error);
        let is_new = self.mistakes.last() != Some(&mistake);
        if is_new {
            self.mistakes.push(mistake);
        }
        is_new && error.span().is_some()
    }

    fn add_missing(&mut self, span: Range<usize>, field: &str) {
        match self.missing.iter_mut().find(|(table, _)| *table == span) {
            Some((_, fields)) => fields.push(field.to_owned()),
            None => self.missing.push((span, vec![field.to_owned()])),
        }
    }

    /// Removes a part. A plain value in an array is replaced first, because the number of values may be fixed.
    fn remove(&mut self, path: &[PathStep]) -> bool {
        let (place, end) = (self.next_place(), self.text.len());
        let Some((last, parents)) = path.split_last() else {
            return false;
        };
        let Some(parent) = value_at(&mut self.root, parents) else {
            return false;
        };
        let span = parent.span();
        match (parent.get_mut(), last) {
            (DeValue::Table(table), PathStep::Field(name)) => {
                self.removed.push((span, name.clone()));
                table.remove(name.as_str()).is_some()
            }
            (DeValue::Array(all), PathStep::Element(index)) => {
                let Some(element) = all.get_mut(*index) else {
                    return false;
                };
                if element.get_ref().is_table() || element.span().start > end {
                    let others = all.iter().enumerate().filter(|(place, _)| place != index);
                    *all = others.map(|(_, value)| value.clone()).collect();
                } else {
                    *element = Spanned::new(place..place, value_of_kind(0));
                    self.invented += 1;
                }
                true
            }
            _ => false,
        }
    }

    /// Adds a value for a missing field of a table.
    fn invent(&mut self, path: &[PathStep], field: &str) -> bool {
        let place = self.next_place();
        let table = value_at(&mut self.root, path).map(|value| value.get_mut());
        let Some(DeValue::Table(table)) = table else {
            return false;
        };
        let key = Spanned::new(place..place, field.to_owned().into());
        table.insert(key, Spanned::new(place..place, value_of_kind(0)));
        self.invented += 1;
        true
    }

    /// Replaces an invented value by one of another kind. If none fits, removes it from its array, or else the table that it is in.
    fn invent_another(&mut self, path: &[PathStep]) -> bool {
        let Some(value) = value_at(&mut self.root, path) else {
            return false;
        };
        let place = value.span().start + 1;
        let kind = (place - self.text.len() - 1) % KINDS;
        if kind != 0 {
            *value = Spanned::new(place..place, value_of_kind(kind));
            return true;
        }
        match path {
            [.., PathStep::Element(_)] => self.remove(path),
            [table @ .., _] => self.remove(table),
            [] => false,
        }
    }

    /// Returns the place of the next invented value.
    fn next_place(&self) -> usize {
        self.text.len() + 1 + self.invented * KINDS
    }

    fn is_invented(&self, span: &Range<usize>) -> bool {
        span.start > self.text.len()
    }
}

/// Returns a value that stands for a missing field: text first, because it may also be a time.
fn value_of_kind(kind: usize) -> DeValue<'static> {
    match kind {
        0 => DeValue::String("1ms".into()),
        1 => DeValue::Integer(DeInteger::default()),
        2 => DeValue::Array(DeArray::default()),
        3 => DeValue::Table(DeTable::new()),
        _ => DeValue::Boolean(false),
    }
}

/// Returns the path to the part that an error is about: the field with the name there, else the smallest value there.
fn path_to(root: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Vec<PathStep> {
    best_path(root, &|key, value| {
        if key.is_some_and(|key| key.contains(&span.start)) {
            return Some(0);
        }
        let is_there = value == span || value.contains(&span.start);
        is_there.then(|| 1 + value.len().abs_diff(span.len()))
    })
}

/// Returns the path to the table with exactly this place; the root's if there is none.
fn path_to_table(root: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Vec<PathStep> {
    best_path(root, &|_, value| (value == span).then_some(1))
}

/// The distance of a value, with the place of its name and its own, from what is looked for; none if it is another one.
type Distance<'a> = &'a dyn Fn(Option<&Range<usize>>, &Range<usize>) -> Option<usize>;

/// Returns the path to the part with the smallest distance. Of several, the innermost is taken.
fn best_path(root: &Spanned<DeValue<'_>>, distance: Distance) -> Vec<PathStep> {
    let (mut path, mut best) = (Vec::new(), (usize::MAX, Vec::new()));
    look(root, distance, &mut path, &mut best);
    best.1
}

fn look(
    value: &Spanned<DeValue<'_>>,
    distance: Distance,
    path: &mut Vec<PathStep>,
    best: &mut (usize, Vec<PathStep>),
) {
    let mut visit = |step, key: Option<Range<usize>>, part: &Spanned<DeValue<'_>>| {
        path.push(step);
        if let Some(found) = distance(key.as_ref(), &part.span()).filter(|found| *found <= best.0) {
            *best = (found, path.clone());
        }
        look(part, distance, path, best);
        path.pop();
    };
    match value.get_ref() {
        DeValue::Table(table) => {
            for (name, part) in table {
                let field = PathStep::Field(name.get_ref().to_string());
                visit(field, Some(name.span()), part);
            }
        }
        DeValue::Array(all) => {
            for (index, part) in all.iter().enumerate() {
                visit(PathStep::Element(index), None, part);
            }
        }
        _ => {}
    }
}

fn value_at<'v, 't>(
    root: &'v mut Spanned<DeValue<'t>>,
    path: &[PathStep],
) -> Option<&'v mut Spanned<DeValue<'t>>> {
    path.iter()
        .try_fold(root, |value, step| match (value.get_mut(), step) {
            (DeValue::Table(table), PathStep::Field(name)) => table.get_mut(name.as_str()),
            (DeValue::Array(all), PathStep::Element(index)) => all.get_mut(*index),
            _ => None,
        })
}

/// Returns true if a part of a value has a place beyond the text.
fn has_place_beyond(value: &Spanned<DeValue<'_>>, end: usize) -> bool {
    value.span().start > end
        || match value.get_ref() {
            DeValue::Table(table) => table.values().any(|part| has_place_beyond(part, end)),
            DeValue::Array(all) => all.iter().any(|part| has_place_beyond(part, end)),
            _ => false,
        }
}

/// Returns the mistake that an error of the reader of TOML is.
pub(super) fn mistake(text: &str, error: &Error) -> Mistake {
    let reason = cut(clearer(&error.message().replace('\n', "; ")));
    match error.span() {
        Some(span) => Mistake::at(text, span, reason),
        None => Mistake::of_whole(reason),
    }
}

/// Rewords an error of a reader about an unknown field or word. All known ones are many: they are named only if none is similar, on
/// lines of their own.
fn clearer(reason: &str) -> String {
    for what in ["unknown field ", "unknown variant "] {
        let known = reason.split('`').skip(3).step_by(2);
        if let Some(wrong) = quoted(reason, what) {
            return match nearest(wrong, known) {
                Some(meant) => format!("{what}`{wrong}`: did you mean `{meant}`?"),
                None => wrapped(reason),
            };
        }
    }
    reason.to_owned()
}

/// Breaks a text that has a list into lines at its spaces.
fn wrapped(text: &str) -> String {
    let mut wrapped = String::new();
    let mut line_begins = 0;
    for word in text.split(' ') {
        if wrapped.len() - line_begins + word.len() > LINE_BYTES_MAX {
            line_begins = wrapped.len();
            wrapped.push_str("\n  ");
        } else if !wrapped.is_empty() {
            wrapped.push(' ');
        }
        wrapped.push_str(word);
    }
    wrapped
}

/// The bytes of a line of a list, if no word is longer.
const LINE_BYTES_MAX: usize = 90;

/// Truncates a message: a quotation may be as long as the file.
pub(crate) fn cut(mut reason: String) -> String {
    if reason.len() > REASON_BYTES_MAX {
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        reason.push_str(" ...");
    }
    reason
}

fn quoted<'a>(reason: &'a str, before: &str) -> Option<&'a str> {
    reason
        .strip_prefix(before)?
        .strip_prefix('`')?
        .split_once('`')
        .map(|(field, _)| field)
}

/// The maximum of mistakes of one run: more than anyone corrects at once.
pub const MISTAKES_MAX: usize = 20;
/// A cycle of calls with its names fits.
const REASON_BYTES_MAX: usize = 40_000;
/// Each mistake takes a few steps; a missing field takes one for each kind of value.
const STEPS_MAX: usize = 10 * MISTAKES_MAX;
/// More than anyone writes; each step copies and reads all of it.
const SEARCHED_BYTES_MAX: usize = 4 << 20;
/// The number of kinds of values for a missing field.
const KINDS: usize = 5;

#[cfg(test)]
mod tests {
    use super::super::{from_json, from_toml};
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its form is read")]
    struct Plant {
        name: String,
        size: u8,
        #[serde(default)]
        valves: Vec<Valve>,
        pump: Option<Pump>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its form is read")]
    struct Valve {
        id: i64,
        place: Vec<u8>,
        is_open: bool,
        note: Option<String>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only its form is read")]
    struct Pump {
        kind: Kind,
        speed: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Gear,
    }

    /// Returns the lines and the beginnings of the mistakes, in the order of the lines.
    fn found(mut mistakes: Vec<Mistake>) -> Vec<String> {
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.bytes.start));
        let shown = |one: &Mistake| format!("{}: {}", one.line.unwrap_or(0), one.reason);
        mistakes.iter().map(shown).collect()
    }

    fn check(found: &[String], expected: &[&str]) {
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{expected}: {found}");
        }
    }

    #[test]
    fn all_mistakes_of_nested_tables_are_found_in_toml() {
        let text = "size = 300\nnmae = \"a\"\n[[valves]]\nid = \"x\"\nplace = [1, 2]\nis_open = 1\n\
                    [[valves]]\nplace = [1, 900]\n[[valves]]\nid = 1\nplace = [1, 2]\nis_open = true\nnot = \"x\"\n\
                    [pump]\nkind = \"geer\"\nspeed = 2\n";
        let expected = [
            "1: `name` is missing here",
            "1: invalid value: integer `300`, expected u8",
            "2: unknown field `nmae`",
            "4: invalid type: string \"x\", expected i64",
            "6: invalid type: integer `1`, expected a boolean",
            "7: `id`, `is_open` are missing here: write id = ..., is_open = ...",
            "8: invalid value: integer `900`, expected u8",
            "13: unknown field `not`",
            "15: unknown variant `geer`: did you mean `gear`?",
        ];
        check(&found(from_toml::<Plant>(text).unwrap_err()), &expected);
    }

    #[test]
    fn all_mistakes_of_nested_objects_are_found_in_json() {
        let text = "{\n  \"size\": -1,\n  \"na\\u006dee\": \"a\\\"b\",\n  \"valves\": [\n    {\"id\": 1.5, \"place\": [true], \"is_open\": null},\n    \
                    {\"place\": [1, 2], \"is_open\": false, \"note\": null}\n  ],\n  \"pump\": {\"kind\": \"gear\", \"speed\": \"1e3\"}\n}\n";
        let expected = [
            "1: `name` is missing here",
            "2: invalid value: integer `-1`, expected u8",
            "3: unknown field `namee`",
            "5: `is_open` is missing here",
            "5: invalid type: floating point `1.5`, expected i64",
            "5: invalid type: boolean `true`, expected u8",
            "6: `id` is missing here: write \"id\": ...",
            "8: invalid type: string \"1e3\", expected f64",
        ];
        check(&found(from_json::<Plant>(text).unwrap_err()), &expected);
    }

    #[test]
    fn text_that_is_no_json_is_a_mistake_at_its_place() {
        for (text, line, byte) in [
            ("", 1, 0),
            ("{\"name\": 1,\n  \"size\" 2}", 2, 21),
            ("[1, 2", 1, 4),
            ("{} x", 1, 3),
        ] {
            let mistakes = from_json::<Plant>(text).unwrap_err();
            let [mistake] = &mistakes[..] else {
                panic!("{mistakes:?}")
            };
            assert_eq!(mistake.line, Some(line), "{text}: {mistake:?}");
            assert_eq!(mistake.bytes.start, byte, "{text}: {mistake:?}");
            assert!(!mistake.reason.contains("column"), "{mistake:?}");
        }
    }

    #[test]
    fn a_text_that_is_nested_deep_shows_its_first_mistake() {
        let deep = |times: usize| format!("{}{}", "[".repeat(times), "]".repeat(times));
        let pump = format!("{{\"pump\": {{\"x\": {}}}}}", deep(1_000_000));
        check(
            &found(from_json::<Plant>(&pump).unwrap_err()),
            &["1: missing field"],
        );
        let pump = format!("{{\"pump\": {{\"x\": {}}}}}", deep(100));
        let mistakes = from_json::<Plant>(&pump).unwrap_err();
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    }

    #[test]
    fn a_text_with_very_many_mistakes_shows_the_first_ones() {
        let valves = "[[valves]]\n".repeat(1000);
        let mistakes = from_toml::<Plant>(&valves).unwrap_err();
        assert_eq!(mistakes.len(), MISTAKES_MAX);
        let unknown: Vec<String> = (0..1000).map(|number| format!("x{number} = 1\n")).collect();
        let mistakes = from_toml::<Plant>(&unknown.concat()).unwrap_err();
        assert_eq!(mistakes.len(), MISTAKES_MAX);
    }
}
