//! Response times where the end of one task starts another (Tindell and Clark 1994, "holistic" analysis).

use crate::limits::Limits;
use crate::response::{Response, response_times};
use crate::task::Task;

/// The worst response of each task from the arrival of what began its chain.
///
/// `after[i]` has the tasks whose ends may start task `i`: it arrives when what began the chain does, and is released when
/// they are done. So the latest of their responses is its release jitter, beside its own; jitter and responses are worked
/// out in turn until neither changes. Deadlines count from the beginning of the chain too.
///
/// # Panics
/// As [`response_times`]; if `after` names a task that is not there, or there are not as many as tasks.
#[must_use]
pub fn response_times_in_chains(
    tasks: &[Task],
    levels: &[u32],
    after: &[Vec<usize>],
    limits: Limits,
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
    // Jitter only grows from round to round, so each of these is a time that is really reached in the bound.
    let last = response_times(&jittered, levels, limits);
    last.into_iter().map(at_least).collect()
}

/// Gives each task the jitter that follows from the answers; true if any has changed. What follows an answer that is none
/// gets none either.
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
                Response::Undecided { .. } => answers[index] = at_least(answers[index]),
            }
        }
        let Some(jitter) = tasks[index].jitter_ns.checked_add(latest) else {
            answers[index] = at_least(answers[index]);
            continue;
        };
        if jitter > jittered[index].jitter_ns {
            jittered[index].jitter_ns = jitter;
            changed = true;
        }
    }
    changed
}

fn at_least(answer: Response) -> Response {
    match answer {
        Response::Bounded { ns } => Response::Undecided { at_least_ns: ns },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_adds_up_on_an_idle_processor() {
        let tasks = [Task::periodic(100, 5), Task::periodic(100, 7)];
        let answers =
            response_times_in_chains(&tasks, &[0, 1], &[vec![], vec![0]], Limits::default());
        // The second may meet one job of the first beside the one that started it.
        assert_eq!(answers[0], Response::Bounded { ns: 5 });
        assert_eq!(answers[1], Response::Bounded { ns: 17 });
    }

    #[test]
    fn what_follows_the_unbounded_is_unbounded() {
        let tasks = [
            Task::periodic(10, 9),
            Task::periodic(10, 9),
            Task::periodic(1000, 1),
        ];
        let after = [vec![], vec![], vec![1]];
        let answers = response_times_in_chains(&tasks, &[0, 1, 0], &after, Limits::default());
        assert_eq!(answers[2], Response::Unbounded);
    }

    #[test]
    fn a_circle_of_jitter_ends() {
        let tasks = [Task::periodic(1000, 10), Task::periodic(1000, 10)];
        let after = [vec![1], vec![0]];
        let limits = Limits {
            rounds_max: 20,
            ..Limits::default()
        };
        let answers = response_times_in_chains(&tasks, &[0, 1], &after, limits);
        assert!(
            matches!(answers[0], Response::Undecided { .. }),
            "{answers:?}"
        );
    }
}
