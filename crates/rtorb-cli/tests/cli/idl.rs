//! `rtorb idl check` and `build`.

use crate::support::{json, rtorb};

const GOOD: &str = "interface Hello { string greet(in string name); };\n";
const BAD: &str = "interface Hello {\n  strin greet(in string name);\n};\n";

#[test]
fn good_files_are_fine_and_bad_ones_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (
        folder.path().join("good.idl"),
        folder.path().join("bad.idl"),
    );
    std::fs::write(&good, GOOD).unwrap();
    std::fs::write(&bad, BAD).unwrap();
    rtorb().args(["idl", "check"]).arg(&good).assert().success();
    let assert = rtorb()
        .args(["idl", "check"])
        .arg(&good)
        .arg(&bad)
        .assert()
        .code(1);
    let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    for word in ["bad.idl:2", "strin greet"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let assert = rtorb()
        .args(["idl", "check", "--json"])
        .arg(&good)
        .arg(&bad)
        .assert()
        .code(1);
    let files = json(&assert.get_output().stdout);
    assert_eq!(files["files"][0]["valid"], true);
    assert_eq!(files["files"][1]["valid"], false);
    assert_eq!(files["files"][1]["diagnostics"][0]["place"]["line"], 2);
}

#[test]
fn the_timing_of_annotated_operations_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("motor.idl");
    std::fs::write(
        &file,
        "interface Motor {\n  @worst_case_time(\"2.5ms\") @deadline(\"1s\") @criticality(\"very-high\") void turn();\n  void rest();\n};\n",
    )
    .unwrap();
    let assert = rtorb().args(["idl", "check"]).arg(&file).assert().success();
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    for word in [
        "Motor::turn",
        "2.5ms",
        "1s",
        "very-high",
        "motor.idl:2",
        "1 of 1",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(!text.contains("rest"), "it is not annotated: {text}");
    let assert = rtorb()
        .args(["idl", "check", "--json"])
        .arg(&file)
        .assert()
        .success();
    let files = json(&assert.get_output().stdout);
    let timings = &files["files"][0]["timings"];
    assert_eq!(timings[0]["operation"], "Motor::turn");
    assert_eq!(timings[0]["worst_ns"], 2_500_000);
    assert_eq!(timings[0]["period_ns"], serde_json::Value::Null);
    assert_eq!(timings[0]["criticality"], "very-high");
    assert_eq!(timings[0]["line"], 2);
    assert_eq!(timings.as_array().map(Vec::len), Some(1));
}

#[test]
fn includes_and_macros_are_given_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("types.idl"), "typedef long Number;\n").unwrap();
    let outer = folder.path().join("outer.idl");
    std::fs::write(
        &outer,
        "#include <types.idl>\n#ifdef WITH_IT\nstruct S { Number n; };\n#else\nnonsense\n#endif\n",
    )
    .unwrap();
    rtorb().args(["idl", "check"]).arg(&outer).assert().code(1);
    rtorb()
        .args(["idl", "check", "-D", "WITH_IT", "-I"])
        .arg(&inner)
        .arg(&outer)
        .assert()
        .success();
}

#[test]
fn rust_is_printed_or_written() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.idl");
    std::fs::write(&good, GOOD).unwrap();
    let assert = rtorb().args(["idl", "build"]).arg(&good).assert().success();
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(text.contains("pub trait HelloServant"), "{text}");
    let out = folder.path().join("out");
    rtorb()
        .args(["idl", "build", "--out"])
        .arg(&out)
        .arg(&good)
        .assert()
        .success();
    assert_eq!(
        std::fs::read_to_string(out.join("good.rs"))
            .unwrap()
            .trim_end(),
        text.trim_end()
    );
}

#[test]
fn stubs_of_python_are_printed_or_written_beside_a_module_that_finds_the_idl() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.idl");
    std::fs::write(&good, GOOD).unwrap();
    let build = ["idl", "build", "--python"];
    let assert = rtorb().args(build).arg(&good).assert().success();
    let stub = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(stub.contains("class Hello(rtorb.Object):"), "{stub}");
    // The folder does not exist yet, and neither need the IDL file be below it.
    let out = folder.path().join("stubs/deep");
    let mut written = rtorb();
    written.args(build).arg("--out").arg(&out).arg(&good);
    written.assert().success();
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(read("good_idl.pyi").trim_end(), stub.trim_end());
    let module = read("good_idl.py");
    assert!(
        module.contains("load_beside(globals(), \"../../good.idl\", include=[])"),
        "{module}"
    );
    let mut both = rtorb();
    both.args(build).arg("--ami").arg(&good).assert().code(2);
}

#[test]
fn additions_are_generated_where_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("good.idl");
    std::fs::write(&file, GOOD).unwrap();
    let text = |options: &[&str]| {
        let mut built = rtorb();
        let assert = built
            .args(["idl", "build"])
            .args(options)
            .arg(&file)
            .assert();
        String::from_utf8_lossy(&assert.success().get_output().stdout).into_owned()
    };
    let has = |text: &str| {
        let parts = ["Starter", "DeferredServant", "AsyncServant", "sendc_"];
        parts.map(|part| text.contains(part))
    };
    assert_eq!(has(&text(&[])), [false; 4]);
    assert_eq!(has(&text(&["--start-calls"])), [true, false, false, false]);
    assert_eq!(
        has(&text(&["--defer-replies"])),
        [false, true, false, false]
    );
    assert_eq!(
        has(&text(&["--async-servants"])),
        [false, true, true, false]
    );
    assert_eq!(has(&text(&["--ami"])), [true, false, false, true]);
}

#[test]
fn a_missing_file_and_no_file_are_misuse() {
    let assert = rtorb()
        .args(["idl", "check", "/nowhere/at-all.idl"])
        .assert()
        .code(2);
    assert!(String::from_utf8_lossy(&assert.get_output().stderr).contains("/nowhere/at-all.idl"));
    rtorb().args(["idl", "check"]).assert().code(2);
}

#[test]
fn options_undefine_macros_and_choose_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("logger.idl");
    let text = "#ifdef _PRE_3_0_COMPILER_\n#error old\n#endif\n\
        interface Logger { attribute long log_level; void setLogLevel(in long level); };\n";
    std::fs::write(&file, text).unwrap();
    rtorb().args(["idl", "check"]).arg(&file).assert().code(1);
    let choice = "Logger::setLogLevel=write_level";
    let assert = rtorb()
        .args(["idl", "build", "-U", "_PRE_3_0_COMPILER_"])
        .args(["--rust-name", choice])
        .arg(&file)
        .assert()
        .success();
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(text.contains("pub fn write_level("), "{text}");
}

#[test]
fn constructs_that_omniidl_refuses_are_warned_of_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("thermostat.idl");
    let text = "exception Wrong {};\ninterface Thermostat {\n  attribute double target setraises (Wrong);\n\
                #ifdef __RTORB_IDL__\n  @deadline(\"10ms\")\n#endif\n  void shut_off();\n};\n";
    std::fs::write(&file, text).unwrap();
    let said = |options: &[&str]| {
        let assert = rtorb()
            .args(["idl", "check"])
            .args(options)
            .arg(&file)
            .assert()
            .success();
        String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
    };
    assert_eq!(said(&[]), "");
    let warned = said(&["--for", "omniidl"]);
    for word in [
        "omniidl refuses exceptions of attributes",
        "thermostat.idl:3",
        "#ifdef __RTORB_IDL__",
    ] {
        assert!(warned.contains(word), "{word} in {warned}");
    }
    assert!(!warned.contains("annotations"), "it is hidden: {warned}");
}
