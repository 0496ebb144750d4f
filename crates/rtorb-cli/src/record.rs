//! `rtorb record`: passes calls on to an object, and records them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb_dynamic::recording::Record as Call;
use rtorb_dynamic::{Forward, OwnReference};

use crate::exit_status::FAILED;
use crate::interface_options::{InterfaceOptions, interface_error};
use crate::orb_options::ServerOptions;
use crate::output::{line, warn};
use crate::reference::{self, CallOptions};
use crate::serving::{Served, ServingOptions};

/// Pass calls on to an object, and print each with its values and times (docs/serve.md).
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
    /// File to record each call in, one JSON object a line, for `rtorb serve --replay`. It is emptied first.
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
        let found = found.map_err(interface_error)?;
        if let Some(advice) = self.calling.priority_advice(&target) {
            warn(advice);
        }
        let mut servant = Forward::new(target, found.types.clone());
        if let Some(priority) = self.calling.priority()? {
            servant = servant.with_priority(&orb, priority);
        }
        let served = Served {
            policies: servant.policies(),
            servant,
            out: self.out.clone(),
        };
        let own = OwnReference::default();
        let is_json = self.json;
        let print = move |call: &Call| print(call, is_json);
        let serving = self.serving.activate(&orb, &found, &own, served, print)?;
        let is_complete = self.serving.run(&serving, || ())?;
        Ok(if is_complete {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }
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
