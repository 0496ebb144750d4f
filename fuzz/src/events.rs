//! A target that subscribes to events, and publishes events to the subscription.

use rtorb::cdr::{Decode, Reader};
use rtorb_services::events::filter::{FilterKind, FilterLimits, Subscription};
use rtorb_services::events::{Event, EventHeader};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{ConsumerQos, SupplierQos};
use rtorb_wire::ByteOrder;

/// Decodes a subscription, a publication and events one after the other, and passes the events to the subscription. The first byte
/// chooses the byte order and the form of the subscription.
pub(crate) fn subscribe(input: &[u8]) {
    let Some((&form, rest)) = input.split_first() else {
        return;
    };
    let mut r = Reader::new(rest, ByteOrder::from_flag(form)).with_giop_minor(2);
    let Ok(qos) = ConsumerQos::decode(&mut r) else {
        let _ = SupplierQos::decode(&mut Reader::new(rest, ByteOrder::from_flag(form)));
        return;
    };
    let kind = if form & 2 == 0 {
        FilterKind::Basic
    } else {
        FilterKind::Prefix
    };
    let Ok(mut subscription) = Subscription::build(&qos, kind, &FilterLimits::default(), 0) else {
        return;
    };
    let mut now_ns = 0;
    for _ in 0..EVENTS_MAX {
        let Ok(event) = Event::decode(&mut r) else {
            break;
        };
        now_ns += 1_000_000;
        deliver(&mut subscription, &event.header, now_ns);
    }
    subscription.expire(now_ns + 3_600_000_000_000, &mut |_| ());
    let keys = subscription.keys().len();
    assert!(keys <= FilterLimits::default().entries_max, "{keys} keys");
}

fn deliver(subscription: &mut Subscription, header: &EventHeader, now_ns: u64) {
    let mut deliveries = 0_u64;
    subscription.accept(header, b"data", now_ns, &mut |_| deliveries += 1);
}

/// Events of one input.
const EVENTS_MAX: usize = 64;
