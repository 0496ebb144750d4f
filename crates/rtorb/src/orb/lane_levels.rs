//! Checks that the host can schedule the threads of lanes with levels or reservations.

use crate::realtime::{NativePriority, PriorityMapping, ThreadpoolLane};
use crate::strategies::RequestOrder;
use core::ops::RangeInclusive;
use rtorb_os::thread::ThreadConfig;

/// Checks the native priorities of lanes with levels: all are real-time priorities of the host, and no other lane of the pool has
/// one of them. So a request of a less urgent lane never runs at the priority of a more urgent one.
pub(super) fn check_levels(
    lanes: &[ThreadpoolLane],
    mapping: &dyn PriorityMapping,
) -> Result<(), String> {
    for lane in lanes.iter().filter(|lane| needs_more(lane)) {
        let Some(native) = mapping.to_native(lane.lane_priority) else {
            // The caller refuses it.
            continue;
        };
        let own = natives(lane, mapping).ok_or_else(|| lacks_natives(lane, native))?;
        for other in lanes.iter().filter(|&other| other != lane) {
            let Some(natives) = natives(other, mapping) else {
                continue;
            };
            if natives.start() <= own.end() && own.start() <= natives.end() {
                return Err(format!(
                    "the threads of the lane of priority {} have the native priorities {} to {}, and the lane \
                     of priority {} has {}: give the more urgent lane a higher priority, or this one fewer static threads",
                    lane.lane_priority,
                    own.start(),
                    own.end(),
                    other.lane_priority,
                    natives.start(),
                ));
            }
        }
    }
    Ok(())
}

/// Checks that no lane has reservations on some of the CPUs only, which the kernel refuses.
pub(super) fn check_reserved_cpus(
    lanes: &[ThreadpoolLane],
    threads: &ThreadConfig,
) -> Result<(), String> {
    let reserved = lanes.iter().find(|lane| lane.reservation.is_some());
    match reserved.filter(|_| !threads.affinity.is_empty()) {
        Some(lane) => Err(format!(
            "the lane of priority {} has a reservation, and the server's threads have CPUs: restrict the CPUs by a cpuset of the process",
            lane.lane_priority
        )),
        None => Ok(()),
    }
}

/// True if threads of the lane are above its priority.
fn needs_more(lane: &ThreadpoolLane) -> bool {
    lane.order != RequestOrder::Fifo
}

/// The native priorities of the threads of a lane; `None` if the host has not all of them.
fn natives(
    lane: &ThreadpoolLane,
    mapping: &dyn PriorityMapping,
) -> Option<RangeInclusive<NativePriority>> {
    let least = mapping.to_native(lane.lane_priority)?;
    let most = lane.most_urgent(mapping)?;
    (least > 0 || !needs_more(lane)).then_some(least..=most)
}

fn lacks_natives(lane: &ThreadpoolLane, native: NativePriority) -> String {
    let above = lane.order.priorities_above(lane.static_threads);
    format!(
        "the lane of priority {} has the native priority {native}, and its {} static threads and its I/O thread need {above} more above \
         it, all from 1 to 99: give it another priority, or fewer static threads",
        lane.lane_priority, lane.static_threads,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::{NativeMapping, Priority};

    fn lane(number: i16, static_threads: u32, order: RequestOrder) -> ThreadpoolLane {
        ThreadpoolLane {
            lane_priority: Priority::new(number).expect("legal"),
            static_threads,
            order,
            ..ThreadpoolLane::default()
        }
    }

    fn checked(lanes: &[(i16, u32, RequestOrder)]) -> Result<(), String> {
        let lanes: Vec<_> = lanes.iter().map(|&(n, s, o)| lane(n, s, o)).collect();
        check_levels(&lanes, &NativeMapping)
    }

    #[test]
    fn levels_of_lanes_do_not_overlap() {
        use RequestOrder::{EarliestDeadline, Fifo, LeastLaxity};
        let edf = (10, 3, EarliestDeadline);
        for right in [
            &[edf][..],
            &[edf, (14, 1, Fifo), (9, 5, Fifo)],
            &[edf, (14, 2, LeastLaxity), (6, 3, LeastLaxity)],
            &[(96, 3, EarliestDeadline), (1, 9, EarliestDeadline)],
            &[(0, 1, Fifo), (0, 7, Fifo)],
        ] {
            assert_eq!(checked(right), Ok(()), "{right:?}");
        }
        for (wrong, words) in [
            (&[edf, (13, 1, Fifo)][..], "10 to 13"),
            (&[(13, 1, Fifo), edf], "lane of priority 13 has 13"),
            (&[edf, (8, 2, LeastLaxity)], "10 to 13"),
            (&[(97, 3, EarliestDeadline)], "need 3 more above it"),
            (&[(0, 1, EarliestDeadline)], "from 1 to 99"),
            (&[(1, u32::MAX, EarliestDeadline)], "from 1 to 99"),
        ] {
            let reason = checked(wrong).expect_err(words);
            assert!(reason.contains(words), "{reason}");
        }
    }
}
