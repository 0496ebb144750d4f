//! `rtorb naming list`: what is bound, as a tree or as a line of JSON for each name.

use std::process::ExitCode;

use clap::Args;
use rtorb_services::naming::client::{Context, Failure, Inside, Step, Walk, format_name};
use rtorb_services::stubs::naming::cos_naming::NameComponent;

use super::{CONTEXT, Entry, From, Given, OBJECT, name_of, told};
use crate::NO;
use crate::output::line;

/// List what is bound in a context: contexts end in a /.
///
/// Exit status 1: something could not be listed; what and why is told, and the rest is listed.
#[derive(Debug, Args)]
pub(super) struct List {
    /// A context; without it, that of --name-service.
    #[arg(value_name = "NAME")]
    name: Option<Given>,
    /// List what is in the contexts too, also in those of other servers. A context with several names is listed once.
    #[arg(long, short)]
    recursive: bool,
    /// How many contexts below one another are listed.
    #[arg(long, value_name = "N", default_value_t = 64, requires = "recursive",
        value_parser = clap::value_parser!(u16).range(1..=Walk::DEPTH_MAX as i64))]
    depth: u16,
    /// How many bindings the server is asked for at a time.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    chunk: u32,
    /// Resolve each name too, which is a call for each.
    #[arg(long)]
    references: bool,
    #[command(flatten)]
    from: From,
    /// Print a JSON object for each name, one a line: name, type, and with --references reference. `bind --from` reads it.
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let (_orb, root) = self.from.open()?;
        let context = root.context(name_of(self.name.as_ref())).map_err(told)?;
        let walk = Walk {
            depth_max: if self.recursive {
                usize::from(self.depth)
            } else {
                1
            },
            chunk: self.chunk,
        };
        let mut failures = 0;
        walk.walk(&context, &mut |step| {
            if let Some(failure) = self.print(&context, &step)? {
                eprintln!("rtorb: {failure}");
                failures += 1;
            }
            anyhow::Ok(())
        })?;
        Ok(if failures == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(NO)
        })
    }

    /// Prints what was found, and answers what is wrong with it.
    fn print(&self, context: &Context, step: &Step<'_>) -> anyhow::Result<Option<Failure>> {
        let (name, kind, same_as) = match *step {
            Step::Failed(failure) => return Ok(Some(failure.clone())),
            Step::Object(name) => (name, OBJECT, None),
            Step::Context(name, Inside::Listed(before)) => (name, CONTEXT, Some(before)),
            Step::Context(name, _) => (name, CONTEXT, None),
        };
        // What is listed below is made anew where this list is read, and needs no reference.
        let is_made = matches!(step, Step::Context(_, Inside::Follows | Inside::Listed(_)));
        let resolved = match self.references && !is_made {
            true => context.resolve(name).map(|object| match object {
                Some(object) => Some(object.to_string()),
                None => Some("nil".to_owned()),
            }),
            false => Ok(None),
        };
        let (reference, failure) = match resolved {
            Ok(reference) => (reference, None),
            Err(failure) => (None, Some(failure)),
        };
        match self.json {
            true => line(serde_json::to_string(&Entry {
                name: format_name(name),
                kind,
                reference,
                same_as: same_as.map(format_name),
            })?)?,
            false => line(drawn(name, kind, reference, same_as))?,
        }
        Ok(failure)
    }
}

/// A line of the tree.
fn drawn(
    name: &[NameComponent],
    kind: &str,
    reference: Option<String>,
    same_as: Option<&[NameComponent]>,
) -> String {
    let (own, above) = name.split_last().map_or((&[][..], 0), |(own, above)| {
        (std::slice::from_ref(own), above.len())
    });
    let mut text = "  ".repeat(above) + &format_name(own);
    if kind == CONTEXT {
        text.push('/');
    }
    if let Some(other) = same_as {
        text += &match other.is_empty() {
            true => "  (where this list begins)".to_owned(),
            false => format!("  (the same as {}/, above)", format_name(other)),
        };
    }
    if let Some(reference) = reference {
        text += "  ";
        text += &reference;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_services::naming::client::parse_name;

    #[test]
    fn a_tree_is_drawn_by_the_last_step_of_each_name() {
        let name = |text| parse_name(text).expect("a name");
        let drawn = |text, kind, other| drawn(&name(text), kind, None, other);
        assert_eq!(drawn("a", CONTEXT, None), "a/");
        assert_eq!(drawn(r"a/x\/y.k", OBJECT, None), r"  x\/y.k");
        let other = name("a/b");
        assert_eq!(
            drawn("a/b/c", CONTEXT, Some(&other)),
            "    c/  (the same as a/b/, above)"
        );
    }
}
