//! Systems whose results can be computed by hand.

use super::{MS, behaviour, bounds_ms, checked, on_ideal, system};
use rtorb_sched::model::{
    CheckOptions, CheckReport, Interrupt, LaneOrder, Layer, MissRatio, ModelError, Part, Platform,
    Standing, TooFewPriorities, check, check_composed, compose,
};
use rtorb_sched::{Burst, Strategy};

/// A behaviour's table.
fn periodic(name: &str, period_ms: u64, execution_ms: u64, more: &str) -> String {
    format!(
        "[[component.behaviour]]\nname = \"{name}\"\nperiod = \"{period_ms}ms\"\nexecution = \"{execution_ms}ms\"\n{more}\n"
    )
}

fn called(name: &str, execution_ms: u64, more: &str) -> String {
    format!(
        "[[component.behaviour]]\nname = \"{name}\"\nexecution = \"{execution_ms}ms\"\n{more}\n"
    )
}

fn plant(strategy: &str, tables: &[&str]) -> String {
    format!(
        "name = \"plant\"\nstrategy = \"{strategy}\"\n[[node]]\nname = \"n\"\n[[component]]\nname = \"c\"\n{}",
        tables.join("\n")
    )
}

/// The example of Joseph and Pandya in most textbooks: periods 7, 12, 20 and executions 3, 3, 5.
#[test]
fn rate_monotonic_response_times() {
    let text = plant(
        "rms",
        &[
            &periodic("slow", 20, 5, ""),
            &periodic("fast", 7, 3, ""),
            &periodic("middle", 12, 3, ""),
        ],
    );
    let answer = checked(&text);
    assert_eq!(
        bounds_ms(&answer, &["c.fast", "c.middle", "c.slow"]),
        [Some(3), Some(6), Some(20)]
    );
    assert_eq!(answer.standing, Standing::Holds);
    assert_eq!(answer.first_miss, None);
    let slow = behaviour(&answer, "c.slow");
    let shares: Vec<_> = slow
        .shares
        .iter()
        .map(|share| (share.what.as_str(), share.times, share.ns / 1_000_000))
        .collect();
    assert_eq!(
        shares,
        [
            ("preempted by c.fast", 3, 9),
            ("preempted by c.middle", 2, 6),
            ("own execution", 1, 5)
        ]
    );
    let priorities = ["c.fast", "c.middle", "c.slow"].map(|name| behaviour(&answer, name).priority);
    assert_eq!(priorities, [Some(80), Some(79), Some(78)]);
    assert!(slow.assigned && slow.explanation.is_empty());
    let processor = &answer.processors[0];
    assert_eq!(processor.utilisation_millionths, 928_572);
    assert_eq!(processor.layers_millionths, [(Layer::Application, 928_572)]);
}

/// Lehoczky's example (1990): C = 26, T = 70 and C = 62, T = 100. The worst response, 118, is that of the fifth job.
#[test]
fn a_later_job_may_be_the_worst() {
    let text = plant(
        "rms",
        &[
            &periodic("one", 70, 26, ""),
            &periodic("two", 100, 62, "deadline = \"120ms\""),
        ],
    );
    let answer = checked(&text);
    assert_eq!(
        bounds_ms(&answer, &["c.one", "c.two"]),
        [Some(26), Some(118)]
    );
    let two = behaviour(&answer, "c.two");
    let later = two
        .shares
        .iter()
        .find(|share| share.what == "arrived later")
        .expect("it is a later job");
    assert!(later.ns < 0 && later.times > 0);
    assert_eq!(
        two.shares.iter().map(|share| share.ns).sum::<i64>(),
        118_000_000
    );
}

#[test]
fn given_priorities_are_kept_and_others_fit_around_them() {
    let text = plant(
        "rms",
        &[
            &periodic("slow", 40, 5, "priority = 50"),
            &periodic("fast", 10, 1, ""),
            &periodic("middle", 20, 2, ""),
            &periodic("slowest", 80, 2, ""),
        ],
    );
    let answer = checked(&text);
    let priorities =
        ["c.fast", "c.middle", "c.slow", "c.slowest"].map(|name| behaviour(&answer, name).priority);
    assert_eq!(priorities, [Some(80), Some(79), Some(50), Some(49)]);
    assert!(!behaviour(&answer, "c.slow").assigned);
    assert_eq!(
        bounds_ms(&answer, &["c.slow", "c.slowest"]),
        [Some(8), Some(10)]
    );
}

#[test]
fn equal_priorities_interfere_with_each_other() {
    let text = plant(
        "rms",
        &[
            &periodic("one", 10, 2, "priority = 9"),
            &periodic("two", 20, 3, "priority = 9"),
        ],
    );
    assert_eq!(
        bounds_ms(&checked(&text), &["c.one", "c.two"]),
        [Some(5), Some(5)]
    );
}

#[test]
fn the_more_critical_goes_first_with_muf() {
    let text = plant(
        "muf",
        &[
            &periodic("display", 10, 6, "criticality = \"low\""),
            &periodic("control", 40, 20, "criticality = \"very-high\""),
        ],
    );
    let answer = checked(&text);
    assert_eq!(bounds_ms(&answer, &["c.control"]), [Some(20)]);
    assert_eq!(answer.first_miss.as_deref(), Some("c.display"));
}

/// A set that fails with deadline-monotonic priorities and holds with Audsley's: only the longer deadline has jitter.
#[test]
fn optimal_finds_an_order_that_deadline_monotonic_misses() {
    let tables = [
        &periodic("short", 100, 10, "deadline = \"50ms\""),
        &periodic("long", 100, 30, "deadline = \"60ms\"\njitter = \"25ms\""),
    ];
    let text = |strategy: &str| plant(strategy, &tables.map(String::as_str));
    assert_eq!(checked(&text("dms")).first_miss.as_deref(), Some("c.long"));
    let optimal = checked(&text("optimal"));
    assert_eq!(optimal.standing, Standing::Holds);
    assert!(behaviour(&optimal, "c.long").priority > behaviour(&optimal, "c.short").priority);
}

#[test]
fn optimal_reports_that_no_order_exists() {
    let text = plant(
        "optimal",
        &[&periodic("one", 10, 6, ""), &periodic("two", 10, 6, "")],
    );
    let answer = checked(&text);
    assert_eq!(answer.standing, Standing::Misses);
    assert!(
        answer
            .assumptions
            .iter()
            .any(|each| each.what.starts_with("no order")),
        "{:?}",
        answer.assumptions
    );
}

/// Blocking by inheritance is the lesser of two sums, by a ceiling one section (Sha, Rajkumar and Lehoczky 1990).
#[test]
fn sections_of_less_urgent_behaviours_block() {
    let text = |mutex: &str| {
        let resources = ["r", "s"].map(|name| {
            format!("[[component.resource]]\nname = \"{name}\"\nmutex = \"{mutex}\"\n")
        });
        let section = |sections: &[(&str, u64)]| {
            let each = |(resource, ms): &(&str, u64)| {
                format!("{{ resource = \"{resource}\", length = \"{ms}ms\" }}")
            };
            format!(
                "sections = [{}]",
                sections.iter().map(each).collect::<Vec<_>>().join(", ")
            )
        };
        plant(
            "rms",
            &[
                &resources[0],
                &resources[1],
                &periodic("high", 20, 2, &section(&[("r", 1), ("s", 1)])),
                &periodic("middle", 40, 4, &section(&[("r", 3)])),
                &periodic("low", 80, 8, &section(&[("s", 4), ("r", 2)])),
            ],
        )
    };
    let names = ["c.high", "c.middle", "c.low"];
    // Inheritance: middle's longest is 3 and low's is 4, r's longest is 3 and s's 4: 7 for high. Middle has only low below it: 4.
    let inherited = checked(&text("inheritance"));
    assert_eq!(bounds_ms(&inherited, &names), [Some(9), Some(10), Some(14)]);
    let high = behaviour(&inherited, "c.high");
    let waits: Vec<_> = high
        .shares
        .iter()
        .filter(|share| share.what.contains("held by"))
        .collect();
    assert_eq!(
        waits.iter().map(|share| share.ns).sum::<i64>(),
        7_000_000,
        "{waits:?}"
    );
    // Ceiling: the longest, 4, for both.
    assert_eq!(
        bounds_ms(&checked(&text("ceiling")), &names),
        [Some(6), Some(10), Some(14)]
    );
}

#[test]
fn a_resource_of_less_urgent_behaviours_blocks_no_other() {
    let section = "sections = [{ resource = \"r\", length = \"3ms\" }]";
    let text = plant(
        "rms",
        &[
            "[[component.resource]]\nname = \"r\"\n",
            &periodic("high", 20, 2, ""),
            &periodic("middle", 40, 4, section),
            &periodic("low", 80, 8, section),
        ],
    );
    assert_eq!(
        bounds_ms(&checked(&text), &["c.high", "c.middle", "c.low"]),
        [Some(2), Some(9), Some(14)]
    );
}

/// An overload: the first missed deadline is named, and only less urgent deadlines are missed.
#[test]
fn an_overload_is_explained() {
    let text = plant(
        "rms",
        &[
            &periodic("regulate", 20, 10, ""),
            &periodic("recognise", 40, 28, ""),
        ],
    );
    let answer = checked(&text);
    assert_eq!(answer.standing, Standing::Misses);
    assert_eq!(answer.first_miss.as_deref(), Some("c.recognise"));
    assert_eq!(
        bounds_ms(&answer, &["c.regulate", "c.recognise"]),
        [Some(10), None]
    );
    let lost = behaviour(&answer, "c.recognise");
    assert!(lost.shares.is_empty());
    for said in [
        "120.0 %",
        "shorten its own execution by 8",
        "move c.regulate",
        "let c.regulate run half as often",
    ] {
        assert!(
            lost.explanation.contains(said),
            "{said}: {}",
            lost.explanation
        );
    }
    assert!(
        answer
            .assumptions
            .iter()
            .any(|each| each.what.contains("120.0 % of CPU 0"))
    );
}

/// The advice suffices: with the execution shortened as it says, the deadline holds; with a little less, it does not.
#[test]
fn advice_matches_the_numbers() {
    let text = |execution: u64| {
        plant(
            "rms",
            &[
                &periodic("one", 10, 4, ""),
                &periodic("two", 30, execution, "deadline = \"20ms\""),
            ],
        )
    };
    let answer = checked(&text(16));
    let two = behaviour(&answer, "c.two");
    assert_eq!(
        (two.bound_ns, two.slack_ns),
        (Some(28 * MS), Some(-8_000_000))
    );
    assert!(
        two.explanation.contains("8ms after its deadline of 20ms"),
        "{}",
        two.explanation
    );
    assert!(
        two.explanation.contains("shorten its own execution by 4"),
        "{}",
        two.explanation
    );
    assert_eq!(checked(&text(12)).standing, Standing::Holds);
    assert_eq!(checked(&text(13)).standing, Standing::Misses);
}

/// A bound says how long one response may be, and not how many are that long.
#[test]
fn calls_that_may_be_late_change_no_verdict_and_the_explanation_says_that_nothing_is_proven_of_them()
 {
    let late = periodic("two", 30, 16, "deadline = \"20ms\"");
    let mut plant = system(&plant("rms", &[&periodic("one", 10, 4, ""), &late]));
    let strict = on_ideal(&plant, &CheckOptions::default());
    for behaviour in &mut plant.behaviours {
        behaviour.miss_ratio = Some(MissRatio {
            misses: 1,
            calls: 1000,
        });
    }
    let answer = on_ideal(&plant, &CheckOptions::default());
    assert_eq!(answer.standing, strict.standing);
    let explained = |answer: &CheckReport, name| behaviour(answer, name).explanation.clone();
    let allowed =
        " Its operation allows 1 late of 1000 calls (@statistical), which is measured, not proven";
    assert!(explained(&answer, "c.two").contains(allowed));
    assert!(!explained(&strict, "c.two").contains(allowed));
    assert_eq!(explained(&answer, "c.one"), "", "it is never late");
}

/// Two periods that use the whole CPU: earliest deadline first holds, fixed priorities do not (Liu and Layland 1973).
#[test]
fn the_earliest_deadline_first_uses_a_whole_processor() {
    let text = |scheduling: &str| {
        format!(
            "name = \"plant\"\n[[node]]\nname = \"n\"\nscheduling = \"{scheduling}\"\n[[component]]\nname = \"c\"\n{}{}",
            periodic("one", 10, 5, ""),
            periodic("two", 14, 7, "")
        )
    };
    assert_eq!(checked(&text("fixed-priority")).standing, Standing::Misses);
    let answer = checked(&text("edf"));
    assert_eq!(answer.standing, Standing::Holds);
    let one = behaviour(&answer, "c.one");
    assert_eq!((one.priority, one.assigned), (None, false));
    assert_eq!(answer.processors[0].scheduling, "earliest_deadline");
    assert!(answer.loading.components[0].priorities.is_empty());
}

/// Baker's preemption levels: a section of the longer deadline blocks the shorter one, and not the reverse.
#[test]
fn sections_block_under_earliest_deadline_first() {
    let section = "sections = [{ resource = \"r\", length = \"3ms\" }]";
    let text = |section_of_third: &str| {
        format!(
            "name = \"plant\"\n[[node]]\nname = \"n\"\nscheduling = \"edf\"\n[[component]]\nname = \"c\"\n\
             [[component.resource]]\nname = \"r\"\nmutex = \"ceiling\"\n{}{}{}",
            periodic("one", 10, 2, section_of_third),
            periodic("two", 50, 4, section),
            periodic("three", 100, 8, section)
        )
    };
    let apart = checked(&text(""));
    assert_eq!(bounds_ms(&apart, &["c.one"]), [Some(2)]);
    let shared = checked(&text(&section.replace("3ms", "1ms")));
    assert_eq!(bounds_ms(&shared, &["c.one"]), [Some(5)]);
}

/// A oneway call to another CPU: the second behaviour is released when the first ends.
#[test]
fn a_chain_over_two_processors_adds_up() {
    let text = format!(
        "name = \"plant\"\n[[node]]\nname = \"n\"\n[[node]]\nname = \"m\"\n[[link]]\nbetween = [\"n\", \"m\"]\nlatency = \"1ms\"\n\
         [[component]]\nname = \"c\"\nnode = \"n\"\n{}{}\
         [[component]]\nname = \"d\"\nnode = \"m\"\n{}{}\
         [[chain]]\nname = \"through\"\nthrough = [\"c.sense\", \"d.act\"]\ndeadline = \"20ms\"\n",
        periodic(
            "sense",
            50,
            4,
            "calls = [{ to = \"d.act\", way = \"one-way\" }]"
        ),
        periodic("fast", 10, 2, "priority = 70"),
        called("act", 5, "priority = 10"),
        periodic("faster", 10, 1, "priority = 70"),
    );
    let answer = checked(&text);
    // 4 + 2, a delay of 1, 5 + 1; each preempted once.
    assert_eq!(
        bounds_ms(&answer, &["c.sense", "d.act"]),
        [Some(6), Some(13)]
    );
    let chain = &answer.chains[0];
    assert_eq!(
        (chain.bound_ns, chain.standing),
        (Some(13 * MS), Standing::Holds)
    );
    let parts: Vec<_> = chain
        .shares
        .iter()
        .map(|share| (share.what.as_str(), share.layer, share.ns / 1_000_000))
        .collect();
    assert_eq!(parts.iter().map(|part| part.2).sum::<i64>(), 13);
    assert!(
        parts.contains(&("c.sense: own execution", Layer::Application, 4)),
        "{parts:?}"
    );
    assert!(
        parts.contains(&("d.act: preempted by d.faster", Layer::Application, 1)),
        "{parts:?}"
    );
    assert!(
        parts
            .iter()
            .any(|part| part.1 == Layer::Hardware && part.2 == 1),
        "{parts:?}"
    );
    let act = behaviour(&answer, "d.act");
    assert_eq!(
        (act.root.as_str(), act.deadline_ns, act.period_ns),
        ("c.sense", 50 * MS, 50 * MS)
    );
    assert_eq!(act.processor, "m/0");
}

/// A two-way call runs at the caller's priority, within its execution; the callee has no priority of its own.
#[test]
fn a_two_way_call_is_execution_of_the_caller() {
    let text = format!(
        "name = \"plant\"\n[[node]]\nname = \"n\"\n[[component]]\nname = \"c\"\n{}{}[[component]]\nname = \"d\"\n{}",
        periodic("ask", 20, 3, "calls = [{ to = \"d.tell\", count = 2 }]"),
        periodic("slow", 40, 5, ""),
        called("tell", 2, "deadline = \"9ms\"")
    );
    let answer = checked(&text);
    assert_eq!(
        bounds_ms(&answer, &["c.ask", "d.tell", "c.slow"]),
        [Some(7), Some(7), Some(12)]
    );
    let tell = behaviour(&answer, "d.tell");
    assert_eq!(
        (tell.priority, tell.deadline_ns),
        (behaviour(&answer, "c.ask").priority, 9 * MS)
    );
    let what: Vec<&str> = tell
        .shares
        .iter()
        .map(|share| share.what.as_str())
        .collect();
    assert_eq!(what, ["own execution", "execution of c.ask"]);
    let loading = &answer.loading.components;
    assert_eq!(loading[0].component, "c");
    assert!(loading[0].lanes.is_empty());
    assert_eq!(loading[0].bands, [(80, 80)]);
    assert_eq!(
        (loading[1].lanes[0].priority, loading[1].lanes[0].threads),
        (80, 1)
    );
    assert!(loading[1].bands.is_empty() && loading[1].priorities.is_empty());
}

/// A oneway call goes out before its sender ends. So on the sender's CPU, a more urgent callee delays the rest of the sender.
#[test]
fn a_more_urgent_callee_of_a_oneway_call_preempts_its_sender() {
    let calls = "calls = [{ to = \"c.act\", way = \"one-way\" }, { to = \"c.tail\" }]";
    let bounds = |scheduling: &str, sender: &str, act: &str, tail: &str| {
        let text = format!(
            "name = \"plant\"\nstrategy = \"dms\"\n[[node]]\nname = \"n\"\nscheduling = \"{scheduling}\"\n[[component]]\nname = \"c\"\n{}{}{}",
            periodic(
                "main",
                100,
                1,
                &format!("deadline = \"30ms\"\n{sender}\n{calls}")
            ),
            called("act", 20, act),
            called("tail", 5, tail),
        );
        bounds_ms(&checked(&text), &["c.main", "c.act"])
    };
    let (low, high) = ("priority = 10", "priority = 50");
    // The message may go out at the beginning or at the end of the sender.
    assert_eq!(
        bounds("fixed-priority", low, high, ""),
        [Some(26), Some(26)]
    );
    assert_eq!(bounds("fixed-priority", high, low, ""), [Some(6), Some(26)]);
    // Of one priority, the callee goes first if the sender waits for a servant.
    assert_eq!(bounds("fixed-priority", low, low, ""), [Some(26), Some(26)]);
    let early = "deadline = \"25ms\"";
    assert_eq!(bounds("edf", "", early, ""), [Some(26), Some(26)]);
    assert_eq!(
        bounds("edf", "", "deadline = \"30ms\"", ""),
        [Some(6), Some(26)]
    );
}

/// After the reply the sender only sends: what its message releases executes in full behind the wait, however more urgent it is.
#[test]
fn a_more_urgent_callee_of_a_sender_without_execution_executes_itself() {
    for (act_ms, bound_ms) in [(5, 16), (20, 31)] {
        let calls =
            "priority = 10\ncalls = [{ to = \"d.serve\" }, { to = \"c.act\", way = \"one-way\" }]";
        let text = format!(
            "name = \"plant\"\nstrategy = \"dms\"\n[[node]]\nname = \"n\"\ncpus = 2\n[[component]]\nname = \"c\"\n{}{}\
             [[component]]\nname = \"d\"\ncpu = 1\n{}",
            periodic("main", 100, 1, calls),
            called("act", act_ms, "priority = 50"),
            called("serve", 10, ""),
        );
        assert_eq!(bounds_ms(&checked(&text), &["c.act"]), [Some(bound_ms)]);
    }
}

/// Messages that wait together for `busy` come together. While a job waits for its servant, the next one begins with another thread, and
/// its servant may run first. A job that locks nothing and calls nobody is not overtaken.
#[test]
fn the_next_job_may_overtake_one_that_waits_for_a_servant() {
    let serving = [
        &called("act", 1, "priority = 30\ncalls = [{ to = \"d.serve\" }]"),
        &called("serve", 3, ""),
    ];
    for (serving, bound_ms) in [
        (serving.map(String::as_str).concat(), 28),
        (called("act", 4, "priority = 30"), 20),
    ] {
        let send =
            "deadline = \"40ms\"\npriority = 50\ncalls = [{ to = \"d.act\", way = \"one-way\" }]";
        let text = format!(
            "name = \"plant\"\nstrategy = \"dms\"\n[[node]]\nname = \"n\"\ncpus = 2\n[[component]]\nname = \"c\"\n{}{}\
             [[component]]\nname = \"d\"\ncpu = 1\n{serving}",
            periodic("busy", 100, 15, "priority = 60"),
            periodic("main", 10, 1, send),
        );
        let bounds = bounds_ms(&checked(&text), &["c.main", "d.act"]);
        assert_eq!(bounds, [Some(16), Some(bound_ms)]);
    }
}

/// A job of `act` may end after later ones, which had not to wait, so what it releases comes 28 ms after its root, and behind that of five later
/// roots.
#[test]
fn what_an_overtaken_job_releases_may_come_last() {
    let send = "priority = 50\ncalls = [{ to = \"d.act\", way = \"one-way\" }]";
    let calls =
        "priority = 30\ncalls = [{ to = \"d.serve\" }, { to = \"e.last\", way = \"one-way\" }]";
    let text = format!(
        "name = \"plant\"\nstrategy = \"dms\"\n[[node]]\nname = \"n\"\ncpus = 3\n[[component]]\nname = \"c\"\n{}{}\
         [[component]]\nname = \"d\"\ncpu = 1\n{}{}[[component]]\nname = \"e\"\ncpu = 2\n{}",
        periodic("busy", 100, 15, "priority = 60"),
        periodic("main", 10, 1, send),
        called("act", 1, calls),
        called("serve", 3, ""),
        called("last", 5, "priority = 20"),
    );
    let bounds = bounds_ms(&checked(&text), &["d.act", "e.last"]);
    assert_eq!(bounds, [Some(28), Some(28 + 6 * 5)]);
}

/// A CPU by deadline: two components in one process, called from a CPU with priorities in all ways.
const BY_DEADLINE: &str = r#"
name = "plant"
[[node]]
name = "n"
cpus = 2
scheduling = ["fixed-priority", "edf"]
[[channel]]
name = "news"
[[component]]
name = "a"
[[component.behaviour]]
name = "send"
period = "20ms"
execution = "1ms"
calls = [
  { to = "b.answer" },
  { to = "b.note", way = "one-way" },
  { to = "c.hear", way = "event", channel = "news" },
]
[[component]]
name = "b"
cpu = 1
[[component.behaviour]]
name = "tick"
period = "10ms"
execution = "1ms"
calls = [{ to = "c.part" }]
[[component.behaviour]]
name = "answer"
execution = "1ms"
[[component.behaviour]]
name = "note"
execution = "1ms"
deadline = "15ms"
[[component]]
name = "c"
cpu = 1
[[component.behaviour]]
name = "part"
execution = "1ms"
[[component.behaviour]]
name = "hear"
execution = "1ms"
deadline = "18ms"
"#;

#[test]
fn components_of_a_cpu_by_deadline_have_one_lane_together_and_one_that_passes_events_on() {
    let answer = checked(BY_DEADLINE);
    assert_eq!(answer.standing, Standing::Holds);
    for (at, other) in [(1, "c"), (2, "b")] {
        let one = &answer.loading.components[at];
        assert_eq!(one.lacks_lane, None);
        assert_eq!(one.process_with, [other]);
        assert!(one.bands.is_empty(), "{one:?}");
        let lanes = one.lanes.iter();
        let lanes: Vec<_> = lanes
            .map(|it| (it.priority, it.threads, it.order))
            .collect();
        // Deadlines of 10, 15, 18 and 20 ms; the I/O thread has 79.
        let expected = [
            (80, 1, LaneOrder::Fifo),
            (75, 4, LaneOrder::EarliestDeadline),
        ];
        assert_eq!(lanes, expected);
    }
    // The channel sends the event at the consumer's priority, as to any other CPU.
    let priorities = &answer.loading.components[2].priorities;
    let hear = priorities.iter().find(|(name, _)| name == "c.hear");
    let (_, lanes) = &answer.loading.channels[0];
    let hear = hear.map(|(_, priority)| *priority);
    assert!(
        lanes.iter().any(|lane| Some(lane.priority) == hear),
        "{answer:?}"
    );
    // Without what brings no deadline there is nothing to pass on.
    let event = "  { to = \"c.hear\", way = \"event\", channel = \"news\" },\n";
    let oneway = "  { to = \"c.hear\", way = \"one-way\" },\n";
    assert!(BY_DEADLINE.contains(event));
    let answer = checked(&BY_DEADLINE.replace(event, oneway));
    let lanes = &answer.loading.components[1].lanes;
    assert_eq!((lanes.len(), lanes[0].priority), (1, 76));
}

#[test]
fn a_cpu_by_deadline_has_no_channel() {
    let channel = "name = \"news\"";
    assert!(BY_DEADLINE.contains(channel));
    let answer = checked(&BY_DEADLINE.replace(channel, "name = \"news\"\ncpu = 1"));
    let components = &answer.loading.components[1..];
    assert!(components.iter().all(|one| one.lanes.is_empty()));
    let words = components[0].lacks_lane.clone().unwrap_or_default();
    assert!(
        words.starts_with("the channel news is on CPU 1 of n"),
        "{words}"
    );
}

#[test]
fn a_job_by_deadline_sends_events_at_a_priority_of_the_channel() {
    let calls = "calls = [{ to = \"c.part\" }]";
    assert!(BY_DEADLINE.contains(calls));
    let answer = checked(&BY_DEADLINE.replace(
        calls,
        "calls = [{ to = \"c.hear\", way = \"event\", channel = \"news\" }, { to = \"c.part\" }]",
    ));
    assert_eq!(answer.standing, Standing::Holds);
    let sender = &answer.loading.components[1];
    assert_eq!((&sender.lacks_lane, sender.lanes.len()), (&None, 2));
    let priority = sender.priorities.iter().find(|(name, _)| name == "b.tick");
    let (_, lanes) = &answer.loading.channels[0];
    let priority = priority.map(|(_, priority)| *priority);
    assert!(
        lanes.iter().any(|lane| Some(lane.priority) == priority),
        "{answer:?}"
    );
}

/// A nested call back needs a second thread, because the first waits; a third caller of the same priority needs a third one.
#[test]
fn lanes_have_a_thread_for_each_concurrent_call() {
    let text = format!(
        "name = \"plant\"\n[[node]]\nname = \"n\"\n[[component]]\nname = \"a\"\n{}{}[[component]]\nname = \"b\"\n{}{}[[component]]\nname = \"d\"\n{}",
        periodic("go", 20, 1, "priority = 5\ncalls = [{ to = \"b.first\" }]"),
        periodic(
            "other",
            20,
            1,
            "priority = 5\ncalls = [{ to = \"b.second\" }]"
        ),
        called("first", 1, "calls = [{ to = \"d.between\" }]"),
        called("second", 1, ""),
        called("between", 1, "calls = [{ to = \"b.second\" }]"),
    );
    let answer = checked(&text);
    let of = |name: &str| {
        answer
            .loading
            .components
            .iter()
            .find(|each| each.component == name)
            .expect("it is there")
    };
    let lanes = |name: &str| {
        of(name)
            .lanes
            .iter()
            .map(|lane| (lane.priority, lane.threads))
            .collect::<Vec<_>>()
    };
    assert_eq!(lanes("b"), [(5, 3)]);
    assert_eq!(lanes("d"), [(5, 1)]);
    assert_eq!(lanes("a"), []);
    assert_eq!(of("b").bands, [(5, 5)]);
}

#[test]
fn priorities_that_cannot_be_assigned_are_an_error() {
    let text = format!(
        "{}\n",
        plant(
            "rms",
            &[
                &periodic("one", 10, 1, ""),
                &periodic("two", 20, 1, "priority = 80"),
                &periodic("three", 5, 1, "")
            ]
        )
    );
    let system = system(&text);
    let said = check(&system, &[Platform::ideal()], &CheckOptions::default()).unwrap_err();
    assert!(
        matches!(
            said,
            ModelError::Priorities(TooFewPriorities {
                needed: 2,
                free: 0,
                ..
            })
        ),
        "{said}"
    );
    assert!(
        said.to_string()
            .contains("2 priorities are needed above the given 80"),
        "{said}"
    );
    let edf = CheckOptions {
        strategy: Some(Strategy::EarliestDeadlineFirst),
        ..CheckOptions::default()
    };
    let said = check(&system, &[Platform::ideal()], &edf)
        .unwrap_err()
        .to_string();
    assert!(said.contains("rms, dms, muf or optimal"), "{said}");
    assert!(
        check(&system, &[], &CheckOptions::default()).is_err(),
        "no platform"
    );
}

/// What a behaviour calls does not become shorter with its own code.
#[test]
fn a_behaviour_shrinks_by_no_more_than_its_own_execution() {
    let text = plant(
        "rms",
        &[
            &periodic(
                "ask",
                100,
                2,
                "deadline = \"5ms\"\ncalls = [{ to = \"c.tell\" }]",
            ),
            &called("tell", 10, ""),
        ],
    );
    let answer = checked(&text);
    let shrinks = ["c.ask", "c.tell"].map(|name| {
        let sensitivity = behaviour(&answer, name).sensitivity.clone();
        sensitivity.expect("it was asked for").may_grow_ns
    });
    assert_eq!(shrinks[0], None);
    let tell_ns = -shrinks[1].expect("it may shrink to 3 ms");
    assert!((7_000_000..7_020_000).contains(&tell_ns), "{tell_ns}");
}

/// A job that is demoted with a mutex goes on at the priority of whom it keeps waiting: here after 3.9 ms, when it locks, for almost 9 ms
/// more, besides the next job.
#[test]
fn a_demoted_job_that_holds_a_mutex_counts_as_a_whole_and_blocks() {
    let text = |section: &str| {
        let section = |ms: u64| match section {
            "" => String::new(),
            _ => format!("sections = [{{ resource = \"t\", length = \"{ms}ms\" }}]"),
        };
        let demoted = format!(
            "priority = 50\n{}\nenforcement = {{ policy = \"demote\", budget = \"4ms\", granularity = \"1ms\" }}",
            section(10)
        );
        let low = format!("priority = 10\ndeadline = \"12ms\"\n{}", section(1));
        plant(
            "rms",
            &[
                "[[component.resource]]\nname = \"t\"\n",
                &periodic("high", 100, 20, &demoted),
                &periodic("low", 50, 5, &low),
            ],
        )
    };
    let free = checked(&text(""));
    assert_eq!(bounds_ms(&free, &["c.high", "c.low"]), [Some(5), Some(10)]);
    assert_eq!(free.standing, Standing::Holds);
    let says = |answer: &CheckReport, words: &str| {
        let mut all = answer.assumptions.iter();
        all.any(|each| each.what.contains(words))
    };
    assert!(says(&free, "skips the jobs that arrive until it ends"));
    let locked = checked(&text("t"));
    assert_eq!(
        bounds_ms(&locked, &["c.high", "c.low"]),
        [Some(21), Some(35)]
    );
    assert_eq!(behaviour(&locked, "c.low").standing, Standing::Misses);
    assert!(says(
        &locked,
        "no job of c.high exceeds its budget: one that does has no bound"
    ));
}

/// The message of a demoted job would come just before that of the next one, also a request to another CPU.
#[test]
fn a_demoted_job_that_sends_a_message_counts_as_a_whole() {
    let send = "calls = [{ to = \"c.note\", way = \"one-way\" }]";
    let ask = "calls = [{ to = \"d.note\" }]";
    let demote = "enforcement = { policy = \"demote\", budget = \"4ms\", granularity = \"1ms\" }";
    for (high, low, bound_ms) in [("", send, 5 + 5), (send, "", 20 + 5), (ask, send, 20 + 5)] {
        let text = plant(
            "rms",
            &[
                &periodic("high", 100, 20, &format!("priority = 50\n{demote}\n{high}")),
                &periodic("low", 50, 5, &format!("priority = 10\n{low}")),
                &called("note", 1, "priority = 5"),
                "[[component]]\nname = \"d\"\ncpu = 1\n",
                &called("note", 1, ""),
                &periodic("other", 50, 1, ask),
            ],
        );
        let text = text.replace("name = \"n\"\n", "name = \"n\"\ncpus = 2\n");
        assert_eq!(bounds_ms(&checked(&text), &["c.low"]), [Some(bound_ms)]);
    }
}

/// The job of `p` is demoted after 10 ms of `ask`. The section of `tell`, of 10 ms, then may begin just before a job of `low`, whose window has
/// the whole next job of `p` too.
#[test]
fn a_section_of_what_a_demoted_job_waits_for_blocks_as_one_of_the_job_itself() {
    let demote = "enforcement = { policy = \"demote\", budget = \"9ms\", granularity = \"1ms\" }\ncalls = [{ to = \"c.tell\" }]";
    let section = |ms: u64| format!("sections = [{{ resource = \"t\", length = \"{ms}ms\" }}]");
    let answer = checked(&plant(
        "rms",
        &[
            "[[component.resource]]\nname = \"t\"\n",
            &periodic("p", 100, 1, "priority = 50\ncalls = [{ to = \"c.ask\" }]"),
            &called("ask", 11, demote),
            &called("tell", 10, &section(10)),
            &periodic("low", 100, 5, &format!("priority = 10\n{}", section(1))),
        ],
    ));
    assert_eq!(bounds_ms(&answer, &["c.low"]), [Some(37)]);
}

/// The section of `tell` is one of `x` too, which is not demoted: it only counts as preemption.
#[test]
fn a_more_urgent_caller_of_what_a_demoted_job_waits_for_does_not_block() {
    let demote = "priority = 10\nenforcement = { policy = \"demote\", budget = \"9ms\", granularity = \"1ms\" }\ncalls = [{ to = \"c.tell\" }]";
    let section = "sections = [{ resource = \"t\", length = \"10ms\" }]";
    let answer = checked(&plant(
        "rms",
        &[
            "[[component.resource]]\nname = \"t\"\n",
            &periodic("x", 100, 1, "priority = 50\ncalls = [{ to = \"c.tell\" }]"),
            &periodic("y", 100, 11, demote),
            &called("tell", 10, section),
        ],
    ));
    assert_eq!(bounds_ms(&answer, &["c.y"]), [Some(32)]);
}

/// A demoted job of `act` holds the mutex when the next one comes, which may have another thread of the lane: both keep `low` from the CPU.
#[test]
fn a_demoted_job_that_keeps_the_next_one_of_its_lane_waiting_blocks_others() {
    let act = "priority = 50\nsections = [{ resource = \"t\", length = \"10ms\" }]\n\
               enforcement = { policy = \"demote\", budget = \"4ms\", granularity = \"1ms\" }";
    let send = "priority = 60\ncalls = [{ to = \"c.act\", way = \"one-way\" }]";
    let answer = checked(&plant(
        "rms",
        &[
            "[[component.resource]]\nname = \"t\"\n",
            &periodic("main", 100, 1, send),
            &called("act", 20, act),
            &periodic("low", 100, 5, "priority = 10"),
        ],
    ));
    assert_eq!(bounds_ms(&answer, &["c.low"]), [Some(1 + 20 + 5 + 10)]);
}

/// The jobs of a CPU are ordered by a deadline of 30 ms, which is that of a servant elsewhere. The ticks after it count too.
#[test]
fn interrupts_after_the_deadline_that_orders_a_job_delay_it_too() {
    let text = format!(
        "name = \"plant\"\n[[node]]\nname = \"n\"\ncpus = 2\nscheduling = [\"edf\", \"fixed-priority\"]\n[[component]]\nname = \"c\"\n{}{}[[component]]\nname = \"d\"\ncpu = 1\n{}",
        periodic(
            "ask",
            200,
            5,
            "deadline = \"180ms\"\ncalls = [{ to = \"d.far\" }, { to = \"c.near\" }]"
        ),
        called("near", 100, "deadline = \"180ms\""),
        called("far", 10, "deadline = \"30ms\""),
    );
    let system = system(&text);
    let mut composition = compose(&system, &[Platform::ideal()]).expect("it composes");
    let tick = Part {
        layer: Layer::OperatingSystem,
        what: "tick".to_owned(),
        code_of: None,
        times: 1,
        ns: 10_000,
    };
    composition.processors[0].interrupts.push(Interrupt {
        period_ns: MS,
        burst: Burst::NONE,
        jitter_ns: 0,
        cost: tick,
    });
    let answer = check_composed(&system, &composition, &CheckOptions::default()).expect("a report");
    let shares = &behaviour(&answer, "c.ask").shares;
    let ticks = shares.iter().filter(|share| share.what.contains("tick"));
    let times: u64 = ticks.map(|share| share.times).sum();
    assert!(times >= 115, "{times}: {shares:?}");
    assert_eq!(answer.standing, Standing::Holds);
}

/// A job that arrived 8 ms ago comes now, and the next one 2 ms later.
#[test]
fn interrupts_of_releases_have_the_jitter_of_the_root() {
    let text = plant("rms", &[&periodic("one", 100, 2, "")]);
    let system = system(&text);
    let mut composition = compose(&system, &[Platform::ideal()]).expect("it composes");
    let release = Part {
        layer: Layer::OperatingSystem,
        what: "release".to_owned(),
        code_of: None,
        times: 1,
        ns: MS,
    };
    composition.processors[0].interrupts.push(Interrupt {
        period_ns: 10 * MS,
        burst: Burst::NONE,
        jitter_ns: 8 * MS,
        cost: release,
    });
    let answer = check_composed(&system, &composition, &CheckOptions::default()).expect("a report");
    assert_eq!(bounds_ms(&answer, &["c.one"]), [Some(2 + 2)]);
}

/// The set of Joseph and Pandya again: the slowest ends at its deadline, so no execution may grow. With 4 instead of 5 the slack
/// is 1, and each of the 3 jobs of the fastest takes its part of the slack before 20.
#[test]
fn sensitivity_under_fixed_priorities() {
    let text = |execution: u64| {
        plant(
            "rms",
            &[
                &periodic("fast", 7, 3, ""),
                &periodic("middle", 12, 3, ""),
                &periodic("slow", 20, execution, ""),
            ],
        )
    };
    let grow = |execution: u64| {
        let answer = checked(&text(execution));
        ["c.fast", "c.middle", "c.slow"].map(|name| {
            let sensitivity = behaviour(&answer, name)
                .sensitivity
                .clone()
                .expect("it was asked for");
            (sensitivity.may_grow_ns, sensitivity.breaks_first)
        })
    };
    let breaks = |ns: i64| (Some(ns), Some("c.slow".to_owned()));
    assert_eq!(grow(5), [breaks(0), breaks(0), breaks(0)]);
    assert_eq!(
        grow(4),
        [breaks(333_333), breaks(500_000), breaks(1_000_000)]
    );
    // A reduction is exact to a thousandth, and never too small.
    for ((shorter, first), least) in grow(6).into_iter().zip([333_334, 500_000, 1_000_000]) {
        let shorter = -shorter.expect("it can be mended");
        assert!(
            (least..=least + least / 500).contains(&shorter),
            "{shorter}"
        );
        assert_eq!(first.as_deref(), Some("c.slow"));
    }
}

/// The same by trial, under earliest deadline first: the CPU is fully used.
#[test]
fn sensitivity_under_earliest_deadline_first() {
    let text = format!(
        "name = \"plant\"\n[[node]]\nname = \"n\"\nscheduling = \"edf\"\n[[component]]\nname = \"c\"\n{}{}",
        periodic("one", 10, 4, ""),
        periodic("two", 20, 10, "")
    );
    let answer = checked(&text);
    let grow = |name: &str| {
        behaviour(&answer, name)
            .sensitivity
            .clone()
            .and_then(|each| each.may_grow_ns)
            .expect("it may grow")
    };
    assert_eq!((grow("c.one"), grow("c.two")), (1_000_000, 2_000_000));
}
