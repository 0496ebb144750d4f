//! Reads chains: end-to-end deadlines along calls, and cause-effect chains, which also go through registers.

use std::collections::BTreeMap;

use toml::Spanned;

use super::names::{Names, check_text};
use super::tables::{CauseEffectChainTable, ChainTable, CommunicationName, File};
use super::values::Time;
use super::{LineError, Lines, Place};
use crate::model::system::{CauseEffectChain, Chain, Communication, System, Trigger};

pub(super) fn read(system: &mut System, file: &File, behaviours: &Names, lines: &Lines) {
    let mut known = KnownNames {
        behaviours,
        lines,
        of_chains: BTreeMap::new(),
    };
    for table in file.chain.iter().take_while(|_| !lines.is_full()) {
        let chain = chain_of(system, table, &mut known);
        system.chains.extend(lines.keep(chain));
    }
    let tables = file.cause_effect_chain.iter();
    for table in tables.take_while(|_| !lines.is_full()) {
        let chain = cause_effect_chain(system, table, &mut known);
        system.cause_effect_chains.extend(lines.keep(chain));
    }
}

/// The names that chains use, and their own.
struct KnownNames<'a> {
    behaviours: &'a Names,
    lines: &'a Lines,
    of_chains: BTreeMap<&'a str, usize>,
}

impl<'a> KnownNames<'a> {
    /// Adds the name of a chain and returns its line.
    fn add(&mut self, name: &'a Spanned<String>) -> Result<usize, LineError> {
        let (name, line) = (name.get_ref(), self.lines.of(name));
        check_text(name).map_err(|reason| LineError::at(line, reason))?;
        let first = self.of_chains.insert(name, line.line);
        match first.or_else(|| self.behaviours.line(name)) {
            None => Ok(line.line),
            Some(first) => Err(LineError::at(
                line,
                format!("line {first} already has the name {name:?}: rename one of them"),
            )),
        }
    }

    /// Returns a time, which is at least 1 ns.
    fn positive(&self, time: &Spanned<Time>, what: &str) -> Result<u64, LineError> {
        match time.get_ref().0 {
            0 => Err(LineError::at(
                self.lines.of(time),
                format!("{what} is at least 1ns: write a longer one"),
            )),
            ns => Ok(ns),
        }
    }
}

fn chain_of<'t>(
    system: &System,
    table: &'t ChainTable,
    known: &mut KnownNames<'t>,
) -> Result<Chain, LineError> {
    let line = known.add(&table.name)?;
    Ok(Chain {
        name: table.name.get_ref().clone(),
        through: through(system, table, known.behaviours, known.lines)?,
        deadline_ns: known.positive(&table.deadline, "a deadline")?,
        line,
    })
}

fn cause_effect_chain<'t>(
    system: &System,
    table: &'t CauseEffectChainTable,
    known: &mut KnownNames<'t>,
) -> Result<CauseEffectChain, LineError> {
    let line = known.add(&table.name)?;
    let limit = |time: &Option<Spanned<Time>>, what: &str| {
        let time = time.as_ref().map(|time| known.positive(time, what));
        time.transpose()
    };
    Ok(CauseEffectChain {
        name: table.name.get_ref().clone(),
        stages: stages(system, table, known)?,
        communication: match table.communication {
            CommunicationName::Implicit => Communication::Implicit,
            CommunicationName::Let => Communication::LogicalExecutionTime,
        },
        data_age_max_ns: limit(&table.data_age_max, "the limit of a data age")?,
        reaction_time_max_ns: limit(&table.reaction_time_max, "the limit of a reaction time")?,
        line,
    })
}

/// Returns the stages: a behaviour that its predecessor calls belongs to the stage of that one, every other begins a stage.
fn stages(
    system: &System,
    table: &CauseEffectChainTable,
    known: &KnownNames<'_>,
) -> Result<Vec<Vec<usize>>, LineError> {
    let names = table.through.get_ref();
    let mut stages: Vec<Vec<usize>> = Vec::new();
    for name in names {
        let line = known.lines.of(name);
        let place = known.behaviours.find(name.get_ref(), line)?;
        let before = stages.last().and_then(|stage| stage.last().copied());
        if let (Some(before), Some(stage)) = (before, stages.last_mut())
            && calls(system, before, place)
        {
            stage.push(place);
            continue;
        }
        let wrong = match (system.behaviours[place].trigger, before, table.communication) {
            (Trigger::Called, None, _) => "a cause-effect chain begins with a periodic or sporadic behaviour, but it is called: name the behaviour that leads to it first".to_owned(),
            (Trigger::Called, Some(before), _) => format!(
                "{:?} does not call it, so it would read a register; but a behaviour that reads a register is periodic or sporadic, and this one is called: name the behaviour that leads to it before it",
                system.behaviours[before].name
            ),
            (Trigger::Sporadic { .. }, _, CommunicationName::Let) => {
                "it has no period at whose end it could write: communication = \"let\" needs periodic behaviours; write \"implicit\"".to_owned()
            }
            _ => {
                stages.push(vec![place]);
                continue;
            }
        };
        let reason = format!("{:?}: {wrong}", system.behaviours[place].name);
        return Err(LineError::at(line, reason));
    }
    if stages.is_empty() {
        let reason = "a cause-effect chain goes through at least one behaviour: name it";
        return Err(LineError::at(known.lines.of(&table.through), reason));
    }
    Ok(stages)
}

/// Returns true if a behaviour calls another one.
fn calls(system: &System, caller: usize, callee: usize) -> bool {
    let mut calls = system.behaviours[caller].calls.iter();
    calls.any(|call| call.to.contains(&callee))
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
    if calls(system, before, place) {
        return Ok(());
    }
    let mut callees = caller.calls.iter().flat_map(|call| call.to.iter().copied());
    let between = callees.find(|&callee| calls(system, callee, place));
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
