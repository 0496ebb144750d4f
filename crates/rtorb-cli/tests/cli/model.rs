//! `rtorb model`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;

use rtorb::rt::{Policy, Priority, PriorityModel};
use rtorb::{Orb, PoaPolicies, SystemException};
use rtorb_os::sched::{SchedPolicy, allowed, current_policy};
use rtorb_services::scheduling::Schedule;
use rtorb_tests::skip;
use rtorb_tests::stubs::exchange::{Party, PartyServant};

use crate::model_run::ALONE;
use crate::support::{json, rtorb};

fn example(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/model");
    examples.join(name)
}

/// Checks a file on a platform that costs nothing, and answers exit status, output and errors.
fn check(file: &Path, options: &[&str]) -> (Option<i32>, Vec<u8>, String) {
    ran(&["model", "check", "--ideal"], file, options)
}

fn ran(command: &[&str], file: &Path, options: &[&str]) -> (Option<i32>, Vec<u8>, String) {
    let output = rtorb()
        .args(command)
        .arg(file)
        .args(options)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), output.stdout, errors)
}

fn checked(name: &str) -> serde_json::Value {
    let (status, output, errors) = check(&example(name), &["--json"]);
    assert!(status.is_some_and(|status| status < 2), "{errors}");
    json(&output)
}

/// A file of one behaviour that executes for so long every 10 ms.
fn one_behaviour(folder: &Path, execution: &str) -> PathBuf {
    let text = format!(
        "name = \"one\"\n[[node]]\nname = \"n\"\n[[component]]\nname = \"c\"\n[[component.behaviour]]\nname = \"b\"\n\
         period = \"10ms\"\nexecution = \"{execution}\"\n"
    );
    let file = folder.join("one.toml");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn the_examples_hold_and_the_overloaded_one_is_named() {
    for name in [
        "avionics.toml",
        "two-receivers.toml",
        "robot-arm.toml",
        "engine-control.toml",
    ] {
        let (status, output, errors) = check(&example(name), &[]);
        let text = String::from_utf8_lossy(&output).into_owned();
        assert_eq!(status, Some(0), "{text}{errors}");
        assert!(text.starts_with("All deadlines of"), "{text}");
    }
    let (status, output, _) = check(&example("overloaded.toml"), &[]);
    let text = String::from_utf8_lossy(&output).into_owned();
    assert_eq!(status, Some(1), "{text}");
    for words in ["The first is that of vision.recognise", "MISSES"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert_eq!(checked("overloaded.toml")["first_miss"], "vision.recognise");
}

#[test]
fn the_answer_as_json_is_the_same_each_time_and_its_shares_are_the_bound() {
    let answer = checked("avionics.toml");
    assert_eq!(answer, checked("avionics.toml"));
    let keys: BTreeSet<&str> = answer
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let documented = [
        "schema",
        "system",
        "standing",
        "first_miss",
        "strategy",
        "processors",
        "behaviours",
        "chains",
        "cause_effect_chains",
        "loading",
        "assumptions",
    ];
    assert_eq!(keys, BTreeSet::from(documented));
    assert_eq!(answer["schema"], "rtorb-model/1");
    let ends = ["behaviours", "chains"].map(|list| answer[list].as_array().unwrap());
    for end in ends.into_iter().flatten() {
        let shares = end["shares"].as_array().unwrap().iter();
        let sum: i64 = shares.map(|share| share["ns"].as_i64().unwrap()).sum();
        assert_eq!(Some(sum), end["bound_ns"].as_i64(), "{end}");
        let slack = end["deadline_ns"].as_i64().unwrap() - sum;
        assert_eq!(Some(slack), end["slack_ns"].as_i64(), "{end}");
    }
}

/// A text without its line breaks, which depend on the width of the terminal.
fn in_one_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_age_of_data_stands_beside_its_limit_with_its_shares() {
    let (status, output, errors) = check(&example("engine-control.toml"), &["--no-sensitivity"]);
    let text = in_one_line(&output);
    assert_eq!(status, Some(0), "{text}{errors}");
    for words in [
        "12 behaviours and 4 cause-effect chains",
        "slow to fast on time (logical execution time, exact):",
        "engine.crankshaft > spark.ignite | vehicle.every-20ms |",
        "reaction time: 100ms input of vehicle.every-100ms",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let answer = checked("engine-control.toml");
    let chains = answer["cause_effect_chains"].as_array().unwrap();
    assert_eq!(chains.len(), 4);
    for chain in chains {
        for latency in [&chain["data_age"], &chain["reaction_time"]] {
            let shares = latency["shares"].as_array().unwrap().iter();
            let sum: u64 = shares.map(|share| share["ns"].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), latency["bound_ns"].as_u64(), "{chain}");
        }
    }
    assert_eq!(chains[2]["communication"], "let");
    assert_eq!(chains[2]["data_age"]["bound_ns"], 210_000_000);
    assert_eq!(chains[2]["reaction_time"]["bound_ns"], 212_000_000);
    let (status, output, _) = check(
        &example("engine-control.toml"),
        &["--explain", "fast to slow"],
    );
    let text = String::from_utf8_lossy(&output).into_owned();
    assert_eq!(status, Some(0));
    for words in ["data age of fast to slow", "register of engine.interrupt"] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn a_limit_of_data_that_is_exceeded_is_a_miss() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(example("engine-control.toml")).unwrap();
    let file = folder.path().join("late.toml");
    std::fs::write(&file, text.replacen("130ms", "120ms", 1)).unwrap();
    let (status, output, _) = check(&file, &["--no-sensitivity"]);
    let text = in_one_line(&output);
    assert_eq!(status, Some(1), "{text}");
    for words in [
        "engine-control will exceed limits of its data.",
        "slow to fast MISSES, data age:",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let (status, _, errors) = ran(&["model", "run", "--ideal"], &file, &[]);
    assert_eq!(status, Some(1), "{errors}");
}

#[test]
fn one_behaviour_alone_takes_what_it_executes() {
    let folder = tempfile::tempdir().unwrap();
    let file = one_behaviour(folder.path(), "4ms");
    let (status, output, _) = check(&file, &["--json"]);
    let answer = json(&output);
    assert_eq!(status, Some(0));
    assert_eq!(answer["behaviours"][0]["bound_ns"], 4_000_000);
    assert_eq!(
        answer["behaviours"][0]["sensitivity"]["may_grow_ns"],
        6_000_000
    );
    let (_, output, _) = check(&file, &["--json", "--no-sensitivity"]);
    assert!(json(&output)["behaviours"][0]["sensitivity"].is_null());
    let (status, output, _) = check(&file, &["--explain", "c.b"]);
    let text = String::from_utf8_lossy(&output).into_owned();
    assert_eq!(status, Some(0));
    assert!(
        text.contains("own execution") && text.contains("4ms"),
        "{text}"
    );
}

#[test]
fn what_is_written_is_read_by_orbs_and_schedules() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let (status, ..) = check(&example("avionics.toml"), &["--out", out]);
    assert_eq!(status, Some(0));
    let answer = checked("avionics.toml");
    let written = std::fs::read(folder.path().join("check.json")).unwrap();
    assert_eq!(json(&written), answer);
    let components = answer["loading"]["components"].as_array().unwrap();
    assert_eq!(components.len(), 6);
    let schedule = Schedule::read(folder.path().join("priorities.toml")).unwrap();
    for component in components {
        let name = component["component"].as_str().unwrap();
        let file = folder.path().join(format!("{name}.orb.toml"));
        let read = Orb::builder().config_file(&file).build();
        assert!(read.is_ok(), "{name}: {:?}", read.err());
        let text = std::fs::read_to_string(&file).unwrap();
        let lanes = component["lanes"].as_array().unwrap().len();
        let bands = component["bands"].as_array().unwrap().len();
        assert_eq!(text.matches("[[lanes]]").count(), lanes, "{text}");
        assert_eq!(text.matches("[[bands]]").count(), bands, "{text}");
        for priority in component["priorities"].as_array().unwrap() {
            let found = schedule.priority(priority[0].as_str().unwrap()).unwrap();
            assert_eq!(Some(i64::from(found.get())), priority[1].as_i64());
        }
    }
    assert!(schedule.priority("sensors.sample") > schedule.priority("guidance.step"));
}

/// Serves a level.
struct Level;

impl PartyServant for Level {
    fn name(&self) -> Result<String, SystemException> {
        Ok(String::new())
    }

    fn level(&self) -> Result<i32, SystemException> {
        match current_policy() {
            SchedPolicy::Fifo(priority) => Ok(priority.into()),
            _ => Ok(0),
        }
    }

    fn set_level(&self, _value: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn what_is_written_for_a_cpu_by_deadline_starts_its_lane() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let (status, ..) = check(&example("only-edf.toml"), &["--out", out]);
    assert_eq!(status, Some(0));
    let text = std::fs::read_to_string(folder.path().join("tool.orb.toml")).unwrap();
    assert!(text.contains("#   tool.position: 10ms\n"), "{text}");
    let lane = "priority = 76\nstatic_threads = 4\norder = \"earliest_deadline\"\n";
    assert!(text.contains(lane), "{text}");
    if allowed(SchedPolicy::Fifo(80)).is_err() {
        return skip("no real-time priorities");
    }
    let file = folder.path().join("tool.orb.toml");
    let orb = Orb::builder().listen("iiop://127.0.0.1:0");
    let orb = orb.config_file(&file).build().unwrap();
    let declared = |priority: i16| {
        let priority = Priority::new(priority).unwrap();
        let policies = PoaPolicies::default().with(Policy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: priority,
        });
        let root = orb.root_poa().unwrap();
        root.create_poa(&priority.to_string(), policies)
    };
    assert!(declared(75).is_err(), "it has one lane");
    let party: Party = declared(76).unwrap().activate(Level).unwrap();
    let serving = std::thread::spawn({
        let orb = orb.clone();
        move || orb.run()
    });
    let client = Orb::builder().build().unwrap();
    let text = orb.object_to_string(party.as_object());
    let party = Party::unchecked_narrow(client.string_to_object(&text).unwrap());
    let urgent = party.as_object().with_deadline(Duration::from_secs(20));
    let urgent = Party::unchecked_narrow(urgent);
    let served_at = urgent.level();
    orb.shutdown();
    serving.join().unwrap().unwrap();
    assert_eq!(served_at, Ok(76), "the lowest level is free");
}

#[test]
fn what_no_lane_can_serve_by_deadline_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let text = std::fs::read_to_string(example("only-edf.toml")).unwrap();
    let channel = "[[channel]]\nname = \"news\"\n";
    let file = folder.path().join("channel.toml");
    std::fs::write(&file, format!("{text}\n{channel}")).unwrap();
    let (status, output, _) = check(&file, &["--out", out]);
    assert_eq!(status, Some(0));
    let said = String::from_utf8(output).unwrap();
    assert!(
        said.contains("tool: no lane: the channel news is on CPU 0"),
        "{said}"
    );
    let written = std::fs::read_to_string(folder.path().join("tool.orb.toml")).unwrap();
    assert!(!written.contains("[[lanes]]"), "{written}");
    assert!(
        written.contains("# It has no lane: the channel news is on CPU 0"),
        "{written}"
    );
    Orb::builder()
        .config_file(folder.path().join("tool.orb.toml"))
        .build()
        .unwrap();
}

#[test]
fn components_of_a_cpu_by_deadline_are_told_to_be_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let text = std::fs::read_to_string(example("only-edf.toml")).unwrap();
    let other = "[[component]]\nname = \"other\"\n[[component.behaviour]]\nname = \"b\"\nperiod = \"1s\"\nexecution = \"1us\"\n";
    let file = folder.path().join("two.toml");
    std::fs::write(&file, format!("{text}\n{other}")).unwrap();
    let (status, output, _) = check(&file, &["--out", out]);
    assert_eq!(status, Some(0));
    let said = String::from_utf8(output).unwrap();
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for (one, other) in [("tool", "other"), ("other", "tool")] {
        let lanes = format!("{one}: lanes 76 by deadline with 4 levels; one process with {other}");
        assert!(words.contains(&lanes), "{said}");
        let written = std::fs::read_to_string(folder.path().join(format!("{one}.orb.toml")));
        let written = written.unwrap();
        let told = format!("# One process has this component and {other}, because");
        assert!(written.contains(&told), "{written}");
        let lane = "priority = 76\nstatic_threads = 4\norder = \"earliest_deadline\"\n";
        assert!(written.contains(lane), "{written}");
    }
}

#[test]
fn what_is_wrong_is_misuse_and_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = one_behaviour(folder.path(), "4 minutes");
    let (status, _, errors) = check(&file, &[]);
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("one.toml:9:") && errors.contains("50ms"),
        "{errors}"
    );
    let file = one_behaviour(folder.path(), "4ms");
    let cases: [(&[&str], &[&str], &str); 6] = [
        (&["model", "check"], &[], "rtorb lab run profile"),
        (&["model", "run"], &[], "rtorb lab run profile"),
        (
            &["model", "check"],
            &["--profile", "m=x"],
            "one has no node m",
        ),
        (
            &["model", "check"],
            &["--profile", "no-such-file"],
            "no-such-file",
        ),
        (
            &["model", "check", "--ideal"],
            &["--explain", "c.c"],
            "did you mean c.b?",
        ),
        (
            &["model", "run", "--ideal"],
            &["--place", "n=1"],
            "NODE/CPU=HOSTCPU",
        ),
    ];
    for (command, options, words) in cases {
        let (status, _, errors) = ran(command, &file, options);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains(words), "{words} in {errors}");
    }
    let (status, _, errors) = check(&folder.path().join("none.toml"), &[]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("none.toml"), "{errors}");
}

#[test]
fn what_misses_is_not_run_unless_it_is_forced() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    let out = out.to_str().unwrap();
    let run = [
        "model",
        "run",
        "--ideal",
        "--duration",
        "200ms",
        "--out",
        out,
    ];
    let (status, _, errors) = ran(&run, &example("overloaded.toml"), &[]);
    assert_eq!(status, Some(1), "{errors}");
    for words in [
        "The first is that of vision.recognise",
        "It was not run",
        "--force",
    ] {
        assert!(errors.contains(words), "{words} in {errors}");
    }
    assert!(!folder.path().join("report").exists());
    let (status, output, errors) = ran(&run, &example("overloaded.toml"), &["--force", "--json"]);
    if errors.contains("those of real-time threads") {
        eprintln!("skipped: {errors}");
        return;
    }
    // Whoever is refused the CPU misses its deadline.
    assert_eq!(status, Some(1), "{errors}");
    let results = json(&output);
    let behaviours = results["judgement"]["behaviours"].as_array().unwrap();
    let missed = |name: &str| {
        let of_name = |one: &&serde_json::Value| one["behaviour"] == name;
        behaviours.iter().find(of_name).unwrap()["misses"].as_u64()
    };
    assert!(missed("vision.recognise") > Some(0), "{results}");
}

#[test]
fn a_run_leaves_its_page_its_numbers_and_the_answer() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let file = one_behaviour(folder.path(), "1ms");
    let run = [
        "model",
        "run",
        "--ideal",
        "--duration",
        "300ms",
        "--out",
        out,
    ];
    let (status, output, errors) = ran(&run, &file, &["--seed", "7", "--runs", "2"]);
    if errors.contains("those of real-time threads") {
        eprintln!("skipped: {errors}");
        return;
    }
    // Nothing is reckoned for the host, so its answer may be no.
    assert!(status.is_some_and(|status| status < 2), "{errors}");
    // How long the runs take depends on what else the host does.
    for words in ["Host: ", "fit for real time", "Now: in "] {
        assert!(errors.contains(words), "{words} in {errors}");
    }
    let text = String::from_utf8_lossy(&output).into_owned();
    for run in ["[1/2] model/one", "[2/2] model/one"] {
        assert!(errors.contains(run), "{run} in {errors}");
    }
    for words in ["c.b", "observed worst", "Report: "] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let answer = json(&std::fs::read(folder.path().join("check.json")).unwrap());
    assert_eq!(answer["behaviours"][0]["bound_ns"], 1_000_000);
    let results = json(&std::fs::read(folder.path().join("results/model/one.json")).unwrap());
    assert_eq!(results["parameters"]["runs"], 2);
    let observed = &results["judgement"]["behaviours"][0];
    assert_eq!(observed["bound_ns"], 1_000_000);
    assert!(
        observed["worst_ns"].as_u64() >= Some(1_000_000),
        "{observed}"
    );
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(page.contains("Responses, with bound and deadline"));
}
