//! Task sets of the literature, and the numbers that were published of them.

use rtorb_sched::edf::{self, Demand};
use rtorb_sched::{Bound, Limits, Response, Task, Utilisation, levels, response_times};

fn tasks(rows: &[(u64, u64)]) -> Vec<Task> {
    let task = |&(period, worst): &(u64, u64)| Task::periodic(period, worst);
    rows.iter().map(task).collect()
}

/// The worst responses under rate-monotonic priorities.
fn by_rate(tasks: &[Task]) -> Vec<Option<u64>> {
    let levels = levels::rate_monotonic(tasks);
    let responses = response_times(tasks, &levels, Limits::default());
    responses.into_iter().map(Response::bound_ns).collect()
}

/// The worst responses where the first is the most urgent, and so on.
fn in_order(tasks: &[Task]) -> Vec<Option<u64>> {
    let levels: Vec<u32> = (0..).take(tasks.len()).collect();
    let responses = response_times(tasks, &levels, Limits::default());
    responses.into_iter().map(Response::bound_ns).collect()
}

/// Burns and Wellings, Real-Time Systems and Programming Languages, chapter on scheduling, task set A: (50, 12), (40, 10),
/// (30, 10) at 82 % fails the utilisation test, and its least urgent task misses its deadline.
#[test]
fn burns_and_wellings_set_a() {
    let set = tasks(&[(50, 12), (40, 10), (30, 10)]);
    assert_eq!(Utilisation::liu_layland(&set), Bound::DoesNotTell);
    let responses = by_rate(&set);
    assert_eq!(responses[2], Some(10));
    assert_eq!(responses[1], Some(20));
    assert!(responses[0] > Some(50), "{responses:?}");
}

/// The same chapter, task set B: (80, 32), (40, 5), (16, 4) at 77.5 % passes it.
#[test]
fn burns_and_wellings_set_b() {
    let set = tasks(&[(80, 32), (40, 5), (16, 4)]);
    assert_eq!(Utilisation::of(&set).millionths(), 775_000);
    assert_eq!(Utilisation::liu_layland(&set), Bound::Holds);
}

/// The same chapter, task set C: (80, 40), (40, 10), (20, 5) uses all of the processor, fails the test, and meets all deadlines: 80,
/// 15 and 5.
#[test]
fn burns_and_wellings_set_c() {
    let set = tasks(&[(80, 40), (40, 10), (20, 5)]);
    assert_eq!(Utilisation::of(&set).millionths(), 1_000_000);
    assert_eq!(Utilisation::liu_layland(&set), Bound::DoesNotTell);
    assert_eq!(by_rate(&set), [Some(80), Some(15), Some(5)]);
}

/// The same chapter, task set D, the worked example of response times: (7, 3), (12, 3), (20, 5) gives 3, 6 and 20.
#[test]
fn burns_and_wellings_set_d() {
    let set = tasks(&[(7, 3), (12, 3), (20, 5)]);
    assert_eq!(by_rate(&set), [Some(3), Some(6), Some(20)]);
}

/// The same chapter, deadlines before the periods, deadline-monotonic: (20, D 5, 3), (15, D 7, 3), (10, D 10, 4), (20, D 20, 3)
/// gives 3, 6, 10 and 20; with rate-monotonic priorities the first misses its deadline.
#[test]
fn burns_and_wellings_deadlines_before_periods() {
    let set = [
        Task::periodic(20, 3).with_deadline(5),
        Task::periodic(15, 3).with_deadline(7),
        Task::periodic(10, 4).with_deadline(10),
        Task::periodic(20, 3).with_deadline(20),
    ];
    let levels = levels::deadline_monotonic(&set);
    let responses = response_times(&set, &levels, Limits::default());
    let bounds: Vec<_> = responses.into_iter().map(Response::bound_ns).collect();
    assert_eq!(bounds, [Some(3), Some(6), Some(10), Some(20)]);
    assert!(by_rate(&set)[0] > Some(5));
}

/// Lehoczky (1990), as in Tindell, Burns and Wellings (1994): (70, 26) and (100, 62), whose second task is late by the most
/// in a later job of its busy period: the responses of its jobs are 114, 102, 116, 104, 118, 106, 94.
#[test]
fn lehoczky_a_later_job_is_the_latest() {
    let set = tasks(&[(70, 26), (100, 62)]);
    assert_eq!(in_order(&set), [Some(26), Some(118)]);
}

/// Lehoczky, Sha and Ding (1989), the exact characterization, example: (100, 40), (150, 40), (350, 100) at 95.3 % is beyond
/// the bound of Liu and Layland, and feasible.
#[test]
fn lehoczky_sha_ding_exact() {
    let set = tasks(&[(100, 40), (150, 40), (350, 100)]);
    assert_eq!(Utilisation::liu_layland(&set), Bound::DoesNotTell);
    assert_eq!(in_order(&set), [Some(40), Some(80), Some(300)]);
}

/// Sha and Goodenough (1990): (100, 20), (150, 40), (350, 100) at 75.3 % is within the bound for three tasks, 77.9 %.
#[test]
fn sha_and_goodenough_within_the_bound() {
    let set = tasks(&[(100, 20), (150, 40), (350, 100)]);
    assert_eq!(Utilisation::of(&set).millionths(), 752_381);
    assert_eq!(Utilisation::liu_layland(&set), Bound::Holds);
}

/// Liu and Layland (1973), section 4: (2, 1) and (5, 1) works if the shorter period goes first, and lets the second run 2
/// at most; with the longer one first, 1 at most.
#[test]
fn liu_and_layland_two_tasks() {
    assert_eq!(in_order(&tasks(&[(2, 1), (5, 2)]))[1], Some(4));
    let more = in_order(&tasks(&[(2, 1), (5, 3)]));
    assert!(more[1] > Some(5) || more[1].is_none());
    assert_eq!(in_order(&tasks(&[(5, 1), (2, 1)]))[1], Some(2));
}

/// Liu and Layland (1973), theorem 7: deadlines driven, a set is feasible exactly if its utilisation is at most 1.
#[test]
fn liu_and_layland_deadlines() {
    let full = tasks(&[(2, 1), (5, 1), (10, 3)]);
    assert_eq!(edf::demand(&full, Limits::default()), Demand::Meets);
    let over = tasks(&[(2, 1), (5, 1), (10, 4)]);
    assert_eq!(edf::demand(&over, Limits::default()), Demand::Overload);
}

/// Buttazzo, Hard Real-Time Computing Systems, section on earliest deadline first against rate monotonic: (5, 2) and (7, 4)
/// is feasible by deadlines at 97 %, and its second task misses its deadline by rates.
#[test]
fn buttazzo_deadlines_against_rates() {
    let set = tasks(&[(5, 2), (7, 4)]);
    assert_eq!(edf::demand(&set, Limits::default()), Demand::Meets);
    assert!(by_rate(&set)[1] > Some(7));
}

/// Buttazzo, the same book, processor demand: (6, D 4, 2), (8, D 5, 2), (9, D 7, 3) is feasible by deadlines.
#[test]
fn buttazzo_processor_demand() {
    let set = [
        Task::periodic(6, 2).with_deadline(4),
        Task::periodic(8, 2).with_deadline(5),
        Task::periodic(9, 3).with_deadline(7),
    ];
    assert_eq!(edf::demand(&set, Limits::default()), Demand::Meets);
}
