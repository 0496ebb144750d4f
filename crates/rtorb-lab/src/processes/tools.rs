//! Tools that are run to their end, such as compilers: with a time limit, and with what they print.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};

use crate::error::LabError;
use crate::processes::interrupt::Interrupt;
use crate::processes::readable::{nanoseconds, readable};

/// Becomes a program whose complaints go where the laboratory reads its output, and not between the progress on the terminal. It gets
/// SIGTERM when the laboratory dies, not SIGKILL, so that it can end processes of its own: stress-ng would leave those workers that
/// it had just made.
pub(crate) fn exec_tool(program: &str, arguments: &[&str]) -> io::Error {
    let output = set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(io::Error::from)
        .and_then(|()| io::stdout().as_fd().try_clone_to_owned());
    match output {
        Ok(output) => Command::new(program)
            .args(arguments)
            .stderr(Stdio::from(output))
            .exec(),
        Err(error) => error,
    }
}

/// Runs a tool to its end and answers its standard output.
///
/// # Errors
/// That it could not be started, took longer than `timeout`, printed more than 64 MiB, or failed, with what it said; or the
/// interrupt.
pub fn run_tool(
    command: &mut Command,
    timeout: Duration,
    interrupt: &Interrupt,
) -> Result<String, LabError> {
    run_tool_watched(command, timeout, interrupt, &mut || Ok(()))
}

/// The same, and asks `watch` again and again meanwhile whether it may go on.
///
/// # Errors
/// As [`run_tool`], and what `watch` says.
pub fn run_tool_watched(
    command: &mut Command,
    timeout: Duration,
    interrupt: &Interrupt,
    watch: &mut dyn FnMut() -> Result<(), LabError>,
) -> Result<String, LabError> {
    let name = command.get_program().to_string_lossy().into_owned();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = command
        .spawn()
        .map_err(|error| LabError::process(&name, format!("cannot be started: {error}")))?;
    let mut tool = Tool {
        output: Pipe::default(),
        complaints: Pipe::default(),
        child,
        name,
    };
    let status = tool
        .run(timeout, interrupt, watch)
        .inspect_err(|_| tool.kill())?;
    if status.success() {
        return Ok(tool.output.text());
    }
    let said = tool.complaints.text();
    Err(tool.error(format!("failed ({status}):\n{}", said.trim_end())))
}

/// A running tool.
struct Tool {
    name: String,
    child: Child,
    output: Pipe,
    complaints: Pipe,
}

impl Tool {
    /// Reads what it prints until it has ended: one that nobody reads waits as soon as a pipe is full.
    fn run(
        &mut self,
        timeout: Duration,
        interrupt: &Interrupt,
        watch: &mut dyn FnMut() -> Result<(), LabError>,
    ) -> Result<ExitStatus, LabError> {
        let deadline_ns = monotonic_ns() + nanoseconds(timeout);
        loop {
            // Asked before the pipes are read: what it printed until then is in them.
            let ended = self.child.try_wait();
            let ended = ended.map_err(|error| self.error(error.to_string()))?;
            let was_silent = self.read(ended.is_some())?;
            match ended {
                // Whoever else holds the pipes, such as a process that it left behind, is not waited for.
                Some(status) if was_silent => return Ok(status),
                Some(_) => {}
                None if interrupt.requested() => return Err(LabError::Interrupted),
                None if monotonic_ns() >= deadline_ns => {
                    return Err(LabError::Silent {
                        process: self.name.clone(),
                        waited: timeout,
                    });
                }
                None => watch()?,
            }
        }
    }

    /// Reads once what there is, waiting for it unless it has ended; whether there was nothing.
    fn read(&mut self, has_ended: bool) -> Result<bool, LabError> {
        let wait = if has_ended { Duration::ZERO } else { POLL };
        let (output, complaints) = (&mut self.child.stdout, &mut self.child.stderr);
        if output.is_none() && complaints.is_none() {
            std::thread::sleep(wait);
            return Ok(true);
        }
        let [has_output, has_complaints] = readable(
            [
                output.as_ref().map(AsFd::as_fd),
                complaints.as_ref().map(AsFd::as_fd),
            ],
            wait,
        );
        let mut done = Ok(());
        if has_output {
            done = self.output.fill(output);
        }
        if has_complaints && done.is_ok() {
            done = self.complaints.fill(complaints);
        }
        match done {
            Ok(()) => Ok(!has_output && !has_complaints),
            Err(what) => Err(self.error(what)),
        }
    }

    fn kill(&mut self) {
        // A compiler has processes of its own; they are in the group that was made for it.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }

    fn error(&self, what: impl Into<String>) -> LabError {
        LabError::process(&self.name, what)
    }
}

/// What came out of a pipe.
#[derive(Default)]
struct Pipe {
    octets: Vec<u8>,
}

impl Pipe {
    /// Reads once; `source` is none when it has ended.
    fn fill(&mut self, source: &mut Option<impl Read>) -> Result<(), String> {
        let Some(reader) = source else { return Ok(()) };
        let mut chunk = [0; 1 << 16];
        match reader.read(&mut chunk) {
            Ok(0) => *source = None,
            Ok(count) if self.octets.len() + count > BYTES_MAX => {
                return Err(format!("printed more than {BYTES_MAX} octets"));
            }
            Ok(count) => self.octets.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("cannot be read from: {error}")),
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.octets).into_owned()
    }
}

/// How often it is seen whether the run should end.
const POLL: Duration = Duration::from_millis(50);
/// More than any tool here prints.
const BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(50);

    fn shell(script: &str) -> Result<String, LabError> {
        run_tool(
            Command::new("sh").args(["-c", script]),
            LONG,
            &Interrupt::new(),
        )
    }

    #[test]
    fn a_tool_that_takes_too_long_is_ended() {
        let begin_ns = monotonic_ns();
        let error = run_tool(
            Command::new("sleep").arg("60"),
            Duration::from_millis(100),
            &Interrupt::new(),
        );
        assert!(matches!(error, Err(LabError::Silent { .. })), "{error:?}");
        assert!(monotonic_ns() - begin_ns < 5_000_000_000);
    }

    #[test]
    fn a_tool_that_may_not_go_on_is_ended() {
        let begin_ns = monotonic_ns();
        let mut asked = 0;
        let mut watch = || {
            asked += 1;
            match asked {
                1 => Ok(()),
                _ => Err(LabError::process("sleep", "slept enough")),
            }
        };
        let error = run_tool_watched(
            Command::new("sleep").arg("60"),
            LONG,
            &Interrupt::new(),
            &mut watch,
        );
        assert!(error.unwrap_err().to_string().contains("slept enough"));
        assert!(monotonic_ns() - begin_ns < 10_000_000_000);
    }

    #[test]
    fn a_tool_that_fails_is_quoted() {
        let error = shell("echo no such thing >&2; exit 3").unwrap_err();
        assert!(error.to_string().contains("no such thing"), "{error}");
    }

    #[test]
    fn a_tool_may_print_more_than_a_pipe_holds() {
        let million = "head -c 1000000 /dev/zero";
        let printed = shell(&format!("{million} >&2; {million}; echo end")).unwrap();
        assert_eq!(printed.len(), 1_000_004);
        assert!(printed.ends_with("end\n"));
    }

    #[test]
    fn a_tool_that_never_ends_to_print_is_ended() {
        let error = shell("exec cat /dev/zero").unwrap_err();
        assert!(error.to_string().contains("printed more than"), "{error}");
    }

    #[test]
    fn a_process_that_a_tool_leaves_behind_is_not_waited_for() {
        let begin_ns = monotonic_ns();
        assert_eq!(shell("echo begun; sleep 20 &").unwrap(), "begun\n");
        assert!(monotonic_ns() - begin_ns < 10_000_000_000);
    }

    #[test]
    fn an_interrupt_ends_a_tool() {
        let interrupt = Interrupt::new();
        interrupt.request();
        let error = run_tool(Command::new("sleep").arg("60"), LONG, &interrupt);
        assert!(matches!(error, Err(LabError::Interrupted)), "{error:?}");
    }
}
