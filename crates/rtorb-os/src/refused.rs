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
    /// Running on this CPU only.
    Affinity {
        /// The CPU's number.
        cpu: usize,
    },
    /// Locking the process's pages into memory.
    MemoryLock,
    /// A new thread.
    Thread,
    /// Memory shared with another process.
    SharedMemory,
}

impl What {
    fn remedy(self) -> &'static str {
        match self {
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
            Self::Thread => "lower the number of threads or their stack size, or raise `ulimit -u`",
            Self::SharedMemory => "see that the folder exists, can be written and has room",
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduling { policy, priority } => write!(f, "{policy} priority {priority}"),
            Self::Affinity { cpu } => write!(f, "running on CPU {cpu}"),
            Self::MemoryLock => f.write_str("locking memory"),
            Self::Thread => f.write_str("a new thread"),
            Self::SharedMemory => f.write_str("shared memory"),
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
            self.what.remedy()
        )
    }
}

impl std::error::Error for Refused {}
