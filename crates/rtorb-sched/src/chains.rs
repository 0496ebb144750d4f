//! Response times of tasks with precedence: the end of one task releases another (Tindell and Clark 1994, "holistic" analysis).

use crate::limits::SearchLimits;
use crate::response::{Response, response_times};
use crate::task::Task;

/// Returns the worst-case response time of each task, from the arrival of the first task of its chain.
///
/// `after[i]` lists the tasks whose ends may release task `i`. It arrives together with the first task of its chain and is
/// released when its predecessors end. So the latest of their responses adds to its own release jitter. The analysis alternates
/// between jitter and responses until neither changes. Deadlines also count from the arrival of the chain.
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
        if !hand_down(tasks, after, &mut answers, &mut jittered) {
            return answers;
        }
    }
    // Jitter only grows from round to round, so each of these values is a lower bound of the final one.
    let last = response_times(&jittered, levels, limits);
    last.into_iter().map(Response::at_least).collect()
}

/// Sets the jitter of each task from the responses of its predecessors; returns true if any has changed. A task whose predecessor
/// has no bound gets none either.
fn hand_down(
    tasks: &[Task],
    after: &[Vec<usize>],
    answers: &mut [Response],
    jittered: &mut [Task],
) -> bool {
    let mut changed = false;
    for (index, before) in after.iter().enumerate() {
        let mut latest = 0;
        for &earlier in before {
            match answers[earlier] {
                Response::Bounded { ns } => latest = latest.max(ns),
                Response::Unbounded => answers[index] = Response::Unbounded,
                Response::Undecided { .. } => answers[index] = answers[index].at_least(),
            }
        }
        let Some(jitter) = tasks[index].jitter_ns.checked_add(latest) else {
            answers[index] = answers[index].at_least();
            continue;
        };
        if jitter > jittered[index].jitter_ns {
            jittered[index].jitter_ns = jitter;
            changed = true;
        }
    }
    changed
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
