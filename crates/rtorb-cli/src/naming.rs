//! `rtorb naming`: the naming service and its clients.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use rtorb::Orb;
use rtorb_services::naming::client::{Context, Failure, Name, ServiceLocation, parse_name};
use serde::Serialize;

use crate::orb_options::UsageError;
use crate::output::{line, print_json};
use crate::reference::{self, CallOptions};

mod bind;
mod list;
mod load;
mod one;
mod serve;

/// Serve names (CosNaming), and use any CosNaming service.
///
/// A NAME is a stringified name of the standard: id.kind/id.kind/... A / or . or \ inside an id or kind needs a \ before it.
#[derive(Debug, Args)]
pub(crate) struct Naming {
    #[command(subcommand)]
    subcommand: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Serve(serve::Serve),
    List(list::List),
    Resolve(one::Resolve),
    Bind(bind::Bind),
    Unbind(one::Unbind),
    NewContext(one::NewContext),
    BindNewContext(one::BindNewContext),
    Destroy(one::Destroy),
}

impl Naming {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.subcommand {
            Subcommands::Serve(serve) => return serve.run(),
            Subcommands::List(list) => return list.run(),
            Subcommands::Bind(bind) => return bind.run(),
            Subcommands::Resolve(resolve) => resolve.run()?,
            Subcommands::Unbind(unbind) => unbind.run()?,
            Subcommands::NewContext(new_context) => new_context.run()?,
            Subcommands::BindNewContext(bind_new_context) => bind_new_context.run()?,
            Subcommands::Destroy(destroy) => destroy.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The naming context that names start from, and the options of calls to it.
#[derive(Debug, Args)]
struct ContextOptions {
    /// Naming context that names start from: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one [default: from
    /// --init-ref NameService=REF or the configuration file, or else corbaloc:iiop:1.2@localhost:2809/NameService].
    #[arg(long, value_name = "REF")]
    name_service: Option<String>,
    #[command(flatten)]
    calling: CallOptions,
}

impl ContextOptions {
    fn open(&self) -> anyhow::Result<(Orb, Context)> {
        let orb = self.calling.orb()?;
        let context = match &self.name_service {
            Some(argument) => Context::narrow(&reference::object(&orb, argument)?)
                .map_err(|failure| anyhow!("--name-service {argument}: {failure}"))?,
            None => Context::root(&orb).map_err(|failure| {
                let place = ServiceLocation::of(&orb);
                anyhow!(
                    "no naming service at {place}: {failure}. Start one with `rtorb naming serve`, or give its reference with \
                     --name-service REF"
                )
            })?,
        };
        Ok((orb, context))
    }
}

/// A stringified name on the command line.
#[derive(Clone, Debug)]
struct NameArgument {
    name: Name,
}

impl std::str::FromStr for NameArgument {
    type Err = UsageError;

    fn from_str(text: &str) -> Result<Self, UsageError> {
        match parse_name(text) {
            Ok(name) => Ok(Self { name }),
            Err(error) => Err(UsageError::new(format!(
                "{error}: write id.kind/id.kind, with \\ before a /, . or \\ inside an id or kind"
            ))),
        }
    }
}

/// Returns the name's components; none for the context itself.
fn name_of(
    given: Option<&NameArgument>,
) -> &[rtorb_services::stubs::naming::cos_naming::NameComponent] {
    given.map_or(&[], |given| &given.name)
}

/// A binding as JSON: `list` writes it, and `bind --from` reads it.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    name: String,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as: Option<String>,
}

/// Prints the reference of a context, as text or as one JSON object.
fn print_context(name: String, context: &Context, as_json: bool) -> anyhow::Result<()> {
    let reference = context.as_object().to_string();
    if as_json {
        print_json(&Entry {
            name,
            kind: CONTEXT,
            reference: Some(reference),
            same_as: None,
        })
    } else {
        line(reference)
    }
}

/// Converts the failure of a call to a naming service.
fn service_error(failure: Failure) -> anyhow::Error {
    anyhow!(failure)
}

const OBJECT: &str = "object";
const CONTEXT: &str = "context";
