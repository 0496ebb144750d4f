//! Memory that may be moved under a running program: swap and huge pages.

use serde::{Deserialize, Serialize};

use crate::system::{System, field};

/// What the kernel may do with memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMoves {
    /// Bytes of swap in use or ready for it; 0 is no swap.
    pub swap_bytes: Option<u64>,
    /// Bytes that are swapped out.
    pub swap_used_bytes: Option<u64>,
    /// How readily the kernel swaps: 0 to 200.
    pub swappiness: Option<i64>,
    /// When the kernel makes huge pages of small ones: `always`, `madvise`, `never`; `not built` where it cannot.
    pub huge_pages: Option<String>,
}

impl MemoryMoves {
    pub(super) fn of(system: &System) -> Self {
        let meminfo = system.read("/proc/meminfo").unwrap_or_default();
        let total = bytes(&meminfo, "SwapTotal");
        let free = bytes(&meminfo, "SwapFree");
        Self {
            swap_bytes: total,
            swap_used_bytes: total
                .zip(free)
                .map(|(total, free)| total.saturating_sub(free)),
            swappiness: system.number("/proc/sys/vm/swappiness"),
            huge_pages: huge_pages(system),
        }
    }
}

/// Bytes of memory.
pub(super) fn total_bytes(system: &System) -> Option<u64> {
    bytes(&system.read("/proc/meminfo")?, "MemTotal")
}

fn bytes(meminfo: &str, name: &str) -> Option<u64> {
    let value = field(meminfo, name)?;
    let kib: u64 = value.trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// The choice is the one in brackets.
fn huge_pages(system: &System) -> Option<String> {
    let choices = system.read("/sys/kernel/mm/transparent_hugepage/enabled");
    if choices.is_none() && system.exists("/sys/kernel/mm") {
        return Some("not built".to_owned());
    }
    let choices = choices?;
    let chosen = choices.split('[').nth(1)?.split(']').next()?;
    Some(chosen.to_owned())
}
