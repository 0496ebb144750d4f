//! The subscriptions that are asked for most, from types, sources and timeouts.

use std::time::Duration;

use rtorb::any::Any;

use super::filter::types;
use crate::stubs::rtec_event::rtec_event_channel_admin::{ConsumerQos, Dependency};
use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};

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
    /// A period that is none, or more than there is room for.
    #[error("a period must be 100 ns at least, and 29,000 years at most")]
    Period,
}

impl Wish {
    /// The list for `connect_push_consumer`.
    ///
    /// # Errors
    /// What makes no sense together.
    pub fn subscription(&self) -> Result<ConsumerQos, WishError> {
        let mut dependencies = Vec::new();
        if let Some(interval) = self.interval {
            // A tree of its own: its period goes on whatever else comes.
            dependencies.push(self.entry(types::INTERVAL_TIMEOUT, 0, period(interval)?));
        }
        let events = self.events();
        let deadline = match (self.deadline, self.together) {
            (None, _) => None,
            (Some(_), Together::AllOf) => return Err(WishError::DeadlineOfAll),
            (Some(deadline), Together::AnyOf) => Some(period(deadline)?),
        };
        let designator = match self.together {
            Together::AnyOf => types::DISJUNCTION,
            Together::AllOf => types::CONJUNCTION,
        };
        let children = events.len() + usize::from(deadline.is_some());
        dependencies.push(self.entry(designator, children as i32, 0));
        dependencies.extend(events);
        dependencies.extend(deadline.map(|period| self.entry(types::DEADLINE_TIMEOUT, 0, period)));
        Ok(ConsumerQos {
            dependencies,
            is_gateway: self.is_gateway,
        })
    }

    fn events(&self) -> Vec<Dependency> {
        let or_any = |chosen: &[i32]| match chosen {
            [] => vec![types::ANY],
            chosen => chosen.to_vec(),
        };
        let sources = or_any(&self.sources);
        let of_each = |event_type| {
            let sources = sources.iter();
            sources.map(move |source| self.entry(event_type, *source, 0))
        };
        or_any(&self.types).into_iter().flat_map(of_each).collect()
    }

    fn entry(&self, event_type: i32, source: i32, creation_time: u64) -> Dependency {
        Dependency {
            event: Event {
                header: EventHeader {
                    r#type: event_type,
                    source,
                    ttl: 0,
                    creation_time,
                    ec_recv_time: 0,
                    ec_send_time: 0,
                },
                data: EventData {
                    pad1: 0,
                    payload: Vec::new(),
                    any_value: Any::NULL,
                },
            },
            rt_info: self.rt_info,
        }
    }
}

/// In units of 100 ns.
fn period(duration: Duration) -> Result<u64, WishError> {
    match u64::try_from(duration.as_nanos() / 100) {
        Ok(period) if (1..=u64::MAX / 200).contains(&period) => Ok(period),
        _ => Err(WishError::Period),
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
        wish.deadline = None;
        wish.interval = Some(Duration::from_nanos(99));
        assert_eq!(wish.subscription(), Err(WishError::Period));
    }
}
