//! One line of a file of names: `NAME REFERENCE`, or JSON as `rtorb naming list --json --references` prints it.

use super::name::{Name, parse_name};
use rtorb::url::UrlError;
use serde::Deserialize;

/// The content of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The name to bind.
    pub name: Name,
    /// What to bind it to.
    pub target: Target,
}

/// What to bind a name to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The object with this reference.
    Object(String),
    /// The context with this reference, so that names continue there.
    Context(String),
    /// A context of the same server: an existing one, or a new one.
    NewContext,
    /// The context that is bound to this other name, so that it has both names; the empty name is the context itself.
    SameAs(Name),
}

/// Why a line is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// No blank in it.
    #[error("it is no `NAME REFERENCE`: there is no blank in it")]
    NoReference,
    /// The JSON is wrong.
    #[error("it is not as {{\"name\": \"a/b\", \"reference\": \"IOR:...\"}}: {0}")]
    Json(String),
    /// A name cannot be parsed.
    #[error("`{text}` is no name: {reason}")]
    Name {
        /// The text.
        text: String,
        /// The reason.
        reason: UrlError,
    },
    /// An object without a reference, or a context with one and another name.
    #[error(
        "a line has \"reference\"; or \"type\": \"context\" alone or with \"reference\" or \"same_as\""
    )]
    Target,
}

impl Line {
    /// Parses a line; `None` for a blank one.
    ///
    /// A line that begins with `{` is a JSON object with `name` and `reference`, and `"type": "context"` for a context. Without
    /// `reference` that is a new context, or with `same_as` a context that has another name. In any other line, the text after
    /// the last blank is the reference, because names may contain blanks.
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
