//! The host in words, for the page.

use rtorb_host::Host;

/// The host in one line.
pub(crate) fn line(host: &Host) -> String {
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
pub(crate) fn rows(host: &Host) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("Name", or_unknown(&host.name)),
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
    rows.extend(sleep_rows(host));
    rows.extend(limit_rows(host));
    rows.extend(taken_rows(host));
    rows
}

fn sleep_rows(host: &Host) -> Vec<(&'static str, String)> {
    let idling = &host.idling;
    let deepest = idling
        .deepest()
        .map(|state| format!("{}, {} us to leave", state.name, state.exit_latency_us));
    let held = match (host.cpu_dma_latency_held, &host.cpu_dma_latency_refused) {
        (true, _) => "held at 0 while it was measured".to_owned(),
        (false, Some(reason)) => format!("not held: {reason}"),
        (false, None) => "not held".to_owned(),
    };
    vec![
        ("Boost", on_or_off(host.boost)),
        (
            "Deepest idle state",
            deepest.unwrap_or_else(|| "none visible".to_owned()),
        ),
        ("/dev/cpu_dma_latency", held),
    ]
}

/// What takes time or memory from a program.
fn taken_rows(host: &Host) -> Vec<(&'static str, String)> {
    let stolen = &host.stolen;
    let percent = |ppm: Option<u64>| {
        ppm.map_or("unknown".to_owned(), |ppm| {
            format!("{:.3} %", ppm as f64 / 1e4)
        })
    };
    let interrupts = &host.interrupts;
    let device_interrupts = match (interrupts.allowed, interrupts.devices, interrupts.handled) {
        (Some(allowed), Some(devices), Some(handled)) => {
            format!("{allowed} of {devices} may come to the measured CPU, {handled} did since boot")
        }
        _ => "unknown".to_owned(),
    };
    let memory = &host.memory_moves;
    vec![
        ("Device interrupts", device_interrupts),
        (
            "Stolen time",
            format!(
                "{} since boot, {} in {} ms before",
                percent(stolen.since_boot_ppm),
                percent(stolen.watched_ppm),
                stolen.watched_ms
            ),
        ),
        (
            "SMIs since boot",
            stolen
                .smi_since_boot
                .map_or("not visible".to_owned(), |count| count.to_string()),
        ),
        (
            "Swap",
            memory
                .swap_bytes
                .map_or("unknown".to_owned(), |bytes| format!("{} MiB", bytes >> 20)),
        ),
        ("Transparent huge pages", or_unknown(&memory.huge_pages)),
    ]
}

fn on_or_off(switch: Option<bool>) -> String {
    match switch {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    }
    .to_owned()
}

fn cpu_rows(host: &Host) -> Vec<(&'static str, String)> {
    vec![
        (
            "CPU",
            format!("{} × {}", host.cpus_online, or_unknown(&host.cpu_model)),
        ),
        (
            "Measured on CPU",
            host.cpu_measured
                .map_or("unknown".to_owned(), |cpu| cpu.to_string()),
        ),
        ("CPUs allowed", or_unknown(&host.cpus_allowed)),
        ("CPUs isolated", or_none(&host.cpus_isolated)),
        ("CPUs without tick", or_none(&host.cpus_nohz_full)),
        ("SMT", on_or_off(host.smt_active)),
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
