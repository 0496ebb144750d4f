//! One line of what shall be bound: `NAME REFERENCE`, or JSON as `rtorb naming list --json --references` prints it.

use super::name::{Name, parse_name};
use rtorb::url::UrlError;
use serde::Deserialize;

/// What one line says.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What to bind.
    pub name: Name,
    /// To what.
    pub target: Target,
}

/// What a name shall be bound to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The object that this text means.
    Object(String),
    /// The context that this text means, so that names go on there.
    Context(String),
    /// A context of the same server; one that is there already will do.
    NewContext,
    /// The context that is bound to this name, so that both names are of one context; the empty name is the context itself.
    SameAs(Name),
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// No blank in it.
    #[error("it is no `NAME REFERENCE`: there is no blank in it")]
    NoReference,
    /// It begins with a brace, and is not what is expected behind it.
    #[error("it is not as {{\"name\": \"a/b\", \"reference\": \"IOR:...\"}}: {0}")]
    Json(String),
    /// A name that cannot be read.
    #[error("`{text}` is no name: {reason}")]
    Name {
        /// What it reads.
        text: String,
        /// What is wrong.
        reason: UrlError,
    },
    /// An object without a reference, or a context with one and another name.
    #[error(
        "a line has \"reference\"; or \"type\": \"context\" alone or with \"reference\" or \"same_as\""
    )]
    Target,
}

impl Line {
    /// Reads a line; none of a blank one.
    ///
    /// A line that begins with `{` is a JSON object with `name` and `reference`, and `"type": "context"` for a context,
    /// which is a new one when there is no `reference`, or one that has another name too: `same_as`. Of any other line, what
    /// stands behind the last blank is the reference, for names may have blanks in them.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Option<Self>, LineError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if text.starts_with('{') {
            let json: Json =
                serde_json::from_str(text).map_err(|error| LineError::Json(error.to_string()))?;
            return json.line().map(Some);
        }
        let (given, reference) = text
            .rsplit_once([' ', '\t'])
            .ok_or(LineError::NoReference)?;
        Ok(Some(Self {
            name: name(given.trim_end())?,
            target: Target::Object(reference.to_owned()),
        }))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    name: String,
    #[serde(default, rename = "type")]
    kind: Kind,
    reference: Option<String>,
    same_as: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Object,
    Context,
}

impl Json {
    fn line(self) -> Result<Line, LineError> {
        let target = match (self.kind, self.reference, self.same_as) {
            (Kind::Object, Some(reference), None) => Target::Object(reference),
            (Kind::Context, Some(reference), None) => Target::Context(reference),
            (Kind::Context, None, Some(other)) if other.is_empty() => Target::SameAs(Name::new()),
            (Kind::Context, None, Some(other)) => Target::SameAs(name(&other)?),
            (Kind::Context, None, None) => Target::NewContext,
            _ => return Err(LineError::Target),
        };
        Ok(Line {
            name: name(&self.name)?,
            target,
        })
    }
}

fn name(text: &str) -> Result<Name, LineError> {
    parse_name(text).map_err(|reason| LineError::Name {
        text: text.to_owned(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, target: Target) -> Option<Line> {
        let name = parse_name(text).expect("a name");
        Some(Line { name, target })
    }

    #[test]
    fn both_forms_are_read() {
        let object = |text: &str| Target::Object(text.to_owned());
        let other = Target::SameAs(parse_name("c").expect("a name"));
        for (text, expected) in [
            ("a/b.k IOR:00", line("a/b.k", object("IOR:00"))),
            (
                "  the press\\. 1\tcorbaloc::h/k \n",
                line("the press\\. 1", object("corbaloc::h/k")),
            ),
            ("\n", None),
            (
                r#"{"name": "a b", "reference": "a file"}"#,
                line("a b", object("a file")),
            ),
            (
                r#"{"name": "a", "type": "context"}"#,
                line("a", Target::NewContext),
            ),
            (
                r#"{"name": "a", "type": "context", "reference": "IOR:00"}"#,
                line("a", Target::Context("IOR:00".to_owned())),
            ),
            (
                r#"{"name": "a", "type": "context", "same_as": "c"}"#,
                line("a", other),
            ),
        ] {
            assert_eq!(Line::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn wrong_lines_are_told_with_what_is_right() {
        for (text, words) in [
            ("a", "NAME REFERENCE"),
            ("a//b IOR:00", "`a//b` is no name"),
            (r#"{"name": "a"}"#, "reference"),
            (
                r#"{"name": "a", "type": "object", "same_as": "b"}"#,
                "reference",
            ),
            (r#"{"name": "a", "to": "b"}"#, "to"),
            (r#"{"name": "a/", "reference": "IOR:"}"#, "`a/` is no name"),
            (r#"{"name": 1}"#, "\"name\": \"a/b\""),
        ] {
            let said = Line::parse(text).expect_err(words).to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
