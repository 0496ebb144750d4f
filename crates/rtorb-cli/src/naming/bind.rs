//! `rtorb naming bind`: binds one name, or many.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb_services::naming::client::{Context, Existing};

use super::{ContextOptions, NameArgument, load, service_error};
use crate::reference;

/// Bind a name to an object or a context, or bind many names from a file.
///
/// Exit status 1: the name is bound already (see --rebind), or a context of the name is missing (see --parents).
#[derive(Debug, Args)]
pub(super) struct Bind {
    /// Name to bind, such as plant/valve.device.
    #[arg(value_name = "NAME", required_unless_present = "from_file")]
    name: Option<NameArgument>,
    /// Reference to bind: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one. The object is not called,
    /// except with --context, if its reference does not say that it is a context.
    #[arg(value_name = "REF", required_unless_present = "from_file")]
    reference: Option<String>,
    /// Bind as a context, so that names continue in it. It may belong to another naming service.
    #[arg(long, conflicts_with = "from_file")]
    context: bool,
    /// Replace an existing binding.
    #[arg(long)]
    rebind: bool,
    /// Make the missing contexts of the name.
    #[arg(long)]
    parents: bool,
    /// File of names to bind (- is standard input). Each line is NAME REF, or the JSON of `list --json --references`.
    #[arg(long = "from", value_name = "FILE", conflicts_with_all = ["name", "reference"])]
    from_file: Option<PathBuf>,
    /// Number of connections that bind names at the same time; the server can put as many names into one commit of its store.
    #[arg(long, value_name = "N", default_value_t = 16, requires = "from_file",
        value_parser = clap::value_parser!(u16).range(1..=256))]
    connections: u16,
    /// With --from, print one JSON object: bound, failed, seconds and the first failures.
    #[arg(long, requires = "from_file")]
    json: bool,
    #[command(flatten)]
    from: ContextOptions,
}

impl Bind {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let (orb, context) = self.from.open()?;
        let existing = if self.rebind {
            Existing::Replace
        } else {
            Existing::Keep
        };
        if let Some(file) = self.from_file {
            let loading = load::Loading {
                file,
                connections: usize::from(self.connections),
                existing,
                makes_parents: self.parents,
                as_json: self.json,
            };
            return loading.run(&orb, &context);
        }
        let (Some(NameArgument { name }), Some(reference)) = (&self.name, &self.reference) else {
            unreachable!("clap requires both without --from");
        };
        let object = reference::object(&orb, reference)?;
        if self.parents {
            context.make_parents(name).map_err(service_error)?;
        }
        let outcome = if self.context {
            let bound = Context::narrow(&object)
                .map_err(|failure| anyhow::anyhow!("{reference}: {failure}"))?;
            context.bind_context(name, &bound, existing)
        } else {
            context.bind(name, &object, existing)
        };
        outcome.map_err(service_error)?;
        Ok(ExitCode::SUCCESS)
    }
}
