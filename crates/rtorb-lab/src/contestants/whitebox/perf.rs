//! Looking at a process from outside with Linux's perf: system calls by name, and where its processor time goes.
//!
//! Tracepoints and samples cost a counted process far less than strace's two stops a system call, so that what
//! is counted is what happens when nobody looks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use linux_raw_sys::general as syscall;
use rtorb_host::placement::Placement;

use crate::error::LabError;
use crate::processes::interrupt::Interrupt;
use crate::processes::tools::run_tool;
use crate::processes::{Launcher, Process};

/// System calls by name, without the `sys_enter_` of the kernel.
pub type SystemCalls = BTreeMap<String, u64>;

/// How often a process was found in each of the [`PHASES`].
pub type Samples = BTreeMap<&'static str, u64>;

/// What a process is doing when it has the CPU.
pub const PHASES: [&str; 9] = [
    // The ORB's code and the servant's.
    "orb",
    // Locks in user space.
    "user_locks",
    // The allocator.
    "heap",
    // Sockets, and waiting for them, without the switch itself.
    "io",
    // futex(2), without the switch itself.
    "kernel_locks",
    // From one thread to another, or to none.
    "switches",
    // Giving a thread another priority.
    "priorities",
    // The pauses that clients make between calls: none of the ORB's.
    "pause",
    // Interrupts, faults, other system calls.
    "other_kernel",
];

/// Whether perf is installed and may count tracepoints here.
#[must_use]
pub fn is_usable(interrupt: &Interrupt) -> bool {
    let mut command = Command::new("perf");
    command.args(["stat", "-x,", "-e", ALL_CALLS, "--", "true"]);
    run_tool(&mut command, TOOL_TIMEOUT, interrupt).is_ok()
}

/// A perf that looks at a process when it is told to.
#[derive(Debug)]
pub struct Perf {
    process: Process,
    output: PathBuf,
}

impl Perf {
    /// A perf that will count system calls.
    ///
    /// # Errors
    /// That it could not be started.
    pub fn stat(launcher: &Launcher, folder: &Path, process: u32) -> Result<Self, LabError> {
        let mut options = ["stat", "-x,", "-e", ALL_CALLS].map(str::to_owned).to_vec();
        for (_, number) in NAMES {
            // One tracepoint with filters: the kernel takes long to take each tracepoint away.
            let filter = format!("id=={number}");
            options.extend(["-e", ALL_CALLS, "--filter", &filter].map(str::to_owned));
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        Self::start(launcher, folder, process, &options)
    }

    /// A perf that will look many times a millisecond of processor time what the process does.
    ///
    /// # Errors
    /// That it could not be started.
    pub fn record(launcher: &Launcher, folder: &Path, process: u32) -> Result<Self, LabError> {
        let hertz = SAMPLES_HZ.to_string();
        // Without -N, perf leaves a copy of every program that it looked at in ~/.debug. Without --no-bpf-event it has a thread for
        // events of BPF, which notices the end only once a second.
        let options = [
            "record",
            "-q",
            "-N",
            "--no-bpf-event",
            "-e",
            "cpu-clock",
            "-g",
            "-F",
            &hertz,
        ];
        Self::start(launcher, folder, process, &options)
    }

    /// Begins to look.
    ///
    /// # Errors
    /// That perf ended or was silent.
    pub fn enable(&mut self) -> Result<(), LabError> {
        self.tell("enable")
    }

    /// Looks no more.
    ///
    /// # Errors
    /// As [`Self::enable`].
    pub fn disable(&mut self) -> Result<(), LabError> {
        self.tell("disable")?;
        // `perf stat` knows no command for its end, and writes nothing after SIGTERM.
        self.process.interrupt();
        Ok(())
    }

    /// Waits until perf has ended, which takes it some time: the kernel is slow in taking its counters away.
    pub fn await_end(&mut self) {
        self.process.await_end();
    }

    /// The system calls that were counted, once it has ended. What has no counter of its own is `other`.
    ///
    /// # Errors
    /// That perf wrote nothing.
    pub fn system_calls(&self) -> Result<SystemCalls, LabError> {
        let text = std::fs::read_to_string(&self.output).map_err(LabError::file(&self.output))?;
        Ok(counted(&text))
    }

    /// The samples that were taken, once it has ended.
    ///
    /// # Errors
    /// That perf cannot read what it wrote.
    pub fn samples(&self, interrupt: &Interrupt) -> Result<Samples, LabError> {
        let mut command = Command::new("perf");
        command
            .args(["script", "-F", "ip,sym,dso", "-i"])
            .arg(&self.output);
        let samples = run_tool(&mut command, TOOL_TIMEOUT, interrupt)?;
        Ok(phases(&samples))
    }

    fn start(
        launcher: &Launcher,
        folder: &Path,
        process: u32,
        options: &[&str],
    ) -> Result<Self, LabError> {
        // It shall not take the CPU from whom it looks at.
        let launcher = launcher.placed(Placement::default());
        let output = folder.join(format!("perf-{}-{process}", options[0]));
        let (file, id) = (output.display().to_string(), process.to_string());
        // It tells every command on standard error too.
        let mut role = vec!["exec", "sh", "-c", "exec perf \"$@\" 2>/dev/null", "perf"];
        role.extend_from_slice(options);
        role.extend(["-D", "-1", "--control", "fd:0,1", "-o", &file, "-p", &id]);
        let mut process = launcher.spawn(&format!("perf {}", options[0]), &role)?;
        // Its first answer is given when it has opened all counters.
        process.command("ping")?;
        Ok(Self { process, output })
    }

    fn tell(&mut self, command: &str) -> Result<(), LabError> {
        let answer = self.process.command(command)?;
        // perf sends the zero at the end of its string too.
        match answer.trim_matches('\0') {
            "ack" => Ok(()),
            other => Err(LabError::process(
                self.process.name(),
                format!("said {other:?} to {command}"),
            )),
        }
    }
}

/// A line such as `123,,raw_syscalls:sys_enter,100,100.00,,` of all calls, and one for each of [`NAMES`].
fn counted(text: &str) -> SystemCalls {
    let lines = text.lines().filter(|line| line.contains(ALL_CALLS));
    // `<not counted>` is what perf says of a process that made no call at all.
    let mut numbers = lines.map(|line| {
        let number = line.split(',').next();
        number.and_then(|word| word.parse().ok()).unwrap_or(0u64)
    });
    let all = numbers.next().unwrap_or(0);
    let names = NAMES.iter().zip(numbers);
    let mut calls: SystemCalls = names
        .filter(|(_, number)| *number > 0)
        .map(|((name, _), number)| ((*name).to_owned(), number))
        .collect();
    let other = all.saturating_sub(calls.values().sum());
    if other > 0 {
        calls.insert("other".to_owned(), other);
    }
    calls
}

/// Paragraphs of a sample each, a line `ADDRESS SYMBOL (FILE)` a frame, the innermost first.
fn phases(text: &str) -> Samples {
    let mut samples = Samples::new();
    for paragraph in text.split("\n\n") {
        let frames: Vec<Frame<'_>> = paragraph.lines().filter_map(Frame::parse).collect();
        if !frames.is_empty() {
            *samples.entry(phase(&frames)).or_default() += 1;
        }
    }
    samples
}

#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    symbol: &'a str,
    is_kernel: bool,
}

impl<'a> Frame<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (_, rest) = line.trim_start().split_once(' ')?;
        let (symbol, file) = rest.rsplit_once(" (")?;
        Some(Self {
            symbol: symbol.trim(),
            is_kernel: file.starts_with("[kernel") || file.starts_with("[guest.kernel"),
        })
    }
}

/// One of the [`PHASES`].
fn phase(frames: &[Frame<'_>]) -> &'static str {
    let kernel = || frames.iter().take_while(|frame| frame.is_kernel);
    if kernel().next().is_none() {
        let innermost = frames.first().map_or("", |frame| frame.symbol);
        return match () {
            () if USER_LOCKS.iter().any(|name| innermost.contains(name)) => "user_locks",
            () if HEAP.contains(&innermost.trim_start_matches("_int_")) => "heap",
            () => "orb",
        };
    }
    // Such as `futex` of `__x64_sys_futex`.
    let calls = || kernel().filter_map(|frame| Some(frame.symbol.split_once("sys_")?.1));
    let asked =
        |names: &[&str]| calls().any(|call| names.iter().any(|name| call.starts_with(name)));
    match () {
        () if asked(&["clock_nanosleep"]) => "pause",
        () if kernel().any(|frame| SWITCHES.contains(&frame.symbol)) => "switches",
        () if asked(&["futex"]) => "kernel_locks",
        () if asked(&["sched_set"]) => "priorities",
        () if asked(&IO) => "io",
        () => "other_kernel",
    }
}

const ALL_CALLS: &str = "raw_syscalls:sys_enter";
/// What an ORB may be expected to call, with its number on this architecture.
const NAMES: &[(&str, u32)] = &[
    ("sendto", syscall::__NR_sendto),
    ("recvfrom", syscall::__NR_recvfrom),
    ("sendmsg", syscall::__NR_sendmsg),
    ("recvmsg", syscall::__NR_recvmsg),
    ("read", syscall::__NR_read),
    ("write", syscall::__NR_write),
    ("readv", syscall::__NR_readv),
    ("writev", syscall::__NR_writev),
    #[cfg(target_arch = "x86_64")]
    ("poll", syscall::__NR_poll),
    ("ppoll", syscall::__NR_ppoll),
    #[cfg(target_arch = "x86_64")]
    ("select", syscall::__NR_select),
    #[cfg(target_arch = "x86_64")]
    ("epoll_wait", syscall::__NR_epoll_wait),
    ("epoll_pwait", syscall::__NR_epoll_pwait),
    ("epoll_ctl", syscall::__NR_epoll_ctl),
    ("futex", syscall::__NR_futex),
    ("sched_setscheduler", syscall::__NR_sched_setscheduler),
    ("sched_setparam", syscall::__NR_sched_setparam),
    ("sched_yield", syscall::__NR_sched_yield),
    ("clock_nanosleep", syscall::__NR_clock_nanosleep),
    ("setsockopt", syscall::__NR_setsockopt),
];
const USER_LOCKS: [&str; 6] = [
    "pthread_mutex",
    "pthread_cond",
    "lll_lock",
    "sem_wait",
    "sem_post",
    "rtorb_os::sync::",
];
const SWITCHES: [&str; 2] = ["schedule", "__schedule"];
const HEAP: [&str; 5] = ["malloc", "free", "cfree", "calloc", "realloc"];
const IO: [&str; 9] = [
    "send", "recv", "read", "write", "poll", "ppoll", "select", "pselect", "epoll",
];
/// Fine enough for a burst of a tenth of a second, and below what the kernel allows by default (100,000).
const SAMPLES_HZ: u32 = 20_000;
const TOOL_TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_a_counter_are_others() {
        let line = |number: &str| format!("{number},,{ALL_CALLS},0,100.00,,\n");
        let of_names = NAMES.iter().map(|(name, _)| match *name {
            "futex" => line("9"),
            "sendto" => line("3"),
            _ => line("<not counted>"),
        });
        let text = format!("# started on Sat\n\n{}", line("14")) + &of_names.collect::<String>();
        let expected = [("futex", 9), ("sendto", 3), ("other", 2)];
        assert_eq!(
            counted(&text),
            expected
                .map(|(name, count)| (name.to_owned(), count))
                .into()
        );
    }

    #[test]
    fn a_sample_belongs_to_what_the_thread_asked_for() {
        let frames = |names: &[&str], file: &str| -> String {
            names
                .iter()
                .map(|name| format!("\tffffffff81692e18 {name} ({file})\n"))
                .collect()
        };
        let kernel = |names: &[&str]| frames(names, "[kernel.kallsyms]");
        let user = |name: &str| frames(&[name], "/usr/bin/rtorb");
        let samples = [
            kernel(&["tcp_sendmsg", "__x64_sys_sendto"]) + &user("rtorb::call"),
            kernel(&[
                "pick_next_task",
                "__schedule",
                "schedule",
                "__x64_sys_recvfrom",
            ]),
            kernel(&["hrtimer_start", "do_nanosleep", "__x64_sys_clock_nanosleep"]),
            kernel(&["plist_add", "do_futex", "__x64_sys_futex"]),
            kernel(&["__memcg_slab_free_hook", "exit_mmap"]),
            user("rtorb::reference::invoke"),
            user("rtorb_os::sync::mutex::PiLock::lock"),
            frames(&["malloc"], "/usr/lib/libc.so.6"),
        ];
        let phases = phases(&samples.join("\n"));
        let expected = [
            "io",
            "switches",
            "pause",
            "kernel_locks",
            "other_kernel",
            "orb",
            "user_locks",
            "heap",
        ];
        assert_eq!(phases, expected.map(|phase| (phase, 1)).into());
    }
}
