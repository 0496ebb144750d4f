//! Changes of systems that are worked out by hand.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;

const MS: u64 = 1_000_000;

struct Owned {
    system: System,
    platforms: Vec<Platform>,
    report: CheckReport,
}

impl Owned {
    fn new(text: &str) -> Self {
        let no_idl = |_: &[std::path::PathBuf]| Ok(BTreeMap::new());
        let system = System::parse(text, Path::new(""), &no_idl).expect("a system");
        let platforms = vec![Platform::ideal(); system.nodes.len()];
        let report = check(&system, &platforms, &CheckOptions::default()).expect("a report");
        Self {
            system,
            platforms,
            report,
        }
    }

    fn mode(&self) -> SystemMode<'_> {
        SystemMode {
            system: &self.system,
            platforms: &self.platforms,
            report: &self.report,
        }
    }
}

fn between(old: &str, new: &str) -> Result<SystemTransition, TransitionError> {
    let (old, new) = (Owned::new(old), Owned::new(new));
    SystemTransition::between(old.mode(), new.mode(), SearchLimits::default())
}

/// Two CPUs: `slow.work` waits for `slow.log` on its own one, and `remote.act` runs on the other one.
const PLANT: &str = r#"
name = "plant"
[[node]]
name = "n"
cpus = 2
[[component]]
name = "fast"
  [[component.behaviour]]
  name = "sample"
  period = "10ms"
  execution = "2ms"
  calls = [{ to = "remote.act", way = "one-way" }]
[[component]]
name = "slow"
  [[component.resource]]
  name = "table"
  mutex = "ceiling"
  [[component.behaviour]]
  name = "work"
  period = "40ms"
  execution = "8ms"
  sections = [{ resource = "table", length = "1ms" }]
  calls = [{ to = "slow.log" }]
  [[component.behaviour]]
  name = "log"
  execution = "1ms"
  sections = [{ resource = "table", length = "1ms" }]
[[component]]
name = "remote"
cpu = 1
  [[component.behaviour]]
  name = "act"
  execution = "1ms"
"#;

/// From `fast`, `log` ends after 3 ms and has the least slack. From `slow`, which takes 334 ms, it ends after 336.
#[test]
fn the_longest_response_is_that_from_any_root() {
    let text = r#"
name = "plant"
[[node]]
name = "n"
cpus = 2
[[component]]
name = "a"
  [[component.behaviour]]
  name = "fast"
  period = "10ms"
  execution = "1ms"
  calls = [{ to = "b.log", way = "one-way" }]
  [[component.behaviour]]
  name = "slow"
  period = "1s"
  execution = "300ms"
  calls = [{ to = "b.log", way = "one-way" }]
[[component]]
name = "b"
cpu = 1
  [[component.behaviour]]
  name = "log"
  execution = "1ms"
"#;
    let transition = between(text, text).expect("a transition");
    assert_eq!(transition.refusal(), None);
    assert_eq!(transition.longest_ns(), Some(336 * MS));
}

#[test]
fn a_change_to_the_same_system_has_its_bounds() {
    let same = between(PLANT, PLANT).expect("an analysis");
    assert_eq!(same.refusal(), None);
    // 9 of its own with the log, and twice 2.
    assert_eq!(same.longest_ns(), Some(13 * MS));
}

#[test]
fn both_systems_hold_and_the_change_does_not() {
    // 29 of 40 ms for the work, or 6 of 10 ms for the samples, and not both.
    let longer = PLANT.replace("execution = \"8ms\"", "execution = \"28ms\"");
    let faster = PLANT.replace("execution = \"2ms\"", "execution = \"6ms\"");
    for text in [&longer, &faster] {
        assert_eq!(Owned::new(text).report.refusal(), None);
    }
    let refused = between(&longer, &faster).expect("an analysis").refusal();
    let refused = refused.expect("60 % and 72.5 %");
    assert_eq!(refused.operation, "slow.work");
    assert!(refused.reason.contains("deadline of 40ms"), "{refused}");
    assert_eq!(refused.remedies, [IN_TWO_STEPS]);
    // In two steps each change holds.
    for (old, new) in [(longer.as_str(), PLANT), (PLANT, faster.as_str())] {
        assert_eq!(between(old, new).expect("an analysis").refusal(), None);
    }
}

#[test]
fn a_change_of_priorities_counts_both_orders() {
    let order = |sample: u8, work: u8| {
        let text = PLANT.replace("ceiling", "inheritance");
        let text = text.replace(
            "period = \"10ms\"",
            &format!("priority = {sample}\nperiod = \"10ms\""),
        );
        text.replace(
            "period = \"40ms\"",
            &format!("priority = {work}\nperiod = \"40ms\""),
        )
    };
    // Below the work, a sample ends after 11 ms.
    let (holds, exchanged) = (order(40, 30), order(30, 40));
    let refused = between(&holds, &exchanged).expect("an analysis").refusal();
    assert_eq!(refused.expect("11 ms").operation, "fast.sample");
    let shifted = between(&holds, &order(39, 29)).expect("an analysis");
    assert_eq!(shifted.refusal(), None, "the order stays");
}

#[test]
fn what_cannot_change_is_named() {
    let cases = [
        ("cpu = 1\n", "cpu = 0\n", "the CPU of the component remote"),
        ("\"ceiling\"", "\"inheritance\"", "the mutex of slow.table"),
        (
            "period = \"10ms\"",
            "minimum_gap = \"10ms\"",
            "what releases fast.sample",
        ),
        (
            ", way = \"one-way\"",
            "",
            "whether callers of remote.act wait",
        ),
        (
            "period = \"40ms\"",
            "period = \"5ms\"\ndeadline = \"40ms\"",
            "the ceiling of slow.table",
        ),
        (
            "cpus = 2",
            "cpus = 2\nscheduling = [\"fixed-priority\", \"edf\"]",
            "of the node n",
        ),
    ];
    for (from, to, said) in cases {
        let new = PLANT.replacen(from, to, 1);
        assert_ne!(new, PLANT, "{from}");
        match between(PLANT, &new) {
            Err(TransitionError::Fixed(part)) => assert!(part.contains(said), "{part}"),
            other => panic!("{said}: {other:?}"),
        }
    }
}

#[test]
fn jobs_by_deadline_of_both_modes_compete() {
    let plant = |period: &str, execution: &str, deadline: &str| {
        format!(
            "name = \"plant\"\n[[node]]\nname = \"n\"\nscheduling = \"edf\"\n[[component]]\nname = \"c\"\n\
             [[component.behaviour]]\nname = \"a\"\nperiod = \"{period}\"\nexecution = \"{execution}\"\ndeadline = \"{deadline}\"\n\
             [[component.behaviour]]\nname = \"b\"\nperiod = \"14ms\"\nexecution = \"5ms\"\n"
        )
    };
    let frequent = plant("10ms", "4ms", "10ms");
    let long = plant("20ms", "8ms", "10ms");
    for text in [&frequent, &long] {
        assert_eq!(Owned::new(text).report.refusal(), None);
    }
    // 76 % each, and 116 % during the change.
    let refused = between(&frequent, &long).expect("an analysis").refusal();
    assert!(refused.is_some());
    let same = between(&frequent, &frequent).expect("an analysis");
    assert_eq!(same.refusal(), None);
    // One deadline needs one level, and two need two.
    // A job with a deadline of 20 ms would take a third one.
    for (old, said) in [
        (plant("14ms", "4ms", "14ms"), "the levels of the lane of c"),
        (plant("20ms", "4ms", "20ms"), "the deadline of c.a"),
    ] {
        match between(&old, &frequent) {
            Err(TransitionError::Fixed(part)) => assert!(part.contains(said), "{part}"),
            other => panic!("{said}: {other:?}"),
        }
    }
}

/// In each mode, `low` ends after 38 ms: 20 of `high`, 3, its own 5, and the section of 10 of a demoted job, which others kept waiting for
/// long. During the change there are 3 ms more.
#[test]
fn a_job_that_may_be_demoted_in_one_mode_blocks_during_the_change() {
    let table = |name: &str, priority: u64, execution: u64, more: &str| {
        format!(
            "[[component.behaviour]]\nname = \"{name}\"\npriority = {priority}\nexecution = \"{execution}ms\"\n{more}\n"
        )
    };
    let plant = |budget: u64, mode: &str| {
        let high = format!(
            "period = \"100ms\"\nsections = [{{ resource = \"r\", length = \"10ms\" }}]\n\
             enforcement = {{ policy = \"demote\", budget = \"{budget}ms\", granularity = \"1ms\" }}"
        );
        let low = "period = \"100ms\"\ndeadline = \"39ms\"\nsections = [{ resource = \"r\", length = \"1ms\" }]";
        [
            "name = \"plant\"\n[[node]]\nname = \"n\"\n[[component]]\nname = \"c\"\n[[component.resource]]\nname = \"r\"\n",
            &table("high", 50, 20, &high),
            &table("low", 10, 5, low),
            &table(mode, 30, 3, "period = \"100ms\""),
            &table("z", 5, 85, "period = \"1s\""),
        ]
        .concat()
    };
    let (old, new) = (plant(10, "y"), plant(9, "x"));
    for text in [&old, &new] {
        assert_eq!(Owned::new(text).report.refusal(), None);
    }
    let refused = between(&old, &new).expect("an analysis").refusal();
    assert_eq!(refused.expect("41 ms").operation, "c.low");
}

#[test]
fn what_leaves_and_what_comes_are_there_during_the_change() {
    let more = |name: &str| {
        format!(
            "{PLANT}\n[[component]]\nname = \"{name}\"\n[[component.behaviour]]\nname = \"run\"\nperiod = \"40ms\"\nexecution = \"12ms\"\n"
        )
    };
    let change = between(&more("first"), &more("second")).expect("an analysis");
    // 9 + 12 ms and the samples fit into 40 ms, 9 + 24 ms and the samples do not.
    assert!(change.refusal().is_some());
    assert_eq!(
        between(&more("first"), PLANT)
            .expect("an analysis")
            .refusal(),
        None
    );
}
