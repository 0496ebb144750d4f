//! The calls that were late, and why.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::joins::{CallPlace, Joins};
use crate::limits::{Limit, SystemBounds};
use crate::parts::{Cause, Divider, Part, time, totals};
use crate::records::{CallOutcome, CallRecord, CallSide, Recording};

/// What decides whether a call was late.
#[derive(Clone, Debug)]
pub enum Judged {
    /// The bounds of an analysed system.
    BySystem(SystemBounds),
    /// One limit for all calls, in ns. Calls that ended with TIMEOUT are late without one too, and if it is longer than the time after which they
    /// were given up.
    ByLimit(Option<u64>),
}

/// A call that was late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LateCall {
    /// The behaviour, `COMPONENT.NAME`; without a system's file, the operation.
    pub behaviour: String,
    /// By how much, in ns. A call with TIMEOUT is late by what its servant needed after the deadline; 0 if that is not known.
    pub late_by_ns: u64,
    /// What made it late.
    pub cause: Cause,
    /// What says so, the most important first.
    pub evidence: Vec<String>,
    /// The process in which it was seen: that of the caller, or of the servant of a behaviour.
    pub process: String,
    /// The id of that process.
    pub pid: u32,
    /// The id of its request.
    pub request_id: u32,
    /// When it began, in ns of CLOCK_MONOTONIC of the first host.
    pub begin_ns: u64,
    /// How long it took, in ns.
    pub response_ns: u64,
    /// How long it might take, in ns; 0 if nothing says so.
    pub limit_ns: u64,
    /// The whole time by causes, in ns.
    pub parts_ns: BTreeMap<Cause, u64>,
}

/// Finds the late calls of a recording, in the order of their begins.
pub fn late_calls(recording: &Recording, joins: &Joins, judged: &Judged) -> Vec<LateCall> {
    let judge = Judge {
        recording,
        divider: Divider::new(recording, joins),
    };
    let mut late: Vec<(Limited, Spent)> = Vec::new();
    let mut usual: BTreeMap<&str, Vec<BTreeMap<Cause, u64>>> = BTreeMap::new();
    for (place, call) in recording.places() {
        let Some(limited) = judge.limited(joins, judged, place, call) else {
            continue;
        };
        if limited.late_by_ns > 0 || call.outcome == CallOutcome::Timeout {
            let parts = judge.divider.parts(limited.limit.since, limited.end_ns);
            late.push((limited, Spent::of(&parts)));
        } else if limited.limit.shares.is_none() {
            let known = usual.entry(&call.operation).or_default();
            if known.len() < USUAL_MAX {
                known.push(totals(&judge.divider.parts(place, limited.end_ns)));
            }
        }
    }
    late.sort_by_key(|(limited, _)| limited.begin_ns);
    let usual: BTreeMap<&str, BTreeMap<Cause, u64>> = usual
        .into_iter()
        .map(|(operation, known)| (operation, medians(&known)))
        .collect();
    let none = BTreeMap::new();
    let judged = late.into_iter().map(|(limited, spent)| {
        let operation = &recording.call(limited.place).operation;
        let of_operation = usual.get(operation.as_str()).unwrap_or(&none);
        judge.verdict(limited, spent, of_operation)
    });
    judged.collect()
}

struct Judge<'a> {
    recording: &'a Recording,
    divider: Divider<'a>,
}

/// A call with its limit.
struct Limited {
    place: CallPlace,
    limit: Limit,
    begin_ns: u64,
    end_ns: u64,
    late_by_ns: u64,
}

/// What the time of a late call was spent with. A call may have thousands of parts, and a recording a million late calls.
struct Spent {
    totals: BTreeMap<Cause, u64>,
    details: BTreeMap<Cause, String>,
}

impl Spent {
    fn of(parts: &[Part]) -> Self {
        let totals = totals(parts);
        let causes = totals.keys();
        Self {
            details: causes
                .map(|cause| (*cause, details(parts, *cause).join("; ")))
                .collect(),
            totals,
        }
    }
}

impl Judge<'_> {
    /// The call with its limit, if it has one.
    fn limited(
        &self,
        joins: &Joins,
        judged: &Judged,
        place: CallPlace,
        call: &CallRecord,
    ) -> Option<Limited> {
        let (own_begin_ns, end_ns) = self.divider.span(place);
        // What a client gave up is late by what its servant took after that.
        let given_up = |limit_ns: Option<u64>| {
            let is_over = call.outcome == CallOutcome::Timeout;
            let deadline_ns = is_over.then(|| end_ns - own_begin_ns);
            let shortest_ns = limit_ns.into_iter().chain(deadline_ns).min();
            shortest_ns.map(|limit_ns| Limit {
                behaviour: call.operation.clone(),
                since: place,
                limit_ns,
                shares: None,
            })
        };
        let limit = match judged {
            Judged::BySystem(bounds) => match (call.side, joins.server_of.get(&place)) {
                // Where its servant was seen and has a bound, the call is judged there.
                (CallSide::Client | CallSide::Started, Some(server)) => {
                    let of_server = bounds.limit(self.recording, joins, *server);
                    given_up(None).filter(|_| of_server.is_none())
                }
                (CallSide::Client | CallSide::Started, None) => given_up(None),
                _ => bounds.limit(self.recording, joins, place),
            },
            Judged::ByLimit(limit_ns) => {
                // A call is judged once: at its client, if that is known. Without a limit, no call takes too long.
                let is_seen = !joins.client_of.contains_key(&place);
                let limited = given_up(*limit_ns).or_else(|| given_up(Some(u64::MAX)));
                limited.filter(|_| is_seen)
            }
        }?;
        let (begin_ns, _) = self.divider.span(limit.since);
        // The servant of a call whose caller gave up says by how much it was late.
        let server = joins.server_of.get(&place);
        let server_end_ns = server.map_or(0, |server| self.divider.span(*server).1);
        let done_ns = match call.outcome {
            CallOutcome::Timeout => end_ns.max(server_end_ns),
            _ => end_ns,
        };
        let late_by_ns = done_ns
            .saturating_sub(begin_ns)
            .saturating_sub(limit.limit_ns);
        Some(Limited {
            place,
            limit,
            begin_ns,
            end_ns,
            late_by_ns,
        })
    }

    fn verdict(&self, limited: Limited, spent: Spent, usual: &BTreeMap<Cause, u64>) -> LateCall {
        let Spent { totals, details } = spent;
        let expected = limited.limit.shares.as_ref().unwrap_or(usual);
        let more = |cause: &Cause| {
            let expected_ns = expected.get(cause).copied().unwrap_or(0);
            totals[cause].saturating_sub(expected_ns)
        };
        let mut causes: Vec<Cause> = totals.keys().copied().collect();
        causes.sort_by_key(|cause| std::cmp::Reverse((more(cause), *cause)));
        let cause = match causes.first() {
            Some(cause) if more(cause) > 0 => *cause,
            _ => Cause::Unknown,
        };
        let mut evidence = Vec::new();
        for of in std::iter::once(cause).chain(causes.into_iter().filter(|one| *one != cause)) {
            let Some(total_ns) = totals.get(&of) else {
                continue;
            };
            let expected_ns = expected.get(&of).copied().unwrap_or(0);
            let source = if limited.limit.shares.is_some() {
                "the bound contains"
            } else {
                "usually"
            };
            evidence.push(format!(
                "{of}: {} ({source} {}): {}",
                time(*total_ns),
                time(expected_ns),
                details[&of]
            ));
        }
        evidence.extend(self.lost(limited.place));
        LateCall {
            behaviour: limited.limit.behaviour,
            late_by_ns: limited.late_by_ns,
            cause,
            evidence,
            process: self.recording.process(limited.place).name.clone(),
            pid: self.recording.process(limited.place).pid,
            request_id: self.recording.call(limited.place).request_id,
            begin_ns: limited.begin_ns,
            response_ns: limited.end_ns.saturating_sub(limited.begin_ns),
            limit_ns: limited.limit.limit_ns,
            parts_ns: totals,
        }
    }

    /// What the recorder of the process lost.
    fn lost(&self, place: CallPlace) -> Option<String> {
        let process = self.recording.process(place);
        let threads = process.threads.iter();
        let lost = threads.map(|thread| thread.lost);
        let lost = lost.fold(0, u64::saturating_add);
        let unrecorded = process.unrecorded_threads;
        (lost > 0 || unrecorded > 0).then(|| {
            format!(
                "the recorder of {} lost {lost} calls, and had no room for {unrecorded} threads",
                process.name
            )
        })
    }
}

/// What the parts of a cause were, the longest first.
fn details(parts: &[Part], cause: Cause) -> Vec<String> {
    let mut by: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for part in parts.iter().filter(|part| part.cause == cause) {
        let (ns, times) = by.entry(&part.what).or_insert((0, 0));
        *ns += part.end_ns - part.begin_ns;
        *times += 1;
    }
    let mut by: Vec<(&str, (u64, u64))> = by.into_iter().collect();
    by.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    let more = by.len().saturating_sub(DETAILS_MAX);
    let named = by.iter().take(DETAILS_MAX).map(|(what, (ns, times))| {
        let times = match times {
            1 => String::new(),
            times => format!(" in {times} pieces"),
        };
        format!("{what}, {}{times}", time(*ns))
    });
    let more = (more > 0).then(|| format!("and {more} more"));
    named.chain(more).collect()
}

fn medians(known: &[BTreeMap<Cause, u64>]) -> BTreeMap<Cause, u64> {
    let mut by: BTreeMap<Cause, Vec<u64>> = BTreeMap::new();
    for totals in known {
        for (cause, ns) in totals {
            by.entry(*cause).or_default().push(*ns);
        }
    }
    let median = |(cause, mut all): (Cause, Vec<u64>)| {
        // A call without a part of that cause has 0 of it.
        all.resize(known.len(), 0);
        all.sort_unstable();
        (cause, all[all.len() / 2])
    };
    by.into_iter().map(median).collect()
}

/// Of each operation, the calls in time whose parts are the usual ones.
const USUAL_MAX: usize = 200;
const DETAILS_MAX: usize = 3;
