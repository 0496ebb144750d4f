//! Lock-free counters of an ORB's annotated operations, in a table by the number of the operation.

use super::arrivals::CallAdmission;
use super::miss_ratio::LateCalls;
use super::watch::TimingSide;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use rtorb_core::timing::{MissRatio, OperationTiming};
use rtorb_os::set_once::SetOnce;
use rtorb_os::sync::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

/// The counters of one operation on one side, since the ORB was built.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OperationCounts {
    /// The operation and its annotations.
    pub operation: &'static OperationTiming,
    /// The side of the call.
    pub side: TimingSide,
    /// Calls that ended, whether with a result or an exception. Refused calls are not among them.
    pub calls: u64,
    /// Calls that executed longer than the worst case. Servers only.
    pub overruns: u64,
    /// Calls that ended later than the deadline.
    pub deadline_misses: u64,
    /// Calls that arrived at a servant less than a period after the one before. Servers only.
    pub early_arrivals: u64,
    /// Calls whose threads were demoted, because the servant executed longer than the worst case. Servers only.
    pub demotions: u64,
    /// Calls whose servants were asked to stop, because they executed longer than the worst case. Servers only.
    pub stops: u64,
    /// Calls that were delayed, because they arrived too early. Servers only.
    pub delays: u64,
    /// Calls that were refused: because they arrived too early, because their deadlines were before their times, or because the host refused what their budgets need. Servers only.
    pub refusals: u64,
    /// How many calls may be late now: as the operation states it (`@statistical`), or as
    /// [`Orb::set_miss_ratios`](crate::Orb::set_miss_ratios) has changed it.
    pub miss_ratio: Option<MissRatio>,
    /// Late calls that came after as many late calls as may be late.
    pub ratio_violations: u64,
    /// Calls that were refused because as many waited in queues of the ORB as the operation allows (`@queue`). Servers only.
    pub queue_refusals: u64,
    /// The longest execution. Only servers measure it, and only for an operation with a worst case.
    pub worst_execution: Option<Duration>,
    /// The longest time from the arrival of a call to its end.
    pub worst_response: Duration,
}

/// The counters of all operations that this ORB has served or called.
///
/// Each chunk is larger than the one before and is allocated once: an entry never moves, and its place follows from its number.
#[derive(Debug)]
pub(super) struct CounterTable {
    chunks: [SetOnce<Box<[OperationCounters]>>; CHUNKS],
    /// The ratios of late calls that replace those of annotations, by operation.
    ratios: Mutex<MissRatios>,
}

/// How many calls of operations may be late, by `Module::Interface::operation`; `None` if each late call is a miss.
pub type MissRatios = BTreeMap<String, Option<MissRatio>>;

/// The counters of an operation on both sides.
#[derive(Debug, Default)]
pub(super) struct OperationCounters {
    operation: SetOnce<&'static OperationTiming>,
    /// True once this ORB has had a servant with the operation.
    is_served: AtomicBool,
    /// The requests that wait in queues, if the operation bounds them.
    waiting: AtomicU32,
    pub(super) client: Counters,
    pub(super) server: Counters,
}

/// Counters on one side, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Counters {
    calls: AtomicU64,
    pub(super) overruns: AtomicU64,
    pub(super) deadline_misses: AtomicU64,
    pub(super) early_arrivals: AtomicU64,
    pub(super) demotions: AtomicU64,
    pub(super) stops: AtomicU64,
    delays: AtomicU64,
    refusals: AtomicU64,
    queue_refusals: AtomicU64,
    pub(super) ratio_violations: AtomicU64,
    late: LateCalls,
    worst_execution_ns: AtomicU64,
    worst_response_ns: AtomicU64,
}

/// The entries of the first chunk. Each further chunk has twice as many as the one before.
const FIRST: usize = 16;
/// The number of chunks, which is enough for all numbers.
const CHUNKS: usize = 29;

impl Default for CounterTable {
    fn default() -> Self {
        Self {
            chunks: [const { SetOnce::new() }; CHUNKS],
            ratios: Mutex::default(),
        }
    }
}

impl CounterTable {
    /// Returns the counters of an operation, and allocates them if they are not [prepared](Self::prepare).
    #[inline]
    pub(super) fn entry(&self, operation: &'static OperationTiming) -> &OperationCounters {
        let known = operation.known_number().and_then(|number| {
            let (chunk, place) = place_of(number);
            let entry = &self.chunks[chunk].get()?[place];
            entry.operation.get().map(|_| entry)
        });
        known.unwrap_or_else(|| self.prepare(operation))
    }

    /// Allocates the counters of an operation, if there are none, and returns them.
    #[cold]
    pub(super) fn prepare(&self, operation: &'static OperationTiming) -> &OperationCounters {
        let (chunk, place) = place_of(operation.number());
        let make = || {
            (0..FIRST << chunk)
                .map(|_| OperationCounters::default())
                .collect()
        };
        let entry = &self.chunks[chunk].get_or_make(make)[place];
        let ratios = self.ratios.lock();
        entry.set_miss_ratio(ratio_of(&ratios, operation));
        entry.operation.get_or_make(|| operation);
        entry
    }

    /// Replaces the ratios of late calls. An operation that is not in `ratios` has the ratio of its annotation.
    pub(super) fn set_miss_ratios(&self, ratios: MissRatios) {
        let mut known = self.ratios.lock();
        *known = ratios;
        for entry in self.chunks.iter().filter_map(SetOnce::get).flatten() {
            if let Some(operation) = entry.operation.get() {
                entry.set_miss_ratio(ratio_of(&known, operation));
            }
        }
    }

    /// Returns the counters of all served and all called operations, sorted by name.
    pub(super) fn snapshot(&self) -> Vec<OperationCounts> {
        let entries = self.chunks.iter().filter_map(SetOnce::get).flatten();
        let mut found = Vec::new();
        for entry in entries {
            let Some(operation) = entry.operation.get() else {
                continue;
            };
            let server = entry.server.snapshot(operation, TimingSide::Server);
            let client = entry.client.snapshot(operation, TimingSide::Client);
            found.extend(entry.is_served.load(Ordering::Relaxed).then_some(server));
            found.extend((client.calls > 0).then_some(client));
        }
        found.sort_by_key(|counts| (counts.operation.name(), counts.side));
        found
    }
}

fn ratio_of(ratios: &MissRatios, operation: &OperationTiming) -> Option<MissRatio> {
    let changed = ratios.get(operation.name()).copied();
    changed.unwrap_or_else(|| operation.miss_ratio())
}

/// Returns the chunk of a number, and its place in the chunk.
#[inline]
fn place_of(number: NonZeroU32) -> (usize, usize) {
    let shifted = (number.get() - 1) as usize + FIRST;
    let chunk = (shifted / FIRST).ilog2() as usize;
    (chunk, shifted - (FIRST << chunk))
}

impl OperationCounters {
    fn set_miss_ratio(&self, ratio: Option<MissRatio>) {
        self.client.late.set(ratio);
        self.server.late.set(ratio);
    }

    /// Notes that this ORB serves the operation.
    pub(super) fn note_served(&self) {
        self.is_served.store(true, Ordering::Relaxed);
    }

    /// Counts a request that waits. If `waiting_max` wait already, counts a refusal and returns false.
    pub(super) fn wait(&self, waiting_max: u32) -> bool {
        let one_more = |waiting: u32| (waiting < waiting_max).then(|| waiting + 1);
        let counted = (self.waiting).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        if counted.is_err() {
            self.server.queue_refusals.fetch_add(1, Ordering::Relaxed);
        }
        counted.is_ok()
    }

    /// Notes that a request waits no longer.
    pub(super) fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counters {
    /// Counts a call.
    #[inline]
    pub(super) fn add(&self, response_ns: u64, execution_ns: Option<u64>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        raise(&self.worst_response_ns, response_ns);
        if let Some(execution_ns) = execution_ns {
            raise(&self.worst_execution_ns, execution_ns);
        }
    }

    /// Notes the response of a call that is counted when its servant returns.
    pub(super) fn note_response(&self, response_ns: u64) {
        raise(&self.worst_response_ns, response_ns);
    }

    /// Returns how many calls may be late.
    pub(super) fn miss_ratio(&self) -> Option<MissRatio> {
        self.late.ratio()
    }

    /// Counts a late call, which is counted as a call already. Returns true if too many are late.
    pub(super) fn add_late(&self, ratio: MissRatio) -> bool {
        let before = self.deadline_misses.fetch_add(1, Ordering::Relaxed);
        let call = self.calls.load(Ordering::Relaxed);
        self.late.note(ratio, call, before)
    }

    /// Counts a call that is not served at once.
    #[inline]
    pub(super) fn add_admission(&self, admission: CallAdmission) {
        match admission {
            CallAdmission::Served => {}
            CallAdmission::Delayed => {
                self.delays.fetch_add(1, Ordering::Relaxed);
            }
            CallAdmission::Refused | CallAdmission::Untracked | CallAdmission::Expired => {
                self.refusals.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn snapshot(&self, operation: &'static OperationTiming, side: TimingSide) -> OperationCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let judges_execution = side == TimingSide::Server && operation.worst_ns.is_some();
        let worst_execution_ns = count(&self.worst_execution_ns);
        OperationCounts {
            operation,
            side,
            calls: count(&self.calls),
            overruns: count(&self.overruns),
            deadline_misses: count(&self.deadline_misses),
            early_arrivals: count(&self.early_arrivals),
            demotions: count(&self.demotions),
            stops: count(&self.stops),
            delays: count(&self.delays),
            refusals: count(&self.refusals),
            miss_ratio: self.late.ratio(),
            ratio_violations: count(&self.ratio_violations),
            queue_refusals: count(&self.queue_refusals),
            worst_execution: judges_execution.then(|| Duration::from_nanos(worst_execution_ns)),
            worst_response: Duration::from_nanos(count(&self.worst_response_ns)),
        }
    }
}

/// Raises a maximum. Reads it first: it seldom changes, and a write would invalidate the cache line of other CPUs.
#[inline]
fn raise(worst: &AtomicU64, seen: u64) {
    if seen > worst.load(Ordering::Relaxed) {
        worst.fetch_max(seen, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut places = HashSet::new();
        for number in (1..5_000).filter_map(NonZeroU32::new) {
            let (chunk, place) = place_of(number);
            assert!(place < FIRST << chunk && chunk < CHUNKS, "{number}");
            assert!(places.insert((chunk, place)), "{number}");
        }
        let (chunk, place) = place_of(NonZeroU32::MAX);
        assert!(chunk < CHUNKS && place < FIRST << chunk);
    }

    #[test]
    fn operations_keep_their_counters_however_many_come_later() {
        let table = CounterTable::default();
        let operations: Vec<&'static OperationTiming> = (0..200)
            .map(|number| {
                let name: &'static str = format!("O{number:03}").leak();
                &*Box::leak(Box::new(OperationTiming::new(name)))
            })
            .collect();
        for (calls, operation) in operations.iter().enumerate() {
            table.prepare(operation).note_served();
            for _ in 0..calls {
                table.entry(operation).server.add(calls as u64, None);
            }
        }
        let seen = table.snapshot();
        assert_eq!(
            seen.len(),
            operations.len(),
            "nobody called one as a client"
        );
        for (calls, counts) in seen.iter().enumerate() {
            assert_eq!(counts.operation.name(), operations[calls].name());
            assert_eq!(counts.calls, calls as u64);
            assert_eq!(counts.worst_response, Duration::from_nanos(calls as u64));
            assert_eq!(counts.worst_execution, None, "it has no worst case");
        }
    }
}
