//! The key of an event: source and type.

use crate::stubs::rtec_event::rtec_event_comm::EventHeader;

/// A source and a type, in an entry of a subscription or in the header of an event.
///
/// 0 is a wildcard on both sides: an entry with source 0 takes events of all sources, and an event with source 0 goes to entries
/// of all sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The source; 0 for any.
    pub source: i32,
    /// The type; 0 for any.
    pub event_type: i32,
}

impl Key {
    /// Matches every event.
    pub const ANY: Self = Self {
        source: 0,
        event_type: 0,
    };

    /// The key of an event, or of an entry.
    pub fn of(header: &EventHeader) -> Self {
        Self {
            source: header.source,
            event_type: header.r#type,
        }
    }

    /// True if an entry with this key takes an event with that key.
    pub fn matches(self, event: Self) -> bool {
        same_or_any(self.source, event.source) && same_or_any(self.event_type, event.event_type)
    }

    /// The more general keys that cover this one.
    pub fn wider(self) -> impl Iterator<Item = Self> {
        let of_source = Self {
            event_type: 0,
            ..self
        };
        let of_type = Self { source: 0, ..self };
        [of_source, of_type, Self::ANY]
            .into_iter()
            .filter(move |key| *key != self)
    }
}

fn same_or_any(one: i32, other: i32) -> bool {
    one == other || one == 0 || other == 0
}
