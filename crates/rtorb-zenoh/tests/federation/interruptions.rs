//! Links that break, and members that end and come back: each event is delivered, or counted.

use rtorb_services::events::client::Supplier;
use rtorb_services::events::subscribe::Interest;
use rtorb_zenoh::{FederationCongestion, FederationNews, FederationStatistics, IncomingStatistics};
use std::time::Duration;

use crate::relay::Relay;
use crate::setup::{
    Member, Plant, TYPE, WARM, connecting, endpoint, event, key, listening, numbers, warm_up,
};

/// The published events of others that a member has an account of.
fn accounted(counts: &IncomingStatistics) -> u64 {
    counts.delivered + counts.lost + counts.unsubscribed + counts.discarded()
}

fn push(supplier: &Supplier, numbers: std::ops::Range<u32>) {
    for number in numbers {
        supplier.push(&[event(key(1), number)]).expect("it is sent");
    }
    supplier.arrived().expect("the channel has them");
}

/// Waits until a member has published all that its channel got from a supplier.
fn published(member: &Member, pushed: u64) -> FederationStatistics {
    member.statistics_when("all is published", |counts| {
        counts.outgoing.published == pushed
    })
}

#[test]
fn a_broken_link_loses_events_and_counts_each_of_them() {
    let (from, to) = (Plant::start(), Plant::start());
    let at = endpoint();
    let publisher = Member::start(&from, listening("from", &at));
    let relay = Relay::to(&at);
    let member = Member::start(&to, connecting("to", &relay.endpoint()));
    let consumer = to.consumer(Interest::event_type(TYPE));
    let supplier = from.supplier();
    let pushed = 300 + warm_up(&supplier, key(1), &consumer);
    for round in 0..3 {
        relay.cut();
        publisher.statistics_when("it is gone", |counts| counts.members == 0);
        push(&supplier, 100 * round..100 * round + 50);
        // A member takes events from its channel a little later.
        published(&publisher, pushed - 250 + 100 * u64::from(round));
        relay.mend();
        publisher.statistics_when("it is back", |counts| counts.members == 1);
        // Some of these may still come too early.
        push(&supplier, 100 * round + 50..100 * round + 100);
        published(&publisher, pushed - 200 + 100 * u64::from(round));
    }
    let counts = member.statistics_when("each event has an account", |counts| {
        accounted(&counts.incoming) == pushed && counts.incoming.waiting == 0
    });
    assert!(
        counts.incoming.lost >= 150,
        "what was pushed without a link: {counts:#?}"
    );
    assert_eq!(counts.incoming.repeated, 0, "{counts:#?}");
    assert!(counts.incoming.is_balanced(), "{counts:#?}");
    let mut got = numbers(&consumer);
    got.retain(|&number| number != WARM);
    let is_in_order = got.is_sorted_by(|one, other| one < other);
    assert!(is_in_order, "each once and in order: {got:?}");
}

#[test]
fn two_listening_members_find_each_other_again_after_a_moment_without_a_link() {
    let (one, two) = (Plant::start(), Plant::start());
    let at = endpoint();
    let first = Member::start(&one, listening("first", &at));
    let relay = Relay::to(&at);
    let mut config = listening("second", &endpoint());
    config.network.connect = vec![relay.endpoint()];
    let second = Member::start(&two, config);
    first.statistics_when("they have met", |counts| counts.members == 1);
    for _ in 0..2 {
        relay.cut();
        first.statistics_when("the link is gone", |counts| counts.members == 0);
        relay.mend();
        // Zenoh connects again before it has forgotten the other member, and then both keep silent about themselves.
        for member in [&first, &second] {
            member.statistics_when("they have met again", |counts| counts.members == 1);
        }
    }
    // And events pass, each with an account, though a session was opened again meanwhile.
    let consumer = two.consumer(Interest::event_type(TYPE));
    let supplier = one.supplier();
    let pushed = 50 + warm_up(&supplier, key(1), &consumer);
    push(&supplier, 0..50);
    second.statistics_when("each event has an account", |counts| {
        accounted(&counts.incoming) == pushed && counts.incoming.waiting == 0
    });
    let names_itself = |news: &FederationNews| matches!(news, FederationNews::SameName { .. });
    assert_eq!(
        first.count_news(names_itself) + second.count_news(names_itself),
        0
    );
}

#[test]
fn a_member_that_comes_back_has_an_account_of_what_it_missed() {
    let (from, to) = (Plant::start(), Plant::start());
    let at = endpoint();
    let publisher = Member::start(&from, listening("from", &at));
    let member = Member::start(&to, connecting("to", &at));
    let consumer = to.consumer(Interest::event_type(TYPE));
    let supplier = from.supplier();
    let mut pushed = 40 + warm_up(&supplier, key(1), &consumer);
    drop(member);
    push(&supplier, 0..30);
    published(&publisher, pushed - 10);
    let member = Member::start(&to, connecting("to", &at));
    pushed += warm_up(&supplier, key(1), &consumer);
    push(&supplier, 30..40);
    let counts = member.statistics_when("each event has an account", |counts| {
        accounted(&counts.incoming) == pushed && counts.incoming.waiting == 0
    });
    assert!(counts.incoming.unsubscribed >= 30, "{counts:#?}");
    assert!(counts.incoming.delivered >= 11, "{counts:#?}");
    // It is the publisher's turn to end: its last report has all its numbers.
    push(&supplier, 40..60);
    pushed += 20;
    published(&publisher, pushed);
    publisher.federation.stop();
    member.statistics_when("each event has an account", |counts| {
        accounted(&counts.incoming) == pushed && counts.members == 0
    });
    // Another run of its begins at 0, and is another account.
    let publisher = Member::start(&from, listening("from", &at));
    let again = 20 + warm_up(&supplier, key(1), &consumer);
    push(&supplier, 100..120);
    published(&publisher, again);
    let counts = member.statistics_when("each event has an account", |counts| {
        accounted(&counts.incoming) == pushed + again && counts.incoming.waiting == 0
    });
    assert!(counts.incoming.is_balanced(), "{counts:#?}");
}

#[test]
fn a_flood_is_published_or_discarded_and_each_event_has_an_account() {
    let (from, to) = (Plant::start(), Plant::start());
    let at = endpoint();
    let mut config = listening("from", &at);
    config.queue_events = 1;
    config.congestion = FederationCongestion::Drop(Duration::ZERO);
    let publisher = Member::start(&from, config);
    let mut config = connecting("to", &at);
    config.queue_events = 1;
    let member = Member::start(&to, config);
    let consumer = to.consumer(Interest::event_type(TYPE));
    let supplier = from.supplier();
    warm_up(&supplier, key(1), &consumer);
    push(&supplier, 0..3000);
    let counts = member.statistics_when("each event has an account", |counts| {
        let published = publisher.statistics().outgoing.published;
        accounted(&counts.incoming) == published && counts.incoming.waiting == 0
    });
    assert!(counts.incoming.is_balanced(), "{counts:#?}");
}

#[test]
fn a_channel_that_ends_is_tried_again_until_the_member_gives_up() {
    let plant = Plant::start();
    let at = endpoint();
    let mut config = listening("only", &at);
    config.tries_max = 3;
    config.pause_min = Duration::from_millis(1);
    config.pause_max = Duration::from_millis(2);
    config.ping_every = Duration::from_millis(20);
    let member = Member::start(&plant, config);
    member.wait_for_news("it is connected", |news| *news == FederationNews::Connected);
    plant.end_channel();
    member.wait_for_news("it gives up", |news| *news == FederationNews::GaveUp);
    assert!(member.count_news(|news| matches!(news, FederationNews::Lost { .. })) >= 1);
    rtorb_tests::running::until("it has ended", || {
        member.federation.has_ended().then_some(())
    });
}

#[test]
fn two_listening_members_carry_the_others_and_one_of_them_is_enough() {
    let plants = [(); 4].map(|()| Plant::start());
    let (one, two) = (endpoint(), endpoint());
    let mut first = listening("first", &one);
    first.network.connect = vec![two.clone()];
    let mut second = listening("second", &two);
    second.network.connect = vec![one.clone()];
    let both = |name: &str| {
        let mut config = connecting(name, &one);
        config.network.connect.push(two.clone());
        config
    };
    let first = Member::start(&plants[0], first);
    let _second = Member::start(&plants[1], second);
    let from = Member::start(&plants[2], both("from"));
    let to = Member::start(&plants[3], both("to"));
    let consumer = plants[3].consumer(Interest::event_type(TYPE));
    let supplier = plants[2].supplier();
    to.statistics_when("all have met", |counts| counts.members == 3);
    let mut pushed = 100 + warm_up(&supplier, key(1), &consumer);
    push(&supplier, 0..50);
    published(&from, pushed - 50);
    drop(first);
    from.statistics_when("one is gone", |counts| counts.members == 2);
    pushed += warm_up(&supplier, key(1), &consumer);
    push(&supplier, 50..100);
    let counts = to.statistics_when("each event has an account", |counts| {
        accounted(&counts.incoming) == pushed && counts.incoming.waiting == 0
    });
    assert!(counts.incoming.delivered >= 50, "{counts:#?}");
    let mut got = numbers(&consumer);
    got.retain(|&number| number != WARM);
    assert!(
        got.is_sorted_by(|one, other| one < other),
        "each once: {got:?}"
    );
}
