//! Outputs that nobody reads: a command goes on, or ends with its usual status. It never panics (status 101).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Running, closed_pipe, within};

#[test]
fn a_command_whose_outputs_are_closed_ends_with_its_usual_status() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for arguments in [
        format!("model check {examples}/model/overloaded.toml"),
        format!("idl check {examples}/../crates/rtorb-idl/tests/wrong/name_unknown.idl"),
        format!("idl check {examples}/../crates/rtorb-idl/tests/right/warnings.idl"),
        format!("idl build {examples}/idl/greeter.idl"),
        "check --json".to_owned(),
        "lab list".to_owned(),
        "completions bash".to_owned(),
        "--help".to_owned(),
        "frob".to_owned(),
    ] {
        let status = |output: Stdio, errors: Stdio| {
            let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
            command.args(arguments.split(' ')).stdin(Stdio::null());
            command.stdout(output).stderr(errors).status().unwrap()
        };
        let usual = status(Stdio::null(), Stdio::null());
        assert_ne!(usual.code(), Some(101), "{arguments}");
        for closed in [
            status(Stdio::null(), closed_pipe()),
            status(closed_pipe(), Stdio::null()),
            status(closed_pipe(), closed_pipe()),
        ] {
            assert_eq!(closed, usual, "{arguments}");
        }
    }
}

#[test]
fn a_server_whose_outputs_are_closed_serves() {
    let folder = tempfile::tempdir().unwrap();
    for server in [
        "cubit serve",
        "naming serve --listen iiop://127.0.0.1:0",
        "scheduling serve",
        "events serve --best-effort",
    ] {
        let file = folder.path().join("reference");
        let mut running = Running(serve(server, &file));
        within(Duration::from_secs(20), || {
            let ended = running.0.try_wait().unwrap();
            assert_eq!(ended, None, "{server}");
            file.exists().then_some(())
        })
        .unwrap_or_else(|| panic!("{server} becomes ready"));
        running.signal(Signal::TERM);
        assert_eq!(running.ended(), Some(0), "{server}");
        std::fs::remove_file(&file).unwrap();
    }
}

/// Starts a server that writes its reference to `file`, and whose outputs nobody reads.
fn serve(server: &str, file: &Path) -> std::process::Child {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
    command.args(server.split(' ')).arg("--ior-file").arg(file);
    command.stdin(Stdio::null()).stdout(closed_pipe());
    command.stderr(closed_pipe()).spawn().unwrap()
}
