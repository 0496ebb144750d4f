//! Names of one kind: each once, and found again, or what was perhaps meant.

use std::collections::BTreeMap;

use toml::Spanned;

use super::{Lines, Wrong};
use crate::toml_file::nearest;

/// The names of one kind of thing, with the place and the line of each.
pub(super) struct Names {
    /// What has them, as in "there is no node of that name".
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

    /// Adds the next one; it answers its line. `within` is what stands before it, as the component of a behaviour.
    pub(super) fn add(
        &mut self,
        within: Option<&str>,
        name: &Spanned<String>,
        lines: &Lines,
    ) -> Result<usize, Wrong> {
        let line = lines.of(name);
        check_part(name.get_ref()).map_err(|reason| Wrong::at(line, reason))?;
        let full = match within {
            Some(within) => format!("{within}.{}", name.get_ref()),
            None => name.get_ref().clone(),
        };
        if let Some(first) = self.line(&full) {
            let reason = format!(
                "there is a {} {full:?} in line {first} already: give one of them another name",
                self.kind
            );
            return Err(Wrong::at(line, reason));
        }
        self.places.insert(full, (self.places.len(), line));
        Ok(line)
    }

    /// The line of what has this name.
    pub(super) fn line(&self, name: &str) -> Option<usize> {
        self.places.get(name).map(|(_, line)| *line)
    }

    /// The place of what has this name.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).map(|(place, _)| *place)
    }

    /// The place of what has this name, which stands in this line.
    pub(super) fn find(&self, name: &str, line: usize) -> Result<usize, Wrong> {
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
            None => format!("write a {kind} with it, or name one that is there"),
        };
        Err(Wrong::at(
            line,
            format!("there is no {kind} {name:?}: {help}"),
        ))
    }
}

/// A name, or a part of one: it stands in tables and messages, in `NODE/CPU`, `COMPONENT.NAME` and `NODE=FILE`.
fn check_part(name: &str) -> Result<(), String> {
    check_text(name)?;
    if name.contains(['.', '/', '=']) {
        return Err(format!(
            "{name:?} has a dot, a slash or an equals sign, which stand between names: write - or _ instead"
        ));
    }
    Ok(())
}

/// What a name may be at all.
pub(super) fn check_text(name: &str) -> Result<(), String> {
    let prints = !name.chars().any(char::is_control) && name.trim() == name;
    if name.is_empty() || name.len() > NAME_OCTETS_MAX || !prints {
        let shown: String = name.chars().take(40).collect();
        return Err(format!(
            "{shown:?} is no name: 1 to {NAME_OCTETS_MAX} octets without control characters and without spaces at its ends"
        ));
    }
    Ok(())
}

/// The name of a system is that of files, too.
pub(super) fn check_system(name: &str) -> Result<(), String> {
    check_text(name)?;
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    if name.len() > SYSTEM_NAME_OCTETS_MAX || !name.chars().all(plain) {
        return Err(format!(
            "{name:?} is no name of a system, which names files: at most {SYSTEM_NAME_OCTETS_MAX} letters, digits, - and _"
        ));
    }
    Ok(())
}

const NAME_OCTETS_MAX: usize = 256;
const SYSTEM_NAME_OCTETS_MAX: usize = 64;
