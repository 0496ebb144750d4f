//! Records the calls of running processes of this host, from their recorders and the kernel.
//!
//! [`record`] records for a time. A [`MissRecorder`] keeps the last of what happens, and makes a recording of it when an operation misses its
//! deadline, which [`MissWatch`] finds in the counters of the processes.

mod miss_recorder;
mod miss_watch;

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rtorb::recorder::{CallEvent, ProcessSnapshot, ReadError, ThreadSnapshot};
use rtorb_host::kernel_trace::{KeptEvents, KernelTrace, RecordedTrace, TraceScope};
use rtorb_host::system::{cpu_list, read};

pub use miss_recorder::{MissRecorder, WaitEnd};
pub use miss_watch::{DeadlineMiss, MissWatch};

use crate::records::{CallRecord, HostRecord, ProcessRecord, Recording, ThreadRecord};

/// What is recorded.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The processes.
    pub processes: Vec<u32>,
    /// For how long; without any time, only the calls that the recorders hold already.
    pub duration: Duration,
    /// Whether the kernel's events are recorded too.
    pub kernel: bool,
}

/// Records the calls of processes. With a time, those that end in it, or until `is_over` returns true; the kernel's record is of the same time.
///
/// # Errors
/// That the recorder of a process cannot be read at the beginning. A process that ends later has the calls until then.
pub fn record(wanted: &Wanted, is_over: impl Fn() -> bool) -> Result<Recording, ReadError> {
    // First: the calls that are taken end after the kernel's record has begun.
    let mut kernel = KernelWatch::start(|threads| kernel(wanted, threads), &wanted.processes);
    let mut processes = Vec::new();
    let mut room = CALLS_MAX;
    for process in &wanted.processes {
        let begun = Gathered::begin(*process, wanted.duration.is_zero(), &mut room)?;
        processes.push(begun);
    }
    let began = Instant::now();
    while let left = wanted.duration.saturating_sub(began.elapsed())
        && !left.is_zero()
        && !is_over()
    {
        thread::sleep(left.min(LOOK_AGAIN));
        for process in &mut processes {
            process.look(&mut room);
        }
        kernel.look(&wanted.processes);
    }
    let kernel = kernel.finish();
    let processes = processes.into_iter().map(Gathered::finish).collect();
    Ok(of_this_host(processes, kernel))
}

/// Returns the recording of some processes of this host.
fn of_this_host(processes: Vec<ProcessRecord>, kernel: Result<RecordedTrace, String>) -> Recording {
    let name = read("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = HostRecord {
        name: name.trim().to_owned(),
        boot_id: read("/proc/sys/kernel/random/boot_id").filter(|id| !id.is_empty()),
        ahead_ns: 0,
        processes,
        kernel,
    };
    Recording { hosts: vec![host] }
}

/// Begins the kernel's record of all CPUs, with the page faults of these threads.
fn kernel(wanted: &Wanted, threads: &BTreeSet<u32>) -> Result<KernelTrace, String> {
    if wanted.duration.is_zero() {
        return Err("it begins with the recording, which has only earlier calls".to_owned());
    }
    start_kernel(wanted, threads, KeptEvents::First)
}

/// Begins the same record, which keeps these events.
fn start_kernel(
    wanted: &Wanted,
    threads: &BTreeSet<u32>,
    kept: KeptEvents,
) -> Result<KernelTrace, String> {
    if !wanted.kernel {
        return Err("it was not wanted".to_owned());
    }
    let mut inner = wanted.processes.iter();
    if let Some(process) = inner.find(|process| has_own_thread_ids(**process)) {
        return Err(format!(
            "process {process} is in a PID namespace of its own, as in a container: the kernel knows its threads by other ids"
        ));
    }
    let online = read("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = cpu_list(online.trim());
    let scope = TraceScope::All {
        page_faults_of: kernel_ids(threads),
    };
    let kib = (wanted.duration.as_secs_f64() + 1.0) * KERNEL_KIB_A_SECOND;
    let kib_max = KERNEL_KIB_MAX / cpus.len().max(1) as u64;
    KernelTrace::start_keeping(kept, &cpus, (kib as u64).min(kib_max), &scope)
}

/// The kernel's record, and the threads whose page faults are in it.
struct KernelWatch {
    trace: Result<KernelTrace, String>,
    known: BTreeSet<u32>,
}

impl KernelWatch {
    /// Starts a record with the page faults of the threads that the processes have.
    fn start(
        start: impl FnOnce(&BTreeSet<u32>) -> Result<KernelTrace, String>,
        processes: &[u32],
    ) -> Self {
        let known = all_threads(processes);
        Self {
            trace: start(&known),
            known,
        }
    }

    /// Records the page faults of threads that have begun since.
    fn look(&mut self, processes: &[u32]) {
        let Ok(trace) = &self.trace else { return };
        let present = all_threads(processes);
        if !present.is_subset(&self.known) {
            trace.record_page_faults_of(&kernel_ids(&present));
            self.known = present;
        }
    }

    fn finish(self) -> Result<RecordedTrace, String> {
        self.trace.and_then(KernelTrace::finish)
    }
}

/// What was found of a process so far.
struct Gathered {
    record: ProcessRecord,
    /// Of each part of the recorder, the number of its next call.
    next: Vec<u64>,
}

impl Gathered {
    /// Begins with the calls that the recorder has if `has_earlier_calls`, else behind them. `room` is the number of calls that may still be kept.
    fn begin(process: u32, has_earlier_calls: bool, room: &mut usize) -> Result<Self, ReadError> {
        let found = ProcessSnapshot::of_process(process)?;
        let mut gathered = Self {
            record: ProcessRecord {
                pid: process,
                name: found.name.clone(),
                threads: Vec::new(),
                unrecorded_threads: 0,
            },
            next: Vec::new(),
        };
        for part in &found.threads {
            let before = if has_earlier_calls {
                0
            } else {
                part.events.len() as u64
            };
            gathered.next.push(part.overwritten.saturating_add(before));
        }
        gathered.name_threads();
        if has_earlier_calls {
            gathered.add(&found, room);
        }
        Ok(gathered)
    }

    /// Takes the calls that have ended since. Returns what was read; `None` if the process has ended.
    fn look(&mut self, room: &mut usize) -> Option<ProcessSnapshot> {
        let found = ProcessSnapshot::of_process(self.record.pid).ok()?;
        self.add(&found, room);
        Some(found)
    }

    fn add(&mut self, found: &ProcessSnapshot, room: &mut usize) {
        self.record.unrecorded_threads = found.refused_threads;
        // A part that was used stays in its place.
        self.next
            .resize(found.threads.len().max(self.next.len()), 0);
        for (place, part) in found.threads.iter().enumerate() {
            self.add_part(place, part, room);
        }
    }

    fn add_part(&mut self, place: usize, part: &ThreadSnapshot, room: &mut usize) {
        let next = self.next[place];
        let lost = part.overwritten.saturating_sub(next);
        if lost > 0 {
            let thread = self.thread(part.thread, &part.name);
            thread.lost = thread.lost.saturating_add(lost);
        }
        for (number, event) in (part.overwritten..=u64::MAX).zip(&part.events) {
            if number < next {
                continue;
            }
            let has_room = *room > 0;
            *room -= usize::from(has_room);
            let name = if event.thread == part.thread {
                &part.name
            } else {
                ""
            };
            let thread = self.thread(event.thread, name);
            if has_room {
                thread.calls.push(of_event(event));
            } else {
                thread.lost = thread.lost.saturating_add(1);
            }
        }
        // A thread that has just taken a part may have the lane of the one before for a moment. One that has ended has no name, and its
        // number may be that of a thread with another part.
        let lane = part.lane.map(|lane| lane.to_string());
        let thread = self.thread(part.thread, &part.name);
        if !part.name.is_empty() || thread.lane.is_none() {
            thread.lane = lane;
        }
        self.next[place] = next.max(part.overwritten.saturating_add(part.events.len() as u64));
    }

    fn thread(&mut self, tid: u32, name: &str) -> &mut ThreadRecord {
        let threads = &mut self.record.threads;
        let known = threads.iter().position(|thread| thread.tid == tid);
        let place = known.unwrap_or(threads.len());
        if known.is_none() {
            threads.push(ThreadRecord {
                tid,
                name: String::new(),
                lane: None,
                calls: Vec::new(),
                lost: 0,
            });
        }
        let thread = &mut threads[place];
        if thread.name.is_empty() {
            name.clone_into(&mut thread.name);
        }
        thread
    }

    /// Adds the threads that the process has: those without calls too, which may read requests.
    fn name_threads(&mut self) {
        for (tid, name) in threads(self.record.pid) {
            self.thread(tid, &name);
        }
    }

    fn finish(mut self) -> ProcessRecord {
        self.name_threads();
        self.record
    }

    /// Takes out the threads of which something was found since the last time.
    fn take_threads(&mut self) -> Vec<ThreadRecord> {
        let mut threads = std::mem::take(&mut self.record.threads);
        threads.retain(|thread| !thread.calls.is_empty() || thread.lost > 0);
        threads
    }

    /// Adds what was found later of a thread.
    fn merge(&mut self, found: &ThreadRecord) {
        let thread = self.thread(found.tid, &found.name);
        thread.calls.extend_from_slice(&found.calls);
        thread.lost = thread.lost.saturating_add(found.lost);
        if !found.name.is_empty() || thread.lane.is_none() {
            thread.lane.clone_from(&found.lane);
        }
    }
}

/// Returns true if the ids that a process has for its threads are not those of the kernel's record.
fn has_own_thread_ids(process: u32) -> bool {
    let namespace = fs::read_link(format!("/proc/{process}/ns/pid"));
    namespace.is_ok_and(|namespace| namespace.as_os_str() != FIRST_PID_NAMESPACE)
}

/// The id of a thread in the PID namespace of its process, the last of `NSpid` (proc_pid_status(5)).
fn own_id(status: &str) -> Option<u32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids?.split_whitespace().next_back()?.parse().ok()
}

/// The threads that processes have now.
fn all_threads(processes: &[u32]) -> BTreeSet<u32> {
    processes.iter().copied().flat_map(thread_ids).collect()
}

fn kernel_ids(threads: &BTreeSet<u32>) -> Vec<i32> {
    threads.iter().map(|id| id.cast_signed()).collect()
}

fn thread_ids(process: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{process}/task"));
    let entries = entries.into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.take(THREADS_MAX)
}

/// The threads of a process, by the ids that it has for them, and their names, of which some may be gone.
fn threads(process: u32) -> Vec<(u32, String)> {
    let named = thread_ids(process).map(|id| {
        let name = read(format!("/proc/{process}/task/{id}/comm")).unwrap_or_default();
        let status = read(format!("/proc/{process}/task/{id}/status")).unwrap_or_default();
        (own_id(&status).unwrap_or(id), name.trim().to_owned())
    });
    named.collect()
}

fn of_event(event: &CallEvent) -> CallRecord {
    CallRecord {
        side: event.side,
        operation: event.operation.clone(),
        outcome: event.outcome,
        cpu: event.cpu,
        priority: event.priority.unwrap_or(-1),
        request_id: event.request_id,
        connection: event.connection,
        first_ns: event.first_ns,
        // Ticks become ns with a rounding of their own. 0 is a request that was never sent.
        second_ns: match event.second_ns {
            0 => 0,
            second_ns => second_ns.clamp(event.first_ns, event.last_ns.max(event.first_ns)),
        },
        last_ns: event.last_ns.max(event.first_ns),
    }
}

/// The time from look to look: a recorder that is looked at so often keeps 100,000 calls a second of each thread.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The most calls of all processes that are kept, such that the file can be read; more are counted as lost.
pub(crate) const CALLS_MAX: usize = 1_000_000;
const THREADS_MAX: usize = 4_096;
/// Of its links in /proc: PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
/// The kernel's buffers: for each CPU and second, and for all CPUs. A [`MissRecorder`] has two such records for a moment, when one ends and the
/// next has begun.
const KERNEL_KIB_A_SECOND: f64 = 8_192.0;
pub(crate) const KERNEL_KIB_MAX: u64 = 512 * 1_024;

#[cfg(test)]
mod tests;
