//! `rtorb ior`: shows the contents of an object reference.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use rtorb_dynamic::inspect::ior::{Description, NamedValue};
use rtorb_sched::text_file::shortened;

use crate::orb_options::{ClientOptions, option_error, usage};
use crate::output::{line, print_json};
use crate::reference;

/// Inspect object references.
#[derive(Debug, Args)]
pub(crate) struct Ior {
    #[command(subcommand)]
    subcommand: IorSubcommand,
}

#[derive(Debug, Subcommand)]
enum IorSubcommand {
    /// Show every profile and component of a reference.
    Show {
        /// Object reference: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
        #[arg(value_name = "REF")]
        reference: String,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        client: ClientOptions,
    },
}

impl Ior {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let IorSubcommand::Show {
            reference,
            json,
            client,
        } = &self.subcommand;
        let description = describe(reference, client)?;
        if *json {
            print_json(&description)?
        } else {
            print(&description)?
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Describes an IOR as it is. An ORB resolves a URL first.
fn describe(argument: &str, client: &ClientOptions) -> anyhow::Result<Description> {
    let text = reference::text_of(argument)?;
    if reference::is_ior(&text) {
        let name = shortened(argument);
        return Description::parse(&text).map_err(|error| usage(format!("{name}: {error}")));
    }
    let orb = client.apply(reference::builder()).build();
    let orb = orb.map_err(option_error)?;
    Ok(Description::of(reference::object(&orb, &text)?.ior()))
}

fn print(description: &Description) -> anyhow::Result<()> {
    if description.nil {
        return line("nil: a reference to no object");
    }
    let type_id = if description.type_id.is_empty() {
        "(not in the reference)"
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

fn print_fields(indent: &str, fields: &[NamedValue]) -> anyhow::Result<()> {
    fields
        .iter()
        .try_for_each(|field| line(format!("{indent}{}: {}", field.name, field.value)))
}

/// Formats the standard's tags in decimal, and vendors' tags in hexadecimal, which shows their letters.
fn tag(tag: u32) -> String {
    if tag < 0x1_0000 {
        tag.to_string()
    } else {
        format!("0x{tag:08x}")
    }
}
