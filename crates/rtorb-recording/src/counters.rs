//! What a process has called and served, from the counters of its recorder: since it was started, or between two looks.

use rtorb::recorder::{
    CallOutcome, CallSide, CountedOperation, ProcessSnapshot, RecordedLane, ThreadSnapshot,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::iter;

/// The counters of a process.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessCounters {
    /// The process.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// The time in which the calls ended, in ns: since the recorder was started, or since the look before.
    pub for_ns: u64,
    /// Threads that are not recorded, because the recorder has no room for more.
    pub refused_threads: u64,
    /// Requests that were not served in that time, of all threads. A part of the recorder whose thread has ended counts from 0 again once a
    /// thread of another lane has it.
    #[serde(flatten)]
    pub unserved: UnservedRequests,
    /// Its operations, clients' first, then by name.
    pub operations: Vec<OperationRow>,
    /// Its threads.
    pub threads: Vec<ThreadRow>,
    /// The lanes that they serve, by pool and priority.
    pub lanes: Vec<LaneRow>,
}

/// The calls of an operation. Times are the upper ends of buckets, at most a quarter above the times themselves, but for the longest.
#[derive(Clone, Debug, Serialize)]
pub struct OperationRow {
    /// `client` for calls that the process made, `server` for those that it served.
    pub side: &'static str,
    /// The operation's name on the wire; `...` for all that the recorder has no place for.
    pub operation: String,
    /// Calls that ended.
    pub calls: u64,
    /// Calls a second.
    pub calls_per_s: f64,
    /// Of them, those that ended otherwise than with results.
    #[serde(flatten)]
    pub failures: Failures,
    /// The median of their times: for a client all of a call, for a server the servant's turn with the reply. `None` without calls.
    pub p50_ns: Option<u64>,
    /// The time that 99 % do not exceed.
    pub p99_ns: Option<u64>,
    /// The longest time since the recorder was started.
    pub longest_ns: u64,
    /// Requests that were in a queue of the server.
    pub queued: u64,
    /// The time in a queue that 99 % of them do not exceed.
    pub queue_p99_ns: Option<u64>,
    /// Calls that ended later than the deadline of the operation's annotation, also with TIMEOUT.
    pub deadline_misses: u64,
    /// Requests whose threads were demoted, because the servant executed longer than the worst case of the annotation.
    pub demotions: u64,
}

/// Requests that a server did not serve, by the reason. They are not among the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UnservedRequests {
    /// A queue had no room.
    pub refused: u64,
    /// A more critical request took their place in a queue.
    pub shed: u64,
    /// Their deadlines had passed before their servants were called. An ORB that only counts deadlines has served them all the same.
    pub expired: u64,
}

impl UnservedRequests {
    /// Returns those of all threads of a process, or those since an earlier look at it. A part has the same place in all looks.
    fn since(now: &ProcessSnapshot, earlier: Option<&ProcessSnapshot>) -> Self {
        let before = earlier.map_or(&[][..], |earlier| &earlier.threads);
        let before = before
            .iter()
            .map(Self::of)
            .chain(iter::repeat(Self::default()));
        let each = now.threads.iter().map(Self::of).zip(before);
        // A part that counts from 0 again has less than before.
        let new = |now: u64, before| now.checked_sub(before).unwrap_or(now);
        each.fold(Self::default(), |sum, (now, before)| {
            sum.and(Self {
                refused: new(now.refused, before.refused),
                shed: new(now.shed, before.shed),
                expired: new(now.expired, before.expired),
            })
        })
    }

    /// Returns those of a thread.
    fn of(thread: &ThreadSnapshot) -> Self {
        let ThreadSnapshot {
            refused,
            shed,
            expired,
            ..
        } = *thread;
        Self {
            refused,
            shed,
            expired,
        }
    }

    /// Returns both. The numbers are those of another process, which may be any.
    fn and(self, others: Self) -> Self {
        Self {
            refused: self.refused.saturating_add(others.refused),
            shed: self.shed.saturating_add(others.shed),
            expired: self.expired.saturating_add(others.expired),
        }
    }
}

/// Calls without results, by their end.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Failures {
    /// With a user exception.
    pub user_exceptions: u64,
    /// With a system exception other than those below.
    pub system_exceptions: u64,
    /// With TIMEOUT.
    pub timeouts: u64,
    /// With TRANSIENT.
    pub transients: u64,
}

impl Failures {
    /// Returns the number of all. The numbers are those of another process, which may be any.
    #[must_use]
    pub fn all(&self) -> u64 {
        let each = [
            self.user_exceptions,
            self.system_exceptions,
            self.timeouts,
            self.transients,
        ];
        each.into_iter().fold(0, u64::saturating_add)
    }
}

/// A lane of the process.
#[derive(Clone, Debug, Serialize)]
pub struct LaneRow {
    /// The number of its pool; 0 for the ORB's own.
    pub pool: u32,
    /// Its CORBA priority.
    pub priority: i16,
    /// Its threads that are, or were last, in the recorder.
    pub threads: usize,
    /// Calls that they served, since the recorder was started.
    pub served: u64,
    /// The most requests that its queue had accepted and not served; 0 without a queue.
    pub most_accepted: u64,
    /// Its requests that were not served, since the recorder was started.
    #[serde(flatten)]
    pub unserved: UnservedRequests,
}

/// A thread of the process.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadRow {
    /// Its number.
    pub thread: u32,
    /// Its name; empty if it has ended.
    pub name: String,
    /// The lane that it serves, such as `pool 1, priority 60`.
    pub lane: Option<String>,
    /// All calls that the recorder counted for it, and for earlier threads in its place.
    pub calls: u64,
    /// Of these, the ones that are no longer kept one by one.
    pub overwritten: u64,
}

impl ProcessCounters {
    /// Returns the counters since the recorder was started, or since an earlier look at the same process.
    #[must_use]
    pub fn of(now: &ProcessSnapshot, earlier: Option<&ProcessSnapshot>) -> Self {
        let since_ns = earlier.map_or(now.started_ns, |earlier| earlier.at_ns);
        let for_ns = now.at_ns.saturating_sub(since_ns);
        let before = earlier.map(ProcessSnapshot::operations).unwrap_or_default();
        let operations = now.operations();
        let rows = operations.iter().map(|operation| {
            let is_same =
                |it: &&CountedOperation| (it.side, &it.name) == (operation.side, &operation.name);
            let counted = match before.iter().find(is_same) {
                Some(before) => operation.since(before),
                None => operation.clone(),
            };
            OperationRow::of(&counted, for_ns)
        });
        let threads = now.threads.iter().map(|thread| ThreadRow {
            thread: thread.thread,
            name: thread.name.clone(),
            lane: thread.lane.map(|lane| lane.to_string()),
            calls: sum(thread.operations.iter()),
            overwritten: thread.overwritten,
        });
        Self {
            process: now.process,
            name: now.name.clone(),
            for_ns,
            refused_threads: now.refused_threads,
            unserved: UnservedRequests::since(now, earlier),
            operations: rows.collect(),
            threads: threads.collect(),
            lanes: lanes(now),
        }
    }
}

/// Returns the lanes of the threads of a process.
fn lanes(now: &ProcessSnapshot) -> Vec<LaneRow> {
    let mut rows: BTreeMap<RecordedLane, LaneRow> = BTreeMap::new();
    for thread in &now.threads {
        let Some(lane) = thread.lane else { continue };
        let row = rows.entry(lane).or_insert(LaneRow {
            pool: lane.pool,
            priority: lane.priority,
            threads: 0,
            served: 0,
            most_accepted: 0,
            unserved: UnservedRequests::default(),
        });
        let served = thread.operations.iter();
        let served = served.filter(|it| it.side == CallSide::Server);
        row.threads += 1;
        row.served = row.served.saturating_add(sum(served));
        row.most_accepted = row.most_accepted.max(thread.most_accepted);
        row.unserved = row.unserved.and(UnservedRequests::of(thread));
    }
    rows.into_values().collect()
}

/// Returns the calls of operations. The numbers are those of another process, which may be any.
fn sum<'a>(operations: impl Iterator<Item = &'a CountedOperation>) -> u64 {
    let outcomes = operations.flat_map(|it| it.outcomes);
    outcomes.fold(0, u64::saturating_add)
}

impl OperationRow {
    fn of(counted: &CountedOperation, for_ns: u64) -> Self {
        let ns = |time: core::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let ended = |outcome: CallOutcome| counted.outcomes[outcome as usize];
        let calls = sum(iter::once(counted));
        Self {
            side: match counted.side {
                CallSide::Server => "server",
                CallSide::Client | CallSide::Collocated | CallSide::Started => "client",
            },
            operation: counted.name.clone(),
            calls,
            calls_per_s: calls as f64 * 1e9 / for_ns.max(1) as f64,
            failures: Failures {
                user_exceptions: ended(CallOutcome::UserException),
                system_exceptions: ended(CallOutcome::SystemException),
                timeouts: ended(CallOutcome::Timeout),
                transients: ended(CallOutcome::Transient),
            },
            p50_ns: counted.times.quantile(0.5).map(ns),
            p99_ns: counted.times.quantile(0.99).map(ns),
            longest_ns: ns(counted.longest),
            queued: counted.waits.count(),
            queue_p99_ns: counted.waits.quantile(0.99).map(ns),
            deadline_misses: counted.deadline_misses,
            demotions: counted.demotions,
        }
    }
}

#[cfg(test)]
mod tests;
