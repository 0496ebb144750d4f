use rtorb_host::kernel_trace::{TraceEvent, TraceEventKind};

use super::*;
use crate::model::tests::by_hand;
use crate::model::watcher::Watched;
use crate::processes::gaps::Gap;

const ALONE: &str = r#"
name = "alone"
[[node]]
name = "here"
[[component]]
name = "only"
  [[component.behaviour]]
  name = "work"
  period = "10ms"
  execution = "1ms"
  deadline = "3ms"
  priority = 40
"#;

const MS: u64 = 1_000_000;
const START_NS: u64 = 1_000 * MS;
const BOUND_NS: u64 = 1_200_000;

/// A hundred jobs of 1 ms, one of them longer by so much, of which its thread saw an interruption of `seen_ns`.
fn evidence(longer_ns: u64, seen_ns: u64) -> Evidence {
    let mut evidence = Evidence {
        start_ns: START_NS,
        end_ns: START_NS + 1_000 * MS,
        ..Evidence::default()
    };
    let mut watched = Watched {
        begin_ns: START_NS - MS,
        end_ns: START_NS + 2_000 * MS,
        ..Watched::default()
    };
    for number in 0..100 {
        let release_ns = START_NS + u64::from(number) * 10 * MS;
        let more_ns = if number == 50 { longer_ns } else { 0 };
        let begin_ns = release_ns + 2_000;
        let end_ns = begin_ns + MS + more_ns;
        evidence.jobs.push(Job {
            place: 0,
            number,
            release_ns,
            begin_ns,
            own_end_ns: end_ns,
            end_ns,
        });
        if number == 50 && seen_ns > 0 {
            evidence.gaps.push(JobGap {
                place: 0,
                number,
                begin_ns: begin_ns + 100_000,
                length_ns: seen_ns,
                switched: false,
            });
        }
        watched.gaps.push(Gap {
            begin_ns: release_ns,
            length_ns: end_ns + 1_000 - release_ns,
            switched: true,
        });
    }
    evidence.arrivals.insert(0, 100);
    evidence.watched.insert(1, watched);
    evidence
}

fn judged(evidence: &Evidence) -> Judgement {
    let system = by_hand::system(ALONE);
    let checked = by_hand::checked(&system, Some(BOUND_NS));
    let plan = Plan::of(&system, &checked, (1_000 * MS, 1)).unwrap();
    let places = Places {
        of: [((0, 0), 1)].into(),
    };
    let ran = Ran {
        system: &system,
        plan: &plan,
        checked: &checked,
        places: &places,
    };
    judge(ran, evidence, 10_000)
}

#[test]
fn what_is_within_its_bound_is() {
    let judgement = judged(&evidence(0, 0));
    let [one] = &judgement.behaviours[..] else {
        panic!("one behaviour")
    };
    assert_eq!(one.standing, ObservedStanding::Within);
    assert_eq!((one.count, one.misses, one.quiet_count), (100, 0, 100));
    assert_eq!(one.worst_ns, Some(MS + 2_000));
    assert_eq!(one.ratio, Some(BOUND_NS as f64 / (MS + 2_000) as f64));
    assert_eq!(judgement.cpus[0].busy_ns, Some(100 * (MS + 3_000)));
    assert!(one.words.contains("within the bound"), "{}", one.words);
}

#[test]
fn an_interruption_that_is_long_enough_explains() {
    let judgement = judged(&evidence(5 * MS, 5 * MS));
    let [one] = &judgement.behaviours[..] else {
        panic!("one behaviour")
    };
    assert_eq!(one.standing, ObservedStanding::ExplainedByTheHost);
    assert_eq!((one.above, one.unexplained, one.misses), (1, 0, 1));
    // It is the only one that was not quiet.
    assert_eq!(
        (one.quiet_count, one.quiet_worst_ns),
        (99, Some(MS + 2_000))
    );
    let worst = &one.outliers[0];
    assert_eq!((worst.sequence, worst.interrupted_ns), (50, 5 * MS));
    assert_eq!(worst.excess_ns, 6 * MS + 2_000 - BOUND_NS);
    assert_eq!(judgement.interruptions.len(), 1);
    assert!(one.words.contains("the host explains"), "{}", one.words);
}

#[test]
fn one_that_is_too_short_does_not() {
    let judgement = judged(&evidence(5 * MS, 4 * MS));
    let [one] = &judgement.behaviours[..] else {
        panic!("one behaviour")
    };
    // 4.8 ms too long, and 4 ms are explained.
    assert_eq!(one.standing, ObservedStanding::Unexplained);
    assert_eq!((one.above, one.unexplained), (1, 1));
    assert_eq!(judgement.standing, ObservedStanding::Unexplained);
    assert!(
        one.words.contains("interruptions do not explain"),
        "{}",
        one.words
    );
}

#[test]
fn one_before_the_cpu_was_idle_does_not() {
    let mut evidence = evidence(5 * MS, 0);
    // While the job before it ran, long over.
    evidence.gaps.push(JobGap {
        place: 0,
        number: 49,
        begin_ns: evidence.jobs[49].begin_ns + 1_000,
        length_ns: 900_000,
        switched: false,
    });
    let judgement = judged(&evidence);
    let one = &judgement.behaviours[0];
    assert_eq!((one.unexplained, one.outliers[0].interrupted_ns), (1, 0));
    assert_eq!(one.quiet_count, 99);
}

const OF_SYSTEM: i32 = 7;
const OF_OTHERS: i32 = 90;

/// A hundred jobs, of which five begin 0.6 ms late: on the way from the release to their code, something takes its time.
fn slow_in_five_of_a_hundred() -> Evidence {
    let mut evidence = evidence(0, 0);
    evidence.threads.insert(OF_SYSTEM);
    let late = evidence.jobs.iter_mut().step_by(20);
    for job in late {
        for moment_ns in [&mut job.begin_ns, &mut job.own_end_ns, &mut job.end_ns] {
            *moment_ns += 600_000;
        }
    }
    let jobs = evidence.jobs.clone();
    let watched = evidence.watched.get_mut(&1).expect("a CPU");
    for (gap, job) in watched.gaps.iter_mut().zip(&jobs) {
        gap.length_ns = job.end_ns + 1_000 - job.release_ns;
    }
    evidence
}

/// The kernel's record of these jobs, whose thread is woken at its release and has the CPU `late_ns` later, in the late ones.
fn record(evidence: &Evidence, late_ns: u64) -> Vec<TraceEvent> {
    let mut events = Vec::new();
    for job in &evidence.jobs {
        let is_late = job.begin_ns - job.release_ns > 100_000;
        let began_ns = job.release_ns + if is_late { late_ns } else { 1_000 };
        let switched = |from, to| TraceEventKind::Switched {
            from,
            from_priority: 49,
            is_preempted: false,
            to,
            to_priority: 49,
        };
        let woken = TraceEventKind::Woken {
            thread: OF_SYSTEM,
            priority: 49,
        };
        for (at_ns, kind) in [
            (job.release_ns - 1_000, switched(0, OF_OTHERS)),
            (job.release_ns, woken),
            (began_ns, switched(OF_OTHERS, OF_SYSTEM)),
            (job.end_ns, switched(OF_SYSTEM, 0)),
        ] {
            events.push(TraceEvent { at_ns, kind });
        }
    }
    events
}

/// An ORB that is slow in one of twenty jobs is longer than nine of ten times. That is no excuse.
#[test]
fn what_is_slow_now_and_then_does_not_explain_itself() {
    let judged_with = |events: Option<u64>| {
        let mut evidence = slow_in_five_of_a_hundred();
        let events = events.map(|late_ns| record(&evidence, late_ns));
        evidence.events.extend(events.map(|events| (1, events)));
        judged(&evidence).behaviours.remove(0)
    };
    let without_record = judged_with(None);
    assert_eq!(without_record.standing, ObservedStanding::Unexplained);
    assert_eq!((without_record.above, without_record.unexplained), (5, 5));
    // By the kernel's record the thread had the CPU at once: what took so long is the ORB.
    let had_the_cpu = judged_with(Some(1_000));
    assert_eq!((had_the_cpu.above, had_the_cpu.unexplained), (5, 5));
}

#[test]
fn what_the_kernel_kept_from_the_cpu_is_explained() {
    let mut evidence = slow_in_five_of_a_hundred();
    let events = record(&evidence, 600_000);
    evidence.events.insert(1, events);
    let one = judged(&evidence).behaviours.remove(0);
    assert_eq!(one.standing, ObservedStanding::ExplainedByTheHost);
    assert_eq!((one.above, one.unexplained, one.quiet_count), (5, 0, 95));
    let interruption = &one.outliers[0].interruptions[0];
    assert!(interruption.traced && interruption.length_ns >= 500_000);
}

/// The thread of job 50 is preempted before its code begins, by the watcher, in the time of the fair server.
#[test]
fn what_the_kernel_gives_to_ordinary_threads_is_explained_and_counted() {
    const WATCHER: i32 = 91;
    let mut evidence = evidence(0, 0);
    evidence.threads.insert(OF_SYSTEM);
    let job = &mut evidence.jobs[50];
    for moment_ns in [&mut job.begin_ns, &mut job.own_end_ns, &mut job.end_ns] {
        *moment_ns += 5 * MS;
    }
    let (release_ns, end_ns) = (job.release_ns, job.end_ns);
    let watched = evidence.watched.get_mut(&1).expect("a CPU");
    let gap = |begin_ns, end_ns| Gap {
        begin_ns,
        length_ns: end_ns - begin_ns,
        switched: true,
    };
    let before_end_ns = release_ns + 5 * MS - 500;
    let gaps = [
        gap(release_ns, release_ns + 1_500),
        gap(before_end_ns, end_ns + 1_000),
    ];
    watched.gaps.splice(50..51, gaps);
    let unexplained = judged(&evidence).behaviours.remove(0);
    assert_eq!((unexplained.above, unexplained.unexplained), (1, 1));
    let switched = |from, from_priority, is_preempted, to, to_priority| TraceEventKind::Switched {
        from,
        from_priority,
        is_preempted,
        to,
        to_priority,
    };
    let events = [
        (release_ns, switched(0, 120, false, OF_SYSTEM, 49)),
        (
            release_ns + 1_000,
            switched(OF_SYSTEM, 49, true, WATCHER, 120),
        ),
        (
            release_ns + 5 * MS,
            switched(WATCHER, 120, true, OF_SYSTEM, 49),
        ),
        (end_ns, switched(OF_SYSTEM, 49, false, 0, 120)),
    ];
    let events = events.map(|(at_ns, kind)| TraceEvent { at_ns, kind });
    evidence.events.insert(1, events.to_vec());
    let judgement = judged(&evidence);
    let one = &judgement.behaviours[0];
    assert_eq!(one.standing, ObservedStanding::ExplainedByTheHost);
    assert_eq!((one.above, one.unexplained), (1, 0));
    let ordinary = judgement.cpus[0].ordinary;
    assert_eq!((ordinary.count, ordinary.total_ns), (1, 5 * MS - 1_000));
}

#[test]
fn what_was_never_done_is_a_miss() {
    let mut evidence = evidence(0, 0);
    evidence.jobs.truncate(90);
    let one = judged(&evidence).behaviours.remove(0);
    assert_eq!((one.count, one.skipped, one.misses), (90, 10, 10));
    assert!(one.words.contains("10 of 100 jobs missed"), "{}", one.words);
}

#[test]
fn without_a_job_nothing_was_seen() {
    let nothing = Evidence {
        arrivals: [(0, 100)].into(),
        jobs: Vec::new(),
        ..evidence(0, 0)
    };
    let one = judged(&nothing).behaviours.remove(0);
    assert_eq!(one.standing, ObservedStanding::Unseen);
    assert_eq!((one.misses, one.worst_ns, one.ratio), (100, None, None));
}

#[test]
fn a_run_without_an_arrival_is_not_kept() {
    let nothing = Evidence {
        arrivals: BTreeMap::new(),
        jobs: Vec::new(),
        ..evidence(0, 0)
    };
    let judgement = judged(&nothing);
    let one = &judgement.behaviours[0];
    assert_eq!((one.misses, one.standing), (0, ObservedStanding::Unseen));
    let verdict = judgement.verdict();
    assert!(verdict.contains("of some no job was done"), "{verdict}");
    assert!(!judgement.is_kept());
}

#[test]
fn the_way_of_the_robot_arm_is_over_both_nodes() {
    let system = by_hand::example("robot-arm.toml");
    let checked = by_hand::checked(&system, None);
    let plan = Plan::of(&system, &checked, (MS, 1)).unwrap();
    let places = Places {
        of: [((0, 0), 5), ((1, 0), 4)].into(),
    };
    let ran = Ran {
        system: &system,
        plan: &plan,
        checked: &checked,
        places: &places,
    };
    let of = |name: &str| {
        let behaviour = system.behaviour(name).unwrap();
        let place = &plan.tree.places_of(behaviour)[0];
        ways(ran)[place.place as usize].clone()
    };
    assert_eq!(of("joints.shoulder"), [5].into());
    assert_eq!(of("sensors.sense"), [5].into());
    assert_eq!(of("planner.plan"), [4, 5].into());
    // It waits for the arm's answer.
    assert_eq!(of("supervisor.watch"), [4, 5].into());
    assert_eq!(feeding(ran)[&5], [4, 5].into());
}
