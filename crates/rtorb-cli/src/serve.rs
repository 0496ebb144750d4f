//! `rtorb serve`: a server without a program of its own, for tests of clients.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use rtorb::{Orb, PoaPolicies};
use rtorb_dynamic::search::FoundInterface;
use rtorb_dynamic::stand_in::{Answers, Context, Delays, Session, StandIn, Table, UnansweredCall};
use rtorb_dynamic::{OwnReference, copied};
use rtorb_os::sync::Mutex;

use crate::background_printer::{BackgroundPrinter, PATIENCE};
use crate::exit_status::FAILED;
use crate::interface_options::{InterfaceOptions, interface_error};
use crate::named_file::read_text;
use crate::orb_options::{ClientOptions, ServerOptions, option_error, usage};
use crate::output::note;
use crate::serving::{Served, ServingOptions, recorded};

/// Serve an object whose answers are in a table, or in a recorded session (docs/how-to/serve.md).
///
/// It ends by SIGTERM or SIGINT. Exit status 0: all calls had an answer. 1: a call had none, or the recording is not complete.
/// 2: wrong arguments, or a wrong table or session.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    #[command(flatten)]
    interface: InterfaceOptions,
    #[command(flatten)]
    source: Source,
    /// The object whose calls are replayed, of a recording of several objects: its key, as the records have it.
    #[arg(long, value_name = "KEY", requires = "replay")]
    object: Option<String>,
    /// Answer after the recorded duration instead of at once.
    #[arg(long, requires = "replay")]
    delays: bool,
    /// File to record each call in, one JSON object a line. It is emptied when the server begins to serve.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    serving: ServingOptions,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    client: ClientOptions,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// Table of answers, in TOML if the name ends with .toml, else in JSON.
    #[arg(long, value_name = "FILE", requires = "interface")]
    answers: Option<PathBuf>,
    /// Recorded session. A call gets the first recorded answer for its operation and arguments that is not used yet.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let (path, text) = self.source.read()?;
        let text = self.of_object(text)?;
        let found = self.found(&text)?;
        let builder = self.server.apply(&self.client, Orb::builder());
        let orb = builder.build().map_err(option_error)?;
        let own = OwnReference::default();
        // Clients do not wait for a reader of the warnings.
        let warnings = Arc::new(BackgroundPrinter::on_stderr()?);
        let (own_warnings, reported) =
            (Arc::clone(&warnings), Mutex::new(ReportedCalls::default()));
        let report_one = move |unanswered: &UnansweredCall| {
            if let Some(text) = reported.lock().report(unanswered) {
                own_warnings.queue(text);
            }
        };
        let stand_in = Arc::new(StandIn::new(&found.types, &own, report_one));
        let served = Served {
            activate: recorded(Arc::clone(&stand_in), &found, &orb, &own),
            policies: PoaPolicies::default(),
            out: self.record.clone(),
            target: None,
        };
        let own_warnings = Arc::clone(&warnings);
        let warn = move |text| {
            own_warnings.queue(text);
        };
        let serving = self.serving.activate(&orb, &own, served, |_| (), warn)?;
        let context = Context {
            interface: &found.interface,
            types: &found.types,
            own: &own,
        };
        let answers = self.answers(path, &text, context);
        stand_in.set_answers(answers?);
        let ending = Arc::clone(&stand_in);
        let ran = self.serving.run(&serving, move || ending.end());
        warnings.end(PATIENCE);
        Ok(report(&stand_in, ran?))
    }

    /// Returns the lines of a recording that are calls of one object.
    fn of_object(&self, text: String) -> anyhow::Result<String> {
        if self.source.replay.is_none() {
            return Ok(text);
        }
        let objects = copied::objects_of(&text);
        match &self.object {
            Some(object) if objects.contains(object) => Ok(copied::session_of(&text, object)),
            None if objects.len() < 2 => Ok(text),
            _ => Err(usage(format!(
                "the recording has the calls of these objects: give one by --object: {}",
                objects.join(" ")
            ))),
        }
    }

    fn found(&self, text: &str) -> anyhow::Result<FoundInterface> {
        let recorded = || Session::interface(text);
        let name = self.interface.interface.clone().or_else(recorded);
        let name = name.ok_or_else(|| {
            usage("the session has no record in its first line: give --interface NAME")
        })?;
        let found = self.interface.search().interface_named(&name);
        found.map_err(interface_error)
    }

    fn answers(&self, path: &Path, text: &str, context: Context<'_>) -> anyhow::Result<Answers> {
        let delays = if self.delays {
            Delays::Recorded
        } else {
            Delays::None
        };
        let answers = if self.source.replay.is_some() {
            Session::parse(text, delays, context).map(Answers::Session)
        } else if path.extension().is_some_and(|it| it == "toml") {
            Table::from_toml(text, context).map(Answers::Table)
        } else {
            Table::from_json(text, context).map(Answers::Table)
        };
        answers.map_err(|error| usage(format!("{}: {error}", path.display())))
    }
}

impl Source {
    /// Returns the name and the text of the file.
    fn read(&self) -> anyhow::Result<(&Path, String)> {
        let path = self.answers.as_deref().or(self.replay.as_deref());
        let path = path.ok_or_else(|| usage("give --answers FILE or --replay FILE"))?;
        Ok((path, read_text(path, FILE_BYTES_MAX)?))
    }
}

/// The kinds of calls without an answer that were reported: each once, so that a client that repeats one does not fill the output.
#[derive(Default)]
struct ReportedCalls {
    /// Operations, each with the reason why there is no answer.
    kinds: BTreeSet<(String, String)>,
}

impl ReportedCalls {
    /// Returns the text to print for a call, if it is the first of its kind and there were not too many.
    fn report(&mut self, unanswered: &UnansweredCall) -> Option<String> {
        if self.kinds.len() >= REPORTS_MAX {
            return None;
        }
        // A client chooses the name.
        let operation = unanswered.operation.chars().take(OPERATION_CHARS_MAX);
        let kind = (operation.collect(), unanswered.reason.to_string());
        let is_new = self.kinds.insert(kind);
        let mut text = is_new.then(|| unanswered.to_string())?;
        if self.kinds.len() == REPORTS_MAX {
            text.push_str("\nfurther operations without an answer are counted, and not reported");
        }
        Some(text)
    }
}

/// Says what does not fit, and returns the exit status.
fn report(stand_in: &StandIn, is_complete: bool) -> ExitCode {
    let (unanswered, unused) = (stand_in.unanswered(), stand_in.unused());
    if unused > 0 {
        note!("{unused} recorded calls did not come");
    }
    if unanswered > 0 {
        note!("{unanswered} calls had no answer");
    }
    if unanswered == 0 && is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    }
}

/// The most kinds of calls without an answer that are reported.
const REPORTS_MAX: usize = 100;
/// The characters of an operation's name by which its calls are distinguished.
const OPERATION_CHARS_MAX: usize = 256;

/// Bound on the size of a table or a session.
const FILE_BYTES_MAX: u64 = 1 << 30;

const EXAMPLES: &str = "Examples:
  rtorb serve --idl valve.idl --interface Plant::Valve --answers valve.toml --ior-file valve.ior
  rtorb record valve.ior --idl valve.idl --ior-file proxy.ior --out session.jsonl
  rtorb serve --idl valve.idl --replay session.jsonl --listen iiop://127.0.0.1:4000 --key Valve";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_dynamic::stand_in::NoAnswer;

    #[test]
    fn a_repeated_call_without_an_answer_is_reported_once_and_of_many_kinds_some() {
        let mut reported = ReportedCalls::default();
        let mut report = |operation: &str, reason| {
            reported.report(&UnansweredCall {
                operation: operation.to_owned(),
                arguments: serde_json::Map::new(),
                reason,
            })
        };
        let first = report("turn", NoAnswer::Operation).expect("it is new");
        assert!(first.starts_with("turn() gets NO_IMPLEMENT"), "{first}");
        assert_eq!(report("turn", NoAnswer::Operation), None);
        assert!(report("turn", NoAnswer::UsedUp).is_some());
        let names = (0..10 * REPORTS_MAX).map(|it| format!("x{it}"));
        let texts = names.filter_map(|name| report(&name, NoAnswer::UnknownOperation));
        let texts: Vec<String> = texts.collect();
        assert_eq!(texts.len(), REPORTS_MAX - 2);
        assert!(texts[REPORTS_MAX - 3].contains("further operations"));
    }
}
