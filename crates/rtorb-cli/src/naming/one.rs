//! `rtorb naming resolve|unbind|new-context|bind-new-context|destroy`: commands for one name.

use anyhow::anyhow;
use clap::Args;
use rtorb_services::naming::client::format_name;
use serde_json::json;

use super::{ContextOptions, NameArgument, print_context, service_error};
use crate::output::{line, print_json};

/// Print the reference that a name is bound to.
///
/// Exit status 1: the name is not bound; the message says which part is missing.
#[derive(Debug, Args)]
pub(super) struct Resolve {
    /// Name from the context of --name-service, such as plant/valve.device.
    #[arg(value_name = "NAME")]
    name: NameArgument,
    /// Print one JSON object: name, type_id, endpoints and reference.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    from: ContextOptions,
}

/// Remove a binding. The object or context itself is not changed.
#[derive(Debug, Args)]
pub(super) struct Unbind {
    /// Name from the context of --name-service, such as plant/valve.device.
    #[arg(value_name = "NAME")]
    name: NameArgument,
    #[command(flatten)]
    from: ContextOptions,
}

/// Make a context without a name, and print its reference.
#[derive(Debug, Args)]
pub(super) struct NewContext {
    #[command(flatten)]
    from: ContextOptions,
}

/// Make a context, bind it to a name, and print its reference.
#[derive(Debug, Args)]
pub(super) struct BindNewContext {
    /// Name from the context of --name-service, such as plant/valve.device.
    #[arg(value_name = "NAME")]
    name: NameArgument,
    /// Make the missing contexts of the name too.
    #[arg(long)]
    parents: bool,
    /// Print one JSON object: name, type and reference.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    from: ContextOptions,
}

/// Destroy an empty context, and remove its binding.
///
/// Without NAME, the context of --name-service is destroyed, and no binding is removed.
#[derive(Debug, Args)]
pub(super) struct Destroy {
    /// Name from the context of --name-service, such as plant/valve.device.
    #[arg(value_name = "NAME", required_unless_present = "name_service")]
    name: Option<NameArgument>,
    #[command(flatten)]
    from: ContextOptions,
}

impl Resolve {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (_orb, context) = self.from.open()?;
        let object = context.resolve(&self.name.name).map_err(service_error)?;
        let name = format_name(&self.name.name);
        let object = object.ok_or_else(|| anyhow!("`{name}` is bound to the nil reference"))?;
        if !self.json {
            return line(object.to_string());
        }
        let endpoints: Vec<_> = object.endpoints().map(ToString::to_string).collect();
        print_json(&json!({
            "name": name,
            "type_id": object.type_id(),
            "endpoints": endpoints,
            "reference": object.to_string(),
        }))
    }
}

impl Unbind {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (_orb, context) = self.from.open()?;
        context.unbind(&self.name.name).map_err(service_error)
    }
}

impl NewContext {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (_orb, context) = self.from.open()?;
        line(
            context
                .new_context()
                .map_err(service_error)?
                .as_object()
                .to_string(),
        )
    }
}

impl BindNewContext {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (_orb, context) = self.from.open()?;
        let name = &self.name.name;
        if self.parents {
            context.make_parents(name).map_err(service_error)?;
        }
        let made = context.bind_new_context(name).map_err(service_error)?;
        print_context(format_name(name), &made, self.json)
    }
}

impl Destroy {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (_orb, context) = self.from.open()?;
        match &self.name {
            Some(given) => context.remove_context(&given.name),
            None => context.destroy(),
        }
        .map_err(service_error)
    }
}
