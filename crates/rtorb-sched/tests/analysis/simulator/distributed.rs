//! A discrete-event simulator of transactions over several preemptive processors.

use std::collections::{BTreeMap, VecDeque};

use rtorb_sched::holistic::{Begins, SchedulingPolicy, Step};

/// Numbers that decide what the analysis leaves open: every sequence is a possible run.
#[derive(Clone, Debug)]
pub(crate) struct Chances(pub(crate) u64);

impl Chances {
    /// Returns at most `most`: often 0 or all, sometimes a value between.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        match self.next() % 4 {
            0 => 0,
            1 | 2 => most,
            _ => self.next() % (most + 1),
        }
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).expect("less than a count")
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) chances: Chances,
    /// The first arrival of each root; unused for other steps.
    pub(crate) offsets_ns: Vec<u64>,
    /// Whether execution, jitter and delay have their maximum, and arrivals their highest rate.
    pub(crate) at_worst: bool,
    /// The end of arrivals; all jobs that arrived run to their end.
    pub(crate) horizon_ns: u64,
}

/// Returns the longest time of each step from the arrival of its root to its own end.
///
/// Whenever an idle processor gets work, a less urgent section may just have begun; it lasts as long as the shortest blocking of
/// the steps there.
pub(crate) fn longest_responses(
    steps: &[Step],
    processors: &[SchedulingPolicy],
    course: Course,
) -> Vec<u64> {
    let mut run = Run {
        steps,
        processors,
        course,
        coming: BTreeMap::new(),
        ready: vec![Vec::new(); processors.len()],
        taken_until: vec![0; processors.len()],
        last_release: vec![0; steps.len()],
        threads: vec![VecDeque::new(); steps.len()],
        longest: vec![0; steps.len()],
        now: 0,
    };
    run.arrive();
    while run.step() {}
    run.longest
}

#[derive(Clone, Copy, Debug)]
struct Job {
    step: usize,
    arrival_ns: u64,
    release_ns: u64,
    left_ns: u64,
    /// What is left of it when it sends the messages that release others early; `None` afterwards.
    sends_at_ns: Option<u64>,
}

impl Job {
    /// Returns how long it executes until it sends its messages, or ends.
    fn next_ns(&self) -> u64 {
        self.left_ns - self.sends_at_ns.unwrap_or(0)
    }
}

struct Run<'a> {
    steps: &'a [Step],
    processors: &'a [SchedulingPolicy],
    course: Course,
    /// The future releases, by time.
    coming: BTreeMap<u64, Vec<Job>>,
    ready: Vec<Vec<Job>>,
    /// A less urgent section holds the processor.
    taken_until: Vec<u64>,
    last_release: Vec<u64>,
    /// The arrivals of the jobs that the thread of a root has still to perform; it performs the first.
    threads: Vec<VecDeque<u64>>,
    longest: Vec<u64>,
    now: u64,
}

impl Run<'_> {
    fn arrive(&mut self) {
        for index in 0..self.steps.len() {
            if self.steps[index].after.is_some() {
                continue;
            }
            let task = self.steps[index].task;
            let mut begun_ns = self.course.offsets_ns[index];
            while begun_ns < self.course.horizon_ns {
                for job in 0..u64::from(task.burst.jobs) {
                    let arrival_ns = begun_ns + job * task.burst.gap_ns;
                    if self.steps[index].thread_until.is_some() {
                        self.threads[index].push_back(arrival_ns);
                    } else {
                        self.release(index, arrival_ns, arrival_ns);
                    }
                }
                let pause = if self.course.at_worst || task.phase.is_some() {
                    0
                } else {
                    self.course.chances.up_to(task.period_ns / 3)
                };
                begun_ns += task.period_ns + pause;
            }
            if let Some(&first_ns) = self.threads[index].front() {
                self.release(index, first_ns, first_ns);
            }
        }
    }

    /// Schedules the release of a job; jobs of a step stay in order.
    fn release(&mut self, step: usize, arrival_ns: u64, from_ns: u64) {
        self.release_not_before((step, arrival_ns), from_ns, 0);
    }

    fn release_not_before(&mut self, (step, arrival_ns): (usize, u64), from_ns: u64, free_ns: u64) {
        let Step { task, delay_ns, .. } = self.steps[step];
        let (mut later, mut left_ns) = (task.jitter_ns + delay_ns, task.worst_ns);
        if self.steps[step].after.is_none() {
            later = task.jitter_ns;
        }
        if !self.course.at_worst {
            later = self.course.chances.up_to(later);
            left_ns -= self.course.chances.up_to(left_ns) / 4;
        }
        let release_ns = (from_ns + later).max(self.last_release[step]).max(free_ns);
        // A later job of the same step is not released before its predecessor's arrival, and never later than jitter allows.
        self.last_release[step] = release_ns;
        let job = Job {
            step,
            arrival_ns,
            release_ns,
            left_ns,
            sends_at_ns: Some(self.course.chances.up_to(left_ns)),
        };
        self.coming.entry(release_ns).or_default().push(job);
    }

    /// Advances to the next event; returns false if there is none.
    fn step(&mut self) -> bool {
        let running: Vec<Option<usize>> = (0..self.processors.len())
            .map(|lane| self.running(lane))
            .collect();
        let ends = running.iter().enumerate().filter_map(|(lane, place)| {
            let left = self.ready[lane][(*place)?].next_ns();
            Some(self.now.max(self.taken_until[lane]) + left)
        });
        let release = self.coming.keys().next().copied();
        let Some(next) = ends.chain(release).min() else {
            return false;
        };
        for (lane, place) in running.into_iter().enumerate() {
            let Some(place) = place else { continue };
            let begins = self.now.max(self.taken_until[lane]);
            let job = &mut self.ready[lane][place];
            if next < begins {
                continue;
            }
            job.left_ns -= next - begins;
            let sends = job.sends_at_ns.take_if(|left_ns| *left_ns == job.left_ns);
            let job = *job;
            if sends.is_some() {
                self.release_followers(job, next, |begins| begins != Begins::AtEnd);
            }
            if job.left_ns == 0 {
                self.ready[lane].remove(place);
                self.end(job, next);
            }
        }
        self.now = next;
        for job in self.coming.remove(&next).unwrap_or_default() {
            self.begin(job);
        }
        true
    }

    fn begin(&mut self, job: Job) {
        let lane = self.steps[job.step].processor;
        if self.ready[lane].is_empty() && self.taken_until[lane] <= self.now {
            let here = self.steps.iter().filter(|step| step.processor == lane);
            let shortest = here.map(|step| step.task.blocking_ns).min().unwrap_or(0);
            let taken = if self.course.at_worst {
                shortest
            } else {
                self.course.chances.up_to(shortest)
            };
            self.taken_until[lane] = self.now + taken;
        }
        self.ready[lane].push(job);
    }

    fn end(&mut self, job: Job, now: u64) {
        let longest = &mut self.longest[job.step];
        *longest = (*longest).max(now - job.arrival_ns);
        self.release_followers(job, now, |begins| begins == Begins::AtEnd);
        for root in 0..self.steps.len() {
            if self.steps[root].thread_until == Some(job.step) {
                self.threads[root].pop_front();
                if let Some(&next_ns) = self.threads[root].front() {
                    self.release_not_before((root, next_ns), next_ns, now);
                }
            }
        }
    }

    /// Schedules the releases of some steps that follow a job.
    fn release_followers(&mut self, job: Job, now: u64, which: impl Fn(Begins) -> bool) {
        for follower in 0..self.steps.len() {
            let step = &self.steps[follower];
            if step.after == Some(job.step) && which(step.begins) {
                self.release(follower, job.arrival_ns, now);
            }
        }
    }

    /// Returns the released job that runs on a processor.
    fn running(&self, lane: usize) -> Option<usize> {
        let urgency = |place: &usize| {
            let job = &self.ready[lane][*place];
            let step = &self.steps[job.step];
            match self.processors[lane] {
                SchedulingPolicy::FixedPriority => {
                    (u64::from(step.level), job.release_ns, job.arrival_ns)
                }
                SchedulingPolicy::EarliestDeadline => {
                    (job.arrival_ns + step.task.deadline_ns, job.arrival_ns, 0)
                }
            }
        };
        (0..self.ready[lane].len()).min_by_key(urgency)
    }
}
