//! `rtorb naming`: the naming service, and its clients.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use rtorb::Orb;
use rtorb_services::naming::client::{Context, Failure, Name, ServiceLocation, parse_name};
use serde::Serialize;

use crate::orb_options::Misuse;
use crate::output::{line, print_json};
use crate::reference::{self, Calling};

mod bind;
mod list;
mod load;
mod one;
mod serve;

/// The naming service (CosNaming), and what can be asked of one, ours or another.
///
/// A NAME is that of the standard: id.kind/id.kind/..., with \ before a /, a . or a \ that belongs to a part of it.
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

/// Which naming context names are from, and how it is called.
#[derive(Debug, Args)]
struct From {
    /// The naming context that names are from: an IOR:, a corbaloc: or corbaname:, or a file that holds one. Without it, what
    /// --init-ref NameService=REF or the configuration file says, or else corbaloc:iiop:1.2@localhost:2809/NameService.
    #[arg(long, value_name = "REF")]
    name_service: Option<String>,
    #[command(flatten)]
    calling: Calling,
}

impl From {
    fn open(&self) -> anyhow::Result<(Orb, Context)> {
        let orb = self.calling.orb()?;
        let context = match &self.name_service {
            Some(argument) => Context::narrow(&reference::object(&orb, argument)?)
                .map_err(|failure| anyhow!("--name-service {argument}: {failure}"))?,
            None => Context::root(&orb).map_err(|failure| {
                let place = ServiceLocation::of(&orb);
                anyhow!(
                    "no naming service at {place}: {failure}. Start one with `rtorb naming serve`, or say where one is with \
                     --name-service REF"
                )
            })?,
        };
        Ok((orb, context))
    }
}

/// A stringified name on the command line.
#[derive(Clone, Debug)]
struct Given {
    name: Name,
}

impl std::str::FromStr for Given {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<Self, Misuse> {
        match parse_name(text) {
            Ok(name) => Ok(Self { name }),
            Err(error) => Err(Misuse::new(format!(
                "{error}: write id.kind/id.kind, with \\ before a /, a . or a \\ that belongs to a part of it"
            ))),
        }
    }
}

/// The name, or none for the context itself.
fn name_of(given: Option<&Given>) -> &[rtorb_services::stubs::naming::cos_naming::NameComponent] {
    given.map_or(&[], |given| &given.name)
}

/// What a name is bound to, for machines; also what a bulk of names is read from.
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
    match as_json {
        true => print_json(&Entry {
            name,
            kind: CONTEXT,
            reference: Some(reference),
            same_as: None,
        }),
        false => line(reference),
    }
}

/// What a naming service said, for `main`.
fn told(failure: Failure) -> anyhow::Error {
    anyhow!(failure)
}

const OBJECT: &str = "object";
const CONTEXT: &str = "context";
