//! Times in which the kernel kept the threads of a system from a CPU that they could have used, from its own record.

use std::collections::BTreeSet;

use rtorb_host::kernel_trace::{TraceEvent, TraceEventKind};

/// Returns the times of at least `from_ns` in which a thread of `system` could run and something else had the CPU: another thread, or an
/// interrupt handler. What the threads of the system do while they have the CPU is no such time, however long it takes.
pub(super) fn held_up(
    events: &[TraceEvent],
    system: &BTreeSet<i32>,
    from_ns: u64,
) -> Vec<(u64, u64)> {
    let mut cpu = Cpu {
        system,
        running: None,
        waiting: BTreeSet::new(),
        handlers: 0,
    };
    let mut times: Vec<(u64, u64)> = Vec::new();
    let mut last_ns = None;
    for event in events {
        if let Some(begin_ns) = last_ns.filter(|begin_ns| *begin_ns < event.at_ns)
            && cpu.holds_up()
        {
            match times.last_mut() {
                Some(time) if time.1 == begin_ns => time.1 = event.at_ns,
                _ => times.push((begin_ns, event.at_ns)),
            }
        }
        cpu.take(event.kind);
        last_ns = Some(event.at_ns);
    }
    times.retain(|(begin_ns, end_ns)| end_ns - begin_ns >= from_ns);
    times
}

/// What a CPU does.
struct Cpu<'a> {
    system: &'a BTreeSet<i32>,
    /// Unknown before the first switch.
    running: Option<i32>,
    /// The threads of the system that can run and do not.
    waiting: BTreeSet<i32>,
    /// Interrupt handlers, one in another.
    handlers: u32,
}

impl Cpu<'_> {
    fn holds_up(&self) -> bool {
        let Some(running) = self.running else {
            return false;
        };
        let has_system = self.system.contains(&running);
        if self.handlers > 0 {
            has_system || !self.waiting.is_empty()
        } else {
            !has_system && !self.waiting.is_empty()
        }
    }

    fn take(&mut self, kind: TraceEventKind) {
        match kind {
            TraceEventKind::InterruptBegan => self.handlers += 1,
            TraceEventKind::InterruptEnded => self.handlers = self.handlers.saturating_sub(1),
            TraceEventKind::Woken { thread } => {
                if self.system.contains(&thread) && self.running != Some(thread) {
                    self.waiting.insert(thread);
                }
            }
            TraceEventKind::Switched {
                from,
                is_preempted,
                to,
            } => {
                if is_preempted && self.system.contains(&from) {
                    self.waiting.insert(from);
                }
                self.waiting.remove(&to);
                self.running = Some(to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: i32 = 7;
    const ALSO_OURS: i32 = 8;
    const OTHER: i32 = 90;

    fn event(at_ns: u64, kind: TraceEventKind) -> TraceEvent {
        TraceEvent { at_ns, kind }
    }

    fn woken(at_ns: u64, thread: i32) -> TraceEvent {
        event(at_ns, TraceEventKind::Woken { thread })
    }

    fn switched(at_ns: u64, from: i32, is_preempted: bool, to: i32) -> TraceEvent {
        let kind = TraceEventKind::Switched {
            from,
            is_preempted,
            to,
        };
        event(at_ns, kind)
    }

    fn found(events: &[TraceEvent]) -> Vec<(u64, u64)> {
        held_up(events, &[OURS, ALSO_OURS].into(), 10_000)
    }

    #[test]
    fn another_thread_holds_up_one_that_can_run() {
        let woken_late = [
            switched(0, OURS, false, OTHER),
            woken(50_000, OURS),
            switched(550_000, OTHER, true, OURS),
        ];
        assert_eq!(found(&woken_late), [(50_000, 550_000)]);
        let preempted = [
            switched(0, 0, false, OURS),
            switched(100_000, OURS, true, OTHER),
            switched(300_000, OTHER, false, OURS),
        ];
        assert_eq!(found(&preempted), [(100_000, 300_000)]);
        // It waits for nothing but itself: another thread may have the CPU.
        let asleep = [
            switched(0, OURS, false, OTHER),
            switched(900_000, OTHER, false, OURS),
        ];
        assert_eq!(found(&asleep), []);
    }

    #[test]
    fn a_slow_thread_of_the_system_holds_nobody_up() {
        let slow = [
            switched(0, 0, false, OURS),
            woken(1_000, ALSO_OURS),
            switched(900_000, OURS, false, ALSO_OURS),
            switched(901_000, ALSO_OURS, false, 0),
        ];
        assert_eq!(found(&slow), []);
    }

    #[test]
    fn interrupts_hold_up_if_they_are_long_enough() {
        use TraceEventKind::{InterruptBegan, InterruptEnded};
        let interrupted = |length_ns: u64| {
            [
                switched(0, 0, false, OURS),
                event(40_000, InterruptBegan),
                event(41_000, InterruptBegan),
                event(42_000, InterruptEnded),
                event(40_000 + length_ns, InterruptEnded),
                switched(900_000, OURS, false, 0),
            ]
        };
        assert_eq!(found(&interrupted(30_000)), [(40_000, 70_000)]);
        assert_eq!(found(&interrupted(9_000)), []);
    }
}
