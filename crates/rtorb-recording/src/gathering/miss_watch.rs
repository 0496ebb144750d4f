//! Operations that miss their deadlines, by the counters of the processes that call and serve them.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use rtorb::recorder::{CallOutcome, CallSide, CountedOperation, ProcessSnapshot};

/// Finds what has missed a deadline between two looks at the counters of processes.
///
/// Three things count: a call that ended with TIMEOUT, a call of an annotated operation that ended later than its `@deadline`, and a request
/// whose deadline had passed before its servant was called.
#[derive(Clone, Debug, Default)]
pub struct MissWatch {
    /// Of each process, what each of its parts had missed at the look before.
    known: BTreeMap<u32, BTreeMap<MissedPart, u64>>,
}

/// What of a process missed deadlines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MissedPart {
    /// An operation, as one side counted it.
    Operation(CallSide, String),
    /// Requests whose servants were not called in time. Their operations are not known.
    Expired,
}

/// Something of a process that missed a deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineMiss {
    /// The process.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// The operation and the side that counted it; `None` for a request whose deadline had passed before its servant was called.
    pub operation: Option<(CallSide, String)>,
}

impl MissWatch {
    /// Returns what has missed a deadline since the look before. Of the first look at a process, that is nothing.
    pub fn look(&mut self, now: &ProcessSnapshot) -> Vec<DeadlineMiss> {
        let counted = missed_so_far(now);
        let Some(before) = self.known.insert(now.process, counted.clone()) else {
            return Vec::new();
        };
        let is_more =
            |part: &MissedPart, count: u64| count > before.get(part).copied().unwrap_or(0);
        let missed = counted
            .into_iter()
            .filter(|(part, count)| is_more(part, *count));
        let missed = missed.map(|(part, _)| DeadlineMiss {
            process: now.process,
            name: now.name.clone(),
            operation: match part {
                MissedPart::Operation(side, name) => Some((side, name)),
                MissedPart::Expired => None,
            },
        });
        missed.collect()
    }
}

/// Returns how often each part has missed a deadline. A call may count twice: with TIMEOUT, and against its annotation.
fn missed_so_far(now: &ProcessSnapshot) -> BTreeMap<MissedPart, u64> {
    let of = |operation: CountedOperation| {
        let timeouts = operation.outcomes[CallOutcome::Timeout as usize];
        let missed = timeouts.saturating_add(operation.deadline_misses);
        (
            MissedPart::Operation(operation.side, operation.name),
            missed,
        )
    };
    let expired = now.threads.iter().map(|thread| thread.expired);
    let expired = expired.fold(0, u64::saturating_add);
    let operations = now.operations().into_iter().map(of);
    operations.chain([(MissedPart::Expired, expired)]).collect()
}

impl Display for DeadlineMiss {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            process,
            name,
            operation,
        } = self;
        match operation {
            Some((CallSide::Server, operation)) => {
                write!(f, "{operation}, served by {name} ({process})")
            }
            Some((_, operation)) => write!(f, "{operation}, called by {name} ({process})"),
            None => write!(
                f,
                "a request to {name} ({process}), before its servant was called"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
