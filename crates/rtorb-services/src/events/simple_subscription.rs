//! Common subscriptions: by types and sources of events, with timeouts.

use std::time::Duration;

use super::filter::types;
use super::subscribe::Interest;
use crate::stubs::rtec_event::rtec_event_channel_admin::ConsumerQos;

/// A subscription to events of some types and sources, with timeouts. Its list means the same to channels with basic and with
/// prefix filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleSubscription {
    /// Types of events; empty for any.
    pub types: Vec<i32>,
    /// Sources of events; empty for any. It subscribes to each type of each source.
    pub sources: Vec<i32>,
    /// Whether any of these events, or all together, make a push.
    pub grouping: Grouping,
    /// The period of events of [`types::INTERVAL_TIMEOUT`].
    pub interval: Option<Duration>,
    /// An event of [`types::DEADLINE_TIMEOUT`] comes when no other has come for this time.
    pub deadline: Option<Duration>,
    /// Its urgency: a handle of the channel's scheduler, or a CORBA priority if there is none.
    pub rt_info: i32,
    /// True for a gateway.
    pub is_gateway: bool,
}

/// How events are pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Each event alone.
    #[default]
    AnyOf,
    /// One event of each, in one push.
    AllOf,
}

/// Why not every channel could serve a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimpleSubscriptionError {
    /// A deadline with a conjunction is a group in a group, which basic filters do not support.
    #[error(
        "a deadline cannot be combined with all-of: all-of and the deadline would be a group in a group; drop one of them"
    )]
    DeadlineOfAll,
}

impl SimpleSubscription {
    /// The list for `connect_push_consumer`.
    ///
    /// # Errors
    /// If the choices cannot be combined.
    pub fn consumer_qos(&self) -> Result<ConsumerQos, SimpleSubscriptionError> {
        let events = self.events();
        let deadline = self.deadline.map(Interest::deadline);
        let group = match (self.grouping, deadline) {
            (Grouping::AnyOf, deadline) => Interest::disjunction(events.chain(deadline)),
            (Grouping::AllOf, None) => Interest::conjunction(events),
            (Grouping::AllOf, Some(_)) => return Err(SimpleSubscriptionError::DeadlineOfAll),
        };
        // A tree of its own, so that other events do not restart its period.
        let interval = self.interval.map(Interest::interval);
        let trees = interval.into_iter().chain([group]);
        let lists = trees.map(|tree| tree.rt_info(self.rt_info).consumer_qos().dependencies);
        Ok(ConsumerQos {
            dependencies: lists.flatten().collect(),
            is_gateway: self.is_gateway,
        })
    }

    fn events(&self) -> impl Iterator<Item = Interest> {
        let or_any = |chosen: &[i32]| match chosen {
            [] => vec![types::ANY],
            chosen => chosen.to_vec(),
        };
        let sources = or_any(&self.sources);
        or_any(&self.types).into_iter().flat_map(move |event_type| {
            let of_source = |source: &i32| Interest::event(*source, event_type);
            sources.iter().map(of_source).collect::<Vec<_>>()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(subscription: &SimpleSubscription) -> Vec<(i32, i32, u64)> {
        let list = subscription
            .consumer_qos()
            .expect("it makes sense")
            .dependencies;
        let headers = list.iter().map(|dependency| &dependency.event.header);
        headers
            .map(|header| (header.r#type, header.source, header.creation_time))
            .collect()
    }

    #[test]
    fn nothing_chosen_is_everything() {
        assert_eq!(
            listed(&SimpleSubscription::default()),
            [(types::DISJUNCTION, 1, 0), (0, 0, 0)]
        );
    }

    #[test]
    fn each_type_is_wanted_of_each_source_and_timeouts_stand_beside() {
        let subscription = SimpleSubscription {
            types: vec![20, 21],
            sources: vec![1, 2],
            interval: Some(Duration::from_millis(1)),
            deadline: Some(Duration::from_secs(1)),
            ..SimpleSubscription::default()
        };
        let expected = [
            (types::INTERVAL_TIMEOUT, 0, 10_000),
            (types::DISJUNCTION, 5, 0),
            (20, 1, 0),
            (20, 2, 0),
            (21, 1, 0),
            (21, 2, 0),
            (types::DEADLINE_TIMEOUT, 0, 10_000_000),
        ];
        assert_eq!(listed(&subscription), expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let mut subscription = SimpleSubscription {
            types: vec![20, 21],
            grouping: Grouping::AllOf,
            ..SimpleSubscription::default()
        };
        assert_eq!(listed(&subscription)[0], (types::CONJUNCTION, 2, 0));
        subscription.deadline = Some(Duration::from_secs(1));
        assert_eq!(
            subscription.consumer_qos(),
            Err(SimpleSubscriptionError::DeadlineOfAll)
        );
    }
}
