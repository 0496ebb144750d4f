//! What this process may do.

use super::{Finding, Subject};
use crate::description::Host;
use crate::system::FIFO_PRIORITY;
use rtorb_os::CpuGroup;

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    vec![
        fifo(host),
        groups(host),
        rtprio(host),
        rttime(host),
        memory_lock(host),
        capabilities(host),
        open_files(host),
    ]
}

fn fifo(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "fifo",
        "a call keeps its priority only if its threads are scheduled by priority",
    );
    if host.fifo_granted {
        return SUBJECT.good("SCHED_FIFO is granted");
    }
    const HOW: &str = "run with the capability CAP_SYS_NICE, or set `rtprio 99` for the user in /etc/security/limits.conf (systemd: \
                       LimitRTPRIO=99); in a container, add --cap-add SYS_NICE --ulimit rtprio=99";
    let is_within_limit = |limit| limit >= u64::from(FIFO_PRIORITY);
    let has_right = holds(host, "CAP_SYS_NICE") || host.rtprio_limit.is_none_or(is_within_limit);
    match cause_in_group(host) {
        Some((cause, remedy)) if has_right => {
            SUBJECT.unfit(format!("SCHED_FIFO is refused: {cause}"), &remedy)
        }
        Some((cause, remedy)) => SUBJECT.unfit(
            format!("SCHED_FIFO is refused: {cause}"),
            format!("{remedy}; and {HOW}"),
        ),
        None => SUBJECT.unfit(
            format!(
                "SCHED_FIFO is refused (real-time priority limit {})",
                shown(host.rtprio_limit)
            ),
            HOW,
        ),
    }
}

/// Why the control group of this process refuses SCHED_FIFO, if it does, and what to do.
fn cause_in_group(host: &Host) -> Option<(String, String)> {
    let groups = &host.real_time_groups;
    let has_none = groups.active == Some(true) && groups.runtime_us == Some(0);
    has_none.then(|| {
        let name = groups.group.as_deref().unwrap_or("unknown");
        let remedy = CpuGroup::remedy(groups.root_procs.as_deref());
        (CpuGroup::cause(name), remedy)
    })
}

fn groups(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "rt-groups",
        "a kernel with CONFIG_RT_GROUP_SCHED gives real-time time to control groups, and a new group has none: \
              SCHED_FIFO is refused in it whatever the limits allow",
    );
    if let Some((cause, remedy)) = cause_in_group(host) {
        return if host.fifo_granted {
            SUBJECT.advice(
                format!("{cause} of its own, though SCHED_FIFO was granted here"),
                &remedy,
            )
        } else {
            SUBJECT.unfit(format!("{cause}: SCHED_FIFO is refused"), &remedy)
        };
    }
    let groups = &host.real_time_groups;
    let group = groups.group.as_deref().unwrap_or("unknown");
    match (groups.active, groups.runtime_us) {
        (Some(false), _) => SUBJECT.good("real-time time is not divided between control groups"),
        (Some(true), Some(_)) if group == "/" => SUBJECT.good(
            "real-time time is divided between control groups, and this process is in the root group",
        ),
        (Some(true), Some(runtime)) => SUBJECT.advice(
            format!("the control group {group} may use {runtime} us of real-time time each period"),
            "give the group as much as its real-time threads need (cpu.rt_runtime_us)",
        ),
        _ if host.fifo_granted => SUBJECT.good("no control group keeps SCHED_FIFO from this process"),
        _ => SUBJECT.unknown(
            "whether control groups divide real-time time is not visible",
            "look for CONFIG_RT_GROUP_SCHED in the kernel's configuration, and at cpu.rt_runtime_us of the process' \
             group",
        ),
    }
}

fn rtprio(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "rtprio",
        "a thread that asks for a priority above the limit is refused, and with it the priority of its calls",
    );
    if holds(host, "CAP_SYS_NICE") {
        return SUBJECT.good("every real-time priority may be asked for (CAP_SYS_NICE)");
    }
    match host.rtprio_limit {
        None => SUBJECT.good("real-time priorities have no limit"),
        Some(limit) if limit >= PRIORITY_MAX => {
            SUBJECT.good("every real-time priority may be asked for (rtprio limit)")
        }
        Some(limit) => SUBJECT.advice(
            format!("real-time priorities above {limit} are refused"),
            "set `rtprio 99` for the user in /etc/security/limits.conf (systemd: LimitRTPRIO=99)",
        ),
    }
}

fn rttime(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "rttime",
        "a real-time thread that does not block for so long is ended by a signal (RLIMIT_RTTIME)",
    );
    match host.rttime_limit_us {
        None => SUBJECT.good("a real-time thread may run as long as it needs"),
        Some(limit) => SUBJECT.advice(
            format!("a real-time thread that runs for {limit} us without blocking is ended"),
            "raise it with `prlimit --rttime=unlimited` or LimitRTTIME=infinity in systemd; desktops set it for audio",
        ),
    }
}

fn memory_lock(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "memory-lock",
        "a page fault inside a call takes as long as the disk does",
    );
    let enough = host
        .memory_lock_bytes
        .is_none_or(|bytes| bytes >= MEMORY_LOCK_BYTES_MIN);
    if enough || host.may_lock_memory {
        return SUBJECT.good("memory can be locked");
    }
    SUBJECT.unfit(
        format!(
            "only {} KiB of memory can be locked",
            host.memory_lock_bytes.unwrap_or(0) / 1024
        ),
        "set `memlock unlimited` for the user in /etc/security/limits.conf (systemd: LimitMEMLOCK=infinity), or give \
         the program CAP_IPC_LOCK",
    )
}

fn capabilities(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "capabilities",
        "packets of urgent calls go first in this host's queues only as far as SO_PRIORITY may be set: up to 6 for \
              everybody, above with CAP_NET_ADMIN",
    );
    let Some(held) = &host.capabilities else {
        return SUBJECT.unknown(
            "the capabilities of this process are not visible",
            "look at CapEff in /proc/self/status",
        );
    };
    if holds(host, "CAP_NET_ADMIN") {
        return SUBJECT.good(format!("held: {}", held.join(", ")));
    }
    let others = if held.is_empty() {
        "no other that matters here is held".to_owned()
    } else {
        format!("held: {}", held.join(", "))
    };
    SUBJECT.advice(
        format!("CAP_NET_ADMIN is not held ({others})"),
        "nothing, unless network priorities above 6 are configured; then `setcap cap_net_admin+ep PROGRAM`, or \
         --cap-add NET_ADMIN in a container",
    )
}

fn open_files(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "open-files",
        "each connection of a server is an open file: beyond the limit new clients are turned away",
    );
    match host.open_files_limit {
        Some(limit) if limit < OPEN_FILES_MIN => SUBJECT.advice(
            format!("only {limit} files and connections can be open"),
            "`ulimit -n 4096`, or LimitNOFILE=4096 in systemd",
        ),
        limit => SUBJECT.good(format!(
            "files and connections that can be open: {}",
            shown(limit)
        )),
    }
}

fn holds(host: &Host, capability: &str) -> bool {
    let held = host.capabilities.as_deref().unwrap_or_default();
    held.iter().any(|name| name == capability)
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string())
}

/// Of SCHED_FIFO.
const PRIORITY_MAX: u64 = 99;
/// A small ORB process with its stacks and buffers.
const MEMORY_LOCK_BYTES_MIN: u64 = 64 << 20;
/// The ORB's own bound on connections is 1024 unless it is configured.
const OPEN_FILES_MIN: u64 = 1024;
