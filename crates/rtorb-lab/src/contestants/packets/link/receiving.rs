//! How the end of a link receives packets: which work of the kernel brings them from its device to a socket, and with which priority.
//!
//! P2's system has a thread of the kernel with a priority for the packets of each priority. Linux has threads for the queues of a device
//! (threaded NAPI, Documentation/networking/napi.rst).

use std::fs;
use std::io::{self, ErrorKind};

use rtorb_instruments::network::set_receive_offload;
use rtorb_os::sched::{SchedPolicy, apply_policy_to};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use strum::VariantNames;

use super::device::{cpu_mask, refused, set};
use crate::contestants::packets::{BULK, URGENT};

/// How packets are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Receiving {
    /// By a software interrupt, before all threads, in the order of arrival.
    Softirq,
    /// By threads that are less urgent than those that call and serve.
    ThreadsBelow,
    /// By threads that are more urgent.
    ThreadsAbove,
    /// By a thread for each queue: that of urgent packets is more urgent than the threads that call and serve, that of others less.
    ThreadsByPriority,
    /// By the threads that wait for packets, and look for them at the device.
    BusyPolling,
}

impl Receiving {
    /// Every way.
    pub const ALL: [Self; 5] = [
        Self::Softirq,
        Self::ThreadsBelow,
        Self::ThreadsAbove,
        Self::ThreadsByPriority,
        Self::BusyPolling,
    ];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::VARIANTS[self as usize]
    }

    /// Why this way cannot be told from others here, because of the polling of the host's threads: the laboratory changes no setting
    /// of the whole host. `None` if it can.
    #[must_use]
    pub fn other_polling(self) -> Option<String> {
        let told = fs::read_to_string("/proc/sys/net/core/busy_poll");
        let polls = told.is_ok_and(|told| told.trim() != "0");
        let polling = self == Self::BusyPolling;
        (polls != polling).then(|| {
            let settings = if polling { "50" } else { "0" };
            format!(
                "waiting threads of this host {} packets: `sysctl net.core.busy_poll={settings} net.core.busy_read={settings}` changes that",
                if polls { "poll for" } else { "do not poll for" }
            )
        })
    }

    /// The priorities of the threads that receive, of [`URGENT_QUEUE`] and [`FLOOD_QUEUE`]; `None` if none do.
    fn priorities(self) -> Option<[u8; 2]> {
        match self {
            Self::Softirq | Self::BusyPolling => None,
            Self::ThreadsBelow => Some([BULK; 2]),
            Self::ThreadsAbove => Some([ABOVE; 2]),
            Self::ThreadsByPriority => Some([ABOVE, BULK]),
        }
    }

    /// Has a device of this namespace receive so, on this CPU.
    ///
    /// # Errors
    /// What the host refused, or does not do.
    pub(super) fn set_up(self, device: &str, cpu: usize) -> io::Result<()> {
        let priorities = self.priorities();
        // Without it, a device of this kind has no queues that threads could receive by.
        set_receive_offload(device, true)?;
        let is_threaded = if priorities.is_some() { "1" } else { "0" };
        set(device, "threaded", is_threaded)?;
        if self == Self::Softirq {
            set_receive_offload(device, false)?;
        }
        // A sender's packets are received on its own CPU, unless they are steered to another one, as those of a card are by its interrupt.
        let steered = if self == Self::Softirq {
            cpu_mask(cpu)
        } else {
            "0".to_owned()
        };
        for queue in [URGENT_QUEUE, FLOOD_QUEUE] {
            set(device, &format!("queues/rx-{queue}/rps_cpus"), &steered).map_err(of_isolated)?;
        }
        let Some(priorities) = priorities else {
            return Ok(());
        };
        let threads = receiving_threads(device)?;
        if threads.len() != priorities.len() {
            return Err(refused(format!(
                "{} threads receive by {} queues",
                threads.len(),
                priorities.len()
            )));
        }
        for (thread, priority) in threads.into_iter().zip(priorities) {
            let mut cpus = CpuSet::new();
            cpus.set(cpu);
            sched_setaffinity(rustix::process::Pid::from_raw(thread.cast_signed()), &cpus)
                .map_err(|errno| of_isolated(errno.into()))?;
            let fifo = SchedPolicy::Fifo(priority);
            apply_policy_to(thread, fifo).map_err(|error| refused(error.to_string()))?;
        }
        Ok(())
    }
}

/// The kernel keeps work of its own away from an isolated CPU (isolcpus, nohz_full, an isolated cpuset): it says EINVAL.
fn of_isolated(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::InvalidInput => refused(format!("{error}; is the measured CPU isolated?")),
        _ => error,
    }
}

/// The kernel's threads that receive by the queues of a device, in the order of the queues.
///
/// # Errors
/// That /proc cannot be listed.
fn receiving_threads(device: &str) -> io::Result<Vec<u32>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let folder = entry?;
        let Some(process) = folder
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // A process may have ended meanwhile.
        let name = fs::read_to_string(folder.path().join("comm")).unwrap_or_default();
        threads.extend(queue_id(&name, device).map(|id| (id, process)));
    }
    threads.sort_unstable();
    Ok(threads.into_iter().map(|(_, process)| process).collect())
}

/// The number of the queue that a thread of this name receives by. The kernel counts them up.
fn queue_id(name: &str, device: &str) -> Option<u32> {
    let of_device = name
        .trim_end()
        .strip_prefix("napi/")?
        .strip_prefix(device)?;
    of_device.strip_prefix('-')?.parse().ok()
}

/// The queue of the urgent calls.
pub const URGENT_QUEUE: u32 = 0;
/// The queue of the flood.
pub const FLOOD_QUEUE: u32 = 1;
/// The priority of threads that are more urgent than those that call and serve.
const ABOVE: u8 = URGENT + 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_device_are_known_by_their_names() {
        for (name, id) in [
            ("napi/l1f-258\n", Some(258)),
            ("napi/l1f-8193", Some(8193)),
            ("napi/l1f0-258", None),
            ("napi/l1f-", None),
            ("ksoftirqd/0", None),
        ] {
            assert_eq!(queue_id(name, "l1f"), id, "{name}");
        }
    }

    #[test]
    fn a_kernel_that_keeps_its_work_away_from_a_cpu_refuses() {
        let kind = |kind: ErrorKind| of_isolated(kind.into()).kind();
        assert_eq!(kind(ErrorKind::InvalidInput), ErrorKind::Unsupported);
        assert_eq!(kind(ErrorKind::AlreadyExists), ErrorKind::AlreadyExists);
    }
}
