//! Files of systems: the examples, a file with every field, and invalid files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rtorb_sched::Criticality;
use rtorb_sched::model::{
    CallWay, Communication, CompiledRequirements, Execution, Locking, SchedulingPolicy, System,
    Timing, Trigger,
};

/// The annotations of `avionics.idl`, as written there: another crate reads IDL.
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
        miss_ratio: None,
        requirements: CompiledRequirements::NONE,
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

/// Returns the execution per second of each node's CPUs without a platform, in ns.
fn demand_ns(system: &System) -> Vec<u64> {
    let mut demand = vec![0; system.nodes.len()];
    for (root, behaviour) in system.behaviours.iter().enumerate() {
        let period_ns = match behaviour.trigger {
            Trigger::Called => continue,
            trigger => trigger.period_ns().expect("it is a root"),
        };
        let mut waiting = vec![(root, 1_000_000_000 / period_ns)];
        while let Some((place, times)) = waiting.pop() {
            let behaviour = &system.behaviours[place];
            demand[system.placement(place).node] += times * behaviour.execution.worst_ns();
            for call in &behaviour.calls {
                let each = call.to.iter();
                waiting.extend(each.map(|callee| (*callee, times * u64::from(call.count))));
            }
        }
    }
    demand
}

#[test]
fn the_examples_leave_time_for_their_platforms() {
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
fn the_avionics_example_takes_its_timing_from_idl() {
    let system = example("avionics.toml");
    let update = system.behaviour("navigation.update").expect("it is there");
    let update = &system.behaviours[update];
    assert_eq!(update.execution.worst_ns(), 3_000_000);
    assert_eq!(update.deadline_ns, Some(40_000_000));
    assert_eq!(update.criticality, Criticality::High);
}

const GOOD: &str = include_str!("system_files/good.toml");
const WRONG: &str = include_str!("system_files/wrong.txt");

/// The annotations of the IDL that `good.toml` names.
fn good_annotations(files: &[PathBuf]) -> Result<BTreeMap<String, Timing>, String> {
    if files != [Path::new("/systems/avionics.idl")] {
        return Err(format!("{}: there is no such file", files[0].display()));
    }
    let update = Timing {
        place: "avionics.idl:7".to_owned(),
        ..timing(3_000, Some(30_000), Some(50_000), Some(Criticality::High))
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
    System::parse(text, Path::new("/systems"), &good_annotations)
}

#[test]
fn a_file_with_everything_is_read() {
    let system = parse(GOOD).expect("a system");
    assert_eq!(
        (system.name.as_str(), system.nodes[0].cpus),
        ("avionics", 2)
    );
    let profile = system.nodes[0].profile.as_deref();
    assert_eq!(profile, Some(Path::new("/systems/profile.json")));
    assert_eq!(
        system.nodes[1].scheduling,
        [SchedulingPolicy::EarliestDeadline]
    );
    assert_eq!(system.links[0].between, [1, 0]);
    assert_eq!((system.channels[0].node, system.channels[0].cpu), (0, 1));
    assert_eq!(system.resources[0].locking, Locking::Ceiling);
    assert_eq!(system.resources[1].locking, Locking::Inheritance);
    let sample = &system.behaviours[0];
    let period_ns = 50_000_000;
    assert_eq!(
        sample.trigger,
        Trigger::Periodic {
            period_ns,
            offset_ns: None
        }
    );
    assert_eq!(sample.calls[2].way, CallWay::Event { channel: 0 });
    assert_eq!(sample.calls[2].to, [3, 5]);
    assert_eq!(sample.calls[0].count, 2);
    assert_eq!(system.behaviours[1].execution.worst_ns(), 2_000_000);
    assert_eq!(system.behaviours[3].execution.worst_ns(), 3_000_000);
    assert_eq!(system.chains[0].through, [0, 3]);
    let data = &system.cause_effect_chains[0];
    assert_eq!(data.stages, [vec![0, 1], vec![6]]);
    assert_eq!(data.communication, Communication::Implicit);
    assert_eq!(data.data_age_max_ns, Some(300_000_000));
    assert_eq!(data.reaction_time_max_ns, Some(3_000_000_000));
    assert_eq!(system.behaviours[6].gap_max_ns, Some(2_000_000_000));
    assert_eq!(system.behaviour("log.alarm"), Some(6));
    let lines: Vec<&str> = GOOD.lines().collect();
    assert_eq!(lines[system.behaviours[6].line - 1], "name = \"alarm\"");
    assert_eq!(
        lines[system.chains[0].line - 1],
        "name = \"sensor to display\""
    );
}

#[test]
fn annotations_supply_what_the_file_omits() {
    let system = parse(GOOD).expect("a system");
    let update = &system.behaviours[2];
    assert_eq!(update.execution, Execution::Fixed { ns: 3_000_000 });
    assert_eq!(update.deadline_ns, Some(30_000_000));
    assert_eq!(update.criticality, Criticality::High);
    assert_eq!(update.trigger, Trigger::Called);
    let gap_ns = 20_000_000;
    assert_eq!(
        system.behaviours[4].trigger,
        Trigger::Sporadic {
            gap_ns,
            burst: None
        }
    );
}

/// A case of `wrong.txt`.
struct Wrong<'a> {
    title: &'a str,
    text: String,
    said: Vec<&'a str>,
}

fn wrong_files() -> Vec<Wrong<'static>> {
    let cases = WRONG.split("\n= ").skip(1);
    cases.map(wrong_file).collect()
}

fn wrong_file(case: &'static str) -> Wrong<'static> {
    let (title, rest) = case.split_once('\n').expect("a title");
    let mut text = GOOD.to_owned();
    let (mut right, mut instead) = (String::new(), String::new());
    let mut said = Vec::new();
    for line in rest.lines().chain(["? "]) {
        let (kind, line) = line.split_at(line.len().min(2));
        if kind != "+ " && !instead.is_empty() {
            assert_eq!(text.matches(&right).count(), 1, "{title}: {right}");
            text = text.replacen(&right, &instead, 1);
            right.clear();
            instead.clear();
        }
        let line_feed = |line: &str| format!("{line}\n");
        match kind {
            "- " => right += &line_feed(line),
            "+ " => instead += &line_feed(line),
            "? " if !line.is_empty() => said.push(line),
            _ => {}
        }
    }
    Wrong { title, text, said }
}

#[test]
fn an_error_names_its_line() {
    let cases = wrong_files();
    assert!(cases.len() >= 80, "{}", cases.len());
    let mut failed = Vec::new();
    for Wrong { title, text, said } in &cases {
        let marked = text.lines().position(|line| line.ends_with("#!"));
        match parse(text) {
            Ok(_) => failed.push(format!("{title}: it was read")),
            Err((line, reason)) => {
                let silent = said.iter().any(|said| !reason.contains(said));
                if line != marked.map(|index| index + 1) || silent || said.is_empty() {
                    failed.push(format!("{title}: {line:?} for {marked:?}: {reason}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Returns the lines of the mistakes of a text, and their reasons.
fn mistakes(text: &str) -> Vec<(Option<usize>, String)> {
    let parsed = System::parse_all(text, Path::new("/systems"), &good_annotations);
    let mistakes = parsed.expect_err("mistakes").into_iter();
    mistakes.map(|one| (one.line, one.reason)).collect()
}

/// Changes lines of the good file, and checks that these and no other lines are mistakes.
fn check_all_found(changes: &[(&str, &str, &str)]) {
    let mut text = GOOD.to_owned();
    for (right, wrong, _) in changes {
        assert!(text.contains(right), "{right}");
        text = text.replacen(right, wrong, 1);
    }
    let found = mistakes(&text);
    assert_eq!(found.len(), changes.len(), "{found:?}");
    for (_, wrong, said) in changes {
        let line = text
            .lines()
            .position(|line| line == *wrong)
            .map(|at| at + 1);
        let is_it = |(at, reason): &&(Option<usize>, String)| *at == line && reason.contains(said);
        assert!(found.iter().any(|one| is_it(&one)), "{wrong} in {found:?}");
    }
}

#[test]
fn all_mistakes_in_the_form_are_found_at_once() {
    check_all_found(&[
        ("cpus = 2", "cpuss = 2", "did you mean `cpus`?"),
        ("strategy = \"dms\"", "strategy = \"dsm\"", "choose rms"),
        (
            "deadline = \"40ms\"",
            "dedline = \"40ms\"",
            "did you mean `deadline`?",
        ),
        ("[[chain]]", "[[chian]]", "did you mean `chain`?"),
    ]);
    check_all_found(&[
        ("cpus = 2", "cpus = = 2", "extra"),
        ("deadline = \"40ms\"", "deadline = 40ms", ""),
    ]);
}

#[test]
fn two_mistakes_in_one_table_are_found_at_once() {
    let text =
        "name = \"a\"\n[[node]]\nname = \"n\"\ncpu = 2\ntik = \"1ms\"\nprofle = \"p.json\"\n";
    let lines: Vec<_> = mistakes(text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [Some(4), Some(6), Some(5)], "in the order of names");
}

#[test]
fn all_mistakes_in_the_meaning_are_found_as_far_as_none_follows_from_another() {
    let mut text = many(40, |place| match place {
        0 => "period = \"1s\"\ncalls = [{ to = \"c.b1\" }, { to = \"c.bb2\" }]".to_owned(),
        1 => "sections = [{ resource = \"log\", length = \"1ns\" }]".to_owned(),
        _ => "period = \"0s\"".to_owned(),
    });
    let found = mistakes(&text);
    assert_eq!(found.len(), 20, "the first mistakes of many");
    text = text.replace("\"0s\"", "\"1s\"");
    let found = mistakes(&text);
    let reasons: Vec<&str> = found.iter().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(found.len(), 2, "{reasons:?}");
    assert!(
        reasons[0].contains("has no resource \"log\""),
        "{reasons:?}"
    );
    assert!(
        reasons[1].contains("there is no behaviour \"c.bb2\""),
        "{reasons:?}"
    );
}

/// Returns a file with many behaviours on one node, each with the text that its index yields.
fn many(count: usize, each: impl Fn(usize) -> String) -> String {
    let behaviours = (0..count).map(|place| {
        let rest = each(place);
        format!("[[component.behaviour]]\nname = \"b{place}\"\nexecution = \"1us\"\n{rest}\n")
    });
    let behaviours: String = behaviours.collect();
    format!("name = \"many\"\n[[node]]\nname = \"n\"\n[[component]]\nname = \"c\"\n{behaviours}")
}

/// Returns a file in which each behaviour calls the next several times.
fn in_a_row(count: usize, times: u32) -> String {
    many(count, |place| {
        let period = if place == 0 { "period = \"1s\"\n" } else { "" };
        let next = place + 1;
        if next == count {
            return period.to_owned();
        }
        format!("{period}calls = [{{ to = \"c.b{next}\", count = {times} }}]")
    })
}

#[test]
fn a_file_beyond_the_limits_is_refused() {
    let period = |_| "period = \"1s\"".to_owned();
    assert!(parse(&many(10_000, period)).is_ok());
    assert!(parse(&in_a_row(65, 1)).is_ok());
    let nodes: String = (0..65)
        .map(|place| format!("[[node]]\nname = \"m{place}\"\n"))
        .collect();
    let components: String = (0..1_000)
        .map(|place| format!("[[component]]\nname = \"d{place}\"\n"))
        .collect();
    let long = "n".repeat(257);
    for (text, said) in [
        (
            many(10_001, period),
            "there are 10001 behaviours; the maximum is 10000",
        ),
        (many(1, period) + &nodes, "there are 66 nodes"),
        (many(1, period) + &components, "there are 1001 components"),
        (in_a_row(66, 1), "\"c.b65\" is more than 64 calls away"),
        (in_a_row(10, 1_000), "more than 100000 behaviours run"),
        (in_a_row(60, 1_000), "more than 100000 behaviours run"),
        (many(0, period), "there is no behaviour"),
        ("name = \"none\"".to_owned(), "there is no node"),
        (
            many(1, period).replace("\"c\"", &format!("\"{long}\"")),
            "1 to 256 bytes",
        ),
    ] {
        let (_, reason) = parse(&text).expect_err(said);
        assert!(reason.contains(said), "{said}: {reason}");
    }
}

#[test]
fn the_longest_cycle_and_the_deepest_nesting_end_with_an_error() {
    let circle = many(10_000, |place| {
        format!("calls = [{{ to = \"c.b{}\" }}]", (place + 1) % 10_000)
    });
    let (line, reason) = parse(&circle).expect_err("a circle");
    // Five lines, then four for each behaviour, of which its calls are the last.
    assert_eq!(line, Some(5 + 4 * 10_000), "{reason}");
    let said = "calls \"c.b63\" calls 9936 others, the last of which calls \"c.b0\"";
    assert!(reason.contains(said), "{reason}");
    for open in ["[", "{ a = ", "{ least = { least = "] {
        let deep = format!("name = {}", open.repeat(100_000));
        assert!(parse(&deep).is_err(), "{open}");
        let deep = many(1, |_| {
            format!("calls = [{{ to = {} }}]", open.repeat(100_000))
        });
        assert!(parse(&deep).is_err(), "{open}");
    }
}

#[test]
fn an_error_about_a_long_text_is_short() {
    let long = "n".repeat(1 << 20);
    let all_alike = many(2_000, |_| "period = \"1s\"".to_owned());
    let all_alike = all_alike.replace("\"c\"", &format!("{:?}", "c".repeat(256)));
    let misspelt = format!("c{}.b1", "d".repeat(255));
    for text in [
        format!("{long} = 1"),
        format!("name = \"{long}\""),
        many(2, |_| format!("period = \"{long}\"")),
        many(2, |_| {
            format!("period = \"1s\"\ncalls = [{{ to = \"{long}\" }}]")
        }),
        format!("{all_alike}calls = [{{ to = \"{misspelt}\" }}]"),
    ] {
        let (_, reason) = parse(&text).expect_err("it is too long");
        assert!(reason.len() < 41_000, "{}", reason.len());
    }
}

#[test]
fn the_file_of_the_documentation_is_read() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/model.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let file = page
        .split("```toml\n")
        .skip(1)
        .find_map(|block| {
            block
                .split("```")
                .next()
                .filter(|text| text.contains("[[node]]"))
        })
        .expect("it shows a file");
    let annotated = |_: &[PathBuf]| {
        let timing = timing(1_000, None, None, None);
        Ok(BTreeMap::from([(
            "Avionics::Filter::update".to_owned(),
            timing,
        )]))
    };
    let read = System::parse(file, Path::new(""), &annotated);
    assert_eq!(read.map(|system| system.behaviours.len()), Ok(6));
}
