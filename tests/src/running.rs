//! A child process that ends with the test that started it, and waits that have a bound.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything here may take. A peer that needs longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Stops a process by SIGSTOP, and waits until none of its threads runs any more: on a busy host some do for a while.
///
/// # Panics
///
/// There is no such process, or it runs on for [`PATIENCE`].
pub fn stop_process(id: u32) {
    signal_process(id, "STOP");
    let has_stopped = || {
        let tasks = fs::read_dir(format!("/proc/{id}/task"));
        tasks.expect("it runs").all(|task| {
            let path = task.expect("a thread").path().join("stat");
            fs::read_to_string(path).is_ok_and(|stat| stat.contains(") T "))
        })
    };
    until("it has stopped", || has_stopped().then_some(()));
}

/// Sends a signal, such as `CONT`, to a process.
///
/// # Panics
///
/// There is no such process.
pub fn signal_process(id: u32, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", name, &id.to_string()]).status();
    assert!(sent.expect("there is kill").success(), "{name}");
}

/// A process started by a test; dropped, it is killed by its id and waited for.
#[derive(Debug)]
pub struct Running {
    child: Child,
    name: String,
}

impl Running {
    /// Starts `command` and waits until it has written `ready`, which must not be there before.
    ///
    /// # Panics
    ///
    /// The process cannot be started, ends without writing the file, or is not ready within [`PATIENCE`].
    pub fn until_written(command: &mut Command, ready: &Path) -> (Self, String) {
        let mut running = Self::start(command);
        let name = running.name.clone();
        let text = until(&format!("{name} is ready"), || {
            let written = fs::read_to_string(ready).ok();
            let ended = running.child.try_wait().expect("a child can be asked");
            assert!(
                written.is_some() || ended.is_none(),
                "{name} ended before it was ready: {ended:?}"
            );
            written
        });
        (running, text.trim().to_owned())
    }

    /// Starts `command` and waits until a line of its standard output begins with `start`; answers the rest of it.
    ///
    /// # Panics
    ///
    /// The process cannot be started, or ends without such a line.
    pub fn until_line(command: &mut Command, start: &str) -> (Self, String) {
        let mut running = Self::start(command.stdout(Stdio::piped()));
        let output = running
            .child
            .stdout
            .take()
            .expect("standard output is piped");
        for line in BufReader::new(output).lines() {
            if let Some(rest) = line.expect("the line is text").strip_prefix(start) {
                let rest = rest.to_owned();
                return (running, rest);
            }
        }
        panic!("{} ended without saying {start:?}", running.name);
    }

    /// Starts `command`, and gathers what it prints on standard output beside it.
    ///
    /// # Panics
    ///
    /// The process cannot be started.
    pub fn gathering(command: &mut Command) -> (Self, thread::JoinHandle<String>) {
        let mut running = Self::start(command.stdout(Stdio::piped()));
        let out = gather(running.child.stdout.take());
        (running, out)
    }

    /// Starts `command` and does not wait.
    ///
    /// # Panics
    ///
    /// The process cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let name = format!("{command:?}");
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{name} cannot be started: {e}"));
        Self { child, name }
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    ///
    /// It goes on for longer than [`PATIENCE`].
    pub fn ended(mut self) -> ExitStatus {
        let Self { child, name } = &mut self;
        until(&format!("{name} ends"), || {
            child.try_wait().expect("a child can be asked")
        })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when the process has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `command` to its end, and answers what it printed on standard output.
///
/// # Panics
///
/// It cannot be started, takes longer than [`PATIENCE`], or fails: then with all that it printed.
pub fn output_of(command: &mut Command) -> String {
    let name = format!("{command:?}");
    outcome_of(command).unwrap_or_else(|said| panic!("{name}: {said}"))
}

/// Copies a program, so that it can be started at its new place.
///
/// Another process does it. The file would be open for writing in this one, and in each child that another test starts meanwhile, until that
/// is another program; and the host starts no program that is open for writing (ETXTBSY).
///
/// # Panics
///
/// It cannot be copied.
pub fn copy_program(program: impl AsRef<Path>, place: &Path) {
    let mut copy = Command::new("cp");
    outcome_of(copy.arg("--").arg(program.as_ref()).arg(place)).expect("there is room");
}

/// Runs `command` to its end, and answers what it printed on standard output.
///
/// # Errors
///
/// It fails: then with its status and all that it printed.
///
/// # Panics
///
/// It cannot be started, or takes longer than [`PATIENCE`].
pub fn outcome_of(command: &mut Command) -> Result<String, String> {
    let mut running = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let out = gather(running.child.stdout.take());
    let err = gather(running.child.stderr.take());
    let status = running.ended();
    let (out, err) = (
        out.join().expect("reading does not panic"),
        err.join().expect("reading does not panic"),
    );
    if status.success() {
        Ok(out)
    } else {
        Err(format!("{status}\n{out}{err}"))
    }
}

/// Reads a pipe beside the process, so that neither waits for the other.
fn gather<R: Read + Send + 'static>(pipe: Option<R>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A pipe that breaks off has given what it had.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Asks again and again until there is an answer.
///
/// # Panics
///
/// There is none within [`PATIENCE`].
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "not in {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
