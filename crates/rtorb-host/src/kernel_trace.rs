//! The kernel's record of threads on some CPUs: their switches and wake-ups, interrupts, and page faults.
//!
//! The events are those of an instance of tracefs of its own, with a buffer of fixed size (Documentation/trace/ftrace.rst,
//! "Instances"). Other users of tracefs are not disturbed, and the instance is removed when its value is dropped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rtorb_os::clock::monotonic_ns;

use crate::system::read;

/// A running record.
#[derive(Debug)]
pub struct KernelTrace {
    folder: PathBuf,
    cpus: Vec<usize>,
    begin_ns: u64,
    kept: KeptEvents,
}

/// Which events of a record are kept if its buffers have no room for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptEvents {
    /// The first ones: later ones are lost.
    First,
    /// The last ones: the record begins with the first that every CPU has.
    Last,
}

/// Something that happened on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceEvent {
    /// When, in ns of CLOCK_MONOTONIC, in steps of 1 us.
    pub at_ns: u64,
    /// What it was.
    pub kind: TraceEventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceEventKind {
    /// An interrupt handler began.
    InterruptBegan,
    /// It ended.
    InterruptEnded,
    /// A thread can run from now on.
    Woken {
        /// Its id.
        thread: i32,
        /// Its priority, as the kernel counts: below 100 are real-time priorities, and smaller is more urgent.
        priority: i32,
    },
    /// A thread accessed memory that was not mapped to a page.
    PageFault {
        /// Its id.
        thread: i32,
    },
    /// Another thread has the CPU from now on.
    Switched {
        /// The one that had it.
        from: i32,
        /// Its priority, as the kernel counts.
        from_priority: i32,
        /// Whether that one could go on: it was preempted.
        is_preempted: bool,
        /// The one that has it.
        to: i32,
        /// Its priority, as the kernel counts.
        to_priority: i32,
    },
}

/// What a record contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceScope {
    /// Switches and wake-ups of real-time threads, and interrupts.
    RealTime,
    /// Switches and wake-ups of all threads, interrupts, and the page faults of these threads.
    All {
        /// The threads whose page faults are recorded [at first](KernelTrace::record_page_faults_of).
        page_faults_of: Vec<i32>,
    },
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedTrace {
    /// The events of each CPU, in their order.
    pub events: BTreeMap<usize, Vec<TraceEvent>>,
    /// The last name of each thread in them.
    pub names: BTreeMap<i32, String>,
    /// When the record began, in ns of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// Until when the record of each CPU has every event.
    pub ends_ns: BTreeMap<usize, u64>,
    /// Events for which the buffers had no room: those after the last that is kept.
    pub lost: u64,
}

impl KernelTrace {
    /// Begins to record what happens on these CPUs, with a buffer of this size for each, which keeps the first events.
    ///
    /// # Errors
    /// Why the host has no such record, such as that tracefs is not mounted.
    pub fn start(cpus: &[usize], kib_per_cpu: u64, scope: &TraceScope) -> Result<Self, String> {
        Self::start_keeping(KeptEvents::First, cpus, kib_per_cpu, scope)
    }

    /// As [`start`](Self::start), with buffers that keep these events.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_keeping(
        kept: KeptEvents,
        cpus: &[usize],
        kib_per_cpu: u64,
        scope: &TraceScope,
    ) -> Result<Self, String> {
        let mut roots = ROOTS.iter().map(Path::new);
        let root = roots
            .find(|root| root.join("instances").is_dir())
            .ok_or("tracefs is not mounted at /sys/kernel/tracing, or cannot be read")?;
        let instances = root.join("instances");
        remove_abandoned(&instances);
        let (process, number) = (std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let folder = instances.join(format!("{PREFIX}{process}-{number}"));
        fs::create_dir(&folder).map_err(failed(&folder))?;
        let mut trace = Self {
            folder,
            cpus: cpus.to_vec(),
            begin_ns: 0,
            kept,
        };
        trace.set_up(kib_per_cpu, scope)?;
        trace.begin_ns = monotonic_ns();
        Ok(trace)
    }

    fn set_up(&self, kib_per_cpu: u64, scope: &TraceScope) -> Result<(), String> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono")?;
        let overwrite = match self.kept {
            KeptEvents::First => "0",
            KeptEvents::Last => "1",
        };
        self.write("options/overwrite", overwrite)?;
        self.write("tracing_cpumask", &mask(&self.cpus))?;
        for cpu in &self.cpus {
            let size = format!("per_cpu/cpu{cpu}/buffer_size_kb");
            self.write(&size, &kib_per_cpu.to_string())?;
        }
        for (event, filter) in EVENTS {
            if *scope == TraceScope::RealTime && !filter.is_empty() {
                self.write(&format!("events/{event}/filter"), filter)?;
            }
            self.write(&format!("events/{event}/enable"), "1")?;
        }
        if let TraceScope::All { page_faults_of } = scope {
            self.record_page_faults_of(page_faults_of);
        }
        // Those that the processor has, without the interrupts by which CPUs tell each other to switch: these do nothing else.
        let vectors = fs::read_dir(self.folder.join("events/irq_vectors"));
        let names = vectors.into_iter().flatten().flatten();
        for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
            let is_pair = name.ends_with("_entry") || name.ends_with("_exit");
            if is_pair && !name.starts_with("reschedule") {
                self.write(&format!("events/irq_vectors/{name}/enable"), "1")?;
            }
        }
        self.write("tracing_on", "1")
    }

    /// Records the page faults of these threads from now on, and of no others: those of all threads, if there are none or more than 128. Not
    /// every architecture has these events.
    pub fn record_page_faults_of(&self, threads: &[i32]) {
        let filter = if (1..=FILTERED_MAX).contains(&threads.len()) {
            let each = threads.iter().map(|id| format!("common_pid == {id}"));
            each.collect::<Vec<_>>().join(" || ")
        } else {
            // No filter.
            "0".to_owned()
        };
        for event in PAGE_FAULTS {
            let _ = self.write(&format!("events/{event}/filter"), &filter);
            let _ = self.write(&format!("events/{event}/enable"), "1");
        }
    }

    /// Ends the record, and reads it.
    ///
    /// # Errors
    /// That it cannot be read.
    pub fn finish(self) -> Result<RecordedTrace, String> {
        let end_ns = monotonic_ns();
        self.write("tracing_on", "0")?;
        let mut found = RecordedTrace {
            begin_ns: self.begin_ns,
            ..RecordedTrace::default()
        };
        for cpu in &self.cpus {
            let of_cpu = self.folder.join(format!("per_cpu/cpu{cpu}"));
            let stats = read(of_cpu.join("stats")).unwrap_or_default();
            let lost = match self.kept {
                KeptEvents::First => dropped(&stats) + overwritten(&stats),
                KeptEvents::Last => dropped(&stats),
            };
            found.lost += lost;
            let mut first_ns = None;
            let mut last_ns = self.begin_ns;
            let path = of_cpu.join("trace");
            let file = File::open(&path).map_err(failed(&path))?;
            for line in BufReader::new(file).split(b'\n') {
                let line = line.map_err(failed(&path))?;
                let line = String::from_utf8_lossy(&line);
                if let Some((affected, event)) = parse(&line, *cpu, &mut found.names) {
                    first_ns.get_or_insert(event.at_ns);
                    last_ns = last_ns.max(event.at_ns);
                    found.events.entry(affected).or_default().push(event);
                }
            }
            found
                .ends_ns
                .insert(*cpu, if lost > 0 { last_ns } else { end_ns });
            if self.kept == KeptEvents::Last && overwritten(&stats) > 0 {
                found.begin_ns = found.begin_ns.max(first_ns.unwrap_or(end_ns));
            }
        }
        found.forget_before(found.begin_ns);
        // A wake-up may be recorded on the CPU of the thread that causes it.
        let each = found.events.values_mut();
        each.for_each(|events| events.sort_by_key(|event| event.at_ns));
        found.events.retain(|cpu, _| self.cpus.contains(cpu));
        Ok(found)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(failed(&path))
    }
}

impl RecordedTrace {
    /// Leaves out the events before a time: the record begins there, or where it began if that is later.
    pub fn forget_before(&mut self, at_ns: u64) {
        self.begin_ns = self.begin_ns.max(at_ns);
        for events in self.events.values_mut() {
            events.retain(|event| event.at_ns >= at_ns);
        }
    }
}

impl Drop for KernelTrace {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        // It is no folder of a disk: with it goes all that is in it. If the kernel refuses, a later start removes it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes instances whose processes have ended without removing them.
fn remove_abandoned(instances: &Path) {
    let entries = fs::read_dir(instances).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('-').next());
        let is_gone = |process: &str| !Path::new("/proc").join(process).exists();
        if process.is_some_and(is_gone) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// CPUs as a mask of hexadecimal digits, in groups of 32 bits.
fn mask(cpus: &[usize]) -> String {
    let most = cpus.iter().copied().max().unwrap_or(0);
    let group = |place: usize| {
        let bits = cpus.iter().filter(|cpu| **cpu / 32 == place);
        let bits = bits.fold(0u32, |bits, cpu| bits | 1 << (cpu % 32));
        format!("{bits:08x}")
    };
    let groups: Vec<String> = (0..=most / 32).rev().map(group).collect();
    groups.join(",")
}

/// The events that were not written because a buffer had no room, in its statistics.
fn dropped(stats: &str) -> u64 {
    count(stats, "dropped events:")
}

/// The events that were overwritten, in the statistics of a buffer.
fn overwritten(stats: &str) -> u64 {
    count(stats, "overrun:")
}

fn count(stats: &str, name: &str) -> u64 {
    let mut lines = stats.lines();
    let found = lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    found.unwrap_or(0)
}

/// Parses a line such as `prog-12 [001] d.h2. 12.345678: sched_wakeup: comm=prog pid=12 prio=89 target_cpu=001`: the event, and the
/// CPU on which it has an effect. `None` of a line that is no event, or none of these. Keeps the names of threads.
fn parse(line: &str, cpu: usize, names: &mut BTreeMap<i32, String>) -> Option<(usize, TraceEvent)> {
    let (task, after_cpu) = line.split_once("] ")?;
    let (head, rest) = after_cpu.split_once(": ")?;
    let (name, arguments) = rest
        .split_once(": ")
        .unwrap_or((rest.trim_end_matches(':'), ""));
    let (seconds, fraction) = head.split_whitespace().last()?.split_once('.')?;
    let micros: u64 = fraction.parse().ok().filter(|_| fraction.len() == 6)?;
    let at_ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + micros * 1_000;
    let (cpu, kind) = match name {
        "sched_switch" => {
            let (before, after) = arguments.rsplit_once("==> ")?;
            let state = value(before, "prev_state=")?;
            let from = value(before, "prev_pid=")?.parse().ok()?;
            let to = value(after, "next_pid=")?.parse().ok()?;
            keep_name(names, from, before, "prev_");
            keep_name(names, to, after, "next_");
            let kind = TraceEventKind::Switched {
                from,
                from_priority: value(before, "prev_prio=")?.parse().ok()?,
                is_preempted: state.starts_with('R'),
                to,
                to_priority: value(after, "next_prio=")?.parse().ok()?,
            };
            (cpu, kind)
        }
        "sched_wakeup" | "sched_wakeup_new" => {
            let thread = value(arguments, " pid=")?.parse().ok()?;
            let priority = value(arguments, " prio=")?.parse().ok()?;
            let target = value(arguments, "target_cpu=")?.parse().ok()?;
            keep_name(names, thread, arguments, "");
            (target, TraceEventKind::Woken { thread, priority })
        }
        "page_fault_user" | "page_fault_kernel" => {
            let thread = task.split(" [").next()?.trim_end().rsplit('-').next()?;
            let thread = thread.parse().ok()?;
            (cpu, TraceEventKind::PageFault { thread })
        }
        name if name.ends_with("_entry") => (cpu, TraceEventKind::InterruptBegan),
        name if name.ends_with("_exit") => (cpu, TraceEventKind::InterruptEnded),
        _ => return None,
    };
    Some((cpu, TraceEvent { at_ns, kind }))
}

/// Keeps the name of a thread, which stands before its id.
fn keep_name(names: &mut BTreeMap<i32, String>, thread: i32, text: &str, prefix: &str) {
    let begin = format!("{prefix}comm=");
    let name = text.split_once(&begin).map(|(_, rest)| rest);
    let name = name.and_then(|rest| rest.rsplit_once(&format!(" {prefix}pid=")));
    if let Some((name, _)) = name
        && names.get(&thread).is_none_or(|known| known != name)
    {
        names.insert(thread, name.to_owned());
    }
}

/// The word behind the last `name`: the name of a thread, which may contain anything, stands before all others.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.rsplit_once(name)?;
    rest.split_whitespace().next()
}

static STARTED: AtomicU32 = AtomicU32::new(0);
const PAGE_FAULTS: [&str; 2] = ["exceptions/page_fault_user", "exceptions/page_fault_kernel"];
/// A filter is at most a page of text (Documentation/trace/events.rst).
const FILTERED_MAX: usize = 128;
const PREFIX: &str = "rtorb-";
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The events, and which of them: below 100 are the kernel's priorities of real-time threads.
const EVENTS: [(&str, &str); 5] = [
    ("sched/sched_switch", "prev_prio < 100 || next_prio < 100"),
    ("sched/sched_wakeup", "prio < 100"),
    ("sched/sched_wakeup_new", "prio < 100"),
    ("irq/irq_handler_entry", ""),
    ("irq/irq_handler_exit", ""),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Room for what a busy host does in a second or two: what comes when there is none is not recorded.
    const ROOM_KIB: u64 = 8_192;

    #[test]
    fn the_lines_of_the_kernel_are_read() {
        let mut names = BTreeMap::new();
        let mut parsed = |line: &str| {
            parse(line, 3, &mut names).map(|(cpu, event)| (cpu, event.at_ns, event.kind))
        };
        assert_eq!(
            parsed(
                "  <odd] : n>-17   [003] d..2.  12.000345: sched_switch: prev_comm=<odd] : n> prev_pid=17 prev_prio=120 prev_state=R+ ==> next_comm=pid=9 next_pid=18 next_prio=49"
            ),
            None,
            "a name that looks like the end of the CPU hides the event"
        );
        assert_eq!(
            parsed(
                "    prog x-17   [003] d..2.  12.000345: sched_switch: prev_comm=prog x prev_pid=17 prev_prio=120 prev_state=R+ ==> next_comm=pid=9 next_pid=18 next_prio=49"
            ),
            Some((
                3,
                12_000_345_000,
                TraceEventKind::Switched {
                    from: 17,
                    from_priority: 120,
                    is_preempted: true,
                    to: 18,
                    to_priority: 49
                }
            ))
        );
        assert_eq!(
            parsed(
                "  <idle>-0   [003] dNh4.  0.500000: sched_wakeup: comm=pid=5 target pid=18 prio=49 target_cpu=001"
            ),
            Some((
                1,
                500_000_000,
                TraceEventKind::Woken {
                    thread: 18,
                    priority: 49
                }
            ))
        );
        assert_eq!(
            parsed(
                "  a-b-21  [003] d..1.  0.500000: page_fault_user: address=0x7f ip=0x5 error_code=0x6"
            ),
            Some((3, 500_000_000, TraceEventKind::PageFault { thread: 21 }))
        );
        for (name, kind) in [
            ("irq_handler_entry", TraceEventKind::InterruptBegan),
            ("local_timer_exit", TraceEventKind::InterruptEnded),
        ] {
            let line = format!("  a-1   [003] d.h1.  1.000001: {name}: vector=236");
            assert_eq!(parsed(&line), Some((3, 1_000_001_000, kind)));
        }
        for nothing in [
            "",
            "# tracer: nop",
            "CPU:1 [LOST 7 EVENTS]",
            "x [001] d 1.5: a: b",
        ] {
            assert_eq!(parsed(nothing), None, "{nothing}");
        }
        assert_eq!(names[&17], "prog x");
        assert_eq!(names[&18], "pid=5 target");
    }

    #[test]
    fn cpus_and_lost_events_are_counted() {
        assert_eq!(mask(&[0, 1]), "00000003");
        assert_eq!(mask(&[33, 2]), "00000002,00000004");
        let stats =
            "entries: 9\noverrun: 2\ncommit overrun: 7\ndropped events: 40\nread events: 1\n";
        assert_eq!((dropped(stats), overwritten(stats)), (40, 2));
    }

    /// Where the host has tracefs, a sleep of this thread is found with its moment, and nothing is left behind.
    #[test]
    fn a_sleep_is_recorded_and_the_instance_is_removed() {
        let cpu = rtorb_os::sched::current_affinity()[0];
        let config = rtorb_os::thread::ThreadConfig {
            policy: Some(rtorb_os::sched::SchedPolicy::Fifo(10)),
            affinity: vec![cpu],
            stack_bytes: None,
        };
        let traced = move || {
            let trace = KernelTrace::start(&[cpu], ROOM_KIB, &TraceScope::RealTime)?;
            let folder = trace.folder.clone();
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            let begin_ns = rtorb_os::clock::monotonic_ns();
            std::thread::sleep(Duration::from_millis(2));
            let end_ns = rtorb_os::clock::monotonic_ns();
            let events = trace.finish()?.events.remove(&cpu).unwrap_or_default();
            Ok::<_, String>((folder, own, [begin_ns, end_ns], events))
        };
        let Ok(thread) = rtorb_os::thread::spawn("traced", &config, traced) else {
            eprintln!("not run: the host grants no SCHED_FIFO");
            return;
        };
        let found = thread.join().expect("no panic").expect("no panic");
        let (folder, own, [begin_ns, end_ns], events) = match found {
            Ok(found) => found,
            Err(why) => {
                assert!(
                    why.contains("tracefs") || why.contains("/sys/kernel"),
                    "{why}"
                );
                return;
            }
        };
        assert!(!folder.exists());
        let around = begin_ns - 1_000..=end_ns + 1_000;
        let mine = |event: &&TraceEvent| around.contains(&event.at_ns);
        let away = |event: &TraceEvent| matches!(event.kind, TraceEventKind::Switched { from, is_preempted: false, .. } if from == own);
        let back = |event: &TraceEvent| matches!(event.kind, TraceEventKind::Woken { thread, .. } if thread == own);
        let found: Vec<TraceEvent> = events.iter().filter(mine).copied().collect();
        assert!(
            found.iter().any(away) && found.iter().any(back),
            "{found:?}"
        );
    }

    #[test]
    fn events_before_a_time_are_left_out() {
        let event = |at_ns| TraceEvent {
            at_ns,
            kind: TraceEventKind::InterruptBegan,
        };
        let mut record = RecordedTrace {
            events: BTreeMap::from([(0, vec![event(1), event(2)]), (1, vec![event(1)])]),
            begin_ns: 1,
            ..RecordedTrace::default()
        };
        record.forget_before(2);
        assert_eq!(record.begin_ns, 2);
        assert_eq!(record.events[&0], [event(2)]);
        assert!(record.events[&1].is_empty());
        record.forget_before(0);
        assert_eq!(record.begin_ns, 2);
    }

    /// Where the host has tracefs: more than the smallest buffer has room for.
    #[test]
    fn a_record_of_the_last_events_begins_where_every_cpu_has_all() {
        let cpus = rtorb_os::sched::current_affinity();
        let scope = TraceScope::All {
            page_faults_of: vec![rustix::thread::gettid().as_raw_nonzero().get()],
        };
        let last = KernelTrace::start_keeping(KeptEvents::Last, &cpus, 1, &scope);
        let Ok(trace) = last else {
            eprintln!("not run: tracefs cannot be used");
            return;
        };
        let began_ns = trace.begin_ns;
        // A page fault for each page, as long as the first ones are still there.
        let end_ns = monotonic_ns() + 60_000_000_000;
        let is_overwritten = |cpu: &usize| {
            let stats = trace.folder.join(format!("per_cpu/cpu{cpu}/stats"));
            overwritten(&read(stats).unwrap_or_default()) > 0
        };
        while !cpus.iter().any(is_overwritten) {
            assert!(monotonic_ns() < end_ns, "the buffer becomes full");
            std::hint::black_box(vec![1_u8; 64 << 20]);
        }
        let touched_ns = monotonic_ns();
        std::hint::black_box(vec![1_u8; 64 << 20]);
        let record = trace.finish().expect("it can be read");
        assert_eq!(record.lost, 0);
        assert!(record.begin_ns > began_ns);
        let times = || record.events.values().flatten().map(|event| event.at_ns);
        assert!(times().all(|at_ns| at_ns >= record.begin_ns));
        assert!(times().any(|at_ns| at_ns + 1_000 >= touched_ns), "the last");
    }

    /// Where the host has tracefs, the page faults of a thread count from the moment on from which they are wanted.
    #[test]
    fn page_faults_of_a_thread_that_begins_later_are_recorded() {
        let cpus = rtorb_os::sched::current_affinity();
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let scope = TraceScope::All {
            page_faults_of: vec![own],
        };
        // More memory than the heap keeps, so that its pages are new and the first write to each is a fault.
        let touch = || std::hint::black_box(vec![1_u8; 64 << 20]).len();
        for _ in 0..10 {
            let Ok(trace) = KernelTrace::start(&cpus, ROOM_KIB, &scope) else {
                eprintln!("not run: tracefs cannot be used");
                return;
            };
            let later = std::thread::scope(|scope| {
                let thread = scope.spawn(|| {
                    let id = rustix::thread::gettid().as_raw_nonzero().get();
                    touch();
                    trace.record_page_faults_of(&[own, id]);
                    let wanted_ns = monotonic_ns();
                    touch();
                    (id, wanted_ns)
                });
                thread.join().expect("no panic")
            });
            let (id, wanted_ns) = later;
            let record = trace.finish().expect("it can be read");
            let all = record.events.values().flatten();
            let faults = all.filter(|event| event.kind == TraceEventKind::PageFault { thread: id });
            let times: Vec<u64> = faults.map(|event| event.at_ns).collect();
            if times.iter().any(|at_ns| *at_ns >= wanted_ns) {
                return;
            }
            // Other programs' switches fill the buffers of a busy host.
            assert!(record.lost > 0, "{times:?}");
        }
        panic!("each record lost events");
    }
}
