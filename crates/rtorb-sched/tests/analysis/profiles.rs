//! Profiles with round numbers.

use rtorb_sched::model::Platform;
use serde_json::{Value, json};

/// Creates a service with its min, p99 and max in ns; the mean equals the p99.
pub(crate) fn service(
    component: &str,
    name: &str,
    configuration: Value,
    [min, p99, max]: [u64; 3],
) -> Value {
    json!({
        "component": component, "service": name, "configuration": configuration, "unit": "ns",
        "min": min, "mean": p99, "max": max, "stddev": 1.0, "p99": p99, "count": 1000,
        "source": { "experiment": "os/one", "run": "a run", "derived": null, "labels": { "orb": "rtorb" } },
    })
}

/// A profile of bare metal with all services that a composition needs.
pub(crate) fn profile() -> Value {
    let call = |operation: &str, len: u64, preset: &str, ns: [u64; 3]| {
        let of = json!({ "operation": operation, "len": len, "payload_bytes": len + 4, "transport": "tcp", "preset": preset });
        service("orb", "call", of, ns)
    };
    let event = |name: &str, consumers: u64, ns: u64| {
        let of = json!({ "transport": "tcp", "consumers": consumers, "payload_bytes": 64 });
        service("event_channel", name, of, [ns, ns, ns])
    };
    let queue = |ready: u64, resolution: u64, ns: [u64; 3]| {
        let of = json!({ "ready_tasks": ready, "resolution_us": resolution });
        service("scheduler", "ready_queue_switch", of, ns)
    };
    let lateness = |timers: u64, priority: &str, ns: [u64; 3]| {
        let of = json!({ "timers": timers, "priority": priority, "pattern": "harmonic", "resolution_us": 500 });
        service("timer", "release_lateness", of, ns)
    };
    json!({
        "schema": "rtorb-profile/1", "created": "2026-01-01T00:00:00Z", "later": "a field of tomorrow",
        "host": { "virtualisation": "none", "kernel_release": "6.1" },
        "real_time": true, "incomplete": [], "tick_period_ns": 4_000_000,
        "blocking": {
            "unit": "ns", "bound": 60_000.0, "beyond_wakeup": 50_000.0, "load": "mix", "loads": ["mix"], "count": 1000,
            "usual": { "p99": 30_000.0, "beyond_wakeup": 20_000.0, "load": "mix", "count": 1000 },
        },
        "services": [
            queue(2, 500, [900, 1_000, 1_500]),
            queue(2, 1000, [900, 1_200, 2_000]),
            queue(12, 500, [900, 4_000, 12_000]),
            service("scheduler", "context_switch", json!({ "test": "yield" }), [800, 900, 9_000]),
            service("kernel", "tick", json!({}), [2_000, 4_000, 5_000]),
            service("timer", "release_interrupt", json!({}), [1_000, 2_000, 3_000]),
            lateness(1, "highest", [10_000, 20_000, 30_000]),
            lateness(5, "highest", [12_000, 22_000, 25_000]),
            lateness(5, "lowest", [12_000, 500_000, 900_000]),
            service("mutex", "contended_lock", json!({}), [3_000, 3_500, 4_000]),
            service("scheduler", "wake", json!({ "by": "futex" }), [2_000, 2_500, 2_600]),
            service("scheduler", "wake", json!({ "by": "futex", "cpu": "other", "peer": "awake" }), [4_000, 5_000, 6_000]),
            service("scheduler", "wake", json!({ "by": "futex", "cpu": "other", "peer": "idle" }), [4_000, 6_000, 7_000]),
            call("oneway", 0, "default", [700, 800, 9_000]),
            call("void", 0, "default", [15_000, 18_000, 20_000]),
            call("long", 0, "default", [15_000, 18_500, 21_000]),
            call("long", 0, "tao_propagated", [15_000, 19_000, 25_000]),
            call("octetseq", 1000, "default", [25_000, 31_000, 40_000]),
            service("orb", "servant_work", json!({ "operation": "octetseq", "len": 1000 }), [2_000, 2_100, 9_000]),
            event("event", 1, 40_000),
            event("event", 3, 80_000),
            event("supplier_execution", 1, 1_000), event("supplier_execution", 3, 1_000),
            event("channel_execution", 1, 2_000), event("channel_execution", 3, 4_000),
            event("consumer_execution", 1, 1_000), event("consumer_execution", 3, 3_000),
        ],
    })
}

/// Returns the profile without some services.
pub(crate) fn without(mut profile: Value, gone: &[(&str, &str)]) -> Value {
    if let Some(services) = profile["services"].as_array_mut() {
        services.retain(|one| {
            !gone
                .iter()
                .any(|(component, name)| one["component"] == *component && one["service"] == *name)
        });
    }
    profile
}

/// Returns the platform of a profile.
pub(crate) fn platform(profile: &Value) -> Platform {
    Platform::parse(&profile.to_string()).expect("a profile")
}
