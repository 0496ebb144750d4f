//! The optimal assignment of distinct fixed priorities (Audsley 1991).

use crate::limits::SearchLimits;
use crate::response::Demand;
use crate::task::Task;

/// Assigns each task its own level, 0 the most urgent, so that all deadlines hold. Returns `None` if the response-time test finds
/// no such order.
///
/// The search assigns levels from the least urgent upwards. Each level goes to a task that meets its deadline there with all
/// remaining tasks above it. Any such task will do: a response time depends on which tasks are above, not on their order. The
/// search takes the candidate with the longest deadline, so the result is deadline-monotonic wherever that order suffices.
///
/// # Panics
/// If a task has no period.
#[must_use]
pub fn audsley(tasks: &[Task], limits: SearchLimits) -> Option<Vec<u32>> {
    let groups: Vec<Vec<usize>> = (0..tasks.len()).map(|index| vec![index]).collect();
    audsley_of_groups(tasks, &groups, limits)
}

/// Assigns levels to groups of tasks; the tasks of a group share a level.
pub(crate) fn audsley_of_groups(
    tasks: &[Task],
    groups: &[Vec<usize>],
    limits: SearchLimits,
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
    fn audsley_finds_an_order_that_deadline_monotonic_misses() {
        // Jitter that only the longer deadline has: it must go above.
        let tasks = [
            Task::periodic(100, 10).with_deadline(50),
            Task::periodic(100, 30).with_deadline(60).with_jitter(25),
        ];
        let levels = audsley(&tasks, SearchLimits::default()).expect("an order exists");
        assert_eq!(levels, [1, 0]);
        let responses = response_times(&tasks, &[0, 1], SearchLimits::default());
        assert_eq!(responses[1].meets(60), Some(false), "deadline-monotonic");
    }

    #[test]
    fn audsley_returns_none_if_there_is_no_order() {
        let tasks = [Task::periodic(10, 6), Task::periodic(10, 6)];
        assert_eq!(audsley(&tasks, SearchLimits::default()), None);
        assert_eq!(audsley(&[], SearchLimits::default()), Some(vec![]));
    }
}
