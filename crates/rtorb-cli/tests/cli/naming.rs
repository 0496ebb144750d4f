//! `rtorb naming`.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rtorb_tests::loopback::{own_address, own_endpoint, own_listener};
use rtorb_tests::passed_sockets::{command_with_sockets, until_a_client_waits};
use rtorb_tests::running::{outcome_of, until};
use rustix::process::Signal;

use crate::support::{CubitServer, PATIENT, Running, json, rtorb, within};

/// A naming service of the command, and the file with its root context.
struct Names {
    running: Running,
    ior_file: PathBuf,
}

impl Names {
    /// Starts one at an address of its own and waits until it is ready.
    fn start(folder: &Path, options: &[&str]) -> Self {
        let ior_file = folder.join("names.ior");
        let _ = fs::remove_file(&ior_file);
        let file = ior_file.to_str().unwrap();
        let listen = own_endpoint();
        let mut arguments = vec!["naming", "serve", "--ior-file", file];
        arguments.extend(["--listen", &listen]);
        arguments.extend(options);
        let running = Running::start(&arguments);
        within(Duration::from_secs(20), || ior_file.exists().then_some(()))
            .expect("the naming service becomes ready");
        Self { running, ior_file }
    }

    /// The command with these arguments and this service.
    fn ask(&self, arguments: &[&str]) -> assert_cmd::Command {
        let mut command = rtorb();
        command.arg("naming").args(arguments).arg("--name-service");
        command.arg(&self.ior_file).args(PATIENT);
        command
    }

    /// What the command prints, which must succeed.
    fn told(&self, arguments: &[&str]) -> String {
        let assert = self.ask(arguments).assert().success();
        String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
    }

    /// What the command says when the answer is no.
    fn refused(&self, arguments: &[&str]) -> String {
        let assert = self.ask(arguments).assert().code(1);
        String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
    }

    /// The value of `--init-ref` for a command that uses this service.
    fn initial_reference(&self) -> String {
        let root = fs::read_to_string(&self.ior_file).unwrap();
        format!("NameService={}", root.trim())
    }

    fn end(mut self) {
        self.running.signal(Signal::TERM);
        assert_eq!(self.running.ended(), Some(0));
    }
}

/// A reference without a server.
const SOMEBODY: &str = "corbaloc::1.2@127.0.0.1:9/somebody";

#[test]
fn a_channel_makes_the_contexts_of_its_name_if_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path(), &[]);
    let place = names.initial_reference();
    let serve = ["events", "serve", "--init-ref", &place, "--name"];
    let mut refused = rtorb();
    refused.args(serve).arg("lift/positions");
    let refused = refused.assert().code(1);
    let told = String::from_utf8_lossy(&refused.get_output().stderr);
    assert!(told.contains("`lift` is not bound"), "{told}");
    assert!(told.contains("--parents"), "{told}");

    let ior_file = folder.path().join("channel.ior");
    let options = ["lift/positions", "--parents", "--ior-file"];
    let file = ior_file.to_str().unwrap();
    let mut channel = Running::start(&[&serve[..], &options, &[file]].concat());
    within(Duration::from_secs(30), || ior_file.exists().then_some(()))
        .expect("the channel becomes ready");
    let channel_reference = fs::read_to_string(&ior_file).unwrap();
    assert_eq!(
        names.told(&["resolve", "lift/positions"]),
        channel_reference
    );
    channel.signal(Signal::TERM);
    assert_eq!(channel.ended(), Some(0));
    assert_eq!(names.told(&["list", "--recursive"]), "lift/\n");
    names.end();
}

#[test]
fn a_channel_that_cannot_write_its_reference_leaves_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path(), &[]);
    let place = names.initial_reference();
    // A file, so there is no folder of that name.
    let unwritable = names.ior_file.join("channel.ior");
    let mut failed = rtorb();
    failed.args([
        "events",
        "serve",
        "--init-ref",
        &place,
        "--name",
        "positions",
    ]);
    failed.arg("--ior-file").arg(&unwritable).assert().code(2);
    assert_eq!(names.told(&["list", "--recursive"]), "");
    names.end();
}

/// A URL without a version is for GIOP 1.0, which has no code sets: there the list escapes the name, and is whole.
#[test]
fn a_name_beyond_ascii_is_bound_and_listed_by_urls_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path(), &[]);
    let mut shown = rtorb();
    shown.args(["ior", "show"]).arg(&names.ior_file);
    let shown = String::from_utf8(shown.output().unwrap().stdout).unwrap();
    let [host, port] = ["host: ", "port: "].map(|name| {
        let (_, rest) = shown.split_once(name).unwrap();
        rest.lines().next().unwrap()
    });
    let ask = |version: &str, arguments: &[&str]| {
        let url = format!("corbaloc:{version}{host}:{port}/NameService");
        let mut command = rtorb();
        command.arg("naming").args(arguments).args(PATIENT);
        let assert = command.args(["--name-service", &url]).assert().success();
        String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
    };
    for name in ["温度", "pressure"] {
        ask("iiop:1.2@", &["bind", name, SOMEBODY]);
    }
    assert_eq!(ask("iiop:1.2@", &["list"]), "温度\npressure\n");
    assert_eq!(ask(":", &["list"]), "%E6%B8%A9%E5%BA%A6\npressure\n");
    names.end();
}

#[test]
fn names_are_bound_listed_resolved_and_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path(), &[]);
    let made = names.told(&["bind-new-context", "plant.site"]);
    assert!(made.starts_with("IOR:"), "{made}");
    assert_eq!(names.told(&["resolve", "plant.site"]), made);
    names.told(&["bind", "plant.site/line/drive.k", SOMEBODY, "--parents"]);
    names.told(&["bind", r"plant.site/a\.b", SOMEBODY]);
    assert_eq!(names.told(&["list"]), "plant.site/\n");
    let tree = names.told(&["list", "--recursive"]);
    assert_eq!(tree, "plant.site/\n  a\\.b\n  line/\n    drive.k\n");
    let reference = names.told(&["resolve", "plant.site/line/drive.k"]);

    let other = "corbaloc::1.2@127.0.0.1:9/other";
    let said = names.refused(&["bind", "plant.site/line/drive.k", other]);
    assert!(
        said.contains("`plant.site/line/drive.k` is bound already"),
        "{said}"
    );
    names.told(&["bind", "plant.site/line/drive.k", other, "--rebind"]);
    assert_ne!(
        names.told(&["resolve", "plant.site/line/drive.k"]),
        reference
    );

    let context = names.told(&["new-context"]);
    names.told(&["bind", "plant.site/cell", context.trim(), "--context"]);
    assert_eq!(names.told(&["resolve", "plant.site/cell"]), context);
    names.told(&["destroy", "plant.site/cell"]);
    let said = names.refused(&["destroy", "plant.site/line"]);
    assert!(said.contains("`plant.site/line` is not empty"), "{said}");
    names.told(&["unbind", "plant.site/line/drive.k"]);
    names.told(&["destroy", "plant.site/line"]);
    assert_eq!(names.told(&["list", "plant.site"]), "a\\.b\n");
    names.end();
}

#[test]
fn what_is_missing_is_told_by_its_part_of_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path(), &[]);
    names.told(&["bind", "plant/drive", SOMEBODY, "--parents"]);
    for (arguments, words) in [
        (&["resolve", "factory/x"][..], "`factory` is not bound"),
        (
            &["resolve", "plant/x/y"],
            "`plant/x` is not bound, though `plant` is",
        ),
        (
            &["resolve", "plant/drive/x"],
            "`plant/drive` is bound to an object",
        ),
        (&["unbind", "nobody"], "`nobody` is not bound"),
        (
            &["bind", "plant", SOMEBODY, "--rebind"],
            "`plant` is bound to a context",
        ),
        (&["bind", "x/y", SOMEBODY], "`x` is not bound"),
    ] {
        let said = names.refused(arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    names.end();
}

#[test]
fn arguments_that_make_no_sense_are_misuse() {
    for (arguments, words) in [
        (&["resolve", "a//b"][..], "id.kind/id.kind"),
        (&["resolve", ""], "id.kind/id.kind"),
        (&["resolve", r"a\b"], "id.kind/id.kind"),
        (&["bind", "a"], "REF"),
        (&["bind", "a", "IOR:00", "--from", "x"], "--from"),
        (&["destroy"], "NAME"),
        (&["list", "--init-ref", "NameService"], "--init-ref"),
        (&["serve", "--bindings-max", "0"], "--bindings-max"),
        (&["serve", "--listen", "nowhere"], "iiop://"),
    ] {
        let assert = rtorb().arg("naming").args(arguments).assert().code(2);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn machines_read_a_line_of_json_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path(), &[]);
    names.told(&["bind", "plant/drive.k", SOMEBODY, "--parents"]);
    let root = fs::read_to_string(&names.ior_file).unwrap();
    names.told(&["bind", "plant/up", root.trim(), "--context"]);
    let told = names.told(&["list", "--recursive", "--json", "--references"]);
    let lines: Vec<_> = told.lines().map(|line| json(line.as_bytes())).collect();
    let reference = names.told(&["resolve", "plant/drive.k"]);
    assert_eq!(
        lines,
        [
            serde_json::json!({"name": "plant", "type": "context"}),
            serde_json::json!({"name": "plant/drive.k", "type": "object", "reference": reference.trim()}),
            serde_json::json!({"name": "plant/up", "type": "context", "same_as": ""}),
        ]
    );
    let object = json(
        names
            .told(&["resolve", "plant/drive.k", "--json"])
            .as_bytes(),
    );
    assert_eq!(object["name"], "plant/drive.k");
    assert_eq!(object["endpoints"][0], "iiop://127.0.0.1:9");
    assert_eq!(object["reference"], reference.trim());
    let made = json(
        names
            .told(&["bind-new-context", "cell", "--json"])
            .as_bytes(),
    );
    assert_eq!(
        (&made["name"], &made["type"]),
        (&"cell".into(), &"context".into())
    );
    names.end();
}

#[test]
fn a_list_is_what_another_service_is_filled_from() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let (from, to) = (
        Names::start(folder.path(), &[]),
        Names::start(other.path(), &[]),
    );
    from.told(&["bind", r"plant/the drive\.1.k", SOMEBODY, "--parents"]);
    from.told(&["bind-new-context", "plant/empty"]);
    let root = fs::read_to_string(&from.ior_file).unwrap();
    from.told(&["bind", "plant/up", root.trim(), "--context"]);
    let list = from.told(&["list", "--recursive", "--json", "--references"]);
    let mut load = to.ask(&["bind", "--from", "-", "--json"]);
    let assert = load.write_stdin(list.clone()).assert().success();
    let loaded = json(&assert.get_output().stdout);
    assert_eq!(
        (&loaded["bound"], &loaded["failed"], &loaded["complete"]),
        (&4.into(), &0.into(), &true.into())
    );
    let copied = to.told(&["list", "--recursive", "--json", "--references"]);
    assert_eq!(copied, list);
    from.end();
    to.end();
}

#[test]
fn a_bulk_of_names_survives_a_restart_and_wrong_lines_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("names.redb");
    let store = store.to_str().unwrap();
    let names = Names::start(folder.path(), &["--store", store]);
    let bulk = folder.path().join("bulk");
    let mut lines: String = (0..500)
        .map(|n| format!("area{}/drive{n}.k {SOMEBODY}{n}\n", n % 7))
        .collect();
    lines += "area0/drive0.k corbaloc::h/again\n\nnonsense\na//b IOR:00\n";
    fs::write(&bulk, lines).unwrap();
    let bulk = bulk.to_str().unwrap();
    let assert = names
        .ask(&[
            "bind",
            "--from",
            bulk,
            "--parents",
            "--connections",
            "5",
            "--json",
        ])
        .assert()
        .code(1);
    let loaded = json(&assert.get_output().stdout);
    assert_eq!(
        (&loaded["bound"], &loaded["failed"], &loaded["complete"]),
        (&500.into(), &3.into(), &true.into())
    );
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    // Which of the two lines of one name is carried out first is not said.
    for words in [
        "is bound already",
        "bulk:503: it is no `NAME REFERENCE`",
        "`a//b` is no name",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    let before = names.told(&["list", "--recursive", "--json", "--references"]);
    let made = names.told(&["resolve", "area3"]);
    names.end();

    let names = Names::start(folder.path(), &["--store", store]);
    let after = names.told(&[
        "list",
        "--recursive",
        "--json",
        "--references",
        "--chunk",
        "3",
    ]);
    assert_eq!(sorted(&after), sorted(&before));
    assert_eq!(before.lines().count(), 507);
    // The port is another now, but the context is the same object.
    let key = |ior: &str| ior.trim()[ior.trim().len() - 40..].to_owned();
    assert_eq!(key(&names.told(&["resolve", "area3"])), key(&made));
    names.end();
}

fn sorted(list: &str) -> Vec<&str> {
    let mut lines: Vec<_> = list.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_context_too_deep_for_a_recursive_list_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path(), &[]);
    // A name has at most 32 steps.
    let half = ["c"; 32].join("/");
    let middle = names.told(&["bind-new-context", &half, "--parents"]);
    let make = |name: &str| {
        let mut command = rtorb();
        command.args(["naming", "bind-new-context", name, "--parents"]);
        command
            .args(["--name-service", middle.trim()])
            .args(PATIENT);
        command.assert().success();
    };
    let below = ["c"; 31].join("/");
    make(&below);
    names.told(&["list", "--recursive", "--json"]);
    make(&half);
    let mut list = names.ask(&["list", "--recursive", "--json", "--references"]);
    let output = list.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    let deepest = ["c"; 64].join("/");
    let expected = format!("`{deepest}` is not listed: it is deeper than 64 contexts (--depth N)");
    assert!(told.contains(&expected), "{told}");
    let listed = String::from_utf8_lossy(&output.stdout);
    let last = format!(r#"{{"name":"{deepest}","type":"context"}}"#);
    assert_eq!(listed.lines().last(), Some(last.as_str()));
    // With a chosen depth it is no failure to leave out deeper contexts.
    assert_eq!(names.told(&["list", "--recursive", "--depth", "1"]), "c/\n");
    names.told(&["list", "--recursive", "--depth", "65"]);
    names.end();
}

#[test]
fn one_store_has_one_service() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("names.redb");
    let store = store.to_str().unwrap();
    let names = Names::start(folder.path(), &["--store", store]);
    let assert = rtorb()
        .args([
            "naming",
            "serve",
            "--listen",
            "iiop://127.0.0.1:0",
            "--store",
            store,
        ])
        .assert()
        .code(1);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains(store), "{said}");
    names.end();
}

#[test]
fn what_is_no_store_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("letter.txt");
    fs::write(&store, "Dear Sir,\n").unwrap();
    let assert = rtorb()
        .args([
            "naming",
            "serve",
            "--listen",
            "iiop://127.0.0.1:0",
            "--store",
        ])
        .arg(&store)
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("letter.txt"), "{said}");
    assert_eq!(fs::read_to_string(&store).unwrap(), "Dear Sir,\n");
}

#[test]
fn a_port_that_is_taken_is_told_and_no_store_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("names.redb");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let assert = rtorb()
        .args([
            "naming",
            "serve",
            "--listen",
            &format!("iiop://127.0.0.1:{port}"),
            "--store",
        ])
        .arg(&store)
        .assert()
        .code(1);
    assert!(!store.exists());
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    for words in [&port.to_string(), "listening on", "free"] {
        assert!(said.contains(words), "{words} in {said}");
    }
}

/// The test has the socket, as a service manager has it.
#[test]
fn clients_wait_at_a_passed_socket_until_the_service_runs_and_references_outlive_it() {
    let folder = tempfile::tempdir().unwrap();
    let [store, ior_file] = ["names.redb", "names.ior"].map(|name| folder.path().join(name));
    let socket = own_listener();
    let serve = || {
        let own = socket.try_clone().unwrap().into();
        let mut command = command_with_sockets(
            assert_cmd::cargo::cargo_bin!("rtorb"),
            vec![("naming", own)],
        );
        command.args(["naming", "serve", "--listen", "inherited://naming"]);
        command.arg("--store").arg(&store);
        command.arg("--ior-file").arg(&ior_file);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    };
    // Runs a client that has connected before the service is started.
    let serve_waiting = |arguments: &[&str], root: &str| {
        thread::scope(|scope| {
            let client = scope.spawn(move || {
                let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
                command.arg("naming").args(arguments).args(PATIENT);
                outcome_of(command.args(["--name-service", root]))
            });
            until_a_client_waits(&socket);
            assert!(!client.is_finished());
            let service = serve();
            let told = client.join().unwrap().expect("the service answers");
            let written = || fs::read_to_string(&ior_file).ok();
            (service, told, until("it writes its reference", written))
        })
    };
    let address = socket.local_addr().unwrap();
    let place = format!("corbaloc:iiop:1.2@{address}/NameService");
    let bind = ["bind", "plant/drive", SOMEBODY, "--parents"];
    let (mut service, _, first) = serve_waiting(&bind, &place);
    service.signal(Signal::KILL);
    assert_eq!(service.ended(), None);
    fs::remove_file(&ior_file).unwrap();

    let resolve = ["resolve", "plant/drive"];
    let (mut service, kept, second) = serve_waiting(&resolve, first.trim());
    assert_eq!(second, first);
    service.signal(Signal::TERM);
    assert_eq!(service.ended(), Some(0));
    fs::remove_file(&ior_file).unwrap();

    let (mut service, again, _) = serve_waiting(&resolve, first.trim());
    assert_eq!(again, kept);
    service.signal(Signal::TERM);
    assert_eq!(service.ended(), Some(0));
}

#[test]
fn without_a_service_manager_it_says_how_to_get_its_socket() {
    let mut serve = rtorb();
    serve.args(["naming", "serve", "--listen", "inherited://naming"]);
    serve.env_remove("LISTEN_FDS").env_remove("LISTEN_PID");
    let assert = serve.assert().code(1);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    for words in ["listening on inherited://naming", "LISTEN_FDS", ".socket"] {
        assert!(said.contains(words), "{words} in {said}");
    }
}

#[test]
fn without_a_service_it_says_how_to_get_one() {
    let address = own_address();
    let named = format!("NameService=corbaloc::{address}/NameService");
    let assert = rtorb()
        .args(["naming", "list", "--init-ref", &named])
        .args(PATIENT)
        .assert()
        .code(1);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    for words in [
        "no naming service",
        "rtorb naming serve",
        "--name-service",
        &address.port().to_string(),
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
}

#[test]
fn a_service_that_is_silent_is_given_up_in_bounded_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let reference = format!("corbaloc::1.2@127.0.0.1:{port}/NameService");
    let begin = Instant::now();
    let assert = rtorb()
        .args([
            "naming",
            "list",
            "--name-service",
            &reference,
            "--timeout",
            "1s",
        ])
        .assert()
        .code(1);
    assert!(begin.elapsed() < Duration::from_secs(30));
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("awaiting a reply"), "{said}");
}

#[test]
fn what_is_no_naming_context_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let assert = rtorb()
        .args(["naming", "list", "--name-service", server.reference()])
        .assert()
        .code(1);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(
        said.contains("no naming context, but IDL:Cubit:1.0"),
        "{said}"
    );
}

#[test]
fn other_commands_call_objects_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path(), &[]);
    let server = CubitServer::start(folder.path(), &[]);
    names.told(&["bind", "the cubit.1", server.reference()]);
    let named = names.initial_reference();
    let ping = |url: &str| {
        let mut command = rtorb();
        command.args(["ping", url, "--json", "--init-ref", &named]);
        command.args(PATIENT);
        command
    };
    let assert = ping("corbaname:rir:#the%20cubit.1").assert().success();
    assert_eq!(
        json(&assert.get_output().stdout)["type_id"],
        "IDL:Cubit:1.0"
    );
    ping("corbaloc:rir:/NameService").assert().success();
    let assert = ping("corbaname:rir:#nobody").assert().code(1);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("not bound"), "{said}");
    names.end();
}

#[test]
fn a_load_ends_when_the_service_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut names = Names::start(folder.path(), &[]);
    let mut load = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
    load.args(["naming", "bind", "--from", "-", "--json"]);
    load.args(["--connections", "1", "--name-service"]);
    load.arg(&names.ior_file).args(PATIENT);
    load.stdin(Stdio::piped());
    let mut load = load
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = load.stdin.take().unwrap();
    writeln!(input, "drive {SOMEBODY}\nengine {SOMEBODY}").unwrap();
    within(Duration::from_secs(60), || {
        (names.told(&["list"]).lines().count() == 2).then_some(())
    })
    .expect("the first lines are carried out");
    names.running.signal(Signal::KILL);
    names.running.ended();
    // The load may end before it has read all of them.
    let _ = (0..1000).try_for_each(|n| writeln!(input, "drive{n} {SOMEBODY}"));
    drop(input);
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let loaded = json(&output.stdout);
    assert_eq!(
        (&loaded["failed"], &loaded["complete"]),
        (&0.into(), &false.into())
    );
    // One after another: the first was answered before the second was sent. The service may be gone before it has answered that one.
    let bound = loaded["bound"].as_u64();
    assert!(bound == Some(1) || bound == Some(2), "{loaded}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("standard input:") && said.contains("were not read"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_listed_is_told_and_the_rest_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let names = Names::start(folder.path(), &[]);
    let mut gone = Names::start(other.path(), &[]);
    names.told(&[
        "bind",
        "berlin",
        gone.ior_file.to_str().unwrap(),
        "--context",
    ]);
    names.told(&["bind", "plant/drive", SOMEBODY, "--parents"]);
    gone.running.signal(Signal::KILL);
    gone.running.ended();
    let assert = names.ask(&["list", "--recursive"]).assert().code(1);
    let listed = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert_eq!(listed, "berlin/\nplant/\n  drive\n");
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("`berlin`: TRANSIENT"), "{said}");
    names.end();
}
