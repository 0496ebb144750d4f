//! Machines to look at in tests: a folder with the files that a real one of the kind has.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use crate::Host;
use crate::description::preemption_model_of;
use crate::netlink::{Coalescing, Discipline, InterfaceCoalescing, NetworkAnswers, ROOT};
use crate::system::{Answers, System};

/// A machine made of files.
pub(super) struct Machine {
    folder: TempDir,
    pub(super) answers: Answers,
}

impl Machine {
    /// Root on an arm64 board with PREEMPT_RT whose last CPU is kept for real-time work.
    pub(super) fn rt_board() -> Self {
        let mut machine = Self::new("aarch64");
        machine.files(&[
            ("/proc/sys/kernel/osrelease", "6.12.25-rt9-v8"),
            ("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 1:6.12.25"),
            ("/sys/kernel/realtime", "1"),
            ("/proc/cmdline", "quiet isolcpus=3 nohz_full=3 rcu_nocbs=3 irqaffinity=0-2"),
            ("/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 108.00\n\nModel\t\t: Raspberry Pi 5 Model B\n"),
            ("/proc/device-tree/compatible", "raspberrypi,5-model-b\0brcm,bcm2712\0"),
            ("/proc/interrupts", "           CPU0       CPU1       CPU2       CPU3\n 13:   2000   2000   2000    2000     GICv2  27 Level     arch_timer\n 48:  12000      0      0       0     GICv2 189 Level     eth0\nIPI0:   10  10  10  10       Rescheduling interrupts\n"),
            ("/proc/irq/default_smp_affinity", "7"),
            ("/proc/irq/48/smp_affinity_list", "0-2"),
            ("/sys/devices/system/cpu/online", "0-3"),
            ("/sys/devices/system/cpu/isolated", "3"),
            ("/sys/devices/system/cpu/nohz_full", "3"),
            ("/sys/devices/system/cpu/cpufreq/boost", "0"),
            ("/sys/devices/system/cpu/cpuidle/current_driver", "psci_idle"),
            ("/sys/devices/system/cpu/cpu3/cpuidle/state0/name", "WFI"),
            ("/sys/devices/system/cpu/cpu3/cpuidle/state0/latency", "1"),
            ("/sys/devices/system/cpu/cpu3/cpuidle/state0/disable", "0"),
            ("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "3"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "arch_sys_counter"),
            ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "arch_sys_counter"),
            ("/sys/kernel/tracing/available_tracers", "hwlat blk function nop"),
            ("/proc/stat", "cpu  100 0 100 1000 0 0 0 0 0 0\n"),
            ("/boot/config-6.12.25-rt9-v8", "CONFIG_PREEMPT_RT=y\n# CONFIG_RT_GROUP_SCHED is not set\n"),
        ]);
        machine.governor("performance", 4);
        machine.kernel_thread(41, "irq/48-eth0", 50);
        machine.file("/proc/sys/net/core/busy_poll", "50");
        machine.file("/proc/sys/net/core/busy_read", "50");
        machine.interface((2, "eth0"), "pfifo_fast");
        machine.device("eth0", "of:NethernetT(null)Craspberrypi,rp1-gem", &[]);
        machine.kernel_thread(17, "ktimers/0", 1);
        machine.tuned()
    }

    /// Root on an x86 machine with PREEMPT_RT where everything is as it should be.
    pub(super) fn tuned_x86() -> Self {
        let mut machine = Self::new("x86_64");
        machine.files(&[
            ("/proc/sys/kernel/osrelease", "6.12.9-rt6"),
            ("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT"),
            ("/proc/cmdline", "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 irqaffinity=0-1"),
            ("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Core(TM) i7\nflags\t\t: fpu tsc nonstop_tsc\n"),
            ("/proc/interrupts", "      CPU0  CPU1  CPU2  CPU3\n 30:  7  0  0  0  PCI-MSI 1-edge eth0\nNMI: 0 0 0 0 Non-maskable interrupts\n"),
            ("/proc/irq/default_smp_affinity", "3"),
            ("/proc/irq/30/smp_affinity_list", "0-1"),
            ("/sys/devices/system/cpu/online", "0-3"),
            ("/sys/devices/system/cpu/isolated", "2-3"),
            ("/sys/devices/system/cpu/nohz_full", "2-3"),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
            ("/sys/devices/system/cpu/smt/active", "0"),
            ("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state0/name", "POLL"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state0/latency", "0"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state1/name", "C1"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state1/latency", "2"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state2/name", "C6"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state2/latency", "133"),
            ("/sys/devices/system/cpu/cpu2/cpuidle/state2/disable", "1"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
            ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
            ("/proc/stat", "cpu  100 0 100 1000 0 0 0 0 0 0\n"),
        ]);
        machine.bytes(
            "/proc/config.gz",
            &packed("CONFIG_PREEMPT_RT=y\n# CONFIG_KASAN is not set\n"),
        );
        let mut registers = vec![0; 0x34];
        registers.extend(41u64.to_le_bytes());
        machine.bytes("/dev/cpu/2/msr", &registers);
        machine.governor("performance", 4);
        machine.kernel_thread(18, "migration/0", 99);
        machine.kernel_thread(40, "irq/30-eth0", 50);
        machine.file("/proc/sys/net/core/busy_poll", "50");
        machine.file("/proc/sys/net/core/busy_read", "0");
        machine.interface((2, "eth0"), "mq");
        machine.device("eth0", "pci:v00008086d000015F3", &[30, 31]);
        machine.discipline(2, 1, "pfifo_fast");
        machine.coalescing(2, 0);
        machine.tuned()
    }

    /// A user without rights on a laptop as it comes from the shop.
    pub(super) fn laptop() -> Self {
        let mut machine = Self::new("x86_64");
        machine.files(&[
            ("/proc/sys/kernel/osrelease", "6.8.0-45-generic"),
            ("/proc/sys/kernel/version", "#45-Ubuntu SMP PREEMPT_DYNAMIC"),
            ("/proc/cmdline", "quiet splash"),
            ("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Core(TM) i5\nflags\t\t: fpu tsc nonstop_tsc\n"),
            ("/proc/self/status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-1\n"),
            ("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-2.scope\n"),
            ("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope/cgroup.procs", "800\n"),
            ("/proc/interrupts", "      CPU0  CPU1\n 30:  7  90  PCI-MSI 1-edge nvme0q1\n 31:  0  500  PCI-MSI 2-edge iwlwifi\n"),
            ("/proc/irq/default_smp_affinity", "3"),
            ("/proc/irq/30/smp_affinity_list", "0-1"),
            ("/proc/irq/31/smp_affinity_list", "1"),
            ("/proc/meminfo", "MemTotal: 16000000 kB\nSwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n"),
            ("/proc/sys/vm/swappiness", "60"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
            ("/proc/sys/kernel/timer_migration", "1"),
            ("/proc/stat", "cpu  100 0 100 1000 0 0 0 0 0 0\n"),
            ("/proc/800/stat", &stat(800, "irqbalance", 1, 0)),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
            ("/sys/devices/system/cpu/online", "0-1"),
            ("/sys/devices/system/cpu/isolated", ""),
            ("/sys/devices/system/cpu/nohz_full", "(null)"),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0"),
            ("/sys/devices/system/cpu/smt/active", "1"),
            ("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle"),
            ("/sys/devices/system/cpu/cpu1/cpuidle/state0/name", "C1"),
            ("/sys/devices/system/cpu/cpu1/cpuidle/state0/latency", "2"),
            ("/sys/devices/system/cpu/cpu1/cpuidle/state1/name", "C10"),
            ("/sys/devices/system/cpu/cpu1/cpuidle/state1/latency", "890"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
            ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm"),
            ("/boot/config-6.8.0-45-generic", "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_DEBUG_PREEMPT=y\n"),
        ]);
        machine.governor("powersave", 2);
        machine.kernel_thread(18, "migration/0", 99);
        machine.file("/proc/sys/net/core/busy_poll", "0");
        machine.file("/proc/sys/net/core/busy_read", "0");
        machine.interface((1, "lo"), "noqueue");
        machine.file("/sys/class/net/lo/flags", "0x9");
        machine.interface((2, "wlp2s0"), "fq_codel");
        machine.device("wlp2s0", "pci:v00008086d00002723", &[31]);
        machine.coalescing(2, 70);
        machine.interface((3, "docker0"), "noqueue");
        machine.interface((4, "enp3s0"), "mq");
        machine.file("/sys/class/net/enp3s0/flags", "0x1002");
        machine.answers.fifo_granted = false;
        machine.answers.memory_lock_bytes = Some(8 << 20);
        machine.answers.rtprio_limit = Some(0);
        machine.answers.rttime_limit_us = Some(200_000);
        machine.answers.open_files_limit = Some(256);
        machine
    }

    /// Root in a virtual machine that shares its CPUs, in a control group that has a share of real-time time.
    pub(super) fn virtual_machine() -> Self {
        let machine = Self::new("x86_64");
        machine.files(&[
            ("/proc/sys/kernel/osrelease", "6.1.0-cloud"),
            ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC"),
            ("/proc/cmdline", "console=ttyS0 preempt=voluntary"),
            ("/sys/kernel/debug/sched/preempt", "none (voluntary) full "),
            (
                "/proc/cpuinfo",
                "vendor_id\t: AuthenticAMD\nflags\t\t: fpu tsc hypervisor\n",
            ),
            ("/proc/self/cgroup", "4:cpu,cpuacct:/measure\n0::/\n"),
            (
                "/proc/self/mountinfo",
                "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
            ),
            (
                "/sys/fs/cgroup/cpu,cpuacct/measure/cpu.rt_runtime_us",
                "500000",
            ),
            ("/proc/stat", "cpu  100 0 100 700 0 0 0 100 0 0\n"),
            ("/sys/devices/system/cpu/online", "0-3"),
            ("/sys/devices/system/cpu/cpuidle/current_driver", "none"),
            (
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                "kvm-clock",
            ),
            (
                "/sys/devices/system/clocksource/clocksource0/available_clocksource",
                "kvm-clock tsc",
            ),
        ]);
        machine.tuned()
    }

    /// A process in a container on an arm64 host that keeps nearly everything from it.
    pub(super) fn container() -> Self {
        let mut machine = Self::new("aarch64");
        fs::remove_dir_all(machine.folder.path().join("proc/2")).unwrap();
        fs::remove_file(machine.folder.path().join("proc/self/cgroup")).unwrap();
        machine.files(&[
            ("/proc/1/comm", "sleep"),
            ("/proc/sys/kernel/osrelease", "6.5.0"),
            ("/proc/sys/kernel/version", "#1 SMP"),
            ("/proc/self/status", "Cpus_allowed_list:\t0\n"),
            ("/run/.containerenv", ""),
        ]);
        machine.answers.fifo_granted = false;
        machine.answers.network = NetworkAnswers::default();
        machine.answers.memory_lock_bytes = Some(64 << 10);
        machine.answers.rtprio_limit = Some(0);
        machine
    }

    /// Adds an interface that is up, with one queue for each direction and no device.
    pub(super) fn interface(&mut self, (index, name): (u32, &str), discipline: &str) {
        let folder = format!("/sys/class/net/{name}");
        self.files(&[
            (&format!("{folder}/flags"), "0x1003"),
            (&format!("{folder}/ifindex"), &index.to_string()),
            (&format!("{folder}/queues/rx-0/rps_cpus"), "0"),
            (&format!("{folder}/queues/tx-0/xps_cpus"), "0"),
            (&format!("{folder}/threaded"), "0"),
        ]);
        self.discipline(index, ROOT, discipline);
    }

    /// Gives an interface a device with message-signalled interrupts of these numbers.
    pub(super) fn device(&self, name: &str, modalias: &str, interrupts: &[u32]) {
        let folder = format!("/sys/class/net/{name}/device");
        self.file(&format!("{folder}/modalias"), modalias);
        for number in interrupts {
            self.file(&format!("{folder}/msi_irqs/{number}"), "msix");
        }
    }

    /// Adds a queueing discipline to the interface of this index.
    pub(super) fn discipline(&mut self, interface: u32, parent: u32, kind: &str) {
        let answers = self.answers.network.disciplines.get_or_insert_default();
        answers.push(Discipline {
            interface,
            handle: 0,
            parent,
            kind: kind.to_owned(),
        });
    }

    /// Lets the device of the interface of this index wait before it interrupts.
    pub(super) fn coalescing(&mut self, interface: u32, delay_us: u32) {
        let answers = self.answers.network.coalescing.get_or_insert_default();
        answers.push(InterfaceCoalescing {
            interface,
            coalescing: Coalescing {
                receive_us: Some(delay_us),
                receive_frames: None,
                adaptive: None,
            },
        });
    }

    /// The description of it.
    pub(super) fn describe(&self) -> Host {
        Host::of(&self.system())
    }

    /// The preemption model of its kernel.
    pub(super) fn preemption_model(&self) -> String {
        preemption_model_of(&self.system())
    }

    fn system(&self) -> System {
        System {
            root: self.folder.path().to_owned(),
            answers: self.answers.clone(),
        }
    }

    /// Writes a file, or another in its place.
    pub(super) fn file(&self, path: &str, text: &str) {
        self.bytes(path, text.as_bytes());
    }

    /// Takes a file away.
    pub(super) fn without(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    fn new(machine: &str) -> Self {
        let new = Self {
            folder: tempfile::tempdir().unwrap(),
            answers: Answers {
                machine: machine.to_owned(),
                clock_resolution_ns: 1,
                fifo_granted: true,
                memory_lock_bytes: None,
                rtprio_limit: Some(0),
                rttime_limit_us: None,
                open_files_limit: Some(4096),
                watch: Duration::ZERO,
                network: NetworkAnswers {
                    coalescing: Some(Vec::new()),
                    disciplines: Some(Vec::new()),
                },
            },
        };
        new.file("/proc/2/comm", "kthreadd\n");
        new.file("/proc/2/stat", &stat(2, "kthreadd", 0, 0));
        new.file("/proc/sys/kernel/sched_rt_period_us", "1000000\n");
        new.file("/proc/self/cgroup", "0::/\n");
        new.file("/sys/fs/cgroup/cgroup.procs", "1\n");
        new
    }

    /// What root on a host without swap has.
    fn tuned(self) -> Self {
        self.files(&[
            (
                "/proc/self/status",
                "CapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3\n",
            ),
            (
                "/proc/meminfo",
                "MemTotal: 8000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
            ),
            ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
            ("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "0"),
            ("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "0"),
            ("/proc/sys/kernel/timer_migration", "0"),
            (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "always madvise [never]",
            ),
            ("/dev/cpu_dma_latency", ""),
        ]);
        self
    }

    fn files(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.file(path, text);
        }
    }

    fn bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn governor(&self, governor: &str, cpus: usize) {
        for cpu in 0..cpus {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
            self.file(&path, governor);
        }
    }

    pub(super) fn kernel_thread(&self, number: u32, name: &str, priority: u32) {
        self.file(
            &format!("/proc/{number}/stat"),
            &stat(number, name, 2, priority),
        );
    }

    fn path(&self, absolute: &str) -> PathBuf {
        self.folder.path().join(absolute.trim_start_matches('/'))
    }
}

/// proc_pid_stat(5) up to field 41.
fn stat(number: u32, name: &str, parent: u32, priority: u32) -> String {
    let between = "0 ".repeat(35);
    let policy = u32::from(priority > 0);
    format!("{number} ({name}) S {parent} {between}{priority} {policy}\n")
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
