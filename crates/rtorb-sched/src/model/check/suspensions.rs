//! Jobs by deadline that wait for a call to another CPU.
//!
//! A thread that waits keeps its level of the lane: less urgent jobs that have not begun wait too, although the CPU may be idle. So the time
//! of the call counts as execution of the segment that follows it (the suspension-oblivious analysis: J.-J. Chen and others, "Many
//! suspensions, many problems: a review of self-suspending tasks in real-time systems", 2019). The argument, for a lane on one CPU:
//!
//! 1. The jobs on the levels nest like a stack (Baker 1991), whether they wait or not: one begins only above all others, and a level becomes
//!    free for another job only when all above it are free.
//! 2. While a job is the uppermost, it executes, waits for its call, or waits for the section of a lower one. It executes and waits for its
//!    calls no longer than these take in all. So the lane behaves as if the job executed meanwhile. That lower jobs execute during its call
//!    makes them end sooner.
//! 3. But they may begin sections then. So a job may be blocked each time that it goes on, and that delays those that wait for it: what blocks a
//!    segment that follows a call counts as its execution too.
//!
//! How long a call takes depends on all other bounds. The analysis begins with calls that take no time, and is repeated with what the bounds say
//! until no call takes longer.

use super::super::composition::{Composition, Part, Wait, sum_ns};
use super::super::report::Layer;
use super::steps::{Analysis, View};
use crate::holistic::SchedulingPolicy;

/// Analyses with longer and longer calls. A call that is still longer then has no bound.
const ROUNDS_MAX: usize = 100;

/// Returns the composition in which calls take as long as this analysis says; `None` if they did so in it.
pub(super) fn longer(view: &View<'_>, analysis: &Analysis, round: usize) -> Option<Composition> {
    let mut longer = None;
    for (index, segment) in view.composition.segments.iter().enumerate() {
        let Some(wait) = &segment.waits_for else {
            continue;
        };
        let what = format!("waiting for {}", view.system.behaviours[wait.callee].name);
        let known = segment.execution.iter().position(|part| part.what == what);
        let known_ns = known.map_or(0, |place| segment.execution[place].ns);
        let mut ns =
            call_ns(view, analysis, wait).saturating_add(view.section_blocking_ns(index, &|_| 1));
        if ns <= known_ns {
            continue;
        }
        if round >= ROUNDS_MAX {
            ns = u64::MAX;
        }
        let part = Part {
            layer: Layer::Application,
            what,
            code_of: None,
            times: 1,
            ns,
        };
        let longer: &mut Composition = longer.get_or_insert_with(|| view.composition.clone());
        let execution = &mut longer.segments[index].execution;
        match known {
            Some(place) => execution[place] = part,
            None => execution.push(part),
        }
    }
    longer
}

/// Returns how long a call takes at most, from the end of the segment that sends it to the arrival of the reply.
fn call_ns(view: &View<'_>, analysis: &Analysis, wait: &Wait) -> u64 {
    let mut sum_ns = sum_ns(&wait.delay);
    let mut next = Some(wait.replied_by);
    while let Some(step) = next.filter(|step| *step != wait.sent_by) {
        sum_ns = sum_ns
            .saturating_add(analysis.steps[step].delay_ns)
            .saturating_add(response_ns(view, analysis, step));
        next = analysis.steps[step].after;
    }
    sum_ns
}

/// Returns how long a step takes at most from its release on: no longer than from the arrival of its root, and no longer than the longest
/// time in which its processor always has a job that is as urgent (the level's busy period, Lehoczky 1990).
fn response_ns(view: &View<'_>, analysis: &Analysis, step: usize) -> u64 {
    let from_arrival_ns = analysis.found[step].response.bound_ns();
    let from_arrival_ns = from_arrival_ns.unwrap_or(u64::MAX);
    let steps = &analysis.steps;
    let own = &steps[step];
    let by_priority = analysis.policies[own.processor] == SchedulingPolicy::FixedPriority;
    let here = steps.iter().zip(&analysis.found);
    let here = here.filter(|(other, _)| other.processor == own.processor);
    let here = here.filter(|(other, _)| !by_priority || other.level <= own.level);
    let blocking_ns = here.clone().map(|(other, _)| other.task.blocking_ns).max();
    let blocking_ns = blocking_ns.unwrap_or(0);
    let demand_ns = |busy_ns: u64| {
        here.clone().try_fold(blocking_ns, |sum, (other, found)| {
            // Without the bound of its predecessor, its release has none.
            let before = other.after.map(|before| analysis.found[before].response);
            if before.is_some_and(|response| response.bound_ns().is_none()) {
                return None;
            }
            let arriving_ns = busy_ns.checked_add(own.task.tail_ns())?;
            let span_ns = arriving_ns.checked_add(found.release_ns)?;
            let jobs = other.task.arrivals().jobs_in(span_ns.into());
            sum.checked_add(jobs.checked_mul(other.task.worst_ns)?)
        })
    };
    let mut busy_ns = 1;
    for _ in 0..view.limits.steps_max {
        match demand_ns(busy_ns) {
            Some(needed_ns) if needed_ns <= busy_ns => return busy_ns.min(from_arrival_ns),
            Some(needed_ns) if needed_ns < from_arrival_ns => busy_ns = needed_ns,
            _ => break,
        }
    }
    from_arrival_ns
}
