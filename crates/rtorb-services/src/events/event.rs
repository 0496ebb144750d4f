//! Events as values and as bytes.

#[cfg(feature = "event-channel")]
mod bytes;

#[cfg(feature = "event-channel")]
pub(crate) use bytes::{EncodedEvents, Form, Incoming, Message, read};

use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};
use rtorb::any::Any;

impl Event {
    /// An event with a value. Its `ttl` is 1: one gateway may forward it. All other members have their default.
    #[must_use]
    pub fn new(source: i32, event_type: i32, any_value: Any) -> Self {
        Self {
            header: EventHeader {
                ttl: 1,
                ..header(event_type, source)
            },
            data: EventData {
                any_value,
                ..EventData::default()
            },
        }
    }
}

/// A header with this type and source. All other members are 0.
pub(crate) fn header(event_type: i32, source: i32) -> EventHeader {
    EventHeader {
        r#type: event_type,
        source,
        ..EventHeader::default()
    }
}

/// An event with an empty payload and a null any.
pub(crate) fn event_of(header: EventHeader) -> Event {
    Event {
        header,
        data: EventData::default(),
    }
}
