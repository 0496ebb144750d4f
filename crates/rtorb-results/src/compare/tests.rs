use std::slice;

use super::*;
use crate::statistics::Statistics;
use crate::synthetic::{self, Normal};
use crate::{EmulatedSystem, Emulation, Results, Series, labels};

const SERIES: usize = 20;
const RUNS: usize = 5;

/// Runs of `SERIES` series around 10 us; each run's medians vary by `noise`, and all are `factor` times as large.
fn runs(side: &str, normal: &mut Normal, (noise, factor): (f64, f64)) -> Vec<Run> {
    let run = |number: usize, normal: &mut Normal| {
        let series = (0..SERIES).map(|index| {
            let p50 = 10_000.0 * factor * (noise * normal.draw()).exp();
            with_median(index, p50)
        });
        let results = synthetic::results("orb/throughput", series.collect());
        synthetic::run(&format!("{side}-{number}"), vec![results])
    };
    (0..RUNS).map(|number| run(number, normal)).collect()
}

/// Without a recorder: thousands are made.
fn with_median(index: usize, p50: f64) -> Series {
    Series {
        labels: labels([("operation", "octet".into()), ("len", index.into())]),
        unit: "ns".to_owned(),
        count: 1,
        statistics: Statistics::default(),
        rounds_p50: vec![p50],
        rounds_p99: Vec::new(),
        rounds_max: Vec::new(),
        worst_sample: None,
        typical_sample: None,
        percentiles: Vec::new(),
        histogram: Vec::new(),
        wrong: 0,
        calls_per_second: None,
    }
}

fn compared(a: &[Run], b: &[Run]) -> Comparison {
    compare(a, b, Spoilt::Refuse).unwrap()
}

/// Each discovery is a false one where there is no difference: so the rate is that of trials with any.
#[test]
fn without_a_difference_hardly_any_trial_finds_one() {
    const TRIALS: usize = 300;
    let mut normal = Normal::seeded(1);
    let with_discovery = (0..TRIALS)
        .filter(|_| {
            let a = runs("a", &mut normal, (0.03, 1.0));
            let b = runs("b", &mut normal, (0.03, 1.0));
            compared(&a, &b).counts.no_difference < SERIES
        })
        .count();
    let rate = with_discovery as f64 / TRIALS as f64;
    // Three standard errors of a rate of 0.05 over so many trials.
    assert!(
        rate <= 0.05 + 3.0 * (0.05 * 0.95 / TRIALS as f64).sqrt(),
        "{rate}"
    );
}

/// Half of the series differ: of those found, few may be of the other half.
#[test]
fn few_discoveries_are_false_where_some_are_true() {
    let mut normal = Normal::seeded(2);
    let (mut found, mut wrong, mut missed) = (0, 0, 0);
    for _ in 0..100 {
        let a = runs("a", &mut normal, (0.02, 1.0));
        let mut b = runs("b", &mut normal, (0.02, 1.0));
        for series in b
            .iter_mut()
            .flat_map(|run| &mut run.results[0].series[..SERIES / 2])
        {
            series.rounds_p50[0] *= 1.15;
        }
        for one in compared(&a, &b).series {
            let differs = one.name.labels["len"].number().unwrap() < SERIES as i64 / 2;
            found += usize::from(one.verdict.differs());
            wrong += usize::from(one.verdict.differs() && !differs);
            missed += usize::from(!one.verdict.differs() && differs);
        }
    }
    assert!(wrong as f64 <= 0.05 * found as f64, "{wrong} of {found}");
    assert!(missed < 20, "{missed} of 1000");
}

#[test]
fn five_per_cent_are_found_where_runs_repeat_within_one() {
    let mut normal = Normal::seeded(3);
    let a = runs("a", &mut normal, (0.01, 1.0));
    let b = runs("b", &mut normal, (0.01, 1.05));
    let found = compared(&a, &b);
    assert_eq!(found.observations, Observations::Runs);
    assert_eq!(found.counts.slower, SERIES, "{:?}", found.counts);
    for one in &found.series {
        let (low, high) = (one.ratio_low.unwrap(), one.ratio_high.unwrap());
        assert!(low > 1.0 && high < 1.1, "{low} {high}");
        assert!((one.slower_percent().unwrap() - 5.0).abs() < 3.0);
    }
    assert_eq!(compared(&b, &a).counts.faster, SERIES);
}

/// The intervals hold the true ratio about as often as they say.
#[test]
fn intervals_cover_the_truth() {
    let mut normal = Normal::seeded(4);
    let (mut held, mut all) = (0, 0);
    for _ in 0..100 {
        let a = runs("a", &mut normal, (0.03, 1.0));
        let b = runs("b", &mut normal, (0.06, 1.2));
        for one in compared(&a, &b).series {
            all += 1;
            held += usize::from(one.ratio_low.unwrap() <= 1.2 && 1.2 <= one.ratio_high.unwrap());
        }
    }
    let share = held as f64 / all as f64;
    assert!((0.93..=0.98).contains(&share), "{share}");
}

#[test]
fn the_largest_difference_comes_first_and_what_is_the_same_last() {
    let side = |name: &str, of: [f64; 3]| -> Vec<Run> {
        let run = |number: usize| {
            let medians = of.iter().enumerate();
            let series = medians.map(|(index, p50)| with_median(index, p50 + number as f64));
            let results = synthetic::results("os/mutex", series.collect());
            synthetic::run(&format!("{name}-{number}"), vec![results])
        };
        (0..4).map(run).collect()
    };
    let found = compared(
        &side("a", [10_000.0, 10_000.0, 10_000.0]),
        &side("b", [10_000.0, 11_000.0, 5_000.0]),
    );
    let verdicts: Vec<Change> = found.series.iter().map(|one| one.verdict).collect();
    assert_eq!(
        verdicts,
        [Change::Faster, Change::Slower, Change::NoDifference]
    );
    assert_eq!(found.series[2].slower_percent(), None);
}

#[test]
fn single_runs_are_compared_by_their_rounds() {
    let single = |id: &str, rounds: &[f64]| {
        let mut series = with_median(0, 10_000.0);
        series.rounds_p50 = rounds.to_vec();
        let mut few = with_median(1, 10_000.0);
        few.rounds_p50 = vec![10_000.0, 10_100.0];
        let results = synthetic::results("os/mutex", vec![series, few]);
        vec![synthetic::run(id, vec![results])]
    };
    let a = single("a", &[10_000.0, 10_100.0, 9_900.0, 10_050.0]);
    let b = single("b", &[12_000.0, 12_100.0, 11_900.0, 12_050.0]);
    let found = compared(&a, &b);
    assert_eq!(found.observations, Observations::Rounds);
    assert_eq!(found.series[0].verdict, Change::Slower);
    assert_eq!(found.series[1].verdict, Change::CannotBeSaid);
    let why = found.series[1].why.as_deref().unwrap();
    assert!(why.contains("2 on a side"), "{why}");
}

#[test]
fn two_runs_are_too_few() {
    let mut normal = Normal::seeded(5);
    let a = runs("a", &mut normal, (0.01, 1.0));
    let found = compared(&a[..2], &a[2..]);
    assert_eq!(found.counts.cannot_be_said, SERIES);
}

#[test]
fn counts_that_rise_from_nothing_differ_without_a_ratio() {
    let side = |id: &str, counts: [f64; 3]| -> Vec<Run> {
        let run = |(number, count): (usize, f64)| {
            let mut series = with_median(0, count);
            series.unit = "per_request".to_owned();
            let results = synthetic::results("orb/whitebox", vec![series]);
            synthetic::run(&format!("{id}-{number}"), vec![results])
        };
        counts.into_iter().enumerate().map(run).collect()
    };
    let found = compared(&side("a", [0.0; 3]), &side("b", [2.0; 3]));
    assert_eq!(found.series[0].verdict, Change::More);
    assert_eq!(found.series[0].ratio, None);
    let same = compared(&side("a", [0.0; 3]), &side("b", [0.0; 3]));
    assert_eq!(same.series[0].verdict, Change::NoDifference);
}

#[test]
fn wrong_answers_say_nothing_about_speed() {
    let mut normal = Normal::seeded(6);
    let a = runs("a", &mut normal, (0.01, 1.0));
    let mut b = runs("b", &mut normal, (0.01, 2.0));
    b[0].results[0].series[3].wrong = 1;
    let found = compared(&a, &b);
    assert_eq!(
        (found.counts.slower, found.counts.cannot_be_said),
        (SERIES - 1, 1)
    );
}

fn changed(runs: &[Run], id: &str, change: impl Fn(&mut Results)) -> Vec<Run> {
    let mut changed = runs.to_vec();
    for (number, run) in changed.iter_mut().enumerate() {
        for results in &mut run.results {
            results.run = format!("{id}-{number}");
            change(results);
        }
    }
    changed
}

#[test]
fn another_effort_is_refused_unless_asked_for() {
    let a = runs("a", &mut Normal::seeded(7), (0.01, 1.0));
    let b = changed(&a, "b", |results| {
        results
            .parameters
            .insert("effort".to_owned(), "full".into());
    });
    let refused = compare(&a, &b, Spoilt::Refuse).unwrap_err().to_string();
    assert!(refused.contains("A quick, B full"), "{refused}");
    let found = compare(&a, &b, Spoilt::Compare).unwrap();
    assert_eq!(found.conditions[0].gravity, Gravity::Spoils);
    assert!(compare(&a, &a, Spoilt::Refuse).is_err(), "the same runs");
}

#[test]
fn kernel_load_and_scheduling_are_conditions_and_part_no_series() {
    let mut a = runs("a", &mut Normal::seeded(8), (0.01, 1.0));
    for series in a.iter_mut().flat_map(|run| &mut run.results[0].series) {
        series.labels.insert("real_time".to_owned(), true.into());
    }
    let b = changed(&a, "b", |results| {
        results.host.kernel_release = "6.99.0-rt1".to_owned();
        results.host.load_average = Some("9.00 9.00 9.00".to_owned());
        results.host.interrupts.handled = Some(123_456_789);
        results.host.stolen.since_boot_ppm = Some(999_999);
        results.scheduling[0].real_time = false;
        results.parameters.insert("load".to_owned(), "hog".into());
        for series in &mut results.series {
            series.labels.insert("load".to_owned(), "hog".into());
            series.labels.insert("real_time".to_owned(), false.into());
        }
    });
    let found = compared(&a, &b);
    assert!(found.only_in_a.is_empty() && found.only_in_b.is_empty());
    let told: Vec<&str> = found
        .conditions
        .iter()
        .map(|one| one.what.as_str())
        .collect();
    assert_eq!(told, ["real time", "load", "host kernel_release"]);
    assert_eq!(found.conditions[1].a, "nothing");
    assert!(found.conditions[2].b.contains("6.99.0-rt1"));
}

#[test]
fn servers_on_another_host_are_a_condition() {
    let a = runs("a", &mut Normal::seeded(10), (0.01, 1.0));
    let with_agent = |results: &mut Results| {
        results.server_host = Some(results.host.clone());
        let address = "192.0.2.7:7480".into();
        results.parameters.insert("agent".to_owned(), address);
    };
    let b = changed(&a, "b", with_agent);
    let told = |found: Comparison| -> Vec<String> {
        let conditions = found.conditions.into_iter();
        conditions.map(|one| one.what).collect()
    };
    // Not every field of a host that one side does not have.
    assert_eq!(told(compared(&a, &b)), ["parameter agent", "servers"]);
    let c = changed(&b, "c", |results| {
        let host = results.server_host.as_mut().unwrap();
        host.kernel_release = "6.99.0-rt1".to_owned();
    });
    assert_eq!(
        told(compared(&b, &c)),
        ["host of the servers kernel_release"]
    );
}

#[test]
fn what_one_side_alone_has_is_listed() {
    let mut a = runs("a", &mut Normal::seeded(9), (0.01, 1.0));
    let b = changed(&a, "b", |results| results.series.truncate(SERIES - 1));
    let extra = synthetic::results("os/mutex", vec![with_median(0, 1.0)]);
    a[0].results.push(extra);
    let found = compared(&a, &b);
    let names: Vec<&str> = found
        .only_in_a
        .iter()
        .map(|one| one.experiment.as_str())
        .collect();
    assert_eq!(names, ["orb/throughput", "os/mutex"]);
    assert!(found.only_in_b.is_empty());
    assert!(found.conditions.is_empty(), "{:?}", found.conditions);
    let nothing = synthetic::run("c", vec![synthetic::results("os/mutex", Vec::new())]);
    assert!(compare(&a, &[nothing], Spoilt::Refuse).is_err());
}

/// Results of an emulated machine whose rounds are seeds, each with this median.
fn emulated(image_sha256: &str, medians: &[f64]) -> Run {
    let mut one = synthetic::series(labels([("service", "yield".into())]), [1_000]);
    one.rounds_p50 = medians.to_vec();
    let mut all = synthetic::results("os/services", vec![one]);
    all.emulation = Some(Emulation {
        systems: vec![EmulatedSystem {
            kernel: "6.12".to_owned(),
            preempt: "full".to_owned(),
            image_sha256: image_sha256.to_owned(),
            ..EmulatedSystem::default()
        }],
        ..Emulation::default()
    });
    synthetic::run("one", vec![all])
}

#[test]
fn two_systems_of_one_campaign_are_two_measurements() {
    let refused =
        |a: &Run, b: &Run| compare(slice::from_ref(a), slice::from_ref(b), Spoilt::Refuse).is_err();
    let one = emulated("a", &[1.0; 4]);
    assert!(refused(&one, &one));
    let mut other = one.clone();
    let emulation = other.results[0].emulation.as_mut().unwrap();
    emulation.systems[0].kernel = "6.12-rt".to_owned();
    assert!(!refused(&one, &other));
}

/// Of another campaign.
fn other(image_sha256: &str, medians: &[f64]) -> Run {
    synthetic::run("two", emulated(image_sha256, medians).results)
}

#[test]
fn seeds_without_any_variance_are_compared_and_said_to_be_seeds() {
    let same = [3_764.0; 4];
    let found = compare(
        &[emulated("a", &same)],
        &[other("b", &same)],
        Spoilt::Refuse,
    )
    .unwrap();
    assert!(found.virtual_time);
    assert_eq!(found.series[0].verdict, Change::NoDifference);
    let slower = [12_000.0; 4];
    let found = compare(
        &[emulated("a", &same)],
        &[other("b", &slower)],
        Spoilt::Refuse,
    )
    .unwrap();
    assert_eq!(found.series[0].verdict, Change::Slower);
    let ratio = found.series[0].ratio.unwrap();
    assert!((ratio - 12_000.0 / 3_764.0).abs() < 1e-6, "{ratio}");
    let kernels = found
        .conditions
        .iter()
        .find(|condition| condition.what == "emulated systems");
    assert!(
        kernels.is_some_and(|condition| condition.a.contains("sha256 a")),
        "{:?}",
        found.conditions
    );
}

#[test]
fn instructions_are_not_set_beside_times_of_a_machine() {
    let real = synthetic::run("real", {
        let one = synthetic::series(labels([("service", "yield".into())]), [1_000]);
        vec![synthetic::results("os/services", vec![one])]
    });
    let error = compare(&[emulated("a", &[1.0; 4])], &[real], Spoilt::Refuse).unwrap_err();
    assert!(error.to_string().contains("guest instructions"), "{error}");
}

/// The geometric mean of A is below the mean of B, and its arithmetic mean above it: B has a zero, so the arithmetic ones are tested.
#[test]
fn the_direction_is_that_of_the_test() {
    let side = |name: &str, rounds: Vec<f64>| {
        let series = Series {
            unit: "locks".to_owned(),
            rounds_p50: rounds,
            ..with_median(0, 0.0)
        };
        vec![synthetic::run(
            name,
            vec![synthetic::results("orb/whitebox", vec![series])],
        )]
    };
    let a = side("a", [vec![10.0; 50], vec![40.0; 50]].concat());
    let b = side("b", [vec![22.0; 99], vec![0.0]].concat());
    let found = compared(&a, &b);
    assert_eq!(
        found.series[0].verdict,
        Change::Less,
        "{:?}",
        found.series[0]
    );
}
