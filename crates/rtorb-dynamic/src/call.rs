//! Calls in JSON: arguments from JSON, results and exceptions to JSON.

use rtorb::any::Value;
use rtorb::{CompletionStatus, ExceptionKind, SystemException};
use serde_json::{Map, Value as Json, json};

use crate::interface::Operation;
use crate::json::{EXCEPTION, JsonError, WriteError, example, from_json, parse, to_json};
use crate::request::{Failure, Results};
use crate::types::Types;

/// Wrong arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// Too few or too many.
    #[error("arguments: {given} given, {expected} expected by {signature}")]
    Count {
        /// Their number.
        given: usize,
        /// The expected number.
        expected: usize,
        /// The operation in IDL.
        signature: String,
    },
    /// Text that is no JSON.
    #[error("argument {} ({name}): {text:?} is not JSON ({reason}){}", index + 1, advice(text, expected))]
    Text {
        /// Its place.
        index: usize,
        /// The parameter's name.
        name: String,
        /// The text.
        text: String,
        /// The reason why it is no JSON.
        reason: String,
        /// An example of right JSON, if it is not very long.
        expected: Option<String>,
    },
    /// JSON that is no value of the parameter's type.
    #[error(transparent)]
    Value(#[from] JsonError),
}

/// Advice on a text that is no JSON.
fn advice(text: &str, expected: &Option<String>) -> String {
    match expected {
        Some(example) if example.starts_with('"') => {
            format!(
                "; a string has quotes, which a shell needs in quotes: '{}'",
                json!(text)
            )
        }
        Some(example) if example.len() < ADVICE_MAX => format!("; an example is {example}"),
        _ => String::new(),
    }
}

/// The JSON forms of an operation's arguments, results and exceptions.
impl Operation {
    /// The values of the `in` and `inout` parameters in order, from one JSON value for each.
    ///
    /// # Errors
    /// [`ArgumentError`] has the place: `argument 2 (position).x`.
    pub fn inputs_from_json(
        &self,
        types: &Types,
        arguments: &[Json],
    ) -> Result<Vec<Value>, ArgumentError> {
        let expected = self.inputs().count();
        if expected != arguments.len() {
            return Err(ArgumentError::Count {
                given: arguments.len(),
                expected,
                signature: self.signature(types),
            });
        }
        let read = |(place, (parameter, json)): (usize, (&crate::interface::Parameter, &Json))| {
            let value = from_json(types, json, &parameter.type_code);
            let step = format!("argument {} ({})", place + 1, parameter.name);
            value.map_err(|error| error.within(step).into())
        };
        self.inputs().zip(arguments).enumerate().map(read).collect()
    }

    /// The values of the `in` and `inout` parameters in order, from the text of a JSON value for each.
    ///
    /// # Errors
    /// As [`inputs_from_json`](Self::inputs_from_json), and for text that is no JSON.
    pub fn inputs_from_text(
        &self,
        types: &Types,
        arguments: &[impl AsRef<str>],
    ) -> Result<Vec<Value>, ArgumentError> {
        let mut parameters = self.inputs();
        let read = |(index, text): (usize, &_)| {
            let text = AsRef::<str>::as_ref(text);
            let parameter = parameters.next();
            parse(text).map_err(|error| ArgumentError::Text {
                index,
                name: parameter.map(|it| it.name.clone()).unwrap_or_default(),
                text: text.chars().take(ADVICE_MAX).collect(),
                reason: error.to_string(),
                expected: parameter
                    .and_then(|it| example(types, &it.type_code))
                    .map(|it| it.to_string()),
            })
        };
        // A wrong number of arguments is reported first, even if they are not JSON.
        if self.inputs().count() != arguments.len() {
            return self.inputs_from_json(types, &vec![Json::Null; arguments.len()]);
        }
        let values = arguments.iter().enumerate().map(read);
        self.inputs_from_json(types, &values.collect::<Result<Vec<_>, _>>()?)
    }

    /// The values of the `in` and `inout` parameters as JSON.
    ///
    /// # Errors
    /// [`WriteError`], if a value is of another type.
    pub fn inputs_to_json(&self, types: &Types, inputs: &[Value]) -> Result<Vec<Json>, WriteError> {
        let values = self.inputs().zip(inputs);
        values
            .map(|(it, value)| to_json(types, value, &it.type_code))
            .collect()
    }

    /// The result as JSON, or `{"return": RESULT, NAME: VALUE}` if there are `out` or `inout` parameters. The key of one that is called `return`
    /// is `_return`.
    ///
    /// # Errors
    /// [`WriteError`], if a value is of another type, or too large.
    pub fn results_to_json(&self, types: &Types, results: &Results) -> Result<Json, WriteError> {
        let returns = to_json(types, &results.returns, &self.returns)?;
        let mut object = Map::new();
        for (parameter, value) in self.outputs().zip(&results.outputs) {
            let value = to_json(types, value, &parameter.type_code)?;
            object.insert(output_key(&parameter.name).to_owned(), value);
        }
        if object.is_empty() {
            return Ok(returns);
        }
        object.insert(RETURN.to_owned(), returns);
        Ok(Json::Object(object))
    }

    /// Converts JSON to results: the inverse of [`results_to_json`](Self::results_to_json).
    ///
    /// # Errors
    /// [`JsonError`] has the place.
    pub fn results_from_json(&self, types: &Types, json: &Json) -> Result<Results, JsonError> {
        if self.outputs().next().is_none() {
            let returns = from_json(types, json, &self.returns)?;
            return Ok(Results {
                returns,
                outputs: Vec::new(),
            });
        }
        let outputs = self.outputs().map(|it| output_key(&it.name));
        let keys: Vec<_> = [RETURN].into_iter().chain(outputs).collect();
        let is_known = |key: &str| keys.contains(&key);
        let unknown = match json.as_object() {
            Some(object) => object.keys().find(|key| !is_known(key)).cloned(),
            None => Some(json.to_string().chars().take(ADVICE_MAX).collect()),
        };
        if let Some(unknown) = unknown {
            let expected = format!("an object with the members {}", keys.join(", "));
            return Err(JsonError::new(
                &format!("`{unknown}` is no result"),
                &expected,
            ));
        }
        let read = |name: &str, type_code| {
            let part = json.get(name);
            let value = from_json(types, part.unwrap_or(&Json::Null), type_code);
            value.map_err(|error| match part {
                Some(_) => error.within(format!(".{name}")),
                None => error.missing(&format!("the member `{name}`")),
            })
        };
        let outputs = self
            .outputs()
            .map(|it| read(output_key(&it.name), &it.type_code));
        Ok(Results {
            returns: read(RETURN, &self.returns)?,
            outputs: outputs.collect::<Result<_, _>>()?,
        })
    }

    /// Converts JSON to an exception: the inverse of [`Failure::to_json`].
    ///
    /// # Errors
    /// [`JsonError`] has the place.
    pub fn failure_from_json(&self, types: &Types, json: &Json) -> Result<Failure, JsonError> {
        let id = json.get(EXCEPTION).and_then(Json::as_str);
        let id =
            id.ok_or_else(|| JsonError::new("the member `exception` is missing", "an exception"))?;
        if let Some(type_code) = self.exception(id) {
            let members = match from_json(types, json, type_code)? {
                Value::Members(members) => members,
                _ => Vec::new(),
            };
            let type_code = type_code.clone();
            return Ok(Failure::User { type_code, members });
        }
        let kind = ExceptionKind::from_repository_id(id.as_bytes());
        if kind.repository_id() != id {
            let expected = format!("a system exception, or one that {} raises,", self.name);
            return Err(JsonError::new(id, &expected));
        }
        let minor = json.get("minor").map_or(Some(0), Json::as_u64);
        let minor = minor.and_then(|it| u32::try_from(it).ok());
        let minor =
            minor.ok_or_else(|| JsonError::new("`minor` is another value", "an unsigned long"))?;
        let statuses = [
            CompletionStatus::Yes,
            CompletionStatus::No,
            CompletionStatus::Maybe,
        ];
        let completed = match json.get("completed") {
            None => CompletionStatus::Maybe,
            Some(text) => {
                let stated = statuses.into_iter().find(|it| *text == it.to_string());
                let problem = format!("`completed` is {text}");
                stated.ok_or_else(|| {
                    JsonError::new(
                        &problem,
                        "one of COMPLETED_YES, COMPLETED_NO, COMPLETED_MAYBE",
                    )
                })?
            }
        };
        Ok(SystemException::new(kind, minor, completed).into())
    }

    /// Examples of the arguments; `None` in the place of one that would be very long.
    pub fn example_inputs(&self, types: &Types) -> Vec<Option<Json>> {
        self.inputs()
            .map(|it| example(types, &it.type_code))
            .collect()
    }

    /// An example of the results, if it is not very long.
    pub fn example_results(&self, types: &Types) -> Option<Json> {
        let returns = example(types, &self.returns)?;
        let outputs = self.outputs();
        let outputs = outputs.map(|it| {
            let key = output_key(&it.name).to_owned();
            Some((key, example(types, &it.type_code)?))
        });
        let mut object = outputs.collect::<Option<Map<_, _>>>()?;
        if object.is_empty() {
            return Some(returns);
        }
        object.insert(RETURN.to_owned(), returns);
        Some(Json::Object(object))
    }
}

impl Failure {
    /// The exception as JSON: `{"exception": REPOSITORY-ID, NAME: VALUE}`. A system exception has the members `minor` and `completed`.
    ///
    /// # Errors
    /// [`WriteError`], if a member has no JSON.
    pub fn to_json(&self, types: &Types) -> Result<Json, WriteError> {
        match self {
            Self::User { type_code, members } => {
                to_json(types, &Value::Members(members.clone()), type_code)
            }
            Self::Undeclared { repository_id } => Ok(json!({ EXCEPTION: repository_id })),
            Self::System(SystemException {
                kind,
                minor,
                completed,
                ..
            }) => Ok(json!({
                EXCEPTION: kind.repository_id(),
                "minor": minor,
                "completed": completed.to_string(),
            })),
        }
    }
}

/// The key of an output beside the result: its name, or `_return` for a parameter called `return`.
fn output_key(name: &str) -> &str {
    if name == RETURN { "_return" } else { name }
}

/// The most characters of a wrong text, or of an example, that a message shows.
const ADVICE_MAX: usize = 200;
/// The key of the result beside `out` parameters.
const RETURN: &str = "return";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_called_return_is_beside_the_result() {
        let mut types = Types::default();
        let idl = "interface Odd { long count(out string return, inout long other); };";
        types.add_text("odd.idl", idl).expect("the IDL is right");
        let odd = types.interface("Odd").expect("it is declared");
        let results = Results {
            returns: Value::Long(1),
            outputs: vec![Value::String("two".to_owned()), Value::Long(3)],
        };
        let operation = &odd.operations[0];
        let json = operation.results_to_json(&types, &results);
        let json = json.expect("they are of their types");
        assert_eq!(json, json!({"return": 1, "_return": "two", "other": 3}));
        let read = operation.results_from_json(&types, &json);
        let read = read.expect("it is what was written");
        assert_eq!(
            (read.returns, read.outputs),
            (results.returns, results.outputs)
        );
        let example = operation.example_results(&types).expect("it is short");
        assert_eq!(example, json!({"return": 1, "_return": "text", "other": 1}));
    }
}
