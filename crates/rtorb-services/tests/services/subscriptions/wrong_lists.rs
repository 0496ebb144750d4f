//! Lists that make no sense are refused with the entry and the reason, and no list whatever is a panic.

use super::lists::{dependency, header, list};
use proptest::prelude::*;
use rtorb_services::events::filter::{FilterKind, FilterLimits, Subscription, SubscriptionError};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::ConsumerQos;

const LIMITS: FilterLimits = FilterLimits {
    entries_max: 12,
    depth_max: 4,
    timeouts_max: 2,
    period_ns_min: 1_000_000,
    period_ns_max: 1_000_000_000,
    remembered_bytes: 64,
    remembered_bytes_max: 4096,
};

#[test]
fn each_mistake_is_told_with_its_place_and_reason() {
    for (kind, entries, said) in MISTAKES.iter().copied() {
        let qos = ConsumerQos {
            dependencies: entries
                .iter()
                .map(|(event_type, source)| dependency(*event_type, *source, 0))
                .collect(),
            is_gateway: false,
        };
        let error = Subscription::build(&qos, kind, &LIMITS, 0).expect_err(said);
        assert!(
            error.to_string().contains(said),
            "{error}\nshould be {said}"
        );
    }
}

#[test]
fn periods_have_bounds() {
    for (units, is_allowed) in [
        (1, false),
        (9_999, false),
        (10_000, true),
        (10_000_000, true),
        (10_000_001, false),
        (u64::MAX / 100 + 1, false),
        (u64::MAX, false),
    ] {
        for event_type in [4, 5, 6] {
            let qos = ConsumerQos {
                dependencies: vec![dependency(event_type, 0, units)],
                is_gateway: false,
            };
            let built = Subscription::build(&qos, FilterKind::Basic, &LIMITS, u64::MAX - 5);
            assert_eq!(built.is_ok(), is_allowed, "{units}");
        }
    }
    let error = Subscription::build(
        &list("interval(1) + deadline(1) + timeout(1)"),
        FilterKind::Basic,
        &LIMITS,
        0,
    )
    .expect_err("three timeouts");
    assert!(
        error
            .to_string()
            .contains("dependency 2 (type 4, timeout): more than 2 timeouts"),
        "{error}"
    );
}

#[test]
fn what_a_conjunction_cannot_remember_is_counted() {
    let limits = FilterLimits {
        remembered_bytes_max: 100,
        ..LIMITS
    };
    for (text, events, pushed) in [
        (
            "conjunction(1/20, 2/20)",
            [(1, 101), (1, 60), (2, 41), (2, 40)],
            100,
        ),
        // Two share what one has alone.
        (
            "conjunction(1/20, 2/20) + conjunction(3/20)",
            [(1, 51), (1, 20), (2, 31), (2, 30)],
            50,
        ),
    ] {
        let mut subscription =
            Subscription::build(&list(text), FilterKind::Basic, &limits, 0).expect("a conjunction");
        let mut pushes = Vec::<usize>::new();
        for (source, octets) in events {
            let event = header(20, source, 0);
            subscription.accept(&event, &vec![0; octets], 0, &mut |delivery| {
                pushes.push(delivery.events().map(|event| event.bytes.len()).sum());
            });
        }
        assert_eq!(pushes, [pushed], "{text}");
        assert_eq!(subscription.forgotten(), 2, "{text}");
    }
}

fn any_entry() -> impl Strategy<Value = (i32, i32, u64)> {
    let event_type = prop_oneof![8 => 0..18, 1 => any::<i32>()];
    let source = prop_oneof![6 => 0..4, 1 => any::<i32>()];
    let time = prop_oneof![4 => Just(20_000_u64), 1 => Just(0), 1 => any::<u64>()];
    (event_type, source, time)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]
    #[test]
    fn no_list_is_a_panic(
        entries in prop::collection::vec(any_entry(), 0..14),
        events in prop::collection::vec((any_entry(), 0..40_usize, 0..5_000_000_u64), 0..12),
        start_ns in prop_oneof![Just(0_u64), Just(u64::MAX - 20_000_000)],
        is_prefix in any::<bool>(),
    ) {
        let qos = ConsumerQos {
            dependencies: entries.iter().map(|(event_type, source, time)| dependency(*event_type, *source, *time)).collect(),
            is_gateway: false,
        };
        let kind = if is_prefix { FilterKind::Prefix } else { FilterKind::Basic };
        match Subscription::build(&qos, kind, &LIMITS, start_ns) {
            Err(SubscriptionError::Entry { entry, event_type, .. }) => {
                prop_assert_eq!(event_type, entries[entry].0);
            }
            Err(_) => {}
            Ok(mut subscription) => {
                let mut now_ns = start_ns;
                for ((event_type, source, _), octets, wait_ns) in events {
                    now_ns = now_ns.saturating_add(wait_ns);
                    let mut pushed = 0;
                    let event = header(event_type, source, 0);
                    subscription.accept(&event, &vec![0; octets], now_ns, &mut |delivery| {
                        pushed += 1;
                        assert!(delivery.len() <= entries.len());
                        assert_eq!(delivery.events().count(), delivery.len());
                    });
                    // Each tree pushes once for an event, and each of its two timeouts once before.
                    prop_assert!(pushed <= entries.len() + 2);
                }
            }
        }
    }
}

/// The form, types and sources of the entries, and what is said of them.
type Mistake = (FilterKind, &'static [(i32, i32)], &'static str);

const MISTAKES: &[Mistake] = &[
    (
        FilterKind::Basic,
        &[],
        "the list of dependencies has no events",
    ),
    (FilterKind::Prefix, &[(7, 0)], "has no events"),
    (
        FilterKind::Basic,
        &[(16, 1); 13],
        "13 dependencies, and 12 are allowed",
    ),
    (
        FilterKind::Basic,
        &[(8, 0)],
        "dependency 0 (type 8, conjunction): it has no children; its events follow it",
    ),
    (
        FilterKind::Basic,
        &[(16, 1), (9, 2), (8, 2), (16, 1)],
        "dependency 1 (type 9, disjunction): it has no children",
    ),
    (
        FilterKind::Basic,
        &[(9, 1), (7, 0), (16, 1)],
        "dependency 0 (type 9, disjunction): it has no children",
    ),
    (
        FilterKind::Prefix,
        &[(9, 0), (16, 1)],
        "dependency 0 (type 9, disjunction): it has no children; header.source says how many",
    ),
    (
        FilterKind::Prefix,
        &[(11, 3), (16, 1), (16, 2)],
        "dependency 0 (type 11, logical AND): header.source says 3 children, and 2 entries follow",
    ),
    (
        FilterKind::Prefix,
        &[(8, -1), (16, 1)],
        "says 4294967295 children, and 1 entries follow",
    ),
    (
        FilterKind::Prefix,
        &[(8, i32::MAX), (16, 1)],
        "says 2147483647 children",
    ),
    (
        FilterKind::Prefix,
        &[(8, 2), (9, 2), (16, 1), (16, 2)],
        "dependency 0 (type 8, conjunction): header.source says 2 children",
    ),
    (
        FilterKind::Basic,
        &[(16, 1), (10, 0)],
        "dependency 1 (type 10, negation): the list ends where it needs the child",
    ),
    (
        FilterKind::Basic,
        &[(12, 0)],
        "dependency 0 (type 12, bitmask): the list ends where it needs an entry with its masks",
    ),
    (
        FilterKind::Basic,
        &[(12, 0), (16, 1)],
        "dependency 0 (type 12, bitmask): the list ends where it needs the child",
    ),
    (
        FilterKind::Basic,
        &[(13, 0), (16, 1)],
        "dependency 0 (type 13, masked type): the list ends where it needs an entry with the values",
    ),
    (
        FilterKind::Basic,
        &[(9, 1), (10, 0), (8, 1), (16, 1)],
        "dependency 2 (type 8, conjunction): a group cannot be inside a group here",
    ),
    (
        FilterKind::Prefix,
        &[(9, 2), (7, 0), (16, 1)],
        "dependency 1 (type 7, global designator): it ends all groups",
    ),
    (
        FilterKind::Basic,
        &[(10, 0), (7, 0)],
        "dependency 1 (type 7, global designator)",
    ),
    (
        FilterKind::Prefix,
        &[(10, 0), (8, 1), (16, 1)],
        "dependency 1 (type 8, conjunction): it cannot be below",
    ),
    (
        FilterKind::Prefix,
        &[(11, 1), (9, 1), (8, 1), (16, 1)],
        "dependency 2 (type 8, conjunction): it cannot be below",
    ),
    (
        FilterKind::Basic,
        &[(11, 1), (5, 0)],
        "dependency 1 (type 5, interval timeout): it cannot be below",
    ),
    (
        FilterKind::Basic,
        &[(12, 0), (1, 1), (6, 0)],
        "dependency 2 (type 6, deadline timeout): it cannot be below",
    ),
    (
        FilterKind::Basic,
        &[(9, 1), (15, 0)],
        "dependency 1 (type 15, reserved): the type is reserved",
    ),
    (
        FilterKind::Basic,
        &[(4, 0)],
        "dependency 0 (type 4, timeout): a period of 0 units of 100 ns (header.creation_time); it must be from 10000 to 10000000",
    ),
    (
        FilterKind::Prefix,
        &[(10, 0), (10, 0), (10, 0), (10, 0), (16, 1)],
        "dependency 4 (type 16, event): designators inside each other more than 4 deep",
    ),
];
