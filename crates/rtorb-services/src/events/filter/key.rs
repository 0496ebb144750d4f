//! Source and type by which events are looked up; 0 stands for any.

use crate::stubs::rtec_event::rtec_event_comm::EventHeader;

/// A source and a type, as an entry of a subscription or the header of an event names them.
///
/// 0 stands for any, on either side: an entry with source 0 takes events of all sources, and an event of source 0 goes to entries of
/// all sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Who sends; 0 is anybody.
    pub source: i32,
    /// What is said; 0 is anything.
    pub event_type: i32,
}

impl Key {
    /// Any event of anybody.
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

    /// Whether an entry with this key takes an event with that one.
    pub fn matches(self, event: Self) -> bool {
        same_or_any(self.source, event.source) && same_or_any(self.event_type, event.event_type)
    }

    /// The keys that match whatever this one matches, and more.
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
