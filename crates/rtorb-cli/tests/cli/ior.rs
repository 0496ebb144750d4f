//! `rtorb ior show`.

use crate::support::{CubitServer, json, rtorb};

/// Golden vectors V13, V15 and V16.
const PLAIN: &str = "IOR:010000001700000049444c3a546573742f526f756e64747269703a312e300000010000000000000020000000010102000\
5000000686f73740000a00f06000000616263646566000000000000";
const WITH_COMPONENTS: &str = "IOR:010000001700000049444c3a546573742f526f756e64747269703a312e3000000100000000000000ba000000\
0101020005000000686f73740000a00f06000000616263646566000004000000000000000800000001000000004f4154010000001800000001000000010\
0010001000000010001050901010000000000020000003400000001000000020000002800000\
00a0000000100000000000000000000002d0000001000000001000000020000000000aa2aab2aff7f024f41542600000001000000020000000500000068\
6f73740000a00f6400000005000000686f73740000a10fc800";
const NIL: &str = "IOR:01000000010000000000000000000000";

fn shown(reference: &str) -> String {
    let assert = rtorb().args(["ior", "show", reference]).assert().success();
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

#[test]
fn golden_references_are_told_in_words() {
    let text = shown(PLAIN);
    for word in [
        "IDL:Test/Roundtrip:1.0",
        "IIOP",
        "version: 1.2",
        "host: host",
        "port: 4000",
        "abcdef",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let text = shown(WITH_COMPONENTS);
    for word in [
        "TAO",
        "ISO 8859-1",
        "UTF-16",
        "CLIENT_PROPAGATED",
        "0 to 10922, 10923 to 32767",
        "\n  priority: the caller's, 0 for callers that send none (CLIENT_PROPAGATED)\n",
        "\n  bands: 0 to 10922, 10923 to 32767\n",
        "\n  endpoint: host:4001, priority 200\n",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(shown(NIL).contains("nil"));
}

#[test]
fn the_same_as_json() {
    let assert = rtorb()
        .args(["ior", "show", "--json", WITH_COMPONENTS])
        .assert()
        .success();
    let description = json(&assert.get_output().stdout);
    assert_eq!(description["type_id"], "IDL:Test/Roundtrip:1.0");
    let fields = description["profiles"][0]["fields"].as_array().unwrap();
    let port = fields.iter().find(|field| field["name"] == "port");
    assert_eq!(port.unwrap()["value"], 4000);
    let components = description["profiles"][0]["components"].as_array().unwrap();
    assert_eq!(components.len(), 4);
    assert_eq!(components[2]["name"], "POLICIES");
    assert_eq!(components[2]["fields"][0]["name"], "PriorityModel");
    let real_time = &description["profiles"][0]["real_time"];
    assert_eq!(
        *real_time,
        serde_json::json!({
            "priority_model": "CLIENT_PROPAGATED",
            "server_priority": 0,
            "bands": [{"low": 0, "high": 10922}, {"low": 10923, "high": 32767}],
            "client_protocols": [],
            "endpoints": [
                {"address": "host:4000", "priority": 100},
                {"address": "host:4001", "priority": 200},
            ],
        })
    );
}

#[test]
fn corbaloc_and_files_are_shown_too() {
    let text = shown("corbaloc:iiop:1.2@example.org:4711/Name%20Service");
    for word in ["example.org", "4711", "Name Service"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    assert!(shown(server.reference()).contains("IDL:Cubit:1.0"));
}

#[test]
fn a_reference_that_a_mail_client_wrapped_is_read_with_a_notice() {
    let wrapped: String = PLAIN
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8_lossy(line) + "\r\n")
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrapped.ior");
    std::fs::write(&file, &wrapped).unwrap();
    let file = file.to_str().unwrap();
    for reference in [file, wrapped.as_str()] {
        let assert = rtorb().args(["ior", "show", reference]).assert().success();
        let output = assert.get_output();
        assert_eq!(String::from_utf8_lossy(&output.stdout), shown(PLAIN));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("left out the white space"), "{said}");
    }
    // Every command that takes a REF reads it so: the host of this one does not exist.
    for command in [&["ping", file][..], &["call", file, "f"]] {
        let assert = rtorb().args(command).assert().failure();
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(said.contains("left out the white space"), "{said}");
        assert!(!said.contains("hexadecimal"), "{said}");
    }
    let assert = rtorb().args(["ior", "show", PLAIN]).assert().success();
    assert!(assert.get_output().stderr.is_empty());
}

#[test]
fn what_is_no_reference_is_misuse() {
    for wrong in ["IOR:0", "IOR:01", "IOR:xyz", "nonsense", "corbaloc:iiop:"] {
        let assert = rtorb().args(["ior", "show", wrong]).assert().code(2);
        assert!(!assert.get_output().stderr.is_empty());
    }
}
