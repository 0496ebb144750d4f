//! A timeout of a subscription, and the event that it makes.

use super::types;
use crate::stubs::rtec_event::rtec_event_comm::EventHeader;

/// The recurrence of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recurrence {
    /// Once, one period after connecting.
    Once,
    /// Every period since connecting.
    Interval,
    /// One period after the last delivery.
    Deadline,
}

#[derive(Debug)]
pub(super) struct Timeout {
    recurrence: Recurrence,
    period_ns: u64,
    due_ns: Option<u64>,
    /// The node of its entry.
    pub(super) node: usize,
}

impl Timeout {
    pub(super) fn new(recurrence: Recurrence, period_ns: u64, node: usize) -> Self {
        Self {
            recurrence,
            period_ns,
            due_ns: None,
            node,
        }
    }

    /// Starts the timeout.
    pub(super) fn start(&mut self, now_ns: u64) {
        self.due_ns = Some(now_ns.saturating_add(self.period_ns));
    }

    /// Notes a delivery of its tree.
    pub(super) fn delivered(&mut self, now_ns: u64) {
        if self.recurrence == Recurrence::Deadline {
            self.start(now_ns);
        }
    }

    pub(super) fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Moves to the first time after `now_ns`. Returns the event and the number of missed times.
    pub(super) fn fire(&mut self, now_ns: u64) -> (TimeoutEvent, u64) {
        let due_ns = self.due_ns.unwrap_or(now_ns);
        let late_ns = now_ns.saturating_sub(due_ns);
        let missed = match self.recurrence {
            Recurrence::Once => 0,
            Recurrence::Interval | Recurrence::Deadline => late_ns / self.period_ns,
        };
        self.due_ns = match self.recurrence {
            Recurrence::Once => None,
            Recurrence::Interval | Recurrence::Deadline => {
                Some(due_ns.saturating_add((missed + 1).saturating_mul(self.period_ns)))
            }
        };
        (TimeoutEvent::new(self.event_type(), due_ns, now_ns), missed)
    }

    fn event_type(&self) -> i32 {
        match self.recurrence {
            Recurrence::Once => types::TIMEOUT,
            Recurrence::Interval => types::INTERVAL_TIMEOUT,
            Recurrence::Deadline => types::DEADLINE_TIMEOUT,
        }
    }
}

/// The event of a timeout. It has no data; its bytes are as those of any event.
#[derive(Debug)]
pub(super) struct TimeoutEvent {
    pub(super) header: EventHeader,
    pub(super) bytes: [u8; TIMEOUT_BYTES],
}

impl TimeoutEvent {
    fn new(event_type: i32, due_ns: u64, now_ns: u64) -> Self {
        let header = EventHeader {
            r#type: event_type,
            source: 0,
            ttl: 0,
            creation_time: due_ns / NS_PER_UNIT,
            ec_recv_time: now_ns / NS_PER_UNIT,
            ec_send_time: now_ns / NS_PER_UNIT,
        };
        let mut bytes = [0; TIMEOUT_BYTES];
        bytes[0..4].copy_from_slice(&header.r#type.to_ne_bytes());
        bytes[12..20].copy_from_slice(&header.creation_time.to_ne_bytes());
        bytes[20..28].copy_from_slice(&header.ec_recv_time.to_ne_bytes());
        bytes[28..36].copy_from_slice(&header.ec_send_time.to_ne_bytes());
        Self { header, bytes }
    }
}

/// A unit of `TimeBase::TimeT`.
pub(super) const NS_PER_UNIT: u64 = 100;

/// Header 36, pad1 4, the length of no payload 4, the TypeCode of an empty any 4.
const TIMEOUT_BYTES: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData};
    use rtorb::any::Any;
    use rtorb::cdr::{Encode, Writer};

    #[test]
    fn bytes_are_the_event_as_the_first_of_a_set() {
        let mut timeout = Timeout::new(Recurrence::Deadline, 1_000, 0);
        timeout.start(1_234_500);
        let (event, _) = timeout.fire(1_235_700);
        let set = vec![Event {
            header: event.header,
            data: EventData {
                pad1: 0,
                payload: Vec::new(),
                any_value: Any::NULL,
            },
        }];
        let mut writer = Writer::new(Vec::new(), 1_000);
        set.encode(&mut writer).expect("a set of one event");
        let (encoded, end, _) = writer.finish();
        assert_eq!(encoded[4..end], event.bytes);
        assert_eq!(event.header.r#type, 6);
        assert_eq!(event.header.creation_time, 12_355);
        assert_eq!(event.header.ec_recv_time, 12_357);
    }

    #[test]
    fn late_timeouts_keep_their_phase_and_count_what_they_missed() {
        let mut timeout = Timeout::new(Recurrence::Interval, 100, 0);
        timeout.start(1_000);
        assert_eq!(timeout.fire(1_100).1, 0);
        assert_eq!(timeout.due_ns(), Some(1_200));
        assert_eq!(timeout.fire(1_450).1, 2);
        assert_eq!(timeout.due_ns(), Some(1_500));
    }
}
