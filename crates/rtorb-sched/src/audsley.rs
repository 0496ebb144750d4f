//! The optimal assignment of distinct fixed priorities (Audsley 1991).

use crate::limits::Limits;
use crate::response::Demand;
use crate::task::Task;

/// A level of its own for each task, 0 the most urgent, with which all deadlines hold; `None` if no order does it, as far as
/// the response-time test can tell.
///
/// From the least urgent level upwards, each goes to a task that meets its deadline there with all others above: which one
/// does not matter, for a task's response depends on who is above it and not on their order. Among those that can, the one
/// with the longest deadline is taken, so that the answer is deadline-monotonic wherever that is good enough.
///
/// # Panics
/// If a task has no period.
#[must_use]
pub fn audsley(tasks: &[Task], limits: Limits) -> Option<Vec<u32>> {
    let groups: Vec<Vec<usize>> = (0..tasks.len()).map(|index| vec![index]).collect();
    audsley_of_groups(tasks, &groups, limits)
}

/// The same for groups of tasks that must share a level: the level of each group.
pub(crate) fn audsley_of_groups(
    tasks: &[Task],
    groups: &[Vec<usize>],
    limits: Limits,
) -> Option<Vec<u32>> {
    let mut levels = vec![0; groups.len()];
    let mut left: Vec<usize> = (0..groups.len()).collect();
    left.sort_by_key(|&group| {
        groups[group]
            .iter()
            .map(|&task| tasks[task].deadline_ns)
            .min()
    });
    let mut level = u32::try_from(groups.len()).ok()?;
    while !left.is_empty() {
        let mut demand = Demand::default();
        let all = left.iter().flat_map(|&group| &groups[group]);
        all.for_each(|&task| demand.add(&tasks[task]));
        if demand.exceeds_one() {
            return None;
        }
        let can_be_lowest = |&place: &usize| {
            groups[left[place]].iter().all(|&task| {
                let task = &tasks[task];
                let response = demand.without(task).response(task, limits);
                response.meets(task.deadline_ns) == Some(true)
            })
        };
        let place = (0..left.len()).rev().find(can_be_lowest)?;
        level -= 1;
        levels[left.remove(place)] = level;
    }
    Some(levels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response_times;

    #[test]
    fn it_finds_what_deadline_monotonic_does_not() {
        // Jitter that only the longer deadline has: it must go above.
        let tasks = [
            Task::periodic(100, 10).with_deadline(50),
            Task::periodic(100, 30).with_deadline(60).with_jitter(25),
        ];
        let levels = audsley(&tasks, Limits::default()).expect("an order exists");
        assert_eq!(levels, [1, 0]);
        let responses = response_times(&tasks, &[0, 1], Limits::default());
        assert_eq!(responses[1].meets(60), Some(false), "deadline-monotonic");
    }

    #[test]
    fn it_says_when_there_is_none() {
        let tasks = [Task::periodic(10, 6), Task::periodic(10, 6)];
        assert_eq!(audsley(&tasks, Limits::default()), None);
        assert_eq!(audsley(&[], Limits::default()), Some(vec![]));
    }
}
