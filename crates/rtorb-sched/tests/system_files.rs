//! The examples of systems are read, and mean what they say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rtorb_sched::Criticality;
use rtorb_sched::model::{System, Timing, Trigger};

/// The annotations of `avionics.idl`, each as it stands there: who reads IDL is another crate.
const ANNOTATIONS: [(&str, &str, Timing); 3] = [
    (
        "Avionics::Filter::smooth",
        "@worst_case_time(\"1ms\") @period(\"50ms\") @criticality(\"very-high\")",
        timing(1_000, None, Some(50_000), Some(Criticality::VeryHigh)),
    ),
    (
        "Avionics::Navigation::update",
        "@worst_case_time(\"3ms\") @deadline(\"40ms\") @period(\"50ms\") @criticality(\"high\")",
        timing(3_000, Some(40_000), Some(50_000), Some(Criticality::High)),
    ),
    (
        "Avionics::Navigation::position",
        "@worst_case_time(\"500us\")",
        timing(500, None, None, None),
    ),
];

const fn timing(
    worst_us: u64,
    deadline_us: Option<u64>,
    period_us: Option<u64>,
    criticality: Option<Criticality>,
) -> Timing {
    const fn ns(us: Option<u64>) -> Option<u64> {
        match us {
            Some(us) => Some(us * 1_000),
            None => None,
        }
    }
    Timing {
        place: String::new(),
        worst_ns: Some(worst_us * 1_000),
        deadline_ns: ns(deadline_us),
        period_ns: ns(period_us),
        criticality,
    }
}

fn annotations(files: &[PathBuf]) -> Result<BTreeMap<String, Timing>, String> {
    let idl = std::fs::read_to_string(&files[0]).map_err(|error| error.to_string())?;
    let each = ANNOTATIONS.into_iter().map(|(name, written, timing)| {
        assert!(idl.contains(written), "{name}: {written}");
        (name.to_owned(), timing)
    });
    Ok(each.collect())
}

fn example(name: &str) -> System {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/model");
    System::read(folder.join(name), &annotations).unwrap_or_else(|error| panic!("{error}"))
}

/// What a CPU has to do in a second without any platform, in ns, by node.
fn demand_ns(system: &System) -> Vec<u64> {
    let mut demand = vec![0; system.nodes.len()];
    for (root, behaviour) in system.behaviours.iter().enumerate() {
        let period_ns = match behaviour.trigger {
            Trigger::Periodic { period_ns } => period_ns,
            Trigger::Sporadic { gap_ns } => gap_ns,
            Trigger::Called => continue,
        };
        let mut waiting = vec![(root, 1_000_000_000 / period_ns)];
        while let Some((place, times)) = waiting.pop() {
            let behaviour = &system.behaviours[place];
            demand[system.place(place).0] += times * behaviour.execution.worst_ns();
            for call in &behaviour.calls {
                let each = call.to.iter();
                waiting.extend(each.map(|callee| (*callee, times * u64::from(call.count))));
            }
        }
    }
    demand
}

#[test]
fn the_examples_leave_room_for_their_platforms() {
    for name in ["avionics.toml", "two-receivers.toml", "robot-arm.toml"] {
        let system = example(name);
        assert_eq!(format!("{}.toml", system.name), name);
        for demand in demand_ns(&system) {
            assert!(demand <= 650_000_000, "{name}: {demand}");
            assert!(demand >= 250_000_000, "{name}: {demand}");
        }
    }
}

#[test]
fn the_overloaded_example_is_overloaded() {
    assert_eq!(demand_ns(&example("overloaded.toml")), [1_200_000_000]);
}

#[test]
fn the_avionics_take_their_timing_from_idl() {
    let system = example("avionics.toml");
    let update = system.behaviour("navigation.update").expect("it is there");
    let update = &system.behaviours[update];
    assert_eq!(update.execution.worst_ns(), 3_000_000);
    assert_eq!(update.deadline_ns, Some(40_000_000));
    assert_eq!(update.criticality, Criticality::High);
}
