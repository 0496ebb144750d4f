//! How the kernel preempts and schedules.

use super::{Finding, Subject};
use crate::description::Host;

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    vec![
        preempt_rt(host),
        throttling(host),
        interrupt_threads(host),
        kernel_threads(host),
        debugging(host),
    ]
}

fn preempt_rt(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "preempt-rt",
        "without PREEMPT_RT the kernel finishes interrupt work and its own locks before an urgent thread runs: \
              mostly microseconds, now and then milliseconds",
    );
    if host.preempt_rt {
        return SUBJECT.good("the kernel is PREEMPT_RT");
    }
    SUBJECT.unfit(
        format!("the kernel is not PREEMPT_RT (preemption: {})", host.preemption),
        "install the distribution's real-time kernel (Debian: linux-image-rt-amd64 or -arm64; Ubuntu: the real-time \
         kernel), or build 6.12 or newer with CONFIG_PREEMPT_RT",
    )
}

fn throttling(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "rt-throttling",
        "when real-time tasks have used their share of a period, the kernel stops them until the next",
    );
    let (Some(runtime), Some(period)) = (host.rt_runtime_us, host.rt_period_us) else {
        return SUBJECT.unknown(
            "the share of real-time tasks is not visible",
            "look at `sysctl kernel.sched_rt_runtime_us` where /proc/sys can be read",
        );
    };
    if has_fair_server(&host.kernel_release) {
        return fair_server(host.fair_server_ns, SUBJECT);
    }
    if runtime < 0 || runtime >= period {
        return SUBJECT.good("real-time throttling is off");
    }
    SUBJECT.advice(
        format!("real-time tasks may use {runtime} us of every {period} us"),
        "keep it as a safety net while real-time threads leave the CPU free in every period; once they are known to, \
         `sysctl kernel.sched_rt_runtime_us=-1` removes it",
    )
}

/// Judges the time that the kernel gives to ordinary threads, whatever kernel.sched_rt_runtime_us says.
fn fair_server(share_ns: Option<i64>, throttling: Subject) -> Finding {
    let subject = Subject {
        why: "the kernel gives ordinary threads that wait a share of a CPU that real-time threads fill",
        ..throttling
    };
    let share = match share_ns {
        Some(0) => {
            return subject.good("the fair server is off: real-time threads may fill the CPU");
        }
        Some(ns) => format!("{} ms", ns / 1_000_000),
        None => "50 ms, unless that was changed,".to_owned(),
    };
    subject.advice(
        format!(
            "ordinary threads that wait get {share} of every second of a CPU that real-time threads fill (the fair server of Linux 6.12 \
             and newer), whatever kernel.sched_rt_runtime_us says"
        ),
        "keep it as a safety net while real-time threads leave 5 % of the CPU free; otherwise keep ordinary threads away from that CPU, \
         or write 0 to /sys/kernel/debug/sched/fair_server/cpuN/runtime",
    )
}

/// Whether the kernel serves ordinary threads by a reservation and stops no real-time thread outside of a group: from 6.12 on.
fn has_fair_server(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    let version = (numbers.next(), numbers.next());
    matches!(version, (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 12))
}

fn interrupt_threads(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "interrupt-threads",
        "an interrupt handler that is no thread runs before every thread, however urgent, and for as long as it likes",
    );
    match host.kernel_options.interrupt_threads {
        Some(true) => SUBJECT.good("interrupt handlers run in threads, which have priorities"),
        Some(false) => SUBJECT.advice(
            "interrupt handlers run before all threads",
            "boot with `threadirqs`, or a PREEMPT_RT kernel, which does so always; then give the threads irq/... the \
             priorities that their devices deserve (`chrt -p`)",
        ),
        None => SUBJECT.unknown(
            "the kernel's command line is not visible, and with it whether handlers run in threads",
            "look for `threadirqs` in /proc/cmdline on the host itself",
        ),
    }
}

fn kernel_threads(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "kernel-threads",
        "a program's threads above those of the kernel keep its devices waiting, those below wait for them: choose \
              which",
    );
    let Some(threads) = &host.kernel_threads else {
        return SUBJECT.unknown(
            "the priorities of kernel threads are not visible",
            "look at `ps -eo rtprio,comm` outside the container",
        );
    };
    let mut kinds: Vec<(&String, &u32)> = threads.iter().collect();
    kinds.sort_by_key(|(name, priority)| (std::cmp::Reverse(**priority), *name));
    let shown: Vec<String> = kinds
        .iter()
        .map(|(name, priority)| format!("{name} {priority}"))
        .collect();
    SUBJECT.good(if shown.is_empty() {
        "no kernel thread has a real-time priority".to_owned()
    } else {
        format!("real-time priorities in the kernel: {}", shown.join(", "))
    })
}

fn debugging(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "kernel-debugging",
        "options for finding defects check every lock or memory access: the kernel takes several times as long",
    );
    let options = &host.kernel_options;
    if !options.configuration_visible {
        return SUBJECT.unknown(
            "the kernel's configuration cannot be read, and with it whether it has options that make it slow",
            "look for PROVE_LOCKING and KASAN in /boot/config-RELEASE, or load the module `configs` for /proc/config.gz",
        );
    }
    if options.slow.is_empty() {
        return SUBJECT.good("the kernel has no options that check its every step");
    }
    SUBJECT.advice(
        format!("the kernel is built with {}", options.slow.join(", ")),
        "use a kernel without them to measure and to deploy",
    )
}
