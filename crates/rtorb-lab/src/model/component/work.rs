//! The own code of a behaviour: work of an exact length, a part of it under mutexes, and what interrupts it kept.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{CeilingMutex, Mutex};

use crate::experiment::split_mix::SplitMix64;
use crate::model::plan::{BehaviourPlan, Drawn};
use crate::model::records::{JobGap, Kept};
use crate::processes::gaps::Gaps;

/// From one reading of the clock to the next: what takes longer was not execution. A short tick may be, which makes the work
/// shorter by as much, never longer.
pub(crate) const STEP_NS_MAX: u64 = 2_000;

/// One in so many jobs, and the first, take as long as they may.
const WORST_ONE_IN: u32 = 20;

/// Gaps of one job.
const GAPS_A_JOB: usize = 2_048;

thread_local! {
    static GAPS: RefCell<Gaps> = RefCell::new(Gaps::with_room(STEP_NS_MAX, GAPS_A_JOB));
}

/// A mutex of the kind that the system asks for.
#[derive(Debug)]
pub(crate) enum Section {
    Inheriting(Mutex<()>),
    Ceiling(CeilingMutex<()>),
}

impl Section {
    pub(crate) fn new(ceiling: Option<u8>) -> Self {
        match ceiling {
            None => Self::Inheriting(Mutex::new(())),
            Some(ceiling) => Self::Ceiling(CeilingMutex::new(ceiling, ())),
        }
    }

    /// Does something while it is held.
    fn hold(&self, work: impl FnOnce()) -> Result<(), String> {
        match self {
            Self::Inheriting(mutex) => {
                let held = mutex.lock();
                work();
                drop(held);
            }
            Self::Ceiling(mutex) => {
                let held = mutex.lock().map_err(|error| error.to_string())?;
                work();
                drop(held);
            }
        }
        Ok(())
    }
}

/// What all work of a process shares.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) sections: Vec<Section>,
    pub(crate) gaps: Kept<3>,
    /// When nothing is worked for any more, in ns of CLOCK_MONOTONIC: a run has an end however overloaded the system is.
    pub(crate) give_up_ns: AtomicU64,
}

/// When own code began and ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worked {
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

/// Makes what the calling thread works with, so that no job does.
pub(crate) fn make_ready() {
    GAPS.with_borrow_mut(|gaps| {
        gaps.begin();
    });
}

impl Work {
    /// Executes for so long, as the behaviour spends it: what is not under a mutex in equal parts around what is.
    ///
    /// # Errors
    /// That a mutex was refused.
    pub(crate) fn execute(
        &self,
        behaviour: &BehaviourPlan,
        total_ns: u64,
        (place, number): (u32, u32),
    ) -> Result<Worked, String> {
        let give_up_ns = self.give_up_ns.load(Ordering::Relaxed);
        GAPS.with_borrow_mut(|gaps| {
            let begin_ns = gaps.begin();
            let mut left_ns = total_ns;
            let locked_ns = behaviour.sections.iter().map(|section| section.1);
            let free_ns = total_ns.saturating_sub(locked_ns.sum());
            let each_ns = free_ns / (behaviour.sections.len() as u64 + 1);
            for (mutex, length_ns) in &behaviour.sections {
                let before_ns = each_ns.min(left_ns);
                gaps.execute(before_ns, give_up_ns);
                left_ns -= before_ns;
                let held_ns = (*length_ns).min(left_ns);
                left_ns -= held_ns;
                let section = self.sections.get(*mutex);
                let section = section.ok_or("there is no such mutex")?;
                section.hold(|| {
                    gaps.execute(held_ns, give_up_ns);
                })?;
            }
            gaps.execute(left_ns, give_up_ns);
            let end_ns = monotonic_ns();
            for gap in gaps.kept() {
                self.gaps.keep(&JobGap {
                    place,
                    number,
                    begin_ns: gap.begin_ns,
                    length_ns: gap.length_ns,
                    switched: gap.switched,
                });
            }
            gaps.clear();
            Ok(Worked { begin_ns, end_ns })
        })
    }
}

/// How long a job of a behaviour executes: drawn anew for each, the same in every run with that seed. All behaviours of the root's
/// job take their longest together.
pub(crate) fn drawn_ns(execution: &[Drawn], seed: u64, behaviour: u32, number: u32) -> u64 {
    let longest_ns = execution.iter().map(|drawn| drawn.most_ns).max();
    if number.is_multiple_of(WORST_ONE_IN) {
        return longest_ns.unwrap_or(0);
    }
    let of_job = (u64::from(behaviour) << 32) | u64::from(number);
    let mut numbers = SplitMix64::seeded(seed ^ of_job);
    let all: u64 = execution.iter().map(|drawn| drawn.count).sum();
    let mut left = numbers.draw_below(all);
    for drawn in execution {
        if left < drawn.count {
            let width_ns = drawn.most_ns - drawn.least_ns;
            return drawn.least_ns + numbers.draw_below(width_ns.saturating_add(1));
        }
        left -= drawn.count;
    }
    longest_ns.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::Begins;

    #[test]
    fn the_longest_comes_first_and_regularly_and_nothing_is_outside() {
        let execution =
            [(0, 1_000, 9), (5_000, 6_000, 1)].map(|(least_ns, most_ns, count)| Drawn {
                least_ns,
                most_ns,
                count,
            });
        let times: Vec<u64> = (0..1_000)
            .map(|number| drawn_ns(&execution, 1, 2, number))
            .collect();
        assert!((0..1_000).step_by(20).all(|number| times[number] == 6_000));
        let inside = |ns: &u64| *ns <= 1_000 || (5_000..=6_000).contains(ns);
        assert!(times.iter().all(inside));
        let short = times.iter().filter(|ns| **ns <= 1_000).count();
        assert!((780..930).contains(&short), "{short}");
        assert_ne!(times[1], drawn_ns(&execution, 2, 2, 1));
    }

    #[test]
    fn sections_are_part_of_the_work() {
        let behaviour = BehaviourPlan {
            number: 0,
            name: "a.b".to_owned(),
            begins: Begins::OneWay,
            priority: None,
            deadline_ns: 1_000_000,
            runs_at: Vec::new(),
            execution: Vec::new(),
            sections: vec![(0, 200_000), (0, 300_000)],
            calls: Vec::new(),
            places: Vec::new(),
        };
        let work = Work {
            sections: vec![Section::new(None)],
            gaps: Kept::with_room(1_000),
            give_up_ns: AtomicU64::new(u64::MAX),
        };
        for total_ns in [1_000_000, 100_000] {
            let worked = work.execute(&behaviour, total_ns, (0, 0)).unwrap();
            assert!(worked.end_ns - worked.begin_ns >= total_ns);
        }
        work.give_up_ns.store(0, Ordering::Relaxed);
        let worked = work.execute(&behaviour, u64::MAX, (0, 0)).unwrap();
        assert!(worked.end_ns - worked.begin_ns < 10_000_000_000);
        let nowhere = Work {
            sections: Vec::new(),
            ..work
        };
        assert!(nowhere.execute(&behaviour, 1, (0, 0)).is_err());
    }
}
