//! Looking up and filtering an event makes no heap call and takes no lock, once warm.

use std::sync::Arc;
use std::time::Duration;

use rtorb_instruments::heap::{CountingAllocator, heap_calls};
use rtorb_os::sync::lock_calls;
use rtorb_services::events::filter::{FilterKind, FilterLimits, Key, Subscription};
use rtorb_services::events::subscribe::Interest;
use rtorb_services::events::subscriptions::Subscriptions;
use rtorb_services::stubs::rtec_event::rtec_event_comm::EventHeader;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

#[test]
fn a_warm_filter_makes_no_heap_call() {
    let all = Interest::conjunction([
        Interest::event(1, 20),
        Interest::disjunction([Interest::event(2, 20), Interest::event(3, 20)]),
        Interest::conjunction([Interest::event(4, 20), Interest::interval(MS)]),
    ]);
    let interest = Interest::disjunction([
        all,
        Interest::logical_and([
            Interest::source(9),
            Interest::negation(Interest::event_type(20)),
        ]),
        Interest::deadline(5 * MS),
    ]);
    let limits = FilterLimits::default();
    let mut subscription =
        Subscription::build(&interest.consumer_qos(), FilterKind::Prefix, &limits, 0)
            .expect("a subscription");
    let mut now_ns = 0;
    let mut round = |octets: &[u8]| {
        let (mut pushes, mut events) = (0, 0);
        for source in [1, 1, 3, 9, 4, 2, 5] {
            now_ns += 400_000;
            subscription.accept(&header(source, 20), octets, now_ns, &mut |delivery| {
                pushes += 1;
                events += delivery.events().count();
            });
        }
        now_ns += 6_000_000;
        subscription.expire(now_ns, &mut |_| pushes += 1);
        (pushes, events)
    };
    let small = [0; 48];
    let ((pushes, events), calls) = heap_calls(|| round(&small));
    assert!(
        pushes > 1 && events > 2,
        "{pushes} pushes with {events} events"
    );
    assert_eq!(calls, 0, "small events fit into what was reserved");
    let large = vec![0; 20_000];
    assert!(
        heap_calls(|| round(&large)).1 > 0,
        "room is made for large ones once"
    );
    assert_eq!(heap_calls(|| round(&large)).1, 0);
}

#[test]
fn a_lookup_makes_no_heap_call_and_takes_no_lock() {
    let subscriptions = Subscriptions::new();
    for source in 0..200 {
        let key = Key {
            source,
            event_type: 16 + source % 3,
        };
        subscriptions.insert(source, &[key], Arc::new(source));
    }
    let event = Key {
        source: 100,
        event_type: 17,
    };
    let look_up = || subscriptions.snapshot().matching(event).count();
    assert_eq!(look_up(), 1);
    let ((found, locks), calls) = heap_calls(|| lock_calls(look_up));
    assert_eq!((found, locks.all, calls), (1, 0, 0));
}

fn header(source: i32, event_type: i32) -> EventHeader {
    EventHeader {
        r#type: event_type,
        source,
        ttl: 1,
        creation_time: 0,
        ec_recv_time: 0,
        ec_send_time: 0,
    }
}

const MS: Duration = Duration::from_millis(1);
