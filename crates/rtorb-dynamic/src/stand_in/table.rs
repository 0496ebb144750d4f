//! Answers in a table: rows with an operation, a condition on its arguments, and what the client gets.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::NoAnswer;
use super::answer::{Answer, AnswersError, Context, Mistakes, entry};
use super::condition::{checked, holds};
use crate::interface::Operation;
use crate::json::{JsonError, parse};

/// A table of answers. The first row of an operation whose condition holds is the answer.
#[derive(Debug)]
pub struct Table {
    /// The rows by operation.
    rows: HashMap<String, Vec<Row>>,
}

#[derive(Debug)]
struct Row {
    /// The conditions by the names of arguments.
    condition: Map<String, Json>,
    answer: Answer,
}

/// A row as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowText {
    operation: String,
    #[serde(default)]
    when: Map<String, Json>,
    answer: Option<Json>,
    raises: Option<Json>,
    #[serde(default)]
    delay_ms: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    answers: Vec<Json>,
}

impl Table {
    /// Reads a table in JSON, and checks it.
    ///
    /// # Errors
    /// [`AnswersError`] has the row, the place in it, and the expected type.
    pub fn from_json(text: &str, context: Context<'_>) -> Result<Self, AnswersError> {
        let read = parse(text);
        Self::new(
            read.map_err(|error| AnswersError::Form(error.to_string()))?,
            context,
        )
    }

    /// Reads a table in TOML, and checks it.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_toml(text: &str, context: Context<'_>) -> Result<Self, AnswersError> {
        let read = toml::from_str(text);
        Self::new(
            read.map_err(|error| AnswersError::Form(error.to_string()))?,
            context,
        )
    }

    fn new(text: TableText, context: Context<'_>) -> Result<Self, AnswersError> {
        let mut rows: HashMap<_, Vec<_>> = HashMap::new();
        let mut mistakes = Mistakes::default();
        for (index, json) in text.answers.into_iter().enumerate() {
            if let Some((operation, row)) = mistakes.keep(row(index, json, context)) {
                rows.entry(operation).or_default().push(row);
            }
        }
        mistakes.into_result(Self { rows })
    }

    pub(super) fn find(
        &self,
        operation: &str,
        arguments: &Map<String, Json>,
    ) -> Result<&Answer, NoAnswer> {
        let rows = self.rows.get(operation).ok_or(NoAnswer::Operation)?;
        let holds = |row: &&Row| {
            let mut parts = row.condition.iter();
            parts.all(|(name, part)| arguments.get(name).is_some_and(|it| holds(part, it)))
        };
        let found = rows.iter().find(holds);
        found
            .map(|row| &row.answer)
            .ok_or(NoAnswer::Arguments { rows: rows.len() })
    }
}

/// Reads a row. Returns it with the name of its operation.
fn row(index: usize, json: Json, context: Context<'_>) -> Result<(String, Row), AnswersError> {
    let place = format!("row {}", index + 1);
    let row = serde_json::from_value::<RowText>(json);
    let row = row.map_err(|error| entry(&place, error.to_string()))?;
    let operation = context.operation(&row.operation, &place)?;
    let place = format!("{place} ({})", operation.name);
    let row = Row::new(row, &operation, context, &place)?;
    Ok((operation.name.clone(), row))
}

impl Row {
    fn new(
        text: RowText,
        operation: &Operation,
        context: Context<'_>,
        place: &str,
    ) -> Result<Self, AnswersError> {
        if !(0.0..=DELAY_MS_MAX).contains(&text.delay_ms) {
            let problem = format!(
                "`delay_ms` is {}, but 0 to {DELAY_MS_MAX} is allowed",
                text.delay_ms
            );
            return Err(entry(place, problem));
        }
        let mut condition = Map::new();
        for (name, mut part) in text.when {
            let parameter = operation.inputs().find(|it| it.name == name);
            let parameter = parameter.ok_or_else(|| {
                let signature = operation.signature(context.types);
                entry(
                    place,
                    format!("when: there is no argument `{name}` in {signature}"),
                )
            })?;
            let within = |error: JsonError| error.within(format!("{place}: when.{name}"));
            context.own.resolve_in(&mut part);
            let mut part = checked(context.types, &part, &parameter.type_code).map_err(within)?;
            context.own.name_in(&mut part);
            condition.insert(name, part);
        }
        let outcome = context.outcome(operation, text.answer, text.raises, place)?;
        let delay = Duration::from_secs_f64(text.delay_ms / 1000.0);
        let answer = Answer { outcome, delay };
        Ok(Self { condition, answer })
    }
}

/// An hour: longer delays are a mistake.
const DELAY_MS_MAX: f64 = 3_600_000.0;
