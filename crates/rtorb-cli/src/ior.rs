//! `rtorb ior`: what an object reference says.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use rtorb_lab::inspect;
use rtorb_lab::inspect::ior::{Description, Field};
use rtorb_lab::inspect::ping::client_orb;

use crate::output::{line, print_json};
use crate::reference;

/// Look into object references.
#[derive(Debug, Args)]
pub(crate) struct Ior {
    #[command(subcommand)]
    subcommand: IorSubcommand,
}

#[derive(Debug, Subcommand)]
enum IorSubcommand {
    /// Show what a reference says: every profile and component.
    Show {
        /// An IOR:, a corbaloc: or corbaname:, or a file that holds one.
        #[arg(value_name = "REF")]
        reference: String,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

impl Ior {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let IorSubcommand::Show { reference, json } = &self.subcommand;
        let description = describe(reference)?;
        match json {
            true => print_json(&description)?,
            false => print(&description)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// An IOR is read as it is; what a URL stands for is made by an ORB.
fn describe(argument: &str) -> anyhow::Result<Description> {
    let text = inspect::reference_text(argument).map_err(|error| anyhow!(error))?;
    if text.len() >= 4 && text[..4].eq_ignore_ascii_case("ior:") {
        return Description::parse(&text).map_err(|error| anyhow!("{argument}: {error}"));
    }
    let orb = client_orb(RESOLVE_TIMEOUT)?;
    Ok(Description::of(reference::object(&orb, &text)?.ior()))
}

fn print(description: &Description) -> anyhow::Result<()> {
    if description.nil {
        return line("nil: a reference to nothing");
    }
    let type_id = if description.type_id.is_empty() {
        "(the reference does not say)"
    } else {
        &description.type_id
    };
    line(format!("type: {type_id}"))?;
    for (index, profile) in description.profiles.iter().enumerate() {
        line(format!(
            "profile {}: {} (tag {})",
            index + 1,
            profile.name,
            tag(profile.tag)
        ))?;
        print_fields("  ", &profile.fields)?;
        if let Some(real_time) = &profile.real_time {
            print_fields("  ", &real_time.fields())?;
        }
        for component in &profile.components {
            line(format!(
                "  component {} (tag {})",
                component.name,
                tag(component.tag)
            ))?;
            print_fields("    ", &component.fields)?;
        }
    }
    Ok(())
}

fn print_fields(indent: &str, fields: &[Field]) -> anyhow::Result<()> {
    fields
        .iter()
        .try_for_each(|field| line(format!("{indent}{}: {}", field.name, field.value)))
}

/// Small tags are known by their number, vendors' by their letters.
fn tag(tag: u32) -> String {
    if tag < 0x1_0000 {
        tag.to_string()
    } else {
        format!("0x{tag:08x}")
    }
}

/// A corbaname asks a name server.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);
