//! The host in words, for the page.

use crate::host::Host;

/// The host in one line.
pub(super) fn line(host: &Host) -> String {
    let cpu = host.cpu_model.as_deref().unwrap_or(&host.machine);
    let rt = if host.preempt_rt {
        "PREEMPT_RT"
    } else {
        "not PREEMPT_RT"
    };
    format!(
        "{} × {cpu}, Linux {} ({rt})",
        host.cpus_online, host.kernel_release
    )
}

/// Everything known about the host, name and value.
pub(super) fn rows(host: &Host) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        (
            "Kernel",
            format!("{} {}", host.kernel_release, host.kernel_version),
        ),
        ("Preemption", host.preemption.clone()),
        (
            "Clock",
            format!(
                "{}, {} ns",
                or_unknown(&host.clock_source),
                host.clock_resolution_ns
            ),
        ),
        ("Virtualisation", host.virtualisation.clone()),
        ("Load before", or_unknown(&host.load_average)),
    ];
    rows.extend(cpu_rows(host));
    rows.extend(limit_rows(host));
    rows
}

fn cpu_rows(host: &Host) -> Vec<(&'static str, String)> {
    let smt = host
        .smt_active
        .map_or("unknown", |active| if active { "active" } else { "off" });
    vec![
        (
            "CPU",
            format!("{} × {}", host.cpus_online, or_unknown(&host.cpu_model)),
        ),
        ("CPUs allowed", or_unknown(&host.cpus_allowed)),
        ("CPUs isolated", or_none(&host.cpus_isolated)),
        ("CPUs without tick", or_none(&host.cpus_nohz_full)),
        ("SMT", smt.to_owned()),
        (
            "Frequency governor",
            host.governor
                .clone()
                .unwrap_or_else(|| "none visible".to_owned()),
        ),
    ]
}

fn limit_rows(host: &Host) -> Vec<(&'static str, String)> {
    let throttling = match (host.rt_runtime_us, host.rt_period_us) {
        (Some(runtime), Some(period)) if runtime >= 0 => {
            format!("{runtime} us of every {period} us")
        }
        (Some(_), _) => "off".to_owned(),
        _ => "unknown".to_owned(),
    };
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    vec![
        (
            "SCHED_FIFO",
            if host.fifo_granted {
                "granted"
            } else {
                "refused"
            }
            .to_owned(),
        ),
        ("Real-time share", throttling),
        (
            "Priority limit",
            host.rtprio_limit
                .map_or("none".to_owned(), |limit| limit.to_string()),
        ),
        (
            "Memory lock limit",
            host.memory_lock_bytes.map_or("none".to_owned(), mebibytes),
        ),
        (
            "Memory",
            host.memory_bytes.map_or("unknown".to_owned(), mebibytes),
        ),
    ]
}

fn or_unknown(value: &Option<String>) -> String {
    value.clone().unwrap_or_else(|| "unknown".to_owned())
}

fn or_none(list: &str) -> String {
    if list.is_empty() {
        "none".to_owned()
    } else {
        list.to_owned()
    }
}
