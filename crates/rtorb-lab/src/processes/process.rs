//! A running process: asked, and ended.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rtorb_host::placement::{obtained, obtained_by_priority};
use rtorb_os::clock::monotonic_ns;
use rtorb_results::ObtainedScheduling;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group, waitpgid,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::launcher::Launcher;
use crate::error::LabError;
use crate::processes::agent::{Agent, end_input};
use crate::processes::interrupt::Interrupt;
use crate::processes::questions::{Reply, ReplyLine, read_series};
use crate::processes::readable::{is_readable, nanoseconds};

/// A running child. Dropping it ends it.
#[derive(Debug)]
pub struct Process {
    name: String,
    running: Running,
    input: Option<File>,
    output: File,
    /// What was read and not yet asked for.
    buffer: Vec<u8>,
    /// The text of its `ready` line.
    text: String,
    interrupt: Interrupt,
    /// When it is lost, nothing that fails has another reason.
    agent: Option<Agent>,
}

/// Where a process runs.
#[derive(Debug)]
pub(super) enum Running {
    Here(Child),
    /// On the agent, which knows it by a key.
    There {
        agent: Agent,
        key: u32,
        /// The process's standard input and output.
        connection: OwnedFd,
    },
}

impl Process {
    pub(super) fn new(
        launcher: &Launcher,
        name: String,
        running: Running,
        [input, output]: [OwnedFd; 2],
    ) -> Self {
        Self {
            name,
            running,
            input: Some(File::from(input)),
            output: File::from(output),
            buffer: Vec::new(),
            text: String::new(),
            interrupt: launcher.interrupt.clone(),
            agent: launcher.agent().cloned(),
        }
    }

    /// Waits for the line `ready TEXT`.
    ///
    /// # Errors
    /// [`LabError::Refused`] if the child said `refused TEXT`; that it said something else, ended, or was silent for a minute.
    pub fn ready(mut self) -> Result<Self, LabError> {
        self.await_ready()?;
        Ok(self)
    }

    /// As [`Self::ready`].
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub fn await_ready(&mut self) -> Result<(), LabError> {
        let line = self.line(START_TIMEOUT)?;
        if let Some(what) = line.strip_prefix("refused ") {
            let what = format!("{}: {what}", self.name);
            return Err(LabError::Refused { what });
        }
        match line.strip_prefix("ready") {
            Some(text) => text.trim().clone_into(&mut self.text),
            None => return Err(self.failed(line.strip_prefix("error ").unwrap_or(&line))),
        }
        Ok(())
    }

    /// The text of its `ready` line, by which others find it: for example a reference.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The words of [`Self::text`]: the references of a server with several objects.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split_whitespace()
    }

    /// Asks, and waits for the answer for as long as `within` and ten seconds more.
    ///
    /// # Errors
    /// What the process said went wrong, or that it ended or was silent.
    pub fn ask<A: DeserializeOwned>(
        &mut self,
        question: &impl Serialize,
        within: Duration,
    ) -> Result<A, LabError> {
        Ok(self.ask_for_series(question, within)?.value)
    }

    /// The same with the series behind the answer.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_for_series<A: DeserializeOwned>(
        &mut self,
        question: &impl Serialize,
        within: Duration,
    ) -> Result<Reply<A>, LabError> {
        let question =
            serde_json::to_string(question).map_err(|error| self.failed(error.to_string()))?;
        let timeout = BURST_TIMEOUT + within;
        let line = self.exchange(&question, timeout)?;
        let line = ReplyLine::parse(&line).map_err(|what| self.failed(what))?;
        let numbers: usize = line.series.iter().sum();
        let bytes = self.bytes(numbers * size_of::<u64>(), timeout)?;
        Ok(Reply {
            value: line.value,
            series: read_series(&line.series, &bytes),
        })
    }

    /// Sends a tool a line, and returns the line that comes back.
    ///
    /// # Errors
    /// That it ended or was silent.
    pub(crate) fn command(&mut self, line: &str) -> Result<String, LabError> {
        self.exchange(line, BURST_TIMEOUT)
    }

    /// The process's id on this host; 0, which no process has, when it runs on the agent's.
    #[must_use]
    pub fn id(&self) -> u32 {
        match &self.running {
            Running::Here(child) => child.id(),
            Running::There { .. } => 0,
        }
    }

    /// What its threads have ([`obtained`]); `None` when it is gone.
    #[must_use]
    pub fn scheduling(&self) -> Option<ObtainedScheduling> {
        match &self.running {
            Running::Here(child) => obtained(&self.name, child.id()),
            Running::There { agent, key, .. } => agent.obtained(*key, &self.name),
        }
    }

    /// The same for each priority ([`obtained_by_priority`]).
    #[must_use]
    pub fn scheduling_by_priority(&self) -> Vec<ObtainedScheduling> {
        match &self.running {
            Running::Here(child) => obtained_by_priority(&self.name, child.id()),
            Running::There { agent, key, .. } => agent.obtained_by_priority(*key, &self.name),
        }
    }

    /// What the child was named when it was started.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells a tool what Ctrl-C tells it: to end, and to write what it has.
    pub fn interrupt(&self) {
        if let Running::Here(child) = &self.running {
            signal(child, Signal::INT);
        }
    }

    /// Waits until an interrupted tool has ended; ends it by [`Self::end`] when that takes too long.
    pub fn await_end(&mut self) {
        for _ in 0..INTERRUPTS_MAX {
            if let Running::Here(child) = &mut self.running
                && exited_within(child, INTERRUPT_POLL).is_some()
            {
                return;
            }
            // A signal that comes just before a tool falls asleep wakes it not: it gets another one.
            self.interrupt();
        }
        self.end();
    }

    /// Ends the child: politely at first, by SIGKILL when it does not listen. Called by `Drop` too.
    pub fn end(&mut self) {
        let first = self.input.take().is_some();
        match &mut self.running {
            Running::Here(child) => {
                end_politely(child);
            }
            Running::There {
                agent,
                key,
                connection,
            } if first => {
                end_input(connection);
                // An error means that there is no agent, and then it has no servers.
                let _ = agent.end(*key);
            }
            Running::There { .. } => {}
        }
    }

    /// What went wrong: the loss of the agent ends a run as an interrupt does, whatever else it brings.
    fn failed(&self, what: impl Into<String>) -> LabError {
        match self.agent.as_ref().and_then(Agent::lost) {
            Some(_) => LabError::Interrupted,
            None => LabError::process(&self.name, what),
        }
    }

    /// All that a tool prints until it ends, which may take as long as `within` and ten seconds more.
    ///
    /// # Errors
    /// That it failed, with what it printed, or did not end; or the interrupt.
    pub fn output_to_end(&mut self, within: Duration) -> Result<String, LabError> {
        let timeout = BURST_TIMEOUT + within;
        let deadline_ns = monotonic_ns() + nanoseconds(timeout);
        while self.read_more(deadline_ns, timeout)? > 0 {
            if self.buffer.len() > OUTPUT_BYTES_MAX {
                return Err(self.failed("printed without an end"));
            }
        }
        let printed = String::from_utf8_lossy(&std::mem::take(&mut self.buffer)).into_owned();
        let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
        let status = self.child().and_then(|child| exited_within(child, left));
        match status {
            Some(status) if status.success() => Ok(printed),
            Some(status) => {
                let what = format!("failed ({status}): {}", printed.trim_end());
                Err(LabError::process(&self.name, what))
            }
            None => Err(LabError::process(
                &self.name,
                "closed its output and did not end",
            )),
        }
    }

    /// How a child that answers no questions ended, with what it said last; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        let how = match &mut self.running {
            Running::Here(child) => exited_within(child, Duration::ZERO)?.to_string(),
            // Nothing is asked: what can be read is its last word.
            Running::There { .. } if is_readable(self.output.as_fd(), Duration::ZERO) => {
                "ended".to_owned()
            }
            Running::There { .. } => return None,
        };
        let mut said = Vec::new();
        // What it left behind may hold the pipe open, and then there is no end to wait for.
        if is_readable(self.output.as_fd(), Duration::ZERO) {
            let mut chunk = [0; 4096];
            let count = self.output.read(&mut chunk).unwrap_or(0);
            said.extend_from_slice(&chunk[..count]);
        }
        let said = String::from_utf8_lossy(&said);
        let said = said.trim().trim_start_matches("error ");
        Some(match said {
            "" => how,
            _ => format!("{how}: {said}"),
        })
    }

    /// Stops the child until it is killed: it hangs, with everything that it has.
    pub fn hang(&self) {
        if let Running::Here(child) = &self.running {
            signal(child, Signal::STOP);
        }
    }

    /// Ends the child and every process that it has made, at once: for those that have nothing to say at their end.
    pub fn kill_group(&self) {
        if let Some(group) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) {
            // An error means that all are gone, which is what we want.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Waits until a group that was killed is gone. What writes to a disk ends when the disk has answered.
    pub fn await_group_end(&mut self) {
        if let Some(child) = self.child() {
            let _ = child.wait();
        }
        let Some(group) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) else {
            return;
        };
        let deadline_ns = monotonic_ns() + nanoseconds(GROUP_END_TIMEOUT);
        while test_kill_process_group(group).is_ok() && monotonic_ns() < deadline_ns {
            // What has lost its parent is a child of the first process: in an emulated machine that is this one.
            if let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {
                continue;
            }
            std::thread::sleep(EXIT_POLL);
        }
    }

    /// `None` when it runs on the agent's host.
    fn child(&mut self) -> Option<&mut Child> {
        match &mut self.running {
            Running::Here(child) => Some(child),
            Running::There { .. } => None,
        }
    }

    fn exchange(&mut self, line: &str, timeout: Duration) -> Result<String, LabError> {
        let sent = match self.input.as_mut() {
            Some(input) => writeln!(input, "{line}").and_then(|()| input.flush()),
            None => Err(ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|error| self.failed(format!("takes no more questions: {error}")))?;
        self.line(timeout)
    }

    /// The next line of its output, without the line end.
    fn line(&mut self, timeout: Duration) -> Result<String, LabError> {
        let deadline_ns = monotonic_ns() + nanoseconds(timeout);
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(self.failed("wrote a line without an end"));
            }
            self.fill(deadline_ns, timeout)?;
        }
    }

    fn bytes(&mut self, count: usize, timeout: Duration) -> Result<Vec<u8>, LabError> {
        let deadline_ns = monotonic_ns() + nanoseconds(timeout);
        while self.buffer.len() < count {
            self.fill(deadline_ns, timeout)?;
        }
        Ok(self.buffer.drain(..count).collect())
    }

    fn fill(&mut self, deadline_ns: u64, timeout: Duration) -> Result<(), LabError> {
        match self.read_more(deadline_ns, timeout)? {
            0 => {
                let what = self.how_it_ended();
                Err(self.failed(what))
            }
            _ => Ok(()),
        }
    }

    /// Reads what there is, waiting for it; wakes now and then to see whether the run should end. 0 is the end.
    fn read_more(&mut self, deadline_ns: u64, timeout: Duration) -> Result<usize, LabError> {
        let mut chunk = [0; 1 << 16];
        loop {
            if self.interrupt.requested() {
                return Err(LabError::Interrupted);
            }
            if self.agent.as_ref().and_then(Agent::lost).is_some() {
                return Err(LabError::Interrupted);
            }
            let now_ns = monotonic_ns();
            if now_ns >= deadline_ns {
                return Err(LabError::Silent {
                    process: self.name.clone(),
                    waited: timeout,
                });
            }
            let wait = Duration::from_nanos(deadline_ns - now_ns).min(INTERRUPT_POLL);
            if !is_readable(self.output.as_fd(), wait) {
                continue;
            }
            match self.output.read(&mut chunk) {
                Ok(count) => {
                    self.buffer.extend_from_slice(&chunk[..count]);
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let what = format!("cannot be read from: {error}");
                    return Err(self.failed(what));
                }
            }
        }
    }

    fn how_it_ended(&mut self) -> String {
        match &mut self.running {
            Running::Here(child) => match exited_within(child, POLITE) {
                Some(status) => format!("ended before it answered ({status})"),
                None => "closed its output before it answered".to_owned(),
            },
            Running::There { agent, key, .. } => match agent.end(*key) {
                Ok(how) => format!("{how} before it answered"),
                Err(error) => error.to_string(),
            },
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends a child whose standard input has ended: politely at first, by SIGKILL when it does not listen. Answers how it ended,
/// unless that was by force.
pub(crate) fn end_politely(child: &mut Child) -> Option<ExitStatus> {
    if let Some(status) = exited_within(child, POLITE) {
        return Some(status);
    }
    signal(child, Signal::TERM);
    if let Some(status) = exited_within(child, POLITE) {
        return Some(status);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

fn exited_within(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let deadline_ns = monotonic_ns() + nanoseconds(timeout);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if monotonic_ns() < deadline_ns => std::thread::sleep(EXIT_POLL),
            Ok(None) | Err(_) => return None,
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // An error means that it is gone, which is what we want.
        let _ = kill_process(pid, signal);
    }
}

/// A server of a million objects needs a while to be ready, and so does a load of nice 19 on a busy host.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Beyond the burst's own budget; generous, since the machine may be busy with something else.
const BURST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a child may take to end by itself.
const POLITE: Duration = Duration::from_millis(300);
/// A disk answers sooner, or is broken.
const GROUP_END_TIMEOUT: Duration = Duration::from_secs(5);
/// Two seconds' worth.
const INTERRUPTS_MAX: usize = 40;
const EXIT_POLL: Duration = Duration::from_millis(2);
const INTERRUPT_POLL: Duration = Duration::from_millis(50);
/// Far more than any tool here prints.
const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// An IOR with many profiles fits well.
const LINE_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::effort::Effort;
    use crate::experiment::Context;

    /// What becomes of a child that says this line first.
    fn begun(line: &str) -> Result<Process, LabError> {
        let context = Context::new(Effort::Glance, "/bin/false".into(), Interrupt::new())?;
        let mut child = Command::new("sh")
            .args(["-c", &format!("echo '{line}'; cat")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let input = child.stdin.take().expect("a pipe");
        let output = child.stdout.take().expect("a pipe");
        let ends = [OwnedFd::from(input), OwnedFd::from(output)];
        let running = Running::Here(child);
        Process::new(&context.launcher, "child".to_owned(), running, ends).ready()
    }

    #[test]
    fn what_the_host_refuses_a_child_is_no_fault_of_the_child() {
        assert_eq!(begun("ready here").expect("it is ready").text(), "here");
        let refused = begun("refused /tmp is in memory");
        assert!(
            matches!(&refused, Err(LabError::Refused { what }) if what == "child: /tmp is in memory"),
            "{refused:?}"
        );
        let failed = begun("error no such role");
        assert!(
            matches!(&failed, Err(LabError::Process { .. })),
            "{failed:?}"
        );
    }
}
