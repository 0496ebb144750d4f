//! A servant that stands in for another: its answers are in a table, or in a recorded session.

mod answer;
mod condition;
mod session;
mod table;

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rtorb::any::Value;
use rtorb::skeleton::unknown_operation;
use rtorb::{ExceptionKind, SystemException};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex};
use serde_json::{Map, Value as Json};

use crate::interface::Operation;
use crate::own_reference::OwnReference;
use crate::recording::{call_text, named};
use crate::request::{Failure, Results};
use crate::servant::Servant;
use crate::types::Types;
pub use answer::{AnswersError, Context};
pub use session::{Delays, Session};
pub use table::Table;

/// A servant whose answers are in a table or in a recorded session.
pub struct StandIn {
    types: Arc<Types>,
    own: OwnReference,
    answers: OnceLock<Answers>,
    report: Box<dyn Fn(&UnansweredCall) + Send + Sync>,
    unanswered: AtomicU64,
    is_ended: Mutex<bool>,
    ended: Condvar,
}

/// The source of the answers.
#[derive(Debug)]
pub enum Answers {
    /// A table.
    Table(Table),
    /// A recorded session.
    Session(Session),
}

/// A call that has no answer. The client gets its [`exception`](Self::exception).
#[derive(Clone, Debug, PartialEq)]
pub struct UnansweredCall {
    /// Operation.
    pub operation: String,
    /// Arguments by name.
    pub arguments: Map<String, Json>,
    /// The reason why there is no answer.
    pub reason: NoAnswer,
}

/// The reason why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The interface does not have the operation.
    UnknownOperation,
    /// The arguments cannot be decoded. The client gets this exception.
    NotDecoded(SystemException),
    /// The operation has no answers at all.
    Operation,
    /// No row of the operation matches the arguments.
    Arguments {
        /// The number of rows.
        rows: usize,
    },
    /// The operation was not recorded with these arguments.
    NotRecorded,
    /// The operation was recorded fewer times with these arguments.
    UsedUp,
    /// The arguments have no JSON.
    Json,
    /// The server is not ready, or ends.
    Closed,
}

impl StandIn {
    /// A servant without answers. It is activated before it has answers, because they may contain its reference, `own`. `report` gets
    /// each call without an answer.
    pub fn new(
        types: &Arc<Types>,
        own: &OwnReference,
        report: impl Fn(&UnansweredCall) + Send + Sync + 'static,
    ) -> Self {
        Self {
            types: Arc::clone(types),
            own: own.clone(),
            answers: OnceLock::new(),
            report: Box::new(report),
            unanswered: AtomicU64::new(0),
            is_ended: Mutex::new(false),
            ended: Condvar::new(),
        }
    }

    /// Sets the answers, if none are set.
    pub fn set_answers(&self, answers: Answers) {
        self.answers.get_or_init(|| answers);
    }

    /// Ends the delays of all answers: calls that wait get [`NoAnswer::Closed`].
    pub fn end(&self) {
        *self.is_ended.lock() = true;
        self.ended.notify_all(&self.is_ended);
    }

    /// The number of calls that had no answer.
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// The number of recorded answers that no call has had; 0 for a table.
    pub fn unused(&self) -> usize {
        match self.answers.get() {
            Some(Answers::Session(session)) => session.unused(),
            _ => 0,
        }
    }

    /// Waits for `delay`. Returns false if the server ends before.
    fn wait(&self, delay: Duration) -> bool {
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let deadline_ns = monotonic_ns().saturating_add(delay_ns);
        let mut is_ended = self.is_ended.lock();
        while !*is_ended && monotonic_ns() < deadline_ns {
            self.ended.wait_until(&mut is_ended, deadline_ns);
        }
        !*is_ended
    }

    fn answer(
        &self,
        operation: &Operation,
        arguments: &Map<String, Json>,
    ) -> Result<Result<Results, Failure>, NoAnswer> {
        let answer = match self.answers.get() {
            Some(Answers::Table(table)) => table.find(&operation.name, arguments)?.clone(),
            Some(Answers::Session(session)) => session.next(&operation.name, arguments)?,
            None => return Err(NoAnswer::Closed),
        };
        if !answer.delay.is_zero() && !self.wait(answer.delay) {
            return Err(NoAnswer::Closed);
        }
        Ok(answer.outcome)
    }

    /// Counts and reports a call without an answer.
    fn refuse(
        &self,
        operation: &str,
        arguments: Map<String, Json>,
        reason: NoAnswer,
    ) -> SystemException {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let unanswered = UnansweredCall {
            operation: operation.to_owned(),
            arguments,
            reason,
        };
        (self.report)(&unanswered);
        unanswered.exception()
    }
}

impl Servant for StandIn {
    fn call(&self, operation: &Operation, inputs: Vec<Value>) -> Result<Results, Failure> {
        let arguments = operation.inputs_to_json(&self.types, &inputs);
        let has_json = arguments.is_ok();
        let arguments = named(operation, &self.own, arguments.unwrap_or_default());
        let answer = if has_json {
            self.answer(operation, &arguments)
        } else {
            Err(NoAnswer::Json)
        };
        answer.unwrap_or_else(|reason| {
            let exception = self.refuse(&operation.name, arguments, reason);
            Err(exception.into())
        })
    }

    fn note_unknown(&self, operation: &str, _exception: &SystemException) {
        // The recorded server did not have it either.
        let is_recorded = matches!(self.answers.get(),
            Some(Answers::Session(session)) if session.has_refused(operation));
        if !is_recorded {
            self.refuse(operation, Map::new(), NoAnswer::UnknownOperation);
        }
    }

    fn note_not_decoded(&self, operation: &Operation, exception: &SystemException) {
        let reason = NoAnswer::NotDecoded(exception.clone());
        self.refuse(&operation.name, Map::new(), reason);
    }
}

impl UnansweredCall {
    /// The exception that the client gets: the call was not carried out.
    pub fn exception(&self) -> SystemException {
        SystemException::from(match &self.reason {
            NoAnswer::UnknownOperation => return unknown_operation(),
            NoAnswer::NotDecoded(exception) => return exception.clone(),
            NoAnswer::Operation => ExceptionKind::NoImplement,
            NoAnswer::Arguments { .. } | NoAnswer::NotRecorded => ExceptionKind::BadParam,
            NoAnswer::UsedUp => ExceptionKind::NoResources,
            NoAnswer::Json => ExceptionKind::ImpLimit,
            NoAnswer::Closed => ExceptionKind::Transient,
        })
    }
}

impl fmt::Display for UnansweredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.exception().kind;
        write!(
            f,
            "{} gets {kind}: {}",
            call_text(&self.operation, &self.arguments),
            self.reason
        )
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOperation => f.write_str("the interface has no such operation"),
            Self::NotDecoded(_) => f.write_str("the arguments cannot be decoded"),
            Self::Operation => f.write_str("there is no answer for this operation"),
            Self::Arguments { rows: 1 } => {
                f.write_str("the row of this operation does not match the arguments")
            }
            Self::Arguments { rows } => {
                write!(
                    f,
                    "none of the {rows} rows of this operation matches the arguments"
                )
            }
            Self::NotRecorded => f.write_str("it was not recorded with these arguments"),
            Self::UsedUp => f.write_str("all recorded answers for these arguments are used"),
            Self::Json => f.write_str("the arguments have no JSON"),
            Self::Closed => f.write_str("the server is not ready, or ends"),
        }
    }
}

impl fmt::Debug for StandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandIn")
            .field("answers", &self.answers)
            .finish_non_exhaustive()
    }
}
