//! Answers of a recorded session: each is used once, in order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use rtorb::ExceptionKind;
use rtorb_os::sync::Mutex;
use serde_json::{Map, Value as Json};

use super::NoAnswer;
use super::answer::{Answer, AnswersError, Context, Mistakes, entry};
use crate::interface::Operation;
use crate::json::{EXCEPTION, from_json, parse};
use crate::recording::{Record, named};

/// A recorded session. A call gets the answer of the first record that has its operation and arguments and is not used.
#[derive(Debug)]
pub struct Session {
    records: Mutex<Records>,
    /// Operations that the recorded server did not have.
    refused: HashSet<String>,
}

/// The answers by operation, and then by [`key`] of the arguments.
type Records = HashMap<String, HashMap<String, VecDeque<Answer>>>;

/// The delay before each answer of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delays {
    /// Answers come at once.
    #[default]
    None,
    /// Answers come after the recorded duration.
    Recorded,
}

impl Session {
    /// The repository id of the interface in the first line of a session; `None` if that is no record.
    pub fn interface(text: &str) -> Option<String> {
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        let record: Record = parse(first).ok()?;
        Some(record.interface)
    }

    /// Reads a session, one record a line, and checks it.
    ///
    /// # Errors
    /// [`AnswersError`] has the line, the place in it, and the expected type.
    pub fn parse(text: &str, delays: Delays, context: Context<'_>) -> Result<Self, AnswersError> {
        let mut records = Records::new();
        let mut refused = HashSet::new();
        let mut mistakes = Mistakes::default();
        let lines = text.lines().enumerate();
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let read = recorded(index, line, delays, context);
            let recorded = match mistakes.keep(read) {
                Some(RecordedLine::Call(recorded)) => recorded,
                Some(RecordedLine::Refused(operation)) => {
                    refused.insert(operation);
                    continue;
                }
                None => continue,
            };
            let of_operation = records.entry(recorded.operation).or_default();
            let answers = of_operation.entry(recorded.key).or_default();
            answers.push_back(recorded.answer);
        }
        mistakes.into_result(Self {
            records: Mutex::new(records),
            refused,
        })
    }

    /// True if the recorded server did not have that operation.
    pub(super) fn has_refused(&self, operation: &str) -> bool {
        self.refused.contains(operation)
    }

    pub(super) fn next(
        &self,
        operation: &str,
        arguments: &Map<String, Json>,
    ) -> Result<Answer, NoAnswer> {
        let mut records = self.records.lock();
        let of_operation = records.get_mut(operation).ok_or(NoAnswer::Operation)?;
        let answers = of_operation
            .get_mut(&key(arguments))
            .ok_or(NoAnswer::NotRecorded)?;
        answers.pop_front().ok_or(NoAnswer::UsedUp)
    }

    pub(super) fn unused(&self) -> usize {
        let records = self.records.lock();
        records
            .values()
            .flat_map(HashMap::values)
            .map(VecDeque::len)
            .sum()
    }
}

/// A recorded call: its operation, the key of its arguments, and its answer.
struct RecordedCall {
    operation: String,
    key: String,
    answer: Answer,
}

/// The content of a line.
enum RecordedLine {
    Call(RecordedCall),
    /// A request for this operation, which the interface does not have. Every server answers it without a record.
    Refused(String),
}

/// Reads a line.
fn recorded(
    index: usize,
    line: &str,
    delays: Delays,
    context: Context<'_>,
) -> Result<RecordedLine, AnswersError> {
    let place = format!("line {}", index + 1);
    let record = parse::<Record>(line);
    let record = record.map_err(|error| entry(&place, error.to_string()))?;
    if is_unknown(&record, context) {
        return Ok(RecordedLine::Refused(record.operation));
    }
    let delay = match delays {
        Delays::None => Duration::ZERO,
        Delays::Recorded => Duration::from_nanos(record.duration_ns),
    };
    let operation = context.operation(&record.operation, &place)?;
    let place = format!("{place} ({})", operation.name);
    if let Some(missing) = &record.missing {
        let problem = format!("this call cannot be replayed: {missing}");
        return Err(entry(&place, problem));
    }
    let key = recorded_key(record.arguments, &operation, context, &place)?;
    let outcome = context.outcome(&operation, record.answer, record.raises, &place)?;
    Ok(RecordedLine::Call(RecordedCall {
        operation: operation.name.clone(),
        key,
        answer: Answer { outcome, delay },
    }))
}

/// True for a request of an operation that the interface does not have.
fn is_unknown(record: &Record, context: Context<'_>) -> bool {
    let raised = record.raises.as_ref().and_then(|it| it.get(EXCEPTION));
    raised.is_some_and(|it| *it == ExceptionKind::BadOperation.repository_id())
        && context.interface.operation(&record.operation).is_none()
}

/// The key of recorded arguments, in the form that the arguments of a call have.
fn recorded_key(
    mut arguments: Map<String, Json>,
    operation: &Operation,
    context: Context<'_>,
    place: &str,
) -> Result<String, AnswersError> {
    let mut inputs = Vec::new();
    for parameter in operation.inputs() {
        let given = arguments.remove(&parameter.name);
        if given.is_none() {
            let null = from_json(context.types, &Json::Null, &parameter.type_code);
            null.map_err(|error| {
                let error = error.missing(&format!("the argument `{}`", parameter.name));
                entry(place, error.to_string())
            })?;
        }
        let mut value = given.unwrap_or_default();
        context.own.resolve_in(&mut value);
        inputs.push(value);
    }
    if let Some(name) = arguments.keys().next() {
        let signature = operation.signature(context.types);
        let problem = format!("there is no argument `{name}` in {signature}");
        return Err(entry(place, problem));
    }
    // Equal values may be written differently, so they are read and written again.
    let inputs = operation.inputs_from_json(context.types, &inputs);
    let inputs = inputs.map_err(|error| entry(place, error.to_string()))?;
    let inputs = operation.inputs_to_json(context.types, &inputs);
    let inputs = inputs.map_err(|error| entry(place, error.to_string()))?;
    Ok(key(&named(operation, context.own, inputs)))
}

/// The values of arguments as text. Their order does not matter, because it is the same for all calls of an operation.
fn key(arguments: &Map<String, Json>) -> String {
    let mut key = String::new();
    for value in arguments.values() {
        key.push_str(&value.to_string());
        key.push(' ');
    }
    key
}
