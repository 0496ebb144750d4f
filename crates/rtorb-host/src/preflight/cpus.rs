//! Who uses the CPUs, how fast they are, and how deep they sleep.

use super::{Finding, Subject};
use crate::description::Host;
use crate::system::cpu_list;

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    vec![
        isolation(host),
        quota(host),
        nohz(host),
        rcu_callbacks(host),
        governor(host),
        boost(host),
        idle_states(host),
        dma_latency(host),
        smt(host),
    ]
}

fn isolation(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "isolation",
        "a CPU that others use too runs their interrupts and kernel work between ours",
    );
    let isolated = cpu_list(&host.cpus_isolated);
    if host.cpu_measured.is_some_and(|cpu| isolated.contains(&cpu)) {
        return SUBJECT.good(format!("isolated CPUs: {}", host.cpus_isolated));
    }
    if !isolated.is_empty() {
        return SUBJECT.advice(
            format!(
                "isolated CPUs: {}, but this process may use only {}",
                host.cpus_isolated,
                host.cpus_allowed.as_deref().unwrap_or("others")
            ),
            "allow it there: `taskset -c LIST`, AllowedCPUs= in systemd, --cpuset-cpus in a container",
        );
    }
    let how = match host.cpus_online {
        1 => "one CPU cannot be kept for real-time work alone: give the machine a second",
        _ => {
            "boot with isolcpus=domain,managed_irq,LIST nohz_full=LIST rcu_nocbs=LIST irqaffinity=THE-OTHERS and place \
             real-time threads there; without a reboot, an isolated cpuset (cpuset.cpus.partition)"
        }
    };
    SUBJECT.advice(
        format!("no CPU is isolated (of {} online)", host.cpus_online),
        how,
    )
}

fn quota(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "cpu-quota",
        "a control group that has used up its quota stands still until its next period begins; only threads with a real-time \
              policy go on",
    );
    let Some(quota) = &host.cpu_quota else {
        if host.cpu_groups_visible {
            return SUBJECT.good("no CPU quota limits this process");
        }
        return SUBJECT.unknown(
            "the control group of this process is not visible, and with it whether a CPU quota limits the process",
            "look at `cpu.max` (or `cpu.cfs_quota_us`) of its group on the host itself, or mount /sys/fs/cgroup here",
        );
    };
    let counted = match (quota.throttled_periods, quota.periods) {
        (Some(throttled), Some(periods)) => format!(
            "; it was stopped in {throttled} of {periods} periods, for {} ms in all",
            quota.throttled_us.unwrap_or(0) / 1_000
        ),
        _ => String::new(),
    };
    let what = format!(
        "the control group {} may use {} us of CPU time in each {} us{counted}",
        quota.group, quota.quota_us, quota.period_us
    );
    let none = if quota.file.ends_with("cpu.max") {
        "max"
    } else {
        "-1"
    };
    let how = format!(
        "remove the quota (`echo {none} > {}` as root; CPUQuota= in systemd, --cpus of a container, a limit of cpu in Kubernetes), or \
         give the threads that have deadlines a real-time policy",
        quota.file
    );
    if quota.throttled_periods.is_some_and(|periods| periods > 0) && !host.fifo_granted {
        SUBJECT.unfit(what, &how)
    } else {
        SUBJECT.advice(what, &how)
    }
}

fn nohz(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "nohz",
        "the tick interrupts each busy CPU 100 to 1000 times a second, for some microseconds",
    );
    if includes_measured(host, &host.cpus_nohz_full) {
        return SUBJECT.good(format!(
            "CPUs without tick while one thread runs: {}",
            host.cpus_nohz_full
        ));
    }
    SUBJECT.advice(
        "the tick runs on the CPU that is measured on",
        "boot with nohz_full=LIST for isolated CPUs (the kernel needs CONFIG_NO_HZ_FULL); it pays for threads that \
         compute for long, not for those that wait for calls",
    )
}

fn rcu_callbacks(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "rcu-callbacks",
        "the kernel frees memory later, in batches, on the CPU that let go of it: between the steps of a call",
    );
    // Without a tick a CPU leaves them to others too.
    let list = host.cpus_rcu_nocbs.as_deref();
    let elsewhere = includes_measured(host, &host.cpus_nohz_full)
        || list.is_some_and(|list| list == "all" || includes_measured(host, list));
    match (elsewhere, list) {
        (true, _) => SUBJECT.good("other CPUs do the kernel's deferred work"),
        (false, None) => SUBJECT.unknown(
            "the kernel's command line is not visible, and with it who does its deferred work",
            "look for `rcu_nocbs` in /proc/cmdline on the host itself",
        ),
        (false, Some(_)) => SUBJECT.advice(
            "the CPU that is measured on does the kernel's deferred work",
            "boot with rcu_nocbs=LIST for isolated CPUs (the kernel needs CONFIG_RCU_NOCB_CPU)",
        ),
    }
}

fn governor(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "governor",
        "a CPU that changes its frequency needs time to come back to speed when work arrives",
    );
    match host.governor.as_deref() {
        Some("performance") => SUBJECT.good("the frequency governor is performance"),
        Some(other) => SUBJECT.advice(
            format!("the frequency governor is {other}"),
            "`cpupower frequency-set -g performance`",
        ),
        None => SUBJECT.unknown(
            "the kernel controls no frequency: if firmware or a hypervisor does, it does not show here",
            "choose the profile for performance in the firmware, and on the host of a virtual machine its governor",
        ),
    }
}

fn boost(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "boost",
        "how fast a boosted CPU is depends on its heat and on what the other cores do: a deadline must hold without",
    );
    match host.boost {
        Some(false) => SUBJECT.good("CPUs run no faster than they always can"),
        Some(true) => SUBJECT.advice(
            "CPUs are boosted as long as they stay cool (turbo)",
            "`echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo` or `echo 0 > \
             /sys/devices/system/cpu/cpufreq/boost`, where it exists; or in the firmware",
        ),
        None => SUBJECT.unknown(
            "whether CPUs are boosted (turbo) is not visible",
            "look in the firmware, or on the host of a virtual machine",
        ),
    }
}

fn idle_states(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "idle-states",
        "work that comes to a sleeping CPU waits until it is awake, and its caches are cold",
    );
    const HOW: &str = "hold /dev/cpu_dma_latency open with a 0 in it as long as deadlines count, as the laboratory does \
                       while it measures; or boot with processor.max_cstate=1 (x86) or cpuidle.off=1";
    let idling = &host.idling;
    if idling.polls {
        return SUBJECT.good("idle CPUs do not sleep (idle=poll)");
    }
    let Some(deepest) = idling.deepest() else {
        return SUBJECT.unknown(
            format!(
                "how deep idle CPUs sleep is not visible (driver: {})",
                idling.driver.as_deref().unwrap_or("none")
            ),
            "look at /sys/devices/system/cpu/cpu*/cpuidle on the host itself; `cyclictest` shows what a wake-up takes",
        );
    };
    let state = format!(
        "{}, which takes {} us to leave",
        deepest.name, deepest.exit_latency_us
    );
    if deepest.exit_latency_us <= EXIT_LATENCY_US_MAX {
        return SUBJECT.good(format!("the deepest idle state is {state}"));
    }
    if host.cpu_dma_latency_held {
        return SUBJECT.good(format!(
            "the deepest idle state is {state}, but it was not entered while /dev/cpu_dma_latency was held"
        ));
    }
    SUBJECT.advice(format!("idle CPUs sleep as deep as {state}"), HOW)
}

fn dma_latency(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "cpu-dma-latency",
        "only who may open /dev/cpu_dma_latency can keep CPUs from deep sleep for as long as it runs",
    );
    match &host.cpu_dma_latency_refused {
        None if host.cpu_dma_latency_held => {
            SUBJECT.good("/dev/cpu_dma_latency is held at 0 while it is measured")
        }
        None => SUBJECT.good("/dev/cpu_dma_latency can be held open"),
        Some(reason) => SUBJECT.advice(
            format!("/dev/cpu_dma_latency cannot be held open: {reason}"),
            "run as root, or let a udev rule give the device to the program's group: KERNEL==\"cpu_dma_latency\", \
             GROUP=\"realtime\", MODE=\"0660\"; in a container, --device /dev/cpu_dma_latency",
        ),
    }
}

fn smt(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "smt",
        "two CPUs that share a core slow each other down unpredictably",
    );
    match host.smt_active {
        Some(false) => SUBJECT.good("no two CPUs share a core, as far as the kernel sees"),
        Some(true) => SUBJECT.advice(
            "two CPUs share each core (SMT is active)",
            "leave the sibling of a real-time CPU idle, or `echo off > /sys/devices/system/cpu/smt/control`",
        ),
        None => SUBJECT.unknown(
            "whether CPUs share cores is not visible",
            "look at /sys/devices/system/cpu/cpu*/topology on the host itself",
        ),
    }
}

fn includes_measured(host: &Host, list: &str) -> bool {
    host.cpu_measured
        .is_some_and(|cpu| cpu_list(list).contains(&cpu))
}

/// What a halt without deeper sleep takes: C1 and WFI have 1 to 3 us in the drivers' tables, C1E and C3 10 and more.
const EXIT_LATENCY_US_MAX: u64 = 5;
