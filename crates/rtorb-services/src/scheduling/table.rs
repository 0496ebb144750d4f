//! The operations of a scheduling service by handle and by name, and their dependencies.

use rtorb::exception::local;
use rtorb_sched::{
    CallGraph, CallKind, Criticality, Importance, Operation, OperationCall, OperationKind,
    PriorityRange, Strategy,
};
use std::collections::{BTreeMap, HashMap};

use super::config::SchedulingConfig;
use super::description::{Description, check_name};
use super::exception::SchedulerException;
use super::schedule::Schedule;
use crate::stubs::rtec_scheduler::rtec_base::DependencyEnabledTypeT as Enabled;
use crate::stubs::rtec_scheduler::rtec_base::{DependencyInfo, DependencyTypeT};
use crate::stubs::rtec_scheduler::rtec_scheduler::{
    CriticalityT, ImportanceT, InfoTypeT, RtInfo, RtInfoEnabledTypeT,
};

/// Units of 100 ns, in which the interface counts times.
pub(super) const UNIT_NS: u64 = 100;

/// The operations and dependencies of a scheduling service.
#[derive(Debug)]
pub(super) struct Table {
    entries: BTreeMap<i32, OperationEntry>,
    by_name: HashMap<String, i32>,
    dependencies: Vec<DependencyInfo>,
    /// Handles count upwards and are never reused: an old handle never means another operation.
    next_handle: i32,
    infos_max: usize,
    dependencies_max: usize,
}

/// The handles of the operations of a description.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    /// In the description's order.
    pub(super) handles: Vec<i32>,
    /// Those that did not exist before.
    new: Vec<i32>,
}

#[derive(Clone, Debug)]
struct OperationEntry {
    operation: Operation,
    threads: i32,
    /// In units of 100 ns. Stored for clients, not used.
    cached: u64,
    enabled: RtInfoEnabledTypeT,
    volatile_token: u64,
}

/// The numbers of an operation in the interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Characteristics {
    pub(super) criticality: CriticalityT,
    pub(super) worst: u64,
    pub(super) typical: u64,
    pub(super) cached: u64,
    pub(super) period: i32,
    pub(super) importance: ImportanceT,
    pub(super) quantum: u64,
    pub(super) threads: i32,
    pub(super) info_type: InfoTypeT,
}

impl Table {
    pub(super) fn new(config: &SchedulingConfig) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_name: HashMap::new(),
            dependencies: Vec::new(),
            next_handle: 1,
            infos_max: config.infos_max,
            dependencies_max: config.dependencies_max,
        }
    }

    /// Loads a description into the empty table.
    pub(super) fn load(&mut self, description: &Description) -> Result<(), SchedulerException> {
        let graph = &description.graph;
        for (operation, threads) in graph.operations.iter().zip(&description.threads) {
            let handle = self.create(&operation.name)?;
            let entry = self.entry(handle)?;
            entry.operation = operation.clone();
            entry.threads = i32::try_from(*threads).unwrap_or(i32::MAX);
        }
        self.add_calls(description)
    }

    /// Adds the calls of a description as dependencies.
    fn add_calls(&mut self, description: &Description) -> Result<(), SchedulerException> {
        for call in &description.graph.calls {
            let [caller, callee] =
                [call.caller, call.callee].map(|index| description.handles[index]);
            let (dependency_type, handle, dependency) = match call.kind {
                CallKind::TwoWay => (DependencyTypeT::TwoWayCall, caller, callee),
                CallKind::OneWay => (DependencyTypeT::OneWayCall, callee, caller),
            };
            let count = i32::try_from(call.count).unwrap_or(i32::MAX);
            self.add_dependency(handle, dependency, count, dependency_type)?;
        }
        Ok(())
    }

    /// Returns the handle of each name. Names that it does not know become disabled operations, whose handles are returned too.
    pub(super) fn reserve(
        &mut self,
        operations: &[Operation],
    ) -> Result<Reserved, SchedulerException> {
        let mut reserved = Reserved::default();
        for operation in operations {
            let handle = match self.by_name.get(&operation.name) {
                Some(&handle) => handle,
                None => match self.create(&operation.name) {
                    Ok(handle) => {
                        self.enable(handle, RtInfoEnabledTypeT::RtInfoDisabled)?;
                        reserved.new.push(handle);
                        handle
                    }
                    Err(full) => {
                        self.release(&reserved);
                        return Err(full);
                    }
                },
            };
            reserved.handles.push(handle);
        }
        Ok(reserved)
    }

    /// Removes the operations that [`reserve`](Self::reserve) made.
    pub(super) fn release(&mut self, reserved: &Reserved) {
        for handle in &reserved.new {
            if let Some(entry) = self.entries.remove(handle) {
                self.by_name.remove(&entry.operation.name);
            }
        }
    }

    /// Replaces all operations and dependencies by those of a description whose handles are [reserved](Self::reserve). Other
    /// operations are disabled, except NON_VOLATILE ones.
    pub(super) fn replace(&mut self, description: &Description) -> Result<(), SchedulerException> {
        let graph = &description.graph;
        if graph.calls.len() > self.dependencies_max {
            return Err(SchedulerException::System(local::SERVICE_FULL));
        }
        for entry in self.entries.values_mut() {
            if entry.enabled != RtInfoEnabledTypeT::RtInfoNonVolatile {
                entry.enabled = RtInfoEnabledTypeT::RtInfoDisabled;
            }
        }
        let operations = graph.operations.iter().zip(&description.threads);
        for ((operation, threads), &handle) in operations.zip(&description.handles) {
            let entry = self.entry(handle)?;
            entry.operation = operation.clone();
            entry.threads = i32::try_from(*threads).unwrap_or(i32::MAX);
            entry.enabled = RtInfoEnabledTypeT::RtInfoEnabled;
        }
        self.dependencies.clear();
        self.add_calls(description)
    }

    pub(super) fn create(&mut self, name: &str) -> Result<i32, SchedulerException> {
        if check_name(name).is_err() {
            return Err(SchedulerException::System(local::WRONG_NAME));
        }
        if self.by_name.contains_key(name) {
            return Err(SchedulerException::DuplicateName);
        }
        if self.entries.len() >= self.infos_max || self.next_handle == i32::MAX {
            return Err(SchedulerException::System(local::SERVICE_FULL));
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        self.entries.insert(handle, OperationEntry::new(name));
        self.by_name.insert(name.to_owned(), handle);
        Ok(handle)
    }

    pub(super) fn lookup(&self, name: &str) -> Result<i32, SchedulerException> {
        self.by_name
            .get(name)
            .copied()
            .ok_or(SchedulerException::UnknownTask)
    }

    /// An operation with its priority in the schedule.
    pub(super) fn info(
        &self,
        handle: i32,
        schedule: Option<&Schedule>,
    ) -> Result<RtInfo, SchedulerException> {
        let entry = self
            .entries
            .get(&handle)
            .ok_or(SchedulerException::UnknownTask)?;
        let mine = self
            .dependencies
            .iter()
            .filter(|known| known.rt_info == handle);
        Ok(entry.info(handle, mine.copied().collect(), schedule))
    }

    /// All operations, by handle.
    pub(super) fn infos(&self, schedule: Option<&Schedule>) -> Vec<RtInfo> {
        let mut dependencies: BTreeMap<i32, Vec<DependencyInfo>> = BTreeMap::new();
        for known in &self.dependencies {
            dependencies.entry(known.rt_info).or_default().push(*known);
        }
        let each = self.entries.iter().map(|(&handle, entry)| {
            let mine = dependencies.remove(&handle).unwrap_or_default();
            entry.info(handle, mine, schedule)
        });
        each.collect()
    }

    pub(super) fn dependencies(&self) -> Vec<DependencyInfo> {
        self.dependencies.clone()
    }

    pub(super) fn set(
        &mut self,
        handle: i32,
        given: &Characteristics,
    ) -> Result<(), SchedulerException> {
        let changed = self.entry(handle)?.changed(given)?;
        *self.entry(handle)? = changed;
        Ok(())
    }

    /// Changes all these operations or none. The infos identify them by handle.
    pub(super) fn set_all(&mut self, infos: &[RtInfo]) -> Result<(), SchedulerException> {
        let mut changed = Vec::with_capacity(infos.len());
        for info in infos {
            let entry = self.entry(info.handle)?;
            let mut new = entry.changed(&Characteristics::of(info))?;
            new.enabled = info.enabled;
            new.volatile_token = info.volatile_token;
            changed.push((info.handle, new));
        }
        self.entries.extend(changed);
        Ok(())
    }

    /// Does the same as [`set_all`](Self::set_all) and resets all other operations to their state at creation.
    pub(super) fn replace_all(&mut self, infos: &[RtInfo]) -> Result<(), SchedulerException> {
        self.set_all(infos)?;
        let named: std::collections::BTreeSet<i32> = infos.iter().map(|info| info.handle).collect();
        for (handle, entry) in &mut self.entries {
            let stays = entry.enabled == RtInfoEnabledTypeT::RtInfoNonVolatile;
            if !named.contains(handle) && !stays {
                *entry = OperationEntry::new(&entry.operation.name);
            }
        }
        Ok(())
    }

    pub(super) fn enable(
        &mut self,
        handle: i32,
        enabled: RtInfoEnabledTypeT,
    ) -> Result<(), SchedulerException> {
        self.entry(handle)?.enabled = enabled;
        Ok(())
    }

    /// Checks that an operation exists.
    pub(super) fn check(&self, handle: i32) -> Result<(), SchedulerException> {
        if self.entries.contains_key(&handle) {
            Ok(())
        } else {
            Err(SchedulerException::UnknownTask)
        }
    }

    pub(super) fn add_dependency(
        &mut self,
        handle: i32,
        dependency: i32,
        number_of_calls: i32,
        dependency_type: DependencyTypeT,
    ) -> Result<(), SchedulerException> {
        self.check(handle)?;
        self.check(dependency)?;
        if number_of_calls < 1 {
            return Err(SchedulerException::System(local::WRONG_NUMBER));
        }
        if self.dependencies.len() >= self.dependencies_max {
            return Err(SchedulerException::System(local::SERVICE_FULL));
        }
        self.dependencies.push(DependencyInfo {
            dependency_type,
            number_of_calls,
            rt_info: handle,
            rt_info_depended_on: dependency,
            enabled: Enabled::DependencyEnabled,
        });
        Ok(())
    }

    /// The index of a dependency, in any state.
    pub(super) fn place_of(&self, wanted: &DependencyInfo) -> Result<usize, SchedulerException> {
        let same = |known: &DependencyInfo| {
            DependencyInfo {
                enabled: wanted.enabled,
                ..*known
            } == *wanted
        };
        let place = self.dependencies.iter().position(same);
        place.ok_or(SchedulerException::UnknownTask)
    }

    pub(super) fn remove_dependency(
        &mut self,
        wanted: &DependencyInfo,
    ) -> Result<(), SchedulerException> {
        let place = self.place_of(wanted)?;
        self.dependencies.remove(place);
        Ok(())
    }

    /// Sets the states of dependencies, all or none.
    pub(super) fn enable_dependencies(
        &mut self,
        wanted: &[DependencyInfo],
    ) -> Result<(), SchedulerException> {
        let places: Result<Vec<usize>, SchedulerException> =
            wanted.iter().map(|wanted| self.place_of(wanted)).collect();
        for (place, wanted) in places?.into_iter().zip(wanted) {
            self.dependencies[place].enabled = wanted.enabled;
        }
        Ok(())
    }

    /// The operations and dependencies to schedule: those that are enabled.
    pub(super) fn description(&self, strategy: Strategy, priorities: PriorityRange) -> Description {
        let enabled = |entry: &OperationEntry| entry.enabled != RtInfoEnabledTypeT::RtInfoDisabled;
        let taken: Vec<(i32, &OperationEntry)> = self
            .entries
            .iter()
            .filter(|(_, entry)| enabled(entry))
            .map(|(&handle, entry)| (handle, entry))
            .collect();
        let index = |handle: i32| {
            taken
                .binary_search_by_key(&handle, |(handle, _)| *handle)
                .ok()
        };
        let calls = self.dependencies.iter().filter_map(|known| {
            let own = index(known.rt_info)?;
            let other = index(known.rt_info_depended_on)?;
            // A one-way dependency is declared by the receiver.
            let (kind, caller, callee) = match known.dependency_type {
                DependencyTypeT::TwoWayCall => (CallKind::TwoWay, own, other),
                DependencyTypeT::OneWayCall => (CallKind::OneWay, other, own),
            };
            (known.enabled != Enabled::DependencyDisabled).then_some(OperationCall {
                caller,
                callee,
                count: known.number_of_calls.unsigned_abs(),
                kind,
            })
        });
        Description {
            strategy,
            priorities,
            handles: taken.iter().map(|(handle, _)| *handle).collect(),
            threads: taken
                .iter()
                .map(|(_, entry)| entry.threads.unsigned_abs())
                .collect(),
            graph: CallGraph {
                operations: taken
                    .iter()
                    .map(|(_, entry)| entry.operation.clone())
                    .collect(),
                calls: calls.collect(),
            },
        }
    }

    fn entry(&mut self, handle: i32) -> Result<&mut OperationEntry, SchedulerException> {
        self.entries
            .get_mut(&handle)
            .ok_or(SchedulerException::UnknownTask)
    }
}

impl OperationEntry {
    fn new(name: &str) -> Self {
        Self {
            operation: Operation::named(name),
            threads: 0,
            cached: 0,
            enabled: RtInfoEnabledTypeT::RtInfoEnabled,
            volatile_token: 0,
        }
    }

    /// The same operation with other characteristics.
    fn changed(&self, given: &Characteristics) -> Result<Self, SchedulerException> {
        let wrong = || SchedulerException::System(local::WRONG_NUMBER);
        let ns = |units: u64| units.checked_mul(UNIT_NS).ok_or_else(wrong);
        let period = u64::try_from(given.period).map_err(|_| wrong())?;
        if given.threads < 0 {
            return Err(wrong());
        }
        let mut changed = self.clone();
        changed.operation = Operation {
            name: self.operation.name.clone(),
            kind: match given.info_type {
                InfoTypeT::Operation => OperationKind::Operation,
                InfoTypeT::Conjunction => OperationKind::Conjunction,
                InfoTypeT::Disjunction => OperationKind::Disjunction,
                InfoTypeT::RemoteDependant => OperationKind::Remote,
            },
            period_ns: Some(ns(period)?).filter(|ns| *ns > 0),
            deadline_ns: Some(ns(given.quantum)?).filter(|ns| *ns > 0),
            worst_ns: ns(given.worst)?,
            typical_ns: ns(given.typical)?,
            criticality: criticality(given.criticality),
            importance: importance(given.importance),
            ..self.operation.clone()
        };
        changed.threads = given.threads;
        changed.cached = given.cached;
        Ok(changed)
    }

    fn info(
        &self,
        handle: i32,
        dependencies: Vec<DependencyInfo>,
        schedule: Option<&Schedule>,
    ) -> RtInfo {
        let operation = &self.operation;
        let up = |ns: u64| ns.div_ceil(UNIT_NS);
        let placed = schedule.and_then(|schedule| {
            let placed = schedule.placed(handle)?;
            Some((placed, schedule.levels()[placed.level as usize].priority))
        });
        RtInfo {
            entry_point: operation.name.clone(),
            handle,
            worst_case_execution_time: up(operation.worst_ns),
            typical_execution_time: up(operation.typical_ns),
            cached_execution_time: self.cached,
            period: operation
                .period_ns
                .map_or(0, |ns| i32::try_from(ns / UNIT_NS).unwrap_or(i32::MAX)),
            criticality: criticality_out(operation.criticality),
            importance: importance_out(operation.importance),
            quantum: operation.deadline_ns.map_or(0, |ns| ns / UNIT_NS),
            threads: self.threads,
            dependencies,
            priority: placed.map_or(0, |(_, priority)| priority),
            preemption_subpriority: placed.map_or(0, |(placed, _)| number(placed.subpriority)),
            preemption_priority: placed.map_or(0, |(placed, _)| number(placed.level)),
            info_type: match operation.kind {
                OperationKind::Operation => InfoTypeT::Operation,
                OperationKind::Conjunction => InfoTypeT::Conjunction,
                OperationKind::Disjunction => InfoTypeT::Disjunction,
                OperationKind::Remote => InfoTypeT::RemoteDependant,
            },
            enabled: self.enabled,
            volatile_token: self.volatile_token,
        }
    }
}

impl Characteristics {
    fn of(info: &RtInfo) -> Self {
        Self {
            criticality: info.criticality,
            worst: info.worst_case_execution_time,
            typical: info.typical_execution_time,
            cached: info.cached_execution_time,
            period: info.period,
            importance: info.importance,
            quantum: info.quantum,
            threads: info.threads,
            info_type: info.info_type,
        }
    }
}

/// A level or a subpriority in the interface.
pub(super) fn number(place: u32) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

pub(super) fn criticality(given: CriticalityT) -> Criticality {
    match given {
        CriticalityT::VeryLowCriticality => Criticality::VeryLow,
        CriticalityT::LowCriticality => Criticality::Low,
        CriticalityT::MediumCriticality => Criticality::Medium,
        CriticalityT::HighCriticality => Criticality::High,
        CriticalityT::VeryHighCriticality => Criticality::VeryHigh,
    }
}

fn criticality_out(known: Criticality) -> CriticalityT {
    match known {
        Criticality::VeryLow => CriticalityT::VeryLowCriticality,
        Criticality::Low => CriticalityT::LowCriticality,
        Criticality::Medium => CriticalityT::MediumCriticality,
        Criticality::High => CriticalityT::HighCriticality,
        Criticality::VeryHigh => CriticalityT::VeryHighCriticality,
    }
}

fn importance(given: ImportanceT) -> Importance {
    match given {
        ImportanceT::VeryLowImportance => Importance::VeryLow,
        ImportanceT::LowImportance => Importance::Low,
        ImportanceT::MediumImportance => Importance::Medium,
        ImportanceT::HighImportance => Importance::High,
        ImportanceT::VeryHighImportance => Importance::VeryHigh,
    }
}

fn importance_out(known: Importance) -> ImportanceT {
    match known {
        Importance::VeryLow => ImportanceT::VeryLowImportance,
        Importance::Low => ImportanceT::LowImportance,
        Importance::Medium => ImportanceT::MediumImportance,
        Importance::High => ImportanceT::HighImportance,
        Importance::VeryHigh => ImportanceT::VeryHighImportance,
    }
}
