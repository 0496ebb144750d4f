//! Files that are right, files that are wrong and what is said of them.

use super::*;
use crate::model::{CallWay, Execution, Locking, Scheduling, Trigger};
use crate::task::Criticality;

/// One of everything.
const GOOD: &str = r#"name = "avionics"
strategy = "dms"
idl = ["avionics.idl"]
[priorities]
least_urgent = 10
most_urgent = 60

[[node]]
name = "mission"
cpus = 2
profile = "profile.json"
tick = "4ms"
[[node]]
name = "arm"
scheduling = "edf"
[[node]]
name = "far"
[[link]]
between = ["arm", "mission"]
latency = "150us"
bits_per_second = 100_000_000

[[channel]]
name = "telemetry"
node = "mission"
cpu = 1

[[component]]
name = "sensors"
node = "mission"
[[component.resource]]
name = "bus"
mutex = "ceiling"
[[component.behaviour]]
name = "sample"
period = "50ms"
execution = "2ms"
deadline = "40ms"
criticality = "very-high"
priority = 40
jitter = "100us"
sections = [{ resource = "bus", length = "100us" }]
calls = [
  { to = "filter.update", count = 2, payload = 64 },
  { to = "nav.update", way = "one-way" },
  { to = ["nav.show", "log.write"], way = "event", channel = "telemetry", payload = 128 },
]

[[component]]
name = "filter"
node = "mission"
cpu = 1
[[component.behaviour]]
name = "update"
execution = { least = "1ms", most = "2ms" }

[[component]]
name = "nav"
node = "arm"
[[component.behaviour]]
name = "update"
operation = "Avionics::Nav::update"
priority = 30
[[component.behaviour]]
name = "show"
execution = { histogram = [{ up_to = "1ms", count = 90 }, { up_to = "3ms", count = 10 }] }
[[component.behaviour]]
name = "ask"
operation = "Avionics::Nav::ask"
execution = "1ms"

[[component]]
name = "log"
node = "mission"
[[component.resource]]
name = "disk"
[[component.behaviour]]
name = "write"
execution = "1ms"
[[component.behaviour]]
name = "alarm"
minimum_gap = "1s"
execution = "1ms"

[[chain]]
name = "sensor to display"
through = ["sensors.sample", "nav.show"]
deadline = "45ms"
"#;

fn annotations(_: &[PathBuf]) -> Result<BTreeMap<String, Timing>, String> {
    let update = Timing {
        place: "avionics.idl:7".to_owned(),
        worst_ns: Some(3_000_000),
        deadline_ns: Some(30_000_000),
        period_ns: Some(50_000_000),
        criticality: Some(Criticality::High),
    };
    let ask = Timing {
        period_ns: Some(20_000_000),
        ..Timing::default()
    };
    Ok(BTreeMap::from([
        ("Avionics::Nav::update".to_owned(), update),
        ("Avionics::Nav::ask".to_owned(), ask),
    ]))
}

fn parse(text: &str) -> Result<System, (Option<usize>, String)> {
    System::parse(text, Path::new("/systems"), &annotations)
}

#[test]
fn a_file_with_everything_is_read() {
    let system = parse(GOOD).expect("a system");
    assert_eq!(system.nodes[0].cpus, 2);
    let profile = system.nodes[0].profile.as_deref();
    assert_eq!(profile, Some(Path::new("/systems/profile.json")));
    assert_eq!(system.nodes[1].scheduling, Scheduling::EarliestDeadline);
    assert_eq!(system.links[0].between, [1, 0]);
    assert_eq!((system.channels[0].node, system.channels[0].cpu), (0, 1));
    assert_eq!(system.resources[0].locking, Locking::Ceiling);
    assert_eq!(system.resources[1].locking, Locking::Inheritance);
    let sample = &system.behaviours[0];
    assert_eq!(
        sample.trigger,
        Trigger::Periodic {
            period_ns: 50_000_000
        }
    );
    assert_eq!(sample.calls[2].way, CallWay::Event { channel: 0 });
    assert_eq!(sample.calls[2].to, [3, 5]);
    assert_eq!(sample.calls[0].count, 2);
    assert_eq!(system.behaviours[1].execution.worst_ns(), 2_000_000);
    assert_eq!(system.behaviours[3].execution.worst_ns(), 3_000_000);
    assert_eq!(system.chains[0].through, [0, 3]);
    assert_eq!(system.behaviour("log.alarm"), Some(6));
}

#[test]
fn annotations_say_what_the_file_does_not() {
    let system = parse(GOOD).expect("a system");
    let update = &system.behaviours[2];
    assert_eq!(update.execution, Execution::Fixed { ns: 3_000_000 });
    assert_eq!(update.deadline_ns, Some(30_000_000));
    assert_eq!(update.criticality, Criticality::High);
    assert_eq!(update.trigger, Trigger::Called);
    let ask = &system.behaviours[4];
    assert_eq!(ask.trigger, Trigger::Sporadic { gap_ns: 20_000_000 });
}
