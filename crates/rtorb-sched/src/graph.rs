//! Call graphs of operations, and the tasks that follow from them.
//!
//! An operation runs at its own period, or as often as it is called: rates propagate from callers to callees, multiplied by the
//! number of calls. A one-way call starts a separate task. A two-way call is part of the caller's execution, at the caller's
//! priority. (RtecScheduler::RT_Info and Dependency_Info, after TAO's scheduling service.)

use std::collections::BTreeMap;
use thiserror::Error;

use crate::arrivals::Burst;
use crate::task::{Criticality, Importance, Task};

/// An operation. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The name, for messages.
    pub name: String,
    /// When it runs.
    pub kind: OperationKind,
    /// Its own period, or the least time between arrivals; `None` if it runs only when it is called.
    pub period_ns: Option<u64>,
    /// The deadline, from the arrival of its root; `None` stands for the period of the root.
    pub deadline_ns: Option<u64>,
    /// The worst-case execution time, without the calls that it makes.
    pub worst_ns: u64,
    /// The typical execution time.
    pub typical_ns: u64,
    /// The release jitter.
    pub jitter_ns: u64,
    /// The longest blocking by less urgent operations.
    pub blocking_ns: u64,
    /// What a missed deadline costs.
    pub criticality: Criticality,
    /// Which operation runs first among equals.
    pub importance: Importance,
}

/// When an operation runs (RtecScheduler::Info_Type_t).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperationKind {
    /// It runs at each call.
    #[default]
    Operation,
    /// It runs once all of its callers have called: as often as the slowest of them.
    Conjunction,
    /// It runs at each call of any of its callers.
    Disjunction,
    /// It executes elsewhere: it propagates rates and takes no time here.
    Remote,
}

/// A call from one operation to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationCall {
    /// The caller: an index into the operations.
    pub caller: usize,
    /// The callee.
    pub callee: usize,
    /// The number of calls per run of the caller.
    pub count: u32,
    /// Whether the caller waits for the end of the call.
    pub kind: CallKind,
}

/// Whether the caller waits for the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// The caller goes on: an event or a oneway call.
    OneWay,
    /// The caller waits.
    TwoWay,
}

/// Operations and the calls among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGraph {
    /// The operations.
    pub operations: Vec<Operation>,
    /// The calls among them.
    pub calls: Vec<OperationCall>,
}

/// The rate of an operation that one root causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The root: the operation that has the period.
    pub root: usize,
    /// The number of runs in each period of the root.
    pub count: u64,
}

/// The tasks that follow from a call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskSet {
    /// The tasks.
    pub tasks: Vec<GraphTask>,
    /// For each operation, its rate from each root; empty if it never runs.
    pub rates: Vec<Vec<Rate>>,
    /// For each operation, the tasks in which it executes.
    pub carriers: Vec<Vec<usize>>,
    /// Operations from callers to what they call.
    pub order: Vec<usize>,
}

/// A task of a [`TaskSet`], and the operation that it executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTask {
    /// The operation.
    pub operation: usize,
    /// The root: the operation that has the period.
    pub root: usize,
    /// The task: its execution includes all that it calls and waits for, and all its runs in one period.
    pub task: Task,
    /// The tasks whose ends may release it.
    pub after: Vec<usize>,
}

/// An error in a call graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Operations call each other in a cycle; each is named in the order of the calls.
    #[error("these operations call each other in a cycle: {}: remove one of the calls", .names.join(" -> "))]
    Cycle {
        /// Their names.
        names: Vec<String>,
    },
    /// A call names a missing operation.
    #[error("call {call} names an operation that does not exist")]
    NoSuchOperation {
        /// The index of the call.
        call: usize,
    },
    /// A period or deadline is 0.
    #[error("{name}: the period and the deadline must be at least 1 ns")]
    Zero {
        /// The operation.
        name: String,
    },
    /// A number of calls or an execution time does not fit into 64 bits.
    #[error(
        "{name} is called so often, or executes so long with all that it calls, that the number does not fit into 64 bits"
    )]
    TooMuch {
        /// The operation.
        name: String,
    },
}

impl CallGraph {
    /// Derives the tasks.
    ///
    /// # Errors
    /// [`GraphError`] names the operations.
    pub fn task_set(&self) -> Result<TaskSet, GraphError> {
        self.check()?;
        let order = self.callers_first()?;
        let edges = Edges::of(self);
        let mut task_set = TaskSet {
            rates: vec![Vec::new(); self.operations.len()],
            carriers: vec![Vec::new(); self.operations.len()],
            ..TaskSet::default()
        };
        let worst_ns = self.whole_times(&order, &edges, |operation| operation.worst_ns)?;
        // Each call and each run may be blocked, because what comes before may wait for a remote operation.
        let blocking_ns = self.whole_times(&order, &edges, |operation| operation.blocking_ns)?;
        for &index in &order {
            let incoming = edges.incoming[index].iter().map(|&call| self.calls[call]);
            let incoming: Vec<OperationCall> = incoming.collect();
            let too_much = || self.too_much(index);
            let rates = self
                .rates(index, &incoming, &task_set)
                .ok_or_else(too_much)?;
            let whole = WholeTimes {
                worst_ns: worst_ns[index],
                blocking_ns: blocking_ns[index],
            };
            self.add_tasks(index, &incoming, &rates, whole, &mut task_set)
                .ok_or_else(too_much)?;
            task_set.rates[index] = rates;
        }
        task_set.order = order;
        Ok(task_set)
    }

    fn check(&self) -> Result<(), GraphError> {
        let there = |index: usize| index < self.operations.len();
        let unknown = |call: &OperationCall| !there(call.caller) || !there(call.callee);
        if let Some(call) = self.calls.iter().position(unknown) {
            return Err(GraphError::NoSuchOperation { call });
        }
        let zero = |operation: &&Operation| {
            operation.period_ns == Some(0) || operation.deadline_ns == Some(0)
        };
        match self.operations.iter().find(zero) {
            Some(Operation { name, .. }) => Err(GraphError::Zero { name: name.clone() }),
            None => Ok(()),
        }
    }

    fn too_much(&self, index: usize) -> GraphError {
        GraphError::TooMuch {
            name: self.operations[index].name.clone(),
        }
    }

    /// Returns the operations in an order in which callers precede callees.
    fn callers_first(&self) -> Result<Vec<usize>, GraphError> {
        let edges = Edges::of(self);
        let mut callers: Vec<usize> = edges.incoming.iter().map(Vec::len).collect();
        let mut order: Vec<usize> = (0..callers.len())
            .filter(|&index| callers[index] == 0)
            .collect();
        let mut next = 0;
        while let Some(&index) = order.get(next) {
            next += 1;
            for &call in &edges.outgoing[index] {
                let callee = self.calls[call].callee;
                callers[callee] -= 1;
                if callers[callee] == 0 {
                    order.push(callee);
                }
            }
        }
        match callers.iter().position(|&left| left > 0) {
            None => Ok(order),
            Some(begin) => Err(self.cycle(begin, &callers, &edges)),
        }
    }

    /// Returns a cycle. Each remaining operation has a remaining caller, so the path backwards must reach an operation twice.
    fn cycle(&self, begin: usize, callers: &[usize], edges: &Edges) -> GraphError {
        let mut path = vec![begin];
        let mut place: BTreeMap<usize, usize> = BTreeMap::from([(begin, 0)]);
        let mut at = begin;
        loop {
            let of = |&call: &usize| self.calls[call].caller;
            let mut back = edges.incoming[at].iter().map(of);
            let Some(caller) = back.find(|&caller| callers[caller] > 0) else {
                break;
            };
            if let Some(&first) = place.get(&caller) {
                path.drain(..first);
                break;
            }
            place.insert(caller, path.len());
            path.push(caller);
            at = caller;
        }
        // The path runs from callee to caller.
        path.reverse();
        let name = |&index: &usize| self.operations[index].name.clone();
        let mut names: Vec<String> = path.iter().map(name).collect();
        names.extend(path.first().map(name));
        GraphError::Cycle { names }
    }

    /// Returns a time of each operation, with that of all that it calls and waits for. A remote operation takes none of its own.
    fn whole_times(
        &self,
        order: &[usize],
        edges: &Edges,
        own_ns: impl Fn(&Operation) -> u64,
    ) -> Result<Vec<u64>, GraphError> {
        let mut whole_ns = vec![0_u64; order.len()];
        for &index in order.iter().rev() {
            let operation = &self.operations[index];
            let own = match operation.kind {
                OperationKind::Remote => 0,
                _ => own_ns(operation),
            };
            let calls = edges.outgoing[index].iter().map(|&call| self.calls[call]);
            let mut waited_for = calls.filter(|call| call.kind == CallKind::TwoWay);
            let whole = waited_for.try_fold(own, |sum, call| {
                sum.checked_add(whole_ns[call.callee].checked_mul(call.count.into())?)
            });
            whole_ns[index] = whole.ok_or_else(|| self.too_much(index))?;
        }
        Ok(whole_ns)
    }

    /// Returns the rates of an operation whose callers' rates are known; `None` if a number overflows.
    fn rates(
        &self,
        index: usize,
        incoming: &[OperationCall],
        task_set: &TaskSet,
    ) -> Option<Vec<Rate>> {
        let by_call = |call: &OperationCall| -> Option<Vec<Rate>> {
            let each = task_set.rates[call.caller].iter().map(|rate| {
                Some(Rate {
                    count: rate.count.checked_mul(call.count.into())?,
                    ..*rate
                })
            });
            each.collect()
        };
        let called: Vec<Vec<Rate>> = incoming.iter().map(by_call).collect::<Option<_>>()?;
        let taken: Vec<Rate> = match self.operations[index].kind {
            OperationKind::Conjunction => {
                let slowest = called.into_iter().min_by(|a, b| self.slower(a, b));
                slowest.unwrap_or_default()
            }
            _ => called.into_iter().flatten().collect(),
        };
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        for rate in taken {
            let count = counts.entry(rate.root).or_default();
            *count = count.checked_add(rate.count)?;
        }
        if self.operations[index].period_ns.is_some() {
            let count = counts.entry(index).or_default();
            *count = count.checked_add(1)?;
        }
        let some = counts.into_iter().filter(|&(_, count)| count > 0);
        Some(some.map(|(root, count)| Rate { root, count }).collect())
    }

    /// Compares the rates of two callers: exactly if each has one root, else by the sum of rates in jobs per century.
    fn slower(&self, a: &[Rate], b: &[Rate]) -> core::cmp::Ordering {
        let exact = |side: &[Rate]| match side {
            [one] => Some((u128::from(one.count), u128::from(self.period_of(one.root)))),
            _ => None,
        };
        if let (Some((count, period)), Some((other, others))) = (exact(a), exact(b)) {
            return (count * others).cmp(&(other * period));
        }
        let rate = |side: &[Rate]| -> u128 {
            let each = side.iter().map(|rate| {
                u128::from(rate.count) * CENTURY_NS / u128::from(self.period_of(rate.root))
            });
            each.fold(0, u128::saturating_add)
        };
        rate(a).cmp(&rate(b))
    }

    /// Returns the period of a root.
    fn period_of(&self, root: usize) -> u64 {
        self.operations[root].period_ns.unwrap_or(u64::MAX)
    }

    /// Adds the tasks of an operation, and records the callers' tasks in which it executes. A remote operation has tasks of what it calls
    /// here and waits for.
    fn add_tasks(
        &self,
        index: usize,
        incoming: &[OperationCall],
        rates: &[Rate],
        whole: WholeTimes,
        task_set: &mut TaskSet,
    ) -> Option<()> {
        let operation = &self.operations[index];
        let is_elsewhere = operation.kind == OperationKind::Remote && whole.worst_ns == 0;
        for rate in rates {
            let mut after = Vec::new();
            let mut own: u64 = u64::from(rate.root == index);
            for call in incoming {
                let mut callers = task_set.rates[call.caller].iter();
                let caller = callers.find(|caller| caller.root == rate.root);
                let runs = caller.map_or(0, |caller| caller.count) * u64::from(call.count);
                let carriers = task_set.carriers[call.caller].iter().copied();
                let carriers = carriers.filter(|&task| task_set.tasks[task].root == rate.root);
                let carriers: Vec<usize> = carriers.collect();
                if call.kind == CallKind::TwoWay || is_elsewhere {
                    task_set.carriers[index].extend(carriers);
                } else {
                    own = own.saturating_add(runs);
                    after.extend(carriers);
                }
            }
            // A conjunction runs only as often as its slowest caller.
            own = own.min(rate.count);
            if own == 0 || is_elsewhere && rate.root != index {
                continue;
            }
            let worst_ns = whole.worst_ns.checked_mul(own)?;
            after.sort_unstable();
            after.dedup();
            let jitter_ns = operation
                .jitter_ns
                .checked_add(self.waiting_for_others(index, rate.root, incoming, task_set))?;
            let task = Task {
                period_ns: self.period_of(rate.root),
                burst: Burst::NONE,
                phase: None,
                worst_ns,
                typical_ns: worst_ns.min(operation.typical_ns),
                best_ns: 0,
                deadline_ns: operation.deadline_ns.unwrap_or(self.period_of(rate.root)),
                jitter_ns,
                blocking_ns: whole.blocking_ns.checked_mul(own)?,
                criticality: operation.criticality,
                importance: operation.importance,
            };
            task_set.carriers[index].push(task_set.tasks.len());
            task_set.tasks.push(GraphTask {
                operation: index,
                root: rate.root,
                task,
                after,
            });
        }
        task_set.carriers[index].sort_unstable();
        task_set.carriers[index].dedup();
        Some(())
    }

    /// Returns how long the slowest caller of a conjunction may wait for the others: one of their periods until they are
    /// released, and one until they end, unless they have the same root.
    fn waiting_for_others(
        &self,
        index: usize,
        root: usize,
        incoming: &[OperationCall],
        task_set: &TaskSet,
    ) -> u64 {
        if self.operations[index].kind != OperationKind::Conjunction {
            return 0;
        }
        let callers = incoming
            .iter()
            .flat_map(|call| &task_set.rates[call.caller]);
        let others = callers.filter(|caller| caller.root != root);
        others
            .map(|caller| self.period_of(caller.root))
            .max()
            .unwrap_or(0)
            .saturating_mul(2)
    }
}

/// The times of an operation with all that it calls and waits for.
#[derive(Clone, Copy)]
struct WholeTimes {
    worst_ns: u64,
    blocking_ns: u64,
}

/// The calls of each operation, as indices.
struct Edges {
    outgoing: Vec<Vec<usize>>,
    incoming: Vec<Vec<usize>>,
}

impl Edges {
    fn of(graph: &CallGraph) -> Self {
        let none = vec![Vec::new(); graph.operations.len()];
        let mut edges = Self {
            outgoing: none.clone(),
            incoming: none,
        };
        for (index, call) in graph.calls.iter().enumerate() {
            edges.outgoing[call.caller].push(index);
            edges.incoming[call.callee].push(index);
        }
        edges
    }
}

impl Operation {
    /// Creates an operation that takes no time and runs only when it is called.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: OperationKind::Operation,
            period_ns: None,
            deadline_ns: None,
            worst_ns: 0,
            typical_ns: 0,
            jitter_ns: 0,
            blocking_ns: 0,
            criticality: Criticality::default(),
            importance: Importance::default(),
        }
    }
}

const CENTURY_NS: u128 = 100 * 365 * 24 * 3600 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, period_ns: Option<u64>, worst_ns: u64) -> Operation {
        Operation {
            period_ns,
            worst_ns,
            typical_ns: worst_ns,
            ..Operation::named(name)
        }
    }

    fn call(caller: usize, callee: usize, count: u32, kind: CallKind) -> OperationCall {
        OperationCall {
            caller,
            callee,
            count,
            kind,
        }
    }

    #[test]
    fn rates_propagate_from_callers_to_callees() {
        let graph = CallGraph {
            operations: vec![
                operation("fast", Some(10), 1),
                operation("slow", Some(40), 2),
                operation("passive", None, 3),
                operation("last", None, 1),
            ],
            calls: vec![
                call(0, 2, 2, CallKind::OneWay),
                call(1, 2, 1, CallKind::OneWay),
                call(2, 3, 3, CallKind::OneWay),
            ],
        };
        let task_set = graph.task_set().expect("tasks");
        let counts = |index: usize| -> Vec<(usize, u64)> {
            let each = task_set.rates[index].iter();
            each.map(|rate| (rate.root, rate.count)).collect()
        };
        assert_eq!(counts(2), [(0, 2), (1, 1)]);
        assert_eq!(counts(3), [(0, 6), (1, 3)]);
        let of_passive: Vec<_> = task_set
            .tasks
            .iter()
            .filter(|task| task.operation == 2)
            .collect();
        assert_eq!(of_passive.len(), 2);
        assert_eq!(
            (of_passive[0].task.period_ns, of_passive[0].task.worst_ns),
            (10, 6)
        );
        assert_eq!(of_passive[0].after, [0]);
    }

    #[test]
    fn a_two_way_call_is_part_of_its_caller() {
        let graph = CallGraph {
            operations: vec![
                operation("client", Some(100), 5),
                operation("server", None, 3),
                operation("deep", None, 2),
            ],
            calls: vec![
                call(0, 1, 2, CallKind::TwoWay),
                call(1, 2, 1, CallKind::TwoWay),
            ],
        };
        let task_set = graph.task_set().expect("tasks");
        assert_eq!(task_set.tasks.len(), 1);
        assert_eq!(task_set.tasks[0].task.worst_ns, 5 + 2 * (3 + 2));
        assert_eq!(task_set.carriers[2], [0]);
    }

    #[test]
    fn a_callee_that_is_waited_for_may_be_blocked_in_its_callers_task() {
        let blocked = |name: &str, period_ns, worst_ns, blocking_ns| Operation {
            blocking_ns,
            ..operation(name, period_ns, worst_ns)
        };
        let graph = CallGraph {
            operations: vec![
                blocked("client", Some(100), 2, 1),
                blocked("server", None, 1, 8),
                blocked("elsewhere", None, 1, 50),
            ],
            calls: vec![
                call(0, 1, 2, CallKind::TwoWay),
                call(0, 2, 1, CallKind::OneWay),
            ],
        };
        let task_set = graph.task_set().expect("tasks");
        let blocking = task_set.tasks.iter().map(|task| task.task.blocking_ns);
        assert_eq!(blocking.collect::<Vec<_>>(), [1 + 2 * 8, 50]);
    }

    #[test]
    fn what_a_remote_operation_waits_for_is_in_its_callers_task_or_in_one_of_its_own() {
        let graph = |kind| CallGraph {
            operations: vec![
                operation("client", Some(100), 1),
                Operation {
                    kind: OperationKind::Remote,
                    ..operation("remote", None, 70)
                },
                operation("back", None, 9),
                operation("last", None, 2),
            ],
            calls: vec![
                call(0, 1, 2, kind),
                call(1, 2, 1, CallKind::TwoWay),
                call(1, 3, 1, CallKind::OneWay),
            ],
        };
        let tasks = |kind| {
            let task_set = graph(kind).task_set().expect("tasks");
            let each = task_set.tasks.iter();
            let each = each.map(|task| (task.operation, task.task.worst_ns, task.after.clone()));
            (each.collect::<Vec<_>>(), task_set.carriers[2].clone())
        };
        assert_eq!(
            tasks(CallKind::TwoWay),
            (vec![(0, 19, vec![]), (3, 4, vec![0])], vec![0])
        );
        assert_eq!(
            tasks(CallKind::OneWay),
            (
                vec![(0, 1, vec![]), (1, 18, vec![0]), (3, 4, vec![1])],
                vec![1]
            )
        );
    }

    #[test]
    fn a_conjunction_is_as_slow_as_its_slowest_and_a_disjunction_as_fast_as_all() {
        let graph = |kind| CallGraph {
            operations: vec![
                operation("a", Some(10), 1),
                operation("b", Some(30), 1),
                Operation {
                    kind,
                    ..operation("join", None, 1)
                },
            ],
            calls: vec![
                call(0, 2, 1, CallKind::OneWay),
                call(1, 2, 1, CallKind::OneWay),
            ],
        };
        let both = graph(OperationKind::Conjunction).task_set().expect("tasks");
        assert_eq!(both.rates[2], [Rate { root: 1, count: 1 }]);
        let task = &both.tasks[2];
        assert_eq!(
            (task.task.period_ns, task.task.jitter_ns),
            (30, 20),
            "it may wait for a"
        );
        let any = graph(OperationKind::Disjunction).task_set().expect("tasks");
        assert_eq!(any.rates[2].len(), 2);
    }

    #[test]
    fn a_cycle_is_named() {
        let graph = CallGraph {
            operations: ["a", "b", "c", "d"]
                .map(|name| operation(name, None, 1))
                .to_vec(),
            calls: vec![
                call(0, 1, 1, CallKind::OneWay),
                call(1, 2, 1, CallKind::TwoWay),
                call(2, 1, 1, CallKind::OneWay),
                call(2, 3, 1, CallKind::OneWay),
            ],
        };
        let said = graph.task_set().unwrap_err().to_string();
        assert!(
            said.contains("b -> c -> b") || said.contains("c -> b -> c"),
            "{said}"
        );
        assert!(!said.contains('a') || !said.contains("a ->"), "{said}");
    }

    #[test]
    fn an_overflow_is_an_error() {
        let mut operations = vec![operation("root", Some(1), 1)];
        let mut calls = Vec::new();
        for index in 1..4 {
            operations.push(operation(&format!("callee{index}"), None, 1));
            calls.push(call(index - 1, index, u32::MAX, CallKind::OneWay));
        }
        let error = CallGraph { operations, calls }.task_set().unwrap_err();
        assert!(matches!(error, GraphError::TooMuch { .. }), "{error}");
        let lost = CallGraph {
            operations: vec![],
            calls: vec![call(0, 0, 1, CallKind::OneWay)],
        };
        assert_eq!(
            lost.task_set(),
            Err(GraphError::NoSuchOperation { call: 0 })
        );
    }
}
