//! Where the description of a host is read from: its /proc, /sys and /dev, and the few things that only calls tell.
//!
//! A test puts a folder in the place of the root, and with it any machine.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::ThreadConfig;
use rustix::process::{Resource, getrlimit};

use crate::netlink::NetworkAnswers;

/// A host that can be looked at.
#[derive(Clone, Debug)]
pub(crate) struct System {
    /// `/`, or what stands in its place.
    pub(crate) root: PathBuf,
    /// What no file tells.
    pub(crate) answers: Answers,
}

/// What a host answers to calls.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    pub(crate) machine: String,
    pub(crate) clock_resolution_ns: u64,
    pub(crate) fifo_granted: bool,
    pub(crate) memory_lock_bytes: Option<u64>,
    pub(crate) rtprio_limit: Option<u64>,
    pub(crate) rttime_limit_us: Option<u64>,
    pub(crate) open_files_limit: Option<u64>,
    /// For how long stolen time is watched.
    pub(crate) watch: Duration,
    /// What netlink tells about network interfaces.
    pub(crate) network: NetworkAnswers,
}

impl System {
    /// The host that this program runs on.
    pub(crate) fn this() -> Self {
        let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
        let resolution_ns = resolution.tv_sec * 1_000_000_000 + resolution.tv_nsec;
        let limit = |of| getrlimit(of).current;
        Self {
            root: PathBuf::from("/"),
            answers: Answers {
                machine: rustix::system::uname()
                    .machine()
                    .to_string_lossy()
                    .into_owned(),
                clock_resolution_ns: u64::try_from(resolution_ns).unwrap_or(0),
                fifo_granted: fifo_is_granted(),
                memory_lock_bytes: limit(Resource::Memlock),
                rtprio_limit: limit(Resource::Rtprio),
                rttime_limit_us: limit(Resource::Rttime),
                open_files_limit: limit(Resource::Nofile),
                watch: WATCH,
                network: NetworkAnswers::of_this_host(),
            },
        }
    }

    /// One of which nothing is known: it has no files, and answers nothing.
    pub(crate) fn unknown() -> Self {
        Self {
            root: PathBuf::from(NOWHERE),
            answers: Answers {
                machine: String::new(),
                clock_resolution_ns: 0,
                fifo_granted: true,
                memory_lock_bytes: None,
                rtprio_limit: None,
                rttime_limit_us: None,
                open_files_limit: None,
                watch: Duration::ZERO,
                network: NetworkAnswers::default(),
            },
        }
    }

    /// The same where no time can be stolen.
    pub(crate) fn unwatched(self) -> Self {
        Self {
            answers: Answers {
                watch: Duration::ZERO,
                ..self.answers
            },
            ..self
        }
    }

    /// The file or folder of an absolute path.
    pub(crate) fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// The text of a file, as [`read`] answers it.
    pub(crate) fn read(&self, absolute: &str) -> Option<String> {
        read(self.path(absolute))
    }

    pub(crate) fn number(&self, absolute: &str) -> Option<i64> {
        self.read(absolute)?.parse().ok()
    }

    /// A switch that is 0 or another number, `N` or `Y`.
    pub(crate) fn switch(&self, absolute: &str) -> Option<bool> {
        let text = self.read(absolute)?;
        match text.as_str() {
            "N" => Some(false),
            "Y" => Some(true),
            _ => text.parse::<i64>().ok().map(|number| number != 0),
        }
    }

    pub(crate) fn exists(&self, absolute: &str) -> bool {
        self.path(absolute).exists()
    }

    /// The names in a folder; none when it cannot be read.
    pub(crate) fn names(&self, absolute: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(absolute)) else {
            return Vec::new();
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        names
            .filter_map(|name| name.into_string().ok())
            .take(NAMES_MAX)
            .collect()
    }

    /// Eight bytes at a place in a file, as the devices of model-specific registers give them.
    pub(crate) fn register(&self, absolute: &str, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let file = File::open(self.path(absolute)).ok()?;
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// What the kernel was started with, `None` when that is not visible: the value of the last `NAME=VALUE`, or an empty
    /// one for `NAME` alone.
    pub(crate) fn boot_option(&self, name: &str) -> Option<BootOption> {
        let line = self.read("/proc/cmdline")?;
        let found = line.split_whitespace().rev().find_map(|word| {
            let (option, value) = word.split_once('=').unwrap_or((word, ""));
            (option == name).then(|| value.to_owned())
        });
        Some(BootOption(found))
    }
}

/// An option of the kernel's command line, or that it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BootOption(pub(crate) Option<String>);

/// Which clock CLOCK_MONOTONIC is: processes with the same identity read the same clock. `None` if /proc does not tell.
///
/// It consists of the boot of the machine and of the time namespace, which may have an offset.
#[must_use]
pub fn clock_identity() -> Option<String> {
    let boot = read("/proc/sys/kernel/random/boot_id")?;
    let namespace = std::fs::read_link("/proc/self/ns/time").ok()?;
    Some(format!("{boot} {}", namespace.display()))
}

/// The text of a file without the white space around it; `None` when it cannot be read or is not there.
#[must_use]
pub fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().trim_end_matches('\0').to_owned())
}

/// The value of `NAME: value` in such files as /proc/self/status.
#[must_use]
pub fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The CPUs of a kernel list such as `0-3,8`.
#[must_use]
pub fn cpu_list(list: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>())
            && last < CPUS_MAX
        {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// Below it there is nothing.
const NOWHERE: &str = "/dev/null";
/// More CPUs than any Linux is built for, so that a malformed list cannot make a long one.
const CPUS_MAX: usize = 8192;
/// More processes and interrupts than a host of any use has.
const NAMES_MAX: usize = 65_536;
/// The counters of stolen time move in steps of 10 ms.
const WATCH: Duration = Duration::from_millis(300);

/// Whether a thread of this process is given SCHED_FIFO when it asks; the caller's own scheduling stays as it is.
#[must_use]
pub fn fifo_is_granted() -> bool {
    let config = ThreadConfig {
        policy: Some(SchedPolicy::Fifo(FIFO_PRIORITY)),
        ..ThreadConfig::default()
    };
    rtorb_os::thread::spawn("fifo-probe", &config, || ()).is_ok_and(|thread| thread.join().is_ok())
}

/// The middle of 1 to 99, as the original benchmarks chose: above ordinary work, below the kernel's own threads.
pub const FIFO_PRIORITY: u8 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists() {
        assert_eq!(cpu_list("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(cpu_list(""), [0usize; 0]);
        assert_eq!(cpu_list("7\n"), [7]);
        assert_eq!(cpu_list("0-99999999999"), [0usize; 0]);
    }

    #[test]
    fn fields_are_found_whole() {
        let text = "Cpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        assert_eq!(field(text, "Cpus_allowed_list").as_deref(), Some("0-1"));
        assert_eq!(field(text, "Cpus"), None);
    }

    #[test]
    fn the_last_boot_option_counts_and_an_unreadable_line_is_no_answer() {
        let folder = tempfile::tempdir().unwrap();
        let mut system = System::this();
        system.root = folder.path().to_owned();
        assert_eq!(system.boot_option("quiet"), None);
        fs::create_dir(folder.path().join("proc")).unwrap();
        let line = "quiet rcu_nocbs=1 rcu_nocbs=2-3\n";
        fs::write(folder.path().join("proc/cmdline"), line).unwrap();
        let option = |name| system.boot_option(name).unwrap().0;
        assert_eq!(option("rcu_nocbs").as_deref(), Some("2-3"));
        assert_eq!(option("quiet").as_deref(), Some(""));
        assert_eq!(option("threadirqs"), None);
    }
}
