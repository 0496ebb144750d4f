//! What components do: when, for how long, until when. Their calls come later, when all names are known.

use toml::Spanned;

use super::names::Names;
use super::tables::{BehaviourTable, ExecutionTable, File};
use super::timing::{self, Annotated};
use super::values::Time;
use super::{Lines, Wrong};
use crate::model::system::{
    Behaviour, Bucket, Execution, Resource, Section, System, Timing, Trigger,
};
use crate::times::text_of_ns;

/// Adds all behaviours; it answers their names.
pub(super) fn read(
    system: &mut System,
    file: &File,
    (resources, annotated): (&Names, &Annotated),
    lines: &Lines,
) -> Result<Names, Wrong> {
    let mut names = Names::of("behaviour");
    for (component, table) in file.component.iter().enumerate() {
        for behaviour in &table.behaviour {
            let line = names.add(Some(table.name.get_ref()), &behaviour.name, lines)?;
            let name = format!("{}.{}", table.name.get_ref(), behaviour.name.get_ref());
            let one = Reading {
                table: behaviour,
                component,
                resources,
                operation: timing::of(behaviour, annotated, lines)?,
                lines,
            };
            let behaviour = one.behaviour(name, line, system)?;
            system.behaviours.push(behaviour);
        }
    }
    Ok(names)
}

struct Reading<'a> {
    table: &'a BehaviourTable,
    component: usize,
    resources: &'a Names,
    operation: Option<&'a Timing>,
    lines: &'a Lines,
}

impl Reading<'_> {
    fn behaviour(&self, name: String, line: usize, system: &System) -> Result<Behaviour, Wrong> {
        let execution = self.execution(line)?;
        let deadline = self.positive(self.table.deadline.as_ref(), "a deadline")?;
        let criticality = self.table.criticality.as_ref();
        let criticality = criticality.map(|given| (*given.get_ref(), self.lines.of(given)));
        Ok(Behaviour {
            name,
            component: self.component,
            trigger: self.trigger()?,
            sections: self.sections(&execution, system)?,
            execution,
            deadline_ns: timing::deadline(deadline, self.operation())?,
            criticality: timing::criticality(criticality, self.operation())?,
            priority: self
                .table
                .priority
                .as_ref()
                .map(|one| one.get_ref().corba()),
            operation: self
                .table
                .operation
                .as_ref()
                .map(|one| one.get_ref().clone()),
            jitter_ns: self.table.jitter.as_ref().map_or(0, |one| one.get_ref().0),
            calls: Vec::new(),
            line,
        })
    }

    fn operation(&self) -> Option<(&str, &Timing)> {
        let name = self.table.operation.as_ref()?;
        Some((name.get_ref(), self.operation?))
    }

    /// A time that is not 0, with its line.
    fn positive(
        &self,
        time: Option<&Spanned<Time>>,
        what: &str,
    ) -> Result<Option<(u64, usize)>, Wrong> {
        let Some(time) = time else { return Ok(None) };
        let (ns, line) = (time.get_ref().0, self.lines.of(time));
        if ns == 0 {
            let reason = format!("{what} is at least 1ns: write a longer one, or leave it out");
            return Err(Wrong::at(line, reason));
        }
        Ok(Some((ns, line)))
    }

    fn trigger(&self) -> Result<Trigger, Wrong> {
        let period = self.positive(self.table.period.as_ref(), "a period")?;
        let gap = self.positive(self.table.minimum_gap.as_ref(), "a minimum gap")?;
        for given in period.iter().chain(&gap) {
            timing::check_period(*given, self.operation())?;
        }
        match (period, gap) {
            (Some((period_ns, _)), None) => Ok(Trigger::Periodic { period_ns }),
            (None, Some((gap_ns, _))) => Ok(Trigger::Sporadic { gap_ns }),
            (None, None) => Ok(Trigger::Called),
            (Some((_, other)), Some((_, line))) => Err(Wrong::at(
                line,
                format!(
                    "it has a period in line {other} too: write period if the clock begins it, or minimum_gap if something outside does"
                ),
            )),
        }
    }

    fn execution(&self, line: usize) -> Result<Execution, Wrong> {
        let given = match &self.table.execution {
            Some(table) => {
                let at = self.lines.of(table);
                Some((self.given_execution(table.get_ref(), at)?, at))
            }
            None => None,
        };
        timing::execution(given, self.operation()).unwrap_or_else(|| {
            Err(Wrong::at(
                line,
                "nothing says how long it executes: write execution = \"2ms\", or annotate its operation with @worst_case_time",
            ))
        })
    }

    fn given_execution(&self, table: &ExecutionTable, line: usize) -> Result<Execution, Wrong> {
        let execution = match table {
            ExecutionTable::Fixed(time) => Execution::Fixed { ns: time.0 },
            ExecutionTable::Range { least, most } if least.0 > most.0 => {
                let reason = format!(
                    "least is {} and most {}: write them the other way round",
                    text_of_ns(least.0),
                    text_of_ns(most.0)
                );
                return Err(Wrong::at(line, reason));
            }
            ExecutionTable::Range { least, most } => Execution::Range {
                least_ns: least.0,
                most_ns: most.0,
            },
            ExecutionTable::Histogram(tables) => {
                let mut buckets: Vec<Bucket> = Vec::with_capacity(tables.len());
                for table in tables {
                    let (up_to_ns, line) = (table.up_to.get_ref().0, self.lines.of(&table.up_to));
                    if let Some(before) = buckets.last().filter(|one| one.up_to_ns >= up_to_ns) {
                        let reason = format!(
                            "a bucket up to {} stands after one up to {}: write the shortest first, and each once",
                            text_of_ns(up_to_ns),
                            text_of_ns(before.up_to_ns)
                        );
                        return Err(Wrong::at(line, reason));
                    }
                    buckets.push(Bucket {
                        up_to_ns,
                        count: table.count.0,
                    });
                }
                if buckets.len() > BUCKETS_MAX {
                    let reason = format!(
                        "{} buckets, and {BUCKETS_MAX} are read at most: put some together",
                        buckets.len()
                    );
                    return Err(Wrong::at(line, reason));
                }
                Execution::Histogram { buckets }
            }
        };
        if execution.worst_ns() == 0 {
            let reason =
                "at worst it executes for some time: write how long, as execution = \"2ms\"";
            return Err(Wrong::at(line, reason));
        }
        Ok(execution)
    }

    fn sections(&self, execution: &Execution, system: &System) -> Result<Vec<Section>, Wrong> {
        let component = &system.components[self.component].name;
        let mut sections = Vec::with_capacity(self.table.sections.len());
        let mut sum_ns: u64 = 0;
        for table in &self.table.sections {
            let line = self.lines.of(&table.resource);
            let name = table.resource.get_ref();
            let resource = self.resources.place(&format!("{component}.{name}"));
            let resource =
                resource.ok_or_else(|| Wrong::at(line, self.no_resource(name, system)))?;
            let length = self.positive(Some(&table.length), "a section")?;
            let (length_ns, line) = length.expect("it is given");
            sum_ns = sum_ns.saturating_add(length_ns);
            if sum_ns > execution.worst_ns() {
                let reason = format!(
                    "its sections last {} up to here, and it executes for {} at worst: sections are within its own execution, so shorten them or lengthen that",
                    text_of_ns(sum_ns),
                    text_of_ns(execution.worst_ns())
                );
                return Err(Wrong::at(line, reason));
            }
            sections.push(Section {
                resource,
                length_ns,
            });
        }
        Ok(sections)
    }

    /// Why a resource of this name cannot be locked here.
    fn no_resource(&self, name: &str, system: &System) -> String {
        let of_component = |resource: &&Resource| resource.component == self.component;
        let short = |resource: &Resource| {
            let owner = &system.components[resource.component].name;
            resource.name[owner.len() + 1..].to_owned()
        };
        let component = &system.components[self.component].name;
        let elsewhere = system.resources.iter().find(|resource| {
            !of_component(resource) && (short(resource) == name || resource.name == name)
        });
        if let Some(other) = elsewhere {
            return format!(
                "{:?} is a resource of another component (line {}), and a mutex is within one process: call a behaviour there that locks it",
                other.name, other.line
            );
        }
        let own = system.resources.iter().filter(of_component);
        let known: Vec<String> = own.take(NAMES_SHOWN).map(short).collect();
        if known.is_empty() {
            return format!(
                "there is no resource {name:?} in {component:?}: write a [[component.resource]] with that name"
            );
        }
        format!(
            "there is no resource {name:?} in {component:?}: it has {}",
            known.join(", ")
        )
    }
}

/// How many names a message lists at most.
const NAMES_SHOWN: usize = 10;
const BUCKETS_MAX: usize = 10_000;
