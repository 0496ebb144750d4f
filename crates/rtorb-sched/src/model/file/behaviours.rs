//! Reads behaviours, without their calls, which need the names of all behaviours.

use toml::Spanned;

use super::names::Names;
use super::tables::{BehaviourTable, ExecutionTable, File};
use super::timing::{self, AnnotatedOperation, Annotations, AtLine};
use super::values::Time;
use super::{LineError, Lines, Place, Stopped};
use crate::model::system::{
    Behaviour, Bucket, Execution, Resource, Section, System, Timing, Trigger,
};
use crate::task::Criticality;
use crate::times::text_of_ns;

/// Adds all behaviours and returns their names.
pub(super) fn read(
    system: &mut System,
    file: &File,
    resources: &Names,
    annotations: &Annotations,
    lines: &Lines,
) -> Result<Names, Stopped> {
    let mut names = Names::of("behaviour");
    let mut misnamed = false;
    for (component, table) in file.component.iter().enumerate() {
        for behaviour in &table.behaviour {
            if lines.is_full() {
                return Err(Stopped);
            }
            let added = names.add(Some(table.name.get_ref()), &behaviour.name, lines);
            misnamed |= lines.keep(added).is_none();
            let operation = timing::of(behaviour, annotations, lines);
            let one = BehaviourReader {
                table: behaviour,
                component,
                resources,
                operation: lines.keep(operation).flatten(),
                lines,
            };
            let name = format!("{}.{}", table.name.get_ref(), behaviour.name.get_ref());
            let line = lines.of(&behaviour.name);
            let read = lines.keep(one.behaviour(name.clone(), line, system));
            // What is wrong keeps its place, so that the calls to it and from it can be checked.
            let read = read.unwrap_or_else(|| unreadable(name, component, line.line));
            system.behaviours.push(read);
        }
    }
    if misnamed { Err(Stopped) } else { Ok(names) }
}

/// Stands for a behaviour that is wrong, until reading stops.
fn unreadable(name: String, component: usize, line: usize) -> Behaviour {
    Behaviour {
        name,
        component,
        trigger: Trigger::Called,
        execution: Execution::Fixed { ns: 1 },
        deadline_ns: None,
        criticality: Criticality::default(),
        priority: None,
        operation: None,
        jitter_ns: 0,
        sections: Vec::new(),
        calls: Vec::new(),
        line,
    }
}

struct BehaviourReader<'a> {
    table: &'a BehaviourTable,
    component: usize,
    resources: &'a Names,
    operation: Option<&'a Timing>,
    lines: &'a Lines,
}

impl BehaviourReader<'_> {
    fn behaviour(
        &self,
        name: String,
        line: Place,
        system: &System,
    ) -> Result<Behaviour, LineError> {
        let execution = self.execution(line)?;
        let deadline = self.positive(self.table.deadline.as_ref(), "a deadline")?;
        let criticality = self.table.criticality.as_ref();
        let criticality = criticality.map(|given| AtLine {
            value: *given.get_ref(),
            line: self.lines.of(given),
        });
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
            line: line.line,
        })
    }

    fn operation(&self) -> Option<AnnotatedOperation<'_>> {
        let name = self.table.operation.as_ref()?;
        Some(AnnotatedOperation {
            name: name.get_ref(),
            timing: self.operation?,
        })
    }

    /// Returns a time with its line; 0 is an error.
    fn positive(
        &self,
        time: Option<&Spanned<Time>>,
        what: &str,
    ) -> Result<Option<AtLine<u64>>, LineError> {
        let Some(time) = time else { return Ok(None) };
        let (value, line) = (time.get_ref().0, self.lines.of(time));
        if value == 0 {
            let reason = format!("{what} is at least 1ns: write a longer one, or remove it");
            return Err(LineError::at(line, reason));
        }
        Ok(Some(AtLine { value, line }))
    }

    fn trigger(&self) -> Result<Trigger, LineError> {
        let period = self.positive(self.table.period.as_ref(), "a period")?;
        let gap = self.positive(self.table.minimum_gap.as_ref(), "a minimum gap")?;
        for given in period.iter().chain(&gap) {
            timing::check_period(*given, self.operation())?;
        }
        match (period, gap) {
            (Some(period), None) => Ok(Trigger::Periodic {
                period_ns: period.value,
            }),
            (None, Some(gap)) => Ok(Trigger::Sporadic { gap_ns: gap.value }),
            (None, None) => Ok(Trigger::Called),
            (Some(period), Some(gap)) => Err(LineError::at(
                gap.line,
                format!(
                    "it also has a period, in line {}: write period if the clock releases it, or minimum_gap if something outside does",
                    period.line
                ),
            )),
        }
    }

    fn execution(&self, line: Place) -> Result<Execution, LineError> {
        let given = match &self.table.execution {
            Some(table) => {
                let at = self.lines.of(table);
                Some(AtLine {
                    value: self.given_execution(table.get_ref(), at)?,
                    line: at,
                })
            }
            None => None,
        };
        timing::execution(given, self.operation()).unwrap_or_else(|| {
            Err(LineError::at(
                line,
                "its execution time is missing: write execution = \"2ms\", or annotate its operation with @worst_case_time",
            ))
        })
    }

    fn given_execution(&self, table: &ExecutionTable, line: Place) -> Result<Execution, LineError> {
        let execution = match table {
            ExecutionTable::Fixed(time) => Execution::Fixed { ns: time.0 },
            ExecutionTable::Range { least, most } if least.0 > most.0 => {
                let reason = format!(
                    "least is {} and most is {}: exchange them",
                    text_of_ns(least.0),
                    text_of_ns(most.0)
                );
                return Err(LineError::at(line, reason));
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
                            "a bucket up to {} follows one up to {}: write the shortest first, and each once",
                            text_of_ns(up_to_ns),
                            text_of_ns(before.up_to_ns)
                        );
                        return Err(LineError::at(line, reason));
                    }
                    buckets.push(Bucket {
                        up_to_ns,
                        count: table.count.0,
                    });
                }
                if buckets.len() > BUCKETS_MAX {
                    let reason = format!(
                        "there are {} buckets; the maximum is {BUCKETS_MAX}: merge some",
                        buckets.len()
                    );
                    return Err(LineError::at(line, reason));
                }
                Execution::Histogram { buckets }
            }
        };
        if execution.worst_ns() == 0 {
            let reason =
                "its longest execution time is 0: write a longer one, such as execution = \"2ms\"";
            return Err(LineError::at(line, reason));
        }
        Ok(execution)
    }

    fn sections(&self, execution: &Execution, system: &System) -> Result<Vec<Section>, LineError> {
        let component = &system.components[self.component].name;
        let mut sections = Vec::with_capacity(self.table.sections.len());
        let mut sum_ns: u64 = 0;
        for table in &self.table.sections {
            let line = self.lines.of(&table.resource);
            let name = table.resource.get_ref();
            let resource = self.resources.place(&format!("{component}.{name}"));
            let resource =
                resource.ok_or_else(|| LineError::at(line, self.no_resource(name, system)))?;
            let length = self.positive(Some(&table.length), "a section")?;
            let AtLine {
                value: length_ns,
                line,
            } = length.expect("it is given");
            sum_ns = sum_ns.saturating_add(length_ns);
            if sum_ns > execution.worst_ns() {
                let reason = format!(
                    "its sections up to here last {}, but it executes for at most {}: sections are part of its own execution, so shorten them or lengthen it",
                    text_of_ns(sum_ns),
                    text_of_ns(execution.worst_ns())
                );
                return Err(LineError::at(line, reason));
            }
            sections.push(Section {
                resource,
                length_ns,
            });
        }
        Ok(sections)
    }

    /// Returns why no resource of this name can be locked here.
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
                "{:?} is a resource of another component (line {}), and a mutex belongs to one process: call a behaviour there that locks it",
                other.name, other.line
            );
        }
        let own = system.resources.iter().filter(of_component);
        let known: Vec<String> = own.take(NAMES_SHOWN).map(short).collect();
        if known.is_empty() {
            return format!(
                "{component:?} has no resource {name:?}: write a [[component.resource]] with that name"
            );
        }
        format!(
            "{component:?} has no resource {name:?}; its resources are {}",
            known.join(", ")
        )
    }
}

/// The maximum number of names in a message.
const NAMES_SHOWN: usize = 10;
const BUCKETS_MAX: usize = 10_000;
