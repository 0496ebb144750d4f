//! What the kernel has counted for the threads of a process, read from outside.

use std::fs;

use rtorb_host::system::field;

/// Sums over all threads that a process has now. They only grow while no thread ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSums {
    /// Times that a thread gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// Times that a thread lost the CPU to another one.
    pub involuntary_switches: u64,
    /// Processor time in nanoseconds.
    pub cpu_ns: u64,
}

impl ThreadSums {
    /// Of the process with this id (proc_pid_status(5), `Documentation/scheduler/sched-stats.rst` of Linux); `None` when it is
    /// gone.
    #[must_use]
    pub fn of(process: u32) -> Option<Self> {
        let mut sums = Self::default();
        for task in fs::read_dir(format!("/proc/{process}/task")).ok()? {
            let task = task.ok()?.path();
            let files = ["status", "schedstat"].map(|name| fs::read_to_string(task.join(name)));
            let [Ok(status), Ok(schedstat)] = files else {
                // A thread that has ended meanwhile.
                continue;
            };
            let number = |name| field(&status, name)?.parse::<u64>().ok();
            sums.voluntary_switches += number("voluntary_ctxt_switches")?;
            sums.involuntary_switches += number("nonvoluntary_ctxt_switches")?;
            sums.cpu_ns += schedstat.split(' ').next()?.parse::<u64>().ok()?;
        }
        Some(sums)
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let less = u64::saturating_sub;
        Self {
            voluntary_switches: less(self.voluntary_switches, earlier.voluntary_switches),
            involuntary_switches: less(self.involuntary_switches, earlier.involuntary_switches),
            cpu_ns: less(self.cpu_ns, earlier.cpu_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    #[test]
    fn a_thread_that_waits_gives_up_the_cpu() {
        // Not this process: other tests end threads of it.
        let mut process = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cat is there");
        let (mut input, output) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        let mut output = BufReader::new(output);
        let mut echo = || {
            input.write_all(b"line\n").unwrap();
            output.read_line(&mut String::new()).unwrap();
        };
        // It has started when it has answered.
        echo();
        let sums = |process: &Child| ThreadSums::of(process.id()).unwrap();
        let before = sums(&process);
        // On a busy machine, the next line may be there before it waits.
        let gives_up = (0..10_000).any(|_| {
            echo();
            sums(&process).since(before).voluntary_switches >= 1
        });
        drop(input);
        process.wait().unwrap();
        assert!(gives_up, "it waits for lines");
        assert_eq!(ThreadSums::of(u32::MAX), None);
    }
}
