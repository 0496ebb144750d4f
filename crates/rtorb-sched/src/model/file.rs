//! Reads a system's file: TOML to a checked [`System`], or an error with its line and its correction.
//!
//! `docs/reference/model.md` explains the file, and `docs/reference/system.schema.json` is its schema. The reader goes in an order in which all names
//! are known when they are used: nodes, links, processes, resources, behaviours, calls, chains.

mod behaviours;
mod calls;
mod chains;
mod graph;
mod hardware;
mod names;
mod tables;
mod timing;
mod values;

use core::cell::RefCell;
use core::ops::Range;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::system::{System, Timing};
use crate::mapping::PriorityRange;
use crate::text_file::forms::{MISTAKES_MAX, cut};
use crate::text_file::{FileErrors, Mistake, from_toml, read_text};

/// A function that returns the timing of every annotated operation of these IDL files, by `Module::Interface::operation`, or why
/// they cannot be read.
pub type Interfaces<'a> = &'a dyn Fn(&[PathBuf]) -> Result<BTreeMap<String, Timing>, String>;

impl System {
    /// Reads a system's file. `interfaces` reads the IDL files that it names, if any.
    ///
    /// # Errors
    /// [`FileErrors`] with the places of all mistakes.
    pub fn read(path: impl AsRef<Path>, interfaces: Interfaces) -> Result<Self, FileErrors> {
        let path = path.as_ref();
        let text = read_text(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse_all(&text, folder, interfaces)
            .map_err(|mistakes| FileErrors::new(path, text, mistakes))
    }

    /// Parses a system's text. Its paths are relative to `folder`.
    ///
    /// # Errors
    /// The line of the first mistake, from 1, if there is one; and the mistake with its correction.
    pub fn parse(
        text: &str,
        folder: &Path,
        interfaces: Interfaces,
    ) -> Result<Self, (Option<usize>, String)> {
        let parsed = Self::parse_all(text, folder, interfaces);
        parsed.map_err(|mut mistakes| {
            let first = mistakes.swap_remove(0);
            (first.line, first.reason)
        })
    }

    /// Parses a system's text, and goes on after a mistake: in the form of the file first, and then in its meaning as far as other
    /// mistakes do not follow from those that were found.
    ///
    /// # Errors
    /// The mistakes in the order in which they were found; at least one.
    pub fn parse_all(
        text: &str,
        folder: &Path,
        interfaces: Interfaces,
    ) -> Result<Self, Vec<Mistake>> {
        let file = from_toml(text)?;
        let lines = Lines::of_text(text);
        system(&file, folder, interfaces, &lines).map_err(|Stopped| lines.mistakes())
    }
}

fn system(
    file: &tables::File,
    folder: &Path,
    interfaces: Interfaces,
    lines: &Lines,
) -> Result<System, Stopped> {
    lines.keep(check_sizes(file));
    lines.go_on()?;
    let name = names::check_system(file.name.get_ref());
    lines.keep(name.map_err(|reason| LineError::at(lines.of(&file.name), reason)));
    let range = lines.keep(priorities(&file.priorities, lines));
    let mut system = System {
        name: file.name.get_ref().clone(),
        strategy: file.strategy.0,
        priorities: range.unwrap_or(PriorityRange {
            least_urgent: LEAST_URGENT.into(),
            most_urgent: MOST_URGENT.into(),
        }),
        nodes: Vec::new(),
        links: Vec::new(),
        channels: Vec::new(),
        components: Vec::new(),
        behaviours: Vec::new(),
        resources: Vec::new(),
        chains: Vec::new(),
        cause_effect_chains: Vec::new(),
    };
    let nodes = hardware::nodes(&mut system, &file.node, folder, lines);
    lines.go_on()?;
    hardware::links(&mut system, &file.link, &nodes, lines);
    let (resources, channels) = hardware::processes(&mut system, file, &nodes, lines);
    let annotations = lines.keep(timing::annotations(&file.idl, folder, interfaces, lines));
    lines.go_on()?;
    let annotations = annotations.flatten();
    let behaviours = behaviours::read(&mut system, file, &resources, &annotations, lines)?;
    calls::read(&mut system, file, &behaviours, &channels, lines);
    lines.go_on()?;
    graph::check(&mut system, file, &annotations, lines)?;
    chains::read(&mut system, file, &behaviours, lines);
    lines.go_on()?;
    Ok(system)
}

fn priorities(table: &tables::PrioritiesTable, lines: &Lines) -> Result<PriorityRange, LineError> {
    let corba = |given: &Option<Spanned<values::CorbaPriority>>, otherwise: i16| {
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
        Some(given) if range.least_urgent > range.most_urgent => Err(LineError::at(
            lines.of(given),
            format!(
                "least_urgent is {} and most_urgent is {}: a larger CORBA priority is more urgent, so exchange them",
                range.least_urgent, range.most_urgent
            ),
        )),
        _ => Ok(range),
    }
}

/// Checks the sizes of a file, so that its analysis is bounded.
fn check_sizes(file: &tables::File) -> Result<(), LineError> {
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
        (
            "cause-effect chains",
            file.cause_effect_chain.len(),
            CHAINS_MAX,
        ),
        ("IDL files", file.idl.len(), IDL_FILES_MAX),
    ];
    for (what, count, most) in sizes {
        if count > most {
            let reason = format!("there are {count} {what}; the maximum is {most}");
            return Err(LineError {
                place: None,
                reason,
            });
        }
    }
    let missing = |what: &str, how: &str| {
        Err(LineError {
            place: None,
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

/// An error in a place of the file.
#[derive(Debug)]
struct LineError {
    place: Option<Place>,
    reason: String,
}

impl LineError {
    fn at(place: Place, reason: impl Into<String>) -> Self {
        Self {
            place: Some(place),
            reason: reason.into(),
        }
    }
}

/// The place of a value: its line, from 1, and its bytes; none for the whole line.
#[derive(Clone, Copy, Debug)]
struct Place {
    line: usize,
    bytes: (usize, usize),
}

impl Place {
    fn of_line(line: usize) -> Self {
        Self {
            line,
            bytes: (0, 0),
        }
    }
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.line.fmt(f)
    }
}

/// There are mistakes from which others would follow.
struct Stopped;

/// The beginnings of the lines of a text, and the mistakes that were found in it. A file has many names, and each must find its line
/// quickly.
struct Lines {
    starts: Vec<usize>,
    mistakes: RefCell<Vec<LineError>>,
}

impl Lines {
    fn of_text(text: &str) -> Self {
        let after = text.match_indices('\n').map(|(byte, _)| byte + 1);
        Self {
            starts: core::iter::once(0).chain(after).collect(),
            mistakes: RefCell::default(),
        }
    }

    /// Returns the place of a value.
    fn of<T>(&self, what: &Spanned<T>) -> Place {
        self.place(what.span())
    }

    fn place(&self, span: Range<usize>) -> Place {
        Place {
            line: self.starts.partition_point(|start| *start <= span.start),
            bytes: (span.start, span.end),
        }
    }

    /// Returns the value, or adds the error to the mistakes.
    fn keep<T>(&self, read: Result<T, LineError>) -> Option<T> {
        read.map_err(|wrong| self.add(wrong)).ok()
    }

    fn add(&self, wrong: LineError) {
        if !self.is_full() {
            self.mistakes.borrow_mut().push(wrong);
        }
    }

    /// Returns true if there are so many mistakes that no more are looked for.
    fn is_full(&self) -> bool {
        self.mistakes.borrow().len() >= MISTAKES_MAX
    }

    /// Stops if there are mistakes.
    fn go_on(&self) -> Result<(), Stopped> {
        if self.mistakes.borrow().is_empty() {
            Ok(())
        } else {
            Err(Stopped)
        }
    }

    /// Returns the mistakes that were found.
    fn mistakes(&self) -> Vec<Mistake> {
        let found = self.mistakes.take().into_iter();
        let mistake = |wrong: LineError| Mistake {
            line: wrong.place.map(|place| place.line),
            bytes: wrong
                .place
                .map_or(0..0, |place| place.bytes.0..place.bytes.1),
            reason: cut(wrong.reason),
        };
        found.map(mistake).collect()
    }
}

/// The range of a file that gives none leaves the extremes of the host's to others, as scheduling files do.
const LEAST_URGENT: i16 = 1;
const MOST_URGENT: i16 = 80;

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
