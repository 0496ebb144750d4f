//! Clocks and timers.

use super::{Finding, Subject};
use crate::description::Host;

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    let mut findings = vec![clock(host), high_resolution(host), timer_migration(host)];
    findings.extend(tsc(host));
    findings
}

fn clock(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "clock",
        "a slow clock source makes every timestamp and timer a system call or an exit to the hypervisor",
    );
    let Some(name) = host.clock_source.as_deref() else {
        return SUBJECT.unknown(
            "the clock source is not visible",
            "look at /sys/devices/system/clocksource/clocksource0/current_clocksource on the host itself",
        );
    };
    if FAST_CLOCKS.contains(&name) {
        return SUBJECT.good(format!("clock source {name}"));
    }
    if host.machine != "x86_64" {
        return SUBJECT.advice(
            format!("clock source {name}, which may be slow to read"),
            "see whether available_clocksource in /sys/devices/system/clocksource/clocksource0 has the CPU's own counter",
        );
    }
    SUBJECT.advice(
        format!("clock source {name}, which is slow to read"),
        "boot with clocksource=tsc tsc=reliable where the CPU's counter is invariant",
    )
}

fn high_resolution(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "high-resolution-timers",
        "without them a timer waits for the next tick: 1 to 10 ms late",
    );
    let resolution = host.clock_resolution_ns;
    if resolution <= CLOCK_RESOLUTION_NS_MAX {
        return SUBJECT.good(format!("timers are exact to {resolution} ns"));
    }
    SUBJECT.unfit(
        format!("timers are exact to {resolution} ns only"),
        "boot without highres=off, with a kernel that has CONFIG_HIGH_RES_TIMERS and a clock source that allows them",
    )
}

fn timer_migration(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "timer-migration",
        "a timer that an idle CPU sets is moved to a busy one: it comes later, and disturbs who works there",
    );
    match host.kernel_options.timer_migration {
        Some(true) if host.cpus_online > 1 => SUBJECT.advice(
            "timers may be moved to other CPUs",
            "`sysctl kernel.timer_migration=0`",
        ),
        Some(_) => SUBJECT.good("timers stay on their CPU"),
        None => SUBJECT.unknown(
            "whether timers are moved to other CPUs is not visible",
            "look at `sysctl kernel.timer_migration` on the host itself",
        ),
    }
}

/// Only x86 has a counter that the kernel may come to distrust.
fn tsc(host: &Host) -> Option<Finding> {
    const SUBJECT: Subject = Subject::new(
        "tsc",
        "a CPU's counter that stops, or differs from CPU to CPU, makes time jump; without it clocks are slow",
    );
    Some(if host.tsc_trusted? {
        SUBJECT.good("the kernel trusts the CPU's counter (tsc)")
    } else {
        SUBJECT.advice(
        "the kernel does not trust the CPU's counter (tsc), or its hypervisor offers none",
        "`dmesg | grep -i tsc` says why; update the firmware, or let the hypervisor pass an invariant counter",
    )
    })
}

/// Beyond it the clock is driven by a tick.
const CLOCK_RESOLUTION_NS_MAX: u64 = 1_000;
/// Sources that are read without leaving user space.
const FAST_CLOCKS: [&str; 5] = [
    "tsc",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "riscv_clocksource",
];
