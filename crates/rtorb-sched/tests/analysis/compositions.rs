//! Properties of every composition of random systems: it loses no execution and adds none.

use std::collections::BTreeSet;

use crate::profiles::{platform, profile, service};
use proptest::prelude::*;
use rtorb_sched::model::{
    Behaviour, Call, CallWay, Channel, CompiledRequirements, Component, Composition, Enforcement,
    Execution, Layer, Link, Node, Part, Platform, SchedulingPolicy, System, Trigger, compose,
};
use rtorb_sched::{PriorityRange, Strategy as Order};
use serde_json::json;

/// How behaviours are released: a called one is always called in the same way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Begun {
    ByItself,
    TwoWay,
    OneWay,
    ByEvent,
}

/// A behaviour before it has an index: its CPU, its trigger, its execution, and its calls with count and payload.
type Drawn = (usize, Begun, u64, Vec<(usize, u32, u32)>);

fn drawn() -> impl Strategy<Value = Drawn> {
    let begun = prop_oneof![
        Just(Begun::ByItself),
        Just(Begun::TwoWay),
        Just(Begun::TwoWay),
        Just(Begun::OneWay),
        Just(Begun::ByEvent)
    ];
    let call = (1..5_usize, 1..4_u32, 0..3_000_u32);
    (
        0..4_usize,
        begun,
        0..1_000_000_u64,
        prop::collection::vec(call, 0..3),
    )
}

/// Returns the behaviour at this index, with those of its calls whose callee may be called.
fn behaviour(drawn: &[Drawn], at: usize) -> Behaviour {
    let (place, begun, execution_ns, calls) = &drawn[at];
    let calls = calls.iter().filter_map(|(ahead, count, octets)| {
        let to = at + ahead;
        let way = match drawn.get(to)?.1 {
            Begun::ByItself => return None,
            Begun::TwoWay => CallWay::TwoWay,
            Begun::OneWay => CallWay::OneWay,
            Begun::ByEvent => CallWay::Event { channel: 0 },
        };
        let waits = way == CallWay::TwoWay;
        Some(Call {
            to: vec![to],
            way,
            payload_bytes: *octets,
            count: if waits { *count } else { 1 },
            lingering_ns: 0,
            line: 1,
        })
    });
    let begins = at == 0 || *begun == Begun::ByItself;
    Behaviour {
        name: format!("c{place}.b{at}"),
        component: *place,
        trigger: if begins {
            Trigger::Periodic {
                period_ns: 1_000_000_000,
                offset_ns: None,
            }
        } else {
            Trigger::Called
        },
        gap_max_ns: None,
        execution: Execution::Fixed { ns: *execution_ns },
        enforcement: Enforcement::Count,
        deadline_ns: None,
        criticality: rtorb_sched::Criticality::Medium,
        priority: None,
        operation: None,
        miss_ratio: None,
        requirements: CompiledRequirements::NONE,
        jitter_ns: 0,
        sections: Vec::new(),
        calls: calls.collect(),
        line: 1,
    }
}

/// Two nodes with two CPUs, a component on each CPU, and calls to later behaviours only: no cycle.
fn system(drawn: &[Drawn]) -> System {
    let node = |name: &str| Node {
        name: name.to_owned(),
        cpus: 2,
        profile: None,
        scheduling: vec![SchedulingPolicy::FixedPriority; 2],
        levels: None,
        tick_ns: None,
        line: 1,
    };
    let component = |place: usize| Component {
        name: format!("c{place}"),
        node: place / 2,
        cpu: u32::from(place % 2 == 1),
        line: 1,
    };
    System {
        name: "random".to_owned(),
        strategy: Order::RateMonotonic,
        priorities: PriorityRange {
            least_urgent: 1,
            most_urgent: 99,
        },
        nodes: vec![node("one"), node("two")],
        links: vec![Link {
            between: [0, 1],
            latency_ns: 1_000,
            bits_per_second: Some(1_000_000_000),
            line: 1,
        }],
        channels: vec![Channel {
            name: "channel".to_owned(),
            node: 1,
            cpu: 1,
            line: 1,
        }],
        components: (0..4).map(component).collect(),
        behaviours: (0..drawn.len()).map(|at| behaviour(drawn, at)).collect(),
        resources: Vec::new(),
        chains: Vec::new(),
        cause_effect_chains: Vec::new(),
    }
}

/// Sums the execution of a behaviour and all that it releases, in components and in the ORB, independently of the composition.
fn begun_by(system: &System, platform: &Platform, behaviour: usize) -> (u64, u64) {
    let described = &system.behaviours[behaviour];
    let mut sum = (described.execution.worst_ns(), 0);
    for call in &described.calls {
        let (code, orb) = begun_by(system, platform, call.to[0]);
        let octets = call.payload_bytes;
        let over = match call.way {
            CallWay::TwoWay => platform.call(octets).ns,
            CallWay::OneWay => platform.send(octets).ns + platform.call(octets).ns / 2,
            CallWay::Event { .. } => {
                let event = platform.event(1, octets);
                event.push_ns + event.channel_ns + event.delivery_ns + event.consumer_ns
            }
        };
        sum.0 += u64::from(call.count) * code;
        sum.1 += u64::from(call.count) * (orb + over);
    }
    sum
}

/// Returns all call paths from a behaviour.
fn paths(system: &System, path: &[usize], found: &mut BTreeSet<Vec<usize>>) {
    found.insert(path.to_vec());
    let last = path[path.len() - 1];
    for call in &system.behaviours[last].calls {
        paths(system, &[path, &call.to].concat(), found);
    }
}

fn of_layer(parts: &[Part], layer: Layer) -> u64 {
    parts
        .iter()
        .filter(|part| part.layer == layer)
        .map(|part| part.ns)
        .sum()
}

fn roots(system: &System) -> Vec<usize> {
    let is_root = |at: &usize| matches!(system.behaviours[*at].trigger, Trigger::Periodic { .. });
    (0..system.behaviours.len()).filter(is_root).collect()
}

fn check_sums(system: &System, platform: &Platform, composed: &Composition) {
    for root in roots(system) {
        let of_it = || {
            composed
                .segments
                .iter()
                .filter(|segment| segment.root == root)
        };
        let sum = |layer| {
            of_it()
                .map(|segment| of_layer(&segment.execution, layer))
                .sum::<u64>()
        };
        let found = (sum(Layer::Application), sum(Layer::Orb));
        assert_eq!(found, begun_by(system, platform, root), "of root {root}");
        assert_eq!(sum(Layer::Hardware), 0, "nobody executes a network");
    }
}

fn check_tree(system: &System, composed: &Composition) {
    for (at, segment) in composed.segments.iter().enumerate() {
        match segment.after {
            Some(after) => {
                assert!(after < at && composed.segments[after].root == segment.root);
                let moved = composed.segments[after].processor != segment.processor;
                assert!(moved || segment.delay.is_empty(), "delays are between CPUs");
                assert!(segment.jitter.is_empty());
            }
            None => assert!(segment.behaviour == segment.root && segment.delay.is_empty()),
        }
        let named = segment
            .execution
            .iter()
            .map(|part| (part.what.as_str(), part.code_of));
        let distinct: BTreeSet<_> = named.clone().collect();
        assert_eq!(distinct.len(), named.count(), "a part a cost");
    }
    for activation in &composed.activations {
        let (first, last) = (
            activation.path[0],
            activation.path[activation.path.len() - 1],
        );
        assert_eq!((first, last), (activation.root, activation.behaviour));
        for step in activation.path.windows(2) {
            let mut calls = system.behaviours[step[0]].calls.iter();
            assert!(
                calls.any(|call| call.to.contains(&step[1])),
                "{activation:?} follows no calls"
            );
        }
        let done = &composed.segments[activation.done];
        let processor = &composed.processors[done.processor];
        assert_eq!(done.root, activation.root);
        // It ends on the CPU where it runs.
        let placement = system.placement(activation.behaviour);
        assert_eq!(
            (processor.node, processor.cpu),
            (placement.node, placement.cpu)
        );
    }
    let mut all = BTreeSet::new();
    for root in roots(system) {
        paths(system, &[root], &mut all);
    }
    let found: BTreeSet<Vec<usize>> = composed
        .activations
        .iter()
        .map(|one| one.path.clone())
        .collect();
    assert_eq!(
        found, all,
        "every path of calls has an end, and there are no others"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn released_behaviours_execute_once_and_end_on_their_cpu(drawn in prop::collection::vec(drawn(), 1..10)) {
        let system = system(&drawn);
        // A call without payload takes an odd time, so that its halves differ.
        let mut odd = profile();
        let of = json!({ "operation": "void", "len": 0, "transport": "tcp", "preset": "default" });
        odd["services"].as_array_mut().expect("services").push(service("orb", "call", of, [1, 1, 20_001]));
        let platform = platform(&odd);
        let composed = compose(&system, &[platform.clone(), platform.clone()]).expect("composed");
        check_sums(&system, &platform, &composed);
        check_tree(&system, &composed);
        for segment in &composed.segments {
            // Two switches each, with at most as many ready tasks as segments.
            let most = platform.context_switch(composed.segments.len() as u64).ns;
            let switches = of_layer(&segment.execution, Layer::OperatingSystem);
            prop_assert!(switches >= 2 * platform.context_switch(1).ns && switches <= 2 * most);
            prop_assert_eq!(of_layer(&segment.blocking, Layer::OperatingSystem), 50_000);
        }
    }

    #[test]
    fn an_ideal_platform_adds_nothing(drawn in prop::collection::vec(drawn(), 1..10)) {
        let system = system(&drawn);
        let ideal = Platform::ideal();
        let composed = compose(&system, &[ideal.clone(), ideal.clone()]).expect("composed");
        check_sums(&system, &ideal, &composed);
        check_tree(&system, &composed);
        for segment in &composed.segments {
            let networks = segment.delay.iter().all(|part| part.layer == Layer::Hardware);
            let code = segment.execution.iter().all(|part| part.code_of.is_some());
            prop_assert!(networks && code && segment.jitter.is_empty() && segment.blocking.is_empty());
        }
        let none = composed.processors.iter().all(|one| one.interrupts.is_empty() && one.hypervisor_ns == 0);
        prop_assert!(none);
        prop_assert!(composed.assumptions.iter().all(|one| one.what.contains("there is no profile")));
    }
}
