//! What the tests of several subcommands need.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The command under test.
pub(crate) fn rtorb() -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
    command.timeout(LONGEST);
    command
}

/// The longest that a command or its end may take beside whatever else the host does.
const LONGEST: Duration = Duration::from_secs(180);

/// The options of a command whose calls succeed however long a busy host lets a server wait for a CPU.
pub(crate) const PATIENT: [&str; 2] = ["--timeout", "60s"];

/// What a command printed as JSON.
pub(crate) fn json(output: &[u8]) -> serde_json::Value {
    serde_json::from_slice(output)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(output)))
}

/// A running command, which is killed when the test ends or fails.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts the command with these arguments, its output discarded.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with_temporary(arguments, &std::env::temp_dir())
    }

    /// The same with a folder of its own for temporary files.
    pub(crate) fn start_with_temporary(arguments: &[&str], temporary: &Path) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
        command.args(arguments).env("TMPDIR", temporary);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Stops it by SIGSTOP, and waits until it has stopped.
    pub(crate) fn stop(&self) {
        rtorb_tests::running::stop_process(self.0.id());
    }

    /// Waits for its end and answers the exit status.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let status = within(LONGEST, || self.0.try_wait().unwrap());
        status.expect("it ends in time").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Cubit server, and the file with its reference.
pub(crate) struct CubitServer {
    pub(crate) running: Running,
    pub(crate) ior_file: PathBuf,
}

impl CubitServer {
    /// Starts a server and waits until it is ready.
    pub(crate) fn start(folder: &Path, options: &[&str]) -> Self {
        let ior_file = folder.join("cubit.ior");
        let mut arguments = vec!["cubit", "serve", "--ior-file", ior_file.to_str().unwrap()];
        arguments.extend(options);
        let running = Running::start(&arguments);
        within(Duration::from_secs(20), || ior_file.exists().then_some(()))
            .expect("the server becomes ready");
        Self { running, ior_file }
    }

    /// The file's name, as a REF.
    pub(crate) fn reference(&self) -> &str {
        self.ior_file.to_str().unwrap()
    }
}

/// An output that nobody reads any more, as behind `| head`: each write fails with EPIPE.
pub(crate) fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Says that a test was skipped, and why.
///
/// # Panics
///
/// `RTORB_REQUIRE_PEERS=1` is set: then nothing may be missing.
pub(crate) fn skip(why: &str) {
    let is_required = std::env::var("RTORB_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(!is_required, "required by RTORB_REQUIRE_PEERS=1: {why}");
    eprintln!("skipped: {why}");
}

/// Asks again and again until there is an answer or the time is over.
pub(crate) fn within<T>(timeout: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + timeout;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= deadline {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes that a process started and that run.
pub(crate) fn children(id: u32) -> Vec<u32> {
    let text =
        std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// How often the main thread of a process has waited, which it does at each call; 0 once it has ended.
pub(crate) fn waits(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let switches = |line: &str| {
        line.strip_prefix("voluntary_ctxt_switches:")?
            .trim()
            .parse()
            .ok()
    };
    status.lines().find_map(switches).unwrap_or(0)
}
