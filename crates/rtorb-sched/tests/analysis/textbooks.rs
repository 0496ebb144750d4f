//! Task sets of the literature, and the numbers that were published of them.

use rtorb_sched::edf::{self, DemandResult};
use rtorb_sched::holistic::{Begins, SchedulingPolicy, Step, holistic};
use rtorb_sched::{Bound, Response, SearchLimits, Task, Utilisation, levels, response_times};

fn tasks(rows: &[(u64, u64)]) -> Vec<Task> {
    let task = |&(period, worst): &(u64, u64)| Task::periodic(period, worst);
    rows.iter().map(task).collect()
}

/// The worst responses under rate-monotonic priorities.
fn by_rate(tasks: &[Task]) -> Vec<Option<u64>> {
    let levels = levels::rate_monotonic(tasks);
    let responses = response_times(tasks, &levels, SearchLimits::default());
    responses.into_iter().map(Response::bound_ns).collect()
}

/// The worst responses where the first is the most urgent, and so on.
fn in_order(tasks: &[Task]) -> Vec<Option<u64>> {
    let levels: Vec<u32> = (0..).take(tasks.len()).collect();
    let responses = response_times(tasks, &levels, SearchLimits::default());
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
    let responses = response_times(&set, &levels, SearchLimits::default());
    let bounds: Vec<_> = responses.into_iter().map(Response::bound_ns).collect();
    assert_eq!(bounds, [Some(3), Some(6), Some(10), Some(20)]);
    assert!(by_rate(&set)[0] > Some(5));
}

/// Lehoczky (1990), as in Tindell, Burns and Wellings (1994): (70, 26) and (100, 62), whose second task is late by the most
/// in a later job of its busy period: the responses of its jobs are 114, 102, 116, 104, 118, 106, 94.
#[test]
fn lehoczky_a_later_job_is_the_worst() {
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
    assert_eq!(
        edf::demand(&full, SearchLimits::default()),
        DemandResult::Meets
    );
    let over = tasks(&[(2, 1), (5, 1), (10, 4)]);
    assert_eq!(
        edf::demand(&over, SearchLimits::default()),
        DemandResult::Overload
    );
}

/// Buttazzo, Hard Real-Time Computing Systems, section on earliest deadline first against rate monotonic: (5, 2) and (7, 4)
/// is feasible by deadlines at 97 %, and its second task misses its deadline by rates.
#[test]
fn buttazzo_deadlines_against_rates() {
    let set = tasks(&[(5, 2), (7, 4)]);
    assert_eq!(
        edf::demand(&set, SearchLimits::default()),
        DemandResult::Meets
    );
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
    assert_eq!(
        edf::demand(&set, SearchLimits::default()),
        DemandResult::Meets
    );
}

/// Whether all deadlines hold by rates.
fn holds_by_rate(tasks: &[Task]) -> bool {
    let responses = by_rate(tasks);
    let mut each = tasks.iter().zip(responses);
    each.all(|(task, response)| response.is_some_and(|ns| ns <= task.deadline_ns))
}

/// Joseph and Pandya (1986), example 2: (100, 40), (140, 60), (500, 80), (1000, 10), (1000, 1). Their equation gives 40, 100, 560,
/// 2490 and 6991 for one job of each among all jobs of those before it; the third misses its deadline.
#[test]
fn joseph_and_pandya_example_2() {
    let set = tasks(&[(100, 40), (140, 60), (500, 80), (1000, 10), (1000, 1)]);
    for (index, published) in [40, 100, 560, 2490, 6991].into_iter().enumerate() {
        let mut up_to = set[..=index].to_vec();
        // Its own next jobs are no part of the equation.
        up_to[index].period_ns = 1_000_000;
        assert_eq!(in_order(&up_to)[index], Some(published));
    }
    assert!(in_order(&set)[2] > Some(500));
}

/// Audsley, Burns, Richardson, Tindell and Wellings (1993), table 3: the Generic Avionics Platform of Locke, Vogel and Mesler (1991),
/// with the clock, in microseconds: period, execution, blocking, jitter, and the published response, which counts from the release.
#[test]
fn generic_avionics_platform() {
    let rows = [
        (1_000, 51, 0, 0, 51),
        (2_000_000, 3_000, 300, 0, 3_504),
        (25_000, 2_000, 600, 0, 5_906),
        (25_000, 5_000, 900, 0, 11_512),
        (40_000, 1_000, 1_350, 0, 13_064),
        (50_000, 3_000, 1_350, 0, 16_217),
        (50_000, 5_000, 750, 0, 20_821),
        (59_000, 8_000, 750, 0, 36_637),
        (80_000, 9_000, 1_350, 0, 47_798),
        (80_000, 2_000, 450, 0, 48_949),
        (100_000, 5_000, 1_050, 0, 99_150),
        (200_000, 1_000, 450, 1_000, 99_550),
        (200_000, 3_000, 450, 0, 140_641),
        (200_000, 1_000, 450, 0, 141_692),
        (200_000, 1_000, 1_350, 0, 143_694),
        (1_000_000, 3_000, 0, 0, 145_446),
        (1_000_000, 1_000, 0, 0, 146_497),
        (1_000_000, 1_000, 0, 0, 147_548),
    ];
    let task = |&(period, worst, blocking, jitter, _): &(u64, u64, u64, u64, u64)| {
        let task = Task::periodic(period, worst).with_blocking(blocking);
        task.with_jitter(jitter)
    };
    let set: Vec<Task> = rows.iter().map(task).collect();
    let published = rows.map(|(_, _, _, jitter, response)| Some(response + jitter));
    assert_eq!(in_order(&set), published);
}

/// Palencia and Gonzalez Harbour, the example of two processors and a network with two transactions, (30) and (40): the
/// holistic responses are 42 and 30.
#[test]
fn palencia_two_transactions() {
    let step = |place: usize, period, worst, processor, level| Step {
        task: Task::periodic(period, worst),
        processor,
        level,
        after: (!place.is_multiple_of(3)).then(|| place - 1),
        delay_ns: 0,
        transaction: place / 3,
        begins: Begins::AtEnd,
        thread_until: None,
        may_be_overtaken: false,
    };
    // The network is the third; on each, 0 is above 1.
    let steps = [
        step(0, 30, 5, 0, 0),
        step(1, 30, 2, 2, 1),
        step(2, 30, 20, 1, 1),
        step(3, 40, 5, 1, 0),
        step(4, 40, 10, 2, 0),
        step(5, 40, 10, 0, 1),
    ];
    let found = holistic(
        &steps,
        &[SchedulingPolicy::FixedPriority; 3],
        SearchLimits::default(),
    );
    assert_eq!(found[2].response.bound_ns(), Some(42));
    assert_eq!(found[5].response.bound_ns(), Some(30));
}

/// Buttazzo, the same book, exercise 4.3: (4, 1), (6, 2), (10, 3) gives 1, 3 and 10.
#[test]
fn buttazzo_exercise_4_3() {
    let set = tasks(&[(4, 1), (6, 2), (10, 3)]);
    assert_eq!(by_rate(&set), [Some(1), Some(3), Some(10)]);
}

/// Buttazzo, the same book, response times with deadlines before the periods: (4, D 3, 1), (5, D 4, 1), (6, D 5, 2), (11, D 10, 1):
/// the last is done after 10.
#[test]
fn buttazzo_deadline_monotonic() {
    let rows = [(4, 3, 1), (5, 4, 1), (6, 5, 2), (11, 10, 1)];
    let set =
        rows.map(|(period, deadline, worst)| Task::periodic(period, worst).with_deadline(deadline));
    let levels = levels::deadline_monotonic(&set);
    let responses = response_times(&set, &levels, SearchLimits::default());
    assert_eq!(responses[3].bound_ns(), Some(10));
}

/// Lipari, lecture on earliest deadline first: (4, 1), (6, 2), (8, 3) uses 23/24; a deadline is missed by rates, none by
/// deadlines.
#[test]
fn lipari_rates_and_deadlines() {
    let set = tasks(&[(4, 1), (6, 2), (8, 3)]);
    assert!(!holds_by_rate(&set));
    assert_eq!(
        edf::demand(&set, SearchLimits::default()),
        DemandResult::Meets
    );
}

/// Bril, Lukkien and Verhaegh, and Bril (report 07-11, Eindhoven 2007): (5, 2), (7, 3) gives 2 and 5.
#[test]
fn bril_two_tasks() {
    assert_eq!(by_rate(&tasks(&[(5, 2), (7, 3)])), [Some(2), Some(5)]);
}

/// Liu, Real-Time Systems (2000), section 6.5, time-demand analysis: (3, 1), (5, 1.5), (7, 1.25), (9, 0.5) gives 1, 2.5, 4.75 and 9.
#[test]
fn liu_time_demand() {
    let set = tasks(&[(300, 100), (500, 150), (700, 125), (900, 50)]);
    assert_eq!(by_rate(&set), [Some(100), Some(250), Some(475), Some(900)]);
}

/// Burns and Wellings, the same chapter, offsets: (8, D 5, 4), (20, D 10, 4), (20, D 12, 4) gives 4, 8 and 16, so that the
/// last misses its deadline; one task of period 10 in place of the two later ones is done after 8.
#[test]
fn burns_and_wellings_offsets() {
    let set = tasks(&[(8, 4), (20, 4), (20, 4)]);
    assert_eq!(in_order(&set), [Some(4), Some(8), Some(16)]);
    assert_eq!(in_order(&tasks(&[(8, 4), (10, 4)])), [Some(4), Some(8)]);
}

/// Siewert and Pratt, Real-Time Embedded Components and Systems, the examples that come with their feasibility tests: period and
/// execution, whether by rates, and all of them by deadlines.
#[test]
fn siewert_and_pratt_examples() {
    let examples: [(&[(u64, u64)], bool); 8] = [
        (&[(2, 1), (10, 1), (15, 2)], true),
        (&[(2, 1), (5, 1), (7, 2)], false),
        (&[(2, 1), (5, 1), (7, 1), (13, 2)], false),
        (&[(3, 1), (5, 2), (15, 3)], true),
        (&[(2, 1), (4, 1), (16, 4)], true),
        (&[(2, 1), (5, 2), (10, 1)], true),
        (&[(3, 1), (5, 2), (15, 4)], true),
        (&[(6, 1), (8, 2), (12, 4), (24, 6)], true),
    ];
    for (number, (rows, by_rates)) in examples.into_iter().enumerate() {
        let set = tasks(rows);
        assert_eq!(holds_by_rate(&set), by_rates, "example {number}");
        assert_eq!(
            edf::demand(&set, SearchLimits::default()),
            DemandResult::Meets,
            "example {number}"
        );
        let responses = edf::response_times(&set, SearchLimits::default());
        let mut meets = responses
            .iter()
            .zip(&set)
            .map(|(response, task)| response.meets(task.deadline_ns));
        assert!(
            meets.all(|meets| meets == Some(true)),
            "example {number}: {responses:?}"
        );
    }
}
