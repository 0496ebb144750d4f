//! The subscriptions that are asked for most, from types, sources and timeouts.

use std::time::Duration;

use super::filter::types;
use super::subscribe::Interest;
use crate::stubs::rtec_event::rtec_event_channel_admin::ConsumerQos;

/// Events of some types and sources, and timeouts beside them. The list that it becomes means the same to a channel with basic
/// and with prefix filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Types of events; none stands for any.
    pub types: Vec<i32>,
    /// Sources of events; none stands for any. Each type is wanted of each source.
    pub sources: Vec<i32>,
    /// Whether one event of all of these is enough.
    pub together: Together,
    /// An event of [`types::INTERVAL_TIMEOUT`] each such period.
    pub interval: Option<Duration>,
    /// An event of [`types::DEADLINE_TIMEOUT`] when none of the others has come for so long.
    pub deadline: Option<Duration>,
    /// How urgent this is, as the channel's scheduler knows it; without one, a CORBA priority.
    pub rt_info: i32,
    /// Whether a gateway asks.
    pub is_gateway: bool,
}

/// How events belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Together {
    /// Each comes alone.
    #[default]
    AnyOf,
    /// They come when one of each is there, in one push.
    AllOf,
}

/// Why a wish cannot be a subscription of every channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WishError {
    /// A deadline for a conjunction is a group in a group, which basic filters do not know.
    #[error(
        "a deadline cannot be had together with all-of: it belongs into a group with the events, which are one already"
    )]
    DeadlineOfAll,
}

impl Wish {
    /// The list for `connect_push_consumer`.
    ///
    /// # Errors
    /// What makes no sense together.
    pub fn subscription(&self) -> Result<ConsumerQos, WishError> {
        let events = self.events();
        let deadline = self.deadline.map(Interest::deadline);
        let group = match (self.together, deadline) {
            (Together::AnyOf, deadline) => Interest::disjunction(events.chain(deadline)),
            (Together::AllOf, None) => Interest::conjunction(events),
            (Together::AllOf, Some(_)) => return Err(WishError::DeadlineOfAll),
        };
        // A tree of its own: its period goes on whatever else comes.
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

    fn listed(wish: &Wish) -> Vec<(i32, i32, u64)> {
        let list = wish.subscription().expect("it makes sense").dependencies;
        let headers = list.iter().map(|dependency| &dependency.event.header);
        headers
            .map(|header| (header.r#type, header.source, header.creation_time))
            .collect()
    }

    #[test]
    fn nothing_chosen_is_everything() {
        assert_eq!(
            listed(&Wish::default()),
            [(types::DISJUNCTION, 1, 0), (0, 0, 0)]
        );
    }

    #[test]
    fn each_type_is_wanted_of_each_source_and_timeouts_stand_beside() {
        let wish = Wish {
            types: vec![20, 21],
            sources: vec![1, 2],
            interval: Some(Duration::from_millis(1)),
            deadline: Some(Duration::from_secs(1)),
            ..Wish::default()
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
        assert_eq!(listed(&wish), expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let mut wish = Wish {
            types: vec![20, 21],
            together: Together::AllOf,
            ..Wish::default()
        };
        assert_eq!(listed(&wish)[0], (types::CONJUNCTION, 2, 0));
        wish.deadline = Some(Duration::from_secs(1));
        assert_eq!(wish.subscription(), Err(WishError::DeadlineOfAll));
    }
}
