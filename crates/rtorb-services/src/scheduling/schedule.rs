//! Computed priorities for ORBs, channels and their threads.

use core::fmt::Write as _;
use rtorb::rt::{Priority, RequestOrder, ThreadpoolLane};
use rtorb::timing::{MissRatio, MissRatios};
use rtorb_sched::model::{CheckReport, LaneOrder, Loading, ModelError, System};
use rtorb_sched::text_file::{FileErrors, Mistake, from_toml, read_text};
use rtorb_sched::times::{parse_ns, text_of_ns};
use rtorb_sched::{Dispatching, GraphError, InsufficientLevels, SearchLimits, Strategy};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::description::{Description, check_name};

/// The priorities of operations and of the threads that run them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    strategy: Option<Strategy>,
    levels: Vec<Level>,
    operations: Vec<ScheduledOperation>,
    by_name: HashMap<String, usize>,
    by_handle: HashMap<i32, usize>,
    miss_ratios: MissRatios,
}

/// A level of a schedule. All its operations have one priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The priority of its threads.
    pub priority: i32,
    /// The order of its jobs.
    pub dispatching: Dispatching,
    /// The different periods in it, in ns, the shortest first.
    pub periods_ns: Vec<u64>,
    /// The number of threads of its operations, at least 1; of the most urgent level, if it is not static, one for each different deadline
    /// or laxity.
    pub threads: u32,
}

/// An operation in a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledOperation {
    /// Its name (the entry point of an RT_Info).
    pub name: String,
    /// Its handle (rt_info in a subscription).
    pub handle: i32,
    /// Its level, 0 the most urgent (the preemption priority).
    pub level: u32,
    /// Its order in its level, 0 first (the preemption subpriority).
    pub subpriority: u32,
    /// Its deadline in ns from the arrival of the first event of its chain; the period if it has none of its own.
    pub deadline_ns: u64,
    /// The longest execution time in ns, without called operations.
    pub worst_ns: u64,
}

/// A schedule with its analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computation {
    /// Bounds, verdicts and anomalies, in the order of the description's operations.
    pub analysis: rtorb_sched::Schedule,
    /// The priorities.
    pub schedule: Schedule,
}

/// Why a schedule cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComputeError {
    /// The operations and their calls do not define tasks.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// There are more levels than priorities.
    #[error(transparent)]
    Levels(#[from] InsufficientLevels),
    /// The system of components has no priorities, or does not fit its platforms.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl ComputeError {
    /// Returns true if the description is wrong, and not only its schedule impossible.
    #[must_use]
    pub fn is_wrong_description(&self) -> bool {
        matches!(self, Self::Graph(_) | Self::Model(_))
    }
}

impl Schedule {
    /// Computes the priorities of a description.
    ///
    /// A schedule that misses deadlines is returned too: [`Computation::analysis`] has the verdicts.
    ///
    /// # Errors
    /// [`ComputeError`].
    pub fn compute(description: &Description) -> Result<Computation, ComputeError> {
        let analysis = rtorb_sched::Schedule::compute(
            &description.graph,
            description.strategy,
            SearchLimits::default(),
        )?;
        let count = u32::try_from(analysis.levels.len()).unwrap_or(u32::MAX);
        let priorities = description.priorities.assign(count)?;
        let threads = |level: u32| {
            let mine = analysis.operations.iter().zip(&description.threads);
            let mine = mine.filter(|(operation, _)| operation.level == Some(level));
            mine.fold(0, |sum: u32, (_, threads)| sum.saturating_add(*threads))
                .max(1)
        };
        let levels = (0..).zip(priorities).zip(&analysis.levels);
        let levels = levels.map(|((level, priority), info)| Level {
            priority,
            dispatching: info.dispatching,
            periods_ns: info.periods_ns.clone(),
            threads: match info.dispatching {
                Dispatching::Deadline | Dispatching::Laxity if level == 0 => info.preemption_levels,
                _ => threads(level),
            },
        });
        let named = description
            .graph
            .operations
            .iter()
            .zip(&description.handles);
        let placed =
            named
                .zip(&analysis.operations)
                .filter_map(|((operation, handle), scheduled)| {
                    Some(ScheduledOperation {
                        name: operation.name.clone(),
                        handle: *handle,
                        level: scheduled.level?,
                        subpriority: scheduled.subpriority,
                        deadline_ns: scheduled.deadline_ns?,
                        worst_ns: operation.worst_ns,
                    })
                });
        let schedule = Self::of(
            Some(description.strategy),
            levels.collect(),
            placed.collect(),
        );
        Ok(Computation { analysis, schedule })
    }

    /// The priorities of a model's behaviours that have their own (a two-way call has its caller's). A lane has the greatest
    /// number of threads that a component needs there.
    #[must_use]
    pub fn of_model(system: &System, checked: &CheckReport) -> Self {
        let loading = &checked.loading;
        let each = || loading.components.iter().flat_map(|one| &one.priorities);
        let mut priorities: Vec<i16> = each().map(|(_, priority)| *priority).collect();
        priorities.sort_unstable_by_key(|priority| core::cmp::Reverse(*priority));
        priorities.dedup();
        let bound = |name: &str| checked.behaviours.iter().find(|one| one.behaviour == name);
        let mut levels: Vec<Level> = priorities
            .iter()
            .map(|&priority| Level {
                priority: i32::from(priority),
                dispatching: Dispatching::Static,
                periods_ns: Vec::new(),
                threads: threads_at(loading, priority),
            })
            .collect();
        let mut operations = Vec::new();
        for ((name, priority), handle) in each().zip(1..) {
            let at = priorities.iter().position(|known| known == priority);
            let worst_ns = system
                .behaviour(name)
                .map(|index| system.behaviours[index].execution.worst_ns());
            let (Some(level), Some(bound), Some(worst_ns)) = (at, bound(name), worst_ns) else {
                continue;
            };
            levels[level].periods_ns.push(bound.period_ns);
            operations.push(ScheduledOperation {
                name: name.clone(),
                handle,
                level: u32::try_from(level).unwrap_or(u32::MAX),
                subpriority: 0,
                deadline_ns: bound.deadline_ns,
                worst_ns,
            });
        }
        for level in &mut levels {
            level.periods_ns.sort_unstable();
            level.periods_ns.dedup();
        }
        let annotated = system.behaviours.iter();
        let miss_ratios = annotated.filter_map(|behaviour| {
            let ratio = behaviour.miss_ratio.map(|ratio| MissRatio {
                misses: ratio.misses,
                calls: ratio.calls,
            });
            Some((behaviour.operation.clone()?, ratio))
        });
        Self::of(checked.strategy.parse().ok(), levels, operations)
            .with_miss_ratios(miss_ratios.collect())
    }

    /// The same with these ratios of late calls.
    pub(super) fn with_miss_ratios(self, miss_ratios: MissRatios) -> Self {
        Self {
            miss_ratios,
            ..self
        }
    }

    /// The same with these handles, by name. Operations of other names are left out.
    pub(super) fn with_handles(self, handles: &HashMap<&str, i32>) -> Self {
        let operations = self.operations.into_iter().filter_map(|operation| {
            Some(ScheduledOperation {
                handle: *handles.get(operation.name.as_str())?,
                ..operation
            })
        });
        Self::of(self.strategy, self.levels, operations.collect())
            .with_miss_ratios(self.miss_ratios)
    }

    pub(super) fn of(
        strategy: Option<Strategy>,
        levels: Vec<Level>,
        operations: Vec<ScheduledOperation>,
    ) -> Self {
        let each = || operations.iter().enumerate();
        Self {
            strategy,
            by_name: each()
                .map(|(index, placed)| (placed.name.clone(), index))
                .collect(),
            by_handle: each()
                .map(|(index, placed)| (placed.handle, index))
                .collect(),
            levels,
            operations,
            miss_ratios: MissRatios::new(),
        }
    }

    /// Reads a file of [`write`](Self::write) or of `rtorb scheduling compute --out`.
    ///
    /// # Errors
    /// [`FileErrors`] with the places of all mistakes.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FileErrors> {
        let path = path.as_ref();
        let text = read_text(path)?;
        Self::parse(&text)
            .map_err(|mistakes| FileErrors::new(path, text, mistakes).with_remedy(MADE_BY))
    }

    /// Writes it to a file, as a whole or not at all.
    ///
    /// # Errors
    /// An error of the host.
    pub fn write(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        let path = path.as_ref();
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.new", std::process::id()));
        let written = std::fs::write(&beside, self.to_toml());
        written
            .and_then(|()| std::fs::rename(&beside, path))
            .inspect_err(|_| {
                // The first error is the one to report.
                let _ = std::fs::remove_file(&beside);
            })
    }

    /// The text of the file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let file = ScheduleFile {
            strategy: self.strategy.map(|strategy| strategy.to_string()),
            level: self.levels.iter().map(LevelTable::of).collect(),
            operation: self.operations.iter().map(OperationTable::of).collect(),
        };
        let mut text = String::from(HEAD);
        let body = toml::to_string(&file).expect("tables of texts and numbers are TOML");
        let _ = write!(text, "{body}");
        text
    }

    /// The CORBA priority of an operation by name; `None` if it is not in the schedule or its priority is not a CORBA priority.
    #[must_use]
    pub fn priority(&self, name: &str) -> Option<Priority> {
        self.corba_priority(*self.by_name.get(name)?)
    }

    /// The CORBA priority of an operation by handle, as in the `rt_info` of a subscription.
    #[must_use]
    pub fn priority_of(&self, handle: i32) -> Option<Priority> {
        self.corba_priority(*self.by_handle.get(&handle)?)
    }

    /// An operation by handle.
    #[must_use]
    pub fn placed(&self, handle: i32) -> Option<&ScheduledOperation> {
        self.by_handle
            .get(&handle)
            .map(|&index| &self.operations[index])
    }

    /// An operation by name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&ScheduledOperation> {
        self.by_name.get(name).map(|&index| &self.operations[index])
    }

    /// The operations.
    #[must_use]
    pub fn operations(&self) -> &[ScheduledOperation] {
        &self.operations
    }

    /// How many calls of IDL operations may be late (`@statistical`), if they are known: of the operations that a system of components
    /// names. A file of [`write`](Self::write) has none.
    #[must_use]
    pub fn miss_ratios(&self) -> &MissRatios {
        &self.miss_ratios
    }

    /// The levels, the most urgent first.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The strategy, if known: a Scheduler does not tell.
    #[must_use]
    pub fn strategy(&self) -> Option<Strategy> {
        self.strategy
    }

    /// A lane for each level with the threads of its operations: for [`OrbBuilder::lanes`](rtorb::OrbBuilder::lanes) and for
    /// thread pools. Levels without a CORBA priority are omitted.
    ///
    /// The lane of the most urgent level has the order of the level, and preempts: it has a thread for each different deadline or
    /// laxity, and needs so many native priorities above its own. It orders requests by the times of their IDL or of their callers,
    /// so these must be those of the schedule. Less urgent lanes are fifo, because the level above has the native priorities that an
    /// order needs; the bounds of their operations hold in any order.
    #[must_use]
    pub fn lanes(&self) -> Vec<ThreadpoolLane> {
        let lane = |(place, level): (u32, &Level)| {
            let order = match level.dispatching {
                Dispatching::Deadline if place == 0 => RequestOrder::EarliestDeadline,
                Dispatching::Laxity if place == 0 => RequestOrder::LeastLaxity,
                _ => RequestOrder::Fifo,
            };
            Some(ThreadpoolLane {
                lane_priority: corba(level.priority)?,
                static_threads: match order {
                    RequestOrder::Fifo => level.threads,
                    _ => level.threads.max(self.different_urgencies(place)),
                },
                order,
                ..ThreadpoolLane::default()
            })
        };
        (0..).zip(&self.levels).filter_map(lane).collect()
    }

    /// Returns the number of different deadlines in a level, or laxities if it dispatches by them.
    fn different_urgencies(&self, place: u32) -> u32 {
        let level = self.levels.get(place as usize);
        let by_laxity = level.is_some_and(|level| level.dispatching == Dispatching::Laxity);
        let operations = self.operations.iter().filter(|it| it.level == place);
        let urgency = |it: &ScheduledOperation| {
            let worst_ns = if by_laxity { it.worst_ns } else { 0 };
            it.deadline_ns.saturating_sub(worst_ns)
        };
        let different: BTreeSet<u64> = operations.map(urgency).collect();
        u32::try_from(different.len()).unwrap_or(u32::MAX)
    }

    /// Returns the priorities of [`Self::lanes`], the most urgent first: those of a channel's lanes.
    #[must_use]
    pub fn lane_priorities(&self) -> Vec<Priority> {
        let mut priorities: Vec<Priority> =
            self.lanes().iter().map(|lane| lane.lane_priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        priorities.reverse();
        priorities
    }

    fn corba_priority(&self, index: usize) -> Option<Priority> {
        let level = self.levels.get(self.operations[index].level as usize)?;
        corba(level.priority)
    }

    fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let file: ScheduleFile = from_toml(text)?;
        let whole = |reason: String| vec![Mistake::of_whole(reason)];
        let strategy = file
            .strategy
            .map(|text| text.parse())
            .transpose()
            .map_err(whole)?;
        let levels = file.level.iter().map(LevelTable::level);
        let levels: Vec<Level> = levels.collect::<Result<_, _>>().map_err(whole)?;
        let mut names = BTreeMap::new();
        let mut handles = BTreeMap::new();
        for placed in &file.operation {
            let name = &placed.name;
            check_name(name).map_err(whole)?;
            if placed.level as usize >= levels.len() {
                let reason = format!("{name}: there is no level {}", placed.level);
                return Err(whole(reason));
            }
            let twice =
                names.insert(name, ()).is_some() || handles.insert(placed.handle, ()).is_some();
            if twice {
                let reason = format!("{name}: its name or handle is another operation's too");
                return Err(whole(reason));
            }
        }
        let operations = file.operation.iter().map(OperationTable::placed);
        let operations = operations.collect::<Result<_, _>>().map_err(whole)?;
        Ok(Self::of(strategy, levels, operations))
    }
}

/// The greatest number of threads of a lane with this priority, at least 1.
fn threads_at(loading: &Loading, priority: i16) -> u32 {
    let components = loading.components.iter().flat_map(|one| &one.lanes);
    let channels = loading.channels.iter().flat_map(|(_, lanes)| lanes);
    let lanes = components
        .chain(channels)
        .filter(|lane| lane.order == LaneOrder::Fifo && lane.priority == priority);
    lanes.map(|lane| lane.threads).max().unwrap_or(1).max(1)
}

fn corba(priority: i32) -> Option<Priority> {
    Priority::new(i16::try_from(priority).ok()?).ok()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strategy: Option<String>,
    level: Vec<LevelTable>,
    #[serde(default)]
    operation: Vec<OperationTable>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelTable {
    priority: i32,
    dispatching: DispatchingName,
    threads: u32,
    periods: Vec<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DispatchingName {
    Static,
    Deadline,
    Laxity,
}

impl LevelTable {
    fn of(level: &Level) -> Self {
        Self {
            priority: level.priority,
            dispatching: match level.dispatching {
                Dispatching::Static => DispatchingName::Static,
                Dispatching::Deadline => DispatchingName::Deadline,
                Dispatching::Laxity => DispatchingName::Laxity,
            },
            threads: level.threads,
            periods: level.periods_ns.iter().copied().map(text_of_ns).collect(),
        }
    }

    fn level(&self) -> Result<Level, String> {
        let periods = self.periods.iter().map(|text| parse_ns(text));
        Ok(Level {
            priority: self.priority,
            dispatching: match self.dispatching {
                DispatchingName::Static => Dispatching::Static,
                DispatchingName::Deadline => Dispatching::Deadline,
                DispatchingName::Laxity => Dispatching::Laxity,
            },
            periods_ns: periods.collect::<Result<_, _>>()?,
            threads: match self.threads {
                0 => return Err("a level has at least 1 thread".to_owned()),
                threads => threads,
            },
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationTable {
    name: String,
    handle: i32,
    level: u32,
    subpriority: u32,
    deadline: String,
    worst: String,
}

impl OperationTable {
    fn of(placed: &ScheduledOperation) -> Self {
        Self {
            name: placed.name.clone(),
            handle: placed.handle,
            level: placed.level,
            subpriority: placed.subpriority,
            deadline: text_of_ns(placed.deadline_ns),
            worst: text_of_ns(placed.worst_ns),
        }
    }

    fn placed(&self) -> Result<ScheduledOperation, String> {
        Ok(ScheduledOperation {
            name: self.name.clone(),
            handle: self.handle,
            level: self.level,
            subpriority: self.subpriority,
            deadline_ns: parse_ns(&self.deadline)?,
            worst_ns: parse_ns(&self.worst)?,
        })
    }
}

const MADE_BY: &str = "`rtorb scheduling compute FILE --out FILE` writes such a file";
const HEAD: &str = "\
# Priorities computed by rtorb: what an ORB and an event channel read at start (docs/how-to/scheduling.md).
# The levels are in order, the most urgent first; operations name their level by its place there, from 0.

";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_sched::{CallGraph, Criticality, Operation, PriorityRange};

    fn description() -> Description {
        let operation = |name: &str, period_ns| Operation {
            period_ns,
            worst_ns: 1_000,
            typical_ns: 1_000,
            ..Operation::named(name)
        };
        Description {
            strategy: Strategy::RateMonotonic,
            priorities: PriorityRange {
                least_urgent: 10,
                most_urgent: 12,
            },
            graph: CallGraph {
                operations: vec![
                    operation("slow", Some(1_000_000)),
                    operation("fast", Some(25_000)),
                    operation("lost", None),
                ],
                calls: vec![],
            },
            handles: vec![1, 2, 3],
            threads: vec![3, 0, 0],
        }
    }

    #[test]
    fn priorities_are_read_as_they_were_written() {
        let computed = Schedule::compute(&description())
            .expect("a schedule")
            .schedule;
        let read = Schedule::parse(&computed.to_toml()).expect("the same schedule");
        assert_eq!(read, computed);
        assert_eq!(read.priority("fast").map(Priority::get), Some(12));
        assert_eq!(read.priority_of(1).map(Priority::get), Some(11));
        assert_eq!(read.priority("lost"), None);
        assert_eq!(read.priority_of(3), None);
        let priorities = read.lane_priorities();
        let numbers: Vec<i16> = priorities.iter().map(|lane| lane.get()).collect();
        assert_eq!(numbers, [12, 11]);
        let lanes: Vec<_> = read
            .lanes()
            .iter()
            .map(|lane| (lane.lane_priority.get(), lane.static_threads))
            .collect();
        assert_eq!(lanes, [(12, 1), (11, 3)]);
    }

    #[test]
    fn the_lane_of_the_most_urgent_level_preempts_in_the_order_of_the_level() {
        let lanes = |strategy, periods: [u64; 3], criticalities: [Criticality; 3]| {
            let mut description = description();
            description.strategy = strategy;
            let operations = description.graph.operations.iter_mut();
            for ((operation, period), criticality) in operations.zip(periods).zip(criticalities) {
                operation.period_ns = Some(period);
                operation.criticality = criticality;
            }
            let computed = Schedule::compute(&description)
                .expect("a schedule")
                .schedule;
            let read = Schedule::parse(&computed.to_toml()).expect("the same schedule");
            assert_eq!(read.lanes(), computed.lanes());
            let lanes = read.lanes().into_iter();
            lanes
                .map(|it| (it.lane_priority.get(), it.static_threads, it.order))
                .collect::<Vec<_>>()
        };
        let periods = [1_000_000, 25_000, 25_000];
        let equal = [Criticality::Medium; 3];
        assert_eq!(
            lanes(Strategy::EarliestDeadlineFirst, periods, equal),
            [(12, 2, RequestOrder::EarliestDeadline)]
        );
        assert_eq!(
            lanes(Strategy::MinimumLaxityFirst, periods, equal),
            [(12, 2, RequestOrder::LeastLaxity)]
        );
        // The more urgent lane has the native priorities above the other.
        let [low, high] = [Criticality::Low, Criticality::High];
        assert_eq!(
            lanes(Strategy::MaximumUrgencyFirst, periods, [low, high, high]),
            [
                (12, 1, RequestOrder::LeastLaxity),
                (11, 3, RequestOrder::Fifo)
            ]
        );
    }

    #[test]
    fn too_few_priorities_are_told() {
        let mut few = description();
        few.priorities.most_urgent = 10;
        let error = Schedule::compute(&few).unwrap_err();
        assert!(matches!(error, ComputeError::Levels(_)), "{error}");
    }

    #[test]
    fn a_file_that_was_not_computed_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("described.toml");
        std::fs::write(&path, "[[operation]]\nname = 'a'\nworst = '1ms'\n").expect("written");
        let reason = Schedule::read(&path).unwrap_err().to_string();
        assert!(reason.contains("rtorb scheduling compute"), "{reason}");
        for missing in ["`level`", "`handle`", "`deadline`"] {
            assert!(reason.contains(missing), "{missing}: {reason}");
        }
        let computed = Schedule::compute(&description())
            .expect("a schedule")
            .schedule;
        let wrong = computed.to_toml().replacen("level = 1", "level = 7", 1);
        let mistakes = Schedule::parse(&wrong).unwrap_err();
        let reason = &mistakes[0].reason;
        assert!(reason.contains("no level 7"), "{reason}");
    }
}
