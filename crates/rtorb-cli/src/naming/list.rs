//! `rtorb naming list`: lists bindings as a tree, or as a line of JSON for each name.

use std::process::ExitCode;

use clap::Args;
use rtorb_services::naming::client::{Context, Inside, Step, Walk, escape, format_name};
use rtorb_services::stubs::naming::cos_naming::NameComponent;

use super::{CONTEXT, ContextOptions, Entry, NameArgument, OBJECT, name_of, service_error};
use crate::exit_status::FAILED;
use crate::output::{line, warn};

/// List the bindings of a context; the names of contexts end in /.
///
/// Exit status 1: a part could not be listed. Messages say which and why, and everything else is listed.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Context to list [default: that of --name-service].
    #[arg(value_name = "NAME")]
    name: Option<NameArgument>,
    /// List the bindings of nested contexts too, also of those on other servers. A context with several names is listed once.
    #[arg(long, short)]
    recursive: bool,
    /// Depth of nested contexts to list, 1 to 256. The bindings of a deeper context are left out [default: 64, and a deeper context is a
    /// part that could not be listed].
    #[arg(long, value_name = "N", requires = "recursive",
        value_parser = clap::value_parser!(u16).range(1..=Walk::DEPTH_MAX as i64))]
    depth: Option<u16>,
    /// Number of bindings requested from the server in one call.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    chunk: u32,
    /// Resolve each name too, with one call for each.
    #[arg(long)]
    references: bool,
    /// Print one JSON object a line for each name: name, type, and with --references also reference. `bind --from` reads it.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    from: ContextOptions,
}

impl List {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let (_orb, root) = self.from.open()?;
        let context = root
            .context(name_of(self.name.as_ref()))
            .map_err(service_error)?;
        let walk = Walk {
            depth_max: if self.recursive {
                usize::from(self.depth.unwrap_or(DEPTH))
            } else {
                1
            },
            chunk: self.chunk,
        };
        let mut failures = 0;
        walk.walk(&context, &mut |step| {
            if let Some(failure) = self.print(&context, &step)? {
                warn(failure);
                failures += 1;
            }
            anyhow::Ok(())
        })?;
        Ok(if failures == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }

    /// Prints one step of the walk, and returns what could not be listed and why.
    fn print(&self, context: &Context, step: &Step<'_>) -> anyhow::Result<Option<String>> {
        let (name, kind, same_as) = match *step {
            Step::Failed(failure) => return Ok(Some(failure.to_string())),
            Step::Object(name) => (name, OBJECT, None),
            Step::Context(name, Inside::Listed(before)) => (name, CONTEXT, Some(before)),
            Step::Context(name, _) => (name, CONTEXT, None),
        };
        // `bind --from` makes contexts whose bindings are listed below; they need no reference.
        let is_remade = matches!(step, Step::Context(_, Inside::Follows | Inside::Listed(_)));
        let is_too_deep = self.recursive
            && self.depth.is_none()
            && matches!(step, Step::Context(_, Inside::TooDeep));
        let resolved = if self.references && !is_remade && !is_too_deep {
            context.resolve(name).map(|object| match object {
                Some(object) => Some(object.to_string()),
                None => Some("nil".to_owned()),
            })
        } else {
            Ok(None)
        };
        let (reference, failure) = match resolved {
            _ if is_too_deep => (None, Some(too_deep(name))),
            Ok(reference) => (reference, None),
            Err(failure) => (None, Some(failure.to_string())),
        };
        if self.json {
            line(serde_json::to_string(&Entry {
                name: format_name(name),
                kind,
                reference,
                same_as: same_as.map(format_name),
            })?)?
        } else {
            line(drawn(name, kind, reference, same_as))?
        }
        Ok(failure)
    }
}

fn too_deep(name: &[NameComponent]) -> String {
    format!(
        "`{}` is not listed: it is deeper than {DEPTH} contexts (--depth N)",
        printable(&format_name(name))
    )
}

/// Formats a line of the tree.
fn drawn(
    name: &[NameComponent],
    kind: &str,
    reference: Option<String>,
    same_as: Option<&[NameComponent]>,
) -> String {
    let (own, above) = name.split_last().map_or((&[][..], 0), |(own, above)| {
        (std::slice::from_ref(own), above.len())
    });
    let mut text = "  ".repeat(above) + &printable(&format_name(own));
    if kind == CONTEXT {
        text.push('/');
    }
    if let Some(other) = same_as {
        text += &if other.is_empty() {
            "  (the start of this list)".to_owned()
        } else {
            format!("  (the same as {}/, above)", printable(&format_name(other)))
        };
    }
    if let Some(reference) = reference {
        text += "  ";
        text += &reference;
    }
    text
}

/// Escapes control characters, which would act on a terminal, and then `%` too.
fn printable(name: &str) -> String {
    if name.contains(char::is_control) {
        escape(name, |character| character == '%' || character.is_control())
    } else {
        name.to_owned()
    }
}

/// The depth of a recursive list if the user does not choose it.
const DEPTH: u16 = 64;

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
        assert_eq!(
            drawn("a\u{1b}[2J\nb\u{e9}", OBJECT, None),
            "a%1B[2J%0Ab\u{e9}"
        );
        let other = name("a/b");
        assert_eq!(
            drawn("a/b/c", CONTEXT, Some(&other)),
            "    c/  (the same as a/b/, above)"
        );
    }
}
