//! The counters of a process's recorder for clients on other hosts, such as `rtorb top corbaloc::HOST:PORT/Recorder`.
//!
//! On the same host, [`ProcessSnapshot::of_process`] reads them without a call.

use crate::stubs::recorder::rtorb_recorder as idl;
use crate::stubs::recorder::rtorb_recorder::RecorderServant;
use rtorb::exception::local;
use rtorb::recorder::{CallSide, CountedOperation, Histogram, ReadError, is_running};
use rtorb::recorder::{ProcessSnapshot, RecordedLane, ThreadSnapshot};
use rtorb::{ObjectKeyError, Orb, PoaError, SystemException};
use std::process;
use std::time::Duration;

pub use crate::stubs::recorder::rtorb_recorder::Recorder;

/// The key of the object: `corbaloc::HOST:PORT/Recorder` leads to it.
pub const KEY: &str = "Recorder";

/// Why the counters are not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error(transparent)]
pub enum RecorderError {
    /// The process has no recorder.
    Recorder(#[from] ReadError),
    /// The ORB has no root adapter, because it cannot listen or has ended.
    Orb(#[from] SystemException),
    /// The root adapter cannot serve the object.
    Poa(#[from] PoaError),
    /// The key is taken.
    Key(#[from] ObjectKeyError),
}

/// Serves the counters of this process, in the root adapter of `orb` and by [`KEY`]. Any client that reaches the ORB can read them. A call reads
/// the memory of up to 64 threads, which takes a millisecond: the thread that serves it should not be an urgent one.
///
/// # Errors
/// [`RecorderError`] if the process has no recorder (`-ORBRecorder yes`), or the ORB serves them already.
pub fn serve(orb: &Orb) -> Result<Recorder, RecorderError> {
    if !is_running() {
        let process = process::id();
        return Err(ReadError::NoRecorder { process }.into());
    }
    let poa = orb.root_poa()?;
    let recorder: Recorder = poa.activate(CountersOfProcess)?;
    let bound = orb.bind_object_key(KEY, recorder.as_object());
    bound.inspect_err(|_| drop(poa.deactivate(recorder.as_object())))?;
    Ok(recorder)
}

/// Reads the counters of another process by a call. The snapshot has no events.
///
/// # Errors
/// The call's exception.
pub fn counters(recorder: &Recorder) -> Result<ProcessSnapshot, SystemException> {
    let idl::ProcessCounters {
        process,
        name,
        at_ns,
        started_ns,
        recorded,
        refused_threads,
    } = recorder.counters()?;
    Ok(ProcessSnapshot {
        process,
        name,
        at_ns,
        started_ns,
        threads: recorded.into_iter().map(ThreadSnapshot::from).collect(),
        refused_threads,
    })
}

#[derive(Debug)]
struct CountersOfProcess;

impl RecorderServant for CountersOfProcess {
    fn counters(&self) -> Result<idl::ProcessCounters, SystemException> {
        let read = ProcessSnapshot::counters_of_process(process::id());
        let now = read.map_err(|_| local::RECORDER_UNREADABLE)?;
        Ok(idl::ProcessCounters {
            process: now.process,
            name: now.name,
            at_ns: now.at_ns,
            started_ns: now.started_ns,
            recorded: now.threads.into_iter().map(idl::Thread::from).collect(),
            refused_threads: now.refused_threads,
        })
    }
}

impl From<ThreadSnapshot> for idl::Thread {
    fn from(thread: ThreadSnapshot) -> Self {
        let operations = thread.operations.into_iter();
        let lane = thread.lane.map(|lane| idl::Lane {
            pool: lane.pool,
            priority: lane.priority,
        });
        Self {
            id: thread.thread,
            name: thread.name,
            serves: lane.into_iter().collect(),
            most_accepted: thread.most_accepted,
            refused: thread.refused,
            shed: thread.shed,
            expired: thread.expired,
            counted: operations.map(idl::Operation::from).collect(),
            overwritten: thread.overwritten,
        }
    }
}

impl From<idl::Thread> for ThreadSnapshot {
    fn from(thread: idl::Thread) -> Self {
        let operations = thread.counted.into_iter();
        Self {
            thread: thread.id,
            name: thread.name,
            lane: thread.serves.first().map(|lane| RecordedLane {
                pool: lane.pool,
                priority: lane.priority,
            }),
            most_accepted: thread.most_accepted,
            refused: thread.refused,
            shed: thread.shed,
            expired: thread.expired,
            operations: operations.map(CountedOperation::from).collect(),
            events: Vec::new(),
            overwritten: thread.overwritten,
        }
    }
}

impl From<CountedOperation> for idl::Operation {
    fn from(counted: CountedOperation) -> Self {
        let [
            done,
            user_exceptions,
            system_exceptions,
            timeouts,
            transients,
            deferred,
        ] = counted.outcomes;
        Self {
            name: counted.name,
            side: match counted.side {
                CallSide::Client | CallSide::Started => idl::CallSide::Client,
                CallSide::Server => idl::CallSide::Server,
                CallSide::Collocated => idl::CallSide::Collocated,
            },
            calls: idl::Outcomes {
                done,
                user_exceptions,
                system_exceptions,
                timeouts,
                transients,
                deferred,
            },
            times: idl::Histogram::from(&counted.times),
            longest_ns: u64::try_from(counted.longest.as_nanos()).unwrap_or(u64::MAX),
            waits: idl::Histogram::from(&counted.waits),
            deadline_misses: counted.deadline_misses,
            demotions: counted.demotions,
        }
    }
}

impl From<idl::Operation> for CountedOperation {
    fn from(operation: idl::Operation) -> Self {
        let calls = operation.calls;
        Self {
            name: operation.name,
            side: match operation.side {
                idl::CallSide::Client => CallSide::Client,
                idl::CallSide::Server => CallSide::Server,
                idl::CallSide::Collocated => CallSide::Collocated,
            },
            outcomes: [
                calls.done,
                calls.user_exceptions,
                calls.system_exceptions,
                calls.timeouts,
                calls.transients,
                calls.deferred,
            ],
            times: Histogram::from(operation.times),
            longest: Duration::from_nanos(operation.longest_ns),
            waits: Histogram::from(operation.waits),
            deadline_misses: operation.deadline_misses,
            demotions: operation.demotions,
        }
    }
}

impl From<&Histogram> for idl::Histogram {
    fn from(histogram: &Histogram) -> Self {
        let counts = histogram.counts();
        let last = counts.iter().rposition(|count| *count > 0);
        Self {
            tick_ns: histogram.tick_ns(),
            counts: counts[..last.map_or(0, |last| last + 1)].to_vec(),
        }
    }
}

impl From<idl::Histogram> for Histogram {
    fn from(histogram: idl::Histogram) -> Self {
        let count = |bucket| histogram.counts.get(bucket).copied().unwrap_or(0);
        Self::new(histogram.tick_ns, count)
    }
}
