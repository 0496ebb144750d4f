//! `rtorb record`: passes calls on to an object, and records them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb::Poa;
use rtorb_dynamic::recording::Record as Call;
use rtorb_dynamic::search::SearchError;
use rtorb_dynamic::{OwnReference, Proxy};

use crate::exit_status::FAILED;
use crate::interface_options::{InterfaceOptions, interface_error};
use crate::orb_options::ServerOptions;
use crate::output::{line, warn};
use crate::reference::{self, CallOptions};
use crate::serving::{Served, ServingOptions, Sink};

/// Pass calls on to an object, and print each with its values and times (docs/how-to/serve.md).
///
/// Clients use the reference of --ior-file, or the key, instead of REF. Calls have the priority that the client gives them, or that of
/// --priority. It ends by SIGTERM or SIGINT. Exit status 1: the recording
/// is not complete.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Record {
    /// Object reference: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(value_name = "REF")]
    reference: String,
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
        let orb = self.calling.serving_orb(&self.server)?;
        let target = reference::object(&orb, &self.reference)?;
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
        let is_json = self.json;
        let print = move |call: &Call| print(call, is_json);
        let serving = self.serving.activate(&orb, &own, served, print)?;
        let is_complete = self.serving.run(&serving, || ())?;
        Ok(if is_complete {
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

/// Prints a call. The client must not suffer if nobody reads the output.
fn print(call: &Call, is_json: bool) {
    let text = if is_json {
        serde_json::to_string(call).unwrap_or_else(|error| error.to_string())
    } else {
        call.to_string()
    };
    if let Err(error) = line(text) {
        warn(format!("cannot print: {error}"));
    }
}

const EXAMPLES: &str = "Examples:
  rtorb record valve.ior --idl valve.idl --ior-file proxy.ior --out session.jsonl
  rtorb record corbaloc::plant:2809/NameService --listen iiop://127.0.0.1:2809 --key NameService";
