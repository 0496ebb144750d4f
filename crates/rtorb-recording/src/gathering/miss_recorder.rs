//! Recordings of what happened around missed deadlines.

use std::collections::VecDeque;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use rtorb::recorder::ReadError;
use rtorb_host::kernel_trace::{KeptEvents, RecordedTrace};

use super::{
    CALLS_MAX, DeadlineMiss, Gathered, KernelWatch, LOOK_AGAIN, MissWatch, Wanted, of_this_host,
    start_kernel,
};
use crate::records::{CallRecord, CallSide, ProcessRecord, Recording, ThreadRecord};

/// Keeps the last calls of processes and the kernel's last events, until an operation misses its deadline.
///
/// It looks at the processes every 10 ms. A thread would have to end more than 1,024 calls between two looks for a missed one to be
/// overwritten, which is counted as lost then.
pub struct MissRecorder {
    processes: Vec<Gathered>,
    watch: MissWatch,
    kept: KeptCalls,
    kernel: KernelWatch,
    /// What is recorded before and after a miss.
    window: Duration,
    /// The same for the kernel's record, which has room for both times.
    of_kernel: Wanted,
    /// When the last look began, in ns of CLOCK_MONOTONIC.
    looked_ns: u64,
    /// When the look before the one began that ended the wait.
    found_after_ns: u64,
}

/// Why a wait for a missed deadline has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitEnd<S> {
    /// These have missed a deadline.
    Missed(Vec<DeadlineMiss>),
    /// No process has a recorder any more: all have ended.
    ProcessesEnded,
    /// The caller has stopped it for this reason.
    Stopped(S),
}

impl MissRecorder {
    /// Begins to keep what happens in these processes. A recording has the time of `wanted` before a miss, as far as the recorder has run for so
    /// long, and the same time after it.
    ///
    /// # Errors
    /// That the recorder of a process cannot be read.
    pub fn begin(wanted: &Wanted) -> Result<Self, ReadError> {
        let of_kernel = Wanted {
            duration: wanted.duration.saturating_mul(2),
            ..wanted.clone()
        };
        // First: the calls that are taken end after the kernel's record has begun.
        let kernel = kernel_watch(&of_kernel);
        let mut kept = KeptCalls::default();
        let begun = wanted.processes.iter();
        let begun = begun.map(|process| Gathered::begin(*process, false, &mut kept.room));
        let mut recorder = Self {
            processes: begun.collect::<Result<_, _>>()?,
            watch: MissWatch::default(),
            kept,
            kernel,
            window: wanted.duration,
            of_kernel,
            looked_ns: 0,
            found_after_ns: 0,
        };
        // What is counted until now is no miss.
        let _ = recorder.look();
        recorder.kept.since_ns = recorder.looked_ns;
        Ok(recorder)
    }

    /// Waits until an operation misses its deadline, all processes have ended, or `stopped` returns a reason to stop. It is asked before each look.
    pub fn wait<S>(&mut self, mut stopped: impl FnMut() -> Option<S>) -> WaitEnd<S> {
        loop {
            if let Some(reason) = stopped() {
                return WaitEnd::Stopped(reason);
            }
            thread::sleep(LOOK_AGAIN);
            // A miss that this look finds happened after the look before.
            self.found_after_ns = self.looked_ns;
            let window_ns = u64::try_from(self.window.as_nanos()).unwrap_or(u64::MAX);
            let since_ns = self.looked_ns.saturating_sub(window_ns);
            self.kept.forget_before(since_ns);
            match self.look() {
                None => return WaitEnd::ProcessesEnded,
                Some(missed) if missed.is_empty() => {}
                Some(missed) => return WaitEnd::Missed(missed),
            }
        }
    }

    /// Keeps what happens after a miss, for the time of a recording, or until `is_over` returns true or all processes have ended.
    pub fn look_on(&mut self, is_over: impl Fn() -> bool) {
        let began = Instant::now();
        while let left = self.window.saturating_sub(began.elapsed())
            && !left.is_zero()
            && !is_over()
        {
            thread::sleep(left.min(LOOK_AGAIN));
            if self.look().is_none() {
                return;
            }
        }
    }

    /// Returns how long before the recording the first of the missed calls began; `None` if all of them are in it from their begin on. Of an
    /// operation that missed its deadline, all calls that ended since may be the one.
    pub fn begun_before(&self, missed: &[DeadlineMiss]) -> Option<Duration> {
        let is_missed = |index: usize, call: &CallRecord| {
            let process = self.processes[index].record.pid;
            missed.iter().any(|miss| {
                let operation = miss.operation.as_ref();
                miss.process == process
                    && operation.is_some_and(|(side, name)| {
                        *name == call.operation && counted_as(call.side) == *side
                    })
            })
        };
        let first_ns = self.kept.first_begin(self.found_after_ns, is_missed)?;
        let before_ns = self.kept.since_ns.checked_sub(first_ns)?;
        (before_ns > 0).then(|| Duration::from_nanos(before_ns))
    }

    /// Returns the recording of what is kept, and goes on. The next one has what happens meanwhile.
    pub fn recording(&mut self) -> Recording {
        // Before this record of the kernel ends.
        let next = kernel_watch(&self.of_kernel);
        let kernel = mem::replace(&mut self.kernel, next);
        self.kept.recording(&self.processes, kernel.finish())
    }

    /// Returns the last recording.
    pub fn into_recording(self) -> Recording {
        let kernel = self.kernel.finish();
        self.kept.recording(&self.processes, kernel)
    }

    /// Looks at all processes, and returns what has missed a deadline since the look before; `None` if all have ended.
    fn look(&mut self) -> Option<Vec<DeadlineMiss>> {
        self.kept.make_room();
        let mut began_ns = None;
        let mut missed = Vec::new();
        let mut threads = Vec::with_capacity(self.processes.len());
        for process in &mut self.processes {
            if let Some(found) = process.look(&mut self.kept.room) {
                began_ns.get_or_insert(found.at_ns);
                missed.extend(self.watch.look(&found));
            }
            threads.push(process.take_threads());
        }
        self.kernel.look(&self.of_kernel.processes);
        self.looked_ns = began_ns?;
        self.kept.looks.push_back(Look {
            at_ns: self.looked_ns,
            threads,
        });
        Some(missed)
    }
}

/// Returns the side in whose counters a call is.
fn counted_as(side: CallSide) -> CallSide {
    match side {
        CallSide::Server => CallSide::Server,
        CallSide::Client | CallSide::Collocated | CallSide::Started => CallSide::Client,
    }
}

/// Starts the kernel's record, which keeps its last events.
fn kernel_watch(wanted: &Wanted) -> KernelWatch {
    let start = |threads: &_| start_kernel(wanted, threads, KeptEvents::Last);
    KernelWatch::start(start, &wanted.processes)
}

/// The calls that were found, look by look.
struct KeptCalls {
    looks: VecDeque<Look>,
    /// The number of calls that may be kept besides.
    room: usize,
    /// Since when there is everything, in ns of CLOCK_MONOTONIC.
    since_ns: u64,
}

/// What one look has found.
struct Look {
    /// When it began, in ns of CLOCK_MONOTONIC.
    at_ns: u64,
    /// Of each process, the threads whose calls have ended since the look before.
    threads: Vec<Vec<ThreadRecord>>,
}

impl Default for KeptCalls {
    fn default() -> Self {
        Self {
            looks: VecDeque::new(),
            room: CALLS_MAX,
            since_ns: 0,
        }
    }
}

impl KeptCalls {
    /// Forgets the looks that began before a time, whose calls have all ended before.
    fn forget_before(&mut self, at_ns: u64) {
        self.since_ns = self.since_ns.max(at_ns);
        while let Some(mut look) = self.looks.pop_front_if(|look| look.at_ns < at_ns) {
            self.room += look.lose_calls();
        }
    }

    /// Counts the oldest calls as lost until there is room for those of a look.
    fn make_room(&mut self) {
        for look in &mut self.looks {
            if self.room >= ROOM_FOR_LOOK {
                return;
            }
            self.room += look.lose_calls();
        }
    }

    /// Returns when the first of these calls began that the looks since a time have found. The number is that of the call's process.
    fn first_begin(
        &self,
        found_after_ns: u64,
        is_it: impl Fn(usize, &CallRecord) -> bool,
    ) -> Option<u64> {
        let looks = self.looks.iter().filter(|look| look.at_ns > found_after_ns);
        let processes = looks.flat_map(|look| look.threads.iter().enumerate());
        let calls = processes.flat_map(|(index, threads)| {
            let calls = threads.iter().flat_map(|thread| &thread.calls);
            calls.map(move |call| (index, call))
        });
        let found = calls.filter(|(index, call)| is_it(*index, call));
        found.map(|(_, call)| call.first_ns).min()
    }

    /// Returns the recording of what is kept, with the kernel's record of the same time.
    fn recording(
        &self,
        processes: &[Gathered],
        kernel: Result<RecordedTrace, String>,
    ) -> Recording {
        let processes = processes.iter().enumerate();
        let processes = processes.map(|(index, process)| self.of_process(index, process));
        let kernel = kernel.map(|mut record| {
            record.forget_before(self.since_ns);
            record
        });
        of_this_host(processes.collect(), kernel)
    }

    /// Returns what is kept of a process.
    fn of_process(&self, index: usize, process: &Gathered) -> ProcessRecord {
        let mut whole = Gathered {
            record: process.record.clone(),
            next: Vec::new(),
        };
        for look in &self.looks {
            look.threads[index]
                .iter()
                .for_each(|found| whole.merge(found));
        }
        whole.finish()
    }
}

impl Look {
    /// Counts its calls as lost, and returns how many these were.
    fn lose_calls(&mut self) -> usize {
        let threads = self.threads.iter_mut().flatten();
        let lost = threads.map(|thread| {
            let calls = mem::take(&mut thread.calls).len();
            thread.lost = thread.lost.saturating_add(calls as u64);
            calls
        });
        lost.sum()
    }
}

/// The room that there is before a look, such that its calls are kept and not the oldest ones.
const ROOM_FOR_LOOK: usize = CALLS_MAX / 8;

#[cfg(test)]
mod tests;
