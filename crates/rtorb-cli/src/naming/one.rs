//! `rtorb naming resolve|unbind|new-context|bind-new-context|destroy`: what concerns one name.

use anyhow::anyhow;
use clap::Args;
use rtorb_services::naming::client::format_name;
use serde_json::json;

use super::{From, Given, print_context, told};
use crate::output::{line, print_json};

/// Print the reference that a name is bound to.
///
/// Exit status 1: it is bound to none; which part of the name is missing is told.
#[derive(Debug, Args)]
pub(super) struct Resolve {
    #[arg(value_name = "NAME")]
    name: Given,
    #[command(flatten)]
    from: From,
    /// Print one JSON object: name, type_id, endpoints and reference.
    #[arg(long)]
    json: bool,
}

/// Take a name away. What it was bound to stays as it is.
#[derive(Debug, Args)]
pub(super) struct Unbind {
    #[arg(value_name = "NAME")]
    name: Given,
    #[command(flatten)]
    from: From,
}

/// Make a context that is bound to no name, and print its reference.
#[derive(Debug, Args)]
pub(super) struct NewContext {
    #[command(flatten)]
    from: From,
}

/// Make a context, bind it to a name, and print its reference.
#[derive(Debug, Args)]
pub(super) struct BindNewContext {
    #[arg(value_name = "NAME")]
    name: Given,
    /// Make the contexts that the name leads through too, where they are missing.
    #[arg(long)]
    parents: bool,
    #[command(flatten)]
    from: From,
    /// Print one JSON object: name, type and reference.
    #[arg(long)]
    json: bool,
}

/// End an empty context, and take its name away.
///
/// Without NAME, the context of --name-service is ended, and no name is taken away.
#[derive(Debug, Args)]
pub(super) struct Destroy {
    #[arg(value_name = "NAME", required_unless_present = "name_service")]
    name: Option<Given>,
    #[command(flatten)]
    from: From,
}

impl Resolve {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (_orb, context) = self.from.open()?;
        let object = context.resolve(&self.name.name).map_err(told)?;
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
        context.unbind(&self.name.name).map_err(told)
    }
}

impl NewContext {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (_orb, context) = self.from.open()?;
        line(context.new_context().map_err(told)?.as_object().to_string())
    }
}

impl BindNewContext {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (_orb, context) = self.from.open()?;
        let name = &self.name.name;
        if self.parents {
            context.make_parents(name).map_err(told)?;
        }
        let made = context.bind_new_context(name).map_err(told)?;
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
        .map_err(told)
    }
}
