//! Operations that call each other, and the tasks that follow.
//!
//! An operation runs at its own period, or as often as it is called: rates go from callers to what they call, times the
//! number of calls. A one-way call starts a task of its own; a two-way call is part of the caller's execution, at the
//! caller's priority. (RtecScheduler::RT_Info and Dependency_Info, after TAO's scheduling service.)

use std::collections::BTreeMap;
use thiserror::Error;

use crate::task::{Criticality, Importance, Task};

/// One operation. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name, for messages.
    pub name: String,
    /// How it runs.
    pub kind: Kind,
    /// Its own period, or least time between arrivals; `None` if it runs only as often as it is called.
    pub period_ns: Option<u64>,
    /// Until when it must be done, from the arrival of what began it; `None` stands for the period of that.
    pub deadline_ns: Option<u64>,
    /// The longest that it executes, without what it calls.
    pub worst_ns: u64,
    /// What it usually executes.
    pub typical_ns: u64,
    /// How long after its arrival it may be released.
    pub jitter_ns: u64,
    /// The longest that it waits for less urgent ones.
    pub blocking_ns: u64,
    /// What a missed deadline costs.
    pub criticality: Criticality,
    /// What goes first among equals.
    pub importance: Importance,
}

/// How an operation runs (RtecScheduler::Info_Type_t).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Each time that somebody calls.
    #[default]
    Operation,
    /// Once all of its callers have called: as often as the slowest of them.
    Conjunction,
    /// Each time that one of its callers does.
    Disjunction,
    /// Executes elsewhere: passes rates on, and takes no time here.
    Remote,
}

/// One operation calls another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who calls: an index into the operations.
    pub caller: usize,
    /// Who is called.
    pub callee: usize,
    /// How often, each time that the caller runs.
    pub count: u32,
    /// Whether the caller waits.
    pub way: Way,
}

/// Whether a caller waits for what it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It does not: an event, or a oneway call.
    OneWay,
    /// It does.
    TwoWay,
}

/// Operations and their calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGraph {
    /// The operations.
    pub operations: Vec<Operation>,
    /// The calls among them.
    pub calls: Vec<Call>,
}

/// How often an operation runs because of one that has a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The operation that has the period.
    pub root: usize,
    /// How often in each of these periods.
    pub count: u64,
}

/// The tasks that follow from a call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// The tasks.
    pub tasks: Vec<SystemTask>,
    /// For each operation, why it runs; empty if it never does.
    pub activations: Vec<Vec<Activation>>,
    /// For each operation, the tasks in which it executes.
    pub carriers: Vec<Vec<usize>>,
    /// Operations from callers to what they call.
    pub order: Vec<usize>,
}

/// A task of a [`System`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemTask {
    /// The operation that it is of.
    pub operation: usize,
    /// What has the period.
    pub root: usize,
    /// What it needs: with all that it calls and waits for, and all its runs in one period together.
    pub task: Task,
    /// The tasks whose ends may start it.
    pub after: Vec<usize>,
}

/// Why a call graph has no tasks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Operations call each other in a circle; each is named once, in the order of the calls.
    #[error("these call each other in a circle: {}: take out one of the calls", .names.join(" -> "))]
    Cycle {
        /// Their names.
        names: Vec<String>,
    },
    /// A call names an operation that is not there.
    #[error("call {call} is of an operation that is not there")]
    NoSuchOperation {
        /// The index of the call.
        call: usize,
    },
    /// Zero is no period and no deadline.
    #[error("{name}: a period and a deadline are at least 1 ns")]
    Zero {
        /// The operation.
        name: String,
    },
    /// Calls of calls add up to more than can be counted.
    #[error(
        "{name} is called so often, or takes so long with all that it calls, that 64 bits cannot count it"
    )]
    TooMuch {
        /// The operation.
        name: String,
    },
}

impl CallGraph {
    /// The tasks that follow.
    ///
    /// # Errors
    /// [`GraphError`], with the names of the operations.
    pub fn system(&self) -> Result<System, GraphError> {
        self.check()?;
        let order = self.callers_first()?;
        let edges = Edges::of(self);
        let mut system = System {
            activations: vec![Vec::new(); self.operations.len()],
            carriers: vec![Vec::new(); self.operations.len()],
            ..System::default()
        };
        let whole_ns = self.whole_times(&order, &edges)?;
        for &index in &order {
            let incoming = edges.incoming[index].iter().map(|&call| self.calls[call]);
            let incoming: Vec<Call> = incoming.collect();
            let too_much = || self.too_much(index);
            let activations = self
                .activations(index, &incoming, &system)
                .ok_or_else(too_much)?;
            self.add_tasks(index, &incoming, &activations, whole_ns[index], &mut system)
                .ok_or_else(too_much)?;
            system.activations[index] = activations;
        }
        system.order = order;
        Ok(system)
    }

    fn check(&self) -> Result<(), GraphError> {
        let there = |index: usize| index < self.operations.len();
        let unknown = |call: &Call| !there(call.caller) || !there(call.callee);
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

    /// Each operation after all that call it.
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
            Some(begin) => Err(self.circle(begin, &callers, &edges)),
        }
    }

    /// A circle: whoever still has callers has one among those that still have, so going back must come to a place again.
    fn circle(&self, begin: usize, callers: &[usize], edges: &Edges) -> GraphError {
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
        // The path goes backwards.
        path.reverse();
        let name = |&index: &usize| self.operations[index].name.clone();
        let mut names: Vec<String> = path.iter().map(name).collect();
        names.extend(path.first().map(name));
        GraphError::Cycle { names }
    }

    /// How long each operation takes with all that it calls and waits for.
    fn whole_times(&self, order: &[usize], edges: &Edges) -> Result<Vec<u64>, GraphError> {
        let mut whole_ns = vec![0_u64; order.len()];
        for &index in order.iter().rev() {
            let operation = &self.operations[index];
            let own = match operation.kind {
                Kind::Remote => 0,
                _ => operation.worst_ns,
            };
            let calls = edges.outgoing[index].iter().map(|&call| self.calls[call]);
            let mut waited_for = calls.filter(|call| call.way == Way::TwoWay);
            let whole = waited_for.try_fold(own, |sum, call| {
                sum.checked_add(whole_ns[call.callee].checked_mul(call.count.into())?)
            });
            whole_ns[index] = whole.ok_or_else(|| self.too_much(index))?;
        }
        Ok(whole_ns)
    }

    /// Why an operation runs; its callers are known already. `None` for more than can be counted.
    fn activations(
        &self,
        index: usize,
        incoming: &[Call],
        system: &System,
    ) -> Option<Vec<Activation>> {
        let by_call = |call: &Call| -> Option<Vec<Activation>> {
            let each = system.activations[call.caller].iter().map(|activation| {
                Some(Activation {
                    count: activation.count.checked_mul(call.count.into())?,
                    ..*activation
                })
            });
            each.collect()
        };
        let called: Vec<Vec<Activation>> = incoming.iter().map(by_call).collect::<Option<_>>()?;
        let taken: Vec<Activation> = match self.operations[index].kind {
            Kind::Conjunction => {
                let slowest = called.into_iter().min_by(|a, b| self.slower(a, b));
                slowest.unwrap_or_default()
            }
            _ => called.into_iter().flatten().collect(),
        };
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        for activation in taken {
            let count = counts.entry(activation.root).or_default();
            *count = count.checked_add(activation.count)?;
        }
        if self.operations[index].period_ns.is_some() {
            let count = counts.entry(index).or_default();
            *count = count.checked_add(1)?;
        }
        let some = counts.into_iter().filter(|&(_, count)| count > 0);
        Some(
            some.map(|(root, count)| Activation { root, count })
                .collect(),
        )
    }

    /// Compares how often two callers call. Exact for one root each; else by the sum of rates, in jobs a century.
    fn slower(&self, a: &[Activation], b: &[Activation]) -> core::cmp::Ordering {
        let exact = |side: &[Activation]| match side {
            [one] => Some((u128::from(one.count), u128::from(self.period_of(one.root)))),
            _ => None,
        };
        if let (Some((count, period)), Some((other, others))) = (exact(a), exact(b)) {
            return (count * others).cmp(&(other * period));
        }
        let rate = |side: &[Activation]| -> u128 {
            let each = side.iter().map(|activation| {
                u128::from(activation.count) * CENTURY_NS
                    / u128::from(self.period_of(activation.root))
            });
            each.fold(0, u128::saturating_add)
        };
        rate(a).cmp(&rate(b))
    }

    /// The period of an operation that has one.
    fn period_of(&self, root: usize) -> u64 {
        self.operations[root].period_ns.unwrap_or(u64::MAX)
    }

    /// The tasks of an operation, and those of its callers in which it executes.
    fn add_tasks(
        &self,
        index: usize,
        incoming: &[Call],
        activations: &[Activation],
        whole_ns: u64,
        system: &mut System,
    ) -> Option<()> {
        let operation = &self.operations[index];
        for activation in activations {
            let mut after = Vec::new();
            let mut own: u64 = u64::from(activation.root == index);
            for call in incoming {
                let mut callers = system.activations[call.caller].iter();
                let caller = callers.find(|caller| caller.root == activation.root);
                let runs = caller.map_or(0, |caller| caller.count) * u64::from(call.count);
                let carriers = system.carriers[call.caller].iter().copied();
                let carriers = carriers.filter(|&task| system.tasks[task].root == activation.root);
                let carriers: Vec<usize> = carriers.collect();
                match (call.way, operation.kind) {
                    (Way::TwoWay, _) | (_, Kind::Remote) => {
                        system.carriers[index].extend(carriers);
                    }
                    (Way::OneWay, _) => {
                        own = own.saturating_add(runs);
                        after.extend(carriers);
                    }
                }
            }
            // A conjunction runs as often as its slowest caller, whatever the others do.
            own = own.min(activation.count);
            if own == 0 || operation.kind == Kind::Remote && activation.root != index {
                continue;
            }
            let worst_ns = whole_ns.checked_mul(own)?;
            after.sort_unstable();
            after.dedup();
            let jitter_ns = operation.jitter_ns.checked_add(self.waiting_for_others(
                index,
                activation.root,
                incoming,
                system,
            ))?;
            let task = Task {
                period_ns: self.period_of(activation.root),
                worst_ns,
                typical_ns: worst_ns.min(operation.typical_ns),
                best_ns: 0,
                deadline_ns: operation
                    .deadline_ns
                    .unwrap_or(self.period_of(activation.root)),
                jitter_ns,
                blocking_ns: operation.blocking_ns,
                criticality: operation.criticality,
                importance: operation.importance,
            };
            system.carriers[index].push(system.tasks.len());
            system.tasks.push(SystemTask {
                operation: index,
                root: activation.root,
                task,
                after,
            });
        }
        system.carriers[index].sort_unstable();
        system.carriers[index].dedup();
        Some(())
    }

    /// How long the slowest caller of a conjunction may have to wait for the others: a period of theirs until they begin and
    /// one until they are done, unless they begin with the same root.
    fn waiting_for_others(
        &self,
        index: usize,
        root: usize,
        incoming: &[Call],
        system: &System,
    ) -> u64 {
        if self.operations[index].kind != Kind::Conjunction {
            return 0;
        }
        let callers = incoming
            .iter()
            .flat_map(|call| &system.activations[call.caller]);
        let others = callers.filter(|caller| caller.root != root);
        others
            .map(|caller| self.period_of(caller.root))
            .max()
            .unwrap_or(0)
            .saturating_mul(2)
    }
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
    /// An operation of that name that takes no time and runs only when it is called.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: Kind::Operation,
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

    fn call(caller: usize, callee: usize, count: u32, way: Way) -> Call {
        Call {
            caller,
            callee,
            count,
            way,
        }
    }

    #[test]
    fn rates_go_from_callers_to_what_they_call() {
        let graph = CallGraph {
            operations: vec![
                operation("fast", Some(10), 1),
                operation("slow", Some(40), 2),
                operation("passive", None, 3),
                operation("last", None, 1),
            ],
            calls: vec![
                call(0, 2, 2, Way::OneWay),
                call(1, 2, 1, Way::OneWay),
                call(2, 3, 3, Way::OneWay),
            ],
        };
        let system = graph.system().expect("tasks");
        let counts = |index: usize| -> Vec<(usize, u64)> {
            let each = system.activations[index].iter();
            each.map(|activation| (activation.root, activation.count))
                .collect()
        };
        assert_eq!(counts(2), [(0, 2), (1, 1)]);
        assert_eq!(counts(3), [(0, 6), (1, 3)]);
        let of_passive: Vec<_> = system
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
            calls: vec![call(0, 1, 2, Way::TwoWay), call(1, 2, 1, Way::TwoWay)],
        };
        let system = graph.system().expect("tasks");
        assert_eq!(system.tasks.len(), 1);
        assert_eq!(system.tasks[0].task.worst_ns, 5 + 2 * (3 + 2));
        assert_eq!(system.carriers[2], [0]);
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
            calls: vec![call(0, 2, 1, Way::OneWay), call(1, 2, 1, Way::OneWay)],
        };
        let both = graph(Kind::Conjunction).system().expect("tasks");
        assert_eq!(both.activations[2], [Activation { root: 1, count: 1 }]);
        let task = &both.tasks[2];
        assert_eq!(
            (task.task.period_ns, task.task.jitter_ns),
            (30, 20),
            "it may wait for a"
        );
        let any = graph(Kind::Disjunction).system().expect("tasks");
        assert_eq!(any.activations[2].len(), 2);
    }

    #[test]
    fn circles_are_named() {
        let graph = CallGraph {
            operations: ["a", "b", "c", "d"]
                .map(|name| operation(name, None, 1))
                .to_vec(),
            calls: vec![
                call(0, 1, 1, Way::OneWay),
                call(1, 2, 1, Way::TwoWay),
                call(2, 1, 1, Way::OneWay),
                call(2, 3, 1, Way::OneWay),
            ],
        };
        let said = graph.system().unwrap_err().to_string();
        assert!(
            said.contains("b -> c -> b") || said.contains("c -> b -> c"),
            "{said}"
        );
        assert!(!said.contains('a') || !said.contains("a ->"), "{said}");
    }

    #[test]
    fn what_cannot_be_counted_is_told() {
        let mut operations = vec![operation("root", Some(1), 1)];
        let mut calls = Vec::new();
        for index in 1..4 {
            operations.push(operation(&format!("callee{index}"), None, 1));
            calls.push(call(index - 1, index, u32::MAX, Way::OneWay));
        }
        let error = CallGraph { operations, calls }.system().unwrap_err();
        assert!(matches!(error, GraphError::TooMuch { .. }), "{error}");
        let lost = CallGraph {
            operations: vec![],
            calls: vec![call(0, 0, 1, Way::OneWay)],
        };
        assert_eq!(lost.system(), Err(GraphError::NoSuchOperation { call: 0 }));
    }
}
