//! What a CPU of the host did during a run, put together of all threads that read the clock without pause: those at work and the
//! watcher, which runs while nobody else wants to. What they leave out took the CPU from them: the kernel, the ORB, and what is not
//! ours. It is an interruption where the thread itself saw that no other thread ran, or where the kernel's record says that
//! something else had the CPU. How long it usually takes says nothing: an ORB that is slow now and then would explain itself.

use std::collections::BTreeSet;

use rtorb_recording::activity::{Activity, OrdinaryTurn, RESOLUTION_NS, union};
use rtorb_results::judgement::OrdinaryTime;

use super::records::{Job, JobGap};
use super::watcher::Watched;

/// The begin and the end of a time, in ns of CLOCK_MONOTONIC.
type Time = (u64, u64);

/// A CPU's history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline {
    /// In order, none overlaps another.
    pub(super) interruptions: Vec<Taken>,
    /// When the watcher ran, in order: nobody of the system wanted the CPU.
    pub(super) idle: Vec<Time>,
    /// From when until when it was watched; nothing if it was not.
    pub(super) watched_ns: Option<Time>,
    /// The times that the kernel gave to ordinary threads although a real-time thread of the system could run, in order.
    pub(super) given: Vec<Time>,
}

/// What the kernel's record says of a CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedCpu {
    /// When it held up the threads of the system ([`Activity::held_up`]).
    pub(super) held_up: Vec<Time>,
    /// When ordinary threads had the CPU and real-time threads of the system could run ([`Activity::ordinary_turns`]).
    pub(super) ordinary: Vec<OrdinaryTurn>,
}

impl RecordedCpu {
    /// What a record says of a CPU and a system, in times of at least `from_ns`.
    pub(super) fn of(
        activity: &Activity,
        cpu: usize,
        system: &BTreeSet<i32>,
        from_ns: u64,
    ) -> Self {
        Self {
            held_up: activity.held_up(cpu, system, from_ns),
            ordinary: activity.ordinary_turns(cpu, system, from_ns),
        }
    }

    /// All times that something else than real-time threads of the system took from these, in order.
    fn taken(&self) -> Vec<Time> {
        let ordinary = self.ordinary.iter();
        let ordinary = ordinary.map(|turn| (turn.begin_ns, turn.end_ns));
        union(self.held_up.iter().copied().chain(ordinary).collect(), 0)
    }

    /// The times that the kernel gave to ordinary threads, in order.
    fn given(&self) -> Vec<Time> {
        let given = self.ordinary.iter().filter(|turn| turn.is_given);
        given.map(|turn| (turn.begin_ns, turn.end_ns)).collect()
    }
}

/// A time that was taken, in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) while_idle: bool,
    /// From the kernel's record.
    pub(super) traced: bool,
}

/// A job on this CPU, with the moment before which it had no reason to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caused {
    pub(super) job: Job,
    pub(super) cause_ns: u64,
}

/// A time during which a thread ran without a pause.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    begin_ns: u64,
    end_ns: u64,
    /// A place of the tree, or [`IDLE`].
    of: u32,
    /// No reason to be there before.
    cause_ns: u64,
    /// When all of its job was done.
    done_ns: u64,
    /// Whether nobody else ran since the stretch before it of the same thread.
    after_interruption: bool,
}

impl Timeline {
    /// Of a CPU's jobs, what these lost the CPU for (sorted by place, number and begin), its watcher, and the kernel's record. A
    /// time of at least `from_ns` in which no thread ran is an interruption.
    pub(super) fn of(
        jobs: &[Caused],
        gaps: &[JobGap],
        watched: Option<&Watched>,
        (recorded, from_ns): (&RecordedCpu, u64),
    ) -> Self {
        let mut stretches: Vec<Stretch> = Vec::new();
        for job in jobs {
            stretches_of_job(job, gaps, &mut stretches);
        }
        let idle = watched.map_or_else(Vec::new, idle_times);
        stretches.extend(idle.iter().map(|time| Stretch {
            begin_ns: time.0,
            end_ns: time.1,
            of: IDLE,
            cause_ns: 0,
            done_ns: time.1,
            after_interruption: time.2,
        }));
        stretches.sort_unstable_by_key(|stretch| (stretch.begin_ns, stretch.end_ns));
        let mut interruptions = interruptions(&stretches, &recorded.taken(), from_ns);
        let idle = idle.into_iter().map(|time| (time.0, time.1));
        let at_work = at_work(jobs);
        // A job's own code waits for nobody who lets the CPU be idle: the kernel has given it to who is less urgent than all.
        let (kept_from_work, watched_only): (Vec<_>, Vec<_>) =
            idle.partition(|time| is_within(&at_work, *time));
        let kept = kept_from_work.into_iter().map(|time| (time, false));
        // Nor is a CPU idle on which a real-time thread of the system can run: the watcher has it in its place.
        let (idle, in_place) = without_ordinary(&watched_only, &recorded.ordinary);
        let kept = kept.chain(in_place.into_iter().map(|time| (time, true)));
        let kept = kept.map(|((begin_ns, end_ns), traced)| Taken {
            begin_ns,
            end_ns,
            while_idle: false,
            traced,
        });
        interruptions.extend(kept.filter(|taken| taken.end_ns - taken.begin_ns >= from_ns));
        interruptions.sort_unstable_by_key(|taken| taken.begin_ns);
        Self {
            interruptions,
            idle,
            watched_ns: watched.map(|watched| (watched.begin_ns, watched.end_ns)),
            given: recorded.given(),
        }
    }

    /// When the time began during which the CPU was busy at that moment; the moment itself if it was idle. No earlier than
    /// `back_ns` before it.
    pub(super) fn busy_since(&self, at_ns: u64, back_ns: u64) -> u64 {
        let bound_ns = at_ns.saturating_sub(back_ns);
        let after = self.idle.partition_point(|time| time.0 <= at_ns);
        match self.idle[..after].last() {
            Some((_, end_ns)) => (*end_ns).clamp(bound_ns, at_ns),
            None => bound_ns,
        }
    }

    /// The interruptions that a time meets.
    pub(super) fn within(&self, begin_ns: u64, end_ns: u64) -> impl Iterator<Item = &Taken> {
        let first = self
            .interruptions
            .partition_point(|taken| taken.end_ns <= begin_ns);
        let later = self.interruptions[first..].iter();
        later.take_while(move |taken| taken.begin_ns < end_ns)
    }

    /// For how long of that time the CPU was busy; `None` if it was not watched.
    pub(super) fn busy_ns(&self, begin_ns: u64, end_ns: u64) -> Option<u64> {
        self.watched_ns?;
        let overlap = |time: &Time| time.1.min(end_ns).saturating_sub(time.0.max(begin_ns));
        let idle_ns: u64 = self.idle.iter().map(overlap).sum();
        Some(end_ns.saturating_sub(begin_ns).saturating_sub(idle_ns))
    }

    /// What of that time the kernel gave to ordinary threads although a real-time thread of the system could run.
    pub(super) fn given_within(&self, begin_ns: u64, end_ns: u64) -> OrdinaryTime {
        let cut = self
            .given
            .iter()
            .map(|time| (time.0.max(begin_ns), time.1.min(end_ns)));
        let met = cut.filter(|time| time.0 < time.1);
        met.fold(OrdinaryTime::default(), |sum, time| {
            let length_ns = time.1 - time.0;
            OrdinaryTime {
                count: sum.count + 1,
                total_ns: sum.total_ns + length_ns,
                longest_ns: sum.longest_ns.max(length_ns),
            }
        })
    }
}

impl Taken {
    /// For how much of the time from `begin_ns` to `end_ns`.
    pub(super) fn within_ns(&self, begin_ns: u64, end_ns: u64) -> u64 {
        let begin_ns = self.begin_ns.max(begin_ns);
        self.end_ns.min(end_ns).saturating_sub(begin_ns)
    }
}

/// The own code of a job without its gaps.
fn stretches_of_job(caused: &Caused, gaps: &[JobGap], stretches: &mut Vec<Stretch>) {
    let job = &caused.job;
    let who = (job.place, job.number);
    let first = gaps.partition_point(|gap| (gap.place, gap.number) < who);
    let theirs = gaps[first..].iter();
    let theirs = theirs.take_while(|gap| (gap.place, gap.number) == who);
    // A behaviour that is called several times in a job has them all under one number.
    let theirs = theirs.filter(|gap| (job.begin_ns..job.own_end_ns).contains(&gap.begin_ns));
    let mut next = Stretch {
        begin_ns: job.begin_ns,
        end_ns: job.own_end_ns,
        of: job.place,
        cause_ns: caused.cause_ns,
        done_ns: job.end_ns,
        after_interruption: false,
    };
    for gap in theirs {
        stretches.push(Stretch {
            end_ns: gap.begin_ns,
            ..next
        });
        next.begin_ns = gap
            .begin_ns
            .saturating_add(gap.length_ns)
            .min(job.own_end_ns);
        next.cause_ns = 0;
        next.after_interruption = !gap.switched;
    }
    stretches.push(next);
}

/// When the watcher ran, and whether nobody else did since it ran before.
fn idle_times(watched: &Watched) -> Vec<(u64, u64, bool)> {
    let mut times = Vec::with_capacity(watched.gaps.len() + 1);
    let (mut begin_ns, mut after_interruption) = (watched.begin_ns, false);
    for gap in &watched.gaps {
        times.push((begin_ns, gap.begin_ns, after_interruption));
        begin_ns = gap.end_ns();
        after_interruption = !gap.switched;
    }
    // Gaps without room came later: who knows.
    if watched.beyond_room == 0 && begin_ns < watched.end_ns {
        times.push((begin_ns, watched.end_ns, after_interruption));
    }
    times
}

/// When own code had begun and was not done, in order; what overlaps is one time.
fn at_work(jobs: &[Caused]) -> Vec<Time> {
    let times = jobs
        .iter()
        .map(|caused| (caused.job.begin_ns, caused.job.own_end_ns));
    union(times.collect(), 0)
}

fn is_within(times: &[Time], (begin_ns, end_ns): Time) -> bool {
    let after = times.partition_point(|time| time.0 <= begin_ns);
    times[..after].last().is_some_and(|time| end_ns <= time.1)
}

/// The times of the watcher in which the CPU was idle, and those in which a real-time thread could run.
fn without_ordinary(watched: &[Time], ordinary: &[OrdinaryTurn]) -> (Vec<Time>, Vec<Time>) {
    let (mut idle, mut in_place) = (Vec::with_capacity(watched.len()), Vec::new());
    for &(begin_ns, end_ns) in watched {
        let mut at_ns = begin_ns;
        let first = ordinary.partition_point(|turn| turn.end_ns <= begin_ns);
        let met = ordinary[first..].iter();
        for turn in met.take_while(|turn| turn.begin_ns < end_ns) {
            in_place.push((turn.begin_ns.max(begin_ns), turn.end_ns.min(end_ns)));
            // The record has whole microseconds: what is left of the watcher's time at the ends of a turn is no idle time.
            let idle_until_ns = turn.begin_ns.saturating_sub(RESOLUTION_NS);
            if idle_until_ns > at_ns {
                idle.push((at_ns, idle_until_ns));
            }
            at_ns = turn.end_ns.saturating_add(RESOLUTION_NS);
        }
        if at_ns < end_ns {
            idle.push((at_ns, end_ns));
        }
    }
    (idle, in_place)
}

/// A time between two stretches.
#[derive(Clone, Copy)]
struct Hole {
    begin_ns: u64,
    end_ns: u64,
    between: (u32, u32),
    seen: bool,
}

fn interruptions(stretches: &[Stretch], held_up: &[Time], from_ns: u64) -> Vec<Taken> {
    let holes = holes(stretches);
    let crowded = crowded(&holes, from_ns);
    let mut taken = Vec::new();
    for (hole, crowded) in holes.iter().zip(crowded) {
        let of = |begin_ns, end_ns| Taken {
            begin_ns,
            end_ns,
            while_idle: hole.between.0 == IDLE,
            traced: !hole.seen,
        };
        if hole.seen {
            let is_one = crowded || hole.end_ns.saturating_sub(hole.begin_ns) >= from_ns;
            taken.extend(is_one.then(|| of(hole.begin_ns, hole.end_ns)));
        } else {
            let first = held_up.partition_point(|time| time.1 <= hole.begin_ns);
            let times = held_up[first..].iter();
            let met = times.take_while(|time| time.0 < hole.end_ns);
            let met = met.map(|time| (time.0.max(hole.begin_ns), time.1.min(hole.end_ns)));
            let long = met.filter(|time| time.1 - time.0 >= from_ns);
            taken.extend(long.map(|time| of(time.0, time.1)));
        }
    }
    taken
}

/// Which of them were seen in a crowd: each too short to be an interruption, and so many at once that no tick explains them. A
/// hypervisor takes a CPU in small pieces too.
fn crowded(holes: &[Hole], from_ns: u64) -> Vec<bool> {
    let small = |hole: &Hole| {
        if hole.seen && hole.end_ns - hole.begin_ns < from_ns {
            hole.end_ns - hole.begin_ns
        } else {
            0
        }
    };
    let mut crowded = vec![false; holes.len()];
    let (mut first, mut marked, mut sum_ns) = (0, 0, 0);
    for (last, hole) in holes.iter().enumerate() {
        sum_ns += small(hole);
        while holes[first].begin_ns + CROWD_NS < hole.begin_ns {
            sum_ns -= small(&holes[first]);
            first += 1;
        }
        if sum_ns >= CROWD_TIMES * from_ns {
            for at in first.max(marked)..=last {
                crowded[at] = small(&holes[at]) > 0;
            }
            marked = last + 1;
        }
    }
    crowded
}

fn holes(stretches: &[Stretch]) -> Vec<Hole> {
    let mut holes = Vec::with_capacity(stretches.len());
    let Some(mut before) = stretches.first().copied() else {
        return holes;
    };
    for stretch in &stretches[1..] {
        if stretch.begin_ns > before.end_ns {
            let begin_ns = before.end_ns.max(stretch.cause_ns);
            // Between work and idleness others may have run who have no deadline.
            let end_ns = if stretch.of == IDLE && before.of != IDLE {
                stretch.begin_ns.min(before.done_ns)
            } else {
                stretch.begin_ns
            };
            if end_ns > begin_ns {
                holes.push(Hole {
                    begin_ns,
                    end_ns,
                    between: (before.of, stretch.of),
                    seen: stretch.after_interruption,
                });
            }
        }
        if stretch.end_ns >= before.end_ns {
            before = *stretch;
        }
    }
    holes
}

/// The watcher's.
const IDLE: u32 = u32::MAX;
/// Short times without the CPU are a crowd if they are that near each other, and together so many times as long as an interruption is
/// at least.
pub(super) const CROWD_NS: u64 = 2_000_000;
pub(super) const CROWD_TIMES: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::gaps::Gap;

    fn job(number: u32, begin_ns: u64, own_end_ns: u64) -> Caused {
        let job = Job {
            place: 3,
            number,
            release_ns: begin_ns,
            begin_ns,
            own_end_ns,
            end_ns: own_end_ns,
        };
        Caused {
            job,
            cause_ns: begin_ns,
        }
    }

    fn gap(number: u32, begin_ns: u64, length_ns: u64, switched: bool) -> JobGap {
        JobGap {
            place: 3,
            number,
            begin_ns,
            length_ns,
            switched,
        }
    }

    /// No record.
    fn nothing() -> RecordedCpu {
        RecordedCpu::default()
    }

    fn held_up_in(times: &[Time]) -> RecordedCpu {
        RecordedCpu {
            held_up: times.to_vec(),
            ..nothing()
        }
    }

    #[test]
    fn who_spins_sees_what_takes_the_cpu_and_no_thread() {
        let jobs = [job(0, 1_000, 90_000)];
        let gaps = [
            gap(0, 5_000, 2_500, false),
            gap(0, 20_000, 30_000, false),
            gap(0, 60_000, 20_000, true),
        ];
        let timeline = Timeline::of(&jobs, &gaps, None, (&nothing(), 10_000));
        let taken = Taken {
            begin_ns: 20_000,
            end_ns: 50_000,
            while_idle: false,
            traced: false,
        };
        assert_eq!(timeline.interruptions, [taken]);
        assert_eq!(taken.within_ns(0, 30_000), 10_000);
        assert_eq!(timeline.within(50_000, 60_000).count(), 0);
        assert_eq!(timeline.within(49_999, 60_000).count(), 1);
    }

    /// A hundred jobs, each of which begins 3 us after the idle CPU was left, but one 500 us after. The kernel kept it from the CPU for
    /// 480 us; without that record, it may as well be the ORB that took so long.
    #[test]
    fn a_late_beginning_is_an_interruption_as_far_as_the_kernel_says_so() {
        let at = |number: u64| 1_000_000 * (number + 1);
        let late = |number: u64| if number == 50 { 500_000 } else { 3_000 };
        let jobs: Vec<Caused> = (0..100)
            .map(|number| Caused {
                cause_ns: at(number),
                ..job(
                    number as u32,
                    at(number) + late(number),
                    at(number) + 600_000,
                )
            })
            .collect();
        let watched = Watched {
            begin_ns: 0,
            end_ns: 200_000_000,
            gaps: (0..100)
                .map(|number| Gap {
                    begin_ns: at(number),
                    length_ns: 602_000,
                    switched: true,
                })
                .collect(),
            beyond_room: 0,
        };
        let timeline = Timeline::of(&jobs, &[], Some(&watched), (&nothing(), 10_000));
        assert_eq!(timeline.interruptions, []);
        let held_up = [
            (at(20) - 9_000, at(20)),
            (at(50) - 4_000, at(50) + 480_000),
            (at(60) + 300_000, at(60) + 400_000),
        ];
        let timeline = Timeline::of(&jobs, &[], Some(&watched), (&held_up_in(&held_up), 10_000));
        let taken = Taken {
            begin_ns: at(50),
            end_ns: at(50) + 480_000,
            while_idle: true,
            traced: true,
        };
        assert_eq!(timeline.interruptions, [taken]);
        // The beginning of the busy time, and the moment itself where it is idle.
        assert_eq!(timeline.busy_since(at(7) + 100_000, 1 << 40), at(7));
        assert_eq!(
            timeline.busy_since(at(7) + 700_000, 1 << 40),
            at(7) + 700_000
        );
        assert_eq!(timeline.busy_since(at(7) + 100_000, 40_000), at(7) + 60_000);
        assert_eq!(timeline.busy_ns(0, 200_000_000), Some(100 * 602_000));
    }

    /// Half of every second belongs to others: the watcher runs while there is work.
    #[test]
    fn what_the_kernel_keeps_for_others_is_taken() {
        let jobs = [job(0, 1_000_000, 80_000_000)];
        let gaps = [gap(0, 10_000_000, 50_010_000, true)];
        let away = |begin_ns, length_ns| Gap {
            begin_ns,
            length_ns,
            switched: true,
        };
        let watched = Watched {
            begin_ns: 0,
            end_ns: 100_000_000,
            gaps: vec![away(990_000, 9_015_000), away(60_005_000, 20_000_000)],
            beyond_room: 0,
        };
        let timeline = Timeline::of(&jobs, &gaps, Some(&watched), (&nothing(), 10_000));
        let taken = Taken {
            begin_ns: 10_005_000,
            end_ns: 60_005_000,
            while_idle: false,
            traced: false,
        };
        assert_eq!(timeline.interruptions, [taken]);
        assert_eq!(timeline.busy_since(70_000_000, 1 << 40), 990_000);
    }

    /// A thread could begin its job at 20 ms, and the watcher has the CPU until 70 ms, in the time of the fair server.
    #[test]
    fn a_cpu_is_not_idle_while_a_real_time_thread_can_run() {
        let jobs = [job(0, 70_010_000, 80_000_000)];
        let watched = Watched {
            begin_ns: 0,
            end_ns: 100_000_000,
            gaps: vec![
                Gap {
                    begin_ns: 10_000_000,
                    length_ns: 10_000_500,
                    switched: true,
                },
                Gap {
                    begin_ns: 70_000_500,
                    length_ns: 10_000_000,
                    switched: true,
                },
            ],
            beyond_room: 0,
        };
        let recorded = RecordedCpu {
            ordinary: vec![OrdinaryTurn {
                begin_ns: 20_000_000,
                end_ns: 70_000_000,
                is_given: true,
            }],
            ..nothing()
        };
        let timeline = Timeline::of(&jobs, &[], Some(&watched), (&recorded, 10_000));
        let taken = Taken {
            begin_ns: 20_000_500,
            end_ns: 70_000_000,
            while_idle: false,
            traced: true,
        };
        assert_eq!(timeline.interruptions, [taken]);
        // The CPU is busy from the end of its idle time on.
        assert_eq!(timeline.busy_since(75_000_000, 1 << 40), 10_000_000);
        let given_within = |begin_ns, end_ns| {
            let given = timeline.given_within(begin_ns, end_ns);
            (given.count, given.total_ns, given.longest_ns)
        };
        assert_eq!(given_within(0, 100_000_000), (1, 50_000_000, 50_000_000));
        // What is before and after a run does not count.
        assert_eq!(
            given_within(30_000_000, 45_000_000),
            (1, 15_000_000, 15_000_000)
        );
        assert_eq!(given_within(70_000_000, 100_000_000), (0, 0, 0));
        // Without the record the watcher's time is idle time.
        let idle = Timeline::of(&jobs, &[], Some(&watched), (&nothing(), 10_000));
        assert_eq!(idle.interruptions, []);
        assert_eq!(idle.busy_since(75_000_000, 1 << 40), 70_000_500);
    }

    /// Another thread has the CPU in the middle of a job. Whether it is one of ours, only the kernel's record tells.
    #[test]
    fn a_gap_with_a_switch_is_an_interruption_if_the_kernel_says_so() {
        let jobs = [job(0, 1_000, 900_000)];
        let gaps = [gap(0, 700_000, 150_000, true)];
        let interruptions = |held_up: &[Time]| {
            Timeline::of(&jobs, &gaps, None, (&held_up_in(held_up), 10_000)).interruptions
        };
        assert_eq!(interruptions(&[]), []);
        let taken = Taken {
            begin_ns: 710_000,
            end_ns: 800_000,
            while_idle: false,
            traced: true,
        };
        assert_eq!(
            interruptions(&[(710_000, 800_000), (845_000, 870_000)]),
            [taken]
        );
    }

    #[test]
    fn many_short_ones_at_once_are_interruptions_and_ticks_are_none() {
        let jobs = [job(0, 0, 10_000_000)];
        let ticks = (0..3).map(|tick| gap(0, 100_000 + tick * 3_000_000, 8_000, false));
        // 45 us of them within 2 ms, and an interruption is 10 us at least.
        let crowd = (0..5).map(|at| gap(0, 6_500_000 + at * 100_000, 9_000, false));
        let mut gaps: Vec<JobGap> = ticks.clone().chain(crowd.clone()).collect();
        gaps.sort_unstable_by_key(|gap| gap.begin_ns);
        let timeline = Timeline::of(&jobs, &gaps, None, (&nothing(), 10_000));
        let begins: Vec<u64> = timeline
            .interruptions
            .iter()
            .map(|taken| taken.begin_ns)
            .collect();
        assert!(crowd.clone().all(|gap| begins.contains(&gap.begin_ns)));
        assert!(!begins.contains(&100_000) && !begins.contains(&3_100_000));
        let alone: Vec<JobGap> = ticks.collect();
        assert_eq!(
            Timeline::of(&jobs, &alone, None, (&nothing(), 10_000)).interruptions,
            []
        );
    }
}
