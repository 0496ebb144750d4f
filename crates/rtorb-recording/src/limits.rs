//! How long calls may take: by one limit for all, or by the bounds of an analysed system.

use std::collections::BTreeMap;

use rtorb_sched::model::{CheckReport, Layer, Share, System};

use crate::joins::{CallPlace, Joins};
use crate::parts::Cause;
use crate::records::{CallSide, Recording, short_name};

/// How long a call may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The behaviour, `COMPONENT.NAME`; without a system's file, the operation.
    pub behaviour: String,
    /// From which call on the time counts.
    pub since: CallPlace,
    /// The limit, in ns.
    pub limit_ns: u64,
    /// What it contains for each cause, if that is known.
    pub shares: Option<BTreeMap<Cause, u64>>,
}

/// The bounds of an analysed system, by the operations of its behaviours.
#[derive(Clone, Debug)]
pub struct SystemBounds {
    /// Of each operation, the behaviours that it may be.
    by_operation: BTreeMap<String, Vec<BoundOfBehaviour>>,
}

#[derive(Clone, Debug)]
struct BoundOfBehaviour {
    name: String,
    component: String,
    limit_ns: u64,
    /// The bounds from other roots than that of `limit_ns`.
    by_root: Vec<(String, Option<u64>)>,
    shares: BTreeMap<Cause, u64>,
}

impl SystemBounds {
    /// Of a system that was checked. The operation of a behaviour is the last name of its `operation` in the file, or its own name.
    /// Without a bound, its deadline is its limit.
    pub fn of(system: &System, checked: &CheckReport) -> Self {
        let mut by_operation: BTreeMap<String, Vec<BoundOfBehaviour>> = BTreeMap::new();
        for bound in &checked.behaviours {
            let Some(index) = system.behaviour(&bound.behaviour) else {
                continue;
            };
            let behaviour = &system.behaviours[index];
            let full = behaviour.operation.as_deref().unwrap_or(&behaviour.name);
            let operation = full.rsplit(['.', ':']).next().unwrap_or(full);
            let of_behaviour = BoundOfBehaviour {
                name: bound.behaviour.clone(),
                component: system.components[behaviour.component].name.clone(),
                limit_ns: bound.bound_ns.unwrap_or(bound.deadline_ns),
                by_root: bound.by_root.clone(),
                shares: shares(&bound.shares),
            };
            by_operation
                .entry(operation.to_owned())
                .or_default()
                .push(of_behaviour);
        }
        Self { by_operation }
    }

    /// Returns the limit of a call at its server, which counts from the first call of those that led to it; `None` if its operation is
    /// that of no behaviour, or of several whose components are no processes of these names
    /// (of their first 15 bytes).
    pub fn limit(&self, recording: &Recording, joins: &Joins, server: CallPlace) -> Option<Limit> {
        let found = self.behaviour(recording, server)?;
        let since = first_of(recording, joins, server);
        let of_root = |place: CallPlace| {
            let root = self.behaviour(recording, place)?;
            let mut roots = found.by_root.iter();
            roots.find(|(name, _)| *name == root.name)?.1
        };
        let limit_ns = of_root(since).unwrap_or(found.limit_ns);
        Some(Limit {
            behaviour: found.name.clone(),
            since,
            limit_ns,
            shares: Some(found.shares.clone()),
        })
    }

    fn behaviour(&self, recording: &Recording, place: CallPlace) -> Option<&BoundOfBehaviour> {
        let all = self.by_operation.get(&recording.call(place).operation)?;
        if let [one] = &all[..] {
            return Some(one);
        }
        let process = &recording.process(place).name;
        let mut named = all
            .iter()
            .filter(|one| short_name(&one.component) == process);
        named.next().filter(|_| named.next().is_none())
    }
}

/// The first of the calls that led to a call: its client's, that of the servant in which this one was made, and so on.
fn first_of(recording: &Recording, joins: &Joins, place: CallPlace) -> CallPlace {
    let before = |place: &CallPlace| match recording.call(*place).side {
        CallSide::Server => joins.client_of.get(place).copied(),
        CallSide::Client | CallSide::Collocated | CallSide::Started => {
            joins.within.get(place).copied()
        }
    };
    let led = std::iter::successors(Some(place), before).take(CALLS_MAX);
    led.last().unwrap_or(place)
}

/// The shares of a bound by their causes. What waits for threads that are as urgent, or more, is preempted or waits in a queue.
fn shares(shares: &[Share]) -> BTreeMap<Cause, u64> {
    let mut found: BTreeMap<Cause, u64> = BTreeMap::new();
    for share in shares {
        let ns = u64::try_from(share.ns).unwrap_or(0);
        let has = |word: &str| share.what.contains(word);
        let causes: &[Cause] = match share.layer {
            _ if has("preempted by") || has("held by") || has("on the last level") => {
                &[Cause::Preempted, Cause::Queue]
            }
            Layer::Application => &[Cause::Execution],
            Layer::Orb | Layer::Hardware => &[Cause::Network],
            Layer::OperatingSystem => &[Cause::Kernel],
        };
        for cause in causes {
            let sum = found.entry(*cause).or_insert(0);
            *sum = sum.saturating_add(ns);
        }
    }
    found
}

/// The calls in one another that are followed.
const CALLS_MAX: usize = 128;
