//! Reads behaviours, without their calls, which need the names of all behaviours.

use toml::Spanned;

use super::names::Names;
use super::tables::{BehaviourTable, BurstTable, EnforcementName, ExecutionTable, File};
use super::timing::{self, AnnotatedOperation, Annotations, AtLine};
use super::values::Time;
use super::{LineError, Lines, Place, Stopped};
use crate::model::system::{
    ArrivalBurst, Behaviour, Bucket, Budget, CompiledRequirements, Enforcement, Execution,
    Resource, Section, System, Timing, Trigger,
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
        gap_max_ns: None,
        execution: Execution::Fixed { ns: 1 },
        enforcement: Enforcement::Count,
        deadline_ns: None,
        criticality: Criticality::default(),
        priority: None,
        operation: None,
        miss_ratio: None,
        requirements: CompiledRequirements::NONE,
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
        let enforcement = self.enforcement()?;
        let execution = self.execution(line, enforcement)?;
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
            gap_max_ns: self.gap_max()?,
            sections: self.sections(&execution, system)?,
            execution,
            enforcement,
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
            miss_ratio: self.operation.and_then(|timing| timing.miss_ratio),
            requirements: self
                .operation
                .map_or(CompiledRequirements::NONE, |timing| timing.requirements),
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
        let offset_ns = self.offset(period)?;
        let burst = self.burst(gap)?;
        match (period, gap) {
            (Some(period), None) => Ok(Trigger::Periodic {
                period_ns: period.value,
                offset_ns,
            }),
            (None, Some(gap)) => Ok(Trigger::Sporadic {
                gap_ns: gap.value,
                burst,
            }),
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

    /// Returns the longest time between two arrivals, which only a behaviour with a minimum gap can have.
    fn gap_max(&self) -> Result<Option<u64>, LineError> {
        let Some(most) = self.positive(self.table.maximum_gap.as_ref(), "a maximum gap")? else {
            return Ok(None);
        };
        let least_ns = self.table.minimum_gap.as_ref().map(|one| one.get_ref().0);
        let wrong = match least_ns {
            None => {
                "a maximum_gap is of arrivals from outside: write the minimum_gap too, or remove it"
                    .to_owned()
            }
            Some(least_ns) if most.value < least_ns => format!(
                "arrivals are at least {} apart, so they cannot be at most {} apart: exchange the gaps, or correct one",
                text_of_ns(least_ns),
                text_of_ns(most.value)
            ),
            Some(_) => return Ok(Some(most.value)),
        };
        Err(LineError::at(most.line, wrong))
    }

    /// Returns the static offset, which only a period can have.
    fn offset(&self, period: Option<AtLine<u64>>) -> Result<Option<u64>, LineError> {
        let Some(offset) = &self.table.offset else {
            return Ok(None);
        };
        let offset_ns = offset.get_ref().0;
        let reason = match period {
            None => {
                "an offset is the arrival of the first job of a period: write a period, or remove it"
                    .to_owned()
            }
            Some(period) if offset_ns >= period.value => format!(
                "an offset is shorter than the period, which is {} in line {}: write what is left of it",
                text_of_ns(period.value),
                period.line
            ),
            Some(_) => return Ok(Some(offset_ns)),
        };
        Err(LineError::at(self.lines.of(offset), reason))
    }

    /// Returns the bound on jobs that follow each other after the minimum gap.
    fn burst(&self, gap: Option<AtLine<u64>>) -> Result<Option<ArrivalBurst>, LineError> {
        let Some(burst) = &self.table.burst else {
            return Ok(None);
        };
        let Some(gap) = gap else {
            let reason = "a burst is of jobs that something outside releases: write a minimum_gap, the least time between two of them";
            return Err(LineError::at(self.lines.of(burst), reason));
        };
        let BurstTable { jobs, window } = burst.get_ref();
        let window = self.positive(Some(window), "a window")?;
        let AtLine { value, line } = window.expect("it is given");
        let jobs_ns = gap.value.saturating_mul(jobs.0);
        if value < jobs_ns {
            let reason = format!(
                "{} jobs with a minimum gap of {} (line {}) fill {}: write a longer window, or remove the burst, which bounds nothing",
                jobs.0,
                text_of_ns(gap.value),
                gap.line,
                text_of_ns(jobs_ns)
            );
            return Err(LineError::at(line, reason));
        }
        Ok(Some(ArrivalBurst {
            jobs: jobs.small(),
            window_ns: value,
        }))
    }

    /// Returns what happens to a job that exceeds its budget, which is the annotated execution if the file gives none.
    fn enforcement(&self) -> Result<Enforcement, LineError> {
        let Some(given) = &self.table.enforcement else {
            return Ok(Enforcement::Count);
        };
        let table = given.get_ref();
        let budget = self.positive(table.budget.as_ref(), "a budget")?;
        if table.policy == EnforcementName::Count {
            return Ok(Enforcement::Count);
        }
        let annotated_ns = self.operation.and_then(|timing| timing.worst_ns);
        let Some(budget_ns) = budget.map(|budget| budget.value).or(annotated_ns) else {
            let reason = "its budget is missing: write budget = \"2ms\", or annotate its operation with @worst_case_time";
            return Err(LineError::at(self.lines.of(given), reason));
        };
        let Some(granularity) = &table.granularity else {
            let reason = "its granularity is missing: write the longest time from the end of the budget to its enforcement, such as \
                          granularity = \"4ms\", the tick of a kernel that looks at CPU time once a tick, or the longest time between two checks of the token";
            return Err(LineError::at(self.lines.of(given), reason));
        };
        let budget = Budget {
            budget_ns,
            granularity_ns: granularity.get_ref().0,
        };
        Ok(match table.policy {
            EnforcementName::Stop => Enforcement::Stop(budget),
            _ => Enforcement::Demote(budget),
        })
    }

    fn execution(&self, line: Place, enforcement: Enforcement) -> Result<Execution, LineError> {
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
        // A longer execution does not count where the annotated one is enforced.
        let operation = self.operation();
        let promised = operation.filter(|_| given.is_none() || enforcement == Enforcement::Count);
        timing::execution(given, promised).unwrap_or_else(|| {
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
