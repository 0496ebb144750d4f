//! `rtorb call` with servers of other ORBs: tables of calls in `calls/`, each a call as in a shell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rtorb_tests::loopback::own_address;
use serde_json::Value;

use crate::support::{PATIENT, Running, rtorb, skip, within};

#[test]
fn every_operation_of_omninames_is_called() {
    if Command::new("omniNames").arg("-help").output().is_err() {
        return skip("omniNames is not installed: apt-get install omniorb-nameserver");
    }
    let folder = tempfile::tempdir().unwrap();
    let address = own_address();
    let mut command = Command::new("omniNames");
    command
        .args(["-start", &address.port().to_string(), "-ignoreport"])
        .args(["-ORBendPoint", &format!("giop:tcp:{address}"), "-logdir"])
        .arg(folder.path());
    let _names = started(&mut command);
    let reference = format!("corbaloc::{address}/NameService");
    Table::new(&reference, &[]).check(include_str!("calls/omninames.txt"), 26);
}

#[test]
fn every_operation_of_tango_test_is_called() {
    let Some(program) = tango_test() else {
        return skip("TangoTest is not installed: apt-get install tango-test");
    };
    let address = own_address();
    let mut command = Command::new(program);
    command
        .args([
            "interop",
            "-nodb",
            "-dlist",
            "sys/tg_test/1",
            "-ORBendPoint",
        ])
        .arg(format!("giop:tcp:{address}"));
    let _device = started(&mut command);
    let reference = format!("corbaloc:iiop:1.2@{address}/sys/tg_test/1");
    let idl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tango/idl/tango.idl");
    let idl = ["--idl", idl.to_str().unwrap()];
    Table::new(&reference, &idl).check(include_str!("calls/tango_test.txt"), 59);
}

/// Calls of one server.
struct Table<'a> {
    reference: &'a str,
    options: &'a [&'a str],
    /// The parts of results that were kept.
    kept: BTreeMap<String, String>,
}

impl<'a> Table<'a> {
    /// Waits until the server answers.
    fn new(reference: &'a str, options: &'a [&'a str]) -> Self {
        let answers = || {
            let output = rtorb()
                .args(["ping", reference, "--timeout", "1s"])
                .output();
            output.unwrap().status.success().then_some(())
        };
        within(Duration::from_secs(60), answers).expect("the server answers");
        Self {
            reference,
            options,
            kept: BTreeMap::new(),
        }
    }

    /// Makes all calls of a table, which are so many.
    fn check(mut self, table: &str, count: usize) {
        let lines = table.lines().filter(|line| !line.starts_with('#'));
        let called = lines.map(|line| self.call(line)).count();
        assert_eq!(called, count);
    }

    fn call(&mut self, line: &str) {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [operation, arguments, status, text, ref kept @ ..] = columns[..] else {
            panic!("not a call: {line}");
        };
        let (object, operation) = match operation.split_once('.') {
            Some((name, operation)) => (self.kept[name].as_str(), operation),
            None => (self.reference, operation),
        };
        let mut arguments = arguments.to_owned();
        for (name, value) in &self.kept {
            arguments = arguments.replace(&format!("${name}"), value);
        }
        let arguments: Vec<Value> = serde_json::from_str(&arguments).unwrap();
        let output = rtorb()
            .args(["call", object, operation])
            .args(PATIENT)
            .args(self.options)
            .args(arguments.iter().map(Value::to_string))
            .output()
            .unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let said = format!("{result} {}", String::from_utf8_lossy(&output.stderr));
        let status: i32 = status.parse().unwrap();
        assert_eq!(output.status.code(), Some(status), "{line}: {said}");
        assert!(said.contains(text), "{line}: {said}");
        for part in kept {
            let (name, pointer) = part.split_once('=').unwrap();
            let value = result.pointer(pointer).and_then(Value::as_str).unwrap();
            self.kept.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// Starts a server, its output discarded.
fn started(command: &mut Command) -> Running {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    Running(quiet.stderr(Stdio::null()).spawn().unwrap())
}

/// Where Debian's package has the program; it is in no search path.
fn tango_test() -> Option<PathBuf> {
    let listed = Command::new("dpkg").args(["-L", "tango-test"]).output();
    let listed = String::from_utf8(listed.ok()?.stdout).ok()?;
    let mut files = listed.lines().map(PathBuf::from);
    files.find(|path| path.ends_with("TangoTest") && path.is_file())
}
