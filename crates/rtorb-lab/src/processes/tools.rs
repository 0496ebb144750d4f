//! Tools that are run to their end, such as compilers: with a time limit, and with what they print.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, set_parent_process_death_signal,
};

use crate::error::LabError;
use crate::processes::interrupt::Interrupt;
use crate::processes::readable::{is_readable, nanoseconds};

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
    let failed = |what: String| LabError::process(&name, what);
    let prints = || tempfile::tempfile().map_err(LabError::file(std::env::temp_dir()));
    let [mut output, mut complaints] = [prints()?, prints()?];
    let for_tool = |file: &File| file.try_clone().map_err(|error| failed(error.to_string()));
    command
        .stdin(Stdio::null())
        .stdout(for_tool(&output)?)
        .stderr(for_tool(&complaints)?)
        .process_group(0);
    let child = command.spawn();
    let mut child = child.map_err(|error| failed(format!("cannot be started: {error}")))?;
    let deadline_ns = monotonic_ns() + nanoseconds(timeout);
    let mut may_go_on = || {
        let is_full = |file: &File| file.metadata().is_ok_and(|file| file.len() > BYTES_MAX);
        if interrupt.requested() {
            Err(LabError::Interrupted)
        } else if monotonic_ns() >= deadline_ns {
            Err(LabError::Silent {
                process: name.clone(),
                waited: timeout,
            })
        } else if is_full(&output) || is_full(&complaints) {
            Err(failed(format!("printed more than {BYTES_MAX} bytes")))
        } else {
            watch()
        }
    };
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let ended = ended.map_err(|error| failed(error.to_string()));
    let ended = ended.inspect_err(|_| kill(&mut child))?;
    while !is_readable(ended.as_fd(), POLL) {
        may_go_on().inspect_err(|_| kill(&mut child))?;
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if status.success() {
        return printed(&mut output).map_err(|error| failed(error.to_string()));
    }
    let said = printed(&mut complaints).unwrap_or_default();
    Err(failed(format!("failed ({status}):\n{}", said.trim_end())))
}

/// Ends the tool, and what it started.
fn kill(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

/// Returns what a tool has printed into a file.
fn printed(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const POLL: Duration = Duration::from_millis(50);
const BYTES_MAX: u64 = 64 << 20;

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
        assert!(monotonic_ns() - begin_ns < 40_000_000_000);
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
        assert!(monotonic_ns() - begin_ns < 40_000_000_000);
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
        assert_eq!(shell("echo begun; sleep 60 &").unwrap(), "begun\n");
        assert!(monotonic_ns() - begin_ns < 40_000_000_000);
    }

    #[test]
    fn an_interrupt_ends_a_tool() {
        let interrupt = Interrupt::new();
        interrupt.request();
        let error = run_tool(Command::new("sleep").arg("60"), LONG, &interrupt);
        assert!(matches!(error, Err(LabError::Interrupted)), "{error:?}");
    }
}
