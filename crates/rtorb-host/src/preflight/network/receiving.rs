//! How packets are received: when a device interrupts, on which CPU, and in which thread.

use std::collections::BTreeSet;

use super::{Finding, Subject, kept_cpus, listed, of_devices};
use crate::description::{Coalescing, Host, Interface, InterfaceInterrupt};
use crate::system::cpu_list;

pub(super) fn findings(host: &Host) -> impl Iterator<Item = Finding> {
    [
        interrupt_coalescing(host),
        network_queues(host),
        threaded_napi(host),
        network_interrupt_threads(host),
    ]
    .into_iter()
    .flatten()
}

fn interrupt_coalescing(host: &Host) -> Option<Finding> {
    const SUBJECT: Subject = Subject::new(
        "interrupt-coalescing",
        "a device that waits for more packets before it interrupts delays each packet by that time",
    );
    let judge = |name: &str, interface: &Interface| {
        if !host.network.coalescing_visible {
            return SUBJECT.unknown(
                format!("whether {name} waits before it interrupts is not visible"),
                format!("look at `ethtool -c {name}`"),
            );
        }
        let Some(settings) = interface.coalescing else {
            return SUBJECT.good(format!("{name} has no interrupt coalescing to set"));
        };
        let Some(delay) = delay(settings) else {
            return SUBJECT.good(format!("{name} interrupts at each packet"));
        };
        SUBJECT.advice(
            format!("{name} {delay}"),
            format!("`ethtool -C {name} {}`", without_delay(settings)),
        )
    };
    SUBJECT.of_interfaces(of_devices(host).map(|(name, interface)| judge(name, interface)))
}

fn network_queues(host: &Host) -> Option<Finding> {
    const SUBJECT: Subject = Subject::new(
        "network-queues",
        "where a network device interrupts, the kernel also works through its packets: any host that sends takes time \
              from the threads of that CPU",
    );
    let kept = kept_cpus(host);
    let judge = |name: &str, interface: &Interface| {
        let cpus = |interrupt: &InterfaceInterrupt| Some(cpu_list(interrupt.cpus.as_deref()?));
        let lists: Option<Vec<Vec<usize>>> = interface.interrupts.iter().map(cpus).collect();
        let Some(lists) = lists.filter(|lists| !lists.is_empty()) else {
            return SUBJECT.unknown(
                format!("which CPUs the interrupts of {name} may come to is not visible"),
                format!(
                    "look for the driver of {name} in /proc/interrupts, and at /proc/irq/NUMBER/smp_affinity_list"
                ),
            );
        };
        let hits = |list: &Vec<usize>| list.iter().any(|cpu| kept.contains(cpu));
        let hitting = interface.interrupts.iter().zip(&lists);
        let hitting = hitting.filter(|(_, list)| hits(list));
        let numbers: Vec<String> = hitting.map(|(one, _)| one.number.to_string()).collect();
        let allowed: BTreeSet<usize> = lists.into_iter().flatten().collect();
        let queues = format!(
            "{name} (receive queues: {}, transmit queues: {})",
            interface.receive_queues, interface.transmit_queues
        );
        if numbers.is_empty() {
            return SUBJECT.good(format!("{queues} interrupts on CPUs {}", ranges(&allowed)));
        }
        let hit: BTreeSet<usize> = allowed.intersection(&kept).copied().collect();
        SUBJECT.advice(
            format!(
                "{queues} may interrupt on CPUs {}, which are kept for real-time work (interrupts {})",
                ranges(&hit),
                listed(numbers.clone())
            ),
            format!(
                "`for irq in {}; do echo THE-OTHERS > /proc/irq/$irq/smp_affinity_list; done`",
                numbers.join(" ")
            ),
        )
    };
    SUBJECT.of_interfaces(of_devices(host).map(|(name, interface)| judge(name, interface)))
}

const NAPI: Subject = Subject::new(
    "threaded-napi",
    "without a thread the kernel receives packets before every thread, or under load behind all real-time \
          threads: only a thread has a priority to choose",
);

fn threaded_napi(host: &Host) -> Option<Finding> {
    NAPI.of_interfaces(
        of_devices(host).map(|(name, interface)| match interface.napi_threaded {
            Some(true) => with_napi_threads(name, interface),
            Some(false) => without_napi_threads(host, name, interface),
            None => NAPI.unknown(
                format!("whether threads receive packets of {name} is not visible"),
                format!("look at /sys/class/net/{name}/threaded (Linux 5.12 and later)"),
            ),
        }),
    )
}

fn with_napi_threads(name: &str, interface: &Interface) -> Finding {
    match interface.napi_priorities.iter().min() {
        None => NAPI.unknown(
            format!("{name} has threaded NAPI, but its threads are not visible"),
            format!("look at `ps -eo rtprio,comm | grep napi/{name}` on the host itself"),
        ),
        Some(0) => NAPI.advice(
            format!("the threads that receive packets of {name} have no real-time priority"),
            format!("`pgrep napi/{name} | xargs -n 1 chrt -f -p PRIORITY`"),
        ),
        Some(priority) => NAPI.good(format!(
            "threads with priority {priority} receive packets of {name}"
        )),
    }
}

fn without_napi_threads(host: &Host, name: &str, interface: &Interface) -> Finding {
    let mut interrupts = interface.interrupts.iter();
    if interrupts.any(|interrupt| interrupt.thread_priority.is_some()) {
        return NAPI.good(format!(
            "the threads of its interrupts receive packets of {name}"
        ));
    }
    if host.kernel_threads.is_none() && may_have_interrupt_threads(host) {
        return NAPI.unknown(
            format!("which threads receive packets of {name} is not visible"),
            "look at `ps -eo rtprio,comm | grep irq/` on the host itself".to_owned(),
        );
    }
    NAPI.advice(
        format!("no thread receives packets of {name}"),
        format!(
            "`echo 1 > /sys/class/net/{name}/threaded`, then `pgrep napi/{name} | xargs -n 1 chrt -f -p PRIORITY`; \
             the threads of interrupts do it too (`threadirqs` or PREEMPT_RT)"
        ),
    )
}

/// Where no handler is a thread, `interrupt-threads` says so for all devices.
fn network_interrupt_threads(host: &Host) -> Option<Finding> {
    const SUBJECT: Subject = Subject::new(
        "network-interrupt-threads",
        "threads of the ORB above the thread of an interrupt keep packets waiting, those below wait for packets of \
              others",
    );
    let judge = |name: &str, interface: &Interface| {
        let interrupts = interface.interrupts.iter();
        let threads = interrupts.filter_map(|one| Some((one.number, one.thread_priority?)));
        let (real_time, other): (Vec<_>, Vec<_>) = threads.partition(|(_, priority)| *priority > 0);
        if !other.is_empty() {
            let numbers = other.iter().map(|(number, _)| number.to_string());
            let numbers: Vec<String> = numbers.collect();
            return Some(SUBJECT.advice(
                format!(
                    "the threads of {name}'s interrupts {} have no real-time priority",
                    listed(numbers.clone())
                ),
                format!(
                    "`for irq in {}; do pgrep irq/$irq- | xargs -n 1 chrt -f -p PRIORITY; done`",
                    numbers.join(" ")
                ),
            ));
        }
        if real_time.is_empty() {
            return may_have_interrupt_threads(host).then(|| {
                SUBJECT.unknown(
                    format!("the threads of {name}'s interrupts are not visible"),
                    "look at `ps -eo rtprio,comm | grep irq/` on the host itself".to_owned(),
                )
            });
        }
        let shown = real_time.iter();
        let shown = shown.map(|(number, priority)| format!("irq/{number} {priority}"));
        Some(SUBJECT.good(format!(
            "priorities of {name}'s interrupt threads: {}",
            listed(shown.collect())
        )))
    };
    let verdicts = of_devices(host).filter_map(|(name, interface)| judge(name, interface));
    SUBJECT.of_interfaces(verdicts)
}

/// How a device delays packets; `None` if it does not.
fn delay(settings: Coalescing) -> Option<String> {
    let delay_us = settings.receive_us.unwrap_or(0);
    let frames = settings.receive_frames.unwrap_or(0);
    if settings.adaptive == Some(true) {
        Some(
            "waits before it interrupts for a time that its driver chooses (adaptive-rx)"
                .to_owned(),
        )
    } else if frames == 1 {
        // The first packet interrupts, whatever the time.
        None
    } else if delay_us > 0 {
        Some(format!("waits up to {delay_us} us before it interrupts"))
    } else if frames > 1 {
        Some(format!(
            "waits for up to {frames} packets before it interrupts"
        ))
    } else {
        None
    }
}

/// The arguments of ethtool(8) that end the delay: linux/ethtool.h asks for both `rx-usecs 0` and `rx-frames 1`. A driver
/// refuses those that it does not have.
fn without_delay(settings: Coalescing) -> String {
    let arguments = [
        settings.adaptive.map(|_| "adaptive-rx off"),
        settings.receive_us.map(|_| "rx-usecs 0"),
        settings.receive_frames.map(|_| "rx-frames 1"),
    ];
    let arguments: Vec<&str> = arguments.into_iter().flatten().collect();
    arguments.join(" ")
}

fn may_have_interrupt_threads(host: &Host) -> bool {
    host.kernel_options.interrupt_threads != Some(false)
}

/// CPUs as the kernel lists them: `0-3,8`.
fn ranges(cpus: &BTreeSet<usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let shown: Vec<String> = ranges
        .iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    shown.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_delays_by_time_by_packets_or_as_it_likes() {
        let settings = |receive_us, receive_frames, adaptive| Coalescing {
            receive_us,
            receive_frames,
            adaptive,
        };
        for at_once in [
            settings(None, None, None),
            settings(Some(0), Some(0), Some(false)),
            settings(Some(50), Some(1), None),
        ] {
            assert_eq!(delay(at_once), None, "{at_once:?}");
        }
        let says = |settings, words: &str| {
            let delay = delay(settings).unwrap();
            assert!(delay.contains(words), "{delay}");
        };
        says(settings(Some(50), Some(64), None), "50 us");
        says(settings(Some(50), None, None), "50 us");
        says(settings(None, Some(64), None), "64 packets");
        says(settings(Some(0), None, Some(true)), "adaptive-rx");
        let all = settings(Some(3), Some(0), Some(true));
        assert_eq!(without_delay(all), "adaptive-rx off rx-usecs 0 rx-frames 1");
        assert_eq!(without_delay(settings(Some(3), None, None)), "rx-usecs 0");
    }

    #[test]
    fn cpus_are_listed_as_the_kernel_lists_them() {
        let shown = |list: &str| ranges(&cpu_list(list).into_iter().collect());
        assert_eq!(shown("0-3,8,10-11"), "0-3,8,10-11");
        assert_eq!(shown("5,4"), "4-5");
        assert_eq!(shown(""), "");
    }
}
