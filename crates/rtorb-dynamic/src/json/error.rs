//! The error of JSON that is no value of its type.

use core::fmt;

/// JSON that is no value of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The steps to the wrong place, innermost first.
    pub(super) steps: Vec<String>,
    /// The expected type, as IDL.
    pub expected: String,
    /// The mistake.
    pub problem: String,
    /// The text of a right value, if it is short.
    pub example: Option<String>,
}

impl JsonError {
    /// An error in a whole value.
    pub(crate) fn new(problem: &str, expected: &str) -> Self {
        Self {
            steps: Vec::new(),
            expected: expected.to_owned(),
            problem: problem.to_owned(),
            example: None,
        }
    }

    /// Converts the error of `null` in the place of a missing value to the error of that value.
    #[must_use]
    pub(crate) fn missing(self, what: &str) -> Self {
        let problem = format!("{what} is missing");
        Self { problem, ..self }
    }

    /// The place in the JSON: `.members[2].name`, empty for the whole.
    pub fn place(&self) -> String {
        self.steps.iter().rev().map(String::as_str).collect()
    }

    /// The same error in a larger value. `step` names the part of it that has the error.
    #[must_use]
    pub fn within(mut self, step: impl Into<String>) -> Self {
        self.steps.push(step.into());
        self
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place();
        let place = place.strip_prefix('.').unwrap_or(&place);
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}, but {} is expected", self.problem, self.expected)?;
        match &self.example {
            Some(example) => write!(f, ", such as {example}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for JsonError {}
