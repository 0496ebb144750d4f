//! The options of RT-CORBA: presets, lanes, models, a file, and the priority of calls.

use std::path::Path;

use crate::support::{CubitServer, PATIENT, json, rtorb};

/// Calls the server and answers what was printed as JSON.
fn bench(server: &CubitServer, options: &[&str]) -> serde_json::Value {
    let assert = rtorb()
        .args(["cubit", "bench", server.reference(), "--op", "long"])
        .args(["--count", "50", "--json"])
        .args(PATIENT)
        .args(options)
        .assert()
        .success();
    json(&assert.get_output().stdout)
}

/// What the reference of the server says of priorities.
fn shown(server: &CubitServer) -> serde_json::Value {
    let assert = rtorb()
        .args(["ior", "show", "--json", server.reference()])
        .assert()
        .success();
    let description = json(&assert.get_output().stdout);
    let profiles = description["profiles"].as_array().unwrap();
    // A server of UNIX sockets has an IIOP profile too, without an endpoint of its own.
    let told = profiles.iter().map(|profile| &profile["real_time"]);
    let with_endpoints = |told: &&serde_json::Value| told["endpoints"][0].is_object();
    told.clone().find(with_endpoints).unwrap().clone()
}

/// What a command that fails says.
fn said(arguments: &[&str], status: i32) -> String {
    let assert = rtorb().args(arguments).assert().code(status);
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

#[test]
fn every_preset_serves_every_preset() {
    let presets = ["default", "corbaplus", "minicool", "mt_orbix", "tao"];
    for served in presets {
        let folder = tempfile::tempdir().unwrap();
        let server = CubitServer::start(folder.path(), &["--preset", served]);
        for calling in presets {
            let answer = bench(&server, &["--preset", calling]);
            assert_eq!(answer["wrong"], 0, "{served} {calling}");
        }
    }
}

#[test]
fn lanes_show_in_the_reference_and_are_called_by_priority() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--preset", "tao", "--lanes", "5:1,2:1", "--best-effort"];
    let model = ["--priority-model", "client_propagated"];
    let server = CubitServer::start(folder.path(), &[&options[..], &model].concat());
    let real_time = shown(&server);
    assert_eq!(real_time["priority_model"], "CLIENT_PROPAGATED");
    let endpoints = real_time["endpoints"].as_array().unwrap();
    let priorities: Vec<_> = endpoints
        .iter()
        .map(|endpoint| &endpoint["priority"])
        .collect();
    assert_eq!(priorities, [5, 2]);
    for priority in ["5", "2"] {
        let options = ["--priority", priority, "--best-effort"];
        assert_eq!(bench(&server, &options)["wrong"], 0, "{priority}");
        rtorb()
            .args(["ping", server.reference(), "--count", "1"])
            .args(PATIENT)
            .args(options)
            .assert()
            .success();
    }
    let nobody = ["--priority", "3", "--best-effort"];
    let refused = [&["ping", server.reference()], &nobody[..]].concat();
    let text = said(&refused, 1);
    for word in [
        "INV_POLICY",
        "priority 3, the lanes have 5, 2",
        "--priority",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let text = said(&["ping", server.reference()], 1);
    assert!(text.contains("priority 0, the lanes have 5, 2"), "{text}");
}

#[test]
fn a_caller_without_a_priority_is_served_as_the_reference_says() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--preset", "tao", "--lanes", "5:1,2:1", "--best-effort"];
    let model = [
        "--priority-model",
        "client_propagated",
        "--server-priority",
        "2",
    ];
    let server = CubitServer::start(folder.path(), &[&options[..], &model].concat());
    let shown = rtorb()
        .args(["ior", "show", server.reference()])
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("2 for callers that send none"), "{shown}");
    assert!(shown.contains("priority 2\n"), "{shown}");
    rtorb()
        .args(["ping", server.reference(), "--count", "1"])
        .args(PATIENT)
        .assert()
        .success();
}

#[test]
fn a_declared_priority_is_that_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--priority-model", "server_declared", "--best-effort"];
    let server = CubitServer::start(
        folder.path(),
        &[&options[..], &["--server-priority", "7"]].concat(),
    );
    let real_time = shown(&server);
    assert_eq!(
        (&real_time["priority_model"], &real_time["server_priority"]),
        (&"SERVER_DECLARED".into(), &7.into())
    );
    assert_eq!(bench(&server, &[])["wrong"], 0);
}

#[test]
fn a_file_chooses_and_options_go_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orb.toml");
    let socket = folder.path().join("cubit.socket");
    let text = format!(
        "preset = \"tao\"\nlisten = [\"uiop://{}\"]\nbest_effort = true\n[[lanes]]\npriority = 3\n",
        socket.display()
    );
    std::fs::write(&file, text).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let model = ["--priority-model", "client_propagated"];
    let server = CubitServer::start(folder.path(), &[&config[..], &model].concat());
    assert!(socket.exists(), "it listens where the file says");
    assert_eq!(shown(&server)["endpoints"][0]["priority"], 3);
    drop(server);
    std::fs::remove_file(folder.path().join("cubit.ior")).unwrap();
    let lanes = ["--lanes", "4:1"];
    let server = CubitServer::start(folder.path(), &[&config[..], &model, &lanes].concat());
    assert_eq!(shown(&server)["endpoints"][0]["priority"], 4);
}

#[test]
fn a_wrong_choice_is_told_by_its_name_with_what_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orb.toml");
    std::fs::write(&file, "\n\ndispatch = \"fast\"\n").unwrap();
    let file = file.to_str().unwrap();
    let at_the_line = format!("{file}:3:");
    let serve = ["cubit", "serve", "--ior-file", "/dev/null"];
    let rows: [(&[&str], &[&str]); 9] = [
        (&["--config", file], &[&at_the_line, "fast", "reactive"]),
        (&["--config", "/nowhere.toml"], &["/nowhere.toml"]),
        (&["--wait", "sleep"], &["--wait", "leader_followers"]),
        (&["--connection", "own"], &["--connection", "multiplexed"]),
        (&["--lanes", "5"], &["--lanes", "60:1"]),
        (&["--lanes", "200:1"], &["--lanes", "200", "mapping"]),
        (&["--pool-threads", "0"], &["--pool-threads", "from 1 to"]),
        (&["--priority-model", "mine"], &["server_declared"]),
        (&["--wait", "reactor"], &["reactor", "multiplexed"]),
    ];
    for (options, words) in rows {
        let text = said(&[&serve[..], options].concat(), 2);
        for word in words {
            assert!(text.contains(word), "{options:?}: {text}");
        }
    }
    for (options, words) in [
        (["--wait", "reactor"], ["reactor", "multiplexed"]),
        (["--bands", "9-1"], ["--bands", "9 to 1"]),
    ] {
        let nobody = "corbaloc:iiop:1.2@127.0.0.1:1/key";
        let text = said(&[&["ping", nobody], &options[..]].concat(), 2);
        for word in words {
            assert!(text.contains(word), "{options:?}: {text}");
        }
    }
    // No lane of these has that priority.
    let declared = ["--priority-model", "server_declared"];
    let own = ["--server-priority", "9", "--preset", "tao"];
    let lanes = ["--lanes", "5:1", "--best-effort"];
    let text = said(&[&serve[..], &declared, &own, &lanes].concat(), 2);
    assert!(text.contains("InvalidPolicy"), "{text}");
}

#[test]
fn a_priority_that_nobody_has_is_refused_with_the_remedy() {
    let nobody = "corbaloc:iiop:1.2@127.0.0.1:1/key";
    let text = said(&["ping", nobody, "--priority", "200"], 2);
    for word in ["200", "0 to 99", "--priority-mapping linear"] {
        assert!(text.contains(word), "{text}");
    }
    let text = said(&["ping", nobody, "--priority=-1"], 2);
    assert!(text.contains("--priority"), "{text}");
}

#[test]
fn a_host_that_refuses_a_priority_is_told_with_the_remedy() {
    let nobody = "corbaloc:iiop:1.2@127.0.0.1:1/key";
    let Some(mut command) = without_the_right() else {
        return;
    };
    let refused = command.args(["ping", nobody, "--priority", "50"]).assert();
    let text = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    refused.code(1);
    for word in ["50", "NO_PERMISSION", "CAP_SYS_NICE"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_server_whose_threads_are_refused_writes_no_reference() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.ior");
    let lanes: &[&str] = &["--dispatch", "lanes", "--lanes", "60:1"];
    let free: &[&str] = &["--listen", "iiop://127.0.0.1:0"];
    let rows: [&[&[&str]]; 4] = [
        &[&["cubit", "serve"], lanes, free],
        &[&["naming", "serve"], lanes, free],
        &[&["scheduling", "serve"], lanes, free],
        &[&["events", "serve"], &["--lanes", "60"], free],
    ];
    for row in rows {
        let Some(mut command) = without_the_right() else {
            return;
        };
        let refused = command
            .args(row.concat())
            .arg("--ior-file")
            .arg(&file)
            .assert();
        let text = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(text.contains("priority 60"), "{row:?}: {text}");
        refused.code(1);
        assert!(
            !file.exists() && !text.contains("serving"),
            "{row:?}: {text}"
        );
    }
}

/// The command as a user without the right to real-time priorities, even if the user of this test has it.
fn without_the_right() -> Option<assert_cmd::Command> {
    let setpriv = Path::new("/usr/bin/setpriv");
    let is_root = rustix::process::geteuid().is_root();
    if !setpriv.exists() || !is_root {
        println!(
            "skipped: needs root and setpriv (apt-get install util-linux) to be a user who may not"
        );
        return None;
    }
    let mut command = assert_cmd::Command::new(setpriv);
    command
        .args(["--bounding-set=-all", "--inh-caps=-all"])
        .arg(assert_cmd::cargo::cargo_bin!("rtorb"));
    Some(command)
}
