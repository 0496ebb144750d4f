use super::*;
use crate::model::tests::by_hand::{checked, example, system};
use rtorb_sched::model::{CheckOptions, Platform};

const TWO: &str = r#"
name = "two"
[[node]]
name = "here"
[[channel]]
name = "news"
[[component]]
name = "one"
  [[component.resource]]
  name = "log"
  mutex = "ceiling"
  [[component.behaviour]]
  name = "begin"
  period = "10ms"
  execution = { least = "1ms", most = "2ms" }
  priority = 40
  sections = [{ resource = "log", length = "100us" }]
  calls = [
    { to = "other.answer", count = 3 },
    { to = "other.hear", way = "event", channel = "news" },
  ]
  [[component.behaviour]]
  name = "slow"
  period = "20ms"
  execution = "1ms"
  priority = 20
  sections = [{ resource = "log", length = "100us" }]
  calls = [{ to = "other.answer" }]
[[component]]
name = "other"
  [[component.behaviour]]
  name = "answer"
  execution = "1ms"
  [[component.behaviour]]
  name = "hear"
  execution = { histogram = [{ up_to = "1ms", count = 9 }, { up_to = "2ms", count = 1 }] }
  priority = 10
"#;

/// The answer of the analysis, on platforms that cost nothing.
fn analysed(system: &System) -> CheckReport {
    let platforms = vec![Platform::ideal(); system.nodes.len()];
    let options = CheckOptions {
        sensitivity: false,
        ..CheckOptions::default()
    };
    rtorb_sched::model::check(system, &platforms, &options).unwrap()
}

#[test]
fn arrivals_keep_the_maximum_gap() {
    let system = example("engine-control.toml");
    let begins = |name: &str| begins(&system, system.behaviour(name).unwrap()).unwrap();
    let more_ns = |name: &str| match begins(name) {
        Begins::Sporadic { more_ns, .. } => more_ns,
        other => panic!("{other:?}"),
    };
    assert_eq!(more_ns("engine.interrupt"), 100_000);
    // Half of the minimum gap, as without a maximum.
    assert_eq!(more_ns("engine.crankshaft"), 2_500_000);
}

#[test]
fn every_example_has_a_plan() {
    for name in [
        "avionics",
        "two-receivers",
        "robot-arm",
        "overloaded",
        "only-edf",
        "engine-control",
    ] {
        let system = example(&format!("{name}.toml"));
        let plan = Plan::of(&system, &analysed(&system), (60_000_000_000, 1)).unwrap();
        assert_eq!(plan.components.len(), system.components.len());
        let all = plan.components.iter().flat_map(|one| &one.behaviours);
        for behaviour in all {
            assert!(!behaviour.places.is_empty(), "{name}: {}", behaviour.name);
            let is_two_way = behaviour.begins == Begins::TwoWay;
            assert_eq!(behaviour.priority.is_none(), is_two_way, "{behaviour:?}");
        }
        assert!(plan.components.iter().all(|one| one.jobs_max < JOBS_MAX));
    }
}

#[test]
fn a_callee_runs_at_its_callers_priorities_and_knows_who_called() {
    let two = system(TWO);
    let plan = Plan::of(&two, &analysed(&two), (1_000_000_000, 1)).unwrap();
    let [answer, hear] = &plan.components[1].behaviours[..] else {
        panic!("two behaviours")
    };
    assert_eq!(answer.runs_at, [20, 40]);
    assert_eq!((hear.begins, hear.priority), (Begins::Event, Some(10)));
    let place = |of: &PlaceOf| {
        let at = &plan.tree.places[of.place as usize];
        (at.root, at.priority, at.times)
    };
    let places: Vec<_> = answer.places.iter().map(place).collect();
    assert_eq!(places, [(0, 40, 3), (1, 20, 1)]);
    assert_eq!(plan.components[0].mutexes, [Some(40)]);
    assert_eq!(plan.channels, [vec![40, 10]]);
    let subscription = Subscription {
        behaviour: 3,
        channel: 0,
        source: 1,
    };
    assert_eq!(plan.subscriptions, [subscription]);
    // 102 and 52 jobs of the roots; three calls each, and one.
    assert_eq!(plan.components[1].jobs_max, 102 * 3 + 52 + 102);
    // Each millisecond five, and eight a job.
    assert_eq!(plan.components[1].gaps_max, (102 * 3 + 52) * 13 + 102 * 18);
    let [_, rare] = hear.execution[..] else {
        panic!("two buckets")
    };
    assert_eq!(
        (rare.least_ns, rare.most_ns, rare.count),
        (1_000_000, 2_000_000, 1)
    );
}

#[test]
fn what_cannot_be_run_is_refused_with_what_to_do() {
    let system = system(TWO);
    let checked = checked(&system, None);
    let mut high = system.clone();
    high.behaviours[0].priority = Some(200);
    let refused = Plan::of(&high, &checked, (1, 1)).unwrap_err();
    assert!(refused.contains("priority 200"), "{refused}");
    let mut no_lane = checked.clone();
    no_lane.loading.components[1]
        .lanes
        .retain(|lane| lane.priority != 40);
    let refused = Plan::of(&system, &no_lane, (1, 1)).unwrap_err();
    assert!(refused.contains("no lane"), "{refused}");
}

#[test]
fn a_cpu_by_deadline_has_one_lane_with_levels() {
    let mut system = example("only-edf.toml");
    let planned = |system: &System| Plan::of(system, &analysed(system), (1_000_000_000, 1));
    let plan = planned(&system).unwrap();
    let [component] = &plan.components[..] else {
        panic!("one component")
    };
    // The I/O thread has the highest priority that the system may have.
    assert_eq!(component.lanes, [(76, 4)]);
    assert_eq!(component.levels.map(Levels::releasing), Some(81));
    assert_eq!(plan.highest_priority(), 81);
    let deadlines = component.behaviours.iter().map(|one| one.deadline_ns);
    let expected = [10, 14, 24, 40].map(|ms| ms * 1_000_000);
    assert!(deadlines.eq(expected));
    for behaviour in &component.behaviours {
        assert_eq!(behaviour.runs_at, [76, 77, 78, 79], "{behaviour:?}");
    }
    // Without a number, as many as there are different deadlines.
    system.nodes[0].levels = None;
    system.behaviours[3].deadline_ns = Some(24_000_000);
    let plan = planned(&system).unwrap();
    assert_eq!(plan.components[0].lanes, [(77, 3)]);
}

/// A CPU by deadline, called from one with priorities and calling back.
const MIXED: &str = r#"
name = "mixed"
[[node]]
name = "plain"
[[node]]
name = "dynamic"
scheduling = "edf"
[[link]]
between = ["plain", "dynamic"]
latency = "10us"
[[component]]
name = "one"
node = "plain"
  [[component.behaviour]]
  name = "begin"
  period = "20ms"
  execution = "1ms"
  calls = [{ to = "other.answer" }, { to = "other.hear", way = "one-way" }]
  [[component.behaviour]]
  name = "note"
  execution = "1ms"
[[component]]
name = "other"
node = "dynamic"
  [[component.behaviour]]
  name = "tick"
  period = "10ms"
  execution = "1ms"
  calls = [{ to = "other.part" }, { to = "one.note", way = "one-way" }]
  [[component.behaviour]]
  name = "part"
  execution = "1ms"
  deadline = "9ms"
  [[component.behaviour]]
  name = "answer"
  execution = "1ms"
  [[component.behaviour]]
  name = "hear"
  execution = "1ms"
  deadline = "15ms"
"#;

#[test]
fn calls_to_a_cpu_by_deadline_bring_the_deadline_of_the_analysis() {
    let mixed = system(MIXED);
    let plan = Plan::of(&mixed, &analysed(&mixed), (1_000_000_000, 1)).unwrap();
    let [one, other] = &plan.components[..] else {
        panic!("two components")
    };
    assert_eq!(
        (one.levels, other.levels.map(|it| it.count)),
        (None, Some(3))
    );
    let of = |calls: &[CallPlan]| -> Vec<_> {
        calls
            .iter()
            .map(|call| (call.to, call.deadline_ns))
            .collect()
    };
    const MS: u64 = 1_000_000;
    let waited = (To::TwoWay { behaviour: 4 }, Some(20 * MS));
    let onward = (To::OneWay { behaviour: 5 }, Some(15 * MS));
    assert_eq!(of(&one.behaviours[0].calls), [waited, onward]);
    // The part is performed by its caller, whose job is due when the part is.
    assert_eq!(other.behaviours[0].deadline_ns, 9 * MS);
    let here = (To::Here { behaviour: 3 }, None);
    let back = (To::OneWay { behaviour: 1 }, None);
    assert_eq!(of(&other.behaviours[0].calls), [here, back]);
}

#[test]
fn a_call_may_be_due_later_than_its_caller() {
    let text = MIXED.replace(
        "deadline = \"15ms\"",
        "deadline = \"15ms\"\n  [[component.behaviour]]\n  name = \"later\"\n  execution = \"1ms\"\n  deadline = \"12ms\"",
    );
    let text = text.replace(
        "name = \"note\"",
        "name = \"note\"\n  calls = [{ to = \"other.later\", way = \"one-way\" }]",
    );
    let mixed = system(&text);
    let plan = Plan::of(&mixed, &analysed(&mixed), (1, 1)).unwrap();
    let [later] = &plan.components[0].behaviours[1].calls[..] else {
        panic!("one call")
    };
    assert_eq!(later.deadline_ns, Some(12_000_000));
}

/// Three jobs of a CPU by deadline, of which two lock a mutex with a ceiling.
const CEILING: &str = r#"
name = "ceiling"
[[node]]
name = "here"
scheduling = "edf"
[[component]]
name = "tool"
  [[component.resource]]
  name = "log"
  mutex = "ceiling"
  [[component.behaviour]]
  name = "fast"
  period = "10ms"
  execution = "1ms"
  sections = [{ resource = "log", length = "100us" }]
  [[component.behaviour]]
  name = "middle"
  period = "14ms"
  execution = "1ms"
  [[component.behaviour]]
  name = "slow"
  period = "20ms"
  execution = "2ms"
  sections = [{ resource = "log", length = "1ms" }]
"#;

#[test]
fn a_ceiling_by_deadline_is_the_highest_level_if_the_most_urgent_job_locks_it() {
    let system = system(CEILING);
    let plan = Plan::of(&system, &analysed(&system), (1_000_000_000, 1)).unwrap();
    let component = &plan.components[0];
    let levels = component.levels.unwrap();
    assert_eq!(component.mutexes, [Some(*levels.priorities().end())]);
    // The middle job waits for the section of the slow one, though it locks nothing.
    let lock = "  sections = [{ resource = \"log\", length = \"100us\" }]\n";
    let moved = CEILING.replace(lock, "").replace(
        "period = \"14ms\"\n  execution = \"1ms\"\n",
        &format!("period = \"14ms\"\n  execution = \"1ms\"\n{lock}"),
    );
    let moved = self::system(&moved);
    let refused = Plan::of(&moved, &analysed(&moved), (1, 1)).unwrap_err();
    assert!(
        refused.contains("tool.log has a ceiling, and tool.fast, which"),
        "{refused}"
    );
}

/// The same, with an event and a oneway that a lane passes on.
fn with_events() -> String {
    let text = MIXED.replace(
        "[[component]]\nname = \"one\"",
        "[[channel]]\nname = \"news\"\nnode = \"plain\"\n[[component]]\nname = \"one\"",
    );
    let text = text.replace(
        "{ to = \"other.hear\", way = \"one-way\" }",
        "{ to = \"other.hear\", way = \"event\", channel = \"news\" }",
    );
    text.replace(
        "{ to = \"other.part\" }",
        "{ to = \"other.part\", way = \"one-way\" }",
    )
}

#[test]
fn events_and_oneways_of_a_cpu_by_deadline_are_passed_on() {
    let mixed = system(&with_events());
    let checked = analysed(&mixed);
    let plan = Plan::of(&mixed, &checked, (1_000_000_000, 1)).unwrap();
    let other = &plan.components[1];
    // Deadlines of 9, 10, 15 and 20 ms; the I/O thread has 79.
    assert_eq!(other.lanes, [(80, 1), (75, 4)]);
    assert_eq!(other.levels.map(Levels::releasing), Some(80));
    let tick = &other.behaviours[0].calls[0];
    let passed_on = (To::PassedOn { behaviour: 3 }, Some(9_000_000));
    assert_eq!((tick.to, tick.deadline_ns), passed_on);
    let hear = &other.behaviours[3];
    assert_eq!((hear.begins, hear.deadline_ns), (Begins::Event, 15_000_000));
    assert_eq!(hear.runs_at, [75, 76, 77, 78]);
    // The channel has the lanes of the supplier and of the consumer, as the analysis says.
    let priorities = checked
        .loading
        .components
        .iter()
        .flat_map(|one| &one.priorities);
    let of = |name: &str| {
        let mut all = priorities.clone();
        all.find(|(known, _)| known == name)
            .map(|(_, priority)| *priority as u8)
    };
    assert_eq!(hear.priority, of("other.hear"));
    let lanes = [of("one.begin"), of("other.hear")];
    let mut lanes: Vec<u8> = lanes.into_iter().flatten().collect();
    lanes.sort_unstable_by(|one, other| other.cmp(one));
    lanes.dedup();
    assert_eq!(plan.channels, [lanes]);
}

/// Events of a CPU by deadline: one to the CPU of the channel, one back to its own.
fn sending_events() -> String {
    with_events().replace(
        "{ to = \"one.note\", way = \"one-way\" }",
        "{ to = [\"one.note\", \"other.hear\"], way = \"event\", channel = \"news\" }",
    )
}

#[test]
fn events_of_a_job_by_deadline_have_the_priority_of_the_analysis() {
    let mixed = system(&sending_events());
    let checked = analysed(&mixed);
    let plan = Plan::of(&mixed, &checked, (1_000_000_000, 1)).unwrap();
    let tick = &plan.components[1].behaviours[0];
    let mut to = tick.calls.iter().map(|call| (call.to, call.deadline_ns));
    let sent = To::Event {
        channel: 0,
        source: 2,
    };
    assert_eq!(to.next_back(), Some((sent, None)));
    let components = checked.loading.components.iter();
    let mut priorities = components.flat_map(|one| &one.priorities);
    let assigned = priorities.find(|(name, _)| name == "other.tick").unwrap();
    assert_eq!(i16::from(tick.places[0].priority), assigned.1);
    assert!(plan.channels[0].contains(&tick.places[0].priority));
    // Its threads have the levels, of which the event from its own CPU may need one more.
    assert_eq!(tick.runs_at, [74, 75, 76, 77, 78]);
    let subscribed = |one: &&Subscription| one.source == 2;
    assert_eq!(plan.subscriptions.iter().filter(subscribed).count(), 2);
}

#[test]
fn components_of_a_cpu_by_deadline_are_one_process() {
    let text = TWO.replace("name = \"here\"", "name = \"here\"\nscheduling = \"edf\"");
    let text = text.replace("[[channel]]\nname = \"news\"\n", "");
    let text = text.replace(
        "{ to = \"other.hear\", way = \"event\", channel = \"news\" }",
        "{ to = \"other.hear\", way = \"one-way\" }",
    );
    let text = text.replace(
        "name = \"answer\"",
        "name = \"answer\"\n  sections = [{ resource = \"store\", length = \"10us\" }]",
    );
    let text = text.replace(
        "[[component]]\nname = \"other\"",
        "[[component]]\nname = \"other\"\n  [[component.resource]]\n  name = \"store\"\n  mutex = \"inheritance\"",
    );
    let two = system(&text);
    let plan = Plan::of(&two, &analysed(&two), (1_000_000_000, 1)).unwrap();
    let [process] = &plan.components[..] else {
        panic!("one process")
    };
    assert_eq!(process.name, "one and other");
    // Deadlines of 10 and 20 ms, and 10 ms of a job that another one releases.
    assert_eq!(process.lanes, [(80, 1), (76, 3)]);
    let names = process.behaviours.iter().map(|one| one.name.as_str());
    let expected = ["one.begin", "one.slow", "other.answer", "other.hear"];
    assert!(names.eq(expected));
    // The most urgent job locks the log, and each mutex is one of the process.
    assert_eq!(process.mutexes, [Some(78), None]);
    let begin = &process.behaviours[0];
    assert_eq!(begin.sections, [(0, 100_000)]);
    assert_eq!(process.behaviours[2].sections, [(1, 10_000)]);
    let calls: Vec<To> = begin.calls.iter().map(|call| call.to).collect();
    let here = To::Here { behaviour: 2 };
    assert_eq!(calls, [here, To::PassedOn { behaviour: 3 }]);
}

#[test]
fn the_job_with_the_shortest_deadline_of_a_cpu_may_come_from_another_component() {
    // `quick` waits for the log in a run, and not in the analysis.
    let other = "[[component]]\nname = \"other\"\n  [[component.behaviour]]\n  name = \"quick\"\n  period = \"5ms\"\n  execution = \"500us\"\n";
    let two = system(&format!("{CEILING}{other}"));
    let refused = Plan::of(&two, &analysed(&two), (1, 1)).unwrap_err();
    assert!(
        refused.contains("tool.log has a ceiling, and other.quick, which"),
        "{refused}"
    );
}

/// A job by deadline that waits for the other CPU.
fn waiting() -> String {
    MIXED.replace("\"one.note\", way = \"one-way\"", "\"one.note\"")
}

#[test]
fn a_job_by_deadline_calls_another_cpu_at_the_priority_of_the_analysis() {
    let mixed = system(&waiting());
    let checked = analysed(&mixed);
    let plan = Plan::of(&mixed, &checked, (1_000_000_000, 1)).unwrap();
    let [one, other] = &plan.components[..] else {
        panic!("two components")
    };
    let tick = &other.behaviours[0];
    let to = tick.calls.iter().map(|call| (call.to, call.deadline_ns));
    // The job is due when its part is.
    let note = (To::TwoWay { behaviour: 1 }, Some(9_000_000));
    let expected = [(To::Here { behaviour: 3 }, None), note];
    assert!(to.eq(expected));
    let components = checked.loading.components.iter();
    let mut priorities = components.flat_map(|one| &one.priorities);
    let assigned = priorities.find(|(name, _)| name == "other.tick").unwrap();
    assert_eq!(i16::from(tick.places[0].priority), assigned.1);
    assert_eq!(one.behaviours[1].runs_at, [tick.places[0].priority]);
    assert_eq!(one.lanes, [(tick.places[0].priority, 1)]);
}

/// A run does what the check configures, and says the same where no lane can do it.
#[test]
fn a_system_is_run_if_the_check_has_lanes_for_it() {
    let by_deadline =
        |text: &str| text.replace("name = \"here\"", "name = \"here\"\nscheduling = \"edf\"");
    for text in [
        MIXED.to_owned(),
        with_events(),
        sending_events(),
        CEILING.to_owned(),
        CEILING.replace("mutex = \"ceiling\"", "mutex = \"inheritance\""),
        by_deadline(TWO),
        MIXED.replace(
            "period = \"20ms\"",
            "period = \"20ms\"\n  deadline = \"12ms\"",
        ),
        waiting(),
    ] {
        let system = system(&text);
        let checked = analysed(&system);
        let components = checked.loading.components.iter();
        let lacks: Vec<&String> = components
            .filter_map(|one| one.lacks_lane.as_ref())
            .collect();
        match Plan::of(&system, &checked, (1, 1)) {
            Ok(_) => assert_eq!(lacks, [""; 0], "{text}"),
            Err(refused) => assert_eq!(refused, format!("{}, to run the system", lacks[0])),
        }
    }
}

#[test]
fn what_one_lane_cannot_order_is_refused() {
    let refused = |system: &System| Plan::of(system, &analysed(system), (1, 1)).unwrap_err();
    let by_deadline = |text: &str, from: &str, to: &str| {
        let text = text.replace("name = \"here\"", "name = \"here\"\nscheduling = \"edf\"");
        assert!(text.contains(from), "{from}");
        refused(&system(&text.replace(from, to)))
    };
    let words = by_deadline(TWO, "2ms", "2ms");
    assert!(
        words.contains("the channel news is on CPU 0 of here"),
        "{words}"
    );
    let called = "name = \"note\"";
    let back = "name = \"note\"\n  calls = [{ to = \"other.answer\" }]";
    let words = by_deadline(&waiting(), called, back);
    assert!(
        words.contains("other.tick waits for another CPU, which calls other.answer back"),
        "{words}"
    );
    let mut system = example("only-edf.toml");
    system.nodes[0].levels = Some(80);
    let words = refused(&system);
    assert!(words.contains("needs 80 levels"), "{words}");
}
