//! What the host would not do, and how to change its mind.

use core::fmt;
use rustix::io::Errno;

/// The host refused something that real-time work needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was asked for, for example `SCHED_FIFO priority 50`.
    pub what: What,
    /// Why the kernel said no.
    pub errno: Errno,
}

/// What can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A real-time scheduling policy with its priority, 1 to 99.
    Scheduling {
        /// The policy's name as in sched(7).
        policy: &'static str,
        /// The priority asked for.
        priority: u8,
    },
    /// A share of the CPU by SCHED_DEADLINE, in nanoseconds.
    Deadline {
        /// Processor time a period.
        runtime_ns: u64,
        /// When it is due after the beginning of a period.
        deadline_ns: u64,
        /// The period.
        period_ns: u64,
    },
    /// Running on this CPU only.
    Affinity {
        /// The CPU's number.
        cpu: usize,
    },
    /// Locking the process's pages into memory.
    MemoryLock,
    /// A stack whose pages are there before they are needed.
    Stack {
        /// Octets asked for.
        bytes: usize,
    },
    /// A heap whose pages are there before they are needed.
    Heap {
        /// Octets asked for.
        bytes: usize,
    },
    /// A new thread.
    Thread,
    /// A new process.
    Process,
    /// Memory shared with another process.
    SharedMemory,
    /// A timer that sends signals.
    SignalTimer,
}

impl What {
    fn remedy(self, errno: Errno) -> &'static str {
        match self {
            Self::Scheduling { .. } if errno == Errno::INVAL => {
                "choose a priority of 1 to 99 for SCHED_FIFO and SCHED_RR"
            }
            Self::Deadline { .. } if errno == Errno::INVAL => {
                "choose 1024 ns <= runtime <= deadline <= period, and a period within \
                 /proc/sys/kernel/sched_deadline_period_{min,max}_us"
            }
            Self::Deadline { .. } if errno == Errno::BUSY => {
                "lower runtime / period: the threads of this policy together may have at most \
                 sched_rt_runtime_us / sched_rt_period_us (/proc/sys/kernel) of each CPU"
            }
            Self::Deadline { .. } => {
                "run as root or give the program CAP_SYS_NICE (setcap cap_sys_nice+ep), and leave the thread all CPUs \
                 of its cpuset: this policy goes with no other affinity"
            }
            Self::Scheduling { .. } => {
                "run as root, give the program CAP_SYS_NICE (setcap cap_sys_nice+ep), or raise `ulimit -r` \
                 (rtprio in /etc/security/limits.conf)"
            }
            Self::Affinity { .. } => {
                "choose a CPU of /sys/devices/system/cpu/online that the cpuset allows"
            }
            Self::MemoryLock => {
                "run as root, give the program CAP_IPC_LOCK, or raise `ulimit -l` (memlock in \
                 /etc/security/limits.conf)"
            }
            Self::Stack { .. } => {
                "lower the stack size or the number of threads, raise the memory limit of the control group, and use \
                 Linux 5.14 or newer"
            }
            Self::Heap { .. } => {
                "ask for less, raise `ulimit -d`, `ulimit -l` or the memory limit of the control group, and use glibc"
            }
            Self::Thread => "lower the number of threads or their stack size, or raise `ulimit -u`",
            Self::Process => {
                "lower the number of processes or their memory, or raise `ulimit -u` or the memory limit of the control group"
            }
            Self::SharedMemory => "see that the folder exists, can be written and has room",
            Self::SignalTimer if errno == Errno::INVAL => {
                "start it at a moment and with a period that are not 0"
            }
            Self::SignalTimer => "use fewer timers, or raise `ulimit -i`",
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduling { policy, priority } => write!(f, "{policy} priority {priority}"),
            Self::Deadline {
                runtime_ns,
                deadline_ns,
                period_ns,
            } => write!(
                f,
                "SCHED_DEADLINE {runtime_ns} of {period_ns} ns within {deadline_ns} ns"
            ),
            Self::Stack { bytes } => write!(f, "a stack of {bytes} octets in memory"),
            Self::Heap { bytes } => write!(f, "a heap of {bytes} octets in memory"),
            Self::Affinity { cpu } => write!(f, "running on CPU {cpu}"),
            Self::MemoryLock => f.write_str("locking memory"),
            Self::Thread => f.write_str("a new thread"),
            Self::Process => f.write_str("a new process"),
            Self::SharedMemory => f.write_str("shared memory"),
            Self::SignalTimer => f.write_str("a timer that sends signals"),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the host refused {} ({}): {}",
            self.what,
            self.errno,
            self.what.remedy(self.errno)
        )
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do() {
        let deadline = What::Deadline {
            runtime_ns: 1,
            deadline_ns: 2,
            period_ns: 3,
        };
        let fifo = What::Scheduling {
            policy: "SCHED_FIFO",
            priority: 50,
        };
        let rows = [
            (fifo, Errno::PERM, "CAP_SYS_NICE"),
            (fifo, Errno::INVAL, "1 to 99"),
            (deadline, Errno::PERM, "CAP_SYS_NICE"),
            (deadline, Errno::INVAL, "sched_deadline_period"),
            (deadline, Errno::BUSY, "sched_rt_runtime_us"),
            (What::Affinity { cpu: 9 }, Errno::INVAL, "cpu/online"),
            (What::MemoryLock, Errno::NOMEM, "ulimit -l"),
            (What::Stack { bytes: 9 }, Errno::NOMEM, "stack size"),
            (What::Heap { bytes: 9 }, Errno::NOMEM, "glibc"),
            (What::Thread, Errno::AGAIN, "ulimit -u"),
            (What::Process, Errno::AGAIN, "ulimit -u"),
            (What::SharedMemory, Errno::NOENT, "folder"),
            (What::SignalTimer, Errno::AGAIN, "ulimit -i"),
            (What::SignalTimer, Errno::INVAL, "not 0"),
        ];
        for (what, errno, remedy) in rows {
            let text = Refused { what, errno }.to_string();
            assert!(text.contains(&what.to_string()), "{text}");
            assert!(text.contains(remedy), "{text}");
        }
    }
}
