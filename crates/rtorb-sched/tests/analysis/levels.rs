//! Dispatch by deadline over few levels: its blocking bounds every simulation. And sets which only deadlines schedule.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rtorb_sched::edf::{DemandResult, demand, level_holders, response_times};
use rtorb_sched::model::{CheckOptions, CheckReport, Platform, Standing, System, check};
use rtorb_sched::{Response, SearchLimits, Task, Utilisation, audsley};

use crate::simulator::distributed::Chances;
use crate::simulator::{Arrivals, Policy, longest_responses};

/// Arrivals from random offsets, with random delays up to the jitter.
fn arrivals(tasks: &[Task], chances: &mut Chances) -> Arrivals {
    let offset = |task: &Task, chances: &mut Chances| chances.up_to(task.period_ns);
    let delays = |task: &Task, chances: &mut Chances| {
        (0..7).map(|_| chances.up_to(task.jitter_ns)).collect()
    };
    Arrivals {
        offsets_ns: tasks.iter().map(|task| offset(task, chances)).collect(),
        delays_ns: tasks.iter().map(|task| delays(task, chances)).collect(),
        blocked_ns: 0,
    }
}

fn draw(chances: &mut Chances) -> Vec<Task> {
    let count = 2 + chances.below(5);
    let task = |_| {
        let period_ns = 8 + chances.next() % 80;
        let worst_ns = (period_ns * (chances.next() % (1_200 / count as u64)) / 1_000).max(1);
        let task = Task::periodic(period_ns, worst_ns);
        let jitter_ns = [0, 0, 0, period_ns / 8][chances.below(4)];
        task.with_deadline((period_ns * (30 + chances.next() % 100) / 100).max(1))
            .with_jitter(jitter_ns)
    };
    (0..count).map(task).collect()
}

fn blocked(tasks: &[Task], levels: u32) -> Vec<Task> {
    let holders = level_holders(tasks, levels);
    let blocked = holders.iter().zip(tasks).map(|(holder, task)| {
        task.with_blocking(holder.map_or(0, |holder| tasks[holder].worst_ns))
    });
    blocked.collect()
}

#[test]
fn no_job_exceeds_its_bound_on_few_levels() {
    let mut chances = Chances(37);
    let (mut compared, mut exceeded_without) = (0, 0);
    for _ in 0..600 {
        let tasks = draw(&mut chances);
        if Utilisation::of(&tasks).exceeds_one() {
            continue;
        }
        let levels = 1 + chances.below(4);
        let bounds = response_times(&blocked(&tasks, levels as u32), SearchLimits::default());
        let unblocked = response_times(&tasks, SearchLimits::default());
        for _ in 0..6 {
            let arrivals = arrivals(&tasks, &mut chances);
            let reached = longest_responses(&tasks, Policy::Levels(levels), &arrivals, 2_000);
            for (index, &reached) in reached.iter().enumerate() {
                let Response::Bounded { ns } = bounds[index] else {
                    continue;
                };
                assert!(
                    reached <= ns,
                    "task {index} of {tasks:?} on {levels} levels: {reached} > {ns}"
                );
                compared += 1;
                exceeded_without += u32::from(
                    unblocked[index]
                        .bound_ns()
                        .is_some_and(|bound_ns| reached > bound_ns),
                );
            }
        }
    }
    assert!(compared > 5_000, "{compared} responses");
    // The blocking is needed: without it, responses exceed the bounds.
    assert!(exceeded_without > 50, "{exceeded_without} of {compared}");
}

#[test]
fn as_many_levels_as_deadlines_block_nothing() {
    let mut chances = Chances(38);
    for _ in 0..300 {
        let mut tasks = draw(&mut chances);
        tasks.iter_mut().for_each(|task| task.jitter_ns = 0);
        let mut deadlines: Vec<u64> = tasks.iter().map(|task| task.deadline_ns).collect();
        deadlines.sort_unstable();
        deadlines.dedup();
        let levels = u32::try_from(deadlines.len()).expect("few");
        assert!(level_holders(&tasks, levels).iter().all(Option::is_none));
        let arrivals = arrivals(&tasks, &mut chances);
        let some = longest_responses(&tasks, Policy::Levels(deadlines.len()), &arrivals, 500);
        let any = longest_responses(&tasks, Policy::EarliestDeadline, &arrivals, 500);
        assert_eq!(some, any, "{tasks:?}");
    }
}

/// Draws a set of at least 98 % utilisation which no fixed order of priorities schedules and earliest deadline first does.
fn only_by_deadline(chances: &mut Chances) -> Vec<Task> {
    loop {
        let count = 3 + chances.below(5);
        let mut tasks = Vec::new();
        let mut left = 990;
        for index in 0..count {
            // Small periods that share factors, so that the simulation covers a hyperperiod.
            let period_ns = [100, 120, 150, 200, 250, 300, 400, 600][chances.below(8)];
            let most = left / (count - index) as u64;
            let share = if index + 1 == count {
                left
            } else {
                most / 2 + chances.next() % most
            };
            left -= share.min(left);
            tasks.push(Task::periodic(
                period_ns,
                (period_ns * share / 1_000).max(1),
            ));
        }
        let used = Utilisation::of(&tasks).millionths();
        let by_deadline = demand(&tasks, SearchLimits::default()) == DemandResult::Meets;
        if (980_000..=1_000_000).contains(&used)
            && by_deadline
            && audsley(&tasks, SearchLimits::default()).is_none()
        {
            return tasks;
        }
    }
}

#[test]
fn five_hundred_sets_that_no_priorities_schedule_meet_their_deadlines_by_deadline() {
    let mut chances = Chances(98);
    for number in 0..500 {
        let tasks = only_by_deadline(&mut chances);
        let together = Arrivals {
            offsets_ns: vec![0; tasks.len()],
            delays_ns: vec![vec![0]; tasks.len()],
            blocked_ns: 0,
        };
        let misses = |policy: Policy<'_>| {
            let reached = longest_responses(&tasks, policy, &together, 6_000);
            reached
                .iter()
                .zip(&tasks)
                .any(|(reached, task)| *reached > task.deadline_ns)
        };
        assert!(!misses(Policy::EarliestDeadline), "set {number}: {tasks:?}");
        assert!(
            !misses(Policy::Levels(tasks.len())),
            "set {number}: {tasks:?}"
        );
        for levels in [
            rtorb_sched::levels::rate_monotonic(&tasks),
            (0..).take(tasks.len()).collect(),
            (0..)
                .take(tasks.len())
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect(),
        ] {
            assert!(
                misses(Policy::Fixed(&levels)),
                "set {number} by {levels:?}: {tasks:?}"
            );
        }
    }
}

/// Returns the report of `examples/model/only-edf.toml` on a platform that costs nothing, with these changes of its text.
fn only_edf(changes: &[(&str, &str)]) -> CheckReport {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/model");
    let text = std::fs::read_to_string(folder.join("only-edf.toml")).expect("the example");
    let text = changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let no_idl = |_: &[PathBuf]| Ok(BTreeMap::new());
    let system = System::parse(&text, &folder, &no_idl).expect("it is right");
    let platforms = vec![Platform::ideal(); system.nodes.len()];
    check(&system, &platforms, &CheckOptions::default()).expect("it composes")
}

#[test]
fn the_example_needs_deadlines() {
    let by_deadline = only_edf(&[]);
    assert_eq!(by_deadline.standing, Standing::Holds);
    assert_eq!(by_deadline.processors[0].utilisation_millionths, 980_000);
    let fixed = [("scheduling = \"edf\"", ""), ("levels = 4", "")];
    let by_priority = only_edf(&fixed);
    assert_eq!(by_priority.standing, Standing::Misses);
    let mut assumptions = by_priority.assumptions.iter();
    assert!(assumptions.any(|one| one.what.contains("no order of fixed priorities")));
}

#[test]
fn too_few_levels_add_the_job_on_the_last_one_to_the_bound() {
    let enough = only_edf(&[]);
    let few = only_edf(&[("levels = 4", "levels = 2")]);
    let bound = |report: &CheckReport, name: &str| {
        let found = report.behaviours.iter().find(|one| one.behaviour == name);
        found.expect("it is there").clone()
    };
    let position = bound(&few, "tool.position");
    let blocking: Vec<_> = position
        .shares
        .iter()
        .filter(|share| share.what.contains("on the last level"))
        .collect();
    assert_eq!(blocking.len(), 1, "{:?}", position.shares);
    assert_eq!(
        (blocking[0].what.as_str(), blocking[0].ns),
        ("tool.coolant on the last level", 4_800_000)
    );
    let sum: i64 = position.shares.iter().map(|share| share.ns).sum();
    assert_eq!(position.bound_ns.map(|ns| ns as i64), Some(sum));
    assert!(position.bound_ns > bound(&enough, "tool.position").bound_ns);
}

#[test]
fn an_enforced_budget_bounds_what_others_wait_for() {
    let longer = (
        "execution = \"3500us\"\n\n  [[component.behaviour]]\n  name = \"spindle\"",
        "execution = \"8ms\"\n\n  [[component.behaviour]]\n  name = \"spindle\"",
    );
    assert_eq!(only_edf(&[longer]).standing, Standing::Misses);
    let enforced = |policy: &str| {
        format!(
            "execution = \"8ms\"\n  enforcement = {{ policy = \"{policy}\", budget = \"3ms\", granularity = \"500us\" }}\n\n  [[component.behaviour]]\n  name = \"spindle\""
        )
    };
    let report = only_edf(&[(longer.0, &enforced("stop"))]);
    assert_eq!(report.standing, Standing::Holds);
    assert_eq!(report.processors[0].utilisation_millionths, 980_000);
    let mut assumptions = report.assumptions.iter();
    assert!(assumptions.any(|one| one.what.contains("500us after its budget of 3ms")));
    // A demoted job keeps its level, so that no job which waits begins before its end.
    let report = only_edf(&[(longer.0, &enforced("demote"))]);
    assert_eq!(report.standing, Standing::Misses);
    let mut assumptions = report.assumptions.iter();
    assert!(assumptions.any(|one| one.what.contains("write policy = \"stop\"")));
    let counted = longer
        .1
        .replace("8ms\"", "8ms\"\n  enforcement = { policy = \"count\" }");
    assert_eq!(only_edf(&[(longer.0, &counted)]).standing, Standing::Misses);
}

#[test]
fn a_demotion_bounds_what_others_wait_for_if_the_thread_serves_nothing_else() {
    let report = |policy: &str, calls: &str| {
        let text = format!(
            r#"
name = "demoted"

[[node]]
name = "board"

[[component]]
name = "long"
node = "board"

  [[component.behaviour]]
  name = "work"
  {calls}
  execution = "800ms"
  priority = 20
  enforcement = {{ policy = "{policy}", budget = "4ms", granularity = "1ms" }}

[[component]]
name = "near"
node = "board"

  [[component.behaviour]]
  name = "step"
  period = "10ms"
  execution = "1ms"
  priority = 10
  {}
"#,
            if calls.is_empty() {
                "calls = [{ to = \"long.work\", way = \"one-way\" }]"
            } else {
                ""
            }
        );
        let no_idl = |_: &[PathBuf]| Ok(BTreeMap::new());
        let system = System::parse(&text, Path::new("."), &no_idl).expect("it is right");
        let platforms = vec![Platform::ideal(); system.nodes.len()];
        check(&system, &platforms, &CheckOptions::default()).expect("it composes")
    };
    let own_thread = "minimum_gap = \"1s\"";
    for (policy, calls, expected) in [
        ("count", own_thread, Standing::Misses),
        ("demote", own_thread, Standing::Holds),
        ("stop", own_thread, Standing::Holds),
        // A lane's thread serves other calls.
        ("demote", "", Standing::Misses),
        ("stop", "", Standing::Holds),
    ] {
        let standing = report(policy, calls).standing;
        assert_eq!(standing, expected, "{policy} {calls}");
    }
}

#[test]
fn an_offset_keeps_two_behaviours_apart() {
    let high = |offset: &str| {
        only_edf(&[
            ("scheduling = \"edf\"", ""),
            ("levels = 4", ""),
            ("period = \"14ms\"", &format!("period = \"10ms\"{offset}")),
            (
                "period = \"10ms\"\n  execution = \"3500us\"\n\n  [[component.behaviour]]\n  name = \"spindle\"",
                "period = \"10ms\"\n  offset = \"0ms\"\n  deadline = \"9ms\"\n  execution = \"3500us\"\n\n  [[component.behaviour]]\n  name = \"spindle\"",
            ),
            ("period = \"24ms\"", "period = \"250ms\""),
            ("period = \"40ms\"", "period = \"400ms\""),
        ])
    };
    let bounds = |report: CheckReport| -> Vec<Option<u64>> {
        report.behaviours.iter().map(|one| one.bound_ns).collect()
    };
    assert_eq!(bounds(high(""))[..2], [Some(3_500_000), Some(7_000_000)]);
    let apart = bounds(high("\n  offset = \"5ms\""));
    assert_eq!(apart[..2], [Some(3_500_000), Some(3_500_000)]);
    // Half of it overlaps.
    let partly = bounds(high("\n  offset = \"2ms\""));
    assert_eq!(partly[..2], [Some(3_500_000), Some(5_000_000)]);
}

#[test]
fn a_burst_counts_all_of_its_jobs() {
    let burst = |text: &str| {
        let report = only_edf(&[
            ("scheduling = \"edf\"", ""),
            ("levels = 4", ""),
            ("period = \"10ms\"", text),
            ("execution = \"7200us\"", "execution = \"1ms\""),
            ("period = \"14ms\"", "period = \"140ms\""),
            ("period = \"24ms\"", "period = \"250ms\""),
        ]);
        report.behaviours[0].bound_ns
    };
    // Three jobs, 1 ms apart: the last ends 10.5 ms after the first arrived, and arrived 2 ms after it.
    let dense =
        "minimum_gap = \"1ms\"\n  burst = { jobs = 3, window = \"100ms\" }\n  deadline = \"9ms\"";
    assert_eq!(burst(dense), Some(8_500_000));
    let spread =
        "minimum_gap = \"4ms\"\n  burst = { jobs = 3, window = \"100ms\" }\n  deadline = \"9ms\"";
    assert_eq!(burst(spread), Some(3_500_000));
}
