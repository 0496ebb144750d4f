//! Memory that stays where it is.

use super::{Finding, Subject};
use crate::description::Host;

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    vec![swap(host), huge_pages(host)]
}

fn swap(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "swap",
        "memory that is not locked may be on the disk when a call needs it",
    );
    let moves = &host.memory_moves;
    match moves.swap_bytes {
        Some(0) => SUBJECT.good("there is no swap"),
        Some(total) => {
            let swappiness = moves
                .swappiness
                .map_or("unknown".to_owned(), |value| value.to_string());
            SUBJECT.advice(
                format!(
                    "{} MiB of swap, {} MiB of it used (swappiness {swappiness})",
                    total >> 20,
                    moves.swap_used_bytes.unwrap_or(0) >> 20
                ),
                "`swapoff -a` and no swap in /etc/fstab; at the least lock the memory of real-time programs and \
                 `sysctl vm.swappiness=1`",
            )
        }
        None => SUBJECT.unknown(
            "whether there is swap is not visible",
            "look at /proc/swaps on the host itself",
        ),
    }
}

fn huge_pages(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "huge-pages",
        "the kernel stops a program while it makes huge pages of its small ones, at a time of its own choice",
    );
    match host.memory_moves.huge_pages.as_deref() {
        Some("always") => SUBJECT.advice(
            "transparent huge pages: always",
            "boot with transparent_hugepage=never, or `echo madvise > \
             /sys/kernel/mm/transparent_hugepage/enabled`",
        ),
        Some(choice) => SUBJECT.good(format!("transparent huge pages: {choice}")),
        None => SUBJECT.unknown(
            "whether the kernel makes huge pages is not visible",
            "look at /sys/kernel/mm/transparent_hugepage/enabled on the host itself",
        ),
    }
}
