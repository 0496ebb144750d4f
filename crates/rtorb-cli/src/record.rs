//! `rtorb record`: passes calls on to an object, and records them; or records those that a process serves.

mod in_lane;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use rtorb::Poa;
use rtorb_dynamic::recording::Record as Call;
use rtorb_dynamic::search::SearchError;
use rtorb_dynamic::{OwnReference, Proxy};

use self::in_lane::InLane;
use crate::background_printer::{BackgroundPrinter, PATIENCE};
use crate::exit_status::FAILED;
use crate::interface_options::{InterfaceOptions, interface_error};
use crate::orb_options::ServerOptions;
use crate::output::warn;
use crate::reference::{self, CallOptions};
use crate::serving::{Served, ServingOptions, Sink};

/// Pass calls on to an object, and print each with its values and times (docs/how-to/serve.md).
///
/// Clients use the reference of --ior-file, or the key, instead of REF. Calls have the priority that the client gives them, or that of
/// --priority. It ends by SIGTERM or SIGINT. Exit status 1: the recording
/// is not complete.
///
/// With --in-lane, there is no proxy: the threads of a process of this host copy the calls that they serve, of all its objects, after the replies. The
/// process has -ORBRecordCalls BYTES among the options of its ORB.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Record {
    /// Object reference: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(value_name = "REF", required_unless_present = "in_lane")]
    reference: Option<String>,
    #[command(flatten)]
    lane: InLane,
    #[command(flatten)]
    interface: InterfaceOptions,
    /// File to record each call in, one JSON object a line, for `rtorb serve --replay`. It is emptied when the proxy begins to
    /// serve.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print each call as one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    serving: ServingOptions,
    #[command(flatten)]
    calling: CallOptions,
    #[command(flatten)]
    server: ServerOptions,
}

impl Record {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Some(reference) = self.reference.as_deref() else {
            return self.run_in_lane();
        };
        let orb = self.calling.serving_orb(&self.server)?;
        let target = reference::object(&orb, reference)?;
        let found = self.interface.search().interface_of(&target, None);
        if let Some(advice) = self.calling.priority_advice(&target) {
            warn(advice);
        }
        let found = match found {
            Ok(found) => Some(found),
            Err(SearchError::NotFound { type_id }) => {
                warn(not_decoded(&type_id));
                None
            }
            Err(SearchError::Idl(error)) => {
                warn(format!("{error}\ncalls pass, and their values are bytes"));
                None
            }
            Err(error) => return Err(interface_error(error)),
        };
        let priority = self.calling.priority()?;
        let own = OwnReference::default();
        let served = Served {
            policies: Proxy::policies(&target),
            out: self.out.clone(),
            target: Some(target.ior().clone()),
            activate: |poa: &Poa, sink: Sink| {
                let mut proxy = Proxy::new(target, &orb, sink).with_own_reference(&own);
                if let Some(found) = found {
                    proxy = proxy.with_interface(found);
                }
                if let Some(priority) = priority {
                    proxy = proxy.with_priority(priority);
                }
                poa.activate_dynamic(proxy)
            },
        };
        let printer = Arc::new(CallPrinter::start(self.json)?);
        let own_printer = Arc::clone(&printer);
        let print = move |call: &Call| own_printer.print(call);
        let own_printer = Arc::clone(&printer);
        let warn = move |text| {
            own_printer.warnings.queue(text);
        };
        let serving = self.serving.activate(&orb, &own, served, print, warn)?;
        let ran = self.serving.run(&serving, || ());
        printer.end();
        Ok(if ran? {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }
}

/// The notice about an object whose calls are not decoded.
fn not_decoded(type_id: &str) -> String {
    let whose = if type_id.is_empty() {
        "neither the reference nor the object says its interface".to_owned()
    } else {
        format!("no IDL has the interface {type_id}")
    };
    format!("{whose}: calls pass, and their values are bytes (--idl FILE, --interface NAME)")
}

/// Prints calls on threads of its own, so that a client does not wait for the reader of the output.
struct CallPrinter {
    calls: BackgroundPrinter,
    warnings: BackgroundPrinter,
    is_json: bool,
}

impl CallPrinter {
    fn start(is_json: bool) -> anyhow::Result<Self> {
        Ok(Self {
            calls: BackgroundPrinter::on_stdout()?,
            warnings: BackgroundPrinter::on_stderr()?,
            is_json,
        })
    }

    fn print(&self, call: &Call) {
        let text = if self.is_json {
            serde_json::to_string(call).unwrap_or_else(|error| error.to_string())
        } else {
            call.to_string()
        };
        if self.calls.queue(text) {
            let why = "calls are not printed, because the reader of the output is too slow; they pass, and go into the file of --out";
            self.warnings.queue(why.to_owned());
        }
    }

    /// Prints what is queued, and says how many calls were not printed. It does not wait for a reader that takes nothing.
    fn end(&self) {
        let lost = self.calls.end(PATIENCE);
        if lost > 0 {
            let text = format!("calls that were not printed: {lost}");
            self.warnings.queue(text);
        }
        self.warnings.end(PATIENCE);
    }
}

const EXAMPLES: &str = "Examples:
  rtorb record valve.ior --idl valve.idl --ior-file proxy.ior --out session.jsonl
  rtorb record corbaloc::plant:2809/NameService --listen iiop://127.0.0.1:2809 --key NameService
  rtorb record --in-lane plant-server --idl valve.idl --out session.jsonl --sample 10 --rotate 100000000 --keep 5";
