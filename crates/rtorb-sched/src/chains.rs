//! Response times of tasks with precedence: the end of one task releases another (Tindell and Clark 1994, "holistic" analysis).

use crate::limits::SearchLimits;
use crate::response::{Response, response_times};
use crate::task::Task;

/// Returns the worst-case response time of each task, from the arrival of the first task of its chain.
///
/// `after[i]` lists the tasks whose ends may release task `i`. It arrives together with the first task of its chain and is
/// released when its predecessors end. So the latest of their responses adds to its own release jitter. The analysis alternates
/// between jitter and responses until neither changes. Deadlines also count from the arrival of the chain. If a predecessor has no
/// bound, neither has the task, nor any that is less urgent than it or equal.
///
/// # Panics
/// As [`response_times`]; if `after` names a missing task or differs in length from `tasks`.
#[must_use]
pub fn response_times_in_chains(
    tasks: &[Task],
    levels: &[u32],
    after: &[Vec<usize>],
    limits: SearchLimits,
) -> Vec<Response> {
    assert_eq!(
        tasks.len(),
        after.len(),
        "each task has what it comes after"
    );
    let mut jittered = tasks.to_vec();
    for _ in 0..limits.rounds_max {
        let mut answers = response_times(&jittered, levels, limits);
        if !hand_down(tasks, after, &answers, &mut jittered) {
            withdraw(tasks, levels, after, &mut answers);
            return answers;
        }
    }
    // Jitter only grows from round to round, so each of these values is a lower bound of the final one.
    let last = response_times(&jittered, levels, limits);
    last.into_iter().map(Response::at_least).collect()
}

/// Sets the jitter of each task from the responses of its predecessors; returns true if any has changed.
fn hand_down(
    tasks: &[Task],
    after: &[Vec<usize>],
    answers: &[Response],
    jittered: &mut [Task],
) -> bool {
    let mut changed = false;
    for ((task, before), jittered) in tasks.iter().zip(after).zip(jittered) {
        let latest_ns = release(task, before, answers).bound_ns();
        if let Some(jitter_ns) = latest_ns.filter(|&ns| ns > jittered.jitter_ns) {
            jittered.jitter_ns = jitter_ns;
            changed = true;
        }
    }
    changed
}

/// Takes the bound of each task whose release has none, and of those that it may delay: any number of its jobs may come at once.
fn withdraw(tasks: &[Task], levels: &[u32], after: &[Vec<usize>], answers: &mut [Response]) {
    // Each round but the last changes an answer, from a bound to undecided or to none.
    for _ in 0..=2 * tasks.len() {
        let known = answers.to_vec();
        let mut late_from = None;
        for (index, before) in after.iter().enumerate() {
            let released = release(&tasks[index], before, &known);
            if released == Response::Unbounded {
                answers[index] = Response::Unbounded;
            }
            if released.bound_ns().is_none() {
                late_from = Some(late_from.map_or(levels[index], |level| levels[index].min(level)));
            }
        }
        let Some(late_from) = late_from else { return };
        let delayed = answers.iter_mut().zip(levels);
        for (answer, _) in delayed.filter(|(_, level)| **level >= late_from) {
            *answer = answer.at_least();
        }
        if answers == known {
            return;
        }
    }
}

/// Returns the time from the arrival of a task to its latest release: its own jitter after the end of its last predecessor.
fn release(task: &Task, before: &[usize], answers: &[Response]) -> Response {
    let ends = before.iter().map(|&earlier| answers[earlier]);
    let last = ends.max_by_key(|end| match *end {
        Response::Bounded { ns } => (0, ns),
        Response::Undecided { at_least_ns } => (1, at_least_ns),
        Response::Unbounded => (2, 0),
    });
    match last.unwrap_or(Response::Bounded { ns: 0 }) {
        Response::Bounded { ns } => match task.jitter_ns.checked_add(ns) {
            Some(ns) => Response::Bounded { ns },
            None => Response::Undecided { at_least_ns: ns },
        },
        no_bound => no_bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_adds_up_on_an_idle_processor() {
        let tasks = [Task::periodic(100, 5), Task::periodic(100, 7)];
        let answers =
            response_times_in_chains(&tasks, &[0, 1], &[vec![], vec![0]], SearchLimits::default());
        // The second may meet one job of the first beside the one that started it.
        assert_eq!(answers[0], Response::Bounded { ns: 5 });
        assert_eq!(answers[1], Response::Bounded { ns: 17 });
    }

    #[test]
    fn a_successor_of_an_unbounded_task_is_unbounded() {
        let tasks = [
            Task::periodic(10, 9),
            Task::periodic(10, 9),
            Task::periodic(1000, 1),
        ];
        let after = [vec![], vec![], vec![1]];
        let answers = response_times_in_chains(&tasks, &[0, 1, 0], &after, SearchLimits::default());
        assert_eq!(answers[2], Response::Unbounded);
    }

    /// The search for the last task takes more steps. Its end releases the third task, whose end releases the first.
    #[test]
    fn nothing_that_a_successor_of_an_undecided_task_may_delay_has_a_bound() {
        let tasks = [
            Task::periodic(1000, 1),
            Task::periodic(10, 5),
            Task::periodic(1000, 1),
            Task::periodic(1000, 1),
            Task::periodic(100, 40),
        ];
        let after = [vec![2], vec![], vec![4], vec![], vec![]];
        let levels = [1, 0, 2, 3, 4];
        let limits = SearchLimits {
            steps_max: 5,
            ..SearchLimits::default()
        };
        let answers = response_times_in_chains(&tasks, &levels, &after, limits);
        let is_bounded = answers.iter().map(|answer| answer.bound_ns().is_some());
        assert_eq!(
            is_bounded.collect::<Vec<_>>(),
            [false, true, false, false, false],
            "{answers:?}"
        );
    }

    #[test]
    fn a_cycle_of_jitter_ends_undecided() {
        let tasks = [Task::periodic(1000, 10), Task::periodic(1000, 10)];
        let after = [vec![1], vec![0]];
        let limits = SearchLimits {
            rounds_max: 20,
            ..SearchLimits::default()
        };
        let answers = response_times_in_chains(&tasks, &[0, 1], &after, limits);
        assert!(
            matches!(answers[0], Response::Undecided { .. }),
            "{answers:?}"
        );
    }
}
