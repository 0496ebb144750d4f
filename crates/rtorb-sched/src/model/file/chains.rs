//! End-to-end deadlines: ways along calls.

use std::collections::BTreeMap;

use super::names::{Names, check_text};
use super::tables::ChainTable;
use super::{Lines, Wrong};
use crate::model::system::{Chain, System, Trigger};

pub(super) fn read(
    system: &mut System,
    tables: &[ChainTable],
    behaviours: &Names,
    lines: &Lines,
) -> Result<(), Wrong> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for table in tables {
        let (name, line) = (table.name.get_ref(), lines.of(&table.name));
        check_text(name).map_err(|reason| Wrong::at(line, reason))?;
        let first = known.insert(name, line).or_else(|| behaviours.line(name));
        if let Some(first) = first {
            let reason =
                format!("the name {name:?} is in line {first} already: give one of them another");
            return Err(Wrong::at(line, reason));
        }
        let through = through(system, table, behaviours, lines)?;
        let deadline_ns = table.deadline.get_ref().0;
        if deadline_ns == 0 {
            let reason = "a deadline is at least 1ns: write a longer one";
            return Err(Wrong::at(lines.of(&table.deadline), reason));
        }
        system.chains.push(Chain {
            name: name.clone(),
            through,
            deadline_ns,
            line,
        });
    }
    Ok(())
}

/// The behaviours of a chain, each called by the one before it.
fn through(
    system: &System,
    table: &ChainTable,
    behaviours: &Names,
    lines: &Lines,
) -> Result<Vec<usize>, Wrong> {
    let names = table.through.get_ref();
    if names.len() < 2 {
        let reason = "a chain goes through at least two behaviours: for one write its own deadline";
        return Err(Wrong::at(lines.of(&table.through), reason));
    }
    let mut places: Vec<usize> = Vec::new();
    for name in names {
        let line = lines.of(name);
        let place = behaviours.find(name.get_ref(), line)?;
        let behaviour = &system.behaviours[place];
        match places.last() {
            None if behaviour.trigger == Trigger::Called => {
                let reason = format!(
                    "a chain begins where something begins by itself, and {:?} is called: name the periodic or sporadic behaviour that leads to it first",
                    behaviour.name
                );
                return Err(Wrong::at(line, reason));
            }
            Some(before) => follow(system, (*before, place), line)?,
            None => {}
        }
        places.push(place);
    }
    Ok(places)
}

fn follow(system: &System, (before, place): (usize, usize), line: usize) -> Result<(), Wrong> {
    let caller = &system.behaviours[before];
    let mut callees = caller.calls.iter().flat_map(|call| call.to.iter().copied());
    if callees.clone().any(|callee| callee == place) {
        return Ok(());
    }
    let between = callees.find(|callee| {
        let calls = &system.behaviours[*callee].calls;
        calls.iter().any(|call| call.to.contains(&place))
    });
    let (from, to) = (&caller.name, &system.behaviours[place].name);
    let help = match between {
        Some(between) => format!(
            "it calls {:?}, which does: name that between them",
            system.behaviours[between].name
        ),
        None => "a chain follows calls, so write that call, or another way".to_owned(),
    };
    let reason = format!("{from:?} does not call {to:?}: {help}");
    Err(Wrong::at(line, reason))
}
