use serde_json::Value;

use super::*;
use crate::synthetic;
use crate::{Derived, Series, labels};

/// A row of each kind.
const KNOWN: &[Services] = &[
    Services {
        experiment: "os/context-switch",
        rows: &[ServiceRow::new("scheduler", "context_switch")
            .of(&[("what", "switch")])
            .configured_by(&["test"])],
    },
    Services {
        experiment: "os/ready-queue",
        rows: &[ServiceRow::new("scheduler", "ready_queue_switch")
            .configured_by(&["ready_tasks", "resolution_us"])],
    },
    Services {
        experiment: "os/services",
        rows: &[
            ServiceRow::new("scheduler", "wake")
                .of(&[("service", "futex")])
                .otherwise(&[("by", "futex")]),
            ServiceRow::new("scheduler", "wake")
                .of(&[("service", "eventfd")])
                .otherwise(&[("by", "eventfd")]),
            ServiceRow::new("transport", "round_trip")
                .of(&[("service", "pipe")])
                .otherwise(&[("transport", "pipe")]),
            ServiceRow::new("transport", "round_trip")
                .of(&[("service", "unix")])
                .otherwise(&[("transport", "unix")]),
            ServiceRow::new("transport", "round_trip")
                .of(&[("service", "tcp")])
                .otherwise(&[("transport", "tcp")]),
        ],
    },
    Services {
        experiment: "os/other-cpu",
        rows: &[
            ELSEWHERE
                .of(&[("service", "futex")])
                .otherwise(&[("by", "futex"), ("cpu", "other")]),
            ELSEWHERE
                .of(&[("service", "unix")])
                .otherwise(&[("cpu", "other")]),
            ELSEWHERE
                .of(&[("service", "tcp")])
                .otherwise(&[("cpu", "other")]),
        ],
    },
    Services {
        experiment: "os/clock-overhead",
        rows: &[ServiceRow::new("clock", "tick")
            .of(&[("what", "overhead")])
            .configured_by(&["tick", "resolution_us"])],
    },
    Services {
        experiment: "os/interruptions",
        rows: &[
            ServiceRow::new("kernel", "tick").of(&[("what", "tick")]),
            ServiceRow::new("hypervisor", "theft")
                .of(&[("what", "theft")])
                .may_lack(),
        ],
    },
    Services {
        experiment: "os/wakeup",
        rows: &[ServiceRow::new("timer", "wakeup")
            .of(&[("tool", "rtorb")])
            .configured_by(&["cpu"])],
    },
    Services {
        experiment: "os/mutex",
        rows: &[ServiceRow::new("mutex", "hand_over")
            .of_derived("wait_beyond_section")
            .configured_by(&["mutex"])],
    },
    Services {
        experiment: "orb/throughput",
        rows: &[ServiceRow::new("orb", "call")
            .of(&[("orb", "rtorb"), ("part", "call")])
            .configured_by(&["operation", "len", "payload_bytes", "transport", "preset"])
            .otherwise(&[("preset", "default")])],
    },
    Services {
        experiment: "orb/events",
        rows: &[ServiceRow::new("event_channel", "event")
            .of(&[("what", "event")])
            .configured_by(&["transport", "consumers", "payload_bytes"])],
    },
];

const ELSEWHERE: ServiceRow = ServiceRow::new("scheduler", "wake")
    .configured_by(&["peer"])
    .may_lack();

/// One series of each kind that a profile takes, from the experiments that have it.
fn measured() -> Vec<Results> {
    let interval = |what: &str| {
        let of = labels([
            ("what", what.into()),
            ("timers", 5u64.into()),
            ("pattern", "harmonic".into()),
            ("priority", "lowest".into()),
            ("resolution_us", 500u64.into()),
        ]);
        synthetic::series(of, 1..=100)
    };
    let of = |what: &str| labels([("what", what.into()), ("test", "yield".into())]);
    let queue = labels([
        ("ready_tasks", 20u64.into()),
        ("resolution_us", 500u64.into()),
    ]);
    let wakeup = |tool: &str, load: &str| {
        let of = labels([
            ("tool", tool.into()),
            ("load", load.into()),
            ("cpu", "loaded".into()),
        ]);
        synthetic::series(of, 1..=50)
    };
    let mut mutex = synthetic::results("os/mutex", Vec::new());
    mutex.derived = vec![Derived {
        name: "wait_beyond_section".to_owned(),
        labels: labels([("mutex", "inheritance".into()), ("what", "wait".into())]),
        unit: "ns".to_owned(),
        value: 2_000.0,
        rounds: vec![1_000.0, 2_000.0, 6_000.0],
    }];
    vec![
        synthetic::results(
            "os/context-switch",
            vec![
                synthetic::series(of("switch"), [700, 900]),
                synthetic::series(of("hand_over"), [5_000]),
            ],
        ),
        synthetic::results("os/ready-queue", vec![synthetic::series(queue, [800])]),
        services(),
        other_cpu(),
        synthetic::results(
            "os/clock-overhead",
            vec![
                tick("overhead", [300, 500]),
                tick("overhead_from_medians", [310, 410]),
            ],
        ),
        interruptions(),
        synthetic::results(
            "os/interval-jitter",
            ["jitter", "lateness", "jitter_alone", "lateness_alone"]
                .map(interval)
                .into(),
        ),
        synthetic::results(
            "os/wakeup",
            vec![
                wakeup("rtorb", "none"),
                wakeup("rtorb", "mix"),
                wakeup("cyclictest", "mix"),
            ],
        ),
        mutex,
        throughput(),
        events(),
    ]
}

fn services() -> Results {
    let names = [
        "clock_read",
        "system_call",
        "set_timer",
        "yield",
        "futex",
        "eventfd",
        "pi_hand_over",
        "pi_lock",
        "pipe",
        "unix",
        "tcp",
    ];
    let series = |name: &str| synthetic::series(labels([("service", name.into())]), [400, 900]);
    synthetic::results("os/services", names.map(series).into())
}

fn other_cpu() -> Results {
    let series = |(service, peer): (&str, &str)| {
        let of = labels([("service", service.into()), ("peer", peer.into())]);
        synthetic::series(of, [9_000, 12_000])
    };
    let all = [
        ("futex", "awake"),
        ("unix", "awake"),
        ("tcp", "awake"),
        ("tcp", "idle"),
    ];
    synthetic::results("os/other-cpu", all.map(series).into())
}

fn interruptions() -> Results {
    let series = |what: &str| synthetic::series(labels([("what", what.into())]), [4_000, 6_000]);
    let whats = ["interruption", "tick", "other", "theft", "release"];
    let mut results = synthetic::results("os/interruptions", whats.map(series).into());
    results.derived = vec![Derived {
        name: "tick_period".to_owned(),
        labels: labels([("source", "configuration".into())]),
        unit: "ns".to_owned(),
        value: 4_000_000.0,
        rounds: Vec::new(),
    }];
    results
}

fn tick(what: &str, samples_ns: [u64; 2]) -> Series {
    let of = labels([
        ("what", what.into()),
        ("tick", "thread".into()),
        ("resolution_us", 100u64.into()),
    ]);
    synthetic::series(of, samples_ns)
}

fn throughput() -> Results {
    let of = |orb: &str, part: &str| {
        let labels = labels([
            ("orb", orb.into()),
            ("part", part.into()),
            ("operation", "octet".into()),
            ("len", 0u64.into()),
            ("payload_bytes", 1u64.into()),
            ("transport", "tcp".into()),
        ]);
        synthetic::series(labels, 1_000..2_000)
    };
    synthetic::results(
        "orb/throughput",
        vec![
            of("raw", "call"),
            of("rtorb", "call"),
            of("omniorb", "call"),
            of("rtorb", "marshalling"),
            of("rtorb", "servant_work"),
        ],
    )
}

fn events() -> Results {
    let whats = [
        "event",
        "supplier_execution",
        "channel_execution",
        "consumer_execution",
    ];
    let series = |what: &str| {
        let of = labels([
            ("what", what.into()),
            ("transport", "tcp".into()),
            ("consumers", 4usize.into()),
            ("payload_bytes", 16usize.into()),
        ]);
        synthetic::series(of, [20_000, 30_000])
    };
    synthetic::results("orb/events", whats.map(series).into())
}

fn throughput_of(all: &mut [Results]) -> &mut Results {
    let mut all = all.iter_mut();
    all.find(|results| results.experiment == "orb/throughput")
        .unwrap()
}

fn of<'a>(profile: &'a Profile, service: &str) -> Vec<&'a Service> {
    profile
        .services
        .iter()
        .filter(|one| one.service == service)
        .collect()
}

#[test]
fn every_service_of_the_table_is_found() {
    let profile = Profile::from_results(&measured(), KNOWN).unwrap();
    assert!(profile.incomplete.is_empty(), "{:?}", profile.incomplete);
    assert!(profile.real_time);
    for row in KNOWN.iter().flat_map(|known| known.rows) {
        let mut services = profile.services.iter();
        let found = services.any(|service| row.is_of(service));
        assert!(found, "{} {}", row.component, row.service);
    }
    let switch = of(&profile, "context_switch");
    assert_eq!(switch.len(), 1, "the hand-over is none");
    assert_eq!(
        (switch[0].min, switch[0].max, switch[0].count),
        (700.0, 900.0, 2)
    );
    assert_eq!(switch[0].mean, 800.0);
    let call = of(&profile, "call");
    assert_eq!(call.len(), 1, "only our own: {call:?}");
    assert_eq!(call[0].configuration["preset"], "default".into());
    assert_eq!(call[0].source.labels["orb"], "rtorb".into());
    assert_eq!(call[0].source.run, "2026-11-21T00:00:00Z-1");
    let wakeup = of(&profile, "wakeup");
    assert_eq!(wakeup.len(), 2, "only our own tool");
    assert_eq!(wakeup[1].configuration["load"], "mix".into());
}

#[test]
fn an_event_is_told_with_its_consumers_and_what_it_carries() {
    let profile = Profile::from_results(&measured(), KNOWN).unwrap();
    let event = of(&profile, "event");
    assert_eq!(
        (event.len(), event[0].component.as_str()),
        (1, "event_channel")
    );
    for (name, value) in [
        ("transport", "tcp".into()),
        ("consumers", 4usize.into()),
        ("payload_bytes", 16usize.into()),
    ] {
        assert_eq!(event[0].configuration[name], value);
    }
}

#[test]
fn another_cpu_is_a_configuration_and_a_host_with_one_lacks_nothing() {
    let mut all = measured();
    let profile = Profile::from_results(&all, KNOWN).unwrap();
    let elsewhere: Vec<&Service> = profile
        .services
        .iter()
        .filter(|service| service.configuration.get("cpu") == Some(&"other".into()))
        .collect();
    assert_eq!(elsewhere.len(), 4);
    assert_eq!(elsewhere[0].configuration["by"], "futex".into());
    assert_eq!(elsewhere[3].configuration["peer"], "idle".into());
    let of_two = |results: &&mut Results| results.experiment == "os/other-cpu";
    all.iter_mut().find(of_two).unwrap().series.clear();
    let profile = Profile::from_results(&all, KNOWN).unwrap();
    assert!(profile.incomplete.is_empty(), "{:?}", profile.incomplete);
}

#[test]
fn what_interrupts_is_told_from_what_steals_and_nothing_is_missing_where_nobody_does() {
    let mut all = measured();
    let profile = Profile::from_results(&all, KNOWN).unwrap();
    assert_eq!(profile.tick_period_ns, Some(4_000_000));
    // P3's tick is one of the clock, and that of the kernel another.
    let components: Vec<&str> = of(&profile, "tick")
        .iter()
        .map(|service| service.component.as_str())
        .collect();
    assert_eq!(components, ["clock", "kernel"]);
    assert_eq!(of(&profile, "theft").len(), 1);
    let results = all
        .iter_mut()
        .find(|results| results.experiment == "os/interruptions")
        .unwrap();
    results.derived.clear();
    results
        .series
        .retain(|series| series.labels["what"] != "theft".into());
    let profile = Profile::from_results(&all, KNOWN).unwrap();
    assert!(profile.incomplete.is_empty(), "{:?}", profile.incomplete);
    assert_eq!(profile.tick_period_ns, None);
    assert!(of(&profile, "theft").is_empty());
}

#[test]
fn ways_of_one_service_are_told_apart_by_their_configuration() {
    let profile = Profile::from_results(&measured(), KNOWN).unwrap();
    for (service, name, ways) in [
        ("wake", "by", &["futex", "eventfd"][..]),
        ("round_trip", "transport", &["pipe", "unix", "tcp"]),
    ] {
        let found = of(&profile, service);
        let found: Vec<String> = found
            .iter()
            .filter(|service| !service.configuration.contains_key("cpu"))
            .map(|service| service.configuration[name].to_string())
            .collect();
        assert_eq!(found, ways);
    }
}

#[test]
fn a_derived_number_has_the_statistics_of_its_rounds() {
    let profile = Profile::from_results(&measured(), KNOWN).unwrap();
    let hand_over = of(&profile, "hand_over")[0];
    assert_eq!(
        (hand_over.min, hand_over.mean, hand_over.max),
        (1_000.0, 3_000.0, 6_000.0)
    );
    assert_eq!((hand_over.count, hand_over.p99), (3, 6_000.0));
    // The squared distances from 3,000 are 4, 1 and 9 million; half of their sum is 7 million.
    assert!((hand_over.stddev - 7e6f64.sqrt()).abs() < 1e-6);
    assert_eq!(
        hand_over.source.derived.as_deref(),
        Some("wait_beyond_section")
    );
}

#[test]
fn what_is_missing_is_said() {
    let mut all = measured();
    all.retain(|results| results.experiment != "os/wakeup");
    let queue = &mut all[1];
    queue.series.clear();
    queue
        .notes
        .push("Nothing was measured: no FIFO.".to_owned());
    all[4].complete = false;
    all[7].host.kernel_release = "0.0.1-other".to_owned();
    all[7].started = "2000-01-01T00:00:00Z".to_owned();
    let profile = Profile::from_results(&all, KNOWN).unwrap();
    let why = |experiment: &str| {
        let gaps = profile
            .incomplete
            .iter()
            .filter(|gap| gap.experiment == experiment);
        gaps.map(|gap| gap.why.as_str())
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert!(why("os/wakeup").contains("rtorb lab run os/wakeup"));
    assert!(
        why("os/ready-queue").contains("no FIFO"),
        "{}",
        why("os/ready-queue")
    );
    assert!(why("os/clock-overhead").contains("interrupted"));
    assert!(why("os/mutex").contains("0.0.1-other"));
    assert!(of(&profile, "hand_over").is_empty());
    assert_eq!(why("orb/throughput"), "");
}

#[test]
fn wrong_answers_and_best_effort_are_no_bounds() {
    let mut all = measured();
    all[0].scheduling[0].real_time = false;
    let last = throughput_of(&mut all);
    last.series
        .iter_mut()
        .for_each(|series: &mut Series| series.wrong = 1);
    let profile = Profile::from_results(&all, KNOWN).unwrap();
    assert!(!profile.real_time);
    assert!(of(&profile, "call").is_empty());
}

#[test]
fn calls_to_another_host_are_none_of_this_platform() {
    let mut all = measured();
    let last = throughput_of(&mut all);
    last.server_host = Some(last.host.clone());
    let profile = Profile::from_results(&all, KNOWN).unwrap();
    let of_orb = |service: &&Service| service.source.experiment == "orb/throughput";
    assert_eq!(profile.services.iter().filter(of_orb).count(), 0);
    assert_eq!(profile.incomplete.len(), 1, "{:?}", profile.incomplete);
    assert!(profile.incomplete[0].why.contains("--agent"));
}

#[test]
fn the_last_run_of_an_experiment_counts() {
    let mut all = measured();
    let mut later = all[0].clone();
    later.started = "2026-11-22T00:00:00Z".to_owned();
    later.run = "later".to_owned();
    all.insert(0, later);
    let profile = Profile::from_results(&all, KNOWN).unwrap();
    let switch = of(&profile, "context_switch");
    assert_eq!(switch.len(), 1);
    assert_eq!(switch[0].source.run, "later");
}

#[test]
fn results_without_any_service_make_no_profile() {
    let other = synthetic::results("orb/demux", Vec::new());
    let error = Profile::from_results(&[other], KNOWN)
        .unwrap_err()
        .to_string();
    assert!(error.contains("rtorb lab run profile"), "{error}");
}

#[test]
fn a_file_reads_back_and_another_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = Profile::from_results(&measured(), KNOWN).unwrap();
    let path = profile.write(folder.path()).unwrap();
    assert_eq!(path, folder.path().join("profile.json"));
    assert_eq!(Profile::read(&path).unwrap(), profile);
    profile.schema = "rtorb-profile/9".to_owned();
    profile.write(folder.path()).unwrap();
    let error = Profile::read(&path).unwrap_err().to_string();
    assert!(error.contains("rtorb-profile/9"), "{error}");
    std::fs::write(&path, "[]").unwrap();
    assert!(Profile::read(&path).is_err());
}

#[test]
fn a_profile_of_an_emulated_system_says_what_its_time_is_and_is_the_same_every_time() {
    let emulated = || {
        let mut all = measured();
        for results in &mut all {
            results.emulation = Some(Emulation {
                seeds: 3,
                ..Emulation::default()
            });
        }
        Profile::from_results(&all, KNOWN).unwrap()
    };
    let profile = emulated();
    assert_eq!(profile, emulated());
    let time = profile.virtual_time.as_ref().unwrap();
    assert!(time.nanosecond_is.contains("instruction"));
    let few = profile
        .incomplete
        .iter()
        .filter(|gap| gap.why.contains("it has 3 seeds"));
    assert!(few.count() > 0);
    let text = serde_json::to_value(&profile).unwrap();
    let schema: Value = serde_json::from_str(SCHEMA_TEXT).unwrap();
    assert_eq!(faults(&schema, &text, "profile"), Vec::<String>::new());
}

#[test]
fn the_file_is_as_its_schema_says() {
    let schema: Value = serde_json::from_str(SCHEMA_TEXT).unwrap();
    let mut results = measured();
    results.remove(0);
    let profile = Profile::from_results(&results, KNOWN).unwrap();
    let value = serde_json::to_value(&profile).unwrap();
    assert_eq!(faults(&schema, &value, "profile"), Vec::<String>::new());
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut broken = value.clone();
        change(&mut broken);
        faults(&schema, &broken, "profile").len()
    };
    assert_eq!(
        broken(&|value| value["schema"] = "rtorb-profile/2".into()),
        1
    );
    assert_eq!(
        broken(&|value| value["services"][0]["max"] = "far".into()),
        1
    );
    assert_eq!(
        broken(&|value| value["services"][0]["component"] = "luck".into()),
        1
    );
    assert_eq!(broken(&|value| value["services"][0]["count"] = 0.into()), 1);
    assert_eq!(
        broken(&|value| {
            value.as_object_mut().unwrap().remove("host");
        }),
        1
    );
}

/// What of JSON Schema 2020-12 the schema uses; a keyword that is not known here fails the test.
fn faults(schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "$id" | "title" | "description" => {}
            "const" if rule == value => {}
            "enum" if rule.as_array().unwrap().contains(value) => {}
            "minimum" if value.as_f64() >= rule.as_f64() => {}
            "type" if has_type(rule, value) => {}
            "const" | "enum" | "minimum" | "type" => {
                found.push(format!("{place}: {keyword} {rule}"))
            }
            "required" => {
                let names = rule.as_array().unwrap().iter().filter_map(Value::as_str);
                let missing = names.filter(|name| value.get(name).is_none());
                found.extend(missing.map(|name| format!("{place}: no {name}")));
            }
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    let inner = value.get(name).into_iter();
                    found.extend(inner.flat_map(|inner| faults(rule, inner, name)));
                }
            }
            "additionalProperties" => {
                let known = &schema["properties"];
                let others = value.as_object().unwrap().iter();
                for (name, inner) in others.filter(|(name, _)| known.get(name.as_str()).is_none()) {
                    match rule {
                        Value::Bool(false) => found.push(format!("{place}: {name} is not known")),
                        rule => found.extend(faults(rule, inner, name)),
                    }
                }
            }
            "items" => {
                let items = value.as_array().unwrap().iter();
                found.extend(items.flat_map(|item| faults(rule, item, place)));
            }
            other => panic!("{place}: this test does not know the keyword {other}"),
        }
    }
    found
}

fn has_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type of JSON is called {other}"),
    };
    match rule {
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        rule => is(rule.as_str().unwrap()),
    }
}

const SCHEMA_TEXT: &str = include_str!("../../../../docs/reference/profile.schema.json");
