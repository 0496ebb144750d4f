//! What the consumers of a channel subscribe to, as entries of type and source.

use crate::events::filter::types;
use crate::stubs::rtec_event::rtec_event_channel_admin::Dependency;

/// One entry of the subscription that consumers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscribedEntry {
    /// The type; [`types::ANY`] for any.
    pub event_type: i32,
    /// The source; 0 for any.
    pub source: i32,
    /// The `rt_info` of the consumer.
    pub rt_info: i32,
}

/// Returns the entries that a gateway must subscribe to for a union of subscriptions, as an observer of a channel gets it.
///
/// Timeouts come from the consumers' own channel, groups do not tell which events they contain, and entries that select events by
/// other means than type and source may want any.
#[must_use]
pub fn subscribed_entries(dependencies: &[Dependency]) -> Vec<SubscribedEntry> {
    let entries = dependencies.iter().filter_map(|dependency| {
        let header = &dependency.event.header;
        let (event_type, source) = match header.r#type {
            types::ANY => (types::ANY, header.source),
            types::NEGATION | types::BITMASK | types::MASKED_TYPE | types::NULL => (types::ANY, 0),
            reserved if reserved < types::UNDEFINED => return None,
            event_type => (event_type, header.source),
        };
        Some(SubscribedEntry {
            event_type,
            source,
            rt_info: dependency.rt_info,
        })
    });
    entries.collect()
}
