//! Who takes time from a program without being asked: devices, the hypervisor, the firmware.

use super::{Finding, Subject};
use crate::description::Host;

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    vec![
        irq_affinity(host),
        shared_interrupts(host),
        irqbalance(host),
        virtualisation(host),
        steal(host),
        smi(host),
    ]
}

fn irq_affinity(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "irq-affinity",
        "each interrupt of a device takes its CPU for some microseconds, whoever runs there",
    );
    let interrupts = &host.interrupts;
    let (Some(devices), Some(allowed), Some(cpu)) =
        (interrupts.devices, interrupts.allowed, host.cpu_measured)
    else {
        return SUBJECT.unknown(
            "which interrupts come to which CPU is not visible",
            "look at /proc/interrupts and /proc/irq/*/smp_affinity_list on the host itself",
        );
    };
    if allowed == 0 {
        return SUBJECT.good(format!(
            "none of {devices} device interrupts may come to CPU {cpu}, which is measured on"
        ));
    }
    let named: Vec<String> = interrupts
        .busiest
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let mut what = format!(
        "{allowed} of {devices} device interrupts may come to CPU {cpu}, which is measured on"
    );
    if !named.is_empty() {
        let handled = interrupts.handled.unwrap_or(0);
        what.push_str(&format!(
            "; handled there since boot: {handled} ({})",
            named.join(", ")
        ));
    }
    SUBJECT.advice(
        what,
        "boot with irqaffinity=THE-OTHERS, or `echo THE-OTHERS > /proc/irq/NUMBER/smp_affinity_list` for each; what the \
         kernel places itself (managed_irq) goes with isolcpus=managed_irq,LIST",
    )
}

fn shared_interrupts(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "shared-interrupts",
        "an interrupt of one device runs the handlers of all devices on its line, and its threads have one CPU and priority",
    );
    match host.interrupts.shared.as_deref() {
        Some([]) => SUBJECT.good("no devices share an interrupt line"),
        Some(lines) => SUBJECT.advice(
            format!("devices share interrupt lines: {}", lines.join("; ")),
            "put the card into another slot, have its driver use message-signalled interrupts (MSI), or unload the driver of the \
             other device",
        ),
        None => SUBJECT.unknown(
            "whether devices share interrupt lines is not visible",
            "look at /proc/interrupts on the host itself",
        ),
    }
}

fn irqbalance(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "irqbalance",
        "irqbalance moves interrupts to CPUs that seem idle, such as those kept for real-time work",
    );
    match host.interrupts.balanced {
        Some(false) => SUBJECT.good("irqbalance does not run"),
        Some(true) => SUBJECT.advice(
            "irqbalance runs",
            "`systemctl disable --now irqbalance`, or IRQBALANCE_BANNED_CPULIST=LIST in its configuration",
        ),
        None => SUBJECT.unknown(
            "whether irqbalance runs is not visible",
            "look for it outside the container",
        ),
    }
}

fn virtualisation(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "virtualisation",
        "the hypervisor takes the CPU away without telling: no setting inside bounds that",
    );
    if !is_virtual(host) {
        return SUBJECT.good("no hypervisor is seen");
    }
    SUBJECT.advice(
        format!("runs inside: {}", host.virtualisation),
        "measure on the machine that will carry the load; inside a virtual machine, pin its CPUs to dedicated real ones \
         and compare medians and ratios, not maxima",
    )
}

fn steal(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "steal",
        "while the hypervisor gives the CPU to others, nothing here runs, and every deadline passes",
    );
    let stolen = &host.stolen;
    let (Some(boot), Some(watched)) = (stolen.since_boot_ppm, stolen.watched_ppm) else {
        return SUBJECT.unknown(
            "stolen time is not visible",
            "look at `steal` in /proc/stat on the host itself",
        );
    };
    let what = format!(
        "stolen by the hypervisor: {} of the time since boot, {} while it was watched for {} ms",
        percent(boot),
        percent(watched),
        stolen.watched_ms
    );
    match (boot > STOLEN_PPM_MAX || watched > 0, is_virtual(host)) {
        (true, _) => SUBJECT.advice(
            what,
            "give the virtual machine dedicated CPUs, on a host that sells no more than it has",
        ),
        (false, true) => SUBJECT.good(format!("{what} (as far as it tells)")),
        (false, false) => SUBJECT.good("no time is stolen"),
    }
}

fn smi(host: &Host) -> Finding {
    const SUBJECT: Subject = Subject::new(
        "smi",
        "the firmware stops all CPUs for its own work (SMI), up to milliseconds, and no kernel can prevent it",
    );
    let stolen = &host.stolen;
    if let (Some(boot), Some(watched)) = (stolen.smi_since_boot, stolen.smi_watched) {
        let what = format!(
            "SMIs: {boot} since the machine started, {watched} in the {} ms that it was watched",
            stolen.watched_ms
        );
        return match watched {
            0 => SUBJECT.good(what),
            _ => SUBJECT.advice(
                what,
                "update the firmware; switch off in it USB legacy support, power capping and what it logs",
            ),
        };
    }
    let how = match (stolen.hwlat_tracer, host.machine.as_str()) {
        (Some(true), _) => {
            "let the kernel look for gaps: `rtla hwnoise`, or `echo hwlat > /sys/kernel/tracing/current_tracer`"
        }
        (_, "x86_64" | "i686") => {
            "on Intel CPUs as root after `modprobe msr`; on others with a kernel that has CONFIG_HWLAT_TRACER, by \
             `rtla hwnoise`; of a virtual machine, on its host"
        }
        _ => "with a kernel that has CONFIG_HWLAT_TRACER, by `rtla hwnoise`",
    };
    SUBJECT.unknown(
        "what the firmware takes (SMI or secure world) is not visible here",
        how,
    )
}

fn is_virtual(host: &Host) -> bool {
    !matches!(host.virtualisation.as_str(), "none" | "container")
}

fn percent(ppm: u64) -> String {
    format!("{}.{:03} %", ppm / 10_000, ppm % 10_000 / 10)
}

/// A tenth of a percent: more is no rare event.
const STOLEN_PPM_MAX: u64 = 1_000;
