//! The page of a system that was analysed and run.

use rtorb_report as report;
use rtorb_results::judgement::{
    CpuObserved, Interruption, Judgement, Observed, ObservedStanding, Outlier,
};
use rtorb_results::judgement_views;
use rtorb_results::statistics::Recorder;
use rtorb_results::{Results, Series, labels};
use rtorb_sched::model::{
    BehaviourBound, ChainBound, CheckReport, Layer, Loading, Share, Standing,
};

/// A run of two behaviours and a chain: one reached its bound, and one was above it while the host had taken the CPU.
pub(crate) fn results() -> Results {
    let (checked, judgement) = (checked(), judgement());
    let series = judgement.behaviours.iter();
    let series = series.map(|one| {
        let mut recorder = Recorder::new();
        let quiet = one.quiet_worst_ns.unwrap();
        (0..1_000).for_each(|index| recorder.record(quiet / 2 + quiet * index / 2_000));
        recorder.record(one.worst_ns.unwrap());
        let of = labels([
            (judgement_views::END, one.name().into()),
            ("behaviour", one.behaviour.as_str().into()),
            ("root", one.root.as_str().into()),
        ]);
        Series::from_recorder(of, &recorder)
    });
    Results {
        experiment: "model/plant".to_owned(),
        title: "A plant".to_owned(),
        series: series.collect(),
        derived: judgement_views::derived(&checked, &judgement),
        plots: judgement_views::plots(),
        judgement: Some(judgement),
        claims: Vec::new(),
        lost: Vec::new(),
        ..crate::results()
    }
}

fn checked() -> CheckReport {
    let share = |layer, ns| Share {
        layer,
        what: "execution".to_owned(),
        times: 1,
        ns,
    };
    let shares = |ns: i64| {
        vec![
            share(Layer::Application, ns - 300_000),
            share(Layer::Orb, 100_000),
            share(Layer::OperatingSystem, 200_000),
        ]
    };
    let bounded = |name: &str, root: &str, bound_ns: u64| BehaviourBound {
        behaviour: name.to_owned(),
        root: root.to_owned(),
        processor: "left/0".to_owned(),
        priority: Some(60),
        assigned: false,
        period_ns: 50_000_000,
        jobs: 1,
        offset_ns: None,
        deadline_ns: 50_000_000,
        bound_ns: Some(bound_ns),
        slack_ns: i64::try_from(50_000_000 - bound_ns).ok(),
        standing: Standing::Holds,
        shares: shares(i64::try_from(bound_ns).unwrap()),
        by_root: vec![(root.to_owned(), Some(bound_ns))],
        sensitivity: None,
        explanation: String::new(),
    };
    CheckReport {
        schema: "rtorb-model/1",
        system: "plant".to_owned(),
        standing: Standing::Holds,
        first_miss: None,
        strategy: "rms".to_owned(),
        processors: Vec::new(),
        behaviours: vec![
            bounded("sensors.sample", "sensors.sample", 4_000_000),
            bounded("drive.step", "sensors.sample", 9_000_000),
        ],
        chains: vec![ChainBound {
            chain: "end to end".to_owned(),
            through: Vec::new(),
            deadline_ns: 40_000_000,
            bound_ns: Some(9_000_000),
            slack_ns: Some(31_000_000),
            standing: Standing::Holds,
            shares: shares(9_000_000),
            explanation: String::new(),
        }],
        cause_effect_chains: Vec::new(),
        loading: Loading::default(),
        assumptions: Vec::new(),
    }
}

fn judgement() -> Judgement {
    let taken = Interruption {
        host_cpu: 1,
        begin_ns: 2_000_000_000,
        length_ns: 3_000_000,
        while_idle: false,
        traced: false,
    };
    let observed = |behaviour: &str, chain: &str, bound_ns: u64, worst_ns: u64| Observed {
        behaviour: behaviour.to_owned(),
        chain: chain.to_owned(),
        root: "sensors.sample".to_owned(),
        processor: "left/0".to_owned(),
        priority: Some(60),
        bound_ns: Some(bound_ns),
        deadline_ns: 40_000_000,
        count: 1_001,
        misses: 0,
        skipped: 0,
        worst_ns: Some(worst_ns),
        quiet_worst_ns: Some(bound_ns * 3 / 4),
        quiet_count: 1_000,
        ratio: Some(4.0 / 3.0),
        above: u64::from(worst_ns > bound_ns),
        unexplained: 0,
        standing: if worst_ns > bound_ns {
            ObservedStanding::ExplainedByTheHost
        } else {
            ObservedStanding::Within
        },
        outliers: vec![Outlier {
            sequence: 40,
            release_ns: 1_999_000_000,
            end_ns: 1_999_000_000 + worst_ns,
            response_ns: worst_ns,
            excess_ns: worst_ns.saturating_sub(bound_ns),
            window_begin_ns: 1_999_000_000,
            interrupted_ns: 3_000_000,
            interruptions: vec![taken],
        }],
        words: String::new(),
    };
    Judgement {
        causes: Vec::new(),
        next: Vec::new(),
        system: "plant".to_owned(),
        duration_ns: 50_050_000_000,
        promised: true,
        standing: ObservedStanding::ExplainedByTheHost,
        rule: String::new(),
        interruption_from_ns: 10_000,
        cpus: vec![CpuObserved {
            host_cpu: 1,
            processors: vec!["left/0".to_owned()],
            interruptions: 1,
            interrupted_ns: 3_000_000,
            longest_ns: 3_000_000,
            stolen_ms: Some(0),
            busy_ns: None,
            ..CpuObserved::default()
        }],
        behaviours: vec![
            observed("sensors.sample", "", 4_000_000, 3_500_000),
            observed("drive.step", "", 9_000_000, 11_000_000),
        ],
        chains: vec![observed("", "end to end", 9_000_000, 11_000_000)],
        cause_effect_chains: Vec::new(),
        interruptions: vec![taken],
        remarks: Vec::new(),
    }
}

#[test]
fn bounds_stand_beside_what_was_observed() {
    let page = report::render(&[results()], &[]).unwrap();
    for cell in [
        "<td>drive.step from sensors.sample</td><td>host took more</td><td>11ms</td><td>9ms</td><td>6.75ms</td><td>1.33</td><td>40ms</td><td>0</td><td>1001</td>",
        "<td>within</td>",
    ] {
        assert!(page.contains(cell), "{cell}");
    }
    assert!(page.contains("Systems, as analysed and as run"));
    // A bound and a deadline in each of the histograms and the tails.
    for mark in ["bound 4000 µs", "bound 9000 µs", "deadline 40000 µs"] {
        assert!(page.contains(mark), "{mark}");
    }
    assert!(page.contains("\"barmode\":\"stack\"") && page.contains("worst quiet"));
}

#[test]
fn shares_of_a_bound_are_all_of_it() {
    let all = judgement_views::derived(&checked(), &judgement());
    for end in [
        "sensors.sample",
        "drive.step from sensors.sample",
        "end to end",
    ] {
        let of_end = all
            .iter()
            .filter(|one| one.labels[judgement_views::END].to_string() == end);
        let sum = |name: &str| -> f64 {
            let named = of_end.clone().filter(|one| one.name == name);
            named.map(|one| one.value).sum()
        };
        assert!(
            (sum("bound_by_layer_percent") - 100.0).abs() < 1e-9,
            "{end}"
        );
        assert!((sum("bound_by_layer") - sum("bound")).abs() < 1e-6, "{end}");
    }
}
