//! The file format of operations: names, readable times, and calls by name.

use rtorb_sched::text_file::{
    FileErrors, MISTAKES_MAX, Mistake, from_toml, line_of, nearest, read_text,
};
use rtorb_sched::times::parse_ns;
use rtorb_sched::{
    CallGraph, CallKind, Criticality, Importance, Operation, OperationCall, OperationKind,
    PriorityRange, Strategy,
};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::collections::HashMap;
use std::path::Path;
use toml::Spanned;

/// The operations to schedule, with the strategy and the range of priorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The strategy.
    pub strategy: Strategy,
    /// The range of priorities: CORBA priorities in rtorb.
    pub priorities: PriorityRange,
    /// The operations and their calls.
    pub graph: CallGraph,
    /// The handle of each operation (RtecScheduler::handle_t). In a file they count from 1.
    pub handles: Vec<i32>,
    /// The number of own threads of each operation; 0 shares the threads of its level.
    pub threads: Vec<u32>,
}

impl Description {
    /// Reads a TOML file as `docs/how-to/scheduling.md` describes it.
    ///
    /// # Errors
    /// [`FileErrors`] with the places of all mistakes.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FileErrors> {
        let path = path.as_ref();
        let text = read_text(path)?;
        Self::parse(&text).map_err(|mistakes| FileErrors::new(path, text, mistakes))
    }

    /// Reads the text of such a file, which errors call by a name.
    ///
    /// # Errors
    /// [`FileErrors`] with the places of all mistakes.
    pub fn of_text(name: &str, text: &str) -> Result<Self, FileErrors> {
        let errors = |mistakes| FileErrors::new(Path::new(name), text.to_owned(), mistakes);
        Self::parse(text).map_err(errors)
    }

    /// Parses a description, or returns all mistakes.
    fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let file: File = from_toml(text)?;
        check_sizes(&file).map_err(|reason| vec![Mistake::of_whole(reason)])?;
        let mut mistakes = Vec::new();
        let places = places(&file, text, &mut mistakes);
        let calls = calls(&file, &places, text, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let each = file.operation.iter();
        Ok(Self {
            strategy: file.strategy.0,
            priorities: PriorityRange {
                least_urgent: file.priorities.least_urgent.into(),
                most_urgent: file.priorities.most_urgent.into(),
            },
            handles: (1..).take(file.operation.len()).collect(),
            threads: each.clone().map(|operation| operation.threads).collect(),
            graph: CallGraph {
                operations: each.map(OperationForm::operation).collect(),
                calls,
            },
        })
    }
}

fn check_sizes(file: &File) -> Result<(), String> {
    if file.operation.is_empty() {
        return Err("there is no operation: write at least one [[operation]] with a name, a period and a worst".to_owned());
    }
    if file.operation.len() > OPERATIONS_MAX {
        return Err(format!("more than {OPERATIONS_MAX} operations"));
    }
    Ok(())
}

/// Returns the index of each operation by name, and adds wrong and repeated names to the mistakes.
fn places<'f>(file: &'f File, text: &str, mistakes: &mut Vec<Mistake>) -> HashMap<&'f str, usize> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, operation) in file.operation.iter().enumerate() {
        let name = operation.name.get_ref();
        let mut add = |reason| {
            if mistakes.len() < MISTAKES_MAX {
                mistakes.push(Mistake::at(text, operation.name.span(), reason));
            }
        };
        let before = places.insert(name, index);
        if let Err(reason) = check_name(name) {
            add(reason);
        } else if let Some(before) = before {
            let first = line_of(text, file.operation[before].name.span().start);
            add(format!(
                "there is an operation {name:?} in line {first} already: give one of them another name"
            ));
        }
    }
    places
}

/// Returns the calls of all operations, and adds those to unknown names to the mistakes.
fn calls(
    file: &File,
    places: &HashMap<&str, usize>,
    text: &str,
    mistakes: &mut Vec<Mistake>,
) -> Vec<OperationCall> {
    let mut calls = Vec::new();
    for (caller, operation) in file.operation.iter().enumerate() {
        for call in &operation.calls {
            let to = call.to.get_ref();
            if let Some(&callee) = places.get(to.as_str()) {
                calls.push(OperationCall {
                    caller,
                    callee,
                    count: call.count,
                    kind: call.way.into(),
                });
            } else if mistakes.len() < MISTAKES_MAX {
                let reason = format!(
                    "{:?} calls {to:?}, and there is no operation of that name: {}",
                    operation.name.get_ref(),
                    nearest(to, places.keys().copied()).map_or_else(
                        || "write an [[operation]] with it, or take the call out".to_owned(),
                        |name| format!("did you mean {name:?}?")
                    )
                );
                mistakes.push(Mistake::at(text, call.to.span(), reason));
            }
        }
    }
    calls
}

/// Checks the name of an operation: printable and not too long.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!(
            "{name:?} is no name: 1 to {NAME_BYTES_MAX} bytes of text without control characters"
        ));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "rates_first")]
    strategy: Named,
    #[serde(default)]
    priorities: Priorities,
    operation: Vec<OperationForm>,
}

struct Named(Strategy);

fn rates_first() -> Named {
    Named(Strategy::RateMonotonic)
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let text = String::deserialize(value)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Priorities {
    least_urgent: CorbaPriority,
    most_urgent: CorbaPriority,
}

/// Leaves the ends of the host's range to kernel threads and to programs that must still run.
impl Default for Priorities {
    fn default() -> Self {
        Self {
            least_urgent: CorbaPriority(LEAST_URGENT),
            most_urgent: CorbaPriority(MOST_URGENT),
        }
    }
}

struct CorbaPriority(i16);

impl From<CorbaPriority> for i32 {
    fn from(priority: CorbaPriority) -> Self {
        priority.0.into()
    }
}

impl<'de> Deserialize<'de> for CorbaPriority {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(value)?;
        let fits = i16::try_from(number).ok().filter(|number| *number >= 0);
        fits.map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "{number} is no CORBA priority: 0 to 32767, the larger the more urgent"
            ))
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationForm {
    name: Spanned<String>,
    #[serde(default)]
    kind: KindName,
    #[serde(default, deserialize_with = "positive")]
    period: Option<u64>,
    #[serde(default, deserialize_with = "positive")]
    deadline: Option<u64>,
    #[serde(default, deserialize_with = "time")]
    worst: u64,
    #[serde(default, deserialize_with = "some_time")]
    typical: Option<u64>,
    #[serde(default, deserialize_with = "time")]
    jitter: u64,
    #[serde(default, deserialize_with = "time")]
    blocking: u64,
    #[serde(default)]
    criticality: Criticality,
    #[serde(default)]
    importance: Importance,
    #[serde(default)]
    threads: u32,
    #[serde(default)]
    calls: Vec<CallTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallTable {
    to: Spanned<String>,
    #[serde(default = "once")]
    count: u32,
    #[serde(default)]
    way: WayName,
}

fn once() -> u32 {
    1
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WayName {
    OneWay,
    #[default]
    TwoWay,
}

impl From<WayName> for CallKind {
    fn from(name: WayName) -> Self {
        match name {
            WayName::OneWay => Self::OneWay,
            WayName::TwoWay => Self::TwoWay,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindName {
    #[default]
    Operation,
    Conjunction,
    Disjunction,
    Remote,
}

impl OperationForm {
    fn operation(&self) -> Operation {
        Operation {
            name: self.name.get_ref().clone(),
            kind: match self.kind {
                KindName::Operation => OperationKind::Operation,
                KindName::Conjunction => OperationKind::Conjunction,
                KindName::Disjunction => OperationKind::Disjunction,
                KindName::Remote => OperationKind::Remote,
            },
            period_ns: self.period,
            deadline_ns: self.deadline,
            worst_ns: self.worst,
            typical_ns: self.typical.unwrap_or(self.worst),
            jitter_ns: self.jitter,
            blocking_ns: self.blocking,
            criticality: self.criticality,
            importance: self.importance,
        }
    }
}

fn time<'de, D: Deserializer<'de>>(value: D) -> Result<u64, D::Error> {
    parse_ns(&String::deserialize(value)?).map_err(D::Error::custom)
}

fn some_time<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    time(value).map(Some)
}

fn positive<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    match time(value)? {
        0 => Err(D::Error::custom(
            "0 is no period and no deadline: leave it out where it comes from the callers",
        )),
        ns => Ok(Some(ns)),
    }
}

/// The greatest number in a file and in a service; see `SchedulingConfig`.
pub(super) const OPERATIONS_MAX: usize = 100_000;
pub(super) const NAME_BYTES_MAX: usize = 256;
/// The default range.
pub(super) const LEAST_URGENT: i16 = 1;
pub(super) const MOST_URGENT: i16 = 80;

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
strategy = "muf"
priorities = { least_urgent = 10, most_urgent = 20 }

[[operation]]
name = "sensor"
period = "50ms"
worst = "2ms"
criticality = "very-high"
calls = [{ to = "filter", count = 2 }, { to = "show", way = "one-way" }]

[[operation]]
name = "filter"
worst = "100us"

[[operation]]
name = "show"
worst = "1.5ms"
deadline = "40ms"
threads = 2
"#;

    #[test]
    fn a_file_is_read() {
        let read = Description::parse(GOOD).expect("a description");
        assert_eq!(read.strategy, Strategy::MaximumUrgencyFirst);
        assert_eq!(read.priorities.most_urgent, 20);
        assert_eq!(read.handles, [1, 2, 3]);
        assert_eq!(read.threads, [0, 0, 2]);
        let sensor = &read.graph.operations[0];
        assert_eq!(
            (sensor.period_ns, sensor.worst_ns, sensor.typical_ns),
            (Some(50_000_000), 2_000_000, 2_000_000)
        );
        assert_eq!(sensor.criticality, Criticality::VeryHigh);
        assert_eq!(read.graph.calls[1].kind, CallKind::OneWay);
        assert_eq!(
            (read.graph.calls[0].callee, read.graph.calls[0].count),
            (1, 2)
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let cases = [
            ("period = \"50ms\"", "period = \"50\"", 7, "50ms"),
            ("period = \"50ms\"", "period = \"0ms\"", 7, "callers"),
            (
                "to = \"filter\"",
                "to = \"filtre\"",
                10,
                "did you mean \"filter\"?",
            ),
            (
                "name = \"filter\"",
                "name = \"sensor\"",
                13,
                "in line 6 already",
            ),
            ("strategy = \"muf\"", "strategy = \"fifo\"", 2, "rms, dms"),
            ("most_urgent = 20", "most_urgent = 40000", 3, "32767"),
            ("worst = \"1.5ms\"", "wrost = \"1.5ms\"", 18, "worst"),
            (
                "criticality = \"very-high\"",
                "criticality = \"top\"",
                9,
                "very-high",
            ),
            ("name = \"show\"", "name = \"\"", 17, "256"),
        ];
        for (right, wrong, line, said) in cases {
            let text = GOOD.replacen(right, wrong, 1);
            let mistakes = Description::parse(&text).expect_err(wrong);
            let Mistake {
                line: at, reason, ..
            } = &mistakes[0];
            assert_eq!(*at, Some(line), "{wrong}: {reason}");
            assert!(reason.contains(said), "{wrong}: {reason}");
        }
    }

    #[test]
    fn all_mistakes_are_found_at_once() {
        let lines = |changes: &[(&str, &str)]| {
            let change =
                |text: String, (right, wrong): &(&str, &str)| text.replacen(right, wrong, 1);
            let text = changes.iter().fold(GOOD.to_owned(), change);
            let mistakes = Description::parse(&text).expect_err("mistakes");
            let mut lines: Vec<_> = mistakes.iter().filter_map(|one| one.line).collect();
            lines.sort_unstable();
            lines
        };
        let of_form = [
            ("period = \"50ms\"", "period = \"50\""),
            ("count = 2", "cuont = 2"),
            ("name = \"filter\"", ""),
            ("threads = 2", "threads = \"2\""),
        ];
        assert_eq!(lines(&of_form), [7, 10, 12, 20]);
        let of_meaning = [
            ("to = \"filter\"", "to = \"filtre\""),
            ("to = \"show\"", "to = \"shwo\""),
            ("name = \"show\"", "name = \"filter\""),
        ];
        assert_eq!(lines(&of_meaning), [10, 10, 17]);
    }

    #[test]
    fn a_file_that_is_not_there_is_told() {
        let said = Description::read("/nowhere/schedule.toml")
            .unwrap_err()
            .to_string();
        assert!(said.contains("/nowhere/schedule.toml"), "{said}");
    }
}
