use super::*;
use crate::model::by_hand::{checked, example, system};

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

fn plan_of(text: &str) -> Result<Plan, String> {
    let system = system(text);
    let checked = checked(&system, None);
    Plan::of(&system, &checked, (1_000_000_000, 1))
}

#[test]
fn every_example_has_a_plan() {
    for name in [
        "avionics",
        "two-receivers",
        "robot-arm",
        "overloaded",
        "only-edf",
    ] {
        let system = example(&format!("{name}.toml"));
        let checked = checked(&system, None);
        let plan = Plan::of(&system, &checked, (60_000_000_000, 1)).unwrap();
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
    let plan = plan_of(TWO).unwrap();
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
    let checked = checked(&system, None);
    let planned = |system: &System| Plan::of(system, &checked, (1_000_000_000, 1));
    let plan = planned(&system).unwrap();
    let [component] = &plan.components[..] else {
        panic!("one component")
    };
    assert_eq!(component.lanes, [(40, 4)]);
    assert_eq!(component.levels.map(Levels::releasing), Some(45));
    assert_eq!(plan.highest_priority(), 45);
    let deadlines = component.behaviours.iter().map(|one| one.deadline_ns);
    let expected = [10, 14, 24, 40].map(|ms| ms * 1_000_000);
    assert!(deadlines.eq(expected));
    for behaviour in &component.behaviours {
        assert_eq!(behaviour.runs_at, [40, 41, 42, 43], "{behaviour:?}");
    }
    // Without a number, as many as there are different deadlines.
    system.nodes[0].levels = None;
    system.behaviours[3].deadline_ns = Some(24_000_000);
    let plan = planned(&system).unwrap();
    assert_eq!(plan.components[0].lanes, [(40, 3)]);
}

#[test]
fn what_one_lane_cannot_order_is_refused() {
    let by_deadline = |from: &str, to: &str| {
        let text = TWO.replace("name = \"here\"", "name = \"here\"\nscheduling = \"edf\"");
        assert!(text.contains(from), "{from}");
        plan_of(&text.replace(from, to)).unwrap_err()
    };
    let refused = by_deadline("2ms", "2ms");
    assert!(
        refused.contains("one and other share CPU 0 of here"),
        "{refused}"
    );
    let mut system = example("only-edf.toml");
    let checked = checked(&system, None);
    let refused = |system: &System| Plan::of(system, &checked, (1, 1)).unwrap_err();
    let mut calling = system.clone();
    calling.behaviours[1].calls = vec![rtorb_sched::model::Call {
        to: vec![2],
        ..self::system(TWO).behaviours[0].calls[0].clone()
    }];
    let words = refused(&calling);
    assert!(words.contains("tool.spindle calls or is called"), "{words}");
    let mut ceiling = system.clone();
    ceiling.resources = self::system(TWO).resources;
    let words = refused(&ceiling);
    assert!(words.contains("log of tool has a ceiling"), "{words}");
    system.nodes[0].levels = Some(58);
    let words = refused(&system);
    assert!(words.contains("at most 57"), "{words}");
}
