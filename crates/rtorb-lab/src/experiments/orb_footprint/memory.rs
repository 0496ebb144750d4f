//! What memory a process has, as the kernel counts it.

use rtorb_host::system::{field, read};

/// Bytes, from `/proc/PID/smaps_rollup` (proc_pid_smaps(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::experiments) struct Memory {
    /// Resident: pages that are in memory now, whoever else has them too.
    pub(super) rss: u64,
    /// The same with each shared page divided by the number of processes that have it.
    pub(super) pss: u64,
    /// Written, and in no other process: what this one alone costs.
    pub(in crate::experiments) private_dirty: u64,
}

impl Memory {
    /// Of a running process; `None` when it is gone or the kernel does not tell.
    pub(in crate::experiments) fn of(process: u32) -> Option<Self> {
        Self::parse(&read(format!("/proc/{process}/smaps_rollup"))?)
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = |name: &str| -> Option<u64> {
            let value = field(text, name)?;
            let kib: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
            Some(kib * 1024)
        };
        Some(Self {
            rss: bytes("Rss")?,
            pss: bytes("Pss")?,
            private_dirty: bytes("Private_Dirty")?,
        })
    }

    /// Each that depends on what the process does, with its name.
    pub(super) fn named(self) -> [(&'static str, u64); 3] {
        [
            (PRIVATE_DIRTY, self.private_dirty),
            ("pss", self.pss),
            ("rss", self.rss),
        ]
    }
}

/// The one that says what a process costs.
pub(in crate::experiments) const PRIVATE_DIRTY: &str = "private_dirty";
/// Why there is none.
pub(in crate::experiments) const NO_MEMORY: &str = "The memory of processes was not measured: /proc/PID/smaps_rollup cannot be read (Linux 4.14 and newer have it).";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let text = "55d4 ---p 0 00:00 0 [rollup]\nRss:   3200 kB\nPss:   1000 kB\nPss_Dirty: 7 kB\nPrivate_Dirty:  300 kB\n";
        let memory = Memory::parse(text).unwrap();
        assert_eq!(memory.rss, 3_200 * 1_024);
        assert_eq!(memory.private_dirty, 300 * 1_024);
        assert_eq!(Memory::parse("Rss: 1 kB\n"), None);
    }

    #[test]
    fn this_process_has_memory() {
        let memory = Memory::of(std::process::id()).unwrap();
        assert!(memory.rss >= memory.pss && memory.pss > 0);
        assert_eq!(Memory::of(u32::MAX), None);
    }
}
