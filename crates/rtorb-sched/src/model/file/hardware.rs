//! Reads nodes, links, components, resources and channels.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;

use super::names::Names;
use super::tables::{
    ChannelTable, ComponentTable, File, LinkTable, MutexName, NodeTable, SchedulingName,
    SchedulingNames,
};
use super::values::Integer;
use super::{LineError, Lines, Place};
use crate::holistic::SchedulingPolicy;
use crate::model::system::{Channel, Component, Link, Locking, Node, Placement, Resource, System};

pub(super) fn nodes(
    system: &mut System,
    tables: &[NodeTable],
    folder: &Path,
    lines: &Lines,
) -> Names {
    let mut names = Names::of("node");
    for table in tables {
        let node = names.add(None, &table.name, lines);
        let node = node.and_then(|line| node_of(table, folder, line, lines));
        system.nodes.extend(lines.keep(node));
    }
    names
}

fn node_of(
    table: &NodeTable,
    folder: &Path,
    place: Place,
    lines: &Lines,
) -> Result<Node, LineError> {
    let tick_ns = match &table.tick {
        Some(tick) if tick.get_ref().0 == 0 => {
            let reason = "the period of a tick is at least 1ns: leave it out if there is no tick";
            return Err(LineError::at(lines.of(tick), reason));
        }
        tick => tick.as_ref().map(|tick| tick.get_ref().0),
    };
    if let Some(path) = &table.profile {
        check_path(path, lines)?;
    }
    let scheduling = scheduling(table, lines)?;
    let by_deadline = scheduling.contains(&SchedulingPolicy::EarliestDeadline);
    if let (Some(levels), false) = (&table.levels, by_deadline) {
        let reason = "levels are for lanes that dispatch by deadline: write scheduling = \"edf\", or remove them";
        return Err(LineError::at(lines.of(levels), reason));
    }
    Ok(Node {
        name: table.name.get_ref().clone(),
        cpus: table.cpus.map_or(1, Integer::small),
        profile: table
            .profile
            .as_ref()
            .map(|path| folder.join(path.get_ref())),
        scheduling,
        levels: table.levels.as_ref().map(|levels| levels.get_ref().small()),
        tick_ns,
        line: place.line,
    })
}

/// Returns the policy of each CPU.
fn scheduling(table: &NodeTable, lines: &Lines) -> Result<Vec<SchedulingPolicy>, LineError> {
    let cpus = table.cpus.map_or(1, Integer::small);
    let count = usize::try_from(cpus).expect("few");
    let policy = |name: &SchedulingName| match name {
        SchedulingName::FixedPriority => SchedulingPolicy::FixedPriority,
        SchedulingName::Edf => SchedulingPolicy::EarliestDeadline,
    };
    let Some(given) = &table.scheduling else {
        return Ok(vec![SchedulingPolicy::FixedPriority; count]);
    };
    match given.get_ref() {
        SchedulingNames::All(name) => Ok(vec![policy(name); count]),
        SchedulingNames::Each(names) if names.len() == count => {
            Ok(names.iter().map(policy).collect())
        }
        SchedulingNames::Each(names) => {
            let reason = format!(
                "there are {} policies for {cpus} CPUs: write one for each CPU, or one name for all",
                names.len()
            );
            Err(LineError::at(lines.of(given), reason))
        }
    }
}

/// Checks the path of a file.
pub(super) fn check_path(path: &Spanned<String>, lines: &Lines) -> Result<(), LineError> {
    let text = path.get_ref();
    if text.is_empty() || text.len() > PATH_BYTES_MAX || text.chars().any(char::is_control) {
        let reason = format!(
            "this is not the path of a file: write 1 to {PATH_BYTES_MAX} bytes without control characters"
        );
        return Err(LineError::at(lines.of(path), reason));
    }
    Ok(())
}

pub(super) fn links(system: &mut System, tables: &[LinkTable], nodes: &Names, lines: &Lines) {
    let mut known = BTreeMap::new();
    for table in tables {
        let link = link_of(table, nodes, &mut known, lines);
        system.links.extend(lines.keep(link));
    }
}

fn link_of(
    table: &LinkTable,
    nodes: &Names,
    known: &mut BTreeMap<(usize, usize), Place>,
    lines: &Lines,
) -> Result<Link, LineError> {
    let line = lines.of(&table.between);
    let [one, other] = table.between.get_ref().as_slice() else {
        let count = table.between.get_ref().len();
        let reason = format!("a link is between two nodes, but here are {count}");
        return Err(LineError::at(line, reason));
    };
    let between = [
        nodes.find(one.get_ref(), lines.of(one))?,
        nodes.find(other.get_ref(), lines.of(other))?,
    ];
    if between[0] == between[1] {
        let reason = format!(
            "a link is between two nodes, but both are {:?}: name the other one",
            one.get_ref()
        );
        return Err(LineError::at(line, reason));
    }
    let key = (between[0].min(between[1]), between[0].max(between[1]));
    if let Some(first) = known.insert(key, line) {
        let reason = format!(
            "line {first} already has a link between {:?} and {:?}: a link works in both directions, so remove one",
            one.get_ref(),
            other.get_ref()
        );
        return Err(LineError::at(line, reason));
    }
    Ok(Link {
        between,
        latency_ns: table.latency.0,
        bits_per_second: table.bits_per_second.map(|speed| speed.0),
        line: line.line,
    })
}

/// Reads components, resources and channels; returns the names of the resources and of the channels.
pub(super) fn processes(
    system: &mut System,
    file: &File,
    nodes: &Names,
    lines: &Lines,
) -> (Names, Names) {
    let mut components = Names::of("component");
    let mut resources = Names::of("resource");
    for (component, table) in file.component.iter().enumerate() {
        lines.keep(components.add(None, &table.name, lines));
        let place = place(system, nodes, &Location::of(table), lines);
        let Placement { node, cpu } = lines.keep(place).unwrap_or(NOWHERE);
        let name = table.name.get_ref();
        system.components.push(Component {
            name: name.clone(),
            node,
            cpu,
            line: lines.of(&table.name).line,
        });
        for resource in &table.resource {
            let added = lines.keep(resources.add(Some(name), &resource.name, lines));
            system.resources.extend(added.map(|place| Resource {
                name: format!("{name}.{}", resource.name.get_ref()),
                component,
                locking: match resource.mutex {
                    MutexName::Inheritance => Locking::Inheritance,
                    MutexName::Ceiling => Locking::Ceiling,
                },
                line: place.line,
            }));
        }
    }
    let mut channels = Names::of("channel");
    for table in &file.channel {
        let channel = channel_of(table, (system, nodes), (&mut channels, &components), lines);
        system.channels.extend(lines.keep(channel));
    }
    (resources, channels)
}

fn channel_of(
    table: &ChannelTable,
    (system, nodes): (&System, &Names),
    (channels, components): (&mut Names, &Names),
    lines: &Lines,
) -> Result<Channel, LineError> {
    let line = channels.add(None, &table.name, lines)?;
    let name = table.name.get_ref();
    if let Some(first) = components.line(name) {
        let reason = format!(
            "line {first} already has a component {name:?}, and both are processes: rename one of them"
        );
        return Err(LineError::at(line, reason));
    }
    let location = Location {
        node: &table.node,
        cpu: &table.cpu,
        name: &table.name,
    };
    let Placement { node, cpu } = place(system, nodes, &location, lines)?;
    Ok(Channel {
        name: name.clone(),
        node,
        cpu,
        line: line.line,
    })
}

/// The fields of a process that say where it runs, and its name.
struct Location<'a> {
    node: &'a Option<Spanned<String>>,
    cpu: &'a Option<Spanned<Integer<0, 1023>>>,
    name: &'a Spanned<String>,
}

impl<'a> Location<'a> {
    fn of(table: &'a ComponentTable) -> Self {
        Self {
            node: &table.node,
            cpu: &table.cpu,
            name: &table.name,
        }
    }
}

/// Returns the node and CPU of a process. A single node need not be named.
fn place(
    system: &System,
    nodes: &Names,
    location: &Location<'_>,
    lines: &Lines,
) -> Result<Placement, LineError> {
    let node = match location.node {
        Some(node) => nodes.find(node.get_ref(), lines.of(node))?,
        None if system.nodes.len() == 1 => 0,
        None => {
            let reason =
                "there are several nodes: write node = with the name of the one on which it runs";
            return Err(LineError::at(lines.of(location.name), reason));
        }
    };
    let Some(cpu) = location.cpu else {
        return Ok(Placement { node, cpu: 0 });
    };
    let (number, host) = (cpu.get_ref().small(), &system.nodes[node]);
    if number >= host.cpus {
        let reason = format!(
            "{:?} (line {}) has no CPU {number}: it has {} CPUs, counted from 0, so write at most {}, or increase cpus there",
            host.name,
            host.line,
            host.cpus,
            host.cpus - 1
        );
        return Err(LineError::at(lines.of(cpu), reason));
    }
    Ok(Placement { node, cpu: number })
}

/// Stands for a place that is wrong, until reading stops.
const NOWHERE: Placement = Placement { node: 0, cpu: 0 };
const PATH_BYTES_MAX: usize = 4_096;
