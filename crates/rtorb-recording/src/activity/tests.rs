use super::*;

const OURS: i32 = 7;
const ALSO_OURS: i32 = 8;
const OTHER: i32 = 90;
const CPU: usize = 3;

fn event(at_ns: u64, kind: TraceEventKind) -> TraceEvent {
    TraceEvent { at_ns, kind }
}

/// Threads of the system have the priority 50, others that of a usual thread.
fn priority(thread: i32) -> i32 {
    if [OURS, ALSO_OURS].contains(&thread) {
        50
    } else {
        120
    }
}

fn woken(at_ns: u64, thread: i32) -> TraceEvent {
    let priority = priority(thread);
    event(at_ns, TraceEventKind::Woken { thread, priority })
}

fn switched(at_ns: u64, from: i32, is_preempted: bool, to: i32) -> TraceEvent {
    let kind = TraceEventKind::Switched {
        from,
        from_priority: priority(from),
        is_preempted,
        to,
        to_priority: priority(to),
    };
    event(at_ns, kind)
}

fn activity(events: &[TraceEvent]) -> Activity {
    Activity::of_events(&BTreeMap::from([(CPU, events.to_vec())]), &BTreeMap::new())
}

fn held_up(events: &[TraceEvent]) -> Vec<(u64, u64)> {
    activity(events).held_up(CPU, &[OURS, ALSO_OURS].into(), 10_000)
}

fn doings(activity: &Activity, begin_ns: u64, end_ns: u64) -> Vec<(u64, Doing)> {
    let moments = activity.moments(OURS, begin_ns, end_ns).into_iter();
    moments
        .map(|one| (one.end_ns - one.begin_ns, one.doing))
        .collect()
}

#[test]
fn another_thread_holds_up_one_that_can_run() {
    let woken_late = [
        switched(0, OURS, false, OTHER),
        woken(50_000, OURS),
        switched(550_000, OTHER, true, OURS),
    ];
    assert_eq!(held_up(&woken_late), [(50_000, 550_000)]);
    let preempted = [
        switched(0, 0, false, OURS),
        switched(100_000, OURS, true, OTHER),
        switched(300_000, OTHER, false, OURS),
    ];
    assert_eq!(held_up(&preempted), [(100_000, 300_000)]);
    // It waits for nothing but itself: another thread may have the CPU.
    let asleep = [
        switched(0, OURS, false, OTHER),
        switched(900_000, OTHER, false, OURS),
    ];
    assert_eq!(held_up(&asleep), []);
}

#[test]
fn a_slow_thread_of_the_system_holds_nobody_up() {
    let slow = [
        switched(0, 0, false, OURS),
        woken(1_000, ALSO_OURS),
        switched(900_000, OURS, false, ALSO_OURS),
        switched(901_000, ALSO_OURS, false, 0),
    ];
    assert_eq!(held_up(&slow), []);
}

#[test]
fn interrupts_hold_up_if_they_are_long_enough() {
    use TraceEventKind::{InterruptBegan, InterruptEnded};
    let interrupted = |length_ns: u64| {
        [
            switched(0, 0, false, OURS),
            event(40_000, InterruptBegan),
            event(41_000, InterruptBegan),
            event(42_000, InterruptEnded),
            event(40_000 + length_ns, InterruptEnded),
            switched(900_000, OURS, false, 0),
        ]
    };
    assert_eq!(held_up(&interrupted(30_000)), [(40_000, 70_000)]);
    assert_eq!(held_up(&interrupted(9_000)), []);
    assert_eq!(
        doings(&activity(&interrupted(30_000)), 10_000, 900_000),
        [
            (30_000, Doing::Running),
            (30_000, Doing::Interrupted { cpu: CPU }),
            (830_000, Doing::Running),
        ]
    );
}

/// An urgent thread that waits for a usual one waits for the kernel: the scheduler would have given it the CPU.
#[test]
fn the_priority_says_whether_a_thread_or_the_kernel_has_the_cpu() {
    let urgent = |at_ns, from, to, to_priority| {
        let kind = TraceEventKind::Switched {
            from,
            from_priority: 50,
            is_preempted: true,
            to,
            to_priority,
        };
        event(at_ns, kind)
    };
    let events = [
        switched(0, 0, false, OURS),
        urgent(10_000, OURS, OTHER, 20),
        urgent(30_000, OTHER, OTHER + 1, 120),
        switched(60_000, OTHER + 1, true, OURS),
        switched(100_000, OURS, false, 0),
    ];
    let preempted = Doing::Preempted {
        cpu: CPU,
        by: OTHER,
        by_priority: 20,
        priority: 50,
    };
    let kept = Doing::Kept {
        cpu: CPU,
        by: OTHER + 1,
        is_given: false,
    };
    assert_eq!(
        doings(&activity(&events), 0, 120_000),
        [
            (10_000, Doing::Running),
            (20_000, preempted),
            (30_000, kept),
            (40_000, Doing::Running),
            // Nothing is known after the last event.
            (20_000, Doing::Unknown),
        ]
    );
}

/// The fair server preempts a real-time thread for an ordinary one of the same system, and goes on with it when the next one is woken.
#[test]
fn the_kernel_gives_the_cpu_to_an_ordinary_thread_although_a_real_time_thread_can_run() {
    const ORDINARY: i32 = 9;
    const MS: u64 = 1_000_000;
    let events = [
        switched(0, 0, false, OURS),
        switched(10 * MS, OURS, true, ORDINARY),
        switched(60 * MS, ORDINARY, true, OURS),
        switched(70 * MS, OURS, false, ORDINARY),
        woken(80 * MS, OURS),
        switched(82 * MS, ORDINARY, true, OURS),
        // No longer than the kernel takes to switch.
        switched(90 * MS, OURS, true, ORDINARY),
        switched(90 * MS + 15_000, ORDINARY, true, OURS),
    ];
    let activity = activity(&events);
    let system = [OURS, ORDINARY].into();
    let turn = |begin_ns, end_ns, is_given| OrdinaryTurn {
        begin_ns,
        end_ns,
        is_given,
    };
    assert_eq!(
        activity.ordinary_turns(CPU, &system, 10_000),
        [
            turn(10 * MS, 60 * MS, true),
            turn(80 * MS, 82 * MS, false),
            turn(90 * MS, 90 * MS + 15_000, false),
        ]
    );
    // The ordinary thread is one of the system, and what these do is no other program's fault.
    assert_eq!(activity.held_up(CPU, &system, 10_000), []);
    let given = Doing::Kept {
        cpu: CPU,
        by: ORDINARY,
        is_given: true,
    };
    let doings = doings(&activity, 10 * MS, 60 * MS);
    assert_eq!(doings, [(50 * MS, given)]);
}

/// The first one was ready when the ordinary thread had the CPU, and moved to another CPU at once. The second one was woken then.
#[test]
fn two_short_waits_in_succession_are_no_cpu_that_was_given() {
    const MS: u64 = 1_000_000;
    let first = vec![
        switched(0, 0, false, OURS),
        switched(10 * MS, OURS, true, OTHER),
        woken(10 * MS + 500_000, ALSO_OURS),
        switched(12 * MS, OTHER, true, ALSO_OURS),
    ];
    let second = vec![
        switched(0, 0, false, 0),
        switched(10 * MS + 600_000, 0, false, OURS),
        switched(20 * MS, OURS, false, 0),
    ];
    let of_cpus = BTreeMap::from([(CPU, first), (CPU + 1, second)]);
    let activity = Activity::of_events(&of_cpus, &BTreeMap::new());
    let system = [OURS, ALSO_OURS].into();
    let turn = OrdinaryTurn {
        begin_ns: 10 * MS,
        end_ns: 12 * MS,
        is_given: false,
    };
    assert_eq!(activity.ordinary_turns(CPU, &system, 10_000), [turn]);
}

#[test]
fn a_thread_that_moves_to_another_cpu_waits_no_longer_on_the_first() {
    let first = vec![switched(0, 0, false, OTHER), woken(10_000, OURS)];
    let second = vec![
        switched(20_000, 0, false, OURS),
        switched(90_000, OURS, false, 0),
    ];
    let events = BTreeMap::from([(0, first), (1, second)]);
    let ends_ns = BTreeMap::from([(0, 100_000), (1, 100_000)]);
    let activity = Activity::of_events(&events, &ends_ns);
    assert_eq!(activity.held_up(0, &[OURS].into(), 1), [(10_000, 20_000)]);
}

#[test]
fn the_thread_that_ran_at_a_moment_is_the_one_whose_turn_is_closest() {
    let activity = activity(&[
        switched(0, 0, false, OURS),
        switched(100_000, OURS, false, ALSO_OURS),
        switched(200_000, ALSO_OURS, false, OTHER),
        switched(400_000, OTHER, false, 0),
    ]);
    let closest = |at_ns| activity.running_closest(at_ns, &[OURS, ALSO_OURS].into(), OURS);
    assert_eq!(closest(50_000), Some(OURS));
    // The record cannot tell: not the one that is `own`.
    assert_eq!(closest(99_000), Some(ALSO_OURS));
    assert_eq!(closest(101_000), Some(ALSO_OURS));
    assert_eq!(closest(96_000), Some(OURS));
    // The clocks are apart.
    assert_eq!(closest(220_000), Some(ALSO_OURS));
    assert_eq!(closest(300_000), None);
}

#[test]
fn a_thread_that_is_woken_in_the_microsecond_in_which_it_sleeps_is_ready() {
    // The wake-up comes from another CPU, and stands first in the record.
    let events = [
        switched(0, 0, false, OURS),
        woken(100_000, OURS),
        switched(100_000, OURS, false, OTHER),
        switched(400_000, OTHER, false, OURS),
    ];
    assert_eq!(held_up(&events), [(100_000, 400_000)]);
}

#[test]
fn page_faults_are_served_while_a_thread_runs_and_while_it_waits_for_a_page() {
    let fault = |at_ns| event(at_ns, TraceEventKind::PageFault { thread: OURS });
    let mut events = vec![switched(0, 0, false, OURS)];
    events.extend((0..11).map(|count| fault(100_000 + count * 1_000)));
    events.extend([
        switched(115_000, OURS, false, 0),
        woken(500_000, OURS),
        switched(500_000, 0, false, OURS),
        switched(700_000, OURS, false, 0),
        woken(800_000, OURS),
        switched(800_000, 0, false, OURS),
        switched(900_000, OURS, false, 0),
    ]);
    let activity = activity(&events);
    assert_eq!(
        doings(&activity, 0, 900_000),
        [
            (100_000, Doing::Running),
            (10_000, Doing::PageFault),
            (5_000, Doing::Running),
            (385_000, Doing::PageFault),
            (200_000, Doing::Running),
            (100_000, Doing::Asleep),
            (100_000, Doing::Running),
        ]
    );
    assert_eq!(activity.faults_within(OURS, 100_000, 105_000), 5);
}
