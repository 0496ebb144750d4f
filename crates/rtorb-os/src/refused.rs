//! Refusals of the host, with what to do about them.

pub(crate) mod cpu_group;
pub(crate) mod user_namespace;

use crate::policy::SchedPolicy;
use core::fmt;
use rustix::io::Errno;
use std::borrow::Cow;
use std::path::Path;

/// The host refused something that real-time work needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host refused {resource} ({errno}): {}", .resource.remedy(*.errno, Path::new("/")))]
pub struct Refused {
    /// What the program asked for.
    pub resource: Resource,
    /// The reason that the kernel gave.
    pub errno: Errno,
}

/// A thing that a program asks the host for, and that the host may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// A scheduling policy with its priority.
    Policy(SchedPolicy),
    /// To run on this CPU only.
    Affinity {
        /// The number of the CPU.
        cpu: usize,
    },
    /// To lock the pages of the process into memory.
    MemoryLock,
    /// A stack whose pages are populated before the thread needs them.
    Stack {
        /// The size asked for.
        bytes: usize,
    },
    /// A heap whose pages are populated before the program needs them.
    Heap {
        /// The size asked for.
        bytes: usize,
    },
    /// A new thread.
    Thread,
    /// Memory shared with another process.
    SharedMemory,
    /// A handler of signals: of SIGTERM and SIGINT, which end a process, of SIGHUP, or of SIGUSR1.
    SignalHandler,
}

impl Resource {
    /// The refusal of this resource for the reason `errno`.
    pub(crate) fn refused(self, errno: Errno) -> Refused {
        Refused {
            resource: self,
            errno,
        }
    }

    /// Checks a result as [`check`] does, and adds this resource to the error.
    pub(crate) fn check(self, returned: impl Into<i64>) -> Result<(), Refused> {
        check(returned).map_err(|errno| self.refused(errno))
    }

    /// Says what would allow it. `root` is the folder with /proc and /sys, because the control group of the process may be the cause.
    fn remedy(self, errno: Errno, root: &Path) -> Cow<'static, str> {
        let usual = self.usual_remedy(errno);
        let (
            Self::Policy(SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority)),
            Errno::PERM,
        ) = (self, errno)
        else {
            return usual.into();
        };
        let has_right = cpu_group::may_have(root, priority);
        match cpu_group::refusal(root, has_right) {
            None => usual.into(),
            Some(why) if has_right => why.into(),
            Some(why) => format!("{why}; and {usual}").into(),
        }
    }

    fn usual_remedy(self, errno: Errno) -> &'static str {
        match self {
            Self::Policy(SchedPolicy::Deadline { .. }) if errno == Errno::INVAL => {
                "choose 1024 ns <= runtime <= deadline <= period, and a period within \
                 /proc/sys/kernel/sched_deadline_period_{min,max}_us"
            }
            Self::Policy(SchedPolicy::Deadline { .. }) if errno == Errno::BUSY => {
                "lower runtime / period: the threads of this policy together may have at most \
                 sched_rt_runtime_us / sched_rt_period_us (/proc/sys/kernel) of each CPU"
            }
            Self::Policy(SchedPolicy::Deadline { .. }) => {
                "run as root or give the program CAP_SYS_NICE (setcap cap_sys_nice+ep), and leave the thread all CPUs \
                 of its cpuset: this policy allows no other affinity"
            }
            Self::Policy(_) if errno == Errno::INVAL => {
                "choose a priority of 1 to 99 for SCHED_FIFO and SCHED_RR"
            }
            Self::Policy(_) => {
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
            Self::SharedMemory => "see that the folder exists, can be written and has room",
            Self::SignalHandler => "wait for these signals in fewer places",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy @ (SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_))) => {
                write!(f, "{} priority {}", policy.name(), policy.priority())
            }
            Self::Policy(policy) => policy.fmt(f),
            Self::Stack { bytes } => write!(f, "a populated stack of {bytes} bytes"),
            Self::Heap { bytes } => write!(f, "a populated heap of {bytes} bytes"),
            Self::Affinity { cpu } => write!(f, "affinity to CPU {cpu}"),
            Self::MemoryLock => f.write_str("locking memory"),
            Self::Thread => f.write_str("a new thread"),
            Self::SharedMemory => f.write_str("shared memory"),
            Self::SignalHandler => f.write_str("a handler of signals"),
        }
    }
}

/// The text of a file below `root`.
fn read(root: &Path, absolute: &str) -> Option<String> {
    std::fs::read_to_string(root.join(absolute.trim_start_matches('/'))).ok()
}

/// The result of a call of libc that returns 0 when it succeeds and otherwise sets the thread's error number.
pub(crate) fn check(returned: impl Into<i64>) -> Result<(), Errno> {
    match returned.into() {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do() {
        let deadline = Resource::Policy(SchedPolicy::Deadline {
            runtime_ns: 1,
            deadline_ns: 2,
            period_ns: 3,
        });
        let fifo = Resource::Policy(SchedPolicy::Fifo(50));
        let rows = [
            (fifo, Errno::PERM, "CAP_SYS_NICE"),
            (fifo, Errno::INVAL, "1 to 99"),
            (deadline, Errno::PERM, "CAP_SYS_NICE"),
            (deadline, Errno::INVAL, "sched_deadline_period"),
            (deadline, Errno::BUSY, "sched_rt_runtime_us"),
            (Resource::Affinity { cpu: 9 }, Errno::INVAL, "cpu/online"),
            (Resource::MemoryLock, Errno::NOMEM, "ulimit -l"),
            (Resource::Stack { bytes: 9 }, Errno::NOMEM, "stack size"),
            (Resource::Heap { bytes: 9 }, Errno::NOMEM, "glibc"),
            (Resource::Thread, Errno::AGAIN, "ulimit -u"),
            (Resource::SharedMemory, Errno::NOENT, "folder"),
            (Resource::SignalHandler, Errno::AGAIN, "fewer places"),
        ];
        for (resource, errno, remedy) in rows {
            let text = resource.refused(errno).to_string();
            assert!(text.contains(&resource.to_string()), "{text}");
            let text = resource.remedy(errno, Path::new("/nowhere"));
            assert!(text.contains(remedy), "{text}");
        }
    }

    #[test]
    fn a_control_group_without_real_time_time_is_named_as_the_cause() {
        let machine = std::env::temp_dir().join(format!("rtorb-os-refused-{}", std::process::id()));
        let file = |path: &str, text: &str| {
            let path = machine.join(path);
            std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        file("proc/self/cgroup", "4:cpu:/measure\n");
        file(
            "proc/self/mountinfo",
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
        );
        file("sys/fs/cgroup/cpu/measure/cpu.rt_runtime_us", "0\n");
        let said = |policy| {
            Resource::Policy(policy)
                .remedy(Errno::PERM, &machine)
                .into_owned()
        };
        let fifo = said(SchedPolicy::Fifo(50));
        let cause = "the control group /measure has no real-time time: `echo $$ > /sys/fs/cgroup/cpu/cgroup.procs`";
        assert!(
            fifo.starts_with(cause) && fifo.contains("CAP_SYS_NICE"),
            "{fifo}"
        );
        file("proc/self/status", "CapEff:\t000001ffffffffff\n");
        let fifo = said(SchedPolicy::RoundRobin(50));
        assert!(
            fifo.starts_with(cause) && !fifo.contains("CAP_SYS_NICE"),
            "{fifo}"
        );
        let deadline = said(SchedPolicy::Deadline {
            runtime_ns: 1,
            deadline_ns: 2,
            period_ns: 3,
        });
        assert!(!deadline.contains("/measure"), "{deadline}");
        std::fs::remove_dir_all(machine).expect("it is ours");
    }
}
