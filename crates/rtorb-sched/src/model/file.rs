//! A system's file: TOML to a [`System`] in which everything is checked, or the line of what is wrong and what would be right.
//!
//! The file is for people, `docs/model.md` explains it and `docs/system.schema.json` has its form. One thing after the other is
//! read, each with what it names already there: nodes, links, processes, resources, behaviours, calls, chains.

mod behaviours;
mod calls;
mod chains;
mod graph;
mod hardware;
mod names;
mod tables;
mod timing;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::system::{System, Timing};
use crate::mapping::PriorityRange;
use crate::toml_file::{FileError, from_toml, nearest, read_text};

/// The timing of every annotated operation of these IDL files, by `Module::Interface::operation`; or why they cannot be read.
pub type Interfaces<'a> = &'a dyn Fn(&[PathBuf]) -> Result<BTreeMap<String, Timing>, String>;

impl System {
    /// Reads a system's file. `interfaces` is given the IDL files that it names, if any.
    ///
    /// # Errors
    /// [`FileError`] with the line.
    pub fn read(path: impl AsRef<Path>, interfaces: Interfaces) -> Result<Self, FileError> {
        let path = path.as_ref();
        let text = read_text(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder, interfaces).map_err(|(line, reason)| FileError {
            path: path.to_owned(),
            line,
            reason,
        })
    }

    /// The system in a text whose paths are relative to a folder.
    ///
    /// # Errors
    /// The line, from 1, where there is one; and what is wrong, and what would be right.
    pub fn parse(
        text: &str,
        folder: &Path,
        interfaces: Interfaces,
    ) -> Result<Self, (Option<usize>, String)> {
        let file = from_toml(text).map_err(|(line, reason)| (line, cut(clearer(&reason))))?;
        let lines = Lines::of_text(text);
        system(&file, folder, interfaces, &lines).map_err(|wrong| (wrong.line, cut(wrong.reason)))
    }
}

fn system(
    file: &tables::File,
    folder: &Path,
    interfaces: Interfaces,
    lines: &Lines,
) -> Result<System, Wrong> {
    names::check_system(file.name.get_ref())
        .map_err(|reason| Wrong::at(lines.of(&file.name), reason))?;
    check_sizes(file)?;
    let mut system = System {
        name: file.name.get_ref().clone(),
        strategy: file.strategy.0,
        priorities: priorities(&file.priorities, lines)?,
        nodes: Vec::new(),
        links: Vec::new(),
        channels: Vec::new(),
        components: Vec::new(),
        behaviours: Vec::new(),
        resources: Vec::new(),
        chains: Vec::new(),
    };
    let nodes = hardware::nodes(&mut system, &file.node, folder, lines)?;
    hardware::links(&mut system, &file.link, &nodes, lines)?;
    let (resources, channels) = hardware::processes(&mut system, file, &nodes, lines)?;
    let annotated = timing::annotated(&file.idl, folder, interfaces, lines)?;
    let behaviours = behaviours::read(&mut system, file, (&resources, &annotated), lines)?;
    calls::read(&mut system, file, (&behaviours, &channels), lines)?;
    graph::check(&mut system, file, &annotated, lines)?;
    chains::read(&mut system, &file.chain, &behaviours, lines)?;
    Ok(system)
}

fn priorities(table: &tables::PrioritiesTable, lines: &Lines) -> Result<PriorityRange, Wrong> {
    let corba = |given: &Option<Spanned<values::Priority>>, otherwise: i16| {
        given
            .as_ref()
            .map_or(otherwise, |number| number.get_ref().corba())
    };
    let range = PriorityRange {
        least_urgent: corba(&table.least_urgent, LEAST_URGENT).into(),
        most_urgent: corba(&table.most_urgent, MOST_URGENT).into(),
    };
    let given = table.least_urgent.as_ref().or(table.most_urgent.as_ref());
    match given {
        Some(given) if range.least_urgent > range.most_urgent => Err(Wrong::at(
            lines.of(given),
            format!(
                "least_urgent is {} and most_urgent {}: of CORBA priorities the larger is the more urgent, so write them the other way round",
                range.least_urgent, range.most_urgent
            ),
        )),
        _ => Ok(range),
    }
}

/// What a file may hold at most, so that no analysis of it is without end.
fn check_sizes(file: &tables::File) -> Result<(), Wrong> {
    let components = &file.component;
    let behaviours = components.iter().flat_map(|table| &table.behaviour);
    let sections = behaviours.clone().map(|table| table.sections.len());
    let calls = behaviours.clone().map(|table| table.calls.len());
    let resources = components.iter().map(|table| table.resource.len());
    let sizes = [
        ("nodes", file.node.len(), NODES_MAX),
        ("links", file.link.len(), LINKS_MAX),
        ("channels", file.channel.len(), CHANNELS_MAX),
        ("components", components.len(), COMPONENTS_MAX),
        ("resources", resources.sum(), RESOURCES_MAX),
        ("behaviours", behaviours.clone().count(), BEHAVIOURS_MAX),
        ("sections", sections.sum(), SECTIONS_MAX),
        ("calls", calls.sum(), CALLS_MAX),
        ("chains", file.chain.len(), CHAINS_MAX),
        ("IDL files", file.idl.len(), IDL_FILES_MAX),
    ];
    for (what, count, most) in sizes {
        if count > most {
            let reason = format!("there are {count} {what}, and {most} are read at most");
            return Err(Wrong { line: None, reason });
        }
    }
    let missing = |what: &str, how: &str| {
        Err(Wrong {
            line: None,
            reason: format!("there is no {what}: write at least one {how}"),
        })
    };
    if file.node.is_empty() {
        return missing("node", "[[node]] with a name");
    }
    if behaviours.count() == 0 {
        return missing(
            "behaviour",
            "[[component]] with a [[component.behaviour]] that has a name, a period and an execution",
        );
    }
    Ok(())
}

/// What is wrong, in which line.
#[derive(Debug)]
struct Wrong {
    line: Option<usize>,
    reason: String,
}

impl Wrong {
    fn at(line: usize, reason: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            reason: reason.into(),
        }
    }
}

/// Where the lines of a text begin: a file has many names, and each must find its line soon.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn of_text(text: &str) -> Self {
        let after = text.match_indices('\n').map(|(octet, _)| octet + 1);
        Self {
            starts: core::iter::once(0).chain(after).collect(),
        }
    }

    /// The line of something, from 1.
    fn of<T>(&self, what: &Spanned<T>) -> usize {
        let octet = what.span().start;
        self.starts.partition_point(|start| *start <= octet)
    }
}

/// What the reader of TOML says of fields, as it would be said to an engineer.
fn clearer(reason: &str) -> String {
    if let Some(field) = quoted(reason, "missing field ") {
        return format!("`{field}` is missing here: write {field} = ...");
    }
    let Some(field) = quoted(reason, "unknown field ") else {
        return reason.to_owned();
    };
    let known = reason.split('`').skip(3).step_by(2);
    match nearest(field, known) {
        Some(meant) => format!("{reason}: did you mean `{meant}`?"),
        None => reason.to_owned(),
    }
}

/// No more of it than anybody would read: what is quoted may be as long as the file.
fn cut(mut reason: String) -> String {
    if reason.len() > REASON_OCTETS_MAX {
        reason.truncate(reason.floor_char_boundary(REASON_OCTETS_MAX));
        reason.push_str(" ...");
    }
    reason
}

fn quoted<'a>(reason: &'a str, before: &str) -> Option<&'a str> {
    reason
        .strip_prefix(before)?
        .strip_prefix('`')?
        .split_once('`')
        .map(|(field, _)| field)
}

/// The range of a file that gives none leaves the ends of the host's to others, as scheduling files do.
const LEAST_URGENT: i16 = 1;
const MOST_URGENT: i16 = 80;

/// A circle of calls with its names fits.
const REASON_OCTETS_MAX: usize = 40_000;
const NODES_MAX: usize = 64;
const LINKS_MAX: usize = NODES_MAX * (NODES_MAX - 1) / 2;
const CHANNELS_MAX: usize = 100;
const COMPONENTS_MAX: usize = 1_000;
const RESOURCES_MAX: usize = 10_000;
const BEHAVIOURS_MAX: usize = 10_000;
const SECTIONS_MAX: usize = 50_000;
const CALLS_MAX: usize = 50_000;
const CHAINS_MAX: usize = 1_000;
const IDL_FILES_MAX: usize = 100;
