//! Subscriptions and publications in words, so that nobody writes the headers of a `ConsumerQOS` or `SupplierQOS` by hand.
//!
//! ```
//! use rtorb_services::events::subscribe::Interest;
//! use std::time::Duration;
//!
//! // Both sensors' readings together, or a word when they have not both come for 50 ms.
//! let readings = Interest::conjunction([Interest::event(1, 20), Interest::event(2, 20)]);
//! let interest = Interest::disjunction([readings, Interest::deadline(Duration::from_millis(50))]);
//! assert!(interest.needs_prefix(), "a group in a group");
//! let qos = interest.rt_info(40).consumer_qos();
//! assert_eq!(qos.dependencies.len(), 5);
//! ```

use crate::events::filter::types;
use crate::stubs::rtec_event::rtec_base::{
    DependencyEnabledTypeT, DependencyInfo, DependencyTypeT, HandleT,
};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, Dependency, Publication, SupplierQos,
};
use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};
use rtorb::codegen::Any;
use std::time::Duration;

/// What a consumer wants; [the filter](crate::events::filter) says what each construct means.
#[derive(Clone, Debug, PartialEq)]
pub struct Interest {
    what: What,
    rt_info: Option<HandleT>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// An entry on its own, or with the operands that follow it.
    Entry(Header, Vec<Header>),
    /// A designator whose children are counted.
    Group(i32, Vec<Interest>),
    /// A designator with its operands, and one child.
    About(i32, Vec<Header>, Box<Interest>),
}

/// What counts of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Header {
    event_type: i32,
    source: i32,
    creation_time: u64,
}

impl Interest {
    /// Events of this source and type; 0 stands for any.
    pub fn event(source: i32, event_type: i32) -> Self {
        Self::entry(Header {
            event_type,
            source,
            creation_time: 0,
        })
    }

    /// All events of this source.
    pub fn source(source: i32) -> Self {
        Self::event(source, types::ANY)
    }

    /// Events of this type, whoever sends them.
    pub fn event_type(event_type: i32) -> Self {
        Self::event(types::ANY, event_type)
    }

    /// All events.
    pub fn anything() -> Self {
        Self::event(types::ANY, types::ANY)
    }

    /// Events with `type & type_mask == event_type` and `source & source_mask == source`.
    pub fn masked(masks: Bits, values: Bits) -> Self {
        let designator = Header::designator(types::MASKED_TYPE, 0);
        Self::new(What::Entry(
            designator,
            vec![masks.header(), values.header()],
        ))
    }

    /// Once, this long after connecting. Channels refuse periods of less than 100 us unless they are told otherwise.
    pub fn timeout(period: Duration) -> Self {
        Self::time(types::TIMEOUT, period)
    }

    /// Every period, whatever else comes.
    pub fn interval(period: Duration) -> Self {
        Self::time(types::INTERVAL_TIMEOUT, period)
    }

    /// When what it stands with was not satisfied for this long.
    pub fn deadline(period: Duration) -> Self {
        Self::time(types::DEADLINE_TIMEOUT, period)
    }

    /// All of them, one event each, in one push.
    pub fn conjunction(children: impl IntoIterator<Item = Self>) -> Self {
        Self::group(types::CONJUNCTION, children)
    }

    /// Any of them.
    pub fn disjunction(children: impl IntoIterator<Item = Self>) -> Self {
        Self::group(types::DISJUNCTION, children)
    }

    /// Events that all of them take.
    pub fn logical_and(children: impl IntoIterator<Item = Self>) -> Self {
        Self::group(types::LOGICAL_AND, children)
    }

    /// Events that the child does not take.
    pub fn negation(child: Self) -> Self {
        Self::new(What::About(types::NEGATION, Vec::new(), Box::new(child)))
    }

    /// What the child makes of events that have a bit of both masks.
    pub fn bitmask(masks: Bits, child: Self) -> Self {
        Self::new(What::About(
            types::BITMASK,
            vec![masks.header()],
            Box::new(child),
        ))
    }

    /// Whom the scheduler knows by this handle gets all of it, where nothing else was said before.
    #[must_use]
    pub fn rt_info(mut self, rt_info: HandleT) -> Self {
        self.rt_info.get_or_insert(rt_info);
        self
    }

    /// Whether it has groups in groups, so that only a channel with the filter `prefix` can have it.
    pub fn needs_prefix(&self) -> bool {
        match &self.what {
            What::Entry(..) => false,
            What::Group(_, children) => children.iter().any(Self::has_group),
            What::About(_, _, child) => child.needs_prefix(),
        }
    }

    /// The list for `connect_push_consumer`. It counts the children of groups, which a channel with the filter `basic` ignores, so one
    /// list does for both as long as it does not [need](Self::needs_prefix) the one.
    pub fn consumer_qos(&self) -> ConsumerQos {
        let mut dependencies = Vec::new();
        self.write(self.rt_info.unwrap_or(0), &mut dependencies);
        ConsumerQos {
            dependencies,
            is_gateway: false,
        }
    }

    fn new(what: What) -> Self {
        Self {
            what,
            rt_info: None,
        }
    }

    fn entry(header: Header) -> Self {
        Self::new(What::Entry(header, Vec::new()))
    }

    fn time(event_type: i32, period: Duration) -> Self {
        let units = period.as_nanos().div_ceil(NS_PER_UNIT);
        Self::entry(Header {
            event_type,
            source: 0,
            creation_time: u64::try_from(units).unwrap_or(u64::MAX),
        })
    }

    fn group(event_type: i32, children: impl IntoIterator<Item = Self>) -> Self {
        Self::new(What::Group(event_type, children.into_iter().collect()))
    }

    fn has_group(&self) -> bool {
        match &self.what {
            What::Entry(..) => false,
            What::Group(..) => true,
            What::About(_, _, child) => child.has_group(),
        }
    }

    fn write(&self, from_above: HandleT, list: &mut Vec<Dependency>) {
        let rt_info = self.rt_info.unwrap_or(from_above);
        let mut put = |header: Header| list.push(header.dependency(rt_info));
        match &self.what {
            What::Entry(header, operands) => {
                put(*header);
                operands.iter().copied().for_each(put);
            }
            What::Group(event_type, children) => {
                // A channel refuses a list that long.
                let count = i32::try_from(children.len()).unwrap_or(i32::MAX);
                put(Header::designator(*event_type, count));
                children.iter().for_each(|child| child.write(rt_info, list));
            }
            What::About(event_type, operands, child) => {
                put(Header::designator(*event_type, 0));
                operands.iter().copied().for_each(put);
                child.write(rt_info, list);
            }
        }
    }
}

/// Bits of the source and of the type of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Those of the source.
    pub source: u32,
    /// Those of the type.
    pub event_type: u32,
}

impl Bits {
    fn header(self) -> Header {
        Header {
            event_type: self.event_type.cast_signed(),
            source: self.source.cast_signed(),
            creation_time: 0,
        }
    }
}

impl Header {
    fn designator(event_type: i32, source: i32) -> Self {
        Self {
            event_type,
            source,
            creation_time: 0,
        }
    }

    fn dependency(self, rt_info: HandleT) -> Dependency {
        Dependency {
            event: self.event(),
            rt_info,
        }
    }

    fn event(self) -> Event {
        Event {
            header: EventHeader {
                r#type: self.event_type,
                source: self.source,
                ttl: 0,
                creation_time: self.creation_time,
                ec_recv_time: 0,
                ec_send_time: 0,
            },
            data: EventData {
                pad1: 0,
                payload: Vec::new(),
                any_value: Any::NULL,
            },
        }
    }
}

/// What a supplier is going to push.
///
/// ```
/// use rtorb_services::events::subscribe::Publications;
///
/// let qos = Publications::new().event(1, 20, 0).event(1, 21, 0).supplier_qos();
/// assert_eq!(qos.publications.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Publications(Vec<Publication>);

impl Publications {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Events of this source and type, pushed by whom the scheduler knows by this handle (0 where there is none).
    #[must_use]
    pub fn event(mut self, source: i32, event_type: i32, rt_info: HandleT) -> Self {
        let header = Header {
            event_type,
            source,
            creation_time: 0,
        };
        self.0.push(Publication {
            event: header.event(),
            dependency_info: DependencyInfo {
                dependency_type: DependencyTypeT::OneWayCall,
                number_of_calls: 1,
                rt_info,
                rt_info_depended_on: 0,
                enabled: DependencyEnabledTypeT::DependencyEnabled,
            },
        });
        self
    }

    /// The list for `connect_push_supplier`.
    pub fn supplier_qos(self) -> SupplierQos {
        SupplierQos {
            publications: self.0,
            is_gateway: false,
        }
    }
}

/// A unit of `TimeBase::TimeT`.
const NS_PER_UNIT: u128 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::filter::{FilterKind, FilterLimits, Key, Subscription};

    const MS: Duration = Duration::from_millis(1);

    fn build(interest: &Interest, kind: FilterKind) -> Subscription {
        Subscription::build(&interest.consumer_qos(), kind, &FilterLimits::default(), 0)
            .expect("a subscription")
    }

    #[test]
    fn a_list_without_groups_in_groups_does_for_both_forms() {
        let bits = Bits {
            source: 3,
            event_type: 0xf0,
        };
        let interests = [
            Interest::event(1, 20),
            Interest::disjunction([Interest::source(1), Interest::event_type(20)]),
            Interest::conjunction([Interest::event(1, 20), Interest::interval(MS)]),
            Interest::negation(Interest::disjunction([Interest::event(1, 20)])),
            Interest::bitmask(bits, Interest::anything()),
            Interest::logical_and([Interest::masked(bits, bits), Interest::source(3)]),
        ];
        for interest in interests {
            assert!(!interest.needs_prefix());
            let basic = build(&interest, FilterKind::Basic);
            let prefix = build(&interest, FilterKind::Prefix);
            assert_eq!(basic.keys(), prefix.keys(), "{interest:?}");
            assert_eq!(basic.is_plain(), prefix.is_plain());
            assert_eq!(basic.next_timeout_ns(), prefix.next_timeout_ns());
        }
    }

    #[test]
    fn groups_in_groups_need_the_prefix_form() {
        let inner = Interest::disjunction([Interest::event(1, 20)]);
        for interest in [
            Interest::conjunction([inner.clone(), Interest::event(2, 20)]),
            Interest::logical_and([Interest::negation(inner), Interest::anything()]),
        ] {
            assert!(interest.needs_prefix());
            let qos = interest.consumer_qos();
            let limits = FilterLimits::default();
            assert!(Subscription::build(&qos, FilterKind::Basic, &limits, 0).is_err());
            assert!(Subscription::build(&qos, FilterKind::Prefix, &limits, 0).is_ok());
        }
    }

    #[test]
    fn the_nearest_rt_info_counts() {
        let interest = Interest::disjunction([
            Interest::event(1, 20).rt_info(7),
            Interest::event(1, 21),
            Interest::negation(Interest::event(1, 22)).rt_info(8),
        ])
        .rt_info(9);
        assert_eq!(build(&interest, FilterKind::Prefix).rt_infos(), [7, 8, 9]);
    }

    #[test]
    fn periods_are_in_units_of_100_ns_rounded_up() {
        let qos = Interest::deadline(Duration::from_nanos(150_050)).consumer_qos();
        assert_eq!(qos.dependencies[0].event.header.creation_time, 1_501);
        let qos = Interest::timeout(Duration::MAX).consumer_qos();
        assert_eq!(qos.dependencies[0].event.header.creation_time, u64::MAX);
    }

    #[test]
    fn wildcards_are_wildcards() {
        assert_eq!(
            build(&Interest::anything(), FilterKind::Basic).keys(),
            [Key::ANY]
        );
    }
}
