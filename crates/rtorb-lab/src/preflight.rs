//! Is this host fit for real time: what stands in the way, why it matters, and how to change it.

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// One thing about the host that a real-time program should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A short name that scripts may compare: `fifo`, `preempt-rt`, ...
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// Why it matters to a deadline.
    pub why: String,
    /// How to change it; empty when nothing needs to change.
    pub how: String,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Good,
    /// Deadlines hold less surely, or later, than they could.
    Advice,
    /// Deadlines cannot be relied on while it is so.
    Unfit,
}

impl Severity {
    /// The word that is printed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Advice => "advice",
            Self::Unfit => "unfit",
        }
    }
}

/// Every finding about a host, the gravest first.
#[must_use]
pub fn findings(host: &Host) -> Vec<Finding> {
    let mut findings = vec![
        fifo(host),
        memory_lock(host),
        preempt_rt(host),
        throttling(host),
        clock(host),
        governor(host),
        isolation(host),
        virtualisation(host),
    ];
    findings.extend(smt(host));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// Whether nothing found makes deadlines unreliable.
#[must_use]
pub fn is_fit(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.severity != Severity::Unfit)
}

fn fifo(host: &Host) -> Finding {
    let why = "a call keeps its priority only if its threads are scheduled by priority";
    if host.fifo_granted {
        return good("fifo", "SCHED_FIFO is granted", why);
    }
    Finding {
        id: "fifo".to_owned(),
        severity: Severity::Unfit,
        what: format!("SCHED_FIFO is refused (real-time priority limit {})", shown(host.rtprio_limit)),
        why: why.to_owned(),
        how: "run with the capability CAP_SYS_NICE, or set `rtprio 99` for the user in /etc/security/limits.conf \
              (systemd: LimitRTPRIO=99); in a container, add --cap-add SYS_NICE --ulimit rtprio=99"
            .to_owned(),
    }
}

fn memory_lock(host: &Host) -> Finding {
    let why = "a page fault inside a call takes as long as the disk does";
    let enough = host
        .memory_lock_bytes
        .is_none_or(|bytes| bytes >= MEMORY_LOCK_BYTES_MIN);
    if enough || host.may_lock_memory {
        return good("memory-lock", "memory can be locked", why);
    }
    Finding {
        id: "memory-lock".to_owned(),
        severity: Severity::Unfit,
        what: format!("only {} KiB of memory can be locked", host.memory_lock_bytes.unwrap_or(0) / 1024),
        why: why.to_owned(),
        how: "set `memlock unlimited` for the user in /etc/security/limits.conf (systemd: LimitMEMLOCK=infinity), \
              or give the program CAP_IPC_LOCK"
            .to_owned(),
    }
}

fn preempt_rt(host: &Host) -> Finding {
    let why = "without PREEMPT_RT the kernel finishes interrupt work and its own locks before an urgent thread runs: \
               mostly microseconds, now and then milliseconds";
    if host.preempt_rt {
        return good("preempt-rt", "the kernel is PREEMPT_RT", why);
    }
    Finding {
        id: "preempt-rt".to_owned(),
        severity: Severity::Unfit,
        what: format!("the kernel is not PREEMPT_RT (preemption: {})", host.preemption),
        why: why.to_owned(),
        how: "install the distribution's real-time kernel (Debian: linux-image-rt-amd64; Ubuntu: the real-time \
              kernel), or build 6.12 or newer with CONFIG_PREEMPT_RT"
            .to_owned(),
    }
}

fn throttling(host: &Host) -> Finding {
    let why = "when real-time tasks have used their share of a period, the kernel stops them until the next";
    let (Some(runtime), Some(period)) = (host.rt_runtime_us, host.rt_period_us) else {
        return good(
            "rt-throttling",
            "the kernel has no real-time throttling",
            why,
        );
    };
    if runtime < 0 || runtime >= period {
        return good("rt-throttling", "real-time throttling is off", why);
    }
    Finding {
        id: "rt-throttling".to_owned(),
        severity: Severity::Advice,
        what: format!("real-time tasks may use {runtime} us of every {period} us"),
        why: why.to_owned(),
        how: "keep it as a safety net while real-time threads leave the CPU free in every period; once they are known \
              to, `sysctl kernel.sched_rt_runtime_us=-1` removes it"
            .to_owned(),
    }
}

fn clock(host: &Host) -> Finding {
    let why = "a slow clock source makes every timestamp and timer a system call or an exit to the hypervisor";
    let name = host.clock_source.as_deref().unwrap_or("unknown");
    if FAST_CLOCKS.contains(&name) && host.clock_resolution_ns <= CLOCK_RESOLUTION_NS_MAX {
        return good(
            "clock",
            &format!(
                "clock source {name}, resolution {} ns",
                host.clock_resolution_ns
            ),
            why,
        );
    }
    let coarse = host.clock_resolution_ns > CLOCK_RESOLUTION_NS_MAX;
    Finding {
        id: "clock".to_owned(),
        severity: if coarse { Severity::Unfit } else { Severity::Advice },
        what: format!("clock source {name}, resolution {} ns", host.clock_resolution_ns),
        why: why.to_owned(),
        how: "boot with clocksource=tsc tsc=reliable where the CPU's counter is invariant, and highres=on".to_owned(),
    }
}

fn governor(host: &Host) -> Finding {
    let why = "a CPU that changes its frequency needs time to come back to speed when work arrives";
    match host.governor.as_deref() {
        Some("performance") => good("governor", "the frequency governor is performance", why),
        None => good("governor", "the kernel does not change the CPU's frequency (or the host above does)", why),
        Some(other) => Finding {
            id: "governor".to_owned(),
            severity: Severity::Advice,
            what: format!("the frequency governor is {other}"),
            why: why.to_owned(),
            how: "`cpupower frequency-set -g performance`, and limit deep idle states (/dev/cpu_dma_latency)"
                .to_owned(),
        },
    }
}

fn isolation(host: &Host) -> Finding {
    let why = "a CPU that others use too runs their interrupts and kernel work between ours";
    if !host.cpus_isolated.is_empty() {
        return good(
            "isolation",
            &format!("isolated CPUs: {}", host.cpus_isolated),
            why,
        );
    }
    let how = if host.cpus_online > 1 {
        "boot with isolcpus=domain,managed_irq,LIST nohz_full=LIST rcu_nocbs=LIST irqaffinity=THE-OTHERS and place \
         real-time threads there"
    } else {
        "one CPU cannot be kept for real-time work alone: give the machine a second"
    };
    Finding {
        id: "isolation".to_owned(),
        severity: Severity::Advice,
        what: format!("no CPU is isolated (of {} online)", host.cpus_online),
        why: why.to_owned(),
        how: how.to_owned(),
    }
}

fn virtualisation(host: &Host) -> Finding {
    let why = "the hypervisor takes the CPU away without telling: no setting inside bounds that";
    if host.virtualisation == "none" || host.virtualisation == "container" {
        return good("virtualisation", "no hypervisor is seen", why);
    }
    Finding {
        id: "virtualisation".to_owned(),
        severity: Severity::Advice,
        what: format!("runs inside: {}", host.virtualisation),
        why: why.to_owned(),
        how: "measure on the machine that will carry the load; inside a virtual machine, pin its CPUs to dedicated \
              real ones and compare medians and ratios, not maxima"
            .to_owned(),
    }
}

fn smt(host: &Host) -> Option<Finding> {
    let why = "two CPUs that share a core slow each other down unpredictably";
    host.smt_active?.then(|| Finding {
        id: "smt".to_owned(),
        severity: Severity::Advice,
        what: "two CPUs share each core (SMT is active)".to_owned(),
        why: why.to_owned(),
        how: "leave the sibling of a real-time CPU idle, or `echo off > /sys/devices/system/cpu/smt/control`"
            .to_owned(),
    })
}

fn good(id: &str, what: &str, why: &str) -> Finding {
    Finding {
        id: id.to_owned(),
        severity: Severity::Good,
        what: what.to_owned(),
        why: why.to_owned(),
        how: String::new(),
    }
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}

/// A small ORB process with its stacks and buffers.
const MEMORY_LOCK_BYTES_MIN: u64 = 64 << 20;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fit_host() -> Host {
        let mut host = Host::describe();
        host.preempt_rt = true;
        host.fifo_granted = true;
        host.may_lock_memory = true;
        host.rt_runtime_us = Some(-1);
        host.clock_source = Some("tsc".to_owned());
        host.clock_resolution_ns = 1;
        host.governor = Some("performance".to_owned());
        host.cpus_isolated = "1".to_owned();
        host.virtualisation = "none".to_owned();
        host.smt_active = Some(false);
        host
    }

    #[test]
    fn a_fit_host_has_only_good_findings() {
        let findings = findings(&fit_host());
        assert!(is_fit(&findings));
        assert!(
            findings
                .iter()
                .all(|finding| finding.severity == Severity::Good && finding.how.is_empty())
        );
    }

    #[test]
    fn what_makes_it_unfit_comes_first_and_says_what_to_do() {
        let mut host = fit_host();
        host.fifo_granted = false;
        let findings = findings(&host);
        assert!(!is_fit(&findings));
        assert_eq!(findings[0].id, "fifo");
        assert!(
            findings
                .iter()
                .all(|finding| finding.severity == Severity::Good || !finding.how.is_empty())
        );
    }

    #[test]
    fn advice_alone_leaves_it_fit() {
        let mut host = fit_host();
        host.governor = Some("powersave".to_owned());
        host.cpus_isolated = String::new();
        host.smt_active = Some(true);
        assert!(is_fit(&findings(&host)));
    }
}
