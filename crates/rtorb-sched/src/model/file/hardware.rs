//! What there is before anything is done: nodes, links, and the processes on them.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;

use super::names::Names;
use super::tables::{File, LinkTable, MutexName, NodeTable, SchedulingName};
use super::values::Whole;
use super::{Lines, Wrong};
use crate::model::system::{Channel, Component, Link, Locking, Node, Resource, Scheduling, System};

pub(super) fn nodes(
    system: &mut System,
    tables: &[NodeTable],
    folder: &Path,
    lines: &Lines,
) -> Result<Names, Wrong> {
    let mut names = Names::of("node");
    for table in tables {
        let line = names.add(None, &table.name, lines)?;
        let tick_ns = match &table.tick {
            Some(tick) if tick.get_ref().0 == 0 => {
                let reason =
                    "a tick comes again after at least 1ns: leave it out where there is none";
                return Err(Wrong::at(lines.of(tick), reason));
            }
            tick => tick.as_ref().map(|tick| tick.get_ref().0),
        };
        if let Some(path) = &table.profile {
            check_path(path, lines)?;
        }
        system.nodes.push(Node {
            name: table.name.get_ref().clone(),
            cpus: table.cpus.map_or(1, Whole::small),
            profile: table
                .profile
                .as_ref()
                .map(|path| folder.join(path.get_ref())),
            scheduling: match table.scheduling {
                SchedulingName::FixedPriority => Scheduling::FixedPriority,
                SchedulingName::Edf => Scheduling::EarliestDeadline,
            },
            tick_ns,
            line,
        });
    }
    Ok(names)
}

/// What may be the path of a file.
pub(super) fn check_path(path: &Spanned<String>, lines: &Lines) -> Result<(), Wrong> {
    let text = path.get_ref();
    if text.is_empty() || text.len() > PATH_OCTETS_MAX || text.chars().any(char::is_control) {
        let reason = format!(
            "this is no path of a file: 1 to {PATH_OCTETS_MAX} octets without control characters"
        );
        return Err(Wrong::at(lines.of(path), reason));
    }
    Ok(())
}

pub(super) fn links(
    system: &mut System,
    tables: &[LinkTable],
    nodes: &Names,
    lines: &Lines,
) -> Result<(), Wrong> {
    let mut known = BTreeMap::new();
    for table in tables {
        let line = lines.of(&table.between);
        let [one, other] = table.between.get_ref().as_slice() else {
            let count = table.between.get_ref().len();
            let reason = format!("a link is between two nodes, and here are {count}");
            return Err(Wrong::at(line, reason));
        };
        let between = [
            nodes.find(one.get_ref(), lines.of(one))?,
            nodes.find(other.get_ref(), lines.of(other))?,
        ];
        if between[0] == between[1] {
            let reason = format!(
                "a link is between two nodes, and both are {:?}: name the other one",
                one.get_ref()
            );
            return Err(Wrong::at(line, reason));
        }
        let key = (between[0].min(between[1]), between[0].max(between[1]));
        if let Some(first) = known.insert(key, line) {
            let reason = format!(
                "there is a link between {:?} and {:?} in line {first} already: it goes both ways, so leave one out",
                one.get_ref(),
                other.get_ref()
            );
            return Err(Wrong::at(line, reason));
        }
        system.links.push(Link {
            between,
            latency_ns: table.latency.0,
            bits_per_second: table.bits_per_second.map(|speed| speed.0),
            line,
        });
    }
    Ok(())
}

/// Components, what they lock, and channels; it answers the names of the resources and of the channels.
pub(super) fn processes(
    system: &mut System,
    file: &File,
    nodes: &Names,
    lines: &Lines,
) -> Result<(Names, Names), Wrong> {
    let mut components = Names::of("component");
    let mut resources = Names::of("resource");
    for (component, table) in file.component.iter().enumerate() {
        let line = components.add(None, &table.name, lines)?;
        let (node, cpu) = place(system, nodes, (&table.node, &table.cpu, line), lines)?;
        let name = table.name.get_ref();
        system.components.push(Component {
            name: name.clone(),
            node,
            cpu,
            line,
        });
        for resource in &table.resource {
            let line = resources.add(Some(name), &resource.name, lines)?;
            system.resources.push(Resource {
                name: format!("{name}.{}", resource.name.get_ref()),
                component,
                locking: match resource.mutex {
                    MutexName::Inheritance => Locking::Inheritance,
                    MutexName::Ceiling => Locking::Ceiling,
                },
                line,
            });
        }
    }
    let mut channels = Names::of("channel");
    for table in &file.channel {
        let line = channels.add(None, &table.name, lines)?;
        let name = table.name.get_ref();
        if let Some(first) = components.line(name) {
            let reason = format!(
                "there is a component {name:?} in line {first} already, and both are processes: give one of them another name"
            );
            return Err(Wrong::at(line, reason));
        }
        let (node, cpu) = place(system, nodes, (&table.node, &table.cpu, line), lines)?;
        system.channels.push(Channel {
            name: name.clone(),
            node,
            cpu,
            line,
        });
    }
    Ok((resources, channels))
}

type Place<'a> = (
    &'a Option<Spanned<String>>,
    &'a Option<Spanned<Whole<0, 1023>>>,
    usize,
);

/// Where a process runs: of a single node nobody must say so.
fn place(
    system: &System,
    nodes: &Names,
    (node, cpu, line): Place,
    lines: &Lines,
) -> Result<(usize, u32), Wrong> {
    let node = match node {
        Some(node) => nodes.find(node.get_ref(), lines.of(node))?,
        None if system.nodes.len() == 1 => 0,
        None => {
            let reason =
                "there are several nodes: write node = with the name of the one that it runs on";
            return Err(Wrong::at(line, reason));
        }
    };
    let Some(cpu) = cpu else { return Ok((node, 0)) };
    let (number, host) = (cpu.get_ref().small(), &system.nodes[node]);
    if number >= host.cpus {
        let reason = format!(
            "there is no CPU {number} in {:?}, which has {} of them (line {}): they count from 0, so write at most {}, or more cpus there",
            host.name,
            host.cpus,
            host.line,
            host.cpus - 1
        );
        return Err(Wrong::at(lines.of(cpu), reason));
    }
    Ok((node, number))
}

const PATH_OCTETS_MAX: usize = 4_096;
