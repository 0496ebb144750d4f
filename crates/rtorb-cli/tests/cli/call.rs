//! `rtorb call`.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{CubitServer, PATIENT, Running, json as parsed, rtorb, within};

/// Calls, and returns the exit status, the JSON on standard output and the text on standard error.
fn call(arguments: &[&str], input: &str) -> (i32, Value, String) {
    let mut command = rtorb();
    let calling = command.arg("call").args(PATIENT).args(arguments);
    calling.write_stdin(input);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = if output.stdout.is_empty() {
        Value::Null
    } else {
        parsed(&output.stdout)
    };
    (output.status.code().unwrap(), json, text)
}

/// The text on standard output of a call that succeeds.
fn text(arguments: &[&str]) -> String {
    let mut command = rtorb();
    let calling = command.arg("call").args(PATIENT).args(arguments);
    let assert = calling.assert().success();
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

/// The text on standard error of a wrong use.
fn refused(arguments: &[&str]) -> String {
    let (status, _, text) = call(arguments, "");
    assert_eq!(status, 2, "{text}");
    text
}

#[test]
fn every_operation_of_a_cubit_is_called_without_idl() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    for (operation, argument, expected) in [
        ("cube_octet", json!(3), json!(27)),
        ("cube_short", json!(-3), json!(-27)),
        ("cube_long", json!(4), json!(64)),
        (
            "cube_struct",
            json!({"l": 2, "s": 3, "o": 4}),
            json!({"l": 8, "s": 27, "o": 64}),
        ),
        (
            "cube_any",
            json!({"type": "long", "value": 2}),
            json!({"type": "long", "value": 8}),
        ),
        (
            "cube_long_sequence",
            json!([1, 2, 3]),
            json!({"return": null, "output": [1, 8, 27]}),
        ),
        (
            "cube_union",
            json!({"d": "e_3rd", "v": {"l": 1, "s": 2, "o": 3}}),
            json!({"d": "e_3rd", "v": {"l": 1, "s": 8, "o": 27}}),
        ),
        (
            "cube_octet_sequence",
            json!("hex:0102"),
            json!({"return": null, "output": "hex:0108"}),
        ),
    ] {
        let argument = argument.to_string();
        let (status, json, text) = call(&[server.reference(), operation, &argument], "");
        assert_eq!((status, &json), (0, &expected), "{operation}: {text}");
    }
    let (status, json, _) = call(&[server.reference(), "cube_void"], "");
    assert_eq!((status, json), (0, Value::Null));
    let (status, json, _) = call(&[server.reference(), "cube_long", "-"], " -2\n");
    assert_eq!((status, json), (0, json!(-8)));
    let (status, json, _) = call(&[server.reference(), "cube_long", "-2"], "");
    assert_eq!((status, json), (0, json!(-8)));
}

#[test]
fn lines_of_standard_input_are_calls() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let mut command = rtorb();
    command.args(["call", server.reference(), "cube_long", "--stdin"]);
    let output = command
        .args(PATIENT)
        .write_stdin("[2]\n\n[\"x\"]\n[3]\n")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| parsed(line.as_bytes())).collect();
    assert_eq!(
        (&lines[0], &lines[2], lines.len()),
        (&json!(8), &json!(27), 3)
    );
    let error = lines[1]["error"].as_str().unwrap();
    assert!(error.contains("argument 1 (l)"), "{error}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn repeated_calls_have_response_times() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let repeat = ["--repeat", "50", "--rate", "1000", "--json"];
    let arguments = [&[server.reference(), "cube_long", "3"][..], &repeat].concat();
    let (status, json, text) = call(&arguments, "");
    assert_eq!((status, &json["count"]), (0, &json!(50)), "{text}");
    assert!(json["latency_ns"]["p50"].as_f64().unwrap() > 0.0);
    let (status, json, _) = call(&[server.reference(), "cube_oneway", "--oneway"], "");
    assert_eq!((status, json), (0, Value::Null));
}

#[test]
fn operations_are_listed_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let listed = text(&[server.reference(), "--list"]);
    assert!(listed.starts_with("Cubit (IDL:Cubit:1.0)\n"), "{listed}");
    assert!(listed.contains("  long cube_long(in long l)\n"), "{listed}");
    let described = text(&[server.reference(), "cube_struct", "--describe"]);
    assert!(
        described.contains("argument 1 (values): Many"),
        "{described}"
    );
    // The last line is a command that works.
    let command = described.lines().last().unwrap();
    let argument = command.split('\'').nth(1).unwrap();
    let (status, _, text) = call(&[server.reference(), "cube_struct", argument], "");
    assert_eq!(status, 0, "{text}");
    let (_, json, _) = call(&[server.reference(), "--list", "--json"], "");
    let operations = json["operations"].as_array().unwrap();
    let long = operations
        .iter()
        .find(|it| it["operation"] == "cube_long")
        .unwrap();
    assert_eq!(
        long["arguments"][0],
        json!({"name": "l", "type": "long", "example": 1})
    );
}

#[test]
fn wrong_use_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let reference = server.reference();
    let told = refused(&[reference, "cube_lnog", "1"]);
    assert!(told.contains("did you mean `cube_long`?"), "{told}");
    let told = refused(&[reference, "cube_long"]);
    assert!(told.contains("long cube_long(in long l)"), "{told}");
    let told = refused(&[reference, "cube_struct", r#"{"l": 1, "s": "x", "o": 2}"#]);
    assert!(
        told.contains(r#"argument 1 (values).s: "x" is a string, but short"#),
        "{told}"
    );
    let told = refused(&[reference, "x", "--interface", "Cubti"]);
    assert!(told.contains("did you mean `Cubit`?"), "{told}");
    let wrong = folder.path().join("wrong.idl");
    std::fs::write(&wrong, "interface {};").unwrap();
    let told = refused(&[reference, "x", "--idl", wrong.to_str().unwrap()]);
    assert!(told.contains("wrong.idl:1:11"), "{told}");
}

#[test]
fn an_exception_is_json_and_status_1() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    // The object has no such operation, whatever its IDL says.
    let idl = folder.path().join("more.idl");
    std::fs::write(&idl, "interface More { long absent(in long n); };").unwrap();
    let options = ["--idl", idl.to_str().unwrap(), "--interface", "More"];
    let arguments = [&[server.reference(), "absent", "1"][..], &options].concat();
    let (status, json, text) = call(&arguments, "");
    let id = "IDL:omg.org/CORBA/BAD_OPERATION:1.0";
    assert_eq!((status, &json["exception"]), (1, &json!(id)), "{text}");
    assert_eq!(json["completed"], "COMPLETED_NO");
    assert!(text.contains("BAD_OPERATION"), "{text}");
}

#[test]
fn the_interface_is_found_in_the_folders_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    // The object says that it is a Cubit; this file says something else of that interface.
    let idl = folder.path().join("own");
    std::fs::create_dir(&idl).unwrap();
    std::fs::write(idl.join("a.idl"), "interface Wrong {").unwrap();
    std::fs::write(
        idl.join("b.idl"),
        "module Own { interface Cubes { long cube_long(in long l); }; };",
    )
    .unwrap();
    let mut command = rtorb();
    command.env("RTORB_IDL_PATH", format!("/nowhere:{}", idl.display()));
    command.args([
        "call",
        server.reference(),
        "--interface",
        "Own::Cubes",
        "cube_long",
        "2",
    ]);
    let assert = command.args(PATIENT).assert().success();
    assert_eq!(parsed(&assert.get_output().stdout), json!(8));
}

/// A naming service of ours, by a corbaloc that does not say the interface.
struct Names {
    _running: Running,
    reference: String,
}

impl Names {
    fn start(folder: &Path) -> Self {
        let file = folder.join("names.ior");
        let ior_file = file.to_str().unwrap();
        let listen = ["--listen", "iiop://127.0.0.1:0"];
        let running =
            Running::start(&[&["naming", "serve", "--ior-file", ior_file][..], &listen].concat());
        within(std::time::Duration::from_secs(20), || {
            file.exists().then_some(())
        })
        .unwrap();
        let shown = rtorb()
            .args(["ping", ior_file, "--json"])
            .args(PATIENT)
            .assert()
            .success();
        let pong = parsed(&shown.get_output().stdout);
        let endpoint = pong["endpoints"][0].as_str().unwrap();
        let address = endpoint.trim_start_matches("iiop://");
        Self {
            reference: format!("corbaloc:iiop:1.2@{address}/NameService"),
            _running: running,
        }
    }
}

#[test]
fn a_naming_service_is_called_by_its_corbaloc() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path());
    let name = r#"[{"id": "plant", "kind": ""}]"#;
    let (status, json, text) = call(&[&names.reference, "resolve", name], "");
    let not_found = "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0";
    let expected = json!({
        "exception": not_found,
        "why": "missing_node",
        "rest_of_name": [{"id": "plant", "kind": ""}],
    });
    assert_eq!((status, json), (1, expected), "{text}");
    let place = "corbaloc:iiop:1.2@plant:2809/Drive";
    let (status, json, text) = call(
        &[&names.reference, "bind", name, &format!("\"{place}\"")],
        "",
    );
    assert_eq!((status, json), (0, Value::Null), "{text}");
    let (status, json, text) = call(&[&names.reference, "resolve", name], "");
    assert!(
        status == 0 && json.as_str().unwrap().starts_with("IOR:"),
        "{json} {text}"
    );
    let (status, json, text) = call(&[&names.reference, "list", "10"], "");
    assert_eq!(status, 0, "{text}");
    assert_eq!(json["bl"][0]["binding_name"][0]["id"], "plant");
    assert_eq!(json["bl"][0]["binding_type"], "nobject");
    assert_eq!((&json["bi"], &json["return"]), (&Value::Null, &Value::Null));
    let (status, json, _) = call(&[&names.reference, "to_string", name], "");
    assert_eq!((status, json), (0, json!("plant")));
}

#[test]
fn a_reference_of_tao_with_a_priority_needs_the_linear_mapping() {
    // An object of TAO on a port where nothing listens: ORB_TYPE is TAO.
    let reference = tao_reference();
    let options = ["--priority", "5", "--best-effort"];
    let ping = [&["ping", &reference][..], &options, &PATIENT].concat();
    let output = rtorb().args(&ping).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("--priority-mapping linear"), "{text}");
    let linear = [&ping[..], &["--priority-mapping", "linear"]].concat();
    let output = rtorb().args(&linear).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("--priority-mapping linear"), "{text}");
    let (_, _, text) = call(&[&[&reference, "cube_void"][..], &options].concat(), "");
    assert!(text.contains("--priority-mapping linear"), "{text}");
}

/// The text of a reference to a Cubit of TAO at 127.0.0.1:1.
fn tao_reference() -> String {
    let profile = "010102000a0000003132372e302e302e31000100030000006b65790001000000000000000800000001000000004f4154";
    let type_id = "0e00000049444c3a43756269743a312e3000";
    let length = profile.len() / 2;
    format!(
        "IOR:01000000{type_id}00000100000000000000{:02x}000000{profile}",
        length
    )
}
