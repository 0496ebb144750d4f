//! Checks the levels against a plain simulation of EDF, and against all that two threads can do at once.

use super::super::urgency::Importance;
use super::*;
use crate::strategies::RequestOrder;
use proptest::prelude::*;
use std::collections::VecDeque;

/// The importance of a deadline.
fn by(deadline_ns: u64) -> Importance {
    Importance::new(RequestOrder::EarliestDeadline, deadline_ns, None)
}

/// A job of the simulation; its number is its place in the list, which is in the order of arrival.
#[derive(Clone, Copy, Debug)]
struct Work {
    released: u64,
    deadline: u64,
    execution: u64,
}

/// More than there are jobs: the distance of the times at which two jobs could meet.
const STEP: u64 = 16;

/// Jobs in the order of their arrival. Deadlines are often equal, but no job arrives when another one arrives or ends.
fn works() -> impl Strategy<Value = Vec<Work>> {
    let work = (0..20_u64, 1..15_u64, 1..5_u64);
    prop::collection::vec(work, 1..STEP as usize).prop_map(|mut works| {
        works.sort_unstable();
        let work = |(place, (released, relative, execution))| Work {
            released: released * STEP + place,
            deadline: (released + relative) * STEP,
            execution: execution * STEP,
        };
        (0..).zip(works).map(work).collect()
    })
}

/// When each job ends on one CPU under EDF that has begun at most `begun_max` unfinished jobs at a time: a plain simulation by unit
/// steps over lists.
fn edf_ends(works: &[Work], begun_max: usize) -> Vec<u64> {
    let mut left: Vec<u64> = works.iter().map(|work| work.execution).collect();
    let mut ends = vec![0; works.len()];
    let mut has_begun = vec![false; works.len()];
    let most_urgent = |jobs: &mut dyn Iterator<Item = usize>| {
        jobs.min_by_key(|&job| (works[job].deadline, job))
            .map(|job| (works[job].deadline, job))
    };
    for now in 0.. {
        let released = |job: &usize| works[*job].released <= now && left[*job] > 0;
        let all = 0..works.len();
        let top = most_urgent(&mut all.clone().filter(released).filter(|&job| has_begun[job]));
        let next = most_urgent(&mut all.clone().filter(released).filter(|&job| !has_begun[job]));
        let begun = all.clone().filter(|&job| has_begun[job] && left[job] > 0);
        let may_begin = begun.count() < begun_max;
        let runs = match (top, next) {
            (Some(top), Some(next)) if may_begin && next < top => Some(next.1),
            (None, Some(next)) => Some(next.1),
            (top, _) => top.map(|top| top.1),
        };
        if let Some(job) = runs {
            has_begun[job] = true;
            left[job] -= 1;
            if left[job] == 0 {
                ends[job] = now + 1;
            }
        } else if left.iter().all(|left| *left == 0) {
            break;
        }
    }
    ends
}

/// When each job ends if the levels decide and the kernel runs the highest level that has a job.
fn ends_by_levels(works: &[Work], count: usize) -> Vec<u64> {
    let mut levels = Levels::new(count, works.len());
    let mut threads: Vec<Option<usize>> = vec![None; count];
    let mut left: Vec<u64> = works.iter().map(|work| work.execution).collect();
    let mut ends = vec![0; works.len()];
    let mut arriving = works.iter().enumerate().peekable();
    for now in 0.. {
        while let Some((job, work)) = arriving.next_if(|(_, work)| work.released <= now) {
            let start = levels.arrive(by(work.deadline), job);
            begin(&mut threads, start);
        }
        let Some(level) = threads.iter().rposition(Option::is_some) else {
            if arriving.peek().is_none() {
                break;
            }
            continue;
        };
        let job = threads[level].expect("it has a job");
        left[job] -= 1;
        if left[job] == 0 {
            ends[job] = now + 1;
            threads[level] = None;
            let start = levels.end(level);
            begin(&mut threads, start);
        }
    }
    ends
}

fn begin(threads: &mut [Option<usize>], start: Option<Start<usize>>) {
    if let Some(Start { level, job }) = start {
        assert!(
            threads[level].replace(job).is_none(),
            "level {level} is taken"
        );
    }
}

/// The most unfinished jobs that EDF has begun at a time: never more than there are different relative deadlines.
fn relative_deadlines(works: &[Work]) -> usize {
    let mut relative: Vec<_> = works
        .iter()
        .map(|work| (work.deadline - work.released).div_ceil(STEP))
        .collect();
    relative.sort_unstable();
    relative.dedup();
    relative.len()
}

proptest! {
    #[test]
    fn a_level_for_each_relative_deadline_gives_edf(works in works()) {
        let enough = relative_deadlines(&works);
        prop_assert_eq!(ends_by_levels(&works, enough), edf_ends(&works, usize::MAX));
    }

    #[test]
    fn fewer_levels_give_edf_with_so_many_jobs_begun(works in works(), count in 1..4_usize) {
        prop_assert_eq!(ends_by_levels(&works, count), edf_ends(&works, count));
    }

    /// A job that finds all levels taken waits for one less urgent job at most.
    #[test]
    fn a_job_waits_for_one_less_urgent_job_at_most(works in works(), count in 1..4_usize) {
        let ends = ends_by_levels(&works, count);
        for (job, work) in works.iter().enumerate() {
            let is_more_urgent = |other: usize| (works[other].deadline, other) <= (work.deadline, job);
            let others = (0..works.len()).filter(|&other| ends[other] > work.released);
            let urgent = others.clone().filter(|&other| is_more_urgent(other) && works[other].released < ends[job]);
            let demand: u64 = urgent.map(|other| works[other].execution).sum();
            let longest = others.filter(|&other| !is_more_urgent(other) && works[other].released < work.released);
            let blocking = longest.map(|other| works[other].execution).max().unwrap_or(0);
            prop_assert!(ends[job] - work.released <= demand + blocking, "job {}", job);
        }
    }

    /// Any level may end next, as if the jobs above it were suspended or ran on another CPU.
    #[test]
    fn the_stack_is_ordered_and_no_job_waits_without_a_reason(
        events in prop::collection::vec((any::<bool>(), 0..12_u64), 1..60),
        count in 1..5_usize,
    ) {
        let mut levels = Levels::new(count, events.len());
        let mut begun: Vec<(usize, u64, usize)> = Vec::new();
        let mut began = vec![0; events.len()];
        let mut waiting: Vec<(u64, usize)> = Vec::new();
        let mut arrived = 0;
        let last = core::iter::repeat_n((false, 0), 2 * events.len());
        for (arrives, number) in events.into_iter().chain(last) {
            let start = if arrives {
                waiting.push((number, arrived));
                arrived += 1;
                levels.arrive(by(number), arrived - 1)
            } else if begun.is_empty() {
                None
            } else {
                let (level, ..) = begun.remove(number as usize % begun.len());
                levels.end(level)
            };
            if let Some(Start { level, job }) = start {
                began[job] += 1;
                let place = waiting.iter().position(|&(_, other)| other == job);
                let (deadline, job) = waiting.remove(place.expect("it waited, or has just come"));
                begun.push((level, deadline, job));
                begun.sort_unstable();
            }
            prop_assert!(begun.windows(2).all(|two| two[0].0 < two[1].0), "one job a level");
            let rank = |&(_, deadline, job): &(usize, u64, usize)| (deadline, job);
            prop_assert!(begun.windows(2).all(|two| rank(&two[0]) > rank(&two[1])), "the highest is the most urgent");
            let top = begun.last();
            let is_full = top.is_some_and(|top| top.0 + 1 == count);
            if let Some(next) = waiting.iter().min() {
                prop_assert!(is_full || top.is_some_and(|top| *next > rank(top)), "{next:?} waits");
            }
        }
        prop_assert!(waiting.is_empty() && begun.is_empty());
        prop_assert!(began[..arrived].iter().all(|times| *times == 1));
    }
}

#[test]
fn equal_deadlines_are_served_in_the_order_of_arrival() {
    let mut levels = Levels::new(3, 10);
    let start = levels.arrive(by(100), 0).expect("all levels are idle");
    assert_eq!(start, Start { level: 0, job: 0 });
    for job in 1..6 {
        assert_eq!(levels.arrive(by(100), job), None, "it preempts no equal");
    }
    for job in 1..6 {
        assert_eq!(levels.end(0), Some(Start { level: 0, job }));
    }
    assert_eq!(levels.end(0), None);
}

#[test]
fn a_suspended_job_keeps_its_level_and_those_that_are_less_urgent_out() {
    let mut levels = Levels::new(3, 10);
    assert_eq!(
        levels.arrive(by(100), 'a').map(|start| start.level),
        Some(0)
    );
    assert_eq!(levels.arrive(by(50), 'b').map(|start| start.level), Some(1));
    // `b` is suspended, so `a` goes on, and ends.
    assert_eq!(levels.end(0), None);
    assert_eq!(levels.arrive(by(80), 'c'), None);
    let urgent = levels.arrive(by(20), 'd').map(|start| start.level);
    assert_eq!(urgent, Some(2));
    assert_eq!(levels.end(2), None);
    assert_eq!(levels.end(1), Some(Start { level: 0, job: 'c' }));
}

/// An I/O thread that adds jobs, and the threads of two levels, between any two of their steps. A step is what a thread does while it
/// has the lock of the levels, or one push to or pop from the ring of one job that a level's thread waits at.
#[derive(Clone)]
struct Threads {
    levels: Levels<u64>,
    arriving: VecDeque<u64>,
    /// What the I/O thread has decided and not pushed.
    deciding: Option<Start<u64>>,
    rings: [Option<u64>; 2],
    serving: [Serving; 2],
    served: Vec<u64>,
}

#[derive(Clone)]
enum Serving {
    Waits,
    Has(u64),
    /// It has ended its job, and has to push the next one for another level.
    Passes(Start<u64>),
}

impl Threads {
    /// Lets the I/O thread take its next step; false if it has none.
    fn step_of_reader(&mut self) -> bool {
        if let Some(start) = self.deciding.take() {
            self.push(start);
        } else if let Some(deadline) = self.arriving.pop_front() {
            self.deciding = self.levels.arrive(by(deadline), deadline);
        } else {
            return false;
        }
        true
    }

    /// Lets the thread of a level take its next step; false if it waits.
    fn step_of_level(&mut self, level: usize) -> bool {
        let next = match (self.serving[level].clone(), self.rings[level]) {
            (Serving::Waits, None) => return false,
            (Serving::Waits, Some(job)) => {
                self.rings[level] = None;
                Serving::Has(job)
            }
            (Serving::Has(job), _) => {
                self.served.push(job);
                match self.levels.end(level) {
                    None => Serving::Waits,
                    Some(start) if start.level == level => Serving::Has(start.job),
                    Some(start) => Serving::Passes(start),
                }
            }
            (Serving::Passes(start), _) => {
                self.push(start);
                Serving::Waits
            }
        };
        self.serving[level] = next;
        true
    }

    fn push(&mut self, start: Start<u64>) {
        let ring = &mut self.rings[start.level];
        assert!(ring.replace(start.job).is_none(), "it has room for one job");
    }

    /// Takes all steps in every order; returns the number of orders.
    fn explore(&self) -> u64 {
        let mut orders = 0;
        for thread in 0..3 {
            let mut after = self.clone();
            let has_moved = match thread {
                0 => after.step_of_reader(),
                _ => after.step_of_level(thread - 1),
            };
            if has_moved {
                orders += after.explore();
            }
        }
        if orders == 0 {
            let mut served = self.served.clone();
            served.sort_unstable();
            assert_eq!(served, [10, 20, 30, 40], "each job is served once");
            return 1;
        }
        orders
    }
}

#[test]
fn no_job_is_lost_whichever_thread_is_preempted_where() {
    for arriving in [[40, 30, 20, 10], [30, 40, 10, 20], [20, 10, 40, 30]] {
        let threads = Threads {
            levels: Levels::new(2, 4),
            arriving: arriving.into(),
            deciding: None,
            rings: [None; 2],
            serving: [Serving::Waits, Serving::Waits],
            served: Vec::new(),
        };
        assert!(threads.explore() > 100, "{arriving:?}");
    }
}

#[test]
fn parallel_levels_serve_in_the_order_of_arrival_and_none_is_idle_while_a_job_waits() {
    let mut levels = Levels::parallel(2, 8);
    let begun = |start: Option<Start<u32>>| start.map(|start| (start.level, start.job));
    let equal = || by(0);
    assert_eq!(begun(levels.arrive(equal(), 0)), Some((0, 0)));
    assert_eq!(begun(levels.arrive(equal(), 1)), Some((1, 1)));
    for job in 2..5 {
        assert_eq!(begun(levels.arrive(equal(), job)), None);
    }
    for (ended, next) in [
        (0, Some(2)),
        (0, Some(3)),
        (1, Some(4)),
        (1, None),
        (0, None),
    ] {
        let expected = next.map(|job| (ended, job));
        assert_eq!(begun(levels.end(ended)), expected, "{next:?}");
    }
    assert_eq!(begun(levels.arrive(equal(), 5)), Some((0, 5)));
    assert_eq!(begun(levels.arrive(equal(), 6)), Some((1, 6)));
    assert_eq!(begun(levels.end(0)), None);
    assert_eq!(begun(levels.arrive(equal(), 7)), Some((0, 7)), "beside 6");
}
