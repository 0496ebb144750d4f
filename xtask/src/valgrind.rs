//! Counts the instructions of a process with valgrind.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

/// A process under valgrind; killed and waited for when it is dropped.
pub(crate) struct Counted {
    child: Child,
    /// Valgrind's report.
    log: PathBuf,
}

impl Counted {
    /// Starts `program` under valgrind, which reports to the file `log`.
    pub(crate) fn start<A: AsRef<OsStr>>(
        program: &Path,
        arguments: &[A],
        log: PathBuf,
    ) -> anyhow::Result<Self> {
        let child = Command::new("valgrind")
            .args([
                "--tool=cachegrind",
                "--cache-sim=no",
                "--cachegrind-out-file=/dev/null",
            ])
            .arg(format!("--log-file={}", log.display()))
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .spawn()
            .context("valgrind cannot be started: apt-get install valgrind")?;
        Ok(Self { child, log })
    }

    /// Waits until the process has written `file`, and returns its text.
    pub(crate) fn until_written(&mut self, file: &Path) -> anyhow::Result<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Ok(text) = fs::read_to_string(file) {
                return Ok(text);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("{status} before it was ready; see {}", self.log.display());
            }
            ensure!(Instant::now() < end, "not ready within {PATIENCE:?}");
            thread::sleep(POLL);
        }
    }

    /// Waits for the end of the process, and returns how many instructions it executed in user mode.
    pub(crate) fn instructions(mut self) -> anyhow::Result<u64> {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            ensure!(Instant::now() < end, "no end within {PATIENCE:?}");
            thread::sleep(POLL);
        };
        ensure!(status.success(), "{status}; see {}", self.log.display());
        let report = fs::read_to_string(&self.log).context("valgrind's report")?;
        total(&report)
            .with_context(|| format!("no count of instructions in {}", self.log.display()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Both fail if the process has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number in the line `==PID== I   refs:      5,116,551`.
fn total(report: &str) -> Option<u64> {
    let line = report.lines().find(|line| line.contains("refs:"))?;
    let number = line.rsplit(' ').next()?;
    number.replace(',', "").parse().ok()
}

/// The longest time that a process may take, on a busy host too.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two looks.
const POLL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_is_read_from_the_report() {
        let report = "==7== Command: x\n==7== \n==7== I   refs:      5,116,551\n";
        assert_eq!(total(report), Some(5_116_551));
        assert_eq!(total("==7== Command: x\n"), None);
    }
}
