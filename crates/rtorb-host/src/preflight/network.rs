//! What delays packets on their way through the host: devices, queues, and threads without a priority.
//!
//! A finding covers all interfaces, and names those that need a change.

use std::collections::BTreeSet;

use super::{Finding, Subject};
use crate::description::{Host, Interface};
use crate::system::cpu_list;

mod receiving;
mod sending;

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    let mut findings = vec![interfaces(host)];
    findings.extend(receiving::findings(host));
    findings.extend(busy_polling(host));
    findings.extend(sending::queueing_discipline(host));
    findings
}

fn interfaces(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "network-interfaces",
        "calls to other hosts wait in the queues of a network interface, on both hosts",
    );
    let Some(interfaces) = &host.network.interfaces else {
        return SUBJECT.unknown(
            "which network interfaces the host has is not visible",
            "look at /sys/class/net on the host itself, or mount /sys anew in this network namespace",
        );
    };
    let names = interfaces.iter().map(|(name, interface)| {
        if interface.has_device {
            name.clone()
        } else {
            format!("{name} (without a device)")
        }
    });
    SUBJECT.good(if interfaces.is_empty() {
        "only the loopback interface is up".to_owned()
    } else {
        format!("interfaces that are up: {}", listed(names.collect()))
    })
}

/// Interfaces without a device have nothing to poll.
fn busy_polling(host: &Host) -> Option<Finding> {
    const SUBJECT: Subject = Subject::new(
        "busy-polling",
        "a thread that looks for its packet itself needs neither interrupt nor wake-up, and keeps its CPU busy as \
              long as it looks",
    );
    of_devices(host).next()?;
    let network = &host.network;
    let (Some(poll), Some(read)) = (network.busy_poll_us, network.busy_read_us) else {
        return Some(SUBJECT.unknown(
            "whether threads poll network devices is not visible",
            "look at `sysctl net.core.busy_poll net.core.busy_read` on the host itself (the kernel needs \
             CONFIG_NET_RX_BUSY_POLL)",
        ));
    };
    let has_own_cpus = !kept_cpus(host).is_empty();
    let polls = poll > 0 || read > 0;
    let times = format!(
        "waiting threads poll network devices for up to {} us",
        poll.max(read)
    );
    Some(match (polls, has_own_cpus) {
        (true, true) => SUBJECT.good(times),
        (true, false) => SUBJECT.advice(
            format!("{times}, and share their CPUs with others, which wait as long"),
            "`sysctl net.core.busy_poll=0 net.core.busy_read=0`, or isolate CPUs",
        ),
        (false, true) => SUBJECT.advice(
            "no thread polls network devices, although CPUs are kept for real-time work",
            "`sysctl net.core.busy_poll=50 net.core.busy_read=50`, if each real-time thread has a CPU of its own",
        ),
        (false, false) => SUBJECT.good("no thread polls network devices"),
    })
}

impl Subject {
    /// One finding from those about each interface; `None` if no interface has what the subject is about. It names the interfaces of
    /// the highest severity only, so that the text shows what to change next.
    fn of_interfaces(self, verdicts: impl Iterator<Item = Finding>) -> Option<Finding> {
        let mut verdicts: Vec<Finding> = verdicts.collect();
        let severity = verdicts.iter().map(|verdict| verdict.severity).max()?;
        verdicts.retain(|verdict| verdict.severity == severity);
        let hidden = verdicts.len().saturating_sub(SHOWN_MAX);
        verdicts.truncate(SHOWN_MAX);
        let mut whats: Vec<String> = Vec::new();
        let mut hows: Vec<String> = Vec::new();
        for verdict in verdicts {
            whats.push(verdict.what);
            if !verdict.how.is_empty() {
                hows.push(verdict.how);
            }
        }
        if hidden > 0 {
            whats.push(format!("{hidden} more interfaces likewise"));
        }
        hows.dedup();
        Some(self.finding(severity, whats.join("; "), hows.join("; ")))
    }
}

fn of_devices(host: &Host) -> impl Iterator<Item = (&String, &Interface)> {
    let interfaces = host.network.interfaces.iter().flatten();
    interfaces.filter(|(_, interface)| interface.has_device)
}

/// The CPUs that are isolated or have no tick.
fn kept_cpus(host: &Host) -> BTreeSet<usize> {
    let isolated = cpu_list(&host.cpus_isolated);
    isolated
        .into_iter()
        .chain(cpu_list(&host.cpus_nohz_full))
        .collect()
}

/// The first few, and how many more there are.
fn listed(mut names: Vec<String>) -> String {
    let hidden = names.len().saturating_sub(SHOWN_MAX);
    names.truncate(SHOWN_MAX);
    let shown = names.join(", ");
    if hidden > 0 {
        format!("{shown} and {hidden} more")
    } else {
        shown
    }
}

/// Interfaces, interrupts and threads that a finding names.
const SHOWN_MAX: usize = 4;
