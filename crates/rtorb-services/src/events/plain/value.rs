//! An event as the any that a plain client knows, and back.

use rtorb::any::Any;

use super::config::PlainConfig;
use crate::events::pushing::event_time;
use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};

/// The event that a plain supplier's any becomes.
pub(super) fn event(config: &PlainConfig, any_value: Any) -> Event {
    Event {
        header: EventHeader {
            r#type: config.event_type,
            source: config.source,
            ttl: config.ttl,
            creation_time: event_time(),
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: EventData {
            pad1: 0,
            payload: Vec::new(),
            any_value,
        },
    }
}

/// What a plain consumer gets of an event: its any; of one that has only a payload, that as a sequence of octets.
pub(super) fn any(event: &Event) -> Any {
    let Event { data, .. } = event;
    let has_any = data.any_value != Any::NULL;
    if has_any || data.payload.is_empty() {
        return data.any_value.clone();
    }
    // Octets can always be written.
    Any::from_value(&data.payload).unwrap_or(Any::NULL)
}

/// About as many octets as it takes.
pub(super) fn octets(any: &Any) -> usize {
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
        assert!(octets(&text) >= 9);
    }

    #[test]
    fn a_payload_alone_comes_as_octets_and_nothing_as_nothing() {
        let mut event = event(&PlainConfig::default(), Any::NULL);
        assert_eq!(any(&event), Any::NULL);
        event.data.payload = vec![1, 2, 3];
        assert_eq!(any(&event).extract::<Vec<u8>>(), Ok(vec![1, 2, 3]));
    }
}
