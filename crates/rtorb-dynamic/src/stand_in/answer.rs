//! An answer, and its JSON.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;

use crate::interface::{Interface, Operation};
use crate::json::JsonError;
use crate::own_reference::OwnReference;
use crate::request::{Failure, Results};
use crate::types::Types;

/// The interface and the types by which the JSON of answers is checked.
#[derive(Clone, Copy, Debug)]
pub struct Context<'c> {
    /// The interface.
    pub interface: &'c Interface,
    /// The types in it.
    pub types: &'c Types,
    /// The server's reference, which the JSON may name.
    pub own: &'c OwnReference,
}

/// A wrong table, or a wrong recorded session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswersError {
    /// Text that is no JSON or TOML, or has another form.
    #[error("{0}")]
    Form(String),
    /// A wrong row or line.
    #[error("{place}: {problem}")]
    Entry {
        /// The row or line.
        place: String,
        /// The mistake in it.
        problem: String,
    },
    /// JSON that is no value of its type.
    #[error(transparent)]
    Value(#[from] JsonError),
    /// Several wrong rows or lines: the first mistake of each.
    #[error("{}", lines_of(.0))]
    Several(Vec<AnswersError>),
}

/// The mistakes of rows or lines that are read one after the other.
#[derive(Default)]
pub(super) struct Mistakes(Vec<AnswersError>);

impl Mistakes {
    /// Returns the value, or keeps the error and returns `None`. Returns `None` for each value after [`MISTAKES_MAX`] errors.
    pub(super) fn keep<T>(&mut self, read: Result<T, AnswersError>) -> Option<T> {
        if self.0.len() < MISTAKES_MAX {
            return read.map_err(|error| self.0.push(error)).ok();
        }
        None
    }

    /// Returns `value` if there are no mistakes.
    pub(super) fn into_result<T>(mut self, value: T) -> Result<T, AnswersError> {
        match self.0.len() {
            0 => Ok(value),
            1 => Err(self.0.remove(0)),
            _ => Err(AnswersError::Several(self.0)),
        }
    }
}

fn lines_of(errors: &[AnswersError]) -> String {
    let lines: Vec<String> = errors.iter().map(AnswersError::to_string).collect();
    lines.join("\n")
}

/// The most mistakes of a report.
const MISTAKES_MAX: usize = 20;

/// The outcome of a call, and the delay before it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) outcome: Result<Results, Failure>,
    pub(super) delay: Duration,
}

impl Context<'_> {
    /// The operation with that name. `place` is where the name stands.
    pub(super) fn operation(
        &self,
        name: &str,
        place: &str,
    ) -> Result<Arc<Operation>, AnswersError> {
        self.interface.operation(name).ok_or_else(|| {
            let advice = self.interface.suggestion(name);
            let advice = advice.map(|it| format!("; did you mean `{it}`?"));
            entry(
                place,
                format!(
                    "{} has no operation `{name}`{}",
                    self.interface,
                    advice.unwrap_or_default()
                ),
            )
        })
    }

    /// The results or the exception of a call. Without JSON, the answer is `null`.
    pub(super) fn outcome(
        &self,
        operation: &Operation,
        answer: Option<Json>,
        raises: Option<Json>,
        place: &str,
    ) -> Result<Result<Results, Failure>, AnswersError> {
        if answer.is_some() && raises.is_some() {
            let problem = "there is an `answer` and an exception in `raises`: remove one of them";
            return Err(entry(place, problem.to_owned()));
        }
        let within = |error: JsonError, key: &str| error.within(format!("{place}: {key}"));
        if let Some(mut raises) = raises {
            self.own.resolve_in(&mut raises);
            let failure = operation.failure_from_json(self.types, &raises);
            return Ok(Err(failure.map_err(|error| within(error, "raises"))?));
        }
        let is_missing = answer.is_none();
        let mut answer = answer.unwrap_or_default();
        self.own.resolve_in(&mut answer);
        let results = operation.results_from_json(self.types, &answer);
        let results = results.map_err(|error| {
            let error = if is_missing {
                error.missing("it")
            } else {
                error
            };
            within(error, "answer")
        });
        Ok(Ok(results?))
    }
}

pub(super) fn entry(place: &str, problem: String) -> AnswersError {
    let place = place.to_owned();
    AnswersError::Entry { place, problem }
}
