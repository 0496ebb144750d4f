//! Reads chains: end-to-end deadlines along calls.

use std::collections::BTreeMap;

use super::names::{Names, check_text};
use super::tables::ChainTable;
use super::{LineError, Lines, Place};
use crate::model::system::{Chain, System, Trigger};

pub(super) fn read(system: &mut System, tables: &[ChainTable], behaviours: &Names, lines: &Lines) {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for table in tables.iter().take_while(|_| !lines.is_full()) {
        let chain = chain_of(table, (system, behaviours), &mut known, lines);
        system.chains.extend(lines.keep(chain));
    }
}

fn chain_of<'t>(
    table: &'t ChainTable,
    (system, behaviours): (&System, &Names),
    known: &mut BTreeMap<&'t str, usize>,
    lines: &Lines,
) -> Result<Chain, LineError> {
    let (name, line) = (table.name.get_ref(), lines.of(&table.name));
    check_text(name).map_err(|reason| LineError::at(line, reason))?;
    let first = known
        .insert(name, line.line)
        .or_else(|| behaviours.line(name));
    if let Some(first) = first {
        let reason = format!("line {first} already has the name {name:?}: rename one of them");
        return Err(LineError::at(line, reason));
    }
    let through = through(system, table, behaviours, lines)?;
    let deadline_ns = table.deadline.get_ref().0;
    if deadline_ns == 0 {
        let reason = "a deadline is at least 1ns: write a longer one";
        return Err(LineError::at(lines.of(&table.deadline), reason));
    }
    Ok(Chain {
        name: name.clone(),
        through,
        deadline_ns,
        line: line.line,
    })
}

/// Returns the behaviours of a chain, each called by its predecessor.
fn through(
    system: &System,
    table: &ChainTable,
    behaviours: &Names,
    lines: &Lines,
) -> Result<Vec<usize>, LineError> {
    let names = table.through.get_ref();
    if names.len() < 2 {
        let reason =
            "a chain goes through at least two behaviours: for one behaviour, write its deadline";
        return Err(LineError::at(lines.of(&table.through), reason));
    }
    let mut places: Vec<usize> = Vec::new();
    for name in names {
        let line = lines.of(name);
        let place = behaviours.find(name.get_ref(), line)?;
        let behaviour = &system.behaviours[place];
        match places.last() {
            None if behaviour.trigger == Trigger::Called => {
                let reason = format!(
                    "a chain begins with a periodic or sporadic behaviour, but {:?} is called: name the behaviour that leads to it first",
                    behaviour.name
                );
                return Err(LineError::at(line, reason));
            }
            Some(before) => follow(system, *before, place, line)?,
            None => {}
        }
        places.push(place);
    }
    Ok(places)
}

fn follow(system: &System, before: usize, place: usize, line: Place) -> Result<(), LineError> {
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
            "but it calls {:?}, which does: name that between them",
            system.behaviours[between].name
        ),
        None => "a chain follows calls, so add that call, or correct the chain".to_owned(),
    };
    let reason = format!("{from:?} does not call {to:?}: {help}");
    Err(LineError::at(line, reason))
}
