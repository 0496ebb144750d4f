//! Records of the calls that a servant gets, in JSON.

mod log;

use core::fmt;
use std::sync::Arc;

use rtorb::any::Value;
use rtorb::rt::RtCurrent;
use rtorb::{ObjectRef, Orb, SystemException};
use rtorb_os::clock::monotonic_ns;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::interface::{Interface, Operation};
use crate::json::WriteError;
use crate::own_reference::OwnReference;
use crate::request::{Failure, Results};
use crate::search::FoundInterface;
use crate::servant::Servant;
use crate::types::Types;
pub use log::{Log, LogError, RotatingLog};

/// A call with its results: one line of a recorded session (`docs/how-to/serve.md`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Repository id of the interface.
    pub interface: String,
    /// The key of the object as a `corbaloc:` URL has it, in a recording of several objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Operation, as a request names it.
    pub operation: String,
    /// The values of the `in` and `inout` parameters, by name.
    pub arguments: Map<String, Json>,
    /// The results, unless there was an exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Json>,
    /// The exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raises: Option<Json>,
    /// The reason why a value is missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The time of day at which the call began (RFC 3339).
    #[serde(default)]
    pub start: String,
    /// The duration of the call.
    #[serde(default)]
    pub duration_ns: u64,
    /// The CORBA priority of the call, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i16>,
}

impl Record {
    /// A record of a call that begins, without its arguments.
    pub(crate) fn begin(interface: &str, operation: &str, current: &RtCurrent) -> Self {
        Self {
            interface: interface.to_owned(),
            operation: operation.to_owned(),
            start: jiff::Timestamp::now().to_string(),
            priority: current.the_priority().ok().map(|it| it.get()),
            ..Self::default()
        }
    }
}

/// A servant whose calls are recorded.
pub struct Recording<S> {
    servant: S,
    interface: Arc<Interface>,
    types: Arc<Types>,
    own: OwnReference,
    current: RtCurrent,
    sink: Box<dyn Fn(&Record) + Send + Sync>,
}

impl<S> Recording<S> {
    /// Records the calls of a servant. `sink` gets each record on the thread of the call, before the client gets its reply; several
    /// threads call it at a time. The records name the reference `own`.
    pub fn new(
        servant: S,
        found: &FoundInterface,
        orb: &Orb,
        own: &OwnReference,
        sink: impl Fn(&Record) + Send + Sync + 'static,
    ) -> Self {
        Self {
            servant,
            interface: Arc::clone(&found.interface),
            types: Arc::clone(&found.types),
            own: own.clone(),
            current: orb.rt_current(),
            sink: Box::new(sink),
        }
    }

    fn record(&self, operation: &str) -> Record {
        Record::begin(&self.interface.repository_id, operation, &self.current)
    }

    fn begin(&self, operation: &Operation, inputs: &[Value]) -> Record {
        let mut record = self.record(&operation.name);
        match operation.inputs_to_json(&self.types, inputs) {
            Ok(values) => record.arguments = named(operation, &self.own, values),
            Err(error) => record.missing = Some(missing("arguments", error)),
        }
        record
    }

    /// A record of a request that the servant does not get.
    fn refused(&self, operation: &str, exception: &SystemException) -> Record {
        let failure = Failure::from(exception.clone());
        Record {
            raises: failure.to_json(&self.types).ok(),
            ..self.record(operation)
        }
    }

    fn end(&self, record: &mut Record, operation: &Operation, outcome: &Result<Results, Failure>) {
        let json = match outcome {
            Ok(results) => operation.results_to_json(&self.types, results),
            Err(failure) => failure.to_json(&self.types),
        };
        let json = json.map(|mut json| {
            self.own.name_in(&mut json);
            json
        });
        match (json, outcome) {
            (Ok(json), Ok(_)) => record.answer = Some(json),
            (Ok(json), Err(_)) => record.raises = Some(json),
            (Err(error), _) => record.missing = Some(missing("results", error)),
        }
    }
}

impl<S: Servant> Servant for Recording<S> {
    fn call(&self, operation: &Operation, inputs: Vec<Value>) -> Result<Results, Failure> {
        let mut record = self.begin(operation, &inputs);
        let begin_ns = monotonic_ns();
        let outcome = self.servant.call(operation, inputs);
        record.duration_ns = monotonic_ns() - begin_ns;
        self.end(&mut record, operation, &outcome);
        (self.sink)(&record);
        outcome
    }

    fn note_unknown(&self, operation: &str, exception: &SystemException) {
        self.servant.note_unknown(operation, exception);
        (self.sink)(&self.refused(operation, exception));
    }

    fn note_not_decoded(&self, operation: &Operation, exception: &SystemException) {
        self.servant.note_not_decoded(operation, exception);
        let mut record = self.refused(&operation.name, exception);
        record.missing = Some("the arguments cannot be decoded".to_owned());
        (self.sink)(&record);
    }

    fn interface_definition(&self) -> Option<ObjectRef> {
        self.servant.interface_definition()
    }
}

impl<S: fmt::Debug> fmt::Debug for Recording<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("servant", &self.servant)
            .field("interface", &self.interface.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}",
            self.start,
            call_text(&self.operation, &self.arguments)
        )?;
        match (&self.answer, &self.raises, &self.missing) {
            // The caller reports this reason once, and not for each call.
            (_, _, Some(reason)) if reason != NOT_DECODED => write!(f, " ({reason})")?,
            (_, Some(exception), _) => write!(f, " raises {}", short(exception))?,
            (Some(answer), ..) => write!(f, " = {}", short(answer))?,
            (None, None, _) => {}
        }
        let microseconds = self.duration_ns / 1000;
        match self.priority {
            Some(priority) => write!(f, " [{microseconds} us, priority {priority}]"),
            None => write!(f, " [{microseconds} us]"),
        }
    }
}

/// `turn(degrees=90)`
pub(crate) fn call_text(operation: &str, arguments: &Map<String, Json>) -> String {
    let arguments = arguments.iter();
    let arguments: Vec<_> = arguments
        .map(|(name, it)| format!("{name}={}", short(it)))
        .collect();
    format!("{operation}({})", arguments.join(", "))
}

/// The arguments by name.
pub(crate) fn named(
    operation: &Operation,
    own: &OwnReference,
    values: Vec<Json>,
) -> Map<String, Json> {
    let pairs = operation.inputs().zip(values).map(|(it, mut value)| {
        own.name_in(&mut value);
        (it.name.clone(), value)
    });
    pairs.collect()
}

fn missing(what: &str, error: WriteError) -> String {
    format!("the {what} have no JSON: {error}")
}

/// The text of JSON, cut off if it is long.
fn short(json: &Json) -> String {
    let text = json.to_string();
    match text.char_indices().nth(SHORT_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// The reason why the values of a call are missing if they are recorded as bytes.
pub(crate) const NOT_DECODED: &str = "its values are bytes, because there was no IDL";
/// The most characters of a value that a line of text shows.
const SHORT_MAX: usize = 200;
