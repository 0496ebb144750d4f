//! Counting system calls with strace, where perf may not: slower, since every call stops its thread twice.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::perf::SystemCalls;
use crate::error::LabError;

/// A strace that counts the system calls of a process from when it was attached. Dropping it ends it.
#[derive(Debug)]
pub struct Strace {
    child: Child,
    /// Where it names each thread that the process starts: it would end by SIGPIPE if nobody could read that.
    _said: Option<BufReader<ChildStderr>>,
    output: PathBuf,
}

impl Strace {
    /// Attaches to all threads of a process.
    ///
    /// # Errors
    /// That it could not be started, or may not trace.
    pub fn attach(folder: &Path, process: u32) -> Result<Self, LabError> {
        let output = folder.join(format!("strace-{process}"));
        let mut child = Command::new("strace")
            .args(["-f", "-c", "-o"])
            .arg(&output)
            .args(["-p", &process.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| LabError::process("strace", format!("cannot be started: {error}")))?;
        let mut errors = child.stderr.take().map(BufReader::new);
        let mut first = String::new();
        if let Some(errors) = &mut errors {
            // It says one line at once: that it is attached, or why not.
            let _ = errors.read_line(&mut first);
        }
        if first.contains(" attached") {
            Ok(Self {
                child,
                _said: errors,
                output,
            })
        } else {
            let _ = child.wait();
            Err(LabError::process("strace", first.trim_end()))
        }
    }

    /// Detaches, and answers what was counted.
    ///
    /// # Errors
    /// That it ended before, and did not count all, or wrote nothing.
    pub fn finish(mut self) -> Result<SystemCalls, LabError> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(LabError::process(
                "strace",
                format!("ended too early ({status})"),
            ));
        }
        self.interrupt();
        let text = std::fs::read_to_string(&self.output).map_err(LabError::file(&self.output))?;
        Ok(counted(&text))
    }

    fn interrupt(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // An error means that it has ended already.
            let _ = kill_process(pid, Signal::INT);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.interrupt();
        }
    }
}

/// Whether strace is installed and may trace what it did not start, which Yama refuses on many hosts.
#[must_use]
pub fn is_usable(folder: &Path) -> bool {
    // It ends when its standard input does.
    let waiting = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let Ok(mut waiting) = waiting else {
        return false;
    };
    let is_usable = Strace::attach(folder, waiting.id()).is_ok();
    let _ = waiting.wait();
    is_usable
}

/// Lines `PERCENT SECONDS USECS CALLS [ERRORS] NAME` between two rulers.
fn counted(text: &str) -> SystemCalls {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let calls = words.get(3)?.parse().ok()?;
        let name = words.last().filter(|name| **name != "total")?;
        Some(((*name).to_owned(), calls))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_table_is_read_with_and_without_errors() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n \
                    60.00    0.000060          10         6         2 futex\n \
                    40.00    0.000040          10         4           sendto\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.000100          10        10         2 total\n";
        let expected = [("futex".to_owned(), 6), ("sendto".to_owned(), 4)];
        assert_eq!(counted(text), expected.into());
    }

    #[test]
    fn what_a_process_starts_after_it_was_attached_is_counted_too() {
        let folder = tempfile::tempdir().unwrap();
        if !is_usable(folder.path()) {
            println!("skipped: strace is not installed or may not trace");
            return;
        }
        // Programs, because a shell has no threads: strace names both alike.
        let mut shell = Command::new("sh")
            .args(["-c", "read go; /bin/true; /bin/true; echo done; read end"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is there");
        let mut input = shell.stdin.take().unwrap();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        let strace = Strace::attach(folder.path(), shell.id()).unwrap();
        input.write_all(b"go\n").unwrap();
        output.read_line(&mut String::new()).unwrap();
        let calls = strace.finish();
        drop(input);
        shell.wait().unwrap();
        assert_eq!(calls.unwrap()["execve"], 2);
    }
}
