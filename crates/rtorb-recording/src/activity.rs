//! What threads and CPUs did, by the kernel's record.

use std::collections::{BTreeMap, BTreeSet};

use rtorb_host::kernel_trace::{RecordedTrace, TraceEvent, TraceEventKind};

/// What the threads and CPUs of a host did.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    /// Of each CPU, the threads that had it, one after another.
    turns: BTreeMap<usize, Vec<Turn>>,
    /// Of each CPU, the times of interrupt handlers.
    handlers: BTreeMap<usize, Vec<(u64, u64)>>,
    /// Of each thread, what it did, one after another.
    stretches: BTreeMap<i32, Vec<Stretch>>,
    /// Of each thread, when it had page faults.
    faults: BTreeMap<i32, Vec<u64>>,
}

/// A time in which a thread had a CPU.
#[derive(Clone, Copy, Debug)]
struct Turn {
    begin_ns: u64,
    end_ns: u64,
    thread: i32,
    priority: i32,
}

/// A time in which a thread ran, waited for a CPU, or slept.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    begin_ns: u64,
    end_ns: u64,
    state: ThreadState,
    cpu: usize,
    priority: i32,
}

impl Turn {
    /// Returns true if the kernel gave the CPU to the thread, an ordinary one, although a real-time thread was ready to run there.
    fn is_given_before(&self, ready: &Stretch) -> bool {
        let given_ns = self.end_ns.min(ready.end_ns).saturating_sub(self.begin_ns);
        self.thread != 0
            && self.priority >= FIRST_NORMAL
            && self.begin_ns >= ready.begin_ns
            && given_ns >= GIVEN_FROM_NS
    }
}

impl Stretch {
    /// Returns true if the thread waits for that CPU, and is more urgent than a priority.
    fn is_waiting(&self, cpu: usize, before: i32) -> bool {
        self.state == ThreadState::Ready && self.cpu == cpu && self.priority < before
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Running,
    Ready,
    Asleep,
}

/// A time in which a thread without a real-time priority had a CPU, and one with a real-time priority could run there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrdinaryTurn {
    /// Its begin, in ns.
    pub begin_ns: u64,
    /// Its end, in ns.
    pub end_ns: u64,
    /// True if the kernel gave the CPU to the ordinary thread although the other one could run. Otherwise the other one was woken meanwhile.
    pub is_given: bool,
}

/// A part of a time of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its begin, in ns.
    pub begin_ns: u64,
    /// Its end, in ns.
    pub end_ns: u64,
    /// What the thread did.
    pub doing: Doing,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// It executes.
    Running,
    /// It has the CPU, and an interrupt handler executes there.
    Interrupted {
        /// The CPU.
        cpu: usize,
    },
    /// It can run, and a thread has the CPU that is as urgent as it, or more.
    Preempted {
        /// The CPU.
        cpu: usize,
        /// The id of that thread.
        by: i32,
        /// The priority of that thread, as the kernel counts.
        by_priority: i32,
        /// Its own.
        priority: i32,
    },
    /// It can run, and the kernel keeps the CPU: for a thread that is less urgent, or for none.
    Kept {
        /// The CPU.
        cpu: usize,
        /// The id of that thread; 0 for none.
        by: i32,
        /// True if the kernel gave the CPU to that thread, which is an ordinary one, although this real-time thread could run.
        is_given: bool,
    },
    /// It executes, and the kernel serves its page faults; or it waits for a page.
    PageFault,
    /// It waits for something else than a CPU.
    Asleep,
    /// The record does not say.
    Unknown,
}

impl Activity {
    /// What a record says.
    pub fn of(record: &RecordedTrace) -> Self {
        Self::of_events(&record.events, &record.ends_ns)
    }

    /// What the events of each CPU say. Without an end, a CPU's record ends with its last event.
    pub fn of_events(
        events: &BTreeMap<usize, Vec<TraceEvent>>,
        ends_ns: &BTreeMap<usize, u64>,
    ) -> Self {
        let mut replay = Replay::default();
        let each = events.iter();
        let each = each.flat_map(|(cpu, of_cpu)| of_cpu.iter().map(move |event| (event, *cpu)));
        let mut all: Vec<(&TraceEvent, usize)> = each.collect();
        all.sort_by_key(|(event, _)| event.at_ns);
        for (event, cpu) in all {
            let is_known = ends_ns
                .get(&cpu)
                .is_none_or(|end_ns| event.at_ns <= *end_ns);
            if is_known {
                replay.take(cpu, event);
            }
        }
        let last = |cpu: &usize| events[cpu].last().map_or(0, |event| event.at_ns);
        let mut ends: BTreeMap<usize, u64> = events.keys().map(|cpu| (*cpu, last(cpu))).collect();
        ends.extend(ends_ns);
        replay.finish(&ends)
    }

    /// Returns the times of at least `from_ns` in which a thread of `system` could run on a CPU and something else had it: another thread,
    /// or an interrupt handler. What the threads of the system do while they have the CPU is no such time, however long it takes.
    pub fn held_up(&self, cpu: usize, system: &BTreeSet<i32>, from_ns: u64) -> Vec<(u64, u64)> {
        let waiting = self.waiting(cpu, system, i32::MAX);
        let handlers = listed(&self.handlers, &cpu);
        let mut times = Vec::new();
        for turn in self.turns.get(&cpu).into_iter().flatten() {
            let holding = if system.contains(&turn.thread) {
                handlers
            } else {
                &waiting
            };
            times.extend(within(holding, turn.begin_ns, turn.end_ns));
        }
        union(times, from_ns)
    }

    /// Returns the times of at least `from_ns` in which an ordinary thread, of whatever program, had a CPU while a real-time thread of `system`
    /// could run on it, in their order. No real-time thread waits for an ordinary one unless the kernel makes it wait.
    pub fn ordinary_turns(
        &self,
        cpu: usize,
        system: &BTreeSet<i32>,
        from_ns: u64,
    ) -> Vec<OrdinaryTurn> {
        let waiting = self.waiting(cpu, system, FIRST_NORMAL);
        let turns = listed(&self.turns, &cpu).iter();
        let ordinary = turns.filter(|turn| turn.thread != 0 && turn.priority >= FIRST_NORMAL);
        let times = ordinary.flat_map(|turn| {
            let is_given = system.iter().any(|thread| {
                let stretches = listed(&self.stretches, thread);
                let first = stretches.partition_point(|one| one.end_ns <= turn.begin_ns);
                let met = stretches.get(first);
                met.is_some_and(|one| {
                    one.is_waiting(cpu, FIRST_NORMAL) && turn.is_given_before(one)
                })
            });
            let times = within(&waiting, turn.begin_ns, turn.end_ns);
            times.map(move |(begin_ns, end_ns)| OrdinaryTurn {
                begin_ns,
                end_ns,
                is_given: is_given && begin_ns == turn.begin_ns,
            })
        });
        let long = times.filter(|time| time.end_ns - time.begin_ns >= from_ns);
        long.collect()
    }

    /// The times in which threads of a system that are more urgent than a priority could run on a CPU and did not have it, in their order.
    fn waiting(&self, cpu: usize, system: &BTreeSet<i32>, before: i32) -> Vec<(u64, u64)> {
        let of_system = system.iter();
        let stretches = of_system.filter_map(|thread| self.stretches.get(thread));
        let waiting = stretches
            .flatten()
            .filter(|one| one.is_waiting(cpu, before));
        union(waiting.map(|one| (one.begin_ns, one.end_ns)).collect(), 0)
    }

    /// Returns what a thread did in a time: moments that fill it, in their order.
    pub fn moments(&self, thread: i32, begin_ns: u64, end_ns: u64) -> Vec<Moment> {
        let mut found = Moments {
            at_ns: begin_ns,
            end_ns,
            moments: Vec::new(),
        };
        let stretches = listed(&self.stretches, &thread);
        let first = stretches.partition_point(|one| one.end_ns <= begin_ns);
        let met = stretches[first..].iter();
        let mut was_fault = first > 0 && self.ends_with_fault(thread, &stretches[first - 1]);
        for stretch in met.take_while(|one| one.begin_ns < end_ns) {
            found.until(stretch.begin_ns, Doing::Unknown);
            match stretch.state {
                ThreadState::Running => self.ran(thread, stretch, &mut found),
                ThreadState::Ready => self.waited(stretch, &mut found),
                ThreadState::Asleep if was_fault => found.until(stretch.end_ns, Doing::PageFault),
                ThreadState::Asleep => found.until(stretch.end_ns, Doing::Asleep),
            }
            was_fault = self.ends_with_fault(thread, stretch);
        }
        found.until(end_ns, Doing::Unknown);
        found.moments
    }

    /// Returns which of these threads had a CPU at that moment, or else closest to it: the clock of a recording and that of the kernel's record
    /// differ a little. Where the record cannot tell, a thread other than `own` is the answer.
    pub fn running_closest(&self, at_ns: u64, threads: &BTreeSet<i32>, own: i32) -> Option<i32> {
        let (from_ns, until_ns) = (
            at_ns.saturating_sub(CLOCKS_APART_NS),
            at_ns.saturating_add(CLOCKS_APART_NS),
        );
        let met = self.turns.values().flat_map(|turns| {
            let first = turns.partition_point(|turn| turn.end_ns < from_ns);
            turns[first..]
                .iter()
                .take_while(|turn| turn.begin_ns <= until_ns)
        });
        let of_threads = met.filter(|turn| threads.contains(&turn.thread));
        let apart = of_threads.map(|turn| {
            // A moment is surely in a turn if the ends of the turn are farther from it than the resolution. Gaps below that count as none.
            let (after_begin, before_end) = (
                turn.begin_ns.saturating_add(RESOLUTION_NS),
                at_ns.saturating_add(RESOLUTION_NS),
            );
            let is_sure = after_begin <= at_ns && before_end <= turn.end_ns;
            let gap_ns = turn.begin_ns.saturating_sub(at_ns);
            let gap_ns = gap_ns.max(at_ns.saturating_sub(turn.end_ns));
            let gap_ns = gap_ns.saturating_sub(RESOLUTION_NS);
            (!is_sure, gap_ns, turn.thread == own, turn.thread)
        });
        apart.min().map(|(.., thread)| thread)
    }

    /// Returns the number of page faults of a thread in a time.
    pub fn faults_within(&self, thread: i32, begin_ns: u64, end_ns: u64) -> usize {
        let faults = listed(&self.faults, &thread);
        let before = |at_ns: u64| faults.partition_point(|fault| *fault < at_ns);
        before(end_ns).saturating_sub(before(begin_ns))
    }

    fn ran(&self, thread: i32, stretch: &Stretch, found: &mut Moments) {
        let handlers = listed(&self.handlers, &stretch.cpu);
        for (begin_ns, end_ns) in within(handlers, found.at_ns, stretch.end_ns) {
            self.executed(thread, begin_ns, found);
            found.until(end_ns, Doing::Interrupted { cpu: stretch.cpu });
        }
        self.executed(thread, stretch.end_ns, found);
    }

    /// Execution up to a moment. The time between two page faults that follow each other so closely is that of page faults.
    fn executed(&self, thread: i32, end_ns: u64, found: &mut Moments) {
        let faults = listed(&self.faults, &thread);
        let first = faults.partition_point(|at_ns| *at_ns < found.at_ns);
        for fault in faults[first..].windows(2) {
            if fault[0] >= end_ns.min(found.end_ns) {
                break;
            }
            if fault[1] - fault[0] <= FAULTS_APART_NS {
                found.until(fault[0], Doing::Running);
                found.until(fault[1].min(end_ns), Doing::PageFault);
            }
        }
        found.until(end_ns, Doing::Running);
    }

    fn waited(&self, stretch: &Stretch, found: &mut Moments) {
        let turns = listed(&self.turns, &stretch.cpu);
        let first = turns.partition_point(|turn| turn.end_ns <= found.at_ns);
        let met = turns[first..].iter();
        for turn in met.take_while(|turn| turn.begin_ns < stretch.end_ns) {
            found.until(turn.begin_ns, Doing::Unknown);
            let is_sharing = turn.priority >= FIRST_NORMAL && stretch.priority >= FIRST_NORMAL;
            let is_urgent = turn.thread != 0 && (turn.priority <= stretch.priority || is_sharing);
            let doing = if is_urgent {
                Doing::Preempted {
                    cpu: stretch.cpu,
                    by: turn.thread,
                    by_priority: turn.priority,
                    priority: stretch.priority,
                }
            } else {
                Doing::Kept {
                    cpu: stretch.cpu,
                    by: turn.thread,
                    is_given: turn.is_given_before(stretch),
                }
            };
            found.until(turn.end_ns.min(stretch.end_ns), doing);
        }
        found.until(stretch.end_ns, Doing::Unknown);
    }

    /// Returns true if the thread had a page fault just before it left the CPU.
    fn ends_with_fault(&self, thread: i32, stretch: &Stretch) -> bool {
        let from_ns = stretch.end_ns.saturating_sub(FAULT_TO_SLEEP_NS);
        stretch.state == ThreadState::Running
            && self.faults_within(thread, from_ns, stretch.end_ns.saturating_add(1)) > 0
    }
}

/// Moments that fill a time.
struct Moments {
    /// Up to here they do.
    at_ns: u64,
    end_ns: u64,
    moments: Vec<Moment>,
}

impl Moments {
    fn until(&mut self, end_ns: u64, doing: Doing) {
        let end_ns = end_ns.min(self.end_ns);
        if end_ns <= self.at_ns {
            return;
        }
        match self.moments.last_mut() {
            Some(last) if last.doing == doing => last.end_ns = end_ns,
            _ => self.moments.push(Moment {
                begin_ns: self.at_ns,
                end_ns,
                doing,
            }),
        }
        self.at_ns = end_ns;
    }
}

/// The states of CPUs and threads, event by event.
#[derive(Default)]
struct Replay {
    found: Activity,
    /// Of each CPU, the thread that has it: unknown before the first switch.
    running: BTreeMap<usize, Turn>,
    /// Of each CPU, how many interrupt handlers execute, one in another, and since when.
    handling: BTreeMap<usize, (u32, u64)>,
    /// Of each thread, what it does, if that is known.
    doing: BTreeMap<i32, Stretch>,
    /// Of threads that were woken while they ran, when.
    woken_early: BTreeMap<i32, u64>,
}

impl Replay {
    fn take(&mut self, cpu: usize, event: &TraceEvent) {
        let at_ns = event.at_ns;
        match event.kind {
            TraceEventKind::InterruptBegan => {
                let (depth, since_ns) = self.handling.entry(cpu).or_insert((0, at_ns));
                if *depth == 0 {
                    *since_ns = at_ns;
                }
                *depth += 1;
            }
            TraceEventKind::InterruptEnded => {
                let Some((depth, since_ns)) = self.handling.get_mut(&cpu) else {
                    return;
                };
                *depth = depth.saturating_sub(1);
                if *depth == 0 && *since_ns < at_ns {
                    let times = self.found.handlers.entry(cpu).or_default();
                    times.push((*since_ns, at_ns));
                    *since_ns = at_ns;
                }
            }
            TraceEventKind::PageFault { thread } => {
                self.found.faults.entry(thread).or_default().push(at_ns);
            }
            TraceEventKind::Woken { thread, priority } => {
                match self.doing.get(&thread).map(|known| known.state) {
                    None | Some(ThreadState::Asleep) => {
                        self.begin(thread, at_ns, ThreadState::Ready, cpu, priority);
                    }
                    Some(ThreadState::Running) => {
                        self.woken_early.insert(thread, at_ns);
                    }
                    Some(ThreadState::Ready) => {}
                }
            }
            TraceEventKind::Switched {
                from,
                from_priority,
                is_preempted,
                to,
                to_priority,
            } => {
                // A thread that is woken while it runs does not go to sleep. If the record says both of one microsecond, it slept first, and
                // was then woken from another CPU.
                let was_woken = self.woken_early.remove(&from) == Some(at_ns);
                let state = if is_preempted || was_woken {
                    ThreadState::Ready
                } else {
                    ThreadState::Asleep
                };
                self.begin(from, at_ns, state, cpu, from_priority);
                self.begin(to, at_ns, ThreadState::Running, cpu, to_priority);
                self.turn(cpu, at_ns, to, to_priority);
            }
        }
    }

    /// Begins what a thread does from now on. Thread 0 is that of an idle CPU: every CPU has one of its own.
    fn begin(&mut self, thread: i32, at_ns: u64, state: ThreadState, cpu: usize, priority: i32) {
        if thread == 0 {
            return;
        }
        let next = Stretch {
            begin_ns: at_ns,
            end_ns: at_ns,
            state,
            cpu,
            priority,
        };
        if let Some(known) = self.doing.insert(thread, next) {
            self.found.end(thread, known, at_ns);
        }
    }

    fn turn(&mut self, cpu: usize, at_ns: u64, thread: i32, priority: i32) {
        let next = Turn {
            begin_ns: at_ns,
            end_ns: at_ns,
            thread,
            priority,
        };
        if let Some(mut turn) = self.running.insert(cpu, next) {
            turn.end_ns = at_ns;
            self.found.turns.entry(cpu).or_default().push(turn);
        }
    }

    /// Ends everything with the record: what a thread does that has no CPU is known until the first CPU's record ends.
    fn finish(mut self, ends_ns: &BTreeMap<usize, u64>) -> Activity {
        let end_of = |cpu: &usize| ends_ns.get(cpu).copied().unwrap_or(0);
        for (cpu, mut turn) in self.running {
            turn.end_ns = end_of(&cpu).max(turn.begin_ns);
            self.found.turns.entry(cpu).or_default().push(turn);
        }
        for (cpu, (depth, since_ns)) in self.handling {
            if depth > 0 && since_ns < end_of(&cpu) {
                let times = self.found.handlers.entry(cpu).or_default();
                times.push((since_ns, end_of(&cpu)));
            }
        }
        let first_end_ns = ends_ns.values().copied().min().unwrap_or(0);
        for (thread, stretch) in self.doing {
            let end_ns = if stretch.state == ThreadState::Running {
                end_of(&stretch.cpu)
            } else {
                first_end_ns
            };
            self.found.end(thread, stretch, end_ns);
        }
        self.found
    }
}

impl Activity {
    fn end(&mut self, thread: i32, mut stretch: Stretch, at_ns: u64) {
        if stretch.begin_ns < at_ns {
            stretch.end_ns = at_ns;
            self.stretches.entry(thread).or_default().push(stretch);
        }
    }
}

/// What is listed for a key; nothing if the key is not known.
pub(crate) fn listed<'m, K: Ord, V>(lists: &'m BTreeMap<K, Vec<V>>, key: &K) -> &'m [V] {
    lists.get(key).map_or(&[], Vec::as_slice)
}

/// The parts of times, in their order, that are within another.
fn within(times: &[(u64, u64)], begin_ns: u64, end_ns: u64) -> impl Iterator<Item = (u64, u64)> {
    let first = times.partition_point(|(_, end)| *end <= begin_ns);
    let met = times[first..].iter();
    let met = met.take_while(move |(begin, _)| *begin < end_ns);
    met.map(move |(begin, end)| (*begin.max(&begin_ns), *end.min(&end_ns)))
}

/// Returns times in the order of their begins, those that touch made one; of these, those of at least `from_ns`.
pub fn union(mut times: Vec<(u64, u64)>, from_ns: u64) -> Vec<(u64, u64)> {
    times.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (begin_ns, end_ns) in times {
        match joined.last_mut() {
            Some(last) if begin_ns <= last.1 => last.1 = last.1.max(end_ns),
            _ => joined.push((begin_ns, end_ns)),
        }
    }
    joined.retain(|(begin_ns, end_ns)| end_ns - begin_ns >= from_ns);
    joined
}

/// The kernel's priorities from here on are no real-time priorities.
pub(crate) const FIRST_NORMAL: i32 = 100;
/// A shorter turn may be that of a thread which the kernel had chosen before the other one was woken: a record has whole microseconds.
const GIVEN_FROM_NS: u64 = 1_000_000;
/// How far a time in the kernel's record is from that of its event, at most: the record has whole microseconds.
pub const RESOLUTION_NS: u64 = 2_000;
/// By how much two clocks of a host differ that the kernel adjusts while a recording lasts, at most.
const CLOCKS_APART_NS: u64 = 50_000;
/// Two page faults of one page each follow each other in less if a thread does nothing else. They are 1 to 2 us apart on most hosts, and about
/// 7 us in a virtual machine whose host must find each page first.
const FAULTS_APART_NS: u64 = 20_000;
/// From a page fault until its thread sleeps: the kernel has asked for the page by then.
const FAULT_TO_SLEEP_NS: u64 = 50_000;

#[cfg(test)]
mod tests;
