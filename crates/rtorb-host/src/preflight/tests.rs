//! What is found on machines that are good and on such as are not.

use super::*;
use crate::description::{Coalescing, Interface};
use fake::Machine;

mod fake;
mod network;

#[test]
fn a_tuned_machine_has_only_good_findings() {
    let findings = findings(&Machine::tuned_x86().describe());
    assert!(is_fit(&findings));
    for finding in &findings {
        assert_eq!(finding.severity, Severity::Good, "{finding:?}");
        assert!(finding.how.is_empty(), "{finding:?}");
    }
}

#[test]
fn a_real_time_board_is_fit_and_what_its_firmware_takes_is_not_visible() {
    let host = Machine::rt_board().describe();
    assert_eq!((host.cpu_measured, host.preempt_rt), (Some(3), true));
    assert_eq!(host.cpu_model.as_deref(), Some("Raspberry Pi 5 Model B"));
    assert_eq!(
        (host.virtualisation.as_str(), host.tsc_trusted),
        ("none", None)
    );
    let threads = host.kernel_threads.clone().unwrap();
    assert_eq!((threads["irq"], threads["ktimers"]), (50, 1));
    let findings = findings(&host);
    assert!(is_fit(&findings));
    assert_eq!(findings[0].id, "smi");
    assert_eq!(findings[0].severity, Severity::Unknown);
    assert!(findings[0].how.contains("rtla hwnoise"));
    let others = &findings[1..];
    assert!(
        others
            .iter()
            .all(|finding| finding.severity == Severity::Good)
    );
}

#[test]
fn a_laptop_needs_everything() {
    let host = Machine::laptop().describe();
    let findings = findings(&host);
    assert!(!is_fit(&findings));
    assert_eq!(
        of(&findings, Severity::Unfit),
        ["preempt-rt", "fifo", "memory-lock"]
    );
    let advice = [
        "rt-throttling",
        "interrupt-threads",
        "kernel-debugging",
        "rtprio",
        "rttime",
        "capabilities",
        "open-files",
        "swap",
        "huge-pages",
        "isolation",
        "nohz",
        "rcu-callbacks",
        "governor",
        "boost",
        "idle-states",
        "cpu-dma-latency",
        "smt",
        "clock",
        "timer-migration",
        "tsc",
        "irq-affinity",
        "irqbalance",
        "interrupt-coalescing",
        "threaded-napi",
        "queueing-discipline",
    ];
    assert_eq!(of(&findings, Severity::Advice), advice);
    // The module for the register is not loaded.
    assert_eq!(of(&findings, Severity::Unknown), ["smi"]);
    let says = |id: &str, words: &str| {
        let what = &find(&findings, id).what;
        assert!(what.contains(words), "{id}: {what}");
    };
    says("preempt-rt", "voluntary");
    says("memory-lock", "8192 KiB");
    says(
        "swap",
        "2048 MiB of swap, 1024 MiB of it used (swappiness 60)",
    );
    says("irq-affinity", "2 of 2 device interrupts may come to CPU 1");
    says("irq-affinity", "590 (iwlwifi 500, nvme0q1 90)");
    says("idle-states", "C10, which takes 890 us");
    says("kernel-debugging", "DEBUG_PREEMPT");
    says("cpu-dma-latency", "No such file");
    says(
        "network-interfaces",
        "interfaces that are up: docker0 (without a device), wlp2s0",
    );
    says("interrupt-coalescing", "wlp2s0 waits up to 70 us");
    says(
        "network-queues",
        "wlp2s0 (receive queues: 1, transmit queues: 1) interrupts on CPUs 1",
    );
    says("busy-polling", "no thread polls network devices");
    says("queueing-discipline", "(fq_codel)");
}

#[test]
fn a_virtual_machine_says_what_is_taken_from_it() {
    let findings = findings(&Machine::virtual_machine().describe());
    assert!(find(&findings, "virtualisation").what.contains("kvm"));
    let steal = find(&findings, "steal");
    assert_eq!(steal.severity, Severity::Advice);
    assert!(
        steal.what.contains("10.000 % of the time since boot"),
        "{}",
        steal.what
    );
    let groups = find(&findings, "rt-groups");
    assert_eq!(groups.severity, Severity::Advice);
    assert!(
        groups.what.contains("/measure may use 500000 us"),
        "{}",
        groups.what
    );
    assert!(find(&findings, "preempt-rt").what.contains("voluntary"));
    // Governor, boost and sleep are the hypervisor's.
    for id in [
        "governor",
        "boost",
        "idle-states",
        "smi",
        "kernel-debugging",
    ] {
        assert_eq!(find(&findings, id).severity, Severity::Unknown, "{id}");
    }
}

#[test]
fn what_a_container_cannot_see_is_unknown_and_never_guessed() {
    let host = Machine::container().describe();
    assert_eq!(host.virtualisation, "container");
    let findings = findings(&host);
    let unfit = ["preempt-rt", "fifo", "memory-lock"];
    assert_eq!(of(&findings, Severity::Unfit), unfit);
    let unknown = [
        "rt-throttling",
        "interrupt-threads",
        "kernel-threads",
        "kernel-debugging",
        "rt-groups",
        "capabilities",
        "swap",
        "huge-pages",
        "cpu-quota",
        "rcu-callbacks",
        "governor",
        "boost",
        "idle-states",
        "smt",
        "clock",
        "timer-migration",
        "irq-affinity",
        "shared-interrupts",
        "irqbalance",
        "steal",
        "smi",
        "network-interfaces",
    ];
    assert_eq!(of(&findings, Severity::Unknown), unknown);
    assert!(
        find(&findings, "preempt-rt")
            .what
            .contains("preemption: unknown")
    );
}

/// One thing is changed on a machine that is as it should be, and only that is found.
#[test]
fn each_thing_is_found_by_itself() {
    for (id, severity, change) in CHANGES {
        let mut host = Machine::tuned_x86().describe();
        change(&mut host);
        let found = findings(&host);
        assert_eq!(of(&found, severity), [id]);
        let others = found.iter().filter(|finding| finding.id != id);
        assert!(
            others
                .clone()
                .all(|finding| finding.severity == Severity::Good),
            "{id}"
        );
        let finding = find(&found, id);
        assert!(!finding.how.is_empty() && !finding.why.is_empty(), "{id}");
        assert_eq!(&found[0], finding, "the gravest comes first");
        assert_eq!(is_fit(&found), severity != Severity::Unfit, "{id}");
    }
}

#[test]
fn limits_count_only_without_the_capability() {
    let mut host = Machine::tuned_x86().describe();
    host.capabilities = Some(Vec::new());
    host.may_lock_memory = false;
    host.memory_lock_bytes = Some(64 << 20);
    host.rtprio_limit = Some(98);
    let with_limits = findings(&host);
    assert_eq!(
        of(&with_limits, Severity::Advice),
        ["rtprio", "capabilities"]
    );
    host.memory_lock_bytes = Some((64 << 20) - 1);
    host.rtprio_limit = Some(99);
    let found = findings(&host);
    assert_eq!(of(&found, Severity::Unfit), ["memory-lock"]);
    assert_eq!(of(&found, Severity::Advice), ["capabilities"]);
}

#[test]
fn idle_states_are_good_while_the_device_is_held() {
    let mut host = Machine::tuned_x86().describe();
    host.idling.states[2].enabled = true;
    host.cpu_dma_latency_held = true;
    assert!(of(&findings(&host), Severity::Advice).is_empty());
    host.cpu_dma_latency_held = false;
    host.idling.polls = true;
    assert!(of(&findings(&host), Severity::Advice).is_empty());
}

#[test]
fn a_group_without_real_time_time_is_why_fifo_is_refused() {
    let machine = Machine::virtual_machine();
    let share = "/sys/fs/cgroup/cpu,cpuacct/measure/cpu.rt_runtime_us";
    let groups = |fifo_granted| {
        let mut host = machine.describe();
        host.fifo_granted = fifo_granted;
        find(&findings(&host), "rt-groups").clone()
    };
    machine.file(share, "0\n");
    assert_eq!(groups(false).severity, Severity::Unfit);
    assert_eq!(groups(true).severity, Severity::Advice);
    // One cause and one command, of the hierarchy that is mounted, in both findings.
    let mut host = machine.describe();
    host.fifo_granted = false;
    let found = findings(&host);
    let (fifo, groups_how) = (find(&found, "fifo"), groups(false).how);
    assert!(
        fifo.what.contains("/measure has no real-time time"),
        "{}",
        fifo.what
    );
    assert!(fifo.how.starts_with(&groups_how), "{}", fifo.how);
    assert!(
        groups_how.contains("> /sys/fs/cgroup/cpu,cpuacct/cgroup.procs`"),
        "{groups_how}"
    );
    assert!(
        !fifo.how.contains("CAP_SYS_NICE"),
        "the right is held: {}",
        fifo.how
    );
    host.capabilities = Some(Vec::new());
    let needs_right = |host: &Host| {
        let found = findings(host);
        let how = &find(&found, "fifo").how;
        how.contains("; and run with the capability CAP_SYS_NICE")
    };
    assert!(needs_right(&host));
    host.rtprio_limit = Some(49);
    assert!(needs_right(&host), "the limit is below what is asked for");
    host.rtprio_limit = Some(50);
    assert!(!needs_right(&host));
    machine.without(share);
    assert_eq!(
        groups(false).severity,
        Severity::Good,
        "the kernel has no such shares"
    );
}

#[test]
fn in_the_second_hierarchy_only_the_root_group_has_real_time_time() {
    let machine = Machine::laptop();
    let config = "/boot/config-6.8.0-45-generic";
    machine.file(config, "CONFIG_RT_GROUP_SCHED=y\n");
    let slice = "/sys/fs/cgroup/user.slice";
    let scope = "/user-1000.slice/session-2.scope";
    machine.file(&format!("{slice}{scope}/cgroup.controllers"), "memory pids");
    machine.file(
        &format!("{slice}/user-1000.slice/cgroup.controllers"),
        "memory pids",
    );
    machine.file(&format!("{slice}/cgroup.controllers"), "cpu memory pids");
    let groups = || machine.describe().real_time_groups;
    assert_eq!(groups().group.as_deref(), Some("/user.slice"));
    assert_eq!(groups().runtime_us, Some(0));
    let found = findings(&machine.describe());
    assert_eq!(find(&found, "rt-groups").severity, Severity::Unfit);
    let how = &find(&found, "rt-groups").how;
    assert!(how.contains("> /sys/fs/cgroup/cgroup.procs`"), "{how}");
    machine.file(&format!("{slice}/cgroup.controllers"), "memory pids");
    assert_eq!(groups().group.as_deref(), Some("/"));
    assert_eq!(groups().runtime_us, Some(950_000));
    machine.file("/proc/cmdline", "rt_group_sched=0");
    assert_eq!(groups().active, Some(false));
    machine.file("/proc/cmdline", "quiet");
    machine.file(
        config,
        "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n",
    );
    assert_eq!(groups().active, Some(false));
    machine.file("/proc/cmdline", "rt_group_sched=1");
    assert_eq!(groups().active, Some(true));
}

#[test]
fn a_quota_is_found_with_the_periods_in_which_it_stopped_the_group() {
    let machine = Machine::virtual_machine();
    let group = "/sys/fs/cgroup/cpu,cpuacct/measure";
    machine.file(&format!("{group}/cpu.cfs_quota_us"), "-1\n");
    machine.file(&format!("{group}/cpu.cfs_period_us"), "100000\n");
    assert_eq!(machine.describe().cpu_quota, None);
    machine.file(&format!("{group}/cpu.cfs_quota_us"), "50000\n");
    machine.file(
        &format!("{group}/cpu.stat"),
        "nr_periods 70\nnr_throttled 12\nthrottled_time 552000000\n",
    );
    let found = findings(&machine.describe());
    let quota = find(&found, "cpu-quota");
    assert_eq!(quota.severity, Severity::Advice);
    assert_eq!(
        quota.what,
        "the control group /measure may use 50000 us of CPU time in each 100000 us; it was stopped in 12 of 70 periods, for 552 ms in all"
    );
    assert!(
        quota
            .how
            .contains(&format!("`echo -1 > {group}/cpu.cfs_quota_us`")),
        "{}",
        quota.how
    );
}

#[test]
fn the_smallest_quota_of_the_groups_around_the_process_counts() {
    let machine = Machine::laptop();
    let slice = "/sys/fs/cgroup/user.slice";
    let scope = format!("{slice}/user-1000.slice/session-2.scope");
    machine.file(&format!("{scope}/cgroup.controllers"), "cpu\n");
    machine.file(&format!("{scope}/cpu.max"), "max 100000\n");
    machine.file(
        &format!("{slice}/user-1000.slice/cpu.max"),
        "90000 100000\n",
    );
    machine.file(&format!("{slice}/cpu.max"), "20000 50000\n");
    machine.file(
        &format!("{slice}/cpu.stat"),
        "usage_usec 5\nnr_periods 9\nnr_throttled 0\nthrottled_usec 0\n",
    );
    let quota = |machine: &Machine| find(&findings(&machine.describe()), "cpu-quota").clone();
    assert!(
        quota(&machine)
            .what
            .contains("/user.slice may use 20000 us"),
        "{}",
        quota(&machine).what
    );
    assert_eq!(quota(&machine).severity, Severity::Advice);
    machine.file(
        &format!("{slice}/cpu.stat"),
        "nr_periods 9\nnr_throttled 4\nthrottled_usec 120000\n",
    );
    assert_eq!(
        quota(&machine).severity,
        Severity::Unfit,
        "no thread can have a real-time policy"
    );
    assert!(
        quota(&machine)
            .how
            .contains(&format!("`echo max > {slice}/cpu.max`"))
    );
    let mut host = machine.describe();
    host.fifo_granted = true;
    assert_eq!(
        find(&findings(&host), "cpu-quota").severity,
        Severity::Advice
    );
    for wrong in ["", "x", "1 2 3", "-5 100000", "99999999999999999999 1"] {
        machine.file(&format!("{slice}/cpu.max"), wrong);
        let what = quota(&machine).what;
        assert!(
            what.contains("/user-1000.slice may use 90000 us"),
            "{wrong}: {what}"
        );
    }
}

/// No quota is found in a group without one, and in a group that is not seen: the second may have one.
#[test]
fn a_group_that_is_not_visible_may_have_a_quota() {
    let machine = Machine::laptop();
    let quota = |machine: &Machine| find(&findings(&machine.describe()), "cpu-quota").clone();
    assert_eq!(quota(&machine).severity, Severity::Good);
    machine.file("/proc/self/cgroup", "0::/elsewhere\n");
    assert_eq!(quota(&machine).severity, Severity::Unknown);
    machine.file("/proc/self/cgroup", "");
    assert_eq!(quota(&machine).severity, Severity::Unknown);
}

#[test]
fn a_cpuset_isolates_as_the_command_line_does() {
    let machine = Machine::tuned_x86();
    machine.file("/sys/devices/system/cpu/isolated", "");
    machine.file("/sys/fs/cgroup/cpuset.cpus.isolated", "3\n");
    let host = machine.describe();
    assert_eq!(
        (host.cpus_isolated.as_str(), host.cpu_measured),
        ("3", Some(3))
    );
}

#[test]
fn preemption_is_what_the_kernel_runs_and_not_what_it_was_built_for() {
    let machine = Machine::laptop();
    assert_eq!(machine.describe().preemption, "voluntary");
    machine.file("/proc/cmdline", "preempt=full");
    assert_eq!(machine.describe().preemption, "full");
    machine.file(
        "/sys/kernel/debug/sched/preempt",
        "none voluntary (lazy) full",
    );
    assert_eq!(machine.describe().preemption, "lazy");
}

#[test]
fn a_kernel_with_one_preemption_model_does_not_obey_the_boot_option() {
    let machine = Machine::laptop();
    machine.file("/proc/cmdline", "preempt=full");
    machine.file("/sys/kernel/debug/sched/debug", "");
    assert_eq!(machine.describe().preemption, "voluntary");
    assert_eq!(machine.preemption_model(), "voluntary");
    machine.without("/boot/config-6.8.0-45-generic");
    assert_eq!(machine.preemption_model(), "unknown");
    machine.file("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT");
    machine.file("/proc/cmdline", "preempt=lazy");
    assert_eq!(machine.preemption_model(), "full");
    assert_eq!(machine.describe().preemption, "PREEMPT_RT");
    let config = "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_LAZY=y\n";
    machine.file("/boot/config-6.8.0-45-generic", config);
    assert_eq!(machine.preemption_model(), "lazy");
}

#[test]
fn the_clock_of_a_board_is_no_tsc() {
    let board = Machine::rt_board();
    board.file(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "timer",
    );
    let found = findings(&board.describe());
    let clock = find(&found, "clock");
    assert_eq!(clock.severity, Severity::Advice);
    assert!(!clock.how.contains("tsc"), "{}", clock.how);
}

#[test]
fn capabilities_of_a_user_namespace_have_no_power_over_the_host() {
    let mut machine = Machine::tuned_x86();
    machine.answers.memory_lock_bytes = Some(8 << 20);
    machine.file("/proc/self/uid_map", "         0          0 4294967295\n");
    let of_host = findings(&machine.describe());
    assert_eq!(find(&of_host, "memory-lock").severity, Severity::Good);
    machine.file("/proc/self/uid_map", "         0       1000          1\n");
    let inner = findings(&machine.describe());
    assert_eq!(of(&inner, Severity::Unfit), ["memory-lock"]);
    assert_eq!(of(&inner, Severity::Advice), ["rtprio"]);
}

#[test]
fn a_host_of_older_results_is_read() {
    let mut host = serde_json::to_value(Machine::tuned_x86().describe()).unwrap();
    let fields = host.as_object_mut().unwrap();
    let new = [
        "kernel_options",
        "kernel_threads",
        "cpu_measured",
        "boost",
        "idling",
        "cpu_dma_latency_refused",
        "cpu_dma_latency_held",
        "cpus_rcu_nocbs",
        "interrupts",
        "real_time_groups",
        "cpu_quota",
        "cpu_groups_visible",
        "tsc_trusted",
        "stolen",
        "rttime_limit_us",
        "open_files_limit",
        "capabilities",
        "memory_moves",
        "network",
    ];
    for name in new {
        assert!(fields.remove(name).is_some(), "{name}");
    }
    let host: Host = serde_json::from_value(host).unwrap();
    assert!(!host.cpu_dma_latency_held && !host.cpu_groups_visible);
    let finding = r#"{"id": "fifo", "severity": "good", "what": "it is", "why": "so", "how": ""}"#;
    let finding: Finding = serde_json::from_str(finding).unwrap();
    assert_eq!(finding.topic, Topic::Other);
}

#[test]
fn ids_are_unique_and_topics_known() {
    let found = findings(&Machine::laptop().describe());
    let ids: std::collections::BTreeSet<&str> =
        found.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids.len(), found.len());
    assert!(found.iter().all(|finding| finding.topic != Topic::Other));
}

/// What is changed, and what is then found.
type Change = (&'static str, Severity, fn(&mut Host));

const CHANGES: [Change; 49] = [
    ("preempt-rt", Severity::Unfit, |host| {
        host.preempt_rt = false
    }),
    ("rt-throttling", Severity::Advice, |host| {
        host.rt_runtime_us = Some(950_000);
        host.kernel_release = "6.11.0-rt".to_owned();
    }),
    ("rt-throttling", Severity::Advice, |host| {
        host.kernel_release = "6.12.0-rt".to_owned();
        host.fair_server_ns = None;
    }),
    ("rt-throttling", Severity::Advice, |host| {
        host.kernel_release = "6.12.0-rt".to_owned();
        host.fair_server_ns = Some(20_000_000);
    }),
    ("rt-throttling", Severity::Unknown, |host| {
        host.rt_runtime_us = None
    }),
    ("interrupt-threads", Severity::Advice, |host| {
        host.kernel_options.interrupt_threads = Some(false)
    }),
    ("kernel-threads", Severity::Unknown, |host| {
        host.kernel_threads = None
    }),
    ("kernel-debugging", Severity::Advice, |host| {
        host.kernel_options.slow = vec!["KASAN".to_owned()]
    }),
    ("fifo", Severity::Unfit, |host| host.fifo_granted = false),
    ("rttime", Severity::Advice, |host| {
        host.rttime_limit_us = Some(200_000)
    }),
    ("open-files", Severity::Advice, |host| {
        host.open_files_limit = Some(1023)
    }),
    ("swap", Severity::Advice, |host| {
        host.memory_moves.swap_bytes = Some(1 << 30)
    }),
    ("huge-pages", Severity::Advice, |host| {
        host.memory_moves.huge_pages = Some("always".to_owned())
    }),
    ("isolation", Severity::Advice, |host| {
        host.cpus_isolated = String::new()
    }),
    ("isolation", Severity::Advice, |host| {
        host.cpus_isolated = "7".to_owned()
    }),
    ("cpu-quota", Severity::Unknown, |host| {
        host.cpu_groups_visible = false
    }),
    ("governor", Severity::Advice, |host| {
        host.governor = Some("powersave".to_owned())
    }),
    ("governor", Severity::Unknown, |host| host.governor = None),
    ("boost", Severity::Advice, |host| host.boost = Some(true)),
    ("idle-states", Severity::Advice, |host| {
        host.idling.states[2].enabled = true
    }),
    ("idle-states", Severity::Unknown, |host| {
        host.idling.states.clear()
    }),
    ("cpu-dma-latency", Severity::Advice, |host| {
        host.cpu_dma_latency_refused = Some("no".to_owned())
    }),
    ("smt", Severity::Advice, |host| host.smt_active = Some(true)),
    ("clock", Severity::Advice, |host| {
        host.clock_source = Some("hpet".to_owned())
    }),
    ("tsc", Severity::Advice, |host| {
        host.tsc_trusted = Some(false)
    }),
    ("high-resolution-timers", Severity::Unfit, |host| {
        host.clock_resolution_ns = 4_000_000
    }),
    ("timer-migration", Severity::Advice, |host| {
        host.kernel_options.timer_migration = Some(true)
    }),
    ("irq-affinity", Severity::Advice, |host| {
        host.interrupts.allowed = Some(1)
    }),
    ("shared-interrupts", Severity::Advice, |host| {
        host.interrupts.shared = Some(vec!["16 (usb1, eth0)".to_owned()])
    }),
    ("irqbalance", Severity::Advice, |host| {
        host.interrupts.balanced = Some(true)
    }),
    ("virtualisation", Severity::Advice, |host| {
        host.virtualisation = "kvm, container".to_owned()
    }),
    ("steal", Severity::Advice, |host| {
        host.stolen.watched_ppm = Some(1)
    }),
    ("smi", Severity::Advice, |host| {
        host.stolen.smi_watched = Some(1)
    }),
    ("smi", Severity::Unknown, |host| {
        host.stolen.smi_watched = None
    }),
    ("network-interfaces", Severity::Unknown, |host| {
        host.network.interfaces = None
    }),
    ("interrupt-coalescing", Severity::Advice, |host| {
        eth0(host).coalescing = Some(Coalescing {
            receive_us: Some(50),
            ..Coalescing::default()
        })
    }),
    ("interrupt-coalescing", Severity::Unknown, |host| {
        host.network.coalescing_visible = false
    }),
    ("network-queues", Severity::Advice, |host| {
        eth0(host).interrupts[0].cpus = Some("0-3".to_owned())
    }),
    ("network-queues", Severity::Unknown, |host| {
        eth0(host).interrupts[0].cpus = None
    }),
    ("threaded-napi", Severity::Advice, |host| {
        eth0(host).napi_threaded = Some(true);
        eth0(host).napi_priorities = vec![50, 0];
    }),
    ("threaded-napi", Severity::Unknown, |host| {
        eth0(host).napi_threaded = Some(true)
    }),
    ("threaded-napi", Severity::Unknown, |host| {
        eth0(host).napi_threaded = None
    }),
    ("network-interrupt-threads", Severity::Advice, |host| {
        eth0(host).interrupts[0].thread_priority = Some(0)
    }),
    ("busy-polling", Severity::Advice, |host| {
        host.network.busy_poll_us = Some(0)
    }),
    ("busy-polling", Severity::Unknown, |host| {
        host.network.busy_read_us = None
    }),
    ("queueing-discipline", Severity::Advice, |host| {
        eth0(host).disciplines = vec!["fq_codel".to_owned(), "pfifo_fast".to_owned()]
    }),
    ("queueing-discipline", Severity::Unknown, |host| {
        eth0(host).disciplines = vec!["htb".to_owned()]
    }),
    ("queueing-discipline", Severity::Unknown, |host| {
        eth0(host).disciplines = vec!["noqueue".to_owned()]
    }),
    ("queueing-discipline", Severity::Unknown, |host| {
        eth0(host).disciplines.clear()
    }),
];

/// The network interface of the tuned machine.
fn eth0(host: &mut Host) -> &mut Interface {
    let interfaces = host.network.interfaces.as_mut();
    interfaces.unwrap().get_mut("eth0").unwrap()
}

/// The ids of a severity, in the order in which they are shown.
fn of(findings: &[Finding], severity: Severity) -> Vec<&str> {
    let chosen = findings
        .iter()
        .filter(|finding| finding.severity == severity);
    chosen.map(|finding| finding.id.as_str()).collect()
}

fn find<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.id == id);
    found.unwrap_or_else(|| panic!("no finding {id}"))
}
