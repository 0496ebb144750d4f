//! Compositions computed by hand: each rule of docs/explanation/model.md, "Composition".
//!
//! Costs of the platform (profiles.rs), in ns: switch 2000 with up to 2 ready tasks and 1000 more for each beyond; tick 5000 every
//! 4 ms; release interrupt 3000; release jitter 25000; kernel sections 50000; contended lock 4000; wake-up of another CPU 7000; two-way
//! call 24000 and 18 per byte; oneway half of that; of an event, 10000 each for push, channel, each delivery and each consumer.

use std::collections::BTreeMap;
use std::path::Path;

use crate::profiles::{platform, profile, without};
use rtorb_sched::model::{
    ComposeError, Composition, Layer, Part, Platform, SEGMENTS_MAX, Segment, System, compose,
};

fn system(text: &str) -> System {
    let text = format!("name = \"test\"\n{text}");
    System::parse(&text, Path::new("."), &|_| Ok(BTreeMap::new()))
        .unwrap_or_else(|wrong| panic!("{wrong:?}"))
}

/// Composes a system with the same platform for each node.
fn composed(system: &System) -> Composition {
    let platforms = vec![platform(&profile()); system.nodes.len()];
    compose(system, &platforms).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the parts as `what`, times and ns.
fn told(parts: &[Part]) -> Vec<(&str, u64, u64)> {
    parts
        .iter()
        .map(|part| (part.what.as_str(), part.times, part.ns))
        .collect()
}

fn execution(segment: &Segment) -> Vec<(&str, u64, u64)> {
    told(&segment.execution)
}

/// Returns the activations of a behaviour, as path and segment.
fn ends<'a>(system: &'a System, composed: &Composition, name: &str) -> Vec<(Vec<&'a str>, usize)> {
    let behaviour = system.behaviour(name).expect("a behaviour");
    let of_it = composed
        .activations
        .iter()
        .filter(|one| one.behaviour == behaviour);
    of_it
        .map(|one| {
            (
                one.path
                    .iter()
                    .map(|at| system.behaviours[*at].name.as_str())
                    .collect(),
                one.done,
            )
        })
        .collect()
}

const ONE_NODE: &str = r#"
[[node]]
name = "here"
cpus = 3
"#;

#[test]
fn a_single_behaviour_has_its_code_two_switches_and_the_kernels_costs() {
    let system = system(&format!(
        r#"{ONE_NODE}
[[component]]
name = "a"
[[component.behaviour]]
name = "run"
period = "10ms"
execution = "1ms"
jitter = "1us"
"#
    ));
    let composed = composed(&system);
    let [segment] = &composed.segments[..] else {
        panic!("{composed:?}")
    };
    assert_eq!(
        execution(segment),
        [
            ("execution of a.run", 1, 1_000_000),
            ("context switches", 2, 4_000)
        ]
    );
    assert_eq!(
        told(&segment.jitter),
        [
            ("release jitter of the clock", 1, 25_000),
            ("release jitter of a.run", 1, 1_000)
        ]
    );
    assert_eq!(
        told(&segment.blocking),
        [("kernel sections that cannot be preempted", 1, 50_000)]
    );
    assert_eq!(segment.execution[0].code_of, Some(0));
    assert_eq!(segment.execution[1].code_of, None);
    assert!(segment.delay.is_empty() && segment.sections.is_empty() && segment.after.is_none());

    let [processor] = &composed.processors[..] else {
        panic!("{composed:?}")
    };
    let interrupts: Vec<(u64, u64, &str, u64)> = processor
        .interrupts
        .iter()
        .map(|one| {
            let what = one.cost.what.as_str();
            (one.period_ns, one.jitter_ns, what, one.cost.ns)
        })
        .collect();
    assert_eq!(
        interrupts,
        [
            (4_000_000, 0, "tick", 5_000),
            (10_000_000, 1_000, "release of a.run", 3_000)
        ]
    );
    assert_eq!(ends(&system, &composed, "a.run"), [(vec!["a.run"], 0)]);
}

#[test]
fn the_files_tick_overrides_the_profiles() {
    let system = system(
        r#"
[[node]]
name = "here"
tick = "1ms"
[[component]]
name = "a"
[[component.behaviour]]
name = "run"
minimum_gap = "10ms"
execution = "1ms"
"#,
    );
    let composed = composed(&system);
    assert_eq!(composed.processors[0].interrupts[0].period_ns, 1_000_000);
    assert_eq!(composed.processors[0].interrupts[1].period_ns, 10_000_000);
}

#[test]
fn switches_grow_with_what_may_be_ready_on_their_cpu() {
    let mut text = ONE_NODE.to_owned();
    for place in 0..5 {
        // Four on one CPU, one on another.
        let cpu = place / 4;
        text.push_str(&format!(
            "[[component]]\nname = \"a{place}\"\ncpu = {cpu}\n[[component.behaviour]]\nname = \"run\"\nperiod = \"10ms\"\nexecution = \"1us\"\n"
        ));
    }
    let composed = composed(&system(&text));
    let switches: Vec<u64> = composed
        .segments
        .iter()
        .map(|segment| segment.execution[1].ns)
        .collect();
    assert_eq!(switches, [8_000, 8_000, 8_000, 8_000, 4_000]);
}

const TWO_WAY_HERE: &str = r#"
[[component]]
name = "a"
[[component.behaviour]]
name = "run"
period = "10ms"
execution = "1ms"
calls = [{ to = "b.serve", count = 3, payload = 1000 }]
[[component]]
name = "b"
[[component.resource]]
name = "table"
[[component.behaviour]]
name = "serve"
execution = "100us"
sections = [{ resource = "table", length = "10us" }]
calls = [{ to = "c.look", count = 2 }]
[[component]]
name = "c"
[[component.behaviour]]
name = "look"
execution = "7us"
"#;

#[test]
fn a_two_way_call_on_one_cpu_is_the_callers_own_execution() {
    let system = system(&format!("{ONE_NODE}{TWO_WAY_HERE}"));
    let composed = composed(&system);
    let [segment] = &composed.segments[..] else {
        panic!("{composed:?}")
    };
    assert_eq!(
        execution(segment),
        [
            ("execution of a.run", 1, 1_000_000),
            // Three with 1000 octets (42000), and in each two without data (24000).
            ("two-way calls", 9, 3 * 42_000 + 6 * 24_000),
            ("execution of b.serve", 3, 300_000),
            ("execution of c.look", 6, 42_000),
            ("context switches", 2, 4_000),
        ]
    );
    // The servant locks in its caller's segment.
    let serve = system.behaviour("b.serve").expect("a behaviour");
    assert_eq!(segment.sections.len(), 1);
    assert_eq!(
        (segment.sections[0].0, segment.sections[0].1.length_ns),
        (serve, 10_000)
    );
    assert_eq!(segment.contended_lock_ns, 4_000);
    assert_eq!(
        ends(&system, &composed, "c.look"),
        [(vec!["a.run", "b.serve", "c.look"], 0)]
    );
    assert_eq!(
        ends(&system, &composed, "b.serve"),
        [(vec!["a.run", "b.serve"], 0)]
    );
}

#[test]
fn both_sides_of_a_call_linger_at_the_callers_priority_each_time() {
    let here = format!("{ONE_NODE}{TWO_WAY_HERE}")
        .replace("payload = 1000", "payload = 1000, lingering = \"50us\"");
    let lingering = |segment: &Segment| {
        let all = execution(segment).into_iter();
        let of_it = all.filter(|part| part.0 == "lingering in shared memory");
        of_it.map(|part| (part.1, part.2)).collect::<Vec<_>>()
    };
    let segments = composed(&system(&here)).segments;
    let [segment] = &segments[..] else {
        panic!("{segments:?}")
    };
    assert_eq!(lingering(segment), [(6, 300_000)]);
    let there = here.replace("name = \"b\"", "name = \"b\"\ncpu = 1");
    let segments = composed(&system(&there.replace("count = 3", "count = 1"))).segments;
    let each: Vec<_> = segments.iter().map(lingering).collect();
    // The client's before it waits, the server's; neither the call to `c` nor the rest of the caller has any.
    assert_eq!(each[..2], [[(1, 50_000)], [(1, 50_000)]]);
    assert!(each[2..].iter().all(Vec::is_empty), "{each:?}");
}

#[test]
fn no_call_lingers_between_nodes() {
    let text = format!(
        "name = \"test\"\n{ONE_NODE}{TWO_WAY_HERE}\n[[node]]\nname = \"there\"\n\
         [[link]]\nbetween = [\"here\", \"there\"]\nlatency = \"1ms\"\n"
    );
    let text = text
        .replace("name = \"b\"", "name = \"b\"\nnode = \"there\"")
        .replace(
            "[[component]]\nname = \"a\"",
            "[[component]]\nname = \"a\"\nnode = \"here\"",
        )
        .replace(
            "[[component]]\nname = \"c\"",
            "[[component]]\nname = \"c\"\nnode = \"here\"",
        );
    let parse = |text: &str| System::parse(text, Path::new("."), &|_| Ok(BTreeMap::new()));
    parse(&text).expect("it is right");
    let lingering = text.replace("payload = 1000", "payload = 1000, lingering = \"50us\"");
    let (_, reason) = parse(&lingering).expect_err("they share no memory");
    assert!(reason.contains("share no memory"), "{reason}");
}

#[test]
fn a_two_way_call_to_another_cpu_ends_the_callers_segment_and_begins_another() {
    let here = format!("{ONE_NODE}{TWO_WAY_HERE}").replace("name = \"b\"", "name = \"b\"\ncpu = 1");
    let system = system(
        &here
            .replace("count = 3", "count = 2")
            .replace("name = \"c\"", "name = \"c\"\ncpu = 1"),
    );
    let composed = composed(&system);
    // a calls, b serves, a goes on and calls, b serves, a goes on.
    let run = system.behaviour("a.run").expect("a behaviour");
    let after: Vec<Option<usize>> = composed
        .segments
        .iter()
        .map(|segment| segment.after)
        .collect();
    assert_eq!(after, [None, Some(0), Some(1), Some(2), Some(3)]);
    let processors: Vec<usize> = composed
        .segments
        .iter()
        .map(|segment| segment.processor)
        .collect();
    assert_eq!(processors, [0, 1, 0, 1, 0]);
    assert!(
        composed
            .segments
            .iter()
            .all(|segment| segment.priority_of == run && segment.root == run)
    );
    // A call with 1000 octets is 42000: 10500 to send, 21000 to serve, 10500 to get the reply.
    assert_eq!(
        execution(&composed.segments[0]),
        [
            ("execution of a.run", 1, 1_000_000),
            ("two-way calls, the client's side", 1, 10_500),
            ("context switches", 2, 4_000)
        ]
    );
    assert_eq!(
        told(&composed.segments[1].delay),
        [("wake-up of another CPU", 1, 7_000)]
    );
    assert_eq!(
        execution(&composed.segments[1]),
        [
            ("two-way calls, the server's side", 1, 21_000),
            ("execution of b.serve", 1, 100_000),
            ("two-way calls", 2, 48_000),
            ("execution of c.look", 2, 14_000),
            ("context switches", 2, 4_000),
        ]
    );
    assert_eq!(
        told(&composed.segments[2].delay),
        [("wake-up of another CPU", 1, 7_000)]
    );
    assert_eq!(
        execution(&composed.segments[2]),
        [
            ("two-way calls, the client's side", 2, 21_000),
            ("context switches", 2, 4_000)
        ]
    );
    assert_eq!(
        execution(&composed.segments[4])[0],
        ("two-way calls, the client's side", 1, 10_500)
    );
    assert!(composed.segments[0].sections.is_empty() && composed.segments[1].sections.len() == 1);
    assert_eq!(ends(&system, &composed, "a.run"), [(vec!["a.run"], 4)]);
    let serve = ["a.run", "b.serve"].to_vec();
    assert_eq!(
        ends(&system, &composed, "b.serve"),
        [(serve.clone(), 1), (serve, 3)]
    );
}

const TWO_NODES: &str = r#"
[[node]]
name = "here"
[[node]]
name = "there"
[[link]]
between = ["there", "here"]
latency = "100us"
bits_per_second = 8_000_000
"#;

#[test]
fn between_nodes_the_link_delays_the_request_with_its_data_and_the_reply() {
    let text = format!("{TWO_NODES}{TWO_WAY_HERE}");
    let mut text = text
        .replace("count = 3, ", "")
        .replace("count = 2", "count = 1");
    for (component, node) in [("a", "here"), ("b", "there"), ("c", "there")] {
        let name = format!("name = \"{component}\"\n[[component.");
        text = text.replace(
            &name,
            &format!("name = \"{component}\"\nnode = \"{node}\"\n[[component."),
        );
    }
    let system = system(&text);
    let composed = composed(&system);
    assert_eq!(composed.segments.len(), 3);
    assert_eq!(
        told(&composed.segments[1].delay),
        // A megaoctet a second: 1000 octets take a millisecond.
        [
            ("network between there and here", 1, 100_000),
            ("data between there and here", 1, 1_000_000),
            ("wake-up of another CPU", 1, 7_000)
        ]
    );
    assert_eq!(
        told(&composed.segments[2].delay),
        [
            ("network between there and here", 1, 100_000),
            ("wake-up of another CPU", 1, 7_000)
        ]
    );
    assert!(
        composed.segments[1].delay[0].layer == Layer::Hardware
            && composed.segments[1].delay[2].layer == Layer::OperatingSystem
    );
    // Each processor has its own tick; only that of the root its releases.
    let interrupts: Vec<usize> = composed
        .processors
        .iter()
        .map(|one| one.interrupts.len())
        .collect();
    assert_eq!(interrupts, [2, 1]);

    let mut cut = system.clone();
    cut.links.clear();
    let error = compose(&cut, &vec![Platform::ideal(); 2]).expect_err("nothing joins them");
    assert!(
        matches!(&error, ComposeError::NoLink { from, to, .. } if from == "here" && to == "there"),
        "{error}"
    );
    assert!(error.to_string().contains("a.run calls b.serve"), "{error}");
}

#[test]
fn a_oneway_begins_a_segment_of_its_own_after_its_senders() {
    let system = system(&format!(
        r#"{ONE_NODE}
[[component]]
name = "a"
[[component.behaviour]]
name = "run"
period = "10ms"
execution = "1ms"
calls = [{{ to = "b.near", way = "one-way", payload = 1000 }}, {{ to = "c.far", way = "one-way" }}]
[[component]]
name = "b"
[[component.behaviour]]
name = "near"
execution = "100us"
[[component]]
name = "c"
cpu = 2
[[component.behaviour]]
name = "far"
execution = "200us"
"#
    ));
    let composed = composed(&system);
    let [sender, near, far] = &composed.segments[..] else {
        panic!("{composed:?}")
    };
    assert_eq!(
        execution(sender),
        [
            ("execution of a.run", 1, 1_000_000),
            ("sending of oneways", 2, 21_000 + 12_000),
            ("context switches", 2, 4_000)
        ]
    );
    assert_eq!(
        execution(near),
        [
            ("receiving of oneways", 1, 21_000),
            ("execution of b.near", 1, 100_000),
            ("context switches", 2, 4_000)
        ]
    );
    assert_eq!(
        execution(far),
        [
            ("receiving of oneways", 1, 12_000),
            ("execution of c.far", 1, 200_000),
            ("context switches", 2, 4_000)
        ]
    );
    assert!(near.delay.is_empty() && near.jitter.is_empty());
    assert_eq!(told(&far.delay), [("wake-up of another CPU", 1, 7_000)]);
    assert_eq!((near.after, far.after), (Some(0), Some(0)));
    assert_eq!((near.priority_of, near.behaviour), (1, 1));
    assert_eq!((far.priority_of, far.root, far.processor), (2, 0, 1));
    assert_eq!(composed.processors[1].cpu, 2);
    assert_eq!(
        ends(&system, &composed, "c.far"),
        [(vec!["a.run", "c.far"], 2)]
    );
}

#[test]
fn an_event_goes_through_the_channel_at_its_suppliers_and_then_its_consumers_priorities() {
    let system = system(&format!(
        r#"{ONE_NODE}
[[channel]]
name = "news"
cpu = 1
[[component]]
name = "a"
[[component.behaviour]]
name = "run"
period = "10ms"
execution = "1ms"
calls = [{{ to = ["b.first", "c.second"], way = "event", channel = "news", payload = 64 }}]
[[component]]
name = "b"
[[component.behaviour]]
name = "first"
execution = "100us"
[[component]]
name = "c"
cpu = 1
[[component.behaviour]]
name = "second"
execution = "200us"
"#
    ));
    let composed = composed(&system);
    let [a, channel, to_b, to_c, b, c] = &composed.segments[..] else {
        panic!("{composed:?}")
    };
    let of = |segment: &Segment| {
        (
            segment.after,
            segment.priority_of,
            segment.processor,
            segment.delay.len(),
        )
    };
    assert_eq!(execution(a)[1], ("pushing of events", 1, 10_000));
    assert_eq!(of(channel), (Some(0), 0, 1, 1));
    assert_eq!(
        execution(channel)[0],
        ("event channel, for each event", 1, 10_000)
    );
    assert_eq!(of(to_b), (Some(1), 1, 1, 0));
    assert_eq!(of(to_c), (Some(1), 2, 1, 0));
    assert_eq!(
        execution(to_c)[0],
        ("event channel, for each consumer", 1, 10_000)
    );
    assert_eq!(of(b), (Some(2), 1, 0, 1));
    assert_eq!(of(c), (Some(3), 2, 1, 0));
    // On the channel's CPU there are the supplier's part of the channel, both consumers' parts, and the second consumer: of these,
    // one's two segments are never ready at once.
    assert_eq!(
        execution(c),
        [
            ("receiving of events", 1, 10_000),
            ("execution of c.second", 1, 200_000),
            ("context switches", 2, 6_000)
        ]
    );
    assert_eq!(
        ends(&system, &composed, "b.first"),
        [(vec!["a.run", "b.first"], 4)]
    );
}

#[test]
fn several_paths_from_a_root_to_a_behaviour_are_several_activations() {
    let system = system(&format!(
        r#"{ONE_NODE}
[[component]]
name = "a"
[[component.behaviour]]
name = "run"
period = "10ms"
execution = "1us"
calls = [{{ to = "b.left" }}, {{ to = "b.right" }}, {{ to = "b.end", way = "one-way" }}]
[[component]]
name = "b"
[[component.behaviour]]
name = "left"
execution = "1us"
calls = [{{ to = "b.end", way = "one-way" }}]
[[component.behaviour]]
name = "right"
execution = "1us"
[[component.behaviour]]
name = "end"
execution = "1us"
"#
    ));
    let composed = composed(&system);
    assert_eq!(
        ends(&system, &composed, "b.end"),
        [
            (vec!["a.run", "b.left", "b.end"], 1),
            (vec!["a.run", "b.end"], 2)
        ]
    );
    assert_eq!(
        ends(&system, &composed, "b.right"),
        [(vec!["a.run", "b.right"], 0)]
    );
}

#[test]
fn assumptions_appear_once_for_each_node_that_uses_them() {
    let system = system(
        &format!("{TWO_NODES}{TWO_WAY_HERE}")
            .replace("name = \"a\"", "name = \"a\"\nnode = \"here\"")
            .replace("name = \"b\"", "name = \"b\"\nnode = \"here\"")
            .replace("name = \"c\"", "name = \"c\"\nnode = \"here\""),
    );
    let poor = without(
        profile(),
        &[
            ("orb", "call"),
            ("event_channel", "event"),
            ("scheduler", "wake"),
        ],
    );
    let composed = compose(&system, &[platform(&poor), platform(&poor)]).expect("composed");
    let said: Vec<&str> = composed
        .assumptions
        .iter()
        .map(|one| one.what.as_str())
        .collect();
    assert!(
        composed
            .assumptions
            .iter()
            .all(|one| one.node.as_deref() == Some("here")),
        "{said:?}"
    );
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("largest measured values") && said[1].contains("two-way call"),
        "{said:?}"
    );
}

#[test]
fn a_composition_error_names_the_root_and_its_line() {
    let system = system(&format!("{ONE_NODE}{TWO_WAY_HERE}"));
    let ideal = [Platform::ideal()];
    let error = compose(&system, &[]).expect_err("no platform");
    assert_eq!(
        error,
        ComposeError::Platforms {
            nodes: 1,
            platforms: 0
        }
    );

    // On another CPU every call is followed.
    let mut many = system.clone();
    many.components[1].cpu = 1;
    many.behaviours[0].calls[0].count = u32::MAX;
    let error = compose(&many, &ideal).expect_err("too many");
    assert!(
        matches!(&error, ComposeError::TooMany { root, .. } if root == "a.run"),
        "{error}"
    );
    assert!(
        error.to_string().contains(&format!("{SEGMENTS_MAX}")),
        "{error}"
    );

    // On one CPU they are counted.
    many.components[1].cpu = 0;
    assert!(compose(&many, &ideal).is_ok());
    many.behaviours[1].calls[0].count = u32::MAX;
    many.behaviours[2].execution = rtorb_sched::model::Execution::Fixed { ns: 1 << 40 };
    let error = compose(&many, &ideal).expect_err("too long");
    assert!(
        matches!(&error, ComposeError::TooLong { line, .. } if *line == many.behaviours[0].line),
        "{error}"
    );

    let mut circle = system;
    circle.behaviours[2].calls = circle.behaviours[0].calls.clone();
    let error = compose(&circle, &ideal).expect_err("a circle");
    assert!(
        matches!(&error, ComposeError::TooDeep { root, .. } if root == "a.run"),
        "{error}"
    );
}

#[test]
fn a_lane_above_the_levels_passes_events_and_oneways_of_its_cpu_on() {
    let text = |scheduling: &str| {
        format!(
            r#"
[[node]]
name = "here"
cpus = 2
scheduling = ["fixed-priority", "{scheduling}"]
[[channel]]
name = "news"
[[component]]
name = "a"
[[component.behaviour]]
name = "send"
period = "10ms"
execution = "1ms"
calls = [{{ to = "b.hear", way = "event", channel = "news", payload = 100 }}]
[[component]]
name = "b"
cpu = 1
[[component.behaviour]]
name = "hear"
execution = "1ms"
calls = [{{ to = "b.note", way = "one-way" }}]
[[component.behaviour]]
name = "note"
execution = "1ms"
"#
        )
    };
    let passing = |scheduling: &str, name: &str| {
        let system = system(&text(scheduling));
        let composed = composed(&system);
        let (_, end) = ends(&system, &composed, name)[0].clone();
        let parts = execution(&composed.segments[end]);
        let found = parts.iter().find(|part| part.0.starts_with("passing"));
        found.map(|(_, times, ns)| (*times, *ns))
    };
    // Half of a call to send, and half of it to receive.
    for (name, ns) in [("b.hear", 24_000 + 1_800), ("b.note", 24_000)] {
        assert_eq!(passing("fixed-priority", name), None);
        assert_eq!(passing("edf", name), Some((1, ns)), "{name}");
    }
}
