//! The costs of a platform from its profile: value, statistic, assumptions, and refused files.

use crate::profiles::{platform, profile, service, without};
use rtorb_sched::model::{Cost, Platform, Statistic};
use serde_json::{Value, json};

fn in_a_virtual_machine() -> Value {
    let mut profile = profile();
    profile["host"]["virtualisation"] = "kvm, container".into();
    profile
}

#[test]
fn costs_are_the_maxima_of_bare_metal() {
    let here = platform(&profile());
    assert_eq!(here.statistic(), Statistic::Max);
    assert!(!here.is_ideal());
    let costs: Vec<(&Cost, u64)> = vec![
        (here.tick(), 5_000),
        (here.tick_period(), 4_000_000),
        (here.release_interrupt(), 3_000),
        // The largest lateness minus the interrupt (3000) and the switch (2000), which are separate terms.
        (here.release_jitter(), 25_000),
        (here.blocking(), 50_000),
        (here.contended_lock(), 4_000),
        (here.remote_wake(), 7_000),
    ];
    for (cost, ns) in costs {
        assert_eq!((cost.ns, &cost.assumption), (ns, &None), "{}", cost.source);
        assert!(cost.samples > 0);
    }
    assert_eq!(here.hypervisor_ns(), 0);
    assert!(
        here.tick().source.contains("max of kernel tick"),
        "{:?}",
        here.tick()
    );
}

#[test]
fn release_jitter_excludes_only_the_interrupt_and_the_switch() {
    let mut slow = profile();
    let services = slow["services"].as_array_mut().expect("services");
    services.push(service(
        "timer",
        "release_interrupt",
        json!({}),
        [9_000, 9_000, 9_000],
    ));
    // Interrupt and switch are 11000 now, and the earliest release is 10000 late: the result is the largest minus the smallest.
    assert_eq!(platform(&slow).release_jitter().ns, 20_000);
}

#[test]
fn costs_in_a_virtual_machine_are_percentiles_without_theft() {
    let mut stolen = in_a_virtual_machine();
    let services = stolen["services"].as_array_mut().expect("services");
    services.push(service(
        "hypervisor",
        "theft",
        json!({}),
        [90_000, 90_000, 30_000_000],
    ));
    let there = platform(&stolen);
    assert_eq!(there.statistic(), Statistic::P99);
    assert_eq!(there.hypervisor_ns(), 30_000_000);
    assert_eq!(there.tick().ns, 4_000);
    assert_eq!(there.context_switch(2).ns, 1_200);
    assert_eq!(there.blocking().ns, 20_000);
    assert_eq!(there.remote_wake().ns, 6_000);
    // The larger of two median configurations, minus interrupt 2000 and switch 1200.
    assert_eq!(there.release_jitter().ns, 18_800);
    let said = there.assumptions().join("\n");
    assert!(
        said.contains("99th percentiles") && said.contains("30ms"),
        "{said}"
    );

    let worst = there.with_statistic(Statistic::Max);
    assert_eq!((worst.tick().ns, worst.blocking().ns), (5_000, 50_000));

    let mut contained = profile();
    contained["host"]["virtualisation"] = "container".into();
    assert_eq!(platform(&contained).statistic(), Statistic::Max);
}

#[test]
fn without_thefts_the_worst_release_shows_the_hypervisor() {
    // The maximum is 900000 minus 500000, of the least urgent.
    assert_eq!(platform(&in_a_virtual_machine()).hypervisor_ns(), 400_000);
}

#[test]
fn blocking_of_an_older_profile_is_its_maximum_with_an_assumption() {
    let mut old = in_a_virtual_machine();
    old["blocking"]
        .as_object_mut()
        .expect("blocking")
        .remove("usual");
    let blocking = platform(&old).blocking().clone();
    assert_eq!(blocking.ns, 50_000);
    assert!(blocking.assumption.expect("said").contains("hypervisor"));
    old["blocking"]["beyond_wakeup"] = Value::Null;
    let whole = platform(&old)
        .with_statistic(Statistic::Max)
        .blocking()
        .clone();
    assert_eq!(whole.ns, 60_000);
    assert!(
        whole
            .assumption
            .expect("said")
            .contains("rtorb lab run os/wakeup")
    );
}

#[test]
fn switches_are_interpolated_by_ready_tasks_with_the_worst_resolution() {
    let here = platform(&profile());
    for (ready, ns) in [
        (0, 2_000),
        (1, 2_000),
        (2, 2_000),
        (3, 3_000),
        (7, 7_000),
        (12, 12_000),
    ] {
        let cost = here.context_switch(ready);
        assert_eq!((cost.ns, cost.assumption), (ns, None), "{ready}");
    }
    let beyond = here.context_switch(20);
    assert_eq!(beyond.ns, 20_000);
    assert!(
        beyond
            .assumption
            .expect("said")
            .contains("up to 12 ready tasks")
    );
}

#[test]
fn calls_are_interpolated_by_payload_with_priorities_without_the_servants_work() {
    let here = platform(&profile());
    // Priorities add 4000 to a call; of the call with 1000 octets, the servant worked at least 2000.
    for (octets, ns) in [(0, 24_000), (1000, 42_000), (500, 33_000), (1, 24_018)] {
        let cost = here.call(octets);
        assert_eq!((cost.ns, cost.assumption), (ns, None), "{octets}");
    }
    let beyond = here.call(2_000);
    assert_eq!(beyond.ns, 60_000);
    assert!(beyond.assumption.expect("said").contains("bytes of data"));
    assert_eq!(
        here.send(0).ns,
        12_000,
        "half of a call, for oneways were sent to who was awake"
    );
    assert_eq!(here.send(1000).ns, 21_000);

    let mut slow = profile();
    let services = slow["services"].as_array_mut().expect("services");
    let of = json!({ "operation": "oneway", "len": 0, "transport": "tcp", "preset": "default" });
    services.push(service("orb", "call", of, [90_000, 90_000, 90_000]));
    assert_eq!(
        platform(&slow).send(1000).ns,
        99_000,
        "what was measured, and what data adds to half of a call"
    );
}

#[test]
fn other_orbs_and_transports_are_ignored() {
    let mut crowded = profile();
    let services = crowded["services"].as_array_mut().expect("services");
    let of = |transport: &str| json!({ "operation": "octetseq", "len": 1000, "transport": transport, "preset": "default" });
    let mut other = service("orb", "call", of("tcp"), [99_000, 99_000, 99_000]);
    other["source"]["labels"]["orb"] = "omniorb".into();
    services.push(other);
    services.push(service("orb", "call", of("unix"), [99_000, 99_000, 99_000]));
    assert_eq!(platform(&crowded).call(1000).ns, 42_000);
}

#[test]
fn an_event_is_divided_in_proportion_to_its_execution() {
    let here = platform(&profile());
    // To one: 40000 in the ratio of 1000 to 2000 (1000 for the event, 1000 for each) to 1000.
    let one = here.event(1, 64);
    let parts = (
        one.push_ns,
        one.channel_ns,
        one.delivery_ns,
        one.consumer_ns,
    );
    assert_eq!(
        (parts, one.assumption),
        ((10_000, 10_000, 10_000, 10_000), None)
    );
    // To three: 80000 in the ratio of 1000 to 4000 to 3000: the same for each.
    let three = here.event(3, 64);
    let parts = (
        three.push_ns,
        three.channel_ns,
        three.delivery_ns,
        three.consumer_ns,
    );
    assert_eq!(parts, (10_000, 10_000, 10_000, 10_000));
    assert_eq!(here.event(2, 64).delivery_ns, 10_000);
    assert!(
        here.event(9, 64)
            .assumption
            .expect("said")
            .contains("9 consumers")
    );
}

/// Missing services, the cost that needs them, its ns, and the command that would measure it.
type Missing = (
    &'static [(&'static str, &'static str)],
    fn(&Platform) -> Cost,
    u64,
    &'static str,
);

#[test]
fn an_unmeasured_cost_uses_a_substitute_with_an_assumption() {
    let cases: Vec<Missing> = vec![
        (
            &[("scheduler", "ready_queue_switch")],
            |at| at.context_switch(9),
            9_000,
            "os/ready-queue",
        ),
        (
            &[
                ("scheduler", "ready_queue_switch"),
                ("scheduler", "context_switch"),
            ],
            |at| at.context_switch(9),
            0,
            "os/ready-queue",
        ),
        (
            &[("kernel", "tick")],
            |at| at.tick().clone(),
            0,
            "lab run profile",
        ),
        (
            &[("timer", "release_interrupt")],
            |at| at.release_interrupt().clone(),
            5_000,
            "lab run profile",
        ),
        (
            &[("timer", "release_lateness")],
            |at| at.release_jitter().clone(),
            0,
            "os/interval-jitter",
        ),
        (
            &[("mutex", "contended_lock")],
            |at| at.contended_lock().clone(),
            0,
            "os/services",
        ),
        (
            &[("scheduler", "wake")],
            |at| at.remote_wake().clone(),
            0,
            "lab run profile",
        ),
        // Calls with a `long` remain, from which the cost of lanes cannot be derived.
        (&[("orb", "call")], |at| at.call(8), 0, "orb/throughput"),
    ];
    for (gone, cost, ns, command) in cases {
        let cost = cost(&platform(&without(profile(), gone)));
        assert_eq!(cost.ns, ns, "{gone:?}: {cost:?}");
        let said = cost.assumption.expect("an assumption");
        assert!(
            said.contains(command) && said.contains("not measured"),
            "{gone:?}: {said}"
        );
    }
    let event = platform(&without(profile(), &[("event_channel", "event")])).event(2, 0);
    assert_eq!((event.push_ns, event.consumer_ns), (12_000, 12_000));
    assert!(event.assumption.expect("said").contains("halves of calls"));
}

#[test]
fn a_tick_of_an_older_profile_is_that_of_the_finest_signal_timer() {
    let mut old = without(profile(), &[("kernel", "tick")]);
    old.as_object_mut()
        .expect("an object")
        .remove("tick_period_ns");
    let services = old["services"].as_array_mut().expect("services");
    for (resolution, tick, ns) in [
        (100, "signal", 30_000),
        (100, "thread", 90_000),
        (1000, "signal", 99_000),
    ] {
        let of = json!({ "resolution_us": resolution, "tick": tick });
        services.push(service("clock", "tick_from_medians", of, [ns, ns, ns]));
    }
    let here = platform(&old);
    assert_eq!(here.tick().ns, 30_000);
    assert_eq!(here.tick_period().ns, 1_000_000);
    assert!(
        here.tick_period()
            .assumption
            .as_ref()
            .expect("said")
            .contains("CONFIG_HZ")
    );
}

#[test]
fn a_weakness_of_a_profile_is_an_assumption() {
    let mut weak = profile();
    weak["real_time"] = false.into();
    weak["incomplete"] = json!([{ "experiment": "os/mutex", "why": "there are no results of it" }]);
    weak["virtual_time"] =
        json!({ "nanosecond_is": "one guest instruction", "leaves_out": ["caches", "buses"] });
    let said = platform(&weak).assumptions().join("\n");
    for words in [
        "largest measured values",
        "not measured in real time",
        "os/mutex: there are no",
        "one guest instruction",
        "caches, buses",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(platform(&profile()).assumptions().len(), 1);
}

#[test]
fn an_ideal_platform_costs_nothing_with_an_assumption() {
    let ideal = Platform::ideal();
    assert!(ideal.is_ideal());
    let event = ideal.event(7, 7);
    let all = [
        ideal.context_switch(9).ns,
        ideal.tick().ns,
        ideal.release_interrupt().ns,
        ideal.release_jitter().ns,
        ideal.blocking().ns,
        ideal.contended_lock().ns,
        ideal.remote_wake().ns,
        ideal.call(9).ns,
        ideal.send(9).ns,
        ideal.hypervisor_ns(),
        event.push_ns,
        event.channel_ns,
        event.delivery_ns,
        event.consumer_ns,
    ];
    assert_eq!(all, [0; 14]);
    assert!(event.assumption.is_none() && ideal.call(9).assumption.is_none());
    assert!(
        ideal.with_statistic(Statistic::P99).assumptions()[0].contains("rtorb lab run profile")
    );
}

#[test]
fn invalid_files_are_refused_with_path_and_reason() {
    let folder = std::env::temp_dir().join(format!("rtorb-platform-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("profile.json");
    let refused = |text: &str| {
        std::fs::write(&path, text).expect("written");
        Platform::read(&path).expect_err("refused").to_string()
    };
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut profile = profile();
        change(&mut profile);
        refused(&profile.to_string())
    };
    let said = [
        (refused("{\n \"schema\": ?"), ":2:"),
        (refused("[1]"), "a platform profile is"),
        (refused("{}"), "no `schema`"),
        (
            changed(&|profile| profile["schema"] = "rtorb-profile/2".into()),
            "\"rtorb-profile/2\"",
        ),
        (
            changed(&|profile| profile["services"] = 3.into()),
            "a platform profile is",
        ),
        (
            changed(&|profile| profile["services"][1]["unit"] = "us".into()),
            "services[1] (scheduler ready_queue_switch",
        ),
        (
            changed(&|profile| profile["services"][0]["count"] = 0.into()),
            "no samples",
        ),
        (
            changed(&|profile| profile["services"][0]["max"] = 1.into()),
            "be at least the one before",
        ),
        (
            changed(&|profile| profile["services"][0]["min"] = (-1).into()),
            "be at least the one before",
        ),
    ];
    for (said, reason) in said {
        assert!(
            said.contains(reason) && said.contains("profile.json"),
            "{said}"
        );
        assert!(said.contains("rtorb lab run profile"), "{said}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
    let said = Platform::read(&path).expect_err("gone").to_string();
    assert!(said.contains("profile.json"), "{said}");
}

#[test]
fn all_mistakes_of_a_profile_are_found_at_once() {
    let mut profile = profile();
    profile["real_time"] = "yes".into();
    profile["services"][0]["max"] = "much".into();
    profile["services"][1]
        .as_object_mut()
        .expect("a service")
        .remove("count");
    let text = serde_json::to_string_pretty(&profile).expect("JSON");
    let mistakes = Platform::parse(&text).expect_err("three mistakes");
    let reasons = mistakes.iter().map(|one| &*one.reason);
    let reasons: Vec<&str> = reasons.collect();
    for part in ["string \"yes\"", "string \"much\"", "`count` is missing"] {
        let found = reasons.iter().filter(|reason| reason.contains(part));
        assert_eq!(found.count(), 1, "{part}: {reasons:?}");
    }
    let at = text.find("\"much\"").expect("it is there");
    assert!(mistakes.iter().any(|one| one.bytes.start == at));
}
