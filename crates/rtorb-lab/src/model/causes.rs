//! What took the CPUs while responses were above their bounds, whose fault that is, and what to do next.

use rtorb_host::cpu_use::{CpuUse, ProcessUse};
use rtorb_results::judgement::{CpuObserved, Judgement, ObservedStanding};
use rtorb_sched::model::rounded;

/// What is known of the host beside a judgement.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    pub(super) cpu_use: &'a CpuUse,
    /// Whether the host is a virtual machine.
    pub(super) is_virtual: bool,
}

/// Sentences about the causes, and about what to do next. Both are empty if every response was within its bound and in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Causes {
    pub(super) causes: Vec<String>,
    pub(super) next: Vec<String>,
}

/// Finds the causes.
pub(super) fn of(judgement: &Judgement, beside: Beside<'_>) -> Causes {
    let all = || judgement.behaviours.iter().chain(&judgement.chains);
    if all().all(|one| one.above == 0 && one.misses == 0) {
        return Causes::default();
    }
    let standing = judgement.standing;
    let suspects = Suspects::of(judgement, beside);
    let cpus = judgement.cpus.iter();
    let mut causes: Vec<String> = cpus.filter_map(|cpu| of_cpu(cpu, beside)).collect();
    causes.push(fault(standing, &suspects, beside));
    Causes {
        causes,
        next: next(standing, &suspects, beside),
    }
}

/// What of the host took a share of a CPU of the system that can matter.
struct Suspects {
    /// The kernel gave CPUs to ordinary threads while real-time threads could run.
    fair_server: bool,
    hypervisor: bool,
    interrupts: bool,
    /// The names of processes.
    processes: Vec<String>,
    /// The CPUs of the system.
    cpus: Vec<usize>,
}

impl Suspects {
    fn of(judgement: &Judgement, beside: Beside<'_>) -> Self {
        let cpus: Vec<usize> = judgement.cpus.iter().map(|cpu| cpu.host_cpu).collect();
        let much_ms = much_ms(judgement.duration_ns);
        let times = cpus.iter().filter_map(|cpu| beside.cpu_use.cpus.get(cpu));
        let counted: Vec<_> = times.collect();
        let processes = beside.cpu_use.processes.iter();
        let processes = processes.filter(|one| cpus.contains(&one.cpu) && one.ran_ms >= much_ms);
        Self {
            fair_server: judgement.cpus.iter().any(|cpu| !cpu.ordinary.is_none()),
            hypervisor: counted.iter().any(|times| times.stolen_ms > 0),
            interrupts: counted
                .iter()
                .any(|times| times.interrupts_ms + times.soft_interrupts_ms >= much_ms),
            processes: processes
                .take(NAMED_MAX)
                .map(|one| one.name.clone())
                .collect(),
            cpus,
        }
    }

    fn is_none(&self) -> bool {
        !self.fair_server && !self.hypervisor && !self.interrupts && self.processes.is_empty()
    }
}

/// Says what took time of a CPU; nothing if there was nothing.
fn of_cpu(cpu: &CpuObserved, beside: Beside<'_>) -> Option<String> {
    let mut taken = Vec::new();
    if cpu.interruptions > 0 {
        taken.push(format!(
            "{} interruptions took {} in all, the longest {}",
            cpu.interruptions,
            rounded(cpu.interrupted_ns as f64),
            rounded(cpu.longest_ns as f64)
        ));
    }
    let ordinary = cpu.ordinary;
    if !ordinary.is_none() {
        taken.push(format!(
            "the kernel gave it to ordinary threads {} times, {} in all, the longest {}, while real-time threads of the system could run",
            ordinary.count,
            rounded(ordinary.total_ns as f64),
            rounded(ordinary.longest_ns as f64)
        ));
    }
    let times = beside.cpu_use.cpus.get(&cpu.host_cpu);
    let times = times.copied().unwrap_or_default();
    for (what, ms) in [
        ("the hypervisor took", times.stolen_ms),
        ("interrupt handlers ran for", times.interrupts_ms),
        ("soft interrupts ran for", times.soft_interrupts_ms),
    ] {
        if ms > 0 {
            taken.push(format!("{what} {}", of_ms(ms)));
        }
    }
    let processes = beside.cpu_use.processes.iter();
    let here = processes.filter(|one| one.cpu == cpu.host_cpu);
    let named: Vec<String> = here.take(NAMED_MAX).map(named).collect();
    if !named.is_empty() {
        taken.push(format!(
            "other processes ran there last: {}",
            named.join(", ")
        ));
    }
    (!taken.is_empty()).then(|| {
        let plays = cpu.processors.join(", ");
        format!("CPU {} ({plays}): {}.", cpu.host_cpu, taken.join("; "))
    })
}

fn named(process: &ProcessUse) -> String {
    format!(
        "{} {} for {}",
        process.name,
        process.id,
        of_ms(process.ran_ms)
    )
}

/// Says whose fault it is, as far as that can be said.
fn fault(standing: ObservedStanding, suspects: &Suspects, beside: Beside<'_>) -> String {
    let whose = match (standing, suspects) {
        (ObservedStanding::ExplainedByTheHost, suspects) if suspects.fair_server => {
            "It is the host's fault: the interruptions of these jobs are at least as long as the excess. During the run the kernel gave \
             CPUs to ordinary threads while real-time threads could run: that is its fair server, or before Linux 6.12 its limit of \
             real-time threads."
        }
        (_, suspects) if suspects.fair_server => {
            "Interruptions do not explain all of it. During the run the kernel gave CPUs to ordinary threads while real-time threads could \
             run (its fair server, or before Linux 6.12 its limit of real-time threads): that may be the cause of the rest too, as it \
             moves work to later times."
        }
        (ObservedStanding::ExplainedByTheHost, _) => {
            "It is the host's fault: the interruptions of these jobs are at least as long as the excess."
        }
        (_, suspects) if suspects.hypervisor => {
            "Nothing that was recorded in these jobs explains it. During the run the hypervisor ran other machines on these CPUs: that may \
             be the cause."
        }
        (_, suspects) if !suspects.processes.is_empty() => {
            "Nothing that was recorded in these jobs explains it. During the run other processes ran on these CPUs: they do not preempt \
             threads of SCHED_FIFO, but they use the same caches and memory, and that may be the cause."
        }
        (_, suspects) if suspects.interrupts => {
            "Nothing that was recorded in these jobs explains it. During the run interrupts took more of these CPUs than the model has: \
             that may be the cause."
        }
        _ if beside.is_virtual => {
            "Nothing that the kernel counts explains it. In a virtual machine the hypervisor may take CPUs and caches without any \
             count; otherwise the costs in the profile are too small, or the model leaves something out."
        }
        _ => {
            "Nothing that the kernel counts explains it: the costs in the profile are too small for this run, or the model leaves \
             something out."
        }
    };
    whose.to_owned()
}

fn next(standing: ObservedStanding, suspects: &Suspects, beside: Beside<'_>) -> Vec<String> {
    let cpus: Vec<String> = suspects.cpus.iter().map(usize::to_string).collect();
    let cpus = cpus.join(",");
    let mut next = Vec::new();
    if suspects.fair_server {
        next.push(format!(
            "Have real-time threads leave 5 % of CPUs {cpus} free, or keep ordinary threads away from these CPUs, or write 0 to \
             /sys/kernel/debug/sched/fair_server/cpuN/runtime for each (before Linux 6.12: `sysctl kernel.sched_rt_runtime_us=-1`)."
        ));
    }
    if suspects.hypervisor || beside.is_virtual {
        next.push(
            "Run on hardware, or on a virtual machine with CPUs of its own. A bound for a virtual machine holds only while the \
             hypervisor leaves it alone."
                .to_owned(),
        );
    }
    if !suspects.processes.is_empty() {
        next.push(format!(
            "Stop {} during the run, or keep all others off these CPUs: start Linux with isolcpus={cpus}, or choose other CPUs with \
             --place NODE/CPU=HOSTCPU.",
            suspects.processes.join(" and ")
        ));
    }
    if suspects.interrupts {
        next.push(format!(
            "Move interrupts to other CPUs than {cpus}: `rtorb check` names those that arrive there."
        ));
    }
    if standing == ObservedStanding::Unexplained && suspects.is_none() {
        next.push(
            "Measure the profile again, in the state of the host in which the system will run: `rtorb lab run profile --out DIR`."
                .to_owned(),
        );
    }
    next.push(REPEAT.to_owned());
    next
}

/// A hundredth of the run, and two ticks of the kernel at least.
fn much_ms(duration_ns: u64) -> u64 {
    (duration_ns / 100_000_000).max(20)
}

fn of_ms(ms: u64) -> String {
    rounded(ms as f64 * 1e6)
}

/// What to do next after a single run.
pub(super) const REPEAT: &str = "Run it several times with --runs 3: if other behaviours exceed their bounds each time, the host is the \
                                 cause; if the same ones do, look at the model and the profile.";
/// The most processes that a sentence names.
const NAMED_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use rtorb_host::cpu_use::CpuTimes;
    use rtorb_results::judgement::{Observed, OrdinaryTime};

    use super::*;
    use crate::model::judging::nothing_observed;

    fn judgement(standing: ObservedStanding) -> Judgement {
        let above = u64::from(standing > ObservedStanding::Unseen);
        Judgement {
            duration_ns: 10_000_000_000,
            standing,
            cpus: vec![CpuObserved {
                host_cpu: 1,
                processors: vec!["flight/0".to_owned()],
                interruptions: 3,
                interrupted_ns: 48_200_000,
                longest_ns: 15_900_000,
                ..CpuObserved::default()
            }],
            behaviours: vec![Observed {
                above,
                standing,
                ..nothing_observed()
            }],
            ..Judgement::default()
        }
    }

    fn process(name: &str, ran_ms: u64, cpu: usize) -> ProcessUse {
        let name = name.to_owned();
        ProcessUse {
            id: 7,
            name,
            ran_ms,
            cpu,
        }
    }

    fn found(standing: ObservedStanding, cpu_use: &CpuUse) -> (String, String) {
        let is_virtual = false;
        let beside = Beside {
            cpu_use,
            is_virtual,
        };
        let found = of(&judgement(standing), beside);
        (found.causes.join("\n"), found.next.join("\n"))
    }

    #[test]
    fn a_run_within_its_bounds_has_no_causes() {
        let (causes, next) = found(ObservedStanding::Within, &CpuUse::default());
        assert_eq!((causes.as_str(), next.as_str()), ("", ""));
    }

    #[test]
    fn each_cause_is_named_with_its_remedy() {
        use ObservedStanding::{ExplainedByTheHost, Unexplained};
        let stolen = CpuTimes {
            stolen_ms: 1_240,
            ..CpuTimes::default()
        };
        let hypervisor = CpuUse {
            cpus: [(1, stolen)].into(),
            ..CpuUse::default()
        };
        let compiler = CpuUse {
            processes: vec![process("rustc", 8_200, 1), process("shell", 9_000, 0)],
            ..CpuUse::default()
        };
        let busy = CpuTimes {
            soft_interrupts_ms: 150,
            ..CpuTimes::default()
        };
        let interrupts = CpuUse {
            cpus: [(1, busy)].into(),
            ..CpuUse::default()
        };
        let nothing = CpuUse::default();
        for (standing, cpu_use, cause, fault, remedy) in [
            (
                Unexplained,
                &hypervisor,
                "hypervisor took 1.24s",
                "hypervisor ran other machines",
                "on hardware",
            ),
            (
                Unexplained,
                &compiler,
                "rustc 7 for 8.2s",
                "other processes ran on these CPUs",
                "isolcpus=1",
            ),
            (
                Unexplained,
                &interrupts,
                "soft interrupts ran for 150ms",
                "interrupts took more",
                "Move interrupts",
            ),
            (
                Unexplained,
                &nothing,
                "the longest 15.9ms",
                "leaves something out",
                "lab run profile",
            ),
            (
                ExplainedByTheHost,
                &nothing,
                "3 interruptions took 48.2ms",
                "the host's fault",
                "--runs",
            ),
        ] {
            let (causes, next) = found(standing, cpu_use);
            assert!(causes.contains(cause) && causes.contains(fault), "{causes}");
            assert!(
                causes.contains("CPU 1 (flight/0)") && !causes.contains("shell"),
                "{causes}"
            );
            assert!(next.contains(remedy) && next.contains("--runs"), "{next}");
        }
    }

    #[test]
    fn the_fair_server_is_named_with_its_evidence_and_its_remedy() {
        use ObservedStanding::{ExplainedByTheHost, Unexplained};
        let beside = Beside {
            cpu_use: &CpuUse::default(),
            is_virtual: true,
        };
        for standing in [ExplainedByTheHost, Unexplained] {
            let mut judgement = judgement(standing);
            judgement.cpus[0].ordinary = OrdinaryTime {
                count: 2,
                total_ns: 97_000_000,
                longest_ns: 50_000_000,
            };
            let found = of(&judgement, beside);
            let causes = found.causes.join("\n");
            for word in ["2 times, 97ms in all, the longest 50ms", "fair server"] {
                assert!(causes.contains(word), "{standing:?}: {causes}");
            }
            assert!(!causes.contains("Nothing that"), "{causes}");
            assert!(found.next[0].contains("fair_server/cpuN/runtime"));
        }
    }

    #[test]
    fn a_virtual_machine_may_be_interrupted_without_a_count() {
        let cpu_use = &CpuUse::default();
        let is_virtual = true;
        let beside = Beside {
            cpu_use,
            is_virtual,
        };
        let found = of(&judgement(ObservedStanding::Unexplained), beside);
        assert!(
            found
                .causes
                .iter()
                .any(|one| one.contains("without any count"))
        );
        assert!(found.next[0].contains("on hardware"));
    }
}
