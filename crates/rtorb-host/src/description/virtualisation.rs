//! What the host runs inside, as far as it shows.

use crate::system::System;

/// `kvm`, `vmware`, `container`, ...; `none` when nothing shows.
pub(super) fn virtualisation(system: &System, cpuinfo: &str) -> String {
    let mut layers: Vec<String> = hypervisor(system, cpuinfo).into_iter().collect();
    let marks = [
        "/.dockerenv",
        "/run/.containerenv",
        "/run/systemd/container",
    ];
    if marks.iter().any(|mark| system.exists(mark)) || numbers_processes_anew(system) {
        layers.push("container".to_owned());
    }
    if layers.is_empty() {
        "none".to_owned()
    } else {
        layers.join(", ")
    }
}

/// Process 2 is the kernel's own wherever processes are numbered from the host's beginning. Where processes of others are
/// hidden (`hidepid`), nothing follows.
fn numbers_processes_anew(system: &System) -> bool {
    match system.read("/proc/2/comm") {
        Some(name) => name != "kthreadd",
        None => !system.exists("/proc/2") && system.exists("/proc/1/comm"),
    }
}

fn hypervisor(system: &System, cpuinfo: &str) -> Option<String> {
    // An x86 CPU says itself whether there is one; on others only what it is made of tells.
    let is_x86 = cpuinfo.lines().any(|line| line.starts_with("flags"));
    let flagged = cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|f| f == "hypervisor"));
    let xen = system.read("/sys/hypervisor/type");
    if is_x86 && !flagged && xen.is_none() {
        return None;
    }
    let clocks = system
        .read("/sys/devices/system/clocksource/clocksource0/available_clocksource")
        .unwrap_or_default();
    if clocks.contains("kvm-clock") {
        return Some("kvm".to_owned());
    }
    let named = xen.or_else(|| maker(system));
    if is_x86 {
        Some(named.unwrap_or_else(|| "virtual machine".to_owned()))
    } else {
        named
    }
}

/// The names by which virtual machines go, from the firmware's tables or the device tree; systemd-detect-virt knows the same.
fn maker(system: &System) -> Option<String> {
    let files = [
        "/sys/class/dmi/id/product_name",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/class/dmi/id/bios_vendor",
        "/proc/device-tree/compatible",
        "/proc/device-tree/hypervisor/compatible",
    ];
    let texts: Vec<String> = files.iter().filter_map(|file| system.read(file)).collect();
    let known = MAKERS
        .iter()
        .find(|(words, _)| texts.iter().any(|text| text.contains(words)));
    known.map(|(_, name)| (*name).to_owned())
}

const MAKERS: [(&str, &str); 14] = [
    ("KVM", "kvm"),
    ("linux,kvm", "kvm"),
    ("QEMU", "qemu"),
    ("linux,dummy-virt", "qemu"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek GmbH", "virtualbox"),
    ("xen", "xen"),
    ("Xen", "xen"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Virtual Machine", "hyper-v"),
    ("Apple Virtualization", "apple"),
    ("Google Compute Engine", "google"),
];
