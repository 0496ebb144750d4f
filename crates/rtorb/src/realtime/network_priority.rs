//! Marks of packets by CORBA priority, for routers and for this host's queues.

use super::priority::Priority;
use core::fmt;

/// Maps CORBA priorities to packet marks (RTCORBA::NetworkPriorityMapping).
pub trait NetworkPriorityMapping: fmt::Debug + Send + Sync {
    /// The packet marks of calls with this priority.
    fn to_network(&self, priority: Priority) -> NetworkPriority;
}

/// The marks of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkPriority {
    /// The differentiated services code point of RFC 2474, 0 to 63, for routers.
    pub dscp: u8,
    /// The priority of SO_PRIORITY (socket(7)), 0 to 6, for this host's queueing discipline; 7 and more need CAP_NET_ADMIN.
    pub socket_priority: u32,
}

impl NetworkPriority {
    /// The marks of an operation that states a code point (`@network_priority`), with the socket priority of the most urgent treatment that
    /// is not above it.
    pub(crate) fn of_dscp(dscp: u8) -> Self {
        let treated = TREATMENTS.iter().rfind(|(known, _)| *known <= dscp);
        Self {
            dscp,
            socket_priority: treated.map_or(0, |(_, socket_priority)| *socket_priority),
        }
    }

    /// The byte for IP_TOS and IPV6_TCLASS: the code point without the two bits of congestion notification.
    ///
    /// Linux sets SO_PRIORITY too when IP_TOS is set (ip(7)), so `socket_priority` is set after it.
    #[inline]
    pub const fn tos(self) -> u8 {
        self.dscp << 2
    }
}

/// A table of ranges of CORBA priorities with their packet marks.
///
/// ```
/// use rtorb::rt::{NetworkPriority, NetworkPriorityMapping, NetworkPriorityTable, Priority};
/// let expedited = NetworkPriority { dscp: 46, socket_priority: 6 };
/// let table = NetworkPriorityTable::default().with(Priority::new(50)?, expedited);
/// assert_eq!(table.to_network(Priority::new(49)?), NetworkPriority::default());
/// assert_eq!(table.to_network(Priority::MAX), expedited);
/// # Ok::<(), rtorb::SystemException>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkPriorityTable {
    /// The least urgent priority of each range, ascending. Below the first range packets have no marks.
    ranges: Vec<(Priority, NetworkPriority)>,
}

impl NetworkPriorityTable {
    /// The default: the priorities 0 to `most_urgent` in six ranges of one size, with default forwarding, the assured
    /// forwarding classes 1 to 4 at their lowest drop precedence (RFC 2597), and expedited forwarding (RFC 3246).
    ///
    /// A more urgent call never gets worse treatment. CS1 is left out because it is below default forwarding (RFC 8622 gives the
    /// reason), CS6 and CS7 because network control uses them (RFC 4594). The socket priorities are in the
    /// order in which `pfifo_fast` serves them (tc-pfifo_fast(8)): 0 and 4 in its middle band, 6 in its first.
    pub fn even(most_urgent: Priority) -> Self {
        let ranges = (0..)
            .zip(TREATMENTS)
            .map(|(number, (dscp, socket_priority))| {
                let from = (i32::from(most_urgent.get()) + 1) * number / TREATMENTS.len() as i32;
                let from = i16::try_from(from)
                    .ok()
                    .and_then(|from| Priority::new(from).ok());
                let marks = NetworkPriority {
                    dscp,
                    socket_priority,
                };
                (from.unwrap_or(Priority::MAX), marks)
            });
        Self {
            ranges: ranges.collect(),
        }
    }

    /// Returns the table with these marks from priority `from` up to the beginning of the next range.
    #[must_use]
    pub fn with(mut self, from: Priority, marks: NetworkPriority) -> Self {
        match self.ranges.binary_search_by_key(&from, |(from, _)| *from) {
            Ok(place) => self.ranges[place].1 = marks,
            Err(place) => self.ranges.insert(place, (from, marks)),
        }
        self
    }
}

/// Code points and socket priorities, from the least to the most urgent.
const TREATMENTS: [(u8, u32); 6] = [(0, 0), (10, 0), (18, 4), (26, 4), (34, 6), (46, 6)];

impl NetworkPriorityMapping for NetworkPriorityTable {
    fn to_network(&self, priority: Priority) -> NetworkPriority {
        let above = self.ranges.partition_point(|(from, _)| *from <= priority);
        above
            .checked_sub(1)
            .map_or_else(NetworkPriority::default, |range| self.ranges[range].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places in the order of treatment, worst first (RFC 4594, figure 5 read upwards).
    fn rank(marks: NetworkPriority) -> (usize, u32) {
        let rank = TREATMENTS.iter().position(|(dscp, _)| *dscp == marks.dscp);
        (rank.expect("one of ours"), marks.socket_priority)
    }

    #[test]
    fn a_more_urgent_call_never_gets_worse_treatment() {
        for most_urgent in [0, 1, 5, 98, 99, i16::MAX] {
            let table = NetworkPriorityTable::even(Priority::new(most_urgent).expect("legal"));
            let marks = |number| rank(table.to_network(Priority::new(number).expect("legal")));
            for number in 1..=i16::MAX {
                assert!(marks(number - 1) <= marks(number), "{most_urgent} {number}");
            }
        }
    }

    #[test]
    fn the_default_table_begins_with_default_and_ends_with_expedited_forwarding() {
        for most_urgent in [99, i16::MAX] {
            let most_urgent = Priority::new(most_urgent).expect("legal");
            let table = NetworkPriorityTable::even(most_urgent);
            assert_eq!(table.to_network(Priority::MIN), NetworkPriority::default());
            assert_eq!(table.to_network(most_urgent).tos(), 0xb8);
        }
    }

    #[test]
    fn a_range_ends_at_the_beginning_of_the_next() {
        let marks = |dscp| NetworkPriority {
            dscp,
            socket_priority: 0,
        };
        let priority = |number| Priority::new(number).expect("legal");
        let table = NetworkPriorityTable::default()
            .with(priority(20), marks(2))
            .with(priority(10), marks(1))
            .with(priority(20), marks(3));
        let seen = [9, 10, 19, 20, 32_767].map(|number| table.to_network(priority(number)).dscp);
        assert_eq!(seen, [0, 1, 1, 3, 3]);
    }
}
