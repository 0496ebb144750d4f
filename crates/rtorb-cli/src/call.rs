//! `rtorb call`: calls an operation of any object, in JSON.

use std::io::{BufRead as _, Read as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use rtorb::ObjectRef;
use rtorb_dynamic::inspect::repeat::{Pace, repeat};
use rtorb_dynamic::search::{FoundInterface, SearchError};
use rtorb_dynamic::{Failure, Operation, Request, Types};
use rtorb_sched::model::rounded;
use serde_json::{Value as Json, json};

use crate::exit_status::FAILED;
use crate::interface_options::{InterfaceOptions, interface_error};
use crate::orb_options::usage;
use crate::output::{line, print_json, warn};
use crate::reference::{self, CallOptions};

/// Call an operation of any object, with arguments and results in JSON (docs/how-to/call.md).
///
/// Exit status 0: the operation returned. 1: it raised an exception, which is printed too, or the call failed. 2: wrong arguments
/// (1 if those of a line of --stdin are wrong).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Call {
    /// Object reference: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(value_name = "REF")]
    reference: String,
    /// Operation. An attribute is _get_NAME or _set_NAME, or NAME to read it.
    #[arg(value_name = "OPERATION", required_unless_present = "list")]
    operation: Option<String>,
    /// Arguments in order, each one JSON value; - is read from standard input.
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    interface: InterfaceOptions,
    /// List the operations and attributes instead of calling.
    #[arg(long, conflicts_with_all = ["operation", "describe", "stdin", "repeat"])]
    list: bool,
    /// Describe the operation instead of calling: its declaration, and examples of its JSON.
    #[arg(long, conflicts_with_all = ["arguments", "stdin", "repeat"])]
    describe: bool,
    /// Make a call for each line of standard input, a JSON array of arguments. Print a line for each.
    #[arg(long, conflicts_with_all = ["arguments", "repeat"])]
    stdin: bool,
    /// Repeat the call, and print response times instead of results.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    repeat: Option<u64>,
    /// Calls a second [default: each directly after the one before].
    #[arg(long, value_name = "HZ", requires = "repeat", value_parser = rate)]
    rate: Option<f64>,
    /// Send the request without waiting for a reply.
    #[arg(long)]
    oneway: bool,
    /// Deadline of each call, which the server learns: 5ms, 2s. A call that misses it fails with TIMEOUT.
    #[arg(long, value_name = "TIME", value_parser = reference::duration)]
    deadline: Option<Duration>,
    /// Print one JSON object: for --list, --describe and --repeat. Results of calls are always JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: CallOptions,
}

impl Call {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let orb = self.calling.orb()?;
        let object = reference::object(&orb, &self.reference)?;
        if let Some(advice) = self.calling.priority_advice(&object) {
            warn(advice);
        }
        let found = match self
            .interface
            .search()
            .interface_of(&object, self.operation.as_deref())
        {
            Ok(found) => found,
            Err(SearchError::Object(exception)) => {
                print_json(&raised(&exception.into(), None, &Types::default())?)?;
                return Ok(ExitCode::from(FAILED));
            }
            Err(error) => return Err(interface_error(error)),
        };
        let Some(name) = &self.operation else {
            return self.list(&found);
        };
        let operation = operation(&found, name)?;
        if self.describe {
            self.describe(&operation, &found)?;
            return Ok(ExitCode::SUCCESS);
        }
        let object = reference::with_deadline(object, self.deadline);
        if self.stdin {
            return self.call_each_line(&object, &operation, &found);
        }
        let request = self.request(&object, &operation, &found)?;
        match self.repeat {
            Some(count) => self.repeat(&request, &operation, &found, count),
            None => self.once(&request, &operation, &found),
        }
    }

    fn list(&self, found: &FoundInterface) -> anyhow::Result<ExitCode> {
        let FoundInterface { interface, types } = found;
        if self.json {
            print_json(&interface.to_json(types))?;
        } else {
            line(format!("{interface} ({})", interface.repository_id))?;
            for signature in interface.signatures(types) {
                line(format!("  {signature}"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn describe(&self, operation: &Operation, found: &FoundInterface) -> anyhow::Result<()> {
        if self.json {
            print_json(&operation.to_json(&found.types))
        } else {
            line(operation.description(&found.types))
        }
    }

    /// Makes the request of the arguments.
    fn request(
        &self,
        object: &ObjectRef,
        operation: &Arc<Operation>,
        found: &FoundInterface,
    ) -> anyhow::Result<Request> {
        let mut arguments = self.arguments.clone();
        let mut from_input = arguments.iter_mut().filter(|it| *it == "-");
        if let Some(argument) = from_input.next() {
            if from_input.next().is_some() {
                return Err(usage("only one argument can be - for standard input"));
            }
            argument.clear();
            let read = std::io::stdin().read_to_string(argument);
            read.context("cannot read standard input")?;
        }
        let inputs = operation.inputs_from_text(&found.types, &arguments);
        let inputs = inputs.map_err(usage)?;
        let request = Request::new(object, operation, &found.types, inputs);
        request.map_err(|exception| usage(format!("the arguments cannot be sent: {exception}")))
    }

    /// Makes one call, and prints the result or the exception.
    fn once(
        &self,
        request: &Request,
        operation: &Operation,
        found: &FoundInterface,
    ) -> anyhow::Result<ExitCode> {
        match self.answer(request, operation, found)? {
            Answer::Results(json) => print_json(&json).map(|()| ExitCode::SUCCESS),
            Answer::Exception(json) => print_json(&json).map(|()| ExitCode::from(FAILED)),
        }
    }

    fn answer(
        &self,
        request: &Request,
        operation: &Operation,
        found: &FoundInterface,
    ) -> anyhow::Result<Answer> {
        if self.oneway {
            return match request.send() {
                Ok(()) => Ok(Answer::Results(Json::Null)),
                Err(exception) => {
                    raised(&exception.into(), Some(request), &found.types).map(Answer::Exception)
                }
            };
        }
        match request.invoke() {
            Ok(results) => {
                let json = operation.results_to_json(&found.types, &results);
                Ok(Answer::Results(json.context("the results have no JSON")?))
            }
            Err(failure) => raised(&failure, Some(request), &found.types).map(Answer::Exception),
        }
    }

    fn repeat(
        &self,
        request: &Request,
        operation: &Operation,
        found: &FoundInterface,
        count: u64,
    ) -> anyhow::Result<ExitCode> {
        let pace = Pace {
            count,
            rate_hz: self.rate,
        };
        let (repeated, failure) = if self.oneway {
            repeat(pace, || request.send().map_err(Failure::from))
        } else {
            repeat(pace, || request.invoke().map(|_| ()))
        };
        let times = &repeated.latency_ns;
        if self.json {
            print_json(&json!({
                "operation": operation.name,
                "count": repeated.count,
                "late": repeated.late,
                "latency_ns": times,
            }))?;
        } else if repeated.count > 0 {
            let figures = [times.min, times.p50, times.p99, times.max].map(rounded);
            let [min, median, p99, max] = figures;
            line(format!(
                "{}: {} calls, {} late (min {min}, median {median}, p99 {p99}, max {max})",
                operation.name, repeated.count, repeated.late
            ))?;
        }
        let Some(failure) = failure else {
            return Ok(ExitCode::SUCCESS);
        };
        let json = raised(&failure, Some(request), &found.types)?;
        warn(format!("call {} raised {json}", repeated.count + 1));
        Ok(ExitCode::from(FAILED))
    }

    /// Makes a call for each line of standard input. A wrong line is answered by `{"error": ...}`.
    fn call_each_line(
        &self,
        object: &ObjectRef,
        operation: &Arc<Operation>,
        found: &FoundInterface,
    ) -> anyhow::Result<ExitCode> {
        let mut status = ExitCode::SUCCESS;
        for text in std::io::stdin().lock().lines() {
            let text = text.context("cannot read standard input")?;
            if text.trim().is_empty() {
                continue;
            }
            let (json, is_good) = match self.request_of_line(&text, object, operation, found) {
                Err(error) => (json!({ "error": error.to_string() }), false),
                Ok(request) => match self.answer(&request, operation, found)? {
                    Answer::Results(json) => (json, true),
                    Answer::Exception(json) => (json, false),
                },
            };
            if !is_good {
                status = ExitCode::from(FAILED);
            }
            line(json.to_string())?;
        }
        Ok(status)
    }

    fn request_of_line(
        &self,
        text: &str,
        object: &ObjectRef,
        operation: &Arc<Operation>,
        found: &FoundInterface,
    ) -> anyhow::Result<Request> {
        let arguments: Vec<Json> = rtorb_dynamic::json::parse(text)
            .map_err(|error| anyhow!("a line is a JSON array of the arguments: {error}"))?;
        let inputs = operation.inputs_from_json(&found.types, &arguments)?;
        Ok(Request::new(object, operation, &found.types, inputs)?)
    }
}

/// The JSON of a call that ended.
enum Answer {
    Results(Json),
    Exception(Json),
}

/// Returns the JSON of an exception. Explains a system exception on standard error, with the argument or the member that could not be
/// sent: the JSON has only its numbers.
fn raised(failure: &Failure, request: Option<&Request>, types: &Types) -> anyhow::Result<Json> {
    if let Failure::System(exception) = failure {
        match request.and_then(|request| request.unsent_place(exception)) {
            Some(place) => warn(format!("{place}: {exception}")),
            None => warn(exception),
        }
    }
    let json = failure.to_json(types);
    json.context("the exception has no JSON")
}

fn operation(found: &FoundInterface, name: &str) -> anyhow::Result<Arc<Operation>> {
    let FoundInterface { interface, .. } = found;
    interface.operation(name).ok_or_else(|| {
        let advice = match interface.suggestion(name) {
            Some(suggestion) => format!("; did you mean `{suggestion}`?"),
            None => "; --list shows all operations".to_owned(),
        };
        usage(format!("{interface} has no operation `{name}`{advice}"))
    })
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (RATE_MIN..=RATE_MAX).contains(&rate) => Ok(rate),
        _ => Err(format!(
            "a rate is a number of calls a second, {RATE_MIN} to {RATE_MAX}"
        )),
    }
}

const RATE_MIN: f64 = 0.001;
const RATE_MAX: f64 = 1e6;

const EXAMPLES: &str = "Examples:
  rtorb call corbaloc::localhost:2809/NameService resolve '[{\"id\": \"plant\", \"kind\": \"\"}]'
  rtorb call valve.ior --idl valve.idl --list
  rtorb call valve.ior --idl valve.idl turn --describe
  rtorb call valve.ior --idl valve.idl turn 90 --repeat 1000 --rate 100";
