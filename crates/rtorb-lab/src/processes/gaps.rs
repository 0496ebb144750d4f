//! What a thread executed, and when the CPU was not its own: found by a thread that reads the clock without pause.
//!
//! From one reading to the next a spinning thread needs some tens of nanoseconds. Where it took far longer, somebody else had the
//! CPU: another thread, which the kernel counts as a switch, or without one an interrupt, the firmware or a hypervisor. What
//! oslat and the kernel's tracers osnoise and hwlat look for is found so from an application's view, on any kernel.

use rtorb_instruments::usage::{self, Switches};
use rtorb_os::clock::monotonic_ns;
use serde::{Deserialize, Serialize};

/// A time during which the thread that looks did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The last reading of the clock before it, in nanoseconds of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// Until the next reading, in nanoseconds; reading itself is in it.
    pub length_ns: u64,
    /// Whether another thread ran meanwhile. If not, it was an interruption: what took the CPU is no thread.
    pub switched: bool,
}

impl Gap {
    /// The first reading of the clock after it.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.begin_ns.saturating_add(self.length_ns)
    }
}

/// Finds gaps in the thread that owns it: only the one that calls [`Self::begin`] and what follows.
///
/// It makes no heap call after it was made. A system call is made after each gap, for the switches; what that takes is neither
/// executed nor a gap.
#[derive(Debug)]
pub struct Gaps {
    step_ns_max: u64,
    last_ns: u64,
    switches: Switches,
    kept: Vec<Gap>,
    taken: usize,
    beyond_room: u64,
}

impl Gaps {
    /// With room for so many gaps; from one reading of the clock to the next, `step_ns_max` is no gap yet.
    #[must_use]
    pub fn with_room(step_ns_max: u64, room: usize) -> Self {
        // Not zeros: those would come as memory that nobody has touched.
        let untouched = Gap {
            begin_ns: u64::MAX,
            ..Gap::default()
        };
        Self {
            step_ns_max,
            last_ns: 0,
            switches: Switches::default(),
            kept: vec![untouched; room],
            taken: 0,
            beyond_room: 0,
        }
    }

    /// Begins to look: what was before is no gap. Answers the time.
    pub fn begin(&mut self) -> u64 {
        self.switches = usage::of_thread().switches;
        self.last_ns = monotonic_ns();
        self.last_ns
    }

    /// Reads the clock once: the time, and for how many nanoseconds the thread has executed since the last reading; 0 after a gap.
    #[inline]
    pub fn step(&mut self) -> (u64, u64) {
        let now_ns = monotonic_ns();
        let passed_ns = now_ns.saturating_sub(self.last_ns);
        if passed_ns <= self.step_ns_max {
            self.last_ns = now_ns;
            return (now_ns, passed_ns);
        }
        (self.end_gap(passed_ns), 0)
    }

    /// Executes until the time is `end_ns`, and answers for how many nanoseconds it did.
    pub fn spin_until(&mut self, end_ns: u64) -> u64 {
        self.execute(u64::MAX, end_ns)
    }

    /// Executes for `work_ns` nanoseconds, however long that takes, but not longer than until the time is `give_up_ns`. Answers
    /// for how many it did: no less than were asked for unless it gave up, and at most one step more.
    pub fn execute(&mut self, work_ns: u64, give_up_ns: u64) -> u64 {
        let mut executed_ns: u64 = 0;
        while executed_ns < work_ns {
            let (now_ns, step_ns) = self.step();
            executed_ns += step_ns;
            if now_ns >= give_up_ns {
                break;
            }
        }
        executed_ns
    }

    /// The gaps that were found since the last [`Self::clear`], in the order in which they were; the first ones that had room.
    #[must_use]
    pub fn kept(&self) -> &[Gap] {
        &self.kept[..self.taken]
    }

    /// How many more there were than had room.
    #[must_use]
    pub fn beyond_room(&self) -> u64 {
        self.beyond_room
    }

    /// Forgets what was found.
    pub fn clear(&mut self) {
        self.taken = 0;
        self.beyond_room = 0;
    }

    /// Keeps the gap before the reading that has just been made, and goes on with a new reading, which it answers.
    #[cold]
    fn end_gap(&mut self, length_ns: u64) -> u64 {
        let switches = usage::of_thread().switches;
        let gap = Gap {
            begin_ns: self.last_ns,
            length_ns,
            switched: switches != self.switches,
        };
        match self.kept.get_mut(self.taken) {
            Some(room) => {
                *room = gap;
                self.taken += 1;
            }
            None => self.beyond_room += 1,
        }
        self.switches = switches;
        self.last_ns = monotonic_ns();
        self.last_ns
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sleep_is_a_gap_with_a_switch() {
        let mut gaps = Gaps::with_room(1_000_000, 8);
        let begin_ns = gaps.begin();
        std::thread::sleep(Duration::from_millis(3));
        let (now_ns, executed_ns) = gaps.step();
        assert_eq!(executed_ns, 0);
        let [gap] = gaps.kept() else {
            panic!("one gap: {:?}", gaps.kept());
        };
        assert!(gap.switched);
        assert_eq!(gap.begin_ns, begin_ns);
        assert!(gap.length_ns >= 3_000_000 && gap.end_ns() <= now_ns);
    }

    #[test]
    fn what_no_other_thread_took_is_an_interruption() {
        let mut gaps = Gaps::with_room(0, 1 << 16);
        gaps.begin();
        // Each reading is a gap here, and only few of so many can have a switch in them.
        for _ in 0..1_000 {
            gaps.step();
        }
        let interruptions = gaps.kept().iter().filter(|gap| !gap.switched).count();
        assert!(interruptions >= 500, "{interruptions}");
    }

    #[test]
    fn work_is_what_was_executed_and_not_what_passed() {
        let mut gaps = Gaps::with_room(20_000, 1 << 12);
        let begin_ns = gaps.begin();
        let executed_ns = gaps.execute(2_000_000, u64::MAX);
        let passed_ns = monotonic_ns() - begin_ns;
        assert!((2_000_000..2_020_000).contains(&executed_ns));
        let elsewhere_ns: u64 = gaps.kept().iter().map(|gap| gap.length_ns).sum();
        assert!(executed_ns + elsewhere_ns <= passed_ns);
    }

    #[test]
    fn it_gives_up_in_time_and_room_has_an_end() {
        let mut gaps = Gaps::with_room(0, 3);
        let begin_ns = gaps.begin();
        assert_eq!(gaps.execute(u64::MAX, begin_ns), 0);
        assert_eq!(gaps.kept().len(), 1);
        // The time may be over before the first one, on a busy host. Each makes one step at least.
        for _ in 0..10 {
            gaps.spin_until(begin_ns + 100_000);
        }
        assert_eq!(gaps.kept().len(), 3);
        assert!(gaps.beyond_room() > 0);
        let in_order = |pair: &[Gap]| pair[0].end_ns() <= pair[1].begin_ns;
        assert!(gaps.kept().windows(2).all(in_order));
        gaps.clear();
        assert_eq!((gaps.kept().len(), gaps.beyond_room()), (0, 0));
    }
}
