//! Published examples and examples computed by hand.

use rtorb_sched::Phase;
use rtorb_sched::cause_effect::{LatencyPart, Stage, data_age, has_known_phases, reaction_time};
use rtorb_sched::model::{CauseEffectBound, CheckReport, LatencyBound, Standing};

use super::super::model::checked;

fn sum(parts: Option<Vec<LatencyPart>>) -> Option<u64> {
    Some(parts?.iter().map(|part| part.ns).sum())
}

/// Stages with logical execution time of these periods and offsets.
fn on_time(periods: &[(u64, u64)]) -> Vec<Stage> {
    let stage = |&(period_ns, offset_ns): &(u64, u64)| Stage {
        gap_max_ns: Some(period_ns),
        phase: Some(Phase {
            offset_ns,
            clock: 0,
        }),
        visible_ns: period_ns,
        response_ns: period_ns,
    };
    periods.iter().map(stage).collect()
}

/// The running example of Günzel, Becker and Casini ("Shape-Aware Analysis of End-to-End Latency Under LET", RTAS 2026): periods of 6, 10
/// and 5, synchronous. By hand: a job of the first task writes at a multiple of 6 that is at most 8 before one of 10 (12 before 20); the second writes
/// 10 later, at a multiple of 5, and the third 5 later. So a cause just after a read takes 6 + 6 + 8 + 10 + 0 + 5.
#[test]
fn a_synchronous_chain_with_logical_execution_time_is_exact() {
    let stages = on_time(&[(6, 0), (10, 0), (5, 0)]);
    assert!(has_known_phases(&stages));
    assert_eq!(sum(reaction_time(&stages, false)), Some(35));
    // Backward: an output at 35 is of the job that read 30, 5 after the second task wrote at 25 - 0: it read at 10 what was written at 6.
    assert_eq!(sum(data_age(&stages)), Some(30));
    // Without phases: twice each period, and the reaction to an event that releases the first task waits for no read.
    let unknown: Vec<Stage> = stages
        .iter()
        .map(|stage| Stage {
            phase: None,
            ..*stage
        })
        .collect();
    assert!(!has_known_phases(&unknown));
    assert_eq!(sum(reaction_time(&unknown, false)), Some(42));
    assert_eq!(sum(reaction_time(&unknown, true)), Some(36));
    assert_eq!(sum(data_age(&unknown)), Some(37));
}

/// The effect chains of the challenges of WATERS 2016, 2017 and 2019 with their periods (in ms), synchronous, with logical execution
/// time. The reaction time exceeds the data age by the last period (Günzel and others 2023): each is computed on its own.
#[test]
fn reaction_time_exceeds_data_age_by_the_last_period() {
    for (periods, expected) in [
        // Each reads what was written at the same moment: 10 for the input, and 10 for each task.
        (&[10, 10, 10, 10][..], Some(50)),
        // 100 for the input, 100, 10, 2: all multiples of the next.
        (&[100, 10, 2], Some(212)),
        (&[33, 400, 15, 15, 5], None),
        (&[10, 400, 15, 15, 5], None),
        (&[10, 15, 15, 5], None),
        (&[33, 15, 5], None),
        (&[66, 15, 5], None),
        // 200 for the input, 200, at most 10 until a multiple of 15, 15, 5.
        (&[200, 15, 5], Some(430)),
        (&[20, 30, 40, 50, 60], None),
    ] {
        let stages = on_time(
            &periods
                .iter()
                .map(|&period| (period, 0))
                .collect::<Vec<_>>(),
        );
        let reaction = sum(reaction_time(&stages, false)).expect("a bound");
        let last = periods[periods.len() - 1];
        assert_eq!(sum(data_age(&stages)), Some(reaction - last), "{periods:?}");
        assert!(
            expected.is_none_or(|expected| expected == reaction),
            "{periods:?}: {reaction}"
        );
        // Never longer than without phases.
        assert!(reaction <= 2 * periods.iter().sum::<u64>());
    }
}

/// Offsets that shorten a chain: the second task reads when the first one writes.
#[test]
fn offsets_shorten_a_chain() {
    let aligned = on_time(&[(10, 0), (20, 10)]);
    assert_eq!(sum(reaction_time(&aligned, false)), Some(10 + 10 + 10 + 20));
    let late = on_time(&[(10, 0), (20, 9)]);
    assert_eq!(sum(reaction_time(&late, false)), Some(10 + 10 + 19 + 20));
}

#[test]
fn long_hyperperiods_and_other_clocks_count_as_unknown_phases() {
    let prime = on_time(&[(1_000_003, 0), (999_983, 0)]);
    assert!(!has_known_phases(&prime));
    assert_eq!(sum(data_age(&prime)), Some(2 * 1_000_003 + 999_983));
    let mut others = on_time(&[(10, 0), (10, 0)]);
    others[1].phase = Some(Phase {
        offset_ns: 0,
        clock: 1,
    });
    assert!(!has_known_phases(&others));
    assert_eq!(sum(data_age(&others)), Some(30));
    assert_eq!(sum(data_age(&[])), Some(0));
    assert_eq!(reaction_time(&[], false), None);
}

const TWO: &str = r#"
    name = "two"
    [[node]]
    name = "n"
    cpus = 2
    [[component]]
    name = "a"
    [[component.behaviour]]
    name = "read"
    period = "10ms"
    execution = "2ms"
    priority = 20
    [[component.behaviour]]
    name = "act"
    period = "15ms"
    execution = "3ms"
    priority = 10
    [[cause_effect_chain]]
    name = "data"
    through = ["a.read", "a.act"]
    data_age_max = "16ms"
    reaction_time_max = "30ms"
"#;

fn data(report: &CheckReport) -> &CauseEffectBound {
    &report.cause_effect_chains[0]
}

fn bound_ms(latency: &LatencyBound) -> Option<u64> {
    let ns = latency.bound_ns?;
    assert_eq!(ns % 1_000_000, 0);
    Some(ns / 1_000_000)
}

fn shares(latency: &LatencyBound) -> Vec<(&str, u64)> {
    let shares = latency.shares.iter();
    shares
        .map(|share| (share.what.as_str(), share.ns / 1_000_000))
        .collect()
}

/// Dürr and others 2019, Theorems 5.4 and 5.10, by hand: R(read) = 2, R(act) = 3 + 2 = 5. The writer is more urgent than the reader on
/// one CPU, so its response does not count: data age 10 + 5, reaction time 10 + 15 + 5.
#[test]
fn a_more_urgent_writer_on_the_same_cpu_adds_no_response() {
    let report = checked(TWO);
    assert_eq!(report.standing, Standing::Holds);
    let data = data(&report);
    assert_eq!(bound_ms(&data.data_age), Some(15));
    assert_eq!(
        shares(&data.data_age),
        [("register of a.read", 10), ("a.act", 5)]
    );
    assert_eq!(bound_ms(&data.reaction_time), Some(30));
    assert_eq!(
        shares(&data.reaction_time),
        [
            ("input of a.read", 10),
            ("register of a.read", 15),
            ("a.act", 5)
        ]
    );
    assert_eq!(data.reaction_time.slack_ns, Some(0));
    let said = report.verdict();
    assert!(
        said.contains("2 behaviours and 1 cause-effect chain"),
        "{said}"
    );
    assert!(
        said.contains("The reaction time of data has the least slack: 0ns of 30ms"),
        "{said}"
    );
}

/// Davare and others 2007, by hand: on two CPUs, R(read) = 2 and R(act) = 3. Data age 2 + 10 + 3, reaction time 10 + 2 + 15 + 3.
#[test]
fn on_two_cpus_periods_and_responses_add_up() {
    let apart = TWO.replace("[[component.behaviour]]\n    name = \"act\"", "[[component]]\n    name = \"b\"\n    cpu = 1\n    [[component.behaviour]]\n    name = \"act\"");
    let report = checked(&apart.replace("\"a.act\"", "\"b.act\""));
    assert_eq!(bound_ms(&data(&report).data_age), Some(15));
    assert_eq!(bound_ms(&data(&report).reaction_time), Some(30));
    // The less urgent writer on the same CPU: R(read) = 2 + 3, R(act) = 3.
    let report = checked(&TWO.replace("priority = 20", "priority = 5"));
    assert_eq!(
        shares(&data(&report).data_age),
        [("a.read", 5), ("register of a.read", 10), ("a.act", 3)]
    );
    assert_eq!(bound_ms(&data(&report).reaction_time), Some(33));
}

/// With offsets 0 and 10 on one clock: act arrives at 10, 25, 40; read arrives at 0, 10, 20, and a job of act that arrives with one of read
/// starts after it. So act at 25 reads what read 5 ms before: age at most 5 + 5; and a cause just after 10 is read at 20 and shown at 25 + 5.
#[test]
fn known_offsets_shorten_bounds() {
    let offsets = TWO.replace("period = \"10ms\"", "period = \"10ms\"\noffset = \"0ms\"");
    let report =
        checked(&offsets.replace("period = \"15ms\"", "period = \"15ms\"\noffset = \"10ms\""));
    let data = data(&report);
    assert!(!data.is_exact);
    // Jobs of both may arrive at once, so the response of act is 5.
    assert_eq!(
        shares(&data.data_age),
        [("register of a.read", 5), ("a.act", 5)]
    );
    assert_eq!(bound_ms(&data.reaction_time), Some(10 + 10 + 5));
}

#[test]
fn a_limit_that_is_exceeded_is_named() {
    let report = checked(&TWO.replace("\"16ms\"", "\"14ms\""));
    assert_eq!(report.standing, Standing::Misses);
    assert_eq!(report.first_miss.as_deref(), Some("data"));
    let said = report.verdict();
    assert!(
        said.contains("The first is that of data: its data age may be 15ms, which is 1ms more than its limit of 14ms"),
        "{said}"
    );
    let explanation = &data(&report).data_age.explanation;
    assert!(
        explanation.contains("10ms register of a.read, 5ms a.act"),
        "{explanation}"
    );
    assert!(explanation.contains("Shorter periods"), "{explanation}");
    let refusal = report.refusal().expect("it misses");
    assert!(
        refusal.reason.contains("misses its limit of 14ms"),
        "{refusal:?}"
    );
    assert_eq!(data(&report).reaction_time.standing, Standing::Holds);
}

/// A value goes along a call within a stage: only the end of the callee counts, from the arrival of its root.
#[test]
fn calls_within_a_stage_wait_in_no_register() {
    let called = TWO.replace("priority = 20", "priority = 20\n    calls = [{ to = \"a.filter\", way = \"one-way\" }]")
        .replace("[[cause_effect_chain]]", "[[component.behaviour]]\n    name = \"filter\"\n    execution = \"1ms\"\n    priority = 5\n    [[cause_effect_chain]]")
        .replace("[\"a.read\", \"a.act\"]", "[\"a.read\", \"a.filter\", \"a.act\"]");
    let report = checked(&called);
    let data = data(&report);
    assert_eq!(data.stages, [vec!["a.read", "a.filter"], vec!["a.act"]]);
    // filter is less urgent than act: it ends 2 + 1 + 3 after the arrival of read, or later with another job of act.
    let filter = report
        .behaviours
        .iter()
        .find(|one| one.behaviour == "a.filter");
    let filter_ms = filter.and_then(|one| one.bound_ns).expect("a bound") / 1_000_000;
    assert_eq!(
        shares(&data.data_age),
        [
            ("a.read to a.filter", filter_ms),
            ("register of a.filter", 10),
            ("a.act", 5)
        ]
    );
}

#[test]
fn logical_execution_time_needs_ends_before_the_period() {
    let on_time = TWO.replace("through", "communication = \"let\"\n    through");
    let report = checked(&on_time);
    // 10 + 10 + 15, and 10 + 10 + 15 + 15.
    assert_eq!(bound_ms(&data(&report).data_age), Some(35));
    assert_eq!(bound_ms(&data(&report).reaction_time), Some(50));
    assert!(!data(&report).is_exact);
    let late = on_time.replace(
        "execution = \"3ms\"",
        "execution = \"12ms\"\n    deadline = \"1s\"",
    );
    let report = checked(&late);
    assert_eq!(data(&report).data_age.standing, Standing::Misses);
    let explanation = &data(&report).data_age.explanation;
    assert!(
        explanation.contains("a.act may end 1ms after its period of 15ms"),
        "{explanation}"
    );
}

#[test]
fn arrivals_from_outside_need_a_maximum_gap() {
    let outside = TWO.replace("period = \"15ms\"", "minimum_gap = \"15ms\"");
    let report = checked(&outside);
    // The last behaviour need not come often for its data to be fresh when it comes.
    assert_eq!(bound_ms(&data(&report).data_age), Some(15));
    assert_eq!(data(&report).reaction_time.standing, Standing::Misses);
    let explanation = &data(&report).reaction_time.explanation;
    assert!(
        explanation.contains("how often a.act arrives at least: write its maximum_gap"),
        "{explanation}"
    );
    let known = outside.replace(
        "minimum_gap = \"15ms\"",
        "minimum_gap = \"15ms\"\n    maximum_gap = \"40ms\"",
    );
    assert_eq!(bound_ms(&data(&checked(&known)).reaction_time), Some(55));
    // What comes from outside is itself the cause: its reaction waits for no read.
    let caused = TWO.replace("period = \"10ms\"", "minimum_gap = \"10ms\"");
    let report = checked(&caused);
    assert_eq!(bound_ms(&data(&report).reaction_time), Some(20));
    assert_eq!(data(&report).data_age.bound_ns, None);
    let unlimited = caused.replace("data_age_max = \"16ms\"", "");
    assert_eq!(checked(&unlimited).standing, Standing::Holds);
    // So its own gap does not matter, but the next one does.
    let both = caused.replace("period = \"15ms\"", "minimum_gap = \"15ms\"");
    let report = checked(&both);
    let explanation = &data(&report).reaction_time.explanation;
    assert!(
        explanation.contains("how often a.act arrives"),
        "{explanation}"
    );
}

#[test]
fn an_unbounded_response_has_no_data_age() {
    let report = checked(&TWO.replace("execution = \"2ms\"", "execution = \"9ms\""));
    let data = data(&report);
    assert_eq!(
        (data.data_age.bound_ns, data.data_age.standing),
        (None, Standing::Misses)
    );
    assert!(
        data.data_age.explanation.contains("a.act has no bound"),
        "{data:?}"
    );
    assert_eq!(report.first_miss.as_deref(), Some("a.act"));
}

#[test]
fn an_enforced_budget_is_an_assumption() {
    let enforced = "period = \"10ms\"\n    enforcement = { policy = \"stop\", budget = \"1ms\", granularity = \"1ms\" }";
    let report = checked(&TWO.replace("period = \"10ms\"", enforced));
    let assumed = |words: &str| {
        report
            .assumptions
            .iter()
            .any(|one| one.what.contains(words))
    };
    assert!(
        assumed("no job of a.read exceeds its budget"),
        "{:?}",
        report.assumptions
    );
    assert!(assumed("reads its register at its start"));
    assert!(!assumed("logical execution time"));
}
