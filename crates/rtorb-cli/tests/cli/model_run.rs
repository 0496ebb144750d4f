//! A system that was analysed, run for real: every component is a process of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::experiment::{Context, Effort, Progress};
use rtorb_lab::model::{self, RunOptions};
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::judgement::{Judgement, Observed};
use rtorb_sched::model::{CheckOptions, CheckReport, Platform, Standing, System, check};

/// One run at a time: they have the CPU to themselves.
pub(crate) static ALONE: Mutex<()> = Mutex::new(());

struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _steps: usize) {}
    fn step(&mut self, _next: &str) {}
    fn note(&mut self, _text: &str) {}
}

/// All ways to call and to be kept waiting, on one CPU; a hundredth of it is used.
const SMALL: &str = r#"
name = "small"

[[node]]
name = "plant"

[[channel]]
name = "news"

[[component]]
name = "first"

  [[component.resource]]
  name = "log"
  mutex = "inheritance"

  [[component.resource]]
  name = "table"
  mutex = "ceiling"

  [[component.behaviour]]
  name = "clock"
  period = "20ms"
  execution = "100us"
  priority = 40
  sections = [{ resource = "log", length = "20us" }, { resource = "table", length = "20us" }]
  calls = [
    { to = "second.answer", payload = 256, count = 2 },
    { to = "second.store", way = "one-way" },
    { to = ["second.show", "first.hear"], way = "event", channel = "news", payload = 64 },
  ]

  [[component.behaviour]]
  name = "hear"
  execution = "50us"
  priority = 20

  [[component.behaviour]]
  name = "alarm"
  minimum_gap = "30ms"
  execution = { least = "50us", most = "200us" }
  priority = 30
  sections = [{ resource = "table", length = "20us" }, { resource = "log", length = "20us" }]
  calls = [{ to = "second.answer" }]

[[component]]
name = "second"

  [[component.behaviour]]
  name = "answer"
  execution = "50us"

  [[component.behaviour]]
  name = "store"
  execution = { histogram = [{ up_to = "50us", count = 9 }, { up_to = "100us", count = 1 }] }
  priority = 25

  [[component.behaviour]]
  name = "show"
  execution = "50us"
  priority = 22

[[chain]]
name = "clock to show"
through = ["first.clock", "second.show"]
deadline = "15ms"
"#;

/// Far more than a CPU has.
const OVERLOADED: &str = r#"
name = "too-much"

[[node]]
name = "plant"

[[component]]
name = "only"

  [[component.behaviour]]
  name = "urgent"
  period = "20ms"
  execution = "12ms"
  priority = 40

  [[component.behaviour]]
  name = "late"
  period = "30ms"
  execution = "15ms"
  priority = 30
"#;

/// At 20 ms, `quick` has a later deadline than `slow`, which executes.
const BY_DEADLINE: &str = r#"
name = "by-deadline"

[[node]]
name = "plant"
scheduling = "edf"

[[component]]
name = "only"

  [[component.resource]]
  name = "log"
  mutex = "inheritance"

  [[component.behaviour]]
  name = "quick"
  period = "10ms"
  execution = "2ms"
  sections = [{ resource = "log", length = "20us" }]

  [[component.behaviour]]
  name = "slow"
  period = "40ms"
  deadline = "25ms"
  execution = "18ms"
  sections = [{ resource = "log", length = "20us" }]
"#;

/// A CPU by deadline, called by one with priorities and calling back. Deadlines are far, so that a busy host keeps them.
const MIXED: &str = r#"
name = "mixed"

[[node]]
name = "plain"

[[node]]
name = "dynamic"
scheduling = "edf"

[[link]]
between = ["plain", "dynamic"]
latency = "100us"

[[component]]
name = "one"
node = "plain"

  [[component.behaviour]]
  name = "begin"
  period = "100ms"
  execution = "200us"
  calls = [{ to = "other.answer", count = 2 }, { to = "other.hear", way = "one-way" }]

  [[component.behaviour]]
  name = "note"
  execution = "100us"

[[component]]
name = "other"
node = "dynamic"

  [[component.behaviour]]
  name = "tick"
  period = "50ms"
  execution = "300us"
  calls = [
    { to = "other.part", count = 3 },
    { to = "one.note", way = "one-way" },
  ]

  [[component.behaviour]]
  name = "part"
  execution = "100us"

  [[component.behaviour]]
  name = "answer"
  execution = "100us"

  [[component.behaviour]]
  name = "hear"
  execution = "100us"
  deadline = "90ms"
"#;

/// Two components of a CPU by deadline, one of which gets events from another CPU, and a oneway from the other. Each behaviour of a
/// shorter deadline comes while one of a longer deadline executes.
const EVENTS: &str = r#"
name = "events"

[[node]]
name = "plain"

[[node]]
name = "dynamic"
scheduling = "edf"

[[link]]
between = ["plain", "dynamic"]
latency = "100us"

[[channel]]
name = "news"
node = "plain"

[[component]]
name = "one"
node = "plain"

  [[component.behaviour]]
  name = "begin"
  period = "300ms"
  execution = "5ms"
  calls = [
    { to = "other.early", way = "event", channel = "news" },
    { to = "third.late", way = "event", channel = "news", payload = 64 },
  ]

[[component]]
name = "other"
node = "dynamic"

  [[component.behaviour]]
  name = "slow"
  period = "300ms"
  deadline = "250ms"
  execution = "80ms"
  calls = [{ to = "third.part", way = "one-way", payload = 64 }]

  [[component.behaviour]]
  name = "early"
  execution = "15ms"
  deadline = "200ms"

[[component]]
name = "third"
node = "dynamic"

  [[component.behaviour]]
  name = "part"
  execution = "5ms"
  deadline = "240ms"

  [[component.behaviour]]
  name = "late"
  execution = "15ms"
  deadline = "280ms"
"#;

/// A CPU by deadline that sends events: to another CPU, and by that to itself, where they are due later than the job that sends them.
const SENT: &str = r#"
name = "sent"

[[node]]
name = "plain"

[[node]]
name = "dynamic"
scheduling = "edf"

[[link]]
between = ["plain", "dynamic"]
latency = "100us"

[[channel]]
name = "news"
node = "plain"

[[component]]
name = "one"
node = "plain"

  [[component.behaviour]]
  name = "note"
  execution = "5ms"

[[component]]
name = "other"
node = "dynamic"

  [[component.behaviour]]
  name = "tick"
  period = "300ms"
  deadline = "200ms"
  execution = "20ms"
  calls = [{ to = "other.part", count = 2 }]

  [[component.behaviour]]
  name = "slow"
  period = "300ms"
  deadline = "240ms"
  execution = "30ms"
  calls = [{ to = "other.part" }]

  [[component.behaviour]]
  name = "part"
  execution = "1ms"
  calls = [{ to = ["one.note", "other.later"], way = "event", channel = "news", payload = 64 }]

  [[component.behaviour]]
  name = "later"
  execution = "1ms"
  deadline = "280ms"
"#;

/// A job by deadline waits for another CPU. Meanwhile one with a later deadline waits too.
const WAITS: &str = r#"
name = "waits"

[[node]]
name = "plain"

[[node]]
name = "dynamic"
scheduling = "edf"

[[link]]
between = ["plain", "dynamic"]
latency = "100us"

[[component]]
name = "one"
node = "plain"

  [[component.behaviour]]
  name = "serve"
  execution = "10ms"

[[component]]
name = "other"
node = "dynamic"

  [[component.behaviour]]
  name = "tick"
  period = "300ms"
  deadline = "200ms"
  execution = "5ms"
  calls = [{ to = "one.serve", count = 2 }, { to = "other.then" }]

  [[component.behaviour]]
  name = "then"
  execution = "5ms"

  [[component.behaviour]]
  name = "slow"
  period = "300ms"
  deadline = "280ms"
  execution = "5ms"
  calls = [{ to = "one.serve" }]
"#;

fn system(text: &str) -> System {
    let no_idl = |_: &[std::path::PathBuf]| Ok(BTreeMap::new());
    System::parse(text, Path::new(""), &no_idl).unwrap()
}

/// As far as it is known without a platform: priorities and lanes are what is of interest here.
fn checked(system: &System) -> CheckReport {
    let ideal: Vec<Platform> = system.nodes.iter().map(|_| Platform::ideal()).collect();
    check(system, &ideal, &CheckOptions::default()).unwrap()
}

fn context() -> Context {
    let executable = assert_cmd::cargo::cargo_bin!("rtorb").to_owned();
    Context::new(Effort::Quick, executable, Interrupt::new()).unwrap()
}

fn seconds(seconds: u64) -> RunOptions {
    RunOptions {
        duration: Duration::from_secs(seconds),
        ..RunOptions::default()
    }
}

fn of<'a>(judgement: &'a Judgement, behaviour: &str, root: &str) -> &'a Observed {
    let mut all = judgement.behaviours.iter();
    let found = all.find(|one| one.behaviour == behaviour && one.root == root);
    found.unwrap_or_else(|| panic!("{behaviour} from {root}"))
}

#[test]
fn a_small_system_runs_and_every_job_is_accounted_for() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context();
    if !context.host.fifo_granted {
        eprintln!("not run: the host grants no SCHED_FIFO");
        return;
    }
    let system = system(SMALL);
    let checked = checked(&system);
    assert_eq!(checked.standing, Standing::Holds);
    let results = model::run(&system, &checked, &seconds(1), &context, &mut Silent).unwrap();
    assert_eq!(results.experiment, "model/small");
    let judgement = results.judgement.as_ref().unwrap();
    // The host may have no record of what its kernel did.
    let mut remarks = judgement.remarks.iter();
    let remark = remarks.find(|one| !one.contains("kernel's"));
    assert_eq!(remark, None);
    // A host that stood still skips releases, which are counted; every job of a release that was not skipped is there.
    let clock = of(judgement, "first.clock", "first.clock");
    let released = clock.count;
    assert_eq!(released + clock.skipped, 50, "{clock:?}");
    for (behaviour, times) in [
        ("first.clock", 1),
        ("second.answer", 2),
        ("second.store", 1),
        ("second.show", 1),
        ("first.hear", 1),
    ] {
        let seen = of(judgement, behaviour, "first.clock");
        assert_eq!(seen.count, released * times, "{seen:?}");
        // Its own 100 us, those of the answers, and all before it.
        let least_ns = if behaviour == "second.answer" {
            150_000
        } else {
            200_000
        };
        assert!(seen.worst_ns > Some(least_ns), "{seen:?}");
        assert!(seen.bound_ns.is_some(), "{seen:?}");
    }
    let alarm = of(judgement, "first.alarm", "first.alarm");
    let alarms = alarm.count;
    assert!((22..=34).contains(&(alarms + alarm.skipped)), "{alarm:?}");
    assert_eq!(of(judgement, "second.answer", "first.alarm").count, alarms);
    let [chain] = &judgement.chains[..] else {
        panic!("one chain")
    };
    let show = of(judgement, "second.show", "first.clock");
    assert_eq!((chain.count, chain.worst_ns), (released, show.worst_ns));
    assert!(results.is_real_time(), "{:?}", results.scheduling);
}

#[test]
fn what_is_overloaded_is_refused_and_really_misses_when_it_is_forced() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context();
    if !context.host.fifo_granted {
        eprintln!("not run: the host grants no SCHED_FIFO");
        return;
    }
    let system = system(OVERLOADED);
    let checked = checked(&system);
    assert_eq!(checked.first_miss.as_deref(), Some("only.late"));
    let refused = model::run(&system, &checked, &seconds(1), &context, &mut Silent).unwrap_err();
    assert!(matches!(refused, LabError::Model { .. }), "{refused}");
    assert!(refused.to_string().contains("only.late"), "{refused}");
    let forced = RunOptions {
        force: true,
        ..seconds(1)
    };
    let results = model::run(&system, &checked, &forced, &context, &mut Silent).unwrap();
    let judgement = results.judgement.unwrap();
    let late = of(&judgement, "only.late", "only.late");
    // In 60 ms it gets 24 ms of the 30 ms that it needs: three of four jobs are late after the first few.
    assert!(late.misses > 10 && late.skipped > 0, "{late:?}");
    assert_eq!(late.count + late.skipped, 34);
    assert!(!judgement.promised);
    let causes = judgement.causes.join(" ");
    let causes_named = ["fault", "explains it", "ordinary threads"];
    assert!(
        causes_named.iter().any(|it| causes.contains(it)),
        "{causes}"
    );
    assert!(judgement.next.iter().any(|one| one.contains("--runs")));
}

#[test]
fn jobs_are_served_in_the_order_of_their_deadlines_and_accounted_for() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context();
    if !context.host.fifo_granted {
        eprintln!("not run: the host grants no SCHED_FIFO");
        return;
    }
    for locking in ["inheritance", "ceiling"] {
        let text = BY_DEADLINE.replace("\"inheritance\"", &format!("\"{locking}\""));
        run_by_deadline(&system(&text), ["only.quick", "only.slow"], &context);
    }
}

#[test]
fn components_of_a_cpu_by_deadline_are_served_in_one_order() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context();
    if !context.host.fifo_granted {
        eprintln!("not run: the host grants no SCHED_FIFO");
        return;
    }
    let section = "  sections = [{ resource = \"log\", length = \"20us\" }]\n";
    let text = BY_DEADLINE.replace(section, "").replace(
        "  [[component.behaviour]]\n  name = \"slow\"",
        "[[component]]\nname = \"other\"\n\n  [[component.behaviour]]\n  name = \"slow\"",
    );
    run_by_deadline(&system(&text), ["only.quick", "other.slow"], &context);
}

fn run_by_deadline(system: &System, names: [&str; 2], context: &Context) {
    let checked = checked(system);
    assert_eq!(checked.standing, Standing::Holds);
    let results = model::run(system, &checked, &seconds(2), context, &mut Silent).unwrap();
    let judgement = results.judgement.as_ref().unwrap();
    // A noisy host interrupts work more often than there is room for, or has no record; no job is missing for that.
    let mut remarks = judgement.remarks.iter();
    let is_noise = |one: &String| one.contains(" gaps") || one.contains("kernel's");
    assert!(remarks.all(is_noise), "{judgement:?}");
    let [quick, slow] = names.map(|name| of(judgement, name, name));
    // A host that stood still skips releases, which are counted.
    assert_eq!(quick.count + quick.skipped, 200, "{quick:?}");
    assert_eq!(slow.count + slow.skipped, 50, "{slow:?}");
    assert_eq!((quick.priority, slow.priority), (None, None));
    assert!(slow.count > 0, "{slow:?}");
    // 2 ms of its own, and what is left of the job with the earlier deadline: by priority it would not wait.
    assert!(quick.worst_ns > Some(3_500_000), "{quick:?}");
    // Two jobs preempt it.
    assert!(slow.worst_ns > Some(21_500_000), "{slow:?}");
    assert!(results.is_real_time(), "{:?}", results.scheduling);
}

#[test]
fn priorities_and_deadlines_call_each_other() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context();
    if !context.host.fifo_granted {
        eprintln!("not run: the host grants no SCHED_FIFO");
        return;
    }
    let system = system(MIXED);
    let checked = checked(&system);
    assert_eq!(checked.standing, Standing::Holds);
    let options = RunOptions {
        share: true,
        ..seconds(2)
    };
    let results = model::run(&system, &checked, &options, &context, &mut Silent).unwrap();
    let judgement = results.judgement.as_ref().unwrap();
    // A host that stood still skips releases and lets calls and jobs expire, which is counted. Any other failure is none of the host.
    let failed = |one: &&String| one.contains("failed") && !one.contains("TIMEOUT");
    assert_eq!(judgement.remarks.iter().find(failed), None);
    for (behaviour, root, times, arrivals) in [
        ("one.begin", "one.begin", 1, 20),
        ("other.answer", "one.begin", 2, 20),
        ("other.hear", "one.begin", 1, 20),
        ("other.tick", "other.tick", 1, 40),
        ("other.part", "other.tick", 3, 40),
        ("one.note", "other.tick", 1, 40),
    ] {
        let seen = of(judgement, behaviour, root);
        assert!(seen.count > 0, "{seen:?}");
        assert_eq!(seen.count + seen.skipped, times * arrivals, "{seen:?}");
        // Few of the jobs that have begun have expired, or their calls.
        let called = times * of(judgement, root, root).count;
        assert!(
            4 * seen.count.abs_diff(called) <= times * arrivals,
            "{seen:?}"
        );
        // Its own 100 us and those of its caller, at least.
        assert!(seen.worst_ns > Some(300_000), "{seen:?}");
        assert!(seen.bound_ns.is_some(), "{seen:?}");
    }
    assert!(results.is_real_time(), "{:?}", results.scheduling);
}

#[test]
fn events_and_oneways_are_served_by_their_deadlines() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context();
    if !context.host.fifo_granted {
        eprintln!("not run: the host grants no SCHED_FIFO");
        return;
    }
    let system = system(EVENTS);
    let checked = checked(&system);
    assert_eq!(checked.standing, Standing::Holds);
    let options = RunOptions {
        share: true,
        ..seconds(3)
    };
    let results = model::run(&system, &checked, &options, &context, &mut Silent).unwrap();
    let judgement = results.judgement.as_ref().unwrap();
    let failed = |one: &&String| one.contains("failed");
    assert_eq!(judgement.remarks.iter().find(failed), None);
    for (behaviour, root) in [
        ("one.begin", "one.begin"),
        ("other.slow", "other.slow"),
        ("other.early", "one.begin"),
        ("third.late", "one.begin"),
        ("third.part", "other.slow"),
    ] {
        let seen = of(judgement, behaviour, root);
        // A host that stood still skips releases and lets jobs expire, which is counted.
        assert_eq!(seen.count + seen.skipped, 10, "{seen:?}");
        assert!(seen.count > 0 && seen.bound_ns.is_some(), "{seen:?}");
        // No job is late that the host did not interrupt: there is far more room than the ORB and the kernel take.
        assert!(seen.quiet_worst_ns <= Some(seen.deadline_ns), "{seen:?}");
    }
    let worst_ms = |behaviour: &str, root: &str| {
        let worst_ns = of(judgement, behaviour, root).worst_ns;
        worst_ns.map_or(0, |ns| ns / 1_000_000)
    };
    // Its own 80 ms and 15 ms of the event with the earlier deadline: in the order of arrival it would not wait.
    let slow_ms = worst_ms("other.slow", "other.slow");
    assert!(slow_ms >= 94, "{slow_ms}");
    // 5 ms of the supplier, 75 ms that are left of the slow job, 5 ms of its oneway with an earlier deadline, and 15 ms each of both events.
    let late_ms = worst_ms("third.late", "one.begin");
    assert!(late_ms >= 114, "{late_ms}");
    assert!(results.is_real_time(), "{:?}", results.scheduling);
}

#[test]
fn jobs_by_deadline_send_events() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context();
    if !context.host.fifo_granted {
        eprintln!("not run: the host grants no SCHED_FIFO");
        return;
    }
    let system = system(SENT);
    let checked = checked(&system);
    assert_eq!(checked.standing, Standing::Holds);
    let options = RunOptions {
        share: true,
        ..seconds(3)
    };
    let results = model::run(&system, &checked, &options, &context, &mut Silent).unwrap();
    let judgement = results.judgement.as_ref().unwrap();
    // The channel has no lane for the priority of a level: an event without that of the analysis fails.
    let failed = |one: &&String| one.contains("failed") && !one.contains("TIMEOUT");
    assert_eq!(judgement.remarks.iter().find(failed), None);
    for (root, times) in [("other.tick", 2), ("other.slow", 1)] {
        for behaviour in ["other.part", "one.note", "other.later"] {
            let seen = of(judgement, behaviour, root);
            // A host that stood still skips releases and lets jobs expire, which is counted.
            assert_eq!(seen.count + seen.skipped, 10 * times, "{seen:?}");
            assert!(seen.count > 0 && seen.bound_ns.is_some(), "{seen:?}");
        }
        // An event waits for nothing that a host that stands still lets expire.
        let [part, note] = ["other.part", "one.note"].map(|it| of(judgement, it, root));
        assert_eq!(part.count, note.count, "{part:?} {note:?}");
    }
    assert!(results.is_real_time(), "{:?}", results.scheduling);
}

#[test]
fn jobs_by_deadline_wait_for_another_cpu() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context();
    if !context.host.fifo_granted {
        eprintln!("not run: the host grants no SCHED_FIFO");
        return;
    }
    let system = system(WAITS);
    let checked = checked(&system);
    assert_eq!(checked.standing, Standing::Holds);
    let options = RunOptions {
        share: true,
        ..seconds(3)
    };
    let results = model::run(&system, &checked, &options, &context, &mut Silent).unwrap();
    let judgement = results.judgement.as_ref().unwrap();
    // A host that stood still lets calls expire, which is counted. Any other failure is none of the host.
    let failed = |one: &&String| one.contains("failed") && !one.contains("TIMEOUT");
    assert_eq!(judgement.remarks.iter().find(failed), None);
    for (behaviour, root, times, least_ms) in [
        ("other.tick", "other.tick", 1, 30),
        ("one.serve", "other.tick", 2, 15),
        ("other.then", "other.tick", 1, 30),
        // The other CPU serves the job that is due earlier before.
        ("other.slow", "other.slow", 1, 34),
        ("one.serve", "other.slow", 1, 34),
    ] {
        let seen = of(judgement, behaviour, root);
        assert_eq!(seen.count + seen.skipped, 10 * times, "{seen:?}");
        assert!(seen.count > 0 && seen.bound_ns.is_some(), "{seen:?}");
        assert!(seen.worst_ns >= Some(least_ms * 1_000_000), "{seen:?}");
    }
    assert!(results.is_real_time(), "{:?}", results.scheduling);
}

#[test]
fn what_only_deadlines_schedule_misses_by_priority() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context();
    if !context.host.fifo_granted {
        eprintln!("not run: the host grants no SCHED_FIFO");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/model");
    let text = std::fs::read_to_string(folder.join("only-edf.toml")).unwrap();
    let changes = [
        ("scheduling = \"edf\"", ""),
        ("levels = 4", ""),
        ("\"optimal\"", "\"rms\""),
    ];
    let text = changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let system = system(&text);
    let checked = checked(&system);
    assert_eq!(checked.first_miss.as_deref(), Some("tool.panel"));
    let forced = RunOptions {
        force: true,
        ..seconds(1)
    };
    let results = model::run(&system, &checked, &forced, &context, &mut Silent).unwrap();
    let judgement = results.judgement.unwrap();
    // All are released together: the first job ends after 41.3 ms, whatever the host does.
    let panel = of(&judgement, "tool.panel", "tool.panel");
    assert_eq!(panel.count + panel.skipped, 25, "{panel:?}");
    assert!(panel.misses > 0, "{panel:?}");
}
