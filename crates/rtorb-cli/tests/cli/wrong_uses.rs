//! Wrong uses of the command, from a table: each has its exit status and a short answer with the remedy.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{closed_pipe, skip, within};

/// A line of the table.
struct WrongUse {
    line: usize,
    unprivileged: bool,
    status: i32,
    arguments: Vec<String>,
    said: &'static str,
    /// What the answer must not contain; empty if there is no such text.
    unsaid: &'static str,
}

#[test]
fn every_wrong_use_has_its_status_and_a_short_answer() {
    assert_no_faults(fault);
}

#[test]
fn a_wrong_use_whose_outputs_are_closed_has_the_same_status() {
    assert_no_faults(|one, folder| {
        let mut child = start(one, folder, [closed_pipe(), closed_pipe()])?;
        let status = within(TIMEOUT, || child.try_wait().unwrap()).and_then(|s| s.code());
        let fault = format!("line {}: status {status:?}, not {}", one.line, one.status);
        (status != Some(one.status)).then_some(fault)
    });
}

/// Looks for faults of all lines of the table.
fn assert_no_faults(fault: impl Fn(&WrongUse, &Path) -> Option<String> + Sync) {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    let table = table();
    assert!(table.len() >= 180, "{}", table.len());
    let (next, faults) = (AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(one) = table.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(fault) = fault(one, folder.path()) {
                        faults.lock().unwrap().push(fault);
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_full_disk_is_a_failure_and_not_wrong_use() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
    let output = command.args(["completions", "bash"]).stdout(full).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

fn table() -> Vec<WrongUse> {
    let lines = TABLE.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let (status, command, said, unsaid) = match parts[..] {
                [status, command, said] => (status, command, said, ""),
                [status, command, said, unsaid] => (status, command, said, unsaid),
                _ => panic!(
                    "line {}: STATUS | COMMAND | TEXT | NOT THIS TEXT",
                    index + 1
                ),
            };
            WrongUse {
                line: index + 1,
                unprivileged: status.starts_with('@'),
                status: status.trim_start_matches('@').parse().unwrap(),
                arguments: command.split_whitespace().map(argument).collect(),
                said,
                unsaid,
            }
        })
        .collect()
}

fn argument(word: &str) -> String {
    match word {
        "NOBODY" => "corbaloc::127.0.0.1:1/x".to_owned(),
        "GREETER" => of_project("examples/idl/greeter.idl"),
        "SYSTEM" => of_project("examples/model/avionics.toml"),
        "OVERLOADED" => of_project("examples/model/overloaded.toml"),
        word => word.to_owned(),
    }
}

fn of_project(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize()
        .unwrap()
        .join(path)
        .display()
        .to_string()
}

fn write_files(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    write("empty", b"");
    write("huge", "x".repeat(1 << 20).as_bytes());
    let all: Vec<u8> = (0..1 << 20)
        .map(|number: u32| (number * 7 + 128) as u8)
        .collect();
    write("binary", &all);
    write("bad.json", b"{\"a\":");
    write("bad.toml", b"name = \n[[componnt]]\n");
    write(
        "misspelt.toml",
        b"name = \"s\"\n[[node]]\ncpu = 2\n[[componnt]]\nname = \"c\"\n",
    );
    write(
        "cycle.toml",
        b"[[operation]]\nname='a'\nperiod='5ms'\ncalls=[{to='b'}]\n[[operation]]\nname='b'\ncalls=[{to='a'}]\n",
    );
    write("colour.toml", b"colour = \"red\"\n");
    write("lane.toml", b"dispatch = \"lane\"\n");
    write("latin1", b"caf\xe9 = 1\n");
    let sparse = std::fs::File::create(folder.join("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    write("secret", b"IOR:00");
    let pipe = Command::new("mkfifo").arg(folder.join("pipe")).status();
    assert!(pipe.unwrap().success());
    for name in ["dir", "locked"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    let permit = |path: PathBuf, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    permit(folder.join("secret"), 0);
    permit(folder.join("locked"), 0);
    permit(folder.to_owned(), 0o755);
}

/// Returns what is wrong with the answer to a wrong use.
fn fault(one: &WrongUse, folder: &Path) -> Option<String> {
    let output = answer(one, folder)?;
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let said = texts.concat();
    let wrong = if output.status.code() != Some(one.status) {
        format!(
            "exit status {:?} instead of {}",
            output.status.code(),
            one.status
        )
    } else if !said.contains(one.said) {
        format!("does not say {:?}", one.said)
    } else if !one.unsaid.is_empty() && said.contains(one.unsaid) {
        format!("says {:?}", one.unsaid)
    } else if said.contains("panicked") {
        "panicked".to_owned()
    } else if output.stderr.len() > ANSWER_BYTES_MAX {
        format!("{} bytes of errors", output.stderr.len())
    } else {
        return None;
    };
    let shown: String = said.chars().take(600).collect();
    Some(format!(
        "line {}, rtorb {}: {wrong}:\n{shown}",
        one.line,
        one.arguments.join(" ")
    ))
}

/// Runs the command. Returns nothing if this host has no unprivileged user that can run it.
fn answer(one: &WrongUse, folder: &Path) -> Option<Output> {
    let mut child = start(one, folder, [Stdio::piped(), Stdio::piped()])?;
    // An answer that does not fit into a pipe, or a command that serves instead of refusing, does not end by itself.
    if within(TIMEOUT, || child.try_wait().unwrap()).is_none() {
        child.kill().unwrap();
    }
    Some(child.wait_with_output().unwrap())
}

fn start(one: &WrongUse, folder: &Path, [output, errors]: [Stdio; 2]) -> Option<Child> {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
    command.args(&one.arguments).current_dir(folder);
    if one.unprivileged && rustix::process::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    match command.spawn() {
        Err(error) if one.unprivileged => {
            skip(&format!("another user cannot run the command: {error}"));
            None
        }
        child => Some(child.unwrap()),
    }
}

const TIMEOUT: Duration = Duration::from_secs(60);
const TABLE: &str = include_str!("wrong_uses.txt");
/// A screen or two.
const ANSWER_BYTES_MAX: usize = 6_000;
/// The user who owns no file.
const NOBODY: u32 = 65_534;
