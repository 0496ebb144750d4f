//! Baselines and verdicts, of a campaign that is made up.

use std::path::PathBuf;

use rtorb_results::cells::Cells;
use rtorb_results::explanation::{Explanation, FunctionCost, Sample};
use rtorb_results::{labels, synthetic};

use super::*;
use crate::catalogue::Kernel;

fn identity() -> Identity {
    let system = |name: &str, preempt: &str, digit: &str| System {
        kernel: Kernel {
            name: name.to_owned(),
            release: format!("{name}.117-amd64"),
            image: PathBuf::from("/somewhere/vmlinuz"),
            sha256: digit.repeat(64),
            package: None,
            board: None,
        },
        preempt: preempt.to_owned(),
    };
    Identity {
        emulator: "QEMU emulator version 7.2.22".to_owned(),
        emulator_sha256: "e".repeat(64),
        initramfs_sha256: "f".repeat(64),
        systems: vec![
            system("6.12", "voluntary", "a"),
            system("6.12", "full", "a"),
            system("6.12-rt", "full", "b"),
        ],
        asked: vec![Some("voluntary".to_owned()), Some("full".to_owned()), None],
        firmware_sha256: "0".repeat(64),
        machine: "-M q35".to_owned(),
        experiments: vec!["os/wakeup".to_owned()],
        loads: vec!["none".to_owned(), "tmpfs".to_owned()],
        boots: vec![("tmpfs".to_owned(), vec!["os/wakeup".to_owned()])],
        seeds: 2,
        shift: 0,
        ..Identity::default()
    }
}

/// Of each seed the largest sample; the others are smaller.
fn wakeup(load: &str, largest: [u64; 2]) -> Series {
    let idle = labels([("cpu", "idle".into()), ("load", load.into())]);
    let mut cells = Cells::default();
    for (round, ns) in largest.into_iter().enumerate() {
        cells.add(&idle, round, &[ns / 2, ns, ns / 3], 0);
    }
    cells.series(&labels([])).remove(0)
}

fn measured(identity: &Identity, tmpfs: [u64; 2]) -> Measured {
    let results = |series| vec![synthetic::results("os/wakeup", series)];
    let mut unitless = wakeup("none", [1, 1]);
    unitless.unit = "count".to_owned();
    let mut of_no_seed = wakeup("hog", [1, 1]);
    of_no_seed.rounds_max.clear();
    Measured::of(
        identity,
        &[
            (
                "6.12-voluntary".to_owned(),
                results(vec![
                    wakeup("none", [4_000, 5_000]),
                    wakeup("tmpfs", tmpfs),
                    unitless,
                    of_no_seed,
                ]),
            ),
            (
                "6.12-rt-full".to_owned(),
                results(vec![wakeup("none", [4_100, 4_200])]),
            ),
        ],
    )
}

fn sorts(checked: &Checked) -> Vec<Sort> {
    checked.changes.iter().map(|change| change.sort).collect()
}

#[test]
fn a_bound_is_the_worst_over_the_seeds() {
    let measured = measured(&identity(), [1_000_000, 900_000]);
    let wakeup = &measured.baseline.bounds["6.12-voluntary"]["os/wakeup"];
    assert_eq!(wakeup.len(), 2, "times with seeds alone: {wakeup:?}");
    assert_eq!(wakeup["load=tmpfs cpu=idle"], 1_000_000);
    assert_eq!(measured.baseline.count(), 3);
    let key = ["6.12-voluntary", "os/wakeup", "load=none cpu=idle"].map(str::to_owned);
    assert_eq!(measured.seeds[&key], 2);
}

#[test]
fn a_bound_is_in_instructions_where_each_takes_longer_than_a_nanosecond() {
    let identity = Identity {
        shift: 2,
        ..identity()
    };
    let measured = measured(&identity, [1_000_003, 900_000]);
    let wakeup = &measured.baseline.bounds["6.12-voluntary"]["os/wakeup"];
    assert_eq!(wakeup["load=tmpfs cpu=idle"], 250_001);
    let key = ["6.12-voluntary", "os/wakeup", "load=tmpfs cpu=idle"].map(str::to_owned);
    assert_eq!(measured.seeds[&key], 1);
}

#[test]
fn another_emulator_of_boards_is_a_different_experiment() {
    let with_boards = |digit: &str| Identity {
        boards: Some(Boards {
            emulator_sha256: digit.repeat(64),
            ..Boards::default()
        }),
        ..identity()
    };
    let before = measured(&with_boards("a"), [7, 9]).baseline;
    let same = check(&before, &measured(&with_boards("a"), [7, 9]), 50.0);
    assert!(same.same_experiment);
    let others = [with_boards("b"), identity()];
    for other in others {
        let checked = check(&before, &measured(&other, [7, 9]), 50.0);
        assert_eq!(checked.differences.len(), 1, "{:?}", checked.differences);
        assert!(checked.differences[0].contains("boards"));
    }
}

#[test]
fn a_plan_says_each_kernel_and_model_once() {
    let plan = Plan::of(&identity());
    let names: Vec<&str> = plan.kernels.iter().map(|kernel| &*kernel.name).collect();
    assert_eq!(names, ["6.12", "6.12-rt"]);
    assert_eq!(plan.preempt, ["voluntary", "full"]);
}

#[test]
fn a_file_is_read_as_it_was_written_and_names_no_path() {
    let baseline = measured(&identity(), [7, 9]).baseline;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bounds.json");
    baseline.write(&path).unwrap();
    assert_eq!(Baseline::read(&path).unwrap(), baseline);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("\n        \"load=tmpfs cpu=idle\": 9\n"),
        "{text}"
    );
    assert!(!text.contains("somewhere"), "{text}");
}

#[test]
fn what_is_no_baseline_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bounds.json");
    let refused = || Baseline::read(&path).unwrap_err().to_string();
    assert!(refused().contains("kernel baseline DIR"), "{}", refused());
    std::fs::write(&path, "{}").unwrap();
    assert!(refused().contains("is no baseline"), "{}", refused());
    let mut other = measured(&identity(), [7, 9]).baseline;
    other.schema = "rtorb-baseline/9".to_owned();
    other.write(&path).unwrap();
    assert!(refused().contains("rtorb-baseline/9"), "{}", refused());
    let error = Measured::read(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains(&folder.path().display().to_string()),
        "{error}"
    );
}

#[test]
fn the_same_experiment_may_not_differ_by_an_instruction() {
    let before = measured(&identity(), [1_000_000, 900_000]).baseline;
    let equal = check(&before, &measured(&identity(), [1_000_000, 900_000]), 50.0);
    assert!(equal.passes() && equal.same_experiment);
    assert_eq!((equal.equal, equal.changes.len()), (3, 0));
    let worse = check(&before, &measured(&identity(), [1_000_001, 900_000]), 50.0);
    assert_eq!((sorts(&worse), worse.passes()), (vec![Sort::Worse], false));
    assert_eq!(worse.tolerance_percent, 0.0);
    assert_eq!(worse.tolerance_instructions, 0);
    let shorter = check(&before, &measured(&identity(), [999_999, 900_000]), 50.0);
    assert_eq!(sorts(&shorter), [Sort::Differs]);
    assert!(!shorter.passes());
}

#[test]
fn a_different_experiment_is_named_and_has_a_tolerance() {
    let before = measured(&identity(), [1_000_000, 900_000]).baseline;
    let mut other = identity();
    other.initramfs_sha256 = "1".repeat(64);
    other.systems[2].kernel.sha256 = "2".repeat(64);
    other.systems[2].kernel.release = "6.12.118-rt-amd64".to_owned();
    let at = |largest, percent| check(&before, &measured(&other, [largest, 1]), percent);
    let within = at(1_100_000, 10.0);
    assert!(within.passes() && !within.same_experiment);
    assert_eq!(sorts(&within), [Sort::LongerWithinTolerance]);
    let said = within.differences.join("\n");
    for words in ["guest's root", "6.12.118-rt-amd64", "2222222222222222"] {
        assert!(said.contains(words), "{words} in {said}");
    }
    assert_eq!(within.differences.len(), 2, "{said}");
    let worse = at(1_100_001, 10.0);
    assert_eq!(sorts(&worse), [Sort::Worse]);
    assert_eq!(worse.changes[0].seed, Some(1));
    assert!((worse.changes[0].percent().unwrap() - 10.0).abs() < 0.01);
    assert_eq!(sorts(&at(5, 10.0)), [Sort::Better]);
    assert!(at(5, 10.0).passes());
}

#[test]
fn what_is_missing_fails_and_what_is_new_does_not() {
    let before = measured(&identity(), [7, 9]).baseline;
    let mut now = measured(&identity(), [7, 9]);
    let of_rt = now.baseline.bounds.remove("6.12-rt-full").unwrap();
    now.baseline.bounds.insert("6.13-rt-full".to_owned(), of_rt);
    let checked = check(&before, &now, 0.0);
    assert_eq!(sorts(&checked), [Sort::Missing, Sort::New]);
    assert!(!checked.passes());
    assert_eq!(checked.changes[0].percent(), None);
}

#[test]
fn a_bound_that_was_nothing_is_worse_when_it_is_something() {
    let before = measured(&identity(), [0, 0]).baseline;
    let mut other = identity();
    other.emulator = "QEMU emulator version 10".to_owned();
    let at = |is| check(&before, &measured(&other, [is, 0]), 100.0);
    let worse = at(INTERRUPT_INSTRUCTIONS + 1);
    assert_eq!(sorts(&worse), [Sort::Worse]);
    assert_eq!(worse.changes[0].percent(), None);
    // An interrupt is in a sample or not, as it happens.
    assert_eq!(
        sorts(&at(INTERRUPT_INSTRUCTIONS)),
        [Sort::LongerWithinTolerance]
    );
    assert_eq!(worse.tolerance_instructions, INTERRUPT_INSTRUCTIONS);
}

/// A program of the user's own with one series, whose largest sample takes this long.
fn program(identity: &Identity, largest: u64) -> Measured {
    let series = vec![wakeup("none", [largest, 1])];
    let results = vec![synthetic::results("program/loop", series)];
    Measured::of(identity, &[("6.12-rt-full".to_owned(), results)])
}

/// Of that sample: the instructions of its functions.
fn explanation(value: u64, functions: &[(&str, u64)]) -> Explanation {
    let cost = |(name, instructions): &(&str, u64)| FunctionCost {
        name: (*name).to_owned(),
        instructions: *instructions,
        share: 0.0,
        with_callees: 0,
        entered: 1,
    };
    Explanation {
        schema: Explanation::SCHEMA.to_owned(),
        system: "6.12-rt-full".to_owned(),
        load: "none".to_owned(),
        experiment: "program/loop".to_owned(),
        labels: labels([("cpu", "idle".into()), ("load", "none".into())]),
        sample: Sample::Worst,
        value,
        seed: Some(1),
        mark: 1,
        replay_equal: true,
        instructions: value,
        summary: Vec::new(),
        functions: functions.iter().map(cost).collect(),
        tasks: Vec::new(),
        context_switches: Vec::new(),
        lock_waits: Vec::new(),
        interrupts: Vec::new(),
        flame_graph: String::new(),
        folded: String::new(),
    }
}

fn with_functions(mut measured: Measured, value: u64, functions: &[(&str, u64)]) -> Measured {
    measured.add_functions(&[explanation(value, functions)]);
    measured
}

/// The cause of the one change, of another program than that of the baseline.
fn cause_of(before: &Baseline, mut now: Measured) -> Option<Cause> {
    now.baseline.identity.initramfs_sha256 = "1".repeat(64);
    let checked = check(before, &now, 50.0);
    assert_eq!(sorts(&checked), [Sort::Worse]);
    checked.changes[0].cause.clone()
}

#[test]
fn a_baseline_has_the_functions_of_the_samples_that_are_its_bounds() {
    let unexplained = program(&identity(), 9_000);
    assert_eq!(unexplained.without_functions().len(), 1);
    let another = with_functions(unexplained.clone(), 8_999, &[("step", 7)]);
    assert!(another.baseline.functions.is_empty(), "not of the bound");
    let costs = [("step", 800), ("called_only", 0)];
    let explained = with_functions(unexplained, 9_000, &costs);
    assert_eq!(explained.without_functions().len(), 0);
    let table = &explained.baseline.functions["6.12-rt-full"]["program/loop"];
    let expected = FunctionTable::from([("step".to_owned(), 800)]);
    assert_eq!(table["load=none cpu=idle"], expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bounds.json");
    explained.baseline.write(&path).unwrap();
    assert_eq!(Baseline::read(&path).unwrap(), explained.baseline);
}

#[test]
fn the_explanations_in_a_folder_are_read_and_may_be_absent() {
    let folder = tempfile::tempdir().unwrap();
    let read = || functions::explanations_of(folder.path());
    assert_eq!(read().unwrap(), []);
    let written = folder.path().join("explanations");
    std::fs::create_dir(&written).unwrap();
    let one = explanation(9_000, &[("step", 800)]);
    write_json(&written.join("one.json"), &one).unwrap();
    std::fs::write(written.join("one.svg"), "<svg/>").unwrap();
    assert_eq!(read().unwrap(), [one]);
    std::fs::write(written.join("two.json"), "{}").unwrap();
    assert!(read().unwrap_err().to_string().contains("two.json"));
}

#[test]
fn a_worse_bound_of_a_program_names_the_function_that_grew() {
    let before = with_functions(program(&identity(), 9_000), 9_000, &[("step", 800)]).baseline;
    let now = program(&identity(), 60_000);
    let now = with_functions(now, 60_000, &[("step", 800), ("log", 51_000)]);
    let grown = Growth {
        function: "log".to_owned(),
        was: 0,
        is: 51_000,
    };
    assert_eq!(cause_of(&before, now), Some(Cause::Functions(vec![grown])));
    let checked = check(&before, &program(&identity(), 9_000), 50.0);
    assert!(checked.passes(), "functions are no bounds");
}

#[test]
fn where_no_function_can_be_named_the_reason_is_told() {
    let unknown = |cause: Option<Cause>| match cause {
        Some(Cause::Unknown(why)) => why,
        other => panic!("{other:?}"),
    };
    let old = program(&identity(), 9_000).baseline;
    let now = program(&identity(), 60_000);
    let explained = with_functions(now.clone(), 60_000, &[("step", 800)]);
    let why = unknown(cause_of(&old, explained));
    assert!(why.contains("Write it anew"), "{why}");
    let why = unknown(cause_of(&old, now.clone()));
    let command = "explain DIR --system 6.12-rt-full --experiment program/loop --load none --cpu idle --own-program loop=FILE";
    assert!(why.contains(command), "{why}");
    let mut noted = now;
    let bound = ["6.12-rt-full", "program/loop", "load=none cpu=idle"];
    noted.note_unexplained(bound.map(str::to_owned), "it is stripped".to_owned());
    assert_eq!(unknown(cause_of(&old, noted)), "it is stripped");
    let of_ours = measured(&identity(), [7, 9]).baseline;
    let slower = measured(&identity(), [60_000, 9]);
    assert_eq!(cause_of(&of_ours, slower), None);
}
