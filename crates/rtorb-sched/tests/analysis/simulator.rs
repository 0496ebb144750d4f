//! A discrete-event simulator of one preemptive processor, to compare with the bounds.

pub(crate) mod distributed;
pub(crate) mod random;
pub(crate) mod sets;

use rtorb_sched::Task;

/// Which of the released jobs runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy<'a> {
    /// The most urgent level; within a level, the earliest release.
    Fixed(&'a [u32]),
    /// The earliest absolute deadline.
    EarliestDeadline,
    /// The same over a number of levels: a job that is due before the running one starts on the next level if there is one. It
    /// leaves the level when it ends.
    Levels(usize),
}

/// The arrivals and releases of jobs.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    /// The arrival of the first job of each task.
    pub(crate) offsets_ns: Vec<u64>,
    /// The delay from each job's arrival to its release, at most the task's jitter; the sequence repeats.
    pub(crate) delays_ns: Vec<Vec<u64>>,
    /// The blocking at the beginning: a less urgent task's critical section.
    pub(crate) blocked_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    task: usize,
    arrival_ns: u64,
    release_ns: u64,
    left_ns: u64,
}

/// Returns the longest response of each task, over the jobs that arrive before the horizon; all run to their end.
pub(crate) fn longest_responses(
    tasks: &[Task],
    policy: Policy<'_>,
    arrivals: &Arrivals,
    horizon_ns: u64,
) -> Vec<u64> {
    let mut coming = jobs(tasks, arrivals, horizon_ns);
    coming.sort_by_key(|job| (job.release_ns, job.arrival_ns));
    let mut coming = coming.into_iter().peekable();
    let mut ready: Vec<Job> = Vec::new();
    let mut longest = vec![0; tasks.len()];
    let mut started: Vec<Job> = Vec::new();
    let mut now = arrivals.blocked_ns;
    loop {
        while let Some(job) = coming.next_if(|job| job.release_ns <= now) {
            ready.push(job);
        }
        let urgency = |job: &Job| match policy {
            Policy::Fixed(levels) => (u64::from(levels[job.task]), job.release_ns, job.arrival_ns),
            Policy::EarliestDeadline | Policy::Levels(_) => (
                job.arrival_ns + tasks[job.task].deadline_ns,
                0,
                job.arrival_ns,
            ),
        };
        let next_release = coming.peek().map(|job| job.release_ns);
        let most_urgent = |jobs: &[Job]| (0..jobs.len()).min_by_key(|&place| urgency(&jobs[place]));
        if let (Policy::Levels(levels), Some(place)) = (policy, most_urgent(&ready)) {
            let preempts = |running: &Job| urgency(&ready[place]) < urgency(running);
            if started.len() < levels && started.last().is_none_or(preempts) {
                started.push(ready.remove(place));
            }
        }
        let (jobs, running) = match policy {
            Policy::Levels(_) => {
                let place = started.len().checked_sub(1);
                (&mut started, place)
            }
            _ => {
                let place = most_urgent(&ready);
                (&mut ready, place)
            }
        };
        let Some(place) = running else {
            match next_release {
                Some(release) => now = release,
                None => return longest,
            }
            continue;
        };
        let job = &mut jobs[place];
        let runs = next_release.map_or(job.left_ns, |release| job.left_ns.min(release - now));
        now += runs;
        job.left_ns -= runs;
        if job.left_ns == 0 {
            let job = jobs.remove(place);
            longest[job.task] = longest[job.task].max(now - job.arrival_ns);
        }
    }
}

fn jobs(tasks: &[Task], arrivals: &Arrivals, horizon_ns: u64) -> Vec<Job> {
    let mut all = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let mut arrival_ns = arrivals.offsets_ns[index];
        let mut delays = arrivals.delays_ns[index].iter().cycle();
        let (mut release_ns, mut number) = (0, 0);
        while arrival_ns < horizon_ns {
            let delay = delays.next().copied().unwrap_or(0);
            // Jobs of a task stay in order, as one caller's requests do.
            release_ns = release_ns.max(arrival_ns + delay);
            all.push(Job {
                task: index,
                arrival_ns,
                release_ns,
                left_ns: task.worst_ns,
            });
            number += 1;
            arrival_ns = arrivals.offsets_ns[index] + dense_ns(task, number);
        }
    }
    all
}

/// Returns how long after the first of a dense sequence of arrivals the one with this number, from 0, is.
fn dense_ns(task: &Task, number: u64) -> u64 {
    let jobs = u64::from(task.burst.jobs);
    number / jobs * task.period_ns + number % jobs * task.burst.gap_ns
}
