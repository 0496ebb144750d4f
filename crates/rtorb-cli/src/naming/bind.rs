//! `rtorb naming bind`: a name, or many of them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb_services::naming::client::{Context, Existing};

use super::{From, Given, load, told};
use crate::reference;

/// Bind a name to an object or a context, or many names from a file.
///
/// Exit status 1: it is bound already (see --rebind), or a part of the name is missing (see --parents).
#[derive(Debug, Args)]
pub(super) struct Bind {
    #[arg(value_name = "NAME", required_unless_present = "from_file")]
    name: Option<Given>,
    /// What to bind: an IOR:, a corbaloc: or corbaname:, or a file that holds one. It is not called.
    #[arg(value_name = "REF", required_unless_present = "from_file")]
    reference: Option<String>,
    /// Bind a context, so that names go on there. It may be of another naming service.
    #[arg(long, conflicts_with = "from_file")]
    context: bool,
    /// Bind a name anew that is bound already.
    #[arg(long)]
    rebind: bool,
    /// Make the contexts that names lead through, where they are missing.
    #[arg(long)]
    parents: bool,
    /// Bind what the lines of this file say (- is standard input): NAME REF, or the JSON of `list --json --references`.
    #[arg(long = "from", value_name = "FILE", conflicts_with_all = ["name", "reference"])]
    from_file: Option<PathBuf>,
    /// Connections over which names are bound at a time: the server can put as many into one commit of its store.
    #[arg(long, value_name = "N", default_value_t = 16, requires = "from_file",
        value_parser = clap::value_parser!(u16).range(1..=256))]
    connections: u16,
    #[command(flatten)]
    from: From,
    /// With --from, print one JSON object: bound, failed, seconds and the first failures.
    #[arg(long, requires = "from_file")]
    json: bool,
}

impl Bind {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let (orb, context) = self.from.open()?;
        let existing = match self.rebind {
            true => Existing::Replace,
            false => Existing::Keep,
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
        let (Some(Given { name }), Some(reference)) = (&self.name, &self.reference) else {
            unreachable!("both are required without --from");
        };
        let object = reference::object(&orb, reference)?;
        if self.parents {
            context.make_parents(name).map_err(told)?;
        }
        match self.context {
            true => {
                let bound = Context::narrow(&object)
                    .map_err(|failure| anyhow::anyhow!("{reference}: {failure}"))?;
                context.bind_context(name, &bound, existing)
            }
            false => context.bind(name, &object, existing),
        }
        .map_err(told)?;
        Ok(ExitCode::SUCCESS)
    }
}
