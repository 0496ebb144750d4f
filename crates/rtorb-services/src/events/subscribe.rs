//! Builders for subscriptions and publications, so that nobody writes the headers of a `ConsumerQOS` or `SupplierQOS` by hand.
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

use crate::events::event::{event_of, header};
use crate::events::filter::types;
use crate::stubs::rtec_event::rtec_base::{
    DependencyEnabledTypeT, DependencyInfo, DependencyTypeT, HandleT,
};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, Dependency, Publication, SupplierQos,
};
use crate::stubs::rtec_event::rtec_event_comm::{Event, EventHeader};
use std::time::Duration;

/// What a consumer subscribes to. [The filter](crate::events::filter) defines what each construct means.
#[derive(Clone, Debug, PartialEq)]
pub struct Interest {
    what: InterestForm,
    rt_info: Option<HandleT>,
}

#[derive(Clone, Debug, PartialEq)]
enum InterestForm {
    /// An entry with its operands.
    Entry(Header, Vec<Header>),
    /// A designator with a count of children.
    Group(i32, Vec<Interest>),
    /// A designator with operands and one child.
    About(i32, Vec<Header>, Box<Interest>),
}

/// The members of a header that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Header {
    event_type: i32,
    source: i32,
    creation_time: u64,
}

impl Interest {
    /// Events of this source and type; 0 for any.
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

    /// Events of this type from any source.
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
        Self::new(InterestForm::Entry(
            designator,
            vec![masks.header(), values.header()],
        ))
    }

    /// A single timeout after connecting. Channels refuse periods of less than 100 us by default.
    pub fn timeout(period: Duration) -> Self {
        Self::time(types::TIMEOUT, period)
    }

    /// A timeout every period, independent of events.
    pub fn interval(period: Duration) -> Self {
        Self::time(types::INTERVAL_TIMEOUT, period)
    }

    /// A timeout when its tree has delivered nothing for this time.
    pub fn deadline(period: Duration) -> Self {
        Self::time(types::DEADLINE_TIMEOUT, period)
    }

    /// One event of each child, in one push.
    pub fn conjunction(children: impl IntoIterator<Item = Self>) -> Self {
        Self::group(types::CONJUNCTION, children)
    }

    /// Any of the children.
    pub fn disjunction(children: impl IntoIterator<Item = Self>) -> Self {
        Self::group(types::DISJUNCTION, children)
    }

    /// Events that match all children.
    pub fn logical_and(children: impl IntoIterator<Item = Self>) -> Self {
        Self::group(types::LOGICAL_AND, children)
    }

    /// Events that do not match the child.
    pub fn negation(child: Self) -> Self {
        Self::new(InterestForm::About(
            types::NEGATION,
            Vec::new(),
            Box::new(child),
        ))
    }

    /// Events with at least one bit of both masks that match the child.
    pub fn bitmask(masks: Bits, child: Self) -> Self {
        Self::new(InterestForm::About(
            types::BITMASK,
            vec![masks.header()],
            Box::new(child),
        ))
    }

    /// Sets the scheduler's handle for all parts that have none yet.
    #[must_use]
    pub fn rt_info(mut self, rt_info: HandleT) -> Self {
        self.rt_info.get_or_insert(rt_info);
        self
    }

    /// True if it has groups in groups, which only a channel with the filter `prefix` accepts.
    pub fn needs_prefix(&self) -> bool {
        match &self.what {
            InterestForm::Entry(..) => false,
            InterestForm::Group(_, children) => children.iter().any(Self::has_group),
            InterestForm::About(_, _, child) => child.needs_prefix(),
        }
    }

    /// The list for `connect_push_consumer`. It contains the counts of children, which a channel with the filter `basic` ignores:
    /// one list works for both forms unless it [needs the prefix form](Self::needs_prefix).
    pub fn consumer_qos(&self) -> ConsumerQos {
        let mut dependencies = Vec::new();
        self.write(self.rt_info.unwrap_or(0), &mut dependencies);
        ConsumerQos {
            dependencies,
            is_gateway: false,
        }
    }

    fn new(what: InterestForm) -> Self {
        Self {
            what,
            rt_info: None,
        }
    }

    fn entry(header: Header) -> Self {
        Self::new(InterestForm::Entry(header, Vec::new()))
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
        Self::new(InterestForm::Group(
            event_type,
            children.into_iter().collect(),
        ))
    }

    fn has_group(&self) -> bool {
        match &self.what {
            InterestForm::Entry(..) => false,
            InterestForm::Group(..) => true,
            InterestForm::About(_, _, child) => child.has_group(),
        }
    }

    fn write(&self, from_above: HandleT, list: &mut Vec<Dependency>) {
        let rt_info = self.rt_info.unwrap_or(from_above);
        let mut put = |header: Header| list.push(header.dependency(rt_info));
        match &self.what {
            InterestForm::Entry(header, operands) => {
                put(*header);
                operands.iter().copied().for_each(put);
            }
            InterestForm::Group(event_type, children) => {
                // A channel refuses such a long list.
                let count = i32::try_from(children.len()).unwrap_or(i32::MAX);
                put(Header::designator(*event_type, count));
                children.iter().for_each(|child| child.write(rt_info, list));
            }
            InterestForm::About(event_type, operands, child) => {
                put(Header::designator(*event_type, 0));
                operands.iter().copied().for_each(put);
                child.write(rt_info, list);
            }
        }
    }
}

/// Bits of an event's source and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Bits of the source.
    pub source: u32,
    /// Bits of the type.
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
        event_of(EventHeader {
            creation_time: self.creation_time,
            ..header(self.event_type, self.source)
        })
    }
}

/// The publications of a supplier.
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
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds events of this source and type; `rt_info` is the supplier's handle in the scheduler, or 0.
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

#[cfg(all(test, feature = "event-channel"))]
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
