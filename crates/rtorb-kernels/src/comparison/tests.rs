use rtorb_report::matrix;
use rtorb_results::summary::tables;
use rtorb_results::{Series, labels, synthetic};
use rtorb_results::{Verdict, Verdicts};

use super::*;
use crate::catalogue::{Kernel, Package};

fn system(name: &str, preempt: &str) -> System {
    System {
        kernel: Kernel {
            name: name.to_owned(),
            release: format!("{name}.1-amd64"),
            image: "/nowhere/vmlinuz".into(),
            sha256: format!("sha of {name}"),
            board: None,
            package: Some(Package {
                name: format!("linux-image-{name}"),
                version: "1".to_owned(),
                sha256: "sha of package".to_owned(),
            }),
        },
        preempt: preempt.to_owned(),
    }
}

fn identity(systems: &[OfSystem], seeds: u16) -> Identity {
    Identity {
        emulator: "QEMU emulator version 7.2.22".to_owned(),
        emulator_sha256: "e".to_owned(),
        initramfs_sha256: "i".to_owned(),
        systems: systems.iter().map(|found| found.system.clone()).collect(),
        experiments: vec!["os/wakeup".to_owned()],
        loads: vec!["none".to_owned(), "tmpfs".to_owned()],
        seeds,
        shift: 0,
        ..Identity::default()
    }
}

fn of_system(system: System, experiment: &str, series: Vec<Series>) -> OfSystem {
    let mut results = synthetic::results(experiment, series);
    results.host.preempt_rt = system.kernel.name.ends_with("-rt");
    results.host.kernel_release = system.kernel.name.clone();
    OfSystem {
        system,
        results: vec![results],
    }
}

/// Wake-ups with the worst of each seed as given.
fn wakeups(load: &str, seeds_ns: &[u64]) -> Series {
    let of = labels([
        ("load", load.into()),
        ("cpu", "idle".into()),
        ("tool", "rtorb".into()),
        ("real_time", true.into()),
    ]);
    let mut series = synthetic::series(of, seeds_ns.iter().flat_map(|ns| [2_000, *ns]));
    series.rounds_p50 = seeds_ns.iter().map(|ns| *ns as f64 / 2.0).collect();
    series.rounds_max = seeds_ns.iter().map(|ns| *ns as f64).collect();
    series
}

fn two(voluntary_ns: &[u64], real_time_ns: &[u64]) -> Vec<OfSystem> {
    let series = |worst_ns: &[u64]| vec![wakeups("none", &[4_000; 4]), wakeups("tmpfs", worst_ns)];
    vec![
        of_system(
            system("6.12", "voluntary"),
            "os/wakeup",
            series(voluntary_ns),
        ),
        of_system(system("6.12-rt", "full"), "os/wakeup", series(real_time_ns)),
    ]
}

#[test]
fn the_worst_over_seeds_is_set_beside_that_of_the_most_real_time_system() {
    let systems = two(
        &[900_000, 1_200_000, 600_000, 700_000],
        &[6_000, 5_000, 5_500, 5_800],
    );
    let results = of("os/wakeup", &systems, &identity(&systems, 4));
    assert_eq!(results.experiment, "kernel/os/wakeup");
    let derived = |name: &str, system: &str| {
        let found = results.derived.iter().find(|derived| {
            derived.name == name
                && derived.labels["system"] == system.into()
                && derived.labels["load"] == "tmpfs".into()
        });
        found.map(|derived| derived.value)
    };
    assert_eq!(
        derived("worst_over_seeds", "6.12 voluntary"),
        Some(1_200_000.0)
    );
    assert_eq!(derived("ratio_to_real_time", "6.12 voluntary"), Some(200.0));
    assert_eq!(derived("ratio_to_real_time", "6.12-rt full"), None);
    assert_eq!(derived("spread_over_seeds", "6.12 voluntary"), Some(2.0));
    assert_eq!(Verdicts::of(&results.claims).held, 1);
    let [of_voluntary, of_real_time, largest, ..] = &results.conclusions[..] else {
        panic!("{:?}", results.conclusions);
    };
    assert!(of_voluntary.starts_with("6.12 voluntary woke"));
    assert!(of_real_time.contains("at most 6.00 k instr under any of 2 loads"));
    assert!(largest.contains("load tmpfs"), "{largest}");
    assert!(largest.contains("200 times"), "{largest}");
}

#[test]
fn the_matrix_has_the_ratio_beside_two_systems_and_in_parentheses_beside_more() {
    let mut systems = two(&[1_200_000; 4], &[6_000; 4]);
    let results = of("os/wakeup", &systems, &identity(&systems, 4));
    let found = matrix::of(&results).unwrap().table;
    assert_eq!(
        found.head,
        ["load, k instr", "6.12 voluntary", "6.12-rt full", "times"]
    );
    assert_eq!(
        found.rows,
        [
            ["none", "4.00", "4.00", "1.00"],
            ["tmpfs", "1200", "6.00", "200"]
        ]
    );
    systems.push(of_system(
        system("6.12", "full"),
        "os/wakeup",
        vec![wakeups("tmpfs", &[60_000; 4])],
    ));
    let results = of("os/wakeup", &systems, &identity(&systems, 4));
    let found = matrix::of(&results).unwrap().table;
    assert_eq!(found.rows[0][1..], ["4.00 (1.00x)", "4.00", ""]);
    assert_eq!(found.rows[1][1..], ["1200 (200x)", "6.00", "60.00 (10.0x)"]);
    let other = of("orb/edge", &systems, &identity(&systems, 4));
    assert!(matrix::of(&other).is_none());
}

#[test]
fn the_words_follow_the_numbers() {
    let systems = two(
        &[9_000, 9_000, 9_000, 9_000],
        &[18_000, 5_000, 5_000, 5_000],
    );
    let results = of("os/wakeup", &systems, &identity(&systems, 4));
    assert!(results.claims[0].is_missed());
    let said = results.conclusions.join(" ");
    assert!(
        said.contains("18.00 k instr on 6.12-rt full, 9.00 k instr on 6.12 voluntary: 2.00 times"),
        "{said}"
    );
    assert!(said.contains("3.60 times that of another"), "{said}");
}

#[test]
fn fewer_than_four_seeds_are_said_first_and_nothing_is_judged_by_them() {
    let systems = two(&[900_000; 3], &[6_000; 3]);
    let results = of("os/wakeup", &systems, &identity(&systems, 3));
    assert!(results.notes[0].starts_with("FEWER THAN FOUR SEEDS: with 3"));
    assert!(!results.claims.is_empty());
    for claim in &results.claims {
        assert_eq!(claim.verdict, Verdict::NotJudged);
        assert!(claim.reason.contains("4 seeds or more"), "{}", claim.reason);
    }
}

#[test]
fn another_tool_and_a_cpu_kept_awake_are_not_compared() {
    let mut systems = two(&[9_000; 4], &[6_000; 4]);
    let mut awake = wakeups("none", &[1_000]);
    awake.labels.insert("cpu".to_owned(), "awake".into());
    let mut other = wakeups("none", &[1_000]);
    other.labels.insert("tool".to_owned(), "cyclictest".into());
    systems[0].results[0].series.extend([awake, other]);
    let results = of("os/wakeup", &systems, &identity(&systems, 4));
    assert_eq!(results.series.len(), 4);
    let worst = &tables(&results)[0];
    assert_eq!(worst.table.head[1..], ["6.12 voluntary", "6.12-rt full"]);
    assert_eq!(worst.table.rows.len(), 2);
    assert!(worst.caption.contains("4 seeds"), "{}", worst.caption);
}

#[test]
fn a_change_of_anything_but_a_place_is_another_experiment() {
    let systems = two(&[9_000; 4], &[6_000; 4]);
    let one = identity(&systems, 4);
    let mut moved = one.clone();
    moved.systems[0].kernel.image = "/elsewhere/vmlinuz".into();
    assert_eq!(name_of(&one), name_of(&moved));
    let changes: [fn(&mut Identity); 5] = [
        |identity| identity.emulator_sha256.push('x'),
        |identity| identity.initramfs_sha256.push('x'),
        |identity| identity.systems[1].kernel.sha256.push('x'),
        |identity| identity.systems[1].preempt.push('x'),
        |identity| identity.seeds += 1,
    ];
    for change in changes {
        let mut changed = one.clone();
        change(&mut changed);
        assert_ne!(name_of(&one), name_of(&changed));
    }
}

#[test]
fn the_context_switch_table_has_systems_as_rows_and_the_papers_below() {
    let switch = |test: &str, ns: u64| {
        let of = labels([
            ("test", test.into()),
            ("what", "switch".into()),
            ("real_time", true.into()),
        ]);
        synthetic::series(of, [ns, ns + 2])
    };
    let all = |ns| vec![switch("yield", ns), switch("synchronized", 3 * ns)];
    let systems = vec![
        of_system(system("6.12", "none"), "os/context-switch", all(1_764)),
        of_system(system("6.12-rt", "full"), "os/context-switch", all(1_800)),
    ];
    let results = of("os/context-switch", &systems, &identity(&systems, 4));
    let table = &tables(&results)[0].table;
    assert_eq!(table.head[1..], ["yield", "synchronized"]);
    assert_eq!(table.rows[0][..2], ["6.12 none", "1.76 (0.001)"]);
    let published = table
        .rows
        .iter()
        .find(|row| row[0].starts_with("QNX (P0 Table 1"));
    assert_eq!(
        published.map(|row| row[1..].to_vec()),
        Some(vec!["0.470 (0.007)".to_owned(), "0.861 (0.003)".to_owned()])
    );
}

#[test]
fn a_system_without_results_is_named_and_the_whole_is_not_complete() {
    let mut systems = two(&[9_000; 4], &[6_000; 4]);
    systems[1].results.clear();
    let results = of("os/wakeup", &systems, &identity(&systems, 4));
    assert!(!results.complete);
    assert!(
        results
            .notes
            .contains(&"6.12-rt full has no results of it.".to_owned())
    );
    assert!(
        results
            .derived
            .iter()
            .all(|derived| derived.name != "ratio_to_real_time")
    );
}

#[test]
fn nothing_at_all_is_no_panic() {
    let results = of("os/wakeup", &[], &identity(&[], 4));
    assert!(results.series.is_empty() && !results.complete);
}

#[test]
fn calls_keep_what_low_priority_clients_did_apart_from_the_load() {
    let call = |background: Option<&str>, preset: &str, ns: u64| {
        let mut of = labels([
            ("orb", "rtorb".into()),
            ("preset", preset.into()),
            ("role", "high".into()),
            ("load", "saturating".into()),
            ("low_clients", 2u32.into()),
            ("servant_work_us", 500u32.into()),
            ("part", "call".into()),
            ("operation", "octet".into()),
        ]);
        if let Some(load) = background {
            of.insert("background_load".to_owned(), load.into());
        }
        synthetic::series(of, [ns / 2, ns])
    };
    let all = |ns: u64| vec![call(None, "tao", ns), call(Some("mix"), "tao", 10 * ns)];
    let systems = vec![
        of_system(
            system("6.12", "voluntary"),
            "orb/latency-jitter",
            all(60_000),
        ),
        of_system(system("6.12-rt", "full"), "orb/latency-jitter", all(50_000)),
    ];
    let results = of("orb/latency-jitter", &systems, &identity(&systems, 4));
    let finding = &tables(&results)[0].table;
    let names: Vec<&str> = finding.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        names,
        [
            "6.12 voluntary, no background load",
            "6.12 voluntary, mix",
            "6.12-rt full, no background load",
            "6.12-rt full, mix"
        ]
    );
    assert_eq!(
        finding.head[1..],
        ["load saturating, 500 us of work, 2 low-priority clients"]
    );
    let first = &results.conclusions[0];
    assert!(
        first.contains(
            "6.12 voluntary: 60.00 k instr without load, 600.0 k instr under mix: 10.00 times"
        ),
        "{first}"
    );
}
