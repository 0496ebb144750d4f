//! An event as the any that a plain client knows, and back.

use rtorb::any::Any;

use super::config::PlainConfig;
use crate::events::event::{event_of, header};
use crate::events::pushing::event_time;
use crate::stubs::rtec_event::rtec_event_comm::{Event, EventHeader};

/// The event for the any of a plain supplier.
pub(super) fn event(config: &PlainConfig, any_value: Any) -> Event {
    let mut event = event_of(EventHeader {
        ttl: config.ttl,
        creation_time: event_time(),
        ..header(config.event_type, config.source)
    });
    event.data.any_value = any_value;
    event
}

/// The any for a plain consumer: the event's any, or its payload as a sequence of octets if it has only a payload.
pub(super) fn any(event: &Event) -> Any {
    let Event { data, .. } = event;
    let has_any = data.any_value != Any::NULL;
    if has_any || data.payload.is_empty() {
        return data.any_value.clone();
    }
    // A sequence of octets can always be encoded.
    Any::from_value(&data.payload).unwrap_or(Any::NULL)
}

/// About its size in bytes.
pub(super) fn bytes(any: &Any) -> usize {
    any.reader().remaining()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_any_comes_out_as_it_went_in() {
        let text = Any::from_value(&"text".to_owned()).expect("text goes into an any");
        let config = PlainConfig::default();
        let event = event(&config, text.clone());
        assert_eq!((event.header.r#type, event.header.source), (16, 1));
        assert_eq!(any(&event), text);
        assert!(bytes(&text) >= 9);
    }

    #[test]
    fn a_payload_alone_comes_as_bytes_and_nothing_as_nothing() {
        let mut event = event(&PlainConfig::default(), Any::NULL);
        assert_eq!(any(&event), Any::NULL);
        event.data.payload = vec![1, 2, 3];
        assert_eq!(any(&event).extract::<Vec<u8>>(), Ok(vec![1, 2, 3]));
    }
}
