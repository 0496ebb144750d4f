//! Events as values and as bytes.

#[cfg(feature = "event-channel")]
mod octets;

#[cfg(feature = "event-channel")]
pub(crate) use octets::{Form, Incoming, Message, Octets, read};

use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};
use rtorb::any::Any;

/// A header with this type and source. All other members are 0.
pub(crate) fn header(event_type: i32, source: i32) -> EventHeader {
    EventHeader {
        r#type: event_type,
        source,
        ttl: 0,
        creation_time: 0,
        ec_recv_time: 0,
        ec_send_time: 0,
    }
}

/// An event with an empty payload and a null any.
pub(crate) fn event_of(header: EventHeader) -> Event {
    Event {
        header,
        data: EventData {
            pad1: 0,
            payload: Vec::new(),
            any_value: Any::NULL,
        },
    }
}
