//! The names of one kind: unique, and found with a suggestion for a misspelt one.

use std::collections::BTreeMap;

use toml::Spanned;

use super::{LineError, Lines, Place};
use crate::text_file::nearest;

/// The names of one kind of thing, with the place and the line of each.
pub(super) struct Names {
    /// The kind, as in "there is no node of that name".
    kind: &'static str,
    places: BTreeMap<String, (usize, usize)>,
}

impl Names {
    pub(super) fn of(kind: &'static str) -> Self {
        Self {
            kind,
            places: BTreeMap::new(),
        }
    }

    /// Adds the next name and returns its line. `within` is the prefix, such as the component of a behaviour.
    pub(super) fn add(
        &mut self,
        within: Option<&str>,
        name: &Spanned<String>,
        lines: &Lines,
    ) -> Result<Place, LineError> {
        let line = lines.of(name);
        check_part(name.get_ref()).map_err(|reason| LineError::at(line, reason))?;
        let full = match within {
            Some(within) => format!("{within}.{}", name.get_ref()),
            None => name.get_ref().clone(),
        };
        if let Some(first) = self.line(&full) {
            let reason = format!(
                "line {first} already has a {} {full:?}: rename one of them",
                self.kind
            );
            return Err(LineError::at(line, reason));
        }
        self.places.insert(full, (self.places.len(), line.line));
        Ok(line)
    }

    /// Returns the line of a name.
    pub(super) fn line(&self, name: &str) -> Option<usize> {
        self.places.get(name).map(|(_, line)| *line)
    }

    /// Returns the index of a name.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).map(|(place, _)| *place)
    }

    /// Returns the index of a name that this line uses.
    pub(super) fn find(&self, name: &str, line: Place) -> Result<usize, LineError> {
        if let Some(place) = self.place(name) {
            return Ok(place);
        }
        let kind = self.kind;
        let tail = format!(".{name}");
        let meant = self
            .places
            .keys()
            .map(String::as_str)
            .find(|full| full.ends_with(&tail))
            .or_else(|| nearest(name, self.places.keys().map(String::as_str)));
        let help = match meant {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!("add a {kind} of that name, or use an existing one"),
        };
        Err(LineError::at(
            line,
            format!("there is no {kind} {name:?}: {help}"),
        ))
    }
}

/// Checks a name or a part of one: it appears in tables and messages, in `NODE/CPU`, `COMPONENT.NAME` and `NODE=FILE`.
fn check_part(name: &str) -> Result<(), String> {
    check_text(name)?;
    if name.contains(['.', '/', '=']) {
        return Err(format!(
            "{name:?} contains a dot, a slash or an equals sign, which separate names: write - or _ instead"
        ));
    }
    Ok(())
}

/// Checks the text of a name.
pub(super) fn check_text(name: &str) -> Result<(), String> {
    let prints = !name.chars().any(char::is_control) && name.trim() == name;
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !prints {
        let shown: String = name.chars().take(40).collect();
        return Err(format!(
            "{shown:?} is not a name: write 1 to {NAME_BYTES_MAX} bytes without control characters and without spaces at the ends"
        ));
    }
    Ok(())
}

/// Checks the name of a system, which also names files.
pub(super) fn check_system(name: &str) -> Result<(), String> {
    check_text(name)?;
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    if name.len() > SYSTEM_NAME_BYTES_MAX || !name.chars().all(plain) {
        return Err(format!(
            "{name:?} cannot name a system, because the name is also that of files: write at most {SYSTEM_NAME_BYTES_MAX} letters, digits, - and _"
        ));
    }
    Ok(())
}

const NAME_BYTES_MAX: usize = 256;
const SYSTEM_NAME_BYTES_MAX: usize = 64;
